//! Values of a tree at a revision as a query walks over them: nodes, and what is inside subtrees
//! stored whole.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item as TapeItem, ParseOptions, Tape, TapeCursor, TapeIndex, number};
use crate::node::NodeId;
use crate::order::{self, Item, OrderCursor};
use crate::state::{ApartKind, BlobId, Datum, Extent, Sequence, ShapeId};
use crate::tree::Tree;
use crate::tree::conditions::has_field;
use crate::tree::data::node;
use crate::tree::schema::{Label, ROOT};
use crate::tree::serialize::Format;

use super::value::Value;

/// One value.
#[derive(Debug, Clone)]
pub(crate) enum At {
    Node(NodeId),
    Inside(Arc<Tape<'static>>, TapeIndex),
}

/// A tree at a revision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) revision: u32,
}

/// A value with what is known of its children.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    /// None.
    Leaf,
    Object(NodeId, ShapeId),
    Array(NodeId, Sequence),
    Map(NodeId, Sequence),
    Inside(Arc<Tape<'static>>, TapeIndex),
}

/// The children of a value, one by one.
#[derive(Debug)]
pub(crate) enum Children {
    Fields { object: NodeId, shape: ShapeId, next: usize },
    Items(Items),
    Inside(Arc<Tape<'static>>, TapeCursor),
    None,
}

/// The elements of an array or the entries of a map.
#[derive(Debug)]
pub(crate) struct Items {
    pub(crate) container: NodeId,
    pub(crate) is_map: bool,
    pub(crate) cursor: OrderCursor,
    pub(crate) extent: Extent,
    /// Items that are left of the extent.
    left: u64,
    /// Items before.
    pub(crate) index: u64,
}

/// A value and its index, if it is an element of an array.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) at: At,
    pub(crate) index: Option<u64>,
}

/// A state, or where it is kept.
enum Read {
    Value(Value),
    Container,
    Apart(BlobId, ApartKind),
}

