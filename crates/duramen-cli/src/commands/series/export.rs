//! `duramen series export`: points into a file.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use duramen::{DatabaseSnapshot, Error, ErrorKind, Points, SeriesInfo, SeriesRange};

use super::import;
use super::point::{self, Line};
use super::{Span, Which};
use crate::arguments::ReadDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile, progress};

const EXAMPLES: &str = "\
Examples:
  duramen series export plant.duramen points.ndjson
  duramen series export plant.duramen boiler.csv 'boiler/**' --from 2024-05-01 --wide
  duramen series export plant.duramen - boiler/7/temp --format csv

Each line is a point with its name, time, value, quality and type of value, series after series: an
import of it makes series with the same points. A wide CSV has a column of times and one for each
series; it leaves qualities and types out. Units, labels and the like, and series without points,
are in what duramen dump and duramen backup write.";

/// Write the points of series to a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    #[command(flatten)]
    database: ReadDatabase,
    /// The file, replaced if it is there; - is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    span: Span,
    /// How the file is written; by default as its name ends, else ndjson
    #[arg(long)]
    format: Option<Format>,
    /// A CSV with a column for each series
    #[arg(long)]
    wide: bool,
}

/// How points are written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values, the names of the columns in the first line
    Csv,
}

impl Format {
    /// The format of a file, given or as its name ends.
    fn of(given: Option<Self>, file: &Path) -> Result<Self> {
        if let Some(given) = given {
            return Ok(given);
        }
        match import::Format::of(None, file) {
            import::Format::Ndjson => Ok(Self::Ndjson),
            import::Format::Csv => Ok(Self::Csv),
            import::Format::LineProtocol => {
                let message = "points are exported as csv or ndjson: name one with --format";
                Err(Error::new(ErrorKind::Unsupported, message).into())
            }
        }
    }
}

impl Export {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        if self.wide && self.format == Some(Format::Ndjson) {
            let message = "--wide is a form of CSV: leave out --format ndjson".to_owned();
            return Err(Failure::Usage(message));
        }
        let database = self.database.open(session)?;
        let snapshot = database.snapshot();
        let found = self.which.find(&snapshot)?;
        let write = |out: &mut dyn Write| self.write((&snapshot, &found), out);
        if self.file == Path::new("-") {
            write(output.stream())?;
        } else {
            outfile::replace(&self.file, write)?;
        }
        Ok(Success::Done)
    }

    fn write(
        &self,
        (snapshot, found): (&DatabaseSnapshot, &[SeriesInfo]),
        out: &mut dyn Write,
    ) -> Result<()> {
        let bounds = self.span.bounds()?;
        let ranges = found.iter().map(|info| snapshot.series(&info.name)?.range(bounds));
        if self.wide {
            return wide(found, ranges.collect::<duramen::Result<_>>()?, out);
        }
        match Format::of(self.format, &self.file)? {
            Format::Ndjson => each(found, ranges, |name, points| {
                for point in points.iter() {
                    serde_json::to_writer(&mut *out, &Line::typed(name, point))
                        .map_err(std::io::Error::from)?;
                    out.write_all(b"\n")?;
                }
                Ok(())
            }),
            Format::Csv => {
                let mut csv = csv::Writer::from_writer(out);
                let header = ["name", "time", "value", "quality", "value_type"];
                csv.write_record(header).map_err(outfile::of_csv)?;
                each(found, ranges, |name, points| {
                    for found in points.iter() {
                        let time = point::time_text(found.time);
                        let (value, quality) =
                            (point::text(&found.value), found.quality.0.to_string());
                        let value_type = found.value.value_type().to_string();
                        let cells = [name, &time, &value, &quality, &value_type];
                        csv.write_record(cells).map_err(outfile::of_csv)?;
                    }
                    Ok(())
                })?;
                Ok(csv.flush()?)
            }
        }
    }
}

/// Reads series after series, with progress, until Ctrl-C.
fn each(
    found: &[SeriesInfo],
    ranges: impl Iterator<Item = duramen::Result<SeriesRange>>,
    mut write: impl FnMut(&str, &Points) -> Result<()>,
) -> Result<()> {
    let interruption = Interruption::of_process();
    let bar = progress::bar("exporting points", None);
    for (info, range) in found.iter().zip(ranges) {
        for points in range? {
            let points = points?;
            write(&info.name, &points)?;
            bar.inc(points.len() as u64);
            check(&interruption)?;
        }
    }
    bar.finish_and_clear();
    Ok(())
}

fn check(interruption: &Interruption) -> Result<()> {
    if interruption.is_asked() {
        return Err(Failure::Interrupted("interrupted: nothing was written".to_owned()));
    }
    Ok(())
}

/// The points of one series that are still to be written, from the first on.
struct Column {
    range: SeriesRange,
    points: Points,
    at: usize,
}

impl Column {
    /// The time of the next point.
    fn next_time(&mut self) -> duramen::Result<Option<i64>> {
        while self.at >= self.points.len() {
            let Some(points) = self.range.next() else { return Ok(None) };
            (self.points, self.at) = (points?, 0);
        }
        Ok(self.points.times().get(self.at).copied())
    }
}

/// A line for each time at which any of the series has a point.
fn wide(found: &[SeriesInfo], ranges: Vec<SeriesRange>, out: &mut dyn Write) -> Result<()> {
    if let Some(info) = found.iter().find(|info| !import::is_column_of(&info.name)) {
        return Err(no_column(&info.name).into());
    }
    let interruption = Interruption::of_process();
    let bar = progress::bar("exporting lines", None);
    let begin = |(range, info): (SeriesRange, &SeriesInfo)| {
        let points = Points::new(info.definition.value_type);
        Column { range, points, at: 0 }
    };
    let mut columns: Vec<Column> = ranges.into_iter().zip(found).map(begin).collect();
    let mut csv = csv::Writer::from_writer(out);
    let names = found.iter().map(|info| info.name.as_str());
    csv.write_record(std::iter::once("time").chain(names)).map_err(outfile::of_csv)?;
    loop {
        let times = columns.iter_mut().map(Column::next_time);
        let times = times.collect::<duramen::Result<Vec<_>>>()?;
        let Some(&next) = times.iter().flatten().min() else { break };
        let mut line = vec![point::time_text(duramen::Micros(next))];
        for ((column, time), info) in columns.iter_mut().zip(times).zip(found) {
            let is_next = time == Some(next);
            let value = if is_next { column.points.values().get(column.at) } else { None };
            let text = value.map(|value| point::text(&value));
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(blank(&info.name, &line[0]).into());
            }
            line.push(text.unwrap_or_default());
            column.at += usize::from(is_next);
        }
        csv.write_record(&line).map_err(outfile::of_csv)?;
        bar.inc(1);
        check(&interruption)?;
    }
    bar.finish_and_clear();
    Ok(csv.flush()?)
}

fn no_column(name: &str) -> Error {
    let message = format!(
        "a column called {name:?} of a wide CSV is not read back as the series of that name: \
         export it without --wide"
    );
    Error::new(ErrorKind::Invalid, message)
}

fn blank(name: &str, time: &str) -> Error {
    let message = format!(
        "series {name:?} has a blank text at {time}, which a wide CSV does not tell from no point: \
         export it without --wide"
    );
    Error::new(ErrorKind::Invalid, message)
}
