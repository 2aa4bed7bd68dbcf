//! What is read of thinned points after any number of commits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::staging::{killed, open, staged, synced};
use crate::io::MemoryDevice;
use crate::series::interpolation::number_at;
use crate::{
    Database, Lossy, Micros, Points, Quality, Series, SeriesDefinition, Thinning, ValueType,
};

#[derive(Debug, Clone)]
enum Step {
    /// Points behind all others, so many microseconds after each other, as one commit.
    Append(Vec<Given>),
    /// The same one by one.
    Stage(Vec<Given>),
    /// The process is killed before these are part of a commit.
    Kill(Vec<Given>),
    /// Points at shares of the time until now, and between and over others.
    Late(Vec<Given>),
    /// A span at a share of the time until now.
    Delete(i64, i64),
    Change(Thinning),
    Checkpoint,
    Compact,
}

/// A number for its time, a value, and whether it is good.
type Given = (i64, f64, bool);

fn thinning() -> impl Strategy<Value = Thinning> {
    let gap = || prop::option::of(20_i64..200);
    prop_oneof![
        (0.0..3.0_f64, gap())
            .prop_map(|(tolerance, gap_us)| Thinning::SwingingDoor { tolerance, gap_us }),
        (0.0..3.0_f64, gap()).prop_map(|(band, gap_us)| Thinning::DeadBand { band, gap_us }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![10 => -2.0..2.0_f64, 1 => Just(f64::NAN), 1 => -20.0..20.0_f64];
    let given = (1_i64..30, value, prop::bool::weighted(0.9));
    let points = || prop::collection::vec(given.clone(), 1..50);
    prop_oneof![
        6 => points().prop_map(Step::Append),
        4 => points().prop_map(Step::Stage),
        1 => points().prop_map(Step::Kill),
        2 => prop::collection::vec(given.clone(), 1..6).prop_map(Step::Late),
        1 => (0_i64..30, 1_i64..60).prop_map(|(share, len)| Step::Delete(share, len)),
        2 => thinning().prop_map(Step::Change),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
    ]
}

/// A point as it was given, and what it was thinned by.
#[derive(Debug, Clone, Copy)]
struct Written {
    value: f64,
    quality: Quality,
    thinning: Thinning,
}

/// A series, and the points given to it of which the promise holds: nothing was written or deleted
/// since between those that tell them.
struct Thinned {
    device: MemoryDevice,
    db: Database,
    thinning: Thinning,
    written: BTreeMap<i64, Written>,
    now: i64,
}

impl Thinned {
    fn new(thinning: Thinning) -> Self {
        let device = MemoryDevice::new();
        let db = open(&device);
        db.create_series("a", &definition(thinning)).unwrap();
        Self { device, db, thinning, written: BTreeMap::new(), now: 0 }
    }

    fn series(&self) -> Series {
        self.db.series("a").unwrap()
    }

    fn stored(&self) -> Points {
        self.series().range(..).unwrap().read().unwrap()
    }

    fn play(&mut self, step: &Step) {
        match step {
            Step::Append(given) => {
                let own = self.behind(given);
                self.append(own);
            }
            Step::Stage(given) => self.stage(given),
            Step::Kill(given) => {
                self.stage(given);
                self.device = killed(&self.device);
                self.db = open(&self.device);
            }
            Step::Late(given) => self.late(given),
            Step::Delete(share, len) => {
                let from = share * self.now / 30;
                self.delete(from, from + len);
            }
            Step::Change(thinning) => {
                self.thinning = *thinning;
                let mut transaction = self.db.transaction();
                transaction.change_series("a", &definition(*thinning)).unwrap();
                transaction.commit(&synced()).unwrap();
            }
            Step::Checkpoint => self.db.checkpoint().unwrap(),
            Step::Compact => self.db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
        }
    }

    fn written(&self, &(_, value, is_good): &Given) -> Written {
        let quality = if is_good { Quality::GOOD } else { Quality::BAD };
        Written { value, quality, thinning: self.thinning }
    }

    /// Points behind all that there are.
    fn behind(&mut self, given: &[Given]) -> Vec<(i64, Written)> {
        let times = given.iter().map(|(after, ..)| {
            self.now += after;
            self.now
        });
        let times: Vec<i64> = times.collect();
        times.into_iter().zip(given.iter().map(|given| self.written(given))).collect()
    }

    fn append(&mut self, own: Vec<(i64, Written)>) {
        let mut points = Points::new(ValueType::F64);
        for (time, Written { value, quality, .. }) in &own {
            points.push(Micros(*time), *value, *quality).unwrap();
        }
        self.series().append_points(&points, &synced()).unwrap();
        self.written.extend(own);
    }

    fn stage(&mut self, given: &[Given]) {
        let (own, series) = (self.behind(given), self.series());
        for (time, Written { value, quality, .. }) in &own {
            series.append_with_quality((Micros(*time), *quality), *value, &staged()).unwrap();
        }
        self.written.extend(own);
    }

    fn late(&mut self, given: &[Given]) {
        let own = given.iter().map(|given| (given.0 * self.now / 30, self.written(given)));
        let own: Vec<(i64, Written)> = own.collect();
        for (time, _) in &own {
            self.forget(*time, *time);
        }
        self.append(own);
    }

    fn delete(&mut self, from: i64, end: i64) {
        self.forget(from, end - 1);
        self.series().delete(Micros(from)..Micros(end), &synced()).unwrap();
    }

    /// Nothing is promised any more of points whose line or hold has one of these times in it.
    fn forget(&mut self, first: i64, last: i64) {
        let stored = self.stored();
        self.written.retain(|time, _| {
            let (below, above) = around(&stored, *time);
            stored.times()[above] < first || stored.times()[below] > last
        });
    }

    fn compare(&self) {
        let stored = self.stored();
        for (time, written) in &self.written {
            let (below, above) = around(&stored, *time);
            let at = |place| stored.get(place).unwrap();
            let value = |place| at(place).value.as_f64().unwrap();
            let (ends, times) =
                ((value(below), value(above)), (stored.times()[below], stored.times()[above]));
            assert_eq!(at(below).quality, written.quality, "{time}");
            let (found, tolerance, gap) = match written.thinning {
                _ if below == above => (value(below), 0.0, None),
                Thinning::SwingingDoor { tolerance, gap_us } => {
                    assert_eq!(at(above).quality, written.quality, "{time}");
                    (number_at(ends, times, *time), tolerance, gap_us)
                }
                Thinning::DeadBand { band, gap_us } => (value(below), band, gap_us),
            };
            let is_same = found.to_bits() == written.value.to_bits();
            assert!(
                is_same || (found - written.value).abs() <= tolerance,
                "{found} at {time}, not {written:?}"
            );
            assert!(gap.is_none_or(|gap| times.1 - times.0 <= gap), "{times:?}: {written:?}");
        }
    }
}

fn definition(thinning: Thinning) -> SeriesDefinition {
    let mut definition = SeriesDefinition::new(ValueType::F64);
    definition.lossy = Some(Lossy::Thinned(thinning));
    definition
}

/// The places of the points that tell what is at a time: one, or those before and behind it.
fn around(stored: &Points, time: i64) -> (usize, usize) {
    let above = stored.times().partition_point(|one| *one < time);
    (stored.times().partition_point(|one| *one <= time) - 1, above)
}

proptest! {
    #[test]
    fn points_are_told_within_the_tolerance_until_something_comes_between(
        first in thinning(), steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut thinned = Thinned::new(first);
        for step in &steps {
            thinned.play(step);
            thinned.compare();
        }
    }
}
