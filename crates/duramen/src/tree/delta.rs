//! What one commit does to one tree, as the journal keeps it.
//!
//! A delta is physical: paths, shapes, first states by column, order blocks, values stored apart
//! and changed states. Applying the deltas of a tree in order gives the same tree, numbers and
//! all. `docs/format.md` describes the bytes.

use bytes::Bytes;

use crate::encoding::{Column, decode_order_block, encode_column, encode_order_block};
use crate::error::{Error, Result};
use crate::limits::{ORDINALS_MAX, ROW_GROUP_SLOTS};
use crate::node::{Move, NodeId, PathId};
use crate::state::{
    ApartKind, BlobId, DECIMAL_SCALE_MAX, Datum, Extent, OrderId, Sequence, ShapeId,
};
use crate::tree::blobs::Blobs;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, RowGroup, locate};
use crate::tree::orders::Orders;
use crate::tree::schema::{Label, SpaceId, index_u32};
use crate::wire::{Reader, put_bytes, put_signed, put_varint};

pub(crate) mod skip;

/// The parts of a tree that a delta touches.
pub(crate) struct Parts<'a> {
    pub(crate) data: &'a mut TreeData,
    pub(crate) orders: &'a Orders,
    pub(crate) blobs: &'a Blobs,
}

/// Appends what the staged transaction of a tree does.
pub(crate) fn encode(data: &TreeData, orders: &Orders, blobs: &Blobs, out: &mut Vec<u8>) {
    encode_schema(data, out);
    encode_births(data, out);
    let staged = orders.staged();
    put_varint(out, staged.len() as u64);
    for block in &staged {
        let mut cell = Vec::new();
        encode_order_block(block, &mut cell);
        put_bytes(out, &cell);
    }
    let staged = blobs.staged();
    put_varint(out, staged.len() as u64);
    for blob in &staged {
        put_bytes(out, blob);
    }
    encode_changes(data, out);
    encode_moves(data, out);
}

fn encode_schema(data: &TreeData, out: &mut Vec<u8>) {
    let (from, to) = (data.committed_schema(), data.schema.extent());
    encode_paths(data, from.paths..to.paths, out);
    encode_shapes(data, from.shapes..to.shapes, out);
}

/// Appends a count and the definitions of a range of paths.
pub(crate) fn encode_paths(data: &TreeData, range: std::ops::Range<u32>, out: &mut Vec<u8>) {
    put_varint(out, range.len() as u64);
    for path in range.map(PathId) {
        let parent = data.schema.path(path).parent;
        let (kind, name): (u8, &[u8]) = match data.schema.label(path) {
            Label::Root => (0, b""),
            Label::Field(name) => (1, name),
            Label::Element => (2, b""),
            Label::Entry => (3, b""),
        };
        out.push(kind);
        put_varint(out, u64::from(parent.0));
        if kind == 1 {
            put_bytes(out, name);
        }
    }
}

/// Appends a count and the definitions of a range of shapes.
pub(crate) fn encode_shapes(data: &TreeData, range: std::ops::Range<u32>, out: &mut Vec<u8>) {
    put_varint(out, range.len() as u64);
    for shape in range.map(ShapeId) {
        let fields = data.schema.shape(shape);
        put_varint(out, fields.len() as u64);
        let mut before = 0_i64;
        for field in fields {
            let path = i64::from(field.path.0);
            put_signed(out, path - before);
            before = path;
        }
    }
}

fn encode_births(data: &TreeData, out: &mut Vec<u8>) {
    let grown: Vec<_> = (0..)
        .map(SpaceId)
        .zip(&data.spaces)
        .filter(|(_, space)| space.next > space.committed)
        .map(|(id, space)| (id, space.committed, space.next))
        .collect();
    put_varint(out, grown.len() as u64);
    for (space, from, to) in grown {
        put_varint(out, u64::from(space.0));
        put_varint(out, from);
        put_varint(out, to - from);
        let (first, last) = (locate(from).0, locate(to - 1).0);
        for index in first..=last {
            let start = if index == first { locate(from).1 } else { 0 };
            if let Ok(Some(group)) = data.group(space, index) {
                encode_group_births(group, start, out);
            } else {
                put_varint(out, 0);
            }
        }
    }
}

