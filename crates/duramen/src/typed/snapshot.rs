//! Collections of values of a type at one revision, and what reading them gives.

use std::marker::PhantomData;

use super::{TypedRecord, coding};
use crate::collection::{
    CollectionSnapshot, Filter, Query, QueryCounts, Record, RecordHistory, RecordVersion, Records,
    Scan, ScanOptions,
};
use crate::error::Result;
use crate::revision::Revision;

/// A typed collection at one revision: immutable, shared freely, never in the writer's way.
///
/// What gives no values, such as [`blame`](CollectionSnapshot::blame) or
/// [`group_count`](CollectionSnapshot::group_count), its [snapshot](Self::snapshot) has.
#[derive(Debug)]
pub struct TypedSnapshot<R> {
    snapshot: CollectionSnapshot,
    values: PhantomData<fn() -> R>,
}

/// Some of the values that a query finds, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedPage<R> {
    /// The values.
    pub values: Vec<R>,
    /// Leads to the page behind this one; nothing if there was none.
    pub next: Option<String>,
    /// Leads to the page before this one; nothing if there was none.
    pub previous: Option<String>,
    /// What was read.
    pub counts: QueryCounts,
}

/// One version of a record, or its deletion, with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedVersion<R> {
    /// The value; nothing if the revision deleted the record, or it was purged.
    pub value: Option<R>,
    /// The version as it is stored.
    pub stored: RecordVersion,
}

/// The values of records that are read one by one; an iterator that ends where theirs does.
#[derive(Debug)]
pub struct TypedValues<I, R> {
    records: I,
    collection: String,
    values: PhantomData<fn() -> R>,
}

/// The values of a range of keys, in the order of the keys; an iterator that reads page by page.
pub type TypedScan<R> = TypedValues<Scan, R>;

/// The values that a query finds; an iterator.
pub type TypedRecords<R> = TypedValues<Records, R>;

/// The versions and deletions of a record, newest first; an iterator that reads page by page.
#[derive(Debug)]
pub struct TypedHistory<R> {
    collection: String,
    history: RecordHistory,
    values: PhantomData<fn() -> R>,
}

impl<R> Clone for TypedSnapshot<R> {
    fn clone(&self) -> Self {
        Self { snapshot: self.snapshot.clone(), values: PhantomData }
    }
}

impl<R: TypedRecord> TypedSnapshot<R> {
    pub(super) fn of(snapshot: CollectionSnapshot) -> Self {
        Self { snapshot, values: PhantomData }
    }

    /// The same with its records as JSON.
    pub fn snapshot(&self) -> &CollectionSnapshot {
        &self.snapshot
    }

    /// The revision it shows; 0 before the first.
    pub fn revision(&self) -> Revision {
        self.snapshot.revision()
    }

    /// The value with a key, if there is one.
    ///
    /// # Errors
    /// `Invalid` if the record is none of the type: it tells the key and the field. So it is if the
    /// value that is stored under a key has another one.
    pub fn get(&self, key: &R::Key) -> Result<Option<R>> {
        self.value(self.snapshot.get(key.clone())?)
    }

