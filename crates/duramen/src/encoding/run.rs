//! Run pieces: changes of the slots of one chunk, by slot and then by revision.
//!
//! A *complete* piece begins a span of revisions: beside its own changes it repeats the newest
//! earlier change of every slot that has one. So a read that comes to it has its answer, and a
//! history goes on from there at the revision of that change, however many pieces lie between.
//!
//! Invariants:
//! - an encoded piece has at least one change of its own and no slot changes twice in a revision;
//! - of each slot a complete piece repeats one change at most, and it is the slot's first.

use std::ops::Range;

use bytes::Bytes;

use super::column::{Column, encode_column};
use super::integers::Integers;
use super::reader::{Parsed, Reader, corrupt, unreadable};
use super::summary::Summary;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{ROW_GROUP_SLOTS, RUN_PIECE_CHANGES_MAX};
use crate::state::Datum;

/// Counts of changes and slots take two bytes each, else one.
const WIDE: u8 = 1;
/// Slots change several times, so that the piece says where the run of each ends.
const RUNS: u8 = 1 << 1;
/// Changes are of several revisions, so that the piece names the first and the last of its own.
const REVISIONS: u8 = 1 << 2;
/// The piece repeats the newest change of each slot before its own first revision.
const COMPLETE: u8 = 1 << 3;

/// What a slot is called where it does not decode.
const SLOT: &str = "slot of a run piece";

/// Changes that a piece can have: its own and those it repeats.
const CHANGES_MAX: usize = 2 * RUN_PIECE_CHANGES_MAX;

const _: () = assert!(ROW_GROUP_SLOTS == RUN_PIECE_CHANGES_MAX as u64);

/// A view of an encoded run piece.
#[derive(Debug, Clone)]
pub(crate) struct RunPiece {
    cell: Bytes,
    is_complete: bool,
    first_revision: u32,
    last_revision: u32,
    slots: Integers,
    /// Where the run of each slot ends; none if each slot changes once.
    ends: Option<Integers>,
    revisions: Integers,
    values: Column,
}

/// A change in a run piece: slot, revision, state from then on.
pub(crate) type RunChange<'a> = (u16, u32, Datum<'a>);

