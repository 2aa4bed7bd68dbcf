#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    reason = "tests draw numbers, and panic where they are wrong"
)]

use proptest::prelude::*;

use super::*;
use crate::series::Texts;

mod hostile;
mod sizes;
mod symbols;

/// A generator of numbers that is the same everywhere (`SplitMix64`).
pub(in crate::series) struct Numbers64(pub(in crate::series) u64);

impl Numbers64 {
    pub(in crate::series) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(in crate::series) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// About normally distributed, by twelve draws.
    pub(in crate::series) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next() as f64 / u64::MAX as f64).sum::<f64>() - 6.0
    }
}

pub(super) fn encoded(points: &Points, sequences: &Sequences, density: Density) -> Block {
    let mut out = Vec::new();
    Block::encode((points, 0..points.len()), None, sequences, density, &mut out);
    Block::parse(out.into()).unwrap()
}

fn sequence_of(block: &Block) -> Vec<CommitSequence> {
    let sequences = block.sequences().unwrap();
    (0..block.len()).map(|index| sequences.get(index)).collect()
}

/// Everything of a block against the points it was made of.
fn check(points: &Points, sequences: &Sequences, density: Density) {
    let block = encoded(points, sequences, density);
    let len = points.len();
    let mut read = Points::new(points.value_type());
    block.decode(0..len, &mut read).unwrap();
    assert_eq!(&read, points);
    let expected: Vec<_> = (0..len).map(|index| sequences.get(index)).collect();
    assert_eq!(sequence_of(&block), expected);
    block.check().unwrap();
    assert_eq!((block.len(), block.density()), (len, density));
    let times = points.times();
    assert_eq!(block.time_range(), (Micros(times[0]), Micros(times[len - 1])));
    let range = (*expected.iter().min().unwrap(), *expected.iter().max().unwrap());
    assert_eq!(block.sequence_range(), range);
    for (start, end) in [(0, 1), (len / 3, len / 2), (len / 2, len), (len, len)] {
        let mut expected = read.clone();
        expected.append(points, start..end);
        let mut some = read.clone();
        block.decode(start..end, &mut some).unwrap();
        assert_eq!(some, expected, "{start}..{end} of {len}");
    }
}

/// A column of a kind that some encoding is made for.
fn values(kind: u64, len: usize, random: &mut Numbers64) -> Values {
    let mut walk = 20.0;
    let mut whole = 5_i64;
    let mut float = |kind: u64, random: &mut Numbers64| {
        walk += random.normal() * 0.05;
        match kind {
            0 => (walk * 100.0).round() / 100.0,
            1 => walk,
            2 => f64::from_bits(random.next()),
            3 if random.below(40) == 0 => f64::from_bits(0x7ff8_0000_0000_0000 | random.below(9)),
            3 => (walk * 1000.0).round() / 1000.0,
            4 => [0.0, -0.0, f64::INFINITY, f64::NAN, 1e300][random.below(5) as usize],
            5 => (walk * 2.0).round() / 2.0 * 1e9,
            _ => random.below(1 << 60) as f64,
        }
    };
    match kind {
        0..7 => Values::F64((0..len).map(|_| float(kind, random)).collect()),
        7..14 => Values::F32((0..len).map(|_| float(kind - 7, random) as f32).collect()),
        14 => Values::I64((0..len as i64).map(|place| place * -7).collect()),
        15 => Values::I64((0..len).map(|_| random.next().cast_signed()).collect()),
        16 => Values::I64((0..len).map(|_| random.below(3) as i64).collect()),
        17 => {
            let step = |_| {
                whole += random.below(90) as i64 - 45;
                whole
            };
            Values::I64((0..len).map(step).collect())
        }
        18 => {
            let step =
                |_| if random.below(60) == 0 { random.next().cast_signed() } else { i64::MIN };
            Values::I64((0..len).map(step).collect())
        }
        19 => Values::Bool((0..len).map(|_| random.below(2) == 0).collect()),
        20 => Values::Bool((0..len).map(|place| place / 50 % 2 == 0).collect()),
        21 => Values::String(
            (0..len)
                .map(|_| ["on", "off", "", "\u{e4}\u{20ac}"][random.below(4) as usize])
                .collect(),
        ),
        22 => {
            let texts: Vec<_> = (0..len).map(|place| format!("text {place}")).collect();
            Values::String(texts.iter().map(String::as_str).collect::<Texts>())
        }
        _ => Values::F64((0..len).map(|place| (place / 100) as f64 * 1.5).collect()),
    }
}

