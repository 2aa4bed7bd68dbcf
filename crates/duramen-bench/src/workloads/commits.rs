//! V1: one document, commits one by one, each durable on its own.

use anyhow::{Result, ensure};

use crate::contest::{Contestant, Costs};
use crate::document::{Document, ITEMS, spaces_when_spaced};
use crate::figures::{Better, Figures, Measure, SYNC, Samples};
use crate::probe::Probe;
use crate::rivals::Trees;
use crate::sampling::{Round, Rounds, interleave};
use crate::session::{Session, Styles};
use crate::stopwatch::Stopwatch;
use crate::subject::{Durability, FIRST, Rendering};

/// Parts of the commits that subjects take turns at: with 5,000 commits each has 1,000.
pub(crate) const SLICES: usize = 5;

const COMMITS_PER_TURN: u64 = 50;
const PROBE_SYNCS_PER_SLICE: u64 = 100;

/// Stores with the same history, and what its documents look like.
pub(crate) struct History {
    /// The stores.
    pub(crate) contestants: Vec<Contestant>,
    /// How long the document's text was.
    pub(crate) lengths: Lengths,
}

/// How long the text of a document was in each of its revisions.
pub(crate) struct Lengths {
    /// Bytes of each revision's compact text.
    pub(crate) compact: Vec<u64>,
    /// Bytes that a spaced text has more.
    pub(crate) spaces: u64,
}

impl Lengths {
    /// How many revisions there are.
    pub(crate) fn revisions(&self) -> u64 {
        self.compact.len() as u64
    }
}

impl History {
    /// Revision 1 and one more for each commit of `counter`.
    fn new(contestants: Vec<Contestant>, commits: u64) -> Self {
        let mut document = Document::new(ITEMS);
        let mut length = |value| {
            document.set_counter(value);
            document.render().len() as u64
        };
        let compact = (0..=commits).map(&mut length).collect();
        let spaces = spaces_when_spaced(&document.render());
        Self { contestants, lengths: Lengths { compact, spaces } }
    }

    /// How many revisions there are.
    pub(crate) fn revisions(&self) -> u64 {
        self.lengths.revisions()
    }

    /// Runs work on the history that V1 left; makes one, not durably, if V1 did not run.
    pub(crate) fn with(
        session: &mut Session,
        work: impl FnOnce(&mut Session, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut history = match session.history.take() {
            Some(history) => history,
            None => Self::build(session)?,
        };
        let done = work(session, &mut history);
        session.history = Some(history);
        done
    }

    /// Runs work on the same history in stores that were checkpointed and opened again, so that
    /// reads come from where a history stays.
    pub(crate) fn with_opened(
        session: &mut Session,
        work: impl FnOnce(&mut Session, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut history = if let Some(history) = session.opened.take() {
            history
        } else {
            let mut history = Self::build(session)?;
            for Contestant { store, .. } in &mut history.contestants {
                store.checkpoint()?;
                store.reopen()?;
            }
            history
        };
        let done = work(session, &mut history);
        session.opened = Some(history);
        done
    }

    fn build(session: &mut Session) -> Result<Self> {
        let commits = session.scale.commits;
        let mut contestants = session.contestants(Trees::One, Styles::Both)?;
        let text = Document::new(ITEMS).render();
        for Contestant { store, latencies, .. } in &mut contestants {
            store.set_durability(Durability::Relaxed)?;
            store.insert(FIRST, &text)?;
            store.count_up(FIRST, 1..=commits, latencies)?;
            store.set_durability(Durability::Sync)?;
            store.settle()?;
            latencies.clear();
        }
        Ok(Self::new(contestants, commits))
    }
}

/// Bytes that all renderings of a document have together, however a store renders.
pub(crate) fn rendered(rendering: Rendering, compact: u64, spaces: u64) -> u64 {
    match rendering {
        Rendering::Compact => compact,
        Rendering::Spaced => compact + spaces,
    }
}

/// Samples under their subjects' names.
pub(crate) fn named(contestants: &[Contestant], samples: Vec<Vec<f64>>) -> Vec<Samples> {
    contestants.iter().map(|contestant| contestant.store.subject()).zip(samples).collect()
}

/// Runs V1.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    insert_times(session)?;
    let mut contestants = session.contestants(Trees::One, Styles::Both)?;
    let text = Document::new(ITEMS).render();
    for contestant in &mut contestants {
        contestant.store.set_durability(Durability::Sync)?;
        contestant.store.insert(FIRST, &text)?;
    }
    let pace = Pace::of(session.scale.commits, COMMITS_PER_TURN);
    let samples = take_turns(&mut contestants, &mut session.probe, pace, |contestant, round| {
        let first = round.number as u64 * pace.commits + 1;
        contestant.metered(|store, latencies| {
            store.count_up(FIRST, first..=first + pace.commits - 1, latencies)
        })
    })?;
    let history = check(contestants, pace.total())?;
    publish(session, &history, &samples);
    session.history = Some(history);
    Ok(())
}

/// How commits are shared out: a slice makes a sample, a turn is what one subject does before it
/// is the next one's. Turns are short, as a shared disk changes its mind within seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Commits of a turn.
    pub(crate) commits: u64,
    turns: u64,
    probe_syncs: u32,
}

