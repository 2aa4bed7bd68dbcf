//! Changes of the records of collections in a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::collection::{Key, KeyKind, Record, no_collection};
use crate::columns::{ColumnField, Columns};
use crate::document::Document;
use crate::engine::catalogue::no_document;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, JsonPointer, ParseOptions, Tape, TapeIndex};
use crate::key_text::DIGITS;
use crate::limits::RECORD_VERSION_MAX;
use crate::node::NodeId;
use crate::patch;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::compare::name_of;
use crate::tree::records::{Members, RecordPuts};
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// The versions of a record that a transaction came to; 0 if it is not there in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StagedVersion {
    /// What it is at if nothing of the collection differs.
    pub(crate) before: u64,
    /// What it gets with the commit if it is what differs.
    pub(crate) changed: u64,
}

/// # Changing records
///
/// Each change takes the collection's name and a key first and sees what the transaction did
/// before. Records get their versions when the transaction commits: one more each, whatever it did
/// to them.
impl Transaction {
    /// A record as this transaction has made it, as compact JSON; nothing if it is not there.
    pub fn get_record(&mut self, name: &str, key: &Key) -> Result<Option<String>> {
        Ok(self.read_record(name, key)?.map(|record| record.json))
    }

    /// The same with the version that [`update_record`](Self::update_record) expects: what the
    /// record was at when the transaction first saw it, and 1 if the transaction made it.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Key, KeyKind, TransactOptions};
    ///
    /// let db = Database::memory()?;
    /// let stock = db.create_collection("stock", KeyKind::Text)?;
    /// stock.put("apple", r#"{"count":3}"#, &CommitOptions::default())?;
    /// let apple = Key::from("apple");
    /// db.transact(&TransactOptions::default(), |transaction| {
    ///     let read = transaction.read_record("stock", &apple)?.expect("it is there");
    ///     transaction.update_record("stock", &apple, read.version, br#"{"count":2}"#)?;
    ///     assert_eq!(transaction.count_records("stock")?, 1);
    ///     Ok(())
    /// })?;
    /// assert_eq!(stock.get("apple")?.expect("it is there").version, 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn read_record(&mut self, name: &str, key: &Key) -> Result<Option<Record>> {
        if let Some(records) = self.read_records(name, Some(key))? {
            return records.get(key);
        }
        let text = self.put_kind(name)?.text_of(key)?;
        let writer = self.any_writer(name)?;
        let Some(record) = present(writer, &*text)? else { return Ok(None) };
        let mut json = Vec::new();
        writer.tree.append_json((record, writer.revision), &Format::default(), &mut json)?;
        let json = String::from_utf8_lossy(&json).into_owned();
        let version = writer.tree.record_version(record, writer.revision - 1)?;
        Ok(Some(Record { key: key.clone(), version, json }))
    }

    /// How many records there are as this transaction has made them.
    pub fn count_records(&mut self, name: &str) -> Result<u64> {
        self.staged_records(name)?.count()
    }

    /// What columns the records have as this transaction has made them, and the kinds of values in
    /// each, as [`Columns::root`] tells of what is committed.
    pub fn record_fields(&mut self, name: &str) -> Result<ColumnField> {
        if let Some(records) = self.read_records(name, None)? {
            return records.columns()?.root();
        }
        let keys = self.put_kind(name)?;
        let writer = self.any_writer(name)?;
        Columns::staged_root(Arc::clone(&writer.tree), writer.revision, keys)
    }

    /// Adds a record; `Conflict` if there is one with that key. A deleted collection lives again,
    /// with this record.
    pub fn insert_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        let text = &*self.put_kind(name)?.text_of(key)?;
        self.change_collection(name, |writer| {
            if present(writer, text)?.is_some() {
                let message = format!(
                    "there is a record {key} in collection {name:?} already: put or update it, or \
                     choose another key"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            put(writer, (key, text), json)
        })
    }

    /// Adds a record or saves another value of it. A deleted collection lives again, with this
    /// record.
    pub fn put_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        let text = self.put_kind(name)?.text_of(key)?;
        self.change_collection(name, |writer| put(writer, (key, &text), json))
    }

    /// The same of a value that is what it is in any order of its members.
    #[cfg(feature = "typed")]
    pub(crate) fn put_value(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        self.put_records(name, std::iter::once((key.clone(), json)), Members::InAnyOrder)
    }

    /// Adds any number of records or saves other values of them.
    pub(crate) fn put_records<J: AsRef<[u8]>>(
        &mut self,
        name: &str,
        records: impl Iterator<Item = (Key, J)>,
        members: Members,
    ) -> Result<()> {
        let mut records = records.peekable();
        if records.peek().is_none() {
            return Ok(());
        }
        let kind = self.put_kind(name)?;
        self.change_collection(name, |writer| {
            let mut puts = None;
            for (key, json) in records {
                let (name, mut digits) = (kind.name_of(&key)?, [0; DIGITS]);
                let key = (&key, name.bytes(&mut digits));
                put_next((writer, &mut puts), key, (json.as_ref(), members))?;
            }
            puts.map_or(Ok(()), RecordPuts::finish)
        })
    }

    /// Saves another value of a record that was at a version when the transaction first saw it;
    /// `Conflict` if it was at another or is not there.
    pub fn update_record(
        &mut self,
        name: &str,
        key: &Key,
        expected: u64,
        json: &[u8],
    ) -> Result<()> {
        self.expect_record(name, key, expected)?;
        self.put_record(name, key, json)
    }

    /// Refuses with `Conflict` to go on unless a record was at a version when the transaction first
    /// saw it: before it is patched or deleted.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind, Key, KeyKind};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::Text)?;
    /// players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
    /// let ann = Key::from("ann");
    /// let mut transaction = db.transaction();
    /// let refused = transaction.expect_record("players", &ann, 2).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::Conflict);
    /// transaction.expect_record("players", &ann, 1)?;
    /// transaction.merge_patch_record("players", &ann, br#"{"score":4}"#)?;
    /// transaction.commit(&CommitOptions::default())?;
    /// assert_eq!(players.versions(&[ann])?, [Some(2)]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn expect_record(&mut self, name: &str, key: &Key, expected: u64) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            let record = present(writer, text)?;
            let version =
                record.map(|record| writer.tree.record_version(record, writer.revision - 1));
            let actual = version.transpose()?;
            if actual == Some(expected) {
                return Ok(());
            }
            let is = actual.map_or("not there".to_owned(), |actual| format!("at version {actual}"));
            let message = format!(
                "record {key} of collection {name:?} is {is}, expected version {expected}: read it \
                 again, then retry"
            );
            Err(Error::new(ErrorKind::Conflict, message))
        })
    }

    /// Changes a record by a JSON Patch whose pointers begin at the record.
    pub fn patch_record(&mut self, name: &str, key: &Key, json_patch: &[u8]) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            let applied = patch::apply(writer, &place(writer, (name, key), text)?, json_patch);
            applied.map_err(|error| error.in_context(format!("record {key}")))
        })
    }

    /// Changes a record by a JSON Merge Patch.
    pub fn merge_patch_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        let patch = patch::merge::read(json)?;
        self.change_record(name, key, |writer, text| {
            let place = place(writer, (name, key), text)?;
            let applied = patch::merge::apply(writer, &place, &patch);
            applied.map_err(|error| error.in_context(format!("record {key}")))
        })
    }

    /// Deletes the records with these keys; how many there were.
    pub fn delete_records(&mut self, name: &str, keys: &[Key]) -> Result<u64> {
        let ahead = self.records_ahead(name, keys)?;
        let kind = self.key_kind(name)?;
        let texts = keys.iter().map(|key| kind.text_of(key)).collect::<Result<Vec<_>>>()?;
        self.change_collection(name, |writer| {
            let mut records = Vec::new();
            for (at, text) in texts.iter().enumerate() {
                let ordinal = ahead.get(at).copied().flatten();
                let found = ordinal.map(|ordinal| writer.record_at(ordinal)).transpose()?.flatten();
                // It may have come since, or for the first time.
                records.extend(
                    found
                        .map_or_else(|| writer.record(text.as_bytes()), |found| Ok(Some(found)))?,
                );
            }
            records.sort_unstable();
            records.dedup();
            if !records.is_empty() {
                writer.remove_records(&records)?;
            }
            Ok(records.len() as u64)
        })
    }

    /// The versions of a record that the transaction changed.
    pub(crate) fn staged_version(&mut self, name: &str, key: &Key) -> Result<StagedVersion> {
        let text = self.put_kind(name)?.text_of(key)?;
        let writer = self.any_writer(name)?;
        let Some(record) = present(writer, &*text)? else { return Ok(StagedVersion::default()) };
        if writer.is_born(record) {
            return Ok(StagedVersion { before: 0, changed: 1 });
        }
        let before = writer.tree.record_version(record, writer.revision - 1)?;
        Ok(StagedVersion { before, changed: before + 1 })
    }

    /// Has a collection know keys that none of its revisions shows, and the versions they had.
    pub(crate) fn depart_records(
        &mut self,
        name: &str,
        departed: &BTreeMap<String, u64>,
    ) -> Result<()> {
        if departed.is_empty() {
            return Ok(());
        }
        self.put_kind(name)?;
        self.change_collection(name, |writer| {
            for (key, &versions) in departed {
                check_versions(key, versions)?;
                if !writer.bear_departed(key, versions)? {
                    return Err(no_departure(key));
                }
            }
            Ok(())
        })
    }

    /// The same of those that the collection does not know yet.
    pub(crate) fn depart_unknown_records<'k>(
        &mut self,
        name: &str,
        departed: impl IntoIterator<Item = (&'k str, u64)>,
    ) -> Result<()> {
        self.put_kind(name)?;
        self.change_collection(name, |writer| {
            for (key, versions) in departed {
                writer.bear_departed(key, versions)?;
            }
            Ok(())
        })
    }

    /// The ordinals of records, as far as they are known before others have to wait for the
    /// collection; of all that can be wrong whoever has the turn finds out.
    fn records_ahead(&mut self, name: &str, keys: &[Key]) -> Result<Vec<Option<u64>>> {
        let Some(tree) = self.not_yet_taken(name)?.filter(|_| keys.len() > 1) else {
            return Ok(Vec::new());
        };
        let kind = self.options(&tree)?.and_then(|options| options.collection);
        let texts = kind.map(|kind| keys.iter().map(move |key| kind.text_of(key)));
        let texts: Vec<_> = texts.into_iter().flatten().collect::<Result<_>>().unwrap_or_default();
        let names: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        tree.records_ahead(&names)
    }

    /// The type of a collection's keys.
    pub(crate) fn key_kind(&mut self, name: &str) -> Result<KeyKind> {
        self.writer(name)?;
        self.put_kind(name)
    }

    /// The same where the collection may be deleted.
    fn put_kind(&mut self, name: &str) -> Result<KeyKind> {
        let keys = self.any_writer(name)?.options.as_ref().and_then(|options| options.collection);
        keys.ok_or_else(|| no_collection(name))
    }

    /// A collection by its name and tree.
    pub(crate) fn document_of(&self, name: &str, tree: &Arc<Tree>) -> Document {
        Document::new(Arc::clone(&self.engine), Arc::clone(tree), name)
    }

    fn change_record(
        &mut self,
        name: &str,
        key: &Key,
        change: impl FnOnce(&Writer, &str) -> Result<()>,
    ) -> Result<()> {
        let text = self.key_kind(name)?.text_of(key)?;
        self.change_collection(name, |writer| change(writer, &text))
    }

    pub(crate) fn change_collection<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&Writer) -> Result<T>,
    ) -> Result<T> {
        let id = self.find(name)?.ok_or_else(|| no_document(name))?;
        self.change(id, change)
    }
}

