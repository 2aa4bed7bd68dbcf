//! V3, V4 and V6: the log, one field over all revisions, and the difference of two.

use anyhow::{Result, ensure};

use super::commits::{History, named};
use crate::contest::Contestant;
use crate::figures::Measure;
use crate::rivals::POSTGRES_STATEMENTS;
use crate::sampling::{self, interleave};
use crate::session::Session;
use crate::subject::{FieldChange, VersionedStore};

const NEWEST: u32 = 100;
const UNCHANGED: &str = "value-1-0123456789abcdef0123456789";

/// V3.
pub(crate) fn log(session: &mut Session) -> Result<()> {
    each_state(session, "V3", |session, history, cases| {
        let revisions = usize::try_from(history.revisions())?;
        compare(session, history, &cases.of("timestamps"), |store| {
            let timestamps = store.timestamps()?;
            Ok(move || timestamps.len() == revisions && timestamps.is_sorted_by(|a, b| a < b))
        })?;
        compare(session, history, &cases.of("entries"), |store| {
            let entries = store.entries(None)?;
            Ok(move || {
                let sum: i64 = entries.iter().map(|entry| entry.revision).sum();
                let last = i64::try_from(revisions).unwrap_or(0);
                entries.len() == revisions && sum == last * (last + 1) / 2
            })
        })?;
        compare(session, history, &cases.of("newest100"), |store| {
            let entries = store.entries(Some(NEWEST))?;
            Ok(move || {
                let falling = entries.is_sorted_by(|new, old| new.at > old.at);
                falling && entries.len() == revisions.min(NEWEST as usize)
            })
        })
    })
}

/// V4.
pub(crate) fn values(session: &mut Session) -> Result<()> {
    each_state(session, "V4", |session, history, cases| {
        let commits = i64::try_from(history.revisions())? - 1;
        compare(session, history, &cases.of("changing"), |store| {
            let sum: i64 = store.counters()?.iter().sum();
            Ok(move || sum == commits * (commits + 1) / 2)
        })?;
        compare(session, history, &cases.of("unchanged"), |store| {
            let runs = store.runs("s1")?;
            Ok(move || runs == [UNCHANGED])
        })
    })
}

/// V6.
pub(crate) fn diffs(session: &mut Session) -> Result<()> {
    each_state(session, "V6", |session, history, cases| {
        let middle = history.revisions() / 2;
        let pairs = [("adjacent", middle, middle + 1), ("far", 1, history.revisions())];
        for (case, from, to) in pairs {
            let (old, new) = (from - 1, to - 1);
            let expected = vec![FieldChange {
                pointer: "/counter".to_owned(),
                old: Some(old.to_string()),
                new: Some(new.to_string()),
            }];
            let patch = format!(r#"[{{"op":"replace","path":"/counter","value":{new}}}]"#);
            compare(session, history, &cases.of(case), |store| {
                let found = store.diff(from, to)?;
                let (expected, patch) = (&expected, &patch);
                Ok(move || {
                    let is_patch = found.patch.as_ref().is_none_or(|found| found == patch);
                    found.changes == *expected && is_patch
                })
            })?;
        }
        Ok(())
    })
}

/// The names of the cases of one state of the stores.
struct Cases {
    workload: &'static str,
    suffix: &'static str,
}

impl Cases {
    fn of(&self, case: &str) -> Measure {
        Measure::cost(self.workload, "time", "us").case(format!("{case}{}", self.suffix))
    }
}

/// Runs work on the stores as their commits left them, then on stores that were opened again.
fn each_state(
    session: &mut Session,
    workload: &'static str,
    mut work: impl FnMut(&mut Session, &mut History, &Cases) -> Result<()>,
) -> Result<()> {
    let warm = Cases { workload, suffix: "" };
    History::with(session, |session, history| work(session, history, &warm))?;
    let opened = Cases { workload, suffix: ", opened" };
    History::with_opened(session, |session, history| work(session, history, &opened))
}

/// Times one operation on each store in turn; what it returns last checks the result after the
/// clock has stopped.
fn compare<C: FnOnce() -> bool>(
    session: &mut Session,
    history: &mut History,
    measure: &Measure,
    mut work: impl FnMut(&mut dyn VersionedStore) -> Result<C>,
) -> Result<()> {
    // A single statement is the same in either style of use.
    let alike = |contestant: &Contestant| contestant.store.subject() == POSTGRES_STATEMENTS;
    let contestants = &mut history.contestants;
    contestants.sort_by_key(alike);
    let distinct = contestants.iter().take_while(|contestant| !alike(contestant)).count();
    let contestants = &mut contestants[..distinct];
    let samples = interleave(contestants, session.scale.rounds, |contestant, _| {
        let (micros, check) = sampling::repeated(|| work(contestant.store.as_mut()))?;
        let Measure { workload, case, .. } = measure;
        let subject = contestant.store.subject();
        ensure!(check(), "{subject} gave a wrong answer in {workload} {case}");
        Ok(micros)
    })?;
    session.figures.add(measure, &named(contestants, samples));
    Ok(())
}
