//! What is done when the device has no room left.
//!
//! The database keeps a file of zeros, the *reserve*. It is handed back for what gives room: the
//! commit that deletes a document or bounds its history, and the compaction that follows.
//!
//! Invariants:
//! - the reserve is never read and nothing relies on it: a device without room for it has none;
//! - room that comes back goes to the checkpoint first: until one is written the journal gets no
//!   new file, which would take what the checkpoint needs to make the journal's old files free;
//! - a checkpoint that found no room is not tried again by every commit;
//! - a compaction on demand has the room to itself: nothing else merges meanwhile, nor tries again
//!   a checkpoint that found no room.

use std::io::ErrorKind as Os;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::Durability;
use crate::engine::Engine;
use crate::engine::checkpoint::CheckpointTurn;
use crate::engine::compaction::Compaction;
use crate::engine::record::Prepared;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, File};
use crate::journal::Ticket;
use crate::limits::{
    FREED_ROOM_RETRY_MS, FREED_ROOM_WAIT_MS, RESERVE_BYTES_MAX, ROOM_WAIT_COMMITS_MAX,
};
use crate::manifest::Manifest;
use crate::segment;
use crate::sync::Mutex;

/// The file of the reserve: room for the journal first of all, so it lies there.
const RESERVE: &str = "journal/RESERVE";
/// Bytes by which the reserve grows, and that a commit takes of it at a time: a short journal file
/// and what a file system needs to name it.
const STEP_BYTES: u64 = 128 << 10;
/// One in so many bytes of the database's segments is kept in reserve.
const SEGMENT_SHARE: u64 = 8;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// What is known of the room on the device.
#[derive(Debug, Default)]
pub(super) struct Room {
    reserve: Mutex<Option<Arc<dyn File>>>,
    patience: Mutex<Patience>,
    /// Bytes of the journal at which a checkpoint is due.
    journal_bytes: AtomicUsize,
    /// Whether the last checkpoint found no room.
    is_wanting: AtomicBool,
    /// Compactions on demand that are under way.
    on_demand: AtomicUsize,
    /// Whether the last one was stopped.
    was_stopped: AtomicBool,
}

impl Room {
    /// Nothing is known but the bytes of the journal at which a checkpoint is due.
    pub(super) fn new(journal_bytes: usize) -> Self {
        Self { journal_bytes: AtomicUsize::new(journal_bytes), ..Self::default() }
    }
}

/// While it lives a compaction on demand is under way.
#[derive(Debug)]
struct OnDemand<'e>(&'e Engine);

impl Drop for OnDemand<'_> {
    fn drop(&mut self) {
        self.0.room.on_demand.fetch_sub(1, Ordering::AcqRel);
        self.0.signal.wake();
    }
}

/// How long commits wait before one of them tries again to write a checkpoint.
#[derive(Debug, Default)]
struct Patience {
    /// Checkpoints in a row that found no room.
    refusals: u32,
    /// Commits that do not try.
    waits: u32,
}

impl Patience {
    /// Whether it is to be tried now.
    fn tries(&mut self) -> bool {
        let tries = self.waits == 0;
        self.waits = self.waits.saturating_sub(1);
        tries
    }

    fn refused(&mut self) {
        self.waits = 2_u32.saturating_pow(self.refusals).min(ROOM_WAIT_COMMITS_MAX) - 1;
        self.refusals = self.refusals.saturating_add(1);
    }
}

impl Engine {
    /// Writes a checkpoint; one that finds no room gets that of the journal's spare files and of
    /// a merge that is not at its end.
    pub(super) fn checkpoint_with_room(&self, turn: &CheckpointTurn<'_>) -> Result<()> {
        let mut written = self.checkpoint_in_turn(turn);
        if is_full(&written) && (self.journal()?.hold()? | self.give_up_compaction()) {
            written = self.checkpoint_in_turn(turn);
        }
        if is_full(&written) {
            self.room.is_wanting.store(true, Ordering::Relaxed);
            self.room.patience.lock().refused();
        }
        if written.is_ok() {
            self.room.is_wanting.store(false, Ordering::Relaxed);
            *self.room.patience.lock() = Patience::default();
            self.lengthen_journal()?;
            self.settle_room()?;
        }
        written
    }

    /// Writes the checkpoint that is due, unless it is left to a compaction on demand.
    pub(super) fn write_due_checkpoint(&self) -> Result<()> {
        let turn = self.checkpoint_turn();
        // Who waited for the turn may have waited for a checkpoint of that compaction, which found
        // no room: another one beside the merge that follows would take what this needs.
        if self.leaves_room() { Ok(()) } else { self.checkpoint_with_room(&turn) }
    }

