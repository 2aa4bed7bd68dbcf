//! `duramen put`: a file as the newest revision of a document.

use std::path::PathBuf;

use clap::Args;
use duramen::{Database, Durability, ErrorKind, ParseOptions, Revision};

use super::written::Written;
use crate::arguments::{CommitArguments, WriteDatabase};
use crate::exit::Success;
use crate::output::Output;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen put shop.duramen config config.json
  duramen put shop.duramen config config.json --author ann --message 'open on Sundays'
  duramen put shop.duramen config old.json --timestamp 2023-11-05T09:00:00Z
  curl -s https://example.org/config | duramen put shop.duramen config -

Only what differs from the newest revision is stored; nothing different makes no revision.
A missing database or document is created.";

/// Store a JSON file as the newest revision of a document
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Put {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// The file with the JSON text, or - for standard input
    file: PathBuf,
    #[command(flatten)]
    commit: CommitArguments,
    /// Refuse what RFC 8259 leaves open, such as a name that occurs twice in an object
    #[arg(long)]
    strict: bool,
}

impl Put {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let mut options = self.commit.options()?;
        let expected = options.expect_revision.take();
        let json = input::read(&self.file)?;
        let database = self.database.open_or_create(Durability::Sync)?;
        let head = head(&database, &self.document)?;

        // One transaction, so that refused text leaves no empty document behind.
        let mut transaction = database.transaction();
        // A document that is not there meets the expectation of none.
        if let Some(expected) = expected.filter(|expected| head.is_some() || expected.0 > 0) {
            transaction.expect(&self.document, expected)?;
        }
        let parse = ParseOptions { strict: self.strict };
        transaction
            .put_with(&self.document, &json, parse)
            .map_err(|error| error.in_context(input::name(&self.file)))?;
        let committed = transaction.commit(&options)?;
        drop(database);

        if head.is_none() {
            eprintln!("created the document {}", self.document);
        }
        let timestamp = options.timestamp.unwrap_or(committed.timestamp);
        let written = match committed.revisions.first() {
            Some((_, revision)) => Written::changed(&self.document, *revision, timestamp),
            None => Written::unchanged(&self.document, head.unwrap_or_default()),
        };
        output.record(&written)?;
        Ok(Success::Done)
    }
}

/// The newest revision of the document, if there is such a document.
pub(super) fn head(database: &Database, name: &str) -> duramen::Result<Option<Revision>> {
    match database.document(name) {
        Ok(document) => Ok(Some(document.head_revision()?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
