//! The greedy search for a longest common subsequence in O(ND) (Myers 1986), with caps.

use super::{Caps, common_front};

/// Pairs of equal items of a longest common subsequence, or nothing if a cap was met before it was
/// found.
///
/// Row `d` of the search has, for each diagonal, how many old items a path of `d` removals and
/// insertions can have passed at most. Entry `i` of it, of `i` removals net of the rest, is on the
/// diagonal where `old - new = 2 * i - d`; it follows from entries `i - 1` (by a removal) and `i`
/// (by an insertion) of the row before.
pub(super) fn search(old: &[u64], new: &[u64], caps: Caps) -> Option<Vec<(usize, usize)>> {
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let mut steps = 0;
    for edits in 0..=caps.edits {
        let mut row = Vec::with_capacity(edits + 1);
        for entry in 0..=edits {
            let begin = begin(rows.last(), entry).0;
            let at = begin + edits - 2 * entry;
            let snake = common_front(after(old, begin), after(new, at));
            row.push(begin + snake);
            if begin + snake >= old.len() && at + snake >= new.len() {
                rows.push(row);
                return Some(trace(&rows, old.len(), new.len()));
            }
            steps += 1 + snake;
            if steps > caps.steps {
                return None;
            }
        }
        rows.push(row);
    }
    None
}

/// How many old items an entry has passed before equal items follow, and whether by a removal.
fn begin(before: Option<&Vec<usize>>, entry: usize) -> (usize, bool) {
    let Some(before) = before else { return (0, false) };
    let removal = entry.checked_sub(1).map(|entry| before[entry] + 1);
    match (removal, before.get(entry).copied()) {
        (Some(removal), Some(insertion)) if removal <= insertion => (insertion, false),
        (Some(removal), _) => (removal, true),
        (None, insertion) => (insertion.unwrap_or(0), false),
    }
}

fn after(list: &[u64], at: usize) -> &[u64] {
    list.get(at..).unwrap_or_default()
}

/// The equal items on the path to the end of both lists, from the last row back.
fn trace(rows: &[Vec<usize>], mut old: usize, mut new: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for edits in (0..rows.len()).rev() {
        let entry = (old + edits - new) / 2;
        let before = edits.checked_sub(1).map(|edits| &rows[edits]);
        let (begin, removal) = begin(before, entry);
        while old > begin {
            old -= 1;
            new -= 1;
            pairs.push((old, new));
        }
        if edits > 0 {
            if removal { old -= 1 } else { new -= 1 }
        }
    }
    pairs.reverse();
    pairs
}