    /// Whether a merge was under way that nobody asked for, or left; what it wrote is removed, and
    /// it begins anew later.
    fn give_up_compaction(&self) -> bool {
        self.compaction.try_lock().is_some_and(|mut under_way| match &*under_way {
            Some(_) if self.is_compacting_on_demand() => false,
            _ => under_way.take().is_some() || self.remove_left().unwrap_or(false),
        })
    }

    /// Lets the reserve and the journal have what room there is, unless a checkpoint needs it; the
    /// reserve, unless a compaction on demand does, which may have taken it.
    pub(super) fn settle_room(&self) -> Result<()> {
        if !self.is_wanting_room() {
            self.journal()?.let_grow();
            if !self.is_compacting_on_demand() {
                self.keep_reserve();
            }
        }
        Ok(())
    }

    /// Bytes of the journal at which a checkpoint is due.
    pub(super) fn journal_bytes_max(&self) -> usize {
        self.room.journal_bytes.load(Ordering::Relaxed)
    }

    /// Whether the device has, or had when it was last asked, too little room for the journal.
    fn is_journal_short(&self) -> bool {
        self.journal_bytes_max() < self.options.checkpoint_journal_bytes
    }

    /// Lets the journal get longer before the next checkpoint if the device has more room by now.
    /// It does not get shorter while the device fills: that left less room for compaction.
    fn lengthen_journal(&self) -> Result<()> {
        if self.is_journal_short()
            && let free @ Some(_) = self.device.free_bytes()
        {
            let bytes = self.options.fitting_journal_bytes(free);
            self.room.journal_bytes.fetch_max(bytes, Ordering::Relaxed);
            self.journal()?.want(self.journal_bytes_max() as u64);
        }
        Ok(())
    }

    /// Whether there may be no room for more than what is to be merged: then nothing is written
    /// before that which can do without.
    fn is_short_of_room(&self) -> bool {
        let wanted = self.segment_bytes().saturating_add(self.options.memory_bytes as u64);
        self.is_wanting_room() || self.device.free_bytes().is_some_and(|free| free < wanted)
    }

    fn is_wanting_room(&self) -> bool {
        self.room.is_wanting.load(Ordering::Relaxed)
    }

    /// Whether a compaction on demand is under way, which merges everything.
    pub(super) fn is_compacting_on_demand(&self) -> bool {
        self.room.on_demand.load(Ordering::Acquire) > 0
    }

    /// Whether the last compaction on demand was stopped: who stopped it does not wait for merges.
    pub(super) fn was_compaction_stopped(&self) -> bool {
        self.room.was_stopped.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint is left to the compaction on demand that makes the room for it.
    pub(super) fn leaves_room(&self) -> bool {
        self.is_wanting_room() && self.is_compacting_on_demand()
    }

    /// From now on a compaction on demand is under way; a merge that was ends where it is, and is
    /// gone on with if it is of the same segments.
    fn begin_on_demand(&self) -> OnDemand<'_> {
        self.room.on_demand.fetch_add(1, Ordering::AcqRel);
        let on_demand = OnDemand(self);
        // Who merges now ends a step first.
        let under_way = self.compaction.lock().take();
        under_way.into_iter().for_each(Compaction::leave);
        on_demand
    }

    /// Waits while what is young takes three quarters of the memory: until a checkpoint that is
    /// being written is, or one is written at once. `Full`, or what else it was, if that fails.
    pub(super) fn wait_for_room(&self) -> Result<()> {
        let is_wanted = || self.memory.is_full_of_young() || self.is_wanting_room();
        if !is_wanted() {
            return Ok(());
        }
        // No room would help a database that writes no more.
        if let Some(poisoned) = self.journal()?.poisoned() {
            return Err(poisoned);
        }
        let turn = self.checkpoint_turn();
        if !is_wanted() {
            return Ok(());
        }
        match self.checkpoint_again(&turn) {
            // There may still be room in the journal's file.
            Err(error) if error.kind() == ErrorKind::Full && !self.memory.is_full_of_young() => {
                Ok(())
            }
            written => written.map_err(|error| {
                error.in_context("the memory is full of commits that cannot be written to segments")
            }),
        }
    }

    /// Writes a checkpoint, unless the last one found no room a few commits ago.
    fn checkpoint_again(&self, turn: &CheckpointTurn<'_>) -> Result<()> {
        if !self.leaves_room() && self.room.patience.lock().tries() {
            return self.checkpoint_with_room(turn);
        }
        let message = "a checkpoint found no room a moment ago: free some on the device, or bound \
                       the history of documents and compact";
        Err(Error::new(ErrorKind::Full, message))
    }

