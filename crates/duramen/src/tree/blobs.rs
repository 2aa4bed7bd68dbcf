//! The values of a tree that are stored apart because they are long: immutable, numbered in
//! order of creation.
//!
//! Invariants:
//! - numbers below `first` are on disk, the rest are in memory;
//! - what was staged and is named by no state when the transaction ends is let go: it keeps its
//!   number, and is written as nothing.

use bytes::Bytes;
use rustc_hash::FxHashSet;

use crate::error::{Error, ErrorKind, Result};
use crate::state::BlobId;
use crate::sync::RwLock;
use crate::tree::cell_key;
use crate::tree::disk::TreeCells;

/// Values by their numbers, none where one was let go.
type Young = Vec<Option<Bytes>>;

/// The long values of one tree.
#[derive(Debug)]
pub(crate) struct Blobs {
    cells: TreeCells,
    values: RwLock<Values>,
}

#[derive(Debug, Default)]
struct Values {
    first: u64,
    young: Young,
    /// How many of the young ones belong to commits.
    committed: usize,
}

impl Blobs {
    /// The long values of a tree of which the first `first` are on disk.
    pub(crate) fn new(cells: TreeCells, first: u64) -> Self {
        Self { cells, values: RwLock::new(Values { first, ..Values::default() }) }
    }

    /// Takes a new value.
    pub(crate) fn add(&self, value: Bytes) -> BlobId {
        let mut values = self.values.write();
        values.young.push(Some(value));
        BlobId(values.first + values.young.len() as u64 - 1)
    }

    /// A value.
    pub(crate) fn get(&self, id: BlobId) -> Result<Bytes> {
        let missing = || Error::new(ErrorKind::Corrupt, format!("value {} is not there", id.0));
        {
            let values = self.values.read();
            let young =
                id.0.checked_sub(values.first).and_then(|index| usize::try_from(index).ok());
            if let Some(index) = young {
                return values.young.get(index).cloned().flatten().ok_or_else(missing);
            }
        }
        self.cells.get(&cell_key::blob(self.cells.tree(), id))?.ok_or_else(missing)
    }

    /// The values of the staged transaction.
    pub(crate) fn staged(&self) -> Vec<Bytes> {
        let values = self.values.read();
        written(&values.young[values.committed..])
    }

    /// How many values the staged transaction has added.
    pub(crate) fn staged_len(&self) -> usize {
        let values = self.values.read();
        values.young.len() - values.committed
    }

    /// Lets go the values of the staged transaction that are not among these; how many are left.
    pub(crate) fn keep_staged(&self, named: &FxHashSet<BlobId>) -> usize {
        let mut values = self.values.write();
        let Values { first, young, committed } = &mut *values;
        let start = *first + *committed as u64;
        let mut left = 0;
        for (id, value) in (start..).map(BlobId).zip(&mut young[*committed..]) {
            if named.contains(&id) {
                left += 1;
            } else {
                *value = None;
            }
        }
        left
    }

    /// Bytes of the values of the staged transaction.
    pub(crate) fn staged_bytes(&self) -> usize {
        let values = self.values.read();
        bytes_of(&values.young[values.committed..])
    }

    /// Bytes of the young values.
    pub(crate) fn young_bytes(&self) -> usize {
        bytes_of(&self.values.read().young)
    }

    /// The staged values belong to a commit from now on.
    pub(crate) fn commit_staged(&self) {
        let mut values = self.values.write();
        values.committed = values.young.len();
    }

    /// Takes the staged values back.
    pub(crate) fn rollback(&self) {
        let mut values = self.values.write();
        let committed = values.committed;
        values.young.truncate(committed);
    }

    /// How many values belong to commits; the numbers of all these are below it.
    pub(crate) fn committed(&self) -> u64 {
        let values = self.values.read();
        values.first + values.committed as u64
    }

    /// The young values with numbers below `end`, with the number of the first.
    pub(crate) fn young(&self, end: u64) -> (u64, Vec<Bytes>) {
        let values = self.values.read();
        let count = usize::try_from(end.saturating_sub(values.first)).unwrap_or(usize::MAX);
        (values.first, written(&values.young[..count.min(values.committed)]))
    }

    /// The first `first` values are on disk, where there were none before.
    pub(crate) fn begin_at(&self, first: u64) {
        *self.values.write() = Values { first, ..Values::default() };
    }

    /// Drops the values below `first`, which a checkpoint has written.
    pub(crate) fn prune(&self, first: u64) {
        let mut values = self.values.write();
        let written = usize::try_from(first.saturating_sub(values.first)).unwrap_or(usize::MAX);
        let written = written.min(values.committed);
        values.young.drain(..written);
        values.committed -= written;
        values.first += written as u64;
    }
}

/// Values as they are written.
fn written(values: &[Option<Bytes>]) -> Vec<Bytes> {
    values.iter().map(|value| value.clone().unwrap_or_default()).collect()
}

fn bytes_of(values: &[Option<Bytes>]) -> usize {
    values.iter().flatten().map(Bytes::len).sum()
}
