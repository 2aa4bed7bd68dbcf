//! Queries over the records of a collection: filters, orders, pages, groups.
//!
//! `docs/queries.md` says what they mean. A filter is evaluated by column, a row group at a time;
//! records are looked at one by one only where columns cannot tell. Where an index names few of
//! them (`plan`, `lookup`), those are looked at instead, or it has them in the order that is asked
//! for. What has to be sorted is sorted in bounded memory.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::indexes::with_indexes;
use super::record_path::RecordPath;
use super::{Collection, CollectionSnapshot, Record};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SORT_BYTES_MAX;
use crate::snapshot::Snapshot;
use crate::threads;
use crate::threads::ahead::{Ahead, PartSource};
use crate::tree::stored_records::{BATCH_RECORDS_MAX, RecordBatch};

mod candidates;
mod cursor;
mod elements;
mod explain;
mod filter;
mod first;
mod group;
mod literal;
mod lookup;
mod order;
mod page;
mod parse;
mod plan;
mod projection;
mod sort;
mod test;
#[cfg(test)]
mod tests;
mod view;
mod write;

pub use explain::{Explanation, QueryCounts};
pub use filter::Filter;
pub use first::Ties;
pub use group::{Group, Groups};
pub use literal::FilterValue;
pub use order::Order;
pub use page::Page;

use candidates::Candidates;
use filter::Expression;
use lookup::{Behind, IndexWalk, NextChosen};
use plan::{Access, Ordered};
use projection::Projection;
use sort::{Sorted, Sorter};
use view::RecordView;

/// Which records are asked for, in which order, and what of them.
///
/// ```
/// use duramen::{CommitOptions, Database, Filter, KeyKind, Order, Query};
///
/// let db = Database::memory()?;
/// let players = db.create_collection("players", KeyKind::Text)?;
/// for (key, json) in [
///     ("ann", r#"{"world":"nether","score":3}"#),
///     ("bob", r#"{"world":"end","score":7}"#),
///     ("eve", r#"{"world":"nether","score":9}"#),
/// ] {
///     players.put(key, json, &CommitOptions::default())?;
/// }
/// let best = Query::new()
///     .filter(Filter::eq("world", "nether").or(Filter::gt("score", 5)))
///     .order_by(Order::desc("score"))
///     .limit(2)
///     .select(["score"]);
/// let mut found = players.query(&best)?;
/// let eve = found.next().expect("two were found")?;
/// assert_eq!((eve.key.to_string(), eve.json), ("eve".into(), r#"{"score":9}"#.into()));
/// assert_eq!(players.count_where(&"world = \"nether\"".parse()?)?, 2);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Query {
    filter: Option<Filter>,
    order: Vec<Order>,
    /// Or why one cannot be.
    select: Option<Vec<Result<RecordPath, String>>>,
    limit: Option<u64>,
    offset: u64,
}

/// The records that a query finds, one at a time: of many, a thread of its own reads the next ones
/// ahead. It ends after the first error.
#[derive(Debug)]
pub struct Records {
    /// None where there never was a record, and after an error.
    view: Option<RecordView>,
    source: Source,
    projection: Option<Projection>,
    /// Records that are read together with the last one.
    batch: RecordBatch,
    /// The same, of which only parts are wanted.
    parts: std::vec::IntoIter<u64>,
    /// Records of the next batch.
    batch_len: usize,
}

/// Where the records that a query finds come from.
#[derive(Debug)]
enum Source {
    Alone(Box<Found>),
    Ahead(Ahead<Found>),
}

/// The ordinals of the records that a query finds.
#[derive(Debug, Default)]
struct Found {
    /// None where there never was a record.
    view: Option<RecordView>,
    walk: Walk,
    skip: u64,
    left: u64,
    expression: Option<Arc<Expression>>,
    /// The indexes by which it is answered, for people; nothing for a scan.
    way: String,
    /// The indexes in whose place it is scanned, as they have too much to follow.
    left_out: Vec<String>,
    /// What is sorted instead if the filter finds few of the records that an index has in order.
    instead: Option<Instead>,
    counts: QueryCounts,
}

