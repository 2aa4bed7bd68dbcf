//! What a purge commits: the value goes from the head, and the catalogue says that it is purged.

use std::sync::Arc;

use crate::document::Document;
use crate::durability::Durability;
use crate::engine::catalogue::purges::purges;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::jsonpath;
use crate::node::NodeId;
use crate::purge::Purge;
use crate::revision::Revision;
use crate::snapshot::check_revision;
use crate::target::Target;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::locate::Place;
use crate::tree::schema::ROOT;

impl Transaction {
    /// Stages that a value of a document is purged, as it is named now or at a revision.
    pub(crate) fn purge(
        &mut self,
        name: &str,
        target: &Target,
        at: Option<Revision>,
    ) -> Result<()> {
        self.catalogue()?;
        let writer = self.any_writer(name)?;
        let (tree, now) = (Arc::clone(&writer.tree), writer.revision);
        let revision = match at {
            Some(revision) => {
                check_revision(&tree, (revision, Revision(u64::from(now) - 1)), name)?;
                short(revision)
            }
            None => now,
        };
        let (purged, place) =
            find(&tree, target, revision).map_err(|error| match error.kind() {
                ErrorKind::NotFound if at.is_none() => {
                    let message =
                        format!("{error}; what an earlier revision had is named with --at");
                    Error::new(ErrorKind::NotFound, message)
                }
                _ => error,
            })?;
        if let Some(present) = tree.pointer_of(purged, now)? {
            self.change(tree.id(), |writer| writer.remove(&present))?;
        }
        let catalogue = self.catalogue()?;
        let told = catalogue
            .add_purge(tree.id(), purged, &place)
            .and_then(|()| catalogue.open_hashes(&tree, purged));
        self.note(told)
    }
}

impl Document {
    /// Remembers a purge that was done where its history was taken over from; not twice.
    pub(crate) fn remember_purge(
        &self,
        purge: &Purge,
        durability: Option<Durability>,
    ) -> Result<()> {
        let (engine, tree) = self.parts();
        let mut transaction = Transaction::new(Arc::clone(engine));
        let catalogue = transaction.catalogue()?;
        let known = purges(&catalogue.tree, tree.id(), catalogue.revision)?;
        let is_known = known
            .iter()
            .any(|known| known.place == purge.place && known.elsewhere == Some(purge.timestamp));
        if !is_known {
            catalogue.add_purge_elsewhere(tree.id(), &purge.place, purge.timestamp)?;
        }
        let options = CommitOptions {
            author: purge.author.clone(),
            message: purge.message.clone(),
            durability,
            ..CommitOptions::default()
        };
        transaction.commit(&options).map(drop)
    }
}

/// The node that a target names at a revision, and its place there.
fn find(tree: &Arc<Tree>, target: &Target, revision: u32) -> Result<(NodeId, JsonPointer)> {
    let place = match target {
        Target::Pointer(pointer) => pointer.clone(),
        Target::Path(path) => jsonpath::only_pointer(tree, revision, path)?,
        Target::Node(node) => tree.pointer_of(*node, revision)?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the value {node} is not there"))
        })?,
    };
    match tree.locate(&place, revision)? {
        Place::Node(found) if found == node(ROOT, 0) => {
            let message = "the whole document cannot be purged: purge the members of it";
            Err(Error::new(ErrorKind::Invalid, message))
        }
        Place::Node(found) => Ok((found, place)),
        Place::Inside(_, depth) => {
            let mut whole = JsonPointer::root();
            place.tokens().take(depth).for_each(|token| whole.push(token));
            let message =
                format!("\"{place}\" is in a subtree that is stored whole: purge \"{whole}\"");
            Err(Error::new(ErrorKind::Invalid, message))
        }
        Place::Missing(found, depth) => Err(tree.missing(&place, (found, depth), revision)),
    }
}
