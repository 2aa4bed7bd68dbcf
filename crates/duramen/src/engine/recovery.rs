//! Opening a database: a new one, one to write, or one to read beside its writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::engine::background::Worker;
use crate::engine::compaction::progress::Progress;
use crate::engine::options::Options;
use crate::engine::place::{absence, check_place};
use crate::engine::room::Room;
use crate::engine::sealing::Sealer;
use crate::engine::{Engine, Owner, Shared, View, record, staging, unused};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Device, Lock};
use crate::journal::{self, Journal, JournalSettings, RecoveryReport};
use crate::limits::LOCK_RETRY_MS;
use crate::manifest::{self, Feature, Manifest};
use crate::memory::Memory;
use crate::revision::CommitSequence;
use crate::staging::{self as staging_files, StagedPoint, Staging};
use crate::store::{self, Store};
use crate::sync::{Mutex, RwLock};

pub(crate) const LOCK: &str = "LOCK";

/// How often reading beside a writer begins anew when a checkpoint comes between.
const READ_TRIES: usize = 100;

impl Engine {
    /// Opens or makes the database of a device.
    pub(crate) fn open(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        if options.read_only {
            return Self::open_to_read(device, options);
        }
        let is_there = Manifest::load(device.as_ref())?.is_some();
        if !is_there {
            if let Err(refused) = check_place(&device, options.create) {
                // Who is to wait for writers waits for one that makes the database as well.
                if options.wait_ms == 0 || !is_being_made(device.as_ref()) {
                    return Err(refused);
                }
            }
            let made = device.create_dir("");
            made.map_err(|error| Error::io("cannot make the database folder", error))?;
        }
        let lock = take_lock(device.as_ref(), options.wait_ms);
        let lock = lock.inspect_err(|_| device.remove_made())?;
        device.watch(manifest::PATH);
        // Only now: another process may have made it, or changed it, before the lock was ours.
        match Manifest::load(device.as_ref())? {
            Some(manifest) => Self::open_to_write(device, options, manifest, lock),
            None if !options.create => {
                // It was there when this looked, and whoever made it has removed it since.
                device.remove_made();
                Err(absence(&device))
            }
            None => Self::create(device, options, lock),
        }
    }

    fn create(device: Arc<dyn Device>, options: Options, lock: Box<dyn Lock>) -> Result<Self> {
        // What is removed below was never named by a manifest. Once more: another process may have
        // put something there before the lock was ours.
        check_place(&device, true).inspect_err(|_| device.remove_made())?;
        let made = make(&device, &options);
        let (journal, view, manifest) = made.inspect_err(|_| {
            // What stays after that is none, and the next one takes its place.
            if lock.is_in_place() {
                let _ = unused::remove(device.as_ref());
            }
        })?;
        let parts = (Some(journal), Some(lock));
        Self::assemble((device, options), parts, (view, manifest), true).started()
    }

    fn open_to_write(
        device: Arc<dyn Device>,
        options: Options,
        mut manifest: Manifest,
        lock: Box<dyn Lock>,
    ) -> Result<Self> {
        manifest.check_writable()?;
        // No facts of trees are found before the manifest that names their segment is stored.
        manifest.add(Feature::Kinds);
        // A process that was killed after it had renamed the manifest may leave one that a power
        // loss takes back, and what this one does not name is removed from here on.
        let synced = device.sync_dir("");
        synced.map_err(|error| Error::io("cannot sync the database folder", error))?;
        let store = Store::open(&device, &manifest, &Memory::new(options.memory_bytes))?;
        let view = View::new(Arc::new(store));
        let start = manifest.checkpoint;
        let settings = settings(&device, &options, &manifest);
        let (journal, report) =
            Journal::open(&settings, start, &mut |sequence, committed, body| {
                record::replay(&view, (sequence, committed), body)
            })?;
        let left = Progress::files(device.as_ref(), &mut manifest)?;
        store::remove_unnamed(device.as_ref(), &manifest, &left)?;
        let seals = |stripe| view.series.last_seal(stripe);
        let staged =
            staging::recover(device.as_ref(), (settings.database, start.sequence), &seals)?;
        let parts = (Some(journal), Some(lock));
        let engine = Self::assemble((device, options), parts, (view, manifest), false);
        let needed = engine.memory.young();
        let recovered = engine.recover(&report, &staged);
        recovered.map_err(|error| with_room_told(error, needed))?;
        staging_files::remove_all(engine.device.as_ref())?;
        engine.staging.begin(engine.manifest.lock().checkpoint.sequence);
        engine.started()
    }

    /// Makes commits durable that an earlier process did not end with.
    fn recover(&self, report: &RecoveryReport, staged: &[StagedPoint]) -> Result<()> {
        if !report.clean {
            self.with_step_of_reserve(&mut || self.begin_epoch(report.end.sequence))?;
        }
        self.commit_recovered(staged)?;
        if !report.clean && report.commits > 0 {
            // After a failed sync the operating system may hold pages of the journal as clean that
            // never reached the device, and writing them again could damage those that did. So
            // what was found is made durable in another place before anyone sees it.
            self.with_reserve(&mut || self.write_checkpoint())?;
        }
        Ok(())
    }

