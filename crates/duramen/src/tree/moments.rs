//! Reads one column of a row group at slots that are each as of a revision of its own.
//!
//! Invariants:
//! - what is as of the newest of these revisions is read like any scan, by stretches;
//! - of an older moment the states of its slot are gone through once, however many moments the
//!   slot has.

use std::ops::{ControlFlow, Range};

use crate::error::Result;
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::conditions::has_field;
use crate::tree::data::TreeData;
use crate::tree::group::{ColumnId, DiskPart, Fault, GroupId, RowGroup};
use crate::tree::scan::{ColumnScan, Visitor};
use crate::tree::schema::Label;

/// A slot as of a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) slot: u16,
    pub(crate) revision: u32,
    /// Where the state of the slot is wanted.
    pub(crate) row: usize,
}

/// Slots of one row group, each as of a revision of its own.
#[derive(Debug)]
pub(crate) struct Moments {
    group: GroupId,
    newest: u32,
    /// Those as of the newest revision, by slot.
    last: Vec<Moment>,
    /// The others, by slot and revision.
    older: Vec<Moment>,
}

/// How long a record stood as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordSpan {
    pub(crate) slot: u16,
    /// The revision that made it so.
    pub(crate) first: u32,
    /// The revision that changed or deleted it, if one did.
    pub(crate) end: Option<u32>,
}

/// What a revision made of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RecordIs {
    Gone,
    There,
}

/// Hands on what is as of the newest revision.
struct Last<'m, F> {
    moments: &'m [Moment],
    visit: &'m mut F,
    read_bytes: usize,
}

impl Moments {
    pub(crate) fn new(group: GroupId, mut moments: Vec<Moment>) -> Self {
        moments.sort_unstable();
        let newest = moments.iter().map(|moment| moment.revision).max().unwrap_or(0);
        let (last, older) = moments.into_iter().partition(|moment| moment.revision == newest);
        Self { group, newest, last, older }
    }
}