/// Appends the first states of slots from `start` on, column by column.
fn encode_group_births(group: &RowGroup, start: u16, out: &mut Vec<u8>) {
    let values = (0..index_u32(group.value_columns())).map(ColumnId::Value);
    let columns: Vec<_> = [ColumnId::Parent, ColumnId::Key]
        .into_iter()
        .chain(values)
        .filter_map(|id| {
            let (first, births) = group.young_column(id)?.births();
            let skip = usize::from(start.saturating_sub(first));
            (skip < births.len()).then_some((id, first.max(start), (births, skip)))
        })
        .collect();
    put_varint(out, columns.len() as u64);
    let (mut states, mut cell) = (Vec::new(), Vec::new());
    for (id, first, (births, skip)) in columns {
        let births = &births[skip..];
        put_varint(out, column_number(id));
        put_varint(out, u64::from(first));
        put_varint(out, births.len() as u64);
        states.clear();
        states.extend(births.iter().map(|&birth| group.unpack(birth)));
        cell.clear();
        encode_column(&states, &mut cell);
        put_bytes(out, &cell);
    }
}

fn column_number(column: ColumnId) -> u64 {
    match column {
        ColumnId::Parent => 0,
        ColumnId::Key => 1,
        ColumnId::Value(index) => u64::from(index) + 2,
    }
}

fn encode_changes(data: &TreeData, out: &mut Vec<u8>) {
    let revision = data.staged_revision();
    let touched = data.touched();
    put_varint(out, touched.len() as u64);
    for &node in touched {
        put_varint(out, u64::from(node.path().0));
        put_varint(out, node.ordinal().0);
        let state = data.state(node, revision).unwrap_or(Datum::Absent);
        encode_datum(state, out);
    }
}

fn encode_moves(data: &TreeData, out: &mut Vec<u8>) {
    put_varint(out, data.moves.len() as u64);
    for node in data.moves.iter().flat_map(|moved| [moved.to, moved.from]) {
        put_varint(out, u64::from(node.path().0));
        put_varint(out, node.ordinal().0);
    }
}

fn encode_datum(datum: Datum<'_>, out: &mut Vec<u8>) {
    match datum {
        Datum::Absent => out.push(0),
        Datum::Null => out.push(1),
        Datum::Bool(value) => out.push(2 + u8::from(value)),
        Datum::Int(value) => {
            out.push(4);
            put_signed(out, value);
        }
        Datum::Decimal { mantissa, scale } => {
            out.extend([5, scale]);
            put_signed(out, mantissa);
        }
        Datum::Float(value) => {
            out.push(6);
            out.extend(value.to_bits().to_le_bytes());
        }
        Datum::Text { bytes, plain } => {
            out.push(7 + u8::from(plain));
            put_bytes(out, bytes);
        }
        Datum::Digits(bytes) => {
            out.push(9);
            put_bytes(out, bytes);
        }
        Datum::Opaque(bytes) => {
            out.push(10);
            put_bytes(out, bytes);
        }
        Datum::Object(shape) => {
            out.push(11);
            put_varint(out, u64::from(shape.0));
        }
        Datum::Array(sequence) => encode_sequence(12, sequence, out),
        Datum::Map(sequence) => encode_sequence(14, sequence, out),
        Datum::Apart { blob, kind } => {
            out.extend([16, kind.number()]);
            put_varint(out, blob.0);
        }
    }
}

fn encode_sequence(tag: u8, sequence: Sequence, out: &mut Vec<u8>) {
    match sequence {
        Sequence::Extent(extent) => {
            out.push(tag);
            put_varint(out, extent.first);
            put_varint(out, u64::from(extent.count));
        }
        Sequence::Blocks(root) => {
            out.push(tag + 1);
            put_varint(out, root.0);
        }
    }
}

