//! Distinct values and how many records have each.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::candidates::MANY;
use super::sort::{Sorted, Sorter};
use super::{Found, Query, QueryCounts, RecordView};
use crate::collection::path_values;
use crate::collection::record_path::RecordPath;
use crate::collection::sort_key::SortClass;
use crate::collection::{Collection, CollectionSnapshot};
use crate::error::Result;
use crate::index::{self, Gathered};
use crate::limits::{INDEX_VALUE_BYTES_MAX, ORDER_VALUE_BYTES_MAX, SORT_BYTES_MAX};

/// Bytes of the first ordinal and the count behind a key.
const TAIL_BYTES: usize = 16;

/// Approximate bytes that a group takes in memory beside its key.
const GROUP_BYTES: usize = 64;

/// A value, and how many records have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The value as compact JSON, as the first record that has it writes it; nothing for records
    /// that have no value there.
    pub value: Option<String>,
    /// How many records have it.
    pub count: u64,
}

/// The values at a path, in their order, each with how many records have it. It ends after the
/// first error.
#[derive(Debug)]
pub struct Groups {
    /// None where there never was a record.
    source: Option<(RecordView, Sorted)>,
    path: RecordPath,
    /// What comes next.
    ahead: Option<Tally>,
    counts: QueryCounts,
}

/// How many records have a value.
#[derive(Debug)]
struct Tally {
    key: Vec<u8>,
    /// The first record that has it.
    ordinal: u64,
    count: u64,
}

impl CollectionSnapshot {
    /// The values that the records which a query finds have at a path, each once and in their
    /// order; records without a value are left out. At a path with `[*]` each element counts.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, KeyKind, Query};
    ///
    /// let notes = Database::memory()?.create_collection("notes", KeyKind::U64)?;
    /// notes.put(1, r#"{"tags":["a","b"]}"#, &CommitOptions::default())?;
    /// notes.put(2, r#"{"tags":["b"]}"#, &CommitOptions::default())?;
    /// let tags = notes.head()?.distinct(&Query::new(), &"tags[*]".parse()?)?;
    /// assert_eq!(tags.collect::<duramen::Result<Vec<_>>>()?, [r#""a""#, r#""b""#]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn distinct(
        &self,
        query: &Query,
        path: &RecordPath,
    ) -> Result<impl Iterator<Item = Result<String>> + use<>> {
        let groups = self.group_count(query, path)?;
        Ok(groups.filter_map(|group| group.map(|group| group.value).transpose()))
    }

    /// How many of the records that a query finds have each value at a path, in the order of the
    /// values. At a path with `[*]` a record counts once for each of its values.
    pub fn group_count(&self, query: &Query, path: &RecordPath) -> Result<Groups> {
        // Which records are grouped does not depend on their order unless some are left out.
        let is_all = query.limit.is_none() && query.offset == 0;
        let order = if is_all { Vec::new() } else { query.order.clone() };
        let mut found = Found::new(self, &Query { order, ..query.clone() })?;
        super::order::check(&query.order)?;
        let mut groups =
            Groups { source: None, path: path.clone(), ahead: None, counts: found.counts };
        let Some(view) = found.view.clone() else { return Ok(groups) };
        let mut sorter = Sorter::new(view.device(), SORT_BYTES_MAX / 2, None);
        let (mut tallies, mut bytes) = (BTreeMap::new(), 0);
        loop {
            let ordinals = found.next_many(MANY)?;
            if ordinals.is_empty() {
                break;
            }
            each_key((&view, path), &ordinals, &mut |key, ordinal| {
                if let Some((first, count)) = tallies.get_mut(key) {
                    (*first, *count) = (ordinal.min(*first), *count + 1);
                    return Ok(());
                }
                bytes += key.len() + GROUP_BYTES;
                tallies.insert(key.to_vec(), (ordinal, 1));
                if bytes > SORT_BYTES_MAX / 2 {
                    bytes = 0;
                    drain(&mut tallies, &mut sorter)?;
                }
                Ok(())
            })?;
        }
        drain(&mut tallies, &mut sorter)?;
        groups.counts = found.counts;
        groups.source = Some((view, sorter.finish()?));
        groups.ahead = groups.read()?;
        Ok(groups)
    }
}

