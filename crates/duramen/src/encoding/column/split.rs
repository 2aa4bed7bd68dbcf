//! A division of slots into two sides, each of which is stored densely.

use crate::encoding::bits::{Bits, Rank};
use crate::encoding::reader::{Parsed, Reader, corrupt};

/// Which sides of a division have slots at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    pub(super) clear: bool,
    pub(super) set: bool,
}

/// A division of slots. Where all are on one side it stores nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    bits: Option<Bits>,
    all_set: bool,
}

impl Split {
    /// Appends the division of slots by `bits`.
    pub(super) fn encode(bits: &[bool], out: &mut Vec<u8>) {
        if bits.contains(&true) && bits.contains(&false) {
            Bits::encode(bits, out);
        }
    }

    /// Reads the division of `len` slots; gives it with the slots on the clear and the set side.
    #[inline]
    pub(super) fn parse(
        reader: &mut Reader<'_>,
        len: usize,
        sides: Sides,
    ) -> Parsed<(Self, usize, usize)> {
        let one_sided = Self { bits: None, all_set: sides.set };
        match (sides.clear, sides.set) {
            (true, true) => {}
            (false, true) => return Ok((one_sided, 0, len)),
            (_, false) => return Ok((one_sided, len, 0)),
        }
        let start = reader.position();
        let bits = Bits::parse(reader, len)?;
        let set = bits.count(reader.cell()).filter(|set| *set <= len);
        let set = set.ok_or_else(|| corrupt(start, "a bitmap counts more bits than it has"))?;
        Ok((Self { bits: Some(bits), all_set: false }, len.saturating_sub(set), set))
    }

    /// The side of slot `index` and its place there.
    #[inline]
    pub(super) fn place(&self, cell: &[u8], index: usize) -> Option<Rank> {
        match &self.bits {
            None => Some(Rank { set: self.all_set, before: index }),
            Some(bits) => bits.rank(cell, index),
        }
    }
}
