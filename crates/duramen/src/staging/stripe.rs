//! One staging file: two banks of records, of which one takes points while the other is sealed.
//!
//! Invariants:
//! - a point is acknowledged once its record is in the file, and never moves there;
//! - a bank takes points of one generation; it is used again only after a seal made them a commit
//!   that is written, so that a killed process finds each point in the file or in the journal;
//! - generations are sealed in the order of their numbers, all that have points at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::io::Mapping;
use crate::limits::STAGING_BANK_SERIES_MAX;
use crate::memory::{Memory, StagedBytes};
use crate::revision::CommitSequence;
use crate::staging::layout::{
    BANKS, HEADERS, StagedPoint, bank_header, generation_seed, place_at, stripe_seed,
};
use crate::staging::{Binding, Columns};
use crate::sync::Mutex;

/// A file that points are staged in, and what is in it. Two threads write two of them, so no two
/// share what a processor takes from memory at once.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Stripe {
    /// A number that no other stripe has.
    pub(crate) id: u64,
    /// The last generation that got a point, and the last that is a commit which readers see.
    staged: AtomicU64,
    sealed: AtomicU64,
    banks: Mutex<Banks>,
}

/// What a thread has to hold to stage a point.
#[derive(Debug)]
struct Banks {
    mapping: Box<dyn Mapping>,
    seed: u32,
    /// Records of a bank, its headers included.
    places: usize,
    both: [Bank; BANKS],
    /// The bank that takes points, or that did last.
    open: usize,
    last_generation: u64,
    /// How long the first point that is not sealed may wait for that.
    interval_ms: u32,
    /// What the columns of all banks take, those that are being sealed included.
    bytes: StagedBytes,
}

#[derive(Debug, Default)]
struct Bank {
    state: State,
    generation: u64,
    seed: u32,
    /// Headers written so far.
    headers: usize,
    /// What is in the file, in memory.
    columns: Columns,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Open,
    /// It takes no more points, and waits to be sealed.
    Full,
    /// Its points are on their way into a commit.
    Sealing,
}

/// What became of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Staged {
    /// It is in the file.
    Done,
    /// It is, and a seal is due this many milliseconds from now.
    Due(u32),
    /// It is, and the bank before it is full.
    Full,
    /// It is not: both banks wait to be sealed.
    Waits,
    /// It is not: the series is bound to another stripe by now.
    Elsewhere,
}

/// The points of a stripe that become a commit.
#[derive(Debug, Default)]
#[cfg_attr(duramen_teeth, derive(Clone))]
pub(crate) struct Taken {
    /// In the order in which they came.
    pub(crate) banks: Vec<(usize, Columns)>,
    /// The newest generation of them.
    pub(crate) generation: u64,
    pub(crate) interval_ms: u32,
}

/// A stripe as a thread sees it that wants to stage a point: which one it is of all, and which one
/// is the thread's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'s> {
    pub(crate) number: usize,
    pub(crate) own: usize,
    /// The last checkpoint. It is looked at with the stripe's lock only: a stamp that is under way
    /// comes to the stripe before or after.
    pub(crate) after: &'s AtomicU64,
    pub(crate) interval_ms: u32,
}

impl Stripe {
    /// A stripe in a file of zeros that has its header.
    pub(crate) fn new(
        (database, id): (u128, u64),
        (mapping, places): (Box<dyn Mapping>, usize),
        memory: &Arc<Memory>,
    ) -> Self {
        let banks = Banks {
            mapping,
            seed: stripe_seed(database, id),
            places,
            both: std::array::from_fn(|_| Bank::default()),
            open: 0,
            last_generation: 0,
            interval_ms: u32::MAX,
            bytes: StagedBytes::new(memory),
        };
        let (staged, sealed) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { id, staged, sealed, banks: Mutex::new(banks) }
    }

    /// Whether there are points that are no commit yet.
    pub(crate) fn has_staged(&self) -> bool {
        self.staged.load(Ordering::Acquire) > self.sealed.load(Ordering::Acquire)
    }

    /// Whether points of this generation or a later one are no commit yet.
    pub(crate) fn is_staged(&self, generation: u64) -> bool {
        generation > self.sealed.load(Ordering::Acquire)
    }

    /// Writes a point of a series that has one in the open bank already, if there is room for it,
    /// and it may wait as long as those before; whether it did.
    #[inline]
    pub(crate) fn stage_another(
        &self,
        binding: &Binding,
        point: &StagedPoint,
        (number, interval_ms): (usize, u32),
    ) -> bool {
        let mut banks = self.banks.lock();
        // Only who holds the stripe that a series is bound to may bind it to another one: what he
        // said of its generation then is seen too.
        binding.stripe.load(Ordering::Acquire) == number
            && banks.takes_another(binding, interval_ms)
            // What fails is tried again by who can say so.
            && banks.push(binding, point).is_ok()
    }

