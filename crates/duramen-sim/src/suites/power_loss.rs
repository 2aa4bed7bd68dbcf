//! Suite 4: up to three lives of a database, each ended by a crash at any operation, and sometimes
//! one that is not.

use crate::Profile;
use crate::expectation::Check;
use crate::life::Life;
use crate::rounds::Tally;

const LIVES_MAX: u64 = 3;
const TRANSACTIONS_MAX: u64 = 52;
const CRASHES_IN_RECOVERY_MAX: u64 = 3;
/// Changes of the device within which it crashes: the longer ones have room for several merges.
const HORIZONS: [u64; 3] = [20, 250, 500];

/// One run in so many goes on for a life that no crash cuts short, so that merges meet what those
/// before left behind.
const AGES_ONE_IN: u64 = 4;

/// One run of a seed on a disk of a profile, drawn if none is given.
pub(super) fn round(seed: u64, profile: Option<Profile>) -> Check<Tally> {
    let mut life = Life::new(seed, profile);
    let mut losses = 0;
    let mut open = None;
    for _ in 0..=life.random.below(LIVES_MAX) {
        let horizon = life.random.choose(&HORIZONS);
        let crash = life.device.changes() + 1 + life.random.below(horizon);
        life.device.crash_at(crash);
        let db = match open.take() {
            Some(db) => Some(db),
            None => life.open()?,
        };
        if let Some(db) = db {
            let transactions = 1 + life.random.below(TRANSACTIONS_MAX);
            life.play(db, transactions)?;
        }
        life.restart();
        losses += 1;
        if life.random.one_in(2) {
            for _ in 0..=life.random.below(CRASHES_IN_RECOVERY_MAX) {
                life.crash_in_recovery()?;
                losses += 1;
            }
        }
        open = Some(life.recover()?);
    }
    if let Some(db) = open.filter(|_| life.random.one_in(AGES_ONE_IN)) {
        let transactions = 1 + life.random.below(TRANSACTIONS_MAX);
        life.play(db, transactions)?;
        life.restart();
        losses += 1;
        drop(life.recover()?);
    }
    let trace = life.trace();
    let Life { compactions, seen, coverage, .. } = life;
    Ok(Tally { losses, compactions, seen, coverage, trace })
}