fn put(writer: &Writer, (key, text): (&Key, &str), json: &[u8]) -> Result<()> {
    let mut puts = None;
    put_next((writer, &mut puts), (key, text.as_bytes()), (json, Members::InOrder))?;
    puts.map_or(Ok(()), RecordPuts::finish)
}

/// Puts a record behind others, if there are any: nothing is staged before its text was read.
fn put_next<'w>(
    (writer, puts): (&'w Writer, &mut Option<RecordPuts<'w>>),
    (key, text): (&Key, &[u8]),
    (json, members): (&[u8], Members),
) -> Result<()> {
    let tape = record_tape(key, json)?;
    let puts = match puts {
        Some(puts) => puts,
        none => {
            if writer.deleted()?.is_some() {
                // What it had would else be taken for there.
                writer.put_root(&Tape::parse(b"{}", ParseOptions::default())?)?;
            }
            none.insert(RecordPuts::of(writer)?)
        }
    };
    puts.put(text, (&tape, members))
}

/// The text of a record; `Invalid` if it is none.
pub(crate) fn record_tape<'t>(key: &Key, json: &'t [u8]) -> Result<Tape<'t>> {
    let context = |error: Error| error.in_context(format!("record {key}"));
    // The collection is one level more.
    let tape = Tape::parse_inside(json, ParseOptions::default(), 1).map_err(context)?;
    if !matches!(tape.item(tape.root()), Item::Object { .. }) {
        let message = format!("record {key} is no JSON object: a record has fields");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(tape)
}