/// An order that an index has, which may be given up.
#[derive(Debug)]
struct Instead {
    order: Vec<Order>,
    /// How many records are wanted.
    wanted: Option<u64>,
    /// What was read of the index, once it is given up.
    given_up: Option<QueryCounts>,
}

/// What tells which records a query finds.
#[derive(Debug)]
enum Way {
    /// The columns of all records.
    Scan(Behind),
    /// Indexes, which name these ordinals.
    Named(Access, Vec<u64>),
    /// An index that has them in the order of the query.
    Ordered(Ordered),
}

#[derive(Debug, Default)]
enum Walk {
    /// In the order of the ordinals.
    Scan(Box<Candidates>),
    /// By keys in an order.
    Sorted(Sorted, IsReverse),
    /// By an index that has them in the order.
    Index(Box<IndexWalk>),
    #[default]
    End,
}

/// Whether ties are in the reverse order of the ordinals.
type IsReverse = bool;

impl Query {
    /// All records, in the order in which their keys first came.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only records of which a filter is true; both, if there is one already.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(match self.filter.take() {
            Some(before) => before.and(filter),
            None => filter,
        });
        self
    }

    /// In this order, among those that are equal by the orders named before. Ties are in the order
    /// in which their keys first came, and in the reverse of it if the last order is descending.
    pub fn order_by(mut self, order: Order) -> Self {
        self.order.push(order);
        self
    }

    /// At most so many.
    pub fn limit(mut self, limit: u64) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Without the first so many.
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// Only the values at these paths, each at its place in an object.
    pub fn select<P: AsRef<str>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        let read =
            |path: P| RecordPath::parse(path.as_ref()).map_err(|error| error.message().to_owned());
        self.select = Some(paths.into_iter().map(read).collect());
        self
    }

    fn expression(&self) -> Result<Option<Arc<Expression>>> {
        let filter = self.filter.as_ref();
        filter.map(|filter| filter.expression().cloned().map(Arc::new)).transpose()
    }

    fn projection(&self) -> Result<Option<Projection>> {
        let Some(paths) = &self.select else { return Ok(None) };
        let paths = paths.iter().cloned().collect::<Result<Vec<_>, _>>();
        let paths = paths.map_err(|why| {
            Error::new(ErrorKind::Invalid, format!("this cannot be selected: {why}"))
        })?;
        Ok(Some(Projection::of(&paths)))
    }
}

/// What decides which records are found and in which order.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.filter {
            Some(filter) => filter.fmt(f)?,
            None => f.write_str("all records")?,
        }
        for (index, order) in self.order.iter().enumerate() {
            write!(f, "{}{order}", if index == 0 { " order by " } else { ", " })?;
        }
        Ok(())
    }
}

/// Records of the first batch; many want no more.
const FIRST_RECORDS: usize = 8;

/// How many times as long the next batch is, and records of one at most where no thread reads
/// ahead: longer ones would be more memory that nobody touched before, and no faster.
const BATCH_GROWTH: usize = 4;
const BATCH_RECORDS: usize = 512;

impl CollectionSnapshot {
    /// The records that a query finds; `Invalid` if the query was made of what can be none.
    ///
    /// Without an order they come as they are found, and memory does not grow with them; with one
    /// they are sorted first.
    pub fn query(&self, query: &Query) -> Result<Records> {
        let projection = query.projection()?;
        let (found, parts) = (Found::new(self, query)?, Vec::new().into_iter());
        let (view, source) = (found.view.clone(), Source::Alone(Box::new(found)));
        let (batch, batch_len) = (RecordBatch::new(Vec::new(), true), FIRST_RECORDS);
        Ok(Records { view, source, projection, batch, parts, batch_len })
    }

