//! Checkpoints: what is young goes into a segment, and the journal before it is recycled.

use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::error::Result;
use crate::journal::JournalPoint;
use crate::limits::{CLOSING_CHECKPOINT_JOURNAL_BYTES, KEPT_HASH_TEXT_BYTES_MAX};
use crate::segment::{Encoding, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::tree::Tree;
use crate::tree::persist::{Cells, Written};
use std::sync::Arc;

/// One in so many bytes of the database's memory may be read for content hashes by a checkpoint:
/// half is for what is young, a quarter caches blocks.
const HASHED_SHARE: usize = 4;

/// What a checkpoint is to write.
struct Young {
    tail: JournalPoint,
    cells: Cells,
    trees: Vec<(Arc<Tree>, Written)>,
}

impl Engine {
    /// Writes everything published and not yet in a segment into one, and merges segments if there
    /// are many by now.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        self.write_checkpoint()?;
        // Nothing depends on it: a compaction that fails is tried again after the next checkpoint.
        let _ = self.compact_due();
        Ok(())
    }

    /// Writes everything published and not yet in a segment into one.
    pub(super) fn write_checkpoint(&self) -> Result<()> {
        let young_bytes = self.young_bytes.load(Ordering::Relaxed);
        let result = self.write_young();
        if result.is_err() {
            // What was not written is still due.
            self.young_bytes.fetch_max(young_bytes, Ordering::Relaxed);
        }
        result
    }

    fn write_young(&self) -> Result<()> {
        let journal = self.journal()?;
        let mut manifest = self.manifest.lock();
        let Some(mut young) = self.collect(manifest.checkpoint)? else { return Ok(()) };
        self.keep_hashes(&mut young);
        young.cells.sort_unstable();
        // Two trees may bring the same schema.
        young.cells.dedup_by(|a, b| a.0 == b.0);
        let number = manifest.next_segment;
        manifest.next_segment += 1;
        let meta = SegmentMeta {
            database_id: self.id,
            epoch: manifest.epoch,
            level: 0,
            encoding: Encoding::Warm,
            first_sequence: manifest.checkpoint.sequence.next(),
            last_sequence: young.tail.sequence,
        };
        let info = self.write_segment(number, meta, &young.cells)?;
        let view = self.view();
        let segment = view.store.open_segment(&info)?;
        let mut next = manifest.clone();
        next.segments = [info].into_iter().chain(view.store.infos()).collect();
        next.checkpoint = young.tail;
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("recycle_early") {
            journal.checkpointed(next.checkpoint.position)?;
        }
        next.store(self.device.as_ref())?;
        *manifest = next;
        // Not before: if the manifest cannot be written, all of it is still young.
        view.store.add(segment);
        for (tree, written) in &young.trees {
            tree.checkpointed(written)?;
        }
        drop(young.trees);
        view.drop_idle();
        journal.checkpointed(manifest.checkpoint.position)
    }

    /// Encodes what is young, between two commits.
    fn collect(&self, before: JournalPoint) -> Result<Option<Young>> {
        let journal = self.journal()?;
        let _no_commits = self.gate.write();
        journal.flush()?;
        let tail = journal.tail();
        self.young_bytes.store(0, Ordering::Relaxed);
        if tail.sequence == before.sequence {
            return Ok(None);
        }
        let mut cells = Cells::new();
        let mut trees = Vec::new();
        for tree in self.view().open_trees() {
            if tree.is_dirty() {
                let written = tree.checkpoint(&mut cells);
                trees.push((tree, written));
            }
        }
        Ok(Some(Young { tail, cells, trees }))
    }

    /// Adds the content hashes of the newest revisions, which are read beside new commits. One
    /// that cannot be read is left out: damage elsewhere is no reason to lose what is young, and
    /// `check` tells it.
    fn keep_hashes(&self, young: &mut Young) {
        // What is read of documents stays in memory until the checkpoint ends.
        let mut bytes_left = self.options.memory_bytes / HASHED_SHARE;
        // Trees take turns at being the first, so that none goes without for ever.
        let turn = usize::try_from(young.tail.sequence.0).unwrap_or(usize::MAX);
        let (later, first) = young.trees.split_at(turn.checked_rem(young.trees.len()).unwrap_or(0));
        for (tree, written) in first.iter().chain(later) {
            if bytes_left == 0 {
                break;
            }
            let bytes_max = bytes_left.min(KEPT_HASH_TEXT_BYTES_MAX);
            let (cell, bytes) = tree.hash_cell(written.revision, bytes_max);
            bytes_left = bytes_left.saturating_sub(bytes);
            young.cells.extend(cell.ok().flatten());
        }
    }

    fn write_segment(&self, number: u64, meta: SegmentMeta, cells: &Cells) -> Result<SegmentInfo> {
        let mut writer = SegmentWriter::create(&self.device, number, meta)?;
        for (key, cell) in cells {
            writer.push(key, cell)?;
        }
        writer.finish()
    }

    /// Ends the work in order: a checkpoint if there is much to replay, and everything durable.
    pub(crate) fn shut(&self) -> Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if let Some(poisoned) = journal.poisoned() {
            return Err(poisoned);
        }
        if self.journal_bytes() >= CLOSING_CHECKPOINT_JOURNAL_BYTES {
            self.write_checkpoint()?;
        }
        journal.close()
    }
}
