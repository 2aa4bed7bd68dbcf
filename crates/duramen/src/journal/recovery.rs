//! Reading the journal back: the commits after a point, and how the journal ends.
//!
//! Invariants:
//! - only groups that verify and continue the sequence are replayed;
//! - a place that does not verify is a torn tail unless a later group shows that it was durable:
//!   then it is corruption, and nothing is changed;
//! - before the journal is written again, nothing behind its end verifies.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;
use std::sync::Arc;

use super::JournalPoint;
use super::files::{self, Directory, JournalFile};
use super::group::{Commits, FIRST_OFFSET, HEADER_BYTES, Header, Place};
use crate::damage::corrupt;
use crate::io::{File, read_exact_at, zeros};
use crate::journal::JournalPosition;
use crate::{CommitSequence, Error, ErrorKind, Micros, Result};

/// What is called for each commit found: its sequence, its timestamp and its bytes.
pub(crate) type Replay<'a> = dyn FnMut(CommitSequence, Micros, &[u8]) -> Result<()> + 'a;

/// How the journal was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecoveryReport {
    /// Where it ends.
    pub(crate) end: JournalPoint,
    /// Commits replayed.
    pub(crate) commits: u64,
    /// Whether it was closed in order: then no acknowledged commit can be missing.
    pub(crate) clean: bool,
}

/// The journal as it was read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) report: RecoveryReport,
    /// The files from the starting point to the end.
    pub(super) files: Vec<Arc<JournalFile>>,
}

/// How one place in a file reads.
pub(super) enum Reading<'a> {
    Group(Header, &'a [u8]),
    Nothing(String),
}

/// Reads the groups of `database` after `start` and gives their commits to `replay`.
pub(super) fn read(
    directory: &Directory,
    database: u128,
    start: JournalPoint,
    replay: &mut Replay<'_>,
) -> Result<Found> {
    let first = directory.open(start.position.file).map_err(|error| {
        if error.kind() != ErrorKind::NotFound {
            return error;
        }
        let path = files::path(start.position.file);
        corrupt(
            &path,
            start.position.offset,
            "journal",
            "the file that the manifest names",
            "no file",
        )
    })?;
    let mut found = Found {
        report: RecoveryReport { end: start, commits: 0, clean: false },
        files: vec![Arc::new(first)],
    };
    found.read_on(directory, database, replay)?;
    Ok(found)
}

/// The same beside a running writer, without a repair. A group that does not verify although a
/// later one knew it to be durable may have been read while it was written: then it verifies now.
pub(super) fn read_beside(
    directory: &Directory,
    database: u128,
    start: JournalPoint,
    replay: &mut Replay<'_>,
) -> Result<Found> {
    let mut found = read(directory, database, start, replay)?;
    loop {
        let end = found.report.end;
        let Err(corruption) = found.search_near(directory, database) else { return Ok(found) };
        found.read_on(directory, database, replay)?;
        if found.report.end == end {
            return Err(corruption);
        }
    }
}

impl Found {
    /// Reads from the end found so far to the end of the journal.
    fn read_on(
        &mut self,
        directory: &Directory,
        database: u128,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        loop {
            let Some(file) = self.files.last().cloned() else { return Ok(()) };
            self.read_file(&file, database, replay)?;
            if self.report.clean || !self.continues(directory, file.number, database)? {
                return Ok(());
            }
        }
    }

    fn read_file(
        &mut self,
        file: &JournalFile,
        database: u128,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let mut window = Window::new(file);
        let offset = if self.report.end.position.file == file.number {
            self.report.end.position.offset
        } else {
            0
        };
        let mut position = JournalPosition { file: file.number, offset };
        while let Reading::Group(header, bytes) = window.group(Place { database, position })? {
            if header.first != self.report.end.sequence.next() {
                break;
            }
            self.report.clean = header.is_end_mark();
            if header.is_end_mark() {
                self.report.end.position = position;
                break;
            }
            self.replay_group(&header, bytes, position, replay)?;
            position = self.report.end.position;
        }
        Ok(())
    }

    fn replay_group(
        &mut self,
        header: &Header,
        bytes: &[u8],
        position: JournalPosition,
        replay: &mut Replay<'_>,
    ) -> Result<()> {
        let mut end = self.report.end;
        for commit in Commits::new(header, bytes) {
            let commit = commit.filter(|commit| commit.timestamp > end.timestamp);
            let commit = commit.ok_or_else(|| {
                let path = files::path(position.file);
                corrupt(
                    &path,
                    position.offset,
                    "group",
                    "commits in order of time",
                    "something else",
                )
            })?;
            replay(commit.sequence, commit.timestamp, commit.body)?;
            (end.sequence, end.timestamp) = (commit.sequence, commit.timestamp);
        }
        end.position = position.after(group_bytes(bytes.len()));
        self.report.commits = self.report.commits.saturating_add(header.count.into());
        self.report.end = end;
        Ok(())
    }

