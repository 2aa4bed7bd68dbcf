//! The order of JSON values, as bytes that compare as the values do.
//!
//! Missing < null < false < true < numbers < strings < arrays < objects. Numbers are in the order
//! of their values, in whatever form they are written or kept; strings in that of their UTF-8
//! bytes; arrays by their elements one after the other; objects by their members sorted by name.
//!
//! Invariants:
//! - two values have the same key just if they are equal;
//! - no key is the beginning of another one, so that keys put one after the other compare as lists
//!   of values.
//!
//! A number is its sign, the power of ten of its first digit, and its digits two to a byte; of
//! negative ones the bytes are complemented.

use crate::json::number::{self, Digits, Power};
use crate::json::{Item, Tape, TapeIndex};
use crate::state::Datum;

/// Ends an array or object: below every value in it.
const END: u8 = 0x01;
const MISSING: u8 = 0x10;
const NULL: u8 = 0x20;
const FALSE: u8 = 0x30;
const TRUE: u8 = 0x31;
const NEGATIVE: u8 = 0x40;
const ZERO: u8 = 0x41;
const POSITIVE: u8 = 0x42;
const TEXT: u8 = 0x50;
const ARRAY: u8 = 0x60;
const OBJECT: u8 = 0x70;

/// The power of ten whose byte this is, and the powers on both sides of it that have one byte.
const POWER_ZERO: u8 = 0x80;
const SHORT_POWERS: std::ops::RangeInclusive<i128> = -96..=95;
/// Begins powers that have no room in 128 bits.
const POWER_FAR_BELOW: u8 = 0x08;
const POWER_FAR_ABOVE: u8 = 0xf8;

/// What kinds of values a key can have, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SortClass {
    Missing,
    Null,
    Boolean,
    Number,
    Text,
    Array,
    Object,
}

impl SortClass {
    /// The class of the value that a key begins with.
    pub(crate) fn of(key: &[u8]) -> Self {
        match key.first() {
            None | Some(&(..NULL)) => Self::Missing,
            Some(&(NULL..FALSE)) => Self::Null,
            Some(&(FALSE..NEGATIVE)) => Self::Boolean,
            Some(&(NEGATIVE..TEXT)) => Self::Number,
            Some(&(TEXT..ARRAY)) => Self::Text,
            Some(&(ARRAY..OBJECT)) => Self::Array,
            Some(_) => Self::Object,
        }
    }

    /// A byte above what keys of the classes before begin with, and not above those of the class.
    pub(crate) fn first_byte(self) -> u8 {
        match self {
            Self::Missing => MISSING,
            Self::Null => NULL,
            Self::Boolean => FALSE,
            Self::Number => NEGATIVE,
            Self::Text => TEXT,
            Self::Array => ARRAY,
            Self::Object => OBJECT,
        }
    }

    /// A byte above those that the keys of the class begin with, and not above those of the next.
    pub(crate) fn end_byte(self) -> u8 {
        match self {
            Self::Missing => NULL,
            Self::Null => FALSE,
            Self::Boolean => NEGATIVE,
            Self::Number => TEXT,
            Self::Text => ARRAY,
            Self::Array => OBJECT,
            Self::Object => OBJECT + 0x10,
        }
    }
}

/// Appends the key of no value.
pub(crate) fn append_missing(out: &mut Vec<u8>) {
    out.push(MISSING);
}

/// Appends the key of a state; false, and nothing is appended, if that is not in the state itself:
/// of an array or object, and of a value stored apart.
pub(crate) fn append_scalar(state: Datum<'_>, out: &mut Vec<u8>) -> bool {
    match state {
        Datum::Absent => append_missing(out),
        Datum::Null => out.push(NULL),
        Datum::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Datum::Int(value) => append_fixed((value < 0, value.unsigned_abs()), 0, out),
        Datum::Decimal { mantissa, scale } => {
            append_fixed((mantissa < 0, mantissa.unsigned_abs()), scale, out);
        }
        Datum::Float(_) => {
            let mut text = Vec::new();
            number::write_number(state, &mut text);
            append_number(&text, out);
        }
        Datum::Digits(text) => append_number(text, out),
        Datum::Text { bytes, .. } => append_text(bytes, out),
        Datum::Object(_)
        | Datum::Array(_)
        | Datum::Map(_)
        | Datum::Opaque(_)
        | Datum::Apart { .. } => return false,
    }
    true
}

