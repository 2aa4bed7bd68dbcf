//! Prints records that are objects of nothing but short texts, numbers and truth values, as most
//! are: into lines of fixed length, where room is looked for once a member and names are copied as
//! blocks (benchmark B). Some records together go column by column.

use std::ops::Range;

use crate::json::number;
use crate::key_text::{EIGHT_DIGITS, eight_digits, significant_digits};
use crate::node::PathId;
use crate::state::{Datum, ShapeId};
use crate::tree::group::{ColumnId, RowGroup};
use crate::tree::schema::Schema;
use crate::tree::young::{Heap, Packed};

/// Bytes of a record that is printed so.
const LINE_BYTES: usize = 1_024;
/// Bytes of one that is printed alone, and its members.
pub(in crate::tree) const SINGLE_BYTES: usize = 512;
const SINGLE_MEMBERS: usize = 24;
/// Bytes of a name with what stands around it.
const NAME_BYTES: usize = 32;
/// Bytes of the longer truth value, rounded up.
const BOOL_BYTES: usize = 8;

/// Bytes of a sign and sixteen digits, rounded up.
const INTEGER_BYTES: usize = 24;

/// Bytes of a string that is copied as a block.
pub(crate) const TEXT_BYTES: usize = 48;

/// Records that are printed together, column by column.
const ROWS: usize = 8;

/// States of records behind each other.
#[derive(Clone, Copy)]
pub(in crate::tree) enum Stretch<'w> {
    Packed(&'w Heap, &'w [Packed]),
    Unpacked(&'w [Datum<'w>]),
}

impl Stretch<'_> {
    /// How many of them, from the first on, are objects of a shape.
    pub(in crate::tree) fn alike(self, shape: ShapeId) -> usize {
        match self {
            Self::Packed(_, states) => {
                let states = states.iter().take(ROWS);
                states.take_while(|state| state.shape() == Some(shape)).count()
            }
            Self::Unpacked(states) => {
                let is_like =
                    |state: &&Datum<'_>| matches!(state, Datum::Object(own) if *own == shape);
                states.iter().take(ROWS).take_while(is_like).count()
            }
        }
    }
}

/// Some records behind each other that have the same shape, each printed into a line.
pub(in crate::tree) struct FlatLines {
    shape: Option<ShapeId>,
    /// Nothing if there are none, or names are too long.
    members: Vec<Member>,
    lines: Vec<[u8; LINE_BYTES]>,
    /// The first of the records.
    first: usize,
    /// Of each record where its text ends; none if printing it takes more.
    ends: Vec<Option<usize>>,
}

struct Member {
    path: PathId,
    /// With the brace or comma before it, and the colon.
    name: [u8; NAME_BYTES],
    len: usize,
}

impl FlatLines {
    pub(in crate::tree) fn new() -> Self {
        let (members, lines, ends) = (Vec::new(), Vec::new(), Vec::new());
        Self { shape: None, members, lines, first: 0, ends }
    }

    /// Has no records printed.
    pub(in crate::tree) fn clear(&mut self) {
        self.ends.clear();
    }

    /// Whether a record is among those that were printed last.
    #[inline]
    pub(in crate::tree) fn has(&self, row: usize) -> bool {
        row.wrapping_sub(self.first) < self.ends.len()
    }

    /// How many records, from one on, are printed.
    #[inline]
    pub(in crate::tree) fn from(&self, row: usize) -> usize {
        let ends = self.ends.get(row.wrapping_sub(self.first)..).unwrap_or_default();
        ends.iter().take_while(|end| end.is_some()).count()
    }

    /// The text of a record; nothing if printing it takes more.
    #[inline]
    pub(in crate::tree) fn get(&self, row: usize) -> Option<&[u8]> {
        let index = row.wrapping_sub(self.first);
        let end = (*self.ends.get(index)?)?;
        self.lines.get(index)?.get(..end)
    }

