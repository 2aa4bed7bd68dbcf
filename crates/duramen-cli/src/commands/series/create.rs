//! `duramen series create`: a new series.

use clap::Args;
use duramen::{SeriesDefinition, ValueType};

use super::ls::label;
use crate::Result;
use crate::arguments::WriteDatabase;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series create plant.duramen boiler/7/temp --unit C --label site=north
  duramen series create plant.duramen boiler/7/state --type string";

/// Make a series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Create {
    #[command(flatten)]
    database: WriteDatabase,
    /// A name for the series
    #[arg(value_name = "SERIES")]
    name: String,
    /// The type of its values: f64, f32, i64, bool or string
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    value_type: String,
    /// What the values count or measure
    #[arg(long, default_value = "", hide_default_value = true)]
    unit: String,
    /// What it is, for people
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
    /// A label; may be given several times
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
}

impl Create {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let definition = SeriesDefinition {
            unit: self.unit.clone(),
            description: self.description.clone(),
            labels: self.labels.iter().cloned().collect(),
            ..SeriesDefinition::new(ValueType::parse(&self.value_type)?)
        };
        let database = self.database.open_or_create(session)?;
        database.create_series(&self.name, &definition)?;
        output.line(format_args!("created the series {}", self.name))?;
        Ok(Success::Done)
    }
}
