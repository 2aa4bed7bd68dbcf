//! V5: bytes on disk per version.

use anyhow::Result;

use super::commits::History;
use crate::contest::Contestant;
use crate::figures::{Measure, Samples};
use crate::session::Session;
use crate::subject::Stage;

/// When the disk is looked at, and what the case is called.
pub(crate) const STAGES: [(Stage, &str); 3] = [
    (Stage::WithJournal, "with_journal"),
    (Stage::Checkpointed, "checkpointed"),
    (Stage::Compacted, "compacted"),
];

/// Runs V5.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    History::with(session, |session, history| {
        let versions = history.revisions();
        let measure = Measure::cost("V5", "", "bytes");
        measure_space(session, &mut history.contestants, &measure, versions)
    })
}

/// Adds the bytes on disk of each version, at each stage, as lengths and as the file system has
/// them.
pub(crate) fn measure_space(
    session: &mut Session,
    contestants: &mut [Contestant],
    measure: &Measure,
    versions: u64,
) -> Result<()> {
    for (stage, name) in STAGES {
        let mut apparent: Vec<Samples> = Vec::new();
        let mut allocated: Vec<Samples> = Vec::new();
        for Contestant { store, .. } in contestants.iter_mut() {
            let Some(space) = store.space(stage)? else { continue };
            let each = |bytes: u64| vec![bytes as f64 / versions.max(1) as f64];
            apparent.push((store.subject(), each(space.apparent)));
            allocated.push((store.subject(), each(space.allocated)));
        }
        let case = match measure.case.as_str() {
            "" => name.to_owned(),
            outer => format!("{outer}/{name}"),
        };
        let measure = Measure { case, ..measure.clone() };
        let named = |metric| Measure { metric, ..measure.clone() };
        session.figures.add(&named("bytes_per_version"), &apparent);
        session.figures.add(&named("allocated_bytes_per_version"), &allocated);
    }
    Ok(())
}