fn decode_datum<'a>(reader: &mut Reader<'a>) -> Result<Datum<'a>> {
    Ok(match reader.byte()? {
        0 => Datum::Absent,
        1 => Datum::Null,
        2 => Datum::Bool(false),
        3 => Datum::Bool(true),
        4 => Datum::Int(reader.signed()?),
        5 => {
            let scale = reader.byte()?;
            if !(1..=DECIMAL_SCALE_MAX).contains(&scale) {
                return Err(reader.corrupt("a decimal has no such scale"));
            }
            Datum::Decimal { mantissa: reader.signed()?, scale }
        }
        6 => {
            let value = f64::from_bits(reader.i64()?.cast_unsigned());
            if !value.is_finite() {
                return Err(reader.corrupt("a float is not finite"));
            }
            Datum::Float(value)
        }
        tag @ (7 | 8) => Datum::Text { bytes: reader.bytes()?, plain: tag == 8 },
        9 => Datum::Digits(reader.bytes()?),
        10 => Datum::Opaque(reader.bytes()?),
        11 => Datum::Object(ShapeId(reader.varint_u32()?)),
        12 => Datum::Array(decode_extent(reader)?),
        13 => Datum::Array(Sequence::Blocks(OrderId(reader.varint()?))),
        14 => Datum::Map(decode_extent(reader)?),
        15 => Datum::Map(Sequence::Blocks(OrderId(reader.varint()?))),
        16 => {
            let kind = ApartKind::from_number(reader.byte()?)
                .ok_or_else(|| reader.corrupt("expected the kind of a value stored apart"))?;
            Datum::Apart { blob: BlobId(reader.varint()?), kind }
        }
        tag => return Err(reader.corrupt(&format!("expected the tag of a state, found {tag}"))),
    })
}

fn decode_extent(reader: &mut Reader<'_>) -> Result<Sequence> {
    let (first, count) = (reader.varint()?, reader.varint_u32()?);
    if first >= ORDINALS_MAX || count >= 1 << 24 || first + u64::from(count) > ORDINALS_MAX {
        return Err(reader.corrupt("an extent is out of range"));
    }
    Ok(Sequence::Extent(Extent { first, count }))
}

/// Stages what [`encode`] wrote, at the revision after the last; the caller commits it.
pub(crate) fn apply(parts: &mut Parts<'_>, reader: &mut Reader<'_>) -> Result<Vec<NodeId>> {
    decode_paths(parts.data, reader)?;
    decode_shapes(parts.data, reader)?;
    apply_births(parts.data, reader)?;
    for _ in 0..reader.count()? {
        let block = decode_order_block(reader.bytes()?)?;
        parts.orders.add(block);
    }
    for _ in 0..reader.count()? {
        parts.blobs.add(Bytes::copy_from_slice(reader.bytes()?));
    }
    let changed = apply_changes(parts.data, reader)?;
    apply_moves(parts.data, reader)?;
    Ok(changed)
}

/// Adds the paths that [`encode_paths`] wrote.
pub(crate) fn decode_paths(data: &mut TreeData, reader: &mut Reader<'_>) -> Result<()> {
    for _ in 0..reader.count()? {
        let kind = reader.byte()?;
        let parent = PathId(reader.varint_u32()?);
        if !data.schema.has_path(parent) {
            return Err(reader.corrupt("a path has a parent that is not there"));
        }
        if data.schema.is_full() {
            return Err(reader.corrupt("there are more paths than a schema has"));
        }
        let label = match kind {
            1 => Label::Field(reader.bytes()?),
            2 => Label::Element,
            3 => Label::Entry,
            _ => return Err(reader.corrupt("expected the kind of a path")),
        };
        data.add_path(parent, label);
    }
    Ok(())
}

/// Adds the shapes that [`encode_shapes`] wrote.
pub(crate) fn decode_shapes(data: &mut TreeData, reader: &mut Reader<'_>) -> Result<()> {
    for _ in 0..reader.count()? {
        let mut fields = Vec::new();
        let mut before = 0_i64;
        for _ in 0..reader.count()? {
            before = before.wrapping_add(reader.signed()?);
            let path = u32::try_from(before).map(PathId).ok();
            let path = path.filter(|&path| data.schema.has_path(path));
            fields.push(path.ok_or_else(|| reader.corrupt("a shape has an unknown path"))?);
        }
        data.shape_or_add(&fields);
    }
    Ok(())
}

fn apply_births(data: &mut TreeData, reader: &mut Reader<'_>) -> Result<()> {
    for _ in 0..reader.count()? {
        let space = SpaceId(reader.varint_u32()?);
        let (from, count) = (reader.varint()?, reader.varint()?);
        let known = data.spaces.get(space.0 as usize).map(|data| data.next);
        let to = from.checked_add(count).filter(|&to| to <= crate::limits::ORDINALS_MAX);
        let (Some(to), true) = (to.filter(|&to| to > from), known == Some(from)) else {
            return Err(reader.corrupt("ordinals do not follow those before them"));
        };
        data.spaces[space.0 as usize].next = to;
        for index in locate(from).0..=locate(to - 1).0 {
            let group_start = index as u64 * ROW_GROUP_SLOTS;
            apply_group_births(data, space, (group_start, to), reader)?;
        }
    }
    Ok(())
}

