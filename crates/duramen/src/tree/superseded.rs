//! How much space the revisions take that a tree is to drop, and a document that is deleted in all
//! that it is to keep.

use crate::error::Result;
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, GroupCell};
use crate::tree::kept::Kept;

/// A cell of rows or changes, without the revision at the end of its key.
struct Dated {
    column: Vec<u8>,
    first: u64,
    bytes: u64,
}

impl Tree {
    /// Bytes of the cells that have nothing but what is to be dropped: rows and changes of
    /// revisions before the first one that is to be kept, and all values of a document that is
    /// deleted. Reads the keys of the tree's cells.
    pub(crate) fn superseded_bytes(&self, kept: &Kept) -> Result<u64> {
        let is_let_go = self.let_go(kept)?.is_some();
        let mut bytes = if is_let_go { self.value_bytes()? } else { 0 };
        for prefix in [cell_key::all_rows(self.id()), cell_key::groups(self.id())] {
            let mut before: Option<Dated> = None;
            for found in self.cells.scan(&prefix)? {
                let (key, handle) = found?;
                let (first, len) = match cell_key::parse(&key).map(|(_, kind)| kind) {
                    Some(CellKey::Rows { first }) => (first, size_of::<u64>()),
                    Some(CellKey::Group { kind: GroupCell::Run, number, .. }) if !is_let_go => {
                        (number.into(), size_of::<u32>())
                    }
                    _ => continue,
                };
                let column = key[..key.len() - len].to_vec();
                let now = Dated { column, first, bytes: handle.bytes()? as u64 };
                // A cell ends before the next one of its column begins.
                if let Some(before) = before.replace(now)
                    && key.starts_with(&before.column)
                    && before.first < first
                    && first <= kept.first().into()
                {
                    bytes += before.bytes;
                }
            }
        }
        Ok(bytes)
    }

    /// Bytes of the cells of values and orders.
    fn value_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        let tree = self.id();
        for prefix in [cell_key::groups(tree), cell_key::orders(tree), cell_key::blobs(tree)] {
            for found in self.cells.scan(&prefix)? {
                let (key, handle) = found?;
                let is_value = match cell_key::parse(&key).map(|(_, kind)| kind) {
                    Some(CellKey::Group { kind, .. }) => {
                        matches!(kind, GroupCell::Base | GroupCell::Run)
                    }
                    _ => true,
                };
                bytes += if is_value { handle.bytes()? as u64 } else { 0 };
            }
        }
        Ok(bytes)
    }
}
