//! Series under power losses, killed processes and failing devices: points appended in any order,
//! spans deleted, rules of retention set and a document put, in commits of all of these, are
//! compared with a naive model
//! that keeps the whole state of each commit.
//!
//! Invariants:
//! - a commit is there whole or not at all, document included, and none before one that is there is
//!   missing;
//! - what was acknowledged is there, or, after a power loss, what was durable;
//! - what every range says, either way round, is what the model says, as of earlier commits too.

mod ruled;
mod staged;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use duramen::{
    Aggregate, AggregateOptions, CommitOptions, CommitSequence, Database, Durability, ErrorKind,
    Micros, Points, Quality, RangeOptions, Rollup, SeriesDefinition, SeriesFilter, SeriesSnapshot,
    SeriesValue, Transaction, ValueType, Windows,
};

use self::ruled::Ruled;
use self::staged::Staged;
use super::machine::{Machine, Stop};
use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};

/// The series, and the type of each. The last one has a point for each commit, which counts them.
const SERIES: [(&str, ValueType); 4] = [
    ("plant/level", ValueType::F64),
    ("plant/count", ValueType::I64),
    ("plant/state", ValueType::String),
    ("log", ValueType::I64),
];
const LOG: usize = SERIES.len() - 1;
/// The document that counts the commits too.
const DOCUMENT: &str = "count";
const LIVES: u64 = 3;
const STEPS: u64 = 90;
/// Microseconds of the windows of rollups, and of those that are compared.
const ROLLUPS: [u64; 2] = [7, 50];
const WINDOW: i64 = 50;
/// Times are below this.
const TIMES: u64 = 200;
const POINTS_MAX: u64 = 40;
/// Earlier commits that are compared.
const EARLIER: u64 = 4;
const DURABILITIES: [Durability; 3] =
    [Durability::Sync, Durability::Interval(5), Durability::Interval(10_000)];

/// The points of a commit by series and time: the numbers that their values are made of.
type State = BTreeMap<(usize, i64), i64>;

/// So many rounds.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    run(Suite::new("series"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Series { seed }.round()
    })
}

/// A commit: the points and the rules as of it, and its sequence where that was told.
#[derive(Debug, Clone, Default)]
struct Commit {
    state: State,
    ruled: Ruled,
    sequence: Option<CommitSequence>,
}

/// Some series, and what should be in them.
struct Plant {
    machine: Machine,
    commits: Vec<Commit>,
    /// The commit that a power loss cannot take, and the one that was acknowledged.
    durable: usize,
    acknowledged: usize,
    staged: Staged,
}

/// The round of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let machine = Machine::new(seed ^ 0x5e71);
    let (commits, staged) = (Vec::new(), Staged::default());
    let mut plant = Plant { machine, commits, durable: 0, acknowledged: 0, staged };
    for _ in 0..LIVES {
        let db = plant.open()?;
        plant.machine.plan_fault();
        plant.live(&db)?;
        if plant.machine.end(db) {
            plant.durable = plant.acknowledged;
            plant.staged.settle();
        }
    }
    let db = plant.open()?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    let trace = plant.machine.device.trace();
    let Machine { compactions, seen, .. } = plant.machine;
    Ok(Tally { losses: LIVES, compactions, seen, trace, ..Tally::default() })
}

impl Plant {
    /// Opens the database, and compares what is there.
    fn open(&mut self) -> Check<Database> {
        let db = self.machine.open()?;
        if said("series", db.find_series(&SeriesFilter::default()))?.is_empty() {
            self.create(&db)?;
        }
        let found = found(&db)?;
        let least = if self.machine.was_killed { self.acknowledged } else { self.durable };
        if found < least || found > self.commits.len() {
            return Err(format!("{found} commits are there, at least {least} should be"));
        }
        self.commits.truncate(found);
        (self.durable, self.acknowledged) = (found, found);
        self.compare(&db)?;
        self.staged.adopt(&db, self.machine.was_killed)?;
        Ok(db)
    }

    fn create(&self, db: &Database) -> Check {
        if self.acknowledged > 0 {
            return Err("the series are gone".to_owned());
        }
        let all = SERIES.iter().chain(&staged::SERIES);
        let rollups = ROLLUPS.map(|width| Rollup::new(Duration::from_micros(width)));
        let defined = |&(name, of)| {
            (name, SeriesDefinition { rollups: rollups.into(), ..SeriesDefinition::new(of) })
        };
        let all: Vec<_> = all.map(defined).collect();
        said("create", db.create_series_all(&all))?;
        said("flush", db.flush())
    }

