//! Where a range was left.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::revision::{CommitSequence, Micros};

/// Where to go on with a range: as of which commit, over which times, and in which order. As text
/// it is one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesCursor {
    /// The commit that the range showed.
    pub sequence: CommitSequence,
    pub(super) first: Micros,
    pub(super) last: Micros,
    pub(super) reverse: bool,
}

impl SeriesCursor {
    /// Leaves behind what was read up to a time.
    pub(super) fn pass(&mut self, time: Option<i64>) {
        let Some(time) = time else { return };
        let next = if self.reverse { time.checked_sub(1) } else { time.checked_add(1) };
        match next {
            Some(next) if self.reverse => self.last = Micros(next),
            Some(next) => self.first = Micros(next),
            // Nothing is beyond the ends of time.
            None => (self.first, self.last) = (Micros(1), Micros(0)),
        }
    }
}

impl fmt::Display for SeriesCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.reverse { "r" } else { "f" };
        write!(f, "c{}{order}{}..{}", self.sequence.0, self.first.0, self.last.0)
    }
}

impl FromStr for SeriesCursor {
    type Err = Error;

    /// # Errors
    /// `Invalid` for text that no cursor is.
    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (sequence, rest) = text.strip_prefix('c')?.split_once(['f', 'r'])?;
            let (first, last) = rest.split_once("..")?;
            Some(Self {
                sequence: CommitSequence(sequence.parse().ok()?),
                first: Micros(first.parse().ok()?),
                last: Micros(last.parse().ok()?),
                reverse: text.contains('r'),
            })
        };
        parse().ok_or_else(|| {
            let message = format!("{text:?} is no cursor: take one that a range has given");
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        for reverse in [false, true] {
            let cursor = SeriesCursor {
                sequence: CommitSequence(u64::MAX),
                first: Micros(i64::MIN),
                last: Micros(-7),
                reverse,
            };
            assert_eq!(cursor.to_string().parse::<SeriesCursor>().unwrap(), cursor);
        }
        for text in ["", "c1", "c1f", "c1f2", "c1f2..", "1f2..3", "c1f2..3x", "cf2..3"] {
            assert_eq!(text.parse::<SeriesCursor>().unwrap_err().kind(), ErrorKind::Invalid);
        }
    }

    #[test]
    fn nothing_is_left_at_the_ends_of_time() {
        for (reverse, end) in [(false, i64::MAX), (true, i64::MIN)] {
            let (first, last) = (Micros(i64::MIN), Micros(i64::MAX));
            let mut cursor = SeriesCursor { sequence: CommitSequence(1), first, last, reverse };
            cursor.pass(Some(end));
            assert!(cursor.first > cursor.last);
        }
    }
}