    /// How many records a query finds.
    pub fn count_query(&self, query: &Query) -> Result<u64> {
        // No order changes how many there are.
        let mut found = Found::new(self, &Query { order: Vec::new(), ..query.clone() })?;
        order::check(&query.order)?;
        let mut count = 0;
        while found.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// The ordinals of the records that indexes name for a filter: all of which it is true, and
    /// perhaps others. None if no index tells, or if they are more than so many.
    pub(crate) fn named(&self, filter: &Filter, most: usize) -> Result<Option<Vec<u64>>> {
        let expression = filter.expression()?;
        let mut counts = QueryCounts::default();
        with_indexes(|| lookup::named_up_to(self, expression, most, &mut counts))
    }

    /// Of how many records a filter is true.
    pub fn count_where(&self, filter: &Filter) -> Result<u64> {
        self.count_query(&Query::new().filter(filter.clone()))
    }
}

impl Collection {
    /// The records that a query finds now: see [`CollectionSnapshot::query`].
    pub fn query(&self, query: &Query) -> Result<Records> {
        self.head()?.query(query)
    }

    /// Of how many records a filter is true now.
    pub fn count_where(&self, filter: &Filter) -> Result<u64> {
        self.head()?.count_where(filter)
    }
}

impl Way {
    fn of(
        collection: &CollectionSnapshot,
        query: &Query,
        expression: Option<&Expression>,
        counts: &mut QueryCounts,
    ) -> Result<Self> {
        let options = collection.document.declared()?;
        let indexes = collection.usable(&options.indexes)?;
        if indexes.is_empty() {
            return Ok(Self::Scan(Behind::default()));
        }
        let mut reader = lookup::Reader::new(collection, counts);
        let ordered = Ordered::of(&query.order, expression, &indexes);
        let ordered = ordered.map(|ordered| reader.followed(ordered)).transpose()?.flatten();
        let access = expression.and_then(|expression| Access::of(expression, &indexes));
        let is_better =
            |access: &Access| ordered.as_ref().is_none_or(|ordered| ordered.is_beaten_by(access));
        if let Some(access) = access.filter(is_better)
            && let Some(named) = reader.named(&access)?
        {
            return Ok(Self::Named(access, named));
        }
        Ok(match ordered {
            Some(ordered) => Self::Ordered(ordered),
            None => Self::Scan(reader.into_behind()),
        })
    }

    /// The names of the indexes in whose place all columns are scanned, as they are behind.
    fn left_out(&self) -> Vec<String> {
        match self {
            Self::Scan(behind) => behind.names(),
            Self::Named(..) | Self::Ordered(_) => Vec::new(),
        }
    }

    /// The records in the order of their ordinals.
    fn candidates(
        self,
        view: &RecordView,
        expression: Option<Arc<Expression>>,
        range: Range<u64>,
        is_reverse: bool,
    ) -> Result<Candidates> {
        match self {
            Self::Named(access, named) => {
                let expression = expression.filter(|_| !access.is_exact());
                Ok(Candidates::among(named, expression, &range, is_reverse))
            }
            Self::Scan(behind) => {
                Ok(Candidates::new(view, expression, range, is_reverse)?.instead_of(behind))
            }
            Self::Ordered(_) => Candidates::new(view, expression, range, is_reverse),
        }
    }
}

/// For people.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scan(_) => Ok(()),
            Self::Named(access, _) => access.fmt(f),
            Self::Ordered(ordered) => write!(f, "index {}, which has the order", ordered.index),
        }
    }
}

impl Found {
    fn new(collection: &CollectionSnapshot, query: &Query) -> Result<Self> {
        with_indexes(|| Self::planned(collection, query))
    }

