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
    History::with(session, |session, history| {
        let revisions = usize::try_from(history.revisions())?;
        let measure = Measure::cost("V3", "time", "us");
        let timestamps = measure.clone().case("timestamps");
        compare(session, history, &timestamps, |store| {
            let count = store.timestamps()?.len();
            Ok(move || count == revisions)
        })?;
        compare(session, history, &measure.clone().case("entries"), |store| {
            let entries = store.entries(None)?;
            Ok(move || entries.len() == revisions)
        })?;
        compare(session, history, &measure.case("newest100"), |store| {
            let entries = store.entries(Some(NEWEST))?;
            let falling = move || entries.is_sorted_by(|new, old| new.at > old.at);
            Ok(falling)
        })
    })
}

/// V4.
pub(crate) fn values(session: &mut Session) -> Result<()> {
    History::with(session, |session, history| {
        let commits = i64::try_from(history.revisions())? - 1;
        let measure = Measure::cost("V4", "time", "us");
        compare(session, history, &measure.clone().case("changing"), |store| {
            let sum: i64 = store.counters()?.iter().sum();
            Ok(move || sum == commits * (commits + 1) / 2)
        })?;
        compare(session, history, &measure.case("unchanged"), |store| {
            let runs = store.runs("s1")?;
            Ok(move || runs == [UNCHANGED])
        })
    })
}

/// V6.
pub(crate) fn diffs(session: &mut Session) -> Result<()> {
    History::with(session, |session, history| {
        let middle = history.revisions() / 2;
        let cases = [("adjacent", middle, middle + 1), ("far", 1, history.revisions())];
        for (case, from, to) in cases {
            let (old, new) = (from - 1, to - 1);
            let expected = vec![FieldChange {
                pointer: "/counter".to_owned(),
                old: Some(old.to_string()),
                new: Some(new.to_string()),
            }];
            let patch = format!(r#"[{{"op":"replace","path":"/counter","value":{new}}}]"#);
            let measure = Measure::cost("V6", "time", "us").case(case);
            compare(session, history, &measure, |store| {
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
