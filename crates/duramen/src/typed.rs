//! Collections of values of a Rust type, stored as records by serde.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collection::{
    Collection, Key, KeyKind, Query, Record, RecordHistory, RecordVersion, Records, Saved, Scan,
    ScanOptions,
};
use crate::database::Database;
use crate::document::Outcome;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::index::IndexDefinition;
use crate::json::{JsonPointer, escape};
use crate::revision::Revision;

mod coding;
mod finite;
#[cfg(feature = "uuid")]
mod uuid;

/// A type whose values are records: what it is stored as serde says, and
/// [`#[derive(Record)]`](derive@crate::Record) what the fields of it are.
///
/// ```
/// use duramen::{CommitOptions, Database, Filter, Query, Record};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Record, Serialize, Deserialize)]
/// struct Player {
///     #[record(key)]
///     name: String,
///     #[record(index)]
///     team: String,
///     score: u32,
///     #[record(version)]
///     version: u64,
/// }
///
/// let db = Database::memory()?;
/// let players = db.create_typed_collection::<Player>("players")?;
/// let mut ann = Player { name: "ann".into(), team: "red".into(), score: 3, version: 0 };
/// players.save(&mut ann, &CommitOptions::default())?;
/// ann.score = 5;
/// players.save(&mut ann, &CommitOptions::default())?;
/// assert_eq!(ann.version, 2);
///
/// let found = players.get(&ann.name)?.expect("she is there");
/// assert_eq!((found.score, found.version), (5, 2));
/// let red = players.query(&Query::new().filter(Filter::eq("team", "red")))?;
/// assert_eq!(red.count(), 1);
/// let first = players.history(&ann.name)?.last().expect("two versions")?;
/// assert_eq!(first.value.expect("no deletion").score, 3);
/// # Ok::<(), duramen::Error>(())
/// ```
pub trait TypedRecord: Serialize + DeserializeOwned {
    /// The type of the key.
    type Key: RecordKey;

    /// The indexes that are declared on its fields.
    const INDEXES: &'static [IndexDeclaration];

    /// The name of the member that has the version, which is not stored.
    const VERSION_MEMBER: Option<&'static str> = None;

    /// The key under which it is stored.
    fn key(&self) -> Self::Key;

    /// The version of the record that it was read as; 0 if it was not read, or has no field for
    /// it.
    fn version(&self) -> u64 {
        0
    }

    /// Takes the version that it has after it was saved.
    fn set_version(&mut self, _version: u64) {}
}

/// An index that a type declares on one of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndexDeclaration {
    /// The member, as a JSON Pointer from the record.
    pub path: &'static str,
    /// Whether no two records have the same value there.
    pub is_unique: bool,
}

impl IndexDeclaration {
    /// The index, with the name of its member.
    fn definition(self) -> Result<IndexDefinition> {
        let pointer = JsonPointer::parse(self.path)?;
        let name = pointer.tokens().collect::<Vec<_>>().join(".");
        let mut path = String::new();
        pointer.tokens().for_each(|token| path.extend(["[", &escape::quoted(token), "]"]));
        let definition = IndexDefinition::new(&name, &[&path])?;
        Ok(if self.is_unique { definition.unique() } else { definition })
    }
}

/// A type that keys can have: `String`, `i64` and `u64` do, `uuid::Uuid` with the feature `uuid`,
/// and types of one's own.
pub trait RecordKey: Clone + Into<Key> {
    /// The type of the keys of a collection of such records.
    const KIND: KeyKind;
}

impl RecordKey for String {
    const KIND: KeyKind = KeyKind::Text;
}

impl RecordKey for i64 {
    const KIND: KeyKind = KeyKind::I64;
}

impl RecordKey for u64 {
    const KIND: KeyKind = KeyKind::U64;
}

/// A collection whose records are values of a type.
///
/// What it has not by itself its [collection](Self::collection) has: both are the same records.
#[derive(Debug)]
pub struct TypedCollection<R> {
    collection: Collection,
    records: PhantomData<fn() -> R>,
}

