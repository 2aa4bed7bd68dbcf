//! `duramen scrub`: reads everything that is stored, slowly, to find damage early.

use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use duramen::{Finding, ScrubOptions, ScrubPosition, ScrubProgress, ScrubReport};
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, progress};

const EXAMPLES: &str = "\
Examples:
  duramen scrub shop.duramen
  duramen scrub shop.duramen --rate 100
  duramen scrub shop.duramen --from 12:340

Verifies the checksum of every block and of the journal beside a process that may be writing, and
changes nothing. Ctrl-C stops it and tells the --from to go on with. `duramen check` also decodes
what it reads. Exits with 1 if it finds damage; `duramen repair` salvages the rest.";

/// Bytes in a megabyte, as disks count them.
const MEGABYTE: u64 = 1_000_000;
const DEFAULT_RATE: u64 = duramen::limits::SCRUB_BYTES_PER_SECOND / MEGABYTE;

/// Read all that is stored, at a limited rate, and verify its checksums
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Scrub {
    #[command(flatten)]
    database: ReadDatabase,
    /// Megabytes read a second at most; 0 is as fast as possible
    #[arg(long, value_name = "MB", default_value_t = DEFAULT_RATE, allow_negative_numbers = true)]
    rate: u64,
    /// Go on where an earlier scrub was stopped
    #[arg(long, value_name = "SEGMENT:BLOCK", default_value_t, hide_default_value = true)]
    from: ScrubPosition,
}

impl Scrub {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch();
        let rate = self.rate.saturating_mul(MEGABYTE);
        let options =
            ScrubOptions { bytes_per_second: Some(rate).filter(|&rate| rate > 0), from: self.from };
        let bar = progress::bar("scrubbing", Some(0));
        let mut progress = |at: ScrubProgress| {
            bar.set_length(at.total);
            bar.set_position(at.bytes);
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let opened = self.database.open(session);
        let scrubbed = opened.and_then(|database| Ok(database.scrub(&options, &mut progress)?));
        bar.finish_and_clear();
        let report = match scrubbed {
            Ok(report) => report,
            Err(failure) => {
                ScrubReport { findings: self.database.damage(failure)?, ..ScrubReport::default() }
            }
        };
        for finding in &report.findings {
            output.record(&Line::from(finding))?;
        }
        if let Some(position) = report.stopped_at {
            let message = format!("interrupted: go on with --from {position}");
            return Err(Failure::Interrupted(message));
        }
        let (count, blocks) = (report.findings.len(), report.blocks);
        if !output.style.json {
            let found = match count {
                0 => "no damage found".to_owned(),
                1 => "1 place is damaged".to_owned(),
                _ => format!("{count} places are damaged"),
            };
            let folder = self.database.folder().display();
            output.line(format_args!("{folder}: blocks read: {blocks}, {found}"))?;
        }
        Ok(if count == 0 { Success::Done } else { Success::Found })
    }
}

/// A finding as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    place: &'a str,
    message: &'a str,
}

impl<'a> From<&'a Finding> for Line<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self { place: &finding.place, message: &finding.message }
    }
}

impl Record for Line<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let color = palette.removed;
        writeln!(out, "{color}{}{color:#}: {}", one_line(self.place), one_line(self.message))
    }
}
