//! `duramen compact`: all segments merged into one.

use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use duramen::ErrorKind;
use indicatif::HumanBytes;
use serde::Serialize;

use crate::arguments::WriteDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, progress};

const EXAMPLES: &str = "\
Examples:
  duramen compact shop.duramen
  duramen compact shop.duramen --json

It happens by itself as data comes in, level by level; this does all of it at once. It takes room
on the disk for a new segment beside the old ones, which are removed at the end. Ctrl-C stops it,
and leaves the database as it was.";

/// Merge what is stored, so that it takes less space and is read faster
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compact {
    #[command(flatten)]
    database: WriteDatabase,
}

impl Compact {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch();
        let database = self.database.open(session)?;
        match database.checkpoint() {
            // Compacting makes room for it.
            Err(error) if error.kind() == ErrorKind::Full => {}
            written => written?,
        }
        let before = database.stats()?;
        let bar = progress::bytes("compacting");
        let compacted = database.compact(&mut |read, total| {
            bar.set_length(total);
            bar.set_position(read.min(total));
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.finish_and_clear();
        match compacted {
            Err(error) if interruption.is_asked() => {
                return Err(Failure::Interrupted(error.message().to_owned()));
            }
            done => done?,
        }
        let after = database.stats()?;
        output.record(&Summary {
            segments_before: before.segments,
            segments: after.segments,
            segment_bytes_before: before.segment_bytes,
            segment_bytes: after.segment_bytes,
        })?;
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Summary {
    segments_before: u64,
    segments: u64,
    segment_bytes_before: u64,
    segment_bytes: u64,
}

impl Record for Summary {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let before = HumanBytes(self.segment_bytes_before);
        let (count, after) = (self.segments_before, HumanBytes(self.segment_bytes));
        let segments = if count == 1 { "segment" } else { "segments" };
        writeln!(out, "{count} {segments} of {before} became {} of {after}", self.segments)
    }
}
