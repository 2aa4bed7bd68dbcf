//! Reads the states of some consecutive slots of a column at once.

use std::ops::Range;

use crate::encoding::{Column, RunPiece};
use crate::error::Result;
use crate::state::Datum;
use crate::tree::disk::LargeGroup;
use crate::tree::group::{ColumnId, Fault, SLOTS};

/// States that are being gathered: those of the slots from `first` on.
pub(crate) struct Gathered<'s, 'a> {
    pub(crate) first: u16,
    pub(crate) states: &'s mut [Datum<'a>],
    /// By slot, whether its state was found; beyond the last as if it was.
    pub(crate) found: &'s mut u128,
}

impl LargeGroup {
    /// Finds the states at a revision that were not found yet: of each slot its newest change, else
    /// its first state.
    pub(crate) fn gather<'a>(
        &'a self,
        column: ColumnId,
        revision: u32,
        mut gathered: Gathered<'_, 'a>,
    ) -> Result<(), Fault> {
        if let Some((index, runs)) = self.runs(column) {
            for piece in runs.back_from(revision) {
                let piece = piece.map_err(|revision| self.missing_runs(index, revision))?;
                self.gather_changes(piece, revision, &mut gathered)?;
                if gathered.is_done() {
                    return Ok(());
                }
                if piece.is_complete() {
                    break;
                }
            }
        }
        let bases = self.disk.bases(column);
        let before = bases.partition_point(|base| base.first_slot <= gathered.first);
        for (index, base) in bases.iter().enumerate().skip(before.saturating_sub(1)) {
            if base.first_slot >= gathered.end() {
                break;
            }
            let end = bases.get(index + 1).map_or(SLOTS, |next| next.first_slot);
            let column = self.decoded(*base)?;
            self.gather_first((base.first_slot, column), end, &mut gathered)?;
        }
        Ok(())
    }

    fn gather_changes<'a>(
        &'a self,
        piece: &'a RunPiece,
        revision: u32,
        gathered: &mut Gathered<'_, 'a>,
    ) -> Result<()> {
        if let Some(states) = piece.as_first_states(revision) {
            return self.gather_first(states, SLOTS, gathered);
        }
        for change in piece.states(gathered.first..gathered.end(), revision) {
            if let Some((slot, state)) = change?
                && let Some(missing) = gathered.missing(slot)
            {
                *missing = self.vet(state)?;
            }
        }
        Ok(())
    }

    /// Finds states among those of the slots from one on up to `end`.
    fn gather_first<'a>(
        &'a self,
        (first, column): (u16, &'a Column),
        end: u16,
        gathered: &mut Gathered<'_, 'a>,
    ) -> Result<()> {
        let len = u16::try_from(column.len()).unwrap_or(u16::MAX);
        let end = end.min(first.saturating_add(len)).min(gathered.end());
        let column = column.view();
        let mut from = first.max(gathered.first);
        while let Some(run) = gathered.missing_run(from..end) {
            let missing = gathered.states_of(&run);
            column.fill(usize::from(run.start - first), missing)?;
            if column.may_be_container() {
                missing.iter().try_for_each(|state| self.vet(*state).map(drop))?;
            }
            gathered.note_found(&run);
            from = run.end;
        }
        Ok(())
    }
}

impl<'a> Gathered<'_, 'a> {
    fn end(&self) -> u16 {
        let len = u16::try_from(self.states.len()).unwrap_or(u16::MAX);
        self.first.saturating_add(len)
    }

    fn is_done(&self) -> bool {
        *self.found == u128::MAX
    }

    /// Where the state of a slot goes that is now found, if it was missing.
    #[inline]
    fn missing(&mut self, slot: u16) -> Option<&mut Datum<'a>> {
        let index = slot.checked_sub(self.first)?;
        let state = self.states.get_mut(usize::from(index))?;
        let bit = 1_u128.checked_shl(index.into())?;
        if *self.found & bit != 0 {
            return None;
        }
        *self.found |= bit;
        Some(state)
    }

    /// The next of some slots whose states were not found.
    fn missing_run(&self, slots: Range<u16>) -> Option<Range<u16>> {
        let skipped = slots.start.checked_sub(self.first)?;
        let missing = !*self.found & u128::MAX.checked_shl(skipped.into())?;
        let start = missing.trailing_zeros();
        let len = missing.checked_shr(start)?.trailing_ones();
        let slot = |index: u32| self.first.saturating_add(u16::try_from(index).unwrap_or(u16::MAX));
        let run = slot(start)..slot(start + len).min(slots.end);
        (!run.is_empty()).then_some(run)
    }

    /// Notes that the states of some of the slots were found.
    fn note_found(&mut self, slots: &Range<u16>) {
        let len = u32::from(slots.end - slots.start);
        let above = u128::MAX.checked_shl(len).unwrap_or(0);
        *self.found |= !above << (slots.start - self.first);
    }

    /// Where the states of some of the slots go.
    fn states_of(&mut self, slots: &Range<u16>) -> &mut [Datum<'a>] {
        let at = |slot: u16| usize::from(slot - self.first);
        &mut self.states[at(slots.start)..at(slots.end)]
    }
}

#[cfg(test)]
mod tests {
    use crate::{CommitOptions, Database, Options, Revision};

    /// More than one row group, with changes here and there in each round, and one everywhere.
    fn text(round: usize) -> String {
        let item = |id: usize| {
            // A change stays until the same item is changed again.
            let last =
                |every: usize| (1..=round).rev().find(|round| (id + round).is_multiple_of(every));
            let (name, n) = (last(501).unwrap_or(0), last(97).unwrap_or(0));
            format!(r#"{{"id":{id},"name":"item {name}","n":{n},"all":{round}}}"#)
        };
        let items: Vec<String> = (0..9_000).map(item).collect();
        format!(r#"{{"round":{round},"items":[{}]}}"#, items.join(","))
    }

    #[test]
    fn a_document_that_changed_in_many_segments_is_read_as_of_each_revision() {
        const ROUNDS: usize = 5;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        {
            let db = Database::open(&path, Options::default()).unwrap();
            let document = db.create_document("d").unwrap();
            for round in 0..=ROUNDS {
                document.put(text(round), &CommitOptions::default()).unwrap();
                db.checkpoint().unwrap();
            }
            drop(document);
            db.close().unwrap();
        }
        let mut order: Vec<usize> = (0..=ROUNDS).collect();
        for turn in 0..3 {
            // Nothing is in memory, and then what other revisions needed.
            let db = Database::open(&path, Options::default()).unwrap();
            let document = db.document("d").unwrap();
            for &round in &order {
                let then = document.at(Revision(round as u64 + 1)).unwrap();
                assert!(then.to_json().unwrap() == text(round), "revision of round {round}");
            }
            order.rotate_left(turn + 1);
            order.reverse();
        }
    }
}
