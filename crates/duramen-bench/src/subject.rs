//! What a versioned store must do for the workloads of sections V and H.
//!
//! Each store does it in the way that serves it best. Invariant: a method does all of its work
//! before it returns, so that a stopwatch around it is fair to every subject.

use std::ops::RangeInclusive;

use anyhow::Result;

use crate::device::DeviceCalls;
use crate::document::Change;
use crate::files::Space;
use crate::sampling::Latencies;

/// The subject that ratios are for.
pub(crate) const DURAMEN: &str = "duramen";

/// The document that workloads with one document use.
pub(crate) const FIRST: u32 = 1;

/// When a commit counts as acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It is on the device.
    Sync,
    /// It was handed to the operating system; used to build a history that is not timed.
    Relaxed,
}

/// How a store renders a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// Without spaces.
    Compact,
    /// With a space after each colon and comma.
    Spaced,
}

/// One commit of several changes.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// What changes, each scalar at most once.
    pub(crate) changes: Vec<Change>,
    /// The text of the whole document after them, for stores that do better with it; empty where
    /// there is one change only.
    pub(crate) whole: String,
}

/// A document as it was at some point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    /// Which document, counted from 1.
    pub(crate) tree: u32,
    /// Which point of it.
    pub(crate) at: At,
}

/// A point of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The revision, counted from 1 for each document.
    Revision(u64),
    /// The instant, in microseconds since the Unix epoch.
    Instant(i64),
}

/// A value of the log: one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The revision's number.
    pub(crate) revision: i64,
    /// Its timestamp in microseconds since the Unix epoch.
    pub(crate) at: i64,
}

/// A field that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldChange {
    /// JSON Pointer to it.
    pub(crate) pointer: String,
    /// Its JSON text in the one revision.
    pub(crate) old: Option<String>,
    /// Its JSON text in the other.
    pub(crate) new: Option<String>,
}

/// All that differs between two revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The fields that differ.
    pub(crate) changes: Vec<FieldChange>,
    /// The same as a JSON Patch (RFC 6902), from the stores that make one.
    pub(crate) patch: Option<String>,
}

/// What the journal and all files took since the store was made; `None` where the store does not
/// tell.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Journal {
    /// Syncs of the journal.
    pub(crate) syncs: Option<u64>,
    /// Bytes appended to it.
    pub(crate) bytes: Option<u64>,
    /// What the store asked of the operating system.
    pub(crate) device: Option<DeviceCalls>,
}

/// When the disk is looked at, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// After the commits, journal included.
    WithJournal,
    /// After a checkpoint, journal left out.
    Checkpointed,
    /// After the store packed itself as tightly as it can.
    Compacted,
}

/// A store that keeps every revision of JSON documents.
pub(crate) trait VersionedStore: Send {
    /// The name in the tables.
    fn subject(&self) -> &'static str;

    /// How it renders documents.
    fn rendering(&self) -> Rendering;

    /// The process that does the work, where it can be observed.
    fn process(&self) -> Option<u32>;

    /// Decides when commits from here on are acknowledged.
    fn set_durability(&mut self, durability: Durability) -> Result<()>;

    /// Inserts a document as its revision 1.
    fn insert(&mut self, tree: u32, json: &str) -> Result<()>;

    /// Sets `counter` to each of the values, one commit each.
    fn count_up(
        &mut self,
        tree: u32,
        values: RangeInclusive<u64>,
        latencies: &mut Latencies,
    ) -> Result<()>;

    /// Makes one commit.
    fn commit(&mut self, tree: u32, step: &Step) -> Result<()>;

    /// Ends the building: what the store would do in quiet hours, and what readers must know.
    fn settle(&mut self) -> Result<()>;

    /// Moves all that is only in the journal to where it stays.
    fn checkpoint(&mut self) -> Result<()>;

    /// Drops every handle and opens the store again.
    fn reopen(&mut self) -> Result<()>;

    /// Renders each target to JSON text and sums the bytes. Single reads are added to
    /// `latencies` where the store can tell them apart.
    fn read(&mut self, targets: &[Target], latencies: &mut Latencies) -> Result<u64>;

    /// The timestamps of all revisions of the first document, in microseconds.
    fn timestamps(&mut self) -> Result<Vec<i64>>;

    /// The log of the first document: all of it, or the newest so many from the newest on.
    fn entries(&mut self, newest: Option<u32>) -> Result<Vec<Entry>>;

    /// `counter` in every revision of the first document, in the store's own order.
    fn counters(&mut self) -> Result<Vec<i64>>;

    /// The strings that a field of the first document's root had, one for each run of revisions
    /// with the same, in the store's own order.
    fn runs(&mut self, field: &str) -> Result<Vec<String>>;

    /// `counter` of the first document at a revision.
    fn counter_at(&mut self, revision: u64) -> Result<i64>;

    /// What differs between two revisions of the first document.
    fn diff(&mut self, from: u64, to: u64) -> Result<Difference>;

    /// What the journal took so far.
    fn journal(&mut self) -> Result<Journal>;

    /// What the store takes on the disk; `None` if it knows no such stage.
    fn space(&mut self, stage: Stage) -> Result<Option<Space>>;

    /// One more handle on the same store, for another thread.
    fn another_handle(&self) -> Result<Box<dyn VersionedStore>>;

    /// Closes the store and removes its files.
    fn discard(self: Box<Self>) -> Result<()>;
}
