//! `duramen records delete`: records by their keys.

use std::io::{self, Write};

use clap::Args;
use duramen::{Error, ErrorKind, Key};
use serde::Serialize;

use super::WriteCollection;
use crate::Result;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records delete shop.duramen players ann
  duramen records delete shop.duramen players ann bob --message 'left the team'

All of them go in one commit. Their versions stay readable, and a key that comes back goes on
counting.";

/// Delete records of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Delete {
    #[command(flatten)]
    collection: WriteCollection,
    /// The records' keys
    #[arg(value_name = "KEY", required = true, allow_negative_numbers = true)]
    keys: Vec<String>,
}

impl Delete {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (collection, options) = self.collection.open(session)?;
        let keys = self.keys.iter().map(|text| collection.key_kind().parse(text));
        let keys = keys.collect::<duramen::Result<Vec<Key>>>()?;
        let deleted = collection.delete_many(&keys, &options)?;
        if deleted == 0 {
            let message = format!(
                "there is no such record in collection {:?}: \"duramen records ls\" lists those \
                 there are",
                collection.name()
            );
            return Err(Error::new(ErrorKind::NotFound, message).into());
        }
        let revision = collection.head()?.revision().0;
        output.record(&Deleted { collection: collection.name(), count: deleted, revision })?;
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Deleted<'a> {
    collection: &'a str,
    #[serde(rename = "deleted")]
    count: u64,
    revision: u64,
}

impl Record for Deleted<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { collection, count, revision } = self;
        let (color, s) = (palette.revision, if *count == 1 { "" } else { "s" });
        writeln!(
            out,
            "{collection}: deleted {count} record{s} in revision {color}{revision}{color:#}"
        )
    }
}
