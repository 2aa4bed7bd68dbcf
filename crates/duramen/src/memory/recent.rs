//! Records of segments that were read by key: what is read again and again of a large collection is
//! found here, though the blocks and columns around it do not fit in memory (benchmark K).
//!
//! Invariants:
//! - a key keeps its ordinal for ever, so what is known of a key never changes;
//! - a record that is here is as it was at the revision it was read at, and at every later one: the
//!   commit that changes it removes it, before anybody reads that commit;
//! - nothing is added that was read before something was erased.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use smallvec::SmallVec;

/// Approximate bytes that a key takes beside its own.
const KEY_BYTES: usize = 64;

/// The same of a record.
const RECORD_BYTES: usize = 128;

/// A record with more is not kept.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// A record as it is from a revision on.
#[derive(Debug)]
pub(crate) struct RecentRecord {
    pub(crate) since: u32,
    pub(crate) version: u64,
    /// As compact JSON.
    pub(crate) json: Box<str>,
}

/// A tree in memory: one that comes back gets another number, and finds nothing of what was known
/// of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TreeNumber(u64);

/// Keys and records of all trees, each within a budget of bytes.
#[derive(Debug)]
pub(crate) struct Recent {
    next_tree: AtomicU64,
    keys: Cache<Box<[u8]>, u64, Bytes>,
    records: Cache<(TreeNumber, u64), Arc<RecentRecord>, Bytes>,
}

#[derive(Debug, Clone, Copy)]
struct Bytes;

impl Weighter<Box<[u8]>, u64> for Bytes {
    fn weight(&self, key: &Box<[u8]>, _: &u64) -> u64 {
        (KEY_BYTES + key.len()) as u64
    }
}

impl Weighter<(TreeNumber, u64), Arc<RecentRecord>> for Bytes {
    fn weight(&self, _: &(TreeNumber, u64), record: &Arc<RecentRecord>) -> u64 {
        (RECORD_BYTES + record.json.len()) as u64
    }
}

impl Recent {
    /// Nothing yet, and at most so many bytes of keys, and of records.
    pub(super) fn new(bytes: usize) -> Self {
        let items = bytes / (2 * RECORD_BYTES) + 1;
        Self {
            next_tree: AtomicU64::new(0),
            keys: Cache::with_weighter(items, bytes as u64, Bytes),
            records: Cache::with_weighter(items, bytes as u64, Bytes),
        }
    }

    /// The number of a tree that is new in memory.
    pub(crate) fn number_tree(&self) -> TreeNumber {
        TreeNumber(self.next_tree.fetch_add(1, Ordering::Relaxed))
    }

    /// The ordinal of the record with a key.
    pub(crate) fn ordinal(&self, tree: TreeNumber, name: &[u8]) -> Option<u64> {
        self.keys.get(of_tree(tree, name).as_slice())
    }

    pub(crate) fn keep_key(&self, tree: TreeNumber, name: &[u8], ordinal: u64) {
        self.keys.insert(of_tree(tree, name).as_slice().into(), ordinal);
    }

    /// The record of an ordinal as it is at a revision.
    pub(crate) fn record(
        &self,
        tree: TreeNumber,
        ordinal: u64,
        revision: u32,
    ) -> Option<Arc<RecentRecord>> {
        let record = self.records.get(&(tree, ordinal))?;
        (record.since <= revision).then_some(record)
    }

    pub(crate) fn keep_record(&self, tree: TreeNumber, ordinal: u64, record: RecentRecord) {
        if record.json.len() <= TEXT_BYTES_MAX {
            self.records.insert((tree, ordinal), Arc::new(record));
        }
    }

    /// Forgets records that a commit changes.
    pub(crate) fn forget(&self, tree: TreeNumber, ordinals: impl Iterator<Item = u64>) {
        if !self.records.is_empty() {
            ordinals.for_each(|ordinal| drop(self.records.remove(&(tree, ordinal))));
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        self.keys.clear();
        self.records.clear();
    }
}

fn of_tree(tree: TreeNumber, name: &[u8]) -> SmallVec<[u8; 64]> {
    let mut key = SmallVec::with_capacity(8 + name.len());
    key.extend_from_slice(&tree.0.to_be_bytes());
    key.extend_from_slice(name);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: TreeNumber = TreeNumber(3);

    fn record(since: u32, bytes: usize) -> RecentRecord {
        RecentRecord { since, version: 1, json: "x".repeat(bytes).into() }
    }

    #[test]
    fn a_record_is_there_from_its_revision_on_until_a_commit_changes_it() {
        let recent = Recent::new(1 << 20);
        recent.keep_key(TREE, b"a", 7);
        assert_eq!(
            (recent.ordinal(TREE, b"a"), recent.ordinal(TreeNumber(4), b"a")),
            (Some(7), None)
        );
        recent.keep_record(TREE, 7, record(5, 10));
        let is_there = |revision| recent.record(TREE, 7, revision).is_some();
        assert!(!is_there(4) && is_there(5) && is_there(9));
        recent.forget(TREE, [6, 8].into_iter());
        assert!(is_there(5));
        recent.forget(TREE, [7].into_iter());
        assert!(!is_there(9) && recent.ordinal(TREE, b"a") == Some(7));
        recent.clear();
        assert_eq!(recent.ordinal(TREE, b"a"), None);
    }

    #[test]
    fn records_and_keys_stay_within_their_bytes() {
        let recent = Recent::new(64 << 10);
        for ordinal in 0..10_000 {
            recent.keep_key(TREE, &ordinal.to_string().into_bytes(), ordinal);
            recent.keep_record(TREE, ordinal, record(1, 100));
        }
        assert!(recent.keys.weight() <= 64 << 10 && recent.records.weight() <= 64 << 10);
        recent.keep_record(TREE, 20_000, record(1, TEXT_BYTES_MAX + 1));
        assert!(recent.record(TREE, 20_000, 1).is_none());
    }
}
