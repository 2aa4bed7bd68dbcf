//! Compaction: segments that pile up become one, and the space of what they superseded comes back.
//!
//! The live segments are young ones, level 0, and below them at most one a level. Once there are
//! more than [`SEGMENTS_KEPT_MAX`] in all, the young ones are merged: into the level above the
//! newest while one is free, else with as many of the newest levels as give back most for what
//! they cost. So a byte is merged about the fewest times that so many segments allow. What is small
//! beside what is merged is merged with it anyway.
//!
//! Invariants:
//! - the merged segments follow each other in age, so that of a key in several the newest holds
//!   before and after;
//! - the new segment is durable before the manifest names it, and the manifest names either it or
//!   all that it was made of;
//! - revisions that a document's retention lets go are dropped only where everything older is
//!   merged too;
//! - a compaction that is interrupted leaves what it found, and what it has merged for the next
//!   one to go on with; where that cannot be, its file is removed, by the next open if need be.

mod pieces;
pub(crate) mod progress;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::engine::retention::{Departing, Trimming};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{
    COMPACTION_STEP_BYTES, LEVELS_MAX, MERGED_BYTES_MAX, MERGED_CELLS_MAX, SEGMENTS_KEPT_MAX,
};
use crate::segment::{self, Encoding, Segment, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::series::rollup;
use crate::store::{LiveSegments, Scan};
use crate::tree::Tree;
use crate::tree::cell_key;
use crate::tree::erase::Erasures;
use crate::tree::merge::{Cell, Merger};
use crate::tree::vectors::find_vectors;

use pieces::Pieces;

/// One in so many bytes of what is merged, up to which a level is merged too though a level is
/// free, as that costs next to nothing.
const SMALL_SHARE: u64 = 8;
/// Bytes of blocks that a compaction keeps beside those it reads.
const CACHE_BYTES: u64 = 1 << 20;
/// How long a compaction on demand waits for a transaction that changes the catalogue before it
/// goes without dropping revisions, and for one that changes a document before what departed stays.
const CATALOGUE_WAIT_MS: u64 = 1_000;

/// Which segments to merge, and into what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    /// Of the live segments, newest first.
    inputs: Range<usize>,
    level: u8,
    encoding: Encoding,
    resume: Resume,
}

/// Who goes on with a merge that is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resume {
    /// Whoever merges next.
    Always,
    /// The next compaction on demand.
    OnDemand,
    /// Nobody: it begins anew.
    Never,
}

/// What to merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    /// What is due.
    Due,
    All,
    /// Everything, even if that is one merged segment, as long as there is something to drop.
    AllTrimmed,
}

impl Wish {
    /// Whether it is fulfilled by what is under way, which is given up otherwise: it may merge a
    /// part, or keep what is to be dropped, and take the room that is needed.
    fn goes_on_with(self, under_way: &Compaction) -> bool {
        match self {
            Self::Due => true,
            Self::All => under_way.is_whole,
            Self::AllTrimmed => false,
        }
    }

    /// Whether something to drop is reason enough.
    fn trims(self) -> bool {
        self == Self::AllTrimmed
    }

    /// What is dropped of that which has departed.
    fn departing(self) -> Departing {
        match self {
            Self::Due | Self::All => Departing::Deleted,
            Self::AllTrimmed => Departing::All,
        }
    }

    fn plan(self, live: &[SegmentInfo]) -> Option<Plan> {
        match self {
            Self::Due => Plan::due(live),
            Self::All | Self::AllTrimmed => Plan::all(live),
        }
    }
}

/// A compaction under way.
#[derive(Debug)]
pub(crate) struct Compaction {
    /// Numbers of the segments that are merged.
    inputs: Vec<u64>,
    /// Whether these were all, to be written as they are by a compaction on demand.
    is_whole: bool,
    cells: Scan,
    merger: Merger,
    /// Cells on their way to the writer.
    merged: Vec<Cell>,
    /// What is noted of it; none if it would begin anew. Before the writer, as it names its file.
    pieces: Option<Pieces>,
    writer: SegmentWriter,
    /// Where it goes on within a document of which revisions are dropped: what that has before is
    /// taken once more, as what stays of the rest follows from it.
    repeats_until: Option<Vec<u8>>,
    /// What to drop, and the cells that say so, in key order.
    trimming: Trimming,
    told: VecDeque<Cell>,
    /// Bytes of the merged segments, and of their cells read so far.
    pub(crate) total_bytes: u64,
    pub(crate) read_bytes: u64,
}

