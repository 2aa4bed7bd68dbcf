//! A document at one revision: immutable, shared freely, never in the writer's way.

use std::io::Write;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::jsonpath;
use crate::node::{NodeId, NodeKind};
use crate::revision::{Micros, Revision};
use crate::target::Target;
use crate::tree::Tree;
use crate::tree::history::{Trail, ValueRun, short};
use crate::tree::locate::Place;
use crate::tree::serialize::Format;

/// A document at one revision.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) tree: Arc<Tree>,
    pub(crate) revision: Revision,
    /// The newest revision when the snapshot was taken.
    pub(crate) head: Revision,
}

/// A node of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What identifies it, in every revision.
    pub id: NodeId,
    /// The kind of its value.
    pub kind: NodeKind,
    /// How many elements or members it has, if it is an array or object.
    pub children: Option<u64>,
    /// The revision in which it first had a value.
    pub created: Revision,
    /// The revision that last changed it, up to that of the snapshot.
    pub changed: Revision,
}

/// The values of one node as runs of revisions, newest first.
#[derive(Debug)]
pub struct History {
    tree: Arc<Tree>,
    trail: Trail,
    page: std::vec::IntoIter<ValueRun>,
    is_at_end: bool,
}

/// Runs read at a time by iterating.
const PAGE_RUNS: usize = 256;

