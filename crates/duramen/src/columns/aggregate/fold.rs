//! Adds what is in a range of slots to what an aggregate has found.

use std::ops::Range;

use duramen_kernel as kernel;
use rustc_hash::{FxHashMap, FxHashSet};

use super::coding::{Codes, Coding, SLOTS};
use super::mask::Mask;
use super::states::{Aggregates, KEYS_MAX, Measure, Sum};
use super::value::Value;
use super::view::View;
use crate::tree::conditions::Bits;

/// Combinations of values up to which one takes a byte.
const SMALL_MAX: usize = 1 << u8::BITS;

/// Which of some cells, each a combination of values, slots are in.
struct Cells {
    /// By slot.
    of: Codes,
    /// The codes of the combinations, by key.
    codes: Vec<[u16; KEYS_MAX]>,
}

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
        for (index, measure) in self.measures().iter().enumerate() {
            match *measure {
                Measure::Rows => self.add_count(index, 0, rows.count(slots)),
                Measure::Count(column) => {
                    let valid = views[column].valid().and(rows.clone());
                    self.add_count(index, 0, valid.count(slots));
                }
                Measure::Sum(column) => self.add_sum(index, 0, views[column].sum(rows)),
                Measure::Least(column) | Measure::Greatest(column) => {
                    for value in views[column].bounds(rows) {
                        self.add_bound(index, 0, value);
                    }
                }
                Measure::Distinct(column) => {
                    for value in views[column].distinct(rows).into_iter().enumerate() {
                        self.add_distinct(index, 0, value);
                    }
                }
            }
        }
    }

    fn fold_groups(&mut self, views: &[View<'_>], keys: &[usize], rows: &Bits) {
        let codings: Vec<_> = keys.iter().map(|key| views[*key].coding(rows)).collect();
        let mut known: Vec<_> =
            codings.iter().map(|coding| vec![None; coding.values.len()]).collect();
        let mut cells: Option<Cells> = None;
        let mut values = Vec::with_capacity(keys.len());
        for (key, coding) in codings.into_iter().enumerate() {
            let len = coding.values.len();
            values.push(coding.values);
            cells = Some(match cells {
                None => Cells::of(coding.codes, len),
                Some(cells) => cells.divided(key, (coding.codes, len)),
            });
        }
        let Some(cells) = cells else { return };
        let counts = cells.counts(rows);
        let groups: Vec<_> = counts
            .iter()
            .zip(&cells.codes)
            .enumerate()
            .map(|(cell, (count, codes))| {
                (*count > 0).then(|| {
                    let mut all = [0; KEYS_MAX];
                    for (key, values) in values.iter().enumerate() {
                        let code = usize::from(codes[key]);
                        let known = &mut known[key][code];
                        all[key] =
                            *known.get_or_insert_with(|| self.key_code(key, code, values[code]));
                    }
                    self.group_at(cell, all)
                })
            })
            .collect();
        for (index, measure) in self.measures().iter().enumerate() {
            self.fold_measure((index, *measure), views, rows, (&cells, &counts, &groups));
        }
    }

    fn fold_measure(
        &mut self,
        (index, measure): (usize, Measure),
        views: &[View<'_>],
        rows: &Bits,
        (cells, counts, groups): (&Cells, &[u64], &[Option<usize>]),
    ) {
        let grouped =
            || groups.iter().enumerate().filter_map(|(cell, group)| Some((cell, (*group)?)));
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
            Measure::Least(column) | Measure::Greatest(column) => {
                let coding = views[column].coding(rows);
                for (cell, value) in cells.bounds(&coding, rows, measure) {
                    if let Some(group) = groups[cell] {
                        self.add_bound(index, group, value);
                    }
                }
            }
            Measure::Distinct(column) => {
                let coding = views[column].coding(rows);
                for (cell, code) in cells.distinct(&coding, rows) {
                    if let Some(group) = groups[cell] {
                        self.add_distinct(index, group, (code, coding.values[code]));
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
    fn of(codes: Codes, values: usize) -> Self {
        let all = (0..values).map(|code| with([0; KEYS_MAX], 0, code));
        Self { of: codes, codes: all.collect() }
    }

    /// Divides every cell by the codes of one more column, which has so many values.
    fn divided(self, key: usize, (codes, values): (Codes, usize)) -> Self {
        let Self { mut of, codes: before } = self;
        let all = before.len() * values;
        if all < SLOTS {
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
            let each = |codes: [u16; KEYS_MAX]| (0..values).map(move |code| with(codes, key, code));
            return Self { of, codes: before.into_iter().flat_map(each).collect() };
        }
        // Of so many combinations there are only those of slots.
        let (mut known, mut found) = (FxHashMap::default(), Vec::new());
        let mut wide = of.into_wide();
        for (cell, code) in wide.iter_mut().zip(codes.into_wide()) {
            let combination = (*cell, code);
            *cell = *known.entry(combination).or_insert_with(|| {
                found.push(with(before[usize::from(combination.0)], key, code.into()));
                u16::try_from(found.len() - 1).unwrap_or(u16::MAX)
            });
        }
        Self { of: Codes::Wide(wide), codes: found }
    }

    /// How many of some slots are in each cell.
    fn counts(&self, rows: &Bits) -> Vec<u64> {
        self.of.counts(self.codes.len(), rows)
    }

    fn sums(&self, view: &View<'_>, rows: &Bits) -> Vec<Sum> {
        let mut values = vec![0; SLOTS];
        view.integers(&mut values);
        let mut sums = vec![(0_u64, 0_i128, 0_u64); self.codes.len()];
        for slot in valid(view, rows).slots() {
            let (cell, value) = (self.of.get(slot), values[usize::from(slot)]);
            if let Some((count, sum, most)) = sums.get_mut(usize::from(cell)) {
                *count += 1;
                *sum += i128::from(value);
                *most = (*most).max(value.unsigned_abs());
            }
        }
        let sum = |(count, total, most): (u64, i128, u64)| {
            let reach = u128::from(most).saturating_mul(count.into());
            Sum { count, total, reach }
        };
        sums.into_iter().map(sum).collect()
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
        let mut best = vec![worst; self.codes.len()];
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

fn with(mut codes: [u16; KEYS_MAX], key: usize, code: usize) -> [u16; KEYS_MAX] {
    codes[key] = u16::try_from(code).unwrap_or(u16::MAX);
    codes
}
