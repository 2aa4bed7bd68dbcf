//! The quality of points: one byte each, with the meaning that OPC gives its two high bits.

use std::fmt;
use std::ops::Range;

use super::values::is_full;

/// How far a value can be trusted: the two high bits say it, the six low ones are the writer's.
///
/// ```
/// use duramen::Quality;
///
/// assert!(Quality::default().is_good());
/// assert!(Quality(0b1100_0011).is_good());
/// assert_eq!(Quality(0b0100_0001).to_string(), "uncertain 1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quality(pub u8);

impl Quality {
    /// The value is what was measured.
    pub const GOOD: Self = Self(192);
    /// The value may be off.
    pub const UNCERTAIN: Self = Self(64);
    /// The value says nothing of what was measured.
    pub const BAD: Self = Self(0);
    /// There is no value: what stands in its place means nothing.
    pub const INVALID: Self = Self(128);

    /// The two high bits alone: one of the constants.
    pub fn major(self) -> Self {
        Self(self.0 & 0b1100_0000)
    }

    /// The one that a value has which is made of two: that of less worth, in the order good,
    /// uncertain, bad, invalid. Of two with the same high bits it is the lesser byte.
    ///
    /// ```
    /// use duramen::Quality;
    ///
    /// assert_eq!(Quality::UNCERTAIN.worse(Quality::INVALID), Quality::INVALID);
    /// assert_eq!(Quality::BAD.worse(Quality::GOOD), Quality::BAD);
    /// ```
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        // The high bits do not rise with the worth: without any value there is less than a bad one.
        let worth = |quality: Self| match quality.major() {
            Self::GOOD => 3,
            Self::UNCERTAIN => 2,
            Self::BAD => 1,
            _ => 0,
        };
        if (worth(other), other) < (worth(self), self) { other } else { self }
    }

    /// Whether the value is what was measured.
    pub fn is_good(self) -> bool {
        self.0 >= Self::GOOD.0
    }
}

impl Default for Quality {
    fn default() -> Self {
        Self::GOOD
    }
}

/// `good`, `uncertain`, `bad` or `invalid`, and the six low bits as a number unless they are zero.
impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.major() {
            Self::GOOD => "good",
            Self::UNCERTAIN => "uncertain",
            Self::BAD => "bad",
            _ => "invalid",
        })?;
        match self.0 & 0b0011_1111 {
            0 => Ok(()),
            low => write!(f, " {low}"),
        }
    }
}

/// The qualities of points: most often one for all.
#[derive(Debug, Clone)]
pub enum Qualities {
    /// Every point has this one.
    All(Quality),
    /// One for each point.
    Each(Vec<Quality>),
}

impl Qualities {
    /// The quality of point `index`. Beyond the last point it is of no meaning.
    #[inline]
    pub fn get(&self, index: usize) -> Quality {
        match self {
            Self::All(quality) => *quality,
            Self::Each(all) => all.get(index).copied().unwrap_or(Quality::INVALID),
        }
    }

    /// Whether nearly all that is reserved for them is used.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::All(_) => true,
            Self::Each(each) => is_full(each),
        }
    }

    /// Appends `count` times the same to those of `len` points.
    #[inline]
    pub(crate) fn extend(&mut self, len: usize, quality: Quality, count: usize) {
        match self {
            Self::All(all) if len == 0 || *all == quality => *all = quality,
            Self::All(all) => {
                let mut each = vec![*all; len];
                each.resize(len.saturating_add(count), quality);
                *self = Self::Each(each);
            }
            Self::Each(each) => each.resize(each.len().saturating_add(count), quality),
        }
    }

    /// Appends those of a range of `other` to those of `len` points.
    pub(super) fn append(&mut self, len: usize, other: &Self, range: Range<usize>) {
        match other {
            Self::All(quality) => self.extend(len, *quality, range.len()),
            Self::Each(more) => {
                let more = more.get(range).unwrap_or_default();
                match (&mut *self, more.split_first()) {
                    (_, None) => {}
                    (Self::All(all), Some((first, rest)))
                        if (len == 0 || all == first) && rest.iter().all(|one| one == first) =>
                    {
                        *all = *first;
                    }
                    (Self::All(all), Some(_)) => {
                        let mut each = vec![*all; len];
                        each.extend_from_slice(more);
                        *self = Self::Each(each);
                    }
                    (Self::Each(each), Some(_)) => each.extend_from_slice(more),
                }
            }
        }
    }

    /// Drops those of the first `count` points.
    pub(super) fn drop_first(&mut self, count: usize) {
        if let Self::Each(each) = self {
            each.drain(..count);
        }
    }

    /// Keeps those of the first `len` points.
    pub(super) fn truncate(&mut self, len: usize) {
        if let Self::Each(each) = self {
            each.truncate(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualities_read_as_opc_has_them() {
        let cases = [
            (0, "bad"),
            (5, "bad 5"),
            (64, "uncertain"),
            (128, "invalid"),
            (192, "good"),
            (255, "good 63"),
        ];
        for (byte, text) in cases {
            assert_eq!(Quality(byte).to_string(), text);
            assert_eq!(Quality(byte).is_good(), text.starts_with("good"));
        }
    }

    /// The lesser byte was taken for the worse one, and invalid values were uncertain.
    #[test]
    fn the_worse_of_two_qualities_is_that_of_less_worth() {
        let falling = [
            Quality(200),
            Quality::GOOD,
            Quality(70),
            Quality::UNCERTAIN,
            Quality(9),
            Quality::BAD,
        ];
        let falling = [&falling[..], &[Quality(130), Quality::INVALID]].concat();
        for (at, better) in falling.iter().enumerate() {
            for worse in &falling[at..] {
                assert_eq!((better.worse(*worse), worse.worse(*better)), (*worse, *worse));
            }
        }
    }

    #[test]
    fn qualities_stay_one_for_all_while_they_are_alike() {
        let mut all = Qualities::All(Quality::GOOD);
        all.extend(0, Quality::BAD, 2);
        all.append(2, &Qualities::Each(vec![Quality::GOOD, Quality::BAD]), 1..2);
        assert!(matches!(all, Qualities::All(Quality::BAD)), "{all:?}");
        all.append(3, &Qualities::All(Quality::GOOD), 0..1);
        let read: Vec<_> = (0..5).map(|index| all.get(index).0).collect();
        assert_eq!(read, [0, 0, 0, 192, 128]);
        all.truncate(1);
        assert_eq!(all.get(1), Quality::INVALID);
    }
}