/// One version of a record, or its deletion, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedVersion<R> {
    /// The value; nothing if the revision deleted the record, or it was purged.
    pub value: Option<R>,
    /// The version as it is stored.
    pub stored: RecordVersion,
}

/// The values of a range of keys, in the order of the keys; an iterator that reads page by page.
#[derive(Debug)]
pub struct TypedScan<R> {
    collection: Collection,
    scan: Scan,
    records: PhantomData<fn() -> R>,
}

/// The values that a query finds; an iterator.
#[derive(Debug)]
pub struct TypedRecords<R> {
    collection: Collection,
    records: Records,
    values: PhantomData<fn() -> R>,
}

/// The versions and deletions of a record, newest first; an iterator that reads page by page.
#[derive(Debug)]
pub struct TypedHistory<R> {
    collection: Collection,
    history: RecordHistory,
    records: PhantomData<fn() -> R>,
}

impl Database {
    /// Makes a collection without records, with the keys that a type has and the indexes that it
    /// declares; `Conflict` if there is a document or collection of that name, deleted or not.
    pub fn create_typed_collection<R: TypedRecord>(
        &self,
        name: &str,
    ) -> Result<TypedCollection<R>> {
        let collection = self.create_collection(name, R::Key::KIND)?;
        let typed = TypedCollection { collection, records: PhantomData };
        typed.create_indexes()?;
        Ok(typed)
    }

