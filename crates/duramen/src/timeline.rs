//! One value through time: the revisions that changed it, in either direction.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::node::NodeId;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::tree::changes::{ChangeSearch, NodeChange, Scope};
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::moved::MovedFrom;
use crate::tree::schema::ROOT;
use crate::tree::{Tree, children};

/// The changes of one value, up to the newest revision when the snapshot was taken.
///
/// Each step costs a bisection in the value's changes; with [`Scope::Subtree`], what looking
/// through the change lists of the revisions between or gathering the changes of all below costs,
/// whichever is less. Nothing grows with the number of revisions that did not change it.
///
/// ```
/// use duramen::{CommitOptions, Database, JsonPointer, Revision, Scope};
///
/// let doc = Database::memory()?.create_document("d")?;
/// for text in [r#"{"a":1,"b":1}"#, r#"{"a":1,"b":2}"#, r#"{"a":2,"b":2}"#, r#"{"a":3}"#] {
///     doc.put(text, &CommitOptions::default())?;
/// }
/// let mut a = doc.head()?.timeline(&JsonPointer::parse("/a")?.into(), Scope::Node)?;
/// assert_eq!(a.next(Revision(1))?.map(|change| change.revision), Some(Revision(3)));
/// assert_eq!(a.last()?.map(|change| change.revision), Some(Revision(4)));
/// let mut all = Vec::new();
/// for change in a.changes() {
///     all.push(change?.revision.0);
/// }
/// assert_eq!(all, [4, 3, 1]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug)]
pub struct Timeline {
    tree: Arc<Tree>,
    node: NodeId,
    /// That of the snapshot.
    revision: Revision,
    search: ChangeSearch,
}

/// The changes of one value, newest first.
#[derive(Debug)]
pub struct NodeChanges {
    timeline: Timeline,
    /// Revisions after this one have been given; 0 at the end.
    until: u32,
}

impl Snapshot {
    /// The changes of what a target names, in all revisions up to the newest.
    ///
    /// A pointer is resolved at this snapshot's revision; from there on the value is followed, not
    /// the place. An id names a value that may be gone, or yet to come, at this revision;
    /// `NotFound` if no revision has it.
    pub fn timeline(&self, target: &Target, scope: Scope) -> Result<Timeline> {
        let node = self.find_ever(target)?;
        let search = self.tree.change_search(node, scope, short(self.head))?;
        let (tree, revision) = (Arc::clone(&self.tree), self.revision);
        Ok(Timeline { tree, node, revision, search })
    }

    /// The node that a target names at this revision.
    pub(crate) fn find(&self, target: &Target) -> Result<NodeId> {
        match target {
            Target::Pointer(pointer) => self.locate(pointer),
            Target::Node(node) => self.pointer(*node).map(|_| *node),
            Target::Path(_) => self.locate(&self.resolve(target)?),
        }
    }

    /// The node that a pointer names at this revision, or that an id names in any one.
    pub(crate) fn find_ever(&self, target: &Target) -> Result<NodeId> {
        let node = match target {
            // The document itself may be deleted at this revision.
            Target::Pointer(pointer) if pointer.is_root() => node(ROOT, 0),
            Target::Pointer(pointer) => return self.locate(pointer),
            Target::Path(_) => return self.locate(&self.resolve(target)?),
            Target::Node(node) => *node,
        };
        let created = self.tree.read(|data| {
            if children::is_known(data, node) { data.created(node) } else { Ok(None) }
        })?;
        if created.is_some_and(|created| created <= short(self.head)) {
            return Ok(node);
        }
        let message = format!("no revision of the document has a value with the id {node}");
        Err(Error::new(ErrorKind::NotFound, message))
    }
}

impl Timeline {
    /// The change that brought the value; none only if no revision shows it.
    pub fn first(&mut self) -> Result<Option<NodeChange>> {
        self.tree.change_after(&mut self.search, 1)
    }

    /// The newest change.
    pub fn last(&mut self) -> Result<Option<NodeChange>> {
        self.tree.change_before(&mut self.search, u32::MAX)
    }

    /// The newest change before a revision.
    pub fn previous(&mut self, revision: Revision) -> Result<Option<NodeChange>> {
        let until = short_or_last(revision).saturating_sub(1);
        self.tree.change_before(&mut self.search, until)
    }

    /// The oldest change after a revision.
    pub fn next(&mut self, revision: Revision) -> Result<Option<NodeChange>> {
        let from = short_or_last(revision).saturating_add(1);
        self.tree.change_after(&mut self.search, from)
    }

    /// Where the value was before the revision that brought it, if that moved or renamed it or
    /// something it is in. Asked of the value it was then, it goes on to the place before that.
    ///
    /// A value that came more than once was brought by the newest such revision up to the
    /// snapshot's. In a moved value what is in it is found by the same names and indexes: something
    /// else, or nothing, if the same revision gave an array in between other elements. A value that
    /// was there before is not made by moving another one onto it, as JSON Patch can.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer, Scope};
    ///
    /// let options = CommitOptions::default();
    /// let doc = Database::memory()?.create_document("d")?;
    /// doc.put(r#"{"a":{"x":1}}"#, &options)?;
    /// doc.rename_field(&JsonPointer::parse("/a")?, "b", &options)?;
    /// let x = JsonPointer::parse("/b/x")?;
    /// let origin = doc.head()?.timeline(&x.into(), Scope::Node)?.moved_from()?;
    /// let origin = origin.expect("it was renamed");
    /// assert_eq!((origin.pointer.to_string().as_str(), origin.revision.0), ("/a/x", 2));
    /// let before = doc.head()?.timeline(&origin.node.into(), Scope::Node)?;
    /// assert_eq!(before.moved_from()?, None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn moved_from(&self) -> Result<Option<MovedFrom>> {
        let Some(began) = self.tree.beginning(self.node, short(self.revision))? else {
            return Ok(None);
        };
        let began = Revision(u64::from(began));
        self.tree.moved_from(self.node, began, &self.tree.moves(began)?)
    }

    /// All changes, newest first.
    pub fn changes(self) -> NodeChanges {
        NodeChanges { timeline: self, until: u32::MAX }
    }
}

impl Iterator for NodeChanges {
    type Item = Result<NodeChange>;

    fn next(&mut self) -> Option<Self::Item> {
        let Timeline { tree, search, .. } = &mut self.timeline;
        let change = tree.change_before(search, self.until);
        self.until = match &change {
            Ok(Some(change)) => short(change.revision) - 1,
            _ => 0,
        };
        change.transpose()
    }
}

/// Numbers that no revision has are after all that are.
fn short_or_last(revision: Revision) -> u32 {
    u32::try_from(revision.0).unwrap_or(u32::MAX)
}
