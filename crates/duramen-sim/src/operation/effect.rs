//! What operations do in the model.

use duramen::{ContentHash, ErrorKind, Revision};

use super::Operation;
use crate::edit::Edit;
use crate::json::{Json, Refusal, tokens};
use crate::model::{Staging, Tag};

type Result<T = ()> = std::result::Result<T, ErrorKind>;

impl Operation {
    /// Does it in the model.
    pub(crate) fn apply(&self, name: &str, staging: &mut Staging) -> Result {
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
            Self::Import { revision } => {
                revision.apply(name, staging)?;
                if staging.differs(name) { Ok(()) } else { Err(ErrorKind::Invalid) }
            }
            _ if !is_there => Err(ErrorKind::NotFound),
            Self::Expect { revision } if revision.0 == staging.head(name) => Ok(()),
            Self::Expect { .. } => Err(ErrorKind::Conflict),
            Self::Rename { to } if staging.is_there(to) => Err(ErrorKind::Conflict),
            Self::Rename { to } => {
                staging.rename(name, to);
                Ok(())
            }
            Self::Exchange { with } => {
                staging.exchange(name, with);
                Ok(())
            }
            Self::Declare { options } => {
                staging.declare(name, options);
                Ok(())
            }
            Self::Retain { keep } => {
                staging.retain(name, *keep);
                Ok(())
            }
            Self::Tag { tag, revision } => set_tag(name, (tag, *revision), staging, false),
            Self::MoveTag { tag, revision } => set_tag(name, (tag, *revision), staging, true),
            Self::Untag { tag } => {
                let removed = staging.facts_mut(name).tags.remove(tag);
                removed.map(drop).ok_or(ErrorKind::NotFound)
            }
            Self::Revert { revision } => {
                let back = staging.value_at(name, *revision).cloned();
                take_back(name, back.ok_or(ErrorKind::NotFound), staging)
            }
            _ if staging.is_deleted(name) => Err(ErrorKind::NotFound),
            Self::Delete if staging.head(name) == 0 && staging.value(name).is_none() => {
                Err(ErrorKind::NotFound)
            }
            Self::Delete => {
                staging.set(name, None);
                Ok(())
            }
            Self::Undo { revision } => take_back(name, staging.undone(name, *revision), staging),
            Self::UndoEarlier { revision } => {
                let undone = staging.undone_earlier(name, *revision);
                take_back(name, undone.expect("only what is known is drawn"), staging)
            }
            Self::Get { at, .. } => {
                let found = staging.value(name).and_then(|value| value.at(&tokens(at)));
                found.map(drop).ok_or(ErrorKind::NotFound)
            }
            Self::Set { .. } | Self::Remove { .. } | Self::Edit(_) => {
                self.change_place(name, staging)
            }
        }
    }

    /// Changes single places of a document that is there.
    fn change_place(&self, name: &str, staging: &mut Staging) -> Result {
        match self {
            Self::Set { at, value } if at.is_empty() => {
                staging.set(name, Some(Json::parse(value)));
                Ok(())
            }
            Self::Set { at, value } => {
                staging.edit(name, |document| document.set(&tokens(at), Json::parse(value)))
            }
            Self::Remove { at } if at.is_empty() => Err(ErrorKind::Invalid),
            Self::Remove { at } => {
                staging.edit(name, |document| document.remove(&tokens(at)).map(drop))
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
                if let Edit::Patch { .. } = edit {
                    staging.rebuilt(name);
                }
                Ok(())
            }
            other => unreachable!("{other:?} changes more than single places"),
        }
    }
}

fn take_back(name: &str, undone: Result<Json>, staging: &mut Staging) -> Result {
    staging.set(name, Some(undone?));
    staging.compound(name);
    staging.rebuilt(name);
    Ok(())
}

/// Sets a tag that is not there, or moves one that is.
fn set_tag(
    name: &str,
    (tag, revision): (&str, Option<Revision>),
    staging: &mut Staging,
    is_moved: bool,
) -> Result {
    let revision = revision.unwrap_or(Revision(staging.head(name)));
    let value = staging.value_at(name, revision).ok_or(ErrorKind::NotFound)?;
    let hash = ContentHash::of_json(value.to_string().as_bytes());
    let sequence = staging.model().sequence() + 1;
    let new = Tag { revision, hash, sequence, author: None, message: None };
    let tags = &mut staging.facts_mut(name).tags;
    match tags.get(tag) {
        None if is_moved => Err(ErrorKind::NotFound),
        Some(there) if there.revision == revision => Ok(()),
        Some(_) if !is_moved => Err(ErrorKind::Conflict),
        _ => {
            tags.insert(tag.to_owned(), new);
            Ok(())
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
