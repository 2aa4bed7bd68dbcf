//! Writes groups, one after the other.
//!
//! Invariants:
//! - every byte of an older file is durable before the next file is written;
//! - while an end mark is valid on the device, nothing was written after it: the group that
//!   overwrites it is synced before anything else is written.

use std::io;
use std::sync::Arc;

use super::JournalPoint;
use super::files::{self, Directory, JournalFile};
use super::group::{HEADER_BYTES, Header, Place};
use super::queue::{Batch, Failure};
use crate::io::{read_exact_at, write_all_at, zeros};
use crate::journal::JournalPosition;
use crate::{Error, ErrorKind, Micros};

/// Microseconds of commits for which one look at the place does: it takes 4 to 25, a sync from
/// 75 on; and syncs for which it does.
const LOOK_HOLDS_US: u64 = 10_000;
const LOOK_HOLDS_SYNCS: u64 = 32;

/// The end of the journal on the device.
#[derive(Debug)]
pub(super) struct Writer {
    database: u128,
    file: Arc<JournalFile>,
    end: JournalPosition,
    synced_to: JournalPosition,
    /// Whether an end mark stands at the end.
    marked: bool,
    /// The header of the last group, or what comes before the end if no group was written.
    last: Option<Standing>,
    /// What the next look expects: the first group since the last look, or what was the last one
    /// then. A later one would stand there too if other content had come before it.
    known: Option<Standing>,
    /// Whether no group was written since the last look.
    is_seen: bool,
    /// For a batch of which time that was, and how many syncs were made before; none if the file is
    /// another one since, or it was for none.
    looked: Option<(Micros, u64)>,
    /// Syncs made.
    pub(super) syncs: u64,
}

/// Bytes that have to stand in the file, and where.
type Standing = (u64, [u8; HEADER_BYTES]);

impl Writer {
    /// A writer that goes on at `end` of `file`; everything before it is durable.
    pub(super) fn new(
        database: u128,
        file: Arc<JournalFile>,
        end: JournalPosition,
        marked: bool,
    ) -> Self {
        let last = file.id.and_then(|_| read_before(&file, end.offset));
        Self {
            database,
            file,
            end,
            synced_to: end,
            marked,
            last,
            known: last,
            is_seen: false,
            looked: None,
            syncs: 0,
        }
    }

    /// Whether the place was looked at so shortly before a batch that it need not wait for another
    /// look.
    pub(super) fn has_looked(&self, batch: &Batch) -> bool {
        let now = batch.last_timestamp.0;
        let is_recent = |(then, syncs): (Micros, u64)| {
            now.abs_diff(then.0) < LOOK_HOLDS_US && self.syncs - syncs < LOOK_HOLDS_SYNCS
        };
        self.file.number == batch.file.number && self.looked.is_some_and(is_recent)
    }

    /// Looks, for a batch or for itself, whether nobody has put another file in the place of this
    /// one, or other content over its own, such as that of an older copy: nothing that is written
    /// behind that would be found. Where it cannot be told which file stands where, it is taken to
    /// be so.
    pub(super) fn look(&mut self, directory: &Directory, batch: Option<&Batch>) -> bool {
        let is_there = directory.is_in_place() && self.is_in_place(directory);
        if is_there {
            (self.known, self.is_seen) = (self.last, true);
            self.looked = batch.map(|batch| (batch.last_timestamp, self.syncs));
        }
        is_there
    }

    /// The look before does for no more batches.
    pub(super) fn look_again(&mut self) {
        self.looked = None;
    }

    fn is_in_place(&self, directory: &Directory) -> bool {
        if self.file.id.is_none() {
            return true;
        }
        let has_known = || {
            let Some((offset, known)) = &self.known else { return true };
            let mut found = [0; HEADER_BYTES];
            match read_exact_at(&*self.file.file, &mut found, *offset) {
                Ok(()) => found == *known,
                Err(error) => error.kind() != io::ErrorKind::UnexpectedEof,
            }
        };
        directory.has(&self.file) && has_known()
    }

    /// Whether an end mark is still to be written.
    pub(super) fn is_open(&self) -> bool {
        !self.marked || self.synced_to != self.end
    }

