//! Filters over the elements of an array, or the entries of a map, by column.
//!
//! A filter that looks at fields only by their names, such as `$[?@.age > 40 && @.active]`, is
//! evaluated a row group at a time over the columns of these fields, for the live ranges of
//! ordinals that the order holds. Where a column cannot tell (a field in an object that outgrew its
//! shape, a subtree stored whole, a value stored apart) the child is looked at by itself.

use std::ops::Range;
use std::sync::Arc;

use super::filter::Context;
use super::pattern::Pattern;
use super::place::{At, Child, Children, Items, Opened, View};
use super::syntax::{
    Comparable, Logical, Operator, Origin, Path, PatternSource, Selector, Singular, SingularStep,
};
use super::value::Value;
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::state::{ApartKind, Datum};
use crate::tree::conditions::{Bits, ColumnTest, Condition, GroupScan, Integers, Verdict};
use crate::tree::data::node;

/// Fewer children than these are looked at one by one.
const SCANNED_ITEMS_MIN: u64 = 32;

/// What a column says of a child.
#[derive(Debug)]
enum Test {
    Exists,
    Compare(Operator, Value),
    Matches(Arc<Pattern>),
}

/// A filter that goes over an array or a map.
#[derive(Debug)]
pub(super) struct Scan {
    condition: Condition<Test>,
    items: Items,
    /// The path of the children.
    path: PathId,
    /// Ordinals of the extent that are not yet looked at.
    ahead: Range<u64>,
    /// Items before them.
    index: u64,
    /// What is left of the row group looked at last.
    hits: Hits,
}

/// The children of one row group that are chosen, or may be.
#[derive(Debug)]
struct Hits {
    candidates: Bits,
    is_unsure: Bits,
    word: usize,
    /// The ordinal of slot 0, and the index of the item there, as if it were one.
    first: u64,
    index: u64,
}

impl Scan {
    /// A scan of a container's children; none if the filter is not about columns, or there are
    /// few children.
    pub(super) fn of(
        context: Context<'_>,
        opened: &Opened,
        filter: &Logical,
    ) -> Result<Option<Self>> {
        let (container, is_map) = match opened {
            Opened::Array(array, _) => (*array, false),
            Opened::Map(map, _) => (*map, true),
            _ => return Ok(None),
        };
        let len = context.view.len(opened)?.unwrap_or(0);
        let Children::Items(items) = Children::of(opened) else { return Ok(None) };
        let info = context.view.tree.data.read().schema.path(container.path()).clone();
        let path = if is_map { info.entry } else { info.element };
        let (Some(path), true) = (path, len >= SCANNED_ITEMS_MIN) else { return Ok(None) };
        let Some(condition) = Condition::of(context, filter)? else { return Ok(None) };
        let hits =
            Hits { candidates: Bits::none(), is_unsure: Bits::none(), word: 0, first: 0, index: 0 };
        Ok(Some(Self { condition, items, path, ahead: 0..0, index: 0, hits }))
    }

    /// The next child that the filter chooses.
    pub(super) fn next(&mut self, context: Context<'_>, filter: &Logical) -> Result<Option<Child>> {
        loop {
            while let Some((slot, is_unsure)) = self.hits.next() {
                let ordinal = self.hits.first + slot;
                let at = At::Node(node(self.path, ordinal));
                let index = (!self.items.is_map).then(|| self.hits.index.wrapping_add(slot));
                if !is_unsure || filter.holds(context, &context.view.entered(&at)?)? {
                    return Ok(Some(Child { at, index }));
                }
            }
            if !self.ahead.is_empty() {
                self.look(context.view)?;
                continue;
            }
            if !self.items.next_extent(context.view)? {
                return Ok(None);
            }
            let extent = self.items.extent;
            if extent.count == 0 {
                // A field of an object that outgrew its shape is in no column of the entries.
                let path = PathId(u32::try_from(extent.first).unwrap_or(u32::MAX));
                let at = At::Node(node(path, self.items.container.ordinal().0));
                if filter.holds(context, &context.view.entered(&at)?)? {
                    return Ok(Some(Child { at, index: None }));
                }
            }
            self.ahead = extent.first..extent.first + u64::from(extent.count);
        }
    }

    /// The next element that the columns have chosen already, with its index.
    #[inline]
    pub(super) fn next_sure(&mut self) -> Option<(At, u64)> {
        if self.items.is_map {
            return None;
        }
        let slot = self.hits.next_sure()?;
        let at = At::Node(node(self.path, self.hits.first + slot));
        Some((at, self.hits.index.wrapping_add(slot)))
    }

    /// Looks at the part of what is ahead that lies in one row group.
    fn look(&mut self, view: View<'_>) -> Result<()> {
        let group = self.ahead.start / ROW_GROUP_SLOTS;
        let first = group * ROW_GROUP_SLOTS;
        let part = self.ahead.start..self.ahead.end.min(first + ROW_GROUP_SLOTS);
        let (slots, count) = (part.start - first..part.end - first, part.end - part.start);
        let slots = slot_of(slots.start)..slot_of(slots.end);
        let verdict = if count < SCANNED_ITEMS_MIN {
            Verdict { holds: Bits::none(), is_unsure: Bits::of(&slots) }
        } else {
            view.tree.read(|data| {
                let scan = GroupScan::new(data, self.path, group, slots.clone(), view.revision);
                { scan }.judge(&self.condition)
            })?
        };
        let range = Bits::of(&slots);
        self.hits = Hits {
            candidates: verdict.candidates().and(&range),
            is_unsure: verdict.is_unsure,
            word: 0,
            first,
            index: self.index.wrapping_sub(u64::from(slots.start)),
        };
        self.ahead.start = part.end;
        self.index += count;
        Ok(())
    }
}

