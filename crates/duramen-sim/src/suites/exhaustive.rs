//! Suite 5: some scripts crashed at every change, with every subset of what was not yet durable.

use std::ops::RangeInclusive;

use crate::Profile;
use crate::expectation::Check;
use crate::life::Life;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};

const TRANSACTIONS: u64 = 40;
/// Subsets of ten pending changes.
const IMAGES_MAX: u64 = 1 << 10;
const SCRIPTS: u64 = 28;
/// So few do not have every kind of operation.
const FRESH_SCRIPTS: u64 = 3;

/// Every crash point of every script, with about `images` images in all at the most.
pub(super) fn suite(images: u64) -> Report {
    scripts(1..=SCRIPTS, images)
}

/// The same of some scripts that a number draws.
pub(super) fn fresh_scripts(images: u64, fresh: u64) -> Report {
    let first = 1 + (fresh >> 8) % (u64::from(u16::MAX) - FRESH_SCRIPTS);
    scripts(first..=first + FRESH_SCRIPTS - 1, images)
}

fn scripts(numbers: RangeInclusive<u64>, images: u64) -> Report {
    let has_all = numbers.end() - numbers.start() >= SCRIPTS - 1;
    let changes = |number| script(number, u64::MAX).map_or(1, |life| life.device.changes());
    let points: Vec<(u64, u64)> = numbers
        .flat_map(|number| (1..=changes(number)).map(move |crash| (number, crash)))
        .collect();
    let each = (images / points.len() as u64).clamp(2, IMAGES_MAX);
    let seeds: Vec<u64> =
        points.iter().map(|(number, crash)| crash << 32 | number << 16 | each).collect();
    // Few scripts are lived through again and again, up to another point each time: what one of 28
    // does at its end takes effect in hardly any of them.
    let rounds_per_effect = has_all.then_some(128);
    let suite = Suite { rounds_per_effect, ..Suite::new("exhaustive") };
    run(suite, &seeds, &|seed| super::Replay::Image { seed }.round())
}

/// A script until it crashes at a change.
fn script(number: u64, crash: u64) -> Check<Life> {
    let mut life = Life::new(number, Some(Profile::CRUEL));
    life.device.crash_at(crash);
    if let Some(db) = life.open()? {
        life.play(db, TRANSACTIONS)?;
    }
    Ok(life)
}

/// One crash point: from the low end the seed says how many images, of which script, and where.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let life = script(seed >> 16 & 0xffff, seed >> 32)?;
    let images = usize::try_from(seed & 0xffff).unwrap_or(0);
    let mut tally =
        Tally { seen: life.seen.clone(), coverage: life.coverage.clone(), ..Tally::default() };
    for image in life.device.images(images) {
        life.after(image).recover_once()?;
        tally.losses += 1;
    }
    Ok(tally)
}