    fn planned(collection: &CollectionSnapshot, query: &Query) -> Result<Self> {
        let expression = query.expression()?;
        order::check(&query.order)?;
        let mut found = Self {
            view: RecordView::of(collection),
            walk: Walk::End,
            skip: query.offset,
            left: query.limit.unwrap_or(u64::MAX),
            expression,
            way: String::new(),
            left_out: Vec::new(),
            instead: None,
            counts: QueryCounts::default(),
        };
        let Some(view) = &found.view else { return Ok(found) };
        if found.left == 0 {
            return Ok(found);
        }
        let expression = found.expression.clone();
        let way = Way::of(collection, query, expression.as_deref(), &mut found.counts)?;
        found.way = way.to_string();
        found.left_out = way.left_out();
        let wanted = query.limit.and_then(|limit| limit.checked_add(query.offset));
        let mut candidates = match way {
            Way::Ordered(ordered) => {
                if ordered.is_exact {
                    found.expression = None;
                }
                let (order, given_up) = (query.order.clone(), None);
                found.instead = Some(Instead { order, wanted, given_up });
                let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
                let walk = IndexWalk::new(collection, ordered, None, wanted)?;
                found.walk = Walk::Index(Box::new(walk));
                return Ok(found);
            }
            way => way.candidates(view, expression, 0..u64::MAX, false)?,
        };
        if query.order.is_empty() {
            found.walk = Walk::Scan(Box::new(candidates));
            return Ok(found);
        }
        let sorted = sort((view, &query.order), &mut candidates, wanted, &mut found.counts)?;
        found.walk = Walk::Sorted(sorted, order::is_reverse(&query.order));
        Ok(found)
    }

    /// Sorts what the filter finds among all records, in place of what is left of an index of which
    /// it finds few, and goes behind those that were found.
    fn sort_instead(&mut self, before: u64) -> Result<()> {
        let (Some(view), Some(instead)) = (&self.view, &mut self.instead) else { return Ok(()) };
        instead.given_up = Some(self.counts);
        let order = instead.order.as_slice();
        let mut all = Candidates::new(view, self.expression.clone(), 0..u64::MAX, false)?;
        let mut sorted = sort((view, order), &mut all, instead.wanted, &mut self.counts)?;
        for _ in 0..before {
            sorted.next()?;
        }
        self.walk = Walk::Sorted(sorted, order::is_reverse(order));
        Ok(())
    }

    /// What was read of an index that has the order, if it was given up.
    fn given_up(&self) -> Option<QueryCounts> {
        self.instead.as_ref().and_then(|instead| instead.given_up)
    }

    /// Whether many may be left, and one that is left early does not go on for long.
    fn may_be_long(&self) -> bool {
        let most = match &self.walk {
            Walk::Scan(candidates) => candidates.most_left(),
            Walk::Sorted(..) => u64::MAX,
            Walk::Index(_) if self.expression.is_none() => u64::MAX,
            Walk::Index(_) | Walk::End => 0,
        };
        most.min(self.left) >= 2 * BATCH_RECORDS_MAX as u64
    }

    /// The next record's ordinal.
    fn next(&mut self) -> Result<Option<u64>> {
        let Some(view) = &self.view else { return Ok(None) };
        while self.left > 0 {
            let next = match &mut self.walk {
                Walk::Scan(candidates) => candidates.next(view, &mut self.counts)?,
                Walk::Sorted(sorted, is_reverse) => {
                    let key = sorted.next()?;
                    key.and_then(|key| order::ordinal_of(&key, *is_reverse))
                }
                Walk::Index(entries) => {
                    let of = (view, self.expression.as_deref());
                    match entries.next_chosen(of, &mut self.counts)? {
                        NextChosen::Record(ordinal) => Some(ordinal),
                        NextChosen::End => None,
                        NextChosen::TooFew => {
                            let before = entries.found();
                            self.sort_instead(before)?;
                            return self.next();
                        }
                    }
                }
                Walk::End => None,
            };
            let Some(ordinal) = next else { break };
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            self.counts.found += 1;
            return Ok(Some(ordinal));
        }
        self.walk = Walk::End;
        Ok(None)
    }

