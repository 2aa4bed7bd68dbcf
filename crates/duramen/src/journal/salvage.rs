//! Reads every group that verifies out of journal files that may be damaged anywhere.
//!
//! Invariants:
//! - what is visited verifies, and its sequences rise;
//! - behind a group that is missing nothing is visited unless a later group knew the missing one to
//!   be durable: else it was never acknowledged, and what came after it neither.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::files::{self, Directory, JournalFile};
use super::group::{Commits, HEADER_BYTES, Header, Place};
use super::recovery::{Reading, Window, group_bytes};
use super::{JournalPosition, Replay};
use crate::io::{Access, Device};
use crate::{CommitSequence, Error, Result};

/// The groups of a journal that verify.
#[derive(Debug)]
pub(crate) struct SalvagedJournal {
    database: u128,
    files: Vec<JournalFile>,
    /// In the order of their places.
    groups: Vec<(JournalPosition, Header)>,
}

/// Commits that are missing between groups that verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MissingCommits {
    /// Where the first of them should be.
    pub(crate) position: JournalPosition,
    pub(crate) first: CommitSequence,
    pub(crate) last: CommitSequence,
}

/// A file of the journal that lacks bytes, or all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) file: String,
    /// What is there of it.
    pub(crate) found: String,
}

impl MissingCommits {
    /// Which they are.
    pub(crate) fn commits(&self) -> String {
        match (self.first, self.last) {
            (first, last) if first == last => format!("commit {first}"),
            (first, last) => format!("commits {first} to {last}"),
        }
    }

    /// The file they should be in.
    pub(crate) fn file(&self) -> String {
        files::path(self.position.file)
    }
}

impl SalvagedJournal {
    /// Looks through all files of the journal of `database`.
    pub(crate) fn read(device: &Arc<dyn Device>, database: u128) -> Result<Self> {
        let directory = Directory::new(Arc::clone(device), Access::Read);
        let numbers = match directory.numbers() {
            Err(error) if error.kind() == crate::ErrorKind::NotFound => Vec::new(),
            numbers => numbers?,
        };
        let mut journal = Self { database, files: Vec::new(), groups: Vec::new() };
        for number in numbers {
            let path = files::path(number);
            let failed = |error| Error::io(format!("cannot read {path}"), error);
            let file = device.open(&path, Access::Read).map_err(failed)?;
            let length = file.len().map_err(failed)?;
            let file = JournalFile { number, length, file, id: None };
            journal.look_through(&file)?;
            journal.files.push(file);
        }
        Ok(journal)
    }

    /// Whether nothing in it verifies.
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// A file that has not all of its bytes, so that the last commits may be gone unseen: of those
    /// from number `begins` on, or of all if that is not known.
    pub(crate) fn cut(&self, begins: Option<u64>) -> Option<Cut> {
        let Some(begins) = begins.or_else(|| Some(self.files.first()?.number)) else {
            let (file, found) = (files::DIRECTORY.to_owned(), "there is no file in it".to_owned());
            return Some(Cut { file, found });
        };
        if self.files.iter().all(|file| file.number != begins) {
            let found = "the journal goes on in this file, which is not there".to_owned();
            return Some(Cut { file: files::path(begins), found });
        }
        // The mark says that there is nothing behind it.
        if self.groups.last().is_some_and(|(_, header)| header.is_end_mark()) {
            return None;
        }
        let cut = self.files.iter().find(|file| file.number >= begins && !file.is_whole())?;
        let found = format!("it was cut: it has {} bytes", cut.length);
        Some(Cut { file: files::path(cut.number), found })
    }

    /// Whether more than one group verifies: that of one alone may be by chance.
    pub(super) fn confirms(&self) -> bool {
        self.groups.len() > 1
    }

    /// Gives the commits to `visit`; what is missing among those after `known`, the last one that
    /// is elsewhere.
    pub(crate) fn replay(
        &self,
        known: CommitSequence,
        visit: &mut Replay<'_>,
    ) -> Result<Vec<MissingCommits>> {
        let mut missing = Vec::new();
        let mut end: Option<(JournalPosition, CommitSequence)> = None;
        for (index, (position, header)) in self.groups.iter().enumerate() {
            let (place, last) = end.unwrap_or((JournalPosition { offset: 0, ..*position }, known));
            if header.first > last.next() {
                if !self.was_durable(index, place) {
                    break;
                }
                let gap = MissingCommits {
                    position: place,
                    first: last.next(),
                    last: before(header.first),
                };
                if gap.last > known {
                    missing.push(MissingCommits { first: gap.first.max(known.next()), ..gap });
                }
            }
            if header.first < last.next() && end.is_some() {
                break;
            }
            let done = self.visit_group(*position, visit)?.unwrap_or(before(header.first));
            let length = usize::try_from(header.length).unwrap_or(usize::MAX);
            end = Some((position.after(group_bytes(length)), done));
        }
        Ok(missing)
    }

    /// Whether a group from `index` on knew that everything up to `place` and more was durable.
    fn was_durable(&self, index: usize, place: JournalPosition) -> bool {
        let later = self.groups.get(index..).unwrap_or_default();
        later.iter().any(|(_, header)| header.synced_to > place || header.is_end_mark())
    }

    /// Visits the commits of a group; the last one's sequence.
    fn visit_group(
        &self,
        position: JournalPosition,
        visit: &mut Replay<'_>,
    ) -> Result<Option<CommitSequence>> {
        let Some(file) = self.files.iter().find(|file| file.number == position.file) else {
            return Ok(None);
        };
        let mut window = Window::new(file);
        let place = Place { database: self.database, position };
        let Reading::Group(header, bytes) = window.group(place)? else { return Ok(None) };
        let mut last = None;
        // A group that verifies holds what was written, so its commits are there to the last.
        for commit in Commits::new(&header, bytes).flatten() {
            visit(commit.sequence, commit.timestamp, commit.body)?;
            last = Some(commit.sequence);
        }
        Ok(last)
    }

    fn look_through(&mut self, file: &JournalFile) -> Result<()> {
        let mut window = Window::new(file);
        let mut offset = 0;
        while let Some(bytes) = window.bytes(offset, HEADER_BYTES as u64)? {
            let position = JournalPosition { file: file.number, offset };
            let header = bytes.first_chunk().and_then(|bytes| Header::decode(bytes, position));
            let fits = header.is_some_and(|header| self.is_plausible(&header, file.length));
            let place = Place { database: self.database, position };
            if fits && let Reading::Group(header, bytes) = window.group(place)? {
                let length = group_bytes(bytes.len());
                self.groups.push((position, header));
                if header.is_end_mark() {
                    // Nothing follows it; what stands behind it is older.
                    return Ok(());
                }
                offset = offset.saturating_add(length);
            } else {
                offset = offset.saturating_add(1);
            }
        }
        Ok(())
    }

    /// Spares the checksums of most bytes that are no header: sequences only rise, and by no more
    /// than the bytes between two groups.
    fn is_plausible(&self, header: &Header, length: u64) -> bool {
        let Some((_, before)) = self.groups.last() else { return true };
        let least = before.first.0.saturating_add(before.count.into());
        let most = least.saturating_add(length.saturating_mul(2));
        (least..=most).contains(&header.first.0)
    }
}

fn before(sequence: CommitSequence) -> CommitSequence {
    CommitSequence(sequence.0.saturating_sub(1))
}
