//! The generator that every choice of a simulated run is drawn from.
//!
//! It is our own because the streams of libraries change between versions, and a stored seed must
//! mean the same run for ever. Algorithm: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).

/// A stream of random numbers that its seed fixes.
#[derive(Debug, Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        assert!(limit > 0, "no number is below zero");
        let wide = u128::from(self.bits()) * u128::from(limit);
        u64::try_from(wide >> 64).expect("it is below the limit")
    }

    /// An index into something of `len` entries, which is not empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("it is below a usize")
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`, which is not empty.
    pub fn choose<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())].clone()
    }

    /// Puts `items` into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }

    /// Fills `bytes` with noise.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let noise = self.bits().to_le_bytes();
            chunk.copy_from_slice(&noise[..chunk.len()]);
        }
    }

    /// A stream of its own, so that what is drawn from one does not shift the other.
    pub fn fork(&mut self) -> Self {
        Self::new(self.bits())
    }
}

/// Spreads each bit of `value` over the whole result.
pub(crate) fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first outputs for seed 1234567: stored seeds rely on them.
    #[test]
    fn the_stream_is_splitmix64() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_reaches_every_number_and_no_other() {
        let mut random = Random::new(1);
        let mut seen = [0; 6];
        for _ in 0..600 {
            seen[random.index(6)] += 1;
        }
        assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
    }

    #[test]
    fn a_shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..20).collect();
        Random::new(7).shuffle(&mut items);
        assert_ne!(items, (0..20).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..20).collect::<Vec<_>>());
    }
}
