//! Long reads that threads share.

pub(crate) mod ahead;
mod pipe;

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Condvar, Mutex};

pub(crate) use pipe::piped;

/// More threads wait for memory, and for who puts their parts together.
const THREADS_MAX: usize = 4;

/// How many threads share a long read, the reader included.
pub(crate) fn count() -> usize {
    processors().min(THREADS_MAX)
}

/// How many threads run at once; to ask the system takes it longer than a short read takes.
pub(crate) fn processors() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

/// Runs a reader of parts while other threads help to make them.
pub(crate) fn share<T: Send, R>(
    name: &str,
    parts: &Parts<T>,
    help: impl Fn() + Sync,
    read: impl FnOnce() -> R,
) -> R {
    std::thread::scope(|scope| {
        for _ in 1..count() {
            let thread = std::thread::Builder::new().name(name.to_owned());
            // The reader makes what nobody else does.
            let _ = thread.spawn_scoped(scope, &help);
        }
        let _closing = Closing(parts);
        read()
    })
}

/// Ends the other threads, whatever becomes of the reader.
struct Closing<'p, T>(&'p Parts<T>);

impl<T> Drop for Closing<'_, T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Parts of what is read: they are made by whoever has nothing else to do, and one reader takes
/// them in their order. So an error is met where it stands, and what is made ahead is bounded.
#[derive(Debug)]
pub(crate) struct Parts<T> {
    plan: Mutex<Plan<T>>,
    moved: Condvar,
    /// So many are begun before the reader needs them.
    ahead: usize,
}

#[derive(Debug)]
struct Plan<T> {
    /// The number of the part that the reader takes next.
    head: u64,
    /// Those that were begun, from there on; none while they are made.
    begun: VecDeque<Option<Result<T>>>,
    /// Whether no other is begun.
    is_closed: bool,
}

/// What comes next for the reader.
pub(crate) enum Next<T> {
    Part(Result<T>),
    /// It is to begin a part by itself.
    Room,
    End,
}

/// The right to make a part. Without it being put the reader meets an error.
#[derive(Debug)]
pub(crate) struct Share<'p, T> {
    parts: &'p Parts<T>,
    number: u64,
    is_put: bool,
}

impl<T> Parts<T> {
    pub(crate) fn new(ahead: usize) -> Self {
        let plan = Plan { head: 0, begun: VecDeque::new(), is_closed: false };
        Self { plan: Mutex::new(plan), moved: Condvar::default(), ahead }
    }

    /// Waits until a part is to be begun; false if there is no more need for that.
    pub(crate) fn wait_for_room(&self) -> bool {
        let mut plan = self.plan.lock();
        while !plan.is_closed && plan.begun.len() >= self.ahead {
            self.moved.wait(&mut plan);
        }
        !plan.is_closed
    }

    /// The next part, waited for if others make all there are.
    pub(crate) fn next(&self) -> Next<T> {
        let mut plan = self.plan.lock();
        loop {
            if let Some(part) = plan.begun.front_mut().and_then(Option::take) {
                plan.begun.pop_front();
                plan.head += 1;
                drop(plan);
                self.moved.notify_all();
                return Next::Part(part);
            }
            if plan.is_closed && plan.begun.is_empty() {
                return Next::End;
            }
            if !plan.is_closed && plan.begun.len() < self.ahead {
                return Next::Room;
            }
            self.moved.wait(&mut plan);
        }
    }

    /// Begins the next part, if there are that many.
    pub(crate) fn begin(&self, count: u64) -> Option<Share<'_, T>> {
        let mut plan = self.plan.lock();
        let number = plan.head + plan.begun.len() as u64;
        if number >= count {
            plan.is_closed = true;
            drop(plan);
            self.moved.notify_all();
            return None;
        }
        plan.begun.push_back(None);
        Some(Share { parts: self, number, is_put: false })
    }

    /// Begins no other part.
    pub(crate) fn close(&self) {
        self.plan.lock().is_closed = true;
        self.moved.notify_all();
    }
}

