//! Vectors of byte strings: one for all, ends and bytes, or codes into distinct strings.

use std::ops::Range;

use memchr::memmem::Finder;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::integers::{Integers, Values, unsigned_width};
use super::reader::{Parsed, Reader, corrupt};

const CONSTANT: u8 = 0;
const PLAIN: u8 = 1;
const DICTIONARY: u8 = 2;

/// Where a vector of byte strings lies in its cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Texts {
    len: u32,
    bytes_at: u32,
    form: Form,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Constant { bytes: u32 },
    Plain { ends: Integers },
    Dictionary { codes: Integers, ends: Integers },
}

/// A vector of byte strings for many reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextValues<'a> {
    /// Which string each is, if they are kept so.
    codes: Option<Values<'a>>,
    ends: Values<'a>,
    bytes: &'a [u8],
}

/// Byte strings that stand one behind the other, and where each ends.
#[derive(Debug)]
pub(super) struct Joined<'a> {
    bytes: &'a [u8],
    /// Rising.
    ends: Vec<usize>,
}

impl Texts {
    /// Appends the encoding of `texts`, whose number the owner keeps.
    pub(crate) fn encode(texts: &[&[u8]], out: &mut Vec<u8>) {
        if let Some((first, rest)) = texts.split_first()
            && rest.iter().all(|text| text == first)
        {
            out.push(CONSTANT);
            Integers::encode(&[length(first.len())], out);
            return out.extend_from_slice(first);
        }
        let shorter = |distinct: &Distinct<'_>| distinct.bytes() < plain_bytes(texts);
        if let Some(distinct) = distinct(texts).filter(shorter) {
            out.push(DICTIONARY);
            Integers::encode(&[length(distinct.texts.len())], out);
            Integers::encode(&distinct.codes, out);
            return encode_plain(&distinct.texts, out);
        }
        out.push(PLAIN);
        encode_plain(texts, out);
    }

    /// Appends the encoding of strings of `each` bytes, which stand one behind the other.
    pub(super) fn encode_alike((texts, each): (&[u8], usize), out: &mut Vec<u8>) {
        out.push(PLAIN);
        let starts = (0..texts.len()).step_by(each.max(1));
        let ends: Vec<i64> = starts.map(|start| length(start.saturating_add(each))).collect();
        Integers::encode(&ends, out);
        out.extend_from_slice(texts);
    }

