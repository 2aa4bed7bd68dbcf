//! `duramen records get`: records by their keys.

use std::collections::BTreeSet;

use clap::Args;
use duramen::{Error, ErrorKind, Key};

use super::line::Line;
use super::{CollectionAt, quoted};
use crate::Result;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records get shop.duramen players ann
  duramen records get shop.duramen players ann bob
  duramen records get shop.duramen players ann --at 2024-05-01
  duramen records get shop.duramen players ann --json

With --json a record comes with its key and version. Of several records those that are there are
printed; the others are told, and the exit code is 10.";

/// Print records of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Get {
    #[command(flatten)]
    collection: CollectionAt,
    /// The records' keys
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    keys: Vec<String>,
}

impl Get {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let records = self.collection.open(session)?;
        let keys = self.keys.iter().map(|text| records.key_kind().parse(text));
        let mut missing = BTreeSet::new();
        for key in keys.collect::<duramen::Result<Vec<Key>>>()? {
            match records.get(&key)? {
                Some(record) if output.style.json => output.record(&Line::new(record)?)?,
                Some(record) => output.line(record.json)?,
                None => {
                    missing.insert(key.to_string());
                }
            }
        }
        if missing.is_empty() {
            return Ok(Success::Done);
        }
        let message = format!(
            "there is no record {} in collection {:?} at revision {}: \"duramen records ls\" lists \
             those there are",
            quoted(&missing),
            self.collection.name(),
            records.revision()
        );
        Err(Error::new(ErrorKind::NotFound, message).into())
    }
}
