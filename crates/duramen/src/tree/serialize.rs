//! Prints a subtree at a revision as JSON, without building it in memory.
//!
//! The serializer is a stack of open containers. It runs while the tree's lock is held and stops
//! wherever something has to happen without the lock: the buffer is full, a cell or the next
//! piece of an array's order has to be loaded, a long value has to be fetched. It goes on where
//! it stopped. Nothing is allocated per node (benchmark V2).

use crate::error::{Error, ErrorKind, Result};
use crate::json::{escape, number};
use crate::node::{NodeId, NodeKind};
use crate::order::OrderCursor;
use crate::state::{ApartKind, BlobId, Datum, Extent, Sequence, ShapeId};
use crate::tree::blobs::Blobs;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{ColumnId, Fault, locate};
use crate::tree::orders::Orders;
use crate::tree::schema::SpaceId;

/// How a value is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// Line breaks and two spaces a level.
    pub pretty: bool,
    /// Containers below this many levels are printed empty; the outermost value is level 1.
    pub max_level: Option<usize>,
    /// At most this many children of each container are printed, from the first on.
    pub max_children: Option<u64>,
    /// Each value is wrapped as `{"node", "kind", "children", "created", "changed", "value"}`:
    /// the node's number, its kind, how many children it has at that revision if it is an array
    /// or object, the revisions that created it and last changed it, and the value.
    pub metadata: bool,
}

/// Why the serializer stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    Done,
    /// The buffer has as much as it should.
    Full,
    /// Call [`Serializer::advance`] without the tree's lock.
    Order,
    /// Call [`Serializer::write_apart`] without the tree's lock.
    Apart(BlobId, ApartKind),
    /// Call [`Serializer::measure`] without the tree's lock.
    Measure(Sequence),
}

/// An open container.
#[derive(Debug)]
struct Frame {
    written: u64,
    children: Children,
}

#[derive(Debug)]
enum Children {
    Fields { shape: ShapeId, space: SpaceId, ordinal: u64 },
    Items(Items),
}

/// The rest of an array or a map.
#[derive(Debug)]
struct Items {
    container: NodeId,
    /// The space of the elements or entries, if there ever were any.
    space: Option<SpaceId>,
    is_map: bool,
    extent: Extent,
    /// Whether `extent` is a field of an object that outgrew its shape.
    is_field: bool,
    cursor: Option<OrderCursor>,
}

/// What a child is, found before anything of it is printed.
struct Child<'a> {
    node: NodeId,
    state: Datum<'a>,
    metadata: Option<Metadata>,
}

struct Metadata {
    children: Option<u64>,
    created: u32,
    changed: u32,
}

/// What came of a child.
enum Begun {
    Scalar,
    Container,
    Apart(BlobId, ApartKind),
}

/// Prints one subtree.
#[derive(Debug)]
pub(crate) struct Serializer<'f> {
    format: &'f Format,
    root: Option<NodeId>,
    stack: Vec<Frame>,
    measured: Option<(Sequence, u64)>,
}

/// Why a child could not be looked at.
enum Hindrance {
    Fault(Fault),
    Measure(Sequence),
}

impl From<Fault> for Hindrance {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl<'f> Serializer<'f> {
    pub(crate) fn new(root: NodeId, format: &'f Format) -> Self {
        Self { format, root: Some(root), stack: Vec::new(), measured: None }
    }

