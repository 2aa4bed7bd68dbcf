//! Records that are read together, in whatever order they are asked for.
//!
//! A batch is read row group by row group, each under the lock once, and the records of a row group
//! by column ([`RecordRows`]). What it holds in memory is bounded: records that do not fit are read
//! when they are asked for.

use std::cell::RefCell;

use crate::error::{Error, ErrorKind, Result};
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{Fault, locate};
use crate::tree::record_rows::RecordRows;
use crate::tree::records::{VERSION_FIELD, version_of};
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;

/// Records that are read together at most.
pub(crate) const BATCH_RECORDS_MAX: usize = 4_096;

/// Records of one row group that are read under the lock at once.
const LOCKED_RECORDS_MAX: usize = 512;

/// Bytes of records that a batch has at hand: the one behind which it is reached is the last.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Bytes that a record's text is given room for at first.
const TEXT_BYTES: usize = 128;

/// A record that is there at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    /// The text of its key, if it was asked for.
    pub(crate) key: String,
    pub(crate) version: u64,
    /// The record as compact JSON.
    pub(crate) json: String,
}

/// Records by their ordinals, read ahead as they are asked for one by one.
#[derive(Debug, Default)]
pub(crate) struct RecordBatch {
    ordinals: Vec<u64>,
    read: Vec<Read>,
    /// The next one asked for.
    at: usize,
    has_keys: bool,
}

/// What is known of a record.
#[derive(Debug, Clone)]
enum Read {
    NotYet,
    /// There is none, or it was purged.
    Nothing,
    There(StoredRecord),
}

/// What came of looking at one of them.
enum Seen {
    Nothing,
    Whole(StoredRecord),
    /// Its text takes more than the columns have.
    Part(StoredRecord),
}

impl RecordBatch {
    /// The records with some ordinals, with their keys if these are asked for.
    pub(crate) fn new(ordinals: Vec<u64>, has_keys: bool) -> Self {
        let read = vec![Read::NotYet; ordinals.len()];
        Self { ordinals, read, at: 0, has_keys }
    }

    /// The next record that is there at a revision, and its place among those asked for: records
    /// that are not, or were purged, are passed over. None at the end.
    pub(crate) fn next(&mut self, of: (&Tree, u32)) -> Result<Option<(usize, StoredRecord)>> {
        while let Some(next) = self.read.get(self.at) {
            if matches!(next, Read::NotYet) {
                self.fill(of)?;
            }
            let place = self.at;
            self.at += 1;
            if let Read::There(record) = std::mem::replace(&mut self.read[place], Read::Nothing) {
                return Ok(Some((place, record)));
            }
        }
        Ok(None)
    }