    /// Commits and chores until they are done or something is final.
    fn live(&mut self, db: &Database) -> Check {
        for _ in 0..STEPS {
            self.machine.clock.forward(1_000);
            let done = match self.machine.random.below(20) {
                0 => self.settle(db.checkpoint()),
                1 => self.settle(db.flush()),
                2 if self.machine.random.one_in(4) => {
                    self.settle(db.compact(&mut |_, _| ControlFlow::Continue(())))
                }
                3 => {
                    self.machine.seen.insert("look");
                    let found = self.compare(db).and_then(|()| self.staged.look(db));
                    self.machine.unread(found)
                }
                4..=8 => self.stage(db),
                9 => self.delete_staged(db),
                _ => self.commit(db),
            };
            match done {
                Ok(()) | Err(Stop::Again) => {}
                Err(Stop::Over) => break,
                Err(Stop::Wrong(what)) => return Err(what),
            }
        }
        Ok(())
    }

    /// Points that are staged.
    fn stage(&mut self, db: &Database) -> Result<(), Stop> {
        self.machine.seen.insert("stage");
        let staged = self.staged.append(db, &mut self.machine.random);
        staged.map_err(|error| self.machine.stop(&error))
    }

    fn delete_staged(&mut self, db: &Database) -> Result<(), Stop> {
        let deleted = self.staged.delete(db, &mut self.machine.random);
        if let Some(series) = deleted.map_err(|error| self.machine.stop(&error))? {
            // Other series may have points that are staged yet.
            self.durable = self.acknowledged;
            self.staged.settle_one(series);
        }
        Ok(())
    }

    /// A commit of some changes.
    fn commit(&mut self, db: &Database) -> Result<(), Stop> {
        let mut next = Commit { sequence: None, ..self.newest() };
        let number = i64::try_from(self.commits.len()).unwrap_or(0) + 1;
        let mut transaction = db.transaction();
        let random = &mut self.machine.random;
        let staged = change(random, &mut transaction, &mut next.state)
            .and_then(|()| next.ruled.change(random, &mut transaction))
            .and_then(|()| count(&mut transaction, &mut next.state, number));
        staged.map_err(|error| self.machine.stop(&error))?;
        let durability = self.machine.random.choose(&DURABILITIES);
        let options = CommitOptions { durability: Some(durability), ..CommitOptions::default() };
        self.commits.push(next);
        match transaction.commit(&options) {
            Ok(committed) => {
                self.acknowledged = self.commits.len();
                if let Some(last) = self.commits.last_mut() {
                    last.sequence = Some(committed.sequence);
                }
                if durability == Durability::Sync {
                    self.durable = self.acknowledged;
                    self.staged.settle();
                }
                self.machine.seen.insert("commit");
                Ok(())
            }
            Err(error) => {
                let stop = self.machine.stop(&error);
                if matches!(stop, Stop::Again) {
                    self.commits.truncate(self.acknowledged);
                }
                Err(if error.kind() == ErrorKind::Io { Stop::Over } else { stop })
            }
        }
    }

    fn newest(&self) -> Commit {
        self.commits.last().cloned().unwrap_or_default()
    }

    /// Compares the newest state and some earlier ones.
    fn compare(&mut self, db: &Database) -> Check {
        let random = &mut self.machine.random;
        let earlier = (0..EARLIER).filter_map(|_| {
            let commit = self.commits.get(random.index(self.commits.len().max(1)))?;
            commit.sequence.is_some().then(|| commit.clone())
        });
        let earlier: Vec<_> = earlier.collect();
        for commit in earlier {
            compare(db, &commit, random)
                .map_err(|what| format!("as of commit {:?}: {what}", commit.sequence))?;
        }
        let newest = self.commits.last().cloned().unwrap_or_default();
        compare(db, &Commit { sequence: None, ..newest }, random)
    }

    /// After this everything acknowledged is durable.
    fn settle(&mut self, result: duramen::Result<()>) -> Result<(), Stop> {
        result.map_err(|error| self.machine.stop(&error))?;
        self.durable = self.acknowledged;
        self.staged.settle();
        Ok(())
    }
}

/// How many commits are there, as the log says and the document.
fn found(db: &Database) -> Check<usize> {
    let last = said("latest", said("log", db.series(SERIES[LOG].0))?.latest())?;
    let found = last.map_or(0, |point| point.time.0);
    let told = match db.document(DOCUMENT).and_then(|document| document.head()) {
        Err(error) if error.kind() == ErrorKind::NotFound => "0".to_owned(),
        head => said("document", head.and_then(|head| head.to_json()))?,
    };
    if told != found.to_string() {
        return Err(format!("the log has {found} commits, the document {told}"));
    }
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}

