//! Bit packing: 64 integers of `width` bits each as `width` words of 64 bits.
//!
//! Integer `i` has the bits `i * width` and on of the words, low ones first. The loops are
//! unrolled for each width, so that every shift is a constant.

#![deny(clippy::unwrap_used, clippy::expect_used)]

/// Integers that are packed at a time.
pub(super) const LANES: usize = 64;

/// Integers to be packed or unpacked.
pub(super) type Lanes = [u64; LANES];

/// Calls a kernel with the width as a constant.
macro_rules! by_width {
    ($width:expr, $kernel:ident $arguments:tt, $($constant:literal)*) => {
        match $width {
            $($constant => $kernel::<$constant> $arguments,)*
            _ => $kernel::<64> $arguments,
        }
    };
    ($width:expr, $kernel:ident $arguments:tt) => {
        by_width!($width, $kernel $arguments,
            1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
            33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61
            62 63)
    };
}

/// Repeats a block for each lane, whose number is a constant in it.
macro_rules! each_lane {
    ($lane:ident => $body:block) => {
        each_lane!($lane => $body,
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60
            61 62 63)
    };
    ($lane:ident => $body:block, $($constant:literal)*) => {
        $({ const $lane: usize = $constant; $body })*
    };
}

/// The bits that the widest of the lanes takes.
pub(super) fn width(lanes: &[u64]) -> u32 {
    u64::BITS.saturating_sub(lanes.iter().fold(0, |all, lane| all | lane).leading_zeros())
}

/// Bytes that `len` integers of `width` bits take, the last of them filled up.
pub(super) fn bytes(len: usize, width: u32) -> usize {
    len.saturating_mul(width as usize).div_ceil(8)
}

/// Appends the first `len` lanes, none of which has more than `width` bits.
pub(super) fn pack(lanes: &Lanes, len: usize, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let end = out.len().saturating_add(bytes(len.min(LANES), width));
    by_width!(width, pack_width(lanes, out));
    out.truncate(end);
}

/// Reads lanes from what [`pack`] appended, all of it and no more; what is missing reads as zeros.
pub(super) fn unpack(packed: &[u8], width: u32, lanes: &mut Lanes) {
    if width == 0 {
        *lanes = [0; LANES];
        return;
    }
    let mut padded = [0; 8 * LANES];
    let whole = (width as usize).saturating_mul(8).min(padded.len());
    let packed = if packed.len() >= whole {
        packed
    } else {
        padded.iter_mut().zip(packed).for_each(|(to, from)| *to = *from);
        &padded
    };
    by_width!(width, unpack_width(packed, lanes));
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "every index and shift is a constant that the compiler checks"
)]
#[inline(never)]
fn pack_width<const W: usize>(lanes: &Lanes, out: &mut Vec<u8>) {
    let mut words = [0_u64; W];
    each_lane!(LANE => {
        let bit = LANE * W;
        words[bit / 64] |= lanes[LANE] << (bit % 64);
        if bit % 64 + W > 64 {
            words[bit / 64 + 1] |= lanes[LANE] >> (64 - bit % 64);
        }
    });
    out.extend_from_slice(words.map(u64::to_le_bytes).as_flattened());
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "every index and shift is a constant that the compiler checks"
)]
#[inline(never)]
fn unpack_width<const W: usize>(packed: &[u8], lanes: &mut Lanes) {
    let mask = u64::MAX >> (64 - W);
    let (chunks, _) = packed.as_chunks::<8>();
    let Some(chunks) = chunks.first_chunk::<W>() else { return };
    let words = chunks.map(u64::from_le_bytes);
    each_lane!(LANE => {
        let bit = LANE * W;
        let mut lane = words[bit / 64] >> (bit % 64);
        if bit % 64 + W > 64 {
            lane |= words[bit / 64 + 1] << (64 - bit % 64);
        }
        lanes[LANE] = lane & mask;
    });
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "tests panic where they are wrong")]
mod tests {
    use super::*;

    #[test]
    fn integers_of_every_width_and_number_come_back() {
        for wide in 0..=64_u32 {
            let mask = if wide == 0 { 0 } else { u64::MAX >> (64 - wide) };
            let mut lanes = [0; LANES];
            for (lane, place) in lanes.iter_mut().zip(1_u64..) {
                *lane = place.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) & mask;
            }
            lanes[0] = mask;
            for len in [1, 2, 13, 63, 64] {
                let mut out = vec![7];
                assert_eq!(width(&lanes[..len]), wide);
                pack(&lanes, len, wide, &mut out);
                assert_eq!(out.len(), 1 + bytes(len, wide));
                let mut read = [1; LANES];
                unpack(&out[1..], wide, &mut read);
                assert_eq!(read[..len], lanes[..len], "{len} of {wide} bits");
            }
        }
    }
}
