//! Pages of a query, forward and backward from a record in its order.
//!
//! A page goes on from the place of a record in the order, not from a number of records: so what
//! comes, goes or changes meanwhile moves nothing into a page twice, and nothing out of all.

use super::cursor::{Cursor, Scope, Side};
use super::lookup::{IndexWalk, NextChosen};
use super::order;
use super::sort::Sorter;
use super::{Query, QueryCounts, RecordView, Way};
use crate::collection::indexes::with_indexes;
use crate::collection::{Collection, CollectionSnapshot, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{QUERY_PAGE_BYTES_MAX, QUERY_PAGE_RECORDS_MAX, SORT_BYTES_MAX};

/// Some of the records that a query finds, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// Leads to the page behind this one; nothing if there was none.
    pub next: Option<String>,
    /// Leads to the page before this one; nothing if there was none.
    pub previous: Option<String>,
    /// What was read.
    pub counts: QueryCounts,
}

/// Where a page is: from a place on, at most so many.
struct Part {
    cursor: Option<Cursor>,
    size: usize,
}

/// The records of a page, from its place away.
#[derive(Default)]
struct Found {
    ordinals: Vec<u64>,
    /// The keys of the first and, if there are as many as the page has room for, the last of them
    /// in the order of the query.
    first: Vec<u8>,
    last: Vec<u8>,
    /// Whether there is another one behind them.
    has_more: bool,
}

impl CollectionSnapshot {
    /// At most `size` of the records that a query finds, from its first one on or from where a
    /// cursor leads; fewer where the JSON of these comes to
    /// [`QUERY_PAGE_BYTES_MAX`](crate::limits::QUERY_PAGE_BYTES_MAX): cursors lead to the others.
    ///
    /// A cursor is for the same collection, filter and order, at whatever revision: pages go on
    /// behind the last record of the page before, or before its first one, whatever happened to
    /// these records meanwhile. A cursor of another query, or none at all, is `Invalid`.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Key, KeyKind, Order, Query};
    ///
    /// let notes = Database::memory()?.create_collection("notes", KeyKind::U64)?;
    /// for key in 1..=5_u64 {
    ///     notes.put(key, format!(r#"{{"rank":{}}}"#, key % 3), &CommitOptions::default())?;
    /// }
    /// let query = Query::new().order_by(Order::asc("rank"));
    /// let first = notes.page(&query, None, 2)?;
    /// let second = notes.page(&query, first.next.as_deref(), 2)?;
    /// let keys = |page: &duramen::Page| {
    ///     page.records.iter().map(|record| record.key.clone()).collect::<Vec<_>>()
    /// };
    /// assert_eq!(keys(&first), [Key::U64(3), Key::U64(1)]);
    /// assert_eq!(keys(&second), [Key::U64(4), Key::U64(2)]);
    /// assert_eq!(notes.page(&query, second.previous.as_deref(), 2)?.records, first.records);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn page(&self, query: &Query, cursor: Option<&str>, size: usize) -> Result<Page> {
        check(query, size)?;
        let tree = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.tree.id().0);
        let scope = Scope::new(self.document.database_id(), tree, &query.to_string());
        let cursor = cursor.map(|text| Cursor::read(text, &scope)).transpose()?;
        let mut page = Page {
            records: Vec::new(),
            next: None,
            previous: None,
            counts: QueryCounts::default(),
        };
        let Some(view) = RecordView::of(self) else { return Ok(page) };
        let part = Part { cursor, size };
        let mut found = with_indexes(|| part.find((self, &view), query, &mut page.counts))?;
        let parts = query.projection()?;
        let (records, count) =
            view.records(&found.ordinals, parts.as_ref(), QUERY_PAGE_BYTES_MAX)?;
        found.end_behind(count, (query, &view))?;
        page.records = records;
        page.counts.found = count as u64;
        if part.is_backward() {
            page.records.reverse();
            std::mem::swap(&mut found.first, &mut found.last);
        }
        let (previous, next) = part.sides(found);
        page.previous = previous.map(|cursor| cursor.write(&scope));
        page.next = next.map(|cursor| cursor.write(&scope));
        Ok(page)
    }
}

impl Collection {
    /// A page of what a query finds now: see [`CollectionSnapshot::page`].
    pub fn page(&self, query: &Query, cursor: Option<&str>, size: usize) -> Result<Page> {
        self.head()?.page(query, cursor, size)
    }
}

fn check(query: &Query, size: usize) -> Result<()> {
    let refuse = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    if size == 0 || size > QUERY_PAGE_RECORDS_MAX {
        return refuse(format!("a page has 1 to {QUERY_PAGE_RECORDS_MAX} records, not {size}"));
    }
    if query.limit.is_some() || query.offset > 0 {
        return refuse("a page has a size of its own: leave limit and offset out".to_owned());
    }
    query.expression()?;
    query.projection()?;
    order::check(&query.order)
}

impl Found {
    /// Leaves out those behind the first `count`.
    fn end_behind(&mut self, count: usize, (query, view): (&Query, &RecordView)) -> Result<()> {
        if count == self.ordinals.len() {
            return Ok(());
        }
        self.ordinals.truncate(count);
        self.has_more = true;
        order::each_key(&query.order, view, &self.ordinals[count - 1..], &mut |key| {
            self.last.clone_from(key);
            Ok(())
        })
    }
}

