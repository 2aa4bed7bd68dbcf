//! Collections: keyed JSON records, every version of each.
//!
//! A collection is a document whose value is an object of records, by key. So everything that
//! documents have it has too, by the same name: revisions, log, diff, tags, undo, JSONPath,
//! retention. What it has beside that is a version for each record, an order of keys, and reads and
//! writes of single records whose cost does not grow with their number.

use crate::database::Database;
use crate::document::{Document, Outcome};
use crate::engine::catalogue::{Status, facts};
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::key_text::DIGITS;
use crate::options::DocumentOptions;
use crate::revision::{Micros, Revision};
use crate::snapshot::Snapshot;
use crate::tree::history::short;
use crate::tree::record_get::OneRecord;
use crate::tree::serialize::Format;
use crate::tree::stored_records::{BATCH_RECORDS_MAX, RecordBatch, StoredRecord};

mod compare;
mod history;
mod indexes;
mod key;
pub(crate) mod path_values;
mod query;
mod record_path;
mod scan;
pub(crate) mod sort_key;
#[cfg(test)]
mod tests;
mod write;

pub use compare::RecordBlame;
pub use history::{RecordHistory, RecordVersion};
pub use indexes::{IndexProgress, IndexStats};
pub use key::{Key, KeyKind};
pub use query::{
    Explanation, Filter, FilterValue, Group, Groups, Order, Page, Query, QueryCounts, Records, Ties,
};
pub use record_path::RecordPath;
pub(crate) use record_path::RecordStep;
pub use scan::{Scan, ScanOptions};
pub use write::Saved;

/// Keyed JSON records with every version of each.
///
/// ```
/// use duramen::{CommitOptions, Database, KeyKind};
///
/// let db = Database::memory()?;
/// let players = db.create_collection("players", KeyKind::Text)?;
/// let how = CommitOptions::default();
/// players.insert("ann", r#"{"score":3}"#, &how)?;
/// let saved = players.put("ann", r#"{"score":5}"#, &how)?;
/// assert_eq!(saved.version, 2);
/// let ann = players.get("ann")?.expect("she is there");
/// assert_eq!((ann.version, ann.json.as_str()), (2, r#"{"score":5}"#));
/// let before = players.history("ann")?.nth(1).expect("two versions")?;
/// assert_eq!(before.record.expect("no deletion").json, r#"{"score":3}"#);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Collection {
    document: Document,
    keys: KeyKind,
}

/// A collection at one revision: immutable, shared freely, never in the writer's way.
#[derive(Debug, Clone)]
pub struct CollectionSnapshot {
    /// None before the first revision.
    snapshot: Option<Snapshot>,
    keys: KeyKind,
    document: Document,
}

/// A record as it is at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: Key,
    /// 1, 2, 3 ... for each revision that changed it; a record that was deleted and comes back
    /// goes on counting.
    pub version: u64,
    /// The record as compact JSON.
    pub json: String,
}

impl Record {
    fn of(key: Key, stored: StoredRecord<'_>) -> Self {
        Self { key, version: stored.version, json: stored.json.to_owned() }
    }
}

impl Database {
    /// Makes a collection without records; `Conflict` if there is a document or collection of that
    /// name, deleted or not.
    pub fn create_collection(&self, name: &str, keys: KeyKind) -> Result<Collection> {
        let declared = DocumentOptions { collection: Some(keys), ..DocumentOptions::default() };
        let document = self.create_document_with(name, &declared)?;
        Ok(Collection { document, keys })
    }

    /// A collection; `NotFound` if there is none of that name, `Invalid` if a document has the name
    /// that is no collection.
    pub fn collection(&self, name: &str) -> Result<Collection> {
        let document = self.document(name)?;
        let keys = document.options()?.collection.ok_or_else(|| no_collection(name))?;
        Ok(Collection { document, keys })
    }

