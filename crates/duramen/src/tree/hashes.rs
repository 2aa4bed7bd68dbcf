//! The content hashes that checkpoints keep, so that `check` has what a revision's value was to
//! hold against what it is read as.
//!
//! Invariants:
//! - a hash is made of the tree in memory, not of the cells that are written, so that a mistake in
//!   writing them shows;
//! - whatever a cell's bytes are, they give an error and not a panic.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;

use crate::content_hash::ContentHash;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey};
use crate::tree::persist::Cell;

impl Tree {
    /// The cell that keeps the hash of a committed revision, unless the text has more bytes than
    /// `bytes_max` or the document is deleted in it; and how many bytes were read for it.
    pub(crate) fn hash_cell(
        &self,
        revision: u32,
        bytes_max: usize,
    ) -> (Result<Option<Cell>>, usize) {
        match self.deleted_in(revision) {
            Ok(None) => {}
            Ok(Some(_)) => return (Ok(None), 0),
            Err(error) => return (Err(error), 0),
        }
        let (hash, bytes) = self.content_hash_within(revision, bytes_max);
        let key = cell_key::hash(self.id(), revision.into());
        (hash.map(|hash| hash.map(|hash| (key, hash.as_bytes().to_vec()))), bytes)
    }

    /// The revisions of which checkpoints kept the hash, rising, with the hash.
    pub(crate) fn kept_hashes(
        &self,
    ) -> Result<impl Iterator<Item = Result<(Revision, ContentHash)>>> {
        let found = self.cells.scan(&cell_key::hashes(self.id()))?;
        Ok(found.map(|found| {
            let (key, cell) = found?;
            read(&key, &cell.load()?)
        }))
    }
}

fn read(key: &Bytes, cell: &[u8]) -> Result<(Revision, ContentHash)> {
    match cell_key::parse(key) {
        Some((_, CellKey::Hash { revision })) => Ok((Revision(revision), decode(cell)?)),
        _ => Err(Error::new(ErrorKind::Corrupt, format!("no hash has the key {key:02x?}"))),
    }
}

/// The hash in a cell.
pub(crate) fn decode(cell: &[u8]) -> Result<ContentHash> {
    cell.try_into().map(ContentHash::from_bytes).map_err(|_| {
        let message = format!("a content hash has 32 bytes, found {}", cell.len());
        Error::new(ErrorKind::Corrupt, message)
    })
}
