//! Records that are read together, in whatever order they are asked for.
//!
//! A batch is read row group by row group, some hundreds of records under the lock at once, and the
//! records of a row group by column ([`RecordRows`]). What it holds in memory is bounded: records
//! that do not fit are read when they are asked for.

use std::cell::RefCell;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::ORDINALS_MAX;
use crate::node::PathId;
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{Fault, locate};
use crate::tree::record_rows::RecordRows;
use crate::tree::records::{VERSION_FIELD, version_of};
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;

/// Records that are read together at most, unless they are read in the order of their keys.
pub(crate) const BATCH_RECORDS_MAX: usize = 4_096;

/// Records that are read under the lock at once.
const LOCKED_RECORDS_MAX: usize = 512;

/// Bytes of records that a batch has at hand: the one behind which it is reached is the last.
const BATCH_BYTES_MAX: usize = 4 << 20;

/// Bits of a record's place among those asked for, below its ordinal: by such numbers records are
/// sorted.
const PLACE_BITS: u32 = 24;

const _: () = assert!(ORDINALS_MAX <= 1 << (u64::BITS - PLACE_BITS));

/// Records whose texts are looked at ahead, and how much of each: a line of the processor's cache
/// is read as a whole.
const TOUCHED_RECORDS: usize = 16;
const TOUCHED_LINES: usize = 3;
const LINE_BYTES: usize = 64;

/// Bytes that there is room for at first, for each of the records that are read together.
const RECORD_BYTES: usize = 256;

/// A record that is there at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredRecord<'t> {
    /// The text of its key, if it was asked for.
    pub(crate) key: &'t str,
    pub(crate) version: u64,
    /// The record as compact JSON.
    pub(crate) json: &'t str,
}

/// Records by their ordinals, read ahead as they are asked for one by one.
#[derive(Debug, Default)]
pub(crate) struct RecordBatch {
    /// The path of the records, unless they are entries of the root.
    path: Option<PathId>,
    ordinals: Vec<u64>,
    read: Vec<Read>,
    /// The keys and the texts of those that are at hand.
    text: String,
    /// The next one asked for.
    at: usize,
    has_keys: bool,
    /// Whether texts are asked for in another order than they lie in.
    is_apart: bool,
}

/// What is known of a record.
#[derive(Debug, Clone, Copy)]
enum Read {
    NotYet,
    /// There is none, or it was purged.
    Nothing,
    There(Place),
    /// There is one whose text takes more than the columns have: what is known of it, until the
    /// lock is left.
    Part(Place),
}

/// Where a record is in the text of its batch.
#[derive(Debug, Clone, Copy)]
struct Place {
    version: u64,
    /// Where its key begins, its JSON behind that, and where that ends.
    key: usize,
    json: usize,
    end: usize,
}

impl RecordBatch {
    /// The records with some ordinals, with their keys if these are asked for.
    pub(crate) fn new(ordinals: Vec<u64>, has_keys: bool) -> Self {
        let mut batch = Self { has_keys, ..Self::default() };
        batch.begin(ordinals);
        batch
    }

    /// Objects with some ordinals that are entries of a map at any place: those of a path.
    pub(crate) fn of_entries(path: PathId, ordinals: Vec<u64>) -> Self {
        Self { path: Some(path), ..Self::new(ordinals, false) }
    }

    /// Goes on with the records with other ordinals.
    pub(crate) fn begin(&mut self, ordinals: Vec<u64>) {
        self.read.clear();
        self.read.resize(ordinals.len(), Read::NotYet);
        (self.ordinals, self.at) = (ordinals, 0);
    }

    /// Reads as many of them as there is room for, before they are asked for.
    pub(crate) fn read_ahead(&mut self, of: (&Tree, u32)) -> Result<()> {
        if self.read.is_empty() { Ok(()) } else { self.fill(of) }
    }

    /// The next record that is there at a revision, and its place among those asked for: records
    /// that are not, or were purged, are passed over. None at the end, and after an error.
    #[inline]
    pub(crate) fn next(&mut self, of: (&Tree, u32)) -> Result<Option<(usize, StoredRecord<'_>)>> {
        while let Some(next) = self.read.get(self.at) {
            let &Read::There(Place { version, key, json, end }) = next else {
                self.go_on(of)?;
                continue;
            };
            let at = self.at;
            if self.is_apart && at.is_multiple_of(TOUCHED_RECORDS) {
                self.touch();
            }
            self.at += 1;
            let part = |range| self.text.get(range).ok_or_else(not_utf8);
            let (key, json) = (part(key..json)?, part(json..end)?);
            return Ok(Some((at, StoredRecord { key, version, json })));
        }
        Ok(None)
    }

    /// Goes past a record that is not there, or reads one that was not read yet.
    #[inline(never)]
    fn go_on(&mut self, of: (&Tree, u32)) -> Result<()> {
        if let Some(Read::Nothing) = self.read.get(self.at) {
            self.at += 1;
            return Ok(());
        }
        let filled = self.fill(of);
        if filled.is_err() {
            self.read.clear();
        }
        filled
    }

