//! The children of a node at a revision: how many, which one, under which name.

use crate::error::{Error, ErrorKind, Result};
use crate::node::NodeId;
use crate::order::{self, Item};
use crate::state::{Datum, Sequence, ShapeId};
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::locate::parent_of;
use crate::tree::schema::Label;

/// What holds the children of a node at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// A scalar, or a subtree stored whole.
    None,
    Fields(ShapeId),
    Elements(Sequence),
    /// The entries of a map, and the fields of an object that outgrew its shape.
    Members(Sequence),
}

impl Tree {
    /// What holds the children of a node at a revision.
    pub(crate) fn children(&self, at: NodeId, revision: u32) -> Result<Children> {
        self.read(|data| {
            Ok(match data.state(at, revision)? {
                Datum::Object(shape) => Children::Fields(shape),
                Datum::Array(sequence) => Children::Elements(sequence),
                Datum::Map(sequence) => Children::Members(sequence),
                _ => Children::None,
            })
        })
    }

    /// How many children there are.
    pub(crate) fn child_count(&self, children: Children) -> Result<u64> {
        match children {
            Children::None => Ok(0),
            Children::Fields(shape) => Ok(self.data.read().schema.shape(shape).len() as u64),
            Children::Elements(sequence) | Children::Members(sequence) => {
                order::len(&&self.orders, sequence)
            }
        }
    }

    /// The child at an index. O(log n).
    pub(crate) fn child(
        &self,
        (parent, children): (NodeId, Children),
        index: u64,
    ) -> Result<Option<NodeId>> {
        match children {
            Children::None => Ok(None),
            Children::Fields(shape) => {
                let data = self.data.read();
                let index = usize::try_from(index).unwrap_or(usize::MAX);
                let field = data.schema.shape(shape).get(index);
                Ok(field.map(|field| node(field.path, parent.ordinal().0)))
            }
            Children::Elements(sequence) | Children::Members(sequence) => {
                match order::get(&&self.orders, sequence, index)? {
                    Some(item) => self.item(parent, children, item).map(Some),
                    None => Ok(None),
                }
            }
        }
    }

    /// The node of an item of a container's order.
    pub(crate) fn item(&self, parent: NodeId, children: Children, item: Item) -> Result<NodeId> {
        let is_map = matches!(children, Children::Members(_));
        self.data.read().item_node(parent, is_map, item)
    }

    /// Where a child stands among the children of its parent, found by looking through them.
    pub(crate) fn child_index(&self, children: Children, child: NodeId) -> Result<u64> {
        let index = match children {
            Children::None => None,
            Children::Fields(shape) => {
                let data = self.data.read();
                let mut fields = data.schema.shape(shape).iter();
                fields.position(|field| field.path == child.path()).map(|index| index as u64)
            }
            Children::Elements(sequence) | Children::Members(sequence) => {
                let is_field = {
                    let data = self.data.read();
                    matches!(data.schema.label(child.path()), Label::Field(_))
                };
                let item = if is_field {
                    Item::Field(child.path())
                } else {
                    Item::Ordinal(child.ordinal())
                };
                order::position(&&self.orders, sequence, item)?
            }
        };
        index.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, format!("{child} is not among its parent's children"))
        })
    }

    /// The name that a node has in the object it is in; none for elements and the root.
    pub(crate) fn name_of(&self, at: NodeId) -> Result<Option<String>> {
        self.read(|data| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok(match data.schema.label(at.path()) {
                Label::Field(name) => Some(text(name)),
                Label::Entry => match data.key(data.address(at).space, at.ordinal().0)? {
                    Datum::Text { bytes, .. } => Some(text(bytes)),
                    _ => None,
                },
                Label::Root | Label::Element => None,
            })
        })
    }
}

/// Whether a number is a node's.
pub(crate) fn is_known(data: &TreeData, at: NodeId) -> bool {
    data.schema.has_path(at.path()) && {
        let space = data.schema.path(at.path()).space;
        at.ordinal().0 < data.spaces[space.0 as usize].next
    }
}

/// Whether a node is there at a revision: neither it nor what it is in is marked as removed.
pub(crate) fn is_there(data: &TreeData, at: NodeId, revision: u32) -> Result<bool, Fault> {
    let mut at = Some(at);
    while let Some(node) = at {
        if data.version(node, revision)?.is_none_or(|(_, state)| state.is_absent()) {
            return Ok(false);
        }
        at = parent_of(data, node)?;
    }
    Ok(true)
}

/// Whether a node is another one or, at whatever revision, in it.
pub(crate) fn is_within(data: &TreeData, inner: NodeId, outer: NodeId) -> Result<bool, Fault> {
    // Most nodes are elsewhere, as their label paths alone tell.
    let mut path = inner.path();
    while path != outer.path() {
        if matches!(data.schema.label(path), Label::Root) {
            return Ok(false);
        }
        path = data.schema.path(path).parent;
    }
    let mut at = inner;
    while at.path() != outer.path() {
        match parent_of(data, at)? {
            Some(parent) => at = parent,
            None => return Ok(false),
        }
    }
    Ok(at == outer)
}
