//! One column of a range of slots, ready to be tested and added up.

use std::cell::Cell;

use duramen_kernel as kernel;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::value::{Value, ValueKind};
use crate::columns::ColumnChunk;
use crate::encoding::{Column, Differences, Encoded, Summary, Values};
use crate::state::Datum;
use crate::tree::conditions::Bits;
use crate::tree::encoded::EncodedColumn;

/// One column.
pub(super) struct View<'a> {
    pub(super) kind: ValueKind,
    pub(super) sections: SmallVec<[Section<'a>; 1]>,
    /// Changed slots, each once, with their values.
    pub(super) patches: Vec<(u16, Value<'a>)>,
    /// The slots of them.
    pub(super) patched: Bits,
    /// The slots whose element or entry has the field and whose state is known.
    pub(super) there: Bits,
    /// Whether values were looked at, beyond what heads say.
    pub(super) read: Cell<bool>,
    /// Bytes of its cells.
    pub(super) bytes: usize,
}

/// Consecutive slots of one cell.
pub(super) struct Section<'a> {
    pub(super) first: u16,
    pub(super) len: u16,
    pub(super) body: Body<'a>,
    /// The cell, of which the summary is asked for.
    column: Option<&'a Column>,
}

/// The values of a section.
pub(super) enum Body<'a> {
    Same(Value<'a>),
    Integers(Values<'a>),
    Coded(Values<'a>, Vec<Value<'a>>),
    Either(Box<Bits>, [Value<'a>; 2]),
    /// To be read one by one.
    Slots(&'a Column),
    Decoded(&'a ColumnChunk),
}

/// The distinct values of some slots, and by slot which of them it has.
pub(super) struct Coding<'a> {
    pub(super) codes: Vec<u16>,
    pub(super) values: Vec<Value<'a>>,
}

impl<'a> View<'a> {
    /// None if a value stands elsewhere.
    pub(super) fn encoded(
        column: &EncodedColumn<'a>,
        kind: ValueKind,
        there: &Bits,
    ) -> Option<Self> {
        let mut view = Self {
            kind,
            sections: SmallVec::new(),
            patches: Vec::new(),
            patched: Bits::none(),
            there: Bits::none(),
            read: Cell::new(false),
            bytes: 0,
        };
        for (first, base) in &column.bases {
            let len = u16::try_from(base.len()).ok()?;
            let body = body(base, kind)?;
            view.there = view.there.or(&Bits::of(&(*first..first.checked_add(len)?)));
            view.bytes += base.cell_bytes();
            view.sections.push(Section { first: *first, len, body, column: Some(base) });
        }
        // The last change of a slot is the one that counts.
        for (slot, state) in column.patches.iter().rev() {
            if !view.patched.has(*slot) {
                view.patched.assign(*slot, true);
                view.patches.push((*slot, Value::of(*state, kind)?));
            }
        }
        view.there = view.there.or(&view.patched).and(there);
        Some(view)
    }

    /// The values of a chunk whose first row is a slot.
    pub(super) fn decoded(chunk: &'a ColumnChunk, first: u16, kind: ValueKind) -> Self {
        let len = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        let body = Body::Decoded(chunk);
        let section = Section { first, len, body, column: None };
        Self {
            kind,
            sections: SmallVec::from_iter([section]),
            patches: Vec::new(),
            patched: Bits::none(),
            there: Bits::of(&(first..first.saturating_add(len))),
            read: Cell::new(false),
            bytes: 0,
        }
    }

    /// The value of a slot, counted from the first of a section.
    pub(super) fn value(&self, body: &Body<'a>, slot: u16) -> Value<'a> {
        let at = usize::from(slot);
        match body {
            Body::Same(value) => *value,
            Body::Integers(values) => values.get(at).map_or(Value::Missing, Value::Int),
            Body::Coded(codes, states) => {
                let code = codes.get(at).and_then(|code| usize::try_from(code).ok());
                code.and_then(|code| states.get(code)).copied().unwrap_or(Value::Missing)
            }
            Body::Either(bits, states) => states[usize::from(bits.has(slot))],
            Body::Slots(column) => {
                let state = column.get(at).unwrap_or(Datum::Absent);
                Value::of(state, self.kind).unwrap_or(Value::Missing)
            }
            Body::Decoded(chunk) => Value::of_column(chunk.get(at), self.kind),
        }
    }

    /// The slots that have a value.
    pub(super) fn valid(&self) -> Bits {
        let mut valid = Bits::none();
        for section in &self.sections {
            let all = Bits::of(&(0..section.len));
            let own = match &section.body {
                Body::Same(value) if value.is_missing() => Bits::none(),
                Body::Integers(_) | Body::Same(_) => all,
                Body::Coded(_, states) if !states.iter().any(|state| state.is_missing()) => all,
                Body::Either(bits, states) => match states.map(Value::is_missing) {
                    [false, false] => all,
                    [false, true] => all.without(bits),
                    [true, false] => bits.and(&all),
                    [true, true] => Bits::none(),
                },
                body => {
                    self.read.set(true);
                    let mut own = Bits::none();
                    for slot in 0..section.len {
                        own.assign(slot, !self.value(body, slot).is_missing());
                    }
                    own
                }
            };
            valid = valid.or(&own.later(section.first));
        }
        for (slot, value) in &self.patches {
            valid.assign(*slot, !value.is_missing());
        }
        valid.and(&self.there)
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

    /// The values of slots as indexes of distinct ones: all of them, or of those wanted at least.
    pub(super) fn coding(&self, wanted: &Bits) -> Coding<'a> {
        self.read.set(true);
        let mut coding = Coding { codes: vec![0; 4_096], values: vec![Value::Missing] };
        let mut known = FxHashMap::default();
        for section in &self.sections {
            coding.add(self, section, wanted, &mut known);
        }
        for slot in wanted.without(&self.there).slots() {
            coding.codes[usize::from(slot)] = 0;
        }
        for (slot, value) in self.patches.iter().filter(|(slot, _)| self.there.has(*slot)) {
            coding.codes[usize::from(*slot)] = coding.code(*value, &mut known);
        }
        coding
    }
}

impl Section<'_> {
    /// The summary, if it is about all slots and they are integers.
    pub(super) fn summary(&self) -> Option<Summary> {
        let Body::Integers(_) = self.body else { return None };
        let summary = self.column?.summary().ok()??;
        let is_all = summary.count == self.len && summary.scale == 0 && summary.others == 0;
        is_all.then_some(summary)
    }
}

impl<'a> Coding<'a> {
    fn code(&mut self, value: Value<'a>, known: &mut FxHashMap<Value<'a>, u16>) -> u16 {
        if value.is_missing() {
            return 0;
        }
        if known.is_empty() {
            known.extend(self.values.iter().copied().zip(0..));
        }
        *known.entry(value).or_insert_with(|| {
            self.values.push(value);
            u16::try_from(self.values.len() - 1).unwrap_or(0)
        })
    }

    fn add(
        &mut self,
        view: &View<'a>,
        section: &Section<'a>,
        wanted: &Bits,
        known: &mut FxHashMap<Value<'a>, u16>,
    ) {
        let range = usize::from(section.first)..usize::from(section.first + section.len);
        match &section.body {
            Body::Same(value) => {
                let code = self.code(*value, known);
                self.codes[range].fill(code);
            }
            Body::Coded(codes, states) => {
                let codes_of: Vec<_> =
                    states.iter().map(|state| self.code(*state, known)).collect();
                let is_shifted = (1..).zip(&codes_of).all(|(at, code)| at == *code);
                let mut unpacked = [0; 4_096];
                let own = &mut self.codes[range];
                match small(codes, &mut unpacked) {
                    Some(small) if is_shifted => {
                        let last = u8::try_from(states.len() - 1).unwrap_or(u8::MAX);
                        for (into, code) in own.iter_mut().zip(small) {
                            *into = u16::from((*code).min(last)) + 1;
                        }
                    }
                    Some(small) => {
                        for (into, code) in own.iter_mut().zip(small) {
                            *into = codes_of.get(usize::from(*code)).copied().unwrap_or(0);
                        }
                    }
                    None => {
                        for (slot, into) in own.iter_mut().enumerate() {
                            let code = codes.get(slot).and_then(|code| usize::try_from(code).ok());
                            *into = code.and_then(|code| codes_of.get(code)).copied().unwrap_or(0);
                        }
                    }
                }
            }
            Body::Either(bits, states) => {
                let codes = states.map(|state| self.code(state, known));
                for (slot, into) in (0..).zip(&mut self.codes[range]) {
                    *into = codes[usize::from(bits.has(slot))];
                }
            }
            body => {
                let own = Bits::of(&(section.first..section.first + section.len)).and(wanted);
                for slot in own.slots() {
                    let value = view.value(body, slot - section.first);
                    self.codes[usize::from(slot)] = self.code(value, known);
                }
            }
        }
    }
}

/// Small integers by a byte each.
fn small<'v>(values: &Values<'v>, unpacked: &'v mut [u8; 4_096]) -> Option<&'v [u8]> {
    match values.differences {
        _ if values.step != 0 || values.base != 0 => None,
        Differences::One(bytes) => Some(bytes),
        Differences::Half(bytes) => {
            let unpacked = &mut unpacked[..values.len.min(4_096)];
            kernel::unpack_halves(bytes, unpacked);
            Some(unpacked)
        }
        _ => None,
    }
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
        (Encoded::Integers(values), ValueKind::Int) => Body::Integers(values),
        (Encoded::Integers(_), ValueKind::Bool | ValueKind::Text) => Body::Same(Value::Missing),
        (Encoded::Coded(codes, states), kind) => {
            // What is wrong with a damaged cell is found by reading it slot by slot.
            let states = states.into_iter().map(|state| Value::of(state, kind));
            let states = states.collect::<Option<Vec<_>>>()?;
            codes.are_below(states.len()).then_some(Body::Coded(codes, states))?
        }
        (Encoded::Either(bytes, [a, b]), kind) => {
            let mut bits = Bits::none();
            for (word, bytes) in bits.0.iter_mut().zip(bytes.chunks(8)) {
                let mut own = [0; 8];
                own[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(own);
            }
            Body::Either(Box::new(bits), [Value::of(a, kind)?, Value::of(b, kind)?])
        }
        (Encoded::Integers(_), ValueKind::Float) => Body::Slots(base),
        (Encoded::Mixed, _) => {
            // What stands elsewhere has to be fetched first.
            if base.has_apart() {
                return None;
            }
            Body::Slots(base)
        }
    })
}
