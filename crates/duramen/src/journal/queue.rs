//! What is queued for the journal, and where it will go.
//!
//! Invariants:
//! - the order of the queue is the order of the sequence;
//! - every queued byte has its place in a file that is already whole, so that a full disk refuses a
//!   commit before it is staged;
//! - a batch becomes one group and never spans files; room for an end mark is always left.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::files::{self, JournalFile, LENGTH_UNIT};
use super::group::{self, COMMIT_PREFIX_BYTES_MAX, HEADER_BYTES};
use super::{JournalCounters, JournalPoint, Ticket};
use crate::journal::JournalPosition;
use crate::{CommitSequence, Durability, Error, ErrorKind, Micros, Result};

/// Bytes that the header written while staging may take.
pub(crate) const STAGED_HEADER_BYTES_MAX: usize = 256;
/// An owned body of this size is written from where it is; smaller ones are copied together.
const LARGE_BODY_BYTES: usize = 256 << 10;
/// Bytes from which on a batch takes no further commit.
const BATCH_BYTES: usize = 8 << 20;
/// A buffer that grew beyond this is not kept.
const SPARE_BYTES_MAX: usize = 1 << 20;
/// Files that wait to be used, at least; further ones are removed if they have more bytes than
/// [`READY_JOURNALS`] have.
const READY_FILES_MIN: usize = 2;
/// Journals of the length at which a checkpoint is due that the files have room for that wait to be
/// used: it takes one until that is due, and some while it is written.
const READY_JOURNALS: u64 = 2;

/// Commits that will be written as one group.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) number: u64,
    pub(super) file: Arc<JournalFile>,
    pub(super) offset: u64,
    /// Room for the header, then the commits.
    pub(super) bytes: Vec<u8>,
    /// The body of the last commit if it was not copied into `bytes`.
    pub(super) large: Option<Vec<u8>>,
    pub(super) first: CommitSequence,
    pub(super) first_timestamp: Micros,
    pub(super) last_timestamp: Micros,
    pub(super) count: u32,
    pub(super) sync: bool,
    pub(super) due: Option<Due>,
}

/// When data that was only handed to the operating system has to be on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub(super) at: Micros,
    pub(super) interval_ms: u32,
}

/// Why the journal takes no more commits.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) kind: ErrorKind,
    pub(super) message: String,
    /// The commits of the group that failed: first and last.
    pub(super) group: Option<(CommitSequence, CommitSequence)>,
}

/// A file with groups that a checkpoint has not made unnecessary yet.
#[derive(Debug)]
struct Live {
    file: Arc<JournalFile>,
    used: u64,
}

/// The state behind the queue's lock.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "five conditions that come and go on their own")]
pub(super) struct Queue {
    batches: VecDeque<Batch>,
    next_batch: u64,
    /// The last commit that was given a sequence.
    last: (CommitSequence, Micros),
    live: VecDeque<Live>,
    pub(super) ready: VecDeque<Arc<JournalFile>>,
    /// Bytes that the journal seldom exceeds.
    pub(super) wanted_bytes: u64,
    /// Whether a thread is writing or syncing.
    pub(super) leading: bool,
    pub(super) sync_wanted: bool,
    pub(super) stopping: bool,
    /// Whether the next file could not be made ahead of time.
    pub(super) refused: bool,
    /// Whether no file is made, as what room there is is needed for something else.
    pub(super) is_held: bool,
    pub(super) tail: JournalPoint,
    pub(super) synced: CommitSequence,
    pub(super) due: Option<Due>,
    pub(super) failure: Option<Failure>,
    pub(super) counters: JournalCounters,
    spare: Vec<u8>,
    header: Vec<u8>,
}

impl Batch {
    /// Bytes of the group.
    pub(super) fn len(&self) -> u64 {
        (self.bytes.len() + self.large.as_ref().map_or(0, Vec::len)) as u64
    }

