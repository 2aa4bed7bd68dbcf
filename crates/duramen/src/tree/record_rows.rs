//! Prints records of one row group by their columns.
//!
//! Records that are read together are sorted by their slots. A *window* is the states of some of
//! them in one column, gathered at once: so the memory of a column is gone through in its order,
//! and what is found out of a column is found out once for many records (benchmark B). Windows are
//! short where a column is read for few records, and grow where one follows the other.
//!
//! What a record needs more for than columns (order blocks, a value that stands apart, much room)
//! is left to the serializer, which prints that one record.

use crate::node::PathId;
use crate::state::{Datum, Sequence, ShapeId};
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, RowGroup};
use crate::tree::serialize::{ItemPrinter, print_scalar};

/// Records of a window that follows no other.
const WINDOW_MIN: usize = 16;
/// Levels of one record that are printed: the printer calls itself for each.
const LEVELS_MAX: usize = 16;
/// Bytes of one record that are printed by columns.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// Records of one row group at one revision.
pub(crate) struct RecordRows<'a> {
    data: &'a TreeData,
    /// The path of records.
    path: PathId,
    group: &'a RowGroup,
    /// Their slots, rising.
    slots: Vec<u16>,
    revision: u32,
    /// By column.
    values: Vec<Window<'a>>,
    keys: Window<'a>,
    /// Prints the elements of arrays, which have ordinals of their own.
    items: ItemPrinter<'a>,
    /// Why a state could not be read.
    fault: Option<Fault>,
}

/// The states of some of the records in one column.
#[derive(Default)]
struct Window<'a> {
    /// The first record.
    first: usize,
    states: Vec<Datum<'a>>,
}

/// Where a record goes, and how many bytes there may be in the end.
type Out<'o> = (&'o mut Vec<u8>, usize);

impl<'a> RecordRows<'a> {
    /// Reads as of a revision that can be read.
    pub(crate) fn new(
        (data, path): (&'a TreeData, PathId),
        group: &'a RowGroup,
        slots: Vec<u16>,
        revision: u32,
    ) -> Self {
        let items = ItemPrinter::new(data, revision);
        let (values, keys) = (Vec::new(), Window::default());
        Self { data, path, group, slots, revision, values, keys, items, fault: None }
    }

    /// The state of a record, or of a field of it, by its column.
    #[inline]
    pub(crate) fn state(&mut self, column: u32, row: usize) -> Result<Datum<'a>, Fault> {
        match self.at_hand(column, row) {
            Some(state) => Ok(state),
            None => self.find(column, row),
        }
    }

    #[inline]
    fn at_hand(&self, column: u32, row: usize) -> Option<Datum<'a>> {
        self.values.get(column as usize)?.get(row)
    }

    #[cold]
    fn find(&mut self, column: u32, row: usize) -> Result<Datum<'a>, Fault> {
        let index = column as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, Window::default);
        }
        let of = (self.group, ColumnId::Value(column), self.slots.as_slice());
        self.values[index].move_to(of, row, self.revision)
    }

    /// The key of a record.
    pub(crate) fn key(&mut self, row: usize) -> Result<Datum<'a>, Fault> {
        if let Some(key) = self.keys.get(row) {
            return Ok(key);
        }
        self.keys.move_to((self.group, ColumnId::Key, &self.slots), row, u32::MAX)
    }

    /// Whether a record was born up to the revision.
    pub(crate) fn is_born(&self, row: usize) -> Result<bool, Fault> {
        // What was born later is young, and its states say so, if all on disk is of the revision
        // or before it.
        if u64::from(self.revision) >= self.data.rows.before() {
            return Ok(true);
        }
        Ok(self.group.born(self.slots[row])?.is_some_and(|born| born <= self.revision))
    }

    /// Prints a record. False, with nothing printed, if that takes more than columns.
    pub(crate) fn print(&mut self, row: usize, out: &mut Vec<u8>) -> Result<bool, Fault> {
        let column = self.data.schema.path(self.path).column;
        let is_printed = self.value((self.path, column, row), LEVELS_MAX, (out, RECORD_BYTES_MAX));
        if !is_printed {
            out.clear();
        }
        self.fault.take().map_or(Ok(is_printed), Err)
    }

    #[cold]
    fn fail(&mut self, fault: Fault) -> bool {
        self.fault = Some(fault);
        false
    }

    /// Prints a value with so many levels at most. False if it cannot be printed.
    #[inline]
    fn value(
        &mut self,
        (path, column, row): (PathId, u32, usize),
        levels: usize,
        (out, most): Out<'_>,
    ) -> bool {
        let state = match self.at_hand(column, row) {
            Some(state) => state,
            None => match self.find(column, row) {
                Ok(state) => state,
                Err(fault) => return self.fail(fault),
            },
        };
        if print_scalar(state, out) {
            return out.len() <= most;
        }
        match state {
            Datum::Object(shape) => self.fields((shape, row), levels, (out, most)),
            Datum::Array(Sequence::Extent(extent)) => {
                self.items.print_elements((path, extent), levels, (out, most))
                    || self.items.take_fault().is_some_and(|fault| self.fail(fault))
            }
            _ => false,
        }
    }

    fn fields(
        &mut self,
        (shape, row): (ShapeId, usize),
        levels: usize,
        (out, most): Out<'_>,
    ) -> bool {
        let Some(below) = levels.checked_sub(1) else { return false };
        let schema = &self.data.schema;
        let mut before = b'{';
        for field in schema.shape(shape) {
            out.push(before);
            before = b',';
            out.extend_from_slice(schema.rendered(field));
            if !self.value((field.path, field.column, row), below, (out, most)) {
                return false;
            }
        }
        out.extend_from_slice(if before == b'{' { b"{}" } else { b"}" });
        true
    }
}

impl<'a> Window<'a> {
    #[inline]
    fn get(&self, row: usize) -> Option<Datum<'a>> {
        self.states.get(row.wrapping_sub(self.first)).copied()
    }

    /// Gathers the states from a record on, and gives the first.
    fn move_to(
        &mut self,
        (group, column, slots): (&'a RowGroup, ColumnId, &[u16]),
        row: usize,
        revision: u32,
    ) -> Result<Datum<'a>, Fault> {
        let before = self.states.len();
        let follows = before > 0 && row == self.first + before;
        let len = if follows { 2 * before } else { WINDOW_MIN };
        let wanted = &slots[row..slots.len().min(row + len)];
        self.first = row;
        // After a fault it has none.
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        gather((group, column), revision, wanted, &mut states)?;
        self.states = states;
        Ok(self.states[0])
    }
}

/// Gathers the states of a column at some slots.
fn gather<'a>(
    (group, column): (&'a RowGroup, ColumnId),
    revision: u32,
    slots: &[u16],
    states: &mut Vec<Datum<'a>>,
) -> Result<(), Fault> {
    let mut missing = Vec::new();
    if let Some(young) = group.young_column(column).filter(|young| !young.is_empty()) {
        for (place, &slot) in slots.iter().enumerate() {
            let found = young.at(slot, revision);
            if found.is_none() {
                missing.push(place);
            }
            states.push(found.map_or(Datum::Absent, |packed| group.unpack(packed)));
        }
    } else {
        states.resize(slots.len(), Datum::Absent);
        // Without cells to read nothing else is known of them.
        if !matches!(group.disk, DiskPart::None | DiskPart::Unpacked(_)) {
            missing.extend(0..slots.len());
        }
    }
    if !missing.is_empty()
        && let Some(disk) = group.disk_group()?
    {
        disk.pick(column, revision, (slots, states), missing)?;
    }
    Ok(())
}