    /// The names of the collections, sorted; deleted ones left out.
    pub fn collections(&self) -> Result<Vec<String>> {
        let (view, published) = (self.engine.view(), self.engine.published());
        let (catalogue, head) = view.catalogue(published)?;
        let mut names = Vec::new();
        for (name, found) in view.names(published)? {
            if found.status == Status::Live
                && let Some(options) = facts::options(&catalogue, found.tree, head)?
                && options.collection.is_some()
            {
                names.push(name);
            }
        }
        Ok(names)
    }
}

pub(crate) fn no_collection(name: &str) -> Error {
    let message = format!(
        "document {name:?} is no collection: read it as a document, or make a collection of \
         another name"
    );
    Error::new(ErrorKind::Invalid, message)
}

impl Collection {
    /// The collection's name.
    pub fn name(&self) -> &str {
        self.document.name()
    }

    /// The type of its keys.
    pub fn key_kind(&self) -> KeyKind {
        self.keys
    }

    /// The collection as a document: its value is an object of the records, in the order in which
    /// they came, each under its key. Integers stand there as 20 digits.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The collection now.
    pub fn head(&self) -> Result<CollectionSnapshot> {
        Ok(self.snapshot(self.document.head_if_any()?))
    }

    /// The collection as of a revision; `NotFound` if it has no such revision.
    pub fn at(&self, revision: Revision) -> Result<CollectionSnapshot> {
        Ok(self.snapshot(Some(self.document.at(revision)?)))
    }

    /// The collection as of a time: its last revision not after it. `NotFound` before the first.
    pub fn at_time(&self, time: Micros) -> Result<CollectionSnapshot> {
        Ok(self.snapshot(Some(self.document.at_time(time)?)))
    }

    fn snapshot(&self, snapshot: Option<Snapshot>) -> CollectionSnapshot {
        CollectionSnapshot { snapshot, keys: self.keys, document: self.document.clone() }
    }

    /// The record with a key, if there is one now.
    pub fn get(&self, key: impl Into<Key>) -> Result<Option<Record>> {
        let key = key.into();
        let young = match self.keys.name_of(&key) {
            Ok(name) => self.document.young_record(name.bytes(&mut [0; DIGITS]))?,
            Err(_) => None,
        };
        if let Some(OneRecord { version, json }) = young {
            return Ok(Some(Record { key, version, json }));
        }
        get(self.keys, self.document.head_if_any()?.as_ref(), key)
    }

    /// The records with these keys, in the order asked; nothing where there is none.
    pub fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.head()?.get_many(keys)
    }

    /// Whether there is a record with a key now.
    pub fn exists(&self, key: impl Into<Key>) -> Result<bool> {
        self.head()?.exists(key)
    }

    /// How many records there are now.
    pub fn count(&self) -> Result<u64> {
        self.head()?.count()
    }

    /// The versions of the records with these keys; nothing where there is none.
    pub fn versions(&self, keys: &[Key]) -> Result<Vec<Option<u64>>> {
        self.head()?.versions(keys)
    }

    /// The records in the order of their keys, as they are now.
    pub fn scan(&self, options: &ScanOptions) -> Result<Scan> {
        self.head()?.scan(options)
    }

    /// What happened to the record with a key, newest first; `NotFound` if there never was one.
    pub fn history(&self, key: impl Into<Key>) -> Result<RecordHistory> {
        self.head()?.history(key)
    }

    /// The record with a key as of a revision, if there was one.
    pub fn get_at(&self, key: impl Into<Key>, revision: Revision) -> Result<Option<Record>> {
        self.at(revision)?.get(key)
    }
}

