//! The journal on a disk in memory: order, recovery from any damage, faults and full disks.

mod disk;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use self::disk::{Disk, Faults};
use super::group::HEADER_BYTES;
use super::*;

const DATABASE: u128 = 0x1234_5678;
const FIRST: &str = "journal/00000001.journal";

#[derive(Debug, Default)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Micros {
        Micros(self.0.load(Ordering::Relaxed))
    }
}

type Commits = Vec<(u64, Vec<u8>)>;

fn settings(disk: &Arc<Disk>) -> JournalSettings {
    JournalSettings {
        device: Arc::clone(disk) as Arc<dyn Device>,
        clock: Arc::new(TestClock::default()),
        database: DATABASE,
        wanted_bytes: u64::MAX,
        background: false,
        erases: false,
    }
}

fn create() -> (Arc<Disk>, Journal) {
    let disk = Arc::new(Disk::default());
    let journal = Journal::create(&settings(&disk), JournalPoint::START).unwrap();
    (disk, journal)
}

fn queue_commit(journal: &Journal, body: &[u8], durability: Durability) -> Result<Ticket> {
    journal.append(Cow::Borrowed(body), durability, |sequence, _, header| {
        header.push(u8::try_from(sequence.0 & 0xff).unwrap());
    })
}

fn commit(
    journal: &Journal,
    body: &[u8],
    durability: Durability,
) -> Result<(CommitSequence, Micros)> {
    let ticket = queue_commit(journal, body, durability)?;
    journal.wait(ticket)?;
    Ok((ticket.sequence, ticket.timestamp))
}

fn open_from(disk: &Arc<Disk>, start: JournalPoint) -> Result<(Journal, RecoveryReport, Commits)> {
    let mut commits = Vec::new();
    let (journal, report) =
        Journal::open(&settings(disk), start, &mut |sequence, _, body: &[u8]| {
            assert_eq!(body[0], u8::try_from(sequence.0 & 0xff).unwrap(), "the staged header");
            commits.push((sequence.0, body[1..].to_vec()));
            Ok(())
        })?;
    Ok((journal, report, commits))
}

fn open(disk: &Arc<Disk>) -> Result<(Journal, RecoveryReport, Commits)> {
    open_from(disk, JournalPoint::START)
}

fn body(number: u64) -> Vec<u8> {
    format!("body of commit {number}").into_bytes()
}

/// A journal with `count` commits, each synced as a group of its own; where the groups end.
fn with_commits(count: u64) -> (Arc<Disk>, Journal, Vec<usize>) {
    let (disk, journal) = create();
    let mut ends = vec![0];
    for number in 1..=count {
        commit(&journal, &body(number), Durability::Sync).unwrap();
        ends.push(usize::try_from(journal.tail().position.offset).unwrap());
    }
    (disk, journal, ends)
}

fn expected(count: usize) -> Commits {
    (1..=count as u64).map(|number| (number, body(number))).collect()
}

#[test]
fn commits_come_back_after_closing_and_the_sequence_continues() {
    let (disk, journal, ends) = with_commits(3);
    assert_eq!(
        journal.counters(),
        JournalCounters { commits: 3, groups: 3, syncs: 3, bytes: ends[3] as u64 }
    );
    drop(journal);
    let (journal, report, commits) = open(&disk.without_power()).unwrap();
    assert_eq!((commits, report.clean, report.commits), (expected(3), true, 3));
    assert_eq!(report.end, journal.tail());
    let (sequence, timestamp) = commit(&journal, b"more", Durability::Sync).unwrap();
    assert_eq!(sequence, CommitSequence(4));
    assert!(timestamp > report.end.timestamp);
    assert_eq!(journal.published(), CommitSequence(4));
}

#[test]
fn one_small_commit_costs_under_forty_bytes() {
    let (_disk, journal) = create();
    let ticket = journal.append(Cow::Borrowed(b""), Durability::Sync, |_, _, _| {}).unwrap();
    journal.wait(ticket).unwrap();
    assert_eq!(journal.tail().position.offset, HEADER_BYTES as u64 + 2);
}

