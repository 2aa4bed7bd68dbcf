//! Prints records of one row group by their columns.
//!
//! Records that are read together are sorted by their slots. A *window* is the states of some of
//! them in one column, gathered at once: so the memory of a column is gone through in its order,
//! and what is found out of a column is found out once for many records (benchmark B). Windows are
//! short where a column is read for few records, and grow where one follows the other.
//!
//! Most records are printed flat ([`FlatLine`]). What a record needs more for than columns (order
//! blocks, a value that stands apart, much room) is left to the serializer, which prints that one
//! record.

use crate::node::PathId;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, RowGroup};
use crate::tree::serialize::{States, print_value};
use crate::tree::strips::Strips;

mod flat;

use flat::FlatLine;

/// Records of a window that follows no other.
const WINDOW_MIN: usize = 16;
/// How many times as long a window is that follows another one.
const WINDOW_GROWTH: usize = 4;
/// Bytes of one record that are printed by columns.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// Records of one row group at one revision.
pub(crate) struct RecordRows<'a> {
    data: &'a TreeData,
    group: &'a RowGroup,
    /// Their slots, rising.
    slots: Vec<u16>,
    revision: u32,
    /// By path.
    values: Vec<Window<'a>>,
    keys: Window<'a>,
    /// What is in arrays of records, which has ordinals of its own.
    strips: Strips<'a>,
    line: FlatLine,
}

/// The states of some of the records in one column.
#[derive(Default)]
struct Window<'a> {
    /// The first record.
    first: usize,
    states: Vec<Datum<'a>>,
}

impl<'a> RecordRows<'a> {
    /// Reads as of a revision that can be read.
    pub(crate) fn new(
        data: &'a TreeData,
        group: &'a RowGroup,
        slots: Vec<u16>,
        revision: u32,
    ) -> Self {
        let (values, keys) = (Vec::new(), Window::default());
        let (strips, line) = (Strips::new(data, revision), FlatLine::new());
        Self { data, group, slots, revision, values, keys, strips, line }
    }

    /// The state of a record, or of a field of it.
    #[inline]
    pub(crate) fn state_of(&mut self, path: PathId, row: usize) -> Result<Datum<'a>, Fault> {
        match self.values.get(path.0 as usize).and_then(|window| window.get(row)) {
            Some(state) => Ok(state),
            None => self.find(path, row),
        }
    }

    #[cold]
    fn find(&mut self, path: PathId, row: usize) -> Result<Datum<'a>, Fault> {
        let index = path.0 as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, Window::default);
        }
        let column = ColumnId::Value(self.data.schema.path(path).column);
        self.values[index].move_to((self.group, column, &self.slots), row, self.revision)
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
    pub(crate) fn print(
        &mut self,
        (path, row): (PathId, usize),
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let schema = &self.data.schema;
        if let Datum::Object(shape) = self.state_of(path, row)? {
            let at_hand = |path| at_hand(&self.values, path, row);
            if let Some(text) = self.line.print((schema, shape), at_hand) {
                out.extend_from_slice(text);
                return Ok(true);
            }
        }
        let most = out.len() + RECORD_BYTES_MAX;
        print_value(schema, self, (path, row as u64), (out, most))
    }
}

impl<'a> States<'a> for RecordRows<'a> {
    #[inline]
    fn state(&mut self, path: PathId, row: u64) -> Result<Datum<'a>, Fault> {
        self.state_of(path, usize::try_from(row).unwrap_or(usize::MAX))
    }

    #[inline]
    fn at_hand(&self, path: PathId, row: u64) -> Option<&Datum<'a>> {
        at_hand(&self.values, path, usize::try_from(row).ok()?)
    }

    fn strips(&mut self) -> &mut Strips<'a> {
        &mut self.strips
    }
}

/// The state of a row, if it was gathered.
#[inline]
fn at_hand<'w, 'a>(windows: &'w [Window<'a>], path: PathId, row: usize) -> Option<&'w Datum<'a>> {
    let window = windows.get(path.0 as usize)?;
    window.states.get(row.wrapping_sub(window.first))
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
        let len = if follows { WINDOW_GROWTH * before } else { WINDOW_MIN };
        let wanted = &slots[row..slots.len().min(row + len)];
        self.first = row;
        // After a fault it has none.
        let mut states = std::mem::take(&mut self.states);
        states.clear();
        gather((group, column), revision, wanted, &mut states)?;
        touch(&states);
        self.states = states;
        Ok(self.states[0])
    }
}

/// Reads the beginning of each text that there is. The texts of records that are read together lie
/// apart: one behind the other they are waited for together, where the printer would wait for each
/// (benchmark B).
fn touch(states: &[Datum<'_>]) {
    let first = |state: &Datum<'_>| match state {
        Datum::Text { bytes, .. } => bytes.first().copied().unwrap_or(0),
        _ => 0,
    };
    std::hint::black_box(states.iter().map(first).fold(0, std::ops::BitXor::bitxor));
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
        match young.unchanged() {
            Some((first, births)) => {
                let index = |slot: &u16| usize::from(*slot).wrapping_sub(usize::from(first));
                states.extend(slots.iter().map(|slot| match births.get(index(slot)) {
                    Some(birth) if birth.revision <= revision => group.unpack(*birth),
                    _ => Datum::Absent,
                }));
                // The slots rise.
                let is_born = |slot: &u16| index(slot) < births.len();
                if !(slots.first().is_none_or(is_born) && slots.last().is_none_or(is_born)) {
                    missing.extend((0..slots.len()).filter(|&place| !is_born(&slots[place])));
                }
            }
            None => {
                for &slot in slots {
                    let found = young.at(slot, revision);
                    if found.is_none() {
                        missing.push(states.len());
                    }
                    states.push(found.map_or(Datum::Absent, |packed| group.unpack(packed)));
                }
            }
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
