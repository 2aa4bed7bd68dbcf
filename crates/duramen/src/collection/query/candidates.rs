//! The records that a filter chooses, in the order of the ordinals or the reverse: those that an
//! index names, each looked at, or else by column, a row group at a time.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::elements::{ElementTest, RecordSlots};
use super::filter::{Expression, FieldTest};
use super::lookup::Behind;
use super::{QueryCounts, RecordView};
use crate::error::Result;
use crate::jsonpath::place::At;
use crate::limits::ROW_GROUP_SLOTS;
use crate::tree::conditions::{Bits, Condition, GroupScan, Verdict};

/// Records whose values are gathered together.
pub(super) const MANY: usize = 1_024;

/// Fewer records than these are looked at by themselves, whatever columns can tell of their arrays.
const LOOKED_AT_MAX: u32 = if cfg!(test) { 2 } else { 32 };

/// A walk over the records of a collection.
#[derive(Debug)]
pub(super) struct Candidates {
    expression: Option<Arc<Expression>>,
    condition: Condition<FieldTest>,
    /// What it is to be told, by numbers.
    elements: Vec<ElementTest>,
    is_reverse: bool,
    /// What indexes name; none where all are looked at.
    named: Option<std::vec::IntoIter<u64>>,
    /// Ordinals that were not looked at.
    ahead: Range<u64>,
    /// The ordinal of slot 0 of the row group looked at last.
    first: u64,
    /// What is left of it.
    chosen: std::vec::IntoIter<u16>,
    is_unsure: Bits,
    behind: Behind,
    /// Whether nobody wants them any more, if somebody else may know.
    is_left: Option<Arc<AtomicBool>>,
}

impl Candidates {
    /// The records among some ordinals that a filter chooses.
    pub(super) fn new(
        view: &RecordView,
        expression: Option<Arc<Expression>>,
        range: Range<u64>,
        is_reverse: bool,
    ) -> Result<Self> {
        let ahead = range.start..range.end.min(view.end()?);
        Ok(Self::of(expression, ahead, is_reverse))
    }

    /// The same, where no others than some in their order can be chosen.
    pub(super) fn among(
        named: Vec<u64>,
        expression: Option<Arc<Expression>>,
        range: &Range<u64>,
        is_reverse: bool,
    ) -> Self {
        let mut named = named;
        named.retain(|ordinal| range.contains(ordinal));
        Self { named: Some(named.into_iter()), ..Self::of(expression, 0..0, is_reverse) }
    }

    fn of(expression: Option<Arc<Expression>>, ahead: Range<u64>, is_reverse: bool) -> Self {
        let mut elements = Vec::new();
        let condition = match &expression {
            Some(expression) => expression.condition(&mut elements),
            None => Condition::Always(true),
        };
        Self {
            expression,
            condition,
            elements,
            is_reverse,
            named: None,
            ahead,
            first: 0,
            chosen: Vec::new().into_iter(),
            is_unsure: Bits::none(),
            behind: Behind::default(),
            is_left: None,
        }
    }

    /// The same, in place of indexes that are behind.
    pub(super) fn instead_of(self, behind: Behind) -> Self {
        Self { behind, ..self }
    }

    /// The next record's ordinal.
    pub(super) fn next(
        &mut self,
        view: &RecordView,
        counts: &mut QueryCounts,
    ) -> Result<Option<u64>> {
        while !self.is_left()
            && let Some(named) = &mut self.named
        {
            let Some(ordinal) = next(named, self.is_reverse) else { return Ok(None) };
            if self.is_chosen(view, ordinal, counts)? {
                return Ok(Some(ordinal));
            }
        }
        loop {
            while let Some(slot) = next(&mut self.chosen, self.is_reverse) {
                let ordinal = self.first + u64::from(slot);
                if !self.is_unsure.has(slot) {
                    return Ok(Some(ordinal));
                }
                if self.is_chosen(view, ordinal, counts)? {
                    self.behind.count(0, 1);
                    return Ok(Some(ordinal));
                }
            }
            if self.ahead.is_empty() || self.is_left() {
                return Ok(None);
            }
            self.look(view, counts)?;
        }
    }

    /// The ordinals of the next records; none at the end.
    pub(super) fn next_many(
        &mut self,
        view: &RecordView,
        counts: &mut QueryCounts,
    ) -> Result<Option<Vec<u64>>> {
        let mut ordinals = Vec::new();
        while ordinals.len() < MANY
            && let Some(ordinal) = self.next(view, counts)?
        {
            ordinals.push(ordinal);
            self.next_sure(MANY - ordinals.len(), &mut ordinals);
        }
        Ok(Some(ordinals).filter(|ordinals| !ordinals.is_empty()))
    }