impl<T> Share<'_, T> {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the reader takes it next.
    pub(crate) fn is_next(&self) -> bool {
        self.parts.plan.lock().head == self.number
    }

    pub(crate) fn put(mut self, part: Result<T>) {
        self.place(Some(part));
    }

    /// The reader, which takes it next, has it already.
    pub(crate) fn skip(mut self) {
        self.is_put = true;
        let mut plan = self.parts.plan.lock();
        plan.begun.pop_front();
        plan.head += 1;
        drop(plan);
        self.parts.moved.notify_all();
    }

    /// There is no such part, nor any behind it: none was begun since.
    pub(crate) fn end(mut self) {
        self.is_put = true;
        let mut plan = self.parts.plan.lock();
        plan.begun.pop_back();
        plan.is_closed = true;
        drop(plan);
        self.parts.moved.notify_all();
    }

    fn place(&mut self, part: Option<Result<T>>) {
        self.is_put = true;
        let mut plan = self.parts.plan.lock();
        let index = usize::try_from(self.number.wrapping_sub(plan.head)).unwrap_or(usize::MAX);
        if let Some(begun) = plan.begun.get_mut(index) {
            *begun = Some(part.unwrap_or_else(|| Err(ended())));
        }
        drop(plan);
        self.parts.moved.notify_all();
    }
}

impl<T> Drop for Share<'_, T> {
    fn drop(&mut self) {
        if !self.is_put {
            self.place(None);
        }
    }
}

#[cold]
fn ended() -> Error {
    Error::new(ErrorKind::Corrupt, "a thread that read a part of this ended early")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all parts there are, as a reader that makes none.
    fn taken(parts: &Parts<u64>) -> Vec<Option<u64>> {
        let part = || match parts.next() {
            Next::Part(part) => Some(part.ok()),
            Next::Room | Next::End => None,
        };
        std::iter::from_fn(part).collect()
    }

    #[test]
    fn parts_are_taken_in_their_order_and_lost_ones_are_errors() {
        let parts = Parts::new(3);
        let (first, second) = (parts.begin(9).unwrap(), parts.begin(9).unwrap());
        assert!(first.is_next() && !second.is_next());
        second.put(Ok(1));
        assert!(matches!(parts.plan.lock().begun.front(), Some(None)), "the first one is not made");
        let third = parts.begin(9).unwrap();
        first.put(Ok(0));
        drop(third);
        assert_eq!(taken(&parts), [Some(0), Some(1), None]);
        let fourth = parts.begin(9).unwrap();
        assert!(fourth.is_next() && fourth.number() == 3);
        fourth.skip();
        assert!(parts.wait_for_room() && parts.begin(4).is_none() && !parts.wait_for_room());
        assert!(matches!(parts.next(), Next::End));
    }

    #[test]
    fn a_part_that_is_not_there_ends_them() {
        let parts = Parts::new(2);
        parts.begin(u64::MAX).unwrap().put(Ok(7));
        parts.begin(u64::MAX).unwrap().end();
        assert!(!parts.wait_for_room());
        assert_eq!(taken(&parts), [Some(7)]);
        assert!(matches!(parts.next(), Next::End));
    }

    /// Makes the next part, which is its number.
    fn make(parts: &Parts<u64>, count: u64) -> bool {
        let Some(share) = parts.begin(count) else { return false };
        let number = share.number();
        share.put(Ok(number));
        true
    }

    /// Takes all parts, and makes some.
    fn read(parts: &Parts<u64>, count: u64) -> Vec<u64> {
        let mut all = Vec::new();
        loop {
            match parts.next() {
                Next::Part(part) => all.push(part.unwrap()),
                Next::Room if all.len() % 2 == 0 => {
                    make(parts, count);
                }
                Next::Room => match parts.begin(count) {
                    Some(share) if share.is_next() => {
                        all.push(share.number());
                        share.skip();
                    }
                    Some(share) => {
                        let number = share.number();
                        share.put(Ok(number));
                    }
                    None => {}
                },
                Next::End => break all,
            }
        }
    }

    #[test]
    fn threads_and_a_reader_make_all_parts_once() {
        for count in [0, 1, 2, 7, 200] {
            let parts = Parts::new(4);
            let help = || while parts.wait_for_room() && make(&parts, count) {};
            let all = std::thread::scope(|scope| {
                (0..3).map(|_| scope.spawn(help)).for_each(drop);
                read(&parts, count)
            });
            assert_eq!(all, (0..count).collect::<Vec<_>>());
        }
    }
}
