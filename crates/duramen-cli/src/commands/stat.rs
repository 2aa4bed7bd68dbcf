//! `duramen stat`: how much is stored.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use duramen::{
    Database, DatabaseStats, DocumentStats, Error, ErrorKind, SeriesFilter, SeriesStats,
};
use indicatif::HumanCount;
use serde::Serialize;

use crate::arguments::{Keys, ReadDatabase};
use crate::commands::purge::PurgeLine;
use crate::exit::Success;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, input, meant};

const EXAMPLES: &str = "\
Examples:
  duramen stat shop.duramen
  duramen stat shop.duramen config --json
  duramen stat plant.duramen boiler/7/temp

Superseded is, about, what `duramen compact` gives back of the revisions that documents do not keep
(`duramen retain`). What it gives back beyond that, of elements, entries and fields that were
removed, and of what is not in a segment yet, is not counted. Of a document it also tells the values
that were purged (`duramen purge`), and whether one still is to be: then the purge was interrupted.

Of series it tells how many points are kept, those that snapshots from before still read included:
late ones came when there was a point of a later time already, replaced ones were written over. To
count them all points are read.";

/// Count what a database, or a document in it, holds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Stat {
    #[command(flatten)]
    database: ReadDatabase,
    /// The name of a document or a series
    #[arg(value_name = "DOC|TAG")]
    name: Option<String>,
}

impl Stat {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        let Some(name) = &self.name else {
            let stats = database.stats()?;
            let mut whole = Whole::new(&stats, self.database.folder())?;
            let (count, points, damage) = readable(&database)?;
            if stats.series > 0 {
                whole.series = Some(SeriesPart::new(Some(count), &points));
            }
            output.record(&whole)?;
            return damage.map_or(Ok(Success::Done), |damage| Err(damage.into()));
        };
        match database.series(name) {
            Ok(series) => output.record(&SeriesPart::new(None, &series.stats()?))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let document = meant::document(&database, name)?;
                let (keys, purges) = (Keys::of(&document)?, document.purges()?);
                let purges = purges.iter().map(|purge| PurgeLine::new(purge, keys)).collect();
                output.record(&Part { purges, ..Part::from(&document.stats()?) })?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Success::Done)
    }
}

/// How many series can be read, their size, and what is wrong with another one.
fn readable(database: &Database) -> Result<(u64, SeriesStats, Option<Error>)> {
    let (snapshot, all) = (database.snapshot(), SeriesFilter::default());
    let found = snapshot.find_series(&all)?;
    match snapshot.series_stats(&all) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {}
        whole => return Ok((found.len() as u64, whole?, None)),
    }
    let (mut count, mut sum, mut damage) = (0, SeriesStats::default(), None);
    for info in found {
        match snapshot.series(&info.name)?.stats() {
            Ok(one) => {
                count += 1;
                sum += one;
            }
            Err(error) if error.kind() == ErrorKind::Corrupt => damage = damage.or(Some(error)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok((count, sum, damage))
}

/// The figures of a database.
#[derive(Debug, Serialize)]
struct Whole {
    documents: u64,
    commits: u64,
    segment_bytes: u64,
    superseded_bytes: u64,
    disk_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<SeriesPart>,
}

impl Whole {
    fn new(stats: &DatabaseStats, folder: &Path) -> Result<Self> {
        Ok(Self {
            documents: stats.documents,
            commits: stats.sequence.0,
            segment_bytes: stats.segment_bytes,
            superseded_bytes: stats.superseded_bytes,
            disk_bytes: input::folder_bytes(folder)?,
            series: None,
        })
    }
}

impl Record for Whole {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let lines = [
            (self.documents, "documents"),
            (self.commits, "commits"),
            (self.segment_bytes, "bytes in segments"),
            (self.superseded_bytes, "of them superseded"),
            (self.disk_bytes, "bytes on disk, with the journal"),
        ];
        print(out, &lines)?;
        self.series.as_ref().map_or(Ok(()), |series| series.print(palette, out))
    }
}

/// The figures of series.
#[derive(Debug, Serialize)]
struct SeriesPart {
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    points: u64,
    late_points: u64,
    replaced_points: u64,
    deleted_points: u64,
    blocks: u64,
    block_bytes: u64,
}

impl SeriesPart {
    fn new(count: Option<u64>, stats: &SeriesStats) -> Self {
        Self {
            count,
            points: stats.points,
            late_points: stats.late_points,
            replaced_points: stats.replaced_points,
            deleted_points: stats.deleted_points,
            blocks: stats.blocks,
            block_bytes: stats.block_bytes,
        }
    }
}

impl Record for SeriesPart {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        if let Some(count) = self.count {
            print(out, &[(count, "series")])?;
        }
        let lines = [
            (self.points, "points"),
            (self.late_points, "of them late"),
            (self.replaced_points, "of them replaced"),
            (self.deleted_points, "of them deleted"),
            (self.blocks, "blocks of points"),
            (self.block_bytes, "bytes in them"),
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