impl Part {
    fn is_backward(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.side.is_backward())
    }

    /// Whether a key is on the side that the page is on.
    fn has(&self, key: &[u8]) -> bool {
        self.cursor.as_ref().is_none_or(|Cursor { side, key: place }| match side {
            Side::After => key > place.as_slice(),
            Side::AtOrAfter => key >= place.as_slice(),
            Side::Before => key < place.as_slice(),
            Side::AtOrBefore => key <= place.as_slice(),
        })
    }

    /// Adds the next record, of which `key` makes the key; false once there are enough.
    fn add(&self, found: &mut Found, ordinal: u64, key: impl FnOnce(&mut Vec<u8>)) -> bool {
        found.has_more = found.ordinals.len() == self.size;
        if !found.has_more {
            found.ordinals.push(ordinal);
            let count = found.ordinals.len();
            // Of the others no cursor tells: of the last one only where another is behind it.
            if count == 1 || count == self.size {
                key(&mut found.last);
            }
            if count == 1 {
                found.first.clone_from(&found.last);
            }
        }
        !found.has_more
    }

    /// The records of the page, from its place away.
    fn find(
        &self,
        (collection, view): (&CollectionSnapshot, &RecordView),
        query: &Query,
        counts: &mut QueryCounts,
    ) -> Result<Found> {
        let expression = query.expression()?;
        let is_backward = self.is_backward();
        let mut found = Found { ordinals: Vec::with_capacity(self.size), ..Found::default() };
        let way = Way::of(collection, query, expression.as_deref(), counts)?;
        if let Way::Ordered(ordered) = &way {
            let cursor = self.cursor.as_ref();
            let of = (view, expression.as_deref().filter(|_| !ordered.is_exact));
            let mut walk =
                IndexWalk::new(collection, ordered.clone(), cursor, Some(self.size + 1))?;
            let mut next = walk.next_chosen(of, counts)?;
            while let NextChosen::Record(ordinal) = next
                && self.add(&mut found, ordinal, |key| walk.place_into(key))
            {
                next = walk.next_chosen(of, counts)?;
            }
            if next != NextChosen::TooFew {
                return Ok(found);
            }
            found = Found { ordinals: Vec::with_capacity(self.size), ..Found::default() };
        }
        if query.order.is_empty() {
            let key_of = |ordinal| {
                move |key: &mut Vec<u8>| {
                    key.clear();
                    order::append_ordinal(key, ordinal, false);
                }
            };
            let mut candidates = way.candidates(view, expression, self.ordinals(), is_backward)?;
            while let Some(ordinal) = candidates.next(view, counts)?
                && self.add(&mut found, ordinal, key_of(ordinal))
            {}
            return Ok(found);
        }
        let mut candidates = way.candidates(view, expression, 0..u64::MAX, false)?;
        let mut sorter = Sorter::new(view.device(), SORT_BYTES_MAX, Some(self.size as u64 + 1));
        while let Some(ordinals) = candidates.next_many(view, counts)? {
            order::each_key(&query.order, view, &ordinals, &mut |key| {
                if !self.has(key) {
                    return Ok(());
                }
                turn(key, is_backward);
                counts.sorted += 1;
                sorter.push(key)
            })?;
        }
        let mut nearest = sorter.finish()?;
        let is_reverse = order::is_reverse(&query.order);
        while let Some(mut key) = nearest.next()? {
            turn(&mut key, is_backward);
            let Some(ordinal) = order::ordinal_of(&key, is_reverse) else { continue };
            self.add(&mut found, ordinal, |last| *last = key);
        }
        Ok(found)
    }

    /// The ordinals that the page is among, if records are in their order.
    fn ordinals(&self) -> std::ops::Range<u64> {
        let Some(Cursor { side, key }) = &self.cursor else { return 0..u64::MAX };
        let place = order::ordinal_of(key, false).unwrap_or(0);
        match side {
            Side::After => place.saturating_add(1)..u64::MAX,
            Side::AtOrAfter => place..u64::MAX,
            Side::Before => 0..place,
            Side::AtOrBefore => 0..place.saturating_add(1),
        }
    }

    /// The cursors before and behind the page.
    fn sides(self, found: Found) -> (Option<Cursor>, Option<Cursor>) {
        let is_backward = self.is_backward();
        let place = self.cursor.map(|cursor| (cursor.side.includes_place(), cursor.key));
        if found.ordinals.is_empty() {
            // All that was there is gone: back to where it came from, the place included if it
            // was not.
            let Some((includes_place, key)) = place else { return (None, None) };
            let side = match (is_backward, includes_place) {
                (false, true) => Side::Before,
                (false, false) => Side::AtOrBefore,
                (true, true) => Side::After,
                (true, false) => Side::AtOrAfter,
            };
            let back = Some(Cursor { side, key });
            return if is_backward { (None, back) } else { (back, None) };
        }
        let Found { first, last, has_more, .. } = found;
        let has_place = place.is_some();
        let has_previous = if is_backward { has_more } else { has_place };
        let has_next = is_backward || has_more;
        (
            has_previous.then_some(Cursor { side: Side::Before, key: first }),
            has_next.then_some(Cursor { side: Side::After, key: last }),
        )
    }
}

/// Makes the order of keys that are turned the reverse of what it was; turned again, they are as
/// they were. It is, because no key is the beginning of another one.
fn turn(key: &mut [u8], is_turned: bool) {
    if is_turned {
        for byte in key {
            *byte = !*byte;
        }
    }
}
