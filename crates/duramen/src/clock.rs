//! The engine's only source of time.
//!
//! Invariant: nothing else in the engine asks the machine what time it is, so that a simulated
//! clock decides every timestamp of a run.

use std::fmt;

use crate::Micros;

/// A source of wall-clock time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now. It may stand still or go back; the engine corrects for both.
    fn now(&self) -> Micros;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one door to the machine's clock")]
    fn now(&self) -> Micros {
        let since_epoch =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }
}
