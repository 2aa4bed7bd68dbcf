//! Prints a revision of a tree of which some cells are lost, without what is lost.
//!
//! Members that are lost are left out; lost elements are `null`, so that the others keep their
//! index. Everything else is as it was committed, to the character.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::json::escape;
use crate::label_path::LabelPath;
use crate::node::{NodeId, PathId};
use crate::order::{Item, OrderCursor};
use crate::state::{ApartKind, BlobId, Datum, Sequence, ShapeId};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::salvage::{Losses, readable};
use crate::tree::schema::{ROOT, Schema};
use crate::tree::serialize::write_scalar;

/// Bytes of text that are taken away at once.
const PRINT_BYTES: usize = 64 << 10;

/// Where text goes.
pub(crate) struct Output<'o> {
    pub(crate) text: &'o mut Vec<u8>,
    /// Is given the text between two values, once there is enough of it.
    pub(crate) take: &'o mut dyn FnMut(&mut Vec<u8>) -> Result<()>,
}

impl Output<'_> {
    /// Has the text taken away if it is enough. What was begun before is a container, which is
    /// printed whatever comes.
    fn settle(&mut self) -> Result<()> {
        if self.text.len() >= PRINT_BYTES { (self.take)(self.text) } else { Ok(()) }
    }
}

/// Prints revisions of one tree.
pub(crate) struct Printer<'t> {
    tree: &'t Tree,
    losses: &'t Losses,
    schema: Arc<Schema>,
    /// What was left out, by path.
    pub(crate) lost: BTreeMap<PathId, LostValues>,
}

/// Values of one path that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostValues {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Nodes, counted in every revision.
    pub(crate) count: u64,
}

/// What a root is at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// It was printed.
    Printed,
    /// The document was deleted then.
    Deleted,
    /// What it was is lost.
    Lost,
}

/// A state, outside the tree's lock.
enum State {
    Lost,
    Absent,
    /// It has been printed.
    Scalar,
    Object(ShapeId),
    Array(Sequence),
    Map(Sequence),
    Apart(BlobId, ApartKind),
}

impl<'t> Printer<'t> {
    pub(crate) fn new(tree: &'t Tree, losses: &'t Losses) -> Self {
        let schema = Arc::clone(&tree.data.read().schema);
        Self { tree, losses, schema, lost: BTreeMap::new() }
    }

    /// Prints the value of a revision; what was not taken away is left in the text.
    pub(crate) fn print(&mut self, revision: u32, out: &mut Output<'_>) -> Result<Root> {
        let root = node(ROOT, 0);
        match self.state(root, revision, out)? {
            State::Absent => Ok(Root::Deleted),
            State::Lost => Ok(Root::Lost),
            state if self.rest(root, &state, revision, out)? => Ok(Root::Printed),
            _ => Ok(Root::Lost),
        }
    }

    /// How many values were left out.
    pub(crate) fn lost_values(&self) -> u64 {
        self.lost.values().map(|values| values.count).sum()
    }

    /// A path as people write it.
    pub(crate) fn label(&self, path: PathId) -> String {
        LabelPath::of(&self.schema, path).to_string()
    }

    /// The state of a node; scalars are printed.
    fn state(&self, node: NodeId, revision: u32, out: &mut Output<'_>) -> Result<State> {
        let start = out.text.len();
        let found = self.tree.read(|data| {
            let mut text = Vec::new();
            let Some((set, state)) = data.version(node, revision)? else {
                return Ok((0, State::Lost, text));
            };
            let state = match state {
                Datum::Absent => State::Absent,
                Datum::Object(shape) => State::Object(shape),
                Datum::Array(sequence) => State::Array(sequence),
                Datum::Map(sequence) => State::Map(sequence),
                Datum::Apart { blob, kind } => State::Apart(blob, kind),
                scalar => {
                    write_scalar(scalar, &mut text);
                    State::Scalar
                }
            };
            Ok((set, state, text))
        });
        let Some((set, state, text)) = readable(found)? else { return Ok(State::Lost) };
        if matches!(state, State::Lost) || self.losses.hide(self.tree, node, set, revision) {
            out.text.truncate(start);
            return Ok(State::Lost);
        }
        out.text.extend_from_slice(&text);
        Ok(state)
    }

    /// Prints a node that something holds; whether it could be.
    fn held(&mut self, node: NodeId, revision: u32, out: &mut Output<'_>) -> Result<bool> {
        let state = self.state(node, revision, out)?;
        let is_printed = match state {
            State::Lost | State::Absent => false,
            state => self.rest(node, &state, revision, out)?,
        };
        if !is_printed {
            self.lose(node.path(), revision);
        }
        Ok(is_printed)
    }

    fn lose(&mut self, path: PathId, revision: u32) {
        let new = LostValues { first: revision, last: revision, count: 0 };
        let values = self.lost.entry(path).or_insert(new);
        values.first = values.first.min(revision);
        values.last = values.last.max(revision);
        values.count += 1;
    }

