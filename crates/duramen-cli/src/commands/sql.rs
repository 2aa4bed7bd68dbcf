//! `duramen sql`: the answer to a query.

use std::path::PathBuf;

use clap::Args;
use duramen::{Error, ErrorKind};
use duramen_sql::{Format, SessionOptions};

use crate::arguments::{ReadDatabase, value};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile};

const EXAMPLES: &str = "\
Examples:
  duramen sql shop.duramen 'SELECT world, count(*), avg(score) FROM players GROUP BY world'
  duramen sql shop.duramen \"SELECT * FROM players FOR SYSTEM_TIME AS OF '2024-05-01'\"
  duramen sql shop.duramen 'SELECT now.score - old.score FROM players now
    JOIN players FOR SYSTEM_TIME AS OF 7 old ON now._key = old._key'
  duramen sql shop.duramen 'SELECT item FROM inventory.\"$.data[*]\"' --format csv
  duramen sql shop.duramen 'SELECT * FROM players' --format parquet --output players.parquet
  duramen sql shop.duramen 'SELECT column_name, data_type FROM information_schema.columns'

Each collection is a table: its columns are _key, _version, _revision, _timestamp and the fields of
its records, as they are written. So is each array in a document, by the document and a path. Fields
of mixed type are JSON text. FOR SYSTEM_TIME AS OF takes a revision, or a time or tag in quotes.";

/// Answer a query in SQL, now or as of any revision
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Sql {
    #[command(flatten)]
    database: ReadDatabase,
    /// A SELECT, EXPLAIN or DESCRIBE; - is standard input
    #[arg(value_name = "QUERY")]
    query: String,
    /// How the answer is written: table, json, ndjson, csv or parquet
    #[arg(long, value_name = "FORMAT", default_value_t)]
    format: Format,
    /// Write the answer to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Memory that the query may hold before it uses files, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256)]
    memory: u32,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
}

impl Sql {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let format = if output.style.json { Format::Ndjson } else { self.format };
        if format == Format::Parquet && self.output.is_none() && output.style.terminal {
            let message = "parquet is not for a terminal: give a file (--output FILE)";
            return Err(Failure::Usage(message.to_owned()));
        }
        let query = String::from_utf8(value::read(&self.query)?);
        let query = query.map_err(|error| {
            Error::new(ErrorKind::Invalid, "the query is not UTF-8").with_source(error)
        })?;
        let options = SessionOptions {
            memory_bytes: usize::try_from(u64::from(self.memory) << 20).unwrap_or(usize::MAX),
            timeout_ms: self.timeout.map(|seconds| u64::from(seconds) * 1_000),
            cancelled: Interruption::watch()?.flag(),
            ..SessionOptions::default()
        };
        let queries = duramen_sql::Session::new(self.database.open(session)?, options);
        let answer = queries.query(&query).map_err(stopped)?;
        match &self.output {
            None => answer.write(format, output.stream()).map_err(stopped)?,
            Some(path) => outfile::replace(path, |out| answer.write(format, out).map_err(stopped))?,
        }
        Ok(Success::Done)
    }
}

fn stopped(error: Error) -> Failure {
    match error.kind() {
        ErrorKind::Cancelled => Failure::Interrupted("interrupted: nothing was changed".to_owned()),
        _ => error.into(),
    }
}
