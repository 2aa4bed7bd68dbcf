//! Whether a database goes on with the history that a folder has backups of. A copy and its
//! original have one id, and what each of them commits has the same numbers, but not the same
//! times.

use super::record::BackupRecord;
use crate::engine::pin::Pinned;
use crate::engine::{CATALOGUE, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::journal::JournalPoint;
use crate::revision::{CommitSequence, Micros};
use crate::series::commits::Commits;
use crate::tree::cell_key::TreeId;

/// Refuses a database of which the commit with the number of a backup's last one is another one. A
/// backup of which that cannot be told, as retention dropped what it did, is taken to be its own.
pub(super) fn check(engine: &Engine, pinned: &Pinned, backup: &BackupRecord) -> Result<()> {
    let JournalPoint { sequence, timestamp, .. } = backup.manifest.checkpoint;
    if has_segment_of_last(pinned, backup) {
        return Ok(());
    }
    match committed(engine, sequence)? {
        Some(found) if found != timestamp => {
            let message = format!(
                "the folder has a backup up to commit {sequence}, of {timestamp}, but commit \
                 {sequence} of the database is of {found}: one is of a copy of the other, and both \
                 have gone on since; name another folder"
            );
            Err(Error::new(ErrorKind::Conflict, message))
        }
        _ => Ok(()),
    }
}

/// Whether a segment with the last commit of a backup is in the database, so that nobody has to
/// look for the commit.
fn has_segment_of_last(pinned: &Pinned, backup: &BackupRecord) -> bool {
    let last = backup.manifest.checkpoint.sequence;
    let mut of_last = backup.manifest.segments.iter().filter(|info| info.last_sequence == last);
    of_last.any(|info| {
        let mut own = pinned.manifest.segments.iter();
        own.any(|own| (own.number, own.footer) == (info.number, info.footer))
    })
}

/// When a commit was made; none if nothing that is kept says so.
fn committed(engine: &Engine, sequence: CommitSequence) -> Result<Option<Micros>> {
    let view = engine.view();
    let documents = view.names(engine.published())?.into_iter().map(|(_, name)| name.tree);
    for id in [CATALOGUE, TreeId::SERIES].into_iter().chain(documents) {
        let tree = view.tree(id)?;
        let head = tree.head_at(sequence)?;
        if head.0 == 0 || tree.check_kept(head).is_err() {
            continue;
        }
        let row = tree.row(head)?;
        if row.sequence == sequence {
            return Ok(Some(row.committed));
        }
    }
    let mut commits = Commits::of(&view)?;
    loop {
        let some = commits.next()?;
        let found = some.iter().find(|(number, _)| *number == sequence);
        if found.is_some() || some.is_empty() {
            return Ok(found.map(|(_, time)| *time));
        }
    }
}
