//! A place in a document at one revision, from which one goes up, down and sideways.
//!
//! Invariants:
//! - a cursor stands on a value that is there at its revision;
//! - it knows the way from the root, so that going up and comparing places look nothing up;
//! - its index among its siblings is looked up once, and not at all where the way down gave it.

use std::cmp::Ordering;
use std::io::Write;
use std::sync::{Arc, OnceLock};

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, JsonPointer};
use crate::node::{NodeId, NodeKind};
use crate::order::OrderCursor;
use crate::revision::Revision;
use crate::snapshot::{Node, Snapshot};
use crate::state::Extent;
use crate::target::Target;
use crate::tree::Tree;
use crate::tree::children::Children;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::locate::not_found;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;

/// A place in a document at one revision. Cheap to clone, and free of the snapshot it came from.
///
/// Every move gives a new cursor, or none if there is nothing that way. To the first or last
/// child, a child by its index and the next or previous sibling it takes O(log n), whatever the
/// number of siblings; to a member by its name, one look-up. A subtree that is stored whole has no
/// children here ([limits](crate::limits)).
///
/// ```
/// use duramen::{CommitOptions, Database, JsonPointer};
///
/// let doc = Database::memory()?.create_document("d")?;
/// doc.put(r#"{"a":[10,20,30],"b":true}"#, &CommitOptions::default())?;
/// let root = doc.head()?.cursor(&JsonPointer::root().into())?;
///
/// let twenty = root.field("a")?.and_then(|a| a.element(1).transpose()).transpose()?;
/// let twenty = twenty.expect("it is there");
/// assert_eq!(twenty.pointer()?.to_string(), "/a/1");
/// assert_eq!(twenty.next_sibling()?.expect("there is one more").to_json()?, "30");
/// assert_eq!(root.descendants(Some(1)).count(), 2);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cursor {
    tree: Arc<Tree>,
    revision: u32,
    link: Arc<Link>,
}

/// A value and the way to it.
#[derive(Debug)]
struct Link {
    node: NodeId,
    /// Where it stands among its siblings, once that is known.
    index: OnceLock<u64>,
    parent: Option<Arc<Link>>,
    depth: usize,
}

impl Link {
    fn below(parent: &Arc<Self>, node: NodeId, index: Option<u64>) -> Arc<Self> {
        let (depth, parent) = (parent.depth + 1, Some(Arc::clone(parent)));
        let index = index.map_or_else(OnceLock::new, OnceLock::from);
        Arc::new(Self { node, index, parent, depth })
    }
}

impl Snapshot {
    /// A cursor on what a target names at this revision; `NotFound` if it is not there.
    pub fn cursor(&self, target: &Target) -> Result<Cursor> {
        let pointer = self.resolve(target)?;
        let root = Link { node: node(ROOT, 0), index: OnceLock::new(), parent: None, depth: 0 };
        let (tree, revision) = (Arc::clone(&self.tree), short(self.revision));
        let mut cursor = Cursor { tree, revision, link: Arc::new(root) };
        if pointer.is_root() {
            self.locate(&pointer)?;
        }
        for token in pointer.tokens() {
            let Some(next) = cursor.step(token)? else {
                // What leads nowhere is told apart from what leads into a value stored whole.
                self.locate(&pointer)?;
                return Err(not_found(&pointer, cursor.depth()));
            };
            cursor = next;
        }
        Ok(cursor)
    }
}

impl Cursor {
    /// The id of the value.
    pub fn node(&self) -> NodeId {
        self.link.node
    }

    /// The revision that the cursor moves in.
    pub fn revision(&self) -> Revision {
        Revision(u64::from(self.revision))
    }

    /// How many levels it is below the root.
    pub fn depth(&self) -> usize {
        self.link.depth
    }

    /// What kind of value it is.
    pub fn kind(&self) -> Result<NodeKind> {
        Ok(self.details()?.kind)
    }

    /// What is known of the value.
    pub fn details(&self) -> Result<Node> {
        self.tree.node((self.node(), self.revision()))
    }

    /// The name it has in the object it is in; none for the root and for elements of an array.
    pub fn name(&self) -> Result<Option<String>> {
        self.tree.name_of(self.node())
    }

