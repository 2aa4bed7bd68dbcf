//! Single points on their way into a commit.
//!
//! A point that may reach the device later is written into the file of a *stripe* ([`stripe`]),
//! where a killed process cannot lose it, and becomes part of an ordinary commit with all that came
//! since when the stripe is *sealed*. The engine decides when that is (`engine/staging.rs`).
//!
//! Invariants:
//! - a series is bound to one stripe at a time, and to another one only when all its points are
//!   sealed: so its points stay in the order in which they came;
//! - whoever holds `sealing` knows that no point is between the stripes and the journal.

mod columns;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
pub(crate) mod layout;
mod stripe;

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::io::{Access, Device, is_numbered, zeros};
use crate::limits::{
    STAGING_BANK_BYTES_MAX, STAGING_BANK_BYTES_MIN, STAGING_JOURNAL_SHARE, STAGING_STRIPES_MAX,
};
use crate::memory::Memory;
use crate::revision::{CommitSequence, Micros};
use crate::series::Lossy;
use crate::sync::{Mutex, MutexGuard};
use crate::tree::cell_key::TreeId;

pub(crate) use columns::{Columns, bits};
pub(crate) use layout::StagedPoint;
pub(crate) use stripe::{Place, Staged, Stripe, Taken};

/// The folder of the files.
pub(crate) const DIRECTORY: &str = "staging";
/// Of a series that no point was staged of yet.
const UNBOUND: usize = usize::MAX;
/// Entries of series without staged points that are kept until they are looked through.
const IDLE_BINDINGS: usize = 1_024;

/// What is staged of an open database.
#[derive(Debug)]
pub(crate) struct Staging {
    /// Made when a thread first needs them, and kept until the database is closed.
    stripes: [OnceLock<Stripe>; STAGING_STRIPES_MAX],
    /// Held by whoever makes one.
    making: Mutex<()>,
    /// Held from before points are taken until readers see their commit.
    sealing: Mutex<()>,
    /// Held by who appends to a series that thins its points, while these are thinned and queued.
    thinning: Mutex<()>,
    bindings: Mutex<Bindings>,
    /// The last checkpoint, which new generations come after.
    checkpoint: AtomicU64,
    /// When the next seal is due; [`NEVER`] if there is nothing to seal.
    due: AtomicI64,
    /// Rises after each commit that changed the catalogue of the series.
    catalogue: AtomicU64,
}

/// When nothing is due.
const NEVER: i64 = i64::MAX;

/// Where the points of a series are staged. All its handles share it.
#[derive(Debug)]
pub(crate) struct Binding {
    /// The number of the stripe, or [`UNBOUND`]. Changes only under that stripe's lock.
    stripe: AtomicUsize,
    /// The last generation of that stripe that got a point of the series.
    generation: AtomicU64,
    /// The column of that generation that its points are in.
    column: AtomicUsize,
    /// What of its points is stored, as who began to stage them last was told.
    lossy: Mutex<Option<Lossy>>,
}

#[derive(Debug, Default)]
struct Bindings {
    all: FxHashMap<TreeId, Arc<Binding>>,
    /// How many there were after idle ones were last dropped.
    kept: usize,
}

/// The right to take points out of the stripes.
pub(crate) type SealTurn<'s> = MutexGuard<'s, ()>;

impl Default for Staging {
    fn default() -> Self {
        Self {
            stripes: std::array::from_fn(|_| OnceLock::new()),
            making: Mutex::default(),
            sealing: Mutex::default(),
            thinning: Mutex::default(),
            bindings: Mutex::default(),
            checkpoint: AtomicU64::new(0),
            due: AtomicI64::new(NEVER),
            catalogue: AtomicU64::new(1),
        }
    }
}

impl Binding {
    fn new() -> Self {
        Self {
            stripe: AtomicUsize::new(UNBOUND),
            generation: AtomicU64::new(0),
            column: AtomicUsize::new(0),
            lossy: Mutex::default(),
        }
    }
}

impl Staging {
    /// The stripes that there are.
    pub(crate) fn stripes(&self) -> impl Iterator<Item = &Stripe> {
        self.stripes.iter().filter_map(OnceLock::get)
    }

    /// Whether there is a point that is no commit yet.
    pub(crate) fn has_staged(&self) -> bool {
        self.stripes().any(Stripe::has_staged)
    }

    /// Whether there is one of a series.
    pub(crate) fn has_staged_of(&self, binding: &Binding) -> bool {
        let stripe = self.stripes.get(binding.stripe.load(Ordering::Acquire));
        let stripe = stripe.and_then(OnceLock::get);
        stripe.is_some_and(|stripe| stripe.is_staged(binding.generation.load(Ordering::Acquire)))
    }

