//! A database as of one commit, kept readable whatever happens to it.

use std::sync::Arc;

use crate::engine::{Engine, View};
use crate::error::Result;
use crate::io::{Device, MemoryDevice};
use crate::journal::JournalPoint;
use crate::manifest::Manifest;
use crate::revision::{Micros, Revision};
use crate::segment::{Encoding, Segment, SegmentMeta, SegmentWriter};
use crate::series::rollup::Rolling;
use crate::store;
use crate::tree::persist::CellSink;

/// What a database consisted of at one commit.
#[derive(Debug)]
pub(crate) struct Pinned {
    /// Its checkpoint is the commit; nothing of the journal belongs to it.
    pub(crate) manifest: Manifest,
    /// The segments that the manifest names, in its order.
    pub(crate) segments: Vec<Arc<Segment>>,
}

impl Engine {
    /// Pins the last commit that readers may see. If opened for writing, a checkpoint puts all of
    /// it into segments; if opened for reading, what is not in segments gets one in memory.
    pub(crate) fn pin(&self) -> Result<Pinned> {
        if self.journal.is_some() {
            self.checkpoint()?;
        }
        let (mut pinned, view) = self.pin_segments();
        if self.journal.is_none() {
            pinned.add_young(&view, self.now())?;
        }
        pinned.manifest.checkpoint.position = JournalPoint::START.position;
        Ok(pinned)
    }

    /// The manifest with the segments that it names.
    fn pin_segments(&self) -> (Pinned, Arc<View>) {
        loop {
            let manifest = self.manifest.lock().clone();
            let view = self.view();
            let segments = view.store.live().segments().to_vec();
            // One may be replaced a moment before the other.
            if segments.iter().map(|segment| segment.info()).eq(&manifest.segments) {
                return (Pinned { manifest, segments }, view);
            }
            std::thread::yield_now();
        }
    }
}

impl Pinned {
    fn add_young(&mut self, view: &Arc<View>, now: Micros) -> Result<()> {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        store::create_directory(device.as_ref())?;
        let checkpoint = &mut self.manifest.checkpoint;
        let first_sequence = checkpoint.sequence.next();
        checkpoint.sequence = view.fixed.unwrap_or(checkpoint.sequence);
        let meta = SegmentMeta {
            database_id: self.manifest.database_id,
            epoch: self.manifest.epoch,
            level: 0,
            encoding: Encoding::Warm,
            first_sequence,
            last_sequence: checkpoint.sequence,
        };
        let number = self.manifest.next_segment;
        let mut cells = CellSink::new(SegmentWriter::create(&device, number, meta)?);
        let mut is_empty = true;
        for tree in view.open_trees() {
            let Some(frozen) = tree.freeze() else { continue };
            tree.write_frozen(&frozen, None, &mut cells)?;
            let last = tree.row(Revision(u64::from(frozen.revision)))?;
            checkpoint.timestamp = checkpoint.timestamp.max(last.committed);
            is_empty = false;
        }
        let series = view.series.freeze();
        if is_empty && series.is_empty() {
            return Ok(());
        }
        for (_, committed) in series.commits() {
            checkpoint.timestamp = checkpoint.timestamp.max(committed);
        }
        let mut rolling = Rolling::new(Arc::clone(view), checkpoint.sequence, now)?;
        cells.put_series(&series, &mut rolling)?;
        let info = cells.finish()?;
        self.manifest.next_segment += 1;
        self.manifest.segments.insert(0, info);
        self.segments.insert(0, Segment::open(device.as_ref(), &info)?);
        Ok(())
    }
}