    /// The values with these keys, in the order asked; nothing where there is none.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(&self, keys: &[R::Key]) -> Result<Vec<Option<R>>> {
        let records = self.snapshot.get_many(&coding::keys::<R>(keys))?;
        records.into_iter().map(|record| self.value(record)).collect()
    }

    /// Whether there is a record with a key.
    pub fn exists(&self, key: &R::Key) -> Result<bool> {
        self.snapshot.exists(key.clone())
    }

    /// How many records there are, those counted that were purged since.
    pub fn count(&self) -> Result<u64> {
        self.snapshot.count()
    }

    /// Of how many records a filter is true.
    pub fn count_where(&self, filter: &Filter) -> Result<u64> {
        self.snapshot.count_where(filter)
    }

    /// How many records a query finds.
    pub fn count_query(&self, query: &Query) -> Result<u64> {
        self.snapshot.count_query(query)
    }

    /// The versions of the records with these keys; nothing where there is none.
    pub fn versions(&self, keys: &[R::Key]) -> Result<Vec<Option<u64>>> {
        self.snapshot.versions(&coding::keys::<R>(keys))
    }

    /// The values in the order of their keys.
    pub fn scan(&self, options: &ScanOptions) -> Result<TypedScan<R>> {
        self.snapshot.scan(options).map(|records| self.values(records))
    }

    /// The values that a query finds, in its order; one that [selects](Query::select) leaves out
    /// what values need.
    pub fn query(&self, query: &Query) -> Result<TypedRecords<R>> {
        self.snapshot.query(query).map(|records| self.values(records))
    }

    /// At most `size` of the values that a query finds, from its first one on or from where a
    /// cursor leads: see [`CollectionSnapshot::page`].
    ///
    /// # Errors
    /// As [`get`](Self::get); `Invalid` too for a cursor of another query, or none at all, and for
    /// a query with a limit.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Order, Query, Record};
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Debug, PartialEq, Record, Serialize, Deserialize)]
    /// struct Note {
    ///     #[record(key)]
    ///     id: u64,
    ///     rank: u32,
    /// }
    ///
    /// let notes = Database::memory()?.create_typed_collection::<Note>("notes")?;
    /// let all: Vec<Note> = (1..=5).map(|id| Note { id, rank: 10 - id as u32 }).collect();
    /// notes.put_many(&all, &CommitOptions::default())?;
    /// let query = Query::new().order_by(Order::asc("rank"));
    /// let first = notes.page(&query, None, 2)?;
    /// let second = notes.page(&query, first.next.as_deref(), 2)?;
    /// let ids = |values: &[Note]| values.iter().map(|note| note.id).collect::<Vec<_>>();
    /// assert_eq!((ids(&first.values), ids(&second.values)), (vec![5, 4], vec![3, 2]));
    /// assert_eq!(notes.page(&query, second.previous.as_deref(), 2)?.values, first.values);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn page(&self, query: &Query, cursor: Option<&str>, size: usize) -> Result<TypedPage<R>> {
        let page = self.snapshot.page(query, cursor, size)?;
        let values = page.records.iter().map(|record| coding::decode(record, self.name()));
        Ok(TypedPage {
            values: values.collect::<Result<_>>()?,
            next: page.next,
            previous: page.previous,
            counts: page.counts,
        })
    }

    /// What happened to the record with a key up to this revision, newest first; `NotFound` if
    /// there was none up to now.
    pub fn history(&self, key: &R::Key) -> Result<TypedHistory<R>> {
        let history = self.snapshot.history(key.clone())?;
        Ok(TypedHistory { collection: self.name().to_owned(), history, values: PhantomData })
    }

    fn name(&self) -> &str {
        self.snapshot.document().name()
    }

    fn value(&self, record: Option<Record>) -> Result<Option<R>> {
        record.map(|record| coding::decode(&record, self.name())).transpose()
    }

    fn values<I>(&self, records: I) -> TypedValues<I, R> {
        TypedValues { records, collection: self.name().to_owned(), values: PhantomData }
    }
}

impl<R> TypedRecords<R> {
    /// What was read to find those that came so far, and those that were read together with them.
    pub fn counts(&self) -> QueryCounts {
        self.records.counts()
    }
}

impl<I: Iterator<Item = Result<Record>>, R: TypedRecord> Iterator for TypedValues<I, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?;
        Some(record.and_then(|record| coding::decode(&record, &self.collection)))
    }
}

impl<R: TypedRecord> Iterator for TypedHistory<R> {
    type Item = Result<TypedVersion<R>>;

    fn next(&mut self) -> Option<Self::Item> {
        let typed = |stored: RecordVersion| {
            let value = stored.record.as_ref();
            let value = value.map(|record| coding::decode(record, &self.collection));
            Ok(TypedVersion { value: value.transpose()?, stored })
        };
        self.history.next().map(|version| version.and_then(typed))
    }
}