    /// The last commit.
    pub(super) fn last(&self) -> CommitSequence {
        CommitSequence(self.first.0 + u64::from(self.count) - 1)
    }
}

impl Failure {
    /// A sync failed that was not for one group.
    pub(super) fn sync(error: &Error) -> Self {
        let message = error.without_advice().to_owned();
        Self { kind: ErrorKind::Poisoned, message, group: None }
    }

    /// The error for the one who waits for `sequence`.
    pub(super) fn error(&self, sequence: CommitSequence) -> Error {
        match self.group {
            Some((first, last)) if (first..=last).contains(&sequence) => {
                Error::new(self.kind, format!("commit {sequence}: {}", self.message))
            }
            _ => self.poisoned(),
        }
    }

    pub(super) fn poisoned(&self) -> Error {
        Error::new(
            ErrorKind::Poisoned,
            format!("the journal takes no more commits until it is reopened: {}", self.message),
        )
    }
}

impl Queue {
    /// An empty queue that goes on at `tail`, in the last of `live`.
    pub(super) fn new(
        tail: JournalPoint,
        live: Vec<Arc<JournalFile>>,
        ready: VecDeque<Arc<JournalFile>>,
        wanted_bytes: u64,
    ) -> Self {
        let mut live: VecDeque<Live> =
            live.into_iter().map(|file| Live { used: file.length, file }).collect();
        let last = live.back_mut().expect("a journal has at least the file it is written to");
        assert_eq!(last.file.number, tail.position.file, "the tail is in the last live file");
        last.used = tail.position.offset;
        Self {
            batches: VecDeque::new(),
            next_batch: 0,
            last: (tail.sequence, tail.timestamp),
            live,
            ready,
            wanted_bytes,
            leading: false,
            sync_wanted: false,
            stopping: false,
            refused: false,
            is_held: false,
            tail,
            synced: tail.sequence,
            due: None,
            failure: None,
            counters: JournalCounters::default(),
            spare: Vec::new(),
            header: Vec::new(),
        }
    }

