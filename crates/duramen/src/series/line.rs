//! Times on a line: each the same step after the one before it.

use std::ops::Range;

use crate::series::block::rises_steadily;

/// Times that are put behind others at once.
const RUN: usize = 64;

/// The first of rising times and what leads from each to the next. It comes to the last of them
/// without wrapping around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    first: i64,
    step: i64,
}

impl Line {
    /// With a step above zero, as long as nobody asks for times behind the last one.
    pub(crate) fn new(first: i64, step: i64) -> Self {
        Self { first, step }
    }

    /// The line that times are on; none if they are on none, or too few to say.
    pub(crate) fn of(times: &[i64]) -> Option<Self> {
        let [first, second, ..] = times else { return None };
        rises_steadily(times).then(|| Self::new(*first, second.wrapping_sub(*first)))
    }

    /// What leads from each time to the next.
    pub(crate) fn step(self) -> i64 {
        self.step
    }

    /// Appends the times at some places.
    pub(crate) fn put(self, places: Range<usize>, times: &mut Vec<i64>) {
        let after = |time: i64, steps: usize| {
            time.wrapping_add(self.step.wrapping_mul((steps as u64).cast_signed()))
        };
        let first = after(self.first, places.start);
        if places.len() < RUN {
            times.extend((0..places.len()).map(|steps| after(first, steps)));
            return;
        }
        times.reserve(places.len());
        // Sums of a few known numbers are vectorised everywhere, unlike products of 64 bits.
        let rises: [i64; RUN] = std::array::from_fn(|steps| after(0, steps));
        let mut at = first;
        for _ in 0..places.len() / RUN {
            times.extend(rises.iter().map(|rise| at.wrapping_add(*rise)));
            at = after(at, RUN);
        }
        let rest = rises.iter().take(places.len() % RUN);
        times.extend(rest.map(|rise| at.wrapping_add(*rise)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_on_a_line_are_made_again_from_any_place() {
        for (first, step, len) in
            [(-7, 1, 2), (5, 1_000_000, 1_000), (i64::MIN, i64::MAX, 3), (i64::MAX - 640, 10, 65)]
        {
            let time = |at: i64| first.wrapping_add(step.wrapping_mul(at));
            let times: Vec<i64> = (0..len).map(time).collect();
            let line = Line::of(&times).unwrap();
            assert_eq!(line, Line::new(first, step));
            for start in [0, 1, times.len() / 3, times.len() - 1] {
                for end in [start, start + 1, start + 64, start + 129, times.len()] {
                    let places = start..end.min(times.len());
                    let mut out = vec![3];
                    line.put(places.clone(), &mut out);
                    assert_eq!(out[0], 3);
                    assert_eq!(out[1..], times[places]);
                }
            }
        }
        for others in [&[][..], &[4], &[4, 4], &[4, 3], &[1, 2, 4], &[1, 3, 2]] {
            assert_eq!(Line::of(others), None, "{others:?}");
        }
    }
}
