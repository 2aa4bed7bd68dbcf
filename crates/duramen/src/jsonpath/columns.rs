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
use super::place::{At, Child, Children, Items, Opened, View, has_field};
use super::syntax::{
    Comparable, Logical, Operator, Origin, Path, PatternSource, Selector, Singular, SingularStep,
};
use super::value::Value;
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::state::{ApartKind, Datum};
use crate::tree::data::{TreeData, node};
use crate::tree::group::{Fault, GroupId};
use crate::tree::scan::{ColumnScan, Visitor};
use crate::tree::schema::index_u32;

/// Fewer children than these are looked at one by one.
const SCANNED_ITEMS_MIN: u64 = 32;

/// Slots of a row group.
const SLOTS: usize = 4_096;

const _: () = assert!(SLOTS as u64 == ROW_GROUP_SLOTS);

/// A bit for each slot of a row group.
#[derive(Debug, Clone)]
struct Bits([u64; SLOTS / 64]);

/// A filter as tests of columns.
#[derive(Debug)]
enum Condition {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    /// The same for every child.
    Always(bool),
    Column(Vec<Arc<str>>, Test),
}

/// What a column says of a child.
#[derive(Debug)]
enum Test {
    Exists,
    Compare(Operator, Value),
    Matches(Arc<Pattern>),
}

/// What is known of the slots of a row group.
struct Verdict {
    holds: Bits,
    /// The columns cannot tell.
    is_unsure: Bits,
}

