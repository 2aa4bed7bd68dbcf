//! Prints a subtree at a revision as JSON, without building it in memory.
//!
//! The serializer is a stack of open containers. It runs while the tree's lock is held and stops
//! wherever something has to happen without the lock: the buffer is full, a cell or the next
//! piece of an array's order has to be loaded, a long value has to be fetched. It goes on where
//! it stopped. Nothing is allocated per node (benchmark V2).

use crate::error::{Error, ErrorKind, Result};
use crate::json::{escape, number};
use crate::limits::ORDINALS_MAX;
use crate::node::{NodeId, NodeKind, PathId};
use crate::order::OrderCursor;
use crate::state::{ApartKind, BlobId, Datum, Extent, Sequence, ShapeId};
use crate::tree::blobs::Blobs;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{ColumnId, Fault, RowGroup, SLOTS, locate};
use crate::tree::orders::Orders;
use crate::tree::schema::{ShapeField, SpaceId, index_u32};

mod columns;
mod items;
#[cfg(test)]
mod tests;

pub(crate) use columns::{States, print_member, print_value};
use items::ItemPrinter;

/// Fewer items are not worth a thread.
const SHARED_ITEMS_MIN: u32 = 2 * SLOTS as u32;
/// Fewer items are not worth gathering their states first (benchmark V2).
const ITEMS_MIN: u32 = 64;
/// Of so many items, as a power of two, the item printer is tried with one at least.
const MISSES_MAX: u32 = 6;

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
    /// Print them, and call [`Serializer::pass`].
    Many(ManyItems),
}

/// Items of an array or a map that lie side by side, so many that threads share them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ManyItems {
    path: PathId,
    is_map: bool,
    pub(crate) extent: Extent,
    /// Whether none stands before them.
    pub(crate) is_first: bool,
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
    /// The path of the elements or entries, if there ever were any.
    path: PathId,
    /// The ordinal of the container: that of its fields.
    ordinal: u64,
    is_map: bool,
    extent: Extent,
    /// Whether `extent` is a field of an object that outgrew its shape.
    is_field: bool,
    cursor: Option<OrderCursor>,
    /// How often in a row the item printer could not print the next item; none if it is not tried
    /// at all.
    misses: Option<u32>,
}

