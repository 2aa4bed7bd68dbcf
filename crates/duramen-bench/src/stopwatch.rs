//! The one door to the clock: elapsed time, and the wall clock where a rival's rows need it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Measures elapsed time from when it was started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts measuring.
    #[expect(clippy::disallowed_methods, reason = "benchmarks measure real time, through here")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    /// Microseconds since the start.
    pub(crate) fn micros(self) -> f64 {
        self.elapsed().as_secs_f64() * 1e6
    }

    /// Seconds since the start.
    pub(crate) fn seconds(self) -> f64 {
        self.elapsed().as_secs_f64()
    }
}

/// Seconds of processor time that this process has used, of all its threads; it swings less than
/// elapsed time where others use the machine.
pub(crate) fn processor_seconds() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// Microseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "benchmarks use real time, through here")]
pub(crate) fn unix_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
