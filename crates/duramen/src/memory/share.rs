//! Memory that whoever reads a database has in common with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Memory;

/// The share of what both may hold that is left to the database.
const LEFT_SHARE: usize = 16;

/// Bytes that a share is counted in, as caches look at what they have at each change.
const STEP_BYTES: usize = 1 << 20;

/// Memory that whoever reads a database has in common with it: the more of it is held, the less
/// the database keeps of what it has read, so that both together stay within a limit.
///
/// What no checkpoint has written yet, and what is being read, is beside it.
///
/// ```
/// use duramen::Database;
///
/// let db = Database::memory()?;
/// let share = db.share_memory(64 << 20);
/// let rows: Vec<u64> = Vec::with_capacity(1_000_000);
/// share.hold(rows.capacity() * size_of::<u64>());
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryShare {
    memory: Arc<Memory>,
    /// What both may hold.
    bytes: usize,
    held: AtomicUsize,
    /// What of the budget is lent for it.
    lent: AtomicUsize,
}

impl MemoryShare {
    pub(crate) fn new(memory: Arc<Memory>, bytes: usize) -> Self {
        let bytes = bytes.min(memory.budget);
        let share = Self { memory, bytes, held: AtomicUsize::new(0), lent: AtomicUsize::new(0) };
        share.lend(share.bytes);
        share
    }

    /// Says how many bytes are held now.
    pub fn hold(&self, bytes: usize) {
        let held = bytes.next_multiple_of(STEP_BYTES);
        if self.held.swap(held, Ordering::Relaxed) != held {
            let left = self.bytes.saturating_sub(held);
            self.lend(left.max(self.bytes / LEFT_SHARE));
        }
    }

    /// Lends all but so many bytes of the budget.
    fn lend(&self, left: usize) {
        let others = self.memory.budget - left;
        let before = self.lent.swap(others, Ordering::Relaxed);
        self.memory.lend(before, others);
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.memory.lend(*self.lent.get_mut(), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: usize = 64 << 20;

    #[test]
    fn what_is_held_is_not_kept_of_what_was_read() {
        let memory = Memory::new(BUDGET);
        let share = MemoryShare::new(Arc::clone(&memory), 2 * BUDGET);
        assert_eq!(memory.own(), BUDGET);
        share.hold(1);
        assert_eq!(memory.own(), BUDGET - STEP_BYTES);
        share.hold(BUDGET / 2);
        assert_eq!(memory.own(), BUDGET / 2);
        share.hold(usize::MAX / 2);
        assert_eq!(memory.own(), BUDGET / LEFT_SHARE);
        let other = MemoryShare::new(Arc::clone(&memory), BUDGET / 4);
        assert_eq!(memory.own(), BUDGET / super::super::OWN_SHARE_MIN);
        drop(share);
        assert_eq!(memory.own(), BUDGET / 4);
        other.hold(BUDGET / 8);
        assert_eq!(memory.own(), BUDGET / 8);
        drop(other);
        assert_eq!(memory.own(), BUDGET);
    }
}
