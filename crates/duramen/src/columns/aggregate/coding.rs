//! The values of slots as indexes of distinct ones.

use duramen_kernel as kernel;
use rustc_hash::FxHashMap;

use super::cache::{Term, Terms};
use super::mask::Mask;
use super::value::Value;
use super::view::{Body, Section, View, bit};
use crate::encoding::{Differences, Values};
use crate::tree::conditions::Bits;

/// Slots of a row group.
pub(super) const SLOTS: usize = 4_096;

/// The distinct values of some slots, of which some may be of no slot, and by slot which of them it
/// has.
pub(super) struct Coding<'a> {
    pub(super) codes: Codes,
    pub(super) values: Vec<Value<'a>>,
    /// What a dictionary calls the first of them.
    terms: Option<Terms<'a>>,
}

impl<'a> Coding<'a> {
    /// What a dictionary calls a value.
    #[inline]
    pub(super) fn term(&self, code: usize) -> Option<Term<'a>> {
        self.terms?.get(code)
    }
}

/// A small number for each slot of a row group.
#[derive(Debug)]
pub(super) enum Codes {
    Small(Vec<u8>),
    Wide(Vec<u16>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl Codes {
    pub(super) fn get(&self, slot: u16) -> u16 {
        let slot = usize::from(slot);
        match self {
            Self::Small(codes) => codes[slot].into(),
            Self::Wide(codes) => codes[slot],
        }
    }

    /// How often there is each code below a length at some slots.
    pub(super) fn counts(&self, len: usize, rows: &Bits) -> Vec<u64> {
        let mut counts = vec![0; len];
        match self {
            Self::Small(codes) => kernel::masked_histogram(codes, &rows.0, &mut counts),
            Self::Wide(codes) => {
                for slot in rows.slots() {
                    if let Some(count) = counts.get_mut(usize::from(codes[usize::from(slot)])) {
                        *count += 1;
                    }
                }
            }
        }
        counts
    }

    pub(super) fn into_wide(self) -> Vec<u16> {
        match self {
            Self::Small(codes) => codes.into_iter().map(u16::from).collect(),
            Self::Wide(codes) => codes,
        }
    }
}

impl<'a> View<'a> {
    /// The values of slots as indexes of distinct ones: all of them, or of those wanted at least.
    pub(super) fn coding(&self, wanted: &Bits) -> Coding<'a> {
        self.read.set(true);
        self.small_coding().unwrap_or_else(|| self.wide_coding(wanted))
    }

    /// The same by a byte a slot, if there is one cell that has its values in such a form.
    fn small_coding(&self) -> Option<Coding<'a>> {
        let [section] = &self.sections[..] else { return None };
        let mut codes = vec![0; SLOTS];
        let own = codes.get_mut(section.range())?;
        let mut terms = None;
        let mut values = match &section.body {
            Body::Same(value) => vec![*value],
            Body::Coded(all, states) => {
                small(all, own).filter(|()| all.base == 0)?;
                terms = states.terms();
                states.iter().collect()
            }
            Body::Integers(all) | Body::Decimals(all, _) => {
                small(all, own)?;
                let most = own.iter().fold(0, |most, value| most.max(*value));
                let value = |above: u8| section.number(all.base.wrapping_add(above.into()));
                (0..=most).map(value).collect()
            }
            Body::Either(bytes, states) => {
                for (slot, code) in (0..).zip(own) {
                    *code = u8::from(bit(bytes, slot));
                }
                states.to_vec()
            }
            Body::Floats(_) | Body::Slots(_) | Body::Decoded(_) => return None,
        };
        let mut code = |value: Value<'a>| {
            let known = values.iter().position(|known| *known == value);
            let index = known.unwrap_or(values.len());
            if known.is_none() {
                values.push(value);
            }
            u8::try_from(index).ok()
        };
        if !matches!(self.there, Mask::All) {
            let missing = code(Value::Missing)?;
            let gone = Mask::All.without(&self.there, &self.slots);
            gone.bits(&self.slots).slots().for_each(|slot| codes[usize::from(slot)] = missing);
        }
        for (slot, value) in self.patches.iter().filter(|(slot, _)| self.there.has(*slot)) {
            codes[usize::from(*slot)] = code(*value)?;
        }
        Some(Coding { codes: Codes::Small(codes), values, terms })
    }

    fn wide_coding(&self, wanted: &Bits) -> Coding<'a> {
        let mut codes = WideCodes {
            codes: vec![0; SLOTS],
            values: vec![Value::Missing],
            known: FxHashMap::default(),
        };
        for section in &self.sections {
            codes.add(self, section, wanted);
        }
        for slot in wanted.without(&self.there.bits(&self.slots)).slots() {
            codes.codes[usize::from(slot)] = 0;
        }
        for (slot, value) in self.patches.iter().filter(|(slot, _)| self.there.has(*slot)) {
            codes.codes[usize::from(*slot)] = codes.code(*value);
        }
        Coding { codes: Codes::Wide(codes.codes), values: codes.values, terms: None }
    }
}

/// Codes of any number of values, of which the first is none.
struct WideCodes<'a> {
    codes: Vec<u16>,
    values: Vec<Value<'a>>,
    known: FxHashMap<Value<'a>, u16>,
}

impl<'a> WideCodes<'a> {
    fn code(&mut self, value: Value<'a>) -> u16 {
        if value.is_missing() {
            return 0;
        }
        *self.known.entry(value).or_insert_with(|| {
            self.values.push(value);
            u16::try_from(self.values.len() - 1).unwrap_or(0)
        })
    }

    fn add(&mut self, view: &View<'a>, section: &Section<'a>, wanted: &Bits) {
        match &section.body {
            Body::Same(value) => {
                let code = self.code(*value);
                self.codes[section.range()].fill(code);
            }
            Body::Coded(codes, states) => {
                let codes_of: Vec<_> = states.iter().map(|state| self.code(state)).collect();
                for (slot, into) in self.codes[section.range()].iter_mut().enumerate() {
                    let code = codes.get(slot).and_then(|code| usize::try_from(code).ok());
                    *into = code.and_then(|code| codes_of.get(code)).copied().unwrap_or(0);
                }
            }
            Body::Either(bytes, states) => {
                let codes = states.map(|state| self.code(state));
                for (slot, into) in (0..).zip(&mut self.codes[section.range()]) {
                    *into = codes[usize::from(bit(bytes, slot))];
                }
            }
            body => {
                let own = section.first..section.first + section.len;
                for slot in Bits::of(&own).and(wanted).slots() {
                    let value = view.value(body, slot - section.first);
                    self.codes[usize::from(slot)] = self.code(value);
                }
            }
        }
    }
}

/// Takes differences of a byte at most.
fn small(values: &Values<'_>, into: &mut [u8]) -> Option<()> {
    match values.differences {
        _ if values.step != 0 => return None,
        Differences::One(bytes) if bytes.len() == into.len() => into.copy_from_slice(bytes),
        Differences::Half(bytes) => kernel::unpack_halves(bytes, into),
        _ => return None,
    }
    Some(())
}
