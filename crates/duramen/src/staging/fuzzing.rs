//! Where fuzzing enters the staging files, and what it begins with.

use super::layout::{
    HEADERS, StagedPoint, bank_header, file_bytes, file_header, generation_seed, place_at, read,
    stripe_seed,
};
use crate::io::mapped_bytes;
use crate::revision::CommitSequence;
use crate::series::ValueType;
use crate::tree::cell_key::TreeId;

const DATABASE: u128 = 7;
const STRIPE: u64 = 9;
/// Places of a bank, so few that an input is short.
const PLACES: usize = 20;

/// Reads a file, whose header is put right, and makes commits of what is found. What a bank has
/// lies behind checksums, which few changes leave right: those of the corpus do.
pub(crate) fn stripe(data: &[u8]) {
    let mut file = data.to_vec();
    let header = file_header(DATABASE, STRIPE, PLACES);
    if let Some(first) = file.first_chunk_mut() {
        *first = header;
    }
    let Some(found) = read(&file, DATABASE) else { return };
    assert_eq!(found.stripe, STRIPE, "the header is that of the stripe");
    for generation in found.generations {
        assert!(generation.points.len() <= PLACES - HEADERS, "more points than places");
        let _ = super::Columns::of(&generation.points).is_ok();
    }
}

/// Files of which one bank, or both, have points.
pub(crate) fn files() -> impl Iterator<Item = Vec<u8>> {
    [[3, 0], [18, 5], [0, 18]].into_iter().map(|counts| {
        let mut file = vec![0; usize::try_from(file_bytes(PLACES)).unwrap_or_default()];
        let mut put = |at: u64, bytes: &[u8]| {
            let at = usize::try_from(at).unwrap_or_default();
            if let Some(place) = file.get_mut(at..at + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(0, &file_header(DATABASE, STRIPE, PLACES));
        let seed = stripe_seed(DATABASE, STRIPE);
        for (bank, count) in counts.into_iter().enumerate() {
            let generation = 4 + bank as u64;
            let header = generation_seed(seed, bank, 0);
            let header = mapped_bytes(bank_header(header, bank, generation, CommitSequence(30)));
            put(place_at(PLACES, bank, bank), &header);
            let seed = generation_seed(seed, bank, generation);
            for (number, place) in (0..count).zip(HEADERS..) {
                put(
                    place_at(PLACES, bank, place),
                    &mapped_bytes(point(number).record(seed, place)),
                );
            }
        }
        file
    })
}

fn point(number: u64) -> StagedPoint {
    StagedPoint {
        series: TreeId(TreeId::SERIES.0 + 1 + number % 3),
        time: number.cast_signed() * 1_000_000,
        bits: number,
        value_type: ValueType::I64,
        quality: 192,
    }
}
