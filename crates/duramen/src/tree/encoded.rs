//! One column of a row group as it lies in its cells, with what changed since.

use std::ops::Range;

use smallvec::SmallVec;

use crate::encoding::{Column, Encoded};
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, GroupId, RowGroup};

/// Changes of one column of a row group up to which they are taken apart from its cell.
const PATCHES_MAX: usize = 1_024;

/// The states of a column: those of its cells, but for some slots.
#[derive(Debug, Default)]
pub(crate) struct EncodedColumn<'a> {
    /// First slots and first states, rising; other slots had none.
    pub(crate) bases: SmallVec<[(u16, &'a Column); 1]>,
    /// Changed slots; of those that come again the last one counts.
    pub(crate) patches: Vec<(u16, Datum<'a>)>,
    /// Bytes of the cells that changes were read from.
    pub(crate) changes_bytes: usize,
}

impl<'a> EncodedColumn<'a> {
    /// The state that all of some slots have, if that is told without a look at them.
    pub(crate) fn only(&self, slots: &Range<u16>) -> Option<Datum<'a>> {
        let ([(first, cell)], []) = (&self.bases[..], &self.patches[..]) else { return None };
        let is_all =
            *first <= slots.start && usize::from(slots.end) <= usize::from(*first) + cell.len();
        match cell.encoded() {
            Encoded::Same(state) if is_all => Some(state),
            _ => None,
        }
    }
}

/// Slots of a row group, of which the columns are asked for as they are stored.
pub(crate) struct EncodedGroup<'a> {
    /// None if it has no states.
    found: Option<&'a RowGroup>,
    slots: Range<u16>,
    revision: u32,
}

impl TreeData {
    /// Slots of a row group at a revision.
    pub(crate) fn encoded_group(
        &self,
        group: GroupId,
        slots: Range<u16>,
        revision: u32,
    ) -> Result<EncodedGroup<'_>, Fault> {
        self.kept.check(revision)?;
        Ok(EncodedGroup { found: self.group_for_scan(group)?, slots, revision })
    }
}

impl<'a> EncodedGroup<'a> {
    /// A column as it is stored; none where much of it is not in its cells.
    pub(crate) fn column(&self, column: u32) -> Result<Option<EncodedColumn<'a>>, Fault> {
        let Some(found) = self.found else { return Ok(Some(EncodedColumn::default())) };
        let column = ColumnId::Value(column);
        let (mut patches, mut changes_bytes) = (Vec::new(), 0);
        let bases = match &found.disk {
            DiskPart::Loaded(disk) => {
                let pieces = disk.pieces(column, self.revision)?;
                for piece in pieces.into_iter().rev() {
                    if patches.len() + piece.len() > PATCHES_MAX {
                        return Ok(None);
                    }
                    changes_bytes += piece.cell_bytes();
                    for change in piece.states(self.slots.clone(), self.revision) {
                        if let Some((slot, state)) = change? {
                            patches.push((slot, disk.vet(state)?));
                        }
                    }
                }
                disk.bases(column)?
            }
            _ => SmallVec::new(),
        };
        let is_young = self.young_patches(found, column, &mut patches);
        Ok(is_young.then_some(EncodedColumn { bases, patches, changes_bytes }))
    }

    /// Adds what changed since the last checkpoint; false if that is much.
    fn young_patches(
        &self,
        group: &'a RowGroup,
        column: ColumnId,
        patches: &mut Vec<(u16, Datum<'a>)>,
    ) -> bool {
        let Some(young) = group.young_column(column) else { return true };
        let (first, births) = young.births_at_hand();
        if usize::from(self.slots.end) > usize::from(first) && !births.is_empty() {
            return false;
        }
        let changed = young.changed();
        if patches.len() + changed.len() > PATCHES_MAX {
            return false;
        }
        for (slot, _) in changed.into_iter().filter(|(slot, _)| self.slots.contains(slot)) {
            if let Some(state) = young.at(slot, self.revision) {
                patches.push((slot, group.unpack(state)));
            }
        }
        true
    }
}
