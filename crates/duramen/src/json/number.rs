//! Numbers: from their text to the form that holds it exactly, and back to the same text.
//!
//! Invariants:
//! - writing a classified number gives its text again, byte for byte;
//! - numbers compare as their texts say, whatever forms hold them, and without rounding.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::state::Datum;

mod power;

pub(crate) use power::Power;

/// Digits of a decimal's mantissa, and of its fraction.
const DECIMAL_DIGITS_MAX: usize = 18;
/// 10 to the power of [`DECIMAL_DIGITS_MAX`].
const DECIMAL_MANTISSA_END: u64 = 1_000_000_000_000_000_000;
/// The powers of ten with fewer than eight zeros.
const POWERS: [i64; 8] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
/// No float is written in more bytes.
const FLOAT_BYTES_MAX: usize = 32;

/// The number that the digits at the begin of a text are, and how many they are; none if there is
/// none, or more than fifteen, or the text ends soon behind them.
#[inline]
pub(crate) fn leading_digits(text: &[u8]) -> Option<(i64, usize)> {
    let (first, rest) = text.split_first_chunk()?;
    let (number, digits) = digits_of_word(u64::from_le_bytes(*first));
    if digits == 8 { more_digits(number, rest) } else { (digits > 0).then_some((number, digits)) }
}

fn more_digits(high: i64, text: &[u8]) -> Option<(i64, usize)> {
    let (low, digits) = digits_of_word(u64::from_le_bytes(*text.first_chunk()?));
    let power = *POWERS.get(digits)?;
    // Both have at most eight digits.
    Some((high.wrapping_mul(power).wrapping_add(low), digits.wrapping_add(8)))
}

/// The number that the digits are that a word begins with, the first in its lowest byte, and how
/// many they are. Neighbours are put together to numbers of two digits, these to numbers of four,
/// and these to one.
#[inline]
fn digits_of_word(word: u64) -> (i64, usize) {
    let repeated = |byte| u64::from_ne_bytes([byte; 8]);
    let digits = word ^ repeated(b'0');
    // Of ten and more the sum with 118 has the highest bit. A byte that is no digit may carry into
    // those behind it, of which none counts.
    let others = (digits.wrapping_add(repeated(118)) | digits) & repeated(0x80);
    let count = others.trailing_zeros() / 8;
    // Zeros in front of them, and nothing of what is behind.
    let ones = digits.unbounded_shl(64_u32.wrapping_sub(count.wrapping_mul(8)));
    let twos = (ones.wrapping_mul((10 << 8) | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul((100 << 16) | 1) >> 16) & 0x0000_ffff_0000_ffff;
    let number = fours.wrapping_mul((10_000 << 32) | 1) >> 32;
    (number.cast_signed(), count as usize)
}

/// The first form of integer, decimal, float and digits that holds the number of this JSON text
/// exactly.
pub(crate) fn classify(text: &[u8]) -> Datum<'_> {
    fixed_point(text).or_else(|| float(text)).unwrap_or(Datum::Digits(text))
}

fn fixed_point(text: &[u8]) -> Option<Datum<'static>> {
    let (negative, unsigned) = split_sign(text);
    let (whole, after) = take_digits(unsigned, 0)?;
    match unsigned {
        // What is no JSON number is not taken for one either.
        [b'0', b'0'..=b'9', ..] => return None,
        [b'0'..=b'9', ..] => {}
        _ => return None,
    }
    match after {
        [] => integer(negative, whole),
        [b'.', fraction @ ..] => match take_digits(fraction, whole)? {
            (magnitude, []) => decimal(negative, magnitude, fraction.len()),
            _ => None,
        },
        _ => None,
    }
}

fn integer(negative: bool, magnitude: u64) -> Option<Datum<'static>> {
    let value = match (negative, magnitude) {
        (false, _) => i64::try_from(magnitude).ok()?,
        (true, 0) => return None,
        (true, _) => 0_i64.checked_sub_unsigned(magnitude)?,
    };
    Some(Datum::Int(value))
}

fn decimal(negative: bool, magnitude: u64, scale: usize) -> Option<Datum<'static>> {
    // A mantissa of zero would lose its sign.
    let fits = magnitude < DECIMAL_MANTISSA_END && !(negative && magnitude == 0);
    if !fits || !(1..=DECIMAL_DIGITS_MAX).contains(&scale) {
        return None;
    }
    let magnitude = i64::try_from(magnitude).ok()?;
    let mantissa = if negative { magnitude.wrapping_neg() } else { magnitude };
    Some(Datum::Decimal { mantissa, scale: u8::try_from(scale).ok()? })
}

/// The digits at the begin of `text` appended to `value`, and what follows them; nothing if they
/// overflow.
fn take_digits(mut text: &[u8], mut value: u64) -> Option<(u64, &[u8])> {
    while let [digit @ b'0'..=b'9', tail @ ..] = text {
        value = value.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))?;
        text = tail;
    }
    Some((value, text))
}

fn float(text: &[u8]) -> Option<Datum<'static>> {
    if text.len() > FLOAT_BYTES_MAX {
        return None;
    }
    let value: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let exact = value.is_finite() && zmij::Buffer::new().format_finite(value).as_bytes() == text;
    exact.then_some(Datum::Float(value))
}

/// Writes a number as the JSON text that it was classified from.
///
/// # Panics
/// If the datum is no number, or one that stands apart.
pub(crate) fn write_number(number: Datum<'_>, out: &mut Vec<u8>) {
    match number {
        Datum::Int(value) => write_integer(value, out),
        Datum::Decimal { mantissa, scale } => {
            let write = |part: &[u8]| {
                out.extend_from_slice(part);
                Some(())
            };
            write_decimal(mantissa, scale.into(), write);
        }
        Datum::Float(value) => {
            assert!(value.is_finite(), "{value} has no JSON text");
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        }
        Datum::Digits(text) => out.extend_from_slice(text),
        other => panic!("not a number with its text: {other:?}"),
    }
}

