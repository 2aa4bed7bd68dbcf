//! `duramen series ls`: which series there are.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use duramen::{Lossy, SeriesInfo, Thinning};
use serde::Serialize;

use super::Which;
use crate::arguments::ReadDatabase;
use crate::commands::retain::format_span;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen series ls plant.duramen
  duramen series ls plant.duramen 'boiler/*/temp' --label site=north
  duramen series ls plant.duramen --type bool --json

A line is the name of a series, the type of its values, their unit, its labels and what it is.";

/// List series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ls {
    #[command(flatten)]
    database: ReadDatabase,
    #[command(flatten)]
    which: Which,
}

impl Ls {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        for info in self.which.find(&self.database.open(session)?.snapshot())? {
            output.record(&Line::new(&info))?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    value_type: &'static str,
    unit: &'a str,
    description: &'a str,
    labels: &'a BTreeMap<String, String>,
    display: Option<(f64, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lossy: Option<String>,
    created: String,
    changed: String,
}

impl<'a> Line<'a> {
    fn new(info: &'a SeriesInfo) -> Self {
        let definition = &info.definition;
        Self {
            name: &info.name,
            value_type: definition.value_type.name(),
            unit: &definition.unit,
            description: &definition.description,
            labels: &definition.labels,
            display: definition.display,
            lossy: definition.lossy.map(lossy_text),
            created: moment::format(info.created),
            changed: moment::format(info.changed),
        }
    }
}

/// As `series create --lossy` takes it.
fn lossy_text(lossy: Lossy) -> String {
    match lossy {
        Lossy::Thinned(Thinning::SwingingDoor { tolerance, gap_us }) => {
            format!("door:{tolerance}{}", gap_text(gap_us))
        }
        Lossy::Thinned(Thinning::DeadBand { band, gap_us }) => {
            format!("band:{band}{}", gap_text(gap_us))
        }
        Lossy::Quantised { low, high } => format!("steps:{low}..{high}"),
    }
}

fn gap_text(gap_us: Option<i64>) -> String {
    let gap = gap_us.map(|gap| Duration::from_micros(gap.unsigned_abs()));
    gap.map_or(String::new(), |gap| format!(":{}", format_span(gap)))
}

impl Record for Line<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let h = palette.heading;
        write!(out, "{h}{}{h:#}  {}", one_line(self.name), self.value_type)?;
        let labels = self.labels.iter().map(|(name, value)| format!("{name}={value}"));
        let labels = labels.collect::<Vec<_>>().join(" ");
        for text in [self.unit, &labels, self.description] {
            if !text.is_empty() {
                write!(out, "  {}", one_line(text))?;
            }
        }
        if let Some(lossy) = &self.lossy {
            write!(out, "  lossy={lossy}")?;
        }
        writeln!(out)
    }
}
