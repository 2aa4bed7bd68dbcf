//! One column of a range of slots, ready to be tested and added up.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;

use super::cache::{CachedStates, Terms};
use super::floats::Floats;
use super::mask::Mask;
use super::value::{Value, ValueKind};
use crate::columns::ColumnChunk;
use crate::encoding::{Column, Differences, Encoded, Summary, Values};
use crate::state::Datum;
use crate::tree::conditions::Bits;
use crate::tree::encoded::EncodedColumn;

/// One column.
pub(super) struct View<'a> {
    pub(super) kind: ValueKind,
    /// The range of slots.
    pub(super) slots: Range<u16>,
    pub(super) sections: SmallVec<[Section<'a>; 1]>,
    /// Changed slots, each once, with their values.
    pub(super) patches: Vec<(u16, Value<'a>)>,
    /// The slots of them.
    pub(super) patched: Mask,
    /// The slots whose element or entry has the field and whose state is known.
    pub(super) there: Mask,
    /// Whether values were looked at, beyond what heads say.
    pub(super) read: Cell<bool>,
    /// Bytes of its cells.
    pub(super) bytes: usize,
    /// Of those that changes were read from.
    pub(super) changes_bytes: usize,
}

/// Consecutive slots of one cell.
pub(super) struct Section<'a> {
    pub(super) first: u16,
    pub(super) len: u16,
    pub(super) body: Body<'a>,
    pub(super) told: Told<'a>,
}