impl Pace {
    /// So many commits in all, in turns of about so many.
    pub(crate) fn of(commits: u64, per_turn: u64) -> Self {
        let slice = (commits / SLICES as u64).max(1);
        let turns = (slice / per_turn.max(1)).max(1);
        let probe_syncs = (PROBE_SYNCS_PER_SLICE / turns).clamp(4, PROBE_SYNCS_PER_SLICE);
        let probe_syncs = u32::try_from(probe_syncs).unwrap_or(u32::MAX);
        Self { commits: slice / turns, turns, probe_syncs }
    }

    /// All commits of a subject.
    pub(crate) fn total(self) -> u64 {
        self.commits * self.turns * SLICES as u64
    }
}

/// How fast a slice of commits was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paced {
    /// Commits in each second.
    pub(crate) commits_per_s: f64,
    /// The same as a share of the syncs that the device could do one by one at that time.
    pub(crate) ratio_to_probe: f64,
}

/// Runs commits turn by turn, each between two looks at the device. `work` returns the
/// microseconds of a turn.
pub(crate) fn take_turns(
    contestants: &mut [Contestant],
    probe: &mut Probe,
    pace: Pace,
    mut work: impl FnMut(&mut Contestant, Round) -> Result<f64>,
) -> Result<Vec<Vec<Paced>>> {
    let turns = usize::try_from(pace.turns)?;
    let rounds = Rounds { warmups: 0, measured: SLICES * turns };
    let samples = interleave(contestants, rounds, |contestant, round| {
        let before = probe.mean_us(pace.probe_syncs)?;
        let micros = work(contestant, round)?;
        let after = probe.mean_us(pace.probe_syncs)?;
        Ok((micros, before.midpoint(after)))
    })?;
    let slice = |turns: &[(f64, f64)]| {
        let commits = pace.commits as f64;
        let micros: f64 = turns.iter().map(|turn| turn.0).sum();
        let syncs: f64 = turns.iter().map(|turn| turn.1 * commits).sum();
        let commits_per_s = commits * turns.len() as f64 * 1e6 / micros;
        Paced { commits_per_s, ratio_to_probe: syncs / micros }
    };
    Ok(samples.iter().map(|all| all.chunks(turns).map(slice).collect()).collect())
}

/// Adds both figures of slices of commits, under the measure of their rate.
pub(crate) fn add_paced(
    figures: &mut Figures,
    rate: &Measure,
    contestants: &[Contestant],
    samples: &[Vec<Paced>],
) {
    let of = |value: fn(&Paced) -> f64| {
        let each = samples.iter().map(|slices| slices.iter().map(value).collect());
        named(contestants, each.collect())
    };
    figures.add(rate, &of(|slice| slice.commits_per_s));
    let ratio = Measure::gain(rate.workload, "ratio_to_probe", "commits/sync of probe");
    let ratio = ratio.case(&rate.case).durability(rate.durability);
    figures.add(&ratio, &of(|slice| slice.ratio_to_probe));
}

