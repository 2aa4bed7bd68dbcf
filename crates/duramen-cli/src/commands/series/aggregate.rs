//! `duramen series aggregate`: what the points of windows of time come to.

use clap::{Args, ValueEnum};
use duramen::{
    Aggregate as What, AggregateOptions, Error, Fill, Hold, Micros, QualityFilter, SeriesInfo,
    SeriesValue, WindowTable, Windows,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::point::{JsonValue, Written, time_text};
use super::{SeriesAt, Span};
use crate::Result;
use crate::exit::{Failure, Success};
use crate::meant::Named as _;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series aggregate plant.duramen boiler/7/temp --every 1h
  duramen series aggregate plant.duramen boiler/7/temp count mean max --every 1d --zone Asia/Tokyo
  duramen series aggregate plant.duramen boiler/7/temp p50 p99.9 --every 1mo --fill null
  duramen series aggregate plant.duramen boiler/7/state in:off --every 1d --from 2024-05-01
  duramen series aggregate plant.duramen boiler/7/temp mean --with boiler/8/temp --every 1h

What can be computed: count, sum, mean, twmean (weighted by the time that values held), twlinear
(the same along straight lines), min, max, first, last, delta (above the last value before the
window), rate (that per second), stddev, p0 to p100 (a percentile), in:VALUE (seconds that the value
was so, read as a value of the type of each series).

Windows are a number and us, ms, s, m or h, counted from 1970, or d, w, mo or y of the calendar.
What fills a window may be beside the span: previous is the last window before that has a value,
linear the line between the windows before and behind.";

/// Print what the points of windows of time come to
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Aggregate {
    #[command(flatten)]
    series: SeriesAt,
    /// Also this series, on the same windows; may be given several times
    #[arg(long = "with", value_name = "TAG")]
    with: Vec<String>,
    /// What to compute
    #[arg(value_name = "WHAT", default_values = ["count", "mean", "min", "max"])]
    what: Vec<String>,
    /// How long windows are
    #[arg(long, value_name = "WINDOW")]
    every: String,
    /// The time zone whose calendar counts
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    zone: String,
    #[command(flatten)]
    span: Span,
    /// What stands in windows without points: none leaves them out; or a number
    #[arg(long, value_name = "none|null|previous|linear|NUMBER", default_value = "none",
        allow_hyphen_values = true, value_parser = fill)]
    fill: Fill,
    /// Which points count
    #[arg(long, value_enum, default_value = "good")]
    quality: Quality,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Quality {
    /// Those of good quality
    Good,
    /// Those of good or uncertain quality
    Usable,
    /// All of them
    All,
}

impl Quality {
    pub(super) fn filter(self) -> QualityFilter {
        match self {
            Self::Good => QualityFilter::Good,
            Self::Usable => QualityFilter::Usable,
            Self::All => QualityFilter::All,
        }
    }
}

fn fill(text: &str) -> Result<Fill, String> {
    Ok(match text {
        "none" => Fill::None,
        "null" => Fill::Null,
        "previous" => Fill::Previous,
        "linear" => Fill::Linear,
        number => Fill::Value(number.parse().map_err(|_| {
            format!("{text:?} is neither none, null, previous nor linear, nor a number")
        })?),
    })
}

/// What is there for a second time.
fn twice<'a>(names: &[&'a String]) -> Option<&'a String> {
    let mut left = names.iter().enumerate();
    left.find_map(|(at, name)| names[..at].contains(name).then_some(*name))
}

