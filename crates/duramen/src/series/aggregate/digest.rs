//! Percentiles: exact of few numbers, by t-digest of many.

use tdigests::TDigest;

use crate::series::block::float;
use crate::series::interpolation::on_line;

/// Numbers up to which a percentile is exact, and which are added to a digest at once.
const EXACT_MAX: usize = 4_096;
/// Centroids of a digest: an error of some hundredths of a percent of rank in the middle, less at
/// the ends.
const CENTROIDS: usize = 400;
/// Numbers of a digest are this much smaller, 2^-64, so that differences of the greatest floats,
/// as many as there are of them, are no more than a float can be. What that takes from the smallest
/// ones, below 1e-288, is less than any of them.
const SCALE: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// The numbers of a window.
#[derive(Debug, Clone, Default)]
pub(super) struct Digest {
    /// Those that are finite and not among the older ones.
    numbers: Vec<f64>,
    older: Option<TDigest>,
    /// How many are finite.
    finite: u64,
    /// How many are infinite, below zero and above.
    infinite: (u64, u64),
}

impl Digest {
    /// Adds numbers.
    pub(super) fn add(&mut self, numbers: impl Iterator<Item = f64>) {
        for number in numbers {
            if number.is_infinite() {
                let count = if number < 0.0 { &mut self.infinite.0 } else { &mut self.infinite.1 };
                *count += 1;
                continue;
            }
            if self.numbers.len() == EXACT_MAX {
                self.older = self.merged();
                self.numbers.clear();
            }
            self.numbers.push(number);
            self.finite += 1;
        }
    }

    /// What each share of the numbers is up to; nothing if there are none.
    pub(super) fn percentiles(&self, shares: &[f64]) -> Option<Vec<f64>> {
        let (below, above) = self.infinite;
        let last = (below + self.finite + above).checked_sub(1)?;
        let last_finite = float(self.finite) - 1.0;
        let finite = self.of_finite();
        let at = |share: &f64| {
            // Infinities have the places before and behind all others.
            let place = share * float(last) - float(below);
            if place < 0.0 {
                f64::NEG_INFINITY
            } else if place > last_finite {
                f64::INFINITY
            } else {
                finite(place)
            }
        };
        Some(shares.iter().map(at).collect())
    }

    /// What is at a place among the finite numbers.
    fn of_finite(&self) -> Box<dyn Fn(f64) -> f64 + '_> {
        if self.older.is_none() {
            let mut sorted = self.numbers.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            return Box::new(move |place| exact(&sorted, place));
        }
        let (digest, last) = (self.merged(), float(self.finite) - 1.0);
        Box::new(move |place| {
            let found = digest.as_ref().map_or(0.0, |all| all.estimate_quantile(place / last));
            (found / SCALE).clamp(f64::MIN, f64::MAX)
        })
    }

    fn merged(&self) -> Option<TDigest> {
        let scaled = || self.numbers.iter().map(|number| number * SCALE).collect();
        let more = (!self.numbers.is_empty()).then(|| TDigest::from_values(scaled()));
        let mut all = match (&self.older, more) {
            (Some(digest), Some(more)) => digest.merge(&more),
            (Some(digest), None) => return Some(digest.clone()),
            (None, more) => more?,
        };
        all.compress(CENTROIDS);
        Some(all)
    }
}

/// What is at a place among sorted numbers.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place of at most some thousands"
)]
fn exact(sorted: &[f64], place: f64) -> f64 {
    on_line((sorted[place.floor() as usize], sorted[place.ceil() as usize]), place.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_numbers_are_exact() {
        let mut digest = Digest::default();
        assert_eq!(digest.percentiles(&[0.5]), None);
        digest.add([4.0, 1.0, 3.0, 2.0].into_iter());
        assert_eq!(digest.percentiles(&[0.0, 0.5, 0.9, 1.0]), Some(vec![1.0, 2.5, 3.7, 4.0]));
    }

    #[test]
    fn percentiles_between_the_greatest_numbers_are_finite() {
        let mut digest = Digest::default();
        digest.add([f64::MIN, f64::MAX].into_iter());
        assert_eq!(digest.percentiles(&[0.5, 1.0]), Some(vec![0.0, f64::MAX]));
    }

    /// They were left out: the greatest of 1, 2 and an infinite number was 2.
    #[test]
    fn infinities_are_the_least_and_the_greatest_numbers() {
        let (least, greatest) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut digest = Digest::default();
        digest.add([1.0, greatest, 2.0].into_iter());
        let found = digest.percentiles(&[0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(found, Some(vec![1.0, 1.5, 2.0, greatest, greatest]));
        digest.add([least, least].into_iter());
        let found = digest.percentiles(&[0.0, 0.25, 0.3, 0.5, 0.75, 1.0]);
        assert_eq!(found, Some(vec![least, least, least, 1.0, 2.0, greatest]));
        let mut digest = Digest::default();
        digest.add([greatest; 3].into_iter());
        assert_eq!(digest.percentiles(&[0.0, 0.6, 1.0]), Some(vec![greatest; 3]));
        digest.add([least; 3].into_iter());
        assert_eq!(digest.percentiles(&[0.0, 0.2, 1.0]), Some(vec![least, least, greatest]));
    }

    #[test]
    fn infinities_beside_many_numbers_have_their_places() {
        let mut digest = Digest::default();
        let some = |infinite: f64, count| std::iter::repeat_n(infinite, count);
        digest.add(some(f64::NEG_INFINITY, 10_000));
        digest.add((0..60_001).map(float).chain(some(f64::INFINITY, 30_000)));
        let found = digest.percentiles(&[0.0, 0.0999, 0.1, 0.4, 0.7, 0.7001, 1.0]).unwrap();
        assert_eq!(found[..2], [f64::NEG_INFINITY; 2]);
        for (found, expected) in found[2..5].iter().zip([0.0, 30_000.0, 60_000.0]) {
            assert!((found - expected).abs() <= 100.0, "{found}, not {expected}");
        }
        assert_eq!(found[5..], [f64::INFINITY; 2]);
    }

    /// Where numbers of both ends were put together, they once came to an infinite one.
    #[test]
    fn percentiles_of_many_of_the_greatest_numbers_are_finite() {
        let mut digest = Digest::default();
        digest.add([f64::MIN, f64::MAX].into_iter().cycle().take(20_001));
        let found = digest.percentiles(&[0.0, 0.4, 0.5, 0.6, 1.0]).unwrap();
        assert!(found[2].is_finite(), "{}", found[2]);
        for (at, share) in [(0, -1.0), (1, -1.0), (3, 1.0), (4, 1.0)] {
            assert!((found[at] / f64::MAX - share).abs() < 1e-12, "{}", found[at]);
        }
    }

    #[test]
    fn percentiles_of_many_numbers_are_close() {
        // A permutation of 0 to 99,999, so that the rank of a number is the number.
        let mut digest = Digest::default();
        let numbers = (0..100_000_u64).map(|place| place * 48_271 % 100_000);
        digest.add(numbers.map(float));
        let shares = [0.0, 0.001, 0.05, 0.5, 0.95, 0.999, 1.0];
        let found = digest.percentiles(&shares).unwrap();
        for (share, found) in shares.iter().zip(found) {
            assert!((found - share * 99_999.0).abs() <= 150.0, "{share}: {found}");
        }
    }
}
