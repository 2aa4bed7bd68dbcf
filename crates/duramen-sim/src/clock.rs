//! A clock that a test sets: forward, back or frozen.

use std::sync::Arc;

use duramen::{Clock, Micros};
use parking_lot::Mutex;

/// A clock that moves only as told. A clone is the same clock.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: i64,
    tick: i64,
}

impl SimulatedClock {
    /// A clock that shows `now` and moves one microsecond at each reading.
    pub fn new(now: Micros) -> Self {
        Self { state: Arc::new(Mutex::new(State { now: now.0, tick: 1 })) }
    }

    /// Jumps to `now`.
    pub fn set(&self, now: Micros) {
        self.state.lock().now = now.0;
    }

    /// Goes forward by `micros`.
    pub fn forward(&self, micros: i64) {
        let mut state = self.state.lock();
        state.now = state.now.saturating_add(micros);
    }

    /// Goes back by `micros`.
    pub fn back(&self, micros: i64) {
        let mut state = self.state.lock();
        state.now = state.now.saturating_sub(micros);
    }

    /// Moves by `micros` at each reading from now on; back if negative.
    pub fn tick(&self, micros: i64) {
        self.state.lock().tick = micros;
    }

    /// Stands still until told otherwise.
    pub fn freeze(&self) {
        self.tick(0);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Micros {
        let mut state = self.state.lock();
        let now = state.now;
        state.now = now.saturating_add(state.tick);
        Micros(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_only_as_told() {
        let clock = SimulatedClock::new(Micros(1_000));
        assert_eq!((clock.now(), clock.now()), (Micros(1_000), Micros(1_001)));
        clock.freeze();
        assert_eq!((clock.now(), clock.now()), (Micros(1_002), Micros(1_002)));
        clock.back(500);
        assert_eq!(clock.now(), Micros(502));
        clock.forward(8);
        clock.tick(-10);
        assert_eq!((clock.now(), clock.now()), (Micros(510), Micros(500)));
        clock.clone().set(Micros(i64::MIN));
        assert_eq!((clock.now(), clock.now()), (Micros(i64::MIN), Micros(i64::MIN)));
    }
}