/// Writes an integer.
#[inline]
pub(crate) fn write_integer(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Writes a decimal, part by part, as long as the parts are taken.
pub(crate) fn write_decimal(
    mantissa: i64,
    scale: usize,
    mut write: impl FnMut(&[u8]) -> Option<()>,
) -> Option<()> {
    if mantissa < 0 {
        write(b"-")?;
    }
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(mantissa.unsigned_abs()).as_bytes();
    let (whole, fraction) =
        digits.split_at_checked(digits.len().saturating_sub(scale)).unwrap_or((digits, b""));
    write(if whole.is_empty() { b"0" } else { whole })?;
    write(b".")?;
    for _ in digits.len()..scale {
        write(b"0")?;
    }
    write(fraction)
}

/// Compares two numbers by the values of their texts; nothing if one is no number, or stands
/// apart. `-0`, `0` and `0.00` are equal.
pub(crate) fn compare(a: Datum<'_>, b: Datum<'_>) -> Option<Ordering> {
    if let (Some(a), Some(b)) = (in_units(a), in_units(b)) {
        return Some(a.cmp(&b));
    }
    if let (Datum::Float(a), Datum::Float(b)) = (a, b) {
        // The shortest texts of floats rise as the floats do.
        return a.partial_cmp(&b);
    }
    let (text_a, text_b) = (number_text(a)?, number_text(b)?);
    Some(Digits::of(&text_a).compare(&Digits::of(&text_b)))
}

/// An integer or decimal in units of 10 to the power of minus [`DECIMAL_DIGITS_MAX`].
fn in_units(number: Datum<'_>) -> Option<i128> {
    let (mantissa, scale) = match number {
        Datum::Int(value) => (value, 0),
        Datum::Decimal { mantissa, scale } => (mantissa, usize::from(scale)),
        _ => return None,
    };
    let power = u32::try_from(DECIMAL_DIGITS_MAX.checked_sub(scale)?).ok()?;
    i128::from(mantissa).checked_mul(10_i128.checked_pow(power)?)
}

fn number_text(number: Datum<'_>) -> Option<Cow<'_, [u8]>> {
    match number {
        Datum::Digits(text) => Some(Cow::Borrowed(text)),
        Datum::Int(_) | Datum::Decimal { .. } | Datum::Float(_) => {
            let mut text = Vec::new();
            write_number(number, &mut text);
            Some(Cow::Owned(text))
        }
        _ => None,
    }
}

/// A number's text taken apart: its value is `0.` and the digits, times 10 to the power.
pub(crate) struct Digits<'a> {
    negative: bool,
    power: Power,
    /// The digits before and after the point, all zeros at both ends of them cut off.
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Digits<'a> {
    pub(crate) fn of(text: &'a [u8]) -> Self {
        let (negative, unsigned) = split_sign(text);
        let (mantissa, exponent) = split_at_byte(unsigned, |byte| matches!(byte, b'e' | b'E'));
        let (whole, fraction) = split_at_byte(mantissa, |byte| byte == b'.');
        let (whole, fraction, shift) = without_leading_zeros(whole, fraction);
        let (is_small, exponent) = split_sign(exponent.strip_prefix(b"+").unwrap_or(exponent));
        let power = Power::of(is_small, exponent, shift);
        let fraction = cut_trailing_zeros(fraction);
        let whole = if fraction.is_empty() { cut_trailing_zeros(whole) } else { whole };
        Self { negative, power, whole, fraction }
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(crate) fn power(&self) -> &Power {
        &self.power
    }

    /// The digits, without zeros at both ends; none of zero.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        self.whole.iter().chain(self.fraction).copied()
    }

    fn compare(&self, other: &Self) -> Ordering {
        match self.sign().cmp(&other.sign()) {
            Ordering::Equal if self.negative => other.compare_magnitude(self),
            Ordering::Equal => self.compare_magnitude(other),
            unequal => unequal,
        }
    }

    fn sign(&self) -> Ordering {
        match (self.is_zero(), self.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    fn is_zero(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        if self.is_zero() || other.is_zero() {
            return other.is_zero().cmp(&self.is_zero());
        }
        self.power.cmp(&other.power).then_with(|| self.iter().cmp(other.iter()))
    }
}

/// The digits before and after the point from the first on that is not zero, and how many places
/// that one is in front of the point.
fn without_leading_zeros<'a>(whole: &'a [u8], fraction: &'a [u8]) -> (&'a [u8], &'a [u8], i128) {
    let whole = cut_leading_zeros(whole);
    if !whole.is_empty() {
        return (whole, fraction, whole.len() as i128);
    }
    let kept = cut_leading_zeros(fraction);
    (whole, kept, (kept.len() as i128).saturating_sub(fraction.len() as i128))
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    text.strip_prefix(b"-").map_or((false, text), |unsigned| (true, unsigned))
}

/// What stands before and after the first byte that is meant; nothing after if there is none.
fn split_at_byte(text: &[u8], meant: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let mut parts = text.splitn(2, |byte| meant(*byte));
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

fn cut_leading_zeros(mut digits: &[u8]) -> &[u8] {
    while let [b'0', tail @ ..] = digits {
        digits = tail;
    }
    digits
}

fn cut_trailing_zeros(mut digits: &[u8]) -> &[u8] {
    while let [head @ .., b'0'] = digits {
        digits = head;
    }
    digits
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "a test may panic")]
mod tests;
