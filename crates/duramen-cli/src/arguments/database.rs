//! The database and the document that a command is about.

use std::path::{Path, PathBuf};

use clap::Args;
use duramen::{Database, Document, ErrorKind, Finding, Options};

use crate::exit::Failure;
use crate::notice::notice;
use crate::session::Session;
use crate::{Result, meant};

/// A database that is read.
#[derive(Debug, Args)]
pub(crate) struct ReadDatabase {
    /// The database's folder
    #[arg(value_name = "DB")]
    database: PathBuf,
}

impl ReadDatabase {
    /// Opens it beside a process that may be writing.
    pub(crate) fn open(&self, session: &Session) -> Result<Database> {
        session.reader(&self.database)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.database
    }

    /// The finding that a failure is to who looks for damage: that of a database which is too
    /// damaged to be opened.
    pub(crate) fn damage(&self, failure: Failure) -> Result<Vec<Finding>> {
        match failure {
            Failure::Engine(error) if error.kind() == ErrorKind::Corrupt => {
                let place = self.database.display().to_string();
                Ok(vec![Finding { place, message: error.message().to_owned() }])
            }
            failure => Err(failure),
        }
    }
}

/// A document that is read.
#[derive(Debug, Args)]
pub(crate) struct ReadDocument {
    #[command(flatten)]
    database: ReadDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    name: String,
}

impl ReadDocument {
    pub(crate) fn open(&self, session: &Session) -> Result<Document> {
        Ok(meant::document(&self.database.open(session)?, &self.name)?)
    }
}

/// A database that is written.
#[derive(Debug, Args)]
pub(crate) struct WriteDatabase {
    /// The database's folder
    #[arg(value_name = "DB")]
    database: PathBuf,
    /// Wait this long for another writing process to end, instead of failing at once
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u64,
}

impl WriteDatabase {
    /// Opens it for reading, where there is nothing to write.
    pub(crate) fn read(&self, session: &Session) -> Result<Database> {
        session.reader(&self.database)
    }

    /// Opens it if it is there.
    pub(crate) fn open(&self, session: &Session) -> Result<Database> {
        self.open_with(session, false)
    }

    /// Opens it, creates it if it is missing, and says so.
    pub(crate) fn open_or_create(&self, session: &Session) -> Result<Database> {
        let database = self.open_with(session, true)?;
        if database.was_created() {
            notice!("created the database {}", self.folder());
        }
        Ok(database)
    }

    /// Does something to it, and creates it if it is missing: only if the same can be done to a new
    /// one, so that nothing is left of what cannot.
    pub(crate) fn write_or_create<T>(
        &self,
        session: &Session,
        write: impl Fn(&Database) -> Result<T>,
    ) -> Result<T> {
        if self.is_missing() {
            write(&Database::memory()?)?;
        }
        write(&self.open_or_create(session)?)
    }

    /// Whether nothing is at its place.
    pub(crate) fn is_missing(&self) -> bool {
        match std::fs::read_dir(&self.database) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        }
    }

    /// Opens it, and creates it if that is wanted.
    pub(crate) fn open_with(&self, session: &Session, create: bool) -> Result<Database> {
        let wait_ms = self.wait.saturating_mul(1000);
        session.writer(&self.database, Options { create, wait_ms, ..Options::default() })
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.database
    }

    /// Its folder as text.
    pub(crate) fn folder(&self) -> String {
        self.database.display().to_string()
    }
}