impl<F: FnMut(&[Moment], Datum<'_>)> Last<'_, F> {
    fn visit(&mut self, slots: Range<u16>, state: Datum<'_>) {
        let first = self.moments.partition_point(|moment| moment.slot < slots.start);
        let rest = &self.moments[first..];
        let found = &rest[..rest.partition_point(|moment| moment.slot < slots.end)];
        if !found.is_empty() {
            (self.visit)(found, state);
        }
    }
}

impl<F: FnMut(&[Moment], Datum<'_>)> Visitor for Last<'_, F> {
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        self.visit(slot..slot + 1, state);
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        self.visit(slots, state);
    }

    fn reads(&mut self, bytes: usize) {
        self.read_bytes += bytes;
    }
}

impl TreeData {
    /// Visits the states of a column at some moments: several moments of one slot together if they
    /// have one state. A moment that comes again has the state that comes last; one that never
    /// comes has none. Tells how many bytes of cells were read.
    pub(crate) fn scan_moments(
        &self,
        column: u32,
        moments: &Moments,
        visit: &mut impl FnMut(&[Moment], Datum<'_>),
    ) -> Result<usize, Fault> {
        let Moments { group, newest, last, older } = moments;
        let mut read_bytes = 0;
        if let (Some(first), Some(end)) = (last.first(), last.last()) {
            let slots = first.slot..end.slot + 1;
            let scan = ColumnScan { group: *group, column, slots, revision: *newest };
            let mut visitor = Last { moments: last, visit, read_bytes };
            self.scan(&scan, &mut visitor)?;
            read_bytes = visitor.read_bytes;
        }
        let Some(found) = self.group_for_scan(*group)? else { return Ok(read_bytes) };
        let (column, mut since) = (ColumnId::Value(column), u32::MAX);
        for of_slot in older.chunk_by(|a, b| a.slot == b.slot) {
            let Some(Moment { slot, revision, .. }) = of_slot.last() else { continue };
            let mut left = of_slot;
            found.versions(column, *slot, *revision, &mut |set, state| {
                let (before, after) =
                    left.split_at(left.partition_point(|moment| moment.revision < set));
                if !after.is_empty() {
                    visit(after, state);
                }
                since = since.min(set);
                left = before;
                stop_if(left.is_empty())
            })?;
        }
        if older.is_empty() {
            return Ok(read_bytes);
        }
        // What was read for the newest moment is among it.
        Ok(read_bytes.max(found.cell_bytes(column, &(since..=*newest))?))
    }

    /// At which of some moments objects lead from the element or entry to a path of its fields: by
    /// row; and how many bytes of cells were read.
    pub(crate) fn presence_at(
        &self,
        path: PathId,
        moments: &Moments,
        rows: usize,
    ) -> Result<(Vec<bool>, usize), Fault> {
        let mut read_bytes = 0;
        let mut there = vec![true; rows];
        let mut field = path;
        while let Label::Field(_) = self.schema.label(field) {
            let parent = self.schema.path(field).parent;
            if self.schema.path(parent).space != self.schema.path(path).space {
                break;
            }
            let mut holds = vec![false; rows];
            let column = self.schema.path(parent).column;
            read_bytes += self.scan_moments(column, moments, &mut |found, state| {
                let has = matches!(state, Datum::Object(shape) if has_field(self, shape, field));
                for moment in found {
                    holds[moment.row] = has;
                }
            })?;
            there.iter_mut().zip(holds).for_each(|(there, holds)| *there &= holds);
            field = parent;
        }
        Ok((there, read_bytes))
    }

    /// Visits what stood in a column at any revision from `since` up to that of the scan.
    pub(crate) fn scan_since(
        &self,
        scan: &ColumnScan,
        since: u32,
        visitor: &mut impl Visitor,
    ) -> Result<(), Fault> {
        self.scan(scan, visitor)?;
        let Some(found) = self.group_for_scan(scan.group)? else { return Ok(()) };
        let column = ColumnId::Value(scan.column);
        if !has_changes(found, column, scan.revision)? {
            return Ok(());
        }
        for slot in scan.slots.clone() {
            found.versions(column, slot, scan.revision, &mut |set, state| {
                visitor.state(slot, state);
                stop_if(set <= since)
            })?;
        }
        Ok(())
    }

    /// How long the records of some slots stood as they were, from what stood at `since` on, up to
    /// a revision: by slot, oldest first. `paths` are those of the records and of the field that
    /// counts their versions, if any has it. Also how many bytes of cells were read.
    pub(crate) fn record_spans(
        &self,
        (path, versions): (PathId, Option<PathId>),
        (group, slots): (GroupId, Range<u16>),
        (since, head): (u32, u32),
    ) -> Result<(Vec<RecordSpan>, usize), Fault> {
        let mut spans = Vec::new();
        let Some(found) = self.group_for_scan(group)? else { return Ok((spans, 0)) };
        let record = ColumnId::Value(self.schema.path(path).column);
        let counted = versions.map(|path| ColumnId::Value(self.schema.path(path).column));
        let mut events = Vec::new();
        for slot in slots {
            events.clear();
            if let Some(counted) = counted {
                found.versions(counted, slot, head, &mut |set, state| {
                    if !state.is_absent() {
                        events.push((set, RecordIs::There));
                    }
                    stop_if(set <= since)
                })?;
            }
            if events.last().is_none_or(|&(set, _)| set > since) {
                let born = found.born(slot)?.filter(|&born| born <= head);
                events.extend(born.map(|born| (born, RecordIs::There)));
            }
            found.versions(record, slot, head, &mut |set, state| {
                if state.is_absent() {
                    events.push((set, RecordIs::Gone));
                }
                stop_if(set <= since)
            })?;
            events.sort_unstable();
            events.dedup();
            let mut is_first = true;
            for (at, &(first, is)) in events.iter().enumerate() {
                let end = events.get(at + 1).map(|&(end, _)| end);
                if is == RecordIs::Gone || end.is_some_and(|end| end <= since) {
                    continue;
                }
                // Of a record that departed no removal is left, and it may have been born as a key
                // alone.
                let is_there = !std::mem::take(&mut is_first)
                    || !found.state(record, slot, first.max(since))?.is_absent();
                if is_there {
                    spans.push(RecordSpan { slot, first, end });
                }
            }
        }
        let mut read_bytes = 0;
        for column in counted.into_iter().chain([record]) {
            read_bytes += found.cell_bytes(column, &(since..=head))?;
        }
        Ok((spans, read_bytes))
    }
}

/// Whether anything in a column was changed after it came.
fn has_changes(group: &RowGroup, column: ColumnId, revision: u32) -> Result<bool, Fault> {
    let on_disk = match &group.disk {
        DiskPart::Loaded(disk) => !disk.pieces(column, revision)?.is_empty(),
        _ => false,
    };
    let young = group.young_column(column);
    Ok(on_disk || young.is_some_and(|young| !young.changed().is_empty()))
}

fn stop_if(is_enough: bool) -> ControlFlow<()> {
    if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
