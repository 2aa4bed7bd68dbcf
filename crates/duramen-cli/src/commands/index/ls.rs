//! `duramen index ls`: the indexes of a collection.

use std::io::{self, Write};

use clap::Args;
use indicatif::HumanBytes;
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen index ls shop.duramen players
  duramen index ls shop.duramen players --json

A line is the index's name, its paths, the entries of the records that there are now, and how much
its entries of all revisions take in segments. One that is \"unfinished\" is being made, or its
making was interrupted: `duramen index add` goes on with it, `duramen index drop` drops it.";

/// List the indexes of a collection
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ls {
    #[command(flatten)]
    database: ReadDatabase,
    /// The collection's name
    #[arg(value_name = "COLLECTION")]
    collection: String,
}

impl Ls {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let collection = meant::collection(&self.database.open(session)?, &self.collection)?;
        for index in collection.indexes()? {
            let stats = collection.index_stats(&index.name)?;
            output.record(&Line {
                paths: index.paths.iter().map(ToString::to_string).collect(),
                name: index.name,
                unique: index.is_unique,
                size: Size::Made { entries: stats.entries, bytes: stats.bytes },
            })?;
        }
        for index in collection.unfinished_indexes()? {
            output.record(&Line {
                paths: index.paths.iter().map(ToString::to_string).collect(),
                name: index.name,
                unique: index.is_unique,
                size: Size::Unfinished { unfinished: true },
            })?;
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    name: String,
    paths: Vec<String>,
    unique: bool,
    #[serde(flatten)]
    size: Size,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Size {
    Made { entries: u64, bytes: u64 },
    Unfinished { unfinished: bool },
}

impl Record for Line {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let unique = if self.unique { "  unique" } else { "" };
        write!(out, "{}  {}{unique}  ", self.name, self.paths.join(", "))?;
        match self.size {
            Size::Made { entries, bytes } => {
                let noun = if entries == 1 { "entry" } else { "entries" };
                writeln!(out, "{entries} {noun}, {}", HumanBytes(bytes))
            }
            Size::Unfinished { .. } => writeln!(out, "unfinished"),
        }
    }
}
