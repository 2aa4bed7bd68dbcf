//! What was deleted, as spans that do not overlap: so a look at whether a point was takes no more
//! where there was much deleted.

use std::collections::BinaryHeap;

use crate::revision::CommitSequence;
use crate::series::span::TimeSpan;
use crate::series::young::Delete;

/// Spans of time, rising, each with the last commit that deleted what was there.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    spans: Vec<(TimeSpan, CommitSequence)>,
}

impl Deleted {
    /// What was deleted, in any order.
    pub(crate) fn new(mut deletes: Vec<Delete>) -> Self {
        deletes.sort_unstable_by_key(|delete| delete.span.first);
        let mut spans: Vec<(TimeSpan, CommitSequence)> = Vec::with_capacity(deletes.len());
        // Those that began, the last commit first, with their ends.
        let mut open: BinaryHeap<(CommitSequence, i64)> = BinaryHeap::new();
        let mut next = deletes.iter().peekable();
        let mut at = i64::MIN;
        loop {
            while let Some(delete) = next.next_if(|delete| delete.span.first <= at) {
                open.push((delete.sequence, delete.span.last));
            }
            while open.peek().is_some_and(|(_, last)| *last < at) {
                open.pop();
            }
            let begins = next.peek().map(|delete| delete.span.first);
            let Some(&(sequence, last)) = open.peek() else {
                let Some(begins) = begins else { break };
                at = begins;
                continue;
            };
            let last = begins.map_or(last, |begins| last.min(begins - 1));
            match spans.last_mut() {
                Some((span, before)) if *before == sequence && span.last + 1 == at => {
                    span.last = last;
                }
                _ => spans.push((TimeSpan { first: at, last }, sequence)),
            }
            let Some(after) = last.checked_add(1) else { break };
            at = after;
        }
        Self { spans }
    }

    /// Whether a point of a commit was deleted since.
    pub(crate) fn has(&self, time: i64, sequence: CommitSequence) -> bool {
        self.has_any_of((time, time), sequence)
    }

    /// Whether any point may have been deleted of a commit or a later one, of all between two
    /// times, both included.
    pub(crate) fn has_any_of(&self, (first, last): (i64, i64), sequence: CommitSequence) -> bool {
        let from = self.spans.partition_point(|(span, _)| span.last < first);
        let mut near = self.spans[from..].iter().take_while(|(span, _)| span.first <= last);
        near.any(|(_, deleted)| *deleted > sequence)
    }

    /// Whether anything was deleted between two times, both included.
    pub(super) fn is_near(&self, (first, last): (i64, i64)) -> bool {
        self.has_any_of((first, last), CommitSequence(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::block::tests::Numbers64;

    #[test]
    fn a_point_is_deleted_if_any_later_commit_did_it() {
        for seed in 0..300 {
            let random = &mut Numbers64(seed);
            let mut near = |most: u64| random.below(most);
            let mut deletes = Vec::new();
            for _ in 0..near(12) {
                let first = near(40).cast_signed() - 20;
                let span = TimeSpan { first, last: first + near(15).cast_signed() };
                let span = match near(12) {
                    0 => TimeSpan { first: i64::MIN, ..span },
                    1 => TimeSpan { last: i64::MAX, ..span },
                    _ => span,
                };
                deletes.push(Delete { sequence: CommitSequence(1 + near(9)), span });
            }
            let all = Deleted::new(deletes.clone());
            for pair in all.spans.windows(2) {
                assert!(pair[0].0.last < pair[1].0.first, "{all:?}");
            }
            for time in (-25..40).chain([i64::MIN, i64::MAX]) {
                for sequence in (0..11).map(CommitSequence) {
                    let is_over = |one: &Delete| one.sequence > sequence && one.span.has(time);
                    let expected = deletes.iter().any(is_over);
                    assert_eq!(all.has(time, sequence), expected, "seed {seed}, {time}");
                    let (first, last) = (time.saturating_sub(3), time.saturating_add(4));
                    let is_any = |one: &Delete| {
                        one.sequence > sequence && one.span.first <= last && one.span.last >= first
                    };
                    let expected = deletes.iter().any(is_any);
                    assert_eq!(all.has_any_of((first, last), sequence), expected);
                }
            }
        }
    }
}
