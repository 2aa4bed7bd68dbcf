//! `duramen series export`: points as CSV or NDJSON, as `duramen series import` reads them.

use clap::{Args, ValueEnum};
use duramen::SeriesFilter;

use super::line::{PointLine, time};
use super::span::Span;
use crate::Result;
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Style};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series export plant.duramen > all.csv
  duramen series export plant.duramen 'boiler/**' --format ndjson --from 2024-05-01";

/// Print series as a CSV table or as NDJSON, a point a line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    #[command(flatten)]
    database: ReadDatabase,
    /// The series whose names are of this pattern; see `duramen series ls`
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    #[command(flatten)]
    span: Span,
    /// As what
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table with the columns series, time, value and quality
    Csv,
    /// A JSON object a line
    Ndjson,
}

impl Export {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let bounds = self.span.bounds()?;
        let snapshot = self.database.open(session)?.snapshot();
        let filter = SeriesFilter { glob: self.pattern.clone(), ..SeriesFilter::default() };
        if self.format == Format::Csv && !output.style.json {
            output.line("series,time,value,quality")?;
        }
        let is_table = self.format == Format::Csv && !output.style.json;
        for info in snapshot.find_series(&filter)? {
            for points in snapshot.series(&info.name)?.range(bounds)? {
                for point in points?.iter() {
                    if is_table {
                        let quality = point.quality.0.to_string();
                        let (time, value) = (time(point.time), point.value.to_string());
                        let mut row = csv::Writer::from_writer(output.stream());
                        let written = row.write_record([&info.name, &time, &value, &quality]);
                        written.map_err(std::io::Error::from)?;
                        row.flush()?;
                    } else {
                        let line = PointLine::new(Some(&info.name), point);
                        let style = Style { json: true, ..output.style };
                        Output::new(output.stream(), style).record(&line)?;
                    }
                }
            }
        }
        Ok(Success::Done)
    }
}
