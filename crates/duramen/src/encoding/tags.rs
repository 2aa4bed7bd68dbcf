//! Vectors of tags, one byte values of which a column has few distinct ones: the list of them
//! and a code of 0, 1, 2, 4 or 8 bits each.

use super::reader::{Parsed, Reader, corrupt};

/// Marks the last tag of the list, so that the list needs no length; tags are below it.
const LAST: u8 = 0x80;

/// Where a vector of tags lies in its cell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tags {
    list_at: u32,
    codes_at: u32,
    len: u32,
    distinct: u8,
    only: u8,
    code_bits: u8,
}

impl Tags {
    /// Appends the encoding of `tags`, all below 128 and at least one, whose number the owner
    /// keeps.
    pub(super) fn encode(tags: &[u8], out: &mut Vec<u8>) {
        let (list, codes) = distinct(tags);
        if let Some((last, before)) = list.split_last() {
            out.extend_from_slice(before);
            out.push(last | LAST);
        }
        let bits = code_bits(list.len());
        let Some(in_byte) = 8_u8.checked_div(bits) else { return };
        for group in tags.chunks(usize::from(in_byte)) {
            let code = |tag: &u8| codes.get(usize::from(*tag)).copied().unwrap_or_default();
            let byte = group.iter().rev().fold(0_u16, |byte, tag| byte << bits | code(tag));
            out.extend(byte.to_le_bytes().first());
        }
    }

    /// Reads the list and passes over the codes of `len` tags.
    #[inline]
    pub(super) fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        let list_at = reader.skip(0)?;
        let only = reader.u8()?;
        let mut distinct = 1_u8;
        let mut tag = only;
        while tag & LAST == 0 {
            tag = reader.u8()?;
            distinct = distinct
                .checked_add(1)
                .filter(|distinct| *distinct <= LAST)
                .ok_or_else(|| corrupt(reader.position(), "too many tags"))?;
        }
        let code_bits = code_bits(usize::from(distinct));
        let bytes = len.saturating_mul(usize::from(code_bits)).div_ceil(8);
        let codes_at = reader.skip(bytes)?;
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        Ok(Self { list_at, codes_at, len, distinct, only: only & !LAST, code_bits })
    }

    /// The tag of a list that has one, from its byte.
    #[inline]
    pub(super) fn single(byte: u8) -> Option<u8> {
        (byte & LAST != 0).then_some(byte & !LAST)
    }

    /// How many tags.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The tag of all, if they have one.
    pub(super) fn constant(&self) -> Option<u8> {
        (self.distinct == 1).then_some(self.only)
    }

    /// The tags there are.
    pub(super) fn distinct<'a>(&self, cell: &'a [u8]) -> impl Iterator<Item = u8> + use<'a> {
        let end = (self.list_at as usize).saturating_add(usize::from(self.distinct));
        let list = cell.get(self.list_at as usize..end).unwrap_or_default();
        list.iter().map(|tag| tag & !LAST)
    }

    /// The two tags there are and a bit of each for which it is, lowest first.
    pub(super) fn pair<'a>(&self, cell: &'a [u8]) -> Option<([u8; 2], &'a [u8])> {
        if self.code_bits != 1 {
            return None;
        }
        let [first, second, ..] = *cell.get(self.list_at as usize..)? else { return None };
        let end = (self.codes_at as usize).saturating_add(self.len().div_ceil(8));
        Some(([first & !LAST, second & !LAST], cell.get(self.codes_at as usize..end)?))
    }

    /// Tag `index`, or `None` beyond the end.
    #[inline]
    pub(super) fn get(&self, cell: &[u8], index: usize) -> Option<u8> {
        if index >= self.len() {
            return None;
        }
        if self.code_bits == 0 {
            return Some(self.only);
        }
        let bit = index.wrapping_mul(usize::from(self.code_bits));
        let byte = *cell.get((self.codes_at as usize).wrapping_add(bit / 8))?;
        let code = (byte >> (bit % 8)) & (0xff_u8 >> (8_u8.wrapping_sub(self.code_bits) & 7));
        if code >= self.distinct {
            return None;
        }
        let tag = cell.get((self.list_at as usize).wrapping_add(usize::from(code)))?;
        Some(tag & !LAST)
    }
}

/// The distinct tags as they appear, and the code of each tag.
fn distinct(tags: &[u8]) -> (Vec<u8>, [u16; LAST as usize]) {
    let mut list = Vec::new();
    let mut codes = [0; LAST as usize];
    if let Some(first) = tags.first()
        && tags.iter().fold(0, |other, tag| other | (tag ^ first)) == 0
    {
        list.push(*first);
        return (list, codes);
    }
    let mut seen = [false; LAST as usize];
    for tag in tags {
        let at = usize::from(*tag);
        if let (Some(seen @ false), Some(code)) = (seen.get_mut(at), codes.get_mut(at)) {
            *seen = true;
            *code = u16::try_from(list.len()).unwrap_or_default();
            list.push(*tag);
        }
    }
    (list, codes)
}

fn code_bits(distinct: usize) -> u8 {
    match distinct {
        0 | 1 => 0,
        2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}