    /// The ordinals of the next records; fewer than `most` only at the end.
    fn next_many(&mut self, most: usize) -> Result<Vec<u64>> {
        let mut ordinals = Vec::new();
        while ordinals.len() < most
            && let Some(ordinal) = self.next()?
        {
            ordinals.push(ordinal);
            if let Walk::Scan(candidates) = &mut self.walk {
                let left = usize::try_from(self.left).unwrap_or(usize::MAX);
                let found = candidates.next_sure(left.min(most - ordinals.len()), &mut ordinals);
                self.left -= found;
                self.counts.found += found;
            }
        }
        Ok(ordinals)
    }
}

/// The records that are chosen by their keys in an order, at least as many as are wanted.
fn sort(
    (view, order): (&RecordView, &[Order]),
    candidates: &mut Candidates,
    wanted: Option<u64>,
    counts: &mut QueryCounts,
) -> Result<Sorted> {
    let mut sorter = Sorter::new(view.device(), SORT_BYTES_MAX, wanted);
    while let Some(ordinals) = candidates.next_many(view, counts)? {
        order::each_key(order, view, &ordinals, &mut |key| sorter.push(key))?;
        counts.sorted += ordinals.len() as u64;
    }
    sorter.finish()
}

impl PartSource for Found {
    type Part = RecordBatch;
    type Store = Snapshot;

    fn next_part(&mut self, room: Option<RecordBatch>) -> Result<Option<RecordBatch>> {
        let ordinals = self.next_many(BATCH_RECORDS_MAX)?;
        if ordinals.is_empty() {
            return Ok(None);
        }
        let mut batch = room.unwrap_or_else(|| RecordBatch::new(Vec::new(), true));
        batch.begin(ordinals);
        Ok(Some(batch))
    }

    fn read(snapshot: &Snapshot, batch: &mut RecordBatch) -> Result<()> {
        batch.read_ahead(snapshot.place())
    }

    fn end_by(&mut self, is_left: &Arc<AtomicBool>) {
        if let Walk::Scan(candidates) = &mut self.walk {
            candidates.end_by(is_left);
        }
    }
}

impl Records {
    /// What was read to find those that came so far, and those that were read together with them.
    pub fn counts(&self) -> QueryCounts {
        match &self.source {
            Source::Alone(found) => found.counts,
            Source::Ahead(ahead) => ahead.source(|found| found.counts),
        }
    }

    fn step(&mut self) -> Result<Option<Record>> {
        loop {
            let Some(view) = &self.view else { return Ok(None) };
            if let Some(parts) = &self.projection {
                if let Some(ordinal) = self.parts.next() {
                    return view.part(ordinal, parts).map(Some);
                }
            } else if let Some((_, stored)) = self.batch.next(view.place())? {
                return view.record(stored).map(Some);
            }
            if !self.turn_page()? {
                return Ok(None);
            }
        }
    }

    /// Goes to the next records, if there are some.
    fn turn_page(&mut self) -> Result<bool> {
        self.read_ahead_if_long();
        match &mut self.source {
            Source::Ahead(ahead) => {
                let next = ahead.next(Some(std::mem::take(&mut self.batch)))?;
                let is_there = next.is_some();
                self.batch = next.unwrap_or_default();
                Ok(is_there)
            }
            Source::Alone(found) => {
                let ordinals = found.next_many(self.batch_len)?;
                let is_there = !ordinals.is_empty();
                self.batch_len = (BATCH_GROWTH * self.batch_len).min(BATCH_RECORDS);
                match self.projection {
                    Some(_) => self.parts = ordinals.into_iter(),
                    None => self.batch.begin(ordinals),
                }
                Ok(is_there)
            }
        }
    }

    /// Lets a thread read the rest, where it is worth one.
    fn read_ahead_if_long(&mut self) {
        let is_long = self.batch_len == BATCH_RECORDS && self.projection.is_none();
        if let Source::Alone(found) = &mut self.source
            && is_long
            && threads::count() > 1
            && found.may_be_long()
            && let Some(view) = &self.view
        {
            let found = std::mem::take(&mut **found);
            self.source = Source::Ahead(Ahead::new(view.snapshot().clone(), found));
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.step();
        if next.is_err() {
            self.view = None;
        }
        next.transpose()
    }
}
