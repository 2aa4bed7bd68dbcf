//! `duramen stat`: how much is stored.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use duramen::{DatabaseStats, DocumentStats};
use indicatif::HumanCount;
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::commands::purge::PurgeLine;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen stat shop.duramen
  duramen stat shop.duramen config --json

Superseded is, about, what `duramen compact` gives back of the revisions that documents do not keep
(`duramen retain`). Of a document it also tells the values that were purged (`duramen purge`), and
whether one still is to be: then the purge was interrupted.";

/// Count what a database, or a document in it, holds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stat {
    #[command(flatten)]
    database: ReadDatabase,
    /// The name of a document
    #[arg(value_name = "DOC")]
    document: Option<String>,
}

impl Stat {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        match &self.document {
            None => output.record(&Whole::new(&database.stats()?, self.database.folder())?)?,
            Some(name) => {
                let document = database.document(name)?;
                let purges = document.purges()?.iter().map(PurgeLine::from).collect();
                output.record(&Part { purges, ..Part::from(&document.stats()?) })?;
            }
        }
        Ok(Success::Done)
    }
}

/// The figures of a database.
#[derive(Debug, Serialize)]
struct Whole {
    documents: u64,
    commits: u64,
    segment_bytes: u64,
    superseded_bytes: u64,
    disk_bytes: u64,
}

impl Whole {
    fn new(stats: &DatabaseStats, folder: &Path) -> Result<Self> {
        Ok(Self {
            documents: stats.documents,
            commits: stats.sequence.0,
            segment_bytes: stats.segment_bytes,
            superseded_bytes: stats.superseded_bytes,
            disk_bytes: input::folder_bytes(folder)?,
        })
    }
}

impl Record for Whole {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let lines = [
            (self.documents, "documents"),
            (self.commits, "commits"),
            (self.segment_bytes, "bytes in segments"),
            (self.superseded_bytes, "of them superseded"),
            (self.disk_bytes, "bytes on disk, with the journal"),
        ];
        print(out, &lines)
    }
}

/// The figures of a document.
#[derive(Debug, Serialize)]
struct Part {
    revisions: u64,
    nodes: u64,
    opaque_nodes: u64,
    paths: u64,
    shapes: u64,
    json_bytes: u64,
    /// The values that were purged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    purges: Vec<PurgeLine>,
}

impl From<&DocumentStats> for Part {
    fn from(stats: &DocumentStats) -> Self {
        Self {
            revisions: stats.revisions,
            nodes: stats.nodes,
            opaque_nodes: stats.opaque_nodes,
            paths: stats.paths,
            shapes: stats.shapes,
            json_bytes: stats.json_bytes,
            purges: Vec::new(),
        }
    }
}

impl Record for Part {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let lines = [
            (self.revisions, "revisions"),
            (self.nodes, "values in the newest revision"),
            (self.opaque_nodes, "stored whole, beyond the limit of paths"),
            (self.paths, "paths"),
            (self.shapes, "shapes of objects"),
            (self.json_bytes, "bytes of JSON in the newest revision"),
        ];
        print(out, &lines)?;
        self.purges.iter().try_for_each(|purge| purge.print(out))
    }
}

fn print(out: &mut dyn Write, lines: &[(u64, &str)]) -> io::Result<()> {
    for (figure, what) in lines {
        writeln!(out, "{what:<50} {:>15}", HumanCount(*figure).to_string())?;
    }
    Ok(())
}