    /// Writes a point. A series whose points are all sealed goes to the stripe of the thread.
    pub(crate) fn stage(
        &self,
        binding: &Binding,
        point: &StagedPoint,
        place: Place<'_>,
    ) -> io::Result<Staged> {
        let mut banks = self.banks.lock();
        // Only who holds the stripe that a series is bound to may bind it to another one.
        if binding.stripe.load(Ordering::Relaxed) != place.number {
            return Ok(Staged::Elsewhere);
        }
        if place.own != place.number && !self.is_staged(binding.generation.load(Ordering::Relaxed))
        {
            binding.generation.store(0, Ordering::Relaxed);
            binding.stripe.store(place.own, Ordering::Release);
            return Ok(Staged::Elsewhere);
        }
        let staged = banks.make_room(place.after)?;
        if staged == Staged::Waits {
            return Ok(staged);
        }
        banks.push(binding, point)?;
        self.staged.store(banks.last_generation, Ordering::Release);
        if place.interval_ms < banks.interval_ms {
            banks.interval_ms = place.interval_ms;
            return Ok(Staged::Due(place.interval_ms));
        }
        Ok(staged)
    }

    /// Takes what is to be sealed; nothing that is being sealed already.
    pub(crate) fn take(&self) -> Taken {
        let mut banks = self.banks.lock();
        let mut taken = Taken { interval_ms: banks.interval_ms, ..Taken::default() };
        let mut order: Vec<usize> = (0..BANKS).filter(|&at| banks.both[at].is_to_seal()).collect();
        order.sort_unstable_by_key(|&at| banks.both[at].generation);
        for at in order {
            let bank = &mut banks.both[at];
            bank.state = State::Sealing;
            taken.generation = bank.generation;
            taken.banks.push((at, std::mem::take(&mut bank.columns)));
        }
        banks.interval_ms = u32::MAX;
        taken
    }

    /// What was taken is a commit that readers see: its banks are free.
    pub(crate) fn sealed(&self, mut taken: Taken) {
        let bytes = |taken: &Taken| taken.banks.iter().map(|(_, columns)| columns.bytes()).sum();
        let before = bytes(&taken);
        taken.banks.iter_mut().for_each(|(_, columns)| columns.clear());
        let mut banks = self.banks.lock();
        banks.bytes.change(before, bytes(&taken));
        for (at, columns) in taken.banks {
            let bank = &mut banks.both[at];
            (bank.state, bank.columns) = (State::Free, columns);
        }
        self.sealed.store(taken.generation, Ordering::Release);
    }

    /// What was taken is no commit: it waits to be sealed as before.
    pub(crate) fn give_back(&self, taken: Taken) {
        let mut banks = self.banks.lock();
        banks.interval_ms = banks.interval_ms.min(taken.interval_ms);
        for (at, columns) in taken.banks {
            let bank = &mut banks.both[at];
            (bank.state, bank.columns) = (State::Full, columns);
        }
    }

    /// Says in the file that its points come after a checkpoint. Nothing may be on its way into a
    /// commit.
    pub(crate) fn stamp(&self, after: CommitSequence) -> io::Result<()> {
        let mut banks = self.banks.lock();
        (0..BANKS).try_for_each(|at| {
            let is_used = banks.both[at].state != State::Free;
            if is_used { banks.write_header(at, after) } else { Ok(()) }
        })
    }
}

impl Bank {
    #[inline]
    fn has_room(&self, places: usize) -> bool {
        // A column takes more memory than a point.
        self.state == State::Open
            && self.columns.len() < places - HEADERS
            && self.columns.series() < STAGING_BANK_SERIES_MAX
    }

    fn is_to_seal(&self) -> bool {
        self.state == State::Full || self.state == State::Open && self.columns.len() > 0
    }
}

impl Banks {
    /// Whether the open bank has room, and a point of a series already.
    #[inline]
    fn takes_another(&self, binding: &Binding, interval_ms: u32) -> bool {
        let bank = &self.both[self.open];
        bank.generation == binding.generation.load(Ordering::Relaxed)
            && bank.has_room(self.places)
            && interval_ms >= self.interval_ms
    }

    /// Has the open bank take a point, if there is room for one in any.
    fn make_room(&mut self, after: &AtomicU64) -> io::Result<Staged> {
        let bank = &mut self.both[self.open];
        if bank.has_room(self.places) {
            return Ok(Staged::Done);
        }
        let mut staged = Staged::Done;
        if bank.state == State::Open {
            bank.state = State::Full;
            staged = Staged::Full;
        }
        let free = (0..BANKS).find(|&at| self.both[at].state == State::Free);
        let Some(free) = free else { return Ok(Staged::Waits) };
        self.begin(free, CommitSequence(after.load(Ordering::Acquire)))?;
        Ok(staged)
    }

