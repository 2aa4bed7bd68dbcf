//! How much space the revisions take that a tree is to drop.

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
    /// Bytes of the cells that have nothing but rows and changes of revisions before the first one
    /// that is to be kept. Reads the keys of the tree's cells.
    pub(crate) fn superseded_bytes(&self, kept: &Kept) -> Result<u64> {
        let mut bytes = 0;
        for prefix in [cell_key::all_rows(self.id()), cell_key::groups(self.id())] {
            let mut before: Option<Dated> = None;
            for found in self.cells.scan(&prefix)? {
                let (key, handle) = found?;
                let (first, len) = match cell_key::parse(&key).map(|(_, kind)| kind) {
                    Some(CellKey::Rows { first }) => (first, size_of::<u64>()),
                    Some(CellKey::Group { kind: GroupCell::Run, number, .. }) => {
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
}