const KINDS: u64 = 24;

fn times(kind: u64, len: usize, random: &mut Numbers64) -> Vec<i64> {
    let mut times: Vec<i64> = (0..len as i64)
        .map(|place| match kind {
            0 => 1_000_000 + place * 1_000,
            1 => place * 1_000_000 + random.below(3_000) as i64,
            2 => place * 60_000_000 + place / 100 * 86_400_000_000,
            3 => random.next().cast_signed(),
            4 => random.below(1 + len as u64 / 2) as i64 - 30,
            _ => {
                if place % 2 == 0 {
                    i64::MIN
                } else {
                    i64::MAX
                }
            }
        })
        .collect();
    times.sort_unstable();
    times
}

fn qualities(kind: u64, len: usize, random: &mut Numbers64) -> Qualities {
    match kind {
        0 => Qualities::All(Quality::GOOD),
        1 => Qualities::All(Quality(3)),
        2 => {
            Qualities::Each((0..len).map(|place| Quality((place / 70 * 64 % 256) as u8)).collect())
        }
        _ => Qualities::Each((0..len).map(|_| Quality(random.next() as u8)).collect()),
    }
}

fn sequences(kind: u64, len: usize, random: &mut Numbers64) -> Sequences {
    let of = |sequence: u64| CommitSequence(sequence);
    match kind {
        0 => Sequences::All(of(0)),
        1 => Sequences::All(of(u64::MAX)),
        // Rising, as those of one time are.
        2 => Sequences::Each((0..len as u64).map(|place| of(1_000 + place / 9)).collect()),
        _ => {
            let mut all: Vec<_> = (0..len).map(|_| of(random.next())).collect();
            all.sort_unstable();
            Sequences::Each(all)
        }
    }
}