/// Appends the encoding of changes.
///
/// # Panics
/// If there are none or more than [`RUN_PIECE_CHANGES_MAX`], or they are not in rising order of
/// slot and revision.
pub(crate) fn encode_run(changes: &[RunChange<'_>], out: &mut Vec<u8>) {
    let first = changes.iter().map(|change| change.1).min().unwrap_or_default();
    encode(changes, (first, false), out);
}

/// Appends the encoding of a complete piece: the changes from revision `first` on, and of each
/// slot that changed before the newest such change.
///
/// # Panics
/// As [`encode_run`], where only changes from `first` on count, or if one of these is not in it.
pub(crate) fn encode_complete_run(changes: &[RunChange<'_>], first: u32, out: &mut Vec<u8>) {
    assert!(changes.iter().any(|change| change.1 == first), "no change of revision {first}");
    encode(changes, (first, true), out);
}

fn encode(changes: &[RunChange<'_>], (first, is_complete): (u32, bool), out: &mut Vec<u8>) {
    let len = u16::try_from(changes.len()).unwrap_or(u16::MAX);
    let own = changes.iter().filter(|change| change.1 >= first).count();
    assert!((1..=RUN_PIECE_CHANGES_MAX).contains(&own), "{own} changes in a piece");
    let in_order = changes.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1));
    assert!(in_order, "the changes of a run piece are not in order");
    let runs = || changes.chunk_by(|a, b| a.0 == b.0);
    let slots = runs().filter_map(|run| run.first()).map(|change| i64::from(change.0));
    let slots = slots.collect::<Vec<_>>();
    let revisions = changes.iter().map(|change| i64::from(change.1)).collect::<Vec<_>>();
    let last = revisions.iter().copied().max().unwrap_or_default();
    let several = slots.len() < changes.len();
    let wide = len > u16::from(u8::MAX);
    let has_bounds = is_complete || i64::from(first) < last;
    let flag = |has: bool, flag: u8| if has { flag } else { 0 };
    let bounds = flag(has_bounds, REVISIONS) | flag(is_complete, COMPLETE);
    out.push(flag(wide, WIDE) | flag(several, RUNS) | bounds);
    let count_bytes = 1_usize.saturating_add(usize::from(wide));
    out.extend(len.to_le_bytes().iter().take(count_bytes));
    if several {
        let distinct = u16::try_from(slots.len()).unwrap_or(u16::MAX);
        out.extend(distinct.to_le_bytes().iter().take(count_bytes));
    }
    Integers::encode(&slots, out);
    if several {
        let ends = runs().scan(0_usize, |end, run| {
            *end = end.saturating_add(run.len());
            i64::try_from(*end).ok()
        });
        Integers::encode(&ends.collect::<Vec<_>>(), out);
    }
    Integers::encode(&revisions, out);
    if has_bounds {
        Integers::encode(&[i64::from(first), last], out);
    }
    encode_column(&changes.iter().map(|change| change.2).collect::<Vec<_>>(), out);
}

impl RunPiece {
    /// Reads the headers of an encoded run piece, which fills `cell`.
    pub(crate) fn parse(cell: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&cell)?;
        let (head, len) = parse_head(&mut reader)?;
        let has = |part: u8| head & part != 0;
        let distinct = if has(RUNS) { parse_count(&mut reader, has(WIDE), len)? } else { len };
        let slots = Integers::parse(&mut reader, distinct)?;
        let mut ends = None;
        if has(RUNS) {
            ends = Some(Integers::parse(&mut reader, distinct)?);
        }
        let revisions = Integers::parse(&mut reader, len)?;
        let bounds = if has(REVISIONS) { Integers::parse(&mut reader, 2)? } else { revisions };
        let bound = |index| u32::try_from(bounds.get(&cell, index)?).ok();
        let last = usize::from(has(REVISIONS));
        let (Some(first_revision), Some(last_revision)) = (bound(0), bound(last)) else {
            return Err(corrupt(reader.position(), "a revision of more than 32 bits").into());
        };
        let values = Column::parse(cell.slice(reader.position()..))?;
        if values.len() != len {
            return Err(corrupt(reader.position(), "as many states as changes are missing").into());
        }
        let is_complete = has(COMPLETE);
        Ok(Self {
            cell,
            is_complete,
            first_revision,
            last_revision,
            slots,
            ends,
            revisions,
            values,
        })
    }

    /// How many changes an encoded run piece has, read from its head alone.
    pub(crate) fn count(cell: &[u8]) -> Result<usize> {
        Ok(parse_head(&mut Reader::new(cell)?)?.1)
    }

    /// The change of an encoded run piece that has one, its own. None if it has more, or if it
    /// takes a view to be read, or does not decode: parsing it says what is wrong.
    #[inline]
    pub(crate) fn single(cell: &[u8]) -> Option<RunChange<'_>> {
        // A head without any part, and the number of changes.
        let [0, 1, rest @ ..] = cell else { return None };
        let (slot, rest) = Integers::single(rest)?;
        let (revision, rest) = Integers::single(rest)?;
        let (slot, revision) = (u16::try_from(slot).ok()?, u32::try_from(revision).ok()?);
        Some((slot, revision, Column::single(rest)?))
    }

    /// Whether the piece repeats the newest earlier change of each slot, so that a slot that is not
    /// in it never changed before its last revision.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Its own vectors of integers.
    pub(super) fn integers(&self) -> impl Iterator<Item = &Integers> {
        std::iter::once(&self.slots).chain(&self.ends).chain([&self.revisions])
    }

    /// The states, and the bytes of the cell before theirs.
    pub(super) fn values(&self) -> (&Column, usize) {
        (&self.values, self.cell.len().saturating_sub(self.values.cell_bytes()))
    }

    /// How many changes, those of earlier revisions counted in.
    pub(crate) fn len(&self) -> usize {
        self.revisions.len()
    }

    /// How many changes of its own.
    pub(crate) fn own_len(&self) -> Result<usize> {
        if !self.is_complete {
            return Ok(self.len());
        }
        let mut own = self.len();
        for place in 0..self.slots.len() {
            if self.revision(self.span(place)?.start)? < self.first_revision {
                own = own.saturating_sub(1);
            }
        }
        Ok(own)
    }

    /// The revision of the earliest change of its own.
    pub(crate) fn first_revision(&self) -> u32 {
        self.first_revision
    }

    /// Bytes of the encoded cell.
    pub(crate) fn cell_bytes(&self) -> usize {
        self.cell.len()
    }

    /// The revision of the latest change.
    pub(crate) fn last_revision(&self) -> u32 {
        self.last_revision
    }

    /// Refuses a piece of which a change does not decode or is out of order, that names other
    /// bounds than its changes have, or repeats what it should not.
    pub(crate) fn check(&self) -> Result<()> {
        self.values.check()?;
        let mut bounds = (u32::MAX, 0);
        let (mut slot_before, mut end) = (None, 0);
        for run in self.runs() {
            let (slot, span) = run?;
            if slot_before >= Some(slot) || span.start != end || span.is_empty() {
                return Err(disorder("slots"));
            }
            (slot_before, end) = (Some(slot), span.end);
            let mut before = None;
            for index in span {
                let revision = self.revision(index)?;
                if before >= Some(revision) {
                    return Err(disorder("revisions"));
                }
                let is_own = revision >= self.first_revision;
                if !is_own && (before.is_some() || !self.is_complete) {
                    return Err(disorder("repeated changes"));
                }
                before = Some(revision);
                if is_own {
                    bounds = (bounds.0.min(revision), bounds.1.max(revision));
                }
            }
        }
        if end != self.len() || bounds != (self.first_revision, self.last_revision) {
            return Err(disorder("bounds"));
        }
        Ok(())
    }

    /// The newest change of `slot` at or before `revision`: its revision and the state since.
    #[inline]
    pub(crate) fn at(&self, slot: u16, revision: u32) -> Result<Option<(u32, Datum<'_>)>> {
        self.place(slot, revision)?.map(|index| self.change(index)).transpose()
    }

    /// The state that the newest change of `slot` at or before `revision` set.
    #[inline]
    pub(crate) fn state(&self, slot: u16, revision: u32) -> Result<Option<Datum<'_>>> {
        self.place(slot, revision)?.map(|index| self.values.get(index)).transpose()
    }

    /// The index of the newest change of `slot` at or before `revision`.
    #[inline]
    fn place(&self, slot: u16, revision: u32) -> Result<Option<usize>> {
        if revision < self.first_revision {
            return Ok(None);
        }
        let run = self.run(slot)?;
        let start = run.start;
        let after = self.revisions.after(&self.cell, run, i64::from(revision));
        Ok(after.checked_sub(1).filter(|index| *index >= start))
    }

    /// The first slot and the states, if consecutive slots changed once each, all in one revision
    /// up to `revision`: such a piece can be read as first states are.
    pub(crate) fn as_first_states(&self, revision: u32) -> Option<(u16, &Column)> {
        let (first, (set, rise)) = (self.first_of_all()?, self.revisions.line()?);
        let is_set = rise == 0 && set <= i64::from(revision);
        let are_single = self.ends.is_none();
        (are_single && is_set).then_some((u16::try_from(first).ok()?, &self.values))
    }

    /// The first slot, if the others follow it without a gap.
    #[inline]
    fn first_of_all(&self) -> Option<i64> {
        let (first, step) = self.slots.line()?;
        (step == 1 || self.slots.len() == 1).then_some(first)
    }

    /// Those of `slots` that changed, rising, each with its newest state at or before `revision`;
    /// none where the slot changed only later.
    pub(crate) fn states(
        &self,
        slots: Range<u16>,
        revision: u32,
    ) -> impl Iterator<Item = Result<Option<(u16, Datum<'_>)>>> {
        let revision = i64::from(revision);
        let place_of = |slot: u16| {
            let all = 0..self.slots.len();
            self.slots.after(&self.cell, all, i64::from(slot).saturating_sub(1))
        };
        let (values, numbers) = (self.values.view(), self.slots.values(&self.cell));
        // Where all changes are of one revision, the last of each slot is its newest.
        let is_one = self.revisions.line().is_some_and(|line| line.1 == 0 && line.0 <= revision);
        (place_of(slots.start)..place_of(slots.end)).map(move |place| {
            let slot = numbers.get(place).and_then(|slot| u16::try_from(slot).ok());
            let slot = slot.ok_or_else(|| unreadable(place, self.slots.len(), SLOT))?;
            let span = self.span(place)?;
            let (start, end) = (span.start, span.end);
            let after = if is_one { end } else { self.revisions.after(&self.cell, span, revision) };
            match after.checked_sub(1).filter(|index| *index >= start) {
                Some(index) => Ok(Some((slot, values.get(index)?))),
                None => Ok(None),
            }
        })
    }

    /// The indices of the changes of `slot`, oldest first; empty if there are none.
    #[inline]
    pub(crate) fn run(&self, slot: u16) -> Result<Range<usize>> {
        let wanted = i64::from(slot);
        let place = if let Some(first) = self.first_of_all() {
            usize::try_from(wanted.wrapping_sub(first)).ok()
        } else {
            let all = 0..self.slots.len();
            let place = self.slots.after(&self.cell, all, wanted.saturating_sub(1));
            (self.slots.get(&self.cell, place) == Some(wanted)).then_some(place)
        };
        match place.filter(|place| *place < self.slots.len()) {
            Some(place) => self.span(place),
            None => Ok(0..0),
        }
    }

    /// The slots that changed, each with the indices of its changes, oldest first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Result<(u16, Range<usize>)>> {
        (0..self.slots.len()).map(|place| Ok((self.slot(place)?, self.span(place)?)))
    }

    /// What is known of the numbers among the states.
    pub(crate) fn summary(&self) -> Result<Option<Summary>> {
        self.values.summary()
    }

    /// Change `index`: its revision and the state since.
    #[inline]
    pub(crate) fn change(&self, index: usize) -> Result<(u32, Datum<'_>)> {
        Ok((self.revision(index)?, self.values.get(index)?))
    }

    /// Change `index`: its slot, its revision and the state since.
    pub(crate) fn entry(&self, index: usize) -> Result<(u16, u32, Datum<'_>)> {
        let place = match &self.ends {
            None => index,
            Some(ends) => {
                let ended = (index as u64).cast_signed();
                ends.after(&self.cell, 0..ends.len(), ended)
            }
        };
        Ok((self.slot(place)?, self.revision(index)?, self.values.get(index)?))
    }

    fn slot(&self, place: usize) -> Result<u16> {
        let slot = self.slots.get(&self.cell, place).and_then(|slot| u16::try_from(slot).ok());
        slot.ok_or_else(|| unreadable(place, self.slots.len(), SLOT))
    }

    #[inline]
    fn revision(&self, index: usize) -> Result<u32> {
        let revision = self.revisions.get(&self.cell, index);
        let revision = revision.and_then(|revision| u32::try_from(revision).ok());
        revision.ok_or_else(|| unreadable(index, self.len(), "change"))
    }

    #[inline]
    fn span(&self, place: usize) -> Result<Range<usize>> {
        let Some(ends) = &self.ends else { return Ok(place..place.saturating_add(1)) };
        let span = ends.span(&self.cell, place).filter(|span| span.end <= self.len());
        span.ok_or_else(|| unreadable(place, self.slots.len(), "run"))
    }
}

fn disorder(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the {what} of a run piece are out of order"))
}

/// The flags and the number of changes.
#[inline]
fn parse_head(reader: &mut Reader<'_>) -> Parsed<(u8, usize)> {
    let head = reader.u8()?;
    if head & !(WIDE | RUNS | REVISIONS | COMPLETE) != 0 {
        return Err(corrupt(0, "no such head of a run piece"));
    }
    Ok((head, parse_count(reader, head & WIDE != 0, CHANGES_MAX)?))
}

fn parse_count(reader: &mut Reader<'_>, wide: bool, most: usize) -> Parsed<usize> {
    let start = reader.position();
    let count = usize::from(if wide { reader.u16()? } else { u16::from(reader.u8()?) });
    if count == 0 || count > most {
        return Err(corrupt(start, "no such number of changes"));
    }
    Ok(count)
}
