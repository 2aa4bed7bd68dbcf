//! V1g: several writers, each with a document of its own.

use anyhow::{Result, ensure};

use super::commits::{Pace, SLICES, add_paced, rendered, take_turns};
use crate::contest::Contestant;
use crate::document::{Document, ITEMS, spaces_when_spaced};
use crate::figures::{Measure, SYNC, Samples};
use crate::rivals::Trees;
use crate::sampling::Latencies;
use crate::session::{Session, Styles};
use crate::stopwatch::Stopwatch;
use crate::subject::{At, Durability, Journal, Target, VersionedStore};

/// Runs V1g. The commits of V1 are shared out among the writers.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    let numbers = session.scale.writers.clone();
    numbers.into_iter().try_for_each(|writers| with_writers(session, writers))
}

fn with_writers(session: &mut Session, writers: u32) -> Result<()> {
    ensure!(writers > 0, "at least one writer");
    let mut contestants = session.contestants(Trees::Many, Styles::One)?;
    let text = Document::new(ITEMS).render();
    for Contestant { store, .. } in &mut contestants {
        store.set_durability(Durability::Sync)?;
        (1..=writers).try_for_each(|tree| store.insert(tree, &text))?;
    }
    let slices = SLICES as u64;
    let each = (session.scale.commits / slices / u64::from(writers)).max(1);
    let commits = each * u64::from(writers) * slices;
    // A writer needs a while to meet the others, so that a turn here is a whole slice.
    let pace = Pace::of(commits, commits);
    let before = journals(&mut contestants)?;
    let samples = take_turns(&mut contestants, &mut session.probe, pace, |contestant, round| {
        let mut handles = open_handles(contestant.store.as_ref(), writers)?;
        let first = round.number as u64 * each + 1;
        let watch = Stopwatch::start();
        commit_all(&mut handles, first, each, &mut contestant.latencies)?;
        Ok(watch.micros())
    })?;
    let after = journals(&mut contestants)?;
    check(&mut contestants, writers, slices * each)?;
    let case = writers.to_string();
    let rate = Measure::gain("V1g", "commits_per_s", "1/s").case(case).durability(SYNC);
    add_paced(&mut session.figures, &rate, &contestants, &samples);
    session.figures.add_all_percentiles(&rate, &contestants);
    let told = before.into_iter().zip(after).filter_map(|((subject, before), (_, after))| {
        let syncs = after.syncs?.saturating_sub(before.syncs?).max(1);
        Some((subject, vec![pace.total() as f64 / syncs as f64]))
    });
    let told: Vec<Samples> = told.collect();
    let measure = Measure { metric: "commits_per_sync", unit: "commits", ..rate };
    session.figures.add(&measure, &told);
    contestants.into_iter().try_for_each(|contestant| contestant.store.discard())
}

/// What the journals took so far; taken while no other handle is open, as a server counts what a
/// session did when it ends.
fn journals(contestants: &mut [Contestant]) -> Result<Vec<(&'static str, Journal)>> {
    let journal = |one: &mut Contestant| Ok((one.store.subject(), one.store.journal()?));
    contestants.iter_mut().map(journal).collect()
}

type Handles = Vec<(u32, Box<dyn VersionedStore>, Latencies)>;

fn open_handles(store: &dyn VersionedStore, writers: u32) -> Result<Handles> {
    (1..=writers).map(|tree| Ok((tree, store.another_handle()?, Latencies::new()))).collect()
}

fn commit_all(
    handles: &mut Handles,
    first: u64,
    each: u64,
    latencies: &mut Latencies,
) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = handles
            .drain(..)
            .map(|(tree, mut store, mut own)| {
                scope.spawn(move || -> Result<Latencies> {
                    store.count_up(tree, first..=first + each - 1, &mut own)?;
                    Ok(own)
                })
            })
            .collect();
        for thread in threads {
            let own = thread.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
            latencies.merge(&own);
        }
        Ok(())
    })
}

/// The last revision of each document is the one it should be.
fn check(contestants: &mut [Contestant], writers: u32, counted: u64) -> Result<()> {
    let mut document = Document::new(ITEMS);
    document.set_counter(counted);
    let text = document.render();
    let trees = u64::from(writers);
    let (compact, spaces) = (text.len() as u64 * trees, spaces_when_spaced(&text) * trees);
    let newest = At::Revision(counted + 1);
    let targets: Vec<_> = (1..=writers).map(|tree| Target { tree, at: newest }).collect();
    for Contestant { store, .. } in contestants {
        store.settle()?;
        let bytes = store.read(&targets, &mut Latencies::new())?;
        let expected = rendered(store.rendering(), compact, spaces);
        ensure!(bytes == expected, "{} has {bytes} bytes, not {expected}", store.subject());
    }
    Ok(())
}
