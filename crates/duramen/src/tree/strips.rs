//! Reads many states of nodes that stand near each other, at one revision.
//!
//! A *strip* is the states of some consecutive slots of one column, gathered at once: from young
//! changes, run pieces, and first states, each of which is found once. A state is then taken by its
//! place, which costs a fraction of finding it by itself (benchmarks V7f and V7p). Strips are
//! short where states are read here and there, and grow where they follow each other.

use std::ops::Range;

use crate::node::PathId;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::disk::Gathered;
use crate::tree::group::{ColumnId, Fault, RowGroup, SLOTS, locate};
use crate::tree::schema::SpaceId;

/// Slots of a strip that follows no other, and of one that does at most.
const SLOTS_MIN: u16 = 8;
const SLOTS_MAX: u16 = 128;

/// States at one revision.
pub(crate) struct Strips<'a> {
    data: &'a TreeData,
    revision: u32,
    /// Whether all columns will be asked for, of many nodes behind each other.
    is_long_read: bool,
    /// By path.
    values: Vec<Option<Box<Strip<'a>>>>,
    /// The keys of entries of this space.
    keys: (SpaceId, Strip<'a>),
}

/// The states of consecutive slots in one column.
#[derive(Default)]
struct Strip<'a> {
    /// The first ordinal.
    first: u64,
    states: Vec<Datum<'a>>,
}

const _: () = assert!(SLOTS_MAX as u32 == u128::BITS);

impl<'a> Strips<'a> {
    /// Reads as of a revision that can be read.
    pub(crate) fn new(data: &'a TreeData, revision: u32) -> Self {
        let keys = (SpaceId(0), Strip::default());
        Self { data, revision, is_long_read: false, values: Vec::new(), keys }
    }

    /// Is told how many nodes will be read as a whole from the next one on. What is missing of
    /// many is loaded together, as it is put in place while nobody reads (benchmark V7p).
    #[inline]
    pub(crate) fn expect(&mut self, nodes: u32) {
        self.is_long_read = nodes >= u32::from(SLOTS_MAX);
    }

    /// The state of a node.
    #[inline]
    pub(crate) fn state(&mut self, path: PathId, ordinal: u64) -> Result<Datum<'a>, Fault> {
        match self.at_hand(path, ordinal) {
            Some(state) => Ok(*state),
            None => self.find(path, ordinal),
        }
    }

    /// The state of a node, if it was gathered.
    #[inline]
    pub(crate) fn at_hand(&self, path: PathId, ordinal: u64) -> Option<&Datum<'a>> {
        self.values.get(path.0 as usize)?.as_ref()?.get(ordinal)
    }

    /// The states that were gathered of a node and of those behind it in its column.
    pub(crate) fn rest_from(&self, path: PathId, ordinal: u64) -> &[Datum<'a>] {
        let strip = self.values.get(path.0 as usize).and_then(Option::as_ref);
        strip.map_or(&[], |strip| strip.rest_from(ordinal))
    }

    /// The state of a node that was not gathered.
    #[cold]
    pub(crate) fn find(&mut self, path: PathId, ordinal: u64) -> Result<Datum<'a>, Fault> {
        let info = self.data.schema.path(path);
        let index = path.0 as usize;
        if index >= self.values.len() {
            self.values.resize_with(index + 1, || None);
        }
        let strip = self.values[index].get_or_insert_default();
        let place = (info.space, ColumnId::Value(info.column), ordinal);
        let found = strip.move_to(self.data, place, self.revision);
        if self.is_long_read { found.map_err(|fault| fault.for_all(self.revision)) } else { found }
    }

    /// The key of an entry.
    #[inline]
    pub(crate) fn key(&mut self, space: SpaceId, ordinal: u64) -> Result<Datum<'a>, Fault> {
        let (of, strip) = &mut self.keys;
        if *of == space
            && let Some(key) = strip.get(ordinal)
        {
            return Ok(*key);
        }
        *of = space;
        strip.move_to(self.data, (space, ColumnId::Key, ordinal), u32::MAX)
    }
}

impl<'a> Strip<'a> {
    #[inline]
    fn get(&self, ordinal: u64) -> Option<&Datum<'a>> {
        let at = usize::try_from(ordinal.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        self.states.get(at)
    }

    fn rest_from(&self, ordinal: u64) -> &[Datum<'a>] {
        let at = usize::try_from(ordinal.wrapping_sub(self.first)).unwrap_or(usize::MAX);
        self.states.get(at..).unwrap_or_default()
    }

    /// Gathers the states from an ordinal on, and gives the first.
    fn move_to(
        &mut self,
        data: &'a TreeData,
        (space, column, ordinal): (SpaceId, ColumnId, u64),
        revision: u32,
    ) -> Result<Datum<'a>, Fault> {
        let (number, slot) = locate(ordinal);
        let slots = self.slots_around(ordinal);
        self.first = ordinal - u64::from(slot - slots.start);
        // After a fault it has none.
        let mut states = std::mem::take(&mut self.states);
        let Some(group) = data.group(space, number)? else { return Ok(Datum::Absent) };
        states.clear();
        states.resize(slots.len(), Datum::Absent);
        gather((group, column), revision, (slots.start, &mut states))?;
        self.states = states;
        Ok(self.states[usize::from(slot - slots.start)])
    }

    /// The slots to gather for an ordinal: ever more where one strip follows the other, in the
    /// direction of that.
    fn slots_around(&self, ordinal: u64) -> Range<u16> {
        let slot = locate(ordinal).1;
        let before = u16::try_from(self.states.len()).unwrap_or(SLOTS_MAX);
        let is_near = ordinal.abs_diff(self.first) <= 2 * u64::from(before);
        let slots = (if is_near { 2 * before } else { 0 }).clamp(SLOTS_MIN, SLOTS_MAX);
        if is_near && ordinal < self.first {
            (slot + 1).saturating_sub(slots)..slot + 1
        } else {
            slot..(slot + slots).min(SLOTS)
        }
    }
}

/// Gathers the states of a column from a slot on.
fn gather<'a>(
    (group, column): (&'a RowGroup, ColumnId),
    revision: u32,
    (first, states): (u16, &mut [Datum<'a>]),
) -> Result<(), Fault> {
    let slots = u32::try_from(states.len()).unwrap_or(u128::BITS);
    let mut found = u128::MAX.checked_shl(slots).unwrap_or(0);
    if let Some(young) = group.young_column(column).filter(|young| !young.is_empty()) {
        for (index, (slot, state)) in (first..).zip(states.iter_mut()).enumerate() {
            if let Some(packed) = young.at(slot, revision) {
                *state = group.unpack(packed);
                found |= 1 << index;
            }
        }
    }
    if found != u128::MAX
        && let Some(disk) = group.disk_group()?
    {
        disk.gather(column, revision, Gathered { first, states, found: &mut found })?;
    }
    Ok(())
}
