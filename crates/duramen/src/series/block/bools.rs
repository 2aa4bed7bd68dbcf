//! Columns of truth values: bitmaps, or integers where these are shorter.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use super::{Density, integers};
use crate::error::Result;
use crate::wire::Reader;

/// One bit each, low ones first.
const BITMAP: u8 = 0;
/// 0 and 1 as a column of integers.
const INTEGERS: u8 = 1;

/// Appends the encoding of `values`, whose number the owner keeps.
pub(super) fn encode(values: &[bool], density: Density, out: &mut Vec<u8>) {
    let numbers: Vec<i64> = values.iter().map(|value| i64::from(*value)).collect();
    let mut integers = vec![INTEGERS];
    integers::encode(&numbers, density, &mut integers);
    if integers.len() <= values.len().div_ceil(8) {
        return out.extend_from_slice(&integers);
    }
    out.push(BITMAP);
    let byte = |eight: &[bool]| eight.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    out.extend(values.chunks(8).map(byte));
}

/// Appends those of a range of `len` values to `out`.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    out: &mut Vec<bool>,
) -> Result<()> {
    match reader.byte()? {
        BITMAP => {
            let bits = reader.take(len.div_ceil(8))?;
            let skipped = range.start.wrapping_rem(8);
            let bytes = bits.get(range.start.wrapping_div(8)..).unwrap_or_default();
            let each = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
            out.extend(each.skip(skipped).take(range.len()));
            Ok(())
        }
        INTEGERS => {
            let mut is_bool = true;
            integers::decode(reader, len, range, &mut |some| {
                is_bool &= some.iter().all(|value| *value & !1 == 0);
                out.extend(some.iter().map(|value| *value == 1));
            })?;
            if is_bool { Ok(()) } else { Err(reader.corrupt("a truth value is 0 or 1")) }
        }
        _ => Err(reader.corrupt("there is no such form of truth values")),
    }
}