/// Points of all kinds by a seed.
pub(super) fn drawn(seed: u64, len: usize) -> (Points, Sequences) {
    let random = &mut Numbers64(seed);
    let values = values(random.below(KINDS), len, random);
    let times = times(random.below(6), len, random);
    let qualities = qualities(random.below(4), len, random);
    let sequences = sequences(random.below(4), len, random);
    (Points::from_columns(times, values, qualities).unwrap(), sequences)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn points_of_any_kind_come_back_to_the_bit(seed: u64, len in 1_usize..900) {
        let (points, sequences) = drawn(seed, len);
        for density in [Density::Hot, Density::Sealed] {
            check(&points, &sequences, density);
        }
    }

    #[test]
    fn any_floats_come_back_to_the_bit(floats in prop::collection::vec(any::<f64>(), 1..200)) {
        let times = (0..floats.len() as i64).collect();
        let good = Qualities::All(Quality::GOOD);
        let points = Points::from_columns(times, floats.into(), good).unwrap();
        for density in [Density::Hot, Density::Sealed] {
            check(&points, &Sequences::All(CommitSequence(3)), density);
        }
    }

    #[test]
    fn summaries_count_the_numbers_of_good_quality(seed: u64, len in 1_usize..300) {
        let (points, sequences) = drawn(seed, len);
        let summary = Summary::of(&points, 0..len);
        let block = encoded(&points, &sequences, Density::Hot);
        let is_odd = !summary.numbers.squares().is_finite();
        let mut expected = summary.clone();
        if let Numbers::Floats { rest, .. } = &mut expected.numbers {
            *rest = 0.0;
        }
        prop_assert!(block.summary.is_none_or(|kept| is_odd || *kept == expected));
        let good: Vec<_> = points.iter().filter(|point| point.quality.is_good()).collect();
        prop_assert_eq!((summary.points, summary.good), (len as u64, good.len() as u64));
        let end = |point: &crate::Point| (point.time, point.value.clone());
        prop_assert_eq!(summary.ends, good.first().map(end).zip(good.last().map(end)));
        let numbers = good.iter().filter_map(|point| point.value.as_f64());
        let numbers: Vec<f64> = numbers.filter(|number| !number.is_nan()).collect();
        prop_assert_eq!(summary.numbers.count(), numbers.len() as u64);
        let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
        let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = numbers.iter().sum();
        let size: f64 = numbers.iter().map(|number| number.abs()).sum();
        if numbers.is_empty() {
            prop_assert_eq!(summary.numbers.sum().to_bits(), 0);
        } else {
            let range = match summary.numbers {
                Numbers::Floats { range, .. } => range,
                Numbers::Integers { range: (low, high), .. } => (low as f64, high as f64),
            };
            prop_assert_eq!(range, (least, greatest));
            let off = (summary.numbers.sum() - sum).abs();
            let is_odd = sum.is_nan() || size.is_infinite();
            prop_assert!(off <= size * 1e-12 || is_odd, "off by {}", off);
        }
    }

    #[test]
    fn summaries_of_parts_add_up(seed: u64, len in 2_usize..300, part in 0_usize..300) {
        let (points, _) = drawn(seed, len);
        let part = part.min(len);
        let (mut one, two) = (Summary::of(&points, 0..part), Summary::of(&points, part..len));
        one.add(&two);
        let whole = Summary::of(&points, 0..len);
        prop_assert_eq!((one.points, one.good, &one.ends), (whole.points, whole.good, &whole.ends));
        prop_assert_eq!(one.numbers.count(), whole.numbers.count());
        let alike = |one: f64, two: f64| {
            !(one.is_finite() && two.is_finite()) || (one - two).abs() <= 1e-9 * one.abs().max(1.0)
        };
        let spread = (one.numbers.squares(), whole.numbers.squares());
        prop_assert!(alike(spread.0, spread.1), "{:?}", spread);
    }
}

#[test]
fn whole_blocks_of_every_kind_come_back() {
    for kind in 0..KINDS {
        let random = &mut Numbers64(kind);
        let len = SERIES_BLOCK_POINTS_MAX - (kind as usize % 3) * 1_111;
        let values = values(kind, len, random);
        let times = times(kind % 6, len, random);
        let points = Points::from_columns(times, values, qualities(kind % 4, len, random)).unwrap();
        let sequences = sequences(kind / 4 % 4, len, random);
        for density in [Density::Hot, Density::Sealed] {
            check(&points, &sequences, density);
        }
    }
}

#[test]
fn one_point_takes_few_bytes() {
    let mut points = Points::new(ValueType::F64);
    points.push(Micros(1_780_000_000_000_000), 21.25, Quality::GOOD).unwrap();
    let block = encoded(&points, &Sequences::All(CommitSequence(0)), Density::Hot);
    assert!(block.bytes().len() <= 32, "{} bytes", block.bytes().len());
}

#[test]
#[should_panic(expected = "points that are not in order")]
fn points_out_of_order_are_not_encoded() {
    let good = Qualities::All(Quality::GOOD);
    let points = Points::from_columns(vec![2, 1], vec![0.0, 0.0].into(), good).unwrap();
    encoded(&points, &Sequences::All(CommitSequence(1)), Density::Hot);
}

