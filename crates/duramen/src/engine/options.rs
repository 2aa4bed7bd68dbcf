//! How a database is opened, and what a commit says of itself.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::durability::Durability;
use crate::limits::{JOURNAL_ROOM_PARTS, SMALL_JOURNAL_BYTES};
use crate::{Clock, Micros, Revision, SystemClock};

/// How a database is opened.
///
/// ```
/// use duramen::{Durability, Options};
///
/// let options = Options { durability: Durability::Interval(100), ..Options::default() };
/// assert!(options.create);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// Make the database if there is none.
    pub create: bool,
    /// Open beside a writer, never write, and stay at one commit until refreshed.
    pub read_only: bool,
    /// When a commit is acknowledged, unless it says otherwise.
    pub durability: Durability,
    /// How long to wait, in milliseconds, for another process that writes the database.
    pub wait_ms: u64,
    /// Memory for what is not yet in segments and for what is read of them, in bytes. At half of
    /// it a checkpoint is written; at three quarters commits wait for that.
    pub memory_bytes: usize,
    /// Journal since the last checkpoint, in bytes, at which the next one is written. Where the
    /// device has less than eight times as much room when the database is opened, it is an eighth
    /// of that room, 512 KiB at least, and more once a checkpoint finds more room.
    pub checkpoint_journal_bytes: usize,
    /// Whether threads of its own write checkpoints, make journal files and sync `Interval` commits
    /// in time. Without them the committing threads do all of it when they come by.
    pub background: bool,
    /// Where commit timestamps come from.
    pub clock: Arc<dyn Clock>,
    /// Whoever sets this does not want to wait: closing the database then leaves checkpoints and
    /// merges, which spare the next open some time, to that, and opening it leaves a purge that was
    /// interrupted. Every commit is kept all the same.
    pub hurry: Arc<AtomicBool>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create: true,
            read_only: false,
            durability: Durability::Sync,
            wait_ms: 0,
            memory_bytes: 256 << 20,
            checkpoint_journal_bytes: 64 << 20,
            background: true,
            clock: Arc::new(SystemClock),
            hurry: Arc::default(),
        }
    }
}

impl Options {
    /// Journal at which a checkpoint is written on a device with so much room, where that is known:
    /// if the journal took it all before the first checkpoint, nothing could be let go any more.
    /// What a device tells is a hint; a wrong one costs checkpoints.
    pub(crate) fn fitting_journal_bytes(&self, free: Option<u64>) -> usize {
        let share = free.map_or(usize::MAX, |free| {
            usize::try_from(free / JOURNAL_ROOM_PARTS).unwrap_or(usize::MAX)
        });
        self.checkpoint_journal_bytes.min(share.max(SMALL_JOURNAL_BYTES))
    }
}

/// What a commit says of itself.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// The revision timestamp, to load old history: after that of the last revision and not in
    /// the future. The commit timestamp is always the engine's.
    pub timestamp: Option<Micros>,
    /// The revision that the change is based on; another one at the head is a `Conflict`. In a
    /// transaction all documents that it named have to be at it, those included that it only read:
    /// [`Transaction::expect`](crate::Transaction::expect) is of one.
    pub expect_revision: Option<Revision>,
    /// When it is acknowledged; by default as the database was opened.
    pub durability: Option<Durability>,
}

impl CommitOptions {
    /// Whether they say nothing but when the commit is acknowledged.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        let says_nothing = self.author.is_none() && self.message.is_none();
        says_nothing && self.timestamp.is_none() && self.expect_revision.is_none()
    }
}