impl CollectionSnapshot {
    pub(crate) fn of(document: Document, snapshot: Option<Snapshot>, keys: KeyKind) -> Self {
        Self { snapshot, keys, document }
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// The type of its keys.
    pub fn key_kind(&self) -> KeyKind {
        self.keys
    }

    /// The revision it shows; 0 before the first.
    pub fn revision(&self) -> Revision {
        self.snapshot.as_ref().map_or(Revision(0), Snapshot::revision)
    }

    /// The record with a key, if there is one.
    pub fn get(&self, key: impl Into<Key>) -> Result<Option<Record>> {
        get(self.keys, self.snapshot.as_ref(), key.into())
    }

    /// The records with these keys, looked up one by one and read together.
    fn read_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let texts = keys.iter().map(|key| self.keys.text_of(key)).collect::<Result<Vec<_>>>()?;
        let Some(snapshot) = &self.snapshot else { return Ok(vec![None; keys.len()]) };
        let (tree, revision) = snapshot.place();
        let names: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let (_, found) = tree.record_ordinals(&names)?;
        let known = found.iter().zip(0..).filter_map(|(found, at)| found.map(|found| (found, at)));
        let (ordinals, places): (Vec<u64>, Vec<usize>) = known.unzip();
        let mut batch = RecordBatch::new(ordinals, false);
        let mut records = vec![None; keys.len()];
        while let Some((at, stored)) = batch.next((tree, revision))? {
            let place = places[at];
            records[place] = Some(Record::of(keys[place].clone(), stored));
        }
        Ok(records)
    }

    /// The records with these keys, in the order asked; nothing where there is none.
    pub fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let mut records = Vec::with_capacity(keys.len());
        for keys in keys.chunks(BATCH_RECORDS_MAX) {
            records.extend(self.read_many(keys)?);
        }
        Ok(records)
    }

    /// Whether there is a record with a key.
    pub fn exists(&self, key: impl Into<Key>) -> Result<bool> {
        Ok(self.versions(&[key.into()])?[0].is_some())
    }

    /// How many records there are, those counted that were purged since.
    pub fn count(&self) -> Result<u64> {
        match &self.snapshot {
            Some(snapshot) => snapshot.tree.record_count(short(snapshot.revision)),
            None => Ok(0),
        }
    }

    /// The versions of the records with these keys; nothing where there is none.
    pub fn versions(&self, keys: &[Key]) -> Result<Vec<Option<u64>>> {
        let version = |key: &Key| {
            let text = self.keys.text_of(key)?;
            let Some(snapshot) = &self.snapshot else { return Ok(None) };
            let (tree, revision) = snapshot.place();
            let record = tree.record(text.as_bytes(), revision)?;
            record.map(|record| tree.record_version(record, revision)).transpose()
        };
        keys.iter().map(version).collect()
    }

    /// The records in the order of their keys.
    pub fn scan(&self, options: &ScanOptions) -> Result<Scan> {
        Scan::new(self.clone(), options)
    }

    /// What happened to the record with a key up to this revision, newest first; `NotFound` if
    /// there was none up to now.
    pub fn history(&self, key: impl Into<Key>) -> Result<RecordHistory> {
        RecordHistory::new(self, key.into())
    }
}

/// The record with a key, if there is one.
fn get(keys: KeyKind, snapshot: Option<&Snapshot>, key: Key) -> Result<Option<Record>> {
    let (name, mut digits) = (keys.name_of(&key)?, [0; DIGITS]);
    let Some(snapshot) = snapshot else { return Ok(None) };
    let (tree, revision) = snapshot.place();
    let stored = tree.get_record(name.bytes(&mut digits), revision)?;
    Ok(stored.map(|OneRecord { version, json }| Record { key, version, json }))
}

impl Snapshot {
    /// A record that is there.
    fn record(&self, key: Key, record: crate::NodeId) -> Result<Record> {
        let (tree, revision) = self.place();
        let mut text = Vec::new();
        tree.append_json((record, revision), &Format::default(), &mut text)?;
        let json = String::from_utf8(text).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "a record's text is not UTF-8").with_source(error)
        })?;
        Ok(Record { key, version: tree.record_version(record, revision)?, json })
    }
}

/// A commit of changes to one collection.
pub(crate) fn commit(
    collection: &Collection,
    options: &CommitOptions,
    change: impl FnOnce(&mut crate::Transaction, &str) -> Result<()>,
) -> Result<Outcome> {
    let name = collection.name();
    collection.document.commit(options, |transaction| change(transaction, name))
}
