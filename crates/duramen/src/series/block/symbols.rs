//! Integers that, or whose differences, have few values: a symbol for each, the rare ones apart.
//!
//! Pco puts rare numbers into one bin with others, and then reads bits behind the symbol of each
//! number, which is half of its work. Without the rare ones there are none behind any, at hardly
//! more bytes (benchmark T4).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use super::Density;
use super::dense::{self, Order, PAGE, READ};
use super::integers::{SYMBOLS, Span, decode_apart, encode_apart, inside};
use super::sums::{Narrow, Take};
use crate::error::Result;
use crate::wire::{Reader, put_signed, put_varint};

/// Integers below which there are too few to tell what is rare.
const LEN_MIN: usize = 2_048;
/// A residual is rare if fewer than one in so many are like it.
const RARE_SHARE: usize = 512;
/// At most one in so many residuals is rare.
const RARE_MAX: usize = 64;

/// An integer as wide as the differences of a column from its least; sums wrap around.
trait Wrapping: Narrow + Default {
    fn of(bits: u64) -> Self;
    fn plus(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($type:ty)*) => {$(
        impl Wrapping for $type {
            #[inline]
            #[allow(clippy::cast_possible_truncation, reason = "it wraps around")]
            fn of(bits: u64) -> Self {
                bits as Self
            }

            #[inline]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

wrapping!(u16 u32 u64);

/// Which residuals have a symbol: those that are not rare.
struct Symbols {
    /// The least of them, which is symbol 0.
    low: i64,
    /// The commonest.
    common: i64,
    /// By symbol.
    is_kept: Vec<bool>,
}

/// Appends integers. False, and nothing of use appended, if too many residuals are rare, or bits
/// stay behind the symbols all the same.
pub(super) fn encode(values: &[i64], span: Span, order: Order, out: &mut Vec<u8>) -> bool {
    let residuals = residuals(values, span.least, order);
    let Some(known) = Symbols::of(&residuals) else { return false };
    let first = (order == Order::First).then_some(known.common);
    let (mut places, mut rare) = (Vec::new(), Vec::new());
    let mut symbols = Vec::with_capacity(values.len());
    for (place, residual) in (0_i64..).zip(first.into_iter().chain(residuals)) {
        let symbol = known.symbol(residual).or_else(|| {
            places.push(place);
            rare.push(residual);
            known.symbol(known.common)
        });
        symbols.extend(symbol);
    }
    put_signed(out, span.least);
    out.push(span.width);
    out.push(u8::from(order == Order::First));
    put_signed(out, known.low);
    put_varint(out, places.len() as u64);
    if !places.is_empty() {
        encode_apart(&places, Density::Sealed, out);
        encode_apart(&rare, Density::Sealed, out);
    }
    if order == Order::First {
        let mut before = values.first().map_or(0, |first| first.wrapping_sub(known.common));
        for page in values.chunks(PAGE) {
            put_varint(out, span.above(before));
            before = page.last().copied().unwrap_or(before);
        }
    }
    dense::compress_symbols(&symbols, out)
}

/// The integers above the least, or the differences of neighbours, of which the first has none.
fn residuals(values: &[i64], least: i64, order: Order) -> Vec<i64> {
    match order {
        Order::None => values.iter().map(|value| value.wrapping_sub(least)).collect(),
        Order::First => {
            let rest = values.get(1..).unwrap_or_default();
            values.iter().zip(rest).map(|(one, two)| two.wrapping_sub(*one)).collect()
        }
    }
}

impl Symbols {
    /// None if the residuals are few, too many of them are rare, or the others are far apart.
    fn of(residuals: &[i64]) -> Option<Self> {
        if residuals.len() < LEN_MIN {
            return None;
        }
        let mut sorted = residuals.to_vec();
        sorted.sort_unstable();
        let often = residuals.len().div_ceil(RARE_SHARE);
        let kept = || sorted.chunk_by(|one, two| one == two).filter(|run| run.len() >= often);
        let numbers = kept().map(<[i64]>::len).fold(0, usize::saturating_add);
        if residuals.len().saturating_sub(numbers) > residuals.len().div_ceil(RARE_MAX) {
            return None;
        }
        let common = *kept().max_by_key(|run| run.len())?.first()?;
        let (low, high) = (*kept().next()?.first()?, *kept().next_back()?.first()?);
        let last = usize::from(u16::try_from(i128::from(high).checked_sub(low.into())?).ok()?);
        let mut symbols = Self { low, common, is_kept: vec![false; last.saturating_add(1)] };
        for residual in kept().filter_map(|run| run.first()) {
            let place = symbols.place(*residual);
            *place.and_then(|place| symbols.is_kept.get_mut(place))? = true;
        }
        Some(symbols)
    }

    fn place(&self, residual: i64) -> Option<usize> {
        usize::try_from(residual.checked_sub(self.low)?).ok()
    }

    /// The symbol of a residual; none if it is rare.
    fn symbol(&self, residual: i64) -> Option<u16> {
        let place = self.place(residual)?;
        let is_kept = self.is_kept.get(place).copied().unwrap_or(false);
        u16::try_from(place).ok().filter(|_| is_kept)
    }
}

/// Decodes `len` integers and gives those of a range to `to`.
pub(super) fn decompress(
    reader: &mut Reader<'_>,
    len: usize,
    range: Range<usize>,
    to: &mut impl Take,
) -> Result<()> {
    let least = reader.signed()?;
    match reader.byte()? {
        2 => Column::<u16>::read(reader, len, least)?.take(reader, len, range, to),
        4 => Column::<u32>::read(reader, len, least)?.take(reader, len, range, to),
        8 => Column::<u64>::read(reader, len, least)?.take(reader, len, range, to),
        _ => Err(reader.corrupt("integers of symbols have 2, 4 or 8 bytes")),
    }
}

/// What stands before the symbols.
struct Column<T> {
    least: i64,
    order: Order,
    /// What symbol 0 is.
    low: T,
    /// The places of the rare residuals, rising, and these.
    rare: Vec<(usize, T)>,
    /// What is before each page, if the residuals are differences.
    before: Vec<T>,
}

impl<T: Wrapping> Column<T> {
    fn read(reader: &mut Reader<'_>, len: usize, least: i64) -> Result<Self> {
        let order = match reader.byte()? {
            0 => Order::None,
            1 => Order::First,
            _ => return Err(reader.corrupt("there is no such order of symbols")),
        };
        let low = T::of(reader.signed()?.cast_unsigned());
        let rare = rare(reader, len)?;
        let mut before = Vec::new();
        if order == Order::First {
            before.reserve(len.div_ceil(PAGE));
            for _ in 0..len.div_ceil(PAGE) {
                before.push(T::of(reader.varint()?));
            }
        }
        Ok(Self { least, order, low, rare, before })
    }

    /// Gives the integers of a range.
    fn take(
        &self,
        reader: &mut Reader<'_>,
        len: usize,
        range: Range<usize>,
        to: &mut impl Take,
    ) -> Result<()> {
        // Differences are added up from the begin of a page on.
        let from = (range.start / PAGE).saturating_mul(PAGE);
        let mut rare = self.rare.iter().skip_while(|(place, _)| *place < from).peekable();
        let mut start = from;
        let mut integers = [T::default(); READ];
        let mut sum = T::default();
        dense::decompress::<u16>(reader, len, from..range.end, &mut |symbols| {
            let end = start.saturating_add(symbols.len());
            for (to, symbol) in integers.iter_mut().zip(symbols) {
                *to = T::of(u64::from(*symbol)).plus(self.low);
            }
            while let Some((place, residual)) = rare.next_if(|(place, _)| *place < end) {
                let at = place.checked_sub(start);
                if let Some(to) = at.and_then(|at| integers.get_mut(at)) {
                    *to = *residual;
                }
            }
            if self.order == Order::First {
                if start.is_multiple_of(PAGE) {
                    sum = self.before.get(start / PAGE).copied().unwrap_or_default();
                }
                sum = add_up(sum, integers.get_mut(..symbols.len()).unwrap_or_default());
            }
            to.take(self.least, inside(&integers, start, symbols.len(), &range));
            start = end;
        })
    }
}

/// Makes of differences what they lead to from `sum` on; the last of it.
fn add_up<T: Wrapping>(mut sum: T, differences: &mut [T]) -> T {
    for to in differences {
        sum = sum.plus(*to);
        *to = sum;
    }
    sum
}

/// The places of the rare residuals of `len`, rising, and these.
fn rare<T: Wrapping>(reader: &mut Reader<'_>, len: usize) -> Result<Vec<(usize, T)>> {
    let count = usize::try_from(reader.varint()?).ok().filter(|count| *count <= len);
    let Some(count) = count else {
        return Err(reader.corrupt("there are more rare residuals than integers"));
    };
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut list = || {
        if reader.clone().byte()? == SYMBOLS {
            return Err(reader.corrupt("rare residuals are symbols"));
        }
        decode_apart(reader, count)
    };
    let (places, residuals) = (list()?, list()?);
    let places: Option<Vec<_>> = places.iter().map(|place| usize::try_from(*place).ok()).collect();
    let places = places.filter(|places| places.is_sorted_by(|one, two| one < two));
    let places = places.filter(|places| places.last().is_some_and(|last| *last < len));
    let Some(places) = places else {
        return Err(reader.corrupt("rare residuals are not in the order of their places"));
    };
    let residuals = residuals.iter().map(|residual| T::of(residual.cast_unsigned()));
    Ok(places.into_iter().zip(residuals).collect())
}