    /// Begins records of a shape, the first of them in a row.
    pub(in crate::tree) fn begin(
        &mut self,
        (schema, shape): (&Schema, ShapeId),
        rows: Range<usize>,
    ) {
        if self.shape != Some(shape) {
            self.learn(schema, shape);
        }
        self.first = rows.start;
        self.ends.clear();
        self.ends.resize(rows.len(), (!self.members.is_empty()).then_some(0));
        if self.lines.len() < rows.len() {
            self.lines.resize(rows.len(), [0; LINE_BYTES]);
        }
    }

    /// The path of a member of the shape.
    pub(in crate::tree) fn member(&self, index: usize) -> Option<PathId> {
        self.members.get(index).map(|member| member.path)
    }

    /// Prints a member of all records; those are left out of which no state is at hand. Whether
    /// any of them is printed flat so far.
    pub(in crate::tree) fn print(&mut self, index: usize, states: Stretch<'_>) -> bool {
        match states {
            Stretch::Packed(heap, states) => {
                self.print_all(index, states, |state, room| heap.write_flat(*state, room));
            }
            Stretch::Unpacked(states) => self.print_all(index, states, write),
        }
        self.ends.iter().any(Option::is_some)
    }

    #[inline]
    fn print_all<T>(
        &mut self,
        index: usize,
        states: &[T],
        write: impl Fn(&T, &mut [u8]) -> Option<usize>,
    ) {
        let Member { name, len, .. } = &self.members[index];
        self.ends.truncate(states.len());
        let records = self.lines.iter_mut().zip(&mut self.ends);
        for ((line, end), state) in records.zip(states) {
            *end = end.and_then(|at| {
                *line.get_mut(at..)?.first_chunk_mut()? = *name;
                let at = at + len;
                Some(at + write(state, line.get_mut(at..)?)?)
            });
        }
    }

    /// Closes the objects.
    pub(in crate::tree) fn finish(&mut self) {
        if self.ends.iter().all(Option::is_none) {
            // Others of the shape will not be flat either: it is not tried again.
            self.members.clear();
            return;
        }
        for (line, end) in self.lines.iter_mut().zip(&mut self.ends) {
            *end = end.and_then(|at| {
                *line.get_mut(at)? = b'}';
                Some(at + 1)
            });
        }
    }

    #[cold]
    fn learn(&mut self, schema: &Schema, shape: ShapeId) {
        self.shape = Some(shape);
        self.members.clear();
        for (index, field) in schema.shape(shape).iter().enumerate() {
            let rendered = schema.rendered(field);
            let len = rendered.len() + 1;
            let mut name = [if index == 0 { b'{' } else { b',' }; NAME_BYTES];
            let Some(room) = name.get_mut(1..len) else { return self.members.clear() };
            room.copy_from_slice(rendered);
            self.members.push(Member { path: field.path, name, len });
        }
    }
}

/// Prints one record of a shape as it is in memory and gives its length; nothing if printing it
/// takes more.
pub(in crate::tree) fn print_single(
    (schema, shape): (&Schema, ShapeId),
    (group, slot, revision): (&RowGroup, u16, u32),
    line: &mut [u8; SINGLE_BYTES],
) -> Option<usize> {
    let fields = schema.shape(shape);
    // Columns lie apart: so they are waited for together.
    let mut states = [Packed::ABSENT; SINGLE_MEMBERS];
    let states = states.get_mut(..fields.len())?;
    for (state, field) in states.iter_mut().zip(fields) {
        *state = group.young_column(ColumnId::Value(field.column))?.at(slot, revision)?;
    }
    line[0] = b'{';
    let mut end = 1;
    for (field, state) in fields.iter().zip(states) {
        end += schema.write_name(field, line.get_mut(end..)?)?;
        end += group.heap().write_flat(*state, line.get_mut(end..)?)?;
        *line.get_mut(end)? = b',';
        end += 1;
    }
    // In place of the last comma.
    end = end.max(2);
    *line.get_mut(end - 1)? = b'}';
    Some(end)
}

