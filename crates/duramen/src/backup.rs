//! Backups: a database as of one commit, kept in another place while writers go on.
//!
//! A backup is a checkpoint, the segments that are live then, and a record that names them.
//! Segments are written once and stay readable to who holds them, so nobody waits for the copy. A
//! later backup copies only the segments that are new.
//!
//! Invariants:
//! - a backup is consistent at the commit it tells, whatever is committed or compacted meanwhile;
//! - the record is written last, so that what was cut short is no backup;
//! - nothing is restored that does not have the SHA-256 its record says.

mod cut;
mod destination;
mod lineage;
mod pieces;
mod prune;
mod record;
mod restore;
mod transfer;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use bytes::Bytes;

use self::destination::FileContent;
use self::record::{BackupRecord, Digest};
use self::transfer::Transfer;
use crate::database::Database;
use crate::engine::pin::Pinned;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Lock;
use crate::revision::{CommitSequence, Micros};
use crate::segment::Segment;

pub use self::destination::{BackupFolder, Destination};
pub use self::prune::Pruned;
pub use self::restore::{RestorePoint, Restored};

/// Bytes of cells that are checked before whoever is told how far it is may stop it.
const CHECKED_BYTES: usize = 1 << 20;

/// Is told how far a backup or a restore is: bytes copied and read back, and those there are. After
/// a break it ends with `Cancelled` and leaves nothing.
pub(crate) type Report<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// How a backup is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackupOptions {
    /// Copy only what the newest backup in the destination does not have; without one, all.
    pub incremental: bool,
    /// Read the whole backup back and compare it.
    pub verify: bool,
}

/// A backup in a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// 1, 2, 3 ... in a destination.
    pub number: u64,
    /// The backup from which an incremental one took what had not changed.
    pub parent: Option<u64>,
    /// The database that it is of.
    pub database_id: u128,
    /// The last commit in it.
    pub commit: CommitSequence,
    /// The timestamp of that commit.
    pub timestamp: Micros,
    /// When it was made, by the clock of the database.
    pub made: Micros,
    /// Segments it consists of.
    pub segments: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// What making a backup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupReport {
    /// The backup that was made.
    pub backup: Backup,
    /// Bytes that were copied: those of segments that the parent did not have.
    pub copied_bytes: u64,
}

impl Backup {
    fn of(record: &BackupRecord) -> Self {
        let manifest = &record.manifest;
        Self {
            number: record.number,
            parent: record.parent,
            database_id: manifest.database_id,
            commit: manifest.checkpoint.sequence,
            timestamp: manifest.checkpoint.timestamp,
            made: record.made,
            segments: manifest.segments.len() as u64,
            bytes: manifest.segments.iter().map(crate::segment::SegmentInfo::file_bytes).sum(),
        }
    }

    /// Lists the backups of a destination, oldest first; the first error if a record does not
    /// verify.
    pub fn list(destination: &dyn Destination) -> Result<Vec<Self>> {
        let records = Records::read(destination)?;
        records.all.into_iter().map(|(_, record)| Ok(Self::of(&record?))).collect()
    }

    /// Reads all of a backup and compares it with what its record says; `Corrupt` names what does
    /// not verify.
    pub fn verify(
        destination: &dyn Destination,
        number: u64,
        report: &mut Report<'_>,
    ) -> Result<Self> {
        let record = Records::read_one(destination, number)?;
        let mut transfer = Transfer::new(report, bytes_of(&record));
        verify(destination, &record, &mut transfer)?;
        Ok(Self::of(&record))
    }
}

impl Database {
    /// Makes a backup of everything committed so far, while readers and writers go on. A database
    /// opened for reading is backed up at the commit it shows.
    ///
    /// `Conflict` if the destination has backups of another database, of later commits than this
    /// one has, or of a copy of it that has gone its own way; `Busy` if another backup is being
    /// made there, or a purge overwrites what is being copied; `Corrupt` if a segment of the
    /// database does not verify, or an incremental backup has a damaged one to build on.
    /// See [`BackupFolder`] for an example.
    pub fn backup(
        &self,
        destination: &dyn Destination,
        options: BackupOptions,
        report: &mut Report<'_>,
    ) -> Result<BackupReport> {
        let alone = lock(destination)?;
        let records = Records::read(destination)?;
        let is_first = records.all.is_empty() && listed(destination)?.is_empty();
        let mut put = Vec::new();
        let made = self.back_up((destination, &records), options, report, &mut put);
        // Where the lock is another one, the folder is of somebody else's backups.
        if made.is_err() && is_first && alone.is_in_place() {
            remove_first(destination, &put);
        }
        made
    }

