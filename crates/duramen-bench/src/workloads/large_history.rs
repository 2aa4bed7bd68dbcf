//! H: a small document with a long history, warm, in a fresh process, and from the disk.
//!
//! Cold samples come from a child process each: this program again, with one task.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::Child;
use super::commits::named;
use crate::contest::Contestant;
use crate::counters::Calls;
use crate::device::DeviceCalls;
use crate::document::LARGE_HISTORY;
use crate::figures::{Figures, Measure, RELAXED, SYNC, Samples};
use crate::files;
use crate::sampling::{self, Latencies, Rounds, Summary, interleave};
use crate::session::{Session, open_embedded};
use crate::stopwatch::Stopwatch;
use crate::subject::{At, Difference, Durability, FIRST, Rendering, Stage, Target, VersionedStore};

const SYNCED_REVISIONS_MAX: u64 = 10_000;
const TENTHS: u64 = 10;
const NEWEST: u32 = 100;
const COLD_ROUNDS: Rounds = Rounds { warmups: 0, measured: 5 };

/// What is timed on a history of so many revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum What {
    OpenClose,
    FullHistory,
    Newest,
    CounterAtFirst,
    CounterAtMiddle,
    CounterAtLast,
    DiffOfFirst,
    DiffOfLast,
    DocumentAtFirst,
    DocumentAtLast,
}

const ALL: [(What, &str); 10] = [
    (What::OpenClose, "open and close"),
    (What::FullHistory, "full history"),
    (What::Newest, "newest 100"),
    (What::CounterAtFirst, "counter at 1"),
    (What::CounterAtMiddle, "counter at N/2"),
    (What::CounterAtLast, "counter at N"),
    (What::DiffOfFirst, "diff 1, 2"),
    (What::DiffOfLast, "diff N-1, N"),
    (What::DocumentAtFirst, "document at 1"),
    (What::DocumentAtLast, "document at N"),
];

/// Runs H.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let mut medians: Vec<(&str, &'static str, f64, f64)> = Vec::new();
    for revisions in session.scale.histories.clone() {
        ensure!(revisions > NEWEST.into(), "a history of H has more than {NEWEST} revisions");
        let mut builts = build(session, revisions)?;
        // First as the commits left it: all changes in one run of one node, in memory.
        warm(session, &mut builts, revisions, State::OneRun)?;
        checkpoint(session, &mut builts, revisions)?;
        let found = warm(session, &mut builts, revisions, State::Opened)?;
        for (what, subject, median) in found {
            medians.push((what, subject, revisions as f64, median));
        }
        warm(session, &mut builts, revisions, State::FirstRead)?;
        for built in &mut builts {
            built.contestant = None;
        }
        cold(session, &mut builts, revisions)?;
        builts.iter().try_for_each(|built| std::fs::remove_dir_all(&built.folder))?;
    }
    add_slopes(&mut session.figures, &medians);
    Ok(())
}

/// A store with its history.
struct Built {
    subject: &'static str,
    folder: PathBuf,
    /// Closed while children use it.
    contestant: Option<Contestant>,
}

impl Built {
    fn contestant(&mut self) -> Result<&mut Contestant> {
        self.contestant.as_mut().context("an open store")
    }
}

fn build(session: &mut Session, revisions: u64) -> Result<Vec<Built>> {
    let durability = durability(revisions);
    let mut builts = Vec::new();
    for (folder, mut store) in session.embedded()? {
        store.set_durability(durability)?;
        store.insert(FIRST, LARGE_HISTORY)?;
        let (subject, contestant) = (store.subject(), Some(Contestant::new(store)));
        builts.push(Built { subject, folder, contestant });
    }
    let commits = revisions - 1;
    let rounds = Rounds { warmups: 0, measured: usize::try_from(TENTHS)? };
    let rates = interleave(&mut builts, rounds, |built, round| {
        let tenth = round.number as u64;
        let (first, last) = (tenth * commits / TENTHS + 1, (tenth + 1) * commits / TENTHS);
        let micros = built
            .contestant()?
            .metered(|store, latencies| store.count_up(FIRST, first..=last, latencies))?;
        Ok((last + 1 - first) as f64 * 1e6 / micros)
    })?;
    for built in &mut builts {
        let store = &mut built.contestant()?.store;
        store.set_durability(Durability::Sync)?;
        store.settle()?;
    }
    publish_build(session, &mut builts, revisions, &rates);
    Ok(builts)
}