    /// Whether the sequence goes on at the start of a file after `last`. Those between have no
    /// group: a purge that failed went on to a file of zeros, and what came next to another one.
    fn continues(&mut self, directory: &Directory, last: u64, database: u128) -> Result<bool> {
        let mut passed = Vec::new();
        for number in last.saturating_add(1).. {
            let file = match directory.open_as_found(number) {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                opened => opened?,
            };
            let place = Place { database, position: JournalPosition { file: number, offset: 0 } };
            let next = self.report.end.sequence.next();
            let continues = match Window::new(&file).group(place)? {
                Reading::Group(header, _) => header.first == next,
                Reading::Nothing(_) => false,
            };
            passed.push(file);
            if continues {
                passed.iter().try_for_each(JournalFile::check_whole)?;
                self.files.extend(passed.into_iter().map(Arc::new));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// After an unclean end: fails if a group in or after the last file shows that something
    /// durable does not verify any more, else clears what lies behind the end. The groups before
    /// it stay as they are: to write them again could damage them. `later` are the numbers of the
    /// files after the last one.
    pub(super) fn repair(
        &self,
        directory: &Directory,
        database: u128,
        later: &[u64],
    ) -> Result<()> {
        let Some(last) = self.files.last() else { return Ok(()) };
        let mut torn_end = self.search(last, u64::MAX, database)?;
        for number in later {
            self.search(&directory.open_as_found(*number)?, u64::MAX, database)?;
        }
        // Groups behind a torn one may have reached the device whole. They would verify once
        // new groups lead up to them, so their files go, and here they become zeros.
        for number in later {
            directory.remove(*number)?;
        }
        directory.sync()?;
        let end = self.report.end.position.offset;
        torn_end = torn_end.max(end.saturating_add(HEADER_BYTES as u64)).min(last.length);
        let path = files::path(last.number);
        zeros::write(&*last.file, end, torn_end)
            .and_then(|()| last.file.sync())
            .map_err(|error| Error::io(format!("clearing the end of {path}"), error))
    }

    /// What [`Found::search`] finds in the first part behind the end, as far as a reader goes that
    /// comes often, and at the start of the next file.
    fn search_near(&self, directory: &Directory, database: u128) -> Result<()> {
        let Some(last) = self.files.last().filter(|_| !self.report.clean) else { return Ok(()) };
        self.search(last, NEAR_BYTES, database)?;
        match directory.open_as_found(last.number.saturating_add(1)) {
            Ok(next) => self.search(&next, NEAR_BYTES, database).map(drop),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Looks for groups that begin in the `reach` bytes behind the end in `file`: where the last
    /// one ends, or `Corrupt` if one of them knew that the end was not the end.
    fn search(&self, file: &JournalFile, reach: u64, database: u128) -> Result<u64> {
        let end = self.report.end.position;
        let mut offset = if file.number == end.file { end.offset } else { 0 };
        let mut torn_end = offset;
        let limit = offset.saturating_add(reach);
        let mut window = Window::new(file);
        while let Some(candidate) = window.candidate(offset..limit, self.report.end.sequence)? {
            offset = candidate.saturating_add(1);
            let position = JournalPosition { file: file.number, offset: candidate };
            let Reading::Group(header, bytes) = window.group(Place { database, position })? else {
                continue;
            };
            let length = bytes.len();
            if header.synced_to > end {
                return Err(self.corruption(position, database));
            }
            offset = candidate.saturating_add(group_bytes(length));
            torn_end = offset;
        }
        Ok(torn_end)
    }

    fn corruption(&self, later: JournalPosition, database: u128) -> Error {
        let position = self.report.end.position;
        let found = match self.files.last().map(|file| {
            let mut window = Window::new(file);
            window.group(Place { database, position }).map(|reading| reading.describe())
        }) {
            Some(Ok(found)) => found,
            Some(Err(error)) => error.to_string(),
            None => "no file".to_owned(),
        };
        let expected = format!(
            "commit {} (the group at offset {} of {} knew it to be durable)",
            self.report.end.sequence.next(),
            later.offset,
            files::path(later.file)
        );
        corrupt(&files::path(position.file), position.offset, "journal", expected, found)
    }
}

impl Reading<'_> {
    fn describe(&self) -> String {
        match self {
            Self::Group(header, _) => format!("commit {}", header.first),
            Self::Nothing(what) => what.clone(),
        }
    }
}

/// Whether a file has anything but zeros where its first group would be.
pub(super) fn starts_with_data(file: &JournalFile) -> Result<bool> {
    let mut window = Window::new(file);
    Ok(window.bytes(0, HEADER_BYTES as u64)?.is_some_and(|bytes| bytes.iter().any(|b| *b != 0)))
}

/// Bytes of a group with `commits` bytes of commits.
pub(super) fn group_bytes(commits: usize) -> u64 {
    (HEADER_BYTES as u64).saturating_add(commits as u64)
}

/// How far behind the end a reader beside a writer looks for groups.
const NEAR_BYTES: u64 = 1 << 20;

const WINDOW_BYTES_MIN: usize = 4 << 10;
const WINDOW_BYTES_MAX: usize = 1 << 20;

/// A part of a file in memory. It starts small, so that opening a journal that was closed in
/// order reads one page, and doubles, so that a long replay reads in large pieces.
pub(super) struct Window<'a> {
    file: &'a JournalFile,
    start: u64,
    bytes: Vec<u8>,
    ahead: usize,
}

impl<'a> Window<'a> {
    pub(super) fn new(file: &'a JournalFile) -> Self {
        Self { file, start: 0, bytes: Vec::new(), ahead: WINDOW_BYTES_MIN }
    }

    /// `length` bytes at `offset`; `None` if the file ends before that.
    pub(super) fn bytes(&mut self, offset: u64, length: u64) -> Result<Option<&[u8]>> {
        let left = self.file.length.saturating_sub(offset);
        let Some(needed) = usize::try_from(length).ok().filter(|_| length <= left) else {
            return Ok(None);
        };
        if self.held(offset, needed).is_none() {
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            self.bytes.resize(needed.max(self.ahead).min(left), 0);
            self.start = offset;
            self.ahead = self.ahead.saturating_mul(2).min(WINDOW_BYTES_MAX);
            let file: &dyn File = &*self.file.file;
            read_exact_at(file, &mut self.bytes, offset).map_err(|error| {
                self.bytes.clear();
                Error::io(format!("{} at offset {offset}", files::path(self.file.number)), error)
            })?;
        }
        Ok(self.held(offset, needed))
    }

    fn held(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let skipped = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(skipped..)?.get(..length)
    }

    /// The group at `place`, if one verifies there.
    pub(super) fn group(&mut self, place: Place) -> Result<Reading<'_>> {
        let nothing = |what: &str| Ok(Reading::Nothing(what.to_owned()));
        let offset = place.position.offset;
        let Some(bytes) = self.bytes(offset, HEADER_BYTES as u64)? else {
            return nothing("the end of the file");
        };
        let header = bytes.first_chunk::<HEADER_BYTES>();
        let Some(header) = header.and_then(|bytes| Header::decode(bytes, place.position)) else {
            return nothing("no group header");
        };
        let length = group_bytes(0).saturating_add(header.length.into());
        let Some((sealed, commits)) =
            self.bytes(offset, length)?.and_then(|bytes| bytes.split_first_chunk())
        else {
            return nothing("a group that is longer than the file");
        };
        let checksums = place.verify(sealed, commits);
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("ignore_checksum") {
            return Ok(Reading::Group(header, commits));
        }
        if !checksums.agree() {
            let (sum, stored) = (checksums.expected, checksums.found);
            return nothing(&format!("bytes with checksum {sum:#010x}, stored as {stored:#010x}"));
        }
        Ok(Reading::Group(header, commits))
    }

    /// The first offset in `range` at which a group after commit `last` could stand.
    fn candidate(&mut self, range: Range<u64>, last: CommitSequence) -> Result<Option<u64>> {
        let mut offset = range.start;
        let limit = last.0.saturating_add(self.file.length);
        let is_candidate = |header: &[u8]| {
            let first = header.get(FIRST_OFFSET..).and_then(|bytes| bytes.first_chunk());
            let first = first.map_or(0, |bytes| u64::from_le_bytes(*bytes));
            first > last.0 && first <= limit
        };
        while offset < range.end && self.bytes(offset, HEADER_BYTES as u64)?.is_some() {
            let skipped = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
            let mut headers = self.bytes.get(skipped..).unwrap_or_default().windows(HEADER_BYTES);
            let count = headers.len() as u64;
            if let Some(at) = headers.position(is_candidate) {
                return Ok(Some(offset.saturating_add(at as u64)));
            }
            offset = offset.saturating_add(count);
        }
        Ok(None)
    }
}
