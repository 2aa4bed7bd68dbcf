//! Columns: the states of consecutive slots.
//!
//! The slots are split by what their states carry: nothing (absent, null, booleans), a number,
//! or bytes. Each part holds its slots densely, so that a column of one kind costs what its
//! values cost, and a slot finds its place in its part by a bitmap with counts: reads stay O(1)
//! in columns of any mixture. In a part a tag says which state it is; decimals of one scale
//! share a tag.

mod builder;
mod encoded;
mod search;
mod single;
mod split;
mod stretch;
pub(super) mod tag;
mod view;

use std::sync::OnceLock;

use bytes::Bytes;

use super::integers::Integers;
use super::packed_keys::{self, PACKED};
use super::reader::{Parsed, Reader, corrupt, unreadable};
use super::summary::Summary;
use super::tags::Tags;
use super::texts::Texts;
use crate::error::{Error, ErrorKind, Result};
use crate::state::Datum;
pub(crate) use builder::{ColumnBuilder, Sizes};
pub(crate) use encoded::Encoded;
use split::{Sides, Split};
pub(crate) use stretch::Stretch;

/// Columns shorter than this store no summary: reading the values is as quick.
const SUMMARY_SLOTS_MIN: usize = 32;

pub(super) const SLOTS_WIDTH: u8 = 0b11;
const HAS_BARE: u8 = 1 << 2;
const HAS_NUMBERS: u8 = 1 << 3;
pub(super) const HAS_TEXTS: u8 = 1 << 4;
const HAS_COUNTS: u8 = 1 << 5;
const HAS_SUMMARY: u8 = 1 << 6;

/// A view of an encoded column.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    cell: Bytes,
    len: u32,
    summary_at: Option<u32>,
    /// Per slot, whether it carries something.
    carrying: Split,
    /// Per carrying slot, whether it carries bytes.
    textual: Split,
    bare: Option<Tags>,
    numbers: Option<Numbers>,
    texts: Option<Strings>,
    /// Whether codes into distinct strings are all of strings that there are, once that was asked.
    are_codes_known: OnceLock<bool>,
}

#[derive(Debug, Clone, Copy)]
struct Numbers {
    tags: Tags,
    values: Integers,
    /// The counts of extents, if there are any.
    counts: Option<Integers>,
}

#[derive(Debug, Clone, Copy)]
struct Strings {
    tags: Tags,
    values: Texts,
}

