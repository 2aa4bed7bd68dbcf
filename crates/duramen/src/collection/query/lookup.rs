//! Follows the plan of a query through indexes.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::cursor::{Cursor, Side};
use super::filter::Expression;
use super::plan::{Access, EntryRange, Lookup, Ordered};
use super::{QueryCounts, RecordView, order};
use crate::collection::CollectionSnapshot;
use crate::engine::indexing::Follower;
use crate::error::Result;
use crate::index::IndexRange;
use crate::tree::record_keys::KeyPage;

/// Entries that are read at once.
const PAGE_ENTRIES: usize = 256;

/// Of so many records an index may name one, or it is given up for a scan.
const RECORDS_PER_ENTRY: u64 = 8;

/// Records with keys in memory of which one is taken to have its key still.
const RECORDS_PER_KEPT_KEY: usize = 2;

/// However few records there are, so many may be named.
const NAMED_MIN: usize = 64;

/// At most so many records are named: their ordinals are kept in memory.
const NAMED_MAX: usize = 4 << 20;

/// The ordinals of the records that indexes name for an expression; none if a scan reads less.
pub(super) fn named_for(
    collection: &CollectionSnapshot,
    expression: &Expression,
    counts: &mut QueryCounts,
) -> Result<Option<Vec<u64>>> {
    let most = named_max(collection.count()?);
    named_up_to(collection, expression, most, counts)
}

/// The same; none if they are more than so many.
pub(super) fn named_up_to(
    collection: &CollectionSnapshot,
    expression: &Expression,
    most: usize,
    counts: &mut QueryCounts,
) -> Result<Option<Vec<u64>>> {
    let options = collection.document.declared()?;
    let access = Access::of(expression, &collection.usable(&options.indexes)?);
    let Some(access) = access else { return Ok(None) };
    Reader::new(collection, counts).named_up_to(&access, most)
}

/// Reads what indexes name.
pub(super) struct Reader<'r> {
    collection: &'r CollectionSnapshot,
    counts: &'r mut QueryCounts,
    behind: Behind,
}

impl<'r> Reader<'r> {
    pub(super) fn new(collection: &'r CollectionSnapshot, counts: &'r mut QueryCounts) -> Self {
        Self { collection, counts, behind: Behind::default() }
    }

    /// The indexes that had too much to follow.
    pub(super) fn into_behind(self) -> Behind {
        self.behind
    }

    /// An index that has the order, which is waited for unless nobody keeps what it would follow.
    pub(super) fn followed(&mut self, ordered: Ordered) -> Result<Option<Ordered>> {
        match self.collection.left_behind(&ordered.index)? {
            Some(follower) if !follower.is_kept() => {
                self.behind.add(&ordered.index, follower);
                Ok(None)
            }
            _ => Ok(Some(ordered)),
        }
    }

    /// The ordinals of the records that a plan names, in their order; none if a scan reads less: if
    /// they are so many, or an index has so much to follow.
    pub(super) fn named(&mut self, access: &Access) -> Result<Option<Vec<u64>>> {
        let most = named_max(self.collection.count()?);
        self.named_up_to(access, most)
    }

    fn named_up_to(&mut self, access: &Access, most: usize) -> Result<Option<Vec<u64>>> {
        match access {
            Access::Lookup(lookup) => self.read(lookup, most),
            Access::Either(parts, _) => {
                let mut all = Vec::new();
                for part in parts {
                    let left = most.saturating_sub(all.len());
                    let Some(part) = self.named_up_to(part, left)? else { return Ok(None) };
                    all.extend(part);
                }
                all.sort_unstable();
                all.dedup();
                Ok(Some(all))
            }
            Access::Both(parts) => {
                let [first, second] = &**parts;
                let found = self.named_up_to(first, most)?;
                // Looking at a few records is cheaper than another index.
                let most = found.as_ref().map_or(most, Vec::len);
                if most <= NAMED_MIN {
                    return Ok(found);
                }
                let other = self.named_up_to(second, most)?;
                Ok(match (found, other) {
                    (Some(mut found), Some(other)) => {
                        found.retain(|ordinal| other.binary_search(ordinal).is_ok());
                        Some(found)
                    }
                    (one, other) => one.or(other),
                })
            }
        }
    }

