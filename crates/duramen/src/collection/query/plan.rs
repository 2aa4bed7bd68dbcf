//! Which indexes a query can be answered by, and the keys that are read of them.
//!
//! Invariants:
//! - a plan names every record that the query finds, and maybe others: who follows it evaluates the
//!   filter of each, unless the plan is exact;
//! - keys of an index have values cut at [`INDEX_VALUE_BYTES_MAX`] bytes: what is longer is looked
//!   for as what begins so.

use std::fmt;
use std::ops::Bound;

use super::filter::Expression;
use super::literal::Literal;
use super::order::Order;
use super::test::Test;
use crate::collection::record_path::RecordPath;
use crate::collection::sort_key::{self, SortClass};
use crate::index::Declared;
use crate::limits::INDEX_VALUE_BYTES_MAX;

/// Is behind all entries whose keys begin with what is before it: no sort key has it, and no
/// ordinal begins with it.
const BEHIND: u8 = 0xff;

/// Entries of an index, by the bytes of key and ordinal: from `low` on, and before `high`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryRange {
    pub(super) low: Vec<u8>,
    pub(super) high: Vec<u8>,
}

/// How records are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Lookup(Lookup),
    /// What any of them names, and whether the filter asks for nothing else.
    Either(Vec<Self>, bool),
    /// The second is worth reading only if the first gives many.
    Both(Box<[Self; 2]>),
}

/// Ranges of one index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookup {
    pub(super) index: String,
    pub(super) ranges: Vec<EntryRange>,
    /// How much it narrows: two for each value that is known, one for a range.
    strength: usize,
    /// Whether it names one record at most: all values of a unique index are known.
    is_single: bool,
    /// Whether it names no other record.
    is_exact: bool,
}

/// An index that has the records in the order of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ordered {
    pub(super) index: String,
    /// What all keys begin with: the values that the filter says.
    pub(super) prefix: Vec<u8>,
    range: EntryRange,
    pub(super) is_descending: bool,
    /// Whether records without a value at the first path come before the others, or behind them,
    /// where that is not as their keys are.
    pub(super) nulls_first: Option<bool>,
    strength: usize,
    /// Whether it has no other record.
    pub(super) is_exact: bool,
}

impl EntryRange {
    /// Keys that begin so.
    fn of(prefix: Vec<u8>) -> Self {
        let high = behind(prefix.clone());
        Self { low: prefix, high }
    }

    fn narrow(&mut self, low: Vec<u8>, high: Vec<u8>) {
        self.low = low.max(std::mem::take(&mut self.low));
        self.high = high.min(std::mem::take(&mut self.high));
    }
}

pub(super) fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.push(BEHIND);
    prefix
}

impl Access {
    /// How the records of which an expression is true can be found, if indexes tell.
    pub(super) fn of(expression: &Expression, indexes: &[(&str, &Declared)]) -> Option<Self> {
        let parts = conjuncts(expression);
        let lookups = indexes.iter().filter_map(|&index| Lookup::of(index, parts));
        let mut found: Vec<_> = lookups.map(Self::Lookup).collect();
        let is_all = parts.len() == 1;
        found.extend(parts.iter().filter_map(|part| {
            let Expression::Any(parts) = part else { return None };
            let either = parts.iter().map(|part| Self::of(part, indexes)).collect::<Option<_>>()?;
            Some(Self::Either(either, is_all))
        }));
        let rank = |access: &Self| (access.is_single(), access.strength(), access.is_exact());
        found.sort_by_key(|access| std::cmp::Reverse(rank(access)));
        let mut found = found.into_iter();
        match (found.next()?, found.next()) {
            // Another one would leave out nothing, or less than it costs.
            (first, Some(_)) if first.is_exact() || first.is_single() => Some(first),
            (first, Some(second)) => Some(Self::Both(Box::new([first, second]))),
            (only, None) => Some(only),
        }
    }

    fn is_single(&self) -> bool {
        matches!(self, Self::Lookup(lookup) if lookup.is_single)
    }

    /// Whether the filter is true of all records that it names.
    pub(super) fn is_exact(&self) -> bool {
        match self {
            Self::Lookup(lookup) => lookup.is_exact,
            Self::Either(parts, is_all) => *is_all && parts.iter().all(Self::is_exact),
            // What the second would have left out may have been left in.
            Self::Both(_) => false,
        }
    }

    pub(super) fn strength(&self) -> usize {
        match self {
            Self::Lookup(lookup) => lookup.strength,
            Self::Either(parts, _) => parts.iter().map(Self::strength).min().unwrap_or(0),
            Self::Both(parts) => parts[0].strength(),
        }
    }
}

/// The parts that all have to be true.
fn conjuncts(expression: &Expression) -> &[Expression] {
    match expression {
        Expression::All(parts) => parts,
        other => std::slice::from_ref(other),
    }
}

/// The names of the indexes.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lookup(lookup) => write!(f, "index {}", lookup.index),
            Self::Either(parts, _) => {
                let parts: Vec<_> = parts.iter().map(ToString::to_string).collect();
                f.write_str(&parts.join(" and "))
            }
            Self::Both(parts) => write!(f, "{}, then {}", parts[0], parts[1]),
        }
    }
}

