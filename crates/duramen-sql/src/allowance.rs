//! For how long a query goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duramen::{Error, ErrorKind, Result};
use tokio::time::Instant;

use crate::session::SessionOptions;

/// Whether one query may go on. What takes long asks, as tasks end at their next step only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowance {
    cancelled: Arc<AtomicBool>,
    /// Nobody waits for it any more.
    is_over: Arc<AtomicBool>,
    deadline: Option<Instant>,
    timeout_ms: u64,
}

impl Allowance {
    /// That of a query which begins now.
    pub(crate) fn begin(options: &SessionOptions) -> Self {
        let limit = options.timeout_ms.map(Duration::from_millis);
        Self {
            cancelled: Arc::clone(&options.cancelled),
            is_over: Arc::default(),
            deadline: limit.map(|limit| Instant::now() + limit),
            timeout_ms: options.timeout_ms.unwrap_or_default(),
        }
    }

    /// That of a part of the query, which may end before.
    pub(crate) fn of_part(&self) -> Self {
        Self { is_over: Arc::default(), ..self.clone() }
    }

    /// Ends it for all who ask.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// `Cancelled` or `TimedOut` once the query is to end.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) || self.is_over.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let message = format!(
                "the query took more than {} ms: give it more time (--timeout, timeout_ms)",
                self.timeout_ms
            );
            return Err(Error::new(ErrorKind::TimedOut, message));
        }
        Ok(())
    }
}
