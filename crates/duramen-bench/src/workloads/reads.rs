//! V2: the whole document as JSON text, at random revisions and instants, after narrow and wide
//! changes.

use anyhow::{Context as _, Result, ensure};

use super::commits::{History, Lengths, named, rendered};
use crate::contest::Contestant;
use crate::document::{Document, ITEMS, spaces_when_spaced};
use crate::figures::Measure;
use crate::random::SplitMix64;
use crate::rivals::Trees;
use crate::sampling::{Round, Rounds, interleave};
use crate::session::{Session, Styles};
use crate::stopwatch::Stopwatch;
use crate::subject::{At, Durability, FIRST, Step, Target};

const SEED: u64 = 0x5EED;

/// V2.
pub(crate) fn at_revisions(session: &mut Session) -> Result<()> {
    each_state(session, "V2", |lengths, reads, _, round| {
        let mut random = SplitMix64::new(SEED + round.number as u64);
        let revision = |_| 1 + random.below(lengths.revisions());
        Ok(Plan::of_first(lengths, (0..reads).map(revision)))
    })
}

/// V2t.
pub(crate) fn at_instants(session: &mut Session) -> Result<()> {
    each_state(session, "V2t", |lengths, reads, contestant, round| {
        let known = contestant.store.timestamps()?;
        let first = *known.first().context("a revision")?;
        let span = known.last().context("a revision")?.abs_diff(first) + 1;
        let mut random = SplitMix64::new(SEED ^ round.number as u64);
        let mut plan = Plan { spaces: lengths.spaces * reads, ..Plan::default() };
        for _ in 0..reads {
            let instant = first.saturating_add_unsigned(random.below(span));
            let revisions = known.partition_point(|at| *at <= instant);
            plan.targets.push(Target { tree: FIRST, at: At::Instant(instant) });
            plan.compact += lengths.compact[revisions - 1];
        }
        Ok(plan)
    })
}

/// V2f.
pub(crate) fn at_one_revision(session: &mut Session) -> Result<()> {
    each_state(session, "V2f", |lengths, reads, _, _| {
        let revision = lengths.revisions() / 2;
        Ok(Plan::of_first(lengths, (0..reads).map(|_| revision)))
    })
}

/// Reads from the stores as their commits left them, then from stores that are opened again before
/// each round.
fn each_state(
    session: &mut Session,
    workload: &'static str,
    plan: impl Fn(&Lengths, u64, &mut Contestant, Round) -> Result<Plan>,
) -> Result<()> {
    let read = |session: &mut Session, history: &mut History, case: &str, reopen: bool| {
        let measure = Measure::cost(workload, "time_per_read", "us").case(case);
        let (reads, rounds) = (session.scale.reads, session.scale.rounds);
        let History { contestants, lengths } = history;
        run(session, contestants, &Run { measure, rounds, reopen }, |contestant, round| {
            plan(lengths, reads, contestant, round)
        })
    };
    History::with(session, |session, history| read(session, history, "warm", false))?;
    History::with_opened(session, |session, history| read(session, history, "opened", true))
}

/// V2w: every scalar changes in turn; first one document, then many.
pub(crate) fn after_wide_changes(session: &mut Session) -> Result<()> {
    let (commits, each) = (session.scale.commits, session.scale.changes_per_tree);
    let trees = session.scale.trees;
    wide(session, "one document", Forest { trees: 1, changes: commits })?;
    wide(session, &format!("{trees} documents"), Forest { trees, changes: each })
}

/// So many documents with so many changes each.
#[derive(Debug, Clone, Copy)]
struct Forest {
    trees: u32,
    changes: u64,
}

