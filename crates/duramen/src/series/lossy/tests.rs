use super::*;
use crate::{CommitOptions, Database, Interpolation, Micros, Quality, SeriesDefinition};
use proptest::prelude::*;

fn points(values: &[f64]) -> Points {
    let mut points = Points::new(ValueType::F64);
    for (time, value) in (0..).zip(values) {
        points.push(Micros(time), *value, Quality::GOOD).unwrap();
    }
    points
}

fn values(points: &Points) -> &[f64] {
    match points.values() {
        Values::F64(values) => values,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn values_in_the_range_are_off_by_half_a_step_at_most(
        low in -1e9..1e9_f64,
        width in 1e-6..1e9_f64,
        shares in prop::collection::vec(-0.2..1.2_f64, 1..50),
    ) {
        let (high, given) =
            (low + width, shares.iter().map(|share| low + share * width).collect::<Vec<_>>());
        let lossy = Lossy::Quantised { low, high };
        let step = lossy.step().unwrap();
        prop_assert!(width / step <= STEPS_MAX + 1.0);
        let stored = lossy.of(&points(&given)).unwrap();
        for (given, stored) in given.iter().zip(values(&stored)) {
            if (low..=high).contains(given) {
                prop_assert!((given - stored).abs() <= step * 0.5, "{given} as {stored}");
            } else {
                prop_assert_eq!(given.to_bits(), stored.to_bits());
            }
        }
    }
}

#[test]
fn steps_are_round_numbers_and_what_is_no_number_stays() {
    let lossy = Lossy::Quantised { low: -50.0, high: 150.0 };
    assert_eq!(lossy.step(), Some(0.005));
    let stored = lossy.of(&points(&[20.123_4, f64::NAN, 1e9, -0.0, 19.998])).unwrap();
    let stored: Vec<u64> = values(&stored).iter().map(|value| value.to_bits()).collect();
    let wanted = [20.125, f64::NAN, 1e9, -0.0, 20.0].map(f64::to_bits);
    assert_eq!(stored, wanted);
    let large = Lossy::Quantised { low: 0.0, high: 1e12 };
    assert_eq!(large.step(), Some(2e7));
}

#[test]
fn a_series_stores_what_its_definition_says() {
    let db = Database::memory().unwrap();
    let mut definition = SeriesDefinition::new(ValueType::F64);
    definition.lossy = Some(Lossy::Quantised { low: 0.0, high: 100.0 });
    let steps = db.create_series("steps", &definition).unwrap();
    let door = Thinning::SwingingDoor { tolerance: 0.5, gap_us: Some(1_000) };
    definition.lossy = Some(Lossy::Thinned(door));
    let thin = db.create_series("thin", &definition).unwrap();
    assert_eq!(db.series("thin").unwrap().info().definition, definition);
    let how = CommitOptions::default();
    steps.append(Micros(1), 5.141_59, &how).unwrap();
    assert_eq!(steps.latest().unwrap().unwrap().value, 5.142.into());
    let mut all = points(&[1.0, 2.0, 3.0, 4.0]);
    all.permute(&[3, 1, 0, 2]);
    thin.append_points(&all, &how).unwrap();
    assert_eq!(thin.range(..).unwrap().read().unwrap().times(), [0, 3]);
    let mut transaction = db.transaction();
    transaction.append_points("steps", &points(&[6.718_28])).unwrap();
    transaction.commit(&how).unwrap();
    assert_eq!(steps.range(..).unwrap().read().unwrap().get(0).unwrap().value, 6.718.into());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// Points that went were taken to be told by lines through others than are there.
    #[test]
    fn the_tolerance_holds_beside_points_that_are_stored(
        stored in prop::collection::btree_map(0_i64..60, -9.0_f64..9.0, 0..12),
        own in prop::collection::btree_map(0_i64..60, -2.0_f64..2.0, 1..40),
        tolerance in 0.0_f64..2.0,
        deleted in prop::option::of(0_i64..60),
        is_door in any::<bool>(),
    ) {
        let all = |given: &std::collections::BTreeMap<i64, f64>| {
            let mut points = Points::new(ValueType::F64);
            for (time, value) in given {
                points.push(Micros(*time), *value, Quality::GOOD).unwrap();
            }
            points
        };
        let db = Database::memory().unwrap();
        let mut definition = SeriesDefinition::new(ValueType::F64);
        let series = db.create_series("a", &definition).unwrap();
        let how = CommitOptions::default();
        series.append_points(&all(&stored), &how).unwrap();
        definition.lossy = Some(Lossy::Thinned(if is_door {
            Thinning::SwingingDoor { tolerance, gap_us: None }
        } else {
            Thinning::DeadBand { band: tolerance, gap_us: None }
        }));
        let mut transaction = db.transaction();
        transaction.change_series("a", &definition).unwrap();
        if let Some(from) = deleted {
            transaction.delete_points("a", Micros(from)..).unwrap();
        }
        transaction.append_points("a", &all(&own)).unwrap();
        transaction.commit(&how).unwrap();
        let now = series.snapshot();
        let read = if is_door { Interpolation::Linear } else { Interpolation::Step };
        for (time, value) in &own {
            let found = now.value_at(Micros(*time), read).unwrap().unwrap();
            let off = (found.value.as_f64().unwrap() - value).abs();
            prop_assert!(off <= tolerance + 1e-12, "{off} off at {time}");
        }
        let is_kept = |time: &i64| deleted.is_none_or(|from| *time < from);
        for (time, value) in stored.iter().filter(|(time, _)| is_kept(time)) {
            let found = now.range(Micros(*time)..=Micros(*time)).unwrap().read().unwrap();
            let is_own = own.contains_key(time);
            prop_assert!(is_own || found.get(0).unwrap().value == (*value).into());
        }
    }
}

/// Neither of two commits knew the points of the other one, which broke its lines.
#[test]
fn the_tolerance_holds_for_two_who_write_at_once() {
    const POINTS: i64 = 4_000;
    let db = Database::memory().unwrap();
    let mut definition = SeriesDefinition::new(ValueType::F64);
    let door = Thinning::SwingingDoor { tolerance: 0.5, gap_us: None };
    definition.lossy = Some(Lossy::Thinned(door));
    let series = db.create_series("a", &definition).unwrap();
    let at_once = std::sync::Barrier::new(2);
    for round in 0..20 {
        let write = |own: i32| {
            let value = f64::from(own) * 100.0;
            let times = (0..POINTS).map(|at| 2 * (round * POINTS + at) + i64::from(own));
            let mut points = Points::new(ValueType::F64);
            for time in times.clone() {
                points.push(Micros(time), value, Quality::GOOD).unwrap();
            }
            at_once.wait();
            let commit = series.append_points(&points, &CommitOptions::default()).unwrap();
            let then = series.at(commit.sequence);
            for time in times.step_by(97) {
                let found = then.value_at(Micros(time), Interpolation::Linear).unwrap().unwrap();
                let off = (found.value.as_f64().unwrap() - value).abs();
                assert!(off <= 0.5, "{off} off at {time}");
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| write(0));
            write(1);
        });
    }
    assert!(series.stats().unwrap().points < 20 * 10, "few points stay");
}

#[test]
fn what_cannot_be_is_refused() {
    for (low, high) in [(1.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (f64::MIN, f64::MAX)] {
        let lossy = Lossy::Quantised { low, high };
        assert_eq!(lossy.check(ValueType::F64).unwrap_err().kind(), ErrorKind::Invalid);
    }
    let band = Lossy::Thinned(Thinning::DeadBand { band: -1.0, gap_us: None });
    assert_eq!(band.check(ValueType::F64).unwrap_err().kind(), ErrorKind::Invalid);
    let fine = Lossy::Quantised { low: 0.0, high: 1.0 };
    assert_eq!(fine.check(ValueType::I64).unwrap_err().kind(), ErrorKind::Invalid);
}
