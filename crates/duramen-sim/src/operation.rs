//! The operations of a database: how often each is drawn, what it should do, how it is done.
//!
//! A new operation is a line of `kinds!` and a variant of [`Operation`]. The compiler then asks for
//! the rest: no match over either has a wildcard. The gate of [`Coverage`](crate::Coverage) fails
//! until the suites draw it often enough for it to take effect.

use duramen::{ErrorKind, JsonPointer, Revision, Transaction};

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
            Self::Create | Self::Put | Self::Set | Self::Remove => true,
            Self::Expect | Self::Get => false,
        }
    }

    /// Whether it changes nothing when all is well, so that an answer is all of its effect.
    pub(crate) fn only_reads(self) -> bool {
        match self {
            Self::Expect | Self::Get => true,
            Self::Create | Self::Put | Self::Set | Self::Remove => false,
        }
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
        }
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
            Self::Expect { revision } if revision.0 == staging.model().head(name) => Ok(()),
            Self::Expect { .. } => Err(ErrorKind::Conflict),
            Self::Get { at, .. } => {
                let found = staging.value(name).and_then(|value| value.at(&tokens(at)));
                found.map(drop).ok_or(ErrorKind::NotFound)
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
        }
    }
}

impl From<Refusal> for ErrorKind {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => Self::NotFound,
            Refusal::Root => Self::Invalid,
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
        2..=4 if !versions.is_empty() => random.choose(versions).json.clone(),
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