impl Plan {
    /// What is due with these segments, newest first.
    fn due(live: &[SegmentInfo]) -> Option<Self> {
        let young = live.iter().take_while(|info| info.level == 0).count();
        if live.len() <= SEGMENTS_KEPT_MAX || young == 0 {
            return None;
        }
        let (newer, levels) = live.split_at(young);
        let is_full = levels.first().is_some_and(|next| next.level == 1);
        let mut end = young + if is_full { levels_due(newer, levels) } else { 0 };
        let mut bytes: u64 = live.iter().take(end).map(SegmentInfo::file_bytes).sum();
        while let Some(next) = live.get(end)
            && next.file_bytes() <= bytes / SMALL_SHARE
        {
            bytes = bytes.saturating_add(next.file_bytes());
            end += 1;
        }
        while !fit_one(live.get(..end)?) {
            end -= 1;
        }
        // One alone would be written anew after each checkpoint.
        if end == 1 && live.len() > 1 {
            return None;
        }
        let level = level_above(live.get(end));
        let encoding = encoding_of(live.get(..end), live.len());
        Some(Self { inputs: 0..end, level, encoding, resume: Resume::Always })
    }

    /// Merging everything, unless that has been done.
    fn all(live: &[SegmentInfo]) -> Option<Self> {
        let is_merged = matches!(live, [] | [SegmentInfo { encoding: Encoding::Cold, .. }]);
        if is_merged { None } else { Self::again(live) }
    }

    /// Merging everything, or writing the one segment anew.
    fn again(live: &[SegmentInfo]) -> Option<Self> {
        let (inputs, encoding) = (0..live.len(), Encoding::Cold);
        let all = Self { inputs, level: LEVELS_MAX, encoding, resume: Resume::OnDemand };
        (!live.is_empty()).then_some(all)
    }
}

/// Whoever was told of the progress of a compaction stopped it.
#[cold]
pub(super) fn stopped() -> Error {
    let message = "compacting was stopped: the database is as it was before";
    Error::new(ErrorKind::Cancelled, message)
}

/// How many of the levels, newest first, are merged with the newer segments when none is free:
/// those of which the square of their number is most for the bytes that are merged. Each one that
/// gets free is filled before any is merged again, with more checkpoints the more are free.
fn levels_due(newer: &[SegmentInfo], levels: &[SegmentInfo]) -> usize {
    let mut bytes: u128 = newer.iter().map(|info| u128::from(info.file_bytes())).sum();
    let merged = (1..=levels.len()).zip(levels).map(|(count, level)| {
        bytes += u128::from(level.file_bytes());
        (count, bytes)
    });
    let square = |count: usize| (count * count) as u128;
    let best = merged.max_by(|a, b| (square(a.0) * b.1).cmp(&(square(b.0) * a.1)));
    best.map_or(0, |(count, _)| count)
}

/// Whether segments may be merged into one. What leads to cells has its limits, and what is found
/// to be beyond them by writing it costs hours each time.
fn fit_one(merged: &[SegmentInfo]) -> bool {
    let sum = |of: fn(&SegmentInfo) -> u64| merged.iter().map(of).fold(0, u64::saturating_add);
    merged.len() <= 1
        || sum(SegmentInfo::file_bytes) <= MERGED_BYTES_MAX
            && sum(|info| info.cells) <= MERGED_CELLS_MAX
}

/// How the newest segments, of so many, are written when they are merged: compressed if that takes
/// in the oldest one and it was, so that what was compacted on demand does not grow again. Nothing
/// else is compressed, because a read of a compressed block takes several times as long.
fn encoding_of(merged: Option<&[SegmentInfo]>, live: usize) -> Encoding {
    match merged {
        Some(merged @ [.., oldest]) if merged.len() == live => oldest.encoding,
        _ => Encoding::Warm,
    }
}

/// The level of a segment before the next older one.
fn level_above(next: Option<&SegmentInfo>) -> u8 {
    next.map_or(LEVELS_MAX, |next| next.level.saturating_sub(1))
}

impl Compaction {
    /// Merges everything without what is erased; none if there are no segments.
    pub(super) fn erasing(engine: &Engine, erasures: Erasures) -> Result<Option<Self>> {
        let live = engine.view().store.live();
        let infos: Vec<_> = live.segments().iter().map(|found| *found.info()).collect();
        let Some(plan) = Plan::again(&infos) else { return Ok(None) };
        let plan = Plan { resume: Resume::Never, ..plan };
        let mut compaction = Self::begin(engine, &live, (&plan, Trimming::default()))?;
        compaction.merger.erase(erasures);
        Ok(Some(compaction))
    }

