//! `duramen series plot`: how values move, on the terminal or as a picture.
//!
//! What is drawn is the least and the greatest value of each of some hundred windows, so that no
//! peak is lost however many points there are.

use std::fmt::Write as _;
use std::ops::Bound;
use std::path::PathBuf;

use clap::Args;
use duramen::{
    Aggregate, AggregateOptions, Error, ErrorKind, Micros, RangeOptions, SeriesSnapshot, Windows,
};
use plotters::prelude::{
    BLUE, ChartBuilder, Color, IntoDrawingArea, IntoFont, PathElement, SVGBackend, WHITE,
};

use super::ReadSeries;
use super::line::time;
use super::span::Span;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile};

const EXAMPLES: &str = "\
Examples:
  duramen series plot plant.duramen boiler/7/temp --from 2024-05-01
  duramen series plot plant.duramen boiler/7/temp --svg temp.svg";

/// Draw the values of a series over time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Plot {
    #[command(flatten)]
    series: ReadSeries,
    #[command(flatten)]
    span: Span,
    /// Write a picture to this file instead
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Characters of the chart from left to right
    #[arg(long, default_value_t = 72, value_parser = clap::value_parser!(u16).range(1..=1000))]
    width: u16,
    /// Lines of the chart
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=500))]
    height: u16,
}

/// The least and the greatest value of windows, one after the other.
struct Chart {
    first: Micros,
    last: Micros,
    columns: Vec<Option<(f64, f64)>>,
}

/// Dots of a character of Braille, from left to right and from top to bottom.
const DOTS: (usize, usize) = (2, 4);
/// Windows of a picture.
const PICTURE_COLUMNS: usize = 800;
const PICTURE_SIZE: (u32, u32) = (960, 480);

impl Plot {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let bounds = self.span.bounds()?;
        let series = self.series.open(session)?;
        let columns = match self.svg {
            Some(_) => PICTURE_COLUMNS,
            None => usize::from(self.width) * DOTS.0,
        };
        let chart = Chart::read(&series, bounds, columns)?;
        match &self.svg {
            Some(path) => {
                let picture = chart.picture(&series.info().name);
                let picture =
                    picture.map_err(|reason| Error::new(ErrorKind::Unsupported, reason))?;
                outfile::replace(path, |out| Ok(out.write_all(picture.as_bytes())?))?;
            }
            None => output.line(chart.text(usize::from(self.height)).trim_end())?,
        }
        Ok(Success::Done)
    }
}

impl Chart {
    fn read(
        series: &SeriesSnapshot,
        bounds: (Bound<Micros>, Bound<Micros>),
        columns: usize,
    ) -> Result<Self> {
        let end = |reverse| -> duramen::Result<_> {
            let one = RangeOptions { limit: Some(1), reverse };
            Ok(series.range_with(bounds, &one)?.read()?.get(0).map(|point| point.time))
        };
        let none = || {
            let name = &series.info().name;
            let message = format!("series {name:?} has no numbers in that time");
            Error::new(ErrorKind::NotFound, message)
        };
        let (Some(first), Some(last)) = (end(false)?, end(true)?) else {
            return Err(none().into());
        };
        // Windows lie where they lie: one more of them may be cut at both ends.
        let width = last.0.abs_diff(first.0).div_ceil(columns.max(2) as u64 - 1).max(1);
        let windows = Windows::of_width(Micros(i64::try_from(width).unwrap_or(i64::MAX)))?;
        let start = windows.around(first)?.0;
        let options = AggregateOptions::new(vec![Aggregate::Min, Aggregate::Max], windows);
        let table = series.aggregate(first..=last, &options)?;
        let mut all = vec![None; columns];
        for (row, at) in table.starts.iter().enumerate() {
            let value = |column: usize| table.columns[column].get(row)?.as_f64();
            let place = usize::try_from(at.abs_diff(start.0) / width).unwrap_or(usize::MAX);
            if let (Some(place), Some(low), Some(high)) = (all.get_mut(place), value(0), value(1)) {
                *place = Some((low, high)).filter(|_| low.is_finite() && high.is_finite());
            }
        }
        if all.iter().all(Option::is_none) {
            return Err(none().into());
        }
        Ok(Self { first, last, columns: all })
    }

