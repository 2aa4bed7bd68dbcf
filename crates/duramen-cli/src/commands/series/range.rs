//! `duramen series range`: the points of a span of time.

use clap::Args;
use duramen::RangeOptions;

use super::ReadSeries;
use super::line::PointLine;
use super::span::Span;
use crate::Result;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series range plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-02
  duramen series range plant.duramen boiler/7/temp --reverse --limit 10 --json";

/// Print the points of a series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Range {
    #[command(flatten)]
    series: ReadSeries,
    #[command(flatten)]
    span: Span,
    /// At most so many points
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// The latest points first
    #[arg(long)]
    reverse: bool,
}

impl Range {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let bounds = self.span.bounds()?;
        let options = RangeOptions { limit: self.limit, reverse: self.reverse };
        for points in self.series.open(session)?.range_with(bounds, &options)? {
            for point in points?.iter() {
                output.record(&PointLine::new(None, point))?;
            }
        }
        Ok(Success::Done)
    }
}
