//! `duramen series retain`: for how long points are kept, and which rollups beside them.

use std::io::{self, Write};

use clap::Args;
use duramen::{Error, ErrorKind, Rollup, SeriesDefinition, SeriesInfo};
use serde::Serialize;

use super::Which;
use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::commands::retain::{format_span, parse_span};
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series retain plant.duramen 'boiler/**'                  what is kept
  duramen series retain plant.duramen 'boiler/**' --raw 30d --rollup 1m:52w --rollup 1h
  duramen series retain plant.duramen boiler/7/temp --raw all --rollup none
  duramen compact plant.duramen

A SPAN is a number with s, m, h, d or w after it. Points are seen for so long after their time;
their space comes back when segments are merged, which `duramen compact` does on demand, but not
before every rollup has them.

A rollup keeps what the points of each window come to: count, sum, least, greatest, first, last and
deviation, for its own SPAN or for ever. `series aggregate` reads it where windows are made of its
windows. It is made as points are written, late ones too; points that were there before are caught
up with at the next checkpoints. What is said holds for the series that there are, not for later
ones.";

/// Show or set for how long points are kept, and which rollups
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Retain {
    #[command(flatten)]
    database: WriteDatabase,
    #[command(flatten)]
    which: Which,
    /// Keep points for so long, or all of them
    #[arg(long, value_name = "SPAN|all")]
    raw: Option<String>,
    /// Keep a rollup with windows of a width, for so long if that is said, or none; may be given
    /// several times, and takes the place of all there were
    #[arg(long = "rollup", value_name = "WIDTH[:SPAN]|none")]
    rollups: Vec<String>,
    #[command(flatten)]
    note: Note,
}

impl Retain {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let found = if self.raw.is_none() && self.rollups.is_empty() {
            self.which.find(&self.database.read(session)?)?
        } else {
            if self.which.is_everything() {
                let message = "say which series this is for: '**' means all of them";
                return Err(Error::new(ErrorKind::Invalid, message).into());
            }
            let database = self.database.open(session)?;
            let mut found = self.which.find(&database)?;
            let mut transaction = database.transaction();
            for info in &mut found {
                self.define(&mut info.definition)?;
                transaction.change_series(&info.name, &info.definition)?;
            }
            transaction.commit(&self.note.options())?;
            found
        };
        for info in &found {
            output.record(&Line::new(info))?;
        }
        Ok(Success::Done)
    }

    /// Puts what is said into a definition.
    fn define(&self, definition: &mut SeriesDefinition) -> Result<()> {
        definition.keep = match self.raw.as_deref() {
            None => definition.keep,
            Some("all") => None,
            Some(span) => Some(parse_span(span)?),
        };
        definition.rollups = match self.rollups.as_slice() {
            [] => return Ok(()),
            [none] if none == "none" => Vec::new(),
            all => all.iter().map(|text| parse_rollup(text)).collect::<Result<_>>()?,
        };
        Ok(())
    }
}

fn parse_rollup(text: &str) -> Result<Rollup> {
    if text == "none" {
        let message = "--rollup none goes with no other --rollup".to_owned();
        return Err(Error::new(ErrorKind::Invalid, message).into());
    }
    let (width, span) = match text.split_once(':') {
        Some((width, span)) => (width, Some(span)),
        None => (text, None),
    };
    let rollup = Rollup::new(parse_span(width)?);
    Ok(match span {
        Some(span) => rollup.keeping(parse_span(span)?),
        None => rollup,
    })
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    /// For how long points are kept, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<u128>,
    rollups: Vec<RollupLine>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct RollupLine {
    /// In microseconds.
    width: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<u128>,
}

impl<'a> Line<'a> {
    fn new(info: &'a SeriesInfo) -> Self {
        let definition = &info.definition;
        let rollup = |rollup: &Rollup| RollupLine {
            width: rollup.width.as_micros(),
            keep: rollup.keep.map(|keep| keep.as_micros()),
        };
        let points = match definition.keep {
            Some(keep) => format!("points for {}", format_span(keep)),
            None => "all points".to_owned(),
        };
        let said = |rollup: &Rollup| {
            let width = format_span(rollup.width);
            match rollup.keep {
                Some(keep) => format!(", windows of {width} for {}", format_span(keep)),
                None => format!(", windows of {width} for ever"),
            }
        };
        let rollups: String = definition.rollups.iter().map(said).collect();
        Self {
            name: &info.name,
            raw: definition.keep.map(|keep| keep.as_micros()),
            rollups: definition.rollups.iter().map(rollup).collect(),
            text: format!("{points}{rollups}"),
        }
    }
}

impl Record for Line<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  keeps {}", self.name, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_rollup_has_a_width_and_may_have_a_span() {
        let hour = Duration::from_hours(1);
        assert_eq!(parse_rollup("1h").unwrap(), Rollup::new(hour));
        assert_eq!(parse_rollup("60m:2d").unwrap(), Rollup::new(hour).keeping(48 * hour));
        for text in ["", "1", "1h:", ":1h", "none", "1h:2d:3d"] {
            parse_rollup(text).unwrap_err();
        }
    }
}
