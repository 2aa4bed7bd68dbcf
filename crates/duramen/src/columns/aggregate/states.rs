//! What an aggregate has found so far, by group.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::cache::{Dictionary, Term};
use super::floats::FloatSum;
use super::value::{AggregateValue, Value};
use crate::encoding::Summary;
use crate::limits::AGGREGATE_BYTES_MAX;

/// Columns that rows are grouped by at most.
pub(super) const KEYS_MAX: usize = 3;

/// What is found of the rows of each group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// How many rows there are.
    Rows,
    /// How many values a column has.
    Count(usize),
    /// The sum of a column of integers.
    Sum(usize),
    /// The sum of a column of floats.
    FloatSum(usize),
    /// Its least value.
    Least(usize),
    /// Its greatest value.
    Greatest(usize),
    /// How many distinct values it has.
    Distinct(usize),
}

/// Integers, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// All of them together.
    pub total: i128,
    /// More than the absolute values of all of them together.
    pub reach: u128,
}

impl Sum {
    /// A value so many times.
    pub(super) fn of(value: i64, times: u64) -> Self {
        let total = i128::from(value) * i128::from(times);
        Self { count: times, total, reach: total.unsigned_abs() }
    }

    /// So many integers, of which only a summary was read.
    pub(super) fn of_summary(summary: &Summary, count: u64) -> Self {
        let most = summary.max.unsigned_abs().max(summary.min.unsigned_abs());
        Self { count, total: summary.sum, reach: most.saturating_mul(count.into()) }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.count += other.count;
        self.total += other.total;
        self.reach = self.reach.saturating_add(other.reach);
    }
}

/// What was found of a measure, by group.
#[derive(Debug, Clone)]
pub enum Measured {
    /// Of rows and values.
    Count(Vec<u64>),
    /// Of integers.
    Sum(Vec<Sum>),
    /// Of floats.
    FloatSum(Vec<FloatSum>),
    /// Of the least or greatest value; missing where there is none.
    Bound(Vec<AggregateValue>),
    /// Of the distinct values, by numbers that they have.
    Distinct(Vec<FxHashSet<u32>>),
}

/// The distinct values of a column, numbered.
#[derive(Debug, Default)]
struct Distinct {
    /// Numbers, by the values that have them.
    codes: HashTable<u32>,
    values: Vec<AggregateValue>,
    /// By what a dictionary calls them.
    by_term: Vec<u32>,
    dictionary: Option<Arc<Dictionary>>,
}

/// A value that has no number yet.
const NONE: u32 = u32::MAX;

impl Distinct {
    /// The number of a value, if it was asked for by the same term before.
    #[inline]
    fn known(&self, term: Option<Term<'_>>) -> Option<u32> {
        let Term { dictionary, term } = term?;
        let own = self.dictionary.as_ref().filter(|own| Arc::ptr_eq(own, dictionary));
        own.and_then(|_| self.by_term.get(term as usize)).copied().filter(|code| *code != NONE)
    }

    /// The number of a value, and the bytes of text that were added for it.
    fn code(&mut self, term: Option<Term<'_>>, value: Value<'_>) -> (u32, Option<usize>) {
        let (code, added) = self.find(value.grouped());
        if let Some(Term { dictionary, term }) = term {
            if !self.dictionary.as_ref().is_some_and(|own| Arc::ptr_eq(own, dictionary)) {
                self.by_term.clear();
                self.dictionary = Some(Arc::clone(dictionary));
            }
            let term = term as usize;
            if term >= self.by_term.len() {
                self.by_term.resize(term + 1, NONE);
            }
            self.by_term[term] = code;
        }
        (code, added)
    }

    fn find(&mut self, value: Value<'_>) -> (u32, Option<usize>) {
        let Self { codes, values, .. } = self;
        let known = |code: &u32| values.get(*code as usize).map(AggregateValue::value);
        let hash = FxBuildHasher.hash_one(Some(value));
        if let Some(code) = codes.find(hash, |code| known(code) == Some(value)) {
            return (*code, None);
        }
        let code = u32::try_from(values.len()).unwrap_or(u32::MAX);
        codes.insert_unique(hash, code, |code| FxBuildHasher.hash_one(known(code)));
        let value = value.owned();
        let bytes = value.text_bytes();
        values.push(value);
        (code, Some(bytes))
    }
}

/// Groups of which the codes are small, by these.
#[derive(Debug, Default)]
struct SmallGroups {
    groups: Vec<u32>,
}

impl SmallGroups {
    /// Codes of each key up to which groups are here, by the number of keys.
    const SIDES: [u32; KEYS_MAX + 1] = [1, 4_096, 64, 16];