    /// Reads the headers of a vector of `len` strings and passes over the rest.
    #[inline]
    pub(crate) fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        let start = reader.position();
        let form = match reader.u8()? {
            CONSTANT => {
                let bytes = parse_length(reader)?;
                Form::Constant { bytes: u32::try_from(bytes).unwrap_or(u32::MAX) }
            }
            PLAIN => Form::Plain { ends: Integers::parse(reader, len)? },
            DICTIONARY => {
                let distinct = parse_length(reader)?;
                let codes = Integers::parse(reader, len)?;
                Form::Dictionary { codes, ends: Integers::parse(reader, distinct)? }
            }
            _ => return Err(corrupt(start, "no such form of strings")),
        };
        let bytes = match &form {
            Form::Constant { bytes } => Some(*bytes as usize),
            Form::Plain { ends } | Form::Dictionary { ends, .. } => ends.total(reader.cell()),
        };
        let bytes = bytes.ok_or_else(|| corrupt(start, "strings end before they begin"))?;
        let bytes_at = reader.skip(bytes)?;
        let len = u32::try_from(len).map_err(|_| corrupt(start, "too many strings"))?;
        Ok(Self { len, bytes_at, form })
    }

    /// The string of an encoded vector of one; none if it is kept as one of several is, or more
    /// bytes follow.
    #[inline]
    pub(super) fn single(bytes: &[u8]) -> Option<&[u8]> {
        let [CONSTANT, rest @ ..] = bytes else { return None };
        let (len, text) = Integers::single(rest)?;
        (usize::try_from(len) == Ok(text.len())).then_some(text)
    }

    /// Its codes and ends.
    pub(super) fn integers(&self) -> impl Iterator<Item = &Integers> {
        let (codes, ends) = match &self.form {
            Form::Constant { .. } => (None, None),
            Form::Plain { ends } => (None, Some(ends)),
            Form::Dictionary { codes, ends } => (Some(codes), Some(ends)),
        };
        codes.into_iter().chain(ends)
    }

    /// Whether they are codes into distinct strings.
    pub(super) fn is_coded(&self) -> bool {
        matches!(self.form, Form::Dictionary { .. })
    }

    /// How many strings.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// String `index`, or `None` beyond the end and where the cell is damaged.
    #[inline]
    pub(crate) fn get<'a>(&self, cell: &'a [u8], index: usize) -> Option<&'a [u8]> {
        let span = match &self.form {
            Form::Constant { bytes } => (index < self.len()).then_some(0..*bytes as usize)?,
            Form::Plain { ends } => ends.span(cell, index)?,
            Form::Dictionary { codes, ends } => ends.span(cell, codes.get_index(cell, index)?)?,
        };
        let at = self.bytes_at as usize;
        cell.get(at.checked_add(span.start)?..at.checked_add(span.end)?)
    }

    /// The vector for many reads, unless there is one string for all.
    pub(super) fn values<'a>(&self, cell: &'a [u8]) -> Option<TextValues<'a>> {
        let (codes, ends) = match &self.form {
            Form::Constant { .. } => return None,
            Form::Plain { ends } => (None, ends),
            Form::Dictionary { codes, ends } => (Some(codes.values(cell)), ends),
        };
        let bytes = cell.get(self.bytes_at as usize..)?;
        Some(TextValues { codes, ends: ends.values(cell), bytes })
    }

    /// The bytes of all strings one behind the other, if they are kept one by one. They may be
    /// fewer where the cell is damaged.
    pub(super) fn joined_bytes<'a>(&self, cell: &'a [u8]) -> Option<&'a [u8]> {
        let Form::Plain { ends } = &self.form else { return None };
        cell.get(self.bytes_at as usize..)?.get(..ends.total(cell)?)
    }

    /// All strings as they stand, if they are kept one by one and the cell is not damaged.
    pub(super) fn joined<'a>(&self, cell: &'a [u8]) -> Option<Joined<'a>> {
        let Form::Plain { ends } = &self.form else { return None };
        let mut decoded = Vec::with_capacity(self.len());
        let is_whole = ends.values(cell).each(0..self.len(), |end| {
            usize::try_from(end).is_ok_and(|end| {
                let is_rising = decoded.last().is_none_or(|last| *last <= end);
                decoded.push(end);
                is_rising
            })
        });
        let bytes = cell.get(self.bytes_at as usize..)?;
        let bytes = bytes.get(..decoded.last().copied().unwrap_or_default())?;
        is_whole.then_some(Joined { bytes, ends: decoded })
    }

    /// The distinct strings and the vector of which each is, if they are kept so.
    pub(super) fn dictionary<'a>(&self, cell: &'a [u8]) -> Option<(Integers, Vec<&'a [u8]>)> {
        let Form::Dictionary { codes, ends } = &self.form else { return None };
        let bytes = cell.get(self.bytes_at as usize..)?;
        let (mut distinct, mut start) = (Vec::with_capacity(ends.len().min(self.len())), 0);
        for code in 0..ends.len() {
            let end = ends.get_index(cell, code)?;
            distinct.push(bytes.get(start..end)?);
            start = end;
        }
        Some((*codes, distinct))
    }

    /// The distinct strings and which of them each is, all codes in range, if they are kept so.
    pub(super) fn coded<'a>(&self, cell: &'a [u8]) -> Option<(Vec<i64>, Vec<&'a [u8]>)> {
        let (codes, distinct) = self.dictionary(cell)?;
        let mut decoded = Vec::with_capacity(self.len());
        codes.decode_into(cell, &mut decoded);
        let is_known = |code: &i64| usize::try_from(*code).is_ok_and(|code| code < distinct.len());
        let are_known = decoded.len() == self.len() && decoded.iter().all(is_known);
        are_known.then_some((decoded, distinct))
    }
}

impl<'a> TextValues<'a> {
    /// String `index`, or `None` beyond the end and where the cell is damaged.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&'a [u8]> {
        match &self.codes {
            None => self.text(index),
            Some(codes) => self.text(codes.get_index(index)?),
        }
    }

    fn text(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.start(index)?..self.ends.get_index(index)?)
    }

    fn start(&self, index: usize) -> Option<usize> {
        match index.checked_sub(1) {
            Some(before) => self.ends.get_index(before),
            None => Some(0),
        }
    }

    /// Gives the strings of a range in order until one is not taken. False then, and if one is not
    /// there.
    #[inline]
    pub(super) fn each(&self, range: Range<usize>, mut take: impl FnMut(&'a [u8]) -> bool) -> bool {
        if let Some(codes) = &self.codes {
            let text = |code| self.text(usize::try_from(code).ok()?);
            return codes.each(range, |code| text(code).is_some_and(&mut take));
        }
        let Some(mut start) = self.start(range.start) else { return false };
        self.ends.each(range, |end| {
            let end = usize::try_from(end).unwrap_or(usize::MAX);
            let text = self.bytes.get(std::mem::replace(&mut start, end)..end);
            text.is_some_and(&mut take)
        })
    }
}

