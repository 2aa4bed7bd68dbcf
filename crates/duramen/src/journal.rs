//! The append-only commit journal: what makes a commit durable.
//!
//! Invariants:
//! - commits are queued, written, published and replayed in the order of their sequence, which
//!   grows by one, with timestamps that rise strictly;
//! - a commit that is published, and `Sync`, is on the device;
//! - space is there before a commit gets its sequence, so that a full disk refuses it cleanly;
//! - a failed write or sync is final: nothing is published after it;
//! - no file is made in a place that another process has taken, or where it has put other content
//!   over what is there, and what is synced there ends with the next look at it, which is at most a
//!   millisecond of commits away.
//!
//! Whoever waits for a commit and finds the device idle becomes the *leader*: it writes and syncs
//! everything queued as one group. Commits that arrive meanwhile form the next group.

mod files;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod group;
pub(crate) mod identity;
mod queue;
mod recovery;
pub(crate) mod salvage;
mod writer;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use self::files::{Directory, JournalFile};
use self::queue::{Batch, Failure, Queue};
use self::writer::Writer;
use crate::io::{Access, Device, displaced};
use crate::limits::COMMIT_BYTES_MAX;
use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::{Clock, CommitSequence, Durability, Error, ErrorKind, Micros, Result};

pub(crate) use self::files::{DIRECTORY, path};
pub(crate) use self::recovery::{RecoveryReport, Replay};

/// What a journal works with.
#[derive(Debug, Clone)]
pub(crate) struct JournalSettings {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The database's id: groups of another one never verify.
    pub(crate) database: u128,
    /// Bytes of the journal at which a checkpoint is due: files are not much longer.
    pub(crate) wanted_bytes: u64,
    /// Whether a thread makes the next file and syncs `Interval` commits in time. Without it the
    /// appending threads do both, when they come by.
    pub(crate) background: bool,
    /// Whether a purge is under way: files are overwritten before they are removed or used again.
    pub(crate) erases: bool,
}

/// A place between two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JournalPosition {
    /// The number of the file.
    pub(crate) file: u64,
    /// Bytes before the place in that file.
    pub(crate) offset: u64,
}

/// A place between two groups, with the last commit before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JournalPoint {
    pub(crate) position: JournalPosition,
    pub(crate) sequence: CommitSequence,
    pub(crate) timestamp: Micros,
}

/// A queued commit: what to wait for.
#[derive(Debug, Clone, Copy)]
#[must_use = "a commit is acknowledged by waiting for its ticket"]
pub(crate) struct Ticket {
    pub(crate) sequence: CommitSequence,
    pub(crate) timestamp: Micros,
    batch: u64,
}

/// What the journal has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct JournalCounters {
    pub(crate) commits: u64,
    pub(crate) groups: u64,
    pub(crate) syncs: u64,
    pub(crate) bytes: u64,
}

/// The journal of an open database.
#[derive(Debug)]
pub(crate) struct Journal {
    shared: Arc<Shared>,
    background: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    clock: Arc<dyn Clock>,
    directory: Directory,
    published: AtomicU64,
    /// Whether it failed, for those who do not take the queue's lock.
    is_poisoned: AtomicBool,
    queue: Mutex<Queue>,
    /// Locked by the leader only.
    writer: Mutex<Writer>,
    /// Locked by whoever makes, recycles or removes files.
    preparing: Mutex<()>,
    /// Waiting for their batch: those of even and of odd batches.
    turns: [Condvar; 2],
    /// Waiting for anything else to be written or synced.
    progress: Condvar,
    /// The background thread, waiting for work.
    work: Condvar,
}

impl JournalPosition {
    fn after(self, bytes: u64) -> Self {
        Self { file: self.file, offset: self.offset.saturating_add(bytes) }
    }
}

impl JournalPoint {
    /// Where the journal of a new database starts.
    pub(crate) const START: Self = Self {
        position: JournalPosition { file: 1, offset: 0 },
        sequence: CommitSequence(0),
        timestamp: Micros(i64::MIN),
    };
}

