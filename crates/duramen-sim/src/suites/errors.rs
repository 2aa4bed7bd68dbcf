//! Suite 6: the n-th operation of a kind fails, once or from then on.

use crate::expectation::Check;
use crate::life::Life;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{FaultKind, FaultPlan, Operation};

/// Kinds of faults: with those of 2 and of lasting or not, a number of 8 times `n` names a round.
const KINDS: [(FaultKind, &str); 8] = [
    (FaultKind::Fail(Operation::Write), "write"),
    (FaultKind::Fail(Operation::Read), "read"),
    (FaultKind::Fail(Operation::Sync), "sync"),
    (FaultKind::Fail(Operation::SyncDir), "sync of a directory"),
    (FaultKind::Full, "growth"),
    (FaultKind::Fail(Operation::Create), "create"),
    (FaultKind::Fail(Operation::Rename), "rename"),
    (FaultKind::Fail(Operation::Remove), "remove"),
];
const TRANSACTIONS: u64 = 60;

/// The first `n` operations of each kind, failing once and for good.
pub(super) fn suite(n: u64, fresh: u64) -> Report {
    let count = n * KINDS.len() as u64;
    // The seed's low bits say which fault, so a fresh half keeps them.
    let base = (fresh >> 24) << 16;
    let seeds: Vec<u64> = (0..count).map(|at| if at % 16 < 8 { at } else { at ^ base }).collect();
    run(Suite::gated("errors"), &seeds, &|seed| super::Replay::Error { seed }.round())
}

/// The round of a seed: its low 16 bits are the fault.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let fault = seed & 0xffff;
    let kinds = KINDS.len() as u64;
    let (kind, name) = KINDS[usize::try_from(fault % kinds).unwrap_or(0)];
    let nth = 1 + fault / kinds / 2;
    let plan = FaultPlan::new(kind, nth);
    let plan = if (fault / kinds).is_multiple_of(2) { plan } else { plan.sticky() };

    let mut life = Life::new(seed, None);
    life.is_faulty = true;
    life.device.fail(plan);
    if let Some(db) = life.open()? {
        life.play(db, TRANSACTIONS)?;
    }
    life.device.repair();
    life.is_faulty = false;
    life.restart();
    drop(life.recover()?);
    life.seen.insert(name);
    let trace = life.trace();
    let Life { compactions, seen, coverage, .. } = life;
    Ok(Tally { losses: 1, compactions, seen, coverage, trace })
}
