//! `duramen series range`: the points of a span of time.

use clap::Args;
use duramen::{Point, RangeOptions, SeriesCursor};

use super::point::Line;
use super::{SeriesAt, Span};
use crate::Result;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series range plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-02
  duramen series range plant.duramen boiler/7/temp --reverse --limit 10
  duramen series range plant.duramen boiler/7/temp --cursor CURSOR --limit 10
  duramen series range plant.duramen boiler/7/temp --at c1042 --json
  duramen series range plant.duramen boiler/7/temp --at 2024-05-01T12:30:00Z

A line is the time, the value, and the quality unless that is good. Where there is more than --limit
lets through, the cursor to go on with is told on standard error.";

/// Print the points of a span of time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Range {
    #[command(flatten)]
    series: SeriesAt,
    #[command(flatten)]
    span: Span,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
    /// The latest first
    #[arg(long)]
    reverse: bool,
    /// Also the last point before the span and the first one behind it
    #[arg(long)]
    bounding: bool,
    /// Go on where another range ended, by the cursor that it printed
    #[arg(long, value_name = "CURSOR",
        conflicts_with_all = ["from", "to", "reverse", "bounding", "at"])]
    cursor: Option<SeriesCursor>,
}

impl Range {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::of_process();
        let (limit, reverse, bounding) = (self.limit, self.reverse, self.bounding);
        let snapshot = match self.cursor {
            Some(cursor) => self.series.open_at(session, cursor.sequence)?,
            None => self.series.open(session)?,
        };
        let mut range = if let Some(cursor) = self.cursor {
            snapshot.resume(cursor, limit)?
        } else {
            let options = RangeOptions { limit, reverse, bounding };
            snapshot.range_with(self.span.bounds()?, &options)?
        };
        for points in range.by_ref() {
            for point in points?.iter() {
                let point: Point = point;
                output.record(&Line::new(None, point))?;
            }
            if interruption.is_asked() {
                return Err(Failure::Interrupted("interrupted".to_owned()));
            }
        }
        if let Some(cursor) = range.cursor()
            && snapshot.resume(cursor, Some(1))?.next().is_some()
        {
            notice!("there is more: --cursor {cursor}");
        }
        Ok(Success::Done)
    }
}