impl Lookup {
    /// The entries of an index that the parts of a filter leave.
    fn of((name, index): (&str, &Declared), parts: &[Expression]) -> Option<Self> {
        let (mut prefix, mut strength) = (Vec::new(), 0);
        // Of several values at a path one may be found for another.
        let is_exact = matches!((index.paths.as_slice(), parts), ([path], [part])
            if !path.has_elements() && tells_all(part, path));
        let found = |ranges, strength, is_single| {
            Some(Self { index: name.to_owned(), ranges, strength, is_single, is_exact })
        };
        for path in &index.paths {
            if let Some(key) = parts.iter().find_map(|part| exact(part, path)) {
                prefix.extend_from_slice(&key);
                strength += 2;
                continue;
            }
            let among = parts.iter().find_map(|part| match part {
                Expression::Test(at, Test::In(list)) if at == path => Some(list),
                _ => None,
            });
            if let Some(list) = among {
                let range = |literal: &Literal| {
                    EntryRange::of([prefix.as_slice(), cut(&literal.key)].concat())
                };
                return found(list.iter().map(range).collect(), strength + 2, false);
            }
            if let Some(range) = range(parts, path, &prefix) {
                return found(vec![range], strength + 1, false);
            }
            break;
        }
        // Several records may have no value.
        let is_told = |path: &RecordPath| {
            parts.iter().any(|part| match part {
                Expression::Test(at, Test::Equal(_)) => at == path,
                _ => false,
            })
        };
        let is_single = index.is_unique && index.paths.iter().all(is_told);
        let is_known = strength > 0;
        is_known.then(|| found(vec![EntryRange::of(prefix)], strength, is_single)).flatten()
    }
}

impl Ordered {
    /// An index with the records in an order, of those that have it the one that leaves the fewest.
    pub(super) fn of(
        order: &[Order],
        expression: Option<&Expression>,
        indexes: &[(&str, &Declared)],
    ) -> Option<Self> {
        let first = order.first()?;
        if in_one_direction(order) < order.len() {
            return None;
        }
        let parts = expression.map_or(&[][..], conjuncts);
        let of_index = |&(name, index): &(&str, &Declared)| {
            let known = index.paths.len().checked_sub(order.len())?;
            let is_whole = has_paths(index.paths.get(known..)?, order) == order.len();
            is_whole.then(|| Self::behind((name, index), known, first, parts)).flatten()
        };
        indexes.iter().filter_map(of_index).max_by_key(|ordered| ordered.strength)
    }

    /// An index that begins, behind paths that the filter sets, as an order does, and with how much
    /// of it: with as much as any, and of those that have so much the one that leaves the fewest.
    pub(super) fn of_beginning<'o>(
        order: &'o [Order],
        expression: Option<&Expression>,
        indexes: &[(&str, &Declared)],
    ) -> Option<(Self, &'o [Order])> {
        let first = order.first()?;
        let order = order.get(..in_one_direction(order))?;
        let parts = expression.map_or(&[][..], conjuncts);
        let of_index = |&(name, index): &(&'_ str, &Declared)| {
            // It has other entries than one for each record.
            if index.paths.iter().any(RecordPath::has_elements) {
                return None;
            }
            let beginnings = (0..index.paths.len()).filter_map(|known| {
                let count = has_paths(index.paths.get(known..)?, order);
                let ordered = Self::behind((name, index), known, first, parts);
                ordered.filter(|_| count > 0).map(|ordered| (ordered, count))
            });
            beginnings.max_by_key(|(ordered, count)| (*count, ordered.strength))
        };
        let found = indexes.iter().filter_map(of_index);
        let (ordered, count) = found.max_by_key(|(ordered, count)| (*count, ordered.strength))?;
        order.get(..count).map(|beginning| (ordered, beginning))
    }

    /// An index whose paths from one on are ordered by; none if the filter does not set those
    /// before it.
    fn behind(
        (name, index): (&str, &Declared),
        known: usize,
        first: &Order,
        parts: &[Expression],
    ) -> Option<Self> {
        let (known, ordered) = index.paths.split_at_checked(known)?;
        if known.iter().any(RecordPath::has_elements) {
            return None;
        }
        let mut prefix = Vec::new();
        for path in known {
            prefix.extend(parts.iter().find_map(|part| exact(part, path))?);
        }
        let narrowed = range(parts, ordered.first()?, &prefix);
        let strength = known.len() * 2 + usize::from(narrowed.is_some());
        let is_exact = match parts {
            [] => true,
            [part] if known.is_empty() && narrowed.is_some() => {
                ordered.first().is_some_and(|at| tells_all(part, at))
            }
            _ => false,
        };
        let range = narrowed.unwrap_or_else(|| EntryRange::of(prefix.clone()));
        let (is_descending, nulls_first) = (first.is_descending, first.places_nulls_first());
        let index = name.to_owned();
        Some(Self { index, prefix, range, is_descending, nulls_first, strength, is_exact })
    }

    /// The ranges in which its entries are read, one after the other.
    pub(super) fn ranges(&self) -> Vec<EntryRange> {
        let Some(nulls_first) = self.nulls_first else { return vec![self.range.clone()] };
        let end = self.end_of_nulls();
        let EntryRange { low, high } = &self.range;
        let nulls = EntryRange { low: low.clone(), high: high.min(&end).clone() };
        let values = EntryRange { low: low.max(&end).clone(), high: high.clone() };
        if nulls_first { vec![nulls, values] } else { vec![values, nulls] }
    }

    /// Above all keys of records without a value at the first path.
    pub(super) fn end_of_nulls(&self) -> Vec<u8> {
        [self.prefix.as_slice(), &[SortClass::Boolean.first_byte()]].concat()
    }

    /// Whether finding records in another way, and sorting them, reads less.
    pub(super) fn is_beaten_by(&self, access: &Access) -> bool {
        access.strength() > self.strength
    }
}