/// Points and deletions of some series, and what comes of them.
fn change(
    random: &mut Random,
    transaction: &mut Transaction,
    state: &mut State,
) -> duramen::Result<()> {
    for _ in 0..=random.below(3) {
        let series = random.index(LOG);
        let name = SERIES[series].0;
        let time = random.below(TIMES).cast_signed();
        if random.one_in(4) {
            let end = time + random.below(TIMES / 4).cast_signed();
            transaction.delete_points(name, Micros(time)..Micros(end))?;
            state.retain(|&(of, at), _| of != series || !(time..end).contains(&at));
            continue;
        }
        let mut points = Points::new(SERIES[series].1);
        // Most points follow each other, some come late.
        let step = 1 + random.below(3).cast_signed();
        for at in 0..=random.below(POINTS_MAX).cast_signed() {
            let time = if random.one_in(8) { time - at } else { time + at * step };
            let number = random.below(1 << 20).cast_signed();
            let quality = quality(series, number);
            points.push(Micros(time), value(SERIES[series].1, number), quality)?;
            state.insert((series, time), number);
        }
        transaction.append_points(name, &points)?;
    }
    Ok(())
}

/// The quality of a point whose value is made of a number.
fn quality(series: usize, number: i64) -> Quality {
    if series != LOG && number % 5 == 0 { Quality::BAD } else { Quality::GOOD }
}

/// Counts the commit.
fn count(transaction: &mut Transaction, state: &mut State, number: i64) -> duramen::Result<()> {
    let mut points = Points::new(SERIES[LOG].1);
    points.push(Micros(number), number, Quality::GOOD)?;
    transaction.append_points(SERIES[LOG].0, &points)?;
    state.insert((LOG, number), number);
    transaction.put(DOCUMENT, number.to_string().as_bytes())
}

fn value(value_type: ValueType, number: i64) -> SeriesValue {
    match value_type {
        ValueType::F64 => SeriesValue::F64(f64::from(i32::try_from(number).unwrap_or(0)) / 100.0),
        ValueType::String => SeriesValue::String(format!("state {}", number % 7)),
        _ => SeriesValue::I64(number),
    }
}

/// Compares the rules, and a random span of every series, with what a commit left.
fn compare(db: &Database, commit: &Commit, random: &mut Random) -> Check {
    let (state, at) = (&commit.state, commit.sequence);
    commit.ruled.compare(&at.map_or_else(|| db.snapshot(), |at| db.snapshot_at(at)))?;
    for (series, (name, value_type)) in SERIES.into_iter().enumerate() {
        let handle = said("series", db.series(name))?;
        let snapshot = at.map_or_else(|| handle.snapshot(), |at| handle.at(at));
        let first = random.below(TIMES).cast_signed() - 50;
        let last = if random.one_in(2) { i64::MAX } else { first + 60 };
        let reverse = random.one_in(2);
        let limit = random.one_in(3).then(|| random.index(20));
        let options = RangeOptions { limit, reverse, bounding: false };
        let range = said("range", snapshot.range_with(Micros(first)..=Micros(last), &options))?;
        let found = said("range", range.read())?;
        let all = state.range((series, first)..=(series, last));
        let mut expected: Vec<_> =
            all.map(|(&(_, time), &number)| (time, value(value_type, number))).collect();
        if reverse {
            expected.reverse();
        }
        expected.truncate(limit.unwrap_or(usize::MAX));
        let found: Vec<_> = found.iter().map(|point| (point.time.0, point.value)).collect();
        if found != expected {
            return Err(format!(
                "{name} from {first} to {last}, {options:?}, is {found:?}, expected {expected:?}"
            ));
        }
        compare_windows(&snapshot, (series, name), state)?;
    }
    Ok(())
}

/// How many good points there are in each window, whether a rollup says it or the points.
fn compare_windows(
    snapshot: &SeriesSnapshot,
    (series, name): (usize, &str),
    state: &State,
) -> Check {
    let windows = said("windows", Windows::of_width(Micros(WINDOW)))?;
    let options = AggregateOptions::new(vec![Aggregate::Count], windows);
    let last = Micros(i64::from(u32::MAX));
    let table = said("aggregate", snapshot.aggregate(Micros(-50)..=last, &options))?;
    let count = |at| table.columns.first().and_then(|column| column.get(at));
    let found = table.starts.iter().enumerate().map(|(at, &start)| (start, count(at)));
    let found: Vec<_> = found.collect();
    let mut expected: BTreeMap<i64, i64> = BTreeMap::new();
    for (&(_, time), &number) in state.range((series, -50)..=(series, last.0)) {
        if quality(series, number).is_good() {
            *expected.entry(time.div_euclid(WINDOW) * WINDOW).or_default() += 1;
        }
    }
    let expected: Vec<_> =
        expected.into_iter().map(|(start, count)| (start, Some(SeriesValue::I64(count)))).collect();
    if found == expected {
        return Ok(());
    }
    Err(format!("the windows of {name} have {found:?} points, expected {expected:?}"))
}
