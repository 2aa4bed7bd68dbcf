//! The locks that threads of the engine meet at: those of `parking_lot`, or under `cfg(shuttle)`
//! those of a scheduler that tries the orders in which threads may run.
//!
//! Invariant: what holds one of them and waits waits for another one of them, so that the scheduler
//! sees every wait. Devices and caches have locks of their own, held for as long as a copy takes.

#[cfg(not(shuttle))]
pub(crate) use parking_lot::{ArcMutexGuard, Condvar, Mutex, MutexGuard, RawMutex, RwLock};

#[cfg(shuttle)]
pub(crate) use scheduled::Condvar;
#[cfg(shuttle)]
pub(crate) use shuttle_parking_lot::{ArcMutexGuard, Mutex, MutexGuard, RawMutex, RwLock};

use std::sync::Arc;
#[cfg(not(shuttle))]
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// How long a lock that somebody has is left alone before it is looked at again.
#[cfg(not(shuttle))]
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Takes a lock, waited for so long; none if somebody else keeps it.
#[cfg(not(shuttle))]
pub(crate) fn lock_for<T>(
    lock: &Arc<Mutex<T>>,
    timeout: Duration,
) -> Option<ArcMutexGuard<RawMutex, T>> {
    Mutex::try_lock_arc_for(lock, timeout)
}

/// Whether there is a moment within so long in which nobody has a lock. It is not taken for that:
/// who does not wait for it never finds it taken by who only looks.
#[cfg(not(shuttle))]
pub(crate) fn is_free_within<T>(lock: &Arc<Mutex<T>>, timeout: Duration) -> bool {
    let mut left = timeout;
    while lock.is_locked() {
        if left.is_zero() {
            return false;
        }
        pause();
        left = left.saturating_sub(LOOK_AGAIN);
    }
    // What was done by who had it last is seen from here on.
    fence(Ordering::Acquire);
    true
}

/// The same. No lock here can be looked at without taking it.
#[cfg(shuttle)]
pub(crate) fn is_free_within<T>(lock: &Arc<Mutex<T>>, timeout: Duration) -> bool {
    lock_for(lock, timeout).is_some()
}

/// Lets others run for a moment.
#[cfg(not(shuttle))]
pub(crate) fn pause() {
    std::thread::sleep(LOOK_AGAIN);
}

/// The same, whose moment is up to the scheduler.
#[cfg(shuttle)]
pub(crate) fn pause() {
    shuttle::thread::yield_now();
}

/// Takes a lock if it gets free within a moment. Who waits in its queue gets it before long, where
/// who only looks now and then may find it taken each time.
#[cfg(not(shuttle))]
pub(crate) fn lock_soon<T>(lock: &Arc<Mutex<T>>) -> Option<ArcMutexGuard<RawMutex, T>> {
    lock_for(lock, LOOK_AGAIN)
}

/// The same, whose moment is up to the scheduler.
#[cfg(shuttle)]
pub(crate) fn lock_soon<T>(lock: &Arc<Mutex<T>>) -> Option<ArcMutexGuard<RawMutex, T>> {
    pause();
    lock.try_lock_arc()
}

/// Takes a lock. Time does not pass: whoever would wait waits until he has it.
#[cfg(shuttle)]
pub(crate) fn lock_for<T>(
    lock: &Arc<Mutex<T>>,
    timeout: Duration,
) -> Option<ArcMutexGuard<RawMutex, T>> {
    if timeout.is_zero() { lock.try_lock_arc() } else { Some(lock.lock_arc()) }
}

#[cfg(shuttle)]
mod scheduled {
    use std::time::Duration;

    use shuttle::rand::Rng;

    use super::MutexGuard;

    /// A condition variable with the interface of the other one.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar {
        waiting: shuttle::sync::Condvar,
        /// Held from before the mutex is released until the wait has begun, and by who notifies.
        gate: shuttle::sync::Mutex<()>,
    }

    /// How a wait of bounded time ended.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct WaitTimeoutResult(bool);

    impl WaitTimeoutResult {
        pub(crate) fn timed_out(self) -> bool {
            self.0
        }
    }

    const POISONED: &str = "a schedule ends with the first panic";

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let gate = self.gate.lock().expect(POISONED);
            MutexGuard::unlocked(guard, || drop(self.waiting.wait(gate).expect(POISONED)));
        }

        /// Lets others run, and then says that the time is over or that there was a notification
        /// without reason, which both may happen.
        pub(crate) fn wait_for<T>(
            &self,
            guard: &mut MutexGuard<'_, T>,
            _timeout: Duration,
        ) -> WaitTimeoutResult {
            MutexGuard::unlocked(guard, || {
                drop(self.gate.lock().expect(POISONED));
                shuttle::thread::yield_now();
            });
            WaitTimeoutResult(shuttle::rand::thread_rng().gen_bool(0.5))
        }

        pub(crate) fn notify_one(&self) {
            let _gate = self.gate.lock().expect(POISONED);
            self.waiting.notify_one();
        }

        pub(crate) fn notify_all(&self) {
            let _gate = self.gate.lock().expect(POISONED);
            self.waiting.notify_all();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// A background step that took a turn for a moment made edits fail that would not wait for it.
    #[test]
    fn who_looks_at_a_lock_is_in_nobodys_way() {
        let lock = Arc::new(Mutex::new(()));
        let is_done = AtomicBool::new(false);
        let taken = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    is_free_within(&lock, Duration::ZERO);
                }
            });
            let taken = (0..200_000).filter(|_| lock_for(&lock, Duration::ZERO).is_some()).count();
            is_done.store(true, Ordering::Relaxed);
            taken
        });
        assert_eq!(taken, 200_000);
    }

    #[test]
    fn a_lock_is_free_once_who_has_it_gives_it_back() {
        let lock = Arc::new(Mutex::new(()));
        let guard = lock_for(&lock, Duration::ZERO);
        assert!(!is_free_within(&lock, Duration::from_millis(2)));
        drop(guard);
        assert!(is_free_within(&lock, Duration::ZERO));
    }
}
