//! Columns of symbols: what is kept as one comes back, and damage is an error.

use super::integers::{SYMBOLS, decode, encode_apart, sums};
use super::*;

/// Integers of a whole block.
const LEN: usize = SERIES_BLOCK_POINTS_MAX;

/// How integers come about.
type Draw = fn(usize, &mut Numbers64, &mut i64) -> i64;

fn steps(random: &mut Numbers64) -> i64 {
    (random.normal() * 5.0).round() as i64
}

/// Integers with few differences, or few values, and some that are rare.
const KEPT: [(&str, Draw); 6] = [
    ("a walk", |_, random, last| {
        *last += steps(random);
        *last
    }),
    ("a walk that jumps at the ends of pages", |place, random, last| {
        *last += if place % 4_096 < 2 { 70_000 } else { steps(random) };
        *last
    }),
    ("a walk with leaps beyond four bytes", |place, random, last| {
        let leap = if place % 999 == 998 { i64::MAX / 3 } else { 0 };
        *last = last.wrapping_add(leap).wrapping_add(steps(random));
        *last
    }),
    ("a walk downwards", |_, random, last| {
        *last -= 40 + steps(random) * 3;
        *last
    }),
    ("noise", |_, random, _| 1_000 + steps(random)),
    ("noise about the least", |place, random, _| {
        i64::MIN + if place % 900 == 0 { 1 << 40 } else { 100 + steps(random) }
    }),
];

fn drawn_by(draw: Draw, len: usize) -> Vec<i64> {
    let (mut random, mut last) = (Numbers64(len as u64), 0);
    (0..len).map(|place| draw(place, &mut random, &mut last)).collect()
}

fn sealed(values: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_apart(values, Density::Sealed, &mut out);
    out
}

fn part(bytes: &[u8], len: usize, range: Range<usize>) -> Result<Vec<i64>> {
    let (mut reader, mut found) = (Reader::new(bytes), Vec::new());
    decode(&mut reader, len, range, &mut |some| found.extend_from_slice(some))?;
    if reader.rest().is_empty() { Ok(found) } else { Err(reader.corrupt("bytes are left")) }
}

#[test]
fn symbols_come_back_in_any_range() {
    for (name, draw) in KEPT {
        for len in [2_500, 4_096, 4_097, 12_288, LEN] {
            let values = drawn_by(draw, len);
            let bytes = sealed(&values);
            if len == LEN {
                assert_eq!(bytes[0], SYMBOLS, "{name}");
            }
            let middle = len / 2;
            let ranges = [0..len, 0..1, 1..2, len - 1..len, middle..middle + 700, len..len, 7..7];
            for range in ranges.into_iter().chain([4_095..4_098.min(len), 300..len - 300]) {
                let range = range.start.min(len)..range.end;
                let found = part(&bytes, len, range.clone()).unwrap();
                assert_eq!(found, values[range.clone()], "{name}: {range:?} of {len}");
            }
        }
    }
}

#[test]
fn sums_of_symbols_are_those_of_the_integers() {
    let ends = [1, 60, 4_096, 4_097, 9_000, LEN];
    for (name, draw) in [KEPT[0], KEPT[1], KEPT[3], KEPT[4]] {
        let values = drawn_by(draw, LEN);
        let bytes = sealed(&values);
        let found = sums(&mut Reader::new(&bytes), LEN, &ends).unwrap().unwrap();
        let starts = std::iter::once(0).chain(ends);
        let expected: Vec<i64> =
            starts.zip(ends).map(|(start, end)| values[start..end].iter().sum()).collect();
        assert_eq!((bytes[0], found), (SYMBOLS, expected), "{name}");
    }
}

#[test]
fn many_rare_integers_are_no_symbols() {
    let far = drawn_by(|_, random, _| random.below(1 << 20).cast_signed(), 8_192);
    let regular = drawn_by(|place, _, _| place as i64 * 3, 8_192);
    // Two kinds of common ones that no 16 bits hold.
    let apart = drawn_by(|place, random, _| ((place as i64 % 2) << 33) + steps(random), 8_192);
    for values in [far, regular, apart] {
        let bytes = sealed(&values);
        assert_ne!(bytes[0], SYMBOLS);
        assert_eq!(part(&bytes, 8_192, 0..8_192).unwrap(), values);
    }
}

#[test]
fn damaged_symbols_do_not_panic() {
    let random = &mut Numbers64(11);
    for (_, draw) in KEPT {
        let bytes = sealed(&drawn_by(draw, LEN));
        assert_eq!(bytes[0], SYMBOLS);
        for len in (1..bytes.len()).step_by(397) {
            assert!(part(&bytes[..len], LEN, 0..LEN).is_err(), "{len} bytes");
        }
        for _ in 0..400 {
            let mut bytes = bytes.clone();
            // Most of it is what pco reads: what stands before is damaged as often.
            let end = [60, bytes.len()][random.below(2) as usize];
            bytes[random.below(end as u64) as usize] = random.next() as u8;
            let found = part(&bytes, LEN, 4_000..9_000);
            assert!(found.is_err() || found.is_ok_and(|found| found.len() == 5_000));
        }
    }
}

#[test]
fn wrong_lists_of_rare_residuals_are_refused() {
    // The base 0, 2 bytes, values, from 0 on, two that are rare; lines of places; of residuals.
    let head = [SYMBOLS, 0, 2, 0, 0, 2];
    let line = |base: i64, step: i64| {
        let mut bytes = vec![0];
        crate::wire::put_signed(&mut bytes, base);
        crate::wire::put_signed(&mut bytes, step);
        bytes
    };
    let symbols = sealed(&drawn_by(KEPT[4].1, LEN));
    assert_eq!(symbols[0], SYMBOLS);
    let order = "rare residuals are not in the order of their places";
    for (places, expected) in [
        (line(5, -1), order),
        (line(5, 0), order),
        (line(-1, 9), order),
        (line(90, 10), order),
        (symbols, "rare residuals are symbols"),
    ] {
        let bytes = [&head[..], &places, &line(7, 0)].concat();
        let error = part(&bytes, 100, 0..100).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let many = [&[SYMBOLS, 0, 2, 0, 0, 101][..], &line(0, 1), &line(7, 0)].concat();
    let error = part(&many, 100, 0..100).unwrap_err().to_string();
    assert!(error.contains("more rare residuals than integers"), "{error}");
}
