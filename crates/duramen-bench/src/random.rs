//! Reproducible numbers, the same in every run, for every subject: `SplitMix64` (Steele, Lea and
//! Flood 2014), and the generator of `java.util.Random`, by which workload A is defined.

/// A generator of reproducible numbers.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that always starts the same from one seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product is below `bound`, so it fits.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// The generator of `java.util.Random`.
#[derive(Debug, Clone)]
pub(crate) struct JavaRandom(u64);

impl JavaRandom {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;

    /// A generator that starts as `new Random(seed)`.
    pub(crate) fn new(seed: u64) -> Self {
        Self((seed ^ Self::MULTIPLIER) & Self::MASK)
    }

    fn next(&mut self, bits: u32) -> u64 {
        self.0 = self.0.wrapping_mul(Self::MULTIPLIER).wrapping_add(0xB) & Self::MASK;
        self.0 >> (48 - bits)
    }

    /// `nextInt(bound)`, for a bound below 2^31.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound.is_power_of_two() {
            return (bound * self.next(31)) >> 31;
        }
        loop {
            let bits = self.next(31);
            let value = bits % bound;
            // The last numbers below 2^31 would favour small remainders.
            if bits - value + (bound - 1) < 1 << 31 {
                return value;
            }
        }
    }

    /// `nextBoolean()`.
    pub(crate) fn boolean(&mut self) -> bool {
        self.next(1) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_of_seed_42_are_those_that_java_gives() {
        let mut random = JavaRandom::new(42);
        let below_10: Vec<u64> = (0..10).map(|_| random.below(10)).collect();
        assert_eq!(below_10, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]);
    }

    #[test]
    fn numbers_stay_below_the_bound() {
        let mut random = SplitMix64::new(42);
        assert!((0..1_000).all(|_| random.below(7) < 7));
    }
}