#[test]
fn sums_of_runs_are_those_of_their_floats() {
    let ends = [1, 2, 60, 120, 4_096, 4_700, 5_000];
    // Decimals, floats as they are, some that are no numbers, decimals with exceptions, runs.
    for (kind, is_told) in [(0, true), (1, true), (4, false), (3, false), (23, true)] {
        let random = &mut Numbers64(kind);
        let (times, values) = (times(0, 5_000, random), values(kind, 5_000, random));
        let Values::F64(floats) = values.clone() else { unreachable!("floats were asked for") };
        let good = Qualities::All(Quality::GOOD);
        let points = Points::from_columns(times, values, good).unwrap();
        for density in [Density::Hot, Density::Sealed] {
            let block = encoded(&points, &Sequences::All(CommitSequence(1)), density);
            assert_eq!(block.sums(&ends, |quality| quality == Quality::BAD).unwrap(), None);
            let sums = block.sums(&ends, Quality::is_good).unwrap();
            assert_eq!(sums.is_some(), is_told, "{kind}");
            let mut start = 0;
            for (end, sum) in ends.iter().zip(sums.unwrap_or_default()) {
                let wanted: f64 = floats[start..*end].iter().sum();
                assert!((sum - wanted).abs() <= 1e-9 * wanted.abs(), "{sum} is not {wanted}");
                start = *end;
            }
        }
    }
}

#[test]
fn sums_of_decimals_that_would_overflow_are_not_told() {
    for (large, is_told) in [(f64::from(1 << 30), true), ((1_u64 << 47) as f64, false)] {
        let all: Vec<f64> = (0..1_001).map(|place| large - f64::from(place % 7) * 0.5).collect();
        let sum: f64 = all.iter().sum();
        let good = Qualities::All(Quality::GOOD);
        let points = Points::from_columns((0..1_001).collect(), Values::F64(all), good).unwrap();
        let block = encoded(&points, &Sequences::All(CommitSequence(1)), Density::Hot);
        let wanted = is_told.then(|| vec![sum]);
        assert_eq!(block.sums(&[1_001], Quality::is_good).unwrap(), wanted);
    }
}

#[test]
fn steady_times_are_in_order_unless_they_wrap_around() {
    let order = |times: &[i64]| in_order(times, &Sequences::All(CommitSequence(1)), 0);
    for (times, is_steady, expected) in [
        (&[7][..], false, Some(false)),
        (&[7, 9, 11], true, Some(false)),
        (&[7, 9, 12], false, Some(false)),
        (&[7, 9, 9], false, Some(true)),
        (&[7, 7, 7], false, Some(true)),
        (&[7, 9, 8], false, None),
        (&[9, 8, 7], false, None),
        (&[i64::MIN, 0], false, Some(false)),
        (&[i64::MIN, -1], true, Some(false)),
        (&[i64::MAX - 1, i64::MAX, i64::MIN], false, None),
        (&[0, 1 << 62, i64::MIN, -(1 << 62), 0], false, None),
    ] {
        assert_eq!((rises_steadily(times), order(times)), (is_steady, expected), "{times:?}");
    }
}

/// The squares that they have are of differences from a rounded mean, and of rounded integers.
#[test]
fn blocks_of_earlier_versions_have_the_summaries_of_their_points() {
    let numbers: Vec<i64> = (i64::MAX - 99..=i64::MAX).collect();
    let good = Qualities::All(Quality::GOOD);
    let points = Points::from_columns((0..100).collect(), Values::I64(numbers), good).unwrap();
    let again = Summary::of(&points, 0..100);
    for (kept, is_of_them) in [(0.0, true), (1e5, true), (83_325.0, true), (1e12, false)] {
        let mut summary = again.clone();
        let Numbers::Integers { squares, .. } = &mut summary.numbers else { unreachable!() };
        assert!((*squares - 83_325.0).abs() < 1e-9, "{squares}");
        *squares = kept;
        assert_eq!(summary.agrees_with(&again, 0), is_of_them, "{kept}");
    }
    let mut other = again.clone();
    other.good -= 1;
    assert!(!other.agrees_with(&again, 0));
}