/// What is printed of a node beside its value.
struct Metadata {
    node: NodeId,
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
    /// Whether the format asks for nothing special.
    is_plain: bool,
    root: Option<NodeId>,
    stack: Vec<Frame>,
    measured: Option<(Sequence, u64)>,
    /// Whether it leaves many items to threads.
    shares: bool,
    /// Whether it prints nothing but items.
    is_part: bool,
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
        let (is_plain, stack) = (*format == Format::default(), Vec::new());
        let (root, measured) = (Some(root), None);
        Self { format, is_plain, root, stack, measured, shares: false, is_part: false }
    }

    /// Stops for each [`ManyItems`] from here on.
    pub(crate) fn share(&mut self) {
        self.shares = self.is_plain;
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
        data.kept.check(revision).map_err(Fault::Error)?;
        if let Some(root) = self.root {
            let state = data.state(root, revision)?;
            let place = (root.path(), root.ordinal().0);
            let metadata = self.metadata(data, place, state, revision)?;
            self.root = None;
            if let Some(metadata) = metadata {
                write_metadata(&state, &metadata, out);
            }
            let place = (place.0, place.1, revision);
            if let Begun::Apart(blob, kind) = self.begin(data, place, state, (out, limit)) {
                return Ok(Stop::Apart(blob, kind));
            }
        }
        let mut printer = ItemPrinter::new(data, revision);
        while let Some(frame) = self.stack.last() {
            let stop = match &frame.children {
                &Children::Fields { shape, space, ordinal } => {
                    self.fields(data, (shape, space, ordinal), revision, (out, limit))?
                }
                Children::Items(items) => {
                    if let Some(many) = self.many(items, frame.written) {
                        return Ok(Stop::Many(many));
                    }
                    self.print_ahead(&mut printer, (out, limit))?;
                    self.items(data, revision, out, limit)?
                }
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
        let mut done = index_of(self.stack[top].written);
        if self.is_plain {
            let row = Row { data, group, slot, revision };
            done = row.print_scalars(fields, done, (out, limit));
            self.stack[top].written = done as u64;
        }
        for (index, field) in fields[..shown].iter().enumerate().skip(done) {
            if out.len() >= limit {
                return Ok(Some(Stop::Full));
            }
            let state = group.state(ColumnId::Value(field.column), slot, revision)?;
            let metadata = self.metadata(data, (field.path, ordinal), state, revision)?;
            if index > 0 {
                out.push(b',');
            }
            if self.format.pretty {
                indent(top + 1, out);
            }
            out.extend_from_slice(data.schema.rendered(field));
            if self.format.pretty {
                out.push(b' ');
            }
            self.stack[top].written += 1;
            if let Some(metadata) = metadata {
                write_metadata(&state, &metadata, out);
            }
            match self.begin(data, (field.path, ordinal, revision), state, (out, limit)) {
                Begun::Scalar => {}
                Begun::Container => return Ok(None),
                Begun::Apart(blob, kind) => return Ok(Some(Stop::Apart(blob, kind))),
            }
        }
        self.end(b'}', out);
        Ok(None)
    }

    /// Prints the elements or entries of the innermost array or map until a container opens or
    /// there is a stop.
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
            let (written, is_map, is_field) = (*written, items.is_map, items.is_field);
            let enough = self.format.max_children.is_some_and(|most| written >= most);
            if items.extent.count == 0 || enough {
                if items.cursor.is_some() && !enough {
                    return Ok(Some(Stop::Order));
                }
                if self.is_part && top == 0 {
                    return Ok(Some(Stop::Done));
                }
                self.end(if is_map { b'}' } else { b']' }, out);
                return Ok(None);
            }
            let (path, ordinal) = items.next();
            if !data.schema.has_path(path) || ordinal >= ORDINALS_MAX {
                return Err(Fault::Error(impossible_item(path, ordinal)).into());
            }
            let info = data.schema.path(path);
            let column = ColumnId::Value(info.column);
            let state = data.state_at(info.space, column, ordinal, revision)?;
            let has_key = is_map && !is_field;
            let key = if has_key { data.key(info.space, ordinal)? } else { Datum::Absent };
            let metadata = self.metadata(data, (path, ordinal), state, revision)?;
            if written > 0 {
                out.push(b',');
            }
            if self.format.pretty {
                indent(top + 1, out);
            }
            if let Datum::Text { bytes, plain } = key {
                escape::write_text(bytes, plain, out);
                out.push(b':');
            } else if is_field {
                out.extend_from_slice(data.schema.rendered_path(path));
            }
            if is_map && self.format.pretty {
                out.push(b' ');
            }
            self.step(top);
            if let Some(metadata) = metadata {
                write_metadata(&state, &metadata, out);
            }
            match self.begin(data, (path, ordinal, revision), state, (out, limit)) {
                Begun::Scalar => {}
                Begun::Container => return Ok(None),
                Begun::Apart(blob, kind) => return Ok(Some(Stop::Apart(blob, kind))),
            }
        }
    }

    /// Prints items of the innermost array or map as long as the item printer can.
    fn print_ahead(
        &mut self,
        printer: &mut ItemPrinter<'_>,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Result<(), Hindrance> {
        let Some(Frame { written, children: Children::Items(items) }) = self.stack.last_mut()
        else {
            return Ok(());
        };
        // Where it could not print one item after the other, it is tried ever more rarely.
        let Some(misses) = items.misses else { return Ok(()) };
        let is_tried = written.is_multiple_of(1 << misses.min(MISSES_MAX));
        if !self.is_plain || items.is_field || !is_tried {
            return Ok(());
        }
        while items.extent.count > 0 && out.len() < limit {
            let is_first = *written == 0;
            let done = printer.print(items, is_first, (out, limit))?;
            if done == 0 {
                items.misses = items.misses.map(|misses| misses + 1);
                break;
            }
            items.misses = Some(0);
            items.extent.first += u64::from(done);
            items.extent.count -= done;
            *written += u64::from(done);
        }
        Ok(())
    }

    /// The items of an array or a map that are to be shared, if they are.
    fn many(&self, items: &Items, written: u64) -> Option<ManyItems> {
        let &Items { path, is_map, extent, is_field, .. } = items;
        let is_long = extent.count >= SHARED_ITEMS_MIN && extent.first < ORDINALS_MAX;
        let is_shared = self.shares && !is_field && is_long;
        is_shared.then_some(ManyItems { path, is_map, extent, is_first: written == 0 })
    }

    /// Goes past items that were printed by others.
    pub(crate) fn pass(&mut self, many: &ManyItems) {
        if let Some(Frame { written, children: Children::Items(items) }) = self.stack.last_mut() {
            items.extent.first += u64::from(many.extent.count);
            items.extent.count -= many.extent.count;
            *written += u64::from(many.extent.count);
        }
    }

    /// Goes past an item of the innermost array or map.
    fn step(&mut self, top: usize) {
        let frame = &mut self.stack[top];
        frame.written += 1;
        if let Children::Items(items) = &mut frame.children {
            items.extent.first += 1;
            items.extent.count -= 1;
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

    /// What is printed of a node beside its value, if it is asked for.
    #[inline]
    fn metadata(
        &self,
        data: &TreeData,
        (path, ordinal): (PathId, u64),
        state: Datum<'_>,
        revision: u32,
    ) -> Result<Option<Metadata>, Hindrance> {
        if !self.format.metadata {
            return Ok(None);
        }
        let node = node(path, ordinal);
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
        Ok(Some(Metadata { node, children, created, changed }))
    }

    /// Prints a scalar, or the opening of a container.
    #[inline]
    fn begin(
        &mut self,
        data: &TreeData,
        (path, ordinal, revision): (PathId, u64, u32),
        state: Datum<'_>,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> Begun {
        let (opening, children) = match state {
            Datum::Object(shape) => {
                let space = data.schema.path(path).space;
                let children = Children::Fields { shape, space, ordinal };
                if self.is_plain
                    && let (group, slot) = locate(ordinal)
                    && let Ok(Some(group)) = data.group(space, group)
                {
                    out.push(b'{');
                    let fields = data.schema.shape(shape);
                    let row = Row { data, group, slot, revision };
                    let done = row.print_scalars(fields, 0, (out, limit));
                    if done == fields.len() {
                        out.push(b'}');
                        return Begun::Scalar;
                    }
                    self.stack.push(Frame { written: done as u64, children });
                    return Begun::Container;
                }
                (b'{', children)
            }
            Datum::Array(sequence) => {
                (b'[', Items::children(data, (path, ordinal), sequence, false))
            }
            Datum::Map(sequence) => (b'{', Items::children(data, (path, ordinal), sequence, true)),
            Datum::Apart { blob, kind } => return Begun::Apart(blob, kind),
            scalar => {
                write_scalar(scalar, out);
                if self.format.metadata {
                    out.push(b'}');
                }
                return Begun::Scalar;
            }
        };
        out.push(opening);
        if self.format.max_level.is_some_and(|most| self.stack.len() >= most) {
            out.push(opening + 2);
            if self.format.metadata {
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

impl Serializer<'static> {
    /// Prints some of many items, with nothing before or behind them.
    pub(crate) fn of_items(many: &ManyItems, extent: Extent) -> Self {
        static PLAIN: Format =
            Format { pretty: false, max_level: None, max_children: None, metadata: false };
        let &ManyItems { path, is_map, .. } = many;
        let (is_field, cursor, misses) = (false, None, Some(0));
        let items = Items { path, ordinal: 0, is_map, extent, is_field, cursor, misses };
        let stack = vec![Frame { written: 0, children: Children::Items(items) }];
        let (root, measured) = (None, None);
        Self { format: &PLAIN, is_plain: true, root, stack, measured, shares: false, is_part: true }
    }
}

impl Items {
    fn children(
        data: &TreeData,
        (path, ordinal): (PathId, u64),
        sequence: Sequence,
        is_map: bool,
    ) -> Children {
        let info = data.schema.path(path);
        let below = if is_map { info.entry } else { info.element };
        let (extent, cursor) = match sequence {
            Sequence::Extent(extent) => (extent, None),
            Sequence::Blocks(_) => {
                (Extent { first: 0, count: 0 }, Some(OrderCursor::new(sequence)))
            }
        };
        let is_long = cursor.is_some() || extent.count >= ITEMS_MIN;
        // An array or map without a path for its items never had any.
        let path = below.unwrap_or(path);
        Children::Items(Self {
            path,
            ordinal,
            is_map,
            extent,
            is_field: false,
            cursor,
            misses: is_long.then_some(0),
        })
    }

    /// The path and the ordinal of the next item.
    #[inline]
    fn next(&self) -> (PathId, u64) {
        if self.is_field {
            (PathId(index_u32(index_of(self.extent.first))), self.ordinal)
        } else {
            (self.path, self.extent.first)
        }
    }
}

/// One slot of a row group: the fields of one object are there together.
struct Row<'a> {
    data: &'a TreeData,
    group: &'a RowGroup,
    slot: u16,
    revision: u32,
}

impl Row<'_> {
    /// Prints fields from `from` on while they are at hand and have no children and there is
    /// room; how many of all fields are printed then.
    fn print_scalars(
        &self,
        fields: &[ShapeField],
        from: usize,
        (out, limit): (&mut Vec<u8>, usize),
    ) -> usize {
        for (index, field) in fields.iter().enumerate().skip(from) {
            if out.len() >= limit {
                return index;
            }
            let before = out.len();
            if index > 0 {
                out.push(b',');
            }
            let name = self.data.schema.rendered(field);
            if !self.group.print(field.column, (self.slot, self.revision), name, out) {
                out.truncate(before);
                return index;
            }
        }
        fields.len()
    }
}

/// Prints a state. False, with nothing printed, if it has children, stands apart, or is nothing.
#[inline]
pub(crate) fn print_scalar(state: Datum<'_>, out: &mut Vec<u8>) -> bool {
    match state {
        Datum::Int(value) => number::write_integer(value, out),
        Datum::Text { bytes, plain: true } => escape::write_text(bytes, true, out),
        Datum::Bool(true) => out.extend_from_slice(b"true"),
        Datum::Bool(false) => out.extend_from_slice(b"false"),
        Datum::Absent
        | Datum::Object(_)
        | Datum::Array(_)
        | Datum::Map(_)
        | Datum::Apart { .. } => return false,
        scalar => write_scalar(scalar, out),
    }
    true
}

/// Prints a state that has no children.
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
        Datum::Text { .. } | Datum::Apart { kind: ApartKind::Text | ApartKind::PlainText, .. } => {
            NodeKind::String
        }
        Datum::Array(_) => NodeKind::Array,
        Datum::Opaque(text) if text.first() == Some(&b'[') => NodeKind::Array,
        Datum::Object(_)
        | Datum::Map(_)
        | Datum::Opaque(_)
        | Datum::Apart { kind: ApartKind::Opaque, .. } => NodeKind::Object,
    })
}

fn write_metadata(state: &Datum<'_>, metadata: &Metadata, out: &mut Vec<u8>) {
    let number = |value: u64, out: &mut Vec<u8>| {
        out.extend_from_slice(value.to_string().as_bytes());
    };
    out.extend_from_slice(b"{\"node\":");
    number(metadata.node.number(), out);
    out.extend_from_slice(b",\"kind\":\"");
    out.extend_from_slice(kind_of(state).map_or("null", NodeKind::name).as_bytes());
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

#[cold]
fn impossible_item(path: PathId, ordinal: u64) -> Error {
    let message = format!("an array or map has an item of path {} and ordinal {ordinal}", path.0);
    Error::new(ErrorKind::Corrupt, message)
}

fn missing_row(ordinal: u64) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the row of ordinal {ordinal} is not there"))
}