    /// Prints what a state holds.
    fn rest(
        &mut self,
        at: NodeId,
        state: &State,
        revision: u32,
        out: &mut Output<'_>,
    ) -> Result<bool> {
        match *state {
            State::Lost | State::Absent => return Ok(false),
            State::Scalar => {}
            State::Apart(blob, kind) => {
                let Some(bytes) = readable(self.tree.blobs.get(blob))? else { return Ok(false) };
                match kind {
                    ApartKind::PlainText => escape::write_text(&bytes, true, out.text),
                    ApartKind::Text => escape::write_text(&bytes, false, out.text),
                    ApartKind::Digits | ApartKind::Opaque => out.text.extend_from_slice(&bytes),
                }
            }
            State::Object(shape) => self.object(at, shape, revision, out)?,
            State::Array(sequence) => self.array(at, sequence, revision, out)?,
            State::Map(sequence) => self.map(at, sequence, revision, out)?,
        }
        Ok(true)
    }

    fn object(
        &mut self,
        at: NodeId,
        shape: ShapeId,
        revision: u32,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        out.text.push(b'{');
        let mut is_first = true;
        for field in schema.shape(shape) {
            let child = node(field.path, at.ordinal().0);
            self.member(child, schema.rendered(field), (&mut is_first, revision), out)?;
            out.settle()?;
        }
        out.text.push(b'}');
        Ok(())
    }

    /// Prints a member behind its name, or nothing if it is lost.
    fn member(
        &mut self,
        child: NodeId,
        name: &[u8],
        (is_first, revision): (&mut bool, u32),
        out: &mut Output<'_>,
    ) -> Result<()> {
        let end = out.text.len();
        if !*is_first {
            out.text.push(b',');
        }
        out.text.extend_from_slice(name);
        if self.held(child, revision, out)? {
            *is_first = false;
        } else {
            out.text.truncate(end);
        }
        Ok(())
    }

    fn array(
        &mut self,
        at: NodeId,
        sequence: Sequence,
        revision: u32,
        out: &mut Output<'_>,
    ) -> Result<()> {
        out.text.push(b'[');
        let mut is_first = true;
        let mut items = Items::new(sequence);
        while let Some(item) = self.next_item((&mut items, at, false), revision)? {
            let child = self.tree.read(|data| Ok(data.item_node(at, false, item)?));
            if !std::mem::take(&mut is_first) {
                out.text.push(b',');
            }
            let end = out.text.len();
            let is_printed = match readable(child)? {
                Some(child) => self.held(child, revision, out)?,
                None => false,
            };
            if !is_printed {
                out.text.truncate(end);
                out.text.extend_from_slice(b"null");
            }
            out.settle()?;
        }
        out.text.push(b']');
        Ok(())
    }

    fn map(
        &mut self,
        at: NodeId,
        sequence: Sequence,
        revision: u32,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        out.text.push(b'{');
        let mut is_first = true;
        let mut items = Items::new(sequence);
        while let Some(item) = self.next_item((&mut items, at, true), revision)? {
            let found = self.tree.read(|data| {
                let child = data.item_node(at, true, item)?;
                let mut name = Vec::new();
                match item {
                    Item::Field(path) => name.extend_from_slice(schema.rendered_path(path)),
                    Item::Ordinal(ordinal) => {
                        let space = data.address(child).space;
                        if let Datum::Text { bytes, plain } = data.key(space, ordinal.0)? {
                            escape::write_text(bytes, plain, &mut name);
                            name.push(b':');
                        }
                    }
                }
                Ok((child, name))
            });
            match readable(found)? {
                Some((child, name)) if !name.is_empty() => {
                    self.member(child, &name, (&mut is_first, revision), out)?;
                }
                Some((child, _)) => self.lose(child.path(), revision),
                None => self.lose(at.path(), revision),
            }
            out.settle()?;
        }
        out.text.push(b'}');
        Ok(())
    }

    /// The next item of an array or a map. Where the order is lost, so is the rest of it.
    fn next_item(
        &mut self,
        (items, at, is_map): (&mut Items, NodeId, bool),
        revision: u32,
    ) -> Result<Option<Item>> {
        if let Some(next) = readable(items.next(self.tree))? {
            return Ok(next);
        }
        let info = self.schema.path(at.path());
        let path = if is_map { info.entry } else { info.element };
        self.lose(path.unwrap_or(at.path()), revision);
        Ok(None)
    }
}

/// Goes through the items of an array or a map.
struct Items {
    cursor: OrderCursor,
    extent: Option<crate::state::Extent>,
    index: u64,
}

impl Items {
    fn new(sequence: Sequence) -> Self {
        Self { cursor: OrderCursor::new(sequence), extent: None, index: 0 }
    }

    fn next(&mut self, tree: &Tree) -> Result<Option<Item>> {
        loop {
            if let Some(extent) = self.extent.filter(|extent| self.index < extent.items()) {
                self.index += 1;
                return Ok(Some(extent.item(self.index - 1)));
            }
            self.index = 0;
            self.extent = self.cursor.next(&&tree.orders)?;
            if self.extent.is_none() {
                return Ok(None);
            }
        }
    }
}
