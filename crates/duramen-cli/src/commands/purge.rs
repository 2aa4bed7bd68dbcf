//! `duramen purge`: one value erased from a document's whole history, and from every file.

use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use duramen::{NodeId, Purge as Purged, PurgeOptions, Target};
use serde::Serialize;

use crate::arguments::edit::Note;
use crate::arguments::{Keys, WriteDatabase, moment};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant, progress};

const EXAMPLES: &str = "\
Examples:
  duramen purge shop.duramen people /17/address --message 'asked to be forgotten'
  duramen purge shop.duramen people '$[?@.id == 17].card' --author ann
  duramen purge shop.duramen people /3 --at 12

In every revision that had the value its place reads null from then on, and what was in it is gone;
the newest one has it no more. A value that is not in the newest revision is named in one that had
it (--at). It cannot be undone.

What is purged is the value with that id, wherever it stood in its array. What a new name, a move to
another place or a copy made of it is another value: `duramen history` and `duramen blame` lead to
it. The place, the names of fields in the value, and when it was changed stay known, and so do who
purged it, when and why, which `duramen stat DB DOC` lists.

All of the database is merged for it, which takes room for it once more, and the old files are
overwritten before they are removed. If that is interrupted it goes on with the next command that
writes to the database; until then the document cannot be changed.

Not in reach are backups and dumps made before, which still have the value: make new ones and remove
those; copies that the disk or the file system keeps (snapshots, flash memory); and files that were
removed before.";

/// Erase one value from every revision of a document, and from every file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Purge {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// A JSON Pointer, such as /players/3/name, # and a value's id, or a JSONPath that finds one
    /// value, such as '$.players[-1]'
    #[arg(value_name = "POINTER")]
    place: String,
    /// Name the value as of this revision, time or tag
    #[arg(long, value_name = "REVISION|TIME|TAG")]
    at: Option<String>,
    #[command(flatten)]
    note: Note,
}

impl Purge {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = Target::parse(&self.place)?;
        let interruption = Interruption::watch();
        let database = self.database.open(session)?;
        let document = meant::document(&database, &self.document)?;
        let at = self.at.as_ref().map(|text| moment::revision(&document, text)).transpose()?;
        let keys = Keys::of(&document)?;
        let target = keys.stored(&target);
        let options = PurgeOptions { at, commit: self.note.options() };
        let bar = progress::bytes("purging");
        let purged = document.purge(&target, &options, &mut |read, total| {
            bar.set_length(total);
            bar.set_position(read.min(total));
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.finish_and_clear();
        let purged = match purged {
            Err(error) if interruption.is_asked() => {
                return Err(Failure::Interrupted(error.message().to_owned()));
            }
            done => keys.told(done)?,
        };
        output.record(&Line(PurgeLine::new(&purged, keys)))?;
        Ok(Success::Done)
    }
}

/// A value that was purged.
#[derive(Debug, Serialize)]
pub(crate) struct PurgeLine {
    place: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u64>,
    timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    pending: bool,
}

impl PurgeLine {
    pub(crate) fn new(purged: &Purged, keys: Keys) -> Self {
        Self {
            place: keys.shown(&purged.place).to_string(),
            node: purged.node.map(NodeId::number),
            timestamp: crate::moment::format(purged.timestamp),
            author: purged.author.clone(),
            message: purged.message.clone(),
            pending: purged.is_pending,
        }
    }

    /// The line of it in a list.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let is = if self.pending { "is being purged" } else { "was purged" };
        write!(out, "{} {is}, {}", self.place, self.timestamp)?;
        if let Some(author) = &self.author {
            write!(out, " by {author}")?;
        }
        if let Some(message) = &self.message {
            write!(out, ": {message}")?;
        }
        writeln!(out)
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Line(PurgeLine);

impl Record for Line {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let place = &self.0.place;
        writeln!(out, "purged {place}: no revision and no file of the database has it any more")?;
        let other = "what a new name, a move or a copy made of it is another value: purge that too";
        writeln!(out, "{other}")?;
        writeln!(out, "backups and dumps made before still do: make new ones and remove those")
    }
}
