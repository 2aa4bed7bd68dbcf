//! Removing a database that was made for something that failed then.
//!
//! Invariants:
//! - only what this process made is removed, under the lock that it has had since it made it: so
//!   nobody else can have committed anything, nor begin to before nothing is left;
//! - only if neither memory nor the device has a commit, but for those that keep a name for a load;
//! - the manifest goes first, durably, and the file of the lock goes last; what has commits to load
//!   keeps a manifest as of one in the making until the rest is gone, so that what is left of a
//!   removal that is cut short is said to be that;
//! - nothing is removed once that file is another one: then the place is somebody else's.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::engine::place::is_of_engine;
use crate::engine::unfinished;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Device;
use crate::manifest::{self, Manifest};
use crate::revision::CommitSequence;
use crate::{journal, segment, staging};

impl Engine {
    /// Ends the work in order, and removes the database if opening made it and nothing was
    /// committed since; whether it did.
    pub(crate) fn close_or_remove(mut self) -> Result<bool> {
        self.end_worker();
        if !self.is_unused() {
            return self.shut().map(|()| false);
        }
        let journal = Arc::get_mut(&mut self.shared).and_then(|shared| shared.journal.take());
        let Some(journal) = journal else { return self.shut().map(|()| false) };
        // Its thread would make a file, and the folder of it, once more.
        journal.abandon(&Error::new(ErrorKind::Cancelled, "the database is being removed"));
        let device = self.device.as_ref();
        if self.kept_names.load(Ordering::Relaxed) > 0 {
            let renamed = device.rename(manifest::PATH, unfinished::MANIFEST);
            renamed
                .map_err(|error| Error::io(format!("cannot rename {}", manifest::PATH), error))?;
        }
        // The lock is that of this handle.
        remove(device).map(|()| true)
    }

    /// A commit keeps a name for a document that is loaded, and says nothing else.
    pub(crate) fn keeps_name(&self) {
        self.kept_names.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether opening made the database and nobody committed anything that is there now, or may be
    /// when it is opened again.
    fn is_unused(&self) -> bool {
        let Ok(journal) = self.journal() else { return false };
        // What cannot be written any more is not there.
        let _ = journal.flush();
        let kept = CommitSequence(self.kept_names.load(Ordering::Relaxed));
        self.was_created
            && self.lock.as_ref().is_some_and(|lock| lock.is_in_place())
            && journal.published() == kept
            && matches!(self.last_on_device(), Ok(Some(last)) if last == kept)
            && is_missing_or_empty(self.device.as_ref(), staging::DIRECTORY)
    }

    /// The last commit that is found when the database is opened again.
    fn last_on_device(&self) -> Result<Option<CommitSequence>> {
        let found = Manifest::load(self.device.as_ref())?;
        let Some(manifest) = found.filter(|found| found.database_id == self.id) else {
            return Ok(None);
        };
        let (device, start) = (Arc::clone(&self.device), manifest.checkpoint);
        let report = journal::read_tail(device, self.id, start, &mut |_, _, _| Ok(()))?;
        Ok(Some(report.end.sequence))
    }
}

fn is_missing_or_empty(device: &dyn Device, folder: &str) -> bool {
    match device.list(folder) {
        Ok(names) => names.is_empty(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes all of a database that nothing was committed to, or that could not be made. The lock is
/// held meanwhile.
pub(super) fn remove(device: &dyn Device) -> Result<()> {
    let failed = |error| Error::io(format!("cannot remove {}", manifest::PATH), error);
    remove_file(device, manifest::PATH)?;
    // A manifest that comes back with the power must find its journal.
    device.sync_dir("").map_err(failed)?;
    remove_files(device)?;
    device.remove_made();
    Ok(())
}

/// Removes the segments and the journal of a database that has no manifest.
pub(super) fn remove_files(device: &dyn Device) -> Result<()> {
    for folder in [journal::DIRECTORY, segment::DIRECTORY] {
        for name in device.list(folder).unwrap_or_default() {
            if is_of_engine(folder, &name) {
                remove_file(device, &format!("{folder}/{name}"))?;
            }
        }
    }
    remove_file(device, manifest::NEW_PATH)?;
    remove_file(device, unfinished::MANIFEST)
}

fn remove_file(device: &dyn Device, path: &str) -> Result<()> {
    match device.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(|error| Error::io(format!("cannot remove {path}"), error)),
    }
}