impl Joined<'_> {
    /// Those that have a text in them, which is not empty: it is looked for in all at once.
    pub(super) fn with(&self, text: &Finder<'_>) -> impl Iterator<Item = usize> {
        let (mut begin, mut index) = (0_usize, 0_usize);
        std::iter::from_fn(move || {
            while let Some(found) = text.find(self.bytes.get(begin..)?) {
                let found = begin.saturating_add(found);
                let at = self.at(found, index);
                begin = *self.ends.get(at)?;
                index = at.saturating_add(1);
                // What two have together where they meet is in none of them.
                if found.saturating_add(text.needle().len()) <= begin {
                    return Some(at);
                }
            }
            None
        })
    }

    /// The string that has a byte; none before `from` has it, and most often one soon behind it.
    fn at(&self, byte: usize, from: usize) -> usize {
        let is_before = |end: &usize| *end <= byte;
        let rest = self.ends.get(from..).unwrap_or_default();
        let mut reach = 1_usize;
        while rest.get(reach).is_some_and(is_before) {
            reach = reach.saturating_mul(2);
        }
        let near = rest.get(..=reach).unwrap_or(rest);
        from.saturating_add(near.partition_point(is_before))
    }
}

/// A single count or length, in one to nine bytes.
fn parse_length(reader: &mut Reader<'_>) -> Parsed<usize> {
    let start = reader.position();
    let length = Integers::parse(reader, 1)?;
    length.get_index(reader.cell(), 0).ok_or_else(|| corrupt(start, "a negative length"))
}

fn length(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

fn encode_plain(texts: &[&[u8]], out: &mut Vec<u8>) {
    let ends = texts.iter().scan(0_usize, |end, text| {
        *end = end.saturating_add(text.len());
        Some(length(*end))
    });
    Integers::encode(&ends.collect::<Vec<_>>(), out);
    for text in texts {
        out.extend_from_slice(text);
    }
}

/// What `texts` take as ends and bytes, about.
fn plain_bytes(texts: &[&[u8]]) -> usize {
    let bytes = texts.iter().map(|text| text.len()).fold(0, usize::saturating_add);
    let width = usize::from(unsigned_width(bytes as u64));
    texts.len().saturating_mul(width).saturating_add(bytes)
}

/// Strings as codes.
struct Distinct<'a> {
    texts: Vec<&'a [u8]>,
    codes: Vec<i64>,
}

impl Distinct<'_> {
    fn bytes(&self) -> usize {
        let width = usize::from(unsigned_width(self.texts.len().saturating_sub(1) as u64));
        plain_bytes(&self.texts).saturating_add(self.codes.len().saturating_mul(width))
    }
}

/// The distinct strings as they appear, or `None` if more than half of them are distinct: then
/// codes save little and the look-ups of the rest would be wasted.
fn distinct<'a>(texts: &[&'a [u8]]) -> Option<Distinct<'a>> {
    let most = texts.len().div_ceil(2);
    // Room is made once: growing would take longer than all look-ups (benchmark B).
    let mut known = FxHashMap::with_capacity_and_hasher(most.saturating_add(1), FxBuildHasher);
    let mut recent = Recent::default();
    let mut found = Distinct { texts: Vec::new(), codes: Vec::with_capacity(texts.len()) };
    for text in texts {
        let code = recent.code(text, || {
            *known.entry(*text).or_insert_with(|| {
                found.texts.push(text);
                length(found.texts.len().saturating_sub(1))
            })
        });
        found.codes.push(code);
        if found.texts.len() > most {
            return None;
        }
    }
    Some(found)
}

/// Short strings that came before, with their codes, by what they hash to. Where few are distinct
/// they are short mostly, and come again soon (benchmark A0).
#[derive(Default)]
struct Recent([Option<(Short, i64)>; 32]);

/// A string of up to 8 bytes: its first and its last four, and how many it has; of up to 3 each.
type Short = (u32, u32, usize);

impl Recent {
    /// The code of a string, looked up with `find` if it is not here.
    #[inline]
    fn code(&mut self, text: &[u8], find: impl FnOnce() -> i64) -> i64 {
        let Some(short) = short(text) else { return find() };
        let mixed = (short.0 ^ short.1.rotate_left(16)).wrapping_mul(0x9e37_79b1);
        let Some(known) = self.0.get_mut((mixed >> 27) as usize) else { return find() };
        match known {
            Some((other, code)) if *other == short => *code,
            _ => {
                let code = find();
                *known = Some((short, code));
                code
            }
        }
    }
}

#[inline]
fn short(text: &[u8]) -> Option<Short> {
    if text.len() > 8 {
        return None;
    }
    if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        return Some((u32::from_le_bytes(*first), u32::from_le_bytes(*last), text.len()));
    }
    let [first, middle @ ..] = text else { return None };
    let (middle, last) = (middle.first().unwrap_or(first), text.last().unwrap_or(first));
    Some((u32::from_le_bytes([*first, *middle, *last, 0]), 0, text.len()))
}