/// A filter that goes over an array or a map.
#[derive(Debug)]
pub(super) struct Scan {
    condition: Condition,
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
                let space = data.schema.path(self.path).space;
                let id = GroupId { space, group: index_u32(index_of(group)) };
                let revision = view.revision;
                let slots = slots.clone();
                let levels = Vec::new();
                Group { data, path: self.path, id, slots, revision, levels }.judge(&self.condition)
            })?
        };
        let range = Bits::of(&slots);
        self.hits = Hits {
            candidates: verdict.holds.or(&verdict.is_unsure).and(&range),
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

impl Condition {
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

/// The slots of a row group that are looked at.
struct Group<'a> {
    data: &'a TreeData,
    /// The path of the children.
    path: PathId,
    id: GroupId,
    slots: Range<u16>,
    revision: u32,
    /// What has been read of paths on the way to a field.
    levels: Vec<(PathId, Levels)>,
}

impl Group<'_> {
    fn judge(&mut self, condition: &Condition) -> Result<Verdict, Fault> {
        Ok(match condition {
            Condition::Always(holds) => {
                let holds = if *holds { Bits::of(&self.slots) } else { Bits::none() };
                Verdict { holds, is_unsure: Bits::none() }
            }
            Condition::Not(inner) => {
                let Verdict { holds, is_unsure } = self.judge(inner)?;
                Verdict { holds: Bits::of(&self.slots).without(&holds), is_unsure }
            }
            Condition::All(parts) => {
                let mut all = Verdict { holds: Bits::of(&self.slots), is_unsure: Bits::none() };
                for part in parts {
                    let one = self.judge(part)?;
                    all.holds = all.holds.and(&one.holds);
                    all.is_unsure = all.is_unsure.or(&one.is_unsure);
                    if all.holds.or(&all.is_unsure).is_none() {
                        break;
                    }
                }
                all
            }
            Condition::Any(parts) => {
                let mut any = Verdict { holds: Bits::none(), is_unsure: Bits::none() };
                for part in parts {
                    let one = self.judge(part)?;
                    any.holds = any.holds.or(&one.holds);
                    any.is_unsure = any.is_unsure.or(&one.is_unsure);
                }
                any
            }
            Condition::Column(names, test) => self.judge_column(names, test)?,
        })
    }

    fn judge_column(&mut self, names: &[Arc<str>], test: &Test) -> Result<Verdict, Fault> {
        let mut path = self.path;
        let mut is_there = Bits::of(&self.slots);
        let mut is_unsure = Bits::none();
        for name in names {
            let field = self.data.schema.field(path, name.as_bytes());
            let (has_field, is_unknown) = self.holders(path, field)?;
            is_unsure = is_unsure.or(&is_unknown.and(&is_there));
            is_there = is_there.and(&has_field);
            match field {
                Some(field) if !is_there.is_none() => path = field,
                _ => break,
            }
        }
        let of_nothing = match test {
            Test::Compare(operator, value) => {
                value.datum().is_some_and(|value| operator.holds(Datum::Absent, value))
            }
            Test::Exists | Test::Matches(_) => false,
        };
        let absent = Bits::of(&self.slots).without(&is_there);
        let mut judge = Judge { test, holds: Bits::none(), is_unsure: Bits::none() };
        match test {
            Test::Exists => judge.holds = is_there.clone(),
            _ if is_there.is_none() => {}
            _ => self.data.scan(&self.column(path), &mut judge)?,
        }
        let mut holds = judge.holds.and(&is_there);
        if of_nothing {
            holds = holds.or(&absent);
        }
        Ok(Verdict { holds, is_unsure: is_unsure.or(&judge.is_unsure.and(&is_there)) })
    }

    /// The slots whose value at a path is an object with a field, and those where a column cannot
    /// tell.
    fn holders(&mut self, path: PathId, field: Option<PathId>) -> Result<(Bits, Bits), Fault> {
        if !self.levels.iter().any(|(known, _)| *known == path) {
            let mut levels = Levels(vec![Levels::NOTHING; SLOTS]);
            self.data.scan(&self.column(path), &mut levels)?;
            self.levels.push((path, levels));
        }
        let levels = self.levels.iter().find(|(known, _)| *known == path);
        let Some((_, Levels(codes))) = levels else { return Ok((Bits::none(), Bits::none())) };
        let (mut has, mut is_unknown) = (Bits::none(), Bits::none());
        let mut last = (Levels::NOTHING, false);
        for slot in self.slots.clone() {
            let code = codes[usize::from(slot)];
            if code != last.0 {
                let shape = Levels::shape(code);
                let holds = shape.zip(field);
                last =
                    (code, holds.is_some_and(|(shape, field)| has_field(self.data, shape, field)));
            }
            has.assign(slot, last.1);
            if code == Levels::UNKNOWN {
                is_unknown.assign(slot, true);
            }
        }
        Ok((has, is_unknown))
    }

    fn column(&self, path: PathId) -> ColumnScan {
        ColumnScan {
            group: self.id,
            column: self.data.schema.path(path).column,
            slots: self.slots.clone(),
            revision: self.revision,
        }
    }
}

/// For each slot the shape of the object there, above two codes that mean no object.
struct Levels(Vec<u32>);

impl Levels {
    const NOTHING: u32 = 0;
    /// An object whose fields are not all in columns.
    const UNKNOWN: u32 = 1;

    fn code(state: Datum<'_>) -> u32 {
        match state {
            Datum::Object(shape) => shape.0 + 2,
            Datum::Map(_) | Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. } => {
                Self::UNKNOWN
            }
            _ => Self::NOTHING,
        }
    }

    fn shape(code: u32) -> Option<crate::state::ShapeId> {
        code.checked_sub(2).map(crate::state::ShapeId)
    }
}

impl Visitor for Levels {
    #[inline]
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        self.0[usize::from(slot)] = Self::code(state);
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        self.0[usize::from(slots.start)..usize::from(slots.end)].fill(Self::code(state));
    }
}

/// Tests the states of a column.
struct Judge<'t> {
    test: &'t Test,
    holds: Bits,
    is_unsure: Bits,
}

