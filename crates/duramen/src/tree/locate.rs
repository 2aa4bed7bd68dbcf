//! From a JSON Pointer to a node at a revision, and back.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ArrayIndex, JsonPointer};
use crate::node::{NodeId, PathId};
use crate::order::{self, Item, Places};
use crate::state::{ApartKind, Datum, Sequence};
use crate::tree::Tree;
use crate::tree::children::is_known;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::schema::{Label, ROOT};

/// Where a pointer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Node(NodeId),
    /// Into a subtree stored whole: the node, and how many tokens led to it.
    Inside(NodeId, usize),
    /// Nowhere: the deepest node that is there, and how many tokens led to it.
    Missing(NodeId, usize),
}

/// One step down.
#[derive(Debug, Clone, Copy)]
enum Step {
    To(NodeId),
    Element(Sequence),
    Entry,
    Inside,
    Nowhere,
}

impl Tree {
    /// Follows a pointer at a revision.
    pub(crate) fn locate(&self, pointer: &JsonPointer, revision: u32) -> Result<Place> {
        let mut at = node(ROOT, 0);
        let root_is_absent = self
            .read(|data| Ok(data.spaces[0].next == 0 || data.state(at, revision)?.is_absent()))?;
        if root_is_absent {
            return Ok(Place::Missing(at, 0));
        }
        for (depth, token) in pointer.tokens().enumerate() {
            let step = self.read(|data| step(data, at, token.as_bytes(), revision))?;
            let next = match step {
                Step::To(node) => Some(node),
                Step::Nowhere => None,
                Step::Inside => return Ok(Place::Inside(at, depth)),
                Step::Element(sequence) => self.element(at, sequence, token)?,
                Step::Entry => self.entry_node(at, token.as_bytes(), revision)?,
            };
            match next {
                Some(node) => at = node,
                None => return Ok(Place::Missing(at, depth)),
            }
        }
        Ok(Place::Node(at))
    }

    /// The place of a node at a revision; none if it is not there.
    pub(crate) fn pointer_of(&self, node: NodeId, revision: u32) -> Result<Option<JsonPointer>> {
        self.pointer_by((node, revision), &mut |sequence, item| {
            order::position(&&self.orders, sequence, item)
        })
    }

    /// The same for who asks for many, while nothing is staged.
    pub(crate) fn pointer_among(
        &self,
        places: &mut Places,
        (node, revision): (NodeId, u32),
    ) -> Result<Option<JsonPointer>> {
        self.pointer_by((node, revision), &mut |sequence, item| {
            places.position(&&self.orders, sequence, item)
        })
    }

    fn pointer_by(
        &self,
        (node, revision): (NodeId, u32),
        position: &mut dyn FnMut(Sequence, Item) -> Result<Option<u64>>,
    ) -> Result<Option<JsonPointer>> {
        let mut tokens = Vec::new();
        let mut at = node;
        while let Some((parent, hold)) = self.read(|data| hold(data, at, revision))? {
            let token = match hold {
                Hold::Not => return Ok(None),
                Hold::Name(name) => name,
                Hold::Item(sequence, name) => {
                    let item = Item::Ordinal(at.ordinal());
                    match (position(sequence, item)?, name) {
                        (None, _) => return Ok(None),
                        (Some(index), None) => index.to_string(),
                        (Some(_), Some(key)) => key,
                    }
                }
            };
            tokens.push(token);
            at = parent;
        }
        let is_there = at == self::node(ROOT, 0)
            && self.read(|data| {
                Ok(data.spaces[0].next > 0 && !data.state(at, revision)?.is_absent())
            })?;
        if !is_there {
            return Ok(None);
        }
        let mut pointer = JsonPointer::root();
        tokens.into_iter().rev().for_each(|token| pointer.push(token));
        Ok(Some(pointer))
    }

    /// The element of an array that a token names.
    fn element(&self, array: NodeId, sequence: Sequence, token: &str) -> Result<Option<NodeId>> {
        let Some(ArrayIndex::At(index)) = ArrayIndex::parse(token) else { return Ok(None) };
        let Some(item) = order::get(&&self.orders, sequence, index as u64)? else {
            return Ok(None);
        };
        self.data.read().item_node(array, false, item).map(Some)
    }

    /// The member of an object that has a name at a revision.
    pub(crate) fn member(
        &self,
        object: NodeId,
        name: &[u8],
        revision: u32,
    ) -> Result<Option<NodeId>> {
        match self.read(|data| step(data, object, name, revision))? {
            Step::To(member) => Ok(Some(member)),
            Step::Entry => self.entry_node(object, name, revision),
            Step::Element(_) | Step::Inside | Step::Nowhere => Ok(None),
        }
    }

