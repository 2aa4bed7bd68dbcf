//! `duramen series ls`: the series of a database.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clap::Args;
use duramen::{SeriesFilter, SeriesInfo, ValueType};
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen series ls plant.duramen
  duramen series ls plant.duramen 'boiler/*/temp'
  duramen series ls plant.duramen --label site=north --type f64 --json

In a pattern ? stands for a character and * for any number of them, none of them /, and ** for any
number of any characters.";

/// List the series of a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ls {
    #[command(flatten)]
    database: ReadDatabase,
    /// Only those whose names are of this pattern
    #[arg(value_name = "PATTERN")]
    pattern: Option<String>,
    /// Only those with this label; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Only those of this type: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE")]
    value_type: Option<String>,
}

/// A name and a value.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("{text:?}: write a name, = and a value"))?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Ls {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let value_type = self.value_type.as_deref().map(ValueType::parse).transpose()?;
        let labels = self.labels.iter().cloned().collect();
        let filter = SeriesFilter { glob: self.pattern.clone(), labels, value_type };
        for info in self.database.open(session)?.find_series(&filter)? {
            output.record(&Line::from(&info))?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    series: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: &'a BTreeMap<String, String>,
    created: String,
}

impl<'a> From<&'a SeriesInfo> for Line<'a> {
    fn from(info: &'a SeriesInfo) -> Self {
        let definition = &info.definition;
        Self {
            series: &info.name,
            r#type: definition.value_type.name(),
            unit: &definition.unit,
            description: &definition.description,
            labels: &definition.labels,
            created: moment::format(info.created),
        }
    }
}

impl Record for Line<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{}  {}", one_line(self.series), self.r#type)?;
        if !self.unit.is_empty() {
            write!(out, "  {}", one_line(self.unit))?;
        }
        for (name, value) in self.labels {
            write!(out, "  {}={}", one_line(name), one_line(value))?;
        }
        writeln!(out)
    }
}
