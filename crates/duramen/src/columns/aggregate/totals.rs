//! What the values of a column are together, without groups.

use duramen_kernel as kernel;
use smallvec::SmallVec;

use super::cache::Term;
use super::filter::bounds;
use super::mask::Mask;
use super::states::Sum;
use super::value::{Value, ValueKind};
use super::view::{Body, Section, View};
use crate::encoding::{Differences, Summary, Values};
use crate::tree::conditions::Bits;

/// Values among which the bounds of others are.
pub(super) type Found<'a> = SmallVec<[Value<'a>; 2]>;

/// Slots that may be taken off a summary one by one.
const LACKING_MAX: u64 = 256;

impl<'a> View<'a> {
    /// The slots of a section among some, counted from its first, without those that changed.
    pub(super) fn own(&self, section: &Section<'_>, rows: &Mask) -> Mask {
        let own = rows.clone().and(self.there.clone());
        let all = section.first..section.first + section.len;
        match own {
            Mask::All if matches!(self.patched, Mask::None) && all == self.slots => Mask::All,
            own => {
                let own = own.without(&self.patched, &self.slots).into_bits(&self.slots);
                let own = if section.first == 0 { own } else { Box::new(own.earlier(all.start)) };
                Mask::Some(own).and(Mask::Some(Box::new(Bits::of(&(0..section.len)))))
            }
        }
    }

    pub(super) fn changed(&self, rows: &Mask) -> impl Iterator<Item = Value<'a>> {
        let is_row = |slot: u16| rows.has(slot) && self.there.has(slot);
        let changed = self.patches.iter().filter(move |(slot, _)| is_row(*slot));
        changed.map(|(_, value)| *value)
    }

    /// The sum of the integers at some slots.
    pub(super) fn sum(&self, rows: &Mask) -> Sum {
        let mut all = Sum::default();
        for value in self.changed(rows).filter_map(Value::integer) {
            all.add(Sum::of(value, 1));
        }
        for section in &self.sections {
            all.add(self.section_sum(section, &self.own(section, rows)));
        }
        all
    }

    fn section_sum(&self, section: &Section<'a>, own: &Mask) -> Sum {
        let count = own.count(&(0..section.len));
        if count == 0 {
            return Sum::default();
        }
        match &section.body {
            Body::Same(value) => {
                value.integer().map_or_else(Sum::default, |value| Sum::of(value, count))
            }
            Body::Integers(values) => {
                if let Some((summary, lacking)) = self.nearly_all(section, values, own) {
                    let mut sum = Sum::of_summary(&summary, count);
                    sum.total -= lacking.into_iter().map(i128::from).sum::<i128>();
                    return sum;
                }
                self.read.set(true);
                sum_of(values, &own.bits(&(0..section.len)))
            }
            body => {
                self.read.set(true);
                let mut sum = Sum::default();
                let own = own.bits(&(0..section.len));
                for value in own.slots().filter_map(|slot| self.value(body, slot).integer()) {
                    sum.add(Sum::of(value, 1));
                }
                sum
            }
        }
    }

    /// The summary of a section of which all slots but a few are wanted, and the integers at these.
    fn nearly_all(
        &self,
        section: &Section<'_>,
        values: &Values<'_>,
        own: &Mask,
    ) -> Option<(Summary, Vec<i64>)> {
        let slots = 0..section.len;
        if own.count(&slots) + LACKING_MAX < u64::from(section.len) {
            return None;
        }
        let summary = section.summary()?;
        let mut lacking = Vec::new();
        if let Mask::Some(own) = own {
            let others = Bits::of(&slots).without(own);
            lacking.extend(others.slots().filter_map(|slot| values.get(slot.into())));
            self.read.set(self.read.get() || !lacking.is_empty());
        }
        Some((summary, lacking))
    }

    /// Values at some slots, the least and the greatest among them.
    pub(super) fn bounds(&self, rows: &Mask) -> Found<'a> {
        if self.kind == ValueKind::Float {
            return self.float_bounds(rows);
        }
        let are_integers =
            self.sections.iter().all(|section| matches!(section.body, Body::Integers(_)));
        if !are_integers {
            return self.distinct(rows).into_iter().map(|(_, value)| value).collect();
        }
        let mut found: Found<'a> = self.changed(rows).collect();
        for section in &self.sections {
            let Body::Integers(values) = &section.body else { continue };
            let own = self.own(section, rows);
            let count = own.count(&(0..section.len));
            if count == 0 {
                continue;
            }
            let known = self.nearly_all(section, values, &own).and_then(|(summary, lacking)| {
                let bounds = [i64::try_from(summary.min).ok()?, i64::try_from(summary.max).ok()?];
                // Of several that are the least one may have stayed.
                lacking.iter().all(|value| !bounds.contains(value)).then_some(bounds)
            });
            let bounds = known.or_else(|| {
                self.read.set(true);
                bounds_of(values, &own.bits(&(0..section.len))).map(<[i64; 2]>::from)
            });
            found.extend(bounds.into_iter().flatten().map(Value::Int));
        }
        found
    }

    /// The distinct values at some slots, each with what a dictionary calls it.
    pub(super) fn distinct(&self, rows: &Mask) -> Vec<(Option<Term<'a>>, Value<'a>)> {
        if let [section] = &self.sections[..]
            && let Body::Coded(_, states) = &section.body
            && self.own(section, rows).count(&(0..section.len)) == u64::from(section.len)
        {
            // The states of a cell are those that its slots have.
            let terms = states.terms();
            let term = |code| terms.and_then(|terms| terms.get(code));
            let states = states.iter().enumerate().map(|(code, state)| (term(code), state));
            return self.changed(rows).map(|value| (None, value)).chain(states).collect();
        }
        let rows = rows.bits(&self.slots);
        let coding = self.coding(&rows);
        let counts = coding.codes.counts(coding.values.len(), &rows);
        let found = coding.values.iter().enumerate().zip(counts).filter(|(_, count)| *count > 0);
        found.map(|((code, value), _)| (coding.term(code), *value)).collect()
    }
}