    /// The entry of a map that has a key at a revision.
    pub(crate) fn entry_node(
        &self,
        map: NodeId,
        key: &[u8],
        revision: u32,
    ) -> Result<Option<NodeId>> {
        let Some(path) = self.data.read().schema.path(map.path()).entry else { return Ok(None) };
        let young = {
            let data = self.data.read();
            data.young_entry(data.schema.path(path).space, map.ordinal().0, key)
        };
        let found = match young {
            Some(ordinal) => Some(ordinal),
            None => self.cells.entry(path, map.ordinal().0, key)?,
        };
        let Some(ordinal) = found else { return Ok(None) };
        self.entry_there(map.path(), ordinal, revision)
    }

    /// The entry of the maps at a path that has an ordinal, if it is there.
    pub(crate) fn entry_there(
        &self,
        map: PathId,
        ordinal: u64,
        revision: u32,
    ) -> Result<Option<NodeId>> {
        let Some(path) = self.data.read().schema.path(map).entry else { return Ok(None) };
        let entry = node(path, ordinal);
        self.read(|data| {
            let born = data.born(data.schema.path(path).space, ordinal)?;
            let is_born = born.is_some_and(|born| born <= revision);
            Ok((is_born && !data.state(entry, revision)?.is_absent()).then_some(entry))
        })
    }
}

/// The node that a node is in; none for the root.
pub(crate) fn parent_of(data: &TreeData, at: NodeId) -> Result<Option<NodeId>, Fault> {
    let info = data.schema.path(at.path());
    Ok(match data.schema.label(at.path()) {
        Label::Root => None,
        Label::Field(_) => Some(node(info.parent, at.ordinal().0)),
        Label::Element | Label::Entry => {
            let ordinal = data.parent_ordinal(info.space, at.ordinal().0)?;
            Some(node(info.parent, ordinal))
        }
    })
}

/// How a node is held by the one it is in.
enum Hold {
    Not,
    Name(String),
    /// By an order; an entry under a key.
    Item(Sequence, Option<String>),
}

/// The node that a node is in, and whether that holds it; none for the root and for numbers that
/// are no node's.
fn hold(data: &TreeData, at: NodeId, revision: u32) -> Result<Option<(NodeId, Hold)>, Fault> {
    if !is_known(data, at) {
        return Ok(None);
    }
    let Some(parent) = parent_of(data, at)? else { return Ok(None) };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if data.state(at, revision)?.is_absent() {
        return Ok(Some((parent, Hold::Not)));
    }
    let hold = match (data.state(parent, revision)?, data.schema.label(at.path())) {
        (Datum::Object(shape), Label::Field(name)) => {
            let is_held = data.schema.shape(shape).iter().any(|field| field.path == at.path());
            if is_held { Hold::Name(text(name)) } else { Hold::Not }
        }
        (Datum::Map(_), Label::Field(name)) => Hold::Name(text(name)),
        (Datum::Array(sequence), Label::Element) => Hold::Item(sequence, None),
        (Datum::Map(sequence), Label::Entry) => {
            match data.key(data.address(at).space, at.ordinal().0)? {
                Datum::Text { bytes, .. } => Hold::Item(sequence, Some(text(bytes))),
                _ => Hold::Not,
            }
        }
        _ => Hold::Not,
    };
    Ok(Some((parent, hold)))
}

fn step(data: &TreeData, at: NodeId, token: &[u8], revision: u32) -> Result<Step, Fault> {
    let field = || data.schema.field(at.path(), token).map(|path| node(path, at.ordinal().0));
    Ok(match data.state(at, revision)? {
        Datum::Object(shape) => match field() {
            Some(child) if data.schema.shape(shape).iter().any(|f| f.path == child.path()) => {
                Step::To(child)
            }
            _ => Step::Nowhere,
        },
        Datum::Map(_) => match field() {
            Some(child) if !data.state(child, revision)?.is_absent() => Step::To(child),
            _ => Step::Entry,
        },
        Datum::Array(sequence) => Step::Element(sequence),
        Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. } => Step::Inside,
        _ => Step::Nowhere,
    })
}

/// The error for a pointer that leads nowhere.
pub(crate) fn not_found(pointer: &JsonPointer, depth: usize) -> Error {
    let mut there = JsonPointer::root();
    pointer.tokens().take(depth).for_each(|token| there.push(token));
    let shown = if depth == 0 { "the root".to_owned() } else { format!("\"{there}\"") };
    let message = format!("\"{pointer}\" is not there: {shown} has no such member or element");
    Error::new(ErrorKind::NotFound, message)
}
