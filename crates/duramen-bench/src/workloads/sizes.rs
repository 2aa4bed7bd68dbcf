//! V7: commits, reads and space as the document grows and as commits change more of it.

use anyhow::{Result, ensure};

use super::commits::{Pace, add_costs, add_paced, named, rendered, take_turns};
use super::space::measure_space;
use crate::contest::Contestant;
use crate::document::{Document, spaces_when_spaced};
use crate::figures::{Measure, SYNC};
use crate::random::SplitMix64;
use crate::rivals::Trees;
use crate::sampling::{Round, interleave};
use crate::session::{Session, Styles};
use crate::stopwatch::Stopwatch;
use crate::subject::{At, Durability, FIRST, Step, Target};

const CHANGES: [usize; 3] = [1, 8, 100];
const BYTES_PER_ROUND: u64 = 20_000_000;
const COMMITS_PER_TURN: u64 = 50;
const SEED: u64 = 7;

/// Runs V7.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    for (bytes, commits) in session.scale.documents.clone() {
        for changes in CHANGES {
            let case = match changes {
                1 => bytes.to_string(),
                _ => format!("{bytes}/{changes} changes"),
            };
            with_size(session, Size { bytes, commits, changes }, &case)?;
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: u64,
    commits: u64,
    changes: usize,
}

fn with_size(session: &mut Session, size: Size, case: &str) -> Result<()> {
    let mut contestants = session.contestants(Trees::One, Styles::One)?;
    let mut script = Script::new(size)?;
    let text = script.document.render();
    for Contestant { store, .. } in &mut contestants {
        store.set_durability(Durability::Sync)?;
        store.insert(FIRST, &text)?;
    }
    commit(session, &mut contestants, &mut script, case)?;
    for Contestant { store, latencies, .. } in &mut contestants {
        store.settle()?;
        latencies.clear();
    }
    read(session, &mut contestants, &script, case)?;
    let measure = Measure::cost("V7", "", "bytes").case(case);
    measure_space(session, &mut contestants, &measure, script.lengths.len() as u64)?;
    contestants.into_iter().try_for_each(|contestant| contestant.store.discard())
}

fn commit(
    session: &mut Session,
    contestants: &mut [Contestant],
    script: &mut Script,
    case: &str,
) -> Result<()> {
    let pace = Pace::of(script.size.commits, COMMITS_PER_TURN);
    let samples = take_turns(contestants, &mut session.probe, pace, |contestant, round| {
        let steps = script.steps(round, pace.commits);
        contestant.metered(|store, latencies| {
            steps.iter().try_for_each(|step| latencies.time(|| store.commit(FIRST, step)))
        })
    })?;
    let rate = Measure::gain("V7", "commits_per_s", "1/s").case(case).durability(SYNC);
    add_paced(&mut session.figures, &rate, contestants, &samples);
    session.figures.add_all_percentiles(&rate, contestants);
    add_costs(session, &rate, contestants, pace.total());
    Ok(())
}

fn read(
    session: &mut Session,
    contestants: &mut [Contestant],
    script: &Script,
    case: &str,
) -> Result<()> {
    let reads = (BYTES_PER_ROUND / script.size.bytes).clamp(2, session.scale.reads);
    let spaces = spaces_when_spaced(&script.document.render()) * reads;
    let samples = interleave(contestants, session.scale.rounds, |contestant, round| {
        let mut random = SplitMix64::new(SEED + round.number as u64);
        let (mut targets, mut compact) = (Vec::new(), 0);
        for _ in 0..reads {
            let index = usize::try_from(random.below(script.lengths.len() as u64))?;
            compact += script.lengths[index];
            targets.push(Target { tree: FIRST, at: At::Revision(index as u64 + 1) });
        }
        let Contestant { store, latencies, .. } = contestant;
        let watch = Stopwatch::start();
        let bytes = store.read(&targets, latencies)?;
        let micros = watch.micros();
        let expected = rendered(store.rendering(), compact, spaces);
        ensure!(bytes == expected, "{} read {bytes} bytes, not {expected}", store.subject());
        Ok(micros / reads as f64)
    })?;
    let measure = Measure::cost("V7", "time_per_read", "us").case(case);
    session.figures.add(&measure, &named(contestants, samples));
    Ok(())
}

/// The commits, made outside the clock and the same for every subject.
struct Script {
    size: Size,
    document: Document,
    /// Bytes of each revision's compact text.
    lengths: Vec<u64>,
    made: Option<(usize, Vec<Step>)>,
}

impl Script {
    fn new(size: Size) -> Result<Self> {
        let document = Document::with_bytes(usize::try_from(size.bytes)?);
        let lengths = vec![document.render().len() as u64];
        Ok(Self { size, document, lengths, made: None })
    }

    /// The commits of a round; rounds come in order, each as often as there are subjects.
    fn steps(&mut self, round: Round, commits: u64) -> &[Step] {
        let made = self.made.take().filter(|(number, _)| *number == round.number);
        let made = made.unwrap_or_else(|| (round.number, self.make(commits)));
        &self.made.insert(made).1
    }

    fn make(&mut self, commits: u64) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..commits {
            let revision = self.lengths.len() as u64;
            let count = self.size.changes.min(self.document.scalars());
            let spread = self.document.scalars() / count;
            let indexes = (0..count).map(|index| index * spread);
            let changes = indexes.map(|index| self.document.change(index, revision)).collect();
            let text = self.document.render();
            self.lengths.push(text.len() as u64);
            let whole = if count == 1 { String::new() } else { text };
            steps.push(Step { changes, whole });
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_has_the_same_commits_for_every_subject() {
        let mut script = Script::new(Size { bytes: 2_400, commits: 10, changes: 8 }).unwrap();
        let round = Round { number: 0, measured: true };
        let first = script.steps(round, 2).to_vec();
        let again = script.steps(round, 2).to_vec();
        assert_eq!(first.len(), 2);
        assert!(first.iter().zip(&again).all(|(one, other)| one.whole == other.whole));
        assert_eq!(first[0].changes.len(), 8);
        let next = script.steps(Round { number: 1, measured: true }, 2);
        assert_ne!(next[0].whole, first[0].whole);
        assert_eq!(script.lengths.len(), 5);
    }
}