#[test]
fn opening_twice_without_a_commit_writes_nothing() {
    let (disk, journal, _) = with_commits(2);
    drop(journal);
    let before = disk.bytes(FIRST);
    let (journal, ..) = open(&disk).unwrap();
    drop(journal);
    assert!(disk.bytes(FIRST) == before);
    assert!(open(&disk).unwrap().1.clean);
}

#[test]
fn a_tail_torn_anywhere_leaves_the_groups_before() {
    let (disk, journal, ends) = with_commits(4);
    let killed = disk.killed();
    drop(journal);
    for cut in 0..ends[4] {
        let torn = killed.killed();
        torn.damage(FIRST, |bytes| bytes[cut..].fill(0));
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        let (journal, report, commits) = open(&torn).unwrap();
        assert_eq!((commits, report.clean), (expected(whole), false), "cut at {cut}");
        commit(&journal, b"next", Durability::Sync).unwrap();
        drop(journal);
        assert_eq!(open(&torn).unwrap().2.len(), whole + 1);
    }
}

#[test]
fn any_flipped_byte_is_corruption_unless_in_the_last_group() {
    let (disk, journal, ends) = with_commits(4);
    let killed = disk.killed();
    drop(journal);
    for at in 0..ends[4] {
        for flip in [0x01, 0x80, 0xff] {
            let damaged = killed.killed();
            damaged.damage(FIRST, |bytes| bytes[at] ^= flip);
            if at >= ends[3] {
                let (_journal, report, commits) = open(&damaged).unwrap();
                assert_eq!((commits, report.clean), (expected(3), false), "flip at {at}");
                continue;
            }
            let device = Arc::clone(&damaged) as Arc<dyn Device>;
            let read = read_tail(device, DATABASE, JournalPoint::START, &mut |_, _, _| Ok(()));
            assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt, "a reader, flip at {at}");
            let before = damaged.bytes(FIRST);
            let error = open(&damaged).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "flip at {at}");
            let group = ends.iter().rev().find(|end| **end <= at).unwrap();
            let place = format!("{FIRST}, offset {group}: journal: expected commit");
            assert!(error.message().starts_with(&place), "{error}");
            assert!(damaged.bytes(FIRST) == before, "a damaged journal stays as it is");
        }
    }
}

#[test]
fn after_closing_even_the_last_group_is_known_to_be_durable() {
    let (disk, journal, ends) = with_commits(2);
    drop(journal);
    for at in ends[1]..ends[2] {
        let damaged = disk.killed();
        damaged.damage(FIRST, |bytes| bytes[at] ^= 1);
        assert_eq!(open(&damaged).unwrap_err().kind(), ErrorKind::Corrupt, "flip at {at}");
    }
    for at in ends[2]..ends[2] + HEADER_BYTES {
        let damaged = disk.killed();
        damaged.damage(FIRST, |bytes| bytes[at] ^= 1);
        let (_journal, report, commits) = open(&damaged).unwrap();
        assert_eq!((commits, report.clean), (expected(2), false), "flip at {at}");
    }
}

#[test]
fn a_cut_file_is_corruption() {
    let (disk, journal, _) = with_commits(2);
    drop(journal);
    disk.damage(FIRST, |bytes| bytes.truncate(512));
    assert_eq!(open(&disk).unwrap_err().kind(), ErrorKind::Corrupt);
    disk.remove(FIRST).unwrap();
    let error = open(&disk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("no file"), "{error}");
}

#[test]
fn another_database_finds_no_groups() {
    let (disk, journal, _) = with_commits(2);
    drop(journal);
    let other = JournalSettings { database: DATABASE + 1, ..settings(&disk) };
    let (_journal, report) =
        Journal::open(&other, JournalPoint::START, &mut |_, _, _| unreachable!()).unwrap();
    assert_eq!(report.commits, 0);
}