fn durability(revisions: u64) -> Durability {
    if revisions <= SYNCED_REVISIONS_MAX { Durability::Sync } else { Durability::Relaxed }
}

fn publish_build(session: &mut Session, builts: &mut [Built], revisions: u64, rates: &[Vec<f64>]) {
    let subjects: Vec<_> = builts.iter().map(|built| built.subject).collect();
    let acknowledged = match durability(revisions) {
        Durability::Sync => SYNC,
        Durability::Relaxed => RELAXED,
    };
    let rate = Measure::gain("H", "commits_per_s", "1/s").durability(acknowledged);
    let all = subjects.iter().copied().zip(rates.iter().cloned());
    let whole = rate.clone().case(format!("{revisions}/build"));
    session.figures.add(&whole, &all.collect::<Vec<_>>());
    for tenth in [0, TENTHS - 1] {
        let one = rates.iter().map(|rates| vec![rates[usize::try_from(tenth).unwrap_or(0)]]);
        let one: Vec<Samples> = subjects.iter().copied().zip(one).collect();
        let case = format!("{revisions}/build, tenth {}", tenth + 1);
        session.figures.add(&rate.clone().case(case), &one);
    }
    let contestants: Vec<_> =
        builts.iter_mut().filter_map(|built| built.contestant.take()).collect();
    super::commits::add_costs(session, &whole, &contestants, revisions - 1);
    for (built, contestant) in builts.iter_mut().zip(contestants) {
        built.contestant = Some(contestant);
    }
}

/// Moves the history to where it stays, and opens it from there.
fn checkpoint(session: &mut Session, builts: &mut [Built], revisions: u64) -> Result<()> {
    let measure = Measure::cost("H", "bytes_per_version", "bytes");
    let mut space: Vec<Samples> = Vec::new();
    for built in builts.iter_mut() {
        let store = &mut built.contestant()?.store;
        if let Some(found) = store.space(Stage::Checkpointed)? {
            let each = found.apparent as f64 / revisions as f64;
            space.push((store.subject(), vec![each]));
        }
        store.reopen()?;
    }
    session.figures.add(&measure.case(format!("{revisions}/checkpointed")), &space);
    Ok(())
}

/// Where a store stands when it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// As the commits left it.
    OneRun,
    /// Opened again, and read before.
    Opened,
    /// Opened again just now: what is read has yet to be found and decoded.
    FirstRead,
}

impl State {
    fn case(self, revisions: u64, name: &str) -> String {
        match self {
            Self::OneRun => format!("{revisions}/{name}, one run"),
            Self::Opened => format!("{revisions}/{name}"),
            Self::FirstRead => format!("{revisions}/{name}, cold run piece"),
        }
    }
}

type Median = (&'static str, &'static str, f64);

fn warm(
    session: &mut Session,
    builts: &mut [Built],
    revisions: u64,
    state: State,
) -> Result<Vec<Median>> {
    let mut contestants: Vec<_> =
        builts.iter_mut().filter_map(|built| built.contestant.take()).collect();
    let mut medians = Vec::new();
    for (what, name) in ALL {
        if what == What::OpenClose && state != State::Opened {
            continue;
        }
        let samples = interleave(&mut contestants, session.scale.rounds, |contestant, _| {
            let Contestant { store, latencies, .. } = contestant;
            let store = store.as_mut();
            if what == What::OpenClose || state == State::FirstRead {
                if state == State::FirstRead {
                    store.reopen()?;
                }
                let watch = Stopwatch::start();
                perform((store, latencies), what, revisions)?;
                return Ok(watch.micros());
            }
            Ok(sampling::repeated(|| perform((store, latencies), what, revisions))?.0)
        })?;
        let samples = named(&contestants, samples);
        for (subject, values) in &samples {
            let median = Summary::of(values).map(|summary| (name, *subject, summary.median));
            medians.extend(median);
        }
        let measure = Measure::cost("H", "time", "us").case(state.case(revisions, name));
        session.figures.add(&measure, &samples);
    }
    for (built, contestant) in builts.iter_mut().zip(contestants) {
        built.contestant = Some(contestant);
    }
    Ok(medians)
}

