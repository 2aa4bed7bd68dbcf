//! Checkpoints: what is young goes into a segment, and the journal before it is recycled.
//!
//! Invariants:
//! - commits wait only while the bounds of what is to be written are noted; what is below them does
//!   not change any more, so that it is encoded and written while commits go on above;
//! - until the manifest names the segment, all of it is still young: a checkpoint that fails, such
//!   as on a full disk, has done nothing, and another one writes the same again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustc_hash::FxHashMap;

use crate::engine::Engine;
use crate::engine::compaction::Compaction;
use crate::error::{ErrorKind, Result};
use crate::journal::JournalPoint;
use crate::limits::{
    CLOSING_CHECKPOINT_JOURNAL_BYTES, KEPT_HASH_TEXT_BYTES_MAX, SEGMENTS_KEPT_MAX,
};
use crate::segment::{Encoding, SegmentInfo, SegmentMeta, SegmentWriter, Stop};
use crate::series::rollup::Rolling;
use crate::series::young as series;
use crate::sync::MutexGuard;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::persist::{Cell, CellSink, Frozen};

/// The right to move the checkpoint: to write one, or to commit without the journal.
pub(crate) type CheckpointTurn<'e> = MutexGuard<'e, ()>;

/// One in so many bytes of the database's memory may be read for content hashes by a checkpoint.
const HASHED_SHARE: usize = 4;

/// What a checkpoint is to write.
struct Young {
    /// The checkpoint before.
    from: JournalPoint,
    tail: JournalPoint,
    trees: Vec<(Arc<Tree>, Frozen)>,
    series: series::Frozen,
    /// Approximate bytes that it takes in memory.
    bytes: usize,
}

