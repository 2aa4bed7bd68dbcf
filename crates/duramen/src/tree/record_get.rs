//! One record by its key.
//!
//! What is in memory is found and printed under the lock, taken once. What was read of segments is
//! remembered by record ([`Recent`](crate::memory::Recent)).

use crate::error::Result;
use crate::memory::RecentRecord;
use crate::node::{NodeId, PathId};
use crate::revision::{CommitSequence, Revision};
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::data::{Address, DiskState, TreeData, node};
use crate::tree::group::{ColumnId, DiskPart, Fault, locate};
use crate::tree::history::short;
use crate::tree::record_rows::flat::{SINGLE_BYTES, print_single};
use crate::tree::records::{VERSION_FIELD, version_of};
use crate::tree::schema::ROOT;
use crate::tree::serialize::{Format, Serializer, Stop};
use crate::tree::stored_records::{RecordBatch, utf8};

/// Bytes that a record's text is given room for at first, if it is not flat.
const TEXT_BYTES: usize = 192;

/// Bytes of a record's text up to which what is missing of it is loaded and it is looked at again,
/// from its beginning.
const LOOKED_BYTES_MAX: usize = 16 << 10;

/// A record that was asked for by itself.
#[derive(Debug)]
pub(crate) struct OneRecord {
    pub(crate) version: u64,
    /// The record as compact JSON.
    pub(crate) json: String,
}

/// What the keys in memory say of a record.
enum Found {
    /// There are no records.
    Nothing,
    /// It is young, and was looked at.
    Young(u64, Looked),
    /// The disk may have the key.
    OnDisk(PathId),
}

/// What came of looking at a record in memory.
enum Looked {
    Nothing,
    There(OneRecord),
    /// It takes more than what is in memory, or more than columns.
    Unsure,
}

impl Tree {
    /// The record with a key at a revision; nothing where there is none, or where it was purged.
    pub(crate) fn get_record(&self, key: &[u8], revision: u32) -> Result<Option<OneRecord>> {
        let (found, disk) = {
            let data = self.data.read();
            (find(&data, (key, revision), usize::MAX)?, data.disk_state())
        };
        let ordinal = match found {
            Found::Nothing => return Ok(None),
            Found::Young(ordinal, looked) => match looked {
                Looked::Nothing => return Ok(None),
                Looked::There(record) => return Ok(Some(record)),
                Looked::Unsure => ordinal,
            },
            Found::OnDisk(path) => match self.record_on_disk((path, key), disk)? {
                None => return Ok(None),
                Some(ordinal) => {
                    if let Some(recent) = self.recent_record(ordinal, revision) {
                        return Ok(Some(recent));
                    }
                    match self.look_again(node(path, ordinal), revision)? {
                        (Looked::Nothing, _) => return Ok(None),
                        (Looked::There(record), is_loaded) => {
                            if is_loaded {
                                self.remember(ordinal, &record, (revision, disk));
                            }
                            return Ok(Some(record));
                        }
                        (Looked::Unsure, _) => ordinal,
                    }
                }
            },
        };
        let mut batch = RecordBatch::new(vec![ordinal], false);
        let found = batch.next((self, revision))?;
        let record = found
            .map(|(_, record)| OneRecord { version: record.version, json: record.json.to_owned() });
        if let Some(record) = &record {
            self.remember(ordinal, record, (revision, disk));
        }
        Ok(record)
    }

    /// The record with a key at the newest revision of a commit at or before `sequence`, if both
    /// are young and it is at hand: all of that under one lock. None says nothing.
    pub(crate) fn young_record(
        &self,
        key: &[u8],
        sequence: CommitSequence,
    ) -> Result<Option<OneRecord>> {
        let data = self.data.read();
        let head = data.rows.last_at(sequence);
        if head <= data.rows.before() {
            return Ok(None);
        }
        let revision = short(Revision(head));
        let found = find(&data, (key, revision), LOOKED_BYTES_MAX)?;
        let Found::Young(_, Looked::There(record)) = found else { return Ok(None) };
        let has_value = data.state(node(ROOT, 0), revision).is_ok_and(|root| !root.is_absent());
        Ok(has_value.then_some(record))
    }