fn wide(session: &mut Session, case: &str, forest: Forest) -> Result<()> {
    let indexed = if forest.trees == 1 { Trees::One } else { Trees::Many };
    let mut contestants = session.contestants(indexed, Styles::Both)?;
    let (steps, lengths) = wide_changes(forest.changes);
    let document = Document::new(ITEMS);
    for Contestant { store, .. } in &mut contestants {
        store.set_durability(Durability::Relaxed)?;
        for tree in 1..=forest.trees {
            store.insert(tree, &document.render())?;
            steps.iter().try_for_each(|step| store.commit(tree, step))?;
        }
        store.settle()?;
    }
    let (reads, rounds) = (session.scale.reads, session.scale.rounds);
    let spaces = spaces_when_spaced(&document.render()) * reads;
    let plan = |_: &mut Contestant, round: Round| {
        let mut random = SplitMix64::new(SEED * 3 + round.number as u64);
        let mut plan = Plan { spaces, ..Plan::default() };
        for _ in 0..reads {
            let tree = 1 + u32::try_from(random.below(u64::from(forest.trees)))?;
            let index = usize::try_from(random.below(lengths.len() as u64))?;
            plan.compact += lengths[index];
            plan.targets.push(Target { tree, at: At::Revision(index as u64 + 1) });
        }
        Ok(plan)
    };
    let warm = Measure::cost("V2w", "time_per_read", "us").case(case);
    run(session, &mut contestants, &Run { measure: warm.clone(), rounds, reopen: false }, plan)?;
    for Contestant { store, .. } in &mut contestants {
        store.checkpoint()?;
    }
    let opened = warm.case(format!("{case}, opened"));
    run(session, &mut contestants, &Run { measure: opened, rounds, reopen: true }, plan)?;
    contestants.into_iter().try_for_each(|contestant| contestant.store.discard())
}

/// The changes, one commit each, and the length of the text at each revision.
fn wide_changes(changes: u64) -> (Vec<Step>, Vec<u64>) {
    let mut document = Document::new(ITEMS);
    let mut lengths = vec![document.render().len() as u64];
    let mut steps = Vec::new();
    for (round, index) in (1..=changes).zip((0..document.scalars()).cycle()) {
        let changes = vec![document.change(index, round)];
        steps.push(Step { changes, whole: String::new() });
        lengths.push(document.render().len() as u64);
    }
    (steps, lengths)
}

/// What one round reads, and how many bytes that is.
#[derive(Debug, Default)]
struct Plan {
    targets: Vec<Target>,
    compact: u64,
    spaces: u64,
}

impl Plan {
    fn of_first(lengths: &Lengths, revisions: impl Iterator<Item = u64>) -> Self {
        let mut plan = Self::default();
        for revision in revisions {
            plan.targets.push(Target { tree: FIRST, at: At::Revision(revision) });
            plan.compact += usize::try_from(revision - 1).map_or(0, |index| lengths.compact[index]);
            plan.spaces += lengths.spaces;
        }
        plan
    }
}

/// How reads are run.
struct Run {
    measure: Measure,
    rounds: Rounds,
    /// Whether the store is opened anew before each round, outside the clock.
    reopen: bool,
}

fn run(
    session: &mut Session,
    contestants: &mut [Contestant],
    run: &Run,
    mut plan: impl FnMut(&mut Contestant, Round) -> Result<Plan>,
) -> Result<()> {
    for contestant in contestants.iter_mut() {
        contestant.latencies.clear();
    }
    let samples = interleave(contestants, run.rounds, |contestant, round| {
        let plan = plan(contestant, round)?;
        if run.reopen {
            contestant.store.reopen()?;
        }
        let sample = read(contestant, &plan)?;
        if !round.measured {
            contestant.latencies.clear();
        }
        Ok(sample)
    })?;
    session.figures.add(&run.measure, &named(contestants, samples));
    session.figures.add_all_percentiles(&run.measure, contestants);
    Ok(())
}

fn read(contestant: &mut Contestant, plan: &Plan) -> Result<f64> {
    let Contestant { store, latencies, .. } = contestant;
    let watch = Stopwatch::start();
    let bytes = store.read(&plan.targets, latencies)?;
    let micros = watch.micros();
    let expected = rendered(store.rendering(), plan.compact, plan.spaces);
    ensure!(bytes == expected, "{} read {bytes} bytes, not {expected}", store.subject());
    Ok(micros / plan.targets.len().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_changes_reach_every_scalar() {
        let scalars = Document::new(ITEMS).scalars();
        let (steps, lengths) = wide_changes(scalars as u64);
        assert_eq!(lengths.len(), scalars + 1);
        let pointers: std::collections::HashSet<_> =
            steps.iter().map(|step| step.changes[0].pointer.as_str()).collect();
        assert_eq!(pointers.len(), scalars);
    }
}
