//! Tags: which state a slot has, apart from what the state carries.

#![expect(
    clippy::inline_always,
    reason = "a state copied from call to call, not built where it is returned, triples a read"
)]

use crate::limits::ORDINALS_MAX;
use crate::state::{
    ApartKind, BlobId, DECIMAL_SCALE_MAX, Datum, Extent, OrderId, Sequence, ShapeId,
};

const ABSENT: u8 = 0;
const NULL: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
pub(in crate::encoding) const INT: u8 = 8;
const FLOAT: u8 = 9;
const OBJECT: u8 = 10;
const ARRAY_EXTENT: u8 = 11;
const ARRAY_BLOCKS: u8 = 12;
const MAP_EXTENT: u8 = 13;
const MAP_BLOCKS: u8 = 14;
const APART_PLAIN_TEXT: u8 = 15;
const APART_TEXT: u8 = 16;
const APART_DIGITS: u8 = 17;
const APART_OPAQUE: u8 = 18;
const TEXT: u8 = 24;
pub(in crate::encoding) const PLAIN_TEXT: u8 = 25;
const DIGITS: u8 = 26;
const OPAQUE: u8 = 27;
/// Decimals have the tags from here on, by their scale.
const DECIMAL: u8 = 64;

const EXTENT_COUNT_END: i64 = 1 << 24;

/// What a state carries beside its tag.
#[derive(Debug, Clone, Copy)]
pub(super) enum Carried<'a> {
    Nothing,
    Number(i64),
    /// The first ordinal and the count.
    Extent(i64, i64),
    Bytes(&'a [u8]),
}

/// The tag of a state and what it carries.
///
/// # Panics
/// If a float is not finite, a decimal has more digits or an extent is longer than a state may
/// hold.
#[inline(always)]
pub(super) fn tag_of(datum: Datum<'_>) -> (u8, Carried<'_>) {
    match datum {
        Datum::Absent => (ABSENT, Carried::Nothing),
        Datum::Null => (NULL, Carried::Nothing),
        Datum::Bool(false) => (FALSE, Carried::Nothing),
        Datum::Bool(true) => (TRUE, Carried::Nothing),
        Datum::Int(value) => (INT, Carried::Number(value)),
        Datum::Decimal { mantissa, scale } => {
            assert!((1..=DECIMAL_SCALE_MAX).contains(&scale), "a decimal of scale {scale}");
            (DECIMAL | scale, Carried::Number(mantissa))
        }
        Datum::Float(value) => {
            assert!(value.is_finite(), "a float {value}");
            (FLOAT, Carried::Number(value.to_bits().cast_signed()))
        }
        Datum::Text { bytes, plain: false } => (TEXT, Carried::Bytes(bytes)),
        Datum::Text { bytes, plain: true } => (PLAIN_TEXT, Carried::Bytes(bytes)),
        Datum::Digits(bytes) => (DIGITS, Carried::Bytes(bytes)),
        Datum::Opaque(bytes) => (OPAQUE, Carried::Bytes(bytes)),
        Datum::Object(shape) => (OBJECT, Carried::Number(i64::from(shape.0))),
        Datum::Array(sequence) => sequence_tag(sequence, ARRAY_EXTENT, ARRAY_BLOCKS),
        Datum::Map(sequence) => sequence_tag(sequence, MAP_EXTENT, MAP_BLOCKS),
        Datum::Apart { blob, kind } => (apart_tag(kind), Carried::Number(blob.0.cast_signed())),
    }
}

fn sequence_tag(sequence: Sequence, extent_tag: u8, blocks_tag: u8) -> (u8, Carried<'static>) {
    match sequence {
        Sequence::Blocks(order) => (blocks_tag, Carried::Number(order.0.cast_signed())),
        Sequence::Extent(Extent { first, count }) => {
            let count = i64::from(count);
            assert!(first < ORDINALS_MAX && count < EXTENT_COUNT_END, "extent {first} {count}");
            (extent_tag, Carried::Extent(first.cast_signed(), count))
        }
    }
}

fn apart_tag(kind: ApartKind) -> u8 {
    match kind {
        ApartKind::PlainText => APART_PLAIN_TEXT,
        ApartKind::Text => APART_TEXT,
        ApartKind::Digits => APART_DIGITS,
        ApartKind::Opaque => APART_OPAQUE,
    }
}

