//! What a filter asks of the elements of arrays, judged by column for many records at once.
//!
//! The elements of an array that was saved at once follow each other in an ordinal space of their
//! own, and those of records that were saved one after the other do so, too. So the arrays of a row
//! group of records have their elements in few row groups, whose columns are tested as those of
//! records are.
//!
//! Invariant: elements that are looked at are in the order of an array, and so are there.

use std::ops::Range;
use std::sync::Arc;

use super::RecordView;
use super::filter::FieldTest;
use super::test::Test;
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::order::OrderCursor;
use crate::state::Extent;
use crate::tree::conditions::{Bits, Condition, GroupScan, Verdict};

/// Slots that are read for an element, at most: where elements lie further apart, the records that
/// have them are looked at.
const SLOTS_PER_ELEMENT: usize = 32;

/// Parts of arrays that are judged together at most.
const PARTS_MAX: usize = 65_536;

/// A question about one element, of which it is enough that one says yes.
#[derive(Debug)]
pub(super) struct ElementTest {
    /// The names that lead to the array from a record.
    array: Vec<Arc<str>>,
    /// What is asked of an element.
    condition: Condition<FieldTest>,
}

/// Some slots of a row group of records.
pub(super) struct RecordSlots<'v> {
    pub(super) view: &'v RecordView,
    pub(super) group: u64,
    pub(super) slots: Range<u16>,
}

/// Elements of the array of one record that lie in one row group.
struct Part {
    group: u64,
    slots: Range<u16>,
    /// The slot of the record.
    record: u16,
}

impl ElementTest {
    /// A test of the values that names lead to from the elements of the array that others lead to.
    pub(super) fn new(array: Vec<Arc<str>>, inner: Vec<Arc<str>>, test: &Test) -> Self {
        Self { array, condition: Condition::Column(inner, FieldTest::Of(test.clone())) }
    }

    /// Whether one of their elements is as asked, for those of some records that are asked for.
    pub(super) fn judge(&self, records: &RecordSlots<'_>, asked: &Bits) -> Result<Verdict> {
        let RecordSlots { view, group, slots } = records;
        let arrays = view.tree().read(|data| {
            let (path, revision) = (view.path(), view.revision());
            GroupScan::new(data, path, *group, slots.clone(), revision).arrays(&self.array)
        })?;
        let mut verdict = Verdict { holds: Bits::none(), is_unsure: arrays.is_unsure };
        let Some(elements) = arrays.elements else { return Ok(verdict) };
        let mut parts = Vec::new();
        for (record, sequence) in arrays.sequences.into_iter().filter(|(slot, _)| asked.has(*slot))
        {
            let mut cursor = OrderCursor::new(sequence);
            while let Some(extent) = cursor.next(&&view.tree().orders)? {
                add_parts(record, extent, &mut parts);
                if parts.len() >= PARTS_MAX {
                    self.judge_all((view, elements), &mut parts, &mut verdict)?;
                }
            }
        }
        self.judge_all((view, elements), &mut parts, &mut verdict)?;
        verdict.is_unsure = verdict.is_unsure.without(&verdict.holds);
        Ok(verdict)
    }

    /// Judges some elements, row group by row group.
    fn judge_all(
        &self,
        of: (&RecordView, PathId),
        parts: &mut Vec<Part>,
        verdict: &mut Verdict,
    ) -> Result<()> {
        parts.sort_unstable_by_key(|part| (part.group, part.slots.start));
        let groups = parts.chunk_by(|a, b| a.group == b.group);
        for parts in groups {
            self.judge_parts(of, parts, verdict)?;
        }
        parts.clear();
        Ok(())
    }

    /// Judges elements of one row group, in their order.
    fn judge_parts(
        &self,
        (view, elements): (&RecordView, PathId),
        parts: &[Part],
        verdict: &mut Verdict,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let slots = first.slots.start..last.slots.end;
        let count: usize = parts.iter().map(|part| part.slots.len()).sum();
        if slots.len() > SLOTS_PER_ELEMENT * count {
            for part in parts {
                verdict.is_unsure.assign(part.record, true);
            }
            return Ok(());
        }
        let of_elements = view.tree().read(|data| {
            let mut scan =
                GroupScan::new(data, elements, first.group, slots.clone(), view.revision());
            scan.judge(&self.condition)
        })?;
        let sure = of_elements.holds.without(&of_elements.is_unsure);
        for Part { slots, record, .. } in parts {
            if slots.clone().any(|slot| sure.has(slot)) {
                verdict.holds.assign(*record, true);
            } else if slots.clone().any(|slot| of_elements.is_unsure.has(slot)) {
                verdict.is_unsure.assign(*record, true);
            }
        }
        Ok(())
    }
}

/// Adds the parts in which elements that follow each other lie in row groups.
fn add_parts(record: u16, extent: Extent, parts: &mut Vec<Part>) {
    let (mut first, end) = (extent.first, extent.first + u64::from(extent.count));
    while first < end {
        let group = first / ROW_GROUP_SLOTS;
        let begin = group * ROW_GROUP_SLOTS;
        let next = end.min(begin + ROW_GROUP_SLOTS);
        parts.push(Part { group, slots: slot(first - begin)..slot(next - begin), record });
        first = next;
    }
}

fn slot(slot: u64) -> u16 {
    u16::try_from(slot).expect("at most 4,096")
}