    /// Gives the compaction up; what it has written is overwritten.
    pub(super) fn erase(self) -> Result<()> {
        let Self { pieces, writer, .. } = self;
        drop(pieces);
        writer.erase()
    }

    fn begin(
        engine: &Engine,
        live: &LiveSegments,
        (plan, trimming): (&Plan, Trimming),
    ) -> Result<Self> {
        let infos: Vec<_> = live.segments().iter().map(|segment| *segment.info()).collect();
        let inputs = infos.get(plan.inputs.clone()).unwrap_or_default();
        let first = inputs.iter().map(|info| info.first_sequence).min().unwrap_or_default();
        let last = inputs.iter().map(|info| info.last_sequence).max().unwrap_or_default();
        let meta = SegmentMeta {
            database_id: engine.id,
            epoch: engine.epoch(),
            level: plan.level,
            encoding: plan.encoding,
            first_sequence: first,
            last_sequence: last,
        };
        let mut merger = Merger::new(live.part(plan.inputs.end..infos.len(), CACHE_BYTES));
        if plan.level == LEVELS_MAX {
            merger = merger.sealing();
        }
        let kept = trimming.kept();
        let mut told: Vec<Cell> = kept
            .iter()
            .map(|(&tree, kept)| (cell_key::kept(tree).into(), kept.encode().into()))
            .collect();
        told.sort_unstable();
        let dropped = trimming.encode();
        merger.keep(kept);
        merger.keep_series(engine.kept_series());
        merger.drop_departed(trimming.departed());
        let (writer, pieces) = engine.begin_pieces(plan, inputs, meta, dropped)?;
        let mut cells = live.part(plan.inputs.clone(), CACHE_BYTES).scan(&[])?;
        let (mut read_bytes, mut repeats_until) = (0, None);
        let begun = pieces.as_ref().and_then(Pieces::start);
        // What goes of points is told now, and may be more than went of those that came before.
        if plan.inputs.end == infos.len() && begun.is_none() {
            merger.drop_deletes();
        }
        if let Some((key, before)) = begun {
            let trimmed = merger.trimmed(key);
            repeats_until = trimmed.is_some().then(|| key.to_vec());
            match trimmed {
                Some(tree) => cells.seek(&tree.0.to_be_bytes())?,
                None => cells.seek(key)?,
            }
            told.retain(|(told, _)| **told >= *key);
            read_bytes = before;
        }
        Ok(Self {
            trimming,
            told: told.into(),
            is_whole: plan.encoding == Encoding::Cold,
            inputs: inputs.iter().map(|info| info.number).collect(),
            cells,
            merger,
            merged: Vec::new(),
            pieces,
            writer: writer.with_vectors(find_vectors).erasing(&engine.erases),
            repeats_until,
            total_bytes: inputs.iter().map(SegmentInfo::file_bytes).sum(),
            read_bytes,
        })
    }

    /// Merges some more cells; true if there are none left.
    pub(super) fn step(&mut self) -> Result<bool> {
        let mut read = 0;
        while read < COMPACTION_STEP_BYTES {
            let Some(found) = self.cells.next() else {
                self.end_repeat()?;
                for told in self.told.drain(..) {
                    self.merger.push(told, &mut self.merged)?;
                }
                self.merger.finish(&mut self.merged)?;
                self.write()?;
                return Ok(true);
            };
            let (key, handle) = found?;
            if self.repeats_until.as_ref().is_some_and(|until| *key < **until) {
                read += self.merger.repeat(key, || handle.load())?;
                continue;
            }
            self.end_repeat()?;
            while let Some(told) = self.told.pop_front_if(|told| told.0 < key) {
                self.merger.push(told, &mut self.merged)?;
            }
            let is_full = self.pieces.as_ref().is_some_and(|found| found.is_full(self.read_bytes));
            if is_full && self.merger.is_between(&key) {
                self.end_piece(&key)?;
            }
            let cell = handle.load()?;
            let bytes = key.len() + cell.len();
            read += bytes;
            self.read_bytes += bytes as u64;
            let told = self.told.pop_front_if(|told| told.0 == key);
            self.merger.push(told.unwrap_or((key, cell)), &mut self.merged)?;
            self.write()?;
        }
        Ok(false)
    }

