//! Collections of values of a Rust type, stored as records by serde.

use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::collection::{Collection, Filter, Key, KeyKind, Query, Saved, ScanOptions, commit};
use crate::database::{Database, DatabaseSnapshot};
use crate::document::Outcome;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::{Micros, Revision};
use crate::tree::records::Members;

mod coding;
mod finite;
mod index;
mod snapshot;
mod transaction;
#[cfg(feature = "uuid")]
mod uuid;

pub use index::IndexDeclaration;
pub use snapshot::{
    TypedHistory, TypedPage, TypedRecords, TypedScan, TypedSnapshot, TypedValues, TypedVersion,
};
pub use transaction::TypedTransaction;

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
///
/// An index on a field that is an array is one of its elements; one of several paths is declared on
/// the struct. Records that change together do so in a [transaction](crate::Transaction::typed).
///
/// ```
/// # use duramen::{CommitOptions, Database, Filter, Query, Record};
/// # use serde::{Deserialize, Serialize};
/// #[derive(Record, Serialize, Deserialize)]
/// #[record(index(name = "by_world_score", paths("world", "score")))]
/// #[record(unique(name = "serial", paths("items[*].serial")))]
/// struct Player {
///     #[record(key)]
///     id: u64,
///     world: String,
///     score: u32,
///     #[record(index)]
///     tags: Vec<String>,
///     items: Vec<Item>,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Item {
///     serial: u64,
/// }
///
/// let players = Database::memory()?.create_typed_collection::<Player>("players")?;
/// let items = vec![Item { serial: 40 }, Item { serial: 41 }];
/// let new = Player { id: 1, world: "end".into(), score: 3, tags: vec!["new".into()], items };
/// players.put(&new, &CommitOptions::default())?;
/// assert_eq!(players.query(&Query::new().filter(Filter::contains("tags", "new")))?.count(), 1);
/// let indexes = players.collection().indexes()?;
/// let names: Vec<_> = indexes.iter().map(|index| index.name.as_str()).collect();
/// assert_eq!(names, ["by_world_score", "serial", "tags"]);
/// # Ok::<(), duramen::Error>(())
/// ```
pub trait TypedRecord: Serialize + DeserializeOwned {
    /// The type of the key.
    type Key: RecordKey;

    /// The indexes that are declared for its records.
    const INDEXES: &'static [IndexDeclaration];

    /// The name of the member that has the key, as errors tell it.
    const KEY_MEMBER: Option<&'static str> = None;

    /// The name of the member that has the version, which is not stored.
    const VERSION_MEMBER: Option<&'static str> = None;

    /// Whether a value is read with that member.
    const READS_VERSION: bool = true;

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

/// What serde can store and read again, which the derive macro asks of the type parameters of a
/// [`TypedRecord`]. Every such type has it.
pub trait Stored: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Stored for T {}

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

impl Database {
    /// Makes a collection without records, with the keys that a type has and the indexes that it
    /// declares; `Conflict` if there is a document or collection of that name, deleted or not, and
    /// `Invalid`, without a collection, if what is declared can be no index.
    pub fn create_typed_collection<R: TypedRecord>(
        &self,
        name: &str,
    ) -> Result<TypedCollection<R>> {
        // What is no index would else be told when the collection is there.
        for declared in R::INDEXES {
            declared.definition()?.check()?;
        }
        let collection = self.create_collection(name, R::Key::KIND)?;
        let typed = TypedCollection { collection, records: PhantomData };
        typed.create_indexes()?;
        Ok(typed)
    }

