//! One column of a row group as it lies in its cells, with what changed since.

use smallvec::SmallVec;

use crate::encoding::Column;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, RowGroup};
use crate::tree::scan::ColumnScan;

/// Changes of one column of a row group up to which they are taken apart from its cell.
const PATCHES_MAX: usize = 1_024;

/// The states of a column: those of its cells, but for some slots.
#[derive(Debug, Default)]
pub(crate) struct EncodedColumn<'a> {
    /// First slots and first states, rising; other slots had none.
    pub(crate) bases: SmallVec<[(u16, &'a Column); 1]>,
    /// Changed slots; of those that come again the last one counts.
    pub(crate) patches: Vec<(u16, Datum<'a>)>,
}

impl TreeData {
    /// A column as it is stored; none where much of it is not in its cells.
    pub(crate) fn encoded(&self, scan: &ColumnScan) -> Result<Option<EncodedColumn<'_>>, Fault> {
        self.kept.check(scan.revision)?;
        let Some(found) = self.group_for_scan(scan.group)? else {
            return Ok(Some(EncodedColumn::default()));
        };
        let column = ColumnId::Value(scan.column);
        let mut patches = Vec::new();
        let bases = match &found.disk {
            DiskPart::Loaded(disk) => {
                let pieces = disk.pieces(column, scan.revision)?;
                for piece in pieces.into_iter().rev() {
                    if patches.len() + piece.len() > PATCHES_MAX {
                        return Ok(None);
                    }
                    for change in piece.states(scan.slots.clone(), scan.revision) {
                        if let Some((slot, state)) = change? {
                            patches.push((slot, disk.vet(state)?));
                        }
                    }
                }
                disk.bases(column)?
            }
            _ => SmallVec::new(),
        };
        let is_young = young_patches(found, scan, &mut patches);
        Ok(is_young.then_some(EncodedColumn { bases, patches }))
    }
}

/// Adds what changed since the last checkpoint; false if that is much.
fn young_patches<'a>(
    group: &'a RowGroup,
    scan: &ColumnScan,
    patches: &mut Vec<(u16, Datum<'a>)>,
) -> bool {
    let Some(young) = group.young_column(ColumnId::Value(scan.column)) else { return true };
    let (first, births) = young.births();
    if usize::from(scan.slots.end) > usize::from(first) && !births.is_empty() {
        return false;
    }
    let changed = young.changed();
    if patches.len() + changed.len() > PATCHES_MAX {
        return false;
    }
    for (slot, _) in changed.into_iter().filter(|(slot, _)| scan.slots.contains(slot)) {
        if let Some(state) = young.at(slot, scan.revision) {
            patches.push((slot, group.unpack(state)));
        }
    }
    true
}