impl Snapshot {
    pub(crate) fn new(
        tree: Arc<Tree>,
        (revision, head): (Revision, Revision),
        name: &str,
    ) -> Result<Self> {
        check_revision(&tree, (revision, head), name)?;
        if let Some(deleted) = tree.deleted_in(short(revision))? {
            let earlier = match tree.kept().at_or_before(deleted.0 - 1) {
                0 => "its retention keeps none before;".to_owned(),
                before => format!("read an earlier one (--at {before}), or"),
            };
            let message = format!(
                "document {name:?} was deleted in revision {deleted}: {earlier} put a value to go \
                 on with it"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        Ok(Self { tree, revision, head })
    }

    /// The tree and the revision in it.
    pub(crate) fn place(&self) -> (&Tree, u32) {
        (&self.tree, short(self.revision))
    }

    /// The revision it shows.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The revision's timestamp.
    pub fn timestamp(&self) -> Result<Micros> {
        Ok(self.tree.row(self.revision)?.timestamp)
    }

    /// The whole document as compact JSON.
    pub fn to_json(&self) -> Result<String> {
        let text = self.tree.to_json(short(self.revision))?;
        String::from_utf8(text).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "the document's text is not UTF-8").with_source(error)
        })
    }

    /// Appends what a pointer names to `out`, as JSON; `NotFound` if it names nothing.
    pub fn append_json(
        &self,
        pointer: &JsonPointer,
        format: &Format,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let revision = short(self.revision);
        match self.tree.locate(pointer, revision)? {
            Place::Node(node) => self.tree.append_json((node, revision), format, out),
            Place::Inside(node, depth) => {
                self.tree.append_inside((node, revision), (pointer, depth), format, out)
            }
            Place::Missing(node, depth) => Err(self.tree.missing(pointer, (node, depth), revision)),
        }
    }

    /// Writes what a pointer names as JSON, without building it in memory; `NotFound` if it names
    /// nothing.
    pub fn write_json(
        &self,
        pointer: &JsonPointer,
        format: &Format,
        out: &mut dyn Write,
    ) -> Result<()> {
        let revision = short(self.revision);
        match self.tree.locate(pointer, revision)? {
            Place::Node(node) => self.tree.write_json((node, revision), format, out),
            Place::Inside(node, depth) => {
                let mut text = Vec::new();
                self.tree.append_inside((node, revision), (pointer, depth), format, &mut text)?;
                out.write_all(&text).map_err(|error| Error::io("cannot write the output", error))
            }
            Place::Missing(node, depth) => Err(self.tree.missing(pointer, (node, depth), revision)),
        }
    }

    /// The node that a pointer names.
    pub fn node(&self, pointer: &JsonPointer) -> Result<Node> {
        self.tree.node((self.locate(pointer)?, self.revision))
    }

    /// Whether a pointer names an object.
    pub(crate) fn is_object(&self, pointer: &JsonPointer) -> Result<bool> {
        match self.tree.locate(pointer, short(self.revision))? {
            Place::Inside(..) => {
                let mut text = Vec::new();
                self.append_json(pointer, &Format::default(), &mut text)?;
                Ok(text.starts_with(b"{"))
            }
            _ => Ok(self.node(pointer)?.kind == NodeKind::Object),
        }
    }

    /// Where a node is; `NotFound` if it is not there at this revision.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer, Revision};
    ///
    /// let list = Database::memory()?.create_document("list")?;
    /// list.put("[1,2]", &CommitOptions::default())?;
    /// let two = list.head()?.node(&JsonPointer::parse("/1")?)?.id;
    /// list.remove(&JsonPointer::parse("/0")?, &CommitOptions::default())?;
    /// assert_eq!(list.head()?.pointer(two)?.to_string(), "/0");
    /// assert_eq!(list.at(Revision(1))?.pointer(two)?.to_string(), "/1");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn pointer(&self, node: NodeId) -> Result<JsonPointer> {
        self.tree.pointer_of(node, short(self.revision))?.ok_or_else(|| {
            let message = format!("the value {node} is not there in revision {}", self.revision);
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// The place that a target names at this revision.
    pub fn resolve(&self, target: &Target) -> Result<JsonPointer> {
        match target {
            Target::Pointer(pointer) => Ok(pointer.clone()),
            Target::Node(node) => self.pointer(*node),
            Target::Path(path) => jsonpath::only_pointer(&self.tree, short(self.revision), path),
        }
    }

    /// The values of the node that a pointer names, in all revisions up to the newest.
    ///
    /// The pointer is resolved at this snapshot's revision; from there on the node is followed,
    /// not the place. An array or object has a new run whenever anything below it changed.
    pub fn history(&self, pointer: &JsonPointer) -> Result<History> {
        let trail = self.tree.trail(self.locate(pointer)?, short(self.head))?;
        let tree = Arc::clone(&self.tree);
        Ok(History { tree, trail, page: Vec::new().into_iter(), is_at_end: false })
    }

    pub(crate) fn locate(&self, pointer: &JsonPointer) -> Result<NodeId> {
        match self.tree.locate(pointer, short(self.revision))? {
            Place::Node(node) => Ok(node),
            Place::Missing(node, depth) => {
                Err(self.tree.missing(pointer, (node, depth), short(self.revision)))
            }
            Place::Inside(_, depth) => {
                let message = format!(
                    "\"{pointer}\" is inside a value that is stored whole, because the document \
                     has too many paths: ids and history end {depth} levels down"
                );
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

/// Refuses a revision that a document does not have, or not any more.
pub(crate) fn check_revision(
    tree: &Tree,
    (revision, head): (Revision, Revision),
    name: &str,
) -> Result<()> {
    if revision.0 > 0 && revision <= head {
        let kept = tree.check_kept(revision);
        return kept.map_err(|error| error.in_context(format_args!("document {name:?}")));
    }
    let first = tree.first_revision();
    let message = match head.0 {
        0 => format!("document {name:?} has no revision yet: put a value first"),
        _ => format!(
            "document {name:?} has no revision {revision}: it has revisions {first} to {head}"
        ),
    };
    Err(Error::new(ErrorKind::NotFound, message))
}

impl History {
    /// Appends at most `limit` older runs to `runs`; none were left if nothing was appended.
    pub fn page(&mut self, limit: usize, runs: &mut Vec<ValueRun>) -> Result<()> {
        let before = runs.len();
        runs.extend(self.page.by_ref().take(limit));
        self.tree.next_runs(&mut self.trail, limit - (runs.len() - before), runs)
    }
}

impl Iterator for History {
    type Item = Result<ValueRun>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(run) = self.page.next() {
            return Some(Ok(run));
        }
        if self.is_at_end {
            return None;
        }
        let mut runs = Vec::new();
        if let Err(error) = self.tree.next_runs(&mut self.trail, PAGE_RUNS, &mut runs) {
            self.is_at_end = true;
            return Some(Err(error));
        }
        self.page = runs.into_iter();
        self.is_at_end = self.page.len() == 0;
        self.page.next().map(Ok)
    }
}