    /// Goes on behind what had been merged.
    fn end_repeat(&mut self) -> Result<()> {
        if self.repeats_until.take().is_some() { self.merger.end_repeat() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        for (key, cell) in self.merged.drain(..) {
            self.writer.push(&key, &cell)?;
        }
        Ok(())
    }
}

impl Engine {
    /// Does some of the compaction that is due; false if there is nothing more to do.
    pub(crate) fn compact_step(&self) -> Result<bool> {
        self.compact_by(Wish::Due, &mut |_, _| ControlFlow::Continue(()))
    }

    /// Does the compaction that is due, unless there is a hurry.
    pub(crate) fn compact_due(&self) -> Result<()> {
        while !self.is_hurried() && self.compact_step()? {}
        Ok(())
    }

    /// Merges all segments into one, without what the documents' retention lets go. `progress` is
    /// told the bytes read and those to read of what is under way, and may stop it: that is
    /// `Cancelled`.
    pub(crate) fn compact_all(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut wish = Wish::AllTrimmed;
        while self.compact_by(wish, progress)? {
            // Once only, as with time there is always more to drop.
            wish = Wish::All;
        }
        Ok(())
    }

    fn compact_by(
        &self,
        wish: Wish,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<bool> {
        if let Some(poisoned) = self.journal()?.poisoned() {
            return Err(poisoned);
        }
        let under_way = match wish {
            // A purge keeps it for as long as it merges.
            Wish::Due => self.compaction.try_lock(),
            _ => Some(self.compaction.lock()),
        };
        let Some(mut under_way) = under_way else { return Ok(false) };
        if wish == Wish::Due && self.is_compacting_on_demand() {
            return Ok(false);
        }
        let found = match under_way.take().filter(|found| wish.goes_on_with(found)) {
            Some(compaction) => Some(compaction),
            None => self.begin(wish, wish.departing())?,
        };
        let Some(mut compaction) = found else { return Ok(false) };
        let before = compaction.read_bytes;
        let stepped = compaction.step();
        self.compacted_bytes.fetch_add(compaction.read_bytes - before, Ordering::Relaxed);
        let is_done = stepped?;
        if progress(compaction.read_bytes, compaction.total_bytes).is_break() {
            compaction.leave();
            return Err(stopped());
        }
        if !is_done {
            *under_way = Some(compaction);
        } else if !self.install(compaction)? {
            // Who brings back what departed again and again is not to hold up what is dropped.
            let again = if wish == Wish::Due { wish } else { Wish::AllTrimmed };
            *under_way = self.begin(again, Departing::Nothing)?;
        }
        Ok(true)
    }

    /// Begins what is to be merged, if anything is.
    fn begin(&self, wish: Wish, departing: Departing) -> Result<Option<Compaction>> {
        let live = || {
            let live = self.view().store.live();
            let infos: Vec<_> = live.segments().iter().map(|found| *found.info()).collect();
            (live, infos)
        };
        let (now, infos) = live();
        let is_whole = |plan: &Plan, infos: &[SegmentInfo]| plan.inputs.end == infos.len();
        if wish == Wish::Due
            && let Some((plan, trimming)) = self.left_plan(&infos)?
        {
            let mut compaction = Compaction::begin(self, &now, (&plan, trimming))?;
            if is_whole(&plan, &infos) {
                compaction.merger.keep_indexes(self.index_ids()?);
            }
            return Ok(Some(compaction));
        }
        match wish.plan(&infos) {
            None if !wish.trims() => return Ok(None),
            Some(plan) if !is_whole(&plan, &infos) => {
                return Compaction::begin(self, &now, (&plan, Trimming::default())).map(Some);
            }
            _ => {}
        }
        let wait_ms = if wish == Wish::Due { 0 } else { CATALOGUE_WAIT_MS };
        let mut trimming = self.trimming(wait_ms, departing)?;
        trimming.find_departed(departing)?;
        // What is dropped is of revisions that segments had before, so that these have all of it.
        let (now, infos) = live();
        let is_trimmed =
            wish.trims() && (!trimming.is_empty() || self.kept_series().is_exceeded()?);
        let plan = if is_trimmed { Plan::again(&infos) } else { wish.plan(&infos) };
        let Some(plan) = plan else { return Ok(None) };
        if !is_whole(&plan, &infos) {
            return Compaction::begin(self, &now, (&plan, Trimming::default())).map(Some);
        }
        let mut compaction = Compaction::begin(self, &now, (&plan, trimming))?;
        // An index is named before it has cells, so those of these segments are named now, unless
        // they were dropped.
        compaction.merger.keep_indexes(self.index_ids()?);
        Ok(Some(compaction))
    }

    /// What is kept of series now.
    fn kept_series(&self) -> rollup::Kept {
        rollup::Kept::new(self.view(), self.published(), self.now())
    }

    /// Puts the finished segment in the place of those it was made of, and removes these. False if
    /// something has come back that departed, and nothing is as it was not before.
    fn install(&self, compaction: Compaction) -> Result<bool> {
        let before = self.view().store.live();
        let is_whole = compaction.is_whole;
        let replaced = self.replace(compaction, &[])?;
        let is_replaced = replaced.is_ok();
        if is_whole {
            // What was not noted now stays until it is.
            let _ = self.note_gone_series();
        }
        let unused = replaced.as_ref().err().map(|unused| unused.info().number);
        if self.is_purging() {
            // They may have what is purged, though it is another merge that leaves it out.
            self.give_up(before.segments());
            self.give_up(replaced.err().as_slice());
            drop(before);
            self.overwrite_given_up()?;
            return Ok(is_replaced);
        }
        // Whoever reads the old ones has them open; an old file that stays is removed by the next
        // open for writing.
        for number in replaced.unwrap_or_default().into_iter().chain(unused) {
            let _ = self.device.remove(&segment::path(number));
        }
        Ok(is_replaced)
    }

    /// Puts the finished segment in the place of those it was made of, whose numbers are returned;
    /// the segment if it is of no use, because what departed has come back. Trees of which
    /// something was erased in it, or has departed, forget what they have read, at the same time.
    pub(super) fn replace(
        &self,
        compaction: Compaction,
        erased: &[Arc<Tree>],
    ) -> Result<Result<Vec<u64>, Arc<Segment>>> {
        let journal = self.journal()?;
        let Compaction { inputs, writer, pieces, mut trimming, .. } = compaction;
        let info = writer.finish()?;
        let view = self.view();
        let segment = view.store.open_segment(&info)?;
        {
            let Some(_turns) = trimming.close(CATALOGUE_WAIT_MS)? else {
                return Ok(Err(segment));
            };
            let departed = trimming.departed();
            let mut manifest = self.manifest.lock();
            let mut next = manifest.clone();
            let infos = view.store.infos();
            let at = infos.iter().position(|info| inputs.contains(&info.number)).unwrap_or(0);
            next.segments = infos;
            next.segments.retain(|info| !inputs.contains(&info.number));
            next.segments.insert(at, info);
            let stored = self.store_naming(&next, info.number);
            stored.inspect_err(|error| {
                // A later open may find what lacks the revisions and values that are dropped, so
                // nothing may come to depend on them any more.
                if !trimming.is_empty() && self.may_be_named(info.number) {
                    journal.poison(error);
                }
            })?;
            *manifest = next;
            let mut erased: Vec<_> = erased.iter().map(|tree| tree.data.write()).collect();
            view.store.replace(&inputs, Some(segment));
            erased.iter_mut().try_for_each(|data| data.forget_disk())?;
            trimming.finish();
            let mut departed: Vec<_> =
                departed.values().map(|departed| departed.tree.data.write()).collect();
            departed.iter_mut().try_for_each(|data| data.forget_departed())?;
        }
        drop(pieces);
        // What was decoded holds the old files open, and their space.
        for tree in view.open_trees() {
            tree.release_decoded()?;
        }
        view.drop_idle();
        self.compactions.fetch_add(1, Ordering::Relaxed);
        Ok(Ok(inputs))
    }

    /// Bytes of cells that compactions went through since the database was opened.
    pub(crate) fn compacted_bytes(&self) -> u64 {
        self.compacted_bytes.load(Ordering::Relaxed)
    }

    /// Compactions since the database was opened.
    pub(crate) fn compactions(&self) -> u64 {
        self.compactions.load(Ordering::Relaxed)
    }

    /// A number for a segment, and the epoch it is written in.
    pub(crate) fn next_segment(&self) -> (u64, u64) {
        let mut manifest = self.manifest.lock();
        let number = manifest.next_segment;
        manifest.next_segment += 1;
        (number, manifest.epoch)
    }
}
