//! `duramen records`: the records of collections.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use duramen::{
    BulkOptions, Collection, CollectionSnapshot, CommitOptions, Database, DocumentOptions,
    ErrorKind, KeyKind, Moment, Snapshot, Transaction,
};
use duramen_sql::{FileTypes, RecordLoad};

use crate::arguments::edit::Note;
use crate::arguments::{ReadDatabase, WriteDatabase, moment};
use crate::exit::Success;
use crate::notice::notice;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, meant};

mod blame;
mod delete;
mod diff;
mod export;
mod get;
mod history;
mod import;
mod line;
mod ls;
mod put;
mod query;

const EXAMPLES: &str = "\
Examples:
  duramen records put shop.duramen players ann '{\"score\":3}'
  duramen records get shop.duramen players ann --at 2024-05-01
  duramen records history shop.duramen players ann
  duramen records query shop.duramen players 'score > 2' --order score:desc
  duramen records import shop.duramen players players.ndjson --key id

A collection is a document whose value is an object of records, each under its key: what there is
for documents, such as `duramen log`, `diff`, `tag`, `query` and `retain`, works with it as well.
Places in it are written with the keys, such as /ann/score or /-3/score. Only as a whole it is shown
as it is stored: `duramen get` prints integer keys as 20 digits, in the order of the integers.";

/// Read and write the records of collections
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Records {
    #[command(subcommand)]
    command: RecordsCommand,
}

#[derive(Debug, Subcommand)]
enum RecordsCommand {
    Put(put::Put),
    Get(get::Get),
    Ls(ls::Ls),
    Query(Box<query::Query>),
    History(history::History),
    Diff(diff::Diff),
    Blame(blame::Blame),
    Delete(delete::Delete),
    Import(import::Import),
    Export(export::Export),
}

impl Records {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match &self.command {
            RecordsCommand::Put(command) => command.run(session, output),
            RecordsCommand::Get(command) => command.run(session, output),
            RecordsCommand::Ls(command) => command.run(session, output),
            RecordsCommand::Query(command) => command.run(session, output),
            RecordsCommand::History(command) => command.run(session, output),
            RecordsCommand::Diff(command) => command.run(session, output),
            RecordsCommand::Blame(command) => command.run(session, output),
            RecordsCommand::Delete(command) => command.run(session, output),
            RecordsCommand::Import(command) => command.run(session, output),
            RecordsCommand::Export(command) => command.run(session, output),
        }
    }
}

/// How many keys a message names.
const SHOWN_MAX: usize = 8;

/// Keys as a message names them.
fn quoted(keys: &BTreeSet<String>) -> String {
    let shown: Vec<String> = keys.iter().take(SHOWN_MAX).map(|key| format!("{key:?}")).collect();
    let shown = shown.join(", ");
    match keys.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A collection that is read.
#[derive(Debug, Args)]
struct ReadCollection {
    #[command(flatten)]
    database: ReadDatabase,
    /// The collection's name
    #[arg(value_name = "COLLECTION")]
    name: String,
}

impl ReadCollection {
    fn open(&self, session: &Session) -> Result<Collection> {
        Ok(meant::collection(&self.database.open(session)?, &self.name)?)
    }
}

/// A collection as it is, or as it was.
#[derive(Debug, Args)]
struct CollectionAt {
    #[command(flatten)]
    collection: ReadCollection,
    /// As of this revision of the collection, time or tag
    #[arg(long, value_name = "REVISION|TIME|TAG", allow_negative_numbers = true)]
    at: Option<String>,
}

impl CollectionAt {
    fn open(&self, session: &Session) -> Result<CollectionSnapshot> {
        Ok(self.with_collection(session)?.1)
    }

    /// The same, and the collection that it is of.
    fn with_collection(&self, session: &Session) -> Result<(Collection, CollectionSnapshot)> {
        let collection = self.collection.open(session)?;
        let snapshot = match &self.at {
            None => collection.head()?,
            Some(text) => match moment::point(collection.document(), text)? {
                Moment::Revision(revision) => collection.at(revision)?,
                Moment::Time(time) => collection.at_time(time)?,
            },
        };
        Ok((collection, snapshot))
    }

    /// The same, and as the document that it is.
    fn snapshots(&self, session: &Session) -> Result<(CollectionSnapshot, Snapshot)> {
        let collection = self.collection.open(session)?;
        let document = collection.document();
        let snapshot = match &self.at {
            None => document.head()?,
            Some(text) => moment::snapshot(document, text)?,
        };
        Ok((collection.at(snapshot.revision())?, snapshot))
    }

    fn name(&self) -> &str {
        &self.collection.name
    }
}

/// A collection that is written, and what goes with the commit.
#[derive(Debug, Args)]
struct WriteCollection {
    #[command(flatten)]
    database: WriteDatabase,
    /// The collection's name
    #[arg(value_name = "COLLECTION")]
    name: String,
    #[command(flatten)]
    note: Note,
}

/// A collection that is made if it is missing.
struct Writing<'a> {
    name: &'a str,
    database: Database,
    options: CommitOptions,
    keys: KeyKind,
    is_new: bool,
    /// Types that are declared when it is made.
    types: Option<FileTypes>,
}

