//! Prints records by their columns, those of one row group after those of another.
//!
//! Records that are read together are sorted by their ordinals. A *window* is the states of some of
//! them in one column, gathered at once: so the memory of a column is gone through in its order,
//! and what is found out of a column is found out once for many records (benchmark B). Windows are
//! short where a column is read for few records, and grow where one follows the other.
//!
//! Most records are printed flat ([`FlatLines`]). What a record needs more for than columns (order
//! blocks, a value that stands apart, much room) is left to the serializer, which prints that one
//! record.

use crate::node::PathId;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, RowGroup};
use crate::tree::serialize::{States, print_member, print_value};
use crate::tree::strips::Strips;
use crate::tree::young::{Births, Packed};

pub(crate) mod flat;

use flat::{FlatLines, Stretch};

/// Records of a window that follows no other.
const WINDOW_MIN: usize = 64;
/// How many times as long a window is that follows another one.
const WINDOW_GROWTH: usize = 4;
/// Records of a window at most: their states fit the processor's nearest cache.
const WINDOW_MAX: usize = 128;
/// Records lie close together if they are one of so many or more: then the processor reads their
/// texts ahead by itself.
const CLOSE_SLOTS: usize = 4;
/// Bytes of one record that are printed by columns.
const RECORD_BYTES_MAX: usize = 16 << 10;

/// Records of one row group at one revision, and then of others.
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
    lines: FlatLines,
}

/// The states of some of the records in one column.
#[derive(Default)]
struct Window<'a> {
    /// The first record.
    first: usize,
    /// As they are in memory, if all of them are: so they are not taken apart before they are
    /// printed, and half as long (benchmark B).
    packed: Vec<Packed>,
    /// If not.
    unpacked: Vec<Datum<'a>>,
}

impl<'a> RecordRows<'a> {
    /// Reads as of a revision that can be read.
    pub(crate) fn new(
        data: &'a TreeData,
        (group, slots): (&'a RowGroup, Vec<u16>),
        revision: u32,
    ) -> Self {
        let (values, keys) = (Vec::new(), Window::default());
        let (strips, lines) = (Strips::new(data, revision), FlatLines::new());
        Self { data, group, slots, revision, values, keys, strips, lines }
    }

    /// Goes on with records of another row group.
    pub(crate) fn go_to(&mut self, group: &'a RowGroup, slots: impl Iterator<Item = u16>) {
        self.group = group;
        self.slots.clear();
        self.slots.extend(slots);
        self.values.iter_mut().for_each(Window::clear);
        self.keys.clear();
        self.lines.clear();
    }

    /// The state of a record, or of a field of it.
    #[inline]
    pub(crate) fn state_of(&mut self, path: PathId, row: usize) -> Result<Datum<'a>, Fault> {
        match self.values.get(path.0 as usize).and_then(|window| window.get(self.group, row)) {
            Some(state) => Ok(state),
            None => self.find(path, row),
        }
    }

