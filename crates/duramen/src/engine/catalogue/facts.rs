//! What the catalogue says of a tree, whatever its document's name is: when it was deleted, its
//! tags and its options. All of it is in the record of the entry with the tree's number.

use std::sync::{Arc, LazyLock};

use crate::content_hash::ContentHash;
use crate::engine::catalogue::{entries, member, wrong};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{JsonPointer, ParseOptions, Tape};
use crate::node::NodeId;
use crate::options::DocumentOptions;
use crate::revision::{Micros, Revision};
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::{TreeData, node};
use crate::tree::edit::Given;
use crate::tree::group::Fault;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// A tag as its record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TagFacts {
    pub(crate) name: String,
    pub(crate) revision: Revision,
    pub(crate) hash: ContentHash,
    /// The revision of the catalogue that set the tag to where it is.
    pub(crate) set: Revision,
    /// When that was, if it was in another database.
    pub(crate) elsewhere: Option<Micros>,
}

/// The catalogue's own: tags, purges, indexes and the id fields of arrays are maps, so that their
/// names are no paths of the catalogue.
static CATALOGUE_OPTIONS: LazyLock<Arc<DocumentOptions>> = LazyLock::new(|| {
    let maps = ["${*}.tags", "${*}.options.ids", "${*}.options.indexes.named", "${*}.purges"]
        .map(|path| path.parse().expect("a label path"));
    Arc::new(DocumentOptions { maps: maps.into(), ..DocumentOptions::default() })
});

/// The options of the catalogue itself.
pub(crate) fn catalogue_options() -> Arc<DocumentOptions> {
    Arc::clone(&CATALOGUE_OPTIONS)
}

/// The record of the entry with a tree's number; none in an empty catalogue.
pub(super) fn record_of(data: &TreeData, tree: TreeId) -> Option<NodeId> {
    let entry = data.schema.path(ROOT).entry?;
    Some(node(entry, tree.0.checked_sub(1)?))
}

/// The revision in which a tree's document was deleted, if it is.
pub(crate) fn deleted(
    data: &TreeData,
    tree: TreeId,
    revision: u32,
) -> Result<Option<Revision>, Fault> {
    let Some(record) = record_of(data, tree) else { return Ok(None) };
    match member(data, record, b"deleted", revision)? {
        Datum::Absent => Ok(None),
        Datum::Int(deleted @ 1..) => Ok(Some(Revision(deleted.cast_unsigned()))),
        other => Err(wrong(record, "deleted", other).into()),
    }
}