pub(super) fn sum_of(values: &Values<'_>, own: &Bits) -> Sum {
    let count = kernel::count(&own.0);
    let most = bounds(values)
        .map_or(1 << 63, |(least, most)| least.unsigned_abs().max(most.unsigned_abs()));
    let reach = u128::from(most) * u128::from(count);
    let sum = |above: u128| {
        let above = i128::try_from(above).unwrap_or(i128::MAX);
        i128::from(values.base) * i128::from(count) + above
    };
    let total = match values.differences {
        _ if values.step != 0 => {
            let own = own.slots().filter_map(|slot| values.get(slot.into()));
            own.map(i128::from).sum()
        }
        Differences::None => sum(0),
        Differences::Half(bytes) => {
            let mut unpacked = [0; 4_096];
            kernel::unpack_halves(bytes, &mut unpacked[..values.len.min(4_096)]);
            sum(kernel::masked_sum(&unpacked, &own.0))
        }
        Differences::One(all) => sum(kernel::masked_sum(all, &own.0)),
        Differences::Two(all) => sum(kernel::masked_sum(all, &own.0)),
        Differences::Four(all) => sum(kernel::masked_sum(all, &own.0)),
        Differences::Eight(all) => sum(kernel::masked_sum(all, &own.0)),
    };
    Sum { count, total, reach }
}

/// The least and the greatest of the values at some slots.
pub(super) fn bounds_of(values: &Values<'_>, own: &Bits) -> Option<(i64, i64)> {
    let above =
        match values.differences {
            Differences::One(all) if values.step == 0 => kernel::masked_bounds(all, &own.0),
            Differences::Two(all) if values.step == 0 => kernel::masked_bounds(all, &own.0),
            Differences::Four(all) if values.step == 0 => kernel::masked_bounds(all, &own.0),
            Differences::Eight(all) if values.step == 0 => kernel::masked_bounds(all, &own.0),
            _ => {
                let mut own = own.slots().filter_map(|slot| values.get(slot.into()));
                let first = own.next()?;
                return Some(own.fold((first, first), |(least, most), value| {
                    (least.min(value), most.max(value))
                }));
            }
        };
    let (least, most) = above?;
    let value = |above: u64| values.base.wrapping_add(above.cast_signed());
    Some((value(least), value(most)))
}
