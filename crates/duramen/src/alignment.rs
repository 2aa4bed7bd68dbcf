//! Which items of a list go on in another list, for saving a whole array over its last state.
//!
//! The common ends go on, then what a longest common subsequence of the rest keeps; between two
//! items kept, old and new ones pair up by position. The cost is capped by counted steps, never by
//! time, so that the same lists always align the same way. `docs/decisions/0003-alignment.md` says
//! why.

use std::cmp::Reverse;

use rustc_hash::FxHashSet;

use crate::limits::{ALIGNMENT_EDITS_MAX, ALIGNMENT_PAIRS_MAX, ALIGNMENT_STEPS_MAX};
use crate::subsequence::{Point, heaviest_increasing};

mod search;

/// Lists of so many items are looked through for any that both have: that there is none is found
/// out later at several times the cost.
const MANY_ITEMS: usize = 1 << 12;

/// A run of items that share one fate. A list of them is in the order of both lists: every index of
/// either is in exactly one, and the new list follows from reading it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pairing {
    /// Old items from `old` on are the new ones from `new` on: their hashes are equal.
    Same { old: usize, new: usize, items: usize },
    /// Old items from `old` on go on, one by one, as the new ones from `new` on.
    Update { old: usize, new: usize, items: usize },
    /// Old items from `old` on end.
    Remove { old: usize, items: usize },
    /// New items from `new` on begin.
    Insert { new: usize, items: usize },
}

/// Aligns two lists given by hashes of their items; items with equal hashes count as equal.
pub(crate) fn align(old: &[u64], new: &[u64]) -> Vec<Pairing> {
    let caps =
        Caps { pairs: ALIGNMENT_PAIRS_MAX, edits: ALIGNMENT_EDITS_MAX, steps: ALIGNMENT_STEPS_MAX };
    align_within(old, new, caps)
}

/// What an alignment may cost above what is linear in the lists.
#[derive(Debug, Clone, Copy)]
struct Caps {
    pairs: usize,
    edits: usize,
    steps: usize,
}

/// Where a hash that both lists have occurs, in rising order.
struct Group<'a> {
    old: &'a [usize],
    new: &'a [usize],
}

impl Group<'_> {
    fn pairs(&self) -> usize {
        self.old.len().saturating_mul(self.new.len())
    }
}

fn align_within(old: &[u64], new: &[u64], caps: Caps) -> Vec<Pairing> {
    let front = common_front(old, new);
    let back = common_back(&old[front..], &new[front..]);
    let (old_end, new_end) = (old.len() - back, new.len() - back);
    let mut alignment = Alignment { old, new, pairings: Vec::new(), old_at: 0, new_at: 0 };
    alignment.keep(0, 0, front);
    for (o, n) in anchors(&old[front..old_end], &new[front..new_end], caps) {
        alignment.keep(front + o, front + n, 1);
    }
    alignment.keep(old_end, new_end, back);
    alignment.pairings
}

/// Equal items to keep, rising in both lists: as many as there can be, where the caps allow to find
/// them, else a longest chain of those with the rarest hashes.
fn anchors(old: &[u64], new: &[u64], caps: Caps) -> Vec<(usize, usize)> {
    let items = old.len() + new.len();
    if items >= MANY_ITEMS && !have_common(old, new) {
        return Vec::new();
    }
    let few = Caps { steps: caps.steps + 8 * items, edits: caps.edits.min(items / 8), ..caps };
    if let Some(pairs) = search::search(old, new, few) {
        return pairs;
    }
    let (old_by_hash, new_by_hash) = (indices_by_hash(old), indices_by_hash(new));
    let mut groups = groups((old, &old_by_hash), (new, &new_by_hash));
    groups.sort_unstable_by_key(|group| (group.pairs(), group.old[0]));
    let mut pairs_left = caps.pairs + items;
    let affordable = groups.iter().take_while(|group| {
        let left = pairs_left.checked_sub(group.pairs());
        pairs_left = left.unwrap_or(0);
        left.is_some()
    });
    let affordable = affordable.count();
    if affordable < groups.len() && few.edits < caps.edits {
        let more = Caps { edits: caps.edits, ..few };
        if let Some(pairs) = search::search(old, new, more) {
            return pairs;
        }
    }
    longest_chain(&groups[..affordable])
}