    /// Where it stands among its siblings, from 0; none for the root.
    ///
    /// A member found by its name looks through its siblings for that, once.
    pub fn index(&self) -> Result<Option<u64>> {
        self.index_of(&self.link)
    }

    /// The place as a JSON Pointer.
    pub fn pointer(&self) -> Result<JsonPointer> {
        let mut tokens = Vec::with_capacity(self.depth());
        let mut link = &self.link;
        while let Some(parent) = &link.parent {
            tokens.push(match self.tree.name_of(link.node)? {
                Some(name) => name,
                None => self.index_of(link)?.unwrap_or_default().to_string(),
            });
            link = parent;
        }
        let mut pointer = JsonPointer::root();
        tokens.into_iter().rev().for_each(|token| pointer.push(token));
        Ok(pointer)
    }

    /// The value as compact JSON.
    pub fn to_json(&self) -> Result<String> {
        let mut text = Vec::new();
        self.tree.append_json((self.node(), self.revision), &Format::default(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes the value as JSON, without building it in memory.
    pub fn write_json(&self, format: &Format, out: &mut dyn Write) -> Result<()> {
        self.tree.write_json((self.node(), self.revision), format, out)
    }

    /// How many elements or members it has; 0 for a scalar.
    pub fn child_count(&self) -> Result<u64> {
        self.tree.child_count(self.children_held()?)
    }

    /// What it is in.
    pub fn parent(&self) -> Option<Self> {
        self.link.parent.as_ref().map(|parent| self.at(Arc::clone(parent)))
    }

    /// Its first element or member.
    pub fn first_child(&self) -> Result<Option<Self>> {
        self.child(0)
    }

    /// Its last element or member.
    pub fn last_child(&self) -> Result<Option<Self>> {
        match self.child_count()?.checked_sub(1) {
            Some(last) => self.child(last),
            None => Ok(None),
        }
    }

    /// The sibling behind it.
    pub fn next_sibling(&self) -> Result<Option<Self>> {
        match (self.parent(), self.index()?) {
            (Some(parent), Some(index)) => parent.child(index + 1),
            _ => Ok(None),
        }
    }

    /// The sibling before it.
    pub fn previous_sibling(&self) -> Result<Option<Self>> {
        match (self.parent(), self.index()?.and_then(|index| index.checked_sub(1))) {
            (Some(parent), Some(index)) => parent.child(index),
            _ => Ok(None),
        }
    }

    /// The member of an object with a name.
    pub fn field(&self, name: &str) -> Result<Option<Self>> {
        let member = self.tree.member(self.node(), name.as_bytes(), self.revision)?;
        Ok(member.map(|member| self.at(Link::below(&self.link, member, None))))
    }

    /// The element of an array with an index, from 0.
    pub fn element(&self, index: u64) -> Result<Option<Self>> {
        match self.children_held()? {
            Children::Elements(_) => self.child(index),
            _ => Ok(None),
        }
    }

    /// The element or member with an index, from 0, in document order.
    pub fn child(&self, index: u64) -> Result<Option<Self>> {
        let child = self.tree.child((self.node(), self.children_held()?), index)?;
        Ok(child.map(|child| self.at(Link::below(&self.link, child, Some(index)))))
    }

    /// Its elements or members, in order.
    pub fn children(&self) -> Descendants {
        self.descendants(Some(1))
    }

    /// All that is below it, at most so many levels, in document order: each value before those
    /// in it. It streams; what is kept is one place a level.
    pub fn descendants(&self, depth: Option<usize>) -> Descendants {
        let deepest = self.depth().saturating_add(depth.unwrap_or(usize::MAX));
        Descendants { at: Some(self.clone()), deepest, open: Vec::new() }
    }

    /// Which of two places comes first in the document; a value comes before those in it.
    ///
    /// Walks up to what both are in, and compares where they stand there: O(depth). `Invalid` for
    /// cursors of different documents or revisions.
    pub fn compare_order(&self, other: &Self) -> Result<Ordering> {
        if !Arc::ptr_eq(&self.tree, &other.tree) || self.revision != other.revision {
            let message = "places in different documents or revisions have no order: compare \
                           cursors of one snapshot";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let (mut a, mut b) = (&self.link, &other.link);
        while let (true, Some(parent)) = (a.depth > b.depth, &a.parent) {
            a = parent;
        }
        while let (true, Some(parent)) = (b.depth > a.depth, &b.parent) {
            b = parent;
        }
        if a.node == b.node {
            return Ok(self.depth().cmp(&other.depth()));
        }
        while let (Some(left), Some(right)) = (&a.parent, &b.parent)
            && left.node != right.node
        {
            (a, b) = (left, right);
        }
        Ok(self.index_of(a)?.cmp(&self.index_of(b)?))
    }

    fn at(&self, link: Arc<Link>) -> Self {
        Self { tree: Arc::clone(&self.tree), revision: self.revision, link }
    }

    fn children_held(&self) -> Result<Children> {
        self.tree.children(self.node(), self.revision)
    }

    /// One step down a JSON Pointer.
    fn step(&self, token: &str) -> Result<Option<Self>> {
        match (self.children_held()?, ArrayIndex::parse(token)) {
            (Children::Elements(_), Some(ArrayIndex::At(index))) => self.child(index as u64),
            (Children::Elements(_) | Children::None, _) => Ok(None),
            (Children::Fields(_) | Children::Members(_), _) => self.field(token),
        }
    }

    fn index_of(&self, link: &Link) -> Result<Option<u64>> {
        let Some(parent) = &link.parent else { return Ok(None) };
        if let Some(&index) = link.index.get() {
            return Ok(Some(index));
        }
        let children = self.tree.children(parent.node, self.revision)?;
        let index = self.tree.child_index(children, link.node)?;
        Ok(Some(*link.index.get_or_init(|| index)))
    }
}

/// The values below a cursor in document order.
#[derive(Debug)]
pub struct Descendants {
    /// The value given last, whose children come next; none at the end.
    at: Option<Cursor>,
    /// Levels below the root beyond which nothing is given.
    deepest: usize,
    open: Vec<Open>,
}

/// A container whose children are being given.
#[derive(Debug)]
struct Open {
    cursor: Cursor,
    children: Children,
    index: u64,
    /// The rest of the order of an array or map, of which this extent comes first.
    order: Option<(OrderCursor, Extent, u64)>,
}

impl Descendants {
    /// Leaves out what is below the value given last.
    pub fn skip_children(&mut self) {
        self.at = None;
    }

    fn advance(&mut self) -> Result<Option<Cursor>> {
        if let Some(at) = self.at.take()
            && at.depth() < self.deepest
        {
            self.open.extend(Open::new(at)?);
        }
        while let Some(open) = self.open.last_mut() {
            if let Some(child) = open.next()? {
                self.at = Some(child.clone());
                return Ok(Some(child));
            }
            self.open.pop();
        }
        Ok(None)
    }
}

impl Iterator for Descendants {
    type Item = Result<Cursor>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.open.clear();
        }
        next.transpose()
    }
}

impl Open {
    fn new(cursor: Cursor) -> Result<Option<Self>> {
        let children = cursor.children_held()?;
        let order = match children {
            Children::None => return Ok(None),
            Children::Fields(_) => None,
            Children::Elements(sequence) | Children::Members(sequence) => {
                Some((OrderCursor::new(sequence), Extent { first: 0, count: 0 }, 0))
            }
        };
        Ok(Some(Self { cursor, children, index: 0, order }))
    }

    fn next(&mut self) -> Result<Option<Cursor>> {
        let (parent, tree) = (self.cursor.node(), &self.cursor.tree);
        let child = match &mut self.order {
            None => tree.child((parent, self.children), self.index)?,
            Some((cursor, extent, left)) => {
                if *left == 0
                    && let Some(next) = cursor.next(&&tree.orders)?
                {
                    (*extent, *left) = (next, next.items());
                }
                match left.checked_sub(1) {
                    None => None,
                    Some(rest) => {
                        let item = extent.item(extent.items() - *left);
                        *left = rest;
                        Some(tree.item(parent, self.children, item)?)
                    }
                }
            }
        };
        let Some(child) = child else { return Ok(None) };
        let link = Link::below(&self.cursor.link, child, Some(self.index));
        self.index += 1;
        Ok(Some(self.cursor.at(link)))
    }
}