/// Unsynced groups behind a lost one would verify again once equal groups lead up to them.
#[test]
fn groups_behind_a_lost_one_never_come_back() {
    let (disk, journal, _) = with_commits(1);
    let mut ends = vec![journal.tail().position.offset];
    for number in 2..=4 {
        commit(&journal, &body(number), Durability::Interval(1_000)).unwrap();
        ends.push(journal.tail().position.offset);
    }
    let torn = disk.killed();
    drop(journal);
    let (start, end) = (usize::try_from(ends[0]).unwrap(), usize::try_from(ends[1]).unwrap());
    torn.damage(FIRST, |bytes| bytes[start..end].fill(0));
    let (journal, _, commits) = open(&torn).unwrap();
    assert_eq!(commits, expected(1));
    commit(&journal, &body(2), Durability::Sync).unwrap();
    assert_eq!(journal.tail().position.offset, ends[1], "the same length as the lost one");
    let killed = torn.killed();
    drop(journal);
    assert_eq!(open(&killed).unwrap().2, expected(2));
}

#[test]
fn files_follow_each_other_and_are_recycled() {
    let (disk, journal) = create();
    let large = vec![7; 100_000];
    let mut middle = journal.tail();
    for number in 1..=40 {
        commit(&journal, &large, Durability::Interval(1_000)).unwrap();
        if number == 20 {
            middle = journal.tail();
        }
    }
    assert!(middle.position.file > 1);
    let size = 100_000 + HEADER_BYTES as u64 + 5;
    assert_eq!(journal.bytes_since(middle.position), 20 * size);
    let killed = disk.killed();
    assert_eq!(open(&killed).unwrap().2.len(), 40);

    journal.checkpointed(middle.position).unwrap();
    assert!(!disk.names().contains(&FIRST.to_owned()));
    drop(journal);
    let (journal, report, commits) = open_from(&disk, middle).unwrap();
    assert_eq!((commits.len(), commits[0].0, report.clean), (20, 21, true));
    for _ in 0..200 {
        commit(&journal, &large, Durability::Interval(1_000)).unwrap();
        journal.checkpointed(journal.tail().position).unwrap();
        let count = disk.names().len();
        assert!(count <= 4, "{:?}", disk.names());
    }
    let end = journal.tail();
    commit(&journal, &body(241), Durability::Sync).unwrap();
    let lost = disk.without_power();
    drop(journal);
    assert_eq!(open_from(&lost, end).unwrap().2, vec![(241, body(241))]);
}

/// Recycled files are long, and have old groups behind the end as well as before it.
#[test]
fn a_renewed_journal_has_nothing_of_before_and_goes_on_from_any_crash() {
    let (disk, journal) = create();
    let large = vec![7; 100_000];
    for _ in 0..40 {
        commit(&journal, &large, Durability::Interval(1_000)).unwrap();
        journal.checkpointed(journal.tail().position).unwrap();
    }
    commit(&journal, &large, Durability::Sync).unwrap();
    let before = journal.tail();
    journal.flush().unwrap();
    let begin = journal.renew().unwrap();
    assert_eq!((begin.sequence, begin.position.offset), (before.sequence, 0));
    let (goes_on, _, commits) = open_from(&disk.killed(), before).unwrap();
    assert!(commits.is_empty());
    drop(goes_on);
    journal.set_erasing(true);
    journal.checkpointed(begin.position).unwrap();
    journal.set_erasing(false);
    for name in disk.names().iter().filter(|name| name.starts_with("journal/0")) {
        assert!(disk.bytes(name).iter().all(|&byte| byte == 0), "{name}");
    }
    commit(&journal, &body(42), Durability::Sync).unwrap();
    let crashed = disk.killed();
    drop(journal);
    for disk in [crashed, disk] {
        let (_, report, commits) = open_from(&disk, begin).unwrap();
        assert_eq!((commits, report.end.sequence), (vec![(42, body(42))], CommitSequence(42)));
    }
}

