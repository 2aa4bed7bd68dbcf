//! Percentiles: exact of few numbers, by t-digest of many.

use tdigests::TDigest;

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
    numbers: Vec<f64>,
    digest: Option<TDigest>,
}

impl Digest {
    /// Adds numbers; those that are not finite are left out.
    pub(super) fn add(&mut self, numbers: impl Iterator<Item = f64>) {
        for number in numbers.filter(|number| number.is_finite()) {
            if self.numbers.len() == EXACT_MAX {
                self.digest = self.merged();
                self.numbers.clear();
            }
            self.numbers.push(number);
        }
    }

    /// What each share of the numbers is up to; nothing if there are none.
    pub(super) fn percentiles(&self, shares: &[f64]) -> Option<Vec<f64>> {
        if self.digest.is_none() {
            return exact(&self.numbers, shares);
        }
        let digest = self.merged()?;
        let estimate = |share: &f64| digest.estimate_quantile(*share) / SCALE;
        Some(shares.iter().map(|share| estimate(share).clamp(f64::MIN, f64::MAX)).collect())
    }

    fn merged(&self) -> Option<TDigest> {
        let scaled = || self.numbers.iter().map(|number| number * SCALE).collect();
        let more = (!self.numbers.is_empty()).then(|| TDigest::from_values(scaled()));
        let mut all = match (&self.digest, more) {
            (Some(digest), Some(more)) => digest.merge(&more),
            (Some(digest), None) => return Some(digest.clone()),
            (None, more) => more?,
        };
        all.compress(CENTROIDS);
        Some(all)
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "places of at most some thousands, and shares from 0 to 1"
)]
fn exact(numbers: &[f64], shares: &[f64]) -> Option<Vec<f64>> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = |share: &f64| {
        let place = share * last as f64;
        let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        let (distance, share) = (above - below, place.fract());
        // Between the ends of what a float can be there is more than a float.
        if distance.is_finite() {
            below + distance * share
        } else {
            below.mul_add(1.0 - share, above * share)
        }
    };
    Some(shares.iter().map(at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_numbers_are_exact() {
        let mut digest = Digest::default();
        assert_eq!(digest.percentiles(&[0.5]), None);
        digest.add([4.0, f64::INFINITY, 1.0, 3.0, 2.0].into_iter());
        assert_eq!(digest.percentiles(&[0.0, 0.5, 0.9, 1.0]), Some(vec![1.0, 2.5, 3.7, 4.0]));
    }

    #[test]
    fn percentiles_between_the_greatest_numbers_are_finite() {
        let mut digest = Digest::default();
        digest.add([f64::MIN, f64::MAX].into_iter());
        assert_eq!(digest.percentiles(&[0.5, 1.0]), Some(vec![0.0, f64::MAX]));
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
        digest.add(numbers.map(crate::series::block::float));
        let shares = [0.0, 0.001, 0.05, 0.5, 0.95, 0.999, 1.0];
        let found = digest.percentiles(&shares).unwrap();
        for (share, found) in shares.iter().zip(found) {
            assert!((found - share * 99_999.0).abs() <= 150.0, "{share}: {found}");
        }
    }
}