    fn read(&mut self, lookup: &Lookup, most: usize) -> Result<Option<Vec<u64>>> {
        if let Some(index) = self.collection.left_behind(&lookup.index)? {
            self.behind.add(&lookup.index, index);
            return Ok(None);
        }
        let mut named = Vec::new();
        for range in &lookup.ranges {
            let entries = open(self.collection, &lookup.index, range.clone(), false)?;
            let Some(mut entries) = entries else { return Ok(Some(Vec::new())) };
            // Many of them would be read in vain.
            if entries.in_memory() / RECORDS_PER_KEPT_KEY > most {
                return Ok(None);
            }
            loop {
                let page = entries.next_ordinals(PAGE_ENTRIES)?;
                let is_end = page.is_empty();
                named.extend(page);
                if is_end || named.len() > most {
                    break;
                }
            }
            self.counts.entries += entries.visited();
            if named.len() > most {
                return Ok(None);
            }
        }
        named.sort_unstable();
        named.dedup();
        Ok(Some(named))
    }
}

/// How many records an index may name of so many, or it is given up for a scan.
fn named_max(records: u64) -> usize {
    let most = usize::try_from(records / RECORDS_PER_ENTRY).unwrap_or(usize::MAX);
    most.clamp(NAMED_MIN, NAMED_MAX)
}

/// Indexes that had so much to follow that a scan takes their place. At its end they are asked to
/// follow, unless it found so many records that they would have been given up for it: following
/// takes longer than such a query (benchmark B).
#[derive(Debug, Default)]
pub(super) struct Behind {
    indexes: Vec<Follower>,
    names: BTreeSet<String>,
    scanned: u64,
    found: u64,
}

impl Behind {
    fn add(&mut self, name: &str, index: Follower) {
        self.names.insert(name.to_owned());
        self.indexes.push(index);
    }

    /// The names of the indexes.
    pub(super) fn names(&self) -> Vec<String> {
        self.names.iter().cloned().collect()
    }

    /// Counts records that were looked at, and those among them that the filter chose.
    pub(super) fn count(&mut self, scanned: u64, found: u64) {
        self.scanned += scanned;
        self.found += found;
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        if self.found <= named_max(self.scanned) as u64 {
            self.indexes.iter().for_each(Follower::ask);
        }
    }
}

/// Records that are looked at in the order of an index before it is seen whether the filter finds
/// few of them, beside one for so many records of the collection: in about that time all columns
/// are scanned.
const LOOKED_AT_MIN: u64 = 2_048;
const RECORDS_PER_LOOK: u64 = 32;

/// How many more are looked at for each one that is found: a scan would have to sort those.
const LOOKS_PER_FOUND: u64 = 32;

fn open(
    collection: &CollectionSnapshot,
    index: &str,
    EntryRange { low, high }: EntryRange,
    is_reverse: bool,
) -> Result<Option<IndexRange>> {
    if low >= high {
        return Ok(None);
    }
    let bounds = (Bound::Included(low), Bound::Excluded(high));
    collection.index_range(index, bounds, is_reverse)
}

/// Records in the order of an index.
#[derive(Debug, Default)]
pub(super) struct IndexWalk {
    /// What is left of its ranges, the next one last.
    entries: Vec<IndexRange>,
    /// Bytes of a key that are the same in all.
    prefix: usize,
    is_descending: bool,
    nulls_first: Option<bool>,
    page: KeyPage,
    /// How many entries of the page were given.
    given: usize,
    page_entries: usize,
    looks: Looks,
}

/// How many records are looked at in the order of an index.
#[derive(Debug, Default)]
struct Looks {
    done: u64,
    found: u64,
    /// The most, if none is found.
    most: u64,
}

/// What comes next in the order of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextChosen {
    Record(u64),
    End,
    /// The filter finds so few of the records that it costs less to sort those that it finds.
    TooFew,
}

impl Looks {
    fn are_too_many(&self) -> bool {
        self.done > self.most.saturating_add(self.found.saturating_mul(LOOKS_PER_FOUND))
    }
}

