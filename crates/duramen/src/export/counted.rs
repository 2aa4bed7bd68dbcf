//! Which records got a version in a revision though nothing of them differs any more.

use crate::document::Document;
use crate::error::{Error, ErrorKind, Result};
use crate::node::NodeId;
use crate::revision::Revision;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::records::version_path;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;

impl Document {
    /// The keys of such records, sorted; none of a document that is no collection.
    pub(super) fn counted(&self, revision: Revision) -> Result<Vec<String>> {
        let (_, tree) = self.parts();
        let (records, version) = {
            let schema = &tree.data.read().schema;
            (schema.path(ROOT).entry, version_path(schema))
        };
        let (Some(records), Some(version)) = (records, version) else { return Ok(Vec::new()) };
        let mut counted = Vec::new();
        for changed in tree.changed(revision)?.into_iter().filter(|node| node.path() == version) {
            let record = node(records, changed.ordinal().0);
            let now = text(tree, record, short(revision))?;
            if now.is_some() && now == text(tree, record, short(revision) - 1)? {
                counted.extend(tree.name_of(record)?);
            }
        }
        counted.sort_unstable();
        Ok(counted)
    }
}

/// A record as it is at a revision, whatever its collection is; none if it is not there.
fn text(tree: &Tree, record: NodeId, revision: u32) -> Result<Option<Vec<u8>>> {
    if tree.read(|data| Ok(data.state(record, revision)?.is_absent()))? {
        return Ok(None);
    }
    let mut text = Vec::new();
    tree.append_json((record, revision), &Format::default(), &mut text)?;
    Ok(Some(text))
}

impl Transaction {
    /// Gives records their next version, whether anything of them differs or not.
    pub(super) fn count_records(&mut self, name: &str, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.change_collection(name, |writer| {
            for key in keys {
                let record = writer.record(key)?.ok_or_else(|| {
                    let message = format!("record {key:?} is counted, but is not there");
                    Error::new(ErrorKind::Invalid, message)
                })?;
                writer.count_version(record)?;
            }
            Ok(())
        })
    }

    /// Gives those of the records that are there their next version.
    pub(crate) fn count_records_there(&mut self, name: &str, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.change_collection(name, |writer| {
            for key in keys {
                if let Some(record) = writer.record(key)? {
                    writer.count_version(record)?;
                }
            }
            Ok(())
        })
    }
}
