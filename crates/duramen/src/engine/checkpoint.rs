//! Checkpoints: what is young goes into a segment, and the journal before it is recycled.
//!
//! Invariants:
//! - commits wait only while the bounds of what is to be written are noted; what is below them does
//!   not change any more, so that it is encoded and written while commits go on above;
//! - until the manifest names the segment, all of it is still young: a checkpoint that fails, such
//!   as on a full disk, has done nothing, and another one writes the same again.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::engine::Engine;
use crate::error::Result;
use crate::journal::JournalPoint;
use crate::limits::CLOSING_CHECKPOINT_JOURNAL_BYTES;
use crate::segment::{Encoding, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::tree::Tree;
use crate::tree::persist::{CellSink, Frozen};

/// The right to move the checkpoint: to write one, or to commit without the journal.
pub(crate) type CheckpointTurn<'e> = MutexGuard<'e, ()>;

/// What a checkpoint is to write.
struct Young {
    /// The checkpoint before.
    from: JournalPoint,
    tail: JournalPoint,
    trees: Vec<(Arc<Tree>, Frozen)>,
    /// Approximate bytes that it takes in memory.
    bytes: usize,
}

impl Engine {
    /// Writes everything published and not yet in a segment into one.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.checkpoint_in_turn(&self.checkpoint_turn())
    }

    /// Waits for the checkpoint that is being written, if one is.
    pub(crate) fn checkpoint_turn(&self) -> CheckpointTurn<'_> {
        self.checkpoints.lock()
    }

    pub(crate) fn checkpoint_in_turn(&self, _turn: &CheckpointTurn<'_>) -> Result<()> {
        let journal = self.journal()?;
        let Some(young) = self.freeze()? else { return Ok(()) };
        let mut schemas = Vec::with_capacity(young.trees.len());
        let info = self.write_young(&young, &mut schemas)?;
        self.name_segment(info, young.tail)?;
        for ((tree, frozen), &schema) in young.trees.iter().zip(&schemas) {
            tree.checkpointed(frozen, schema)?;
        }
        drop(young.trees);
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
        let _no_commits = self.gate.write();
        journal.flush()?;
        let tail = journal.tail();
        if tail.sequence == from.sequence {
            return Ok(None);
        }
        let frozen = |tree: Arc<Tree>| tree.freeze().map(|frozen| (tree, frozen));
        let trees = self.view().open_trees().into_iter().filter_map(frozen).collect();
        let bytes = self.memory.young();
        Ok(Some(Young { from, tail, trees, bytes }))
    }

    /// Writes a segment; the numbers of the schemas of its trees go to `schemas`.
    fn write_young(&self, young: &Young, schemas: &mut Vec<u128>) -> Result<SegmentInfo> {
        let (number, epoch) = self.next_segment();
        let meta = SegmentMeta {
            database_id: self.id,
            epoch,
            level: 0,
            encoding: Encoding::Warm,
            first_sequence: young.from.sequence.next(),
            last_sequence: young.tail.sequence,
        };
        let mut out = CellSink::new(SegmentWriter::create(&self.device, number, meta)?);
        for (tree, frozen) in &young.trees {
            schemas.push(tree.write_frozen(frozen, &mut out)?);
        }
        out.finish()
    }

    /// The number of a segment to be written, given to no other one, and the epoch.
    fn next_segment(&self) -> (u64, u64) {
        let mut manifest = self.manifest.lock();
        manifest.next_segment += 1;
        (manifest.next_segment - 1, manifest.epoch)
    }

    /// Makes a segment the newest, and the checkpoint the place up to which it has the commits.
    fn name_segment(&self, info: SegmentInfo, tail: JournalPoint) -> Result<()> {
        let store = &self.view().store;
        let segment = store.open_segment(&info)?;
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.segments.insert(0, info);
        next.checkpoint = tail;
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("recycle_early") {
            self.journal()?.checkpointed(next.checkpoint.position)?;
        }
        next.store(self.device.as_ref())?;
        *manifest = next;
        store.add(segment);
        Ok(())
    }

    /// Ends the work in order: a checkpoint if there is much to replay, and everything durable.
    pub(crate) fn shut(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Some(poisoned) = journal.poisoned() {
            return Err(poisoned);
        }
        if self.journal_bytes() >= CLOSING_CHECKPOINT_JOURNAL_BYTES {
            self.checkpoint()?;
        }
        journal.close()
    }
}
