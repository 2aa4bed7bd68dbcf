//! Columns of text: the distinct texts and codes into them, or each text.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::{Density, integers};
use crate::error::Result;
use crate::limits::SERIES_BLOCK_TEXT_BYTES_MAX;
use crate::series::Texts;
use crate::wire::{Reader, put_bytes, put_varint};

/// Each text.
const PLAIN: u8 = 0;
/// Distinct texts, and which of them each is.
const DICTIONARY: u8 = 1;

/// The bytes of the texts one after the other.
const RAW: u8 = 0;
/// The same, compressed by Zstandard.
const ZSTD: u8 = 1;
const ZSTD_LEVEL: i32 = 3;

/// Appends the encoding of a range of texts, whose number the owner keeps.
pub(super) fn encode(texts: &Texts, range: Range<usize>, density: Density, out: &mut Vec<u8>) {
    let all = range.filter_map(|index| texts.get(index)).collect::<Vec<_>>();
    let mut known = FxHashMap::default();
    let mut distinct = Vec::new();
    let codes = all.iter().map(|text| {
        *known.entry(*text).or_insert_with(|| {
            distinct.push(*text);
            (distinct.len() as u64).cast_signed().saturating_sub(1)
        })
    });
    let codes: Vec<i64> = codes.collect();
    if distinct.len() <= all.len().wrapping_div(2) {
        out.push(DICTIONARY);
        put_varint(out, distinct.len() as u64);
        encode_each(&distinct, density, out);
        integers::encode(&codes, density, out);
    } else {
        out.push(PLAIN);
        encode_each(&all, density, out);
    }
}

fn encode_each(texts: &[&str], density: Density, out: &mut Vec<u8>) {
    let lengths = texts.iter().map(|text| (text.len() as u64).cast_signed());
    integers::encode(&lengths.collect::<Vec<_>>(), density, out);
    let bytes = texts.concat();
    if density == Density::Sealed
        && let Ok(short) = zstd::bulk::compress(bytes.as_bytes(), ZSTD_LEVEL)
        && short.len() < bytes.len()
    {
        out.push(ZSTD);
        return put_bytes(out, &short);
    }
    out.push(RAW);
    out.extend_from_slice(bytes.as_bytes());
}

/// Appends those of a range of `len` texts to `out`.
pub(super) fn decode(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    out: &mut Texts,
) -> Result<()> {
    match reader.byte()? {
        PLAIN => {
            let texts = decode_each(reader, len)?;
            out.append(&texts, range);
            Ok(())
        }
        DICTIONARY => {
            let distinct = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
            if distinct > len {
                return Err(reader.corrupt("there are more distinct texts than texts"));
            }
            let texts = decode_each(reader, distinct)?;
            let mut codes = Vec::with_capacity(range.len());
            integers::decode(reader, len, range, &mut |some| codes.extend_from_slice(some))?;
            let mut left = SERIES_BLOCK_TEXT_BYTES_MAX;
            for code in codes {
                let text = usize::try_from(code).ok().and_then(|code| texts.get(code));
                let Some(text) = text else {
                    return Err(reader.corrupt("a text is none of the distinct ones"));
                };
                let Some(after) = left.checked_sub(text.len()) else {
                    return Err(too_long(reader));
                };
                left = after;
                out.push(text);
            }
            Ok(())
        }
        _ => Err(reader.corrupt("there is no such form of text")),
    }
}

fn decode_each(reader: &mut Reader<'_>, len: usize) -> Result<Texts> {
    let mut lengths = Vec::with_capacity(len);
    integers::decode(reader, len, 0..len, &mut |some| lengths.extend_from_slice(some))?;
    let add = |sum: usize, length: &i64| sum.checked_add(usize::try_from(*length).ok()?);
    let total = lengths.iter().try_fold(0, add).unwrap_or(usize::MAX);
    if total > SERIES_BLOCK_TEXT_BYTES_MAX {
        return Err(too_long(reader));
    }
    let inflated;
    let bytes = match reader.byte()? {
        RAW => reader.take(total)?,
        ZSTD => {
            let short = reader.bytes()?;
            let Ok(bytes) = zstd::bulk::decompress(short, total) else {
                return Err(reader.corrupt("compressed text does not decode"));
            };
            inflated = bytes;
            &inflated
        }
        _ => return Err(reader.corrupt("there is no such form of bytes")),
    };
    let mut rest = match std::str::from_utf8(bytes) {
        Ok(text) if text.len() == total => text,
        _ => return Err(reader.corrupt("text is not UTF-8 of its length")),
    };
    let mut texts = Texts::default();
    for length in lengths {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let Some((text, after)) = rest.split_at_checked(length) else {
            return Err(reader.corrupt("text ends inside a character"));
        };
        texts.push(text);
        rest = after;
    }
    Ok(texts)
}

fn too_long(reader: &Reader<'_>) -> crate::Error {
    reader.corrupt("a block has more text than it may")
}
