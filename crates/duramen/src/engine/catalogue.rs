//! The catalogue: tree 0, a map from the name of a document to its record.
//!
//! The number of a tree is the ordinal of its entry plus 1: a name keeps its tree for ever.

use crate::engine::{CATALOGUE, Engine, View};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::NAME_BYTES_MAX;
use crate::order::OrderCursor;
use crate::revision::CommitSequence;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::schema::ROOT;
use std::sync::Arc;

/// Refuses names that no document can have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let why = match name.len() {
        0 => "is empty",
        len if len > NAME_BYTES_MAX => "is over 255 bytes long",
        _ if name.chars().any(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    let message = format!("the name {name:?} {why}: use 1 to 255 bytes of UTF-8 without any");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The tree of a name in a state of the catalogue.
pub(crate) fn find(catalogue: &Tree, name: &str, revision: u32) -> Result<Option<TreeId>> {
    if revision == 0 {
        return Ok(None);
    }
    let entry = catalogue.entry_node(node(ROOT, 0), name.as_bytes(), revision)?;
    Ok(entry.map(|entry| TreeId(entry.ordinal().0 + 1)))
}

/// The record of a new document.
pub(crate) fn record() -> &'static str {
    r#"{"kind":"document"}"#
}

/// No document has this name.
pub(crate) fn no_document(name: &str) -> Error {
    let message = format!("there is no document {name:?}: \"duramen ls\" lists those there are");
    Error::new(ErrorKind::NotFound, message)
}

impl View {
    /// The tree of a document as of a commit.
    pub(crate) fn document(&self, name: &str, at: CommitSequence) -> Result<Option<Arc<Tree>>> {
        let catalogue = self.tree(CATALOGUE)?;
        let head = short(catalogue.head_at(at)?);
        find(&catalogue, name, head)?.map(|id| self.tree(id)).transpose()
    }

    /// The names of the documents as of a commit, sorted.
    pub(crate) fn names(&self, at: CommitSequence) -> Result<Vec<String>> {
        let catalogue = self.tree(CATALOGUE)?;
        let head = short(catalogue.head_at(at)?);
        if head == 0 {
            return Ok(Vec::new());
        }
        let root = node(ROOT, 0);
        let order = catalogue.read(|data| match data.state(root, head)? {
            Datum::Map(sequence) => Ok(Some(sequence)),
            _ => Ok(None),
        })?;
        let mut names = Vec::new();
        let Some(sequence) = order else { return Ok(names) };
        let mut cursor = OrderCursor::new(sequence);
        while let Some(extent) = cursor.next(&&catalogue.orders)? {
            for index in 0..extent.items() {
                names.extend(catalogue.read(|data| {
                    let entry = data.item_node(root, true, extent.item(index))?;
                    Ok(match data.key(data.address(entry).space, entry.ordinal().0)? {
                        Datum::Text { bytes, .. } => {
                            Some(String::from_utf8_lossy(bytes).into_owned())
                        }
                        _ => None,
                    })
                })?);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

impl Engine {
    /// The tree of a document that readers can see.
    pub(crate) fn document(&self, name: &str) -> Result<Arc<Tree>> {
        check_name(name)?;
        let found = self.view().document(name, self.published())?;
        found.ok_or_else(|| no_document(name))
    }
}
