//! Combines the cells of trees that compaction brings together.
//!
//! Each checkpoint writes a cell for what is new in a column. Cells come here in key order and go
//! on with the first states of adjoining slots in one cell, changes in pieces of up to 4,096, and
//! revision rows in blocks of up to 1,024; everything else goes on as it is. Where a column's
//! history grew long a *time split* begins: a complete run piece ([`RunPiece`]), so that a read
//! goes back over a bounded number of changes, however rarely its node changed.
//!
//! Of a tree that has revisions to drop, its cells are trimmed first ([`Trim`]); what a purge
//! erases goes before that ([`Erase`]).
//!
//! Invariant: what is read of the cells that went out is what was read of those that came in, at
//! every kept revision, but for what is erased.
//!
//! [`RunPiece`]: crate::encoding::RunPiece
//! [`Erase`]: crate::tree::erase::Erase

use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::Result;
use crate::series::merge::Blocks;
use crate::series::{Density, deletes, rollup};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, CellKey, GroupCell, TreeId};
use crate::tree::departed::Departed;
use crate::tree::erase::Erasures;
use crate::tree::kept::Kept;

mod bases;
mod indexes;
mod rows;
mod runs;
#[cfg(test)]
mod tests;
mod trim;

use bases::Bases;
use indexes::Slabs;
use rows::Rows;
pub(crate) use rows::append as append_row;
use runs::Runs;
use trim::Trim;

/// Bytes of a combined cell, or of the changes in a run piece, that are not exceeded where cutting
/// helps: such a cell is read as one block.
const CELL_BYTES_WANTED: usize = 30 << 10;

/// A cell with its key.
pub(crate) type Cell = (Bytes, Bytes);

/// What combines cells. Those that came in and have not gone out are of one column.
#[derive(Debug)]
pub(crate) struct Merger {
    /// What is older than the cells that come in.
    older: LiveSegments,
    pending: Pending,
    /// What is kept of trees that have revisions to drop.
    kept: FxHashMap<TreeId, Kept>,
    /// What has departed from such trees, if that goes as well.
    departed: FxHashMap<TreeId, Arc<Departed>>,
    /// The tree that is being trimmed.
    trim: Option<(TreeId, Trim)>,
    /// What is erased of trees.
    erasures: Erasures,
    /// The indexes that trees have, if cells of others are to go.
    indexes: Option<IndexIds>,
    /// How blocks of points are written.
    density: Density,
    /// What is kept of series, if anything may go.
    series: Option<rollup::Kept>,
    /// Whether nothing that was deleted stands elsewhere.
    has_all_deleted: bool,
}

/// The ids of the indexes of trees.
pub(crate) type IndexIds = FxHashSet<(TreeId, u32)>;

/// Cells that may be combined with the next one.
#[derive(Debug)]
enum Pending {
    None,
    Bases(Bases),
    Runs(Box<Runs>),
    Rows(Rows),
    Slabs(Slabs),
    Points(Box<Blocks>),
}

impl Merger {
    /// Drops nothing.
    pub(crate) fn new(older: LiveSegments) -> Self {
        Self {
            older,
            pending: Pending::None,
            kept: FxHashMap::default(),
            departed: FxHashMap::default(),
            trim: None,
            erasures: Vec::new(),
            indexes: None,
            density: Density::Hot,
            series: None,
            has_all_deleted: false,
        }
    }

    /// Writes points to stay.
    pub(crate) fn sealing(self) -> Self {
        Self { density: Density::Sealed, ..self }
    }

    /// Drops the cells of indexes that are not among these.
    pub(crate) fn keep_indexes(&mut self, indexes: IndexIds) {
        self.indexes = Some(indexes);
    }

    /// Drops what is not kept of series.
    pub(crate) fn keep_series(&mut self, kept: rollup::Kept) {
        self.series = Some(kept);
    }

    /// Drops what was deleted of series before the points that are kept, as these go. All cells of
    /// series up to the last one that comes in must do so.
    pub(crate) fn drop_deletes(&mut self) {
        self.has_all_deleted = true;
    }

    /// Whether a cell of what was deleted says nothing of points that are kept.
    fn is_of_gone(&mut self, series: TreeId, cell: &Bytes) -> Result<bool> {
        let Some(all) = self.series.as_mut().filter(|_| self.has_all_deleted) else {
            return Ok(false);
        };
        let from = all.of(series)?.map_or(i64::MIN, |kept| kept.from);
        Ok(from == i64::MAX || deletes::decode(cell)?.iter().all(|span| span.last < from))
    }

