//! What a serializable transaction has read, in bounded memory.
//!
//! Invariants:
//! - all that was read is in the set, by itself or within something larger;
//! - what is there by itself, keys of records and names, takes at most
//!   [`TRANSACTION_READS_BYTES_MAX`] altogether.

use std::collections::{BTreeMap, BTreeSet};

use super::names;
use crate::collection::{Key, KeyKind};
use crate::engine::CATALOGUE;
use crate::error::Result;
use crate::limits::TRANSACTION_READS_BYTES_MAX;
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::history::short;

/// What a transaction rests on.
#[derive(Debug, Default)]
pub(super) struct ReadSet {
    trees: BTreeMap<TreeId, Reads>,
    names: Names,
    /// Of all keys and names.
    bytes: usize,
}

/// What was read of one tree.
#[derive(Debug)]
enum Reads {
    Records(Keys),
    All,
    /// More records than are remembered, so all of them.
    TooMany,
}

/// Keys of records, there or not.
#[derive(Debug)]
struct Keys {
    kind: KeyKind,
    read: BTreeSet<Key>,
    bytes: usize,
}

/// The names that a transaction came to.
#[derive(Debug)]
enum Names {
    /// What each stood for, none if no document had it.
    Each(BTreeMap<String, Option<TreeId>>, usize),
    /// More than are remembered, so all of them.
    TooMany,
}

impl Default for Names {
    fn default() -> Self {
        Self::Each(BTreeMap::new(), 0)
    }
}

impl ReadSet {
    /// Notes that all of a tree was read.
    pub(super) fn note_all(&mut self, id: TreeId) {
        if let Some(Reads::Records(known)) = self.trees.insert(id, Reads::All) {
            self.bytes -= known.bytes;
        }
    }

    /// Notes that a record was read, or looked for.
    pub(super) fn note_record(&mut self, id: TreeId, kind: KeyKind, key: &Key) {
        let none = || Reads::Records(Keys { kind, read: BTreeSet::new(), bytes: 0 });
        let Reads::Records(known) = self.trees.entry(id).or_insert_with(none) else { return };
        if known.read.contains(key) {
            return;
        }
        let text = if let Key::Text(text) = key { text.len() } else { 0 };
        let bytes = size_of::<Key>() + text;
        known.read.insert(key.clone());
        known.bytes += bytes;
        self.bytes += bytes;
        self.shrink();
    }

    /// Notes what a name stood for when the transaction first came to it.
    pub(super) fn note_name(&mut self, name: &str, stood: Option<TreeId>) {
        let Names::Each(known, named) = &mut self.names else { return };
        if known.contains_key(name) {
            return;
        }
        let bytes = size_of::<(String, Option<TreeId>)>() + name.len();
        known.insert(name.to_owned(), stood);
        *named += bytes;
        self.bytes += bytes;
        self.shrink();
    }

    /// Where there is too much, all is taken for read of what has the most.
    fn shrink(&mut self) {
        while self.bytes > TRANSACTION_READS_BYTES_MAX {
            let records = self.trees.values_mut().max_by_key(|reads| reads.bytes());
            let of_records = records.as_ref().map_or(0, |reads| reads.bytes());
            let of_names = self.names.bytes();
            match records {
                Some(records) if of_records >= of_names => *records = Reads::TooMany,
                _ => self.names = Names::TooMany,
            }
            self.bytes -= of_records.max(of_names);
        }
    }

    /// The trees on which what was read rests, in their order: the catalogue where there was no
    /// document of a name.
    pub(super) fn touched(&self) -> BTreeSet<TreeId> {
        let mut touched: BTreeSet<TreeId> = self.trees.keys().copied().collect();
        match &self.names {
            Names::Each(names, _) => {
                touched.extend(names.values().map(|stood| stood.unwrap_or(CATALOGUE)));
            }
            Names::TooMany => drop(touched.insert(CATALOGUE)),
        }
        touched
    }

    /// Whether more was read of a tree than is remembered, or of the names if it is the catalogue.
    pub(super) fn is_too_much(&self, id: TreeId) -> bool {
        match &self.names {
            Names::TooMany if id == CATALOGUE => true,
            _ => matches!(self.trees.get(&id), Some(Reads::TooMany)),
        }
    }