    fn open_to_read(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        let (view, manifest) = read(&device, &options)?;
        Ok(Self::assemble((device, options), (None, None), (view, manifest), false))
    }

    pub(super) fn assemble(
        (device, options): (Arc<dyn Device>, Options),
        (journal, lock): (Option<Journal>, Option<Box<dyn Lock>>),
        (view, manifest): (View, Manifest),
        was_created: bool,
    ) -> Self {
        let memory = Arc::clone(view.store.memory());
        memory.add_young(view.take_young_bytes());
        let room = Room::new(options.fitting_journal_bytes(device.free_bytes()));
        let shared = Shared {
            device,
            options,
            id: manifest.database_id,
            was_created,
            kept_names: AtomicU64::new(0),
            journal,
            view: RwLock::new(Arc::new(view)),
            erases: Arc::new(AtomicBool::new(manifest.purging)),
            manifest: Mutex::new(manifest),
            checkpoints: Mutex::default(),
            gate: RwLock::new(()),
            signal: Arc::default(),
            memory,
            compaction: Mutex::new(None),
            room,
            staging: Staging::default(),
            sealing: Arc::default(),
            compactions: AtomicU64::new(0),
            compacted_bytes: AtomicU64::new(0),
            gone_series: Mutex::default(),
            purges: Mutex::default(),
            given_up: Mutex::default(),
            lock,
        };
        Self { shared: Arc::new(shared), owner: Owner::This(None, None) }
    }

    /// Starts the threads, if there are to be any.
    fn started(mut self) -> Result<Self> {
        // What the journal has needs room for a checkpoint first.
        if self.journal_bytes() == 0 {
            self.settle_room()?;
        }
        if self.has_worker() {
            let shared = Arc::clone(&self.shared);
            let handle = || Self { shared: Arc::clone(&shared), owner: Owner::Other };
            // Where the second one cannot be started, the first one ends with this handle.
            self.owner = Owner::This(Some(Worker::start(handle())?), None);
            let sealer = Sealer::start(handle())?;
            if let Owner::This(_, started) = &mut self.owner {
                *started = Some(sealer);
            }
            // Opens after crashes leave a segment each, without a commit that would merge them.
            self.signal.wake();
        }
        Ok(self)
    }

    /// Goes to the newest state of the writer, if opened for reading.
    pub(crate) fn refresh(&self) -> Result<()> {
        if self.journal.is_some() {
            return Ok(());
        }
        // One at a time, so that nobody goes back to what was read before.
        let _one = self.checkpoints.lock();
        let (view, manifest) = read(&self.device, &self.options)?;
        self.check_is_own(&manifest)?;
        *self.manifest.lock() = manifest;
        *self.view.write() = Arc::new(view);
        Ok(())
    }