/// Appends the key of a value that was read. It is at most as deep as what can be parsed.
pub(crate) fn append_parsed(tape: &Tape<'_>, at: TapeIndex, out: &mut Vec<u8>) {
    match tape.item(at) {
        Item::Null => out.push(NULL),
        Item::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Item::Number(text) => append_number(text, out),
        Item::Text { bytes, .. } => append_text(bytes, out),
        Item::Array { .. } => {
            out.push(ARRAY);
            tape.elements(at).for_each(|element| append_parsed(tape, element, out));
            out.push(END);
        }
        Item::Object { .. } => {
            let mut members: Vec<_> =
                tape.fields(at).map(|(_, value)| (tape.name_before(value), value)).collect();
            members.sort_unstable();
            out.push(OBJECT);
            for (name, value) in members {
                append_text(name, out);
                append_parsed(tape, value, out);
            }
            out.push(END);
        }
    }
}

/// Appends the key of a string.
pub(crate) fn append_text(bytes: &[u8], out: &mut Vec<u8>) {
    append_prefix(bytes, out);
    out.extend_from_slice(&[0x00, 0x01]);
}

/// Appends what the keys of all strings begin with that begin so. The byte `ff` behind it makes it
/// greater than all of them.
pub(crate) fn append_prefix(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(TEXT);
    for part in bytes.split_inclusive(|byte| *byte == 0x00) {
        out.extend_from_slice(part);
        if part.ends_with(&[0x00]) {
            out.push(0xff);
        }
    }
}

/// Appends the key of a number's JSON text.
fn append_number(text: &[u8], out: &mut Vec<u8>) {
    let digits = Digits::of(text);
    append_digits(digits.is_negative(), digits.power(), digits.iter(), out);
}

/// The same of `magnitude / 10^scale`.
fn append_fixed((is_negative, magnitude): (bool, u64), scale: u8, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(magnitude).as_bytes();
    let power = digits.len() as i128 - i128::from(scale);
    let end = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    append_digits(is_negative, &Power::Near(power), digits[..end].iter().copied(), out);
}

/// The same of `0.` and the digits, without a zero at either end, times ten to the power.
fn append_digits(
    is_negative: bool,
    power: &Power,
    mut digits: impl Iterator<Item = u8>,
    out: &mut Vec<u8>,
) {
    let Some(mut first) = digits.next() else {
        out.push(ZERO);
        return;
    };
    out.push(if is_negative { NEGATIVE } else { POSITIVE });
    let start = out.len();
    append_power(power, out);
    loop {
        let second = digits.next();
        // Above the byte that ends them.
        out.push(1 + (first - b'0') * 10 + (second.unwrap_or(b'0') - b'0'));
        match digits.next() {
            Some(digit) if second.is_some() => first = digit,
            _ => break,
        }
    }
    out.push(0x00);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// One byte, or how many bytes the power has and these, or what is beyond that, how many digits it
/// has and these. All but the first byte, and the number of bytes, are complemented if the power is
/// negative.
fn append_power(power: &Power, out: &mut Vec<u8>) {
    match power {
        Power::Near(power) if SHORT_POWERS.contains(power) => {
            let power = i8::try_from(*power).unwrap_or(0);
            out.push(POWER_ZERO.wrapping_add_signed(power));
        }
        Power::Near(power) => {
            let bytes = power.unsigned_abs().to_be_bytes();
            let bytes = &bytes[bytes.iter().position(|byte| *byte != 0).unwrap_or(0)..];
            let len = u8::try_from(bytes.len()).unwrap_or(u8::MAX);
            if *power > 0 {
                out.push(0xdf + len);
                out.extend_from_slice(bytes);
            } else {
                out.push(0x20 - len);
                out.extend(bytes.iter().map(|byte| !byte));
            }
        }
        Power::Far { is_negative, digits } => {
            let len = (digits.len() as u64).to_be_bytes();
            let bytes = len.iter().chain(digits);
            if *is_negative {
                out.push(POWER_FAR_BELOW);
                out.extend(bytes.map(|byte| !byte));
            } else {
                out.push(POWER_FAR_ABOVE);
                out.extend(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