    /// Makes a backup behind those there are; `put` is told the names of its objects before they
    /// are put.
    fn back_up(
        &self,
        (destination, records): (&dyn Destination, &Records),
        options: BackupOptions,
        report: &mut Report<'_>,
        put: &mut Vec<String>,
    ) -> Result<BackupReport> {
        records.check_database(self.id())?;
        let pinned = self.engine.pin()?;
        if let Some(last) = records.last() {
            check_commit(last, pinned.manifest.checkpoint.sequence)?;
            lineage::check(&self.engine, &pinned, last)?;
        }
        let parent = if options.incremental { records.newest_to_build_on()? } else { None };
        let there = present(destination, parent)?;
        let mut record = BackupRecord {
            number: records.next_number(),
            parent: parent.map(|parent| parent.number),
            made: self.engine.options.clock.now(),
            digests: Vec::new(),
            manifest: pinned.manifest.clone(),
        };
        let new: u64 = bytes_of_new(&pinned, &there);
        let to_verify = if options.verify { bytes_of(&record) } else { 0 };
        let mut transfer = Transfer::new(report, new + to_verify);
        for segment in &pinned.segments {
            let name = record::segment_name(segment.info());
            let digest = if let Some(digest) = there.get(&name) {
                *digest
            } else {
                put.push(name);
                copy(segment, destination, &mut transfer)?
            };
            record.digests.push(digest);
        }
        if options.verify {
            verify(destination, &record, &mut transfer)?;
        }
        put.push(record::name(record.number));
        put_record(destination, &record)?;
        if options.verify && Records::read_one(destination, record.number)? != record {
            return Err(record::damage(record.number, "was not written as it is"));
        }
        Ok(BackupReport { backup: Backup::of(&record), copied_bytes: new })
    }
}

/// Keeps other backups away from a destination.
fn lock(destination: &dyn Destination) -> Result<Box<dyn Lock>> {
    destination.lock().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = "another backup is being made there: wait for it to end";
            Error::new(ErrorKind::Busy, message)
        }
        std::io::ErrorKind::InvalidInput => Error::new(ErrorKind::Invalid, error.to_string()),
        _ => Error::io("cannot lock the backup folder", error),
    })
}

type Present = std::collections::BTreeMap<String, Digest>;

/// What a backup has that is still there, by name.
fn present(destination: &dyn Destination, parent: Option<&BackupRecord>) -> Result<Present> {
    let Some(parent) = parent else { return Ok(Present::new()) };
    let listed: BTreeSet<String> = listed(destination)?
        .into_iter()
        .map(|name| format!("{}/{name}", record::SEGMENTS))
        .collect();
    let segments = parent.segments().map(|(info, digest)| (record::segment_name(info), *digest));
    Ok(segments.filter(|(name, _)| listed.contains(name)).collect())
}

/// The segments of all backups, and those that are of none.
fn listed(destination: &dyn Destination) -> Result<Vec<String>> {
    let listed = destination.list(record::SEGMENTS);
    listed.map_err(|error| Error::io("cannot list the backup's segments", error))
}

/// Removes the objects that a backup has put which failed, where there were none before.
fn remove_first(destination: &dyn Destination, put: &[String]) {
    // The record, which came last, first: one that comes back with the power must find the others.
    for name in put.iter().rev() {
        match destination.remove(name) {
            // Not even its folder could be made.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return,
            Ok(()) => {}
        }
    }
    destination.leave();
}

fn bytes_of(record: &BackupRecord) -> u64 {
    record.manifest.segments.iter().map(crate::segment::SegmentInfo::file_bytes).sum()
}

fn bytes_of_new(pinned: &Pinned, there: &Present) -> u64 {
    let infos = pinned.manifest.segments.iter();
    let new = infos.filter(|info| !there.contains_key(&record::segment_name(info)));
    new.map(crate::segment::SegmentInfo::file_bytes).sum()
}

/// Copies a segment that verifies.
fn copy(
    segment: &Segment,
    destination: &dyn Destination,
    transfer: &mut Transfer<'_, '_>,
) -> Result<Digest> {
    let not_made = |error: Error| error.in_context("the backup was not made");
    // Damage that is copied would be found when it is too late.
    let mut unseen = 0;
    let mut visit = |key: &[u8], cell: Bytes| {
        unseen += key.len() + cell.len();
        if unseen < CHECKED_BYTES {
            return Ok(());
        }
        unseen = 0;
        transfer.go_on()
    };
    let damage = segment.check(&mut visit).into_iter().next();
    transfer.go_on()?;
    if let Some(damage) = damage {
        return Err(not_made(damage));
    }
    let (name, length) = (record::segment_name(segment.info()), segment.info().file_bytes());
    let mut content = FileContent { file: segment.shared_file(), offset: 0 };
    let digest = transfer.run(&mut content, |content| {
        let stored = destination.put(&name, content, length);
        stored.map_err(|error| Error::io(format_args!("cannot write {name} to the backup"), error))
    })?;
    segment.check_not_overwritten().map_err(|error| {
        // It has zeros, and no record names it.
        let _ = destination.remove(&name);
        not_made(error)
    })?;
    Ok(digest)
}

