//! Cutting off what came after a commit: the cells of every tree up to its last revision then.
//!
//! Invariants:
//! - what is kept is what a checkpoint after that commit would have written, but for paths and
//!   shapes, which stay: their numbers mean nothing without nodes;
//! - cells are read and written in key order, so that no more than one is in memory.

mod series;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashMap;

use super::RestorePoint;
use super::pieces::{self, Extent};
use crate::engine::{CATALOGUE, View};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Device;
use crate::journal::JournalPoint;
use crate::limits::LEVELS_MAX;
use crate::manifest::Manifest;
use crate::memory::Memory;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::segment::{Encoding, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::series::rollup::RollupCut;
use crate::store::{LiveSegments, Store};
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, TreeId};
use crate::tree::history::short;
use crate::tree::persist;
use crate::tree::rows::Row;
use crate::tree::schema::Schema;
use series::SeriesCut;

/// Bytes of memory, of which a quarter keeps blocks: every cell is read once, a few a second time.
const MEMORY_BYTES: usize = 64 << 20;

/// Writes the state at a point in time of the database that a manifest and its segments are into
/// new segments of the same device; the manifest of these. `NotFound` if nothing was committed by
/// then. The backup was `made` when retention may have dropped points last.
pub(super) fn cut(
    device: &Arc<dyn Device>,
    (manifest, made): (&Manifest, Micros),
    point: RestorePoint,
) -> Result<Manifest> {
    let store = Arc::new(Store::open(device, manifest, &Memory::new(MEMORY_BYTES))?);
    let live = store.live();
    let mut cutter = Cutter::new(Arc::clone(&store), point);
    let mut cells = Output::new((device, manifest), manifest.next_segment, LEVELS_MAX);
    let made = made.max(manifest.checkpoint.timestamp);
    let view = View::new(Arc::clone(&store));
    let tags = view.tree(TreeId::SERIES)?;
    let defined = sequence_at(&tags, point)?;
    let rollups = RollupCut::new(view, (manifest.checkpoint.sequence, made), defined);
    let (mut series, mut kept) = (SeriesCut::new(point, rollups), Vec::new());
    for found in live.scan(&[])? {
        let (key, cell) = found?;
        let Some((tree, parsed)) = cell_key::parse(&key) else {
            let message = format!("no cell has the key {key:02x?}");
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        if SeriesCut::takes(parsed) {
            series.push((tree, parsed), (key, cell.load()?), &mut kept)?;
        } else {
            series.finish(&mut kept)?;
            let left = cutter.cell(&live, (tree, parsed), &|| cell.load())?;
            kept.extend(left.map(|cell| (key, cell)));
        }
        kept.drain(..).try_for_each(|(key, cell)| cells.push(&key, &cell))?;
    }
    if let Some(dropped) = cutter.dropped {
        return Err(dropped.error(manifest, store));
    }
    series.finish(&mut kept)?;
    kept.drain(..).try_for_each(|(key, cell)| cells.push(&key, &cell))?;
    cutter.leave_tree();
    cutter.newest = cutter.newest.max(series.newest);
    let sequence = match point {
        RestorePoint::Commit(sequence) => sequence,
        _ => cutter.newest.0,
    };
    if cutter.newest.0 == CommitSequence(0) {
        let message = "nothing had been committed by then: choose a later commit or time";
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    // A tree's facts come before the cells that tell what they are: they get a segment of their
    // own, the newest.
    let mut facts = Output::new((device, manifest), manifest.next_segment + 1, 0);
    for (tree, extent) in &cutter.facts {
        facts.push(&cell_key::meta(*tree), &extent.encode())?;
    }
    let segments = [facts.finish(sequence)?, cells.finish(sequence)?];
    // A purge may have been under way then: who opens it for writing looks, and goes on with it.
    let purging = manifest.purging || cutter.facts.iter().any(|(tree, _)| *tree == CATALOGUE);
    Ok(Manifest {
        purging,
        next_segment: manifest.next_segment + 2,
        checkpoint: JournalPoint { sequence, timestamp: cutter.newest.1, ..JournalPoint::START },
        segments: segments.into_iter().flatten().collect(),
        ..manifest.clone()
    })
}

/// A segment that is made when its first cell comes.
struct Output<'a> {
    device: &'a Arc<dyn Device>,
    manifest: &'a Manifest,
    number: u64,
    level: u8,
    writer: Option<SegmentWriter>,
}

impl<'a> Output<'a> {
    fn new(
        (device, manifest): (&'a Arc<dyn Device>, &'a Manifest),
        number: u64,
        level: u8,
    ) -> Self {
        Self { device, manifest, number, level, writer: None }
    }

    fn push(&mut self, key: &[u8], cell: &[u8]) -> Result<()> {
        if self.writer.is_none() {
            let meta = SegmentMeta {
                database_id: self.manifest.database_id,
                epoch: self.manifest.epoch,
                level: self.level,
                encoding: Encoding::Warm,
                // What is kept of the last one is not known before the end.
                first_sequence: CommitSequence(0),
                last_sequence: CommitSequence(0),
            };
            self.writer = Some(SegmentWriter::create(self.device, self.number, meta)?);
        }
        self.writer.as_mut().map_or(Ok(()), |writer| writer.push(key, cell))
    }

    fn finish(self, last_sequence: CommitSequence) -> Result<Option<SegmentInfo>> {
        let Some(writer) = self.writer else { return Ok(None) };
        let info = writer.finish()?;
        Ok(Some(SegmentInfo { first_sequence: CommitSequence(1), last_sequence, ..info }))
    }
}

/// What becomes of the cells of a tree.
enum Fate {
    /// All of it is older.
    Kept,
    /// All of it is newer.
    Dropped,
    Cut(Box<Extent>),
}

/// Goes through the cells of all trees.
struct Cutter {
    store: Arc<Store>,
    point: RestorePoint,
    schemas: FxHashMap<u128, Arc<Schema>>,
    /// The tree whose cells come.
    tree: Option<(TreeId, Fate)>,
    /// What is left of the trees that were cut.
    facts: Vec<(TreeId, Extent)>,
    /// The last commit that is kept.
    newest: (CommitSequence, Micros),
    /// The tree that forbids the point and allows the latest ones only.
    dropped: Option<Dropped>,
    /// The documents that were there at the point, once that was asked.
    documents: Option<BTreeSet<TreeId>>,
}

/// A tree whose state at the point was dropped by its retention.
struct Dropped {
    /// The first commit from which on the tree has all of its states.
    from: (CommitSequence, Micros),
    tree: TreeId,
}

impl Dropped {
    fn error(&self, manifest: &Manifest, store: Arc<Store>) -> Error {
        // Without a name the number has to do.
        let names = View::new(store).names(manifest.checkpoint.sequence).unwrap_or_default();
        let document = names
            .into_iter()
            .find(|(_, found)| found.tree == self.tree)
            .map_or_else(|| self.tree.0.to_string(), |(name, _)| format!("{name:?}"));
        let (commit, committed) = self.from;
        let message = format!(
            "the retention of document {document} has dropped what it was then: choose commit \
             {commit}, of {committed}, or a later one; since then every document is there"
        );
        Error::new(ErrorKind::NotFound, message)
    }
}

impl Cutter {
    fn new(store: Arc<Store>, point: RestorePoint) -> Self {
        Self {
            store,
            point,
            schemas: FxHashMap::default(),
            tree: None,
            facts: Vec::new(),
            newest: (CommitSequence(0), Micros(i64::MIN)),
            dropped: None,
            documents: None,
        }
    }

    /// What is kept of a cell.
    fn cell(
        &mut self,
        live: &LiveSegments,
        (tree, key): (TreeId, CellKey),
        load: &dyn Fn() -> Result<Bytes>,
    ) -> Result<Option<Bytes>> {
        match key {
            CellKey::Schema(_) => return load().map(Some),
            // The catalogue may say of others from here on; they are made again when they are read.
            CellKey::Index { .. } | CellKey::IndexSlab { .. } => return Ok(None),
            _ => {}
        }
        if self.tree.as_ref().is_none_or(|(current, _)| *current != tree) {
            self.leave_tree();
            let fate = self.fate(tree)?;
            self.tree = Some((tree, fate));
        }
        match &mut self.tree {
            // Only how far the other trees go back is still of interest.
            _ if self.dropped.is_some() => Ok(None),
            Some((_, Fate::Kept)) => load().map(Some),
            Some((tree, Fate::Cut(extent))) => pieces::kept(extent, (live, *tree), key, load)
                .map_err(|error| error.in_context(format_args!("tree {}", tree.0))),
            _ => Ok(None),
        }
    }

    fn leave_tree(&mut self) {
        if let Some((tree, Fate::Cut(extent))) = self.tree.take() {
            self.facts.push((tree, *extent));
        }
    }

    /// Whether a document of which the beginning was dropped was there at the point.
    fn was_there(&mut self, id: TreeId) -> Result<bool> {
        if self.documents.is_none() {
            let view = View::new(Arc::clone(&self.store));
            let catalogue = view.tree(CATALOGUE)?;
            let names = match sequence_at(&catalogue, self.point)? {
                CommitSequence(0) => Vec::new(),
                sequence => view.names(sequence)?,
            };
            self.documents = Some(names.into_iter().map(|(_, found)| found.tree).collect());
        }
        Ok(self.documents.as_ref().is_some_and(|documents| documents.contains(&id)))
    }

    fn fate(&mut self, id: TreeId) -> Result<Fate> {
        let known = |number| self.schemas.get(&number).cloned();
        let Some((tree, (number, schema))) = persist::open(id, &self.store, known)? else {
            let message = format!("tree {} has cells, but nothing says what it is", id.0);
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        self.schemas.insert(number, schema);
        let (last, schema) = {
            let data = tree.data.read();
            (data.rows.last(), Arc::clone(&data.schema))
        };
        let kept = newest_at(&tree, self.point)?;
        let history = tree.kept();
        if kept > 0 && !history.has(short(Revision(kept))) {
            if !self.was_there(id)? {
                return Ok(Fate::Dropped);
            }
            let first = tree.row(Revision(history.first().into()))?;
            let from = (first.sequence, first.committed);
            let others = self.dropped.take().filter(|dropped| dropped.from > from);
            self.dropped = others.or(Some(Dropped { from, tree: id }));
            return Ok(Fate::Dropped);
        }
        if kept > 0 {
            let row = tree.row(Revision(kept))?;
            self.newest = self.newest.max((row.sequence, row.committed));
        }
        Ok(match kept {
            _ if kept == last => Fate::Kept,
            0 => Fate::Dropped,
            _ => Fate::Cut(Box::new(Extent::new(schema, short(Revision(kept))))),
        })
    }
}

/// The newest revision of a tree at a point, whether it is kept or not; 0 if there was none.
fn newest_at(tree: &Tree, point: RestorePoint) -> Result<u64> {
    let last = tree.data.read().rows.last();
    if last == 0 || !is_after(&tree.row(Revision(last))?, point) {
        return Ok(last);
    }
    Ok(tree.first_where(last, |row| is_after(row, point))?.0 - 1)
}

/// The commit of that revision; 0 if there was none.
fn sequence_at(tree: &Tree, point: RestorePoint) -> Result<CommitSequence> {
    match newest_at(tree, point)? {
        0 => Ok(CommitSequence(0)),
        newest => Ok(tree.row(Revision(newest))?.sequence),
    }
}

fn is_after(row: &Row, point: RestorePoint) -> bool {
    match point {
        RestorePoint::Newest => false,
        RestorePoint::Commit(sequence) => row.sequence > sequence,
        RestorePoint::Time(time) => row.committed > time,
    }
}