    /// Whether what was read of a tree at a revision is so at a later one.
    pub(super) fn is_same(
        &self,
        tree: &Tree,
        (seen, newest): (Revision, Revision),
    ) -> Result<bool> {
        match self.trees.get(&tree.id()) {
            Some(Reads::Records(read)) if seen != newest => read.are_same(tree, (seen, newest)),
            Some(Reads::All | Reads::TooMany) => Ok(seen == newest),
            _ => Ok(true),
        }
    }

    /// The tree of which a name was read that stands for something else in a later revision of the
    /// catalogue.
    pub(super) fn changed_name(
        &self,
        catalogue: &Tree,
        newest: Revision,
    ) -> Result<Option<TreeId>> {
        let Names::Each(names, _) = &self.names else { return Ok(Some(CATALOGUE)) };
        for (name, &stood) in names {
            if names::tree_of(catalogue, name, short(newest))? != stood {
                return Ok(Some(stood.unwrap_or(CATALOGUE)));
            }
        }
        Ok(None)
    }
}

impl Reads {
    fn bytes(&self) -> usize {
        if let Self::Records(read) = self { read.bytes } else { 0 }
    }
}

impl Names {
    fn bytes(&self) -> usize {
        if let Self::Each(_, bytes) = self { *bytes } else { 0 }
    }
}

impl Keys {
    fn are_same(&self, tree: &Tree, (seen, newest): (Revision, Revision)) -> Result<bool> {
        // Versions are counted on for ever, so an equal one is the same value.
        let version = |key: &Key, revision: Revision| {
            let at = short(revision);
            if at == 0 || tree.deleted_in(at)?.is_some() {
                return Ok(None);
            }
            let record = tree.record(self.kind.text_of(key)?.as_bytes(), at)?;
            record.map(|record| tree.record_version(record, at)).transpose()
        };
        for key in &self.read {
            if version(key, seen)? != version(key, newest)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(at: usize) -> Key {
        Key::Text(format!("{at:01024}"))
    }

    /// 65,536 keys of 1,024 bytes of each of any number of collections were held.
    #[test]
    fn what_is_remembered_is_bounded_in_bytes_over_all_collections() {
        let mut reads = ReadSet::default();
        for at in 0..3_500 {
            for tree in 1..=3 {
                reads.note_record(TreeId(tree), KeyKind::Text, &long(at));
                assert!(reads.bytes <= TRANSACTION_READS_BYTES_MAX);
            }
            reads.note_record(TreeId(4), KeyKind::U64, &Key::U64(at as u64));
        }
        let cut: Vec<u64> = (1..=4).filter(|&id| reads.is_too_much(TreeId(id))).collect();
        // What takes little is told apart still.
        assert_eq!(cut.len(), 1, "{cut:?}");
        assert!(cut[0] < 4);
        assert_eq!(reads.touched().len(), 4);
        let held: usize = reads.trees.values().map(Reads::bytes).sum();
        assert_eq!(reads.bytes, held);
        (1..=4).for_each(|id| reads.note_all(TreeId(id)));
        assert_eq!((reads.bytes, reads.is_too_much(TreeId(cut[0]))), (0, false));
    }

    #[test]
    fn a_key_counts_once_however_often_it_is_read() {
        let mut reads = ReadSet::default();
        for _ in 0..20_000 {
            reads.note_record(TreeId(1), KeyKind::Text, &long(7));
            reads.note_name("missing", None);
        }
        assert!(reads.bytes < 2_000, "{}", reads.bytes);
        assert!(!reads.is_too_much(TreeId(1)));
    }

    #[test]
    fn names_beyond_what_is_remembered_rest_on_the_catalogue() {
        let mut reads = ReadSet::default();
        for at in 0..40_000 {
            reads.note_name(&format!("{at:0255}"), Some(TreeId(1 + at)));
        }
        assert!(reads.bytes <= TRANSACTION_READS_BYTES_MAX);
        assert!(reads.is_too_much(CATALOGUE));
        assert_eq!(reads.touched(), BTreeSet::from([CATALOGUE]));
    }
}
