//! A change of one document: what every command that makes one takes, does and says.

use clap::Args;
use duramen::{
    BulkOptions, CommitOptions, Committed, Database, Document, ErrorKind, Micros, Revision,
    Transaction,
};

use super::{Keys, WriteDatabase};
use crate::exit::Success;
use crate::input::LongText;
use crate::interruption::{self, Interruption};
use crate::meant::Named as _;
use crate::notice::notice;
use crate::output::Output;
use crate::session::Session;
use crate::written::Written;
use crate::{Result, bulk, meant, moment};

/// A document that is changed, and what goes with the commit.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    #[command(flatten)]
    commit: CommitArguments,
}

/// A change that has begun.
pub(crate) struct Editing<'a> {
    name: &'a str,
    database: Database,
    options: CommitOptions,
    /// The newest revision before the change; none if there is no such document.
    head: Option<Revision>,
    /// How places in the document are written.
    pub(crate) keys: Keys,
}

impl Edit {
    /// Opens the database and changes the document.
    pub(crate) fn run(
        &self,
        (session, output): (&Session, &mut Output),
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<()>,
    ) -> Result<Success> {
        self.begin(session)?.finish(output, change)
    }

    /// The same with a change that counts places.
    pub(crate) fn run_counted(
        &self,
        (session, output): (&Session, &mut Output),
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<u64>,
    ) -> Result<Success> {
        self.begin(session)?.commit(output, |transaction, name| change(transaction, name).map(Some))
    }

    /// Opens the database.
    pub(crate) fn begin(&self, session: &Session) -> Result<Editing<'_>> {
        // What is wrong with the command line is told before anything is opened.
        let options = self.commit.options()?;
        self.editing(self.database.open(session)?, options)
    }

    /// Makes a change of a new database in memory if there is none yet, so that nothing is left of
    /// one that cannot be made.
    pub(crate) fn rehearse(
        &self,
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<()>,
    ) -> Result<()> {
        if self.database.is_missing() {
            let mut editing = self.editing(Database::memory()?, self.commit.options()?)?;
            editing.make(change)?;
        }
        Ok(())
    }

    /// Opens the database, or creates it.
    pub(crate) fn begin_or_create(&self, session: &Session) -> Result<Editing<'_>> {
        let options = self.commit.options()?;
        self.editing(self.database.open_or_create(session)?, options)
    }

    fn editing(&self, database: Database, options: CommitOptions) -> Result<Editing<'_>> {
        let document = find(&database, &self.document)?;
        let head = document.as_ref().map(Document::head_revision).transpose()?;
        let keys = document.as_ref().map(Keys::of).transpose()?.unwrap_or_default();
        Ok(Editing { name: &self.document, database, options, head, keys })
    }
}

impl Editing<'_> {
    /// The document as it is before the change.
    pub(crate) fn document(&self) -> Result<Document> {
        self.other(self.name)
    }

    /// Another document of the database.
    pub(crate) fn other(&self, name: &str) -> Result<Document> {
        Ok(meant::document(&self.database, name)?)
    }

    /// Whether there is no such document yet.
    pub(crate) fn is_new(&self) -> bool {
        self.head.is_none()
    }

    /// Whether the document has no revision yet.
    pub(crate) fn is_first(&self) -> bool {
        self.head.is_none_or(|head| head.0 == 0)
    }

    /// Loads a long text as the first revision, and says so.
    pub(crate) fn load(
        self,
        output: &mut Output,
        text: LongText,
        how: BulkOptions,
    ) -> Result<Success> {
        let how = BulkOptions { commit: self.options, ..how };
        let (commit, _) = bulk::load((&self.database, self.name), text, &how)?;
        drop(self.database);
        if self.head.is_none() {
            notice!("created the document {}", self.name);
        }
        let timestamp = how.commit.timestamp.unwrap_or(commit.timestamp);
        output.record(&Written::changed(self.name, commit.revision, timestamp))?;
        Ok(Success::Done)
    }

    /// Commits what `change` does as one revision, and says so.
    pub(crate) fn finish(
        self,
        output: &mut Output,
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<()>,
    ) -> Result<Success> {
        self.commit(output, |transaction, name| change(transaction, name).map(|()| None))
    }

    /// Commits what `change` does as one revision.
    fn make<T>(
        &mut self,
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<T>,
    ) -> duramen::Result<(T, Committed)> {
        let mut transaction = self.database.transaction();
        // A document that is not there meets the expectation of none.
        let expected = self.options.expect_revision.take();
        if let Some(expected) = expected.filter(|expected| self.head.is_some() || expected.0 > 0) {
            transaction.expect(self.name, expected)?;
        }
        interruption::say("nothing was changed");
        let changed = self.keys.told(change(&mut transaction, self.name))?;
        // How a commit ended is told.
        Interruption::watch();
        let committed = transaction.commit(&self.options)?;
        Ok((changed, committed))
    }

    fn commit(
        mut self,
        output: &mut Output,
        change: impl FnOnce(&mut Transaction, &str) -> duramen::Result<Option<u64>>,
    ) -> Result<Success> {
        let made = self.make(change);
        let (places, committed) = made.or_meant(&self.database.snapshot(), self.name)?;
        drop(self.database);

        if self.head.is_none() {
            notice!("created the document {}", self.name);
        }
        let timestamp = self.options.timestamp.unwrap_or(committed.timestamp);
        let revision = committed.revisions.iter().find(|(name, _)| name == self.name);
        let written = match revision {
            Some((_, revision)) => Written::changed(self.name, *revision, timestamp),
            None => Written::unchanged(self.name, self.head.unwrap_or_default()),
        };
        output.record(&written.with_places(places))?;
        Ok(Success::Done)
    }
}

/// The newest revision of a document; none if there is no such document.
pub(crate) fn head(database: &Database, name: &str) -> duramen::Result<Option<Revision>> {
    find(database, name)?.as_ref().map(Document::head_revision).transpose()
}

/// A document, if it is there.
fn find(database: &Database, name: &str) -> duramen::Result<Option<Document>> {
    match database.document(name) {
        Ok(document) => Ok(Some(document)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What goes with a commit.
#[derive(Debug, Args)]
pub(crate) struct CommitArguments {
    #[command(flatten)]
    note: Note,
    #[command(flatten)]
    made: Made,
    /// Fail unless the newest revision is this one; 0 means that there is none yet
    #[arg(long, value_name = "REVISION", allow_negative_numbers = true)]
    expect_revision: Option<u64>,
}

impl CommitArguments {
    pub(crate) fn options(&self) -> Result<CommitOptions> {
        let timestamp = self.made.timestamp()?;
        let expect_revision = self.expect_revision.map(Revision);
        Ok(CommitOptions { timestamp, expect_revision, ..self.note.options() })
    }
}

/// When.
#[derive(Debug, Args)]
pub(crate) struct Made {
    /// When the revision was made, if not now: after the revision before it, to load old history
    #[arg(long, value_name = "TIME")]
    timestamp: Option<String>,
}

impl Made {
    pub(crate) fn timestamp(&self) -> duramen::Result<Option<Micros>> {
        self.timestamp.as_deref().map(moment::parse_time).transpose()
    }
}

/// Who and why.
#[derive(Debug, Args)]
pub(crate) struct Note {
    /// What changed and why
    #[arg(long)]
    message: Option<String>,
    /// Who made the change
    #[arg(long)]
    author: Option<String>,
}

impl Note {
    pub(crate) fn options(&self) -> CommitOptions {
        let (author, message) = (self.author.clone(), self.message.clone());
        CommitOptions { author, message, ..CommitOptions::default() }
    }
}
