//! `duramen series delete`: the points of a span of time.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use super::Span;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::{Failure, Success};
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen series delete plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-02
  duramen series delete plant.duramen boiler/7/temp --all

As of earlier commits the points are still there. The series stays; `duramen series drop` takes it
out of the catalogue. Of rollups whose points are not kept any more whole windows go; one that the
span cuts stays as it is.";

/// Delete the points of a span of time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Delete {
    #[command(flatten)]
    database: WriteDatabase,
    /// The name of the series
    #[arg(value_name = "TAG")]
    name: String,
    #[command(flatten)]
    span: Span,
    /// All points
    #[arg(long, conflicts_with_all = ["from", "to"])]
    all: bool,
    #[command(flatten)]
    note: Note,
}

impl Delete {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        if !self.all && self.span.from.is_none() && self.span.to.is_none() {
            let message = "say which points: --from TIME, --to TIME or --all".to_owned();
            return Err(Failure::Usage(message));
        }
        let bounds = self.span.bounds()?;
        let series = meant::series(&self.database.open(session)?, &self.name)?;
        let commit = series.delete(bounds, &self.note.options())?.sequence;
        let commit = (commit.0 > 0).then_some(commit.0);
        output.record(&Deleted { series: &self.name, commit })?;
        Ok(Success::Done)
    }
}

/// In which commit points were deleted; in none, if there is no time in the span.
#[derive(Debug, Serialize)]
struct Deleted<'a> {
    series: &'a str,
    commit: Option<u64>,
}

impl Record for Deleted<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let series = one_line(self.series);
        match self.commit {
            None => writeln!(out, "{series}: there is no time in the span"),
            Some(commit) => {
                let r = palette.revision;
                writeln!(out, "{series}: deleted in commit {r}c{commit}{r:#}")
            }
        }
    }
}