    /// Prints on until there is a reason to stop; `out` gets little more than `limit` bytes.
    pub(crate) fn run(
        &mut self,
        data: &TreeData,
        revision: u32,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<Stop, Fault> {
        match self.run_on(data, revision, out, limit) {
            Ok(stop) => Ok(stop),
            Err(Hindrance::Measure(sequence)) => Ok(Stop::Measure(sequence)),
            Err(Hindrance::Fault(fault)) => Err(fault),
        }
    }

    fn run_on(
        &mut self,
        data: &TreeData,
        revision: u32,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<Stop, Hindrance> {
        if let Some(root) = self.root {
            let state = data.state(root, revision)?;
            let child = self.look(data, root, state, revision)?;
            self.root = None;
            if let Begun::Apart(blob, kind) = self.begin(data, &child, out) {
                return Ok(Stop::Apart(blob, kind));
            }
        }
        while let Some(frame) = self.stack.last() {
            let stop = match &frame.children {
                &Children::Fields { shape, space, ordinal } => {
                    self.fields(data, (shape, space, ordinal), revision, (out, limit))?
                }
                Children::Items(_) => self.items(data, revision, out, limit)?,
            };
            if let Some(stop) = stop {
                return Ok(stop);
            }
        }
        Ok(Stop::Done)
    }

    /// Prints the fields of the innermost object until a container opens or there is a stop.
    fn fields(
        &mut self,
        data: &TreeData,
        (shape, space, ordinal): (ShapeId, SpaceId, u64),
        revision: u32,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<Option<Stop>, Hindrance> {
        let top = self.stack.len() - 1;
        let fields = data.schema.shape(shape);
        let (group, slot) = locate(ordinal);
        let group = data.group(space, group)?;
        let group = group.ok_or_else(|| Fault::Error(missing_row(ordinal)))?;
        let shown = self.format.max_children.map_or(fields.len(), |most| {
            usize::try_from(most).unwrap_or(usize::MAX).min(fields.len())
        });
        while let Some(field) = fields[..shown].get(index_of(self.stack[top].written)) {
            if out.len() >= limit {
                return Ok(Some(Stop::Full));
            }
            let state = group.state(ColumnId::Value(field.column), slot, revision)?;
            let child = self.look(data, node(field.path, ordinal), state, revision)?;
            self.separate(top, out);
            out.extend_from_slice(data.schema.rendered(field));
            if self.format.pretty {
                out.push(b' ');
            }
            match self.begin(data, &child, out) {
                Begun::Scalar => {}
                Begun::Container => return Ok(None),
                Begun::Apart(blob, kind) => return Ok(Some(Stop::Apart(blob, kind))),
            }
        }
        self.end(b'}', out);
        Ok(None)
    }

    /// Prints the elements or entries of the innermost array or map.
    fn items(
        &mut self,
        data: &TreeData,
        revision: u32,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<Option<Stop>, Hindrance> {
        let top = self.stack.len() - 1;
        loop {
            if out.len() >= limit {
                return Ok(Some(Stop::Full));
            }
            let Frame { written, children: Children::Items(items) } = &self.stack[top] else {
                return Ok(None);
            };
            let is_map = items.is_map;
            let enough = self.format.max_children.is_some_and(|most| *written >= most);
            if items.extent.count == 0 || enough {
                if items.cursor.is_some() && !enough {
                    return Ok(Some(Stop::Order));
                }
                self.end(if is_map { b'}' } else { b']' }, out);
                return Ok(None);
            }
            let item = items.node(data);
            let state = data.state(item, revision)?;
            let key = match (is_map, items.is_field) {
                (true, false) => Some(data.key(data.address(item).space, item.ordinal().0)?),
                _ => None,
            };
            let is_field = items.is_field;
            let child = self.look(data, item, state, revision)?;
            self.separate(top, out);
            if let Some(Datum::Text { bytes, plain }) = key {
                escape::write_text(bytes, plain, out);
                out.push(b':');
            } else if is_field {
                out.extend_from_slice(data.schema.rendered_path(item.path()));
            }
            if is_map && self.format.pretty {
                out.push(b' ');
            }
            if let Children::Items(items) = &mut self.stack[top].children {
                items.extent.first += 1;
                items.extent.count -= 1;
            }
            match self.begin(data, &child, out) {
                Begun::Scalar => {}
                Begun::Container => return Ok(None),
                Begun::Apart(blob, kind) => return Ok(Some(Stop::Apart(blob, kind))),
            }
        }
    }

    /// Goes to the next extent of the innermost array or map; needs no lock.
    pub(crate) fn advance(&mut self, orders: &Orders) -> Result<()> {
        let Some(Frame { children: Children::Items(items), .. }) = self.stack.last_mut() else {
            return Ok(());
        };
        let Some(cursor) = &mut items.cursor else { return Ok(()) };
        match cursor.next(&orders)? {
            Some(extent) => {
                items.is_field = extent.count == 0;
                items.extent = Extent { count: extent.count.max(1), ..extent };
            }
            None => items.cursor = None,
        }
        Ok(())
    }

    /// Counts the items of a sequence that the last stop asked for; needs no lock.
    pub(crate) fn measure(&mut self, sequence: Sequence, orders: &Orders) -> Result<()> {
        self.measured = Some((sequence, crate::order::len(&orders, sequence)?));
        Ok(())
    }

    /// Prints the long value that the last stop asked for; needs no lock.
    pub(crate) fn write_apart(
        &mut self,
        (blob, kind): (BlobId, ApartKind),
        blobs: &Blobs,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let bytes = blobs.get(blob)?;
        match kind {
            ApartKind::PlainText => escape::write_text(&bytes, true, out),
            ApartKind::Text => escape::write_text(&bytes, false, out),
            ApartKind::Digits | ApartKind::Opaque => out.extend_from_slice(&bytes),
        }
        if self.format.metadata {
            out.push(b'}');
        }
        Ok(())
    }

    /// Finds what printing a child needs, so that printing it cannot be hindered.
    #[inline]
    fn look<'a>(
        &self,
        data: &TreeData,
        node: NodeId,
        state: Datum<'a>,
        revision: u32,
    ) -> Result<Child<'a>, Hindrance> {
        let metadata = match self.format.metadata {
            true => Some(self.metadata(data, node, state, revision)?),
            false => None,
        };
        Ok(Child { node, state, metadata })
    }

    fn metadata(
        &self,
        data: &TreeData,
        node: NodeId,
        state: Datum<'_>,
        revision: u32,
    ) -> Result<Metadata, Hindrance> {
        let children = match state {
            Datum::Object(shape) => Some(data.schema.shape(shape).len() as u64),
            Datum::Array(Sequence::Extent(extent)) | Datum::Map(Sequence::Extent(extent)) => {
                Some(u64::from(extent.count))
            }
            Datum::Array(sequence) | Datum::Map(sequence) => match self.measured {
                Some((measured, len)) if measured == sequence => Some(len),
                _ => return Err(Hindrance::Measure(sequence)),
            },
            _ => None,
        };
        let changed = data.version(node, revision)?.map_or(0, |(changed, _)| changed);
        let created = data.created(node)?.unwrap_or(changed);
        Ok(Metadata { children, created, changed })
    }

    /// Prints a comma or what else stands before a child, and counts it.
    #[inline]
    fn separate(&mut self, top: usize, out: &mut Vec<u8>) {
        if self.stack[top].written > 0 {
            out.push(b',');
        }
        self.stack[top].written += 1;
        if self.format.pretty {
            indent(self.stack.len(), out);
        }
    }

    /// Prints a scalar, or the opening of a container.
    #[inline]
    fn begin(&mut self, data: &TreeData, child: &Child<'_>, out: &mut Vec<u8>) -> Begun {
        if let Some(metadata) = &child.metadata {
            write_metadata(child, metadata, out);
        }
        let (opening, children) = match child.state {
            Datum::Object(shape) => {
                let address = data.address(child.node);
                let (space, ordinal) = (address.space, address.ordinal);
                (b'{', Children::Fields { shape, space, ordinal })
            }
            Datum::Array(sequence) => (b'[', Items::children(data, child.node, sequence, false)),
            Datum::Map(sequence) => (b'{', Items::children(data, child.node, sequence, true)),
            Datum::Apart { blob, kind } => return Begun::Apart(blob, kind),
            scalar => {
                write_scalar(scalar, out);
                if child.metadata.is_some() {
                    out.push(b'}');
                }
                return Begun::Scalar;
            }
        };
        out.push(opening);
        if self.format.max_level.is_some_and(|most| self.stack.len() >= most) {
            out.push(opening + 2);
            if child.metadata.is_some() {
                out.push(b'}');
            }
            return Begun::Scalar;
        }
        self.stack.push(Frame { written: 0, children });
        Begun::Container
    }

    /// Prints the end of the innermost container.
    fn end(&mut self, closing: u8, out: &mut Vec<u8>) {
        let frame = self.stack.pop();
        if self.format.pretty && frame.is_some_and(|frame| frame.written > 0) {
            indent(self.stack.len(), out);
        }
        out.push(closing);
        if self.format.metadata {
            out.push(b'}');
        }
    }
}

impl Items {
    fn children(
        data: &TreeData,
        container: NodeId,
        sequence: Sequence,
        is_map: bool,
    ) -> Children {
        let info = data.schema.path(container.path());
        let below = if is_map { info.entry } else { info.element };
        let space = below.map(|path| data.schema.path(path).space);
        let (extent, cursor) = match sequence {
            Sequence::Extent(extent) => (extent, None),
            Sequence::Blocks(_) => {
                (Extent { first: 0, count: 0 }, Some(OrderCursor::new(sequence)))
            }
        };
        Children::Items(Self { container, space, is_map, extent, is_field: false, cursor })
    }

    /// The next item.
    fn node(&self, data: &TreeData) -> NodeId {
        if self.is_field {
            let path = crate::PathId(crate::tree::schema::index_u32(index_of(self.extent.first)));
            return node(path, self.container.ordinal().0);
        }
        let space = self.space.unwrap_or(SpaceId(0));
        node(data.schema.space(space).path, self.extent.first)
    }
}

/// Prints a state that has no children.
#[inline]
pub(crate) fn write_scalar(state: Datum<'_>, out: &mut Vec<u8>) {
    match state {
        Datum::Null | Datum::Absent => out.extend_from_slice(b"null"),
        Datum::Bool(true) => out.extend_from_slice(b"true"),
        Datum::Bool(false) => out.extend_from_slice(b"false"),
        Datum::Text { bytes, plain } => escape::write_text(bytes, plain, out),
        Datum::Opaque(bytes) | Datum::Digits(bytes) => out.extend_from_slice(bytes),
        number => number::write_number(number, out),
    }
}

/// The kind that a state has in JSON; none if there is nothing.
pub(crate) fn kind_of(state: &Datum<'_>) -> Option<NodeKind> {
    Some(match state {
        Datum::Absent => return None,
        Datum::Null => NodeKind::Null,
        Datum::Bool(_) => NodeKind::Boolean,
        Datum::Int(_)
        | Datum::Decimal { .. }
        | Datum::Float(_)
        | Datum::Digits(_)
        | Datum::Apart { kind: ApartKind::Digits, .. } => NodeKind::Number,
        Datum::Text { .. }
        | Datum::Apart { kind: ApartKind::Text | ApartKind::PlainText, .. } => NodeKind::String,
        Datum::Array(_) => NodeKind::Array,
        Datum::Opaque(text) if text.first() == Some(&b'[') => NodeKind::Array,
        Datum::Object(_)
        | Datum::Map(_)
        | Datum::Opaque(_)
        | Datum::Apart { kind: ApartKind::Opaque, .. } => NodeKind::Object,
    })
}

fn write_metadata(child: &Child<'_>, metadata: &Metadata, out: &mut Vec<u8>) {
    let number = |value: u64, out: &mut Vec<u8>| {
        out.extend_from_slice(value.to_string().as_bytes());
    };
    out.extend_from_slice(b"{\"node\":");
    number(child.node.number(), out);
    out.extend_from_slice(b",\"kind\":\"");
    out.extend_from_slice(kind_of(&child.state).map_or("null", NodeKind::name).as_bytes());
    out.push(b'"');
    if let Some(children) = metadata.children {
        out.extend_from_slice(b",\"children\":");
        number(children, out);
    }
    out.extend_from_slice(b",\"created\":");
    number(u64::from(metadata.created), out);
    out.extend_from_slice(b",\"changed\":");
    number(u64::from(metadata.changed), out);
    out.extend_from_slice(b",\"value\":");
}

fn indent(levels: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.resize(out.len() + 2 * levels, b' ');
}

fn index_of(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn missing_row(ordinal: u64) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the row of ordinal {ordinal} is not there"))
}
