//! The catalogue: tree 0, a map from names to records.
//!
//! A record says two things. Of its *name*: whether a document has it, and which tree that is: the
//! one whose number is the entry's ordinal plus 1, unless the record names another. Of the *tree*
//! with that number, whatever its name is now: when its document was deleted, its tags, its
//! options. So renaming exchanges the trees of two names and moves nothing else.
//!
//! Invariants:
//! - an entry is never removed, so that no number of a tree is used twice;
//! - every tree belongs to exactly one name, and one without revisions to each free name.

use std::sync::Arc;

use crate::engine::{CATALOGUE, Engine, View};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::NAME_BYTES_MAX;
use crate::node::NodeId;
use crate::order::OrderCursor;
use crate::revision::{CommitSequence, Revision};
use crate::series::tags;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::history::short;
use crate::tree::schema::ROOT;

pub(crate) mod facts;
pub(crate) mod naming;
pub(crate) mod old_hashes;
pub(crate) mod purges;
pub(crate) mod salvage;

/// What a name stands for at a revision of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    /// The tree that the entry itself numbers.
    pub(crate) own: TreeId,
    /// The tree that has the name.
    pub(crate) tree: TreeId,
    pub(crate) status: Status,
}

/// Whether a document has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Live,
    /// It was deleted in this revision and has been put no more since.
    Deleted(Revision),
    /// The document that had the name has another one now.
    Free,
}

impl Name {
    pub(crate) fn is_free(&self) -> bool {
        self.status == Status::Free
    }
}

/// Refuses names that no document can have.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let why = match name.len() {
        0 => "is empty",
        len if len > NAME_BYTES_MAX => "is over 255 bytes long",
        _ if name.chars().any(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    let message = format!(
        "the name {name:?} {why}: use 1 to 255 bytes of UTF-8 without \
         control characters"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// What a name stands for in a state of the catalogue; none if no document ever had it.
pub(crate) fn find(catalogue: &Tree, name: &str, revision: u32) -> Result<Option<Name>> {
    if revision == 0 {
        return Ok(None);
    }
    let entry = catalogue.entry_node(node(ROOT, 0), name.as_bytes(), revision)?;
    entry.map(|entry| catalogue.read(|data| read_name(data, entry, revision))).transpose()
}

fn read_name(data: &TreeData, entry: NodeId, revision: u32) -> Result<Name, Fault> {
    let own = TreeId(entry.ordinal().0 + 1);
    let tree = match member(data, entry, b"tree", revision)? {
        Datum::Absent => own,
        Datum::Int(tree @ 1..) => TreeId(tree.cast_unsigned()),
        other => return Err(wrong(entry, "tree", other).into()),
    };
    let status = match member(data, entry, b"kind", revision)? {
        Datum::Text { bytes: b"free", .. } => Status::Free,
        Datum::Text { bytes: b"document", .. } => {
            facts::deleted(data, tree, revision)?.map_or(Status::Live, Status::Deleted)
        }
        other => return Err(wrong(entry, "kind", other).into()),
    };
    Ok(Name { own, tree, status })
}

/// The state of a record's member; absent if it has none of this name.
fn member<'d>(
    data: &'d TreeData,
    record: NodeId,
    name: &[u8],
    revision: u32,
) -> Result<Datum<'d>, Fault> {
    match data.schema.field(record.path(), name) {
        Some(path) => data.state(node(path, record.ordinal().0), revision),
        None => Ok(Datum::Absent),
    }
}