/// Replays the commits after `start` beside a running writer, without writing: how the journal
/// reads up to the first group that does not verify. `Corrupt` if that group was durable; that and
/// `Busy` may also mean that the writer recycled files meanwhile: read the manifest again.
pub(crate) fn read_tail(
    device: Arc<dyn Device>,
    database: u128,
    start: JournalPoint,
    replay: &mut Replay<'_>,
) -> Result<RecoveryReport> {
    let directory = Directory::new(device, Access::Read);
    let found = recovery::read_beside(&directory, database, start, replay)?;
    // What is shown must not be lost with the power afterwards.
    for file in &found.files {
        file.file.sync().map_err(|e| Error::io(files::path(file.number), e))?;
    }
    if directory.numbers()?.binary_search(&start.position.file).is_err() {
        let message = "the journal was checkpointed while it was read: read the MANIFEST again";
        return Err(Error::new(ErrorKind::Busy, message));
    }
    Ok(found.report)
}

/// The path of a journal file that has been written to, if there is one.
pub(crate) fn written(device: Arc<dyn Device>) -> Result<Option<String>> {
    match Directory::new(device, Access::Read).written() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found,
    }
}

/// Whether the journal goes on after a place, beside a running writer. It may be said that it does
/// where that cannot be told, such as of a file that is used for something else now.
pub(crate) fn goes_on(device: Arc<dyn Device>, database: u128, end: JournalPoint) -> bool {
    let directory = Directory::new(device, Access::Read);
    let found = recovery::read(&directory, database, end, &mut |_, _, _| Ok(()));
    found.map_or(true, |found| found.report.commits > 0)
}

impl Journal {
    /// Makes the journal of a new database, which goes on after `start`, at the place where
    /// [`JournalPoint::START`] is.
    pub(crate) fn create(settings: &JournalSettings, start: JournalPoint) -> Result<Self> {
        assert_eq!(start.position, JournalPoint::START.position, "a new journal starts elsewhere");
        let directory = Directory::new(Arc::clone(&settings.device), Access::Write);
        directory.create()?;
        let first = Arc::new(directory.make(start.position.file, files::next_length(0, 0))?);
        let writer = Writer::new(settings.database, Arc::clone(&first), start.position, false);
        let queue = Queue::new(start, vec![first], VecDeque::new(), settings.wanted_bytes);
        Self::start(settings, directory, queue, writer)
    }

    /// Replays the commits after `start` and makes the journal ready to go on where they end. After
    /// an unclean end the caller makes what was replayed durable before anyone sees it: a system
    /// that reported a failed sync may hold pages as clean that are not on the device.
    pub(crate) fn open(
        settings: &JournalSettings,
        start: JournalPoint,
        replay: &mut Replay<'_>,
    ) -> Result<(Self, RecoveryReport)> {
        let directory = Directory::new(Arc::clone(&settings.device), Access::Write);
        directory.set_erasing(settings.erases);
        let found = recovery::read(&directory, settings.database, start, replay)?;
        let end = found.report.end;
        let numbers = directory.numbers()?;
        let (before, later): (Vec<u64>, Vec<u64>) = numbers
            .into_iter()
            .filter(|number| *number < start.position.file || *number > end.position.file)
            .partition(|number| *number < start.position.file);
        let mut ready = VecDeque::new();
        if found.report.clean {
            for (number, expected) in later.iter().zip(end.position.file + 1..) {
                // Ready files are used in order: one that does not continue the numbers is not.
                if *number != expected {
                    break;
                }
                let file = directory.open_as_found(*number)?;
                // One that was cut, and those after it, are made anew when they are needed.
                if !file.is_whole() {
                    break;
                }
                ready.push_back(Arc::new(file));
            }
        } else {
            found.repair(&directory, settings.database, &later)?;
        }
        for number in before {
            directory.remove(number)?;
        }
        let last = Arc::clone(found.files.last().expect("recovery reads at least one file"));
        let writer = Writer::new(settings.database, last, end.position, found.report.clean);
        let queue = Queue::new(end, found.files, ready, settings.wanted_bytes);
        Ok((Self::start(settings, directory, queue, writer)?, found.report))
    }

