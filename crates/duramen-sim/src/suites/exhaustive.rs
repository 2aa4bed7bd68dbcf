//! Suite 5: one script crashed at every change, with every subset of what was not yet durable.

use crate::Profile;
use crate::expectation::Check;
use crate::life::Life;
use crate::report::Report;
use crate::rounds::{Tally, run};

const TRANSACTIONS: u64 = 40;
/// Subsets of ten pending changes.
const IMAGES_MAX: usize = 1 << 10;

/// Every crash point of one script, with `images` images in all at the most.
pub(super) fn suite(images: u64) -> Report {
    let changes = match script(u64::MAX) {
        Ok(life) => life.device.changes(),
        Err(_) => 1,
    };
    let each = (images / changes).max(2);
    let seeds: Vec<u64> = (1..=changes).map(|crash| crash << 16 | each).collect();
    run("exhaustive", &seeds, &|seed| super::Replay::Image { seed }.round())
}

/// The script until it crashes at a change.
fn script(crash: u64) -> Check<Life> {
    let mut life = Life::new(4, Some(Profile::CRUEL));
    life.device.crash_at(crash);
    if let Some(db) = life.open()? {
        life.play(db, TRANSACTIONS)?;
    }
    Ok(life)
}

/// One crash point: the seed's low 16 bits say how many images, the others where.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let life = script(seed >> 16)?;
    let images = usize::try_from(seed & 0xffff).unwrap_or(IMAGES_MAX);
    let mut tally = Tally { seen: life.seen.clone(), ..Tally::default() };
    for image in life.device.images(images.min(IMAGES_MAX)) {
        life.after(image).recover_once()?;
        tally.losses += 1;
    }
    Ok(tally)
}
