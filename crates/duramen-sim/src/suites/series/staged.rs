//! Series whose points are staged one by one, and what may be there of them.
//!
//! Invariants of the engine that this tells:
//! - a process sees each point that was acknowledged to it, and the one after a kill all of them;
//! - a power loss takes points only from those after the last seal that was durable, in any choice,
//!   and leaves nothing that was never written.

use std::collections::BTreeMap;

use duramen::{
    CommitOptions, Database, Durability, Micros, Quality, Series, SeriesValue, ValueType,
};

use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;

/// The series.
pub(super) const SERIES: [(&str, ValueType); 3] = [
    ("stage/level", ValueType::F64),
    ("stage/count", ValueType::I64),
    ("stage/on", ValueType::Bool),
];
/// Times are below this, so that many points take the place of others.
const TIMES: u64 = 60;
const INTERVALS: [u32; 2] = [20, 100_000];

/// What may be there of each series and time: a number that its value is made of, or no point.
type Choices = BTreeMap<(usize, i64), Vec<Option<i64>>>;

/// What may be there now, or after a kill, and after a power loss.
#[derive(Debug, Default)]
pub(super) struct Staged {
    live: Choices,
    durable: Choices,
}

fn value(value_type: ValueType, number: i64) -> SeriesValue {
    match value_type {
        ValueType::F64 => SeriesValue::F64(f64::from(i32::try_from(number).unwrap_or(0)) / 8.0),
        ValueType::Bool => SeriesValue::Bool(number % 2 == 0),
        _ => SeriesValue::I64(number),
    }
}

impl Staged {
    /// Everything that was acknowledged is durable.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.live);
    }

    /// What was acknowledged of one series is durable.
    pub(super) fn settle_one(&mut self, which: usize) {
        for (place, fates) in self.live.range((which, i64::MIN)..=(which, i64::MAX)) {
            self.durable.insert(*place, fates.clone());
        }
    }

    fn note(&mut self, place: (usize, i64), fate: Option<i64>, is_done: bool) {
        let live = self.live.entry(place).or_insert_with(|| vec![None]);
        if is_done {
            live.clear();
        }
        live.push(fate);
        self.durable.entry(place).or_insert_with(|| vec![None]).push(fate);
    }

    /// Stages some points by one handle, most of them after each other.
    pub(super) fn append(&mut self, db: &Database, random: &mut Random) -> duramen::Result<()> {
        let which = random.index(SERIES.len());
        let (name, value_type) = SERIES[which];
        let series = db.series(name)?;
        let durability = Some(Durability::Interval(random.choose(&INTERVALS)));
        let options = CommitOptions { durability, ..CommitOptions::default() };
        let first = random.below(TIMES).cast_signed();
        for step in 0..=random.below(40).cast_signed() {
            let time = if random.one_in(8) { first - step } else { first + step / 2 };
            let number = random.below(1 << 20).cast_signed();
            let told = append(&series, (time, value(value_type, number)), &options);
            self.note((which, time), Some(number), told.is_ok());
            told?;
        }
        Ok(())
    }

    /// Deletes a span of one series; the series if what was done to it is durable now.
    pub(super) fn delete(
        &mut self,
        db: &Database,
        random: &mut Random,
    ) -> duramen::Result<Option<usize>> {
        let which = random.index(SERIES.len());
        let from = random.below(TIMES).cast_signed();
        let to = from + random.below(TIMES / 3).cast_signed();
        let is_sync = random.one_in(2);
        let durability = Some(if is_sync { Durability::Sync } else { Durability::Interval(50) });
        let options = CommitOptions { durability, ..CommitOptions::default() };
        let told = db.series(SERIES[which].0)?.delete(Micros(from)..Micros(to), &options).map(drop);
        let known = self.live.range((which, from)..(which, to)).map(|(&place, _)| place);
        for place in known.collect::<Vec<_>>() {
            self.note(place, None, told.is_ok());
        }
        told.map(|()| (is_sync && to > from).then_some(which))
    }

    /// Compares what is there with what may be, and goes on from there.
    pub(super) fn adopt(&mut self, db: &Database, was_killed: bool) -> Check {
        let choices = if was_killed { &self.live } else { &self.durable };
        let found = compare(db, choices)?;
        self.live = found.clone();
        self.durable = found;
        Ok(())
    }

    /// Compares what is there with what was acknowledged.
    pub(super) fn look(&self, db: &Database) -> Check {
        compare(db, &self.live).map(drop)
    }
}

fn append(
    series: &Series,
    (time, value): (i64, SeriesValue),
    options: &CommitOptions,
) -> duramen::Result<()> {
    series.append_with_quality((Micros(time), Quality::GOOD), value, options).map(drop)
}

/// What is there, if it is one of the choices everywhere.
fn compare(db: &Database, choices: &Choices) -> Check<Choices> {
    let mut all = Choices::new();
    for (which, (name, value_type)) in SERIES.into_iter().enumerate() {
        let series = said("staged series", db.series(name))?;
        let points = said("range", series.range(..).and_then(duramen::SeriesRange::read))?;
        let found: BTreeMap<_, _> =
            points.iter().map(|point| (point.time.0, point.value)).collect();
        let of_series = choices.range((which, i64::MIN)..=(which, i64::MAX));
        for (&(_, time), allowed) in of_series {
            let there = found.get(&time);
            let fate = allowed
                .iter()
                .rev()
                .find(|fate| fate.map(|number| value(value_type, number)).as_ref() == there);
            let Some(fate) = fate else {
                return Err(format!("{name} at {time} is {there:?}, expected one of {allowed:?}"));
            };
            all.insert((which, time), vec![*fate]);
        }
        let invented = found.keys().find(|time| !choices.contains_key(&(which, **time)));
        if let Some(time) = invented {
            return Err(format!("{name} has a point at {time} that was never written"));
        }
    }
    Ok(all)
}