    fn start(
        settings: &JournalSettings,
        directory: Directory,
        queue: Queue,
        writer: Writer,
    ) -> Result<Self> {
        let shared = Arc::new(Shared {
            clock: Arc::clone(&settings.clock),
            directory,
            published: AtomicU64::new(queue.tail.sequence.0),
            is_poisoned: AtomicBool::new(false),
            queue: Mutex::new(queue),
            writer: Mutex::new(writer),
            preparing: Mutex::new(()),
            turns: [Condvar::new(), Condvar::new()],
            progress: Condvar::new(),
            work: Condvar::new(),
        });
        let background = settings.background.then(|| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name("duramen-journal".to_owned());
            thread.spawn(move || shared.work_in_background())
        });
        let background = background.transpose().map_err(|e| Error::io("starting a thread", e))?;
        Ok(Self { shared, background })
    }

    /// Queues one commit. `stage` is called under the queue's lock with its sequence and its
    /// timestamp: it makes the commit visible above the published sequence, and what it appends,
    /// at most [`queue::STAGED_HEADER_BYTES_MAX`] bytes, stands before `body`. It must not call the
    /// journal.
    ///
    /// `Full` if the commit is too large or the disk has no room: then nothing was staged.
    pub(crate) fn append(
        &self,
        body: Cow<'_, [u8]>,
        durability: Durability,
        stage: impl FnOnce(CommitSequence, Micros, &mut Vec<u8>),
    ) -> Result<Ticket> {
        if body.len() > COMMIT_BYTES_MAX {
            let len = body.len();
            let message = format!(
                "a commit of {len} bytes is over the limit of {COMMIT_BYTES_MAX}: split it"
            );
            return Err(Error::new(ErrorKind::Full, message));
        }
        let mut queue = self.shared.reserve(body.len())?;
        let ticket = queue.push(body, (self.shared.clock.now(), durability), stage);
        if self.background.is_some() && queue.wants_file() {
            self.shared.work.notify_one();
        }
        Ok(ticket)
    }

    /// Waits until the commit is acknowledged, as its durability promises. `Unknown` if its write
    /// or sync failed, `Poisoned` if an earlier one did.
    pub(crate) fn wait(&self, ticket: Ticket) -> Result<()> {
        self.shared.wait(ticket.sequence, self.shared.turn(ticket.batch))
    }

    /// Waits until `sequence`, found in staged state, is published.
    pub(crate) fn wait_published(&self, sequence: CommitSequence) -> Result<()> {
        self.shared.wait(sequence, &self.shared.progress)
    }

    /// Waits until `sequence` is durable.
    pub(crate) fn wait_durable(&self, sequence: CommitSequence) -> Result<()> {
        self.shared.wait_durable(sequence)
    }

    /// Waits until a commit after `sequence` is published, but no longer than `timeout`; whether
    /// one is. `Poisoned` if there will be none.
    pub(crate) fn wait_after(&self, sequence: CommitSequence, timeout: Duration) -> Result<bool> {
        let clock = &self.shared.clock;
        let begin = clock.now();
        let mut queue = self.shared.queue.lock();
        while self.published() <= sequence {
            queue.check()?;
            // Others are told here that the device is idle, which is no reason to wait longer.
            let waited = u64::try_from(clock.now().0.saturating_sub(begin.0)).unwrap_or_default();
            let left = timeout.saturating_sub(Duration::from_micros(waited));
            // A group is published by whoever wrote it before the queue is unlocked again.
            if left.is_zero() || self.shared.progress.wait_for(&mut queue, left).timed_out() {
                break;
            }
        }
        Ok(self.published() > sequence)
    }

    /// The last commit that readers may see.
    pub(crate) fn published(&self) -> CommitSequence {
        self.shared.published()
    }

    /// Makes everything queued so far durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.shared.flush()
    }

    /// Has the next sync look whether the journal is still at its place.
    pub(crate) fn look_again(&self) {
        self.shared.writer.lock().look_again();
    }

    /// Why the journal takes no more commits, if so.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        self.shared.queue.lock().check().err()
    }

    /// The error of [`poisoned`](Self::poisoned), found without waiting for a lock.
    #[inline]
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.shared.is_poisoned.load(Ordering::Acquire) {
            return self.shared.queue.lock().check();
        }
        Ok(())
    }

    /// The published sequence and the place right after the group that ends with it.
    pub(crate) fn tail(&self) -> JournalPoint {
        self.shared.queue.lock().tail
    }

    /// Bytes queued or written after `position`.
    pub(crate) fn bytes_since(&self, position: JournalPosition) -> u64 {
        self.shared.queue.lock().bytes_since(position)
    }

    /// What was done since the journal was opened.
    pub(crate) fn counters(&self) -> JournalCounters {
        self.shared.queue.lock().counters
    }

    /// Removes the files that wait to be used, and makes no more until it may
    /// [grow](Self::let_grow): what room there is is needed for something else. Whether there was
    /// such a file.
    pub(crate) fn hold(&self) -> Result<bool> {
        self.shared.hold()
    }

    /// Makes files again when commits need them.
    pub(crate) fn let_grow(&self) {
        let mut queue = self.shared.queue.lock();
        (queue.is_held, queue.refused) = (false, false);
    }

    /// The bytes that it seldom exceeds from now on.
    pub(crate) fn want(&self, bytes: u64) {
        self.shared.queue.lock().wanted_bytes = bytes;
    }

    /// Recycles or removes the files wholly before `position`, which a durable manifest names.
    pub(crate) fn checkpointed(&self, position: JournalPosition) -> Result<()> {
        self.shared.checkpointed(position)
    }

    /// From now on files are overwritten before they are removed or used again, or not any more.
    pub(crate) fn set_erasing(&self, erases: bool) {
        self.shared.directory.set_erasing(erases);
    }

    /// Goes on in a file of zeros, and overwrites those that wait to be used: from the place that
    /// is returned on no file has what the journal once had. Everything has to be durable, and
    /// nothing queued.
    pub(crate) fn renew(&self) -> Result<JournalPoint> {
        self.shared.renew()
    }

    /// Makes everything durable and writes an end mark, by which the next open knows that the
    /// journal was closed in order. Commits may follow.
    pub(crate) fn close(&self) -> Result<()> {
        self.shared.close()
    }

    /// Takes the end mark back, if one stands at the end: what comes next may have no bytes here.
    pub(crate) fn unmark(&self) -> Result<()> {
        let mut queue = self.shared.queue.lock();
        queue.check()?;
        self.shared.exclusively(&mut queue, |writer| {
            writer.unmark().map_err(|error| Failure::sync(&error))
        });
        queue.check()
    }

    /// A manifest makes the commits after the tail up to this one durable, without bytes in the
    /// journal: they are published. Everything before has to be durable, and nothing queued.
    pub(crate) fn pass(&self, sequence: CommitSequence, timestamp: Micros) {
        self.shared.queue.lock().pass(sequence, timestamp);
        self.shared.published.store(sequence.0, Ordering::Release);
        self.shared.progress.notify_all();
    }

    /// Takes no more commits: whether one is kept is known only after reopening.
    pub(crate) fn poison(&self, why: &Error) {
        self.shared.fail(&mut self.shared.queue.lock(), Failure::sync(why));
    }

    /// Ends without writing anything more: the database that it was made for could not be made.
    pub(crate) fn abandon(self, why: &Error) {
        self.poison(why);
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(thread) = self.background.take() {
            self.shared.queue.lock().stopping = true;
            self.shared.work.notify_all();
            // A thread that panicked has said so; there is nothing to add here.
            let _ = thread.join();
        }
        // Without the mark the next open recovers as after a crash.
        let _ = self.shared.close();
    }
}