    /// A collection of records of a type; `NotFound` if there is none of that name, `Invalid` if
    /// its keys are of another type.
    pub fn typed_collection<R: TypedRecord>(&self, name: &str) -> Result<TypedCollection<R>> {
        let collection = self.collection(name)?;
        let (found, wanted) = (collection.key_kind(), R::Key::KIND);
        if found != wanted {
            let message = format!(
                "the keys of collection {name:?} are of the type {found}, those of the records \
                 {wanted}: open it with records that have such keys"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(TypedCollection { collection, records: PhantomData })
    }
}

impl<R> Clone for TypedCollection<R> {
    fn clone(&self) -> Self {
        Self { collection: self.collection.clone(), records: PhantomData }
    }
}

impl<R: TypedRecord> TypedCollection<R> {
    /// The collection with its records as JSON.
    pub fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Makes the indexes that the type declares and the collection does not have, each with the
    /// name of its member; how many. A collection that is opened by a type with other indexes than
    /// before gets them by this.
    ///
    /// # Errors
    /// `Conflict` if records have the same value where it is to be unique: it names two of them;
    /// and if there is another index of that name, such as one that is not unique.
    pub fn create_indexes(&self) -> Result<usize> {
        let mut there = self.collection.indexes()?;
        let before = there.len();
        for declared in R::INDEXES {
            let definition = declared.definition()?;
            match there.iter().find(|index| index.name == definition.name) {
                Some(found) if *found == definition => {}
                Some(_) => {
                    let message = format!(
                        "collection {:?} has another index {:?} than the records declare: drop \
                         it, then make the indexes again",
                        self.collection.name(),
                        definition.name
                    );
                    return Err(Error::new(ErrorKind::Conflict, message));
                }
                None => {
                    self.collection.create_index(&definition)?;
                    there.push(definition);
                }
            }
        }
        Ok(there.len() - before)
    }

    /// The values that a query finds; one that [selects](Query::select) leaves out what values
    /// need.
    pub fn query(&self, query: &Query) -> Result<TypedRecords<R>> {
        let records = self.collection.query(query)?;
        Ok(TypedRecords { collection: self.collection.clone(), records, values: PhantomData })
    }

    /// The value with a key, if there is one now.
    ///
    /// # Errors
    /// `Invalid` if the record is none of the type: it tells the key and the field.
    pub fn get(&self, key: &R::Key) -> Result<Option<R>> {
        self.value(self.collection.get(key.clone())?)
    }

    /// The values with these keys, in the order asked; nothing where there is none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(&self, keys: &[R::Key]) -> Result<Vec<Option<R>>> {
        let keys: Vec<Key> = keys.iter().cloned().map(Into::into).collect();
        let records = self.collection.get_many(&keys)?;
        records.into_iter().map(|record| self.value(record)).collect()
    }

    /// The value with a key as of a revision, if there was one.
    ///
    /// # Errors
    /// As [`get`](Self::get); `NotFound` if the collection has no such revision.
    pub fn get_at(&self, key: &R::Key, revision: Revision) -> Result<Option<R>> {
        self.value(self.collection.get_at(key.clone(), revision)?)
    }

    /// The values in the order of their keys.
    pub fn scan(&self, options: &ScanOptions) -> Result<TypedScan<R>> {
        let scan = self.collection.scan(options)?;
        Ok(TypedScan { collection: self.collection.clone(), scan, records: PhantomData })
    }

    /// What happened to the record with a key, newest first; `NotFound` if there never was one.
    pub fn history(&self, key: &R::Key) -> Result<TypedHistory<R>> {
        let history = self.collection.history(key.clone())?;
        Ok(TypedHistory { collection: self.collection.clone(), history, records: PhantomData })
    }

    /// Saves a value that was read, or a new one, and gives it its version: `Conflict` if the
    /// record is at another version than the value, or is there already where it has none. Of a
    /// type without a field for the version this is [`put`](Self::put).
    ///
    /// As of all that saves values, it is `Invalid` if one has a number that JSON has not, which
    /// are NaN and the infinities.
    pub fn save(&self, value: &mut R, options: &CommitOptions) -> Result<Saved> {
        let saved = match (R::VERSION_MEMBER, value.version()) {
            (None, _) => self.put(value, options)?,
            (Some(_), 0) => self.insert(value, options)?,
            (Some(_), version) => self.collection.update(
                value.key(),
                version,
                coding::encode(value, self.collection.name())?,
                options,
            )?,
        };
        value.set_version(saved.version);
        Ok(saved)
    }

    /// Adds a value; `Conflict` if there is a record with its key.
    pub fn insert(&self, value: &R, options: &CommitOptions) -> Result<Saved> {
        let json = coding::encode(value, self.collection.name())?;
        self.collection.insert(value.key(), json, options)
    }

    /// Adds a value, or saves it over what has its key, whatever version that is.
    pub fn put(&self, value: &R, options: &CommitOptions) -> Result<Saved> {
        let json = coding::encode(value, self.collection.name())?;
        self.collection.put(value.key(), json, options)
    }

    /// Saves any number of values in one commit, all or none.
    pub fn put_many<'r>(
        &self,
        values: impl IntoIterator<Item = &'r R>,
        options: &CommitOptions,
    ) -> Result<Outcome>
    where
        R: 'r,
    {
        let encode = |value: &R| Ok((value.key(), coding::encode(value, self.collection.name())?));
        let records = values.into_iter().map(encode).collect::<Result<Vec<_>>>()?;
        self.collection.put_many(records, options)
    }

    /// Deletes the record with a key; whether there was one.
    pub fn delete(&self, key: &R::Key, options: &CommitOptions) -> Result<bool> {
        self.collection.delete(key.clone(), options)
    }

    fn value(&self, record: Option<Record>) -> Result<Option<R>> {
        record.map(|record| coding::decode(&record, self.collection.name())).transpose()
    }
}

impl<R: TypedRecord> Iterator for TypedRecords<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        Some(record.and_then(|record| coding::decode(&record, self.collection.name())))
    }
}

impl<R: TypedRecord> Iterator for TypedScan<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.scan.next()?;
        Some(record.and_then(|record| coding::decode(&record, self.collection.name())))
    }
}

impl<R: TypedRecord> Iterator for TypedHistory<R> {
    type Item = Result<TypedVersion<R>>;

    fn next(&mut self) -> Option<Self::Item> {
        let typed = |stored: RecordVersion| {
            let value = stored.record.as_ref();
            let value = value.map(|record| coding::decode(record, self.collection.name()));
            Ok(TypedVersion { value: value.transpose()?, stored })
        };
        self.history.next().map(|version| version.and_then(typed))
    }
}