    /// Reads a little of the next records, which lie apart, so that they are waited for together.
    fn touch(&self) {
        let text = self.text.as_bytes();
        let mut seen = 0;
        for read in self.read[self.at..].iter().take(TOUCHED_RECORDS) {
            let Read::There(place) = read else { continue };
            for at in (place.key..place.end).step_by(LINE_BYTES).take(TOUCHED_LINES) {
                seen ^= text.get(at).copied().unwrap_or(0);
            }
        }
        std::hint::black_box(seen);
    }

    /// Reads the next record, and as many others as there is room for.
    fn fill(&mut self, (tree, revision): (&Tree, u32)) -> Result<()> {
        let mut text = self.take_text();
        // The next one is read whatever it takes.
        let mut left = BATCH_BYTES_MAX.saturating_sub(text.len()).max(1);
        let at = self.at;
        let wanted = self.ordinals[at..].iter().zip(&self.read[at..]).zip(0..1 << PLACE_BITS);
        let not_yet = wanted.filter(|((_, read), _)| matches!(read, Read::NotYet));
        let mut places = Vec::with_capacity(self.ordinals.len() - at);
        places.extend(not_yet.map(|((ordinal, _), place)| ordinal << PLACE_BITS | place));
        let room = left.min(RECORD_BYTES * places.len());
        if text.is_empty() && text.capacity() < room {
            // To grow would be to copy what was in it before.
            text = Vec::new();
        }
        text.reserve(room);
        // The one asked for comes first, so that it is among those there is room for.
        let next = places.first().copied().unwrap_or(0);
        self.is_apart = !places.is_sorted();
        places.sort_unstable();
        let before = places.partition_point(|&place| place < next);
        places.rotate_left(before);
        // Where they begin anew, others are locked.
        let together = places.chunk_by(|a, b| a <= b);
        for places in together.flat_map(|together| together.chunks(LOCKED_RECORDS_MAX)) {
            let (path, has_keys) = (self.path, self.has_keys);
            let of = Locked { tree, path, places, revision, has_keys };
            text = of.read((text, &mut left), &mut self.read[at..])?;
            if left == 0 {
                break;
            }
        }
        self.text = utf8(text)?;
        Ok(())
    }

    /// The room for texts, with those that were read and not asked for yet.
    fn take_text(&mut self) -> Vec<u8> {
        let mut old = std::mem::take(&mut self.text).into_bytes();
        let mut kept = Vec::new();
        for read in &mut self.read[self.at..] {
            if let Read::There(place) = read {
                let start = kept.len();
                kept.extend_from_slice(&old[place.key..place.end]);
                let (json, end) = (start + place.json - place.key, kept.len());
                *place = Place { key: start, json, end, ..*place };
            }
        }
        if kept.is_empty() {
            old.clear();
            return old;
        }
        kept
    }
}

/// The ordinal and the place that a number is of.
#[inline]
fn split(number: u64) -> (u64, usize) {
    (number >> PLACE_BITS, place_of(number))
}

fn place_of(number: u64) -> usize {
    usize::try_from(number & ((1 << PLACE_BITS) - 1)).expect("24 bits")
}

/// Some records, their ordinals rising.
struct Locked<'t> {
    tree: &'t Tree,
    /// Their path, unless they are entries of the root.
    path: Option<PathId>,
    /// Their ordinals, each with its place.
    places: &'t [u64],
    revision: u32,
    has_keys: bool,
}

/// What came of looking at some of them.
struct Seen<'r> {
    /// How many were looked at.
    count: usize,
    /// Of those asked for, by their places.
    read: &'r mut [Read],
    text: Vec<u8>,
    /// Bytes that there is room for.
    left: usize,
}

