//! `duramen series plot`: a chart of a series, in the terminal or as a picture.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use duramen::{Error, ErrorKind, Interpolation, Micros, RangeOptions, SeriesSnapshot, ValueType};

use self::curve::{Axis, Curve};
use self::picture::Shown;
use super::point::Line;
use super::{Bounds, SeriesAt, Span};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, progress};

pub(crate) mod curve;
pub(crate) mod picture;
pub(crate) mod terminal;
mod ticks;

const EXAMPLES: &str = "\
Examples:
  duramen series plot plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-08
  duramen series plot plant.duramen boiler/7/temp --out temp.svg
  duramen series plot plant.duramen boiler/7/temp --out temp.png --width 1600 --height 600
  duramen series plot plant.duramen boiler/7/temp --json --width 100

However many points there are, each column of the chart spans from the least to the greatest value
in it. The chart reaches over the display range of the series, if it has one. Points of bad and
invalid quality are left out, and values that are not finite. With --json the points that it shows
are printed as range prints them: of each half of a character's width the first, the least, the
greatest and the last. A picture prints nothing.";

/// Pixels of a picture, if none are said.
pub(crate) const PICTURE: (u32, u32) = (1_000, 400);
/// More of either are no chart that anyone can look at.
const SIDE_MAX: i64 = 20_000;

/// Draw a chart of a series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Plot {
    #[command(flatten)]
    series: SeriesAt,
    #[command(flatten)]
    span: Span,
    /// A picture: its name ends with .svg or .png; replaced if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Columns of text, which are 72 or as many as the terminal has, or pixels
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(8..=SIDE_MAX))]
    width: Option<u32>,
    /// Lines of text, or pixels
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=SIDE_MAX))]
    height: Option<u32>,
}

impl Plot {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let series = self.series.open(session)?;
        let info = series.info();
        if info.definition.value_type == ValueType::String {
            let message = format!("series {:?} has text, which has no chart", info.name);
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        let default = if self.out.is_some() { PICTURE } else { terminal::size(output) };
        let width = self.width.unwrap_or(default.0);
        let height = self.height.unwrap_or(default.1);
        // A character of the terminal has two dots side by side.
        let columns = if self.out.is_some() { width } else { 2 * width };
        let curve = read(&series, self.span.bounds()?, columns)?;
        match &self.out {
            Some(file) => {
                let unit = &info.definition.unit;
                let caption = match unit.as_str() {
                    "" => info.name.clone(),
                    unit => format!("{} ({unit})", info.name),
                };
                let shown = Shown { caption, curve: &curve, axis: Axis::Time };
                picture::write(file, (width, height), &shown)?;
            }
            None if output.style.json => print(&series, &curve, output)?,
            None => terminal::write((&curve, Axis::Time), (width, height), output)?,
        }
        Ok(Success::Done)
    }
}

/// Prints the points that a chart shows, as they are stored.
fn print(series: &SeriesSnapshot, curve: &Curve, output: &mut Output) -> Result<()> {
    let interruption = Interruption::of_process();
    let mut times: Vec<i64> = curve.spots().map(|(time, _)| time).collect();
    times.dedup();
    for time in times {
        if let Some(point) = series.value_at(Micros(time), Interpolation::Stored)? {
            output.record(&Line::new(None, point))?;
        }
        if interruption.is_asked() {
            return Err(Failure::Interrupted("interrupted".to_owned()));
        }
    }
    Ok(())
}

/// What is to be seen of a span, in so many columns.
fn read(series: &SeriesSnapshot, bounds: Bounds, columns: u32) -> Result<Curve> {
    let end = |reverse| -> Result<Option<Micros>> {
        let one = RangeOptions { limit: Some(1), reverse, bounding: false };
        Ok(series.range_with(bounds, &one)?.read()?.get(0).map(|point| point.time))
    };
    let (Some(first), Some(last)) = (end(false)?, end(true)?) else {
        let message = format!("series {:?} has no points there", series.info().name);
        return Err(Error::new(ErrorKind::NotFound, message).into());
    };
    let interruption = Interruption::of_process();
    let bar = progress::bar("reading points", None);
    let display = series.info().definition.display;
    let mut curve = Curve::new((first, last), columns).reaching(display);
    for points in series.range(bounds)? {
        let points = points?;
        curve.add(&points);
        bar.inc(points.len() as u64);
        if interruption.is_asked() {
            return Err(Failure::Interrupted("interrupted".to_owned()));
        }
    }
    bar.finish_and_clear();
    if curve.is_empty() {
        let message = format!("series {:?} has no finite values there", series.info().name);
        return Err(Error::new(ErrorKind::NotFound, message).into());
    }
    Ok(curve)
}