impl Engine {
    /// Writes everything published and not yet in a segment into one, and merges segments if there
    /// are many by now.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.seal()?;
        self.write_checkpoint()?;
        // Nothing depends on it: a compaction that fails is tried again after the next checkpoint.
        let _ = self.compact_due();
        Ok(())
    }

    /// Writes everything published and not yet in a segment into one.
    pub(super) fn write_checkpoint(&self) -> Result<()> {
        let written = self.checkpoint_with_room(&self.checkpoint_turn());
        if let Err(error) = &written
            && error.kind() == ErrorKind::Conflict
        {
            // Others may be in the place of the database: the next commit is not kept unseen.
            self.journal()?.look_again();
        }
        written
    }

    /// Waits for the checkpoint that is being written, if one is.
    pub(crate) fn checkpoint_turn(&self) -> CheckpointTurn<'_> {
        self.checkpoints.lock()
    }

    pub(crate) fn checkpoint_in_turn(&self, _turn: &CheckpointTurn<'_>) -> Result<()> {
        let journal = self.journal()?;
        let Some(young) = self.freeze()? else { return Ok(()) };
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("recycle_early") {
            journal.checkpointed(young.tail.position)?;
        }
        let mut schemas = Vec::with_capacity(young.trees.len());
        let info = self.write_young(&young, &mut schemas)?;
        self.name_segment(info, &young)?;
        for ((tree, frozen), &schema) in young.trees.iter().zip(&schemas) {
            tree.checkpointed(frozen, schema)?;
        }
        drop((young.trees, young.series));
        self.memory.remove_young(young.bytes);
        self.view().drop_idle();
        journal.checkpointed(young.tail.position)
    }

    /// Notes between two commits what is young; none if nothing is.
    fn freeze(&self) -> Result<Option<Young>> {
        let journal = self.journal()?;
        let from = self.manifest.lock().checkpoint;
        // Most of the wait for the device is over before commits have to wait.
        journal.flush()?;
        self.follow_changed();
        let no_seals = self.staging.seal_turn();
        let _no_commits = self.gate.write();
        journal.flush()?;
        let tail = journal.tail();
        self.staging.stamp(&no_seals, tail.sequence)?;
        let frozen = |tree: Arc<Tree>| tree.freeze().map(|frozen| (tree, frozen));
        let trees: Vec<_> = self.view().open_trees().into_iter().filter_map(frozen).collect();
        if tail.sequence == from.sequence && trees.is_empty() {
            return Ok(None);
        }
        let (series, bytes) = (self.view().series.freeze(), self.memory.young());
        Ok(Some(Young { from, tail, trees, series, bytes }))
    }

    /// Writes a segment; the numbers of the schemas of its trees go to `schemas`.
    fn write_young(&self, young: &Young, schemas: &mut Vec<u128>) -> Result<SegmentInfo> {
        let mut hashes = self.hash_cells(young);
        let (number, epoch) = self.next_segment();
        let meta = SegmentMeta {
            database_id: self.id,
            epoch,
            level: 0,
            encoding: Encoding::Warm,
            // What is written of indexes alone is of commits that segments have.
            first_sequence: young.from.sequence.next().min(young.tail.sequence),
            last_sequence: young.tail.sequence,
        };
        let segment = SegmentWriter::create(&self.device, number, meta)?;
        let mut out = CellSink::new(segment.until(self.stop()));
        for (tree, frozen) in &young.trees {
            schemas.push(tree.write_frozen(frozen, hashes.remove(&tree.id()), &mut out)?);
        }
        let mut rolling = Rolling::new(self.view(), young.tail.sequence, self.now())?;
        out.put_series(&young.series, &mut rolling)?;
        out.finish()
    }

    /// The cells of the content hashes of the newest revisions. One that cannot be read is left
    /// out: damage elsewhere is no reason to lose what is young, and `check` tells it.
    fn hash_cells(&self, young: &Young) -> FxHashMap<TreeId, Cell> {
        let mut cells = FxHashMap::default();
        let mut bytes_left = self.options.memory_bytes / HASHED_SHARE;
        // Trees take turns at being the first, so that none goes without for ever.
        let turn = usize::try_from(young.tail.sequence.0).unwrap_or(usize::MAX);
        let (later, first) = young.trees.split_at(turn.checked_rem(young.trees.len()).unwrap_or(0));
        for (tree, frozen) in first.iter().chain(later) {
            if bytes_left == 0 {
                break;
            }
            let bytes_max = bytes_left.min(KEPT_HASH_TEXT_BYTES_MAX);
            let (cell, bytes) = tree.hash_cell(frozen.revision, bytes_max);
            bytes_left = bytes_left.saturating_sub(bytes);
            cells.extend(cell.ok().flatten().map(|cell| (tree.id(), cell)));
        }
        cells
    }

    /// Makes a segment the newest, and the checkpoint the place up to which it has the commits.
    fn name_segment(&self, info: SegmentInfo, young: &Young) -> Result<()> {
        let view = self.view();
        let segment = view.store.open_segment(&info)?;
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.segments.insert(0, info);
        next.checkpoint = young.tail;
        self.store_naming(&next, info.number)?;
        *manifest = next;
        view.series.checkpointed(&young.series, || view.store.add(segment));
        Ok(())
    }

    /// Whether what is young is worth a checkpoint of its own.
    pub(super) fn has_much_young(&self) -> bool {
        self.journal_bytes().max(self.memory.young()) >= CLOSING_CHECKPOINT_JOURNAL_BYTES
    }

    /// Whether nobody wants to wait for what spares the next open some time.
    pub(super) fn is_hurried(&self) -> bool {
        self.options.hurry.load(Ordering::Relaxed)
    }

    /// What ends a checkpoint of the thread beside the commits, once the database is being closed
    /// in a hurry. Before that, commits may wait for it.
    fn stop(&self) -> Stop {
        Stop::new([&self.options.hurry, self.signal.ending()])
    }

    /// Ends the work in order: a checkpoint if there is much to replay, and everything durable.
    pub(crate) fn shut(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Some(poisoned) = journal.poisoned() {
            return Err(poisoned);
        }
        // What finds no room now is staged still, and the next open finds it.
        match self.seal() {
            Err(error) if error.kind() == ErrorKind::Full => {}
            sealed => sealed?,
        }
        // Entries of indexes take memory, and no journal.
        if self.has_much_young() && !self.is_hurried() {
            match self.write_checkpoint() {
                // It would only spare the next open some replay: there is no room or time for it.
                Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Cancelled) => {}
                written => written?,
            }
        }
        let infos = self.view().store.infos();
        let young = infos.iter().filter(|info| info.level == 0).count();
        if young > SEGMENTS_KEPT_MAX && !self.was_compaction_stopped() {
            // Processes that each write and end soon leave a segment each and no time to merge.
            match self.compact_due() {
                Err(error) if error.kind() == ErrorKind::Full => {}
                merged => merged?,
            }
        }
        let under_way = self.compaction.lock().take();
        under_way.into_iter().for_each(Compaction::leave);
        journal.close()?;
        self.end_staging()
    }
}