    /// The binding of a series, if any of its points may be staged.
    pub(crate) fn binding(&self, series: TreeId) -> Option<Arc<Binding>> {
        self.stripes().next()?;
        self.bindings.lock().all.get(&series).cloned()
    }

    /// The binding of a series that a point is about to be staged of, and what of its points is to
    /// be stored.
    pub(crate) fn bind(&self, series: TreeId, lossy: Option<Lossy>) -> Arc<Binding> {
        let mut bindings = self.bindings.lock();
        if bindings.all.len() > 2 * bindings.kept + IDLE_BINDINGS {
            bindings
                .all
                .retain(|_, binding| Arc::strong_count(binding) > 1 || self.has_staged_of(binding));
            bindings.kept = bindings.all.len();
        }
        let binding = bindings.all.entry(series).or_insert_with(|| Arc::new(Binding::new()));
        *binding.lossy.lock() = lossy;
        Arc::clone(binding)
    }

    /// Waits until nothing is on its way from the stripes into the journal.
    pub(crate) fn seal_turn(&self) -> SealTurn<'_> {
        self.sealing.lock()
    }

    /// Waits until nobody else appends to a series that thins its points. Who has this turn waits
    /// for no other one.
    pub(crate) fn thinning_turn(&self) -> MutexGuard<'_, ()> {
        self.thinning.lock()
    }

    /// Nothing is staged yet, and the last checkpoint is this one.
    pub(crate) fn begin(&self, checkpoint: CommitSequence) {
        self.checkpoint.store(checkpoint.0, Ordering::Release);
    }

    /// From now on the points that are staged come after a checkpoint, those of now included.
    pub(crate) fn stamp(&self, _turn: &SealTurn<'_>, after: CommitSequence) -> Result<()> {
        self.checkpoint.store(after.0, Ordering::Release);
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("forget_stamp") {
            return Ok(());
        }
        let mut stripes = self.stripes();
        let stamped = stripes.try_for_each(|stripe| stripe.stamp(after));
        stamped.map_err(|error| Error::io(format!("cannot write to {DIRECTORY}"), error))
    }

    /// Writes a point if that is all there is to do, as it nearly always is; whether it did.
    #[inline]
    pub(crate) fn stage_another(
        &self,
        binding: &Binding,
        point: &StagedPoint,
        interval_ms: u32,
    ) -> bool {
        let own = own_stripe();
        let stripe = self.stripes.get(own).and_then(OnceLock::get);
        stripe.is_some_and(|stripe| stripe.stage_another(binding, point, (own, interval_ms)))
    }

    /// Writes a point into the stripe of its series, which is that of the thread if it has none.
    /// `make` makes a stripe.
    pub(crate) fn stage(
        &self,
        binding: &Binding,
        point: &StagedPoint,
        interval_ms: u32,
        make: &dyn Fn(usize) -> Result<Stripe>,
    ) -> Result<Staged> {
        let own = own_stripe();
        loop {
            let number = binding.stripe.load(Ordering::Acquire);
            if number == UNBOUND {
                let (order, failed) = (Ordering::AcqRel, Ordering::Acquire);
                let _ = binding.stripe.compare_exchange(UNBOUND, own, order, failed);
                continue;
            }
            let stripe = self.stripe(number, make)?;
            if own != number {
                self.stripe(own, make)?;
            }
            let place = Place { number, own, after: &self.checkpoint, interval_ms };
            let staged = stripe.stage(binding, point, place);
            let staged = staged.map_err(|error| {
                Error::io(format!("cannot write to {}", path(stripe.id)), error)
            })?;
            if staged != Staged::Elsewhere {
                return Ok(staged);
            }
        }
    }

    fn stripe(&self, number: usize, make: &dyn Fn(usize) -> Result<Stripe>) -> Result<&Stripe> {
        let slot = &self.stripes[number];
        if let Some(stripe) = slot.get() {
            return Ok(stripe);
        }
        let _one = self.making.lock();
        if slot.get().is_none() {
            let is_set = slot.set(make(number)?).is_ok();
            assert!(is_set, "one thread at a time makes stripes");
        }
        Ok(slot.get().expect("it was made"))
    }

    /// Has a seal due no later than `at`; whether it was due later, or not at all.
    pub(crate) fn set_due(&self, at: Micros) -> bool {
        self.due.fetch_min(at.0, Ordering::AcqRel) > at.0
    }

    /// When the next seal is due, if one is.
    pub(crate) fn due(&self) -> Option<Micros> {
        let due = self.due.load(Ordering::Acquire);
        (due != NEVER).then_some(Micros(due))
    }

    /// With nothing staged, forgets what was due by now: a point may be sealed by somebody else
    /// before it is said when it is due. Whether a seal is due all the same, as another point came
    /// meanwhile.
    pub(crate) fn settle_due(&self, now: Micros) -> bool {
        if self.due().is_none_or(|due| due > now) {
            return false;
        }
        // Whatever is taken away here was said after its point was staged, which is seen then.
        self.due.swap(NEVER, Ordering::AcqRel);
        self.has_staged() && self.set_due(now)
    }

    /// Nothing is due until a point is staged.
    pub(crate) fn clear_due(&self) {
        self.due.store(NEVER, Ordering::Release);
    }

    /// A number that stays the same while the catalogue of the series does.
    #[inline]
    pub(crate) fn catalogue(&self) -> u64 {
        self.catalogue.load(Ordering::Acquire)
    }

    /// The catalogue of the series has changed.
    pub(crate) fn catalogue_changed(&self) {
        self.catalogue.fetch_add(1, Ordering::AcqRel);
    }
}

