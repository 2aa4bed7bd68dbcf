//! Loops over encoded integers and bitmaps: what aggregates spend their time in; and the checksum
//! of a record of 28 bytes, of which a call for any length would be most.
//!
//! Integers are unsigned, little-endian, of 1, 2, 4 or 8 bytes ([`Lane`]); a bitmap has the bit of
//! value `i` in its word `i / 64`, and the bits beyond the last value are 0.
//!
//! Each loop is written for any processor (`scalar`). Comparisons, sums and bounds are written a
//! second time for x86-64 with AVX2, which is looked for when they are called, comparisons of bytes
//! with SSE2, and comparisons for 64-bit ARM with NEON, which every one has: compilers find no way
//! from a comparison to a bit nor back. Others are compiled a second time ([`run_widest`]).
//!
//! ```
//! let mut bits = [0];
//! duramen_kernel::between(&[3_u8, 9, 7], 4, 8, &mut bits);
//! assert_eq!(bits, [0b100]);
//! assert_eq!(duramen_kernel::masked_sum(&[3_u8, 9, 7], &bits), 7);
//! ```

#[cfg(target_arch = "aarch64")]
mod arm;
mod lane;
mod record;
mod scalar;
#[cfg(test)]
mod tests;
mod widen;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use lane::Lane;
pub use record::{crc32c_record, fetch_to_write};
pub use widen::{Widen, run_widest};

/// Values of one word of a bitmap.
const WORD: usize = 64;

macro_rules! widest {
    ($name:ident($($of:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = x86::Avx2::detect() {
            return x86::$name(avx2, $($of),*);
        }
        scalar::$name($($of),*)
    }};
}

/// Sets the bits of the values from `low` to `high`, and clears those of others.
#[inline]
pub fn between<L: Lane>(values: &[L], low: u64, high: u64, bits: &mut [u64]) {
    let high = high.min(L::MAX);
    if low > high {
        return bits.fill(0);
    }
    #[cfg(target_arch = "x86_64")]
    let words = match (x86::Avx2::detect(), L::BYTES) {
        (Some(avx2), _) => x86::between(avx2, values, (low, high), bits),
        (None, 1) => x86::bytes_between(L::bytes(values), (low, high), bits),
        (None, _) => 0,
    };
    #[cfg(target_arch = "aarch64")]
    let words = arm::between(values, (low, high), bits);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let words = 0;
    scalar::between(&values[words * WORD..], low, high, &mut bits[words..]);
}

/// The sum of the values whose bits are set.
#[inline]
pub fn masked_sum<L: Lane>(values: &[L], bits: &[u64]) -> u128 {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = x86::Avx2::detect() {
        let (sum, words) = x86::masked_sum(avx2, values, bits);
        return sum + scalar::masked_sum(&values[words * WORD..], &bits[words..]);
    }
    scalar::masked_sum(values, bits)
}

/// The least and the greatest of the values whose bits are set.
#[inline]
pub fn masked_bounds<L: Lane>(values: &[L], bits: &[u64]) -> Option<(u64, u64)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = x86::Avx2::detect() {
        let ((least, most), words) = x86::masked_bounds(avx2, values, bits);
        let (whole, rest) = bits.split_at(words);
        let rest = scalar::masked_bounds(&values[words * WORD..], rest);
        return match rest {
            _ if whole.iter().all(|word| *word == 0) => rest,
            None => Some((least, most)),
            Some(rest) => Some((least.min(rest.0), most.max(rest.1))),
        };
    }
    scalar::masked_bounds(values, bits)
}

/// How many bits are set.
#[inline]
pub fn count(bits: &[u64]) -> u64 {
    widest!(count(bits))
}

/// Takes integers of half a byte, the first of each two in the lower half, apart.
#[inline]
pub fn unpack_halves(bytes: &[u8], values: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    let (bytes, values) = {
        let whole = match x86::Avx2::detect() {
            Some(avx2) => x86::unpack_halves_avx2(avx2, bytes, values),
            None => x86::unpack_halves(bytes, values),
        };
        (&bytes[whole..], &mut values[2 * whole..])
    };
    scalar::unpack_halves(bytes, values);
}

/// Multiplies each code by a factor and adds another one, modulo 256.
#[inline]
pub fn combine(codes: &mut [u8], factor: u8, others: &[u8]) {
    widest!(combine(codes, factor, others));
}

/// Adds how often there is each value below the length of `counts` where bits are set.
#[inline]
pub fn masked_histogram(values: &[u8], bits: &[u64], counts: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if counts.len() <= x86::FEW
        && let Some(avx2) = x86::Avx2::detect()
    {
        let words = x86::few_avx2(avx2, values, bits, counts);
        let (values, bits) = (&values[words * WORD..], &bits[words..]);
        // It begins with tables, which take longer than a few values.
        if !values.is_empty() {
            scalar::masked_histogram(values, bits, counts);
        }
        return;
    }
    scalar::masked_histogram(values, bits, counts);
}