    /// Fails once the journal is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.poisoned()))
    }

    /// The last commit that was given a sequence.
    pub(super) fn last_sequence(&self) -> CommitSequence {
        self.last.0
    }

    fn planned(&self) -> &Live {
        self.live.back().expect("a journal has at least the file it is written to")
    }

    fn planned_mut(&mut self) -> &mut Live {
        self.live.back_mut().expect("a journal has at least the file it is written to")
    }

    /// Makes sure that the planned file takes a commit of `body_len` bytes, going on to the next
    /// file if that is ready.
    pub(super) fn make_room(&mut self, body_len: usize) -> bool {
        let needed = file_bytes(body_len);
        let planned = self.planned();
        if planned.used + needed <= planned.file.length {
            return true;
        }
        match self.ready.pop_front_if(|next| needed <= next.length) {
            Some(file) => {
                self.live.push_back(Live { file, used: 0 });
                self.refused = false;
                true
            }
            None => false,
        }
    }

    /// The file in which the journal ends, if nothing was written or queued in it.
    pub(super) fn unwritten(&self) -> Option<Arc<JournalFile>> {
        let Live { file, used } = self.planned();
        (*used == 0).then(|| Arc::clone(file))
    }

    /// Goes on in the next ready file, with nothing queued: the journal ends where it begins.
    pub(super) fn go_on(&mut self) -> Option<Arc<JournalFile>> {
        assert!(self.batches.is_empty(), "what is queued has its place in an earlier file");
        let file = self.ready.pop_front()?;
        self.live.push_back(Live { file: Arc::clone(&file), used: 0 });
        self.refused = false;
        self.tail.position = JournalPosition { file: file.number, offset: 0 };
        Some(file)
    }

    /// Whether the next file should be made now, before a commit has to wait for it.
    pub(super) fn wants_file(&self) -> bool {
        let planned = self.planned();
        let may = !self.refused && !self.is_held;
        self.ready.is_empty() && may && planned.used > planned.file.length / 2
    }

    /// Number and length of the file that a commit of `body_len` bytes needs next, and the ready
    /// files, taken out so that nobody goes on to them meanwhile: the first one is too short and
    /// will be replaced.
    pub(super) fn plan_file(&mut self, body_len: usize) -> (u64, u64, VecDeque<Arc<JournalFile>>) {
        let planned = &self.planned().file;
        let (number, length) =
            (planned.number + 1, files::next_length(planned.length, self.wanted_bytes));
        (number, length.max(least_length(body_len)), std::mem::take(&mut self.ready))
    }

    /// Takes a commit for which there is room. `stage` gets its sequence and timestamp, and
    /// whatever bytes it appends stand before the body.
    pub(super) fn push(
        &mut self,
        body: Cow<'_, [u8]>,
        (now, durability): (Micros, Durability),
        stage: impl FnOnce(CommitSequence, Micros, &mut Vec<u8>),
    ) -> Ticket {
        let sequence = self.last.0.next();
        let timestamp = now.max(Micros(self.last.1.0 + 1));
        let mut header = std::mem::take(&mut self.header);
        header.clear();
        stage(sequence, timestamp, &mut header);
        assert!(header.len() <= STAGED_HEADER_BYTES_MAX, "a staged header is a few bytes");

        self.last = (sequence, timestamp);
        let overdue = self.due.is_some_and(|due| due.at <= now);
        let batch = self.open_batch((sequence, timestamp), &body);
        let before = batch.len();
        let elapsed = timestamp.0.abs_diff(batch.last_timestamp.0);
        batch.last_timestamp = timestamp;
        group::encode_commit(&mut batch.bytes, elapsed, &header, body.len());
        match body {
            Cow::Owned(body) if body.len() >= LARGE_BODY_BYTES => batch.large = Some(body),
            body => batch.bytes.extend_from_slice(&body),
        }
        batch.count += 1;
        batch.sync |= overdue || durability == Durability::Sync;
        batch.due = earlier(batch.due, Due::of(durability, now));
        let (grown, number) = (batch.len() - before, batch.number);
        self.planned_mut().used += grown;
        self.header = header;
        Ticket { sequence, timestamp, batch: number }
    }

    /// The batch that the next commit joins: the last one, or a new one after it.
    fn open_batch(&mut self, next: (CommitSequence, Micros), body: &[u8]) -> &mut Batch {
        let file = self.planned().file.number;
        let joins = self.batches.back().is_some_and(|batch| {
            batch.file.number == file
                && batch.large.is_none()
                && body.len() < LARGE_BODY_BYTES
                && batch.bytes.len() < BATCH_BYTES
        });
        if !joins {
            let mut bytes = std::mem::take(&mut self.spare);
            bytes.resize(HEADER_BYTES, 0);
            let planned = self.planned_mut();
            let (file, offset) = (Arc::clone(&planned.file), planned.used);
            planned.used += HEADER_BYTES as u64;
            let (first, first_timestamp) = next;
            self.batches.push_back(Batch {
                number: self.next_batch,
                file,
                offset,
                bytes,
                large: None,
                first,
                first_timestamp,
                last_timestamp: first_timestamp,
                count: 0,
                sync: false,
                due: None,
            });
            self.next_batch += 1;
        }
        self.batches.back_mut().expect("the open batch")
    }

    /// Takes the batch that is written next.
    pub(super) fn pop(&mut self) -> Option<Batch> {
        self.batches.pop_front()
    }

    /// The number of the batch that is written next.
    pub(super) fn front(&self) -> Option<u64> {
        self.batches.front().map(|batch| batch.number)
    }

    /// Drops what was never written.
    pub(super) fn clear(&mut self) {
        self.batches.clear();
    }

    /// `batch` is written: the journal ends with it.
    pub(super) fn written(&mut self, mut batch: Batch) {
        let end = batch.offset + batch.len();
        self.tail = JournalPoint {
            position: JournalPosition { file: batch.file.number, offset: end },
            sequence: batch.last(),
            timestamp: batch.last_timestamp,
        };
        self.due = earlier(self.due, batch.due);
        self.counters.commits += u64::from(batch.count);
        self.counters.groups += 1;
        self.counters.bytes += batch.len();
        if self.spare.capacity() == 0 && batch.bytes.capacity() <= SPARE_BYTES_MAX {
            batch.bytes.clear();
            self.spare = batch.bytes;
        }
    }

    /// Everything written is on the device.
    pub(super) fn synced(&mut self) {
        self.synced = self.tail.sequence;
        self.due = None;
    }

    /// The commits after the tail up to this one were made durable elsewhere.
    pub(super) fn pass(&mut self, sequence: CommitSequence, timestamp: Micros) {
        let is_idle = self.last.0 == self.tail.sequence && self.synced == self.tail.sequence;
        assert!(is_idle && sequence > self.tail.sequence, "commit {sequence} is not a later one");
        assert!(timestamp > self.last.1, "commit timestamps rise");
        self.last = (sequence, timestamp);
        (self.tail.sequence, self.tail.timestamp) = self.last;
        self.synced = sequence;
    }

    /// Bytes queued or written after `position`.
    pub(super) fn bytes_since(&self, position: JournalPosition) -> u64 {
        let used = |live: &Live| match live.file.number.cmp(&position.file) {
            std::cmp::Ordering::Less => 0,
            std::cmp::Ordering::Equal => live.used.saturating_sub(position.offset),
            std::cmp::Ordering::Greater => live.used,
        };
        self.live.iter().map(used).sum()
    }

    /// Takes the oldest file if it lies wholly before `position`.
    pub(super) fn retire(&mut self, position: JournalPosition) -> Option<Arc<JournalFile>> {
        assert!(position <= self.tail.position, "a checkpoint ends within the journal");
        let retired = self.live.pop_front_if(|live| live.file.number < position.file)?;
        Some(retired.file)
    }

    /// The number under which `file` is of further use, if it is.
    pub(super) fn number_for_recycled(&self, file: &JournalFile) -> Option<u64> {
        let planned = &self.planned().file;
        let bytes: u64 = self.ready.iter().map(|file| file.length).sum();
        let is_few = self.ready.len() < READY_FILES_MIN
            || bytes + file.length <= self.wanted_bytes.saturating_mul(READY_JOURNALS);
        let useful = is_few && file.length >= planned.length;
        useful.then(|| self.ready.back().unwrap_or(planned).number + 1)
    }
}

