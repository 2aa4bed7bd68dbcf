//! Loops that any processor runs, and that those with instructions of their own are tested against.
//!
//! They go by 64 values, a word of a bitmap, without branches within, so that compilers make wide
//! ones of them for whatever target they are inlined into.

use crate::WORD;
use crate::lane::Lane;

/// By which eight bytes of 0 and 1 are multiplied to have them as bits in the highest byte.
const GATHER: u64 = 0x0102_0408_1020_4080;

#[inline]
pub(crate) fn between<L: Lane>(values: &[L], low: u64, high: u64, bits: &mut [u64]) {
    if low > L::MAX {
        bits.fill(0);
        return;
    }
    let (low, high) = (L::narrow(low), L::narrow(high));
    let (words, rest) = values.as_chunks::<WORD>();
    let mut bits = bits.iter_mut();
    for (group, word) in words.iter().zip(&mut bits) {
        let mut flags = [0_u8; WORD];
        for (flag, value) in flags.iter_mut().zip(group) {
            let value = value.word();
            *flag = u8::from(low <= value) & u8::from(value <= high);
        }
        *word = gather(&flags);
    }
    if let Some(word) = bits.next() {
        *word = (0..).zip(rest).fold(0, |word, (bit, value)| {
            let value = value.word();
            word | u64::from(low <= value && value <= high) << bit
        });
    }
    bits.for_each(|word| *word = 0);
}

#[inline]
fn gather(flags: &[u8; WORD]) -> u64 {
    let (eights, _) = flags.as_chunks::<8>();
    let bytes = eights.iter().map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56);
    (0..).step_by(8).zip(bytes).fold(0, |word, (shift, byte)| word | byte << shift)
}

#[inline]
pub(crate) fn masked_sum<L: Lane>(values: &[L], bits: &[u64]) -> u128 {
    let mut sum = 0_u128;
    for (group, &word) in values.chunks(WORD).zip(bits) {
        let own = (0..).zip(group).map(|(bit, value)| value.value() & chosen(word, bit));
        sum += match u32::try_from(L::MAX) {
            Ok(_) => u128::from(own.sum::<u64>()),
            Err(_) => own.map(u128::from).sum::<u128>(),
        };
    }
    sum
}

/// All bits if one is set.
#[inline]
fn chosen(word: u64, bit: u32) -> u64 {
    (word >> bit & 1).wrapping_neg()
}

#[inline]
pub(crate) fn masked_bounds<L: Lane>(values: &[L], bits: &[u64]) -> Option<(u64, u64)> {
    let (mut least, mut most, mut any) = (u64::MAX, 0, 0);
    for (group, &word) in values.chunks(WORD).zip(bits) {
        any |= word;
        for (bit, value) in (0..).zip(group) {
            let (value, chosen) = (value.value(), chosen(word, bit));
            least = least.min(value | !chosen);
            most = most.max(value & chosen);
        }
    }
    (any != 0).then_some((least, most))
}

#[inline]
pub(crate) fn count(bits: &[u64]) -> u64 {
    bits.iter().map(|word| u64::from(word.count_ones())).sum()
}

#[inline]
pub(crate) fn unpack_halves(bytes: &[u8], values: &mut [u8]) {
    let (pairs, rest) = values.as_chunks_mut::<2>();
    let whole = pairs.len();
    for (pair, byte) in pairs.iter_mut().zip(bytes) {
        *pair = [byte & 0xf, byte >> 4];
    }
    if let (Some(last), Some(byte)) = (rest.first_mut(), bytes.get(whole)) {
        *last = byte & 0xf;
    }
}

#[inline]
pub(crate) fn combine(codes: &mut [u8], factor: u8, others: &[u8]) {
    for (code, other) in codes.iter_mut().zip(others) {
        *code = code.wrapping_mul(factor).wrapping_add(*other);
    }
}

#[inline]
pub(crate) fn masked_histogram(values: &[u8], bits: &[u64], counts: &mut [u64]) {
    // Values often come twice in a row, and a count that was just stored is slow to load.
    let mut tables = [[0_u32; 256]; 4];
    for (group, &word) in values.chunks(WORD).zip(bits) {
        let (fours, []) = group.as_chunks::<4>() else {
            each(group, word, &mut tables[0]);
            continue;
        };
        if word != u64::MAX {
            each(group, word, &mut tables[0]);
            continue;
        }
        let [a, b, c, d] = &mut tables;
        for four in fours {
            a[usize::from(four[0])] += 1;
            b[usize::from(four[1])] += 1;
            c[usize::from(four[2])] += 1;
            d[usize::from(four[3])] += 1;
        }
    }
    for (value, count) in counts.iter_mut().take(256).enumerate() {
        *count += tables.iter().map(|table| u64::from(table[value])).sum::<u64>();
    }
}

#[inline]
fn each(values: &[u8], mut word: u64, counts: &mut [u32; 256]) {
    while word != 0 {
        if let Some(value) = values.get(word.trailing_zeros() as usize) {
            counts[usize::from(*value)] += 1;
        }
        word &= word - 1;
    }
}

/// Goes on from a CRC-32C over four bytes and three words.
#[inline]
pub(crate) fn crc32c_record(sum: u32, head: u32, words: [u64; 3]) -> u32 {
    let words = words.map(u64::to_le_bytes);
    crc32c::crc32c_append(crc32c::crc32c_append(sum, &head.to_le_bytes()), words.as_flattened())
}
