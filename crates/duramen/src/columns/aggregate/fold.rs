//! Adds what is in a range of slots to what an aggregate has found.

use std::ops::Range;

use duramen_kernel as kernel;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::coding::{Codes, Coding, SLOTS};
use super::floats::FloatSum;
use super::mask::Mask;
use super::states::{Aggregates, KEYS_MAX, Measure, Sum};
use super::totals::Found;
use super::value::Value;
use super::view::View;
use crate::tree::conditions::Bits;

/// Combinations of values up to which one takes a byte.
const SMALL_MAX: usize = 1 << u8::BITS;

/// Which of some cells, each a combination of values, slots are in.
struct Cells {
    /// By slot.
    of: Codes,
    len: usize,
    combinations: Combinations,
}

/// The codes of cells, by key.
enum Combinations {
    /// All that there can be of so many values each, in their order.
    All([u16; KEYS_MAX]),
    Some(Vec<[u16; KEYS_MAX]>),
}

/// The group of a cell that has no rows.
const NONE: u32 = u32::MAX;

impl Aggregates {
    /// Adds the rows among some slots.
    pub(super) fn fold(
        &mut self,
        views: &[View<'_>],
        keys: &[usize],
        (slots, rows): (&Range<u16>, &Mask),
    ) {
        if !keys.is_empty() {
            return self.fold_groups(views, keys, &rows.bits(slots));
        }
        // The least and the greatest of a column are mostly asked for together.
        let mut known: Option<(usize, Found<'_>)> = None;
        for (index, measure) in self.measures().iter().enumerate() {
            match *measure {
                Measure::Rows => self.add_count(index, 0, rows.count(slots)),
                Measure::Count(column) => {
                    let valid = views[column].valid().and(rows.clone());
                    self.add_count(index, 0, valid.count(slots));
                }
                Measure::Sum(column) => self.add_sum(index, 0, views[column].sum(rows)),
                Measure::FloatSum(column) => {
                    self.add_float_sum(index, 0, views[column].float_sum(rows));
                }
                Measure::Least(column) | Measure::Greatest(column) => {
                    let known = match &mut known {
                        Some((of, found)) if *of == column => found,
                        other => &mut other.insert((column, views[column].bounds(rows))).1,
                    };
                    for value in known {
                        self.add_bound(index, 0, *value);
                    }
                }
                Measure::Distinct(column) => {
                    for value in views[column].distinct(rows) {
                        self.add_distinct(index, 0, value);
                    }
                }
            }
        }
    }

    fn fold_groups(&mut self, views: &[View<'_>], keys: &[usize], rows: &Bits) {
        let mut codings: SmallVec<[_; KEYS_MAX]> =
            keys.iter().map(|key| views[*key].coding(rows)).collect();
        let mut cells: Option<Cells> = None;
        for (key, coding) in codings.iter_mut().enumerate() {
            let own = (std::mem::take(&mut coding.codes), coding.values.len());
            cells = Some(match cells {
                None => Cells::of(own),
                Some(cells) => cells.divided(key, own),
            });
        }
        let Some(cells) = cells else { return };
        let counts = cells.counts(rows);
        let groups = self.groups_of(&cells, &counts, &codings);
        for (index, measure) in self.measures().iter().enumerate() {
            self.fold_measure((index, *measure), views, rows, (&cells, &counts, &groups));
        }
    }

    /// The groups of those cells that have rows.
    fn groups_of(&mut self, cells: &Cells, counts: &[u64], codings: &[Coding<'_>]) -> Vec<u32> {
        let mut known: [Vec<u32>; KEYS_MAX] = Default::default();
        for (known, coding) in known.iter_mut().zip(codings) {
            known.resize(coding.values.len(), NONE);
        }
        let mut groups = vec![NONE; cells.len];
        let mut codes = cells.combinations.codes(0);
        for ((cell, count), group) in counts.iter().enumerate().zip(&mut groups) {
            if *count > 0 {
                let mut all = [0; KEYS_MAX];
                for (key, coding) in codings.iter().enumerate() {
                    let code = usize::from(codes[key]);
                    let known = &mut known[key][code];
                    if *known == NONE {
                        *known = self.key_code(key, coding.term(code), coding.values[code]);
                    }
                    all[key] = *known;
                }
                *group = u32::try_from(self.group(all)).unwrap_or(NONE);
            }
            cells.combinations.advance(cell, &mut codes);
        }
        groups
    }

    fn fold_measure(
        &mut self,
        (index, measure): (usize, Measure),
        views: &[View<'_>],
        rows: &Bits,
        (cells, counts, groups): (&Cells, &[u64], &[u32]),
    ) {
        let group = |cell: usize| (groups[cell] != NONE).then_some(groups[cell] as usize);
        let grouped = || (0..groups.len()).filter_map(|cell| Some((cell, group(cell)?)));
        match measure {
            Measure::Rows => {
                grouped().for_each(|(cell, group)| self.add_count(index, group, counts[cell]));
            }
            Measure::Count(column) => {
                let counts = cells.counts(&valid(&views[column], rows));
                grouped().for_each(|(cell, group)| self.add_count(index, group, counts[cell]));
            }
            Measure::Sum(column) => {
                let sums = cells.sums(&views[column], rows);
                grouped().for_each(|(cell, group)| self.add_sum(index, group, sums[cell]));
            }
            Measure::FloatSum(column) => {
                let sums = cells.float_sums(&views[column], rows);
                grouped().for_each(|(cell, group)| self.add_float_sum(index, group, sums[cell]));
            }
            Measure::Least(column) | Measure::Greatest(column) => {
                let coding = views[column].coding(rows);
                for (cell, value) in cells.bounds(&coding, rows, measure) {
                    if let Some(group) = group(cell) {
                        self.add_bound(index, group, value);
                    }
                }
            }
            Measure::Distinct(column) => {
                let coding = views[column].coding(rows);
                for (cell, code) in cells.distinct(&coding, rows) {
                    if let Some(group) = group(cell) {
                        self.add_distinct(index, group, (coding.term(code), coding.values[code]));
                    }
                }
            }
        }
    }
}

/// The rows that have a value.
fn valid(view: &View<'_>, rows: &Bits) -> Bits {
    match view.valid() {
        Mask::None => Bits::none(),
        Mask::All => rows.clone(),
        Mask::Some(valid) => valid.and(rows),
    }
}

impl Cells {
    /// One for each of so many values.
    fn of((codes, values): (Codes, usize)) -> Self {
        let combinations = Combinations::All([small(values), 1, 1]);
        Self { of: codes, len: values, combinations }
    }

    /// Divides every cell by the codes of one more column, which has so many values.
    fn divided(self, key: usize, (codes, values): (Codes, usize)) -> Self {
        let Self { mut of, len, combinations } = self;
        let all = len * values;
        if let Combinations::All(sizes) = &combinations
            && all < SLOTS
        {
            match (&mut of, codes) {
                (Codes::Small(of), Codes::Small(codes)) if all <= SMALL_MAX => {
                    // Of one value there is the code 0 alone.
                    let factor = u8::try_from(values).unwrap_or(0);
                    kernel::combine(of, factor, &codes);
                }
                (_, codes) => {
                    let factor = u16::try_from(values).unwrap_or(u16::MAX);
                    let mut wide = of.into_wide();
                    for (cell, code) in wide.iter_mut().zip(codes.into_wide()) {
                        *cell = *cell * factor + code;
                    }
                    of = Codes::Wide(wide);
                }
            }
            let mut sizes = *sizes;
            sizes[key] = small(values);
            return Self { of, len: all, combinations: Combinations::All(sizes) };
        }
        // Of so many combinations there are only those of slots.
        let (mut known, mut found) = (FxHashMap::default(), Vec::new());
        let mut wide = of.into_wide();
        for (cell, code) in wide.iter_mut().zip(codes.into_wide()) {
            let combination = (*cell, code);
            *cell = *known.entry(combination).or_insert_with(|| {
                let mut codes = combinations.codes(combination.0.into());
                codes[key] = combination.1;
                found.push(codes);
                u16::try_from(found.len() - 1).unwrap_or(u16::MAX)
            });
        }
        let len = found.len();
        Self { of: Codes::Wide(wide), len, combinations: Combinations::Some(found) }
    }

    /// How many of some slots are in each cell.
    fn counts(&self, rows: &Bits) -> Vec<u64> {
        self.of.counts(self.len, rows)
    }

    fn sums(&self, view: &View<'_>, rows: &Bits) -> Vec<Sum> {
        let mut values = vec![0; SLOTS];
        view.integers(&mut values);
        let mut sums = vec![Sum::default(); self.len];
        for slot in valid(view, rows).slots() {
            let (cell, value) = (self.of.get(slot), values[usize::from(slot)]);
            if let Some(sum) = sums.get_mut(usize::from(cell)) {
                sum.add(Sum::of(value, 1));
            }
        }
        sums
    }

    fn float_sums(&self, view: &View<'_>, rows: &Bits) -> Vec<FloatSum> {
        let mut values = vec![0.0; SLOTS];
        view.floats(&mut values);
        let mut sums = vec![FloatSum::default(); self.len];
        for slot in valid(view, rows).slots() {
            if let Some(sum) = sums.get_mut(usize::from(self.of.get(slot))) {
                sum.add(values[usize::from(slot)], 1);
            }
        }
        sums
    }

    fn bounds<'a>(
        &self,
        coding: &Coding<'a>,
        rows: &Bits,
        measure: Measure,
    ) -> Vec<(usize, Value<'a>)> {
        let values = &coding.values;
        let mut order: Vec<_> = (0..values.len()).collect();
        order.retain(|code| !values[*code].is_missing());
        order.sort_unstable_by(|a, b| values[*a].order(values[*b]));
        if matches!(measure, Measure::Greatest(_)) {
            order.reverse();
        }
        let worst = u16::MAX;
        let mut ranks = vec![worst; values.len()];
        for (rank, code) in (0..).zip(&order) {
            ranks[*code] = rank;
        }
        let mut best = vec![worst; self.len];
        for slot in rows.slots() {
            if let Some(best) = best.get_mut(usize::from(self.of.get(slot))) {
                *best = (*best).min(ranks[usize::from(coding.codes.get(slot))]);
            }
        }
        let best = best.into_iter().enumerate();
        best.filter_map(|(cell, rank)| Some((cell, values[*order.get(usize::from(rank))?])))
            .collect()
    }

    /// The codes that there are in each cell.
    fn distinct(&self, coding: &Coding<'_>, rows: &Bits) -> Vec<(usize, usize)> {
        let pair = |slot: u16| (self.of.get(slot), coding.codes.get(slot));
        let found: FxHashSet<_> = rows.slots().map(pair).collect();
        found.into_iter().map(|(cell, code)| (cell.into(), code.into())).collect()
    }
}

impl Combinations {
    /// The codes of a cell.
    fn codes(&self, cell: usize) -> [u16; KEYS_MAX] {
        match self {
            Self::All(sizes) => {
                let (mut codes, mut rest) = ([0; KEYS_MAX], cell);
                for key in (0..KEYS_MAX).rev() {
                    let size = usize::from(sizes[key]).max(1);
                    codes[key] = small(rest % size);
                    rest /= size;
                }
                codes
            }
            Self::Some(all) => all.get(cell).copied().unwrap_or_default(),
        }
    }

    /// The codes of all cells in turn: the next ones.
    #[inline]
    fn advance(&self, cell: usize, codes: &mut [u16; KEYS_MAX]) {
        match self {
            Self::All(sizes) => {
                for key in (0..KEYS_MAX).rev() {
                    codes[key] += 1;
                    if codes[key] < sizes[key] {
                        return;
                    }
                    codes[key] = 0;
                }
            }
            Self::Some(all) => *codes = all.get(cell + 1).copied().unwrap_or_default(),
        }
    }
}

fn small(code: usize) -> u16 {
    u16::try_from(code).unwrap_or(u16::MAX)
}