impl Due {
    /// How long to wait; never longer than the interval, whatever the clock says.
    pub(super) fn left(self, now: Micros) -> Duration {
        let left = u64::try_from(self.at.0.saturating_sub(now.0)).unwrap_or_default();
        Duration::from_micros(left).min(Duration::from_millis(self.interval_ms.into()))
    }

    fn of(durability: Durability, now: Micros) -> Option<Self> {
        match durability {
            Durability::Sync => None,
            Durability::Interval(interval_ms) => {
                let at = Micros(now.0.saturating_add(i64::from(interval_ms) * 1_000));
                Some(Self { at, interval_ms })
            }
        }
    }
}

fn earlier(a: Option<Due>, b: Option<Due>) -> Option<Due> {
    a.into_iter().chain(b).min()
}

/// Bytes that a commit takes at most in its file: as a group of its own, before an end mark.
fn file_bytes(body_len: usize) -> u64 {
    let overhead = 2 * HEADER_BYTES + COMMIT_PREFIX_BYTES_MAX + STAGED_HEADER_BYTES_MAX;
    (overhead + body_len) as u64
}

/// The length of the shortest file that takes a commit of `body_len` bytes.
pub(super) fn least_length(body_len: usize) -> u64 {
    file_bytes(body_len).next_multiple_of(LENGTH_UNIT)
}