impl Judge<'_> {
    /// Whether the test holds; none if the state does not tell.
    #[inline]
    fn verdict(&self, state: Datum<'_>) -> Option<bool> {
        let is_container =
            matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. });
        match (self.test, state) {
            (Test::Compare(operator, Value::Int(value)), Datum::Int(state)) => {
                Some(operator.accepts(state.cmp(value)))
            }
            _ if is_container || state.is_container() => Some(self.of_container()),
            (_, Datum::Apart { .. }) => None,
            (Test::Exists, state) => Some(!state.is_absent()),
            (Test::Matches(pattern), Datum::Text { bytes, .. }) => {
                Some(pattern.matches(&String::from_utf8_lossy(bytes)))
            }
            (Test::Matches(_), _) => Some(false),
            (Test::Compare(operator, value), state) => {
                value.datum().map(|value| operator.holds(state, value))
            }
        }
    }

    /// What the test says of an array or object, which equals no scalar.
    fn of_container(&self) -> bool {
        matches!(self.test, Test::Exists | Test::Compare(Operator::NotEqual, _))
    }
}

impl Visitor for Judge<'_> {
    #[inline]
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        let verdict = self.verdict(state);
        self.holds.assign(slot, verdict == Some(true));
        self.is_unsure.assign(slot, verdict.is_none());
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        let verdict = self.verdict(state);
        let range = Bits::of(&slots);
        let assigned = |bits: &Bits, is_set: bool| {
            if is_set { bits.or(&range) } else { bits.without(&range) }
        };
        self.holds = assigned(&self.holds, verdict == Some(true));
        self.is_unsure = assigned(&self.is_unsure, verdict.is_none());
    }

    fn integers(&mut self, first: u16, values: &[i64]) {
        let Test::Compare(operator, Value::Int(value)) = self.test else {
            for (slot, &value) in (first..).zip(values) {
                self.state(slot, Datum::Int(value));
            }
            return;
        };
        self.holds.fill(first, values.iter().map(|other| operator.accepts(other.cmp(value))));
    }

    fn coded(&mut self, first: u16, codes: &[i64], states: &[Datum<'_>]) {
        let verdicts = states.iter().map(|state| self.verdict(*state)).collect::<Vec<_>>();
        let verdict = |code: &i64| usize::try_from(*code).ok().and_then(|code| verdicts[code]);
        self.holds.fill(first, codes.iter().map(|code| verdict(code) == Some(true)));
        if verdicts.contains(&None) {
            self.is_unsure.fill(first, codes.iter().map(|code| verdict(code).is_none()));
        }
    }
}

impl Bits {
    fn none() -> Self {
        Self([0; SLOTS / 64])
    }

    /// The bits of consecutive slots.
    fn of(slots: &Range<u16>) -> Self {
        let below = |slot: u16, word: usize| match usize::from(slot).saturating_sub(word * 64) {
            bits @ 0..64 => (1_u64 << bits) - 1,
            _ => u64::MAX,
        };
        Self(std::array::from_fn(|word| below(slots.end, word) & !below(slots.start, word)))
    }

    #[inline]
    fn assign(&mut self, slot: u16, is_set: bool) {
        let word = &mut self.0[usize::from(slot) / 64];
        let bit = slot % 64;
        *word = *word & !(1 << bit) | u64::from(is_set) << bit;
    }

    /// Assigns consecutive slots.
    fn fill(&mut self, first: u16, bits: impl Iterator<Item = bool>) {
        let mut at = usize::from(first);
        let mut word = self.0[at / 64];
        for is_set in bits {
            word = word & !(1 << (at % 64)) | u64::from(is_set) << (at % 64);
            at += 1;
            if at.is_multiple_of(64) {
                self.0[at / 64 - 1] = word;
                word = self.0.get(at / 64).copied().unwrap_or(0);
            }
        }
        if let Some(last) = self.0.get_mut(at / 64) {
            *last = word;
        }
    }

    fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    fn is_none(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

fn slot_of(slot: u64) -> u16 {
    u16::try_from(slot).expect("at most 4,096")
}

fn index_of(group: u64) -> usize {
    usize::try_from(group).expect("40-bit ordinals")
}