impl IndexWalk {
    /// The records in the order of the query, or the reverse, from a place on if one is given;
    /// about `wanted` will be read. If that is not told, all of them may be, and it is not given up
    /// however many are looked at.
    pub(super) fn new(
        collection: &CollectionSnapshot,
        ordered: Ordered,
        cursor: Option<&Cursor>,
        wanted: Option<usize>,
    ) -> Result<Self> {
        let mut ranges = ordered.ranges();
        let is_backward = cursor.is_some_and(|cursor| cursor.side.is_backward());
        if is_backward {
            ranges.reverse();
        }
        if let Some(Cursor { side, key }) = cursor {
            let place = order::ordinal_of(key, ordered.is_descending);
            let place = place.and_then(|ordinal| ordered.place(*side, key, ordinal));
            let Some(place) = place else { return Ok(Self::default()) };
            // What is below, or above, is before the place.
            let is_low = is_backward == ordered.is_descending;
            let is_nulls = place < ordered.end_of_nulls();
            if ordered.nulls_first.is_some_and(|first| (first == is_backward) == is_nulls) {
                ranges.remove(0);
            }
            if let Some(range) = ranges.first_mut() {
                if is_low {
                    range.low = place.max(std::mem::take(&mut range.low));
                } else {
                    range.high = place.min(std::mem::take(&mut range.high));
                }
            }
        }
        let Ordered { index, prefix, is_descending, nulls_first, .. } = ordered;
        let open = |range| open(collection, &index, range, is_descending != is_backward);
        let entries = ranges.into_iter().rev().filter_map(|range| open(range).transpose());
        let entries = entries.collect::<Result<_>>()?;
        let page_entries = wanted.map_or(PAGE_ENTRIES, |wanted| wanted.clamp(1, PAGE_ENTRIES));
        let most = match wanted {
            Some(_) => LOOKED_AT_MIN + collection.count()? / RECORDS_PER_LOOK,
            None => u64::MAX,
        };
        let looks = Looks { most, ..Looks::default() };
        let prefix = prefix.len();
        let of = Self { entries, prefix, is_descending, nulls_first, ..Self::default() };
        Ok(Self { page_entries, looks, ..of })
    }

    /// The next record's ordinal.
    fn next(&mut self, counts: &mut QueryCounts) -> Result<Option<u64>> {
        while self.given == self.page.len()
            && let Some(entries) = self.entries.last_mut()
        {
            let before = entries.visited();
            self.page = entries.next(self.page_entries)?;
            counts.entries += entries.visited() - before;
            self.given = 0;
            if self.page.is_empty() {
                self.entries.pop();
            }
        }
        let Some((_, ordinal)) = self.page.get(self.given) else { return Ok(None) };
        self.given += 1;
        Ok(Some(ordinal))
    }

    /// The next of those of which the filter is true.
    pub(super) fn next_chosen(
        &mut self,
        (view, expression): (&RecordView, Option<&Expression>),
        counts: &mut QueryCounts,
    ) -> Result<NextChosen> {
        while !self.looks.are_too_many()
            && let Some(ordinal) = self.next(counts)?
        {
            let Some(expression) = expression else { return Ok(NextChosen::Record(ordinal)) };
            counts.records += 1;
            self.looks.done += 1;
            if expression.holds(view.view(), &view.at(ordinal))? {
                self.looks.found += 1;
                return Ok(NextChosen::Record(ordinal));
            }
        }
        Ok(if self.looks.are_too_many() { NextChosen::TooFew } else { NextChosen::End })
    }

    /// How many of them there were so far.
    pub(super) fn found(&self) -> u64 {
        self.looks.found
    }

    /// The values of the record that came last, as the index has them.
    pub(super) fn values(&self) -> &[u8] {
        let last = self.given.checked_sub(1).and_then(|last| self.page.get(last));
        last.and_then(|(key, _)| key.get(self.prefix..)).unwrap_or_default()
    }

    /// Makes `place` the key in the order of the record that came last.
    pub(super) fn place_into(&self, place: &mut Vec<u8>) {
        place.clear();
        let last = self.given.checked_sub(1).and_then(|last| self.page.get(last));
        let Some((key, ordinal)) = last else { return };
        let values = key.get(self.prefix..).unwrap_or_default();
        if let Some(is_first) = self.nulls_first {
            place.push(order::place_of_nulls(order::is_null(values), is_first));
        }
        let start = place.len();
        place.extend_from_slice(values);
        turn(&mut place[start..], self.is_descending);
        order::append_ordinal(place, ordinal, self.is_descending);
    }
}

impl Ordered {
    /// The key of the index at the place of a cursor, or the next one behind it; none if it is of
    /// another order.
    fn place(&self, side: Side, key: &[u8], ordinal: u64) -> Option<Vec<u8>> {
        let (values, _) = key.split_last_chunk::<8>()?;
        let values = match self.nulls_first {
            Some(_) => values.split_first()?.1,
            None => values,
        };
        let mut values = values.to_vec();
        turn(&mut values, self.is_descending);
        let is_behind = match side {
            Side::After | Side::AtOrBefore => !self.is_descending,
            Side::Before | Side::AtOrAfter => self.is_descending,
        };
        let ordinal = ordinal + u64::from(is_behind);
        Some([self.prefix.as_slice(), &values, &ordinal.to_be_bytes()].concat())
    }
}

/// Turns the bytes of values into those of the reverse order, and back.
fn turn(values: &mut [u8], is_descending: bool) {
    if is_descending {
        for byte in values {
            *byte = !*byte;
        }
    }
}