/// Whether any hash is in both lists.
fn have_common(old: &[u64], new: &[u64]) -> bool {
    let known: FxHashSet<u64> = old.iter().copied().collect();
    new.iter().any(|hash| known.contains(hash))
}

fn indices_by_hash(list: &[u64]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..list.len()).collect();
    indices.sort_unstable_by_key(|&index| (list[index], index));
    indices
}

/// The hashes that both lists have, each list given with its indices by hash.
fn groups<'a>(
    (old, old_by_hash): (&[u64], &'a [usize]),
    (new, new_by_hash): (&[u64], &'a [usize]),
) -> Vec<Group<'a>> {
    let mut groups = Vec::new();
    let mut rest = new_by_hash;
    for group in old_by_hash.chunk_by(|&a, &b| old[a] == old[b]) {
        let hash = old[group[0]];
        let less = rest.iter().take_while(|&&index| new[index] < hash).count();
        let equal = rest[less..].iter().take_while(|&&index| new[index] == hash).count();
        if equal > 0 {
            groups.push(Group { old: group, new: &rest[less..less + equal] });
        }
        rest = &rest[less + equal..];
    }
    groups
}

/// The longest common subsequence of the items of these groups.
fn longest_chain(groups: &[Group<'_>]) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, Reverse<usize>)> = groups
        .iter()
        .flat_map(|group| {
            group.old.iter().flat_map(|&o| group.new.iter().map(move |&n| (o, Reverse(n))))
        })
        .collect();
    // By falling new index, so that a rising chain takes an old item once.
    pairs.sort_unstable();
    let points: Vec<Point> =
        pairs.iter().map(|&(_, Reverse(n))| Point { place: n as u64, weight: 1 }).collect();
    let chain = heaviest_increasing(&points);
    chain.into_iter().map(|index| (pairs[index].0, pairs[index].1.0)).collect()
}

/// An alignment in the making: what is before `old_at` and `new_at` is in the pairings.
struct Alignment<'a> {
    old: &'a [u64],
    new: &'a [u64],
    pairings: Vec<Pairing>,
    old_at: usize,
    new_at: usize,
}

impl Alignment<'_> {
    /// Keeps equal items; those before them pair up by position.
    fn keep(&mut self, old: usize, new: usize, items: usize) {
        let old_gap = &self.old[self.old_at..old];
        let new_gap = &self.new[self.new_at..new];
        let back = common_back(old_gap, new_gap);
        let paired = (old_gap.len() - back).min(new_gap.len() - back);
        for (o, n) in old_gap[..paired].iter().zip(&new_gap[..paired]) {
            let (old, new) = (self.old_at, self.new_at);
            self.push(if o == n {
                Pairing::Same { old, new, items: 1 }
            } else {
                Pairing::Update { old, new, items: 1 }
            });
        }
        self.push(Pairing::Remove { old: self.old_at, items: old - back - self.old_at });
        self.push(Pairing::Insert { new: self.new_at, items: new - back - self.new_at });
        self.push(Pairing::Same { old: old - back, new: new - back, items: back + items });
    }

    /// Appends what comes next in the lists, to the last run if that has the same fate.
    fn push(&mut self, pairing: Pairing) {
        use Pairing::{Insert, Remove, Same, Update};
        let (Same { items, .. }
        | Update { items, .. }
        | Remove { items, .. }
        | Insert { items, .. }) = pairing;
        if items == 0 {
            return;
        }
        if !matches!(pairing, Insert { .. }) {
            self.old_at += items;
        }
        if !matches!(pairing, Remove { .. }) {
            self.new_at += items;
        }
        match (self.pairings.last_mut(), pairing) {
            (Some(Same { items: run, .. }), Same { .. })
            | (Some(Update { items: run, .. }), Update { .. })
            | (Some(Remove { items: run, .. }), Remove { .. })
            | (Some(Insert { items: run, .. }), Insert { .. }) => *run += items,
            _ => self.pairings.push(pairing),
        }
    }
}

fn common_front(old: &[u64], new: &[u64]) -> usize {
    old.iter().zip(new).take_while(|(o, n)| o == n).count()
}

fn common_back(old: &[u64], new: &[u64]) -> usize {
    old.iter().rev().zip(new.iter().rev()).take_while(|(o, n)| o == n).count()
}

#[cfg(test)]
mod tests;