/// How many of some orders an index has in one direction, if it has their paths.
fn in_one_direction(order: &[Order]) -> usize {
    let Some((first, rest)) = order.split_first() else { return 0 };
    let is_so = |order: &&Order| order.is_plain() && order.is_descending == first.is_descending;
    1 + rest.iter().take_while(is_so).count()
}

/// With how many of some orders paths begin.
fn has_paths(paths: &[RecordPath], order: &[Order]) -> usize {
    let is_so = |(path, order): &(&RecordPath, &Order)| order.path().is_ok_and(|at| at == *path);
    paths.iter().zip(order).take_while(is_so).count()
}

/// Whether a part asks for values at a path which lie in a range of keys with no others: neither
/// for such as an index cuts, nor for arrays and objects.
fn tells_all(part: &Expression, path: &RecordPath) -> bool {
    let is_whole =
        |literal: &Literal| literal.datum().is_some() && literal.key.len() <= INDEX_VALUE_BYTES_MAX;
    let Expression::Test(at, test) = part else { return false };
    at == path
        && match test {
            Test::Equal(literal) => is_whole(literal),
            Test::Range(low, high) => [low, high].into_iter().all(|end| match end {
                Bound::Included(end) | Bound::Excluded(end) => is_whole(end),
                Bound::Unbounded => true,
            }),
            _ => false,
        }
}

/// The key of the only value that a part allows at a path.
fn exact(part: &Expression, path: &RecordPath) -> Option<Vec<u8>> {
    match part {
        Expression::Test(at, Test::Equal(literal)) if at == path => {
            Some(cut(&literal.key).to_vec())
        }
        Expression::Test(at, Test::Null) if at == path => Some(vec![SortClass::Null.first_byte()]),
        Expression::Not(inner) => match &**inner {
            Expression::Test(at, Test::Exists) if at == path => {
                let mut key = Vec::new();
                sort_key::append_missing(&mut key);
                Some(key)
            }
            _ => None,
        },
        _ => None,
    }
}

/// What the parts leave of the keys that begin with a prefix, and have values of a path next.
fn range(parts: &[Expression], path: &RecordPath, prefix: &[u8]) -> Option<EntryRange> {
    let mut found: Option<EntryRange> = None;
    for part in parts {
        let Expression::Test(at, test) = part else { continue };
        if at != path {
            continue;
        }
        let Some((low, high)) = bounds(test, prefix) else { continue };
        match &mut found {
            None => found = Some(EntryRange { low, high }),
            // Each may be true of another element.
            Some(_) if path.has_elements() => {}
            Some(range) => range.narrow(low, high),
        }
    }
    found
}

fn bounds(test: &Test, prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let with = |key: &[u8]| [prefix, key].concat();
    match test {
        Test::Prefix(beginning) => {
            let mut key = Vec::new();
            sort_key::append_prefix(beginning.as_bytes(), &mut key);
            let low = with(cut(&key));
            Some((low.clone(), behind(low)))
        }
        Test::Range(low, high) => {
            let class = match (low, high) {
                (Bound::Included(end) | Bound::Excluded(end), _)
                | (_, Bound::Included(end) | Bound::Excluded(end)) => end.class(),
                (Bound::Unbounded, Bound::Unbounded) => return None,
            };
            let is_cut = |end: &Literal| end.key.len() > INDEX_VALUE_BYTES_MAX;
            let low = match low {
                Bound::Unbounded => with(&[class.first_byte()]),
                Bound::Excluded(end) if !is_cut(end) => behind(with(&end.key)),
                Bound::Included(end) | Bound::Excluded(end) => with(cut(&end.key)),
            };
            let high = match high {
                Bound::Unbounded => with(&[class.end_byte()]),
                Bound::Excluded(end) if !is_cut(end) => with(&end.key),
                Bound::Included(end) | Bound::Excluded(end) => behind(with(cut(&end.key))),
            };
            Some((low, high))
        }
        Test::Equal(_) | Test::NotEqual(_) | Test::In(_) | Test::Null | Test::Exists => None,
    }
}

fn cut(key: &[u8]) -> &[u8] {
    key.get(..INDEX_VALUE_BYTES_MAX).unwrap_or(key)
}
