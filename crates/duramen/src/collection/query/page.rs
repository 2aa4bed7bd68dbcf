//! Pages of a query, forward and backward from a record in its order.
//!
//! A page goes on from the place of a record in the order, not from a number of records: so what
//! comes, goes or changes meanwhile moves nothing into a page twice, and nothing out of all.

use super::cursor::{Cursor, Scope, Side};
use super::lookup::IndexWalk;
use super::order;
use super::sort::Sorter;
use super::{Query, QueryCounts, RecordView, Way};
use crate::collection::indexes::with_indexes;
use crate::collection::{Collection, CollectionSnapshot, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{QUERY_PAGE_RECORDS_MAX, SORT_BYTES_MAX};

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

impl CollectionSnapshot {
    /// At most `size` of the records that a query finds, from its first one on or from where a
    /// cursor leads.
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
        let scope = Scope {
            database: self.document.database_id(),
            tree: self.snapshot.as_ref().map_or(0, |snapshot| snapshot.tree.id().0),
            query: query.to_string(),
        };
        let cursor = cursor.map(|text| Cursor::read(text, &scope)).transpose()?;
        let mut page = Page {
            records: Vec::new(),
            next: None,
            previous: None,
            counts: QueryCounts::default(),
        };
        let Some(view) = RecordView::of(self) else { return Ok(page) };
        let part = Part { cursor, size };
        // One more, which tells whether there is another page.
        let mut keys = with_indexes(|| part.keys((self, &view), query, &mut page.counts))?;
        let has_more = keys.len() > size;
        keys.truncate(size);
        if part.is_backward() {
            keys.reverse();
        }
        let projection = query.projection()?;
        let is_reverse = order::is_reverse(&query.order);
        let ordinals = keys.iter().filter_map(|key| order::ordinal_of(key, is_reverse));
        let ordinals: Vec<u64> = ordinals.collect();
        page.records = view.records(&ordinals, projection.as_ref())?;
        page.counts.found = keys.len() as u64;
        let (previous, next) = part.sides(keys, has_more);
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

    /// The keys of the records of the page and of one more, from its place away.
    fn keys(
        &self,
        (collection, view): (&CollectionSnapshot, &RecordView),
        query: &Query,
        counts: &mut QueryCounts,
    ) -> Result<Vec<Vec<u8>>> {
        let expression = query.expression()?;
        let is_backward = self.is_backward();
        let mut keys = Vec::new();
        let way = Way::of(collection, query, expression.as_deref(), counts)?;
        if let Way::Ordered(ordered) = way {
            let cursor = self.cursor.as_ref();
            let mut walk = IndexWalk::new(collection, ordered, cursor, self.size + 1)?;
            let of = (view, expression.as_deref());
            while keys.len() <= self.size
                && let Some((key, _)) = walk.next_chosen(of, counts)?
            {
                keys.push(key);
            }
            return Ok(keys);
        }
        if query.order.is_empty() {
            let mut candidates = way.candidates(view, expression, self.ordinals(), is_backward)?;
            while keys.len() <= self.size
                && let Some(ordinal) = candidates.next(view, counts)?
            {
                keys.push(order::key(&[], view, ordinal)?);
            }
            return Ok(keys);
        }
        let mut candidates = way.candidates(view, expression, 0..u64::MAX, false)?;
        let mut sorter = Sorter::new(view.device(), SORT_BYTES_MAX, Some(self.size as u64 + 1));
        while let Some(ordinal) = candidates.next(view, counts)? {
            let mut key = order::key(&query.order, view, ordinal)?;
            if !self.has(&key) {
                continue;
            }
            turn(&mut key, is_backward);
            sorter.push(&key)?;
            counts.sorted += 1;
        }
        let mut nearest = sorter.finish()?;
        while let Some(mut key) = nearest.next()? {
            turn(&mut key, is_backward);
            keys.push(key);
        }
        Ok(keys)
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
    fn sides(self, mut keys: Vec<Vec<u8>>, has_more: bool) -> (Option<Cursor>, Option<Cursor>) {
        let is_backward = self.is_backward();
        let place = self.cursor.map(|cursor| (cursor.side.includes_place(), cursor.key));
        let Some(last) = keys.pop() else {
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
        };
        let first = if keys.is_empty() { last.clone() } else { keys.swap_remove(0) };
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