    /// Writes a point to the open bank, which has room.
    #[inline]
    fn push(&mut self, binding: &Binding, point: &StagedPoint) -> io::Result<()> {
        let bank = &mut self.both[self.open];
        let place = HEADERS + bank.columns.len();
        let record = point.record(bank.seed, place);
        self.mapping.write(record, place_at(self.places, self.open, place))?;
        let bytes = bank.columns.bytes();
        // Not at each point: beside it in memory may be what another thread stages points by.
        if binding.generation.load(Ordering::Relaxed) != bank.generation {
            binding.generation.store(bank.generation, Ordering::Relaxed);
            binding
                .column
                .store(bank.columns.begin(point, *binding.lossy.lock()), Ordering::Relaxed);
        }
        bank.columns.push(binding.column.load(Ordering::Relaxed), point);
        if bank.columns.bytes() != bytes {
            self.bytes.change(bytes, bank.columns.bytes());
        }
        Ok(())
    }

    /// Lets a free bank take points of the next generation.
    fn begin(&mut self, at: usize, after: CommitSequence) -> io::Result<()> {
        let generation = self.last_generation + 1;
        let bank = &mut self.both[at];
        bank.generation = generation;
        bank.seed = generation_seed(self.seed, at, generation);
        self.write_header(at, after)?;
        self.both[at].state = State::Open;
        (self.open, self.last_generation) = (at, generation);
        Ok(())
    }

    fn write_header(&mut self, at: usize, after: CommitSequence) -> io::Result<()> {
        let bank = &mut self.both[at];
        let place = bank.headers % HEADERS;
        let seed = generation_seed(self.seed, at, 0);
        let header = bank_header(seed, place, bank.generation, after);
        self.mapping.write(header, place_at(self.places, at, place))?;
        bank.headers += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Access, Device, File, MemoryDevice};
    use crate::series::ValueType;
    use crate::tree::cell_key::TreeId;

    fn point(series: u64) -> StagedPoint {
        let series = TreeId(TreeId::SERIES.0 + series);
        StagedPoint { series, time: 7, bits: 1, value_type: ValueType::I64, quality: 192 }
    }

    #[test]
    fn a_bank_is_full_with_so_many_series() {
        let file: Arc<dyn File> = MemoryDevice::new().open("stripe", Access::Create).unwrap();
        let places = 2 * STAGING_BANK_SERIES_MAX;
        let stripe = Stripe::new((7, 9), (Box::new(file), places), &Memory::new(1 << 20));
        let after = AtomicU64::new(0);
        let place = Place { number: 0, own: 0, after: &after, interval_ms: 100 };
        let stage = |binding: &Binding, number| {
            binding.stripe.store(0, Ordering::Relaxed);
            stripe.stage(binding, &point(number), place).unwrap()
        };
        let first = Binding::new();
        assert_eq!(stage(&first, 1), Staged::Due(100));
        assert!(stripe.stage_another(&first, &point(1), (0, 100)));
        assert!(!stripe.stage_another(&first, &point(1), (0, 99)), "it has to be sealed earlier");
        assert!(!stripe.stage_another(&first, &point(1), (1, 100)), "it is of another thread");
        for number in 2..=STAGING_BANK_SERIES_MAX as u64 {
            let binding = Binding::new();
            assert!(!stripe.stage_another(&binding, &point(number), (0, 100)), "it is not bound");
            assert_eq!(stage(&binding, number), Staged::Done);
        }
        assert!(!stripe.stage_another(&first, &point(1), (0, 100)), "the bank is full");
        assert_eq!(stage(&first, 1), Staged::Full);
        let taken = stripe.take();
        let points: Vec<_> = taken.banks.iter().map(|(_, columns)| columns.len()).collect();
        assert_eq!(points, [STAGING_BANK_SERIES_MAX + 1, 1]);
    }

    #[test]
    fn points_and_the_room_for_more_are_counted_while_they_are_in_memory() {
        const POINTS: usize = 1_000;
        let file: Arc<dyn File> = MemoryDevice::new().open("stripe", Access::Create).unwrap();
        let memory = Memory::new(1 << 20);
        let stripe = Stripe::new((7, 9), (Box::new(file), 2 * POINTS), &memory);
        let after = AtomicU64::new(0);
        let place = Place { number: 0, own: 0, after: &after, interval_ms: 100 };
        let (one, other) = (Binding::new(), Binding::new());
        for binding in [&one, &other] {
            binding.stripe.store(0, Ordering::Relaxed);
        }
        for (binding, number, count) in [(&one, 1, POINTS), (&other, 2, 4)] {
            for _ in 0..count {
                stripe.stage(binding, &point(number), place).unwrap();
            }
        }
        let staged = memory.staged();
        assert!((16 * POINTS..48 * POINTS).contains(&staged), "{staged} bytes");
        let taken = stripe.take();
        assert_eq!(memory.staged(), staged, "they are in memory while they are sealed");
        stripe.sealed(taken);
        assert_eq!(memory.staged(), staged, "the room stays");
        // A bank that had few points keeps room for few.
        stripe.stage(&one, &point(1), place).unwrap();
        stripe.sealed(stripe.take());
        assert!(memory.staged() < staged / 4, "{} bytes", memory.staged());
        drop(stripe);
        assert_eq!(memory.staged(), 0);
    }
}
