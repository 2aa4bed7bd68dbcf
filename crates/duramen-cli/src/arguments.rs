//! The command line: its commands, and the arguments that several of them share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use duramen::{CommitOptions, Database, Document, Durability, JsonPointer, Options, Revision};

use crate::commands::{check, demo, diff, get, history, import, init, log, ls, put, stat};
use crate::commands::{remove, set};
use crate::exit::Success;
use crate::output::Output;
use crate::{Result, extension, moment};

const AFTER_HELP: &str = "\
DB is the database's folder and DOC the name of a document in it. A POINTER is a JSON Pointer,
such as /players/3/name; inside a name write ~1 for / and ~0 for ~. A REVISION is a number, a TIME
is in RFC 3339 form: 2024-05-01T12:30:00+02:00. A time without a zone is UTC, and a date alone is
its first moment, 00:00 UTC. A FILE called - is standard input.

Examples:
  duramen put shop.duramen config config.json --message 'first version'
  duramen get shop.duramen config --at 2024-05-01
  duramen log shop.duramen config --limit 10

Exit codes: 0 done, 1 `check` or `diff --exit-code` found something, 2 wrong command line,
10 to 23 by kind of error (docs/errors.md), 130 stopped by Ctrl-C.";

/// Keeps every revision of JSON documents, readable at the speed of the present.
#[derive(Debug, Parser)]
#[command(name = "duramen", version, after_help = AFTER_HELP, max_term_width = 100)]
pub(crate) struct Arguments {
    /// Print JSON, one object a line, and errors as JSON too
    #[arg(long, global = true, display_order = 100)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Init),
    Put(put::Put),
    Get(get::Get),
    Set(set::Set),
    Remove(remove::Remove),
    Log(log::Log),
    Diff(diff::Diff),
    History(history::History),
    Ls(ls::Ls),
    Import(import::Import),
    Stat(stat::Stat),
    Check(check::Check),
    Demo(demo::Demo),
    #[command(external_subcommand)]
    Extension(Vec<OsString>),
}

impl Command {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        match self {
            Self::Init(command) => command.run(output),
            Self::Put(command) => command.run(output),
            Self::Get(command) => command.run(output),
            Self::Set(command) => command.run(output),
            Self::Remove(command) => command.run(output),
            Self::Log(command) => command.run(output),
            Self::Diff(command) => command.run(output),
            Self::History(command) => command.run(output),
            Self::Ls(command) => command.run(output),
            Self::Import(command) => command.run(output),
            Self::Stat(command) => command.run(output),
            Self::Check(command) => command.run(output),
            Self::Demo(command) => command.run(output),
            Self::Extension(words) => extension::run(words),
        }
    }
}

/// A database that is read.
#[derive(Debug, Args)]
pub(crate) struct ReadDatabase {
    /// The database's folder
    #[arg(value_name = "DB")]
    database: PathBuf,
}

impl ReadDatabase {
    /// Opens it beside a process that may be writing.
    pub(crate) fn open(&self) -> Result<Database> {
        let options = Options { create: false, read_only: true, ..Options::default() };
        Ok(Database::open(&self.database, options)?)
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.database
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
    pub(crate) fn open(&self) -> Result<Document> {
        Ok(self.database.open()?.document(&self.name)?)
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
    /// Opens it if it is there.
    pub(crate) fn open(&self) -> Result<Database> {
        self.open_with(false, Durability::Sync)
    }

    /// Opens it, creates it if it is missing, and says so.
    pub(crate) fn open_or_create(&self, durability: Durability) -> Result<Database> {
        let database = self.open_with(true, durability)?;
        if database.was_created() {
            eprintln!("created the database {}", self.folder());
        }
        Ok(database)
    }

    /// Opens it, and creates it if it is missing.
    pub(crate) fn open_with(&self, create: bool, durability: Durability) -> Result<Database> {
        let wait_ms = self.wait.saturating_mul(1000);
        let options = Options { create, durability, wait_ms, ..Options::default() };
        Ok(Database::open(&self.database, options)?)
    }

    /// Its folder as text.
    pub(crate) fn folder(&self) -> String {
        self.database.display().to_string()
    }
}

/// What goes with a commit.
#[derive(Debug, Args)]
pub(crate) struct CommitArguments {
    /// What changed and why
    #[arg(long)]
    message: Option<String>,
    /// Who made the change
    #[arg(long)]
    author: Option<String>,
    /// When the revision was made, if not now: after the revision before it, to load old history
    #[arg(long, value_name = "TIME")]
    timestamp: Option<String>,
    /// Fail unless the newest revision is this one; 0 means that there is none yet
    #[arg(long, value_name = "REVISION")]
    expect_revision: Option<u64>,
}

impl CommitArguments {
    pub(crate) fn options(&self) -> Result<CommitOptions> {
        let timestamp = self.timestamp.as_deref().map(moment::parse_time).transpose()?;
        Ok(CommitOptions {
            author: self.author.clone(),
            message: self.message.clone(),
            timestamp,
            expect_revision: self.expect_revision.map(Revision),
            ..CommitOptions::default()
        })
    }
}

/// A place in a document.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A JSON Pointer, such as /players/3/name; '' is the whole document
    #[arg(value_name = "POINTER")]
    pointer: String,
}

impl Place {
    pub(crate) fn pointer(&self) -> Result<JsonPointer> {
        Ok(JsonPointer::parse(&self.pointer)?)
    }
}
