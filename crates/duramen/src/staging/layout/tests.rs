//! Staging files, whole and damaged.
#![expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that goes wrong may panic"
)]

use super::*;
use crate::io::mapped_bytes;

const PLACES: usize = 6;

fn point(number: u64) -> StagedPoint {
    StagedPoint {
        series: TreeId(TreeId::SERIES.0 + 1 + number % 3),
        time: number.cast_signed() - 2,
        bits: number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        value_type: [ValueType::F64, ValueType::Bool][usize::from(number.is_multiple_of(2))],
        quality: 192,
    }
}

fn put(file: &mut [u8], at: u64, bytes: &[u8]) {
    let at = usize::try_from(at).unwrap();
    file.get_mut(at..at + bytes.len()).unwrap().copy_from_slice(bytes);
}

/// A file in which both banks have points, bank 1 the older ones.
fn sample() -> Vec<u8> {
    let mut file = vec![0; usize::try_from(file_bytes(PLACES)).unwrap()];
    put(&mut file, 0, &file_header(7, 9, PLACES));
    let seed = stripe_seed(7, 9);
    for (bank, generation, points) in [(0, 4, 0..3), (1, 3, 3..7)] {
        let headers = generation_seed(seed, bank, 0);
        let header = mapped_bytes(bank_header(headers, 1, generation, CommitSequence(5)));
        put(&mut file, place_at(PLACES, bank, 1), &header);
        let records = generation_seed(seed, bank, generation);
        for (number, place) in points.zip(HEADERS..) {
            let record = mapped_bytes(point(number).record(records, place));
            put(&mut file, place_at(PLACES, bank, place), &record);
        }
    }
    file
}

#[test]
fn points_come_back_by_generation_in_their_order() {
    let found = read(&sample(), 7).unwrap();
    assert_eq!(found.stripe, 9);
    let generations = found.generations.iter();
    let told: Vec<_> = generations.map(|one| (one.generation, one.after, &one.points)).collect();
    let older: Vec<_> = (3..7).map(point).collect();
    let newer: Vec<_> = (0..3).map(point).collect();
    let after = CommitSequence(5);
    assert_eq!(told, [(3, after, &older), (4, after, &newer)]);
}

#[test]
fn a_file_of_another_database_has_nothing() {
    assert_eq!(read(&sample(), 8), None);
    assert_eq!(read(&[0; 10_000], 7), None);
}

#[test]
fn the_newer_of_two_headers_counts_and_a_torn_one_does_not() {
    let mut file = sample();
    let headers = generation_seed(stripe_seed(7, 9), 0, 0);
    let header = mapped_bytes(bank_header(headers, 0, 4, CommitSequence(8)));
    put(&mut file, place_at(PLACES, 0, 0), &header);
    let newest = |file: &[u8]| read(file, 7).unwrap().generations.pop().unwrap();
    assert_eq!(newest(&file).after, CommitSequence(8));
    put(&mut file, place_at(PLACES, 0, 0), header.get(..20).unwrap());
    put(&mut file, place_at(PLACES, 0, 0) + 20, &[0xff; 12]);
    assert_eq!(newest(&file).after, CommitSequence(5));
    assert_eq!(newest(&file).points.len(), 3);
}

#[test]
fn any_byte_that_is_wrong_ends_the_bank_there() {
    let whole = read(&sample(), 7).unwrap();
    for offset in place_at(PLACES, 0, HEADERS)..place_at(PLACES, 0, HEADERS + 3) {
        let mut file = sample();
        file[usize::try_from(offset).unwrap()] ^= 0x10;
        let found = read(&file, 7).unwrap();
        let place = (offset - place_at(PLACES, 0, HEADERS)) / 32;
        let kept = usize::try_from(place).unwrap();
        assert_eq!(found.generations[1].points, whole.generations[1].points[..kept]);
        assert_eq!(found.generations[0], whole.generations[0]);
    }
}

#[test]
fn a_record_of_another_place_or_generation_is_none() {
    let seed = stripe_seed(7, 9);
    let mut file = sample();
    let moved = mapped_bytes(point(9).record(generation_seed(seed, 0, 4), HEADERS + 1));
    put(&mut file, place_at(PLACES, 0, HEADERS), &moved);
    assert!(read(&file, 7).unwrap().generations[1].points.is_empty());
    let old = mapped_bytes(point(9).record(generation_seed(seed, 0, 2), HEADERS));
    put(&mut file, place_at(PLACES, 0, HEADERS), &old);
    assert!(read(&file, 7).unwrap().generations[1].points.is_empty());
}

#[test]
fn a_file_that_was_cut_gives_what_is_left() {
    let file = sample();
    for len in 0..file.len() {
        let found = read(file.get(..len).unwrap(), 7);
        let banks = found.map_or(0, |found| found.generations.len());
        assert!(banks <= len / usize::try_from(place_at(PLACES, 1, 0)).unwrap(), "{len}");
    }
}

#[test]
fn a_header_tells_how_large_banks_are_whatever_this_process_makes() {
    for wanted in [1, 1 << 10, 1 << 30] {
        let header = file_header(7, 1, wanted);
        assert_eq!(places(&header, 7), Some(wanted));
        assert_eq!(places(&header, 8), None);
        assert_eq!(places(&header[..39], 7), None);
    }
    assert_eq!(places(&file_header(7, 1, usize::MAX), 7), None);
}
