//! `duramen records put`: one record of a collection.

use std::io::{self, Write};

use clap::Args;
use duramen::{Key, KeyKind, Transaction};
use serde::Serialize;

use super::WriteCollection;
use crate::Result;
use crate::arguments::edit::Made;
use crate::arguments::value::ValueText;
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records put shop.duramen players ann '{\"score\":3}'
  duramen records put shop.duramen players ann '{\"score\":4}' --expect-version 1
  duramen records put shop.duramen players ann '{\"team\":\"red\"}' --merge --expect-version 2
  duramen records put shop.duramen archive ann '{\"score\":1}' --timestamp 2023-11-05
  duramen records put shop.duramen orders 17 - --keys u64 < order.json

Only fields that differ are committed; a record that is the same keeps its version. A collection
that is missing is made, with keys of the type that --keys names.";

/// Add a record, or save another value of it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Put {
    #[command(flatten)]
    collection: WriteCollection,
    #[command(flatten)]
    made: Made,
    /// The record's key
    #[arg(value_name = "KEY", allow_hyphen_values = true)]
    key: String,
    #[command(flatten)]
    value: ValueText,
    /// Fail if there is such a record
    #[arg(long, conflicts_with_all = ["expect_version", "merge"])]
    new: bool,
    /// Fail unless the record is at this version
    #[arg(long, value_name = "VERSION", allow_negative_numbers = true)]
    expect_version: Option<u64>,
    /// Change a record that is there: the value is a JSON Merge Patch (RFC 7396)
    #[arg(long)]
    merge: bool,
    /// The type of the keys, if the collection is to be made: string, i64, u64 or uuid
    #[arg(long, value_name = "TYPE")]
    keys: Option<KeyKind>,
}

impl Put {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let value = self.value.read()?;
        let timestamp = self.made.timestamp()?;
        if let Some(mut rehearsal) = self.collection.rehearsal(self.keys)? {
            rehearsal.options.timestamp = timestamp;
            let key = rehearsal.keys.parse(&self.key)?;
            rehearsal.make(|to| self.change(to, (rehearsal.name, &key), &value))?;
        }
        let mut writing = self.collection.open_or_create(session, self.keys)?;
        writing.options.timestamp = timestamp;
        let key = writing.keys.parse(&self.key)?;
        let name = writing.name;
        let committed = writing.commit(|to| self.change(to, (name, &key), &value))?;
        let collection = writing.database.collection(name)?;
        let version = collection.versions(std::slice::from_ref(&key))?[0].unwrap_or_default();
        let is_changed = !committed.revisions.is_empty();
        let revision = match committed.revisions.first() {
            Some((_, revision)) => *revision,
            None => collection.head()?.revision(),
        };
        let revision = revision.0;
        let key = key.to_string();
        output.record(&Saved { collection: name, key, version, revision, changed: is_changed })?;
        Ok(Success::Done)
    }

    fn change(
        &self,
        transaction: &mut Transaction,
        (name, key): (&str, &Key),
        value: &[u8],
    ) -> Result<()> {
        if let Some(expected) = self.expect_version {
            transaction.expect_record(name, key, expected)?;
        }
        match () {
            () if self.new => transaction.insert_record(name, key, value)?,
            () if self.merge => transaction.merge_patch_record(name, key, value)?,
            () => transaction.put_record(name, key, value)?,
        }
        Ok(())
    }
}

#[derive(Debug, Serialize)]
struct Saved<'a> {
    collection: &'a str,
    key: String,
    version: u64,
    revision: u64,
    changed: bool,
}

impl Record for Saved<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { collection, key, version, revision, .. } = self;
        let (key, color) = (one_line(key), palette.revision);
        let is = if self.changed { "version" } else { "unchanged, version" };
        writeln!(
            out,
            "{collection}: {key} is {is} {color}{version}{color:#}, revision \
             {color}{revision}{color:#}"
        )
    }
}