/// Each renewal that no checkpoint came after left a file without a group, as did a commit that was
/// too long for a renewed file. The next open took what came behind for lost.
#[test]
fn commits_behind_a_file_without_a_group_are_read() {
    let disk = Arc::new(Disk::default());
    let short_files = JournalSettings { wanted_bytes: 1 << 20, ..settings(&disk) };
    let journal = Journal::create(&short_files, JournalPoint::START).unwrap();
    commit(&journal, &body(1), Durability::Sync).unwrap();
    let long = vec![7; 300_000];
    for _ in 0..2 {
        let begin = journal.renew().unwrap();
        journal.close().unwrap();
        let names = disk.names();
        assert_eq!(journal.renew().unwrap(), begin);
        assert_eq!(disk.names(), names, "another renewal makes no file");
        commit(&journal, &long, Durability::Sync).unwrap();
    }
    let (killed, crashed) = (disk.killed(), disk.without_power());
    drop(journal);
    for disk in [killed, crashed, disk] {
        let (journal, _, commits) = open(&disk).unwrap();
        assert_eq!(commits, [(1, body(1)), (2, long.clone()), (3, long.clone())]);
        assert_eq!(journal.renew().unwrap().position.offset, 0);
        drop(journal);
        let (journal, report, _) = open(&disk).unwrap();
        assert!(report.clean, "a renewed journal is closed in order");
        journal.renew().unwrap();
        commit(&journal, &body(4), Durability::Sync).unwrap();
        let (_, _, commits) = open(&disk.killed()).unwrap();
        assert_eq!(commits[3..], [(4, body(4))]);
    }
}

/// A recycled file keeps its old groups, at the very offsets where new ones are expected.
#[test]
fn stale_groups_of_a_recycled_file_never_pass() {
    let (disk, journal, _) = with_commits(3);
    let killed = disk.killed();
    drop(journal);
    let stale = killed.bytes(FIRST);
    let second = "journal/00000002.journal";
    killed.rename(FIRST, second).unwrap();
    let start =
        JournalPoint { position: JournalPosition { file: 2, offset: 0 }, ..JournalPoint::START };
    let (journal, report, _) = open_from(&killed, start).unwrap();
    assert_eq!(report.commits, 0);
    commit(&journal, &body(1), Durability::Sync).unwrap();
    let end = usize::try_from(journal.tail().position.offset).unwrap();
    killed.damage(second, |bytes| bytes[end..].copy_from_slice(&stale[end..]));
    let killed = killed.killed();
    drop(journal);
    assert_eq!(open_from(&killed, start).unwrap().2, expected(1));
}

#[test]
fn commits_of_many_threads_keep_their_order() {
    let (disk, journal) = create();
    let staged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (journal, staged) = (&journal, &staged);
            let durabilities = [Durability::Interval(5), Durability::Sync, Durability::Sync];
            let stage = |sequence: CommitSequence, _: Micros, header: &mut Vec<u8>| {
                assert_eq!(staged.fetch_add(1, Ordering::Relaxed) + 1, sequence.0);
                header.push(u8::try_from(sequence.0 & 0xff).unwrap());
            };
            scope.spawn(move || {
                for number in 0..200_u8 {
                    let body = [thread, number];
                    let durability = durabilities[usize::from(number % 3)];
                    let ticket = journal.append(Cow::Borrowed(&body), durability, stage).unwrap();
                    journal.wait(ticket).unwrap();
                    assert!(journal.published() >= ticket.sequence);
                }
            });
        }
    });
    assert_eq!(journal.tail().sequence, CommitSequence(1_600));
    journal.flush().unwrap();
    let lost = disk.without_power();
    let (_journal, _, commits) = open(&lost).unwrap();
    assert!(commits.iter().map(|(sequence, _)| *sequence).eq(1..=1_600));
    let mut next = [0; 8];
    for (_, body) in commits {
        let next = &mut next[usize::from(body[0])];
        assert_eq!(body[1], *next);
        *next += 1;
    }
    assert_eq!(next, [200; 8]);
}

/// A commit that arrived while a flush held the device was once never written.
#[test]
fn a_commit_that_arrives_during_a_flush_is_written_after_it() {
    let (disk, journal) = create();
    disk.set(Faults { sync_ms: 2, ..Faults::default() });
    for round in 0..20 {
        commit(&journal, b"x", Durability::Interval(1_000)).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| journal.flush().unwrap());
            let under_way = || {
                let queue = journal.shared.queue.lock();
                queue.leading || queue.synced.0 > 2 * round
            };
            while !under_way() {
                std::thread::yield_now();
            }
            commit(&journal, b"x", Durability::Interval(1_000)).unwrap();
        });
        journal.flush().unwrap();
    }
    assert_eq!(journal.tail().sequence, CommitSequence(40));
}

