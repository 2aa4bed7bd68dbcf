//! The operations of a database: how often each is drawn, what it should do, how it is done.
//!
//! A new operation is a line of `kinds!` and a variant of [`Operation`]. The compiler then asks for
//! the rest: no match over either has a wildcard. The gate of [`Coverage`](crate::Coverage) fails
//! until the suites draw it often enough for it to take effect.

use duramen::{
    CommitOptions, Database, Document, ErrorKind, JsonPointer, Outcome, Revision, Transaction,
};

use crate::edit::{Edit, Shape};
use crate::json::{Json, Refusal, pointer, tokens};
use crate::model::Staging;
use crate::random::Random;
use crate::samples::Samples;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $weight:literal)*) => {
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
        }
    };
}

kinds! {
    /// A document is made, without a revision.
    Create "create" 1
    /// A whole value is saved.
    Put "put" 4
    /// What a pointer names is set.
    Set "set" 4
    /// What a pointer names is removed.
    Remove "remove" 2
    /// A document is expected to be at a revision.
    Expect "expect" 1
    /// What a pointer names is read, with what the transaction has changed.
    Get "get" 2
    /// An element or field is put at a place.
    Insert "insert" 2
    /// An element is put at the end of an array.
    Append "append" 2
    /// Elements of an array are replaced by others.
    Splice "splice" 2
    /// What is there is replaced.
    Replace "replace" 2
    /// A value goes to another place.
    Move "move" 2
    /// A value comes to another place too.
    Copy "copy" 2
    /// A field gets another name.
    RenameField "rename field" 2
    /// A JSON Merge Patch is applied.
    Merge "merge patch" 2
    /// A JSON Patch is applied.
    Patch "patch" 2
    /// Everything that a JSONPath finds is replaced.
    SetAll "set all" 2
    /// Everything that a JSONPath finds is removed.
    RemoveAll "remove all" 5
    /// What a revision changed is taken back.
    Undo "undo" 2
    /// A document becomes what it was at a revision.
    Revert "revert" 2
    /// A document is deleted.
    Delete "delete" 1
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
}

impl Kind {
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

    /// Whether it can be done outside a transaction.
    pub(crate) fn stands_alone(self) -> bool {
        match self {
            Self::Expect | Self::Get => false,
            Self::Create
            | Self::Put
            | Self::Set
            | Self::Remove
            | Self::Insert
            | Self::Append
            | Self::Splice
            | Self::Replace
            | Self::Move
            | Self::Copy
            | Self::RenameField
            | Self::Merge
            | Self::Patch
            | Self::SetAll
            | Self::RemoveAll
            | Self::Undo
            | Self::Revert
            | Self::Delete => true,
        }
    }

    /// Whether it changes nothing when all is well, so that an answer is all of its effect.
    pub(crate) fn only_reads(self) -> bool {
        match self {
            Self::Expect | Self::Get => true,
            Self::Create
            | Self::Put
            | Self::Set
            | Self::Remove
            | Self::Insert
            | Self::Append
            | Self::Splice
            | Self::Replace
            | Self::Move
            | Self::Copy
            | Self::RenameField
            | Self::Merge
            | Self::Patch
            | Self::SetAll
            | Self::RemoveAll
            | Self::Undo
            | Self::Revert
            | Self::Delete => false,
        }
    }