fn wrong(record: NodeId, name: &str, found: Datum<'_>) -> Error {
    let number = record.ordinal().0;
    let message = format!("catalogue record {number}: no {name:?} can be {found:?}");
    Error::new(ErrorKind::Corrupt, message)
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

/// No document has this name, but a series.
pub(crate) fn is_series(name: &str) -> Error {
    let message = format!(
        "there is no document {name:?}: it is a series, read by \"duramen series range\" and \
         \"duramen series latest\""
    );
    Error::new(ErrorKind::NotFound, message)
}

/// The entries of a map that are there at a revision, in order, with their keys.
fn entries(tree: &Tree, map: NodeId, revision: u32) -> Result<Vec<(String, NodeId)>> {
    let order = tree.read(|data| match data.state(map, revision)? {
        Datum::Map(sequence) => Ok(Some(sequence)),
        _ => Ok(None),
    })?;
    let mut entries = Vec::new();
    let Some(sequence) = order else { return Ok(entries) };
    let mut cursor = OrderCursor::new(sequence);
    while let Some(extent) = cursor.next(&&tree.orders)? {
        for index in 0..extent.items() {
            entries.extend(tree.read(|data| {
                let entry = data.item_node(map, true, extent.item(index))?;
                Ok(match data.key(data.address(entry).space, entry.ordinal().0)? {
                    Datum::Text { bytes, .. } => {
                        Some((String::from_utf8_lossy(bytes).into_owned(), entry))
                    }
                    _ => None,
                })
            })?);
        }
    }
    Ok(entries)
}

impl View {
    /// The tree of a document as of a commit, whether it was deleted or not.
    pub(crate) fn document(&self, name: &str, at: CommitSequence) -> Result<Arc<Tree>> {
        check_name(name)?;
        let (catalogue, head) = self.catalogue(at)?;
        match find(&catalogue, name, head)?.filter(|found| !found.is_free()) {
            Some(found) => self.tree(found.tree),
            None if self.has_series(name, at) => Err(is_series(name)),
            None => Err(missing(&catalogue, name, head)?),
        }
    }

    /// The catalogue and its newest revision as of a commit.
    pub(crate) fn catalogue(&self, at: CommitSequence) -> Result<(Arc<Tree>, u32)> {
        let catalogue = self.tree(CATALOGUE)?;
        let head = short(catalogue.head_at(at)?);
        Ok((catalogue, head))
    }

    /// What every name stands for as of a commit, sorted by name; free names too.
    pub(crate) fn names(&self, at: CommitSequence) -> Result<Vec<(String, Name)>> {
        let (catalogue, head) = self.catalogue(at)?;
        if head == 0 {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for (name, entry) in entries(&catalogue, node(ROOT, 0), head)? {
            names.push((name, catalogue.read(|data| read_name(data, entry, head))?));
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Ok(names)
    }

    /// The names of the documents as of a commit, sorted; deleted ones left out.
    pub(crate) fn documents(&self, at: CommitSequence) -> Result<Vec<String>> {
        let live = |(name, found): (String, Name)| (found.status == Status::Live).then_some(name);
        Ok(self.names(at)?.into_iter().filter_map(live).collect())
    }
}

/// Why there is no document of a name.
pub(crate) fn missing(catalogue: &Tree, name: &str, revision: u32) -> Result<Error> {
    if revision == 0 {
        return Ok(no_document(name));
    }
    let Some(entry) = catalogue.entry_node(node(ROOT, 0), name.as_bytes(), revision)? else {
        return Ok(no_document(name));
    };
    catalogue.read(|data| {
        Ok(match member(data, entry, b"renamed", revision)? {
            Datum::Text { bytes, .. } => {
                let to = String::from_utf8_lossy(bytes);
                let message =
                    format!("there is no document {name:?}: it was renamed to {:?}", &*to);
                Error::new(ErrorKind::NotFound, message)
            }
            _ => no_document(name),
        })
    })
}

/// Why there is no series of a name.
pub(crate) fn missing_series(catalogue: &Tree, name: &str, revision: u32) -> Result<Error> {
    let Some(found) = find(catalogue, name, revision)?.filter(|found| !found.is_free()) else {
        return Ok(tags::no_series(name));
    };
    let options = facts::options(catalogue, found.tree, revision)?;
    let told = match options.and_then(|options| options.collection) {
        Some(_) => "a collection, read by \"duramen records get\" and \"duramen records ls\"",
        None => "a document, read by \"duramen get\"",
    };
    let message = format!("there is no series {name:?}: it is {told}");
    Ok(Error::new(ErrorKind::NotFound, message))
}

impl Engine {
    /// The tree of a document that readers can see.
    pub(crate) fn document(&self, name: &str) -> Result<Arc<Tree>> {
        self.view().document(name, self.published())
    }
}
