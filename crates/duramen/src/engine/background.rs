//! What is done beside the commits: checkpoints, and what follows from them.
//!
//! One thread of its own does it in a database that was opened to write, so that no commit has to;
//! without it the committing threads do the same work in the same order when it is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limits::BACKGROUND_RETRY_MS;

/// The thread.
#[derive(Debug)]
pub(super) struct Worker {
    signal: Arc<Signal>,
    thread: JoinHandle<()>,
}

/// How the thread is told what to do.
#[derive(Debug, Default)]
pub(super) struct Signal {
    wanted: Mutex<Wanted>,
    changed: Condvar,
    /// Set with what ends the thread, for those who look at it often.
    ending: Arc<AtomicBool>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    #[default]
    Nothing,
    Work,
    Pause,
    End,
}

impl Signal {
    /// There may be something to do.
    pub(super) fn wake(&self) {
        let mut wanted = self.wanted.lock();
        if *wanted == Wanted::Nothing {
            *wanted = Wanted::Work;
            self.changed.notify_all();
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub(super) fn ending(&self) -> &Arc<AtomicBool> {
        &self.ending
    }

    /// Waits for work; false at the end.
    fn wait(&self) -> bool {
        let mut wanted = self.wanted.lock();
        self.changed.wait_while(&mut wanted, |wanted| *wanted == Wanted::Nothing);
        if *wanted == Wanted::End {
            return false;
        }
        *wanted = Wanted::Nothing;
        true
    }

    /// Waits before what failed is tried again; only the end does not wait for that.
    fn pause(&self) {
        let mut wanted = self.wanted.lock();
        if *wanted == Wanted::End {
            return;
        }
        *wanted = Wanted::Pause;
        let retry = Duration::from_millis(BACKGROUND_RETRY_MS);
        self.changed.wait_while_for(&mut wanted, |wanted| *wanted == Wanted::Pause, retry);
        if *wanted == Wanted::Pause {
            *wanted = Wanted::Work;
        }
    }
}

impl Worker {
    /// Starts the thread, which works with a handle of its own.
    pub(super) fn start(engine: Engine) -> Result<Self> {
        let signal = Arc::clone(&engine.signal);
        let thread = std::thread::Builder::new().name("duramen-background".to_owned());
        let thread = thread.spawn(move || {
            while engine.signal.wait() {
                // Whoever needs it done hears of the failure when it is tried for him.
                if engine.work().is_err() {
                    engine.signal.pause();
                }
            }
        });
        let thread = thread.map_err(|error| Error::io("starting a thread", error))?;
        Ok(Self { signal, thread })
    }

    /// Ends the thread; what it does now it does to its end, unless there is a hurry.
    pub(super) fn end(self) {
        self.signal.ending.store(true, Ordering::Relaxed);
        *self.signal.wanted.lock() = Wanted::End;
        self.signal.changed.notify_all();
        // A thread that panicked has said so; there is nothing to add here.
        let _ = self.thread.join();
    }
}

impl Engine {
    /// Does what is due, one step after the other.
    pub(super) fn work(&self) -> Result<()> {
        loop {
            if self.is_checkpoint_due() {
                self.write_due_checkpoint()?;
            }
            self.follow_asked();
            // Merging takes longer than a checkpoint can wait, so it is done in steps between them.
            if self.signal.is_ending() || !self.compact_step()? {
                return Ok(());
            }
        }
    }

    /// Has done what is due: by the thread, if there is one, else at once.
    pub(crate) fn work_if_due(&self) {
        if !self.is_checkpoint_due() {
            return;
        }
        if self.has_worker() {
            self.signal.wake();
        } else {
            if self.is_patient() {
                return;
            }
            // What the caller did is safe; what fails here is tried again with a later commit.
            let _ = self.work();
        }
    }

    /// Has done what is due for indexes that follow, and waits where there is no room for more. A
    /// database opened for reading has all of it in memory.
    pub(crate) fn make_room(&self) -> Result<()> {
        if self.journal.is_none() {
            return Ok(());
        }
        self.work_if_due();
        self.wait_for_room()
    }

    /// Whether a checkpoint should be written: at half of the memory, or at a length of the
    /// journal.
    pub(super) fn is_checkpoint_due(&self) -> bool {
        if self.memory.is_half_young() {
            return true;
        }
        // Asking the journal takes its lock, so it is asked only now and then.
        let journal_max = self.journal_bytes_max();
        if self.memory.young() < journal_max / 4 {
            return false;
        }
        // Whoever writes the manifest has it: no commit waits for that.
        let manifest = self.manifest.try_lock();
        let position = manifest.map(|manifest| manifest.checkpoint.position);
        position.is_some_and(|position| self.journal_bytes_since(position) >= journal_max)
    }
}
