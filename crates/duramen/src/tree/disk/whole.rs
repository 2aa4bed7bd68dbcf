//! A small row group, read as a whole into the form that young states have.

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

/// The cells of a row group, as long as they are few.
#[derive(Debug, Default)]
pub(crate) struct WholeGroup {
    bases: Vec<(Place, Column)>,
    runs: Vec<(Place, RunPiece)>,
    bytes: usize,
    states: usize,
}

impl WholeGroup {
    /// Takes the next cell in key order; false if the row group is too large to be read whole.
    pub(crate) fn add(&mut self, place: Place, handle: &CellHandle) -> Result<bool> {
        self.bytes += handle.bytes()?;
        if self.bytes > SMALL_GROUP_BYTES {
            return Ok(false);
        }
        if place.kind == GroupCell::Run {
            let piece = RunPiece::parse(handle.load()?)?;
            self.states += piece.len();
            self.runs.push((place, piece));
        } else {
            let column = Column::parse(handle.load()?)?;
            self.states += column.len();
            self.bases.push((place, column));
        }
        Ok(self.states <= SMALL_GROUP_STATES)
    }

    /// All states.
    pub(crate) fn unpack(&self, known: SchemaExtent) -> Result<RowGroup> {
        let mut group = RowGroup::default();
        let born = self.unpack_born(&mut group)?;
        for (place, column) in self.bases.iter().filter(|(place, _)| place.kind != GroupCell::Born)
        {
            for (slot, state) in place.slots(column)?.zip(column.iter()) {
                let state = known.vet(state?)?;
                if !state.is_absent() {
                    let revision = born.get(usize::from(slot)).copied().filter(|born| *born > 0);
                    let revision = revision
                        .ok_or_else(|| corrupt(format!("slot {slot} has no revision of birth")))?;
                    group.set_birth(place.column_id(), slot, state, revision)?;
                }
            }
        }
        for (place, piece) in &self.runs {
            for index in 0..piece.len() {
                let (slot, revision, state) = piece.entry(index)?;
                if revision < piece.first_revision() {
                    // A complete piece repeats what an earlier one has.
                    continue;
                }
                if u64::from(slot) >= ROW_GROUP_SLOTS || revision == 0 {
                    let message = format!("slot {slot} of a row group changed in {revision}");
                    return Err(corrupt(message));
                }
                group.add_newer(place.column_id(), slot, known.vet(state)?, revision)?;
            }
        }
        Ok(group)
    }

    /// The revisions in which the slots were born, by slot; 0 where the disk does not say.
    fn unpack_born(&self, group: &mut RowGroup) -> Result<Vec<u32>> {
        let mut born = Vec::new();
        for (place, column) in self.bases.iter().filter(|(place, _)| place.kind == GroupCell::Born)
        {
            let slots = place.slots(column)?;
            born.resize(born.len().max(usize::from(slots.end)), 0);
            for (slot, state) in slots.zip(column.iter()) {
                let revision = revision_of_birth(state?)?;
                born[usize::from(slot)] = revision;
                // An element or entry that its own commit removed was born as well.
                group.set_birth(ColumnId::Value(0), slot, Datum::Absent, revision)?;
            }
        }
        Ok(born)
    }
}