impl Aggregate {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let names: Vec<&String> = std::iter::once(&self.series.name).chain(&self.with).collect();
        if let Some(name) = twice(&names).or_else(|| twice(&self.what.iter().collect::<Vec<_>>())) {
            return Err(Failure::Usage(format!("{name:?} is there twice: once is enough")));
        }
        let bounds = self.span.bounds()?;
        let snapshot = self.series.snapshot(session)?;
        for name in &names {
            let series = snapshot.series(name).or_meant(&snapshot, name)?;
            self.check_states(series.info())?;
        }
        let options = AggregateOptions {
            fill: self.fill,
            quality: self.quality.filter(),
            ..AggregateOptions::new(
                self.what.iter().map(|what| parse(what)).collect::<Result<_, _>>()?,
                Windows::parse(&self.every, &self.zone)?,
            )
        };
        if self.with.is_empty() {
            let table = snapshot.series(&self.series.name)?.aggregate(bounds, &options)?;
            Self::print(&table, &self.what, (&options, output))?;
            return Ok(Success::Done);
        }
        let grid = snapshot.aggregate_series(&names, bounds, &options)?;
        let table = WindowTable {
            starts: grid.starts,
            columns: grid.series.into_iter().flatten().collect(),
        };
        let said = names
            .iter()
            .flat_map(|name| self.what.iter().map(move |what| format!("{name} {what}")));
        Self::print(&table, &said.collect::<Vec<_>>(), (&options, output))?;
        Ok(Success::Done)
    }

    /// Refuses a state that no value of a series can be.
    fn check_states(&self, series: &SeriesInfo) -> Result<()> {
        for state in self.what.iter().filter_map(|what| what.strip_prefix("in:")) {
            let value = Written::Text(state.to_owned()).of_type(series.definition.value_type);
            value.map_err(|error: Error| {
                let error = error.in_context(format!("series {:?}", series.name));
                Failure::Usage(error.message().to_owned())
            })?;
        }
        Ok(())
    }

    /// Prints a table, of which the columns have these names.
    fn print(
        table: &WindowTable,
        names: &[String],
        (options, output): (&AggregateOptions, &mut Output),
    ) -> Result<()> {
        let shown = |row: usize, column: usize| {
            let value = table.columns[column].get(row)?;
            let is_duration = matches!(
                options.aggregates[column % options.aggregates.len()],
                What::DurationIn(_)
            );
            Some(if is_duration { seconds(&value) } else { value })
        };
        if !output.style.json {
            print_row(output, std::iter::once("start").chain(names.iter().map(String::as_str)))?;
        }
        for (row, start) in table.starts.iter().enumerate() {
            let start = time_text(Micros(*start));
            let cells = (0..table.columns.len()).map(|column| shown(row, column));
            if output.style.json {
                let row = Row { start, names, cells: cells.collect() };
                output.line(serde_json::to_string(&row).map_err(std::io::Error::from)?)?;
            } else {
                let cells = cells.map(|cell| cell.map_or(String::new(), |cell| cell.to_string()));
                print_row(output, std::iter::once(start).chain(cells))?;
            }
        }
        Ok(())
    }
}

/// Prints a line of CSV.
fn print_row(output: &mut Output, cells: impl Iterator<Item = impl AsRef<[u8]>>) -> Result<()> {
    let mut row = csv::Writer::from_writer(output.stream());
    row.write_record(cells).map_err(std::io::Error::from)?;
    Ok(row.flush()?)
}

/// One window in JSON.
struct Row<'a> {
    start: String,
    names: &'a [String],
    cells: Vec<Option<SeriesValue>>,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("start", &self.start)?;
        for (name, cell) in self.names.iter().zip(&self.cells) {
            map.serialize_entry(name, &cell.clone().map(JsonValue))?;
        }
        map.end()
    }
}

#[expect(clippy::cast_precision_loss, reason = "seconds with their fraction")]
pub(super) fn seconds(micros: &SeriesValue) -> SeriesValue {
    match micros {
        SeriesValue::I64(micros) => (*micros as f64 / 1e6).into(),
        other => other.clone(),
    }
}

pub(super) fn parse(text: &str) -> Result<What, Failure> {
    // Of each series it is the value of its type that is written so.
    if let Some(state) = text.strip_prefix("in:") {
        return Ok(What::DurationIn(state.into()));
    }
    Ok(match text {
        "count" => What::Count,
        "sum" => What::Sum,
        "mean" => What::Mean,
        "twmean" => What::TimeWeightedMean(Hold::Step),
        "twlinear" => What::TimeWeightedMean(Hold::Linear),
        "min" => What::Min,
        "max" => What::Max,
        "first" => What::First,
        "last" => What::Last,
        "delta" => What::Delta,
        "rate" => What::Rate,
        "stddev" => What::StdDev,
        other => {
            let percent = other.strip_prefix('p').and_then(|digits| digits.parse::<f64>().ok());
            let Some(percent) = percent.filter(|percent| (0.0..=100.0).contains(percent)) else {
                let message = format!("{text:?} is nothing to compute: see --help");
                return Err(Failure::Usage(message));
            };
            What::Percentile(percent / 100.0)
        }
    })
}
