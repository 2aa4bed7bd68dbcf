//! `duramen series top`: the series with the greatest values.

use std::io::{self, Write};

use clap::Args;
use duramen::{Aggregate, SeriesFilter, SeriesValue, TopOptions, ValueType};
use serde::{Serialize, Serializer};

use super::aggregate::{Quality, parse, seconds};
use super::point::JsonValue;
use super::{SeriesMoment, Span, parse_label, parse_type};
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen series top plant.duramen max
  duramen series top plant.duramen mean 'boiler/*/temp' --limit 3 --from 2024-05-01
  duramen series top plant.duramen count --label site=north --least

What can be compared is what `duramen series aggregate` computes, as far as that is a number. A line
is the name of a series and the value.";

/// Print the series with the greatest values over a span of time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Top {
    #[command(flatten)]
    database: ReadDatabase,
    /// What to compare
    #[arg(value_name = "WHAT")]
    what: String,
    /// A pattern of names; all series if there is none
    #[arg(value_name = "GLOB")]
    glob: Option<String>,
    /// Only series with this label
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
    /// Only series of this type: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE", value_parser = parse_type)]
    value_type: Option<ValueType>,
    #[command(flatten)]
    span: Span,
    /// At most this many
    #[arg(long, value_name = "COUNT", default_value_t = 10, allow_negative_numbers = true)]
    limit: usize,
    /// Those with the least values
    #[arg(long)]
    least: bool,
    /// Which points count
    #[arg(long, value_enum, default_value = "good")]
    quality: Quality,
    #[command(flatten)]
    at: SeriesMoment,
}

impl Top {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let snapshot = self.at.of(&self.database.open(session)?)?;
        let aggregate = parse(&self.what)?;
        let is_duration = matches!(aggregate, Aggregate::DurationIn(_));
        let labels = self.labels.iter().cloned().collect();
        let filter = SeriesFilter { glob: self.glob.clone(), labels, value_type: self.value_type };
        let options = TopOptions {
            quality: self.quality.filter(),
            count: self.limit,
            least: self.least,
            ..TopOptions::new(aggregate)
        };
        let found = snapshot.top_series(&filter, self.span.bounds()?, &options)?;
        if let Some(glob) = self.glob.as_ref().filter(|_| found.is_empty())
            && snapshot.find_series(&filter)?.is_empty()
        {
            return Err(meant::no_series_like(&snapshot, glob).into());
        }
        for (info, value) in found {
            let value = if is_duration { seconds(&value) } else { value };
            output.record(&Line { name: &info.name, value })?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(serialize_with = "as_json")]
    value: SeriesValue,
}

fn as_json<S: Serializer>(value: &SeriesValue, serializer: S) -> Result<S::Ok, S::Error> {
    JsonValue(value.clone()).serialize(serializer)
}

impl Record for Line<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let h = palette.heading;
        writeln!(out, "{h}{}{h:#}  {}", one_line(self.name), self.value)
    }
}
