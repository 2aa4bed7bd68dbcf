//! Some of the rows, found by their keys or by indexes: who looks for few reads no more.

use std::ops::Range;
use std::sync::Arc;

use super::{Columns, ViewCache, parts};
use crate::collection::{Filter, Key, Query, RecordPath, ScanOptions, Ties};
use crate::error::Result;
use crate::node::PathId;
use crate::tree::schema::{Label, ROOT};

impl Columns {
    /// The same columns of the records with these keys, as far as there are such; none if rows are
    /// no records. `Invalid` if a key is none of the collection.
    pub fn with_keys(&self, keys: &[Key]) -> Result<Option<Self>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        let kind = collection.key_kind();
        let texts = keys.iter().map(|key| kind.text_of(key)).collect::<Result<Vec<_>>>()?;
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        let (_, found) = self.tree.record_ordinals(&texts)?;
        Ok(Some(self.among(found.into_iter().flatten().collect())))
    }

    /// The same columns of the records whose keys are in a range; none if these are more than so
    /// many, or rows are no records. `Invalid` if the range is none of the collection's keys.
    pub fn with_keys_in(&self, range: &ScanOptions, most: usize) -> Result<Option<Self>> {
        let Some(collection) = &self.collection else { return Ok(None) };
        let ordinals = collection.ordinals_in(range, most)?;
        Ok(ordinals.map(|ordinals| self.among(ordinals)))
    }

    /// The same columns of as many records as the limit of a range says: those whose keys are the
    /// first of it, or with `reverse` the last. None if rows are no records, or there is no limit.
    pub fn with_first_keys(&self, range: &ScanOptions) -> Result<Option<Self>> {
        let collection = self.collection.as_ref().filter(|_| self.past.is_none());
        let (Some(collection), Some(mut left)) = (collection, range.limit) else {
            return Ok(None);
        };
        let mut pages = collection.ordinal_pages(range)?;
        let mut ordinals = Vec::new();
        while left > 0
            && let Some(page) = pages(left)?
        {
            let found = self.among(page.clone());
            for part in 0..found.parts() {
                left = left.saturating_sub(found.rows(part)?.len() as u64);
            }
            ordinals.extend(page);
        }
        Ok(Some(self.among(ordinals)))
    }

    /// The same columns of the records that indexes name for a filter: all of which it is true,
    /// and perhaps others. None if no index tells, or if more than so many are named.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Filter, IndexDefinition, KeyKind};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::I64)?;
    /// for key in 0..1_000_i64 {
    ///     players.put(key, format!(r#"{{"rank":{key}}}"#), &CommitOptions::default())?;
    /// }
    /// let columns = players.head()?.columns()?;
    /// assert!(columns.named(&Filter::eq("rank", 7), 100)?.is_none(), "no index");
    /// players.create_index(&IndexDefinition::new("by-rank", &["rank"])?)?;
    /// let columns = players.head()?.columns()?;
    /// let found = columns.named(&Filter::lt("rank", 7), 100)?.expect("named by the index");
    /// assert_eq!(found.rows(0)?.len(), 7);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn named(&self, filter: &Filter, most: usize) -> Result<Option<Self>> {
        // An index names what has been at one revision.
        let collection = self.collection.as_ref().filter(|_| self.past.is_none());
        let Some(collection) = collection else { return Ok(None) };
        let named = collection.named(filter, most)?;
        Ok(named.map(|ordinals| self.among(ordinals)))
    }

    /// The same columns of the records that a query with a limit finds, its offset included, and
    /// perhaps of some behind them: of all that are alike with the last one, if something else is
    /// to decide among these. Alike are what is missing and null, and numbers that are one as
    /// floats of 64 bits. None if no index begins with the first path of the order, if finding them
    /// by it takes long, or if they are too many.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, IndexDefinition, KeyKind, Order, Query, Ties};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::I64)?;
    /// for key in 0..1_000_i64 {
    ///     players.put(key, format!(r#"{{"rank":{}}}"#, key % 10), &CommitOptions::default())?;
    /// }
    /// players.create_index(&IndexDefinition::new("by-rank", &["rank"])?)?;
    /// let columns = players.head()?.columns()?;
    /// let best = Query::new().order_by(Order::desc("rank").nulls_last()).limit(3);
    /// let any = Ties { are_decided: false, most: 500 };
    /// let found = columns.with_first_of(&best, any)?.expect("named by the index");
    /// assert_eq!(found.rows(0)?.len(), 3);
    /// let all = Ties { are_decided: true, ..any };
    /// let found = columns.with_first_of(&best, all)?.expect("named by the index");
    /// assert_eq!(found.rows(0)?.len(), 100);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn with_first_of(&self, query: &Query, ties: Ties) -> Result<Option<Self>> {
        let collection = self.collection.as_ref().filter(|_| self.past.is_none());
        let Some(collection) = collection else { return Ok(None) };
        Ok(collection.first_in_order(query, ties)?.map(|ordinals| self.among(ordinals)))
    }

    /// Whether an index may [name](Self::named) records by the value at a path alone.
    pub fn is_indexed(&self, path: &RecordPath) -> Result<bool> {
        let collection = self.collection.as_ref().filter(|_| self.past.is_none());
        let Some(collection) = collection else { return Ok(false) };
        Ok(collection.indexes()?.iter().any(|index| index.paths.first() == Some(path)))
    }

    /// Where a column is in a record, as filters name it; none if rows are no records, or there is
    /// another thing between than a field.
    pub fn record_path(&self, path: PathId) -> Option<RecordPath> {
        let (rows, mut at) = (self.path.filter(|_| self.collection.is_some())?, path);
        let data = self.tree.data.read();
        let mut names = Vec::new();
        while at != rows {
            let Label::Field(name) = data.schema.label(at) else { return None };
            names.push(str::from_utf8(name).ok()?.to_owned());
            if at == ROOT {
                return None;
            }
            at = data.schema.path(at).parent;
        }
        RecordPath::of_fields(names.into_iter().rev())
    }

    /// The same columns of those rows that are among these.
    fn among(&self, mut ordinals: Vec<u64>) -> Self {
        let end = self.parts.last().and_then(|part| part.last()).map_or(0, |last| last.end);
        ordinals.sort_unstable();
        ordinals.dedup();
        let there = ordinals.partition_point(|ordinal| *ordinal < end);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for &ordinal in &ordinals[..there] {
            match ranges.last_mut() {
                Some(last) if last.end == ordinal => last.end += 1,
                _ => ranges.push(ordinal..ordinal + 1),
            }
        }
        let parts = parts(ranges.into_iter()).into();
        let views = ViewCache::new(self.tree.cells.memory());
        Self { parts, views, read_bytes: Arc::default(), ..self.clone() }
    }
}
