//! A database that is loaded from a dump of series says the same: as of every commit, by every
//! aggregate, and in another dump.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::Reopened;
use crate::io::{Device, MemoryDevice};
use crate::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Database, DatabaseSnapshot,
    DumpItem, DumpLoad, DumpSummary, DumpedPoints, Error, ErrorKind, Lossy, Micros, Options,
    Points, Quality, Rollup, SeriesDefinition, SeriesFilter, SeriesInfo, SeriesRule, SeriesValue,
    Transaction, ValueType, Windows,
};

const NAMES: [&str; 3] = ["a", "b/1", "c"];

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// Points of each of some series, in one commit.
    Append(Vec<(usize, i64, i64)>),
    Delete(usize, i64, i64),
    Rename(usize),
    Change(usize),
    Drop(usize),
    Document,
    Rule(usize),
    Checkpoint,
    Compact,
    Reopen,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let time = prop_oneof![20 => 0_i64..90, 1 => Just(i64::MAX), 1 => Just(i64::MIN)];
    let points = prop::collection::vec((0..NAMES.len(), time, any::<i64>()), 1..30);
    prop_oneof![
        8 => points.prop_map(Step::Append),
        3 => (0..NAMES.len(), 0_i64..90, 0_i64..30).prop_map(|(of, from, len)| {
            Step::Delete(of, from, from + len)
        }),
        2 => (0..NAMES.len()).prop_map(Step::Rename),
        1 => (0..NAMES.len()).prop_map(Step::Change),
        1 => (0..NAMES.len()).prop_map(Step::Drop),
        1 => Just(Step::Document),
        1 => (0..NAMES.len()).prop_map(Step::Rule),
        3 => Just(Step::Checkpoint),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

fn value(of: usize, number: i64) -> SeriesValue {
    match of {
        0 => SeriesValue::F64(f64::from_bits(number.cast_unsigned())),
        1 => SeriesValue::I64(number),
        _ => SeriesValue::String(format!("{number:x}")),
    }
}

fn definition(of: usize) -> SeriesDefinition {
    let rollup = |width| Rollup::new(Duration::from_micros(width));
    SeriesDefinition {
        unit: "kg/s".to_owned(),
        labels: [("site".to_owned(), "north \"1\"".to_owned())].into(),
        rollups: [5, 20].into_iter().take(of).map(rollup).collect(),
        ..SeriesDefinition::new([ValueType::F64, ValueType::I64, ValueType::String][of])
    }
}

pub(super) fn play(db: &mut Reopened, step: &Step) {
    match step {
        Step::Checkpoint => return db.checkpoint().unwrap(),
        Step::Compact => return db.compact(),
        Step::Reopen => return db.reopen(),
        Step::Document => {
            let doc = db.document("doc").or_else(|_| db.create_document("doc")).unwrap();
            doc.put("[1]", &CommitOptions::default()).unwrap();
        }
        _ => {}
    }
    let mut transaction = db.transaction();
    let there = |name: &str| db.series(name).is_ok();
    match step {
        Step::Append(points) => {
            for &(of, time, number) in points {
                let name = NAMES[of];
                if !there(name) {
                    let _ = transaction.create_series(name, &definition(of));
                }
                let quality = if number % 3 == 0 { Quality(7) } else { Quality::GOOD };
                let mut one = Points::new(definition(of).value_type);
                one.push(Micros(time), value(of, number), quality).unwrap();
                transaction.append_points(name, &one).unwrap();
            }
        }
        Step::Delete(of, from, to) if there(NAMES[*of]) => {
            let span = Micros(*from)..Micros(*to);
            transaction.delete_points(NAMES[*of], span).unwrap();
        }
        Step::Rename(of) if there(NAMES[*of]) => {
            let to = format!("z{}", db.snapshot().sequence());
            transaction.rename_series(NAMES[*of], &to).unwrap();
        }
        Step::Change(of) if there(NAMES[*of]) => {
            let unit = format!("u{}", db.snapshot().sequence().0 % 3);
            let changed = SeriesDefinition { unit, ..definition(*of) };
            transaction.change_series(NAMES[*of], &changed).unwrap();
        }
        Step::Rule(of) => {
            let rollups = vec![Rollup::new(Duration::from_micros(10))];
            let rule = SeriesRule { rollups, ..SeriesRule::new(NAMES[*of]) };
            transaction.set_series_rule(&rule).unwrap();
        }
        Step::Drop(of) if there(NAMES[*of]) => transaction.delete_series(NAMES[*of]).unwrap(),
        _ => {}
    }
    transaction.commit(&CommitOptions::default()).unwrap();
}

pub(super) fn dumped(db: &Database) -> (Vec<DumpItem>, DumpSummary) {
    let mut dump = db.snapshot().dump().unwrap();
    let items = dump.by_ref().collect::<Result<_, _>>().unwrap();
    (items, dump.summary())
}

pub(super) fn options() -> Options {
    Options { background: false, ..Options::default() }
}

fn load(items: &[DumpItem]) -> Result<Database, Error> {
    let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let mut load = DumpLoad::into_new(Arc::clone(&device), options())?;
    items.iter().try_for_each(|item| load.push(item.clone()))?;
    load.finish(None)?;
    Database::open_device(device, options())
}

/// What windows of a series come to, by their bits.
fn aggregated(db: &Database, name: &str, at: CommitSequence) -> String {
    let windows = Windows::of_width(Micros(20)).unwrap();
    let aggregates = vec![Aggregate::Count, Aggregate::First, Aggregate::Last];
    let options = AggregateOptions::new(aggregates, windows);
    let snapshot = db.series(name).unwrap().at(at);
    format!("{:?}", snapshot.aggregate(Micros(0)..Micros(100), &options).unwrap())
}

pub(super) fn compare(before: &Database, after: &Database) {
    let all = before.find_series(&SeriesFilter::default()).unwrap();
    assert_eq!(after.find_series(&SeriesFilter::default()).unwrap(), all);
    assert_eq!(after.series_rules().unwrap(), before.series_rules().unwrap());
    let last = before.snapshot().sequence();
    for at in (0..=last.0).map(CommitSequence) {
        compare_catalogues(before, &before.snapshot_at(at), &after.snapshot_at(at));
    }
    for name in all.iter().map(|info| info.name.as_str()) {
        for at in (0..=last.0).map(CommitSequence) {
            let read =
                |db: &Database| db.series(name).unwrap().at(at).range(..).unwrap().read().unwrap();
            assert_eq!(read(after), read(before), "{name} as of commit {at}");
            assert_eq!(aggregated(after, name, at), aggregated(before, name, at), "{name} {at}");
        }
    }
}

/// The series that are there at last were called the same, and what was said of them is the same,
/// but for what is kept of them.
fn compare_catalogues(database: &Database, before: &DatabaseSnapshot, after: &DatabaseSnapshot) {
    let all = |snapshot: &DatabaseSnapshot| snapshot.find_series(&SeriesFilter::default()).unwrap();
    let living: BTreeSet<_> = all(&database.snapshot()).iter().map(|info| info.number).collect();
    let said = |info: &SeriesInfo| {
        let (keep, rollups) = (None, Vec::new());
        (info.name.clone(), SeriesDefinition { keep, rollups, ..info.definition.clone() })
    };
    let found = all(after);
    for info in all(before).iter().filter(|info| living.contains(&info.number)) {
        let other = found.iter().find(|other| other.number == info.number);
        assert_eq!(other.map(said), Some(said(info)), "as of commit {}", before.sequence());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_loaded_database_says_the_same_as_of_every_commit(
        steps in prop::collection::vec(step(), 1..30),
    ) {
        let mut db = Reopened::new();
        for step in &steps {
            play(&mut db, step);
        }
        let (items, summary) = dumped(&db);
        db.checkpoint().unwrap();
        db.compact();
        prop_assert_eq!(&dumped(&db), &(items.clone(), summary));
        let loaded = load(&items).unwrap();
        let (again, summary_again) = dumped(&loaded);
        prop_assert_eq!(summary_again, summary);
        // Revisions of documents say when they were committed here.
        prop_assert_eq!(of_series(again), of_series(items));
        compare(&db, &loaded);
        let report = loaded.check().unwrap();
        prop_assert!(report.is_clean(), "{:?}", report.findings);
        // What comes later is a later commit of the same series.
        let commits = items_of_commits(&dumped(&loaded).0);
        let last_commit = commits.last().copied().unwrap_or_default();
        for info in db.find_series(&SeriesFilter::default()).unwrap() {
            let mut one = Points::new(info.definition.value_type);
            one.push(Micros(3), value(kind(&info.definition), 5), Quality::GOOD).unwrap();
            let series = loaded.series(&info.name).unwrap();
            let made = series.append_points(&one, &CommitOptions::default()).unwrap();
            prop_assert!(made.sequence > last_commit);
            let read = series.range(Micros(3)..=Micros(3)).unwrap().read().unwrap();
            prop_assert_eq!(read, one);
        }
    }
}

fn of_series(mut items: Vec<DumpItem>) -> Vec<DumpItem> {
    items.retain(|item| !matches!(item, DumpItem::Document { .. } | DumpItem::Revision(_)));
    items
}

fn items_of_commits(items: &[DumpItem]) -> Vec<CommitSequence> {
    let of_one = |item: &DumpItem| match item {
        DumpItem::Commits(commits) => commits.iter().map(|commit| commit.0).collect(),
        _ => Vec::new(),
    };
    items.iter().flat_map(of_one).collect()
}

/// Which of the series that there are at first one is.
fn kind(of: &SeriesDefinition) -> usize {
    (0..NAMES.len()).find(|at| definition(*at).value_type == of.value_type).unwrap()
}

#[test]
fn what_is_said_of_a_series_is_loaded() {
    let db = Database::memory().unwrap();
    let all = SeriesDefinition {
        description: "steam".to_owned(),
        display: Some((-0.5, 1e300)),
        lossy: Some(Lossy::Quantised { low: 0.0, high: 120.0 }),
        keep: Some(Duration::from_hours(24)),
        ..definition(1)
    };
    let all = SeriesDefinition { value_type: ValueType::F64, ..all };
    db.create_series("gone", &all).unwrap();
    db.create_series("kept", &all).unwrap();
    let mut transaction = db.transaction();
    transaction.delete_series("gone").unwrap();
    transaction.commit(&CommitOptions::default()).unwrap();
    let loaded = load(&dumped(&db).0).unwrap();
    let known = |db: &Database| db.find_series(&SeriesFilter::default()).unwrap();
    assert_eq!(known(&loaded), known(&db));
    // A number is not given twice.
    loaded.create_series("new", &all).unwrap();
    let numbers: std::collections::BTreeSet<_> =
        known(&loaded).iter().map(|info| info.number).collect();
    assert_eq!(numbers.len(), known(&loaded).len());
}

/// A loaded database had the newest names and units of all commits.
#[test]
fn what_series_were_called_before_is_loaded() {
    let db = Database::memory().unwrap();
    let of = |unit: &str| SeriesDefinition {
        unit: unit.to_owned(),
        labels: [("site".to_owned(), unit.to_owned())].into(),
        rollups: vec![Rollup::new(Duration::from_secs(1))],
        ..SeriesDefinition::new(ValueType::I64)
    };
    let commit = |change: &dyn Fn(&mut Transaction)| {
        let mut transaction = db.transaction();
        change(&mut transaction);
        transaction.commit(&CommitOptions::default()).unwrap().timestamp
    };
    let append = |name: &str| {
        let series = db.series(name).unwrap();
        series.append(Micros(1), 1, &CommitOptions::default()).unwrap().timestamp
    };
    db.create_series("a", &of("bar")).unwrap();
    let times = [
        append("a"),
        commit(&|transaction| transaction.rename_series("a", "b").unwrap()),
        append("b"),
        commit(&|transaction| transaction.change_series("b", &of("kPa")).unwrap()),
        commit(&|transaction| transaction.create_series("a", &of("K")).unwrap()),
        append("a"),
        commit(&|transaction| {
            for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
                transaction.rename_series(from, to).unwrap();
            }
        }),
        append("b"),
        commit(&|transaction| transaction.rename_series("a", "last").unwrap()),
    ];
    let (items, summary) = dumped(&db);
    let loaded = load(&items).unwrap();
    assert_eq!(dumped(&loaded), (items, summary));
    compare(&db, &loaded);
    for time in times {
        let [before, after] = [&db, &loaded].map(|db| db.series_at_time(time).unwrap());
        assert_eq!(before.sequence(), after.sequence());
        compare_catalogues(&db, &before, &after);
    }
    let first = loaded.series_at_time(times[0]).unwrap().series("a").unwrap();
    assert_eq!(
        (first.info().definition.unit.as_str(), loaded.series("last").is_ok()),
        ("bar", true)
    );
    assert!(loaded.check().unwrap().is_clean());
}

#[test]
fn a_time_is_a_commit_as_before() {
    let db = Database::memory().unwrap();
    let series = db.create_series("s", &SeriesDefinition::new(ValueType::I64)).unwrap();
    let append = |time, value: i64| {
        series.append(Micros(time), value, &CommitOptions::default()).unwrap().timestamp
    };
    let times = [append(1, 10), append(2, 20), append(1, 11)];
    let loaded = load(&dumped(&db).0).unwrap().series("s").unwrap();
    for time in times.into_iter().chain([Micros(0), Micros(times[0].0 - 1)]) {
        let read = |series: &crate::Series| {
            series.at_time(time).unwrap().range(..).unwrap().read().unwrap()
        };
        assert_eq!(read(&loaded), read(&series));
    }
}

#[test]
fn series_that_cannot_stand_there_are_refused() {
    let db = Database::memory().unwrap();
    for name in NAMES {
        let series = db.create_series(name, &SeriesDefinition::new(ValueType::I64)).unwrap();
        for time in [1, 2, 1] {
            series.append(Micros(time), time, &CommitOptions::default()).unwrap();
        }
        series.delete(Micros(1)..Micros(2), &CommitOptions::default()).unwrap();
    }
    db.create_document("d").unwrap().put("1", &CommitOptions::default()).unwrap();
    let (items, _) = dumped(&db);
    let place = |is: fn(&DumpItem) -> bool| items.iter().position(is).unwrap();
    let points = place(|item| matches!(item, DumpItem::Points(_)));
    let deletes = place(|item| matches!(item, DumpItem::Deletes { .. }));
    let commits = place(|item| matches!(item, DumpItem::Commits(_)));
    let document = place(|item| matches!(item, DumpItem::Document { .. }));
    let swapped = |a: usize, b: usize| {
        let mut items = items.clone();
        items.swap(a, b);
        items
    };
    let changed = |change: fn(&mut DumpedPoints)| {
        let mut items = items.clone();
        let DumpItem::Points(points) = &mut items[points] else { unreachable!() };
        change(points);
        items
    };
    let of_commit = |number| {
        let mut items = items.clone();
        let DumpItem::Commits(found) = &mut items[commits] else { unreachable!() };
        found.last_mut().unwrap().0 = CommitSequence(number);
        items
    };
    let recorded = |record: &str| {
        let mut items = items.clone();
        items[1] = DumpItem::Series { name: NAMES[1].to_owned(), record: record.to_owned() };
        items
    };
    let DumpItem::Series { record, .. } = &items[0] else { unreachable!() };
    let cases = [
        swapped(0, 1),
        swapped(0, commits),
        swapped(commits, points),
        swapped(points, deletes),
        swapped(points, document),
        swapped(points, points + 2),
        [&items[..], &items[points..=points]].concat(),
        [&items[..], &items[..1]].concat(),
        changed(|points| points.commits.truncate(1)),
        changed(|points| points.commits[0] = CommitSequence(0)),
        changed(|points| points.commits[0] = CommitSequence(99)),
        changed(|points| points.commits.swap(0, 1)),
        changed(|points| points.series = "nowhere".to_owned()),
        changed(|points| points.points = Points::new(ValueType::Bool)),
        of_commit(0),
        of_commit(u64::MAX),
        recorded("{}"),
        recorded("7"),
        recorded(record),
    ];
    for (number, items) in cases.iter().enumerate() {
        let error = load(items).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "case {number}: {error}");
    }
}

