//! The thread that seals: when a bank is full, and when the interval of a point is over.
//!
//! A thread of its own, because what the other one does beside the commits, such as a checkpoint,
//! may take longer than an interval.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::limits::BACKGROUND_RETRY_MS;

/// The thread.
#[derive(Debug)]
pub(super) struct Sealer {
    signal: Arc<SealSignal>,
    thread: JoinHandle<()>,
}

/// How the thread is told what to do.
#[derive(Debug, Default)]
pub(super) struct SealSignal {
    wanted: Mutex<Wanted>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wanted {
    /// A bank is full.
    is_full: bool,
    /// What is due may have changed.
    is_changed: bool,
    is_over: bool,
}

impl SealSignal {
    /// A seal is due some time from now.
    pub(super) fn wake(&self) {
        self.tell(|wanted| wanted.is_changed = true);
    }

    /// A seal is due now.
    pub(super) fn wake_full(&self) {
        self.tell(|wanted| wanted.is_full = true);
    }

    fn tell(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock());
        self.changed.notify_all();
    }

    /// Waits until a bank is full, or for so long if nothing else becomes due meanwhile; whether
    /// one is full. None at the end.
    fn wait(&self, timeout: Option<Duration>) -> Option<bool> {
        let mut wanted = self.wanted.lock();
        let is_idle =
            |wanted: &mut Wanted| !(wanted.is_full || wanted.is_changed || wanted.is_over);
        match timeout {
            Some(timeout) => {
                self.changed.wait_while_for(&mut wanted, is_idle, timeout);
            }
            None => self.changed.wait_while(&mut wanted, is_idle),
        }
        wanted.is_changed = false;
        let is_full = std::mem::take(&mut wanted.is_full);
        (!wanted.is_over).then_some(is_full)
    }
}

impl Sealer {
    /// Starts the thread, which works with a handle of its own.
    pub(super) fn start(engine: Engine) -> Result<Self> {
        let signal = Arc::clone(&engine.sealing);
        let thread = std::thread::Builder::new().name("duramen-sealing".to_owned());
        let thread = thread.spawn(move || engine.seal_until_the_end());
        let thread = thread.map_err(|error| Error::io("starting a thread", error))?;
        Ok(Self { signal, thread })
    }

    /// Ends the thread; what it does now it does to its end.
    pub(super) fn end(self) {
        self.signal.tell(|wanted| wanted.is_over = true);
        // A thread that panicked has said so; there is nothing to add here.
        let _ = self.thread.join();
    }
}

impl Engine {
    fn seal_until_the_end(&self) {
        let mut pause = None;
        while let Some(is_full) = self.sealing.wait(pause.or_else(|| self.left_until_due())) {
            // Whoever needs it done hears of the failure when it is tried for him.
            let done = match self.left_until_due() {
                Some(left) if left.is_zero() => self.seal_durably(),
                _ if is_full || pause.is_some() => self.seal(),
                _ => Ok(()),
            };
            pause = done.is_err().then(|| Duration::from_millis(BACKGROUND_RETRY_MS));
        }
    }

    /// How long until a seal is due; none if there is nothing to seal.
    fn left_until_due(&self) -> Option<Duration> {
        let left = self.staging.due()?.0.saturating_sub(self.clock().now().0);
        Some(Duration::from_micros(u64::try_from(left).unwrap_or_default()))
    }
}
