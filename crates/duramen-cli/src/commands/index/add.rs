//! `duramen index add`: an index of a collection, made while it is used.

use std::io::{self, Write};
use std::ops::ControlFlow;

use clap::Args;
use duramen::{Error, ErrorKind, IndexDefinition};
use serde::Serialize;

use crate::arguments::WriteDatabase;
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant, progress};

const EXAMPLES: &str = "\
Examples:
  duramen index add shop.duramen players by-mail mail --unique
  duramen index add shop.duramen players by-team team.name score
  duramen index add shop.duramen orders by-sku 'items[*].sku'

A PATH names values in a record: fields joined by dots, [*] for the elements of an array, and
[\"a.b\"] for a name with other characters. With several paths the records are in the order of the
first one, then of the next.

A path at which no record has a value is taken for a slip, and refused, unless --allow-missing says
that records will have one.

With --unique no two records may have the same values; missing values and nulls are never the same.
Ctrl-C stops it, and there is no index then.";

/// Make an index of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Add {
    #[command(flatten)]
    database: WriteDatabase,
    /// The collection's name
    #[arg(value_name = "COLLECTION")]
    collection: String,
    /// A name for the index
    #[arg(value_name = "NAME")]
    name: String,
    /// Where the values are in a record
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<String>,
    /// Refuse values that another record has
    #[arg(long)]
    unique: bool,
    /// Take a path at which no record has a value yet
    #[arg(long)]
    allow_missing: bool,
}

impl Add {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let paths: Vec<&str> = self.paths.iter().map(String::as_str).collect();
        let mut definition = IndexDefinition::new(&self.name, &paths)?;
        definition.is_unique = self.unique;
        let interruption = Interruption::watch();
        let collection = meant::collection(&self.database.open(session)?, &self.collection)?;
        if !self.allow_missing
            && let Some(path) = collection.path_without_values(&definition)?
        {
            let message = format!(
                "no record of collection {:?} has a value at {path}: check the path, or say \
                 --allow-missing if records will have one",
                self.collection
            );
            return Err(Error::new(ErrorKind::Invalid, message).into());
        }
        let bar = progress::bar("indexing", Some(0));
        let made = collection.create_index_with(&definition, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        bar.finish_and_clear();
        match made {
            Err(error) if interruption.is_asked() => {
                return Err(Failure::Interrupted(error.message().to_owned()));
            }
            done => done?,
        }
        let entries = collection.index_stats(&self.name)?.entries;
        output.record(&Made { collection: &self.collection, index: &self.name, entries })?;
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Made<'a> {
    collection: &'a str,
    index: &'a str,
    entries: u64,
}

impl Record for Made<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let entries = if self.entries == 1 { "entry" } else { "entries" };
        writeln!(out, "{}: index {} has {} {entries}", self.collection, self.index, self.entries)
    }
}
