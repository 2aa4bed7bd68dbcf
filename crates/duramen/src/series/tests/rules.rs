//! Rules of what is kept, by patterns of names: what series have is what a naive model says,
//! whatever was set and made in which order, as of every commit.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::Reopened;
use super::rollups::{Seconds, an_hour, compact, counts, every, seconds, tiers};
use crate::io::{Device, MemoryDevice};
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Database, DatabaseSnapshot,
    ErrorKind, Micros, Options, Rollup, SeriesDefinition, SeriesFilter, SeriesRule, ValueType,
    Windows,
};

const GLOBS: [&str; 6] = ["**", "a/*", "a/**", "**/x", "a/?/x", "b/1"];
const NAMES: [&str; 7] = ["a/1", "a/1/x", "a/2/x", "b/1", "b/1/x", "c", "x"];

/// For how long, in seconds, and by which bits which rollups.
type Tiers = (Option<u8>, u8);

#[derive(Debug, Clone)]
enum Step {
    Set(usize, Tiers),
    Remove(usize),
    Create(usize, Option<Tiers>),
    Change(usize, Tiers),
    Rename(usize, usize),
    Delete(usize),
    Checkpoint,
    Compact,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let glob = 0..GLOBS.len();
    let name = 0..NAMES.len();
    let tiers = (prop::option::of(60_u8..90), 0_u8..4);
    prop_oneof![
        6 => (glob.clone(), tiers.clone()).prop_map(|(glob, tiers)| Step::Set(glob, tiers)),
        3 => glob.prop_map(Step::Remove),
        8 => (name.clone(), prop::option::weighted(0.2, tiers.clone()))
            .prop_map(|(name, tiers)| Step::Create(name, tiers)),
        2 => (name.clone(), tiers).prop_map(|(name, tiers)| Step::Change(name, tiers)),
        2 => (name.clone(), name.clone()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => name.prop_map(Step::Delete),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn rule(glob: &str, (keep, bits): Tiers) -> SeriesRule {
    let second = Duration::from_secs(1);
    let rollups = [1, 60].into_iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    SeriesRule {
        keep: keep.map(|keep| u32::from(keep) * second),
        rollups: rollups.map(|(_, width)| Rollup::new(width * second)).collect(),
        ..SeriesRule::new(glob)
    }
}

fn definition(tiers: Tiers) -> SeriesDefinition {
    let SeriesRule { keep, rollups, .. } = rule("", tiers);
    SeriesDefinition { keep, rollups, ..SeriesDefinition::new(ValueType::I64) }
}

/// What a database should say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    rules: BTreeMap<&'static str, Tiers>,
    series: BTreeMap<&'static str, Tiers>,
}

impl Model {
    /// The pattern that wins for a name, as the documentation says it.
    fn winner(&self, name: &str) -> Option<(&'static str, Tiers)> {
        let mut found: Vec<_> = self.rules.iter().map(|(glob, tiers)| (*glob, *tiers)).collect();
        found.retain(|(glob, _)| SeriesFilter::glob(*glob).name_pattern().takes(name));
        let literals = |glob: &str| glob.replace(['*', '?'], "").len();
        found.sort_by(|(one, _), (two, _)| literals(two).cmp(&literals(one)).then(one.cmp(two)));
        found.first().copied()
    }

    /// The series that the rule of a pattern wins.
    fn won(&self, glob: &str) -> Vec<&'static str> {
        let is_won = |name: &&str| self.winner(name).is_some_and(|(won, _)| won == glob);
        self.series.keys().copied().filter(|name| is_won(name)).collect()
    }

    /// Has these keep what wins now; how many did not before.
    fn settle(&mut self, names: &[&'static str]) -> u64 {
        let mut changed = 0;
        for name in names {
            if let Some((_, tiers)) = self.winner(name) {
                changed += u64::from(self.series.insert(name, tiers) != Some(tiers));
            }
        }
        changed
    }

    fn of(snapshot: &DatabaseSnapshot) -> Self {
        let keep = |keep: Option<Duration>| keep.map(|keep| u8::try_from(keep.as_secs()).unwrap());
        let bits = |rollups: &[Rollup]| {
            rollups.iter().map(|rollup| if rollup.width.as_secs() == 1 { 1 } else { 2 }).sum()
        };
        let place = |all: &[&'static str], text: &str| *all.iter().find(|at| **at == text).unwrap();
        let rules = snapshot.series_rules().unwrap();
        let rules = rules
            .iter()
            .map(|rule| (place(&GLOBS, &rule.glob), (keep(rule.keep), bits(&rule.rollups))));
        let series = snapshot.find_series(&SeriesFilter::default()).unwrap();
        let series = series.iter().map(|info| {
            let definition = &info.definition;
            (place(&NAMES, &info.name), (keep(definition.keep), bits(&definition.rollups)))
        });
        Self { rules: rules.collect(), series: series.collect() }
    }
}

/// Takes a step; the commit that it made, or 0.
fn play(db: &mut Reopened, model: &mut Model, step: &Step) -> CommitSequence {
    let mut transaction = db.transaction();
    match *step {
        Step::Set(glob, tiers) => {
            let glob = GLOBS[glob];
            let changed = transaction.set_series_rule(&rule(glob, tiers)).unwrap();
            model.rules.insert(glob, tiers);
            let won = model.won(glob);
            assert_eq!(changed, model.settle(&won));
        }
        Step::Remove(glob) => {
            let removed = transaction.remove_series_rule(GLOBS[glob]);
            let won = model.won(GLOBS[glob]);
            if model.rules.remove(GLOBS[glob]).is_some() {
                assert_eq!(removed.unwrap(), model.settle(&won));
            } else {
                assert_eq!(removed.unwrap_err().kind(), ErrorKind::NotFound);
            }
        }
        Step::Create(name, tiers) if !model.series.contains_key(NAMES[name]) => {
            let name = NAMES[name];
            let own = tiers.unwrap_or((None, 0));
            transaction.create_series(name, &definition(own)).unwrap();
            let ruled = model.winner(name).map_or(own, |(_, tiers)| tiers);
            model.series.insert(name, if own == (None, 0) { ruled } else { own });
        }
        Step::Change(name, tiers) if model.series.contains_key(NAMES[name]) => {
            transaction.change_series(NAMES[name], &definition(tiers)).unwrap();
            model.series.insert(NAMES[name], tiers);
        }
        Step::Rename(from, to) if !model.series.contains_key(NAMES[to]) => {
            if let Some(tiers) = model.series.remove(NAMES[from]) {
                transaction.rename_series(NAMES[from], NAMES[to]).unwrap();
                model.series.insert(NAMES[to], tiers);
            }
        }
        Step::Delete(name) if model.series.remove(NAMES[name]).is_some() => {
            transaction.delete_series(NAMES[name]).unwrap();
        }
        Step::Checkpoint => db.checkpoint().unwrap(),
        Step::Compact => db.compact(),
        Step::Reopen => {
            drop(transaction);
            db.reopen();
            return CommitSequence(0);
        }
        _ => {}
    }
    transaction.commit(&CommitOptions::default()).unwrap().sequence
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn series_keep_what_the_rule_says_that_wins(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let (mut db, mut model) = (Reopened::new(), Model::default());
        let mut states = Vec::new();
        for step in &steps {
            let sequence = play(&mut db, &mut model, step);
            let snapshot = db.snapshot();
            prop_assert_eq!(&Model::of(&snapshot), &model, "after {:?}", step);
            // A step that changed nothing made no commit.
            if sequence.0 > 0 {
                states.push((sequence, model.clone()));
            }
        }
        for (sequence, model) in states {
            prop_assert_eq!(Model::of(&db.snapshot_at(sequence)), model, "as of {}", sequence);
        }
        let report = db.check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
    }
}

#[test]
fn points_of_series_made_after_their_rule_go_and_their_space_returns() {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let minute = Duration::from_mins(1);
    let rule = SeriesRule {
        keep: Some(10 * minute),
        rollups: vec![Rollup::new(minute)],
        ..SeriesRule::new("boiler/**")
    };
    let mut transaction = db.transaction();
    assert_eq!(transaction.set_series_rule(&rule).unwrap(), 0);
    transaction.commit(&CommitOptions::default()).unwrap();
    let series = db.create_series("boiler/7", &SeriesDefinition::new(ValueType::F64)).unwrap();
    let other = db.create_series("pump/7", &SeriesDefinition::new(ValueType::F64)).unwrap();
    for series in [&series, &other] {
        series.append_points(&seconds(0..3_600), &CommitOptions::default()).unwrap();
    }
    compact(&db);
    let before = db.stats().unwrap().segment_bytes;
    clock.set(36_000);
    compact(&db);
    let after = db.stats().unwrap().segment_bytes;
    assert!(after < before, "{after} of {before} bytes");
    assert_eq!(series.range(..).unwrap().read().unwrap().len(), 0);
    assert_eq!(other.range(..).unwrap().read().unwrap().len(), 3_600);
    let windows = Windows::of_width(Micros(60_000_000)).unwrap();
    let counts = AggregateOptions::new(vec![Aggregate::Count], windows);
    let table = series.snapshot().aggregate(.., &counts).unwrap();
    assert_eq!(table.starts.len(), 60);
}

#[test]
fn a_repair_keeps_rules_and_what_series_were_told_apart_from_them() {
    let device = Arc::new(MemoryDevice::new());
    let db = Database::open_device(device.clone(), Options::default()).unwrap();
    let mut model = Model::default();
    for (glob, tiers) in [("**", (Some(70), 1)), ("a/**", (None, 2))] {
        let mut transaction = db.transaction();
        transaction.set_series_rule(&rule(glob, tiers)).unwrap();
        transaction
            .create_series(if glob == "**" { "c" } else { "a/1" }, &definition((None, 0)))
            .unwrap();
        transaction.commit(&CommitOptions::default()).unwrap();
        model.rules.insert(glob, tiers);
    }
    let mut transaction = db.transaction();
    transaction.change_series("c", &definition((None, 0))).unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    model.series.extend([("c", (None, 0)), ("a/1", (None, 2))]);
    assert_eq!(Model::of(&db.snapshot()), model);
    drop(db);
    let repaired = Arc::new(MemoryDevice::new());
    let devices: (Arc<dyn Device>, Arc<dyn Device>) = (device, repaired.clone());
    let go_on = &mut |_| ControlFlow::Continue(());
    let report = Database::repair_device(devices, &Options::default(), go_on).unwrap();
    assert!(report.is_complete(), "{:?}", report.lost);
    let db = Database::open_device(repaired, Options::default()).unwrap();
    assert_eq!(Model::of(&db.snapshot()), model);
}

#[test]
fn series_are_read_as_of_a_time() {
    let clock = Arc::new(Seconds::default());
    let options = Options { background: false, clock: clock.clone(), ..Options::default() };
    let db = Database::open_device(Arc::new(MemoryDevice::new()), options).unwrap();
    let names = |seconds: i64| {
        let snapshot = db.series_at_time(Micros(seconds * 1_000_000)).unwrap();
        let found = snapshot.find_series(&SeriesFilter::default()).unwrap();
        let points = |name: &str| snapshot.series(name).unwrap().range(..).unwrap().read().unwrap();
        found.into_iter().map(|info| (points(&info.name).len(), info.name)).collect::<Vec<_>>()
    };
    for (at, name) in [(10, "a"), (20, "b")] {
        clock.set(at);
        db.create_series(name, &SeriesDefinition::new(ValueType::F64)).unwrap();
        clock.set(at + 5);
        db.series(name).unwrap().append_points(&seconds(0..3), &CommitOptions::default()).unwrap();
        if name == "a" {
            db.checkpoint().unwrap();
        }
    }
    let of = |points: usize, name: &str| (points, name.to_owned());
    assert_eq!(names(9), []);
    assert_eq!(names(10), [of(0, "a")]);
    assert_eq!(names(19), [of(3, "a")]);
    assert_eq!(names(20), [of(3, "a"), of(0, "b")]);
    assert_eq!(names(99), [of(3, "a"), of(3, "b")]);
}

/// It was all that was left of points that had gone, and went with its rule; the same rule again
/// did not bring it back.
#[test]
fn a_rollup_that_tells_of_points_that_have_gone_outlives_its_rule() {
    let (db, series, clock) = an_hour(&tiers(None, &[]));
    let minute = Duration::from_mins(1);
    let rule = |glob: &str, keep: u32, width: u32| SeriesRule {
        keep: Some(keep * minute),
        rollups: vec![Rollup::new(width * minute)],
        ..SeriesRule::new(glob)
    };
    let set = |rule: &SeriesRule| {
        let mut transaction = db.transaction();
        transaction.set_series_rule(rule).unwrap();
        transaction.commit(&CommitOptions::default()).unwrap();
    };
    let (of_all, of_one) = (rule("**", 3, 1), rule("a*", 10, 5));
    clock.set(3_600);
    set(&of_one);
    set(&of_all);
    compact(&db);
    compact(&db);
    assert_eq!(counts(&series, "5m"), every(5, 0..60));
    let mut transaction = db.transaction();
    assert_eq!(transaction.remove_series_rule("a*").unwrap(), 1);
    transaction.commit(&CommitOptions::default()).unwrap();
    let kept = |series: &crate::Series| {
        let definition = db.series(series.name()).unwrap().info().definition.clone();
        let minutes = |span: Duration| span.as_secs() / 60;
        let widths: Vec<u64> = definition.rollups.iter().map(|one| minutes(one.width)).collect();
        (definition.keep.map(minutes), widths)
    };
    // The rule that wins now keeps points for less than one of its windows.
    assert_eq!(kept(&series), (Some(5), vec![1, 5]));
    // What that rule never named does not go when it is set again, and the same one knows it.
    for rule in [&of_all, &rule("**", 4, 1), &of_one, &of_one] {
        compact(&db);
        assert_eq!(counts(&series, "5m"), every(5, 0..60));
        set(rule);
    }
    assert_eq!(kept(&series), (Some(10), vec![5]));
    set(&rule("a*", 10, 2));
    assert_eq!(kept(&series), (Some(10), vec![2]));
    assert!(db.check().unwrap().is_clean());
}
