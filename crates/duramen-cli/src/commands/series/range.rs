//! `duramen series range`: the points of a span of time.

use clap::Args;
use duramen::{Point, RangeOptions};

use super::point::Line;
use super::{SeriesAt, Span};
use crate::Result;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series range plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-02
  duramen series range plant.duramen boiler/7/temp --reverse --limit 10
  duramen series range plant.duramen boiler/7/temp --at c1042 --json

A line is the time, the value, and the quality unless that is good.";

/// Print the points of a span of time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Range {
    #[command(flatten)]
    series: SeriesAt,
    #[command(flatten)]
    span: Span,
    /// At most this many
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// The latest first
    #[arg(long)]
    reverse: bool,
}

impl Range {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch()?;
        let options = RangeOptions { limit: self.limit, reverse: self.reverse };
        let series = self.series.open(session)?;
        for points in series.range_with(self.span.bounds()?, &options)? {
            for point in points?.iter() {
                let point: Point = point;
                output.record(&Line::new(None, point))?;
            }
            if interruption.is_asked() {
                return Err(Failure::Interrupted("interrupted".to_owned()));
            }
        }
        Ok(Success::Done)
    }
}
