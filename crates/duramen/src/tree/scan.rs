//! Reads one column of a row group in bulk, at a revision.
//!
//! A row group that was not in use is attached as a directory of cells, whatever its size, so that
//! a scan reads the cells of its columns and no others.

use std::ops::{Range, RangeInclusive};

use crate::encoding::{Column, Stretch, Summary};
use crate::error::Result;
use crate::state::Datum;
use crate::tree::data::TreeData;
use crate::tree::disk::{LargeGroup, Load};
use crate::tree::group::{ColumnId, DiskPart, Fault, GroupId, RowGroup};
use crate::tree::young::{self, Packed, YoungColumn};

/// First states that are unpacked at once.
const STATES_AT_ONCE: usize = 256;

/// Takes the states of slots. A slot that comes again has the state that comes last; a slot that
/// never comes has none.
pub(crate) trait Visitor {
    /// The state of one slot.
    fn state(&mut self, slot: u16, state: Datum<'_>);

    /// The state of consecutive slots.
    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        slots.for_each(|slot| self.state(slot, state));
    }

    /// The first states of consecutive slots, from `first` on.
    fn born(&mut self, first: u16, births: &Births<'_>) {
        for (slot, &birth) in (first..).zip(births.states) {
            self.state(slot, births.state(birth));
        }
    }

    /// A cell of first states, all of them asked for; whether its head says all there is to know.
    fn cell(&mut self, _cell: &Column) -> bool {
        false
    }

    /// The values of a cell of so many bytes are read.
    fn reads(&mut self, _bytes: usize) {}

    /// The integers of consecutive slots, from `first` on.
    fn integers(&mut self, first: u16, values: &[i64]) {
        for (slot, &value) in (first..).zip(values) {
            self.state(slot, Datum::Int(value));
        }
    }

    /// The states of consecutive slots, from `first` on, by their indexes in a list.
    fn coded(&mut self, first: u16, codes: &[i64], states: &[Datum<'_>]) {
        for (slot, &code) in (first..).zip(codes) {
            let state = usize::try_from(code).ok().and_then(|code| states.get(code));
            self.state(slot, *state.unwrap_or(&Datum::Absent));
        }
    }
}

/// Young first states, read at a revision.
pub(crate) struct Births<'a> {
    group: &'a RowGroup,
    pub(crate) states: &'a [Packed],
    pub(crate) revision: u32,
}

impl<'a> Births<'a> {
    /// The state that one of them is at the revision.
    #[inline]
    pub(crate) fn state(&self, birth: Packed) -> Datum<'a> {
        if birth.revision <= self.revision { self.group.unpack(birth) } else { Datum::Absent }
    }

    /// The text of one of them, if it is a string.
    #[inline]
    pub(crate) fn text(&self, birth: Packed) -> Option<&'a [u8]> {
        self.group.heap().text(birth)
    }
}

/// The states of one column in a row group.
#[derive(Debug, Clone)]
pub(crate) struct ColumnScan {
    pub(crate) group: GroupId,
    pub(crate) column: u32,
    pub(crate) slots: Range<u16>,
    pub(crate) revision: u32,
}