#[test]
fn what_no_series_can_have_been_is_refused() {
    let db = Database::memory().unwrap();
    for name in NAMES {
        db.create_series(name, &SeriesDefinition::new(ValueType::I64)).unwrap();
    }
    let (items, _) = dumped(&db);
    let DumpItem::Series { record, .. } = &items[1] else { unreachable!() };
    let load_with = |member: &str| {
        let mut items = items.clone();
        let record = record.replace('}', &format!(",{member}}}"));
        items[1] = DumpItem::Series { name: NAMES[1].to_owned(), record };
        load(&items)
    };
    let was = |name: &str, until: u64| {
        let state = format!(r#"{{"name":"{name}","until":[{until},5],"is":{record}}}"#);
        load_with(&format!(r#""was":[{state}]"#))
    };
    let loaded = was("x", 40).unwrap();
    assert!(loaded.snapshot_at(CommitSequence(39)).series("x").is_ok());
    assert!(loaded.snapshot_at(CommitSequence(39)).series(NAMES[1]).is_err());
    assert!(loaded.series(NAMES[1]).is_ok());
    for refused in [
        load_with(r#""was":[7]"#),
        load_with(r#""since":[7]"#),
        load_with(r#""since":[1,7]"#),
        was(NAMES[0], 4),
        was("x", 1),
        was("x", u64::MAX),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    }
}