/// A record that is there: in a deleted collection none is, and none that was purged, as it is
/// where a commit before that was restored.
fn present(writer: &Writer, key: impl AsRef<[u8]>) -> Result<Option<NodeId>> {
    if writer.deleted()?.is_some() {
        return Ok(None);
    }
    let Some(record) = writer.record(key)? else { return Ok(None) };
    Ok((!writer.tree.is_purged(record, writer.revision)?).then_some(record))
}

/// How many versions each of some records had, as the text of an object says.
pub(crate) fn read_departed(text: &[u8]) -> Result<BTreeMap<String, u64>> {
    let tape = Tape::parse(text, ParseOptions::default())?;
    let wrong = || Error::new(ErrorKind::Invalid, "records that departed have numbers of versions");
    if !matches!(tape.item(tape.root()), Item::Object { .. }) {
        return Err(wrong());
    }
    let mut departed = BTreeMap::new();
    for (name, at) in tape.fields(tape.root()) {
        let name = String::from_utf8_lossy(name_of(name).0).into_owned();
        departed.insert(name, count_of(&tape, at).ok_or_else(wrong)?);
    }
    Ok(departed)
}

/// A number of versions in a text.
pub(crate) fn count_of(tape: &Tape<'_>, at: TapeIndex) -> Option<u64> {
    match tape.item(at) {
        Item::Number(text) => str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// Refuses a number of versions that no record can have had.
pub(crate) fn check_versions(key: &str, versions: u64) -> Result<()> {
    if (1..=RECORD_VERSION_MAX).contains(&versions) {
        return Ok(());
    }
    let message = format!("record {key:?} is told to have departed with {versions} versions");
    Err(Error::new(ErrorKind::Invalid, message))
}

/// The error for a record that is there, or was told twice.
fn no_departure(key: &str) -> Error {
    let message = format!("record {key:?} is told to have departed, but is there");
    Error::new(ErrorKind::Invalid, message)
}

/// The place of a record that is there.
fn place(writer: &Writer, (name, key): (&str, &Key), text: &str) -> Result<JsonPointer> {
    if present(writer, text)?.is_some() {
        return Ok(JsonPointer::root().child(text));
    }
    let message = format!("there is no record {key} in collection {name:?}: insert or put it");
    Err(Error::new(ErrorKind::NotFound, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitOptions, Database, Filter, IndexDefinition, Revision};

    /// A record of a shape that is that of its neighbours, or not.
    fn json(key: u64, turn: u64) -> String {
        match (key * 7 + turn) % 5 {
            0 => format!(r#"{{"b":{turn},"a":[{key}]}}"#),
            1 => "{}".to_owned(),
            _ => format!(r#"{{"a":{key},"b":"{turn}"}}"#),
        }
    }

    /// A deleted collection was refused all records, and told to put one.
    #[test]
    fn deleted_collection_goes_on_with_a_record() {
        let db = Database::memory().unwrap();
        let options = CommitOptions::default();
        let records = db.create_collection("r", KeyKind::Text).unwrap();
        for key in ["a", "b"] {
            records.put(key, format!(r#"{{"n":"{key}"}}"#), &options).unwrap();
        }
        records.create_index(&IndexDefinition::new("n", &["n"]).unwrap()).unwrap();
        let mut transaction = db.transaction();
        transaction.delete_document("r").unwrap();
        transaction.commit(&options).unwrap();
        assert_eq!(records.delete("a", &options).unwrap_err().kind(), ErrorKind::NotFound);
        let mut transaction = db.transaction();
        assert_eq!(transaction.get_record("r", &"a".into()).unwrap(), None);
        assert!(transaction.put_record("r", &"a".into(), b"1").is_err());
        transaction.insert_record("r", &"a".into(), br#"{"n":"c"}"#).unwrap();
        transaction.put_record("r", &"d".into(), br#"{"n":"b"}"#).unwrap();
        transaction.commit(&options).unwrap();
        assert_eq!(records.count().unwrap(), 2);
        assert_eq!(records.get("a").unwrap().unwrap().version, 2);
        assert!(records.get("b").unwrap().is_none());
        let filter = Filter::eq("n", "b");
        assert_eq!(db.transaction().find_records("r", &filter).unwrap(), [Key::from("d")]);
        assert_eq!(records.at(Revision(2)).unwrap().count().unwrap(), 2);
        assert!(records.at(Revision(3)).is_err());
    }

    #[test]
    fn records_put_together_are_as_if_put_one_by_one() {
        let db = Database::memory().unwrap();
        let [together, single] =
            ["together", "single"].map(|name| db.create_collection(name, KeyKind::U64).unwrap());
        let options = CommitOptions::default();
        for turn in 0..8 {
            // New ones, others that come back among them, and some that are given twice.
            let keys = (0..40).map(|n| (n * 11 + turn * 5) % (20 + 13 * turn));
            let batch: Vec<_> = keys.map(|key| (key, json(key, turn))).collect();
            together.put_many(batch.iter().cloned(), &options).unwrap();
            let mut transaction = db.transaction();
            for (key, json) in &batch {
                transaction.put_record("single", &Key::U64(*key), json.as_bytes()).unwrap();
            }
            transaction.commit(&options).unwrap();
            let gone: Vec<_> = (0..200).filter(|key| (key + turn) % 3 == 0).map(Key::U64).collect();
            for records in [&together, &single] {
                records.delete_many(&gone, &options).unwrap();
            }
            let text = |records: &crate::Collection| {
                let document = records.document().head().unwrap();
                let keys: Vec<_> = (0..200).map(Key::U64).collect();
                (document.to_json().unwrap(), records.versions(&keys).unwrap())
            };
            assert_eq!(text(&together), text(&single), "turn {turn}");
        }
    }

    #[test]
    fn a_batch_with_a_record_that_is_none_saves_nothing() {
        let db = Database::memory().unwrap();
        let records = db.create_collection("records", KeyKind::U64).unwrap();
        let options = CommitOptions::default();
        let refused = records.put_many([(1_u64, "{}"), (2, "[]")], &options).unwrap_err();
        assert!(refused.message().contains("record 2 is no JSON object"), "{refused}");
        assert_eq!(records.count().unwrap(), 0);
        let mut transaction = db.transaction();
        assert!(transaction.put_record("records", &Key::U64(1), b"[]").is_err());
        transaction.put_record("records", &Key::U64(2), b"{}").unwrap();
        transaction.commit(&options).unwrap();
        assert_eq!(records.count().unwrap(), 1);
    }
}
