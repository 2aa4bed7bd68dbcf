//! The values of a tree that are stored apart because they are long: immutable, numbered in
//! order of creation.
//!
//! Invariant: numbers below `first` are on disk, the rest are in memory.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::state::BlobId;
use crate::sync::RwLock;
use crate::tree::cell_key;
use crate::tree::disk::TreeCells;

/// The long values of one tree.
#[derive(Debug)]
pub(crate) struct Blobs {
    cells: TreeCells,
    values: RwLock<Values>,
}

#[derive(Debug, Default)]
struct Values {
    first: u64,
    young: Vec<Bytes>,
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
        values.young.push(value);
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
                return values.young.get(index).cloned().ok_or_else(missing);
            }
        }
        self.cells.get(&cell_key::blob(self.cells.tree(), id))?.ok_or_else(missing)
    }

    /// The values of the staged transaction.
    pub(crate) fn staged(&self) -> Vec<Bytes> {
        let values = self.values.read();
        values.young[values.committed..].to_vec()
    }

    /// Bytes of the values of the staged transaction.
    pub(crate) fn staged_bytes(&self) -> usize {
        let values = self.values.read();
        values.young[values.committed..].iter().map(Bytes::len).sum()
    }

    /// Bytes of the young values.
    pub(crate) fn young_bytes(&self) -> usize {
        self.values.read().young.iter().map(Bytes::len).sum()
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
        (values.first, values.young[..count.min(values.committed)].to_vec())
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