/// Writes a state and gives its length; nothing if it is another one, or there is no room.
#[inline]
fn write(state: &Datum<'_>, room: &mut [u8]) -> Option<usize> {
    match *state {
        Datum::Text { bytes, plain: true } => write_text(bytes, room),
        Datum::Int(value) => write_integer(value, room),
        Datum::Bool(value) => write_bool(value, room),
        Datum::Decimal { mantissa, scale } => write_decimal(mantissa, scale, room),
        Datum::Float(value) => write_float(value, room),
        Datum::Null => write_bytes(b"null", room),
        _ => None,
    }
}

/// Writes a number with a decimal point.
pub(crate) fn write_decimal(mantissa: i64, scale: u8, room: &mut [u8]) -> Option<usize> {
    let mut len = 0;
    number::write_decimal(mantissa, scale.into(), |part| {
        len += write_bytes(part, room.get_mut(len..)?)?;
        Some(())
    })?;
    Some(len)
}

/// Writes a number as short as it can be told from others.
pub(crate) fn write_float(value: f64, room: &mut [u8]) -> Option<usize> {
    if !value.is_finite() {
        return None;
    }
    write_bytes(zmij::Buffer::new().format_finite(value).as_bytes(), room)
}

/// Writes what is printed as it is.
pub(crate) fn write_bytes(bytes: &[u8], room: &mut [u8]) -> Option<usize> {
    room.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(bytes.len())
}

/// Writes a string in quotes, of which `text` is so much, with what stands behind it: copied as a
/// block, whatever its length.
#[inline]
pub(crate) fn write_block(text: &[u8; TEXT_BYTES], len: usize, room: &mut [u8]) -> Option<usize> {
    let room = room.first_chunk_mut::<{ TEXT_BYTES + 2 }>()?;
    room[0] = b'"';
    room[1..=TEXT_BYTES].copy_from_slice(text);
    *room.get_mut(len + 1)? = b'"';
    Some(len + 2)
}

/// Writes a string in quotes.
#[inline]
pub(crate) fn write_text(bytes: &[u8], room: &mut [u8]) -> Option<usize> {
    let [open, text @ .., close] = room.get_mut(..bytes.len() + 2)? else { return None };
    (*open, *close) = (b'"', b'"');
    text.copy_from_slice(bytes);
    Some(bytes.len() + 2)
}

/// Writes an integer: one of up to sixteen digits eight of them at a time, as blocks.
#[inline]
pub(crate) fn write_integer(value: i64, room: &mut [u8]) -> Option<usize> {
    let (high, low) = (value.unsigned_abs() / EIGHT_DIGITS, value.unsigned_abs() % EIGHT_DIGITS);
    let block = room.first_chunk_mut::<INTEGER_BYTES>().filter(|_| high < EIGHT_DIGITS);
    let Some(block) = block else {
        return write_bytes(itoa::Buffer::new().format(value).as_bytes(), room);
    };
    block[0] = b'-';
    let sign = usize::from(value < 0);
    let (first, count) = significant_digits(if high > 0 { high } else { low });
    *block.get_mut(sign..)?.first_chunk_mut()? = first;
    let end = sign + count;
    if high == 0 {
        return Some(end);
    }
    *block.get_mut(end..)?.first_chunk_mut()? = eight_digits(low);
    Some(end + 8)
}

/// Writes a truth value.
#[inline]
pub(crate) fn write_bool(value: bool, room: &mut [u8]) -> Option<usize> {
    let (text, len) = if value { (b"true\0\0\0\0", 4) } else { (b"false\0\0\0", 5) };
    *room.first_chunk_mut::<BOOL_BYTES>()? = *text;
    Some(len)
}

#[cfg(test)]
mod tests;