impl Locked<'_> {
    /// Reads them until nothing is left of the bytes there is room for, behind other texts.
    fn read(&self, (text, left): (Vec<u8>, &mut usize), read: &mut [Read]) -> Result<Vec<u8>> {
        let seen = RefCell::new(Seen { count: 0, read, text, left: *left });
        let path = self.tree.read(|data| self.look(data, &mut seen.borrow_mut()))?;
        let Seen { count, read, mut text, left: after } = seen.into_inner();
        *left = after;
        let Some(path) = path else {
            self.places.iter().for_each(|&place| read[place_of(place)] = Read::Nothing);
            return Ok(text);
        };
        for (index, &number) in self.places[..count].iter().enumerate() {
            let (ordinal, place) = split(number);
            let Read::Part(part) = read[place] else { continue };
            // Without the lock, and not if there is no room for it any more.
            read[place] = if *left == 0 && index > 0 {
                Read::NotYet
            } else {
                let key = text.len();
                text.extend_from_within(part.key..part.json);
                let json = text.len();
                let record = (node(path, ordinal), self.revision);
                self.tree.append_json(record, &Format::default(), &mut text)?;
                *left = left.saturating_sub(text.len() - json);
                Read::There(Place { key, json, end: text.len(), ..part })
            };
        }
        Ok(text)
    }

    /// Looks at them under the lock, those left out that were seen before.
    fn look(&self, data: &TreeData, seen: &mut Seen<'_>) -> Result<Option<PathId>, Fault> {
        data.kept.check(self.revision).map_err(Fault::Error)?;
        let Some(path) = self.path.or(data.schema.path(ROOT).entry) else { return Ok(None) };
        let space = data.schema.path(path).space;
        let version = data.schema.field(path, VERSION_FIELD);
        let row_of = |place: u64| locate(split(place).0);
        let mut reader: Option<Reader<'_>> = None;
        let places = &self.places[seen.count..];
        for places in places.chunk_by(|&a, &b| row_of(a).0 == row_of(b).0) {
            let Some(group) = data.group(space, row_of(places[0]).0)? else {
                for &place in places {
                    seen.read[place_of(place)] = Read::Nothing;
                }
                seen.count += places.len();
                continue;
            };
            let slots = places.iter().map(|&place| row_of(place).1);
            if let Some(reader) = &mut reader {
                reader.rows.go_to(group, slots);
            } else {
                let rows = RecordRows::new(data, (group, slots.collect()), self.revision);
                reader = Some(Reader { rows, path, version, has_keys: self.has_keys });
            }
            if let Some(reader) = &mut reader {
                reader.records(places, seen)?;
            }
            if seen.left == 0 {
                break;
            }
        }
        Ok(Some(path))
    }
}

/// Reads one record after the other under the lock.
struct Reader<'a> {
    rows: RecordRows<'a>,
    /// The path of records.
    path: PathId,
    version: Option<PathId>,
    has_keys: bool,
}

/// Whether a record was printed flat.
type IsFlat = bool;

impl Reader<'_> {
    /// Reads records of one row group as far as there is room.
    fn records(&mut self, places: &[u64], seen: &mut Seen<'_>) -> Result<(), Fault> {
        let mut row = 0;
        while row < places.len() && seen.left > 0 {
            let flat = self.rows.print_flat(self.path, row)?;
            let count = flat.max(1);
            for (row, &number) in (row..).zip(&places[row..row + count]) {
                let looked = self.record((row, flat > 0), &mut seen.text)?;
                if let Read::There(Place { json, end, .. }) = looked {
                    seen.left = seen.left.saturating_sub(end - json);
                }
                seen.read[place_of(number)] = looked;
                seen.count += 1;
            }
            row += count;
        }
        Ok(())
    }

    #[inline]
    fn record(
        &mut self,
        (row, is_flat): (usize, IsFlat),
        text: &mut Vec<u8>,
    ) -> Result<Read, Fault> {
        let rows = &mut self.rows;
        let is_there = is_flat || rows.is_there(self.path, row)?;
        if !is_there || !rows.is_born(row)? {
            return Ok(Read::Nothing);
        }
        let version = match self.version {
            Some(path) => version_of(rows.state_of(path, row)?).map_err(Fault::Error)?,
            None => 1,
        };
        let start = text.len();
        if self.has_keys {
            text.extend_from_slice(rows.key(row)?);
        }
        let json = text.len();
        if is_flat {
            text.extend_from_slice(rows.flat(row));
            return Ok(Read::There(Place { version, key: start, json, end: text.len() }));
        }
        match rows.print((self.path, row), text) {
            Ok(is_whole) => {
                let place = Place { version, key: start, json, end: text.len() };
                Ok(if is_whole { Read::There(place) } else { Read::Part(place) })
            }
            Err(fault) => {
                text.truncate(start);
                Err(fault)
            }
        }
    }
}

/// The text of a record, or of several.
pub(super) fn utf8(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(|error| not_utf8().with_source(error))
}

#[cold]
fn not_utf8() -> Error {
    Error::new(ErrorKind::Corrupt, "a record's text is not UTF-8")
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
            let parts = vec![format!("\"{part}{key}\""); 300];
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
            assert_eq!((place, first.json), (0, long(3).as_str()));
            let read = batch.read.iter().filter(|read| matches!(read, Read::There(_))).count();
            assert!((1..5).contains(&read), "{read} of 1.2 MB are read ahead");
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

    #[test]
    fn records_that_are_asked_for_again_and_again_are_found_each_time() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("records", KeyKind::U64).unwrap();
        let put = (0..5_u64).map(|key| (key, format!("{{\"n\":{key}}}")));
        records.put_many(put, &CommitOptions::default()).unwrap();
        for asked in 0..5_u64.pow(4) {
            let keys: Vec<_> = (0..4).map(|at| asked / 5_u64.pow(at) % 5).collect();
            let asked: Vec<_> = keys.iter().copied().map(Key::U64).collect();
            let found = records.get_many(&asked).unwrap();
            let found: Vec<_> = found.into_iter().map(|record| record.unwrap().json).collect();
            assert_eq!(
                found,
                keys.iter().map(|key| format!("{{\"n\":{key}}}")).collect::<Vec<_>>()
            );
        }
    }
}