/// The revision of the catalogue that says that a tree's document is deleted.
pub(crate) fn deleted_by(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<Revision> {
    catalogue.read(|data| {
        let path = record_of(data, tree)
            .and_then(|record| data.schema.field(record.path(), b"deleted"))
            .map(|path| node(path, tree.0 - 1));
        let version = path.map(|path| data.version(path, revision)).transpose()?.flatten();
        Ok(Revision(version.map_or(0, |(set, _)| set.into())))
    })
}

/// The options of a tree's document; none if none were set.
pub(crate) fn options(
    catalogue: &Tree,
    tree: TreeId,
    revision: u32,
) -> Result<Option<DocumentOptions>> {
    let Some(options) = member_node(catalogue, tree, b"options", revision)? else {
        return Ok(None);
    };
    let mut text = Vec::new();
    catalogue.append_json((options, revision), &Format::default(), &mut text)?;
    let options = DocumentOptions::from_json(&text);
    options.map(Some).map_err(|error| {
        let message = format!("catalogue record {}: {error}", tree.0 - 1);
        Error::new(ErrorKind::Corrupt, message)
    })
}

/// The tags of a tree's document, sorted by name.
pub(crate) fn tags(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<Vec<TagFacts>> {
    let Some(tags) = member_node(catalogue, tree, b"tags", revision)? else {
        return Ok(Vec::new());
    };
    let mut found = entries(catalogue, tags, revision)?
        .into_iter()
        .map(|(name, tag)| read_tag(catalogue, tag, &name, revision))
        .collect::<Result<Vec<_>>>()?;
    found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// One tag of a tree's document.
pub(crate) fn tag(
    catalogue: &Tree,
    tree: TreeId,
    name: &str,
    revision: u32,
) -> Result<Option<TagFacts>> {
    let Some(tags) = member_node(catalogue, tree, b"tags", revision)? else { return Ok(None) };
    let tag = catalogue.entry_node(tags, name.as_bytes(), revision)?;
    tag.map(|tag| read_tag(catalogue, tag, name, revision)).transpose()
}

fn read_tag(catalogue: &Tree, tag: NodeId, name: &str, revision: u32) -> Result<TagFacts> {
    catalogue.read(|data| {
        let path = data.schema.field(tag.path(), b"revision");
        let at = path.map(|path| node(path, tag.ordinal().0));
        let version = at.map(|at| data.version(at, revision)).transpose()?.flatten();
        let (moved, at) = match version {
            Some((set, Datum::Int(at @ 1..))) => (set, Revision(at.cast_unsigned())),
            other => return Err(wrong(tag, "revision", state_of(other)).into()),
        };
        let hash = match member(data, tag, b"hash", revision)? {
            Datum::Text { bytes, .. } => {
                std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        let hash = hash.ok_or_else(|| wrong(tag, "hash", Datum::Absent))?;
        // A tag that came back at the revision it had is as old as its coming back.
        let back = data.version(tag, revision)?.map_or(0, |(set, _)| set);
        let set = Revision(moved.max(back).into());
        let elsewhere = match member(data, tag, b"timestamp_us", revision)? {
            Datum::Absent => None,
            Datum::Int(timestamp) => Some(Micros(timestamp)),
            other => return Err(wrong(tag, "timestamp_us", other).into()),
        };
        Ok(TagFacts { name: name.to_owned(), revision: at, hash, set, elsewhere })
    })
}

fn state_of(version: Option<(u32, Datum<'_>)>) -> Datum<'_> {
    version.map_or(Datum::Absent, |(_, state)| state)
}

/// A member of the record of a tree, if it is there. Nothing is read where no record ever had it.
pub(super) fn member_node(
    catalogue: &Tree,
    tree: TreeId,
    name: &[u8],
    revision: u32,
) -> Result<Option<NodeId>> {
    catalogue.read(|data| {
        let Some(record) = record_of(data, tree) else { return Ok(None) };
        let Some(path) = data.schema.field(record.path(), name) else { return Ok(None) };
        let found = node(path, record.ordinal().0);
        Ok((!data.state(found, revision)?.is_absent()).then_some(found))
    })
}

/// The catalogue while a transaction writes what it says of trees.
impl Writer {
    /// Sets a member of a name's record, or removes it.
    pub(crate) fn set_of_name(&self, name: &str, member: &str, value: Option<&str>) -> Result<()> {
        let mut pointer = JsonPointer::root();
        pointer.push(name);
        self.set_member(pointer, member, value)
    }

    /// Sets a member of the record of a tree, or removes it.
    pub(crate) fn set_of_tree(
        &self,
        tree: TreeId,
        member: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.set_member(self.record_pointer(tree)?, member, value)
    }

    /// Sets a tag of a tree's document, or removes it.
    pub(crate) fn set_tag(&self, tree: TreeId, tag: &str, value: Option<&str>) -> Result<()> {
        let mut pointer = self.record_pointer(tree)?;
        if member_node(&self.tree, tree, b"tags", self.revision)?.is_none() {
            self.set_member(pointer.clone(), "tags", Some("{}"))?;
        }
        pointer.push("tags");
        self.set_member(pointer, tag, value)
    }

    pub(super) fn record_pointer(&self, tree: TreeId) -> Result<JsonPointer> {
        self.tree.read(|data| {
            let key = match record_of(data, tree) {
                Some(record) => data.key(data.address(record).space, record.ordinal().0)?,
                None => Datum::Absent,
            };
            let Datum::Text { bytes, .. } = key else {
                let message = format!("the catalogue has no record of tree {}", tree.0);
                return Err(Error::new(ErrorKind::Corrupt, message).into());
            };
            let mut pointer = JsonPointer::root();
            pointer.push(String::from_utf8_lossy(bytes));
            Ok(pointer)
        })
    }

    pub(super) fn set_member(
        &self,
        mut record: JsonPointer,
        member: &str,
        value: Option<&str>,
    ) -> Result<()> {
        record.push(member);
        match value {
            Some(value) => {
                let tape = Tape::parse(value.as_bytes(), ParseOptions::default())?;
                self.set(&record, Given::whole(&tape))
            }
            None => match self.remove(&record) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                result => result,
            },
        }
    }
}
