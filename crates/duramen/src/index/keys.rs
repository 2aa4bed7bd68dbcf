//! The keys that a record has in an index.

use crate::collection::RecordPath;
use crate::collection::path_values;
use crate::collection::sort_key::SortClass;
use crate::error::Result;
use crate::jsonpath::place::{At, View};
use crate::limits::INDEX_VALUE_BYTES_MAX;
use crate::tree::Tree;

/// A key: the sort keys of the values at the index's paths, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// With values that are cut if they are long.
    pub(super) bytes: Vec<u8>,
    /// Whether one of the values is missing or null.
    pub(super) has_null: bool,
    /// All of it, if it is cut.
    pub(super) whole: Option<Vec<u8>>,
}

impl Key {
    fn with(&self, value: &[u8]) -> Self {
        let cut = value.get(..INDEX_VALUE_BYTES_MAX);
        let is_cut = cut.is_some_and(|cut| cut.len() < value.len());
        let before = self.whole.as_ref().unwrap_or(&self.bytes);
        let whole = (is_cut || self.whole.is_some()).then(|| [before, value].concat());
        Self {
            bytes: [self.bytes.as_slice(), cut.unwrap_or(value)].concat(),
            has_null: self.has_null || SortClass::of(value) <= SortClass::Null,
            whole,
        }
    }

    /// All of it, cut nowhere.
    pub(super) fn whole(&self) -> &[u8] {
        self.whole.as_ref().unwrap_or(&self.bytes)
    }
}

/// The keys of a record at a revision, each once, in order; none if it is not there.
pub(super) fn keys(
    tree: &Tree,
    paths: &[RecordPath],
    (ordinal, revision): (u64, u32),
) -> Result<Vec<Key>> {
    let Some(record) = tree.record_of_ordinal(ordinal, revision)? else { return Ok(Vec::new()) };
    let view = View { tree, revision };
    let mut keys = vec![Key { bytes: Vec::new(), has_null: false, whole: None }];
    for path in paths {
        let values = path_values::keys(view, &At::Node(record), path)?;
        let with_all = |key: &Key| values.iter().map(|value| key.with(value)).collect::<Vec<_>>();
        keys = keys.iter().flat_map(with_all).collect();
    }
    keys.sort_unstable();
    Ok(keys)
}

/// Keys that differ as the index has them.
pub(super) fn distinct(mut keys: Vec<Key>) -> Vec<Key> {
    keys.dedup_by(|a, b| a.bytes == b.bytes);
    keys
}