    /// The change of a single place that it is.
    fn shape(self) -> Option<Shape> {
        Some(match self {
            Self::Create | Self::Put | Self::Set | Self::Remove | Self::Expect | Self::Get => {
                return None;
            }
            Self::Undo | Self::Revert | Self::Delete => return None,
            Self::Insert => Shape::Insert,
            Self::Append => Shape::Append,
            Self::Splice => Shape::Splice,
            Self::Replace => Shape::Replace,
            Self::Move => Shape::Move,
            Self::Copy => Shape::Copy,
            Self::RenameField => Shape::RenameField,
            Self::Merge => Shape::Merge,
            Self::Patch => Shape::Patch,
            Self::SetAll => Shape::SetAll,
            Self::RemoveAll => Shape::RemoveAll,
        })
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
        }
    }

    /// Draws one of a kind for the document `name`; it may be one that fails.
    pub(crate) fn draw(kind: Kind, name: &str, staging: &Staging, random: &mut Random) -> Self {
        let scale = staging.model().scale();
        let value = staging.value(name).unwrap_or(&Json::Null);
        let place = |random: &mut Random| Samples::new(random, scale).any_path(value);
        match kind {
            Kind::Create => Self::Create,
            Kind::Put => Self::Put { value: next_value(name, staging, random).to_string() },
            Kind::Set => Self::Set {
                at: pointer(&place(random)),
                value: Samples::new(random, scale).small().to_string(),
            },
            Kind::Remove => Self::Remove { at: pointer(&place(random)) },
            Kind::Expect => {
                let head = staging.model().head(name);
                Self::Expect { revision: Revision(head + random.below(6) / 5) }
            }
            Kind::Get => {
                let path = place(random);
                let value = value.at(&path).map(Json::to_string).unwrap_or_default();
                Self::Get { at: pointer(&path), value }
            }
            Kind::Undo | Kind::Revert => Self::draw_return(kind, name, staging, random),
            Kind::Delete => Self::Delete,
            Kind::Insert
            | Kind::Append
            | Kind::Splice
            | Kind::Replace
            | Kind::Move
            | Kind::Copy
            | Kind::RenameField
            | Kind::Merge
            | Kind::Patch
            | Kind::SetAll
            | Kind::RemoveAll => Self::draw_edit(kind, name, staging, random),
        }
    }

    /// Draws a way back to an earlier revision.
    ///
    /// Only of the newest revision, and with nothing changed since, is it known without nodes
    /// what undoing it makes.
    fn draw_return(kind: Kind, name: &str, staging: &Staging, random: &mut Random) -> Self {
        let head = staging.model().head(name);
        if kind == Kind::Undo {
            let others = [0, 1.min(head), head + 1];
            let is_other = random.one_in(8) || staging.is_touched(name);
            let is_known = |revision: &u64| *revision != head || !staging.is_touched(name);
            let other = Some(random.choose(&others)).filter(is_known).unwrap_or(0);
            return Self::Undo { revision: Revision(if is_other { other } else { head }) };
        }
        let revision = Revision(random.below(head + 2));
        let back = staging.model().value_at(name, revision);
        match back.filter(|&back| Some(back) == staging.value(name)) {
            // It may be of other nodes now, which would make a revision.
            Some(_) => Self::Revert { revision: Revision(0) },
            None => Self::Revert { revision },
        }
    }

    /// Draws a change of a single place. One that comes to the same value is replaced: whether it
    /// is a revision depends on whether what is there now is the same or only looks the same.
    fn draw_edit(kind: Kind, name: &str, staging: &Staging, random: &mut Random) -> Self {
        let scale = staging.model().scale();
        let shape = kind.shape().expect("a change of a single place");
        let value = staging.value(name);
        if value.is_none() && kind == Kind::Patch {
            let patch = r#"[{"op":"test","path":"","value":null}]"#.to_owned();
            return Self::Edit(Edit::Patch { patch });
        }
        let edit = Edit::draw(shape, value.unwrap_or(&Json::Null), random, scale);
        let Some(value) = value else { return Self::Edit(edit) };
        let mut next = value.clone();
        if edit.apply(&mut next).is_ok() && next == *value {
            return Self::Put { value: Json::Array(vec![Json::Null, next]).to_string() };
        }
        Self::Edit(edit)
    }

    /// Does it in the model.
    pub(crate) fn apply(&self, name: &str, staging: &mut Staging) -> Result<(), ErrorKind> {
        let is_there = staging.is_there(name);
        match self {
            Self::Create if is_there => Err(ErrorKind::Conflict),
            Self::Create => {
                staging.set(name, None);
                Ok(())
            }
            Self::Put { value } => {
                staging.set(name, Some(Json::parse(value)));
                Ok(())
            }
            _ if !is_there => Err(ErrorKind::NotFound),
            Self::Expect { revision } if revision.0 == staging.model().head(name) => Ok(()),
            Self::Expect { .. } => Err(ErrorKind::Conflict),
            Self::Revert { revision } => {
                let back = staging.model().value_at(name, *revision).cloned();
                staging.set(name, Some(back.ok_or(ErrorKind::NotFound)?));
                staging.compound(name);
                Ok(())
            }
            _ if staging.is_deleted(name) => Err(ErrorKind::NotFound),
            Self::Delete if staging.model().head(name) == 0 => Err(ErrorKind::NotFound),
            Self::Delete => {
                staging.set(name, None);
                Ok(())
            }
            Self::Undo { revision } => {
                let back = staging.undone(name, *revision)?;
                staging.set(name, Some(back));
                staging.compound(name);
                Ok(())
            }
            Self::Set { at, value } => {
                let value = Json::parse(value);
                if at.is_empty() {
                    staging.set(name, Some(value));
                    return Ok(());
                }
                staging.edit(name, |document| document.set(&tokens(at), value))
            }
            Self::Remove { at } if at.is_empty() => Err(ErrorKind::Invalid),
            Self::Remove { at } => {
                staging.edit(name, |document| document.remove(&tokens(at)).map(drop))
            }
            Self::Get { at, .. } => {
                let found = staging.value(name).and_then(|value| value.at(&tokens(at)));
                found.map(drop).ok_or(ErrorKind::NotFound)
            }
            Self::Edit(Edit::Merge { patch }) if staging.value(name).is_none() => {
                let mut value = Json::Null;
                value.merge(&Json::parse(patch));
                staging.set(name, Some(value));
                Ok(())
            }
            Self::Edit(edit) if staging.value(name).is_none() => edit.apply_to_nothing(),
            Self::Edit(edit) => {
                staging.edit(name, |document| edit.apply(document))?;
                staging.compound(name);
                Ok(())
            }
        }
    }

    /// Does it in a transaction of a database.
    ///
    /// # Errors
    /// Those of the transaction.
    ///
    /// # Panics
    /// If what it reads is not what the model says.
    pub fn stage(&self, name: &str, transaction: &mut Transaction) -> duramen::Result<()> {
        match self {
            Self::Create => transaction.create_document(name),
            Self::Put { value } => transaction.put(name, value.as_bytes()),
            Self::Set { at, value } => {
                transaction.set(name, &JsonPointer::parse(at)?, value.as_bytes())
            }
            Self::Remove { at } => transaction.remove(name, &JsonPointer::parse(at)?),
            Self::Expect { revision } => transaction.expect(name, *revision),
            Self::Get { at, value } => {
                let found = transaction.get(name, &JsonPointer::parse(at)?)?;
                assert_eq!(found, *value, "{at:?} of {name:?} in a transaction");
                Ok(())
            }
            Self::Edit(edit) => edit.stage(name, transaction),
            Self::Undo { revision } => transaction.undo(name, *revision),
            Self::Revert { revision } => transaction.revert_to(name, *revision),
            Self::Delete => transaction.delete_document(name),
        }
    }

    /// Does it to a document, as a commit of its own.
    ///
    /// # Errors
    /// Those of the commit.
    ///
    /// # Panics
    /// If it does not stand alone.
    pub fn call(
        &self,
        db: &Database,
        to: &Document,
        options: &CommitOptions,
    ) -> duramen::Result<Outcome> {
        match self {
            Self::Undo { revision } => to.undo(*revision, options),
            Self::Revert { revision } => to.revert_to(*revision, options),
            Self::Delete => db.delete_document(to.name(), options),
            Self::Put { value } => to.put(value, options),
            Self::Set { at, value } => to.set(&JsonPointer::parse(at)?, value, options),
            Self::Remove { at } => to.remove(&JsonPointer::parse(at)?, options),
            Self::Edit(edit) => edit.call(to, options),
            Self::Create | Self::Expect { .. } | Self::Get { .. } => {
                panic!("{self:?} is no call of a document")
            }
        }
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::NotFound,
            Refusal::Root | Refusal::Unfit => Self::Invalid,
            Refusal::Taken => Self::Conflict,
        }
    }
}

/// The next whole value of a document: an edit of it, an older one, or another.
fn next_value(name: &str, staging: &Staging, random: &mut Random) -> Json {
    let scale = staging.model().scale();
    let choice = random.below(16);
    let Some(value) = staging.value(name).filter(|_| choice > 0) else {
        return Samples::new(random, scale).document();
    };
    let versions = staging.model().versions(name);
    let mut next = match choice {
        1 => return value.clone(),
        2..=4 if !versions.is_empty() => {
            let older = random.choose(versions).json.clone();
            older.unwrap_or_else(|| value.clone())
        }
        _ => value.clone(),
    };
    if choice > 3 {
        Samples::new(random, scale).edit(&mut next);
    }
    next
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
