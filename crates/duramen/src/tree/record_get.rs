//! One record by its key.
//!
//! What is in memory is found and printed under the lock, taken once. What was read of segments is
//! remembered by record ([`Recent`](crate::memory::Recent)).

use crate::error::Result;
use crate::memory::RecentRecord;
use crate::node::{NodeId, PathId};
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::data::{DiskState, TreeData, node};
use crate::tree::group::{DiskPart, Fault, locate};
use crate::tree::records::version;
use crate::tree::schema::ROOT;
use crate::tree::serialize::{Format, Serializer, Stop};
use crate::tree::stored_records::{RecordBatch, utf8};

/// Bytes that a record's text is given room for at first.
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
        let (found, disk) = self.find_record(key, revision)?;
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

    fn find_record(&self, key: &[u8], revision: u32) -> Result<(Found, DiskState)> {
        let data = self.data.read();
        data.kept.check(revision)?;
        let disk = data.disk_state();
        let Some(path) = data.schema.path(ROOT).entry else { return Ok((Found::Nothing, disk)) };
        let Some(ordinal) = data.young_entry(data.schema.path(path).space, 0, key) else {
            return Ok((Found::OnDisk(path), disk));
        };
        let looked = look(&data, node(path, ordinal), revision)?;
        Ok((Found::Young(ordinal, looked), disk))
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

/// Looks at a record as far as it is in memory.
fn look(data: &TreeData, record: NodeId, revision: u32) -> Result<Looked> {
    match try_look(data, (record, revision), usize::MAX) {
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
    let space = data.schema.path(record.path()).space;
    let (group, slot) = locate(record.ordinal().0);
    let Some(group) = data.group(space, group)? else { return Ok(Looked::Nothing) };
    if matches!(data.state(record, revision)?, Datum::Absent | Datum::Null) {
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
    let version = version(data, record, revision)?;
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
mod tests {
    use std::collections::BTreeMap;

    use crate::{Collection, CommitOptions, Database, KeyKind, Revision};

    const RECORDS: u64 = 5_000;

    fn json(key: u64, n: u64) -> String {
        format!(r#"{{"n":{n},"text":"record {key} of many","tags":[{{"t":{key}}},{n}]}}"#)
    }

    /// More than are read whole, in segments.
    fn stored(db: &Database) -> Collection {
        let records = db.create_collection("records", KeyKind::U64).unwrap();
        let all = (0..RECORDS).map(|key| (key, json(key, 0)));
        records.put_many(all, &CommitOptions::default()).unwrap();
        db.checkpoint().unwrap();
        records
    }

    fn is_remembered(records: &Collection, key: u64) -> bool {
        let tree = records.document().tree();
        let recent = tree.cells.memory().recent();
        let name = records.key_kind().text_of(&key.into()).unwrap().into_owned();
        let ordinal = recent.ordinal(tree.number, name.as_bytes());
        ordinal.is_some_and(|ordinal| recent.record(tree.number, ordinal, u32::MAX).is_some())
    }

    #[test]
    fn a_record_of_a_segment_is_remembered_until_a_commit_changes_it() {
        let db = Database::memory().unwrap();
        let records = stored(&db);
        let how = CommitOptions::default();
        assert!(!is_remembered(&records, 7));
        let first = records.get(7).unwrap().unwrap();
        assert!(is_remembered(&records, 7) && first.json == json(7, 0));
        assert_eq!(records.get(7).unwrap().unwrap(), first);
        records.put(8, json(8, 1), &how).unwrap();
        assert!(is_remembered(&records, 7), "another record was changed");
        let patch = r#"[{"op":"replace","path":"/tags/0/t","value":1}]"#;
        records.patch(7, patch, &how).unwrap();
        assert!(!is_remembered(&records, 7));
        let second = records.get(7).unwrap().unwrap();
        assert!(second.version == 2 && second.json.ends_with(r#""tags":[{"t":1},0]}"#));
        db.checkpoint().unwrap();
        assert_eq!(records.get(7).unwrap().unwrap(), second);
        assert!(is_remembered(&records, 7));
        assert_eq!(records.get_at(7, Revision(2)).unwrap().unwrap(), first);
        records.delete(7, &how).unwrap();
        assert_eq!((records.get(7).unwrap(), is_remembered(&records, 7)), (None, false));
        assert_eq!(records.get_at(7, Revision(3)).unwrap().unwrap(), second);
    }

    #[test]
    fn what_is_read_is_what_was_committed_whatever_is_remembered() {
        let db = Database::memory().unwrap();
        let records = stored(&db);
        let how = CommitOptions::default();
        let mut model: BTreeMap<u64, String> =
            (0..RECORDS).map(|key| (key, json(key, 0))).collect();
        let mut past = Vec::new();
        let mut random = 9_u64;
        for step in 0..600 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (random >> 40) % 40;
            match (random >> 33) % 7 {
                0 => {
                    records.put(key, json(key, step), &how).unwrap();
                    model.insert(key, json(key, step));
                }
                1 if model.remove(&key).is_some() => drop(records.delete(key, &how).unwrap()),
                2 if step % 5 == 0 => {
                    db.checkpoint().unwrap();
                    past.push((records.head().unwrap(), model.clone()));
                }
                3 => {
                    // What is staged and taken back is seen by nobody.
                    let mut transaction = db.transaction();
                    let staged = json(key, 1_000);
                    transaction.put_record("records", &key.into(), staged.as_bytes()).unwrap();
                    drop(transaction);
                }
                _ => {}
            }
            let read = |key: u64| records.get(key).unwrap().map(|record| record.json);
            assert_eq!(read(key).as_ref(), model.get(&key), "{key} in step {step}");
            assert_eq!(read(key).as_ref(), model.get(&key), "{key} again in step {step}");
            if let Some((head, model)) = past.last() {
                let found = head.get(key).unwrap().map(|record| record.json);
                assert_eq!(found.as_ref(), model.get(&key), "{key} as of before step {step}");
            }
        }
        assert!(past.len() > 3);
    }
}
