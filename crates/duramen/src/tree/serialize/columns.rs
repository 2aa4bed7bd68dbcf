//! Prints values whose states are at hand by column: scalars, objects, and arrays in one piece.

use crate::limits::ORDINALS_MAX;
use crate::node::PathId;
use crate::state::{Datum, Extent, Sequence, ShapeId};
use crate::tree::group::Fault;
use crate::tree::schema::Schema;
use crate::tree::serialize::print_scalar;
use crate::tree::strips::Strips;

/// Levels of one value that are printed: the printer calls itself for each.
const LEVELS_MAX: usize = 16;

/// States at one revision, gathered ahead.
pub(crate) trait States<'a> {
    /// The state of a node in one of the rows that there are.
    fn state(&mut self, path: PathId, row: u64) -> Result<Datum<'a>, Fault>;

    /// Prints a name and the state of a node, if that was gathered. False, with the name alone
    /// printed, if it has children, stands apart, or is nothing.
    fn print_at_hand(&self, path: PathId, row: u64, member: (&[u8], &mut Vec<u8>)) -> Option<bool>;

    /// The states of what stands below them in arrays, by ordinals of their own.
    fn strips(&mut self) -> &mut Strips<'a>;
}

impl<'a> States<'a> for Strips<'a> {
    #[inline]
    fn state(&mut self, path: PathId, row: u64) -> Result<Datum<'a>, Fault> {
        Strips::state(self, path, row)
    }

    #[inline]
    fn print_at_hand(
        &self,
        path: PathId,
        row: u64,
        (name, out): (&[u8], &mut Vec<u8>),
    ) -> Option<bool> {
        Some(print_member(name, self.at_hand(path, row)?, out))
    }

    fn strips(&mut self) -> &mut Self {
        self
    }
}

/// Why a value was not printed.
enum Hindrance {
    /// It takes more than columns: order blocks, a value that stands apart, much room.
    Beyond,
    Fault(Fault),
}

impl From<Fault> for Hindrance {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Prints values behind what is printed already.
struct Printer<'p> {
    schema: &'p Schema,
    out: &'p mut Vec<u8>,
    /// Bytes that there may be in the end.
    most: usize,
}

/// Prints a value of a row. False, with nothing printed, if that takes more than columns, or more
/// than so many bytes in all.
pub(crate) fn print_value<'a>(
    schema: &Schema,
    states: &mut impl States<'a>,
    (path, row): (PathId, u64),
    (out, most): (&mut Vec<u8>, usize),
) -> Result<bool, Fault> {
    let before = out.len();
    let mut printer = Printer { schema, out, most };
    let hindrance = match printer.value(states, (path, row), LEVELS_MAX) {
        Ok(()) => return Ok(true),
        Err(hindrance) => hindrance,
    };
    out.truncate(before);
    match hindrance {
        Hindrance::Beyond => Ok(false),
        Hindrance::Fault(fault) => Err(fault),
    }
}

/// Prints a name and a state. False, with the name alone printed, if it has children, stands apart,
/// or is nothing.
#[inline]
pub(crate) fn print_member(name: &[u8], state: &Datum<'_>, out: &mut Vec<u8>) -> bool {
    match *state {
        // Most states are such: room is made once, and nothing is called but the copies.
        Datum::Text { bytes, plain: true } => {
            out.reserve(name.len() + bytes.len() + 2);
            out.extend_from_slice(name);
            out.push(b'"');
            out.extend_from_slice(bytes);
            out.push(b'"');
            true
        }
        state => {
            out.extend_from_slice(name);
            print_scalar(state, out)
        }
    }
}

impl Printer<'_> {
    /// Prints a value with so many levels at most.
    #[inline]
    fn value<'a>(
        &mut self,
        states: &mut impl States<'a>,
        (path, row): (PathId, u64),
        levels: usize,
    ) -> Result<(), Hindrance> {
        let state = states.state(path, row)?;
        if print_scalar(state, self.out) {
            return self.check_room();
        }
        self.container(states, (path, row, state), levels)
    }

    #[inline]
    fn check_room(&self) -> Result<(), Hindrance> {
        if self.out.len() <= self.most { Ok(()) } else { Err(Hindrance::Beyond) }
    }

    /// Prints a value that is no scalar.
    fn container<'a>(
        &mut self,
        states: &mut impl States<'a>,
        (path, row, state): (PathId, u64, Datum<'a>),
        levels: usize,
    ) -> Result<(), Hindrance> {
        let below = levels.checked_sub(1).ok_or(Hindrance::Beyond)?;
        match state {
            Datum::Object(shape) => self.fields(states, (shape, row), below),
            Datum::Array(Sequence::Extent(extent)) => {
                self.elements(states.strips(), (path, extent), below)
            }
            _ => Err(Hindrance::Beyond),
        }
    }

    fn fields<'a>(
        &mut self,
        states: &mut impl States<'a>,
        (shape, row): (ShapeId, u64),
        levels: usize,
    ) -> Result<(), Hindrance> {
        self.out.push(b'{');
        for (index, field) in self.schema.shape(shape).iter().enumerate() {
            let name = match index {
                0 => self.schema.rendered(field),
                _ => self.schema.rendered_next(field),
            };
            // Looked at where it is: states that are handed around are copied again and again.
            let is_printed = match states.print_at_hand(field.path, row, (name, &mut *self.out)) {
                Some(is_printed) => is_printed,
                None => print_member(name, &states.state(field.path, row)?, self.out),
            };
            if !is_printed {
                let state = states.state(field.path, row)?;
                self.container(states, (field.path, row, state), levels)?;
            }
            self.check_room()?;
        }
        self.out.push(b'}');
        Ok(())
    }

    fn elements(
        &mut self,
        strips: &mut Strips<'_>,
        (array, extent): (PathId, Extent),
        levels: usize,
    ) -> Result<(), Hindrance> {
        let end = extent.first.saturating_add(extent.count.into());
        let path = self.schema.path(array).element;
        let mut before = b'[';
        if let Some(path) = path.filter(|_| end <= ORDINALS_MAX) {
            for ordinal in extent.first..end {
                self.out.push(before);
                before = b',';
                self.value(strips, (path, ordinal), levels)?;
            }
        } else if extent.count > 0 {
            return Err(Hindrance::Beyond);
        }
        self.out.extend_from_slice(if before == b'[' { b"[]" } else { b"]" });
        Ok(())
    }
}