fn apply_group_births(
    data: &mut TreeData,
    space: SpaceId,
    (start, end): (u64, u64),
    reader: &mut Reader<'_>,
) -> Result<()> {
    let revision = data.staged_revision();
    for _ in 0..reader.count()? {
        let number = reader.varint()?;
        let column = match number {
            0 => ColumnId::Parent,
            1 => ColumnId::Key,
            _ => ColumnId::Value(u32::try_from(number - 2).unwrap_or(u32::MAX)),
        };
        let columns = data.schema.space(space).columns.len();
        if matches!(column, ColumnId::Value(index) if index as usize >= columns) {
            return Err(reader.corrupt("a space has no such column"));
        }
        let (first, len) = (reader.varint()?, reader.varint()?);
        let states = Column::parse(Bytes::copy_from_slice(reader.bytes()?))?;
        let range = first.checked_add(len).filter(|&end| end <= ROW_GROUP_SLOTS);
        if range.is_none_or(|range| start + range > end) || states.len() as u64 != len {
            return Err(reader.corrupt("first states lie outside their row group"));
        }
        for (index, ordinal) in (0..states.len()).zip(start + first..) {
            let state = data.schema.extent().vet(states.get(index)?)?;
            // That of the element or entry itself tells the revision in which it was born.
            if state.is_absent() && column != ColumnId::Value(0) {
                continue;
            }
            if column == ColumnId::Key {
                data.index_key(space, state, ordinal).map_err(unexpected)?;
            }
            data.set_birth(space, column, ordinal, (state, revision))?;
        }
    }
    Ok(())
}

fn apply_changes(data: &mut TreeData, reader: &mut Reader<'_>) -> Result<Vec<NodeId>> {
    let revision = data.staged_revision();
    let mut changed = Vec::new();
    for _ in 0..reader.count()? {
        let path = PathId(reader.varint_u32()?);
        let ordinal = reader.varint()?;
        if !data.schema.has_path(path) {
            return Err(reader.corrupt("a change names a path that is not there"));
        }
        let info = data.schema.path(path);
        let (space, column) = (info.space, ColumnId::Value(info.column));
        if ordinal >= data.spaces[space.0 as usize].committed {
            return Err(reader.corrupt("a change names an ordinal that is not there"));
        }
        let state = data.schema.extent().vet(decode_datum(reader)?)?;
        data.set_change(space, column, ordinal, (state, revision))?;
        changed.push(crate::tree::data::node(path, ordinal));
    }
    Ok(changed)
}

fn apply_moves(data: &mut TreeData, reader: &mut Reader<'_>) -> Result<()> {
    for _ in 0..reader.count()? {
        let to = decode_node(data, reader)?;
        let from = decode_node(data, reader)?;
        data.moves.push(Move { to, from });
    }
    Ok(())
}

/// A node of which the path is there and the ordinal was given out.
fn decode_node(data: &TreeData, reader: &mut Reader<'_>) -> Result<NodeId> {
    let path = PathId(reader.varint_u32()?);
    let ordinal = reader.varint()?;
    let is_there = data.schema.has_path(path) && {
        let space = data.schema.path(path).space;
        ordinal < data.spaces[space.0 as usize].next
    };
    if !is_there {
        return Err(reader.corrupt("a move names a node that is not there"));
    }
    Ok(crate::tree::data::node(path, ordinal))
}

/// Births are young, so reading them loads nothing.
fn unexpected(fault: crate::tree::group::Fault) -> Error {
    match fault {
        crate::tree::group::Fault::Error(error) => error,
        crate::tree::group::Fault::Load(_) => {
            Error::new(crate::error::ErrorKind::Internal, "a birth was looked for on disk")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn numbers_that_json_does_not_have_are_refused() {
        let decode = |state: &[u8]| decode_datum(&mut Reader::new(state)).map(drop);
        let float = |value: f64| [&[6][..], &value.to_bits().to_le_bytes()].concat();
        decode(&float(1.5)).unwrap();
        decode(&[5, 18, 2]).unwrap();
        for state in [float(f64::NAN), float(f64::INFINITY), vec![5, 0, 2], vec![5, 19, 2]] {
            assert_eq!(decode(&state).unwrap_err().kind(), ErrorKind::Corrupt, "{state:?}");
        }
    }
}
