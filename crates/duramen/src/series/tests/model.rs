//! What a series says is what a sorted map says that was told the same, as of every commit,
//! wherever the points are by then.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::Reopened;
use crate::{
    CommitOptions, CommitSequence, Micros, Points, Quality, RangeOptions, Series, SeriesDefinition,
    SeriesValue, ValueType,
};

/// What happened to a time: in which commit, and the point then, if it was not deleted.
type Fate = (CommitSequence, Option<(SeriesValue, Quality)>);

#[derive(Debug, Clone)]
enum Step {
    /// Times and numbers that values are made of.
    Append(Vec<(i64, i64)>),
    Delete(i64, i64),
    /// Deletes and appends in one transaction.
    Both(i64, i64, Vec<(i64, i64)>),
    Checkpoint,
    Compact,
    Reopen,
}

fn points() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let time = prop_oneof![8 => 0_i64..60, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    prop::collection::vec((time, any::<i64>()), 1..20)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => points().prop_map(Step::Append),
        2 => (0_i64..60, 0_i64..20).prop_map(|(from, len)| Step::Delete(from, from + len)),
        1 => (0_i64..60, 0_i64..20, points()).prop_map(|(at, len, p)| Step::Both(at, at + len, p)),
        3 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn value(value_type: ValueType, number: i64) -> SeriesValue {
    match value_type {
        ValueType::F64 => SeriesValue::F64(f64::from_bits(number.cast_unsigned())),
        ValueType::F32 => {
            let bits = u32::try_from(number & 0xffff_ffff).unwrap();
            SeriesValue::F32(f32::from_bits(bits))
        }
        ValueType::I64 => SeriesValue::I64(number),
        ValueType::Bool => SeriesValue::Bool(number % 2 == 0),
        ValueType::String => SeriesValue::String(format!("{number:x}")),
    }
}

fn quality(number: i64) -> Quality {
    if number % 3 == 0 { Quality(number.to_le_bytes()[1]) } else { Quality::GOOD }
}

struct Under {
    value_type: ValueType,
    db: Reopened,
    map: BTreeMap<i64, Vec<Fate>>,
    commits: Vec<CommitSequence>,
}

impl Under {
    fn new(value_type: ValueType) -> Self {
        let under =
            Self { value_type, db: Reopened::new(), map: BTreeMap::new(), commits: Vec::new() };
        under.db.create_series("s", &SeriesDefinition::new(value_type)).unwrap();
        under
    }

    fn series(&self) -> Series {
        self.db.series("s").unwrap()
    }

    fn columns(&self, points: &[(i64, i64)]) -> Points {
        let mut columns = Points::new(self.value_type);
        for &(time, number) in points {
            let value = value(self.value_type, number);
            columns.push(Micros(time), value, quality(number)).unwrap();
        }
        columns
    }

    fn note_points(&mut self, commit: CommitSequence, points: &[(i64, i64)]) {
        for &(time, number) in points {
            let point = Some((value(self.value_type, number), quality(number)));
            let fates = self.map.entry(time).or_default();
            fates.retain(|fate| fate.0 != commit);
            fates.push((commit, point));
        }
    }

    fn note_delete(&mut self, commit: CommitSequence, (from, to): (i64, i64)) {
        for (_, fates) in self.map.range_mut(from..to) {
            fates.push((commit, None));
        }
    }

    fn run(&mut self, step: &Step) {
        let how = CommitOptions::default();
        match step {
            Step::Append(points) => {
                let made = self.series().append_points(&self.columns(points), &how).unwrap();
                self.note_points(made.sequence, points);
                self.commits.push(made.sequence);
            }
            Step::Delete(from, to) => {
                let made = self.series().delete(Micros(*from)..Micros(*to), &how).unwrap();
                self.note_delete(made.sequence, (*from, *to));
                self.commits.extend((made.sequence.0 > 0).then_some(made.sequence));
            }
            Step::Both(from, to, points) => {
                let mut transaction = self.db.transaction();
                // What the transaction deletes of its own is not there.
                transaction.append_points("s", &self.columns(&[(*from, 1)])).unwrap();
                let span = Micros(*from)..=Micros(*to);
                transaction.delete_points("s", span).unwrap();
                transaction.append_points("s", &self.columns(points)).unwrap();
                let made = transaction.commit(&how).unwrap();
                self.note_delete(made.sequence, (*from, to + 1));
                self.note_points(made.sequence, points);
                self.commits.push(made.sequence);
            }
            Step::Checkpoint => self.db.checkpoint().unwrap(),
            Step::Compact => self.db.compact(),
            Step::Reopen => self.db.reopen(),
        }
    }

    fn expected(&self, at: CommitSequence, (from, to): (i64, i64)) -> Vec<crate::Point> {
        let mut points = Vec::new();
        for (&time, fates) in self.map.range(from..=to) {
            let fate = fates.iter().rev().find(|fate| fate.0 <= at);
            if let Some((_, Some((value, quality)))) = fate {
                let (time, value) = (Micros(time), value.clone());
                points.push(crate::Point { time, value, quality: *quality });
            }
        }
        points
    }

    fn check(&self, at: CommitSequence, (from, to): (i64, i64), limit: usize) {
        let snapshot = self.series().at(at);
        let mut expected = self.expected(at, (from, to));
        let span = Micros(from)..=Micros(to);
        let read = |reverse, limit| {
            let options = RangeOptions { limit, reverse, bounding: false };
            let range = || snapshot.range_with(span.clone(), &options).unwrap();
            let points = range().read().unwrap();
            let mut visited = Points::new(points.value_type());
            let visit = |some: &Points, places| {
                visited.append(some, places);
                ControlFlow::Continue(())
            };
            range().visit(visit).unwrap();
            assert_eq!(visited, points);
            points.iter().collect::<Vec<_>>()
        };
        assert_eq!(read(false, None), expected);
        let first: Vec<_> = expected.iter().take(limit).cloned().collect();
        assert_eq!(read(false, Some(limit)), first);
        expected.reverse();
        assert_eq!(read(true, None), expected);
        expected.truncate(limit);
        assert_eq!(read(true, Some(limit)), expected);
        let all = self.expected(at, (i64::MIN, i64::MAX));
        assert_eq!(snapshot.latest().unwrap(), all.last().cloned());
    }
}

fn value_type() -> impl Strategy<Value = ValueType> {
    prop::sample::select(ValueType::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_series_says_what_a_sorted_map_says_as_of_every_commit(
        value_type in value_type(),
        steps in prop::collection::vec(step(), 1..40),
        spans in prop::collection::vec((-1_i64..61, 0_i64..61, 0_usize..9), 6),
    ) {
        let mut under = Under::new(value_type);
        for step in &steps {
            under.run(step);
            let last = under.commits.last().copied().unwrap_or_default();
            under.check(last, (i64::MIN, i64::MAX), 3);
        }
        for (at, &(from, len, limit)) in spans.iter().enumerate() {
            let commit = under.commits.get(at * under.commits.len() / spans.len()).copied();
            under.check(commit.unwrap_or_default(), (from, from.saturating_add(len)), limit);
        }
        let report = under.db.check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
    }
}