    /// Writes `batch` as a group and syncs if `sync` or needed: whether everything is durable.
    pub(super) fn write(&mut self, batch: &mut Batch, sync: bool) -> Result<bool, Failure> {
        let group = Some((batch.first, batch.last()));
        let unknown = |error: Error| Failure {
            kind: ErrorKind::Unknown,
            message: format!(
                "whether it is kept is known after reopening: {}",
                error.without_advice()
            ),
            group,
        };
        self.enter(&batch.file).map_err(unknown)?;
        if let Err(error) = self.write_group(batch) {
            let undone = self.undo();
            let failed = Error::io(format!("writing {}", files::path(self.file.number)), error);
            return Err(match undone {
                Ok(()) => Failure {
                    kind: failed.kind(),
                    message: format!("it is not kept: {}", failed.without_advice()),
                    group,
                },
                Err(_) => unknown(failed),
            });
        }
        self.end = self.end.after(batch.len());
        if sync || self.marked {
            self.sync().map_err(unknown)?;
            self.marked = false;
        }
        Ok(self.synced_to == self.end)
    }

    /// Makes everything written durable.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        if self.synced_to == self.end {
            return Ok(());
        }
        self.sync_file()?;
        self.synced_to = self.end;
        Ok(())
    }

    /// Writes an end mark after `tail`, unless it stands there already.
    pub(super) fn mark(&mut self, tail: JournalPoint) -> Result<(), Error> {
        self.sync()?;
        if self.marked {
            return Ok(());
        }
        let header = Header {
            length: 0,
            first: tail.sequence.next(),
            count: 0,
            synced_to: self.synced_to,
            timestamp: tail.timestamp,
        };
        let sealed = self.place().seal(&header, [&[], &[]]);
        write_all_at(&*self.file.file, &sealed, self.end.offset)
            .map_err(|error| Error::io(files::path(self.file.number), error))?;
        self.sync_file()?;
        self.marked = true;
        Ok(())
    }

    /// Takes the end mark back, if there is one.
    pub(super) fn unmark(&mut self) -> Result<(), Error> {
        if self.marked {
            self.undo().map_err(|e| Error::io(files::path(self.file.number), e))?;
            self.marked = false;
        }
        Ok(())
    }

    fn place(&self) -> Place {
        Place { database: self.database, position: self.end }
    }

    fn sync_file(&mut self) -> Result<(), Error> {
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("skip_sync") {
            return Ok(());
        }
        self.syncs += 1;
        let synced = self.file.file.sync();
        synced.map_err(|e| Error::io(format!("sync of {}", files::path(self.file.number)), e))
    }

    /// Goes on to `file` if it is not the present one.
    pub(super) fn enter(&mut self, file: &Arc<JournalFile>) -> Result<(), Error> {
        if self.file.number == file.number {
            return Ok(());
        }
        assert_eq!(self.file.number + 1, file.number, "files are written in order");
        self.unmark()?;
        self.sync()?;
        self.file = Arc::clone(file);
        self.end = JournalPosition { file: file.number, offset: 0 };
        (self.last, self.known, self.looked) = (None, None, None);
        Ok(())
    }

    fn write_group(&mut self, batch: &mut Batch) -> io::Result<()> {
        assert_eq!(batch.offset, self.end.offset, "a group follows the one before");
        let large = batch.large.as_deref().unwrap_or_default();
        let (header, commits) = batch.bytes.split_at_mut(HEADER_BYTES);
        let fields = Header {
            length: u32::try_from(commits.len() + large.len()).expect("a file is under 4 GiB"),
            first: batch.first,
            count: batch.count,
            synced_to: self.synced_to,
            timestamp: batch.first_timestamp,
        };
        let sealed = self.place().seal(&fields, [commits, large]);
        header.copy_from_slice(&sealed);
        let after = batch.offset + batch.bytes.len() as u64;
        write_all_at(&*self.file.file, &batch.bytes, batch.offset)?;
        write_all_at(&*self.file.file, large, after)?;
        self.last = Some((batch.offset, sealed));
        if std::mem::take(&mut self.is_seen) || self.known.is_none() {
            self.known = self.last;
        }
        Ok(())
    }

    /// Takes back the group or end mark at the end: no header stands there any more.
    fn undo(&self) -> io::Result<()> {
        let offset = self.end.offset;
        zeros::write(&*self.file.file, offset, offset + HEADER_BYTES as u64)?;
        self.file.file.sync()
    }
}

/// The last bytes before an offset, as many as a header has.
fn read_before(file: &JournalFile, end: u64) -> Option<Standing> {
    let offset = end.checked_sub(HEADER_BYTES as u64)?;
    let mut bytes = [0; HEADER_BYTES];
    read_exact_at(&*file.file, &mut bytes, offset).ok()?;
    Some((offset, bytes))
}
