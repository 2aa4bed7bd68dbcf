//! Where fuzzing enters the decoders of series, and what it begins with.

use bytes::Bytes;

use super::block::{Block, Density, Sequences};
use super::{Points, Qualities, Quality, Texts, Values};
use crate::revision::CommitSequence;

/// Decodes a block in every way that it is read.
pub(crate) fn block(data: &[u8]) {
    let Ok(block) = Block::parse(Bytes::copy_from_slice(data)) else { return };
    let (mut points, len) = (Points::new(block.value_type()), block.len());
    let decoded = block.decode(0..len, &mut points).is_ok();
    assert_eq!(points.len(), if decoded { len } else { 0 }, "points of a block of {len}");
    let _ = block.decode(len / 3..len / 2, &mut points).is_ok();
    let _ = (block.sequences().is_ok(), block.check().is_ok());
}

/// Blocks in every form that columns have.
pub(crate) fn blocks() -> impl Iterator<Item = Vec<u8>> {
    const LEN: u32 = 300;
    let rough = |place: u32| f64::from(place.wrapping_mul(2_654_435_769));
    let all = || 0..LEN;
    let columns = [
        Values::F64(all().map(|place| (rough(place % 7) / 1e7).round() / 100.0).collect()),
        Values::F64(all().map(|place| rough(place).sqrt()).collect()),
        Values::F64(all().map(|place| f64::from(place / 40)).collect()),
        Values::F64(all().map(|place| if place % 99 == 9 { f64::NAN } else { 1.5 }).collect()),
        Values::F32(all().map(|place| f32::from(place.to_le_bytes()[0]) / 10.0).collect()),
        Values::I64(all().map(|place| i64::from(place) * 12).collect()),
        Values::I64(all().map(|place| i64::from(place.wrapping_mul(40_503) % 977)).collect()),
        Values::I64(all().map(|place| i64::from(place.wrapping_mul(u32::MAX / 3)) << 20).collect()),
        Values::Bool(all().map(|place| place.count_ones() % 2 == 0).collect()),
        Values::String(all().map(|place| ["on", "off", "\u{e9}"][place as usize % 3]).collect()),
        Values::String(words(LEN)),
    ];
    columns
        .into_iter()
        .flat_map(|values| [Density::Hot, Density::Sealed].map(|d| sample(&values, d)))
}

fn words(len: u32) -> Texts {
    let mut texts = Texts::default();
    (0..len).for_each(|place| texts.push(&format!("word {place}")));
    texts
}

fn sample(values: &Values, density: Density) -> Vec<u8> {
    let jitter = i64::from(density == Density::Sealed);
    let len = values.len();
    let times = (0..len as u64).map(u64::cast_signed);
    let times = times.map(|place| place * 1_000_000 + place * place % 997 * jitter).collect();
    let qualities = (0..len).map(|place| if place % 50 < 9 { Quality(64) } else { Quality::GOOD });
    let sequences = (0..len as u64).map(|place| CommitSequence(1_000 + place / 20)).collect();
    let mut out = Vec::new();
    let points = Points::from_columns(times, values.clone(), Qualities::Each(qualities.collect()));
    if let Ok(points) = points {
        Block::encode((&points, 0..len), None, &Sequences::Each(sequences), density, &mut out);
    }
    out
}
