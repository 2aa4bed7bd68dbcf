//! Comparisons with the instructions that every 64-bit ARM has (NEON).
//!
//! They look at whole words of 64 integers; the rest is left to the loops for any processor.

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vcleq_u8, vcleq_u16, vcleq_u32, vcleq_u64, vdupq_n_u8, vdupq_n_u16,
    vdupq_n_u32, vdupq_n_u64, vgetq_lane_u64, vld1q_u8, vpaddq_u8, vreinterpretq_u8_u16,
    vreinterpretq_u8_u32, vreinterpretq_u8_u64, vreinterpretq_u16_u8, vreinterpretq_u32_u8,
    vreinterpretq_u64_u8, vsubq_u8, vsubq_u16, vsubq_u32, vsubq_u64, vuzp1q_u8, vuzp1q_u16,
    vuzp1q_u32,
};

use crate::WORD;
use crate::lane::Lane;

/// Bytes that are looked at together.
const PART: usize = 16;

/// Sets the bits of the integers from `low` to `high`, which is at least that, and clears those of
/// others; gives how many words that were.
#[expect(unsafe_code, reason = "instructions that are always there")]
pub(crate) fn between<L: Lane>(values: &[L], range: (u64, u64), bits: &mut [u64]) -> usize {
    #[target_feature(enable = "neon")]
    fn own<L: Lane>(values: &[L], (low, high): (u64, u64), bits: &mut [u64]) -> usize {
        let words = L::bytes(values).chunks_exact(WORD * L::BYTES);
        let count = words.len().min(bits.len());
        let (low, above) = (all::<L>(low), all::<L>(high - low));
        for (word, bits) in words.zip(bits) {
            let (parts, _) = word.as_chunks();
            // A byte for each integer, 16 together: lanes become narrower step by step.
            let mut flags = parts.chunks_exact(L::BYTES).map(|parts| {
                let whole = |at: usize| within::<L>(load(&parts[at]), low, above);
                let fours = |at| match L::BYTES {
                    8 => narrow_8(whole(2 * at), whole(2 * at + 1)),
                    _ => whole(at),
                };
                let twos = |at| match L::BYTES {
                    4 | 8 => narrow_4(fours(2 * at), fours(2 * at + 1)),
                    _ => fours(at),
                };
                if L::BYTES == 1 { twos(0) } else { narrow_2(twos(0), twos(1)) }
            });
            let mut next = || flags.next().unwrap_or(vdupq_n_u8(0));
            *bits = gather([next(), next(), next(), next()]);
        }
        count
    }
    // SAFETY: every 64-bit ARM has NEON.
    unsafe { own(values, range, bits) }
}

#[expect(unsafe_code, reason = "a load of 16 bytes from anywhere")]
#[target_feature(enable = "neon")]
fn load(part: &[u8; PART]) -> uint8x16_t {
    // SAFETY: a part has the 16 bytes that are loaded.
    unsafe { vld1q_u8(part.as_ptr()) }
}

/// An integer in each lane.
#[expect(clippy::cast_possible_truncation, reason = "lanes have the width of the integer")]
#[target_feature(enable = "neon")]
fn all<L: Lane>(value: u64) -> uint8x16_t {
    match L::BYTES {
        1 => vdupq_n_u8(value as u8),
        2 => vreinterpretq_u8_u16(vdupq_n_u16(value as u16)),
        4 => vreinterpretq_u8_u32(vdupq_n_u32(value as u32)),
        _ => vreinterpretq_u8_u64(vdupq_n_u64(value)),
    }
}

/// All bits of each lane that is `low` or above it by `above` at most.
#[target_feature(enable = "neon")]
fn within<L: Lane>(values: uint8x16_t, low: uint8x16_t, above: uint8x16_t) -> uint8x16_t {
    macro_rules! at_width {
        ($lanes:ident, $bytes:ident, $sub:ident, $at_most:ident) => {
            $bytes($at_most($sub($lanes(values), $lanes(low)), $lanes(above)))
        };
    }
    match L::BYTES {
        1 => vcleq_u8(vsubq_u8(values, low), above),
        2 => at_width!(vreinterpretq_u16_u8, vreinterpretq_u8_u16, vsubq_u16, vcleq_u16),
        4 => at_width!(vreinterpretq_u32_u8, vreinterpretq_u8_u32, vsubq_u32, vcleq_u32),
        _ => at_width!(vreinterpretq_u64_u8, vreinterpretq_u8_u64, vsubq_u64, vcleq_u64),
    }
}

/// The lower halves of lanes of two bytes.
#[target_feature(enable = "neon")]
fn narrow_2(first: uint8x16_t, second: uint8x16_t) -> uint8x16_t {
    vuzp1q_u8(first, second)
}

/// The same of four bytes.
#[target_feature(enable = "neon")]
fn narrow_4(first: uint8x16_t, second: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_u16(vuzp1q_u16(vreinterpretq_u16_u8(first), vreinterpretq_u16_u8(second)))
}

/// The same of eight bytes.
#[target_feature(enable = "neon")]
fn narrow_8(first: uint8x16_t, second: uint8x16_t) -> uint8x16_t {
    vreinterpretq_u8_u32(vuzp1q_u32(vreinterpretq_u32_u8(first), vreinterpretq_u32_u8(second)))
}

/// A bit of each byte of which all or none are set.
#[target_feature(enable = "neon")]
fn gather(flags: [uint8x16_t; 4]) -> u64 {
    let own = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let [a, b, c, d] = flags.map(|flags| vandq_u8(flags, own));
    // Three sums of neighbours make a byte of eight.
    let fours = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(fours, fours)))
}