impl View<'_> {
    /// The root; none if there is no value at the revision.
    pub(crate) fn root(&self) -> Result<Option<At>> {
        let root = node(ROOT, 0);
        let is_there = self.tree.read(|data| {
            Ok(data.spaces[0].next > 0 && !data.state(root, self.revision)?.is_absent())
        })?;
        Ok(is_there.then_some(At::Node(root)))
    }

    /// What is known of the children of a value.
    pub(crate) fn open(&self, at: &At) -> Result<Opened> {
        let node = match at {
            At::Node(node) => *node,
            At::Inside(tape, index) => return Ok(Opened::Inside(Arc::clone(tape), *index)),
        };
        let state = self.tree.read(|data| {
            Ok(match data.state(node, self.revision)? {
                Datum::Object(shape) => Ok(Opened::Object(node, shape)),
                Datum::Array(sequence) => Ok(Opened::Array(node, sequence)),
                Datum::Map(sequence) => Ok(Opened::Map(node, sequence)),
                Datum::Opaque(text) => Err(Ok(text.to_vec())),
                Datum::Apart { blob, kind: ApartKind::Opaque } => Err(Err(blob)),
                _ => Ok(Opened::Leaf),
            })
        })?;
        let tape = match state {
            Ok(opened) => return Ok(opened),
            Err(Ok(text)) => Tape::parse(&text, ParseOptions::default())?.into_owned(),
            Err(Err(blob)) => {
                let text = self.tree.blobs.get(blob)?;
                Tape::parse(&text, ParseOptions::default())?.into_owned()
            }
        };
        let root = tape.root();
        Ok(Opened::Inside(Arc::new(tape), root))
    }

    /// The same value; the root of a subtree stored whole as a place in it, so that it is read
    /// once however often it is asked.
    pub(crate) fn entered(&self, at: &At) -> Result<At> {
        let At::Node(node) = at else { return Ok(at.clone()) };
        let is_opaque = self.tree.read(|data| {
            let state = data.state(*node, self.revision)?;
            Ok(matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. }))
        })?;
        match if is_opaque { self.open(at)? } else { Opened::Leaf } {
            Opened::Inside(tape, index) => Ok(At::Inside(tape, index)),
            _ => Ok(at.clone()),
        }
    }

    /// The member of an object that has a name.
    pub(crate) fn member(&self, opened: &Opened, name: &str) -> Result<Option<At>> {
        let bytes = name.as_bytes();
        let (map, of_shape) = match opened {
            Opened::Object(object, shape) => (*object, Some(*shape)),
            Opened::Map(map, _) => (*map, None),
            Opened::Inside(tape, index) => {
                let named =
                    tape.fields(*index).find(|(_, value)| tape.name_before(*value) == bytes);
                return Ok(named.map(|(_, value)| At::Inside(Arc::clone(tape), value)));
            }
            Opened::Leaf | Opened::Array(..) => return Ok(None),
        };
        let field = self.tree.read(|data| {
            let Some(path) = data.schema.field(map.path(), bytes) else { return Ok(None) };
            let field = node(path, map.ordinal().0);
            let is_there = match of_shape {
                Some(shape) => has_field(data, shape, path),
                None => !data.state(field, self.revision)?.is_absent(),
            };
            Ok(is_there.then_some(field))
        })?;
        match field {
            Some(field) => Ok(Some(At::Node(field))),
            None if of_shape.is_some() => Ok(None),
            None => Ok(self.tree.entry_node(map, bytes, self.revision)?.map(At::Node)),
        }
    }

    /// The element of an array at an index.
    pub(crate) fn element(&self, opened: &Opened, index: u64) -> Result<Option<At>> {
        match opened {
            Opened::Array(array, sequence) => {
                match order::get(&&self.tree.orders, *sequence, index)? {
                    Some(item) => self.item(*array, false, item).map(Some),
                    None => Ok(None),
                }
            }
            Opened::Inside(tape, array) => {
                let Ok(index) = usize::try_from(index) else { return Ok(None) };
                let element = tape.elements(*array).nth(index);
                Ok(element.map(|element| At::Inside(Arc::clone(tape), element)))
            }
            Opened::Leaf | Opened::Object(..) | Opened::Map(..) => Ok(None),
        }
    }

    /// The element of an array at an index that counts from the end if it is negative, and its
    /// index from the begin.
    pub(crate) fn indexed(&self, opened: &Opened, index: i64) -> Result<Option<(At, u64)>> {
        let from_begin = match u64::try_from(index) {
            Ok(index) => Some(index),
            Err(_) => self.array_len(opened)?.and_then(|len| len.checked_sub(index.unsigned_abs())),
        };
        let Some(index) = from_begin else { return Ok(None) };
        Ok(self.element(opened, index)?.map(|at| (at, index)))
    }

    /// How many elements an array has; none if the value is no array.
    pub(crate) fn array_len(&self, opened: &Opened) -> Result<Option<u64>> {
        Ok(match opened {
            Opened::Array(_, sequence) => Some(order::len(&&self.tree.orders, *sequence)?),
            Opened::Inside(tape, index) => match tape.item(*index) {
                TapeItem::Array { len } => Some(u64::from(len)),
                _ => None,
            },
            Opened::Leaf | Opened::Object(..) | Opened::Map(..) => None,
        })
    }

    /// How many children an array or object has; none if the value is neither.
    pub(crate) fn len(&self, opened: &Opened) -> Result<Option<u64>> {
        Ok(match opened {
            Opened::Object(_, shape) => {
                Some(self.tree.data.read().schema.shape(*shape).len() as u64)
            }
            Opened::Map(_, sequence) => Some(order::len(&&self.tree.orders, *sequence)?),
            Opened::Inside(tape, index) => match tape.item(*index) {
                TapeItem::Array { len } | TapeItem::Object { len } => Some(u64::from(len)),
                _ => None,
            },
            Opened::Leaf | Opened::Array(..) => self.array_len(opened)?,
        })
    }

    /// The value that a filter compares.
    pub(crate) fn value(&self, at: &At) -> Result<Value> {
        let node = match at {
            At::Node(node) => *node,
            At::Inside(tape, index) => {
                return Ok(match tape.item(*index) {
                    TapeItem::Null => Value::Null,
                    TapeItem::Bool(value) => Value::Bool(value),
                    TapeItem::Number(text) => Value::of(number::classify(text)),
                    TapeItem::Text { bytes, .. } => Value::text(bytes),
                    TapeItem::Array { .. } | TapeItem::Object { .. } => {
                        Value::Container(at.clone())
                    }
                });
            }
        };
        let read = self.tree.read(|data| {
            Ok(match data.state(node, self.revision)? {
                Datum::Apart { blob, kind } => Read::Apart(blob, kind),
                Datum::Opaque(_) => Read::Container,
                state if state.is_container() => Read::Container,
                state => Read::Value(Value::of(state)),
            })
        })?;
        Ok(match read {
            Read::Value(value) => value,
            Read::Container | Read::Apart(_, ApartKind::Opaque) => Value::Container(at.clone()),
            Read::Apart(blob, ApartKind::Digits) => {
                Value::Digits((&*self.tree.blobs.get(blob)?).into())
            }
            Read::Apart(blob, ApartKind::PlainText | ApartKind::Text) => {
                Value::text(&self.tree.blobs.get(blob)?)
            }
        })
    }

    /// Appends the JSON text of a value.
    pub(crate) fn append_json(&self, at: &At, out: &mut Vec<u8>) -> Result<()> {
        match at {
            At::Node(node) => {
                self.tree.append_json((*node, self.revision), &Format::default(), out)
            }
            At::Inside(tape, index) => {
                tape.write(*index, out);
                Ok(())
            }
        }
    }

    /// The name of a member of an object.
    pub(crate) fn name(&self, at: &At) -> Result<Arc<str>> {
        let node = match at {
            At::Node(node) => *node,
            At::Inside(tape, index) => return Ok(text(tape.name_before(*index))),
        };
        self.tree.read(|data| match data.schema.label(node.path()) {
            Label::Field(name) => Ok(text(name)),
            Label::Entry => {
                let space = data.schema.path(node.path()).space;
                match data.key(space, node.ordinal().0)? {
                    Datum::Text { bytes, .. } => Ok(text(bytes)),
                    _ => Err(nameless(node).into()),
                }
            }
            Label::Root | Label::Element => Err(nameless(node).into()),
        })
    }

    /// The node of an item.
    fn item(&self, container: NodeId, is_map: bool, item: Item) -> Result<At> {
        self.tree.data.read().item_node(container, is_map, item).map(At::Node)
    }
}