    /// Where the group of some codes is, if they are small.
    #[inline]
    fn place(keys: usize, codes: [u32; KEYS_MAX]) -> Option<usize> {
        let side = *Self::SIDES.get(keys)?;
        let is_small = codes.iter().all(|code| *code < side);
        is_small.then(|| codes.iter().rev().fold(0, |place, code| place * side + code) as usize)
    }

    #[inline]
    fn get(&self, place: usize) -> Option<usize> {
        self.groups.get(place).filter(|group| **group != NONE).map(|group| *group as usize)
    }

    fn set(&mut self, place: usize, group: u32) {
        if place >= self.groups.len() {
            self.groups.resize(place + 1, NONE);
        }
        self.groups[place] = group;
    }
}

/// What has been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AggregateWork {
    /// Rows that there are.
    pub rows: u64,
    /// Parts of rows.
    pub parts: u64,
    /// Parts in which heads of cells say that the filter holds for no row.
    pub pruned: u64,
    /// Parts of which heads of cells say all.
    pub summarised: u64,
    /// Parts of which a column was decoded first.
    pub decoded: u64,
    /// Bytes of cells of which values or changes were read, as they are encoded, also from memory.
    pub bytes: u64,
}

/// What an aggregate has found of some parts.
#[derive(Debug)]
pub struct Aggregates {
    measures: Arc<[Measure]>,
    keys: Vec<Distinct>,
    /// By measure, of those whose distinct values are counted.
    distinct: Vec<Distinct>,
    groups: FxHashMap<[u32; KEYS_MAX], u32>,
    small: SmallGroups,
    codes: Vec<[u32; KEYS_MAX]>,
    pub(super) measured: Vec<Measured>,
    pub(super) work: AggregateWork,
    /// About how many that takes in memory.
    bytes: usize,
}

/// Bytes of a group or distinct value in memory, about, without its text.
const ENTRY_BYTES: usize = 128;

/// Bytes of a distinct value of a group, about, beside those of the value.
const CODE_BYTES: usize = 16;

impl Aggregates {
    /// Nothing yet; without keys there is one group from the beginning.
    pub(super) fn new(measures: &[Measure], keys: usize) -> Self {
        let empty = measures.iter().map(|measure| match measure {
            Measure::Rows | Measure::Count(_) => Measured::Count(Vec::new()),
            Measure::Sum(_) => Measured::Sum(Vec::new()),
            Measure::FloatSum(_) => Measured::FloatSum(Vec::new()),
            Measure::Least(_) | Measure::Greatest(_) => Measured::Bound(Vec::new()),
            Measure::Distinct(_) => Measured::Distinct(Vec::new()),
        });
        let mut aggregates = Self {
            measures: measures.into(),
            keys: std::iter::repeat_with(Distinct::default).take(keys).collect(),
            distinct: std::iter::repeat_with(Distinct::default).take(measures.len()).collect(),
            groups: FxHashMap::default(),
            small: SmallGroups::default(),
            codes: Vec::new(),
            measured: empty.collect(),
            work: AggregateWork::default(),
            bytes: 0,
        };
        if keys == 0 {
            aggregates.group([0; KEYS_MAX]);
        }
        aggregates
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.codes.len()
    }

    /// The values that the rows of a group have in the columns that they are grouped by.
    pub fn keys(&self, group: usize) -> impl ExactSizeIterator<Item = &AggregateValue> {
        let codes = self.codes.get(group).copied().unwrap_or_default();
        let keys = self.keys.iter().zip(codes);
        keys.map(|(key, code)| key.values.get(code as usize).unwrap_or(&AggregateValue::Missing))
    }

    /// What was found, by measure.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// What has been looked at.
    pub fn work(&self) -> &AggregateWork {
        &self.work
    }

    /// Whether groups and distinct values take more memory than they may: then what was found is
    /// not all there is, and no values are added.
    pub fn is_full(&self) -> bool {
        self.bytes > AGGREGATE_BYTES_MAX
    }

    /// The code of a value in a column that rows are grouped by.
    #[inline]
    pub(super) fn key_code(&mut self, key: usize, term: Option<Term<'_>>, value: Value<'_>) -> u32 {
        if let Some(code) = self.keys.get(key).and_then(|distinct| distinct.known(term)) {
            return code;
        }
        if self.is_full() {
            return 0;
        }
        let Some(distinct) = self.keys.get_mut(key) else { return 0 };
        let (code, added) = distinct.code(term, value);
        self.bytes += added.unwrap_or(0);
        code
    }

    /// The group of some codes.
    #[inline]
    pub(super) fn group(&mut self, codes: [u32; KEYS_MAX]) -> usize {
        let place = SmallGroups::place(self.keys.len(), codes);
        place.and_then(|place| self.small.get(place)).unwrap_or_else(|| self.large(codes, place))
    }

