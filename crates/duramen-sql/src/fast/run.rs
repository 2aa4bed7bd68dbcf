//! One run of an aggregate over the parts of a table, by several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use duramen::{AggregatePlan, Aggregates, Columns, Result};

/// Parts that a thread takes at once: a part takes a few microseconds, and what is next to what was
/// read is read sooner.
const PARTS_AT_ONCE: usize = 8;

/// Parts that threads take one after the other.
#[derive(Debug)]
pub(super) struct Run {
    rows: Columns,
    plan: AggregatePlan,
    next: AtomicUsize,
    is_over: AtomicBool,
}

impl Run {
    pub(super) fn new(rows: Columns, plan: AggregatePlan) -> Self {
        Self { rows, plan, next: AtomicUsize::new(0), is_over: AtomicBool::new(false) }
    }

    /// Nothing more is taken: nobody waits for it.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// How many parts nobody has taken.
    pub(super) fn left(&self) -> usize {
        self.rows.parts().saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// How many parts were taken.
    pub(super) fn taken(&self) -> usize {
        self.rows.parts() - self.left()
    }

    /// Takes parts until there are no more, there is too much in them, or it is not to go on.
    pub(super) fn work(&self, mut check: impl FnMut() -> Result<()>) -> Result<Aggregates> {
        let mut found = self.plan.start();
        while !self.is_over.load(Ordering::Relaxed) && !found.is_full() {
            let first = self.next.fetch_add(PARTS_AT_ONCE, Ordering::Relaxed);
            if first >= self.rows.parts() {
                break;
            }
            check()?;
            self.rows.aggregate(first..first + PARTS_AT_ONCE, &self.plan, &mut found)?;
        }
        Ok(found)
    }
}