impl TreeData {
    /// Whether what is known of the numbers of a column says that none of its states is an integer
    /// in a range, nor a number that is none. False says nothing.
    pub(crate) fn is_ruled_out(
        &self,
        scan: &ColumnScan,
        range: &RangeInclusive<i64>,
    ) -> Result<bool, Fault> {
        self.kept.check(scan.revision)?;
        let column = ColumnId::Value(scan.column);
        let found = self.group_for_scan(scan.group)?;
        let Some(RowGroup { disk: DiskPart::Loaded(disk), .. }) = found else { return Ok(false) };
        if found.and_then(|found| found.young_column(column)).is_some_and(|own| !own.is_empty()) {
            return Ok(false);
        }
        let is_out = |summary: Option<Summary>| summary.is_some_and(|known| known.rules_out(range));
        for piece in disk.pieces(column, scan.revision)? {
            if !is_out(piece.summary()?) {
                return Ok(false);
            }
        }
        for (_, base) in disk.bases(column)? {
            if !is_out(base.summary()?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// A row group, of which the cells can be read by themselves.
    pub(crate) fn group_for_scan(&self, id: GroupId) -> Result<Option<&RowGroup>, Fault> {
        match self.group(id.space, id.group as usize) {
            Ok(Some(RowGroup { disk: DiskPart::NotLoaded(_), .. })) | Err(Fault::Load(_)) => {
                Err(Fault::load(Load::Directory(id)))
            }
            found => found,
        }
    }

    /// Whether the directory of a row group has to be loaded before its cells can be read.
    pub(crate) fn misses_directory(&self, id: GroupId) -> bool {
        matches!(self.group_for_scan(id), Err(Fault::Load(_)))
    }

    /// Visits the states of a column.
    pub(crate) fn scan(&self, scan: &ColumnScan, visitor: &mut impl Visitor) -> Result<(), Fault> {
        self.kept.check(scan.revision)?;
        let Some(found) = self.group_for_scan(scan.group)? else { return Ok(()) };
        if let DiskPart::Loaded(disk) = &found.disk {
            scan_disk(disk, scan, visitor)?;
        }
        if let Some(young) = found.young_column(ColumnId::Value(scan.column)) {
            scan_young((found, young), scan, visitor);
        }
        Ok(())
    }
}

fn scan_disk(
    disk: &LargeGroup,
    scan: &ColumnScan,
    visitor: &mut impl Visitor,
) -> Result<(), Fault> {
    let column = ColumnId::Value(scan.column);
    let pieces = disk.pieces(column, scan.revision)?;
    for (first, base) in disk.bases(column)? {
        let end = first.saturating_add(u16::try_from(base.len()).unwrap_or(u16::MAX));
        let slots = scan.slots.start.max(first)..scan.slots.end.min(end);
        if !slots.is_empty() {
            scan_base(disk, (first, base), slots, visitor)?;
        }
    }
    for piece in pieces.into_iter().rev() {
        visitor.reads(piece.cell_bytes());
        for change in piece.states(scan.slots.clone(), scan.revision) {
            if let Some((slot, state)) = change? {
                visitor.state(slot, disk.vet(state)?);
            }
        }
    }
    Ok(())
}

fn scan_base(
    disk: &LargeGroup,
    (first, base): (u16, &Column),
    slots: Range<u16>,
    visitor: &mut impl Visitor,
) -> Result<()> {
    let at = |slot: u16| usize::from(slot - first);
    if slots.start == first && slots.len() == base.len() && visitor.cell(base) {
        return Ok(());
    }
    visitor.reads(base.cell_bytes());
    match base.stretch() {
        Stretch::Same(state) => visitor.same(slots, disk.vet(state)?),
        Stretch::Integers(values) => {
            visitor.integers(slots.start, &values[at(slots.start)..at(slots.end)]);
        }
        Stretch::Coded(codes, states) => {
            // Neither text nor what carries nothing names anything of the schema.
            visitor.coded(slots.start, &codes[at(slots.start)..at(slots.end)], &states);
        }
        Stretch::Mixed => {
            for slot in slots {
                visitor.state(slot, disk.vet(base.get(at(slot))?)?);
            }
        }
    }
    Ok(())
}

fn scan_young(
    (group, young): (&RowGroup, &YoungColumn),
    scan: &ColumnScan,
    visitor: &mut impl Visitor,
) {
    let (first, births) = young.births_at_hand();
    let from = first.max(scan.slots.start);
    let skipped = usize::from(from - first);
    let asked = usize::from(scan.slots.end.saturating_sub(from));
    let asked = skipped..births.len().min(skipped + asked);
    let mut born = |from: u16, states: &[Packed]| {
        visitor.born(from, &Births { group, states, revision: scan.revision });
    };
    match births {
        _ if asked.is_empty() => {}
        young::Births::Wide(births) => born(from, &births[asked]),
        young::Births::Narrow(births) => {
            let mut room = [Packed::ABSENT; STATES_AT_ONCE];
            for from in (from..).step_by(STATES_AT_ONCE).take(asked.len().div_ceil(STATES_AT_ONCE))
            {
                let states = births.unpack(usize::from(from - first)..asked.end, &mut room);
                born(from, states);
            }
        }
    }
    for (slot, _) in young.changed() {
        if scan.slots.contains(&slot)
            && let Some(state) = young.at(slot, scan.revision)
        {
            visitor.state(slot, group.unpack(state));
        }
    }
}
