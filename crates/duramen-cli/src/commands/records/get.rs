//! `duramen records get`: records by their keys.

use clap::Args;
use duramen::{Error, ErrorKind};

use super::CollectionAt;
use super::line::Line;
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

With --json a record comes with its key and version.";

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
        for text in &self.keys {
            let record = records.get(records.key_kind().parse(text)?)?.ok_or_else(|| {
                let name = self.collection.name();
                let message = format!(
                    "there is no record {text} in collection {name:?} at revision {}: \"duramen \
                     records ls\" lists those there are",
                    records.revision()
                );
                Error::new(ErrorKind::NotFound, message)
            })?;
            if output.style.json {
                output.record(&Line::new(record)?)?;
            } else {
                output.line(record.json)?;
            }
        }
        Ok(Success::Done)
    }
}