#[test]
fn queued_commits_become_one_group() {
    let (disk, journal) = create();
    let tickets: Vec<_> = (1..=5)
        .map(|number| queue_commit(&journal, &body(number), Durability::Sync).unwrap())
        .collect();
    assert_eq!(journal.published(), CommitSequence(0));
    journal.wait_published(CommitSequence(3)).unwrap();
    for ticket in tickets {
        journal.wait(ticket).unwrap();
    }
    let counters = journal.counters();
    assert_eq!((counters.commits, counters.groups, counters.syncs), (5, 1, 1));
    assert_eq!(open(&disk.without_power()).unwrap().2, expected(5));
}

#[test]
fn a_failed_sync_is_final_and_its_commit_unknown() {
    let (disk, journal, _) = with_commits(2);
    disk.set(Faults { next_sync: true, ..Faults::default() });
    let failing = queue_commit(&journal, &body(3), Durability::Sync).unwrap();
    assert_eq!(journal.wait(failing).unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(journal.published(), CommitSequence(2));
    let kinds = [
        queue_commit(&journal, &body(4), Durability::Sync).unwrap_err().kind(),
        journal.flush().unwrap_err().kind(),
        journal.poisoned().unwrap().kind(),
    ];
    assert_eq!(kinds, [ErrorKind::Poisoned; 3]);
    assert_eq!(journal.wait(failing).unwrap_err().kind(), ErrorKind::Unknown);
    assert_eq!(open(&disk.without_power()).unwrap().2, expected(2));

    // The system still shows the third commit but will never write it on its own.
    let disk = disk.same_system();
    drop(journal);
    let (journal, report, commits) = open(&disk).unwrap();
    assert_eq!(commits, expected(3));
    commit(&journal, &body(4), Durability::Sync).unwrap();
    // By then a checkpoint has the third one in a segment, so only what follows is read.
    let after = open_from(&disk.without_power(), report.end).unwrap().2;
    assert_eq!(after, expected(4)[3..]);
}

#[test]
fn a_failed_write_is_not_kept_and_final() {
    let (disk, journal, _) = with_commits(2);
    disk.set(Faults { next_write: true, ..Faults::default() });
    let error = commit(&journal, &body(3), Durability::Sync).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    let after = commit(&journal, &body(3), Durability::Sync).unwrap_err();
    assert_eq!(after.kind(), ErrorKind::Poisoned);
    drop(journal);
    assert_eq!(open(&disk).unwrap().2, expected(2));
}

#[test]
fn a_full_disk_refuses_before_staging_and_is_survived() {
    let (disk, journal) = create();
    disk.set(Faults { full: true, ..Faults::default() });
    let body = vec![1; 50_000];
    let mut staged = 0;
    let error = loop {
        match journal.append(Cow::Borrowed(&body), Durability::Sync, |sequence, _, header| {
            staged = sequence.0;
            header.push(u8::try_from(sequence.0).unwrap());
        }) {
            Ok(ticket) => journal.wait(ticket).unwrap(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!((staged, journal.published()), (5, CommitSequence(5)));
    commit(&journal, b"small ones still fit", Durability::Sync).unwrap();
    assert!(journal.poisoned().is_none());
    assert_eq!(disk.names(), [FIRST]);
    disk.set(Faults::default());
    assert_eq!(commit(&journal, &body, Durability::Sync).unwrap().0, CommitSequence(7));
    drop(journal);
    assert_eq!(open(&disk).unwrap().2.len(), 7);
}

#[test]
fn large_bodies_get_files_that_hold_them() {
    let (disk, journal) = create();
    let large = vec![3; 3 << 20];
    for number in 1..=3_u64 {
        let stage = |sequence: CommitSequence, _: Micros, header: &mut Vec<u8>| {
            header.push(u8::try_from(sequence.0).unwrap());
        };
        let ticket = journal.append(Cow::Owned(large.clone()), Durability::Sync, stage).unwrap();
        let small = queue_commit(&journal, &body(2 * number), Durability::Sync).unwrap();
        journal.wait(small).unwrap();
        journal.wait(ticket).unwrap();
    }
    let (_journal, _, commits) = open(&disk.without_power()).unwrap();
    assert_eq!(commits.len(), 6);
    for (sequence, bytes) in commits {
        assert!(if sequence % 2 == 0 { bytes == body(sequence) } else { bytes == large });
    }
    let error = queue_commit(&journal, &vec![0; COMMIT_BYTES_MAX + 1], Durability::Sync);
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Full);
}

#[test]
fn interval_commits_are_synced_by_the_next_one_that_is_late_enough() {
    let disk = Arc::new(Disk::default());
    let clock = Arc::new(TestClock::default());
    let settings = JournalSettings { clock: Arc::clone(&clock) as _, ..settings(&disk) };
    let journal = Journal::create(&settings, JournalPoint::START).unwrap();
    for now in [0, 4_999, 5_000] {
        clock.0.store(now, Ordering::Relaxed);
        commit(&journal, b"x", Durability::Interval(5)).unwrap();
        let durable = if now < 5_000 { 0 } else { 3 };
        assert_eq!(open(&disk.without_power()).unwrap().2.len(), durable, "at {now}");
        assert_eq!(journal.published(), journal.tail().sequence);
    }
    clock.0.store(-9, Ordering::Relaxed);
    let (_, timestamp) = commit(&journal, b"x", Durability::Interval(5)).unwrap();
    assert_eq!(timestamp, Micros(5_001), "a clock that goes back is corrected");
    journal.flush().unwrap();
    assert_eq!(open(&disk.without_power()).unwrap().2.len(), 4);
}

#[test]
fn the_background_thread_syncs_and_makes_the_next_file() {
    let disk = Arc::new(Disk::default());
    let settings = JournalSettings { background: true, ..settings(&disk) };
    let journal = Journal::create(&settings, JournalPoint::START).unwrap();
    commit(&journal, &vec![1; 200_000], Durability::Interval(1)).unwrap();
    let second = "journal/00000002.journal".to_owned();
    while journal.counters().syncs == 0 || !disk.names().contains(&second) {
        std::thread::yield_now();
    }
    assert_eq!(open(&disk.without_power()).unwrap().2.len(), 1);
}

#[test]
fn a_reader_beside_the_writer_sees_what_is_written() {
    let (disk, journal, _) = with_commits(3);
    let device = || Arc::clone(&disk) as Arc<dyn Device>;
    let read = |start| {
        let mut count = 0;
        let report = read_tail(device(), DATABASE, start, &mut |_, _, _| {
            count += 1;
            Ok(())
        });
        report.map(|report| (count, report.end))
    };
    let tail = journal.tail();
    assert_eq!(read(JournalPoint::START).unwrap(), (3, tail));
    assert_eq!(read(tail).unwrap(), (0, tail));
    let before = disk.bytes(FIRST);
    commit(&journal, &vec![1; 300_000], Durability::Sync).unwrap();
    assert!(before == disk.bytes(FIRST), "the large commit is in the next file");
    assert_eq!(read(tail).unwrap(), (1, journal.tail()));
    journal.checkpointed(journal.tail().position).unwrap();
    assert_eq!(read(JournalPoint::START).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// The end mark of the last closing would otherwise hide the next file.
#[test]
fn going_on_to_the_next_file_takes_the_end_mark_back() {
    let (disk, journal, _) = with_commits(2);
    drop(journal);
    let (journal, ..) = open(&disk).unwrap();
    commit(&journal, &vec![1; 300_000], Durability::Interval(1_000)).unwrap();
    assert_eq!(journal.tail().position.file, 2);
    assert_eq!(open(&disk.killed()).unwrap().2.len(), 3);
    assert_eq!(open(&disk.without_power()).unwrap().2.len(), 2);
}

#[test]
fn creation_takes_over_an_empty_journal_but_not_one_with_commits() {
    let (disk, journal) = create();
    let unfinished = disk.killed();
    drop(Journal::create(&settings(&unfinished), JournalPoint::START).unwrap());
    commit(&journal, b"x", Durability::Sync).unwrap();
    let error = Journal::create(&settings(&disk.killed()), JournalPoint::START).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
