//! `duramen repair`: what verifies of a damaged database, in a new one.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use duramen::{Database, ErrorKind, Lost};
use serde::Serialize;

use super::scrub::Line;
use crate::exit::{Failure, Success};
use crate::interruption::{self, Interruption};
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, progress};

const EXAMPLES: &str = "\
Examples:
  duramen repair shop.duramen --to salvaged.duramen
  duramen repair shop.duramen --to salvaged.duramen --json > lost.ndjson

Writes every document with all revisions that are left into a new database, and tells what does not
verify and what is lost for it. Nothing of the damaged database is changed; no process may be
writing it. Of what is lost a document lacks just that: members are left out, elements and whole
values are null. Revisions keep their times, authors and messages, and their numbers unless older
ones are not kept any more: then they count from 1. Documents keep their names, options, tags and
what is known of purges; ids of values are new. Exits with 1 if anything is lost.
Series have all that was written to them, also what was replaced or deleted since, and are read
`--at` the same commits; how they were named and defined before is not taken over. Windows of
rollups whose points are not kept any more are not either, and count as lost. Deleted series are
left out, which is told and loses nothing.

Restore a backup instead if there is one.";

/// Salvage what verifies of a damaged database into a new one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Repair {
    /// The damaged database's folder
    #[arg(value_name = "DB", value_hint = ValueHint::DirPath)]
    database: PathBuf,
    /// The folder of the new database
    #[arg(long, value_name = "NEW", value_hint = ValueHint::DirPath)]
    to: PathBuf,
}

impl Repair {
    pub(crate) fn run(&self, _session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = self.interruption();
        let bar = progress::bar("repairing", Some(0));
        let repaired = Database::repair(&self.database, &self.to, &mut |at| {
            bar.set_length(at.total);
            bar.set_position(at.done);
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        // It is finished by now, or removed.
        Interruption::watch();
        bar.finish_and_clear();
        let to = self.to.display();
        let report = match repaired {
            Err(error) if error.kind() == ErrorKind::Cancelled && interruption.is_asked() => {
                let message = format!("interrupted: there is no database in {to}");
                return Err(Failure::Interrupted(message));
            }
            repaired => repaired?,
        };
        for finding in &report.damage {
            output.record(&Line::from(finding))?;
        }
        for lost in &report.lost {
            output.record(&LostLine::from(lost))?;
        }
        for left_out in &report.left_out {
            output.record(&LeftOut { left_out: left_out.to_string() })?;
        }
        output.record(&Summary {
            documents: report.documents,
            revisions: report.revisions,
            damaged: report.damage.len(),
            lost: report.lost.len(),
            left_out: Some(report.left_out.len()).filter(|count| *count > 0),
        })?;
        Ok(if report.is_complete() { Success::Done } else { Success::Found })
    }
}

impl Repair {
    /// Ctrl-C ends it at once and removes a folder that was not there before. Of one that was it is
    /// asked for between revisions.
    fn interruption(&self) -> Interruption {
        let around = self.to.parent().filter(|around| !around.as_os_str().is_empty());
        if self.to.exists() || !around.is_none_or(Path::is_dir) {
            return Interruption::watch();
        }
        interruption::say(&format!("there is no database in {}", self.to.display()));
        interruption::remove(&self.to);
        Interruption::of_process()
    }
}

/// Something lost as it is printed.
#[derive(Debug, Serialize)]
struct LostLine<'a> {
    document: Option<&'a str>,
    path: Option<&'a str>,
    first: u64,
    last: u64,
    values: u64,
    lost: &'a str,
    #[serde(skip)]
    text: String,
}

impl<'a> From<&'a Lost> for LostLine<'a> {
    fn from(lost: &'a Lost) -> Self {
        Self {
            document: lost.document.as_deref(),
            path: lost.path.as_deref(),
            first: lost.first.0,
            last: lost.last.0,
            values: lost.values,
            lost: &lost.what,
            text: lost.to_string(),
        }
    }
}

impl Record for LostLine<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let color = palette.removed;
        writeln!(out, "{color}lost{color:#}: {}", one_line(&self.text))
    }
}

/// Something that is not taken over.
#[derive(Debug, Serialize)]
struct LeftOut {
    left_out: String,
}

impl Record for LeftOut {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "left out: {}", one_line(&self.left_out))
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    documents: u64,
    revisions: u64,
    damaged: usize,
    lost: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

impl Record for Summary {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { documents, revisions, damaged, lost, left_out } = self;
        write!(
            out,
            "documents: {documents}, revisions: {revisions}, damaged places: {damaged}, \
             lost: {lost}"
        )?;
        if let Some(left_out) = left_out {
            write!(out, ", left out: {left_out}")?;
        }
        writeln!(out)
    }
}
