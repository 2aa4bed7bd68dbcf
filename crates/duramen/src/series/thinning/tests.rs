use proptest::prelude::*;

use super::*;
use crate::revision::Micros;
use crate::series::ValueType;

fn points(all: &[(i64, f64, u8)]) -> Points {
    let mut points = Points::new(ValueType::F64);
    for (time, value, quality) in all {
        points.push(Micros(*time), *value, Quality(*quality)).unwrap();
    }
    points
}

/// Points that rise by time: steps of a walk, now and then of another quality or not a number.
fn walks() -> impl Strategy<Value = Vec<(i64, f64, u8)>> {
    let step = (1_i64..5_000, -1.0..1.0, 0_u8..40);
    prop::collection::vec(step, 1..120).prop_map(|steps| {
        let (mut time, mut value) = (-60_000, 0.0);
        let point = |(after, change, kind)| {
            (time, value) = (time + after, value + change);
            match kind {
                0 => (time, f64::NAN, 192),
                1 => (time, f64::INFINITY, 192),
                2 => (time, value, 64),
                _ => (time, value, 192),
            }
        };
        steps.into_iter().map(point).collect()
    })
}

/// What stayed as (times, values by bits, qualities), to look points up in.
fn neighbours(kept: &Points, time: i64) -> (usize, usize) {
    let above = kept.times().partition_point(|one| *one < time);
    let below = kept.times().partition_point(|one| *one <= time).saturating_sub(1);
    (below, above)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn swinging_door_is_never_off_by_more_than_its_tolerance(
        all in walks(), tolerance in 0.0..2.0_f64, gap in prop::option::of(1_i64..50_000),
    ) {
        let points = points(&all);
        let door = Thinning::SwingingDoor { tolerance, gap_us: gap };
        let kept = door.of(&points).unwrap();
        for point in points.iter() {
            let (below, above) = neighbours(&kept, point.time.0);
            if below == above {
                prop_assert_eq!(kept.get(below), Some(point));
                continue;
            }
            let (low, high) = (kept.get(below).unwrap(), kept.get(above).unwrap());
            prop_assert_eq!(low.quality, point.quality);
            prop_assert_eq!(high.quality, point.quality);
            let value = |value: &crate::series::SeriesValue| value.as_f64().unwrap();
            let (ends, times) =
                ((value(&low.value), value(&high.value)), (low.time.0, high.time.0));
            let off = (number_at(ends, times, point.time.0) - value(&point.value)).abs();
            prop_assert!(off <= tolerance, "off by {} of {}", off, tolerance);
            prop_assert!(gap.is_none_or(|gap| high.time.0 - low.time.0 <= gap));
        }
    }

    #[test]
    fn dead_band_is_never_off_by_more_than_its_band(
        all in walks(), band in 0.0..2.0_f64, gap in prop::option::of(1_i64..50_000),
    ) {
        let points = points(&all);
        let kept = Thinning::DeadBand { band, gap_us: gap }.of(&points).unwrap();
        prop_assert_eq!(kept.get(kept.len() - 1), points.get(points.len() - 1));
        for point in points.iter() {
            let (below, above) = neighbours(&kept, point.time.0);
            let held = kept.get(below).unwrap();
            prop_assert_eq!(held.quality, point.quality);
            if below == above {
                prop_assert_eq!(held, point);
                continue;
            }
            let off = (held.value.as_f64().unwrap() - point.value.as_f64().unwrap()).abs();
            prop_assert!(off <= band, "off by {} of {}", off, band);
            let next = kept.get(above).unwrap();
            prop_assert!(gap.is_none_or(|gap| next.time.0 - held.time.0 <= gap));
        }
    }
}

/// The point behind the gap stayed, and not the one before it.
#[test]
fn a_dead_band_leaves_no_gap_where_there_are_points() {
    let flat: Vec<_> = (0..7).map(|at| (at * 6, 1.0, 192)).collect();
    let kept = |gap| Thinning::DeadBand { band: 0.25, gap_us: Some(gap) }.of(&points(&flat));
    assert_eq!(kept(10).unwrap().times(), [0, 6, 12, 18, 24, 30, 36]);
    assert_eq!(kept(12).unwrap().times(), [0, 12, 24, 36]);
    assert_eq!(kept(17).unwrap().times(), [0, 12, 24, 36]);
    assert_eq!(kept(3).unwrap().len(), 7);
}