    /// The column of points that a cell begins; none if it is dropped.
    fn begin_points(
        &mut self,
        (series, kind): (TreeId, CellKey),
        key: &[u8],
    ) -> Result<Option<Blocks>> {
        let column = |len: usize| key.get(..len).unwrap_or_default().to_vec();
        let kept = self.series.as_mut().map(|all| all.of(series)).transpose()?;
        let CellKey::Rollup(place, _) = kind else {
            let blocks = Blocks::new(cell_key::all_points(series), self.density);
            return Ok(Some(blocks.from(kept.flatten().map_or(i64::MIN, |kept| kept.from))));
        };
        let blocks = Blocks::new(column(cell_key::ROLLUP_COLUMN_BYTES), self.density).newest_only();
        let Some(kept) = kept else { return Ok(Some(blocks)) };
        Ok(kept.and_then(|kept| kept.rollup(place.rollup)).map(|from| blocks.from(from)))
    }

    /// Keeps of these trees only so much. All their cells must come in.
    pub(crate) fn keep(&mut self, kept: FxHashMap<TreeId, Kept>) {
        self.kept = kept;
    }

    /// Drops what has departed from trees of which only so much is kept.
    pub(crate) fn drop_departed(&mut self, departed: FxHashMap<TreeId, Arc<Departed>>) {
        self.departed = departed;
    }

    /// Erases this much of these trees. All their cells must come in.
    pub(crate) fn erase(&mut self, erasures: Erasures) {
        self.erasures = erasures;
    }

    /// What is left of a cell.
    fn erased(&mut self, tree: TreeId, kind: CellKey, cell: Bytes) -> Result<Option<Bytes>> {
        let mut left = Some(cell);
        for (_, erasure) in self.erasures.iter_mut().filter(|(erased, _)| *erased == tree) {
            left = match left {
                Some(cell) => erasure.apply(kind, cell)?,
                None => break,
            };
        }
        Ok(left)
    }

    /// Takes the next cell in key order and appends those that are complete to `out`.
    pub(crate) fn push(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let parsed = cell_key::parse(&key);
        if parsed.is_some_and(|cell| self.is_of_dropped_index(cell)) {
            return Ok(());
        }
        let left = match parsed {
            Some((tree, kind)) => self.erased(tree, kind, cell)?,
            None => Some(cell),
        };
        let Some(cell) = left.map(|left| (key, left)) else { return Ok(()) };
        self.begin_trim(parsed.map(|(tree, _)| tree), out)?;
        match (&mut self.trim, parsed) {
            (Some((_, trim)), Some((_, kind))) => {
                let mut left = Vec::new();
                trim.push(cell, kind, &mut left)?;
                left.into_iter().try_for_each(|cell| self.combine(cell, out))
            }
            _ => self.combine(cell, out),
        }
    }

    fn is_of_dropped_index(&self, (tree, kind): (TreeId, CellKey)) -> bool {
        let (CellKey::Index { index } | CellKey::IndexSlab { index, .. }) = kind else {
            return false;
        };
        self.indexes.as_ref().is_some_and(|indexes| !indexes.contains(&(tree, index)))
    }

    /// Whether the cell with this key is of another column than the one before: then none of the
    /// cells that come out before it depends on it.
    pub(crate) fn is_between(&self, key: &[u8]) -> bool {
        let is_held = self.trim.as_ref().is_some_and(|(_, trim)| trim.holds(key));
        !is_held && (matches!(self.pending, Pending::None) || !self.pending.takes(key))
    }

    /// Appends all that came in to `out`, where the next cell is of [another
    /// column](Self::is_between).
    pub(crate) fn settle(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        if let Some((_, trim)) = &mut self.trim {
            let mut left = Vec::new();
            trim.finish(&mut left)?;
            left.into_iter().try_for_each(|cell| self.combine(cell, out))?;
        }
        self.put_pending(out)
    }

    /// The tree that has a key, if it is trimmed: which of its values stored apart and order blocks
    /// stay is known of all cells before the key.
    pub(crate) fn trimmed(&self, key: &[u8]) -> Option<TreeId> {
        let (tree, _) = cell_key::parse(key)?;
        self.kept.contains_key(&tree).then_some(tree)
    }

    /// Takes a cell of such a tree that came in before, read by `load` if it says anything of what
    /// stays: states do, and what is told of an index. Returns the bytes looked at.
    pub(crate) fn repeat(
        &mut self,
        key: Bytes,
        load: impl FnOnce() -> Result<Bytes>,
    ) -> Result<usize> {
        let Some((tree, kind)) = cell_key::parse(&key) else { return Ok(key.len()) };
        if !matches!(kind, CellKey::Group { .. } | CellKey::Index { .. } | CellKey::Order(_)) {
            return Ok(key.len());
        }
        let cell = load()?;
        let bytes = key.len() + cell.len();
        let mut left = Vec::new();
        self.begin_trim(Some(tree), &mut left)?;
        if let Some((_, trim)) = &mut self.trim {
            trim.push((key, cell), kind, &mut left)?;
        }
        Ok(bytes)
    }

