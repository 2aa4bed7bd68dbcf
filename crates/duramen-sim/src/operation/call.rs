//! How operations are done in a database, and what it tells of that.

use std::collections::BTreeMap;

use duramen::{
    CommitOptions, Committed, ContentHash, Database, DepartedRecords, Document, ErrorKind,
    ExportedContent, ExportedRevision, JsonPointer, Micros, Outcome, Result, Revision, Transaction,
};

use super::Operation;
use crate::edit::Edit;

/// What a database tells of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// The documents that have a new revision.
    pub revisions: Vec<(String, Revision)>,
    /// The commit; 0 if there was none.
    pub sequence: u64,
    /// Its timestamp, if that is told.
    pub timestamp: Option<Micros>,
}

/// A name that no document has but for a moment.
const BETWEEN: &str = "between";

impl From<Committed> for Told {
    fn from(committed: Committed) -> Self {
        let sequence = committed.sequence.0;
        let timestamp = (sequence > 0).then_some(committed.timestamp);
        Self { revisions: committed.revisions, sequence, timestamp }
    }
}

impl Told {
    fn of(document: &Document, outcome: Outcome) -> Self {
        match outcome {
            Outcome::Unchanged(_) => Self::default(),
            Outcome::Committed(commit) => Self {
                revisions: vec![(document.name().to_owned(), commit.revision)],
                sequence: commit.sequence.0,
                timestamp: Some(commit.timestamp),
            },
        }
    }

    /// What shows of a commit of which no more is told than the new revisions.
    fn since(before: u64, db: &Database, revisions: Vec<(String, Revision)>) -> Self {
        let now = db.snapshot().sequence().0;
        Self { revisions, sequence: if now > before { now } else { 0 }, timestamp: None }
    }
}

impl Operation {
    /// Does it in a transaction of a database.
    ///
    /// # Errors
    /// Those of the transaction.
    ///
    /// # Panics
    /// If what it reads is not what the model says, or if it only stands alone.
    pub fn stage(&self, name: &str, transaction: &mut Transaction) -> Result<()> {
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
            Self::Undo { revision } | Self::UndoEarlier { revision } => {
                transaction.undo(name, *revision)
            }
            Self::Revert { revision } => transaction.revert_to(name, *revision),
            Self::Delete => transaction.delete_document(name),
            Self::Rename { to } => transaction.rename_document(name, to),
            Self::Exchange { with } => {
                transaction.rename_document(name, BETWEEN)?;
                transaction.rename_document(with, name)?;
                transaction.rename_document(BETWEEN, with)
            }
            Self::Declare { options } => transaction.declare(name, options),
            Self::Tag { .. }
            | Self::MoveTag { .. }
            | Self::Untag { .. }
            | Self::Import { .. }
            | Self::Retain { .. } => panic!("{self:?} stands alone"),
        }
    }

    /// Does it to a document, as a commit of its own.
    ///
    /// # Errors
    /// Those of the commit.
    ///
    /// # Panics
    /// If it does not stand alone.
    pub fn call(&self, name: &str, db: &Database, options: &CommitOptions) -> Result<Told> {
        let before = db.snapshot().sequence().0;
        match self {
            // Calls for these have no options, or are none.
            Self::Create | Self::Exchange { .. } => {
                let mut transaction = db.transaction();
                self.stage(name, &mut transaction)?;
                return transaction.commit(options).map(Told::from);
            }
            Self::Import { revision } => return import(revision, name, db, options),
            Self::Rename { to } => return db.rename_document(name, to, options).map(Told::from),
            _ => {}
        }
        let to = db.document(name)?;
        let outcome = match self {
            Self::Tag { tag, revision } => {
                to.tag(tag, *revision, options)?;
                return Ok(Told::since(before, db, Vec::new()));
            }
            Self::MoveTag { tag, revision } => {
                to.move_tag(tag, *revision, options)?;
                return Ok(Told::since(before, db, Vec::new()));
            }
            Self::Untag { tag } => return to.untag(tag, options).map(Told::from),
            Self::Retain { keep } => return to.retain(*keep, options).map(Told::from),
            Self::Declare { options: declared } => {
                return to.set_options(declared, options).map(Told::from);
            }
            Self::Undo { revision } | Self::UndoEarlier { revision } => to.undo(*revision, options),
            Self::Revert { revision } => to.revert_to(*revision, options),
            Self::Delete => db.delete_document(to.name(), options),
            Self::Put { value } => to.put(value, options),
            Self::Set { at, value } => to.set(&JsonPointer::parse(at)?, value, options),
            Self::Remove { at } => to.remove(&JsonPointer::parse(at)?, options),
            Self::Edit(edit) => edit.call(&to, options),
            Self::Create
            | Self::Expect { .. }
            | Self::Get { .. }
            | Self::Rename { .. }
            | Self::Exchange { .. }
            | Self::Import { .. } => panic!("{self:?} is no call of a document"),
        };
        Ok(Told::of(&to, outcome?))
    }
}

/// Imports the history that a document has already and one more revision.
fn import(
    revision: &Operation,
    name: &str,
    db: &Database,
    options: &CommitOptions,
) -> Result<Told> {
    let before = db.snapshot().sequence().0;
    let mut import = db.import_history(name, options.durability)?;
    let mut last = Revision(0);
    match db.document(name) {
        Ok(document) => {
            for there in document.export()? {
                let there = there?;
                assert!(!import.push(&there)?, "{name:?} has revision {} already", there.revision);
                last = there.revision;
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let timestamp = options.timestamp.expect("an imported revision has a timestamp");
    let (content, hash) = content_of(revision);
    let pushed = import.push(&ExportedRevision {
        revision: last.next(),
        timestamp,
        committed: timestamp,
        author: options.author.clone(),
        message: options.message.clone(),
        content,
        hash,
        counted: Vec::new(),
        versions: BTreeMap::new(),
        departed: DepartedRecords::default(),
    })?;
    assert!(pushed, "a new revision of {name:?} was there already");
    Ok(Told::since(before, db, vec![(name.to_owned(), import.finish()?)]))
}

/// What a history says of such a revision, and the hash of what comes of it if that is plain.
fn content_of(revision: &Operation) -> (ExportedContent, Option<ContentHash>) {
    match revision {
        Operation::Put { value } => {
            let hash = ContentHash::of_json(value.as_bytes());
            (ExportedContent::Value(value.clone()), Some(hash))
        }
        Operation::Edit(Edit::Patch { patch }) => {
            (ExportedContent::Patch { patch: patch.clone(), moves: Vec::new() }, None)
        }
        Operation::Delete => (ExportedContent::Deleted, None),
        other => panic!("{other:?} is nothing that a history says"),
    }
}
