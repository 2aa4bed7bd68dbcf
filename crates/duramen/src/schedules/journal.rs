//! Group commit, publication, files and failures of the journal.

use std::borrow::Cow;
use std::sync::Arc;

use parking_lot::Mutex;

use super::device::ScheduledDevice;
use super::{at_once, below, clock};
use crate::io::Device;
use crate::journal::{Journal, JournalPoint, JournalSettings, Ticket};
use crate::{CommitSequence, Durability, ErrorKind, Result};

const RELAXED: Durability = Durability::Interval(1_000);
/// A few bodies of this size fill a file.
const LONG_BODY_BYTES: usize = 100 << 10;

type Thread = Box<dyn FnOnce() + Send>;

/// A journal, with what is known of it beside it.
#[derive(Debug)]
struct Stage {
    device: Arc<ScheduledDevice>,
    journal: Journal,
    /// The sequences in the order in which commits were staged.
    staged: Mutex<Vec<u64>>,
}

fn settings(device: &Arc<ScheduledDevice>) -> JournalSettings {
    JournalSettings {
        device: Arc::clone(device) as Arc<dyn Device>,
        clock: clock(),
        database: 1,
        wanted_bytes: 0,
        background: false,
        erases: false,
    }
}

impl Stage {
    fn new() -> Arc<Self> {
        let device = Arc::<ScheduledDevice>::default();
        let made = Journal::create(&settings(&device), JournalPoint::START);
        let journal = made.expect("a new journal");
        Arc::new(Self { device, journal, staged: Mutex::default() })
    }

    fn queue(&self, body_bytes: usize, durability: Durability) -> Result<Ticket> {
        let body = vec![7; body_bytes];
        let ticket = self.journal.append(Cow::Owned(body), durability, |sequence, _, _| {
            self.staged.lock().push(sequence.0);
        })?;
        assert!(self.journal.published() <= self.newest(), "what is not staged is published");
        Ok(ticket)
    }

    fn commit(&self, body_bytes: usize, durability: Durability) -> Result<CommitSequence> {
        let ticket = self.queue(body_bytes, durability)?;
        self.journal.wait(ticket)?;
        assert!(self.journal.published() >= ticket.sequence, "acknowledged, but not published");
        Ok(ticket.sequence)
    }

    fn newest(&self) -> CommitSequence {
        CommitSequence(self.staged.lock().len() as u64)
    }

    /// The last commit that would be there after a loss of power, if recovery began at `start`.
    fn durable_since(&self, start: JournalPoint) -> CommitSequence {
        let left = self.device.without_power();
        let mut last = start.sequence;
        let opened = Journal::open(&settings(&left), start, &mut |sequence, _, _| {
            assert_eq!(sequence, last.next(), "sequences grow by one");
            last = sequence;
            Ok(())
        });
        opened.expect("what is durable can be replayed");
        last
    }

    fn assert_in_order(&self) {
        let staged = self.staged.lock();
        assert!(staged.iter().copied().eq(1..=staged.len() as u64), "staged as {staged:?}");
    }
}

fn threads(stage: &Arc<Stage>, count: usize, work: fn(&Stage)) -> Vec<Thread> {
    let thread = |_| {
        let stage = Arc::clone(stage);
        Box::new(move || work(&stage)) as Thread
    };
    (0..count).map(thread).collect()
}

/// Of several writers each finds its commit published and on the device when it is acknowledged.
pub(super) fn acknowledged_commits_are_durable() {
    let stage = Stage::new();
    at_once(threads(&stage, 3, |stage| {
        for _ in 0..2 {
            let sequence = stage.commit(100, Durability::Sync).expect("a commit");
            let durable = stage.durable_since(JournalPoint::START);
            assert!(durable >= sequence, "{sequence} is acknowledged, {durable} is durable");
        }
    }));
    stage.assert_in_order();
    assert_eq!(stage.journal.published(), CommitSequence(6));
}

/// What was queued before a flush is on the device after it, whatever was promised for it.
pub(super) fn a_flush_covers_all() {
    let stage = Stage::new();
    let mut all = threads(&stage, 2, |stage| {
        for _ in 0..2 {
            let durability = if below(3) == 0 { Durability::Sync } else { RELAXED };
            stage.commit(100, durability).expect("a commit");
        }
    });
    all.extend(threads(&stage, 1, |stage| {
        for _ in 0..2 {
            let newest = stage.newest();
            stage.journal.flush().expect("a flush");
            assert!(stage.durable_since(JournalPoint::START) >= newest, "flushed, not durable");
        }
    }));
    at_once(all);
    stage.journal.close().expect("the end");
    assert_eq!(stage.durable_since(JournalPoint::START), CommitSequence(4));
}

/// After a failed sync all who wait are told, and nothing more is acknowledged.
pub(super) fn a_failed_sync_is_final() {
    let stage = Stage::new();
    stage.device.fail_sync_after(below(3));
    at_once(threads(&stage, 3, |stage| {
        for _ in 0..2 {
            match stage.commit(100, Durability::Sync) {
                Ok(sequence) => {
                    let durable = stage.durable_since(JournalPoint::START);
                    assert!(durable >= sequence, "{sequence} is acknowledged, not durable");
                }
                Err(error) => {
                    let kinds = [ErrorKind::Unknown, ErrorKind::Poisoned];
                    assert!(kinds.contains(&error.kind()), "{error}");
                    assert!(stage.journal.poisoned().is_some(), "failed, but not poisoned");
                }
            }
        }
    }));
    if stage.journal.poisoned().is_some() {
        let refused = stage.commit(100, Durability::Sync).expect_err("a failure is final");
        assert_eq!(refused.kind(), ErrorKind::Poisoned);
        let published = stage.journal.published();
        assert!(published <= stage.durable_since(JournalPoint::START), "published, not durable");
    }
}

/// Files are begun, recycled and begun again while commits go on.
pub(super) fn files_follow() {
    let stage = Stage::new();
    let checkpoint = Arc::new(Mutex::new(JournalPoint::START));
    let mut all = threads(&stage, 2, |stage| {
        for _ in 0..3 {
            stage.commit(LONG_BODY_BYTES, RELAXED).expect("a commit");
        }
    });
    let (its_stage, its_checkpoint) = (Arc::clone(&stage), Arc::clone(&checkpoint));
    all.push(Box::new(move || {
        for _ in 0..2 {
            its_stage.journal.flush().expect("a flush");
            let tail = its_stage.journal.tail();
            *its_checkpoint.lock() = tail;
            its_stage.journal.checkpointed(tail.position).expect("a checkpoint");
        }
    }));
    at_once(all);
    stage.journal.flush().expect("a flush");
    stage.assert_in_order();
    let start = *checkpoint.lock();
    assert_eq!(stage.durable_since(start), CommitSequence(6));
}

/// Who follows the journal sees the published sequence rise to the last commit.
pub(super) fn a_follower() {
    let stage = Stage::new();
    let mut all = threads(&stage, 2, |stage| {
        for _ in 0..2 {
            stage.commit(100, RELAXED).expect("a commit");
        }
    });
    all.extend(threads(&stage, 1, |stage| {
        let mut seen = CommitSequence(0);
        for _ in 0..20 {
            let timeout = std::time::Duration::from_secs(1);
            let is_more = stage.journal.wait_after(seen, timeout).expect("a wait");
            let published = stage.journal.published();
            assert!(published >= seen && (!is_more || published > seen), "it went back");
            seen = published;
        }
    }));
    at_once(all);
    assert_eq!(stage.journal.published(), CommitSequence(4));
}