#[test]
fn a_straight_line_comes_down_to_its_ends() {
    let line: Vec<_> = (0..1_000_u16).map(|at| (i64::from(at) * 7, f64::from(at), 192)).collect();
    let door = Thinning::SwingingDoor { tolerance: 1e-9, gap_us: None };
    assert_eq!(door.of(&points(&line)).unwrap().times(), [0, 999 * 7]);
}

/// Each point of a line was held against all before it, and each of those that stand apart looked
/// for the end of them all: a commit of some hundred thousand points took minutes.
#[test]
fn many_points_are_thinned_in_a_few_looks_at_each() {
    const COUNT: usize = 1 << 19;
    let times: Vec<i64> = (0_i64..).step_by(1_000).take(COUNT).collect();
    let door = Thinning::SwingingDoor { tolerance: 0.25, gap_us: None };
    let good = crate::series::Qualities::All(Quality::GOOD);
    let flat = Points::from_columns(times, Values::F64(vec![20.0; COUNT]), good).unwrap();
    assert_eq!(door.of(&flat).unwrap().len(), 2);
    let cuts: Vec<usize> = (1..COUNT).collect();
    assert_eq!(door.apart(&flat, &cuts).unwrap().len(), COUNT);
}

/// Decimals are often just as far off as is allowed, and as floats a little further.
#[test]
fn a_line_that_rounding_forbids_ends_where_it_is_allowed() {
    let values = [20.0, 20.01, 20.02, 20.01, 20.0, 19.99];
    let all: Vec<_> = (0..20_000_u32)
        .map(|at| (i64::from(at) * 1_000, values[at as usize * 7 % values.len()], 192))
        .collect();
    for tolerance in [0.01, 0.02, 0.03] {
        let points = points(&all);
        let kept = Thinning::SwingingDoor { tolerance, gap_us: None }.of(&points).unwrap();
        let value = |at: usize| kept.values().get_f64(at).unwrap();
        for (time, expected, _) in &all {
            let (below, above) = neighbours(&kept, *time);
            if below != above {
                let times = (kept.times()[below], kept.times()[above]);
                let found = number_at((value(below), value(above)), times, *time);
                assert!((found - expected).abs() <= tolerance, "{found}, not {expected}");
            }
        }
    }
}

/// It was another one than the one that is read, and let a point go that this is too far from.
#[test]
fn the_line_that_is_checked_is_the_one_that_is_read() {
    let values = [20.05, 20.0, 20.02, 20.03, 19.96, 20.0];
    let all: Vec<_> = (0..6_i64).zip(values).map(|(at, value)| (at * 1_000, value, 192)).collect();
    let kept = Thinning::SwingingDoor { tolerance: 0.05, gap_us: None }.of(&points(&all)).unwrap();
    for (time, expected, _) in &all {
        let (below, above) = neighbours(&kept, *time);
        if below != above {
            let value = |at: usize| kept.values().get_f64(at).unwrap();
            let times = (kept.times()[below], kept.times()[above]);
            let found = number_at((value(below), value(above)), times, *time);
            assert!((found - expected).abs() <= 0.05, "{found}, not {expected}");
        }
    }
}

#[test]
fn what_cannot_be_thinned_is_refused() {
    let door = |tolerance| Thinning::SwingingDoor { tolerance, gap_us: None };
    let falling = points(&[(2, 1.0, 192), (1, 1.0, 192)]);
    assert_eq!(door(1.0).of(&falling).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(door(f64::NAN).of(&points(&[])).is_err());
    assert!(door(-1.0).of(&points(&[])).is_err());
    assert!(door(1.0).of(&Points::new(ValueType::I64)).is_err());
    assert!(door(1.0).of(&points(&[])).unwrap().is_empty());
}
