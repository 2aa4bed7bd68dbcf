//! The first records of an order, read of an index that begins with it.
//!
//! Invariant: whatever else is to decide among records whose values are alike, those that it puts
//! first are among the records that are given.

use super::filter::Expression;
use super::lookup::{self, IndexWalk, NextChosen};
use super::order::{self, Order};
use super::plan::{self, Access, Ordered};
use super::{Query, QueryCounts, RecordView};
use crate::collection::indexes::with_indexes;
use crate::collection::path_values;
use crate::collection::sort_key::{self, SortClass};
use crate::collection::{CollectionSnapshot, RecordPath};
use crate::error::Result;
use crate::limits::ORDER_VALUE_BYTES_MAX;
use crate::state::Datum;

/// Entries that are read at once at least: records that are alike are taken beside the first ones.
const PAGE_ENTRIES_MIN: usize = 32;

/// What becomes of records that are alike with the last one which is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ties {
    /// Whether something that the order does not name decides among them, so that all are wanted.
    pub are_decided: bool,
    /// How many records may be read in all.
    pub most: usize,
}

impl CollectionSnapshot {
    /// The ordinals of the first records in the order of a query with a limit, and perhaps of some
    /// behind them. None if no index begins with what the order begins with, if the filter finds
    /// few of them, or if they are too many.
    pub(crate) fn first_in_order(&self, query: &Query, ties: Ties) -> Result<Option<Vec<u64>>> {
        with_indexes(|| self.first_of_index(query, ties))
    }

    fn first_of_index(&self, query: &Query, ties: Ties) -> Result<Option<Vec<u64>>> {
        let expression = query.expression()?;
        order::check(&query.order)?;
        let wanted = query.limit.and_then(|limit| limit.checked_add(query.offset));
        let wanted = wanted.and_then(|wanted| usize::try_from(wanted).ok());
        let (Some(view), Some(wanted)) = (RecordView::of(self), wanted) else { return Ok(None) };
        let mut counts = QueryCounts::default();
        let beginning = self.beginning(query, expression.as_deref(), &mut counts)?;
        let Some((ordered, paths)) = beginning else { return Ok(None) };
        let expression = expression.filter(|_| !ordered.is_exact);
        let chosen = (&view, expression.as_deref());
        let mut walk = IndexWalk::new(self, ordered, None, Some(wanted.max(PAGE_ENTRIES_MIN)))?;
        let mut first = Vec::new();
        while first.len() < wanted {
            match walk.next_chosen(chosen, &mut counts)? {
                NextChosen::Record(ordinal) => first.push(ordinal),
                NextChosen::End => return Ok(Some(first)),
                NextChosen::TooFew => return Ok(None),
            }
        }
        let are_decided = ties.are_decided || paths.len() < query.order.len();
        let last = first.last().copied();
        let alike = last.map(|last| Alike::of((&view, last), paths, are_decided)).transpose()?;
        let Some(alike) = alike.flatten() else { return Ok(Some(first)) };
        while first.len() <= ties.most {
            match walk.next_chosen(chosen, &mut counts)? {
                NextChosen::Record(ordinal) if alike.has(walk.values()) => first.push(ordinal),
                NextChosen::Record(_) | NextChosen::End => return Ok(Some(first)),
                NextChosen::TooFew => return Ok(None),
            }
        }
        Ok(None)
    }

    /// An index that has the beginning of the order of a query, and how much of it; none if the
    /// filter names fewer records.
    fn beginning<'q>(
        &self,
        query: &'q Query,
        expression: Option<&Expression>,
        counts: &mut QueryCounts,
    ) -> Result<Option<(Ordered, &'q [Order])>> {
        let options = self.document.declared()?;
        let indexes = self.usable(&options.indexes)?;
        let found = Ordered::of_beginning(&query.order, expression, &indexes);
        let Some((ordered, paths)) = found else { return Ok(None) };
        let access = expression.and_then(|expression| Access::of(expression, &indexes));
        if access.is_some_and(|access| ordered.is_beaten_by(&access)) {
            return Ok(None);
        }
        let ordered = lookup::Reader::new(self, counts).followed(ordered)?;
        Ok(ordered.map(|ordered| (ordered, paths)))
    }
}

/// The keys of records whose values are alike, in an index behind what its keys begin with: from
/// `low` on, and before `high`.
#[derive(Debug, PartialEq, Eq)]
struct Alike {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl Alike {
    /// Those that are alike with a record at some paths. None if any of them may be taken: they
    /// are of the same values, and nothing else decides.
    fn of(record: (&RecordView, u64), paths: &[Order], are_decided: bool) -> Result<Option<Self>> {
        let mut before = Vec::new();
        for (left, path) in (0..paths.len()).rev().zip(paths) {
            let (key, number) = value_at(record, path.path()?)?;
            let is_deciding = left > 0 || are_decided;
            if order::is_null(&key) && is_deciding {
                return Ok(Some(Self::without_value(before)));
            }
            let is_cut = key.len() >= ORDER_VALUE_BYTES_MAX;
            if is_cut || (left == 0 && are_decided) {
                let [low, high] = match number {
                    Some(number) => [number.next_down(), number.next_up()].map(key_of),
                    None => [key.clone(), key],
                };
                return Ok(Some(Self::between(&before, &low, &high)));
            }
            before.extend(key);
        }
        Ok(None)
    }

    /// A missing value and null are alike, whatever is behind.
    fn without_value(before: Vec<u8>) -> Self {
        let high = [before.as_slice(), &[SortClass::Boolean.first_byte()]].concat();
        Self { low: before, high }
    }

    fn between(before: &[u8], low: &[u8], high: &[u8]) -> Self {
        Self { low: [before, low].concat(), high: plan::behind([before, high].concat()) }
    }

    fn has(&self, values: &[u8]) -> bool {
        *self.low <= *values && *values < *self.high
    }
}

/// The sort key of the value of a record at a path, as an index has it, and which float is nearest
/// to it: numbers that are one as floats are alike.
fn value_at(
    (view, ordinal): (&RecordView, u64),
    path: &RecordPath,
) -> Result<(Vec<u8>, Option<f64>)> {
    let mut key = Vec::new();
    let values = path_values::values(view.view(), &view.at(ordinal), path)?;
    let Some(at) = values.first() else {
        sort_key::append_missing(&mut key);
        return Ok((key, None));
    };
    path_values::append_key(view.view(), at, &mut key)?;
    key.truncate(ORDER_VALUE_BYTES_MAX);
    if SortClass::of(&key) != SortClass::Number {
        return Ok((key, None));
    }
    let mut text = Vec::new();
    view.view().append_json(at, &mut text)?;
    let number = str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
    Ok((key, number))
}

/// The sort key of a float, or an end of all numbers.
fn key_of(number: f64) -> Vec<u8> {
    let mut key = Vec::new();
    if number == f64::INFINITY {
        key.push(SortClass::Number.end_byte());
    } else if number == f64::NEG_INFINITY {
        key.push(SortClass::Number.first_byte());
    } else {
        sort_key::append_scalar(Datum::Float(number), &mut key);
    }
    key
}
