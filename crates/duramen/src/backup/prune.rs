//! Removing old backups, and the segments that only they consist of.
//!
//! Invariant: records go before the segments they name, oldest first, so that whatever interrupts
//! it, every backup whose record is there is whole, and what is left over goes the next time. What
//! is not named as a backup's object is somebody else's, and stays; so does what is named as a
//! record and does not begin as one.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use super::{Backup, Records, again, lock, record};
use crate::backup::Destination;
use crate::error::{Error, Result};

/// What [`Backup::prune`] removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pruned {
    /// The numbers of the backups that are gone, oldest first.
    pub backups: Vec<u64>,
    /// How many segments went, those of backups that were cut short among them.
    pub segments: u64,
}

impl Backup {
    /// Removes all but the newest `keep` backups, and the segments that none of these consists of.
    ///
    /// The newest backup has all history that the database had then, so older ones are needed for
    /// what a retention or a purge has taken away since, and in case the newest is damaged.
    ///
    /// `Corrupt` if the record of a backup to keep does not verify, for nobody knows then what it
    /// consists of; `Busy` while a backup is being made there. Nothing is removed then.
    pub fn prune(destination: &dyn Destination, keep: NonZeroUsize) -> Result<Pruned> {
        let _alone = lock(destination)?;
        prune(destination, keep)
    }
}

/// Prunes while nobody else makes a backup.
pub(super) fn prune(destination: &dyn Destination, keep: NonZeroUsize) -> Result<Pruned> {
    let records = Records::read(destination)?;
    let (old, kept) = records.all.split_at(records.all.len().saturating_sub(keep.get()));
    let mut needed = BTreeSet::new();
    for (_, read) in kept {
        let record = read.as_ref().map_err(|error| {
            again(error).in_context("nothing was removed, because a backup to keep is damaged")
        })?;
        needed.extend(record.segments().map(|(info, _)| record::segment_name(info)));
    }
    let mut pruned = Pruned::default();
    for (number, read) in old {
        // A damaged one goes as well.
        if read.is_err() && !Records::is_one(destination, *number)? {
            continue;
        }
        remove(destination, &record::name(*number))?;
        pruned.backups.push(*number);
    }
    let there = destination.list(record::SEGMENTS);
    let there = there.map_err(|error| Error::io("cannot list the backup's segments", error))?;
    for word in there {
        let name = format!("{}/{word}", record::SEGMENTS);
        if record::is_segment(&word) && !needed.contains(&name) {
            remove(destination, &name)?;
            pruned.segments += 1;
        }
    }
    Ok(pruned)
}

fn remove(destination: &dyn Destination, name: &str) -> Result<()> {
    let removed = destination.remove(name);
    removed.map_err(|error| Error::io(format_args!("cannot remove {name} of the backup"), error))
}