impl Column {
    /// Reads the headers of an encoded column, which fills `cell`.
    #[inline]
    pub(crate) fn parse(cell: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&cell)?;
        let (head, len) = parse_head(&mut reader)?;
        if head & PACKED != 0 {
            return Self::parse(packed_keys::unpack(reader, (head, len))?);
        }
        let has = |part: u8| head & part != 0;
        let mut summary_at = None;
        if has(HAS_SUMMARY) {
            let summary_len = usize::from(reader.u8()?);
            summary_at = Some(reader.skip(summary_len)?);
        }
        let sides = Sides { clear: has(HAS_BARE), set: has(HAS_NUMBERS | HAS_TEXTS) };
        let (carrying, bare_len, carrying_len) = Split::parse(&mut reader, len, sides)?;
        let sides = Sides { clear: has(HAS_NUMBERS), set: has(HAS_TEXTS) };
        let (textual, numbers_len, texts_len) = Split::parse(&mut reader, carrying_len, sides)?;
        let mut column = Self {
            len: u32::try_from(len).unwrap_or(u32::MAX),
            summary_at,
            carrying,
            textual,
            bare: None,
            numbers: None,
            texts: None,
            are_codes_known: OnceLock::new(),
            cell: Bytes::new(),
        };
        if has(HAS_BARE) {
            column.bare = Some(Tags::parse(&mut reader, bare_len)?);
        }
        if has(HAS_NUMBERS) {
            column.numbers = Some(Numbers::parse(&mut reader, numbers_len, has(HAS_COUNTS))?);
        }
        if has(HAS_TEXTS) {
            column.texts = Some(Strings::parse(&mut reader, texts_len)?);
        }
        reader.finish()?;
        column.cell = cell;
        Ok(column)
    }

    /// How many slots an encoded column has, read from its head alone.
    pub(crate) fn count(cell: &[u8]) -> Result<usize> {
        Ok(parse_head(&mut Reader::new(cell)?)?.1)
    }

    /// Its vectors of integers.
    pub(super) fn integers(&self) -> impl Iterator<Item = &Integers> {
        let numbers = self.numbers.iter();
        let numbers =
            numbers.flat_map(|numbers| std::iter::once(&numbers.values).chain(&numbers.counts));
        numbers.chain(self.texts.iter().flat_map(|texts| texts.values.integers()))
    }

    /// Bytes of its cell, unpacked.
    pub(crate) fn cell_bytes(&self) -> usize {
        self.cell.len()
    }

    /// Whether it has strings that are kept as codes into distinct ones.
    pub(crate) fn is_coded(&self) -> bool {
        self.texts.as_ref().is_some_and(|texts| texts.values.is_coded())
    }

    /// How many slots.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// The state of slot `slot`.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Result<Datum<'_>> {
        self.read(slot).ok_or_else(|| unreadable(slot, self.len(), "slot"))
    }

    /// The states of all slots in order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Result<Datum<'_>>> + Clone {
        (0..self.len()).map(|slot| self.get(slot))
    }

    /// Refuses a column of which a slot does not decode, or whose summary is not its values'.
    pub(crate) fn check(&self) -> Result<()> {
        let datums = self.iter().collect::<Result<Vec<_>>>()?;
        let (expected, found) = (Summary::of(datums.into_iter()), self.summary()?);
        if expected == found {
            return Ok(());
        }
        let message = format!("the summary of a column: expected {expected:?}, found {found:?}");
        Err(Error::new(ErrorKind::Corrupt, message))
    }

    /// Count, least, greatest and sum of the integers and decimals; `None` if there are none or
    /// 128 bits do not hold the sum. Costs the same for every length.
    pub(crate) fn summary(&self) -> Result<Option<Summary>> {
        if let Some(at) = self.summary_at {
            return Ok(Some(Summary::parse(&mut Reader::resume(&self.cell, at))?));
        }
        if self.len() < SUMMARY_SLOTS_MIN {
            let datums = self.iter().collect::<Result<Vec<_>>>()?;
            return Ok(Summary::of(datums.into_iter()));
        }
        let Some((values, scale)) = self.only_numbers() else { return Ok(None) };
        let Some((first, step)) = values.line() else { return Ok(None) };
        let count = u16::try_from(self.len()).unwrap_or(u16::MAX);
        Ok(Summary::of_line(first, step, count, scale))
    }

    /// The values and the scale if every slot is an integer (scale 0) or a decimal of one scale.
    fn only_numbers(&self) -> Option<(&Integers, u8)> {
        let numbers = self.numbers.as_ref().filter(|numbers| numbers.values.len() == self.len())?;
        Some((&numbers.values, tag::scale(numbers.tags.constant()?)?))
    }

    #[expect(
        clippy::inline_always,
        reason = "a state copied from call to call, not built where it is returned, triples a read"
    )]
    #[inline(always)]
    fn read(&self, slot: usize) -> Option<Datum<'_>> {
        let cell = self.cell.as_ref();
        let carrying = self.carrying.place(cell, slot)?;
        if !carrying.set {
            return tag::bare(self.bare.as_ref()?.get(cell, carrying.before)?);
        }
        let textual = self.textual.place(cell, carrying.before)?;
        let at = textual.before;
        if textual.set {
            let texts = self.texts.as_ref()?;
            return tag::text(texts.tags.get(cell, at)?, texts.values.get(cell, at)?);
        }
        let numbers = self.numbers.as_ref()?;
        let count = || numbers.counts.as_ref()?.get(cell, at);
        tag::number(numbers.tags.get(cell, at)?, numbers.values.get(cell, at)?, count)
    }
}

impl Numbers {
    #[inline]
    fn parse(reader: &mut Reader<'_>, len: usize, has_counts: bool) -> Parsed<Self> {
        let tags = Tags::parse(reader, len)?;
        let values = Integers::parse(reader, len)?;
        let counts = if has_counts { Some(Integers::parse(reader, len)?) } else { None };
        Ok(Self { tags, values, counts })
    }
}

impl Strings {
    #[inline]
    fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        Ok(Self { tags: Tags::parse(reader, len)?, values: Texts::parse(reader, len)? })
    }
}

/// Appends the head of a column of so many slots.
pub(super) fn put_head(parts: u8, len: usize, out: &mut Vec<u8>) {
    match u8::try_from(len) {
        Ok(1) => out.push(parts),
        Ok(len) => out.extend([parts | 1, len]),
        Err(_) => {
            out.push(parts | 2);
            out.extend(u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
        }
    }
}

#[inline]
pub(super) fn parse_head(reader: &mut Reader<'_>) -> Parsed<(u8, usize)> {
    let head = reader.u8()?;
    let len = match head & SLOTS_WIDTH {
        0 => 1,
        1 => usize::from(reader.u8()?),
        2 => usize::from(reader.u16()?),
        _ => return Err(corrupt(0, "no such width of a number of slots")),
    };
    let empty = head & (HAS_BARE | HAS_NUMBERS | HAS_TEXTS) == 0;
    if head & PACKED == 0 && (len == 0) != empty {
        return Err(corrupt(0, "no such head of a column"));
    }
    Ok((head, len))
}

/// Appends the encoding of the states of consecutive slots.
///
/// # Panics
/// If there are more than 65,535.
pub(crate) fn encode_column(datums: &[Datum<'_>], out: &mut Vec<u8>) {
    let mut column = ColumnBuilder::default();
    for datum in datums {
        column.push(*datum);
    }
    column.encode(out);
}