fn cold(session: &mut Session, builts: &mut [Built], revisions: u64) -> Result<()> {
    for (what, name) in ALL {
        for (drop_cache, place) in [(false, "cold"), (true, "cold disk")] {
            let samples = interleave(builts, COLD_ROUNDS, |built, _| {
                if drop_cache {
                    files::drop_from_cache(&built.folder)?;
                }
                let task = Task::new(built.subject, &built.folder, what, revisions);
                Child::History(task).in_a_fresh_process::<Seen>()
            })?;
            let subjects = builts.iter().map(|built| built.subject);
            let times = samples.iter().map(|seen| seen.iter().map(|one| one.micros).collect());
            let case = format!("{revisions}/{name}, {place}");
            let measure = Measure::cost("H", "time", "us").case(&case);
            session.figures.add(&measure, &subjects.clone().zip(times).collect::<Vec<_>>());
            let calls = samples.iter().map(|seen| seen.iter().map(|one| one.read_calls).collect());
            let measure = Measure::cost("H", "read_calls", "calls").case(&case);
            session.figures.add(&measure, &subjects.clone().zip(calls).collect::<Vec<_>>());
            let device = samples.iter().map(|seen| seen.last()?.device);
            for (subject, calls) in subjects.zip(device) {
                add_device_calls(&mut session.figures, subject, &case, calls);
            }
        }
    }
    Ok(())
}

/// Adds the kinds of calls that there were.
fn add_device_calls(
    figures: &mut Figures,
    subject: &'static str,
    case: &str,
    calls: Option<DeviceCalls>,
) {
    let named = calls.map(DeviceCalls::named).into_iter().flatten();
    for (metric, count) in named.filter(|(_, count)| *count > 0) {
        let measure = Measure::cost("H", metric, "calls").case(case);
        figures.add(&measure, &[(subject, vec![count as f64])]);
    }
}

/// How much a time grows with each revision: least squares over the history lengths.
fn add_slopes(figures: &mut Figures, medians: &[(&str, &'static str, f64, f64)]) {
    for (_, name) in ALL {
        let mut known: Vec<&str> = Vec::new();
        for (_, subject, ..) in medians.iter().filter(|point| point.0 == name) {
            if known.contains(subject) {
                continue;
            }
            known.push(subject);
            let own = medians.iter().filter(|point| point.0 == name && point.1 == *subject);
            let points: Vec<_> = own.map(|point| (point.2, point.3)).collect();
            let Some(micros) = slope(&points) else { continue };
            // Each alone: the ratio of two slopes near nothing says nothing.
            let measure = Measure::cost("H", "slope", "ns/revision").case(name);
            figures.add(&measure, &[(*subject, vec![micros * 1e3])]);
        }
    }
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|point| point.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|point| point.1).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|point| (point.0 - mean_x).powi(2)).sum();
    let shared: f64 = points.iter().map(|point| (point.0 - mean_x) * (point.1 - mean_y)).sum();
    (spread > 0.0).then(|| shared / spread)
}

