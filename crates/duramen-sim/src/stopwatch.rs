//! The one door to the machine's time: how long a suite took, and when a child is killed.

use std::time::{Duration, Instant};

/// Measures elapsed time from when it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "suites report real time, through here alone")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub(crate) fn seconds(self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// Waits in real time.
pub(crate) fn wait(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}