/// The number of the stripe that this thread uses for series that have none.
#[inline]
fn own_stripe() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(UNBOUND) };
    }
    NUMBER.with(|number| {
        if number.get() == UNBOUND {
            number.set(THREADS.fetch_add(1, Ordering::Relaxed) % STAGING_STRIPES_MAX);
        }
        number.get()
    })
}

/// The file of a stripe.
fn path(stripe: u64) -> String {
    format!("{DIRECTORY}/{stripe:016x}.stripe")
}

/// Whether the engine gives a file in the folder such a name.
pub(crate) fn is_of_engine(name: &str) -> bool {
    is_numbered(name, ".stripe", u8::is_ascii_hexdigit)
}

/// Places of a bank, in a database whose journal is to be of some length.
fn places(journal_bytes: usize) -> usize {
    let bytes = journal_bytes / STAGING_JOURNAL_SHARE;
    bytes.clamp(STAGING_BANK_BYTES_MIN, STAGING_BANK_BYTES_MAX) / layout::RECORD_BYTES
}

/// Makes a file with room for two banks. The room is there when this returns, so that no write to
/// it finds the device full.
pub(crate) fn make(
    device: &dyn Device,
    (database, journal_bytes): (u128, usize),
    memory: &Arc<Memory>,
) -> Result<Stripe> {
    // The low half of a number that is drawn for this alone.
    let id = u64::try_from(device.entropy() & u128::from(u64::MAX)).unwrap_or_default();
    let (path, places) = (path(id), places(journal_bytes));
    let bytes = layout::file_bytes(places);
    let make = || {
        let file = device.open(&path, Access::Create)?;
        zeros::write(file.as_ref(), 0, bytes)?;
        crate::io::write_all_at(file.as_ref(), &layout::file_header(database, id, places), 0)?;
        file.sync()?;
        device.sync_dir(DIRECTORY)?;
        device.sync_dir("")?;
        device.map(&path, bytes)
    };
    match make() {
        Ok(mapping) => Ok(Stripe::new((database, id), (mapping, places), memory)),
        Err(error) => {
            // Room that half a file takes may be what the rest of the database needs.
            let _ = device.remove(&path);
            Err(Error::io(format!("cannot make {path}"), error))
        }
    }
}

/// What the files of an earlier process have.
pub(crate) fn read(device: &dyn Device, database: u128) -> Result<Vec<layout::FoundStripe>> {
    let mut all = Vec::new();
    for name in names(device)? {
        let path = format!("{DIRECTORY}/{name}");
        let failed = |error| Error::io(format!("cannot read {path}"), error);
        let file = device.open(&path, Access::Read).map_err(failed)?;
        let len = file.len().map_err(failed)?;
        let mut bytes = vec![0; usize::try_from(len.min(layout::BANKS_AT)).unwrap_or_default()];
        crate::io::read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed)?;
        // Banks may be larger or smaller than those of this process.
        let wanted = layout::places(&bytes, database).map(layout::file_bytes);
        let Some(wanted) = wanted.filter(|wanted| *wanted <= len) else { continue };
        bytes.resize(usize::try_from(wanted).unwrap_or_default(), 0);
        crate::io::read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed)?;
        all.extend(layout::read(&bytes, database));
    }
    Ok(all)
}

/// Removes the stripes, whose points are all durable elsewhere.
pub(crate) fn remove_all(device: &dyn Device) -> Result<()> {
    let names = names(device)?;
    if names.is_empty() {
        return Ok(());
    }
    let remove = || {
        names.iter().try_for_each(|name| device.remove(&format!("{DIRECTORY}/{name}")))?;
        device.sync_dir(DIRECTORY)
    };
    remove().map_err(|error| Error::io(format!("cannot remove what is in {DIRECTORY}"), error))
}

/// The names of the files that are of the engine.
fn names(device: &dyn Device) -> Result<Vec<String>> {
    let mut names = match device.list(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => {
            listed.map_err(|error| Error::io(format!("cannot look into {DIRECTORY}"), error))?
        }
    };
    names.retain(|name| is_of_engine(name));
    Ok(names)
}