    /// Ends taking such cells, before one of another column.
    pub(crate) fn end_repeat(&mut self) -> Result<()> {
        let Some((_, trim)) = &mut self.trim else { return Ok(()) };
        trim.finish(&mut Vec::new())
    }

    /// Begins with the cells of a tree, unless they are on their way.
    fn begin_trim(&mut self, tree: Option<TreeId>, out: &mut Vec<Cell>) -> Result<()> {
        if self.trim.as_ref().map(|(trimmed, _)| *trimmed) == tree {
            return Ok(());
        }
        self.finish_trim(out)?;
        self.trim = tree.and_then(|tree| {
            let (kept, departed) = (self.kept.get(&tree)?, self.departed.get(&tree));
            Some((tree, Trim::new(kept.clone(), departed.cloned())))
        });
        Ok(())
    }

    fn finish_trim(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        let Some((_, mut trim)) = self.trim.take() else { return Ok(()) };
        let mut left = Vec::new();
        trim.finish(&mut left)?;
        left.into_iter().try_for_each(|cell| self.combine(cell, out))
    }

    fn combine(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let parsed = cell_key::parse(&key);
        let kind = parsed.map(|(_, kind)| kind);
        if !self.pending.takes(&key) {
            self.put_pending(out)?;
        }
        if let (Some((series, kind @ (CellKey::Points(_) | CellKey::Rollup(..)))), Pending::None) =
            (parsed, &self.pending)
        {
            let Some(mut blocks) = self.begin_points((series, kind), &key)? else { return Ok(()) };
            blocks.push_cell((key, cell), out)?;
            self.pending = Pending::Points(Box::new(blocks));
            return Ok(());
        }
        if let Some((series, CellKey::Rolled { rollup })) = parsed
            && let Some(all) = &mut self.series
            && all.of(series)?.and_then(|kept| kept.rollup(rollup)).is_none()
        {
            return Ok(());
        }
        if let Some((series, CellKey::Deletes { .. })) = parsed
            && self.is_of_gone(series, &cell)?
        {
            return Ok(());
        }
        match (kind, &mut self.pending) {
            (_, Pending::Bases(bases)) => bases.push((key, cell), out)?,
            (_, Pending::Runs(runs)) => runs.push(&self.older, (key, cell), out)?,
            (_, Pending::Rows(rows)) => rows.push((key, cell), out)?,
            (_, Pending::Slabs(slabs)) => slabs.push((key, cell), out)?,
            (_, Pending::Points(blocks)) => blocks.push_cell((key, cell), out)?,
            (Some(CellKey::Rows { first }), none) => {
                *none = Pending::Rows(Rows::new((key, cell), first)?);
            }
            (Some(CellKey::Group { kind: GroupCell::Run, .. }), none) => {
                let runs = none.insert_runs(Runs::new(&key));
                runs.push(&self.older, (key, cell), out)?;
            }
            (Some(CellKey::Group { number, kind, .. }), none) => {
                *none = Pending::Bases(Bases::new((key, cell), (kind, number))?);
            }
            (Some(CellKey::IndexSlab { .. }), none) => {
                let mut slabs = Slabs::new(&key);
                slabs.push((key, cell), out)?;
                *none = Pending::Slabs(slabs);
            }
            (_, Pending::None) => out.push((key, cell)),
        }
        Ok(())
    }

    /// Appends what is left to `out`.
    pub(crate) fn finish(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        self.finish_trim(out)?;
        self.put_pending(out)
    }

    fn put_pending(&mut self, out: &mut Vec<Cell>) -> Result<()> {
        match std::mem::replace(&mut self.pending, Pending::None) {
            Pending::None => Ok(()),
            Pending::Bases(bases) => bases.finish(out),
            Pending::Runs(runs) => runs.finish(&self.older, out),
            Pending::Rows(rows) => rows.finish(out),
            Pending::Slabs(slabs) => {
                slabs.finish(out);
                Ok(())
            }
            Pending::Points(blocks) => {
                blocks.finish(out);
                Ok(())
            }
        }
    }
}

impl Pending {
    /// Whether a cell continues the column that the pending cells are of.
    fn takes(&self, key: &[u8]) -> bool {
        let column = match self {
            Self::None => return true,
            Self::Bases(bases) => bases.column(),
            Self::Runs(runs) => runs.column(),
            Self::Rows(rows) => rows.column(),
            Self::Slabs(slabs) => slabs.column(),
            Self::Points(blocks) => blocks.column(),
        };
        key.starts_with(column)
    }

    fn insert_runs(&mut self, runs: Runs) -> &mut Runs {
        *self = Self::Runs(Box::new(runs));
        match self {
            Self::Runs(runs) => runs,
            _ => unreachable!("just set"),
        }
    }
}
