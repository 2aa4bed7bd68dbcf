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
            let ends = ((low.time.0, value(&low.value)), (high.time.0, value(&high.value)));
            let off = (on_line(ends, point.time.0) - value(&point.value)).abs();
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
            prop_assert!(gap.is_none_or(|gap| point.time.0 - held.time.0 <= gap));
        }
    }
}

#[test]
fn a_straight_line_comes_down_to_its_ends() {
    let line: Vec<_> = (0..1_000_u16).map(|at| (i64::from(at) * 7, f64::from(at), 192)).collect();
    let door = Thinning::SwingingDoor { tolerance: 1e-9, gap_us: None };
    assert_eq!(door.of(&points(&line)).unwrap().times(), [0, 999 * 7]);
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
