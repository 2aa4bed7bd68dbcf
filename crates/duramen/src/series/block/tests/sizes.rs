//! What blocks take: the sizes of sealed ones may not grow unseen.

use super::*;

/// Bytes a point of so many points in whole blocks.
fn bytes_per_point(values: Values, density: Density) -> f64 {
    let len = values.len();
    let times = (0..len as i64).map(|place| 1_000_000 + place * 1_000).collect();
    let points = Points::from_columns(times, values, Qualities::All(Quality::GOOD)).unwrap();
    let (mut start, mut bytes) = (0, 0);
    while start < len {
        let end = start + points.block_len(start);
        let mut out = Vec::new();
        let sequences = Sequences::All(CommitSequence(17));
        Block::encode((&points, start..end), None, &sequences, density, &mut out);
        (start, bytes) = (end, bytes + out.len());
    }
    bytes as f64 / len as f64
}

fn index(len: usize) -> Values {
    Values::F64((0..len).map(|place| place as f64).collect())
}

/// A random walk by steps of N(0, 0.05).
fn walk(len: usize, seen: impl Fn(f64) -> f64) -> Values {
    let (mut random, mut value) = (Numbers64(42), 100.0);
    let step = |_| {
        value += random.normal() * 0.05;
        seen(value)
    };
    Values::F64((0..len).map(step).collect())
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The walk, kept as it was until it has moved by more than 0.5.
fn hold(len: usize) -> Values {
    let Values::F64(mut all) = walk(len, |value| value) else { unreachable!() };
    let mut held = f64::INFINITY;
    for value in &mut all {
        if (*value - held).abs() > 0.5 {
            held = *value;
        }
        *value = held;
    }
    Values::F64(all)
}

#[test]
fn blocks_take_few_bytes() {
    const LEN: usize = 4 * SERIES_BLOCK_POINTS_MAX;
    let cases = [
        ("index", index(LEN), 0.01, 0.01),
        ("walk2", walk(LEN, rounded), 0.7, 0.57),
        ("walk", walk(LEN, |value| value), 6.0, 5.6),
        ("hold", hold(LEN), 0.1, 0.08),
    ];
    for (name, values, hot, sealed) in cases {
        let measured = bytes_per_point(values.clone(), Density::Hot);
        assert!(measured <= hot, "{name} hot: {measured}");
        let measured = bytes_per_point(values, Density::Sealed);
        assert!(measured <= sealed, "{name} sealed: {measured}");
    }
}
