//! Restoring: a new database from a backup, as it was at a commit or a time.
//!
//! Invariants:
//! - the manifest is written last, so that what was cut short is no database;
//! - the new database has an id of its own, because the old one may go on: what is remembered of
//!   one, or backed up, is never taken for the other's.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use super::destination::Destination;
use super::record::BackupRecord;
use super::transfer::Transfer;
use super::{Backup, Records, Report, again, bytes_of, cut};
use crate::database::Database;
use crate::engine::unfinished::{self, Unfinished};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, DirectoryDevice, File, write_all_at};
use crate::journal::{Journal, JournalPoint, JournalSettings};
use crate::manifest::Manifest;
use crate::revision::{CommitSequence, Micros};
use crate::segment::{self, SegmentInfo};
use crate::{SystemClock, store};

/// What a database is restored to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestorePoint {
    /// The last commit of the newest backup.
    Newest,
    /// A commit.
    Commit(CommitSequence),
    /// The last commit at or before a time.
    Time(Micros),
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The backup that was used.
    pub backup: Backup,
    /// The last commit of the new database.
    pub commit: CommitSequence,
    /// The timestamp of that commit.
    pub timestamp: Micros,
}

impl Database {
    /// Makes a new database in a folder, which has to be empty or missing, from a backup. The new
    /// database has an id of its own.
    ///
    /// `Corrupt` if the backup does not verify, `NotFound` if none reaches the point or the
    /// retention of a document dropped what it was then, `Invalid` if the folder is not empty.
    /// Nothing is left then but a folder that was there before.
    pub fn restore(
        destination: &dyn Destination,
        path: impl AsRef<Path>,
        point: RestorePoint,
        report: &mut Report<'_>,
    ) -> Result<Restored> {
        let path = path.as_ref();
        let device: Arc<dyn Device> = Arc::new(DirectoryDevice::new(path));
        let restored = unfinished::check_empty(device.as_ref())
            .and_then(|()| Self::restore_device(destination, &device, point, report));
        restored.map_err(|error| error.in_context(path.display()))
    }

    /// Makes a new database on a device from a backup, as [`Database::restore`] does in a folder.
    pub fn restore_device(
        destination: &dyn Destination,
        device: &Arc<dyn Device>,
        point: RestorePoint,
        report: &mut Report<'_>,
    ) -> Result<Restored> {
        let records = Records::read(destination)?;
        let record = choose(&records, point)?;
        let place = Unfinished::begin(Arc::clone(device))?;
        place.announce()?;
        let making: Arc<dyn Device> = Arc::<Unfinished>::clone(&place);
        let mut transfer = Transfer::new(report, bytes_of(record));
        let restored = restore((destination, record), &making, point, &mut transfer)?;
        place.finish()?;
        let JournalPoint { sequence: commit, timestamp, .. } = restored;
        Ok(Restored { backup: Backup::of(record), commit, timestamp })
    }
}

/// The first backup that has what there was at a point.
fn choose(records: &Records, point: RestorePoint) -> Result<&BackupRecord> {
    let reaches = |record: &&BackupRecord| match point {
        RestorePoint::Newest => true,
        RestorePoint::Commit(commit) => record.manifest.checkpoint.sequence >= commit,
        RestorePoint::Time(time) => record.made.max(record.manifest.checkpoint.timestamp) >= time,
    };
    let none = |what: &str| Error::new(ErrorKind::NotFound, what);
    if records.all.is_empty() {
        let what = "there is no backup: a backup that was cut short leaves none, so make it again, \
                    or check the path";
        return Err(none(what));
    }
    if point == RestorePoint::Newest {
        return records.newest()?.ok_or_else(|| none("there is no backup"));
    }
    if let Some(record) = records.readable().find(reaches) {
        return Ok(record);
    }
    // A damaged one might have reached it.
    if let Some(error) = records.all.iter().find_map(|(_, record)| record.as_ref().err()) {
        return Err(again(error));
    }
    let newest = records.readable().map(|record| record.manifest.checkpoint.sequence).max();
    let newest = newest.unwrap_or_default();
    Err(none(&format!(
        "no backup goes as far: the newest one ends with commit {newest}; make another one, or \
         choose an earlier point"
    )))
}

fn restore(
    (destination, record): (&dyn Destination, &BackupRecord),
    device: &Arc<dyn Device>,
    point: RestorePoint,
    transfer: &mut Transfer<'_, '_>,
) -> Result<JournalPoint> {
    store::create_directory(device.as_ref())?;
    for (info, digest) in record.segments() {
        let mut file = SegmentFile::create(device.as_ref(), info)?;
        transfer.fetch(destination, (record.number, info, digest), &mut file)?;
        file.sync()?;
    }
    let synced = device.sync_dir(segment::DIRECTORY);
    synced.map_err(|error| Error::io("cannot sync the segments", error))?;
    let checkpoint =
        JournalPoint { position: JournalPoint::START.position, ..record.manifest.checkpoint };
    let mut manifest =
        Manifest { database_id: device.entropy(), checkpoint, ..record.manifest.clone() };
    let is_cut = match point {
        RestorePoint::Newest => false,
        RestorePoint::Commit(commit) => manifest.checkpoint.sequence > commit,
        RestorePoint::Time(time) => manifest.checkpoint.timestamp > time,
    };
    if is_cut {
        manifest = cut::cut(device, (&manifest, record.made), point)?;
        store::remove_unnamed(device.as_ref(), &manifest, &[])?;
    }
    let settings = JournalSettings {
        device: Arc::clone(device),
        clock: Arc::new(SystemClock),
        database: manifest.database_id,
        wanted_bytes: 0,
        background: false,
        erases: false,
    };
    Journal::create(&settings, manifest.checkpoint)?.close()?;
    manifest.store(device.as_ref())?;
    Ok(manifest.checkpoint)
}

/// A segment's file that is written from its beginning on.
struct SegmentFile {
    file: Arc<dyn File>,
    path: String,
    written: u64,
}

impl SegmentFile {
    fn create(device: &dyn Device, info: &SegmentInfo) -> Result<Self> {
        let path = info.path();
        let file = device
            .open(&path, Access::Create)
            .map_err(|error| Error::io(format_args!("cannot create {path}"), error))?;
        Ok(Self { file, path, written: 0 })
    }

    fn sync(&self) -> Result<()> {
        let synced = self.file.sync();
        synced.map_err(|error| Error::io(format_args!("cannot sync {}", self.path), error))
    }
}

impl Write for SegmentFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_all_at(self.file.as_ref(), bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