    /// Whether a thread that commits should do what is due, rather than wait for room.
    pub(super) fn is_patient(&self) -> bool {
        !self.room.patience.lock().tries()
    }

    /// Queues a commit that found no room in the journal: after a checkpoint, or with the reserve
    /// if it is one that gives room.
    pub(super) fn queue_full(
        &self,
        prepared: &Prepared<'_>,
        durability: Durability,
        refused: Error,
    ) -> Result<Ticket> {
        if prepared.gives_room() {
            while self.release_reserve(STEP_BYTES) {
                self.journal()?.let_grow();
                let queued = self.append(prepared, durability);
                if self.is_wanting_room() {
                    self.journal()?.hold()?;
                }
                if !is_full(&queued) {
                    return queued;
                }
            }
        }
        self.checkpoint_for(refused)?;
        self.append(prepared, durability)
    }

    /// Writes a checkpoint for a commit that the journal refused, as it has no room for it.
    pub(super) fn checkpoint_for(&self, refused: Error) -> Result<()> {
        match self.checkpoint_again(&self.checkpoint_turn()) {
            Err(error) if error.kind() == ErrorKind::Full => Err(refused),
            written => written,
        }
    }

    /// Writes what is only in the journal into a segment and merges all segments.
    pub(crate) fn compact(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        // What is let go must not come back with the power.
        self.journal()?.flush()?;
        if !self.is_short_of_room() {
            self.follow_all(progress)?;
        }
        let compacted = self.compact_with_room(progress);
        let is_stopped = |error: &Error| error.kind() == ErrorKind::Cancelled;
        self.room.was_stopped.store(compacted.as_ref().is_err_and(is_stopped), Ordering::Relaxed);
        compacted?;
        self.settle_room()
    }

    fn compact_with_room(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let _on_demand = self.begin_on_demand();
        let written = self.checkpoint();
        if is_full(&written) {
            // The reserve is for what is in segments first: that gives the checkpoint its room,
            // and not the other way round.
            let before = self.segment_bytes();
            let merged = self.with_reserve(&mut || self.compact_all(progress));
            if !is_full(&merged) {
                merged?;
            }
            let is_freed = self.segment_bytes() < before;
            let mut wait_ms = if is_freed { FREED_ROOM_WAIT_MS } else { 0 };
            self.with_reserve(&mut || self.checkpoint_in_freed_room(&mut wait_ms))?;
        } else {
            written?;
        }
        self.with_reserve(&mut || self.compact_all(progress))
    }

    /// Writes a checkpoint where files were removed for it, whose room may come back a moment
    /// later: a process that is being started has them open, and some file systems take their time.
    fn checkpoint_in_freed_room(&self, wait_ms: &mut u64) -> Result<()> {
        loop {
            let written = self.checkpoint();
            if !is_full(&written) || *wait_ms == 0 {
                return written;
            }
            std::thread::sleep(Duration::from_millis(FREED_ROOM_RETRY_MS));
            *wait_ms = wait_ms.saturating_sub(FREED_ROOM_RETRY_MS);
        }
    }

    /// Does what gives room. While it finds none it gets that of the journal's spare files, and
    /// then the reserve.
    pub(super) fn with_reserve(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut done = work();
        if is_full(&done) && self.journal()?.hold()? {
            done = work();
        }
        if is_full(&done) && self.release_reserve(RESERVE_BYTES_MAX) {
            done = work();
        }
        if done.is_ok() {
            self.settle_room()?;
        }
        done
    }

    /// Does what takes next to no room; while it finds none it gets a step of the reserve.
    pub(super) fn with_step_of_reserve(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let done = work();
        if is_full(&done) && self.release_reserve(STEP_BYTES) { work() } else { done }
    }

    /// Writes the manifest that names a segment. Where that fails the segment is removed, as what
    /// room there is is wanted, but not if the manifest may name it all the same.
    pub(super) fn store_naming(&self, next: &Manifest, segment: u64) -> Result<()> {
        let device = self.device.as_ref();
        let stored = next.store(device);
        if stored.is_err() && !self.may_be_named(segment) {
            self.remove_unnamed(segment);
        }
        stored
    }

    /// Removes a finished segment that no manifest names, unless it is to be overwritten first.
    pub(super) fn remove_unnamed(&self, segment: u64) {
        if !self.erases.load(Ordering::Relaxed) {
            // It is cut first, as one that is being written; one that stays is removed by the next
            // open.
            let path = segment::path(segment);
            let _ = self.device.open(&path, Access::Write).and_then(|file| file.set_len(0));
            let _ = self.device.remove(&path);
        }
    }

