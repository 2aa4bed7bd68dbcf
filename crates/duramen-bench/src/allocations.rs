//! Counts what each thread asks of the allocator.
//!
//! A count does not swing with the machine as a time does. It is kept per thread, so that a
//! measured thread pays one addition for it and no shared cache line.

#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this is its only place")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

/// Allocations and reallocations of this thread so far.
pub(crate) fn of_this_thread() -> u64 {
    COUNT.get()
}

fn count() {
    // The cell has neither initializer nor destructor, so it may be used at any time of a thread.
    COUNT.set(COUNT.get() + 1);
}

// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract; counting
// touches a plain thread-local cell and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: `at` came from the system's allocator with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the system's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `at` came from the system's allocator with this layout; `size` is the caller's.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boxed_value_is_one_allocation() {
        let before = of_this_thread();
        let boxed = std::hint::black_box(Box::new(7_u64));
        assert_eq!(of_this_thread() - before, 1);
        drop(boxed);
        assert_eq!(of_this_thread() - before, 1);
    }
}
