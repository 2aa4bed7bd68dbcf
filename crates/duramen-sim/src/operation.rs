//! The operations of a database: how often each is drawn, what it should do, how it is done.
//!
//! A new operation is a line of `kinds!` and a variant of [`Operation`]. The compiler then asks for
//! the rest: no match over either has a wildcard. The gate of [`Coverage`](crate::Coverage) fails
//! until the suites draw it often enough for it to take effect.

use duramen::{DocumentOptions, Retention, Revision};

use crate::edit::Edit;
use crate::random::Random;

mod call;
mod draw;
mod effect;

pub use call::Told;
pub(crate) use draw::{has_tags, has_undoable};

/// Where an operation can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// Only among others that are committed together.
    Inside,
    /// Only as a call of its own.
    Alone,
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $weight:literal $place:ident)*) => {
        /// The kinds of operations.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// What reports call it.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// How often it is drawn, compared with the others.
            fn weight(self) -> u64 {
                match self {
                    $(Self::$kind => $weight,)*
                }
            }

            fn place(self) -> Place {
                match self {
                    $(Self::$kind => Place::$place,)*
                }
            }
        }
    };
}

kinds! {
    /// A document is made, without a revision.
    Create "create" 1 Anywhere
    /// A whole value is saved.
    Put "put" 4 Anywhere
    /// What a pointer names is set.
    Set "set" 4 Anywhere
    /// What a pointer names is removed.
    Remove "remove" 2 Anywhere
    /// A document is expected to be at a revision.
    Expect "expect" 1 Inside
    /// What a pointer names is read, with what the transaction has changed.
    Get "get" 2 Inside
    /// An element or field is put at a place.
    Insert "insert" 2 Anywhere
    /// An element is put at the end of an array.
    Append "append" 2 Anywhere
    /// Elements of an array are replaced by others.
    Splice "splice" 2 Anywhere
    /// What is there is replaced.
    Replace "replace" 2 Anywhere
    /// A value goes to another place.
    Move "move" 2 Anywhere
    /// A value comes to another place too.
    Copy "copy" 2 Anywhere
    /// A field gets another name.
    RenameField "rename field" 2 Anywhere
    /// A JSON Merge Patch is applied.
    Merge "merge patch" 2 Anywhere
    /// A JSON Patch is applied.
    Patch "patch" 2 Anywhere
    /// Everything that a JSONPath finds is replaced.
    SetAll "set all" 3 Anywhere
    /// Everything that a JSONPath finds is removed.
    RemoveAll "remove all" 5 Anywhere
    /// What a revision changed is taken back.
    Undo "undo" 2 Anywhere
    /// A document becomes what it was at a revision.
    Revert "revert" 2 Anywhere
    /// A document is deleted.
    Delete "delete" 1 Anywhere
    /// What a revision that is not the newest changed is taken back.
    UndoEarlier "undo earlier" 9 Anywhere
    /// A document gets another name.
    Rename "rename" 2 Anywhere
    /// Two documents exchange their names.
    Exchange "exchange" 1 Anywhere
    /// Other options are declared.
    Declare "declare" 2 Anywhere
    /// A revision gets a tag.
    Tag "tag" 6 Alone
    /// A tag goes to another revision.
    MoveTag "move tag" 38 Alone
    /// A tag is removed.
    Untag "untag" 18 Alone
    /// The next revision of a history is imported.
    Import "import" 8 Alone
    /// Part of a history is kept from now on, or all of it.
    Retain "retain" 6 Alone
}

