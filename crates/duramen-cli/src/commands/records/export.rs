//! `duramen records export`: the records of a collection into a file.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use duramen::{CollectionSnapshot, Error, ErrorKind, Record, ScanOptions};
use duramen_sql::write_record;
use serde_json::value::RawValue;

use super::CollectionAt;
use super::import::{self, KEY_MEMBER, OWN_KEY_MEMBER};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile, progress};

const EXAMPLES: &str = "\
Examples:
  duramen records export shop.duramen players players.ndjson
  duramen records export shop.duramen players - --at 2024-05-01 --no-key
  duramen records export shop.duramen players players.csv

Each record comes with its key as the member _key, as an import takes it; a member of the record
that is called so comes as $._key. A CSV has a column for each field that any record has. Records
read back from NDJSON are the same; those read back from a CSV may be others: arrays and objects
stand in it as JSON text and come back as strings, texts like 1 or true become numbers and booleans,
and empty texts are as missing members.";

/// Write the records of a collection to a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    #[command(flatten)]
    collection: CollectionAt,
    /// The file, replaced if it is there; - is standard output
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// How the file is written; by default as its name ends, else ndjson
    #[arg(long)]
    format: Option<Format>,
    /// Leave the keys out, where the records have them in a field of their own
    #[arg(long)]
    no_key: bool,
}

/// How records are written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values, the names of the fields in the first line
    Csv,
}

impl Export {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let records = self.collection.open(session)?;
        if self.file == Path::new("-") {
            self.write(&records, output.stream())?;
        } else {
            outfile::replace(&self.file, |out| self.write(&records, out))?;
        }
        Ok(Success::Done)
    }

    fn write(&self, records: &CollectionSnapshot, out: &mut dyn Write) -> Result<()> {
        match self.format()? {
            Format::Ndjson => self.each(records, |record| {
                if self.no_key {
                    return Ok(writeln!(out, "{}", record.json)?);
                }
                let key = serde_json::Value::from(record.key.to_string()).to_string();
                Ok(write_record(out, &key, &record.json)?)
            }),
            Format::Csv => self.write_csv(records, out),
        }
    }

    /// The format that is given, or as the name of the file ends.
    fn format(&self) -> Result<Format> {
        if let Some(given) = self.format {
            return Ok(given);
        }
        match import::Format::of(None, &self.file) {
            import::Format::Ndjson => Ok(Format::Ndjson),
            import::Format::Csv => Ok(Format::Csv),
            import::Format::Parquet => {
                let message = format!(
                    "SQL writes parquet: duramen sql DB \"COPY {} TO 'FILE.parquet'\"",
                    self.collection.name()
                );
                Err(Failure::Usage(message))
            }
        }
    }

    /// Two passes: the first finds the columns.
    fn write_csv(&self, records: &CollectionSnapshot, out: &mut dyn Write) -> Result<()> {
        let mut columns = BTreeSet::new();
        self.each(records, |record| {
            columns.extend(members(&record)?.into_iter().map(|(name, _)| name));
            Ok(())
        })?;
        let mut csv = csv::Writer::from_writer(out);
        let key = (!self.no_key).then_some(KEY_MEMBER);
        if key.is_some() && columns.contains(OWN_KEY_MEMBER) {
            let message = format!(
                "a record has a member {OWN_KEY_MEMBER:?}, which in a CSV means one that is called \
                 {KEY_MEMBER:?}: export NDJSON, or leave the keys out (--no-key)"
            );
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        // A member that is called as the key is one of the record.
        let is_twice = |column: &str| Some(column) == key;
        let names = columns.iter().map(String::as_str);
        let names = names.map(|name| if is_twice(name) { OWN_KEY_MEMBER } else { name });
        let header = key.into_iter().chain(names);
        csv.write_record(header).map_err(outfile::of_csv)?;
        self.each(records, |record| {
            let found = members(&record)?;
            let key = (!self.no_key).then(|| record.key.to_string());
            let cells = columns.iter().map(|column| {
                found.iter().find(|(name, _)| name == column).map_or(String::new(), |(_, value)| {
                    serde_json::from_str::<String>(value).unwrap_or_else(|_| value.clone())
                })
            });
            csv.write_record(key.into_iter().chain(cells)).map_err(outfile::of_csv)
        })?;
        Ok(csv.flush()?)
    }

    /// Reads the records one after the other, with progress, until Ctrl-C.
    fn each(
        &self,
        records: &CollectionSnapshot,
        mut write: impl FnMut(Record) -> Result<()>,
    ) -> Result<()> {
        let interruption = Interruption::of_process();
        let bar = progress::bar("exporting", Some(records.count()?));
        for record in records.scan(&ScanOptions::default())? {
            write(record?)?;
            bar.inc(1);
            if interruption.is_asked() {
                let is_file = self.file != Path::new("-");
                let left = if is_file { "nothing was written" } else { "only a part was printed" };
                return Err(Failure::Interrupted(format!("interrupted: {left}")));
            }
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// The members of a record, their values as JSON text.
fn members(record: &Record) -> Result<Vec<(String, String)>> {
    let members: std::collections::BTreeMap<String, &RawValue> =
        serde_json::from_str(&record.json).map_err(io::Error::from)?;
    Ok(members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect())
}
