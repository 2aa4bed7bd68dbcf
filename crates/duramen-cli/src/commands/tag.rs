//! `duramen tag`: names for revisions.

use std::io::{self, Write};

use clap::Args;
use duramen::Tag as Named;
use serde::Serialize;

use crate::arguments::edit::Note;
use crate::arguments::{WriteDatabase, moment};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, meant, moment as times};

const EXAMPLES: &str = "\
Examples:
  duramen tag shop.duramen config    # list the tags
  duramen tag shop.duramen config v1.0
  duramen tag shop.duramen config v0.9 7 --message 'as shipped'
  duramen tag shop.duramen config stable 12 --move
  duramen get shop.duramen config --at v1.0

A tag keeps the content hash of its revision, which `duramen check` compares.
`duramen untag` removes a tag.";

/// Name a revision of a document, or list the names it has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Tag {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// The name; without it the tags are listed
    #[arg(value_name = "TAG")]
    name: Option<String>,
    /// The revision it names, or a time or another tag; without it the newest
    #[arg(value_name = "REVISION|TIME|TAG")]
    revision: Option<String>,
    /// Set a tag that is there to another revision
    #[arg(long = "move", requires = "name")]
    moves: bool,
    #[command(flatten)]
    note: Note,
}

impl Tag {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let Some(name) = &self.name else { return self.list(session, output) };
        let document = meant::document(&self.database.open(session)?, &self.document)?;
        let revision = self.revision.as_deref();
        let revision = revision.map(|text| moment::revision(&document, text)).transpose()?;
        let options = self.note.options();
        let revision = if self.moves {
            document.move_tag(name, revision, &options)?
        } else {
            document.tag(name, revision, &options)?
        };
        output.record(&Set { document: &self.document, tag: name, revision: revision.0 })?;
        Ok(Success::Done)
    }

    fn list(&self, session: &Session, output: &mut Output) -> Result<Success> {
        for tag in meant::document(&self.database.read(session)?, &self.document)?.tags()? {
            output.record(&Line::from(tag))?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Set<'a> {
    document: &'a str,
    tag: &'a str,
    revision: u64,
}

impl Record for Set<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { document, tag, revision } = self;
        let color = palette.revision;
        writeln!(out, "{document}: {tag} is revision {color}{revision}{color:#}")
    }
}

#[derive(Debug, Serialize)]
struct Line {
    tag: String,
    revision: u64,
    timestamp: String,
    author: Option<String>,
    message: Option<String>,
    hash: String,
}

impl From<Named> for Line {
    fn from(tag: Named) -> Self {
        Self {
            tag: tag.name,
            revision: tag.revision.0,
            timestamp: times::format(tag.timestamp),
            author: tag.author,
            message: tag.message,
            hash: tag.hash.to_string(),
        }
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, time: t, heading: h, .. } = palette;
        let Self { tag, revision, timestamp, .. } = self;
        write!(out, "{r}{revision:>6}{r:#}  {h}{}{h:#}  {t}{timestamp}{t:#}", one_line(tag))?;
        if let Some(author) = &self.author {
            write!(out, "  {}", one_line(author))?;
        }
        if let Some(message) = &self.message {
            write!(out, "  {}", one_line(message.lines().next().unwrap_or_default()))?;
        }
        writeln!(out)
    }
}