/// What is done to a document. Pointers and values are text, as the engine is given them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// It is made, without a revision.
    Create,
    /// A whole value is saved.
    Put {
        /// The value.
        value: String,
    },
    /// What a pointer names is set.
    Set {
        /// The pointer.
        at: String,
        /// The value.
        value: String,
    },
    /// What a pointer names is removed.
    Remove {
        /// The pointer.
        at: String,
    },
    /// It is expected to be at a revision.
    Expect {
        /// The revision.
        revision: Revision,
    },
    /// What a pointer names is read.
    Get {
        /// The pointer.
        at: String,
        /// What should be there.
        value: String,
    },
    /// A single place of it changes.
    Edit(Edit),
    /// What a revision changed is taken back.
    Undo {
        /// The revision.
        revision: Revision,
    },
    /// It becomes what it was at a revision.
    Revert {
        /// The revision.
        revision: Revision,
    },
    /// It is deleted.
    Delete,
    /// What a revision that is not the newest changed is taken back.
    UndoEarlier {
        /// The revision.
        revision: Revision,
    },
    /// It gets another name.
    Rename {
        /// The name.
        to: String,
    },
    /// It exchanges names with another.
    Exchange {
        /// The other one.
        with: String,
    },
    /// Other options are declared.
    Declare {
        /// The options.
        options: DocumentOptions,
    },
    /// A revision gets a tag.
    Tag {
        /// The tag.
        tag: String,
        /// The revision; the newest if none.
        revision: Option<Revision>,
    },
    /// A tag goes to another revision.
    MoveTag {
        /// The tag.
        tag: String,
        /// The revision; the newest if none.
        revision: Option<Revision>,
    },
    /// A tag is removed.
    Untag {
        /// The tag.
        tag: String,
    },
    /// The next revision of a history is imported, behind those that are there.
    Import {
        /// What it does: a put, a patch or a deletion.
        revision: Box<Operation>,
    },
    /// So much of its history is kept from now on.
    Retain {
        /// How much.
        keep: Retention,
    },
}

impl Kind {
    /// Whether it can be done outside a transaction.
    pub(crate) fn stands_alone(self) -> bool {
        self.place() != Place::Inside
    }

    /// Whether it can be done in a transaction.
    pub(crate) fn fits_inside(self) -> bool {
        self.place() != Place::Alone
    }

    /// Whether it changes nothing when all is well, so that an answer is all of its effect.
    pub(crate) fn only_reads(self) -> bool {
        self.place() == Place::Inside
    }

    /// Draws one of those that `is_wanted`.
    pub(crate) fn draw(random: &mut Random, is_wanted: impl Fn(Self) -> bool) -> Self {
        let wanted = || Self::ALL.iter().copied().filter(|&kind| is_wanted(kind));
        let mut left = random.below(wanted().map(Self::weight).sum());
        for kind in wanted() {
            match left.checked_sub(kind.weight()) {
                Some(rest) => left = rest,
                None => return kind,
            }
        }
        unreachable!("the draw is below the sum of the weights")
    }
}

impl Operation {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Create => Kind::Create,
            Self::Put { .. } => Kind::Put,
            Self::Set { .. } => Kind::Set,
            Self::Remove { .. } => Kind::Remove,
            Self::Expect { .. } => Kind::Expect,
            Self::Get { .. } => Kind::Get,
            Self::Edit(Edit::Insert { .. }) => Kind::Insert,
            Self::Edit(Edit::Append { .. }) => Kind::Append,
            Self::Edit(Edit::Splice { .. }) => Kind::Splice,
            Self::Edit(Edit::Replace { .. }) => Kind::Replace,
            Self::Edit(Edit::Move { .. }) => Kind::Move,
            Self::Edit(Edit::Copy { .. }) => Kind::Copy,
            Self::Edit(Edit::RenameField { .. }) => Kind::RenameField,
            Self::Edit(Edit::Merge { .. }) => Kind::Merge,
            Self::Edit(Edit::Patch { .. }) => Kind::Patch,
            Self::Edit(Edit::SetAll { .. }) => Kind::SetAll,
            Self::Edit(Edit::RemoveAll { .. }) => Kind::RemoveAll,
            Self::Undo { .. } => Kind::Undo,
            Self::Revert { .. } => Kind::Revert,
            Self::Delete => Kind::Delete,
            Self::UndoEarlier { .. } => Kind::UndoEarlier,
            Self::Rename { .. } => Kind::Rename,
            Self::Exchange { .. } => Kind::Exchange,
            Self::Declare { .. } => Kind::Declare,
            Self::Tag { .. } => Kind::Tag,
            Self::MoveTag { .. } => Kind::MoveTag,
            Self::Untag { .. } => Kind::Untag,
            Self::Import { .. } => Kind::Import,
            Self::Retain { .. } => Kind::Retain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_kind_is_drawn_and_no_other() {
        let mut random = Random::new(1);
        let drawn: std::collections::BTreeSet<Kind> =
            (0..1_000).map(|_| Kind::draw(&mut random, Kind::stands_alone)).collect();
        let wanted: Vec<Kind> = Kind::ALL.iter().copied().filter(|k| k.stands_alone()).collect();
        assert!(drawn.iter().eq(&wanted), "{drawn:?}");
    }
}