impl Children {
    pub(crate) fn of(opened: &Opened) -> Self {
        match opened {
            Opened::Leaf => Self::None,
            Opened::Object(object, shape) => {
                Self::Fields { object: *object, shape: *shape, next: 0 }
            }
            Opened::Array(array, sequence) => Self::Items(Items::new(*array, *sequence, false)),
            Opened::Map(map, sequence) => Self::Items(Items::new(*map, *sequence, true)),
            Opened::Inside(tape, index) => {
                let cursor = tape.below(*index);
                Self::Inside(Arc::clone(tape), cursor)
            }
        }
    }

    /// The next child.
    pub(crate) fn next(&mut self, view: View<'_>) -> Result<Option<Child>> {
        match self {
            Self::None => Ok(None),
            Self::Fields { object, shape, next } => {
                let field = view.tree.data.read().schema.shape(*shape).get(*next).copied();
                *next += 1;
                Ok(field.map(|field| Child {
                    at: At::Node(node(field.path, object.ordinal().0)),
                    index: None,
                }))
            }
            Self::Items(items) => items.next(view),
            Self::Inside(tape, cursor) => {
                let index = cursor.index();
                let Some(child) = tape.advance(cursor) else { return Ok(None) };
                Ok(Some(Child { at: At::Inside(Arc::clone(tape), child), index }))
            }
        }
    }
}

impl Items {
    fn new(container: NodeId, sequence: Sequence, is_map: bool) -> Self {
        let cursor = OrderCursor::new(sequence);
        let extent = Extent { first: 0, count: 0 };
        Self { container, is_map, cursor, extent, left: 0, index: 0 }
    }

    fn next(&mut self, view: View<'_>) -> Result<Option<Child>> {
        if self.left == 0 && !self.next_extent(view)? {
            return Ok(None);
        }
        let item = self.extent.item(self.extent.items() - self.left);
        let index = (!self.is_map).then_some(self.index);
        self.left -= 1;
        self.index += 1;
        let at = view.item(self.container, self.is_map, item)?;
        Ok(Some(Child { at, index }))
    }

    /// Goes to the next extent; false at the end. No lock is held meanwhile.
    pub(crate) fn next_extent(&mut self, view: View<'_>) -> Result<bool> {
        let Some(extent) = self.cursor.next(&&view.tree.orders)? else { return Ok(false) };
        (self.extent, self.left) = (extent, extent.items());
        Ok(true)
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    Arc::from(String::from_utf8_lossy(bytes).as_ref())
}

fn nameless(node: NodeId) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the member {node} of an object has no name"))
}
