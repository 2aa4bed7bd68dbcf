//! The memory of a query, with room for the merges of its sorts.
//!
//! A sort that has no more memory sorts what it has and merges it into a file, and the merge takes
//! about as much memory again, which it cannot do without. Shared evenly among all that can use
//! files, sorts alone would take all there is.
//!
//! Invariants:
//! - the rows of a sort take one of two shares that are kept for it;
//! - the merge of its files leaves memory to the others, and to what merges all sorts;
//! - the more of it is reserved, the less the database keeps of what it has read.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};

use duramen::MemoryShare;

use crate::session::MERGE_SHARE;

/// The share of a query's memory in which the database keeps what it reads, whatever is reserved.
const READING_SHARE: usize = 8;

/// What the names of sorts and of their merges begin with.
const SORT: &str = "ExternalSorter[";
const MERGE: &str = "ExternalSorterMerge[";

/// Memory that is shared evenly, with two shares for each sort.
#[derive(Debug)]
pub(crate) struct Room {
    shared: FairSpillPool,
    bytes: usize,
    merges: AtomicUsize,
    database: MemoryShare,
}

impl Room {
    /// Room for a query that may hold so many bytes together with what the database keeps for it.
    pub(crate) fn new(bytes: usize, database: MemoryShare) -> Self {
        let bytes = bytes - bytes / READING_SHARE;
        Self { shared: FairSpillPool::new(bytes), bytes, merges: AtomicUsize::new(0), database }
    }

    /// The most bytes of a merge: three quarters of what there is for all of them, and however many
    /// they are, twice what a sort keeps for one.
    fn merge_bytes_max(&self) -> usize {
        let merges = self.merges.load(Ordering::Relaxed).max(1);
        (self.bytes / 4 * 3 / merges).max(self.bytes / MERGE_SHARE * 2)
    }
}

impl fmt::Display for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shared.fmt(f)
    }
}

impl MemoryPool for Room {
    fn name(&self) -> &str {
        self.shared.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.shared.register(consumer);
        if consumer.name().starts_with(SORT) {
            // Counted twice, it gets half of its shares: the other one is that of its merge.
            self.shared.register(consumer);
        } else if consumer.name().starts_with(MERGE) {
            self.merges.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.shared.unregister(consumer);
        if consumer.name().starts_with(SORT) {
            self.shared.unregister(consumer);
        } else if consumer.name().starts_with(MERGE) {
            self.merges.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.shared.grow(reservation, additional);
        self.database.hold(self.shared.reserved());
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.shared.shrink(reservation, shrink);
        self.database.hold(self.shared.reserved());
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let name = reservation.consumer().name();
        let most = self.merge_bytes_max();
        if name.starts_with(MERGE) && reservation.size().saturating_add(additional) > most {
            return Err(resources_datafusion_err!("{name} takes more than {most} bytes"));
        }
        self.shared.try_grow(reservation, additional)?;
        self.database.hold(self.shared.reserved());
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.shared.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.shared.memory_limit()
    }
}