    /// Whether a later open may find a segment, as far as the device tells.
    pub(super) fn may_be_named(&self, segment: u64) -> bool {
        let found = Manifest::load(self.device.as_ref());
        found.map_or(true, |found| {
            found.is_none_or(|found| found.segments.iter().any(|info| info.number == segment))
        })
    }

    /// Makes the reserve as long as it should be, as far as the device has room.
    fn keep_reserve(&self) {
        // Where there is little room there may never be enough for a segment.
        let least = if self.is_journal_short() { STEP_BYTES } else { 0 };
        let share = (self.segment_bytes() / SEGMENT_SHARE).max(least);
        let wanted = share.next_multiple_of(STEP_BYTES).min(RESERVE_BYTES_MAX);
        let mut reserve = self.room.reserve.lock();
        // Without it commits are refused a little later, and room has to come from elsewhere.
        let _ = extend(self.device.as_ref(), &mut reserve, wanted);
    }

    /// Gives so many bytes of the reserve back; false if there is none.
    fn release_reserve(&self, bytes: u64) -> bool {
        let mut reserve = self.room.reserve.lock();
        let Ok(file) = opened(self.device.as_ref(), &mut reserve) else { return false };
        let Ok(before @ 1..) = file.len() else { return false };
        file.set_len(before.saturating_sub(bytes)).is_ok()
    }
}

/// Whether something was refused for want of room.
pub(super) fn is_full<T>(done: &Result<T>) -> bool {
    matches!(done, Err(error) if error.kind() == ErrorKind::Full)
}

fn opened(
    device: &dyn Device,
    reserve: &mut Option<Arc<dyn File>>,
) -> std::io::Result<Arc<dyn File>> {
    if let Some(file) = reserve {
        return Ok(Arc::clone(file));
    }
    let file = device.open(RESERVE, Access::Write)?;
    Ok(Arc::clone(reserve.insert(file)))
}

/// Appends zeros to the reserve up to `wanted` bytes; without room it stays as it was.
fn extend(
    device: &dyn Device,
    reserve: &mut Option<Arc<dyn File>>,
    wanted: u64,
) -> std::io::Result<()> {
    if wanted == 0 {
        return Ok(());
    }
    let file = match opened(device, reserve) {
        Err(error) if error.kind() == Os::NotFound => {
            Arc::clone(reserve.insert(device.open(RESERVE, Access::Create)?))
        }
        opened => opened?,
    };
    let before = file.len()?;
    let mut at = before;
    while at < wanted {
        let bytes = usize::try_from(wanted - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        if let Err(error) = crate::io::write_all_at(file.as_ref(), &ZEROS[..bytes], at) {
            // Half a step would only be in the way of what the room is needed for now.
            file.set_len(before)?;
            return Err(error);
        }
        at += bytes as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryDevice;
    use crate::{Database, Options};

    /// A database with commits for which a checkpoint is due.
    fn database() -> Database {
        let options =
            Options { background: false, checkpoint_journal_bytes: 1, ..Options::default() };
        let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
        db.engine.room.patience.lock().waits = u32::MAX;
        db.create_document("d").unwrap();
        assert!(db.engine.is_checkpoint_due());
        db
    }

    /// It was written beside the merge that was to make room for it, and took what that needed: so
    /// a compaction of a full disk failed now and then.
    #[test]
    fn a_checkpoint_that_waited_for_its_turn_is_left_to_the_compaction_on_demand() {
        let db = database();
        let engine = &db.engine;
        std::thread::scope(|scope| {
            let turn = engine.checkpoint_turn();
            let worker = scope.spawn(|| engine.work());
            std::thread::sleep(Duration::from_millis(100));
            engine.room.is_wanting.store(true, Ordering::Relaxed);
            let _on_demand = engine.begin_on_demand();
            drop(turn);
            worker.join().unwrap().unwrap();
            assert!(engine.view().store.infos().is_empty());
        });
        engine.work().unwrap();
        assert_eq!(engine.view().store.infos().len(), 1);
    }

    #[test]
    fn a_checkpoint_without_room_does_not_give_up_a_compaction_on_demand() {
        let db = database();
        let engine = &db.engine;
        engine.checkpoint().unwrap();
        let compaction = || Compaction::erasing(engine, Vec::new()).unwrap();
        let on_demand = engine.begin_on_demand();
        *engine.compaction.lock() = compaction();
        assert!(!engine.give_up_compaction());
        assert!(engine.compaction.lock().is_some());
        drop(on_demand);
        assert!(engine.give_up_compaction());
        assert!(engine.compaction.lock().is_none());
    }
}