impl Hits {
    /// The next candidate's slot, if it is in the word looked at and need not be looked at itself.
    #[inline]
    fn next_sure(&mut self) -> Option<u64> {
        let word = self.candidates.0.get_mut(self.word).filter(|word| **word != 0)?;
        let bit = word.trailing_zeros();
        if self.is_unsure.0[self.word] >> bit & 1 != 0 {
            return None;
        }
        *word &= *word - 1;
        Some(self.word as u64 * 64 + u64::from(bit))
    }

    /// The next candidate's slot, and whether it has to be looked at.
    fn next(&mut self) -> Option<(u64, bool)> {
        loop {
            let word = self.candidates.0.get_mut(self.word)?;
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                let is_unsure = self.is_unsure.0[self.word] >> bit & 1 != 0;
                return Some((self.word as u64 * 64 + u64::from(bit), is_unsure));
            }
            self.word += 1;
        }
    }
}

impl Condition<Test> {
    /// The filter as tests of columns, if it is about nothing else.
    fn of(context: Context<'_>, filter: &Logical) -> Result<Option<Self>> {
        let each = |parts: &[Logical]| {
            parts.iter().map(|part| Self::of(context, part)).collect::<Result<Option<Vec<_>>>>()
        };
        Ok(match filter {
            Logical::Or(parts) => each(parts)?.map(Self::Any),
            Logical::And(parts) => each(parts)?.map(Self::All),
            Logical::Not(inner) => {
                Self::of(context, inner)?.map(|inner| Self::Not(Box::new(inner)))
            }
            Logical::Exists(path) if path.origin == Origin::Root => {
                Some(Self::Always(filter.holds(context, context.root)?))
            }
            Logical::Exists(path) => names(path).map(|names| Self::Column(names, Test::Exists)),
            Logical::Compare(left, operator, right) => {
                let sides = match (field(left), field(right)) {
                    (Some(names), None) => Some((names, *operator, right)),
                    (None, Some(names)) => Some((names, operator.exchanged(), left)),
                    _ => None,
                };
                let Some((names, operator, other)) = sides else { return Ok(None) };
                constant(context, other)?
                    .map(|value| Self::Column(names, Test::Compare(operator, value)))
            }
            Logical::Matches(matching) => match (field(&matching.text), &matching.pattern) {
                (Some(names), PatternSource::Literal(pattern)) => {
                    Some(Self::Column(names, Test::Matches(Arc::clone(pattern))))
                }
                _ => None,
            },
        })
    }
}

/// The names of a query from the child down, if it is nothing but names.
fn names(path: &Path) -> Option<Vec<Arc<str>>> {
    let only = |segment: &super::syntax::Segment| match &*segment.selectors {
        [Selector::Name(name)] if !segment.is_descendant => Some(Arc::clone(name)),
        _ => None,
    };
    path.segments.iter().map(only).collect()
}

/// The same for what is compared.
fn field(side: &Comparable) -> Option<Vec<Arc<str>>> {
    let Comparable::Singular(Singular { origin: Origin::Current, steps }) = side else {
        return None;
    };
    let name = |step: &SingularStep| match step {
        SingularStep::Name(name) => Some(Arc::clone(name)),
        SingularStep::Index(_) => None,
    };
    steps.iter().map(name).collect()
}

/// The scalar that is the same for every child.
fn constant(context: Context<'_>, side: &Comparable) -> Result<Option<Value>> {
    let is_constant = match side {
        Comparable::Literal(_) => true,
        Comparable::Singular(singular) => singular.origin == Origin::Root,
        _ => false,
    };
    if !is_constant {
        return Ok(None);
    }
    let value = side.value(context, context.root)?;
    Ok(Some(value).filter(|value| value.datum().is_some()))
}

impl ColumnTest for Test {
    fn holds_for_missing(&self) -> bool {
        match self {
            Self::Compare(operator, value) => {
                value.datum().is_some_and(|value| operator.holds(Datum::Absent, value))
            }
            Self::Exists | Self::Matches(_) => false,
        }
    }

    fn verdict(&self, state: Datum<'_>) -> Option<bool> {
        let is_container =
            matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. });
        match (self, state) {
            // An array or object equals no scalar.
            _ if is_container || state.is_container() => {
                Some(matches!(self, Self::Exists | Self::Compare(Operator::NotEqual, _)))
            }
            (_, Datum::Apart { .. }) => None,
            (Self::Exists, state) => Some(!state.is_absent()),
            (Self::Matches(pattern), Datum::Text { bytes, .. }) => {
                Some(pattern.matches(&String::from_utf8_lossy(bytes)))
            }
            (Self::Matches(_), _) => Some(false),
            (Self::Compare(operator, value), state) => {
                value.datum().map(|value| operator.holds(state, value))
            }
        }
    }

    fn integers(&self) -> Option<Integers> {
        let Self::Compare(operator, Value::Int(value)) = self else { return None };
        let value = *value;
        let (range, are_inside) = match operator {
            Operator::Equal => (value..=value, true),
            Operator::NotEqual => (value..=value, false),
            Operator::LessOrEqual => (i64::MIN..=value, true),
            Operator::Greater => (i64::MIN..=value, false),
            Operator::GreaterOrEqual => (value..=i64::MAX, true),
            Operator::Less => (value..=i64::MAX, false),
        };
        Some(Integers { range, are_inside })
    }

    fn is_of_presence(&self) -> bool {
        matches!(self, Self::Exists)
    }
}

fn slot_of(slot: u64) -> u16 {
    u16::try_from(slot).expect("at most 4,096")
}
