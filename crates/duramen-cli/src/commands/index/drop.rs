//! `duramen index drop`: a collection without an index.

use std::io::{self, Write};

use clap::Args;
use serde::Serialize;

use crate::arguments::WriteDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen index drop shop.duramen players by-mail

The records stay as they are. The space comes back as segments are merged, which `duramen compact`
does on demand. An index whose making was interrupted can be dropped as well.";

/// Drop an index of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Drop {
    #[command(flatten)]
    database: WriteDatabase,
    /// The collection's name
    #[arg(value_name = "COLLECTION")]
    collection: String,
    /// The name of the index
    #[arg(value_name = "NAME")]
    name: String,
}

impl Drop {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let collection = meant::collection(&self.database.open(session)?, &self.collection)?;
        collection.drop_index(&self.name)?;
        output.record(&Dropped { collection: &self.collection, index: &self.name })?;
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Dropped<'a> {
    collection: &'a str,
    index: &'a str,
}

impl Record for Dropped<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}: dropped the index {}", self.collection, self.index)
    }
}
