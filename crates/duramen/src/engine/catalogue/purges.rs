//! What the catalogue says of the purges of a document: which value was purged, under which place
//! it was found, and whether it is still to be erased. Who did it, when and why is what the
//! catalogue's own revision says that brought the entry.

use crate::content_hash::ContentHash;
use crate::engine::catalogue::facts::member_node;
use crate::engine::catalogue::{entries, facts, wrong};
use crate::error::Result;
use crate::json::JsonPointer;
use crate::json::escape::quoted;
use crate::node::NodeId;
use crate::revision::{Micros, Revision};
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::data::node;
use crate::tree::history::{Value, short};
use crate::tree::writer::Writer;

/// The hash of a tag whose revision has something that is being purged: it is made again after.
pub(crate) const OPEN_HASH: ContentHash = ContentHash::from_bytes([0; 32]);

/// A purge as its document's record keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PurgeFacts {
    /// Its key in the record.
    pub(crate) number: String,
    /// None if it was purged in another database, whose nodes have other ids.
    pub(crate) node: Option<NodeId>,
    /// Where the value was when it was purged.
    pub(crate) place: JsonPointer,
    pub(crate) is_pending: bool,
    /// When it was purged, if that was in another database.
    pub(crate) elsewhere: Option<Micros>,
    /// The revision of the catalogue that says so since.
    pub(crate) set: Revision,
}

/// The purges of a tree's document, oldest first.
pub(crate) fn purges(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<Vec<PurgeFacts>> {
    let Some(purges) = member_node(catalogue, tree, b"purges", revision)? else {
        return Ok(Vec::new());
    };
    let found = entries(catalogue, purges, revision)?.into_iter();
    found.map(|(number, entry)| read(catalogue, entry, number, revision)).collect()
}

fn read(catalogue: &Tree, entry: NodeId, number: String, revision: u32) -> Result<PurgeFacts> {
    let member = |name: &str| {
        let path = catalogue.data.read().schema.field(entry.path(), name.as_bytes());
        let member = path.map(|path| node(path, entry.ordinal().0));
        member.map_or(Ok(None), |member| catalogue.json_at(member, revision))
    };
    let place = match member("place")? {
        Some(Value::String(place)) => JsonPointer::parse(&place)?,
        _ => return Err(wrong(entry, "place", Datum::Absent)),
    };
    let node = match member("node")? {
        Some(Value::Integer(node)) => Some(NodeId::from_number(node.cast_unsigned())),
        _ => None,
    };
    let elsewhere = match member("timestamp_us")? {
        Some(Value::Integer(timestamp)) => Some(Micros(timestamp)),
        _ => None,
    };
    let is_pending = member("pending")? == Some(Value::Bool(true));
    if node.is_some() == elsewhere.is_some() || is_pending && node.is_none() {
        return Err(wrong(entry, "node", Datum::Absent));
    }
    let born = catalogue.read(|data| data.born(data.address(entry).space, entry.ordinal().0))?;
    let set = Revision(born.unwrap_or_default().into());
    Ok(PurgeFacts { number, node, place, is_pending, elsewhere, set })
}

/// The catalogue while a transaction writes what it says of purges.
impl Writer {
    /// Adds a purge that is pending.
    pub(crate) fn add_purge(&self, tree: TreeId, node: NodeId, place: &JsonPointer) -> Result<()> {
        let (node, place) = (node.number(), quoted(&place.to_string()));
        self.add_record(tree, &format!("{{\"node\":{node},\"place\":{place},\"pending\":true}}"))
    }

    /// Adds a purge that was done in another database.
    pub(crate) fn add_purge_elsewhere(
        &self,
        tree: TreeId,
        place: &JsonPointer,
        timestamp: Micros,
    ) -> Result<()> {
        let (place, timestamp) = (quoted(&place.to_string()), timestamp.0);
        self.add_record(tree, &format!("{{\"place\":{place},\"timestamp_us\":{timestamp}}}"))
    }

    fn add_record(&self, tree: TreeId, record: &str) -> Result<()> {
        let count = purges(&self.tree, tree, self.revision)?.len();
        if count == 0 {
            self.set_of_tree(tree, "purges", Some("{}"))?;
        }
        let mut purges = self.record_pointer(tree)?;
        purges.push("purges");
        self.set_member(purges, &(count + 1).to_string(), Some(record))
    }

    /// Leaves the hashes open of tags that name revisions in which a node had a value.
    pub(crate) fn open_hashes(&self, tree: &Tree, purged: NodeId) -> Result<()> {
        for tag in facts::tags(&self.tree, tree.id(), self.revision)? {
            let at = short(tag.revision);
            if !tree.read(|data| Ok(data.state(purged, at)?.is_absent()))? {
                self.set_tag_hash((tree.id(), &tag.name), &OPEN_HASH)?;
            }
        }
        Ok(())
    }

    /// A purge is done: makes the hashes again that were left open.
    pub(crate) fn finish_purge(&self, tree: &Tree, number: &str) -> Result<()> {
        let mut purge = self.record_pointer(tree.id())?;
        purge.push("purges");
        purge.push(number);
        self.set_member(purge, "pending", None)?;
        for tag in facts::tags(&self.tree, tree.id(), self.revision)? {
            if tag.hash == OPEN_HASH {
                let hash = tree.content_hash(short(tag.revision))?;
                self.set_tag_hash((tree.id(), &tag.name), &hash)?;
            }
        }
        Ok(())
    }

    fn set_tag_hash(&self, (tree, name): (TreeId, &str), hash: &ContentHash) -> Result<()> {
        let mut tag = self.record_pointer(tree)?;
        tag.push("tags");
        tag.push(name);
        self.set_member(tag, "hash", Some(&quoted(&hash.to_string())))
    }
}