impl WriteCollection {
    fn open(&self, session: &Session) -> Result<(Database, Collection)> {
        let database = self.database.open(session)?;
        let collection = meant::collection(&database, &self.name)?;
        Ok((database, collection))
    }

    /// The collection, or one to be made with keys of a type, string if none is said.
    fn open_or_create(&self, session: &Session, keys: Option<KeyKind>) -> Result<Writing<'_>> {
        self.writing(self.database.open_or_create(session)?, keys)
    }

    /// One of a new database in memory, if there is none yet: what cannot be done to it is not to
    /// leave one.
    fn rehearsal(&self, keys: Option<KeyKind>) -> Result<Option<Writing<'_>>> {
        if !self.database.is_missing() {
            return Ok(None);
        }
        self.writing(Database::memory()?, keys).map(Some)
    }

    fn writing(&self, database: Database, keys: Option<KeyKind>) -> Result<Writing<'_>> {
        let found = match database.collection(&self.name) {
            Ok(collection) => Some(collection.key_kind()),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        if let (Some(found), Some(wanted)) = (found, keys)
            && found != wanted
        {
            let message = format!(
                "the keys of collection {:?} are of the type {found}: leave --keys out, or name \
                 another collection",
                self.name
            );
            return Err(duramen::Error::new(ErrorKind::Invalid, message).into());
        }
        let keys = found.or(keys).unwrap_or_default();
        let options = self.note.options();
        let is_new = found.is_none();
        Ok(Writing { name: &self.name, database, options, keys, is_new, types: None })
    }
}

impl Writing<'_> {
    /// A bulk load into it; it is made with its records.
    fn bulk_load(&self) -> RecordLoad<'_> {
        let collection = self.is_new.then_some(self.keys);
        let declared = DocumentOptions { collection, ..DocumentOptions::default() };
        let commit = self.options.clone();
        let options = BulkOptions { declared, commit, ..BulkOptions::default() };
        RecordLoad { name: self.name, keys: self.keys, options }
    }

    /// Tells that it was made, if it was.
    fn made(&mut self) {
        if std::mem::take(&mut self.is_new) {
            notice!("created the collection {}", self.name);
            if let Some(types) = self.types.take() {
                notice!("declared the columns {types}");
            }
        }
    }

    /// Declares the types of one that was loaded in bulk, which is a commit of its own.
    fn declare(&self) -> Result<()> {
        let Some(types) = &self.types else { return Ok(()) };
        let mut transaction = self.database.transaction();
        types.declare(&self.database, self.name, &mut transaction)?;
        transaction.commit(&self.options)?;
        Ok(())
    }

    /// Commits a change, and tells if the collection was made with it.
    fn commit(
        &mut self,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<duramen::Committed> {
        let committed = self.make(change)?;
        self.made();
        Ok(committed)
    }

    /// Commits a change; the collection is made with it.
    fn make(
        &self,
        change: impl FnOnce(&mut Transaction) -> Result<()>,
    ) -> Result<duramen::Committed> {
        let mut transaction = self.database.transaction();
        if self.is_new {
            let collection = Some(self.keys);
            transaction.create_document(self.name)?;
            let declared = DocumentOptions { collection, ..DocumentOptions::default() };
            transaction.declare(self.name, &declared)?;
            if let Some(types) = &self.types {
                types.declare(&self.database, self.name, &mut transaction)?;
            }
        }
        change(&mut transaction)?;
        Ok(transaction.commit(&self.options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_missing_keys_are_counted() {
        let keys =
            |count: u32| -> BTreeSet<String> { (1..=count).map(|key| key.to_string()).collect() };
        assert_eq!(quoted(&keys(2)), r#""1", "2""#);
        assert_eq!(quoted(&keys(9)), r#""1", "2", "3", "4", "5", "6", "7", "8" and 1 more"#);
    }
}
