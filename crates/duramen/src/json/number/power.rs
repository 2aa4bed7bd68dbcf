//! Powers of ten of any size: an exponent may have as many digits as a number's text.
//!
//! Invariants:
//! - a power has one form only, so that equal ones compare as equal;
//! - one that has room in 127 bits and a sign is kept in these.

use std::cmp::Ordering;

/// A power of ten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Power {
    Near(i128),
    /// Its decimal digits by their values, no zero in front.
    Far {
        is_negative: bool,
        digits: Vec<u8>,
    },
}

impl Power {
    /// What the digits of an exponent say, and more or less by as many digits as a text has.
    pub(super) fn of(is_negative: bool, text: &[u8], shift: i128) -> Self {
        let text = super::cut_leading_zeros(text);
        let magnitude = magnitude_of(text.iter().map(|digit| digit.wrapping_sub(b'0')));
        let near = magnitude.map(|value| if is_negative { value.wrapping_neg() } else { value });
        let near = near.and_then(|near| near.checked_add(shift));
        // The least integer has no counterpart, so it is told by its digits, as those below it.
        if let Some(near) = near.filter(|&near| near != i128::MIN) {
            return Self::Near(near);
        }
        let mut digits: Vec<u8> = text.iter().map(|digit| digit.wrapping_sub(b'0')).collect();
        add(&mut digits, if is_negative { shift.wrapping_neg() } else { shift });
        match magnitude_of(digits.iter().copied()) {
            Some(value) if is_negative => Self::Near(value.wrapping_neg()),
            Some(value) => Self::Near(value),
            None => Self::Far { is_negative, digits },
        }
    }
}

impl PartialOrd for Power {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Power {
    fn cmp(&self, other: &Self) -> Ordering {
        let far = |is_negative: bool| {
            if is_negative { Ordering::Less } else { Ordering::Greater }
        };
        match (self, other) {
            (Self::Near(a), Self::Near(b)) => a.cmp(b),
            (Self::Far { is_negative, .. }, Self::Near(_)) => far(*is_negative),
            (Self::Near(_), Self::Far { is_negative, .. }) => far(*is_negative).reverse(),
            (
                Self::Far { is_negative, digits: a },
                Self::Far { is_negative: is_other_negative, digits: b },
            ) => match (is_negative, is_other_negative) {
                (true, true) => b.len().cmp(&a.len()).then_with(|| b.cmp(a)),
                (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
                _ => far(*is_negative),
            },
        }
    }
}

/// The number that digits are, if it has room.
fn magnitude_of(mut digits: impl Iterator<Item = u8>) -> Option<i128> {
    digits.try_fold(0_i128, |value, digit| value.checked_mul(10)?.checked_add(digit.into()))
}

/// Adds what is less in magnitude to the number that digits are.
fn add(digits: &mut Vec<u8>, addend: i128) {
    let mut carry = addend;
    for digit in digits.iter_mut().rev() {
        if carry == 0 {
            break;
        }
        let sum = carry.saturating_add((*digit).into());
        *digit = u8::try_from(sum.rem_euclid(10)).unwrap_or(0);
        carry = sum.div_euclid(10);
    }
    while carry > 0 {
        digits.insert(0, u8::try_from(carry.rem_euclid(10)).unwrap_or(0));
        carry = carry.div_euclid(10);
    }
    let zeros = digits.iter().take_while(|digit| **digit == 0).count();
    digits.drain(..zeros);
}
