//! Merging piece by piece: what is merged is made durable and noted now and then, so that a merge
//! that is interrupted, even by a power loss, goes on where it was and repeats one piece at most.
//!
//! Invariants:
//! - a piece ends between two columns: there nothing of one cell depends on the next, but for what
//!   stays in a tree of which something is dropped, whose cells before are taken once more;
//! - what a merge left is gone on with by one of the same segments that drops the same, or removed
//!   by any other; one that erases values begins anew.

use std::ops::Range;
use std::sync::Arc;

use super::progress::{DROPPED_BYTES_MAX, Progress};
use super::{Compaction, Plan, Resume};
use crate::engine::Engine;
use crate::engine::retention::Trimming;
use crate::error::{Error, Result};
use crate::io::{Device, zeros};
use crate::segment::{self, SegmentInfo, SegmentMeta, SegmentWriter};

/// Bytes of cells in a piece at least. It has as many as the journal gets before a checkpoint: so
/// noting them costs a fraction of what was written.
const PIECE_BYTES_MIN: usize = 4 << 10;

/// What a merge notes of itself. Dropped, it takes the note with it, unless it was left.
#[derive(Debug)]
pub(super) struct Pieces {
    device: Arc<dyn Device>,
    /// As it was last noted.
    progress: Progress,
    is_noted: bool,
    /// Bytes of cells in a piece.
    piece_bytes: u64,
}

impl Pieces {
    /// The key to go on at, if it is not the beginning, and the bytes of the cells before it.
    pub(super) fn start(&self) -> Option<(&[u8], u64)> {
        self.is_noted.then_some((&self.progress.next_key, self.progress.read_bytes))
    }

    /// Whether a piece ends, of the cells of which so many bytes have been read.
    pub(super) fn is_full(&self, read_bytes: u64) -> bool {
        read_bytes.saturating_sub(self.progress.read_bytes) >= self.piece_bytes
    }

    /// Notes that everything before a key is durable in so many bytes of the segment.
    fn note(&mut self, key: &[u8], (written_bytes, read_bytes): (u64, u64)) -> Result<()> {
        let next_key = key.to_vec();
        self.progress = Progress { written_bytes, read_bytes, next_key, ..self.progress.clone() };
        self.progress.store(self.device.as_ref())?;
        self.is_noted = true;
        Ok(())
    }

    /// Ends without a change on the device; whether anything was noted.
    fn leave(mut self) -> bool {
        std::mem::take(&mut self.is_noted)
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if self.is_noted {
            // One that stays names segments that are not there, so nobody goes on with it.
            let _ = Progress::remove(self.device.as_ref());
        }
    }
}

impl Compaction {
    /// Ends a piece before a key of the next column.
    pub(super) fn end_piece(&mut self, key: &[u8]) -> Result<()> {
        let Some(pieces) = &mut self.pieces else { return Ok(()) };
        self.merger.settle(&mut self.merged)?;
        for (key, cell) in self.merged.drain(..) {
            self.writer.push(&key, &cell)?;
        }
        if self.writer.is_empty() {
            return Ok(());
        }
        let written = self.writer.cut()?;
        pieces.note(key, (written, self.read_bytes))
    }

    /// Ends it where it is, to be gone on with from the last piece.
    pub(crate) fn leave(self) {
        let Self { pieces, writer, .. } = self;
        if pieces.is_some_and(Pieces::leave) {
            writer.leave();
        }
    }
}

impl Engine {
    /// What writes the segment of a merge: behind what one of the same segments left, if that can
    /// be gone on with.
    pub(super) fn begin_pieces(
        &self,
        plan: &Plan,
        inputs: &[SegmentInfo],
        meta: SegmentMeta,
        dropped: Vec<u8>,
    ) -> Result<(SegmentWriter, Option<Pieces>)> {
        let pieces = |progress, is_noted| Pieces {
            device: Arc::clone(&self.device),
            progress,
            is_noted,
            piece_bytes: self.journal_bytes_max().max(PIECE_BYTES_MIN) as u64,
        };
        let inputs: Vec<u64> = inputs.iter().map(|info| info.number).collect();
        let resume = match dropped.len() {
            ..=DROPPED_BYTES_MAX => plan.resume,
            _ => Resume::Never,
        };
        if resume != Resume::Never
            && let Some(left) = Progress::load(self.device.as_ref())?
            && (left.database_id, left.level) == (self.id, plan.level)
            && (left.encoding, &left.inputs) == (plan.encoding, &inputs)
            && left.dropped == dropped
            // What cannot be gone on with is begun anew.
            && let Ok(writer) =
                SegmentWriter::resume(&self.device, (left.segment, meta), left.written_bytes)
        {
            return Ok((writer, Some(pieces(left, true))));
        }
        self.remove_left()?;
        let (segment, _) = self.next_segment();
        let writer = SegmentWriter::create(&self.device, segment, meta)?;
        let progress = Progress {
            database_id: self.id,
            segment,
            level: plan.level,
            encoding: plan.encoding,
            is_on_demand: resume == Resume::OnDemand,
            written_bytes: 0,
            read_bytes: 0,
            inputs,
            next_key: Vec::new(),
            dropped,
        };
        Ok((writer, (resume != Resume::Never).then(|| pieces(progress, false))))
    }

    /// What is to be gone on with of the merges that nobody asked for, and what it drops, if that
    /// may still be dropped.
    pub(super) fn left_plan(&self, live: &[SegmentInfo]) -> Result<Option<(Plan, Trimming)>> {
        let left = Progress::load(self.device.as_ref())?.filter(|left| !left.is_on_demand);
        let Some(left) = left else { return Ok(None) };
        let Some(inputs) = place_of(&left.inputs, live) else { return Ok(None) };
        let (level, encoding) = (left.level, left.encoding);
        let plan = Plan { inputs, level, encoding, resume: Resume::Always };
        Ok(self.trimming_again(&left.dropped)?.map(|trimming| (plan, trimming)))
    }

    /// Removes what a merge left that is not under way; whether there was anything.
    pub(crate) fn remove_left(&self) -> Result<bool> {
        let device = self.device.as_ref();
        let Some(left) = Progress::load(device)? else { return Ok(false) };
        let is_live = self.view().store.infos().iter().any(|info| info.number == left.segment);
        if !is_live {
            let path = segment::path(left.segment);
            if self.is_purging() {
                let erased = zeros::overwrite(device, &path);
                erased.map_err(|error| Error::io(format!("cannot overwrite {path}"), error))?;
            }
            // One that is not there is as well.
            let _ = device.remove(&path);
        }
        Progress::remove(device)?;
        Ok(true)
    }
}

/// Where segments stand among the live ones, if they follow each other.
fn place_of(numbers: &[u64], live: &[SegmentInfo]) -> Option<Range<usize>> {
    let first = *numbers.first()?;
    let start = live.iter().position(|info| info.number == first)?;
    let inputs = start..start + numbers.len();
    let are_these =
        live.get(inputs.clone())?.iter().map(|info| info.number).eq(numbers.iter().copied());
    are_these.then_some(inputs)
}
