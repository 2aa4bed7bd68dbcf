//! Reads the states of some slots of a column, here and there.

use crate::state::Datum;
use crate::tree::disk::LargeGroup;
use crate::tree::group::{ColumnId, Fault, SLOTS};

/// So many slots are seldom all found in the newest run piece.
const SLOTS_MANY: usize = 8;

impl LargeGroup {
    /// Finds states at a revision: of each slot its newest change, else its first state. `missing`
    /// has the places of those that were not found yet; the slots rise.
    pub(crate) fn pick<'a>(
        &'a self,
        column: ColumnId,
        revision: u32,
        (slots, states): (&[u16], &mut [Datum<'a>]),
        mut missing: Vec<usize>,
    ) -> Result<(), Fault> {
        if let Some((index, runs)) = self.runs(column) {
            for piece in runs.back_from(revision) {
                let is_many = missing.len() >= SLOTS_MANY;
                let piece = piece.map_err(|revision| {
                    if is_many {
                        self.missing_runs(index, revision)
                    } else {
                        self.missing_run(index, revision)
                    }
                })?;
                let mut left = Vec::with_capacity(missing.len());
                for place in missing {
                    match piece.at(slots[place], revision)? {
                        Some((_, state)) => states[place] = self.vet(state)?,
                        None => left.push(place),
                    }
                }
                missing = left;
                if missing.is_empty() {
                    return Ok(());
                }
                if piece.is_complete() {
                    break;
                }
            }
        }
        let bases = self.disk.bases(column);
        let mut missing = missing.as_slice();
        for (index, base) in bases.iter().enumerate() {
            let end = bases.get(index + 1).map_or(SLOTS, |next| next.first_slot);
            let before = missing.partition_point(|&place| slots[place] < base.first_slot);
            let behind = missing.partition_point(|&place| slots[place] < end);
            let here = &missing[before..behind];
            missing = &missing[behind..];
            if here.is_empty() {
                continue;
            }
            let column = self.decoded(*base)?;
            let (len, view) = (column.len(), column.view());
            let may_be_container = view.may_be_container();
            for &place in here {
                let at = usize::from(slots[place] - base.first_slot);
                if at < len {
                    let state = view.get(at)?;
                    states[place] = if may_be_container { self.vet(state)? } else { state };
                }
            }
        }
        Ok(())
    }
}