/// The state with a tag that carries nothing.
#[inline(always)]
pub(super) fn bare(tag: u8) -> Option<Datum<'static>> {
    Some(match tag {
        ABSENT => Datum::Absent,
        NULL => Datum::Null,
        FALSE => Datum::Bool(false),
        TRUE => Datum::Bool(true),
        _ => return None,
    })
}

/// The state with a tag that carries the number `value`; of extents, the first ordinal, with
/// `count` to look up the rest.
#[inline(always)]
pub(super) fn number(
    tag: u8,
    value: i64,
    count: impl FnOnce() -> Option<i64>,
) -> Option<Datum<'static>> {
    let apart = |kind| Datum::Apart { blob: BlobId(value.cast_unsigned()), kind };
    let blocks = || Sequence::Blocks(OrderId(value.cast_unsigned()));
    Some(match tag {
        INT => Datum::Int(value),
        DECIMAL.. => Datum::Decimal { mantissa: value, scale: decimal_scale(tag)? },
        FLOAT => Datum::Float(finite(value)?),
        OBJECT => Datum::Object(ShapeId(u32::try_from(value).ok()?)),
        ARRAY_EXTENT => Datum::Array(Sequence::Extent(extent(value, count()?)?)),
        ARRAY_BLOCKS => Datum::Array(blocks()),
        MAP_EXTENT => Datum::Map(Sequence::Extent(extent(value, count()?)?)),
        MAP_BLOCKS => Datum::Map(blocks()),
        APART_PLAIN_TEXT => apart(ApartKind::PlainText),
        APART_TEXT => apart(ApartKind::Text),
        APART_DIGITS => apart(ApartKind::Digits),
        APART_OPAQUE => apart(ApartKind::Opaque),
        _ => return None,
    })
}

/// The state with a tag that carries `bytes`.
#[inline(always)]
pub(super) fn text(tag: u8, bytes: &[u8]) -> Option<Datum<'_>> {
    Some(match tag {
        TEXT => Datum::Text { bytes, plain: false },
        PLAIN_TEXT => Datum::Text { bytes, plain: true },
        DIGITS => Datum::Digits(bytes),
        OPAQUE => Datum::Opaque(bytes),
        _ => return None,
    })
}

/// A state with a tag; what it carries is nobody's.
pub(super) fn form(tag: u8) -> Option<Datum<'static>> {
    bare(tag).or_else(|| number(tag, 0, || Some(0))).or_else(|| text(tag, b""))
}

/// The extent of these numbers, if they are within its 40 and 24 bits.
#[inline(always)]
pub(in crate::encoding) fn extent(first: i64, count: i64) -> Option<Extent> {
    let first = u64::try_from(first).ok().filter(|first| *first < ORDINALS_MAX)?;
    let count = u32::try_from(count).ok().filter(|count| i64::from(*count) < EXTENT_COUNT_END)?;
    Some(Extent { first, count })
}

/// The scale of the integers (0) or decimals that have this tag.
pub(super) fn scale(tag: u8) -> Option<u8> {
    match tag {
        INT => Some(0),
        DECIMAL.. => decimal_scale(tag),
        _ => None,
    }
}

/// Whether states with this tag, which is no extent's, may have children.
pub(super) fn is_container(tag: u8) -> bool {
    matches!(tag, OBJECT | ARRAY_BLOCKS | MAP_BLOCKS)
}

/// Whether states with this tag stand elsewhere; with the mark of the last one in a list or not.
pub(super) fn is_apart(tag: u8) -> bool {
    matches!(tag & 0x7f, APART_PLAIN_TEXT | APART_TEXT | APART_DIGITS | APART_OPAQUE)
}

/// Whether a slot with this tag carries something.
#[inline]
pub(super) fn is_carrying(tag: u8) -> bool {
    tag >= INT
}

/// Whether what it carries is bytes.
#[inline]
pub(super) fn is_textual(tag: u8) -> bool {
    (TEXT..=OPAQUE).contains(&tag)
}

/// Whether the state is a number that is neither an integer nor a decimal.
pub(super) fn is_other_number(tag: u8) -> bool {
    matches!(tag, FLOAT | DIGITS | APART_DIGITS)
}

#[inline(always)]
fn decimal_scale(tag: u8) -> Option<u8> {
    tag.checked_sub(DECIMAL).filter(|scale| (1..=DECIMAL_SCALE_MAX).contains(scale))
}

/// The float of these bits; infinities and the like are no JSON numbers.
#[inline(always)]
fn finite(bits: i64) -> Option<f64> {
    Some(f64::from_bits(bits.cast_unsigned())).filter(|value| value.is_finite())
}