    #[cold]
    fn find(&mut self, path: PathId, row: usize) -> Result<Datum<'a>, Fault> {
        self.gather(path, row)?;
        let window = self.values.get(path.0 as usize);
        Ok(window.and_then(|window| window.get(self.group, row)).unwrap_or(Datum::Absent))
    }

    /// Gathers the states of a path from a record on.
    #[cold]
    fn gather(&mut self, path: PathId, row: usize) -> Result<(), Fault> {
        let index = path.0 as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, Window::default);
        }
        let column = ColumnId::Value(self.data.schema.path(path).column);
        self.values[index].move_to((self.group, column, &self.slots), row, self.revision)
    }

    /// Whether a record has a state other than null.
    #[inline]
    pub(crate) fn is_there(&mut self, path: PathId, row: usize) -> Result<bool, Fault> {
        let window = self.values.get(path.0 as usize);
        if let Some(state) = window.and_then(|window| window.packed(row)) {
            return Ok(!state.is_nothing());
        }
        Ok(!matches!(self.state_of(path, row)?, Datum::Absent | Datum::Null))
    }

    /// The text of a record's key.
    #[inline]
    pub(crate) fn key(&mut self, row: usize) -> Result<&[u8], Fault> {
        if !self.keys.has(row) {
            self.keys.move_to((self.group, ColumnId::Key, &self.slots), row, u32::MAX)?;
        }
        let text = match self.keys.packed(row) {
            Some(key) => self.group.heap().text(key),
            None => match self.keys.get(self.group, row) {
                Some(Datum::Text { bytes, .. }) => Some(bytes),
                _ => None,
            },
        };
        Ok(text.unwrap_or_default())
    }

    /// Whether a record was born up to the revision.
    #[inline]
    pub(crate) fn is_born(&self, row: usize) -> Result<bool, Fault> {
        // What was born later is young, and its states say so, if all on disk is of the revision
        // or before it.
        if u64::from(self.revision) >= self.data.rows.before() {
            return Ok(true);
        }
        Ok(self.group.born(self.slots[row])?.is_some_and(|born| born <= self.revision))
    }

    /// How many records, from one on, are at hand printed flat: at least one if it can be, and if
    /// it is there.
    #[inline]
    pub(crate) fn print_flat(&mut self, path: PathId, row: usize) -> Result<usize, Fault> {
        if !self.lines.has(row) {
            self.print_ahead(path, row)?;
        }
        Ok(self.lines.from(row))
    }

    /// A record that is printed flat.
    #[inline]
    pub(crate) fn flat(&self, row: usize) -> &[u8] {
        self.lines.get(row).unwrap_or_default()
    }

    /// Prints a record that is not flat. False, with nothing printed, if that takes more than
    /// columns.
    pub(crate) fn print(
        &mut self,
        (path, row): (PathId, usize),
        out: &mut Vec<u8>,
    ) -> Result<bool, Fault> {
        let most = out.len() + RECORD_BYTES_MAX;
        print_value(&self.data.schema, self, (path, row as u64), (out, most))
    }

    /// Prints a record, and those behind it that have its shape, as far as they are flat.
    fn print_ahead(&mut self, path: PathId, row: usize) -> Result<(), Fault> {
        let Datum::Object(shape) = self.state_of(path, row)? else { return Ok(()) };
        let alike = from_row((&self.values, self.group), path, row).alike(shape);
        self.lines.begin((&self.data.schema, shape), row..row + alike);
        for member in 0.. {
            let Some(path) = self.lines.member(member) else { break };
            if !self.values.get(path.0 as usize).is_some_and(|window| window.has(row)) {
                self.gather(path, row)?;
            }
            if !self.lines.print(member, from_row((&self.values, self.group), path, row)) {
                break;
            }
        }
        self.lines.finish();
        Ok(())
    }
}

impl<'a> States<'a> for RecordRows<'a> {
    #[inline]
    fn state(&mut self, path: PathId, row: u64) -> Result<Datum<'a>, Fault> {
        self.state_of(path, usize::try_from(row).unwrap_or(usize::MAX))
    }

    #[inline]
    fn print_at_hand(
        &self,
        path: PathId,
        row: u64,
        (name, out): (&[u8], &mut Vec<u8>),
    ) -> Option<bool> {
        let window = self.values.get(path.0 as usize)?;
        let row = usize::try_from(row).ok()?;
        if let Some(state) = window.packed(row) {
            out.extend_from_slice(name);
            return Some(self.group.heap().print(state, out));
        }
        Some(print_member(name, window.unpacked(row)?, out))
    }

    fn strips(&mut self) -> &mut Strips<'a> {
        &mut self.strips
    }
}

/// The states that were gathered of a row and of those behind it.
fn from_row<'w>(
    (windows, group): (&'w [Window<'_>], &'w RowGroup),
    path: PathId,
    row: usize,
) -> Stretch<'w> {
    let Some(window) = windows.get(path.0 as usize) else { return Stretch::Unpacked(&[]) };
    let index = row.wrapping_sub(window.first);
    match window.packed.get(index..) {
        Some(states @ [_, ..]) => Stretch::Packed(group.heap(), states),
        _ => Stretch::Unpacked(window.unpacked.get(index..).unwrap_or_default()),
    }
}

