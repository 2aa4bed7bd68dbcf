//! Compares the elements of a long array with new ones place by place, on threads that share them.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Result;
use crate::json::{Tape, TapeIndex};
use crate::node::NodeId;
use crate::threads::{self, Next, Parts};
use crate::tree::writer::Writer;

/// One in so many elements may differ for their places to count.
const DIFFERENT_PART: usize = 8;
/// Elements that a thread compares at once.
const PIECE_ELEMENTS: usize = 2_048;
/// Pieces for each thread that are begun before the reader takes them.
const PIECES_AHEAD: usize = 4;

/// As many elements as there are new ones.
struct Places<'p> {
    writer: &'p Writer,
    olds: &'p [NodeId],
    tape: &'p Tape<'p>,
    new: &'p [TapeIndex],
    /// So many were found to differ so far, by all threads.
    different: AtomicUsize,
}

/// Of each place, whether its element is the same as the new one as far as looking at them tells;
/// nothing if too many are not.
pub(super) fn compare(
    writer: &Writer,
    (olds, new): (&[NodeId], &[TapeIndex]),
    tape: &Tape<'_>,
) -> Result<Option<Vec<bool>>> {
    let places = Places { writer, olds, tape, new, different: AtomicUsize::new(0) };
    let parts = Parts::new(PIECES_AHEAD * threads::count());
    if places.pieces() < 2 {
        return places.put_together(&parts);
    }
    let help = || while parts.wait_for_room() && places.compare_next(&parts) {};
    threads::share("duramen-compare", &parts, help, || places.put_together(&parts))
}

impl Places<'_> {
    fn pieces(&self) -> u64 {
        self.olds.len().div_ceil(PIECE_ELEMENTS) as u64
    }

    /// Compares the next piece; false if there is none.
    fn compare_next(&self, parts: &Parts<Option<Vec<bool>>>) -> bool {
        let Some(share) = parts.begin(self.pieces()) else { return false };
        let piece = self.compare_piece(share.number());
        share.put(piece);
        true
    }

    fn put_together(&self, parts: &Parts<Option<Vec<bool>>>) -> Result<Option<Vec<bool>>> {
        let mut all = Vec::with_capacity(self.olds.len());
        loop {
            match parts.next() {
                Next::Part(piece) => match piece? {
                    Some(is_same) => all.extend(is_same),
                    None => return Ok(None),
                },
                Next::Room => {
                    self.compare_next(parts);
                }
                Next::End => return Ok(Some(all)),
            }
        }
    }

    /// The same of a piece; nothing once too many of all elements were found to differ.
    fn compare_piece(&self, number: u64) -> Result<Option<Vec<bool>>> {
        let start = number.saturating_mul(PIECE_ELEMENTS as u64);
        let start = usize::try_from(start).unwrap_or(usize::MAX).min(self.olds.len());
        let end = self.olds.len().min(start + PIECE_ELEMENTS);
        let (olds, new) = (&self.olds[start..end], &self.new[start..end]);
        let mut is_same = Vec::with_capacity(olds.len());
        loop {
            let at = is_same.len();
            let same = self.writer.same_at_start(&olds[at..], self.tape, &new[at..])?;
            is_same.resize(at + same, true);
            if is_same.len() == olds.len() {
                return Ok(Some(is_same));
            }
            is_same.push(false);
            let different = self.different.fetch_add(1, Ordering::Relaxed) + 1;
            if different > self.olds.len() / DIFFERENT_PART {
                return Ok(None);
            }
        }
    }
}