/// Does it, and checks what came of it.
fn perform(
    (store, latencies): (&mut dyn VersionedStore, &mut Latencies),
    what: What,
    revisions: u64,
) -> Result<()> {
    let counter_at = |store: &mut dyn VersionedStore, revision: u64| {
        let counter = store.counter_at(revision)?;
        ensure!(counter == i64::try_from(revision)? - 1, "counter is {counter} at {revision}");
        Ok(())
    };
    match what {
        What::OpenClose => store.reopen(),
        What::FullHistory => expect_entries(store, None, revisions),
        What::Newest => expect_entries(store, Some(NEWEST), NEWEST.into()),
        What::CounterAtFirst => counter_at(store, 1),
        What::CounterAtMiddle => counter_at(store, revisions / 2),
        What::CounterAtLast => counter_at(store, revisions),
        What::DiffOfFirst => expect_diff(store, 1),
        What::DiffOfLast => expect_diff(store, revisions - 1),
        What::DocumentAtFirst => expect_document((store, latencies), 1),
        What::DocumentAtLast => expect_document((store, latencies), revisions),
    }
}

fn expect_entries(store: &mut dyn VersionedStore, newest: Option<u32>, count: u64) -> Result<()> {
    let entries = store.entries(newest)?.len() as u64;
    ensure!(entries == count, "{entries} entries, not {count}");
    Ok(())
}

fn expect_diff(store: &mut dyn VersionedStore, from: u64) -> Result<()> {
    let Difference { changes, .. } = store.diff(from, from + 1)?;
    let [change] = changes.as_slice() else { anyhow::bail!("{} fields differ", changes.len()) };
    let (old, new) = ((from - 1).to_string(), from.to_string());
    let right = change.pointer == "/counter"
        && change.old.as_ref() == Some(&old)
        && change.new.as_ref() == Some(&new);
    ensure!(right, "the difference of {from} and the next is {change:?}");
    Ok(())
}

fn expect_document(
    (store, latencies): (&mut dyn VersionedStore, &mut Latencies),
    revision: u64,
) -> Result<()> {
    let target = Target { tree: FIRST, at: At::Revision(revision) };
    let bytes = store.read(&[target], latencies)?;
    let digits = (revision - 1).to_string().len() as u64;
    let compact = LARGE_HISTORY.len() as u64 - 1 + digits;
    let wrong = store.rendering() == Rendering::Compact && bytes != compact;
    ensure!(!wrong, "the document at {revision} has {bytes} bytes, not {compact}");
    Ok(())
}

/// What a child does.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    subject: String,
    folder: PathBuf,
    what: What,
    revisions: u64,
}

/// What a child saw.
#[derive(Debug, Serialize, Deserialize)]
struct Seen {
    micros: f64,
    read_calls: f64,
    device: Option<DeviceCalls>,
}

impl Task {
    fn new(subject: &str, folder: &Path, what: What, revisions: u64) -> Self {
        Self { subject: subject.to_owned(), folder: folder.to_owned(), what, revisions }
    }

    /// Does it in this process and prints what was seen.
    pub(crate) fn run(&self) -> Result<()> {
        let Self { subject, folder, what, revisions } = self;
        let process = std::process::id();
        let calls = || Calls::of(process).map_or(0, |calls| calls.reads);
        let (before, watch) = (calls(), Stopwatch::start());
        let mut store = open_embedded(subject, folder.clone())?;
        let opening = store.journal()?.device;
        let (micros, read_calls, device) = if *what == What::OpenClose {
            drop(store);
            (watch.micros(), calls() - before, opening)
        } else {
            let mut latencies = Latencies::new();
            let (before, watch) = (calls(), Stopwatch::start());
            perform((store.as_mut(), &mut latencies), *what, *revisions)?;
            let (micros, read_calls) = (watch.micros(), calls() - before);
            let reading = store.journal()?.device.zip(opening);
            (micros, read_calls, reading.map(|(now, then)| now.since(then)))
        };
        let seen = Seen { micros, read_calls: read_calls as f64, device };
        println!("{}", serde_json::to_string(&seen)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_the_growth_of_each_revision() {
        let found = slope(&[(0.0, 5.0), (10.0, 25.0), (20.0, 45.0)]).unwrap();
        assert!((found - 2.0).abs() < 1e-9);
        assert_eq!(slope(&[(3.0, 1.0)]), None);
    }
}