    /// A collection of records of a type; `NotFound` if there is none of that name, `Invalid` if
    /// its keys are of another type.
    pub fn typed_collection<R: TypedRecord>(&self, name: &str) -> Result<TypedCollection<R>> {
        let collection = self.collection(name)?;
        check_keys::<R>(name, collection.key_kind())?;
        Ok(TypedCollection { collection, records: PhantomData })
    }
}

impl DatabaseSnapshot {
    /// A collection of records of a type as of that commit; errors as those of
    /// [`Database::typed_collection`].
    pub fn typed_collection<R: TypedRecord>(&self, name: &str) -> Result<TypedSnapshot<R>> {
        let snapshot = self.collection(name)?;
        check_keys::<R>(name, snapshot.key_kind())?;
        Ok(TypedSnapshot::of(snapshot))
    }
}

/// Refuses a collection whose keys are not those of a type.
fn check_keys<R: TypedRecord>(name: &str, found: KeyKind) -> Result<()> {
    let wanted = R::Key::KIND;
    if found == wanted {
        return Ok(());
    }
    let message = format!(
        "the keys of collection {name:?} are of the type {found}, those of the records {wanted}: \
         open it with records that have such keys"
    );
    Err(Error::new(ErrorKind::Invalid, message))
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

    /// Makes the indexes that the type declares and the collection does not have; how many. A
    /// collection that is opened by a type with other indexes than before gets them by this.
    ///
    /// # Errors
    /// `Conflict` if records have the same value where it is to be unique: it names two of them;
    /// and if there is another index of that name, such as one that is not unique. `Invalid` if
    /// what is declared can be no index, such as by a path that is none.
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

    /// The collection now.
    pub fn head(&self) -> Result<TypedSnapshot<R>> {
        self.collection.head().map(TypedSnapshot::of)
    }

    /// The collection as of a revision, with every read and query; `NotFound` if it has no such
    /// revision.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Filter, Query, Record, Revision};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Record, Serialize, Deserialize)]
    /// struct Player {
    ///     #[record(key)]
    ///     name: String,
    ///     score: u32,
    /// }
    ///
    /// let players = Database::memory()?.create_typed_collection::<Player>("players")?;
    /// for score in [3, 7] {
    ///     players.put(&Player { name: "ann".into(), score }, &CommitOptions::default())?;
    /// }
    /// let good = Query::new().filter(Filter::gt("score", 5));
    /// assert_eq!(players.query(&good)?.count(), 1);
    /// let before = players.at(Revision(1))?;
    /// assert_eq!(before.query(&good)?.count(), 0);
    /// assert_eq!(before.get(&"ann".into())?.expect("she was there").score, 3);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn at(&self, revision: Revision) -> Result<TypedSnapshot<R>> {
        self.collection.at(revision).map(TypedSnapshot::of)
    }

    /// The collection as of a time: its last revision not after it. `NotFound` before the first.
    pub fn at_time(&self, time: Micros) -> Result<TypedSnapshot<R>> {
        self.collection.at_time(time).map(TypedSnapshot::of)
    }

    /// The value with a key, if there is one now.
    ///
    /// # Errors
    /// `Invalid` if the record is none of the type: it tells the key and the field. So it is if the
    /// value that is stored under a key has another one.
    pub fn get(&self, key: &R::Key) -> Result<Option<R>> {
        let record = self.collection.get(key.clone())?;
        record.map(|record| coding::decode(&record, self.collection.name())).transpose()
    }