    fn large(&mut self, codes: [u32; KEYS_MAX], place: Option<usize>) -> usize {
        if let Some(group) = self.groups.get(&codes) {
            return *group as usize;
        }
        let group = self.codes.len();
        let number = u32::try_from(group).unwrap_or(u32::MAX);
        match place {
            Some(place) => self.small.set(place, number),
            None => drop(self.groups.insert(codes, number)),
        }
        self.codes.push(codes);
        self.bytes += ENTRY_BYTES;
        for measured in &mut self.measured {
            match measured {
                Measured::Count(counts) => counts.push(0),
                Measured::Sum(sums) => sums.push(Sum::default()),
                Measured::FloatSum(sums) => sums.push(FloatSum::default()),
                Measured::Bound(bounds) => bounds.push(AggregateValue::Missing),
                Measured::Distinct(sets) => sets.push(FxHashSet::default()),
            }
        }
        group
    }

    /// What is measured.
    pub(super) fn measures(&self) -> Arc<[Measure]> {
        Arc::clone(&self.measures)
    }

    pub(super) fn add_count(&mut self, measure: usize, group: usize, count: u64) {
        if let Some(Measured::Count(counts)) = self.measured.get_mut(measure) {
            counts[group] += count;
        }
    }

    pub(super) fn add_sum(&mut self, measure: usize, group: usize, sum: Sum) {
        if let Some(Measured::Sum(sums)) = self.measured.get_mut(measure) {
            sums[group].add(sum);
        }
    }

    pub(super) fn add_float_sum(&mut self, measure: usize, group: usize, sum: FloatSum) {
        if let Some(Measured::FloatSum(sums)) = self.measured.get_mut(measure) {
            sums[group].merge(sum);
        }
    }

    pub(super) fn add_bound(&mut self, measure: usize, group: usize, value: Value<'_>) {
        if self.is_full() {
            return;
        }
        let wanted = match self.measures[measure] {
            Measure::Least(_) => Ordering::Less,
            _ => Ordering::Greater,
        };
        if let Some(Measured::Bound(bounds)) = self.measured.get_mut(measure) {
            let known = &mut bounds[group];
            let is_first = *known == AggregateValue::Missing;
            if !value.is_missing() && (is_first || value.order(known.value()) == wanted) {
                let value = value.owned();
                self.bytes += value.text_bytes().saturating_sub(known.text_bytes());
                *known = value;
            }
        }
    }

    pub(super) fn add_distinct(
        &mut self,
        measure: usize,
        group: usize,
        (term, value): (Option<Term<'_>>, Value<'_>),
    ) {
        if value.is_missing() || self.is_full() {
            return;
        }
        if let Some(Measured::Distinct(sets)) = self.measured.get_mut(measure) {
            let distinct = &mut self.distinct[measure];
            let (code, added) = match distinct.known(term) {
                Some(code) => (code, None),
                None => distinct.code(term, value),
            };
            self.bytes += added.map_or(0, |bytes| ENTRY_BYTES + bytes);
            if sets[group].insert(code) {
                self.bytes += CODE_BYTES;
            }
        }
    }

    /// Adds what was found of other parts by the same plan; if one of them is full so is this.
    pub fn merge(&mut self, other: Self) {
        self.work.add(&other.work);
        if other.is_full() {
            self.bytes = other.bytes;
            return;
        }
        let groups: Vec<_> = (0..other.groups())
            .map(|group| {
                let mut codes = [0; KEYS_MAX];
                for (key, value) in other.keys(group).enumerate() {
                    codes[key] = self.key_code(key, None, value.value());
                }
                self.group(codes)
            })
            .collect();
        for (measure, measured) in other.measured.into_iter().enumerate() {
            match measured {
                Measured::Count(counts) => {
                    let all = groups.iter().zip(counts);
                    all.for_each(|(group, count)| self.add_count(measure, *group, count));
                }
                Measured::Sum(sums) => {
                    let all = groups.iter().zip(sums);
                    all.for_each(|(group, sum)| self.add_sum(measure, *group, sum));
                }
                Measured::FloatSum(sums) => {
                    let all = groups.iter().zip(sums);
                    all.for_each(|(group, sum)| self.add_float_sum(measure, *group, sum));
                }
                Measured::Bound(bounds) => {
                    let all = groups.iter().zip(&bounds);
                    all.for_each(|(group, value)| self.add_bound(measure, *group, value.value()));
                }
                Measured::Distinct(sets) => {
                    let values = &other.distinct[measure].values;
                    for (group, set) in groups.iter().zip(sets) {
                        for value in set.into_iter().filter_map(|code| values.get(code as usize)) {
                            self.add_distinct(measure, *group, (None, value.value()));
                        }
                    }
                }
            }
        }
    }
}

impl AggregateWork {
    fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.parts += other.parts;
        self.pruned += other.pruned;
        self.summarised += other.summarised;
        self.decoded += other.decoded;
        self.bytes += other.bytes;
    }
}