/// Each round inserts one more document, into stores that hold nothing else.
fn insert_times(session: &mut Session) -> Result<()> {
    let text = Document::new(ITEMS).render();
    let mut contestants = session.contestants(Trees::Many, Styles::One)?;
    let samples = interleave(&mut contestants, session.scale.rounds, |contestant, round| {
        let tree = u32::try_from(round.number)? + FIRST;
        let watch = Stopwatch::start();
        contestant.store.insert(tree, &text)?;
        Ok(watch.micros())
    })?;
    let measure = Measure::cost("V1", "insert_time", "us").durability(SYNC);
    session.figures.add(&measure, &named(&contestants, samples));
    contestants.into_iter().try_for_each(|contestant| contestant.store.discard())
}

/// All revisions are there, and the counter counted.
fn check(mut contestants: Vec<Contestant>, commits: u64) -> Result<History> {
    for Contestant { store, .. } in &mut contestants {
        store.settle()?;
        let subject = store.subject();
        let revisions = store.timestamps()?.len() as u64;
        ensure!(revisions == commits + 1, "{subject} has {revisions} revisions");
        let newest = store.counter_at(commits + 1)?;
        ensure!(newest == i64::try_from(commits)?, "{subject} counted to {newest}");
    }
    Ok(History::new(contestants, commits))
}

fn publish(session: &mut Session, history: &History, samples: &[Vec<Paced>]) {
    let contestants = &history.contestants;
    let slice = (history.revisions() - 1) / SLICES as u64;
    let figures = &mut session.figures;
    let rate = Measure::gain("V1", "commits_per_s", "1/s").durability(SYNC);
    add_paced(figures, &rate.clone().case("all"), contestants, samples);
    for number in 0..SLICES {
        let case = format!("{}-{}", number as u64 * slice + 1, (number as u64 + 1) * slice);
        let one = samples.iter().map(|slices| vec![slices[number].commits_per_s]).collect();
        figures.add(&rate.clone().case(case), &named(contestants, one));
    }
    let latency = Measure::cost("V1", "p50", "us").case("commit").durability(SYNC);
    figures.add_all_percentiles(&latency, contestants);
    let sync = Measure::cost("V1", "p50", "us").case("4 KiB overwrite").durability(SYNC);
    figures.add_percentiles(&sync, "probe", &session.probe.take_latencies());
    let counters = Measure::cost("V1", "", "").case("all").durability(SYNC);
    add_costs(session, &counters, contestants, history.revisions() - 1);
}

/// Adds what commits took beside time, for those who tell.
pub(crate) fn add_costs(
    session: &mut Session,
    measure: &Measure,
    contestants: &[Contestant],
    commits: u64,
) {
    let mut add = |metric, unit, cost: fn(&Costs) -> Option<u64>| {
        let told = contestants.iter().filter_map(|contestant| {
            let each = cost(&contestant.costs)? as f64 / commits.max(1) as f64;
            Some((contestant.store.subject(), vec![each]))
        });
        let told: Vec<Samples> = told.collect();
        let measure = Measure { metric, unit, better: Better::Lower, ..measure.clone() };
        session.figures.add(&measure, &told);
    };
    add("syncs_per_commit", "syncs", |costs| costs.journal.syncs);
    add("journal_bytes_per_commit", "bytes", |costs| costs.journal.bytes);
    add("written_bytes_per_commit", "bytes", |costs| Some(costs.calls?.written_bytes));
    add("write_calls_per_commit", "calls", |costs| Some(costs.calls?.writes));
    add("read_calls_per_commit", "calls", |costs| Some(costs.calls?.reads));
    add("device_writes_per_commit", "calls", |costs| Some(costs.journal.device?.writes));
    add("device_syncs_per_commit", "calls", |costs| Some(costs.journal.device?.syncs));
    add("device_opens_per_commit", "calls", |costs| Some(costs.journal.device?.opens));
    add("allocations_per_commit", "allocations", |costs| costs.allocations);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_make_up_the_slices() {
        let pace = Pace::of(5_000, COMMITS_PER_TURN);
        assert_eq!((pace.commits, pace.turns, pace.total()), (50, 20, 5_000));
        let few = Pace::of(50, COMMITS_PER_TURN);
        assert_eq!((few.commits, few.turns, few.total()), (10, 1, 50));
        assert_eq!(Pace::of(5_000, 5_000).commits, 1_000);
    }
}
