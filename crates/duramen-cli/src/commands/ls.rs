//! `duramen ls`: the documents of a database.

use std::io::{self, Write};

use clap::Args;
use duramen::{Database, DeletedDocument};
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen ls shop.duramen
  duramen ls shop.duramen --json    # with revisions and times
  duramen ls shop.duramen --deleted";

/// List the documents of a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ls {
    #[command(flatten)]
    database: ReadDatabase,
    /// List the documents that are deleted, with the revision and the time of that
    #[arg(long)]
    deleted: bool,
}

impl Ls {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        if self.deleted {
            for document in database.deleted_documents()? {
                output.record(&Deleted::from(document))?;
            }
            return Ok(Success::Done);
        }
        for name in database.documents()? {
            let line = if output.style.json {
                Line::with_head(&database, name)?
            } else {
                Line { document: name, revision: 0, timestamp: None }
            };
            output.record(&line)?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    document: String,
    revision: u64,
    timestamp: Option<String>,
}

impl Line {
    fn with_head(database: &Database, name: String) -> Result<Self> {
        let document = database.document(&name)?;
        let revision = document.head_revision()?.0;
        let timestamp = match revision {
            0 => None,
            _ => Some(moment::format(document.head()?.timestamp()?)),
        };
        Ok(Self { document: name, revision, timestamp })
    }
}

impl Record for Line {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.document)
    }
}

#[derive(Debug, Serialize)]
struct Deleted {
    document: String,
    /// The revision in which it was deleted.
    revision: u64,
    timestamp: String,
    author: Option<String>,
    message: Option<String>,
}

impl From<DeletedDocument> for Deleted {
    fn from(document: DeletedDocument) -> Self {
        Self {
            document: document.name,
            revision: document.revision.0,
            timestamp: moment::format(document.timestamp),
            author: document.author,
            message: document.message,
        }
    }
}

impl Record for Deleted {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let Self { document, revision, timestamp, .. } = self;
        write!(out, "{document}  {r}{revision}{r:#}  {t}{timestamp}{t:#}")?;
        if let Some(author) = &self.author {
            write!(out, "  {h}{}{h:#}", one_line(author))?;
        }
        if let Some(message) = &self.message {
            write!(out, "  {}", one_line(message.lines().next().unwrap_or_default()))?;
        }
        writeln!(out)
    }
}