impl Shared {
    fn published(&self) -> CommitSequence {
        CommitSequence(self.published.load(Ordering::Acquire))
    }

    /// The queue, with room for a commit of `body_len` bytes.
    fn reserve(&self, body_len: usize) -> Result<MutexGuard<'_, Queue>> {
        loop {
            let mut queue = self.queue.lock();
            queue.check()?;
            if queue.make_room(body_len) {
                return Ok(queue);
            }
            if queue.is_held {
                let message = "the device has no room for a checkpoint, which comes before the \
                               journal's next file: free some on the device, or bound the history \
                               of documents and compact";
                return Err(Error::new(ErrorKind::Full, message));
            }
            drop(queue);
            self.prepare(|queue| !queue.make_room(body_len), body_len)?;
        }
    }

    /// Makes the next file if it is still `needed`.
    fn prepare(&self, needed: impl Fn(&mut Queue) -> bool, body_len: usize) -> Result<()> {
        let _one = self.preparing.lock();
        let mut queue = self.queue.lock();
        queue.check()?;
        if queue.is_held || !needed(&mut queue) {
            return Ok(());
        }
        let (number, length, mut ready) = queue.plan_file(body_len);
        drop(queue);
        let made = self.make_file(number, length, queue::least_length(body_len));
        let mut queue = self.queue.lock();
        if let Ok(file) = made {
            ready.pop_front_if(|short| short.number == number);
            ready.push_front(Arc::new(file));
            queue.ready = ready;
            return Ok(());
        }
        queue.ready = ready;
        queue.refused = true;
        made.map(drop).map_err(|failure| self.refuse(&mut queue, failure))
    }

    fn hold(&self) -> Result<bool> {
        self.queue.lock().is_held = true;
        // Whoever makes a file now comes to an end first.
        let _one = self.preparing.lock();
        let ready = std::mem::take(&mut self.queue.lock().ready);
        if ready.is_empty() {
            return Ok(false);
        }
        // The last one first: those that stay after an error still follow each other.
        for file in ready.iter().rev() {
            self.directory.remove(file.number)?;
        }
        self.directory.sync().map_err(|failure| self.refuse(&mut self.queue.lock(), failure))?;
        Ok(true)
    }

    /// A file of `length`, or of `least` if the disk has no room for more.
    fn make_file(
        &self,
        number: u64,
        length: u64,
        least: u64,
    ) -> Result<JournalFile, files::Failure> {
        match self.directory.make(number, length) {
            Err(files::Failure::Refused(error))
                if error.kind() == ErrorKind::Full && least < length =>
            {
                self.directory.make(number, least)
            }
            made => made,
        }
    }

    /// Poisons the journal if a sync failed, or the place is somebody else's.
    fn refuse(&self, queue: &mut Queue, failure: files::Failure) -> Error {
        let is_final = matches!(failure, files::Failure::Sync(_)) || !self.directory.is_in_place();
        let error: Error = failure.into();
        if is_final {
            self.fail(queue, Failure::sync(&error));
        }
        error
    }

    /// Refuses to write and sync what nobody finds any more.
    fn check_place(&self, writer: &mut Writer, batch: Option<&Batch>) -> Result<(), Failure> {
        if batch.is_some_and(|batch| writer.has_looked(batch))
            || writer.look(&self.directory, batch)
        {
            return Ok(());
        }
        let error = Error::io("syncing the journal", displaced());
        let Some(batch) = batch else { return Err(Failure::sync(&error)) };
        let message = format!("it is not kept: {error}");
        Err(Failure { kind: error.kind(), message, group: Some((batch.first, batch.last())) })
    }

    fn wait(&self, sequence: CommitSequence, turn: &Condvar) -> Result<()> {
        if self.published() >= sequence {
            return Ok(());
        }
        let mut queue = self.queue.lock();
        assert!(sequence <= queue.last_sequence(), "commit {sequence} was never queued");
        loop {
            if self.published() >= sequence {
                return Ok(());
            }
            if let Some(failure) = &queue.failure {
                return Err(failure.error(sequence));
            }
            if queue.leading {
                turn.wait(&mut queue);
            } else {
                self.lead(&mut queue);
            }
        }
    }

    fn flush(&self) -> Result<()> {
        let last = self.queue.lock().last_sequence();
        self.wait_durable(last)
    }

    fn wait_durable(&self, sequence: CommitSequence) -> Result<()> {
        let mut queue = self.queue.lock();
        loop {
            queue.check()?;
            if queue.synced >= sequence {
                return Ok(());
            }
            queue.sync_wanted = true;
            if queue.leading {
                self.progress.wait(&mut queue);
            } else {
                self.lead(&mut queue);
            }
        }
    }

    /// Writes the next batch, and syncs if one of its commits or a flush wants it.
    fn lead(&self, queue: &mut MutexGuard<'_, Queue>) {
        let sync = std::mem::take(&mut queue.sync_wanted);
        let Some(mut batch) = queue.pop() else {
            let synced = self.exclusively(queue, |writer| {
                self.check_place(writer, None)?;
                writer.sync().map_err(|e| Failure::sync(&e))
            });
            if synced.is_some() {
                queue.synced();
            }
            return;
        };
        let sync = sync || batch.sync;
        #[cfg(duramen_teeth)]
        let sync = sync && !crate::teeth::bites("acknowledge_early");
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("publish_early") {
            self.published.store(batch.last().0, Ordering::Release);
        }
        let durable = self.exclusively(queue, |writer| {
            if sync {
                self.check_place(writer, Some(&batch))?;
            }
            writer.write(&mut batch, sync)
        });
        if let Some(durable) = durable {
            self.publish(queue, batch, durable);
        }
    }

    /// Lets `work` have the device while the queue is unlocked; its failure is final.
    fn exclusively<T>(
        &self,
        queue: &mut MutexGuard<'_, Queue>,
        work: impl FnOnce(&mut Writer) -> Result<T, Failure>,
    ) -> Option<T> {
        assert!(!queue.leading, "one thread at a time writes");
        queue.leading = true;
        let (done, syncs) = MutexGuard::unlocked(queue, || {
            let mut writer = self.writer.lock();
            (work(&mut writer), writer.syncs)
        });
        queue.leading = false;
        queue.counters.syncs = syncs;
        // Whoever came meanwhile waits for its turn: one of the next batch leads on.
        self.progress.notify_all();
        let next = queue.front();
        #[cfg(duramen_teeth)]
        let next = next.filter(|_| !crate::teeth::bites("forget_next_leader"));
        if let Some(next) = next {
            self.turn(next).notify_one();
        }
        done.map_err(|failure| self.fail(queue, failure)).ok()
    }

    /// Raises the published sequence over `batch`, then wakes those who wait for that.
    fn publish(&self, queue: &mut Queue, batch: Batch, durable: bool) {
        let turn = batch.number;
        queue.written(batch);
        if durable {
            queue.synced();
        }
        self.published.store(queue.tail.sequence.0, Ordering::Release);
        self.turn(turn).notify_all();
        if queue.due.is_some() {
            self.work.notify_one();
        }
    }

    fn turn(&self, batch: u64) -> &Condvar {
        &self.turns[usize::from(!batch.is_multiple_of(2))]
    }

    /// Poisons the journal: what is queued is dropped, and all who wait are told.
    fn fail(&self, queue: &mut Queue, failure: Failure) {
        queue.failure.get_or_insert(failure);
        self.is_poisoned.store(true, Ordering::Release);
        queue.clear();
        self.turns.iter().chain([&self.progress]).for_each(|waiting| {
            waiting.notify_all();
        });
    }

    fn close(&self) -> Result<()> {
        self.flush()?;
        let mut queue = self.queue.lock();
        while queue.leading || queue.front().is_some() {
            queue.check()?;
            if queue.leading {
                self.progress.wait(&mut queue);
            } else {
                self.lead(&mut queue);
            }
        }
        queue.check()?;
        let tail = queue.tail;
        self.exclusively(&mut queue, |writer| {
            if writer.is_open() {
                self.check_place(writer, None)?;
            }
            writer.mark(tail).map_err(|e| Failure::sync(&e))
        });
        queue.check()
    }

    fn checkpointed(&self, position: JournalPosition) -> Result<()> {
        let _one = self.preparing.lock();
        let mut retired = false;
        loop {
            let mut queue = self.queue.lock();
            queue.check()?;
            let Some(file) = queue.retire(position) else { break };
            retired = true;
            let number = queue.number_for_recycled(&file);
            drop(queue);
            let Some(number) = number else {
                self.directory.remove(file.number)?;
                continue;
            };
            let recycled = self.directory.recycle(&file, number);
            let mut queue = self.queue.lock();
            match recycled {
                Ok(file) => queue.ready.push_back(Arc::new(file)),
                Err(failure) => return Err(self.refuse(&mut queue, failure)),
            }
        }
        if !retired {
            return Ok(());
        }
        self.directory.sync().map_err(|failure| self.refuse(&mut self.queue.lock(), failure))
    }

    fn renew(&self) -> Result<JournalPoint> {
        let _one = self.preparing.lock();
        let mut queue = self.queue.lock();
        queue.check()?;
        // What a renewal before this one went on to, which no checkpoint came after, is new still.
        let present = queue.unwritten();
        if present.is_some() {
            self.exclusively(&mut queue, |writer| {
                writer.unmark().map_err(|error| Failure::sync(&error))
            });
            queue.check()?;
        }
        let (number, length, mut ready) = queue.plan_file(0);
        drop(queue);
        let erased = ready.iter().chain(&present).try_for_each(|file| file.erase());
        let made = erased.and_then(|()| {
            if ready.is_empty() && present.is_none() {
                let file = self.make_file(number, length, queue::least_length(0))?;
                ready.push_back(Arc::new(file));
            }
            Ok(())
        });
        let mut queue = self.queue.lock();
        queue.ready = ready;
        made.map_err(|failure| self.refuse(&mut queue, failure))?;
        if present.is_none() {
            self.enter_next(&mut queue)?;
        }
        Ok(queue.tail)
    }

    /// Goes on in the next ready file, with nothing queued.
    fn enter_next(&self, queue: &mut MutexGuard<'_, Queue>) -> Result<()> {
        let Some(file) = queue.go_on() else { return Ok(()) };
        self.exclusively(queue, |writer| {
            writer.enter(&file).map_err(|error| Failure::sync(&error))
        });
        queue.check()
    }

    /// Makes files ahead of their use and syncs `Interval` commits in time.
    fn work_in_background(&self) {
        let mut queue = self.queue.lock();
        while !queue.stopping {
            if queue.failure.is_some() {
                self.work.wait(&mut queue);
            } else if queue.wants_file() {
                // A refusal is remembered; the commit that needs the file will report it.
                let _ = MutexGuard::unlocked(&mut queue, || self.prepare(|q| q.wants_file(), 0));
            } else if let Some(due) = queue.due {
                let left = due.left(self.clock.now());
                if left.is_zero() || self.work.wait_for(&mut queue, left).timed_out() {
                    // A failure poisons the journal, which tells the next commit.
                    let _ = MutexGuard::unlocked(&mut queue, || self.flush());
                }
            } else {
                self.work.wait(&mut queue);
            }
        }
    }
}

#[cfg(test)]
mod tests;