impl Collection {
    /// How many of the records that a query finds now have each value at a path: see
    /// [`CollectionSnapshot::group_count`].
    pub fn group_count(&self, query: &Query, path: &RecordPath) -> Result<Groups> {
        self.head()?.group_count(query, path)
    }
}

/// Hands over the keys of the groups that some records are in.
fn each_key(
    (view, path): (&RecordView, &RecordPath),
    ordinals: &[u64],
    take: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let paths = std::slice::from_ref(path);
    let gathered = index::gather(view.tree(), paths, ordinals, view.revision())?;
    for (index, &ordinal) in ordinals.iter().enumerate() {
        match gathered.get(index) {
            // One that is as long may be cut.
            Gathered::Key(key) if key.len() < INDEX_VALUE_BYTES_MAX => take(key, ordinal)?,
            _ => {
                for key in path_values::keys(view.view(), &view.at(ordinal), path)? {
                    take(&bounded(key), ordinal)?;
                }
            }
        }
    }
    Ok(())
}

/// A key of bounded length: of a long one the beginning and a hash.
fn bounded(mut key: Vec<u8>) -> Vec<u8> {
    if key.len() > ORDER_VALUE_BYTES_MAX {
        let hash = Sha256::digest(&key);
        key.truncate(ORDER_VALUE_BYTES_MAX);
        key.extend_from_slice(&hash);
    }
    key
}

fn drain(tallies: &mut BTreeMap<Vec<u8>, (u64, u64)>, sorter: &mut Sorter) -> Result<()> {
    for (mut string, (ordinal, count)) in std::mem::take(tallies) {
        string.extend_from_slice(&ordinal.to_be_bytes());
        string.extend_from_slice(&count.to_be_bytes());
        sorter.push(&string)?;
    }
    Ok(())
}

impl Groups {
    /// What was read to find the records.
    pub fn counts(&self) -> QueryCounts {
        self.counts
    }

    /// The next tally that was sorted.
    fn read(&mut self) -> Result<Option<Tally>> {
        let Some((_, sorted)) = &mut self.source else { return Ok(None) };
        let Some(mut string) = sorted.next()? else { return Ok(None) };
        let tail = string.split_off(string.len() - TAIL_BYTES);
        let number =
            |at: usize| tail[at..].first_chunk().map_or(0, |part| u64::from_be_bytes(*part));
        Ok(Some(Tally { key: string, ordinal: number(0), count: number(TAIL_BYTES / 2) }))
    }

    fn step(&mut self) -> Result<Option<Group>> {
        let Some(mut tally) = self.ahead.take() else { return Ok(None) };
        while let Some(next) = self.read()? {
            if next.key != tally.key {
                self.ahead = Some(next);
                break;
            }
            tally.count += next.count;
        }
        Ok(Some(Group { value: self.value(&tally)?, count: tally.count }))
    }

    /// The value as the first record that has it writes it.
    fn value(&self, tally: &Tally) -> Result<Option<String>> {
        let Some((view, _)) = &self.source else { return Ok(None) };
        if SortClass::of(&tally.key) == SortClass::Missing {
            return Ok(None);
        }
        for at in path_values::values(view.view(), &view.at(tally.ordinal), &self.path)? {
            let mut key = Vec::new();
            path_values::append_key(view.view(), &at, &mut key)?;
            if bounded(key) == tally.key {
                let mut text = Vec::new();
                view.view().append_json(&at, &mut text)?;
                return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
            }
        }
        // A purge may have taken it since.
        Ok(None)
    }
}

impl Iterator for Groups {
    type Item = Result<Group>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            (self.source, self.ahead) = (None, None);
        }
        next.transpose()
    }
}