    /// The values with these keys, in the order asked; nothing where there is none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(&self, keys: &[R::Key]) -> Result<Vec<Option<R>>> {
        self.head()?.get_many(keys)
    }

    /// The value with a key as of a revision, if there was one.
    ///
    /// # Errors
    /// As [`get`](Self::get); `NotFound` if the collection has no such revision.
    pub fn get_at(&self, key: &R::Key, revision: Revision) -> Result<Option<R>> {
        self.at(revision)?.get(key)
    }

    /// The value with a key as of a time, if there was one.
    ///
    /// # Errors
    /// As [`get`](Self::get); `NotFound` if the collection has no revision as early.
    pub fn get_at_time(&self, key: &R::Key, time: Micros) -> Result<Option<R>> {
        self.at_time(time)?.get(key)
    }

    /// Whether there is a record with a key now.
    pub fn exists(&self, key: &R::Key) -> Result<bool> {
        self.head()?.exists(key)
    }

    /// How many records there are now.
    pub fn count(&self) -> Result<u64> {
        self.head()?.count()
    }

    /// Of how many records a filter is true now.
    pub fn count_where(&self, filter: &Filter) -> Result<u64> {
        self.head()?.count_where(filter)
    }

    /// The values in the order of their keys, as they are now.
    pub fn scan(&self, options: &ScanOptions) -> Result<TypedScan<R>> {
        self.head()?.scan(options)
    }

    /// The values that a query finds now: see [`TypedSnapshot::query`].
    pub fn query(&self, query: &Query) -> Result<TypedRecords<R>> {
        self.head()?.query(query)
    }

    /// A page of what a query finds now: see [`TypedSnapshot::page`].
    pub fn page(&self, query: &Query, cursor: Option<&str>, size: usize) -> Result<TypedPage<R>> {
        self.head()?.page(query, cursor, size)
    }

    /// What happened to the record with a key, newest first; `NotFound` if there never was one.
    pub fn history(&self, key: &R::Key) -> Result<TypedHistory<R>> {
        self.head()?.history(key)
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
            (Some(_), version) => {
                let (key, json) = self.stored(value)?;
                self.collection.save(&key, options, |transaction, name| {
                    transaction.expect_record(name, &key, version)?;
                    transaction.put_value(name, &key, json.as_bytes())
                })?
            }
        };
        value.set_version(saved.version);
        Ok(saved)
    }

    /// Adds a value; `Conflict` if there is a record with its key.
    pub fn insert(&self, value: &R, options: &CommitOptions) -> Result<Saved> {
        let (key, json) = self.stored(value)?;
        self.collection.insert(key, json, options)
    }

    /// Adds a value, or saves it over what has its key, whatever version that is. Nothing differs
    /// where only members come in another order, as those of a hash map do.
    pub fn put(&self, value: &R, options: &CommitOptions) -> Result<Saved> {
        let (key, json) = self.stored(value)?;
        self.collection.save(&key, options, |transaction, name| {
            transaction.put_value(name, &key, json.as_bytes())
        })
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
        let records = values.into_iter().map(|value| self.stored(value));
        let records = records.collect::<Result<Vec<_>>>()?;
        commit(&self.collection, options, |transaction, name| {
            transaction.put_records(name, records.into_iter(), Members::InAnyOrder)
        })
    }

    fn stored(&self, value: &R) -> Result<(Key, String)> {
        Ok((value.key().into(), coding::encode(value, self.collection.name())?))
    }

    /// Deletes the record with a key; whether there was one.
    pub fn delete(&self, key: &R::Key, options: &CommitOptions) -> Result<bool> {
        self.collection.delete(key.clone(), options)
    }

    /// Deletes the records with these keys in one commit; how many there were.
    pub fn delete_many(&self, keys: &[R::Key], options: &CommitOptions) -> Result<u64> {
        self.collection.delete_many(&coding::keys::<R>(keys), options)
    }

    /// Changes the records of which a filter is true by a JSON Merge Patch, in one commit; how many
    /// those are: see [`Collection::update_where`].
    ///
    /// # Errors
    /// `Invalid` if the patch has the key or the version of the type: neither is changed so. That
    /// what comes of the others is of the type is not looked at.
    pub fn update_where(
        &self,
        filter: &Filter,
        merge_patch: impl AsRef<[u8]>,
        options: &CommitOptions,
    ) -> Result<u64> {
        coding::check_patch::<R>(merge_patch.as_ref())?;
        self.collection.update_where(filter, merge_patch, options)
    }

    /// Deletes the records of which a filter is true, in one commit; how many those were.
    pub fn delete_where(&self, filter: &Filter, options: &CommitOptions) -> Result<u64> {
        self.collection.delete_where(filter, options)
    }
}
