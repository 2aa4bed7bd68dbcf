//! `duramen series`: time series.

use clap::{Args, Subcommand};
use duramen::{Database, SeriesSnapshot};

use crate::Result;
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

mod aggregate;
mod append;
mod create;
mod export;
mod gathered;
mod import;
mod latest;
mod line;
mod ls;
mod plot;
mod range;
mod span;

const EXAMPLES: &str = "\
Examples:
  duramen series import plant.duramen readings.csv --create
  duramen series range plant.duramen boiler/7/temp --from 2024-05-01 --to 2024-05-02
  duramen series aggregate plant.duramen boiler/7/temp --every 1d --zone Europe/Berlin
  duramen series append plant.duramen boiler/7/temp 20.5
  duramen series plot plant.duramen boiler/7/temp

A series keeps points: a time, a value and a quality each. Times are in RFC 3339 form, or they are
microseconds since 1970; the newest write of a time holds.";

/// Read and write time series
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Series {
    #[command(subcommand)]
    command: SeriesCommand,
}

#[derive(Debug, Subcommand)]
enum SeriesCommand {
    Ls(ls::Ls),
    Create(create::Create),
    Append(append::Append),
    Range(range::Range),
    Latest(latest::Latest),
    Aggregate(Box<aggregate::Aggregate>),
    Plot(plot::Plot),
    Import(import::Import),
    Export(export::Export),
}

impl Series {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        match &self.command {
            SeriesCommand::Ls(command) => command.run(session, output),
            SeriesCommand::Create(command) => command.run(session, output),
            SeriesCommand::Append(command) => command.run(session, output),
            SeriesCommand::Range(command) => command.run(session, output),
            SeriesCommand::Latest(command) => command.run(session, output),
            SeriesCommand::Aggregate(command) => command.run(session, output),
            SeriesCommand::Plot(command) => command.run(session, output),
            SeriesCommand::Import(command) => command.run(session, output),
            SeriesCommand::Export(command) => command.run(session, output),
        }
    }
}

/// A series that is read.
#[derive(Debug, Args)]
struct ReadSeries {
    #[command(flatten)]
    database: ReadDatabase,
    /// The name of the series
    #[arg(value_name = "SERIES")]
    name: String,
}

impl ReadSeries {
    fn open(&self, session: &Session) -> Result<SeriesSnapshot> {
        let database: Database = self.database.open(session)?;
        Ok(database.series(&self.name)?.snapshot())
    }
}