fn put_record(destination: &dyn Destination, record: &BackupRecord) -> Result<()> {
    let (name, bytes) = (record::name(record.number), record.encode());
    let stored = destination.put(&name, &mut bytes.as_slice(), bytes.len() as u64);
    stored.map_err(|error| Error::io(format_args!("cannot write {name} to the backup"), error))
}

/// Reads every segment of a backup.
fn verify(
    destination: &dyn Destination,
    record: &BackupRecord,
    transfer: &mut Transfer<'_, '_>,
) -> Result<()> {
    for (info, digest) in record.segments() {
        transfer.fetch(destination, (record.number, info, digest), &mut std::io::sink())?;
    }
    Ok(())
}

/// The records of a destination.
struct Records {
    /// By number, each as it reads.
    all: Vec<(u64, Result<BackupRecord>)>,
}

impl Records {
    fn read(destination: &dyn Destination) -> Result<Self> {
        let listed = destination.list(record::FOLDER);
        let listed = listed.map_err(|error| Error::io("cannot list the backups", error))?;
        let mut numbers: Vec<u64> = listed.iter().filter_map(|name| record::number(name)).collect();
        numbers.sort_unstable();
        let mut all = Vec::new();
        for number in numbers {
            match Self::read_one(destination, number) {
                Err(error)
                    if !matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported) =>
                {
                    return Err(error);
                }
                read => all.push((number, read)),
            }
        }
        Ok(Self { all })
    }

    fn read_one(destination: &dyn Destination, number: u64) -> Result<BackupRecord> {
        let bytes = Self::bytes_of(destination, number, record::BYTES_MAX + 1)?;
        BackupRecord::decode(&bytes, number)
    }

    /// Whether what is named as a record begins as one.
    fn is_one(destination: &dyn Destination, number: u64) -> Result<bool> {
        let begin = Self::bytes_of(destination, number, record::MAGIC.len() as u64)?;
        Ok(begin == record::MAGIC)
    }

    /// The first so many bytes of a record, or all if there are less.
    fn bytes_of(destination: &dyn Destination, number: u64, bytes_max: u64) -> Result<Vec<u8>> {
        let name = record::name(number);
        let failed = |error| Error::io(format_args!("cannot read {name} of the backup"), error);
        let mut bytes = Vec::new();
        let content = destination.get(&name).map_err(failed)?;
        let mut content = std::io::Read::take(content, bytes_max);
        std::io::Read::read_to_end(&mut content, &mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    fn next_number(&self) -> u64 {
        self.all.last().map_or(1, |(number, _)| number + 1)
    }

    /// The newest one, which has to verify.
    fn newest(&self) -> Result<Option<&BackupRecord>> {
        match self.all.last() {
            None => Ok(None),
            Some((_, Ok(record))) => Ok(Some(record)),
            Some((_, Err(error))) => Err(again(error)),
        }
    }

    fn newest_to_build_on(&self) -> Result<Option<&BackupRecord>> {
        let context = "an incremental backup builds on the newest one, so make a full one";
        self.newest().map_err(|error| error.in_context(context))
    }

    /// Those that verify, oldest first.
    fn readable(&self) -> impl DoubleEndedIterator<Item = &BackupRecord> {
        self.all.iter().filter_map(|(_, record)| record.as_ref().ok())
    }

    fn check_database(&self, id: u128) -> Result<()> {
        let other = self.readable().find(|record| record.manifest.database_id != id);
        let Some(other) = other else { return Ok(()) };
        let message = format!(
            "the folder has backups of another database ({:032x}, this one is {id:032x}): name \
             another folder; a database that was restored is another one than that it was",
            other.manifest.database_id
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// The one that goes furthest.
    fn last(&self) -> Option<&BackupRecord> {
        self.readable().max_by_key(|record| record.manifest.checkpoint.sequence)
    }
}

fn check_commit(last: &BackupRecord, commit: CommitSequence) -> Result<()> {
    let newest = last.manifest.checkpoint.sequence;
    if newest <= commit {
        return Ok(());
    }
    let message = format!(
        "the folder has a backup up to commit {newest}, but the database ends with commit \
         {commit}: it is an older copy; name another folder"
    );
    Err(Error::new(ErrorKind::Conflict, message))
}

/// The same error for another one who asks.
fn again(error: &Error) -> Error {
    Error::new(error.kind(), error.message())
}