/// What is told of the values of a section without reading them.
#[derive(Clone, Copy)]
pub(super) enum Told<'a> {
    Nothing,
    /// The summary of all of them.
    Summary(&'a Summary),
    /// What the cell says.
    Cell(&'a Column),
}

/// The values of a section.
pub(super) enum Body<'a> {
    Same(Value<'a>),
    Integers(Values<'a>),
    /// Floats, as decimals of one scale: their mantissas.
    Decimals(Values<'a>, u8),
    Coded(Values<'a>, States<'a>),
    /// A bit for each slot, lowest first.
    Either(&'a [u8], [Value<'a>; 2]),
    /// Floats of other forms.
    Floats(Arc<Floats>),
    /// To be read one by one.
    Slots(&'a Column),
    Decoded(&'a ColumnChunk),
}

/// The distinct values of a section.
#[derive(Clone)]
pub(super) enum States<'a> {
    Read(Vec<Value<'a>>),
    Cached(&'a CachedStates),
}

impl<'a> States<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Read(values) => values.len(),
            Self::Cached(values) => values.len(),
        }
    }

    pub(super) fn get(&self, code: usize) -> Option<Value<'a>> {
        match self {
            Self::Read(values) => values.get(code).copied(),
            Self::Cached(values) => values.get(code),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        (0..self.len()).filter_map(|code| self.get(code))
    }

    pub(super) fn terms(&self) -> Option<Terms<'a>> {
        match self {
            Self::Read(_) => None,
            Self::Cached(values) => Some(values.terms()),
        }
    }
}

impl<'a> View<'a> {
    /// None if a value stands elsewhere.
    pub(super) fn encoded(
        column: &EncodedColumn<'a>,
        kind: ValueKind,
        slots: &Range<u16>,
        there: Mask,
    ) -> Option<Self> {
        let mut view = Self {
            kind,
            slots: slots.clone(),
            sections: SmallVec::new(),
            patches: Vec::new(),
            patched: Mask::None,
            there: Mask::None,
            read: Cell::new(false),
            bytes: 0,
            changes_bytes: column.changes_bytes,
        };
        for (first, base) in &column.bases {
            let len = u16::try_from(base.len()).ok()?;
            let body = body(base, kind)?;
            view.there = view.there.or(Mask::of(slots, &(*first..first.checked_add(len)?)));
            view.bytes += base.cell_bytes();
            view.sections.push(Section { first: *first, len, body, told: Told::Cell(base) });
        }
        if !column.patches.is_empty() {
            let mut patched = Box::new(Bits::none());
            // The last change of a slot is the one that counts.
            for (slot, state) in column.patches.iter().rev() {
                if !patched.has(*slot) {
                    patched.assign(*slot, true);
                    view.patches.push((*slot, Value::of(*state, kind)?));
                }
            }
            view.patched = Mask::Some(patched);
        }
        view.there = view.there.or(view.patched.clone()).and(there);
        Some(view)
    }

    /// The values of a chunk whose first row is the first of some slots.
    pub(super) fn decoded(chunk: &'a ColumnChunk, kind: ValueKind, slots: &Range<u16>) -> Self {
        let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        let first = slots.start;
        let body = match kind {
            ValueKind::Float => Body::Floats(Floats::of_chunk(chunk)),
            _ => Body::Decoded(chunk),
        };
        let section = Section { first, len, body, told: Told::Nothing };
        Self {
            kind,
            slots: slots.clone(),
            there: Mask::of(slots, &(first..first.saturating_add(len))),
            sections: SmallVec::from_iter([section]),
            patches: Vec::new(),
            patched: Mask::None,
            read: Cell::new(false),
            bytes: 0,
            changes_bytes: chunk.read_bytes,
        }
    }

    /// The value of a slot, counted from the first of a section.
    pub(super) fn value(&self, body: &Body<'a>, slot: u16) -> Value<'a> {
        let at = usize::from(slot);
        match body {
            Body::Same(value) => *value,
            Body::Integers(values) => values.get(at).map_or(Value::Missing, Value::Int),
            Body::Decimals(values, scale) => {
                values.get(at).map_or(Value::Missing, |value| Value::decimal(value, *scale))
            }
            Body::Coded(codes, states) => {
                let code = codes.get(at).and_then(|code| usize::try_from(code).ok());
                code.and_then(|code| states.get(code)).unwrap_or(Value::Missing)
            }
            Body::Either(bytes, states) => states[usize::from(bit(bytes, slot))],
            Body::Floats(floats) => match floats.values.get(at) {
                Some(value) if floats.valid.has(slot) => Value::Float(*value),
                _ => Value::Missing,
            },
            Body::Slots(column) => {
                let state = column.get(at).unwrap_or(Datum::Absent);
                Value::of(state, self.kind).unwrap_or(Value::Missing)
            }
            Body::Decoded(chunk) => Value::of_column(chunk.get(at), self.kind),
        }
    }

    /// The slots that have a value.
    pub(super) fn valid(&self) -> Mask {
        let mut valid = Mask::None;
        for section in &self.sections {
            let own = match &section.body {
                Body::Same(value) if value.is_missing() => Mask::None,
                Body::Integers(_) | Body::Decimals(..) | Body::Same(_) => Mask::All,
                Body::Coded(_, states) if !states.iter().any(Value::is_missing) => Mask::All,
                Body::Either(bytes, states) => {
                    either(bytes, section.len, states.map(|state| !state.is_missing()))
                }
                Body::Floats(floats) => floats.valid.clone(),
                body => {
                    self.read.set(true);
                    section.mask(|slot| !self.value(body, slot).is_missing())
                }
            };
            valid = valid.or(section.place(own, &self.slots));
        }
        self.patch(valid, |value| !value.is_missing())
    }

    /// Slots as sections have them, with those that changed and without those that are not there.
    pub(super) fn patch(&self, found: Mask, holds: impl Fn(Value<'a>) -> bool) -> Mask {
        let found = found.and(self.there.clone());
        if self.patches.is_empty() {
            return found;
        }
        let mut bits = found.into_bits(&self.slots);
        for (slot, value) in self.patches.iter().filter(|(slot, _)| self.there.has(*slot)) {
            bits.assign(*slot, holds(*value));
        }
        Mask::Some(bits)
    }

    /// The integers of all slots; those that have none have some other number.
    pub(super) fn integers(&self, into: &mut [i64]) {
        self.read.set(true);
        for section in &self.sections {
            let Some(into) = into.get_mut(usize::from(section.first)..) else { continue };
            let own = into.iter_mut().take(section.len.into());
            match &section.body {
                Body::Same(value) => own.for_each(|into| *into = value.integer().unwrap_or(0)),
                Body::Integers(values) => decode(values, into),
                body => {
                    for (slot, into) in (0..).zip(own) {
                        *into = self.value(body, slot).integer().unwrap_or(0);
                    }
                }
            }
        }
        for (slot, value) in &self.patches {
            if let Some(into) = into.get_mut(usize::from(*slot)) {
                *into = value.integer().unwrap_or(0);
            }
        }
    }
}

impl Section<'_> {
    /// Its slots.
    pub(super) fn range(&self) -> Range<usize> {
        usize::from(self.first)..usize::from(self.first) + usize::from(self.len)
    }

    /// The slots, counted from its first, for which something holds.
    pub(super) fn mask(&self, holds: impl Fn(u16) -> bool) -> Mask {
        let mut own = Box::new(Bits::none());
        for slot in 0..self.len {
            own.assign(slot, holds(slot));
        }
        Mask::Some(own)
    }

    /// Slots counted from its first as those of the row group that are in a range.
    pub(super) fn place(&self, own: Mask, slots: &Range<u16>) -> Mask {
        match own {
            Mask::None => Mask::None,
            Mask::All => Mask::of(slots, &(self.first..self.first + self.len)),
            Mask::Some(bits) if self.first == 0 && slots.start == 0 && self.len <= slots.end => {
                Mask::Some(bits)
            }
            Mask::Some(bits) => Mask::Some(Box::new(bits.later(self.first).and(&Bits::of(slots)))),
        }
    }

    /// The summary, if so many slots are all of them.
    pub(super) fn summary_of(&self, count: u64) -> Option<Summary> {
        self.summary().filter(|_| count == u64::from(self.len))
    }

    /// An integer of its body as the value that it is.
    pub(super) fn number<'a>(&self, value: i64) -> Value<'a> {
        match self.body {
            Body::Decimals(_, scale) => Value::decimal(value, scale),
            _ => Value::Int(value),
        }
    }

    /// The summary, if it is about all slots and says all of them.
    pub(super) fn summary(&self) -> Option<Summary> {
        let summary = match self.told {
            Told::Nothing => return None,
            Told::Summary(summary) => return Some(*summary),
            Told::Cell(column) => column.summary().ok()??,
        };
        let is_told = match self.body {
            Body::Integers(_) => summary.scale == 0,
            Body::Decimals(..) | Body::Floats(_) => true,
            _ => false,
        };
        (is_told && summary.count == self.len && summary.others == 0).then_some(summary)
    }
}

/// Which slots of a section have one of two states, by whether each of the two counts.
pub(super) fn either(bytes: &[u8], len: u16, counts: [bool; 2]) -> Mask {
    let flipped = match counts {
        [false, false] => return Mask::None,
        [true, true] => return Mask::All,
        [false, true] => 0,
        [true, false] => u64::MAX,
    };
    let mut bits = Box::new(Bits::none());
    let (words, rest) = bytes.as_chunks::<8>();
    for (into, word) in bits.0.iter_mut().zip(words) {
        *into = u64::from_le_bytes(*word) ^ flipped;
    }
    if let Some(into) = bits.0.get_mut(words.len()).filter(|_| !rest.is_empty()) {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        *into = u64::from_le_bytes(last) ^ flipped;
    }
    // What is beyond the last slot says nothing.
    if let Some(last) = bits.0.get_mut(usize::from(len / 64)) {
        *last &= (1 << (len % 64)) - 1;
    }
    Mask::Some(bits)
}

pub(super) fn bit(bytes: &[u8], slot: u16) -> bool {
    bytes.get(usize::from(slot / 8)).is_some_and(|byte| byte >> (slot % 8) & 1 != 0)
}

fn decode(values: &Values<'_>, into: &mut [i64]) {
    match values.differences {
        Differences::One(bytes) if values.step == 0 => {
            for (into, byte) in into.iter_mut().zip(bytes) {
                *into = values.base.wrapping_add((*byte).into());
            }
        }
        _ => {
            for (slot, into) in into.iter_mut().take(values.len).enumerate() {
                *into = values.get(slot).unwrap_or(0);
            }
        }
    }
}

/// None if a value stands elsewhere.
fn body(base: &Column, kind: ValueKind) -> Option<Body<'_>> {
    Some(match (base.encoded(), kind) {
        (Encoded::Same(state), kind) => Body::Same(Value::of(state, kind)?),
        (Encoded::Numbers(values, 0), ValueKind::Int) => Body::Integers(values),
        (Encoded::Numbers(values, scale), ValueKind::Float) => Body::Decimals(values, scale),
        (Encoded::Numbers(..), _) => Body::Same(Value::Missing),
        // Of numbers that are kept as they are written.
        (Encoded::Coded(..), ValueKind::Float) => Body::Floats(Floats::of(base)?),
        (Encoded::Coded(codes, states), kind) => {
            let states = states.into_iter().map(|state| Value::of(state, kind));
            Body::Coded(codes, States::Read(states.collect::<Option<_>>()?))
        }
        (Encoded::Either(bytes, [a, b]), kind) => {
            Body::Either(bytes, [Value::of(a, kind)?, Value::of(b, kind)?])
        }
        // Decoding says what is wrong.
        (Encoded::Unreadable, _) => return None,
        (Encoded::Mixed, _) => {
            // What stands elsewhere has to be fetched first.
            if base.has_apart() {
                return None;
            }
            match kind {
                ValueKind::Float => Body::Floats(Floats::of(base)?),
                _ => Body::Slots(base),
            }
        }
    })
}