    /// Reads the next record, and as many others as there is room for.
    fn fill(&mut self, (tree, revision): (&Tree, u32)) -> Result<()> {
        let mut places: Vec<usize> = (self.at..self.ordinals.len()).collect();
        places.retain(|&place| matches!(self.read[place], Read::NotYet));
        let ordinals = &self.ordinals;
        places.sort_unstable_by_key(|&place| (ordinals[place], place));
        // From the next one on, so that it is among those there is room for.
        let next = places.partition_point(|&place| ordinals[place] < ordinals[self.at]);
        places.rotate_left(next);
        let is_together = |a: &usize, b: &usize| {
            let (a, b) = (ordinals[*a], ordinals[*b]);
            a <= b && locate(a).0 == locate(b).0
        };
        let mut left = BATCH_BYTES_MAX;
        for together in places.chunk_by(is_together) {
            for places in together.chunks(LOCKED_RECORDS_MAX) {
                let ordinals: Vec<u64> = places.iter().map(|&place| self.ordinals[place]).collect();
                let of = Locked { tree, ordinals: &ordinals, revision, has_keys: self.has_keys };
                for (read, &place) in of.read(&mut left)?.into_iter().zip(places) {
                    self.read[place] = read;
                }
                if left == 0 {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Records of one row group, their ordinals rising.
struct Locked<'t> {
    tree: &'t Tree,
    ordinals: &'t [u64],
    revision: u32,
    has_keys: bool,
}

impl Locked<'_> {
    /// Reads them until nothing is left of the bytes there is room for.
    fn read(&self, left: &mut usize) -> Result<Vec<Read>> {
        let seen = RefCell::new(Vec::with_capacity(self.ordinals.len()));
        let path = self.tree.read(|data| self.look(data, *left, &seen))?;
        let Some(path) = path else { return Ok(vec![Read::Nothing; self.ordinals.len()]) };
        let mut read = Vec::with_capacity(self.ordinals.len());
        for (seen, &ordinal) in seen.into_inner().into_iter().zip(self.ordinals) {
            // The first of a batch is read whatever it takes.
            if *left == 0 {
                break;
            }
            let record = match seen {
                Seen::Nothing => {
                    read.push(Read::Nothing);
                    continue;
                }
                Seen::Whole(record) => record,
                Seen::Part(record) => {
                    let mut json = Vec::new();
                    let record_at = (node(path, ordinal), self.revision);
                    self.tree.append_json(record_at, &Format::default(), &mut json)?;
                    StoredRecord { json: utf8(json)?, ..record }
                }
            };
            *left = left.saturating_sub(record.json.len());
            read.push(Read::There(record));
        }
        Ok(read)
    }

    /// Looks at them under the lock, those left out that were seen before.
    fn look(
        &self,
        data: &TreeData,
        left: usize,
        seen: &RefCell<Vec<Seen>>,
    ) -> Result<Option<PathId>, Fault> {
        data.kept.check(self.revision).map_err(Fault::Error)?;
        let Some(path) = data.schema.path(ROOT).entry else { return Ok(None) };
        let mut seen = seen.borrow_mut();
        let space = data.schema.path(path).space;
        let ordinals = &self.ordinals[seen.len()..];
        let Some(&first) = ordinals.first() else { return Ok(Some(path)) };
        let Some(group) = data.group(space, locate(first).0)? else { return Ok(None) };
        let slots = ordinals.iter().map(|&ordinal| locate(ordinal).1).collect();
        let rows = RecordRows::new((data, path), group, slots, self.revision);
        let version = data.schema.field(path, VERSION_FIELD);
        let columns = Columns {
            record: data.schema.path(path).column,
            version: version.map(|version| data.schema.path(version).column),
        };
        let mut reader = Reader { rows, columns, has_keys: self.has_keys, room: TEXT_BYTES };
        let mut bytes = 0;
        for row in 0..ordinals.len() {
            let next = reader.record(row)?;
            if let Seen::Whole(record) = &next {
                bytes += record.json.len();
            }
            seen.push(next);
            if bytes >= left {
                break;
            }
        }
        Ok(Some(path))
    }
}

/// The columns of what is read of every record.
struct Columns {
    record: u32,
    version: Option<u32>,
}

/// Reads one record after the other under the lock.
struct Reader<'a> {
    rows: RecordRows<'a>,
    columns: Columns,
    has_keys: bool,
    /// Bytes that the next record's text is given.
    room: usize,
}

impl Reader<'_> {
    fn record(&mut self, row: usize) -> Result<Seen, Fault> {
        let rows = &mut self.rows;
        let state = rows.state(self.columns.record, row)?;
        if matches!(state, Datum::Absent | Datum::Null) || !rows.is_born(row)? {
            return Ok(Seen::Nothing);
        }
        let mut key = String::new();
        if self.has_keys
            && let Datum::Text { bytes, .. } = rows.key(row)?
        {
            key = String::from_utf8_lossy(bytes).into_owned();
        }
        let version = match self.columns.version {
            Some(column) => version_of(rows.state(column, row)?).map_err(Fault::Error)?,
            None => 1,
        };
        let mut json = Vec::with_capacity(self.room);
        if !rows.print(row, &mut json)? {
            return Ok(Seen::Part(StoredRecord { key, version, json: String::new() }));
        }
        self.room = json.len() + json.len() / 8;
        let json = utf8(json).map_err(Fault::Error)?;
        Ok(Seen::Whole(StoredRecord { key, version, json }))
    }
}

/// The text of a record.
pub(super) fn utf8(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "a record's text is not UTF-8").with_source(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitOptions, Database, Key, KeyKind, ScanOptions};

    #[test]
    fn records_that_do_not_fit_a_batch_are_read_when_they_are_asked_for() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("long", KeyKind::U64).unwrap();
        let long = |key: u64| {
            let part = "x".repeat(4_000);
            let parts = vec![format!("\"{part}{key}\""); 75];
            format!("{{\"parts\":[{}]}}", parts.join(","))
        };
        for key in [5, 1, 4, 2, 3, 0, 9, 7] {
            records.put(key, long(key), &CommitOptions::default()).unwrap();
        }
        for is_on_disk in [false, true] {
            if is_on_disk {
                db.checkpoint().unwrap();
            }
            let head = records.document().head().unwrap();
            let mut batch = RecordBatch::new(vec![4, 9, 4, 0, 7, 1, 2, 3, 5, 6], false);
            let (place, first) = batch.next(head.place()).unwrap().unwrap();
            assert_eq!((place, first.json), (0, long(3)));
            let read = batch.read.iter().filter(|read| matches!(read, Read::There(_))).count();
            assert!((1..5).contains(&read), "{read} of 300 KB are read ahead");
            let asked = [9, 3, 8, 3, 0, 7, 1, 2, 4, 5].map(Key::U64);
            let found = records.get_many(&asked).unwrap();
            for (key, found) in asked.iter().zip(&found) {
                let Key::U64(number) = key else { continue };
                let expected = (*number != 8).then(|| long(*number));
                assert_eq!(found.as_ref().map(|record| &record.json), expected.as_ref());
                assert!(found.as_ref().is_none_or(|record| record.key == *key));
            }
            for reverse in [false, true] {
                let options = ScanOptions { reverse, ..ScanOptions::default() };
                let scanned = records.scan(&options).unwrap();
                let mut keys: Vec<_> = scanned.map(|record| record.unwrap().key).collect();
                if reverse {
                    keys.reverse();
                }
                assert_eq!(keys, [0, 1, 2, 3, 4, 5, 7, 9].map(Key::U64));
            }
        }
    }
}
