//! Waiting for commits that others make.

use std::time::Duration;

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::journal;
use crate::limits::FEED_POLL_MS;
use crate::manifest::Manifest;
use crate::revision::CommitSequence;

impl Engine {
    /// Waits until a commit after `sequence` is published, but no longer than `timeout`; whether
    /// one is. Opened for reading, it goes to the newest state of the writer when there is one.
    pub(crate) fn wait_after(&self, sequence: CommitSequence, timeout: Duration) -> Result<bool> {
        if self.published() > sequence {
            return Ok(true);
        }
        if let Ok(journal) = self.journal() {
            return journal.wait_after(sequence, timeout);
        }
        let mut waited = Duration::ZERO;
        loop {
            let begin = self.clock().now();
            if self.is_behind()? {
                self.refresh()?;
            }
            if self.published() > sequence {
                return Ok(true);
            }
            if waited >= timeout {
                return Ok(false);
            }
            let taken = self.clock().now().0.saturating_sub(begin.0);
            let taken = Duration::from_micros(u64::try_from(taken).unwrap_or_default());
            // At most half of the time goes into reading the journal again.
            let pause =
                taken.max(Duration::from_millis(FEED_POLL_MS)).min(timeout.saturating_sub(waited));
            waited += pause + taken;
            std::thread::sleep(pause);
        }
    }

    /// Whether the writer may have added something since the state that is shown.
    fn is_behind(&self) -> Result<bool> {
        let Some(end) = self.view().end else { return Ok(false) };
        let Some(manifest) = Manifest::load(self.device.as_ref())? else {
            let message = "the database is gone: its MANIFEST is not there any more";
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        self.check_is_own(&manifest)?;
        if manifest.checkpoint != self.manifest.lock().checkpoint {
            return Ok(true);
        }
        Ok(journal::goes_on(self.device.clone(), self.id, end))
    }
}
