//! Adds what is in a range of slots to what an aggregate has found.

use duramen_kernel as kernel;
use rustc_hash::{FxHashMap, FxHashSet};

use super::states::{Aggregates, KEYS_MAX, Measure, Sum};
use super::value::AggregateValue;
use super::view::{Coding, View};
use crate::tree::conditions::Bits;

/// Slots of a row group.
const SLOTS: usize = 4_096;

/// Which of some cells, each a combination of values, slots are in.
struct Cells {
    /// By slot.
    of: Vec<u16>,
    /// The codes of the combinations, by key.
    codes: Vec<[u16; KEYS_MAX]>,
}

impl Aggregates {
    /// Adds the rows at some slots.
    pub(super) fn fold(&mut self, views: &[View<'_>], keys: &[usize], rows: &Bits) {
        if keys.is_empty() {
            for (index, measure) in self.measures().iter().enumerate() {
                self.fold_all(index, *measure, views, rows);
            }
        } else {
            self.fold_groups(views, keys, rows);
        }
    }

    fn fold_all(&mut self, index: usize, measure: Measure, views: &[View<'_>], rows: &Bits) {
        match measure {
            Measure::Rows => self.add_count(index, 0, kernel::count(&rows.0)),
            Measure::Count(column) => {
                let valid = views[column].valid().and(rows);
                self.add_count(index, 0, kernel::count(&valid.0));
            }
            Measure::Sum(column) => self.add_sum(index, 0, views[column].sum(rows)),
            Measure::Least(column) | Measure::Greatest(column) => {
                for value in views[column].bounds(rows) {
                    self.add_bound(index, 0, &value.owned());
                }
            }
            Measure::Distinct(column) => {
                for value in views[column].distinct(rows) {
                    self.add_distinct(index, 0, value.owned());
                }
            }
        }
    }

    fn fold_groups(&mut self, views: &[View<'_>], keys: &[usize], rows: &Bits) {
        let codings: Vec<_> = keys.iter().map(|key| views[*key].coding(rows)).collect();
        let cells = Cells::of(&codings, rows);
        let counts = cells.counts();
        let mut global: Vec<_> =
            codings.iter().map(|coding| vec![None; coding.values.len()]).collect();
        let groups: Vec<_> = counts
            .iter()
            .zip(&cells.codes)
            .map(|(count, codes)| {
                (*count > 0).then(|| {
                    let mut all = [0; KEYS_MAX];
                    for (key, coding) in codings.iter().enumerate() {
                        let code = usize::from(codes[key]);
                        let known = &mut global[key][code];
                        let value = coding.values[code];
                        all[key] = *known.get_or_insert_with(|| self.key_code(key, value.owned()));
                    }
                    self.group(all)
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
                let counts = cells.among(&views[column].valid().and(rows)).counts();
                grouped().for_each(|(cell, group)| self.add_count(index, group, counts[cell]));
            }
            Measure::Sum(column) => {
                let sums = cells.sums(&views[column], rows);
                grouped().for_each(|(cell, group)| self.add_sum(index, group, sums[cell]));
            }
            Measure::Least(column) | Measure::Greatest(column) => {
                let is_least = matches!(measure, Measure::Least(_));
                for (cell, value) in cells.bounds(&views[column], rows, is_least) {
                    if let Some(group) = groups[cell] {
                        self.add_bound(index, group, &value);
                    }
                }
            }
            Measure::Distinct(column) => {
                for (cell, value) in cells.distinct(&views[column], rows) {
                    if let Some(group) = groups[cell] {
                        self.add_distinct(index, group, value);
                    }
                }
            }
        }
    }
}

impl Cells {
    /// Slots that are no rows are in a cell behind the others.
    fn of(codings: &[Coding<'_>], rows: &Bits) -> Self {
        let mut cells = Self { of: vec![0; SLOTS], codes: vec![[0; KEYS_MAX]] };
        for (key, coding) in codings.iter().enumerate() {
            cells.divide(key, coding);
        }
        cells.leave_out(rows);
        cells
    }

    /// Divides every cell by the values of one more column.
    fn divide(&mut self, key: usize, coding: &Coding<'_>) {
        let values = coding.values.len();
        let all = self.codes.len() * values;
        let with = |mut codes: [u16; KEYS_MAX], code: usize| {
            codes[key] = u16::try_from(code).unwrap_or(u16::MAX);
            codes
        };
        if all < SLOTS {
            let factor = u16::try_from(values).unwrap_or(u16::MAX);
            for (cell, code) in self.of.iter_mut().zip(&coding.codes) {
                *cell = *cell * factor + code;
            }
            let codes = self.codes.iter();
            let codes = codes.flat_map(|codes| (0..values).map(move |code| with(*codes, code)));
            self.codes = codes.collect();
            return;
        }
        // Of so many combinations there are only those of slots.
        let (mut known, mut found) = (FxHashMap::default(), Vec::new());
        for (cell, code) in self.of.iter_mut().zip(&coding.codes) {
            let combination = (*cell, *code);
            *cell = *known.entry(combination).or_insert_with(|| {
                found.push(with(self.codes[usize::from(combination.0)], usize::from(*code)));
                u16::try_from(found.len() - 1).unwrap_or(u16::MAX)
            });
        }
        self.codes = found;
    }

    fn leave_out(&mut self, rows: &Bits) {
        let none = u16::try_from(self.codes.len()).unwrap_or(u16::MAX);
        for (group, word) in self.of.chunks_mut(64).zip(&rows.0) {
            // Without a branch: which slots are rows is anybody's guess.
            for (bit, cell) in group.iter_mut().enumerate() {
                let kept = u16::from(word >> bit & 1 != 0).wrapping_neg();
                *cell = *cell & kept | none & !kept;
            }
        }
    }

    fn among(&self, rows: &Bits) -> Self {
        let mut cells = Self { of: self.of.clone(), codes: self.codes.clone() };
        cells.leave_out(rows);
        cells
    }

    /// How many slots are in each cell.
    fn counts(&self) -> Vec<u64> {
        let mut counts = vec![0; self.codes.len()];
        if self.codes.len() < usize::from(u8::MAX) {
            let small: Vec<_> = self.of.iter().map(|cell| cell.to_le_bytes()[0]).collect();
            kernel::histogram(&small, &mut counts);
        } else {
            for cell in &self.of {
                if let Some(count) = counts.get_mut(usize::from(*cell)) {
                    *count += 1;
                }
            }
        }
        counts
    }

    fn sums(&self, view: &View<'_>, rows: &Bits) -> Vec<Sum> {
        let mut values = vec![0; SLOTS];
        view.integers(&mut values);
        let mut sums = vec![(0_u64, 0_i128, 0_u64); self.codes.len()];
        for slot in view.valid().and(rows).slots() {
            let (cell, value) = (self.of[usize::from(slot)], values[usize::from(slot)]);
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

    fn bounds(&self, view: &View<'_>, rows: &Bits, is_least: bool) -> Vec<(usize, AggregateValue)> {
        let coding = view.coding(rows);
        let mut order: Vec<_> = (0..coding.values.len()).skip(1).collect();
        let owned: Vec<_> = coding.values.iter().map(|value| value.owned()).collect();
        order.sort_unstable_by(|a, b| owned[*a].cmp(&owned[*b]));
        if !is_least {
            order.reverse();
        }
        let worst = u16::MAX;
        let mut ranks = vec![worst; owned.len()];
        for (rank, code) in (0..).zip(&order) {
            ranks[*code] = rank;
        }
        let mut best = vec![worst; self.codes.len()];
        for slot in rows.slots().map(usize::from) {
            if let Some(best) = best.get_mut(usize::from(self.of[slot])) {
                *best = (*best).min(ranks[usize::from(coding.codes[slot])]);
            }
        }
        let best = best.into_iter().enumerate();
        best.filter_map(|(cell, rank)| {
            let code = order.get(usize::from(rank))?;
            Some((cell, owned[*code].clone()))
        })
        .collect()
    }

    fn distinct(&self, view: &View<'_>, rows: &Bits) -> Vec<(usize, AggregateValue)> {
        let coding = view.coding(rows);
        let pair = |slot: usize| (self.of[slot], coding.codes[slot]);
        let found: FxHashSet<_> = rows.slots().map(|slot| pair(slot.into())).collect();
        let value = |code: u16| coding.values[usize::from(code)].owned();
        found.into_iter().map(|(cell, code)| (usize::from(cell), value(code))).collect()
    }
}