impl<'a> Window<'a> {
    fn len(&self) -> usize {
        self.packed.len() + self.unpacked.len()
    }

    fn clear(&mut self) {
        self.packed.clear();
        self.unpacked.clear();
    }

    #[inline]
    fn has(&self, row: usize) -> bool {
        row.wrapping_sub(self.first) < self.len()
    }

    #[inline]
    fn packed(&self, row: usize) -> Option<Packed> {
        self.packed.get(row.wrapping_sub(self.first)).copied()
    }

    #[inline]
    fn unpacked(&self, row: usize) -> Option<&Datum<'a>> {
        self.unpacked.get(row.wrapping_sub(self.first))
    }

    #[inline]
    fn get(&self, group: &'a RowGroup, row: usize) -> Option<Datum<'a>> {
        match self.packed(row) {
            Some(state) => Some(group.unpack(state)),
            None => self.unpacked(row).copied(),
        }
    }

    /// Gathers the states from a record on.
    fn move_to(
        &mut self,
        (group, column, slots): (&'a RowGroup, ColumnId, &[u16]),
        row: usize,
        revision: u32,
    ) -> Result<(), Fault> {
        let before = self.len();
        let follows = before > 0 && row == self.first + before;
        let len = if follows { WINDOW_GROWTH * before } else { WINDOW_MIN }.min(WINDOW_MAX);
        let wanted = &slots[row..slots.len().min(row + len)];
        self.first = row;
        // After a fault it has none.
        self.unpacked.clear();
        if gather_packed((group, column), revision, wanted, &mut self.packed) {
            return Ok(());
        }
        self.packed.clear();
        let mut states = std::mem::take(&mut self.unpacked);
        gather((group, column), revision, wanted, &mut states)?;
        touch(states.iter().map(|state| match *state {
            Datum::Text { bytes, .. } => bytes,
            _ => &[],
        }));
        self.unpacked = states;
        Ok(())
    }
}

/// Reads the beginning of each text. The texts of records that are read together lie apart: one
/// behind the other they are waited for together, where the printer would wait for each (benchmark
/// B).
fn touch<'t>(texts: impl Iterator<Item = &'t [u8]>) {
    let first = |text: &'t [u8]| text.first().copied().unwrap_or(0);
    std::hint::black_box(texts.map(first).fold(0, std::ops::BitXor::bitxor));
}

/// Gathers the states of a column at some slots as it has them in memory; false if it does not have
/// all of them.
fn gather_packed(
    (group, column): (&RowGroup, ColumnId),
    revision: u32,
    slots: &[u16],
    states: &mut Vec<Packed>,
) -> bool {
    states.clear();
    let Some(young) = group.young_column(column) else { return false };
    let (Some(first), Some(last)) = (slots.first(), slots.last()) else { return false };
    if let Some((born, births)) = young.unchanged() {
        let index = |slot: u16| usize::from(slot).wrapping_sub(usize::from(born));
        // The slots rise. One that was born before is far behind all of these.
        let (low, high) = (index(*first), index(*last));
        if low > high || high >= births.len() {
            return false;
        }
        let stretch = low..high + 1;
        // A record may be asked for more than once.
        let is_stretch = stretch.len() == slots.len() && slots.is_sorted_by(|a, b| a < b);
        let as_they_are = match births {
            Births::Wide(births) if is_stretch => Some(&births[stretch.clone()]),
            _ => None,
        };
        match as_they_are.filter(|births| births.iter().all(|birth| birth.revision <= revision)) {
            Some(births) => states.extend_from_slice(births),
            None => births.pick(slots.iter().map(|slot| index(*slot)), revision, states),
        }
        if stretch.len() <= CLOSE_SLOTS * slots.len() {
            return true;
        }
    } else {
        for &slot in slots {
            let Some(found) = young.at(slot, revision) else { return false };
            states.push(found);
        }
    }
    let heap = group.heap();
    if states.first().is_some_and(|&state| heap.text(state).is_some()) {
        touch(states.iter().map(|&state| heap.text(state).unwrap_or_default()));
    }
    true
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
                    Some(birth) if birth.revision <= revision => group.unpack(birth),
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
