//! A bitmap with the number of set bits before any position.

use super::reader::{Parsed, Reader};

/// The most bits of one bitmap: counts before a word are 16 bits wide.
pub(super) const BITS_MAX: usize = u16::MAX as usize;

const WORD_BITS: usize = 64;

/// Where a bitmap lies in its cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits {
    at: u32,
    counts_at: u32,
    len: u32,
}

/// A bit and what is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rank {
    /// Whether the bit is set.
    pub(super) set: bool,
    /// The set bits before it if it is set, else the clear bits before it.
    pub(super) before: usize,
}

impl Bits {
    /// Appends the encoding of `bits`, whose number the owner keeps.
    ///
    /// # Panics
    /// If there are more than [`BITS_MAX`].
    pub(crate) fn encode(bits: &[bool], out: &mut Vec<u8>) {
        assert!(bits.len() <= BITS_MAX, "a bitmap of {} bits", bits.len());
        for eight in bits.chunks(8) {
            out.push(eight.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
        }
        let mut count = 0_u16;
        for word in bits.chunks(WORD_BITS).take(words(bits.len()).saturating_sub(1)) {
            let set = word.iter().filter(|bit| **bit).count();
            count = count.saturating_add(u16::try_from(set).unwrap_or(u16::MAX));
            out.extend(count.to_le_bytes());
        }
    }

    /// Passes over a bitmap of `len` bits.
    #[inline]
    pub(crate) fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        let at = reader.skip(len.div_ceil(8))?;
        let counts_at = reader.skip(words(len).saturating_sub(1).saturating_mul(2))?;
        Ok(Self { at, counts_at, len: u32::try_from(len).unwrap_or(u32::MAX) })
    }

    /// Bit `index`, or `None` beyond the end.
    #[cfg(test)]
    pub(crate) fn get(&self, cell: &[u8], index: usize) -> Option<bool> {
        self.rank(cell, index).map(|rank| rank.set)
    }

    /// How many bits are set.
    pub(crate) fn count(&self, cell: &[u8]) -> Option<usize> {
        let Some(last) = (self.len as usize).checked_sub(1) else { return Some(0) };
        let Rank { set, before } = self.rank(cell, last)?;
        Some(if set { before.saturating_add(1) } else { last.saturating_sub(before) })
    }

    /// Bit `index` and how many before it are like it, or `None` beyond the end.
    #[inline]
    pub(super) fn rank(&self, cell: &[u8], index: usize) -> Option<Rank> {
        if index >= self.len as usize {
            return None;
        }
        let word_index = index / WORD_BITS;
        let word = self.word(cell, word_index)?;
        let bit = 1_u64 << (index % WORD_BITS);
        let in_word = (word & bit.wrapping_sub(1)).count_ones() as usize;
        let ones = self.before(cell, word_index)?.saturating_add(in_word);
        let set = word & bit != 0;
        // A damaged count may exceed the position; the part it points into refuses it then.
        let before = if set { ones } else { index.wrapping_sub(ones) };
        Some(Rank { set, before })
    }

    /// The set bits before word `word_index`; the first word has none and stores no count.
    #[inline]
    fn before(&self, cell: &[u8], word_index: usize) -> Option<usize> {
        let Some(count) = word_index.checked_sub(1) else { return Some(0) };
        let at = (self.counts_at as usize).wrapping_add(count.wrapping_mul(2));
        Some(usize::from(u16::from_le_bytes(*cell.get(at..)?.first_chunk()?)))
    }

    #[inline]
    fn word(&self, cell: &[u8], word_index: usize) -> Option<u64> {
        let at = (self.at as usize).wrapping_add(word_index.wrapping_mul(8));
        let end = (self.at as usize).wrapping_add((self.len as usize).div_ceil(8));
        let bytes = cell.get(at..end)?;
        Some(match bytes.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        })
    }
}

fn words(len: usize) -> usize {
    len.div_ceil(WORD_BITS)
}
