//! The name of a tree's document, found from the tree.

use crate::engine::catalogue::facts::record_of;
use crate::engine::catalogue::read_name;
use crate::error::{Error, ErrorKind, Result};
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;

/// The name that a tree's document has at a revision of the catalogue.
///
/// Renaming exchanges the trees of two names, so names and trees are in circles: from the entry
/// that a tree numbers the way leads over the trees that the entries name back to the tree.
pub(crate) fn name_of(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<String> {
    let mut at = tree;
    // No circle is longer than there are entries.
    let entries = catalogue.data.read().spaces.iter().map(|space| space.next).max();
    for _ in 0..entries.unwrap_or(0) {
        let (name, found) = catalogue.read(|data| {
            let Some(entry) = record_of(data, at) else { return Err(lost(tree).into()) };
            let found = read_name(data, entry, revision)?;
            match data.key(data.address(entry).space, entry.ordinal().0)? {
                Datum::Text { bytes, .. } => {
                    Ok((String::from_utf8_lossy(bytes).into_owned(), found))
                }
                _ => Err(lost(tree).into()),
            }
        })?;
        if found.tree == tree {
            return Ok(name);
        }
        at = found.tree;
    }
    Err(lost(tree))
}

fn lost(tree: TreeId) -> Error {
    let message = format!("the catalogue has no name for tree {}", tree.0);
    Error::new(ErrorKind::Corrupt, message)
}
