//! `duramen ls`: the documents of a database.

use std::io::{self, Write};

use clap::Args;
use duramen::Database;
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen ls shop.duramen
  duramen ls shop.duramen --json    with revisions and times";

/// List the documents of a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Ls {
    #[command(flatten)]
    database: ReadDatabase,
}

impl Ls {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
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
