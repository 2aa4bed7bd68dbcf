//! A small row group, read as a whole into the form that young states have.

use std::ops::Range;

use bytes::Bytes;

use crate::encoding::{Column, RunPiece};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::segment::CellHandle;
use crate::state::Datum;
use crate::tree::cell_key::GroupCell;
use crate::tree::disk::{Place, corrupt, revision_of_birth};
use crate::tree::group::{ColumnId, RowGroup};
use crate::tree::schema::SchemaExtent;

/// Bytes of cells up to which a row group is read whole.
const SMALL_GROUP_BYTES: usize = 64 << 10;

/// States up to which a row group is read whole. Cells of many can be small (a counter takes a few
/// bytes for 4,096 changes), but unpacked each state takes time, which a read of one record of
/// many should not (benchmark RR).
const SMALL_GROUP_STATES: usize = 8_192;

/// Adds up the cells of a row group, as long as they are few.
#[derive(Debug, Default)]
pub(crate) struct GroupSize {
    bytes: usize,
    states: usize,
}

impl GroupSize {
    /// Takes the next cell in key order; false if the row group is too large to be read whole.
    pub(crate) fn add(&mut self, place: Place, handle: &CellHandle) -> Result<bool> {
        self.bytes += handle.bytes()?;
        if self.bytes > SMALL_GROUP_BYTES {
            return Ok(false);
        }
        self.states += match place.kind {
            GroupCell::Run => handle.look(RunPiece::count)?,
            _ => handle.look(Column::count)?,
        };
        Ok(self.states <= SMALL_GROUP_STATES)
    }

    /// All states of the cells that were added.
    pub(crate) fn unpack(
        &self,
        cells: Vec<(Place, CellHandle)>,
        known: SchemaExtent,
    ) -> Result<RowGroup> {
        let mut group = RowGroup::default();
        let columns = cells.iter().map(|(place, _)| place.column as usize + 1).max();
        group.reserve(columns.unwrap_or(0), self.bytes);
        let born = unpack_born(&cells, &mut group)?;
        for (place, handle) in cells {
            let mut unpacker = Unpacker { place, known, born: &born, group: &mut group };
            match place.kind {
                GroupCell::Born => {}
                GroupCell::Run => unpacker.changes(handle.into_content()?)?,
                _ => unpacker.first_states(handle.into_content()?)?,
            }
        }
        Ok(group)
    }
}

/// The revisions in which the slots were born, by slot; 0 where the disk does not say.
fn unpack_born(cells: &[(Place, CellHandle)], group: &mut RowGroup) -> Result<Vec<u32>> {
    let mut born = Vec::new();
    for (place, handle) in cells.iter().filter(|(place, _)| place.kind == GroupCell::Born) {
        let column = Column::parse(handle.load()?)?;
        let slots = place.slots(&column)?;
        born.resize(born.len().max(usize::from(slots.end)), 0);
        // An element or entry that its own commit removed was born as well.
        let (births, heap) = group.births_mut(ColumnId::Value(0), slots.clone());
        for ((slot, birth), state) in slots.zip(births).zip(column.iter()) {
            let revision = revision_of_birth(state?)?;
            born[usize::from(slot)] = revision;
            *birth = heap.pack(Datum::Absent, revision)?;
        }
    }
    Ok(born)
}

/// Puts the states of one cell into a row group.
struct Unpacker<'u> {
    place: Place,
    known: SchemaExtent,
    /// By slot, 0 where the disk does not say.
    born: &'u [u32],
    group: &'u mut RowGroup,
}

impl Unpacker<'_> {
    /// First states, set in the revisions in which their slots were born.
    fn first_states(&mut self, cell: Bytes) -> Result<()> {
        if let Some(state) = Column::single(&cell) {
            let slot = self.place.first_slot()?;
            return self.first(slot..slot + 1, std::iter::once(Ok(state)));
        }
        let column = Column::parse(cell)?;
        self.first(self.place.slots(&column)?, column.iter())
    }

    fn first<'a>(
        &mut self,
        slots: Range<u16>,
        states: impl Iterator<Item = Result<Datum<'a>>>,
    ) -> Result<()> {
        let (births, heap) = self.group.births_mut(self.place.column_id(), slots.clone());
        for ((slot, birth), state) in slots.zip(births).zip(states) {
            let state = self.known.vet(state?)?;
            if !state.is_absent() {
                let revision = self.born.get(usize::from(slot)).copied().filter(|born| *born > 0);
                let revision = revision
                    .ok_or_else(|| corrupt(format!("slot {slot} has no revision of birth")))?;
                *birth = heap.pack(state, revision)?;
            }
        }
        Ok(())
    }

    /// Changes, as far as they are newer than those there.
    fn changes(&mut self, cell: Bytes) -> Result<()> {
        if let Some((slot, revision, state)) = RunPiece::single(&cell) {
            return self.run(slot, std::iter::once(Ok((revision, state))));
        }
        let piece = RunPiece::parse(cell)?;
        for run in piece.runs() {
            let (slot, mut changes) = run?;
            // A complete piece repeats what an earlier one has: of a slot its first change.
            if let Some(first) = changes.clone().next()
                && piece.change(first)?.0 < piece.first_revision()
            {
                changes.next();
            }
            if !changes.is_empty() {
                self.run(slot, changes.map(|index| piece.change(index)))?;
            }
        }
        Ok(())
    }

    fn run<'a>(
        &mut self,
        slot: u16,
        changes: impl Iterator<Item = Result<(u32, Datum<'a>)>>,
    ) -> Result<()> {
        if u64::from(slot) >= ROW_GROUP_SLOTS {
            return Err(corrupt(format!("slot {slot} of a row group changed")));
        }
        let (run, heap) = self.group.run_mut(self.place.column_id(), slot);
        run.reserve(changes.size_hint().1.unwrap_or(0));
        for change in changes {
            let (revision, state) = change?;
            if revision == 0 {
                return Err(corrupt(format!("slot {slot} of a row group changed in revision 0")));
            }
            if run.last().is_none_or(|last| last.revision < revision) {
                run.push(heap.pack(self.known.vet(state)?, revision)?);
            }
        }
        Ok(())
    }
}