    /// The ordinal that the disk has of a key.
    pub(super) fn record_on_disk(
        &self,
        (path, key): (PathId, &[u8]),
        disk: DiskState,
    ) -> Result<Option<u64>> {
        let recent = self.cells.memory().recent();
        if let Some(ordinal) = recent.ordinal(self.number, key) {
            return Ok(Some(ordinal));
        }
        let found = self.cells.entry(path, 0, key)?;
        if let Some(ordinal) = found {
            let data = self.data.read();
            if data.disk_state().erasures == disk.erasures {
                recent.keep_key(self.number, key, ordinal);
            }
        }
        Ok(found)
    }

    fn recent_record(&self, ordinal: u64, revision: u32) -> Option<OneRecord> {
        let record = self.cells.memory().recent().record(self.number, ordinal, revision)?;
        let (version, json) = (record.version, record.json.to_string());
        Some(OneRecord { version, json })
    }

    /// Looks at a record, and loads what is not in memory; whether there was any such thing.
    fn look_again(&self, record: NodeId, revision: u32) -> Result<(Looked, bool)> {
        let mut looks = 0;
        let looked = self.read(|data| {
            looks += 1;
            data.kept.check(revision)?;
            try_look(data, (record, revision), LOOKED_BYTES_MAX)
        })?;
        Ok((looked, looks > 1))
    }

    /// Remembers a record that was read of segments at the newest revision.
    fn remember(&self, ordinal: u64, record: &OneRecord, (revision, read): (u32, DiskState)) {
        let data = self.data.read();
        // A commit that came since may have changed it, and did not find it to be forgotten.
        let is_newest = data.rows.last() <= revision.into();
        if is_newest && data.disk_state().erasures == read.erasures {
            let recent = self.cells.memory().recent();
            let json = record.json.as_str().into();
            let kept = RecentRecord { since: revision, version: record.version, json };
            recent.keep_record(self.number, ordinal, kept);
        }
    }
}

fn find(data: &TreeData, (key, revision): (&[u8], u32), most: usize) -> Result<Found> {
    data.kept.check(revision)?;
    let Some(path) = data.schema.path(ROOT).entry else { return Ok(Found::Nothing) };
    let Some(ordinal) = data.young_entry(data.schema.path(path).space, 0, key) else {
        return Ok(Found::OnDisk(path));
    };
    let looked = look(data, (node(path, ordinal), revision), most)?;
    Ok(Found::Young(ordinal, looked))
}

/// Looks at a record as far as it is in memory.
fn look(data: &TreeData, of: (NodeId, u32), most: usize) -> Result<Looked> {
    match try_look(data, of, most) {
        Ok(looked) => Ok(looked),
        Err(Fault::Load(_)) => Ok(Looked::Unsure),
        Err(Fault::Error(error)) => Err(error),
    }
}

fn try_look(
    data: &TreeData,
    (record, revision): (NodeId, u32),
    most: usize,
) -> Result<Looked, Fault> {
    let Address { space, column, ordinal } = data.address(record);
    let (group, slot) = locate(ordinal);
    let Some(group) = data.group(space, group)? else { return Ok(Looked::Nothing) };
    let state = group.state(column, slot, revision)?;
    if matches!(state, Datum::Absent | Datum::Null) {
        return Ok(Looked::Nothing);
    }
    // What was born later is young, and its state says so, if all on disk is of the revision or
    // before it.
    let is_born = u64::from(revision) >= data.rows.before()
        || matches!(group.disk, DiskPart::None)
        || group.born(slot)?.is_some_and(|born| born <= revision);
    if !is_born {
        return Ok(Looked::Nothing);
    }
    let version = match data.schema.field(record.path(), VERSION_FIELD) {
        Some(path) => {
            let column = ColumnId::Value(data.schema.path(path).column);
            version_of(group.state(column, slot, revision)?)?
        }
        None => 1,
    };
    if let Datum::Object(shape) = state {
        let mut line = [0; SINGLE_BYTES];
        let of = (group, slot, revision);
        if let Some(end) = print_single((&data.schema, shape), of, &mut line) {
            let json = utf8(line[..end].to_vec())?;
            return Ok(Looked::There(OneRecord { version, json }));
        }
    }
    let mut json = Vec::with_capacity(TEXT_BYTES);
    let format = Format::default();
    let mut serializer = Serializer::new(record, &format);
    match serializer.run(data, revision, &mut json, most)? {
        Stop::Done => {
            let json = utf8(json)?;
            Ok(Looked::There(OneRecord { version, json }))
        }
        _ => Ok(Looked::Unsure),
    }
}

#[cfg(test)]
mod tests;