    /// The least and the greatest of all values.
    fn range(&self) -> (f64, f64) {
        let known = self.columns.iter().flatten();
        let low = known.clone().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
        (low, known.map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max))
    }

    /// Dots of Braille in so many lines, with the bounds beside and below them.
    fn text(&self, height: usize) -> String {
        let (low, high) = self.range();
        let labels = (label(high), label(low));
        let margin = labels.0.len().max(labels.1.len());
        let mut out = String::new();
        for line in 0..height {
            let label = match line {
                0 => &labels.0,
                last if last + 1 == height => &labels.1,
                _ => "",
            };
            let dots = self.columns.chunks(DOTS.0).map(|pair| {
                let of = |(at, column): (usize, &Option<(f64, f64)>)| {
                    let (from, to) = (*column)?;
                    let lit = (dot((low, high), from, height), dot((low, high), to, height));
                    Some(bits(at, line, height, lit))
                };
                let bits = pair.iter().enumerate().filter_map(of).fold(0, |all, one| all | one);
                char::from_u32(0x2800 + bits).unwrap_or(' ')
            });
            let dots: String = dots.collect();
            let _ = writeln!(out, "{label:>margin$} |{}", dots.trim_end_matches('\u{2800}'));
        }
        let (first, last) = (time(self.first), time(self.last));
        let width = (self.columns.len() / DOTS.0).saturating_sub(first.len());
        let width = width.max(last.len() + 1);
        let _ = writeln!(out, "{:margin$}  {first}{last:>width$}", "");
        out
    }

    /// The chart as SVG.
    fn picture(&self, name: &str) -> std::result::Result<String, String> {
        let (low, high) = self.range();
        if !(high - low).is_finite() {
            return Err(format!("{low:e} and {high:e} are too far apart for a picture"));
        }
        let mut svg = String::new();
        let drawn = self.draw(name, (low, high), &mut svg);
        drawn.map(|()| svg).map_err(|error| format!("cannot draw the picture: {error}"))
    }

    fn draw(
        &self,
        name: &str,
        (low, high): (f64, f64),
        svg: &mut String,
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::with_string(svg, PICTURE_SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let margin = if high > low { (high - low) * 0.02 } else { 1.0 };
        let span = self.last.0.abs_diff(self.first.0).max(1);
        let mut chart = ChartBuilder::on(&area)
            .caption(name, ("sans-serif", 20).into_font())
            .margin(12)
            .x_label_area_size(32)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..share(span), low - margin..high + margin)?;
        let label = |at: &f64| time(Micros(self.first.0.saturating_add(micros(*at))));
        chart.configure_mesh().x_labels(5).x_label_formatter(&label).draw()?;
        let step = share(span) / share(self.columns.len() as u64);
        // Windows without values part the line.
        let columns: Vec<_> = self.columns.iter().enumerate().collect();
        for stretch in columns.chunk_by(|one, two| one.1.is_some() == two.1.is_some()) {
            let ends = stretch.iter().filter_map(|(at, column)| {
                let (from, to) = (**column)?;
                let middle = (share(*at as u64) + 0.5) * step;
                Some([(middle, from), (middle, to)])
            });
            let line: Vec<_> = ends.flatten().collect();
            if !line.is_empty() {
                chart.draw_series([PathElement::new(line, BLUE.stroke_width(1))])?;
            }
        }
        area.present()?;
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn share(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_possible_truncation, reason = "a time beside a picture")]
fn micros(at: f64) -> i64 {
    at as i64
}

/// A value beside a chart.
fn label(value: f64) -> String {
    let is_plain = value == 0.0 || (1e-6..1e15).contains(&value.abs());
    if is_plain { value.to_string() } else { format!("{value:e}") }
}

/// The dot that a value is at, from the lowest one on.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of some hundred dots"
)]
fn dot((low, high): (f64, f64), value: f64, height: usize) -> usize {
    let dots = share((height * DOTS.1 - 1) as u64);
    let place = if high > low { (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.5 };
    (place * dots).round() as usize
}

/// The bits of a character of Braille in a line for the dots of one column that are lit.
fn bits(column: usize, line: usize, height: usize, (from, to): (usize, usize)) -> u32 {
    // By column and row from the top.
    const BITS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
    let lowest = (height - 1 - line) * DOTS.1;
    let is_lit = |row: usize| (from..=to).contains(&(lowest + DOTS.1 - 1 - row));
    (0..DOTS.1).filter(|row| is_lit(*row)).fold(0, |all, row| all | BITS[column][row])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(columns: &[(f64, f64)]) -> Chart {
        let columns = columns.iter().copied().map(Some).collect();
        Chart { first: Micros(0), last: Micros(3_000_000), columns }
    }

    #[test]
    fn dots_reach_from_the_least_to_the_greatest_value() {
        let text = chart(&[(0.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)]).text(2);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "1 |\u{2808}\u{2847}");
        assert_eq!(lines[1], "0 |\u{2840}\u{28c7}");
        assert_eq!(lines[2], "   1970-01-01T00:00:00Z 1970-01-01T00:00:03Z");
    }

    #[test]
    fn values_that_never_move_and_the_largest_are_drawn() {
        assert!(chart(&[(5.0, 5.0), (5.0, 5.0)]).text(1).starts_with("5 |"));
        let text = chart(&[(-f64::MAX, -f64::MAX), (f64::MAX, f64::MAX)]).text(1);
        assert!(text.contains('\u{2848}'), "{text}");
    }

    #[test]
    fn a_picture_is_svg_with_the_name_and_a_line() {
        let svg = chart(&[(0.0, 1.0), (2.0, 3.0)]).picture("boiler/7 <temp>").unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("boiler/7 &lt;temp&gt;"), "{svg}");
        assert_eq!(svg.matches("#0000FF").count(), 1, "{svg}");
    }
}