    /// Appends the ordinals of the next records, at most so many, as far as they are in order and
    /// chosen without being looked at; how many there are.
    pub(super) fn next_sure(&mut self, most: usize, ordinals: &mut Vec<u64>) -> u64 {
        let before = ordinals.len();
        if self.is_reverse {
            return 0;
        } else if let Some(named) = &mut self.named {
            if self.expression.is_none() {
                ordinals.extend(named.take(most));
            }
        } else if self.is_unsure.is_none() {
            let first = self.first;
            ordinals.extend(self.chosen.by_ref().take(most).map(|slot| first + u64::from(slot)));
        }
        (ordinals.len() - before) as u64
    }

    /// How many there are at most.
    pub(super) fn most_left(&self) -> u64 {
        let chosen = self.chosen.len() as u64;
        let ahead = self.ahead.end.saturating_sub(self.ahead.start);
        self.named.as_ref().map_or(chosen + ahead, |named| named.len() as u64)
    }

    /// Ends early once this is set.
    pub(super) fn end_by(&mut self, is_left: &Arc<AtomicBool>) {
        self.is_left = Some(Arc::clone(is_left));
    }

    fn is_left(&self) -> bool {
        self.is_left.as_ref().is_some_and(|is_left| is_left.load(Ordering::Relaxed))
    }

    fn is_chosen(&self, view: &RecordView, ordinal: u64, counts: &mut QueryCounts) -> Result<bool> {
        let Some(expression) = &self.expression else { return Ok(true) };
        counts.records += 1;
        expression.holds(view.view(), &At::Node(view.node(ordinal)))
    }

    /// Looks at the part of what is ahead that lies in the next row group.
    fn look(&mut self, view: &RecordView, counts: &mut QueryCounts) -> Result<()> {
        let group = if self.is_reverse { self.ahead.end - 1 } else { self.ahead.start };
        let group = group / ROW_GROUP_SLOTS;
        self.first = group * ROW_GROUP_SLOTS;
        let start = self.ahead.start.max(self.first);
        let end = self.ahead.end.min(self.first + ROW_GROUP_SLOTS);
        let slots = slot_of(start - self.first)..slot_of(end - self.first);
        let (live, mut verdict, is_ruled_out) = view.tree().read(|data| {
            let mut scan = GroupScan::new(data, view.path(), group, slots.clone(), view.revision());
            let live = scan.live()?;
            if live.is_none() {
                return Ok((live, Verdict::none(), false));
            }
            let verdict = scan.judge(&self.condition)?;
            Ok((live, verdict, scan.is_ruled_out()))
        })?;
        self.tell_elements(&RecordSlots { view, group, slots }, &live, &mut verdict)?;
        if is_ruled_out && verdict.candidates().is_none() {
            counts.ruled_out += 1;
        } else {
            counts.row_groups += 1;
            counts.scanned += u64::from(live.count());
        }
        let sure = verdict.holds.without(&verdict.is_unsure).and(&live);
        self.behind.count(live.count().into(), sure.count().into());
        let candidates = verdict.candidates().and(&live);
        let mut chosen = Vec::with_capacity(candidates.count() as usize);
        chosen.extend(candidates.slots());
        self.chosen = chosen.into_iter();
        self.is_unsure = verdict.is_unsure;
        if self.is_reverse {
            self.ahead.end = start;
        } else {
            self.ahead.start = end;
        }
        Ok(())
    }

    /// Judges the records again that may be chosen by the elements of arrays, if they are many.
    fn tell_elements(
        &self,
        records: &RecordSlots<'_>,
        live: &Bits,
        verdict: &mut Verdict,
    ) -> Result<()> {
        let asked = verdict.is_unsure.and(&verdict.candidates()).and(live);
        if self.elements.is_empty() || asked.count() < LOOKED_AT_MAX {
            return Ok(());
        }
        let RecordSlots { view, group, slots } = records;
        let tests = self.elements.iter();
        let told = tests.map(|test| test.judge(records, &asked)).collect::<Result<Vec<_>>>()?;
        let again = view.tree().read(|data| {
            let (path, revision) = (view.path(), view.revision());
            let scan = GroupScan::new(data, path, *group, slots.clone(), revision);
            scan.told(&told).judge(&self.condition)
        })?;
        verdict.holds = verdict.holds.without(&asked).or(&again.holds.and(&asked));
        verdict.is_unsure = again.is_unsure.and(&asked);
        Ok(())
    }
}

fn next<T>(left: &mut std::vec::IntoIter<T>, is_reverse: bool) -> Option<T> {
    if is_reverse { left.next_back() } else { left.next() }
}

fn slot_of(slot: u64) -> u16 {
    u16::try_from(slot).expect("at most 4,096")
}