    /// Refuses to go on with another database that was put in the place of the one that was opened.
    pub(super) fn check_is_own(&self, manifest: &Manifest) -> Result<()> {
        if manifest.database_id == self.id {
            return Ok(());
        }
        let message = "the database is gone: another one is in its place; open that one";
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// Says durably that an epoch begins, after an unclean end that left the commits up to
    /// `recovered`.
    fn begin_epoch(&self, recovered: CommitSequence) -> Result<()> {
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.begin_epoch(recovered);
        next.store(self.device.as_ref())?;
        *manifest = next;
        Ok(())
    }

    /// The epoch: it rises with each open after an unclean end.
    pub(crate) fn epoch(&self) -> u64 {
        self.manifest.lock().epoch
    }

    /// The last commit of an epoch before this one that is still there, if that is known.
    pub(crate) fn last_kept_of(&self, epoch: u64) -> Option<CommitSequence> {
        let manifest = self.manifest.lock();
        let next = manifest.epochs.iter().find(|start| start.epoch == epoch + 1);
        next.map(|start| start.recovered)
    }
}

impl Engine {
    /// Reads the manifest and the journal since the last checkpoint from the device; an error if
    /// something that was durable does not verify.
    pub(crate) fn verify_journal(&self) -> Result<()> {
        for _ in 0..READ_TRIES {
            let load =
                || Manifest::load(self.device.as_ref())?.ok_or_else(|| absence(&self.device));
            let (manifest, device) = (load()?, Arc::clone(&self.device));
            let (id, start) = (manifest.database_id, manifest.checkpoint);
            let tail = journal::read_tail(device, id, start, &mut |_, _, _| Ok(()));
            let is_current = load()?.checkpoint == start;
            match tail {
                _ if !is_current => {}
                Err(error) if error.kind() == ErrorKind::Busy => {}
                tail => return tail.map(drop),
            }
        }
        Err(too_fast())
    }
}

/// Makes the files of a new database.
fn make(device: &Arc<dyn Device>, options: &Options) -> Result<(Journal, View, Manifest)> {
    let manifest = Manifest::new(device.entropy(), options.clock.now());
    store::create_directory(device.as_ref())?;
    store::remove_unnamed(device.as_ref(), &manifest, &[])?;
    let journal = Journal::create(&settings(device, options, &manifest), manifest.checkpoint)?;
    if let Err(error) = manifest.store(device.as_ref()) {
        journal.abandon(&error);
        return Err(error);
    }
    let store = Store::open(device, &manifest, &Memory::new(options.memory_bytes))?;
    Ok((journal, View::new(Arc::new(store)), manifest))
}

/// Reads the segments and the journal's tail beside a writer.
fn read(device: &Arc<dyn Device>, options: &Options) -> Result<(View, Manifest)> {
    for _ in 0..READ_TRIES {
        let Some(manifest) = Manifest::load(device.as_ref())? else {
            return Err(absence(device));
        };
        let store = match Store::open(device, &manifest, &Memory::new(options.memory_bytes)) {
            // Segments that a compaction replaced meanwhile are gone.
            Err(_) if Manifest::load(device.as_ref())?.is_some_and(|now| now != manifest) => {
                continue;
            }
            opened => opened?,
        };
        let mut view = View::new(Arc::new(store));
        let tail = journal::read_tail(
            Arc::clone(device),
            manifest.database_id,
            manifest.checkpoint,
            &mut |sequence, committed, body| record::replay(&view, (sequence, committed), body),
        );
        let is_current = Manifest::load(device.as_ref())?
            .is_some_and(|now| now.checkpoint == manifest.checkpoint);
        match tail {
            _ if !is_current => {}
            Err(error) if error.kind() == ErrorKind::Busy => {}
            Err(error) => return Err(error),
            Ok(report) => {
                (view.fixed, view.end) = (Some(report.end.sequence), Some(report.end));
                return Ok((view, manifest));
            }
        }
    }
    Err(too_fast())
}

/// Says how much room is needed where opening found none: what an earlier process left takes
/// hardly more than it takes in memory.
fn with_room_told(error: Error, bytes: usize) -> Error {
    if error.kind() != ErrorKind::Full {
        return error;
    }
    let mebibytes = bytes.div_ceil(1 << 20).max(1);
    let message = error.without_advice().to_owned();
    error.reworded(|_| {
        format!(
            "{message}: commits that a process left that was killed are written anew before the \
             database is opened for writing, which takes about {mebibytes} MiB: make room on the \
             device and open it again; nothing is lost, and opening it for reading needs no room"
        )
    })
}

fn too_fast() -> Error {
    let message = "the writer checkpoints faster than the journal can be read: try again";
    Error::new(ErrorKind::Busy, message)
}

fn settings(device: &Arc<dyn Device>, options: &Options, manifest: &Manifest) -> JournalSettings {
    JournalSettings {
        device: Arc::clone(device),
        clock: Arc::clone(&options.clock),
        database: manifest.database_id,
        wanted_bytes: options.fitting_journal_bytes(device.free_bytes()) as u64,
        background: options.background,
        erases: manifest.purging,
    }
}

/// Takes the write lock, waiting for another process if asked to.
pub(crate) fn take_lock(device: &dyn Device, wait_ms: u64) -> Result<Box<dyn Lock>> {
    let holder = std::process::id().to_string();
    let mut waited_ms = 0;
    loop {
        match device.lock(LOCK, &holder) {
            Ok(lock) => return Ok(lock),
            Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {
                return Err(Error::io("cannot lock the database", error));
            }
            Err(_) if waited_ms < wait_ms => {
                std::thread::sleep(std::time::Duration::from_millis(LOCK_RETRY_MS));
                waited_ms += LOCK_RETRY_MS;
            }
            Err(_) => {
                let advice = "wait for it to end, or for a while (--wait SECONDS); reading goes \
                              on beside it";
                return Err(written_by_another(device, advice));
            }
        }
    }
}

/// Whether another process is making a database there, or has just made it.
fn is_being_made(device: &dyn Device) -> bool {
    let held = device.hold(LOCK);
    held.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        || matches!(Manifest::load(device), Ok(Some(_)))
}

/// Keeps writers out without writing anything. Where the lock cannot be taken though nobody has it,
/// as on a file system without locks, that there is a writer cannot be told.
pub(crate) fn keep_writers_out(device: &dyn Device) -> Result<Option<Box<dyn Lock>>> {
    match device.hold(LOCK) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(written_by_another(device, "what it writes would be missed: let it end first"))
        }
        held => Ok(held.ok().flatten()),
    }
}

fn written_by_another(device: &dyn Device, advice: &str) -> Error {
    // It is empty for the moment between the first lock of a database and its text.
    let holder = match device.lock_holder(LOCK).unwrap_or_default().trim() {
        "" => "another process".to_owned(),
        id => format!("process {id}"),
    };
    let message = format!("the database is being written by {holder}: {advice}");
    Error::new(ErrorKind::Busy, message)
}
