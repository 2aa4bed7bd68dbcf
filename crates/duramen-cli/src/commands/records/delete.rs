//! `duramen records delete`: records by their keys.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::Args;
use duramen::{Error, ErrorKind, Key};
use serde::Serialize;

use super::WriteCollection;
use crate::Result;
use crate::arguments::edit::Made;
use crate::exit::Success;
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records delete shop.duramen players ann
  duramen records delete shop.duramen players ann bob --message 'left the team'

All of them go in one commit. Their versions stay readable, and a key that comes back goes on
counting. Keys that no record has are told and change nothing; an error if none has one.";

/// Delete records of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Delete {
    #[command(flatten)]
    collection: WriteCollection,
    #[command(flatten)]
    made: Made,
    /// The records' keys
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    keys: Vec<String>,
}

impl Delete {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        // What is wrong with the command line is told before anything is opened.
        let timestamp = self.made.timestamp()?;
        let (collection, mut options) = self.collection.open(session)?;
        options.timestamp = timestamp;
        let keys = self.keys.iter().map(|text| collection.key_kind().parse(text));
        let keys = keys.collect::<duramen::Result<Vec<Key>>>()?;
        let versions = collection.versions(&keys)?;
        let missing = keys.iter().zip(versions).filter(|(_, version)| version.is_none());
        let missing: BTreeSet<String> = missing.map(|(key, _)| key.to_string()).collect();
        let name = collection.name();
        let deleted = collection.delete_many(&keys, &options)?;
        if deleted == 0 {
            let message = format!(
                "there is no record {} in collection {name:?}: \"duramen records ls\" lists those \
                 there are",
                quoted(&missing)
            );
            return Err(Error::new(ErrorKind::NotFound, message).into());
        }
        let revision = collection.head()?.revision().0;
        if !missing.is_empty() && !output.style.json {
            notice!("{name}: no record {}", quoted(&missing));
        }
        output.record(&Deleted { collection: name, count: deleted, revision, missing })?;
        Ok(Success::Done)
    }
}

/// How many keys a message names.
const SHOWN_MAX: usize = 8;

/// Keys as a message names them.
fn quoted(keys: &BTreeSet<String>) -> String {
    let shown: Vec<String> = keys.iter().take(SHOWN_MAX).map(|key| format!("{key:?}")).collect();
    let shown = shown.join(", ");
    match keys.len().saturating_sub(SHOWN_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[derive(Debug, Serialize)]
struct Deleted<'a> {
    collection: &'a str,
    #[serde(rename = "deleted")]
    count: u64,
    revision: u64,
    /// Keys that no record had.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    missing: BTreeSet<String>,
}

impl Record for Deleted<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { collection, count, revision, .. } = self;
        let (color, s) = (palette.revision, if *count == 1 { "" } else { "s" });
        writeln!(
            out,
            "{collection}: deleted {count} record{s} in revision {color}{revision}{color:#}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_missing_keys_are_counted() {
        let keys =
            |count: u32| -> BTreeSet<String> { (1..=count).map(|key| key.to_string()).collect() };
        assert_eq!(quoted(&keys(2)), r#""1", "2""#);
        assert_eq!(quoted(&keys(9)), r#""1", "2", "3", "4", "5", "6", "7", "8" and 1 more"#);
    }
}
