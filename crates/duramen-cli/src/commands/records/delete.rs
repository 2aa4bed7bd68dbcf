//! `duramen records delete`: records by their keys.

use std::collections::BTreeSet;
use std::io::{self, Write};

use clap::Args;
use duramen::{CommitOptions, Error, ErrorKind, Key};
use serde::Serialize;

use super::{WriteCollection, quoted};
use crate::Result;
use crate::arguments::edit::Made;
use crate::exit::{Failure, Success};
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records delete shop.duramen players ann
  duramen records delete shop.duramen players ann bob --message 'left the team'
  duramen records delete shop.duramen players ann --expect-version 3

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
    /// Fail unless the record, which is the only one, is at this version
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    expect_version: Option<u64>,
}

impl Delete {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        // What is wrong with the command line is told before anything is opened.
        if self.expect_version.is_some() && self.keys.len() > 1 {
            let message = "--expect-version is of one record: name no other".to_owned();
            return Err(Failure::Usage(message));
        }
        let options =
            CommitOptions { timestamp: self.made.timestamp()?, ..self.collection.note.options() };
        let (database, collection) = self.collection.open(session)?;
        let keys = self.keys.iter().map(|text| collection.key_kind().parse(text));
        let keys = keys.collect::<duramen::Result<Vec<Key>>>()?;
        let name = collection.name();
        let mut transaction = database.transaction();
        if let (Some(expected), [key]) = (self.expect_version, keys.as_slice()) {
            transaction.expect_record(name, key, expected)?;
        }
        let versions = collection.versions(&keys)?;
        let missing = keys.iter().zip(versions).filter(|(_, version)| version.is_none());
        let missing: BTreeSet<String> = missing.map(|(key, _)| key.to_string()).collect();
        let deleted = transaction.delete_records(name, &keys)?;
        if deleted == 0 {
            let message = format!(
                "there is no record {} in collection {name:?}: \"duramen records ls\" lists those \
                 there are",
                quoted(&missing)
            );
            return Err(Error::new(ErrorKind::NotFound, message).into());
        }
        transaction.commit(&options)?;
        let revision = collection.head()?.revision().0;
        if !missing.is_empty() && !output.style.json {
            notice!("{name}: no record {}", quoted(&missing));
        }
        output.record(&Deleted { collection: name, count: deleted, revision, missing })?;
        Ok(Success::Done)
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
