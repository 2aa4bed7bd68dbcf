//! Runs of equal values: how many, how long they are, and what is in them.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use super::Density;
use crate::error::Result;
use crate::wire::Reader;

/// Values below which runs are not looked for.
const LEN_MIN: usize = 4;
/// Values in which runs are counted before it is looked at whether they are too many.
const COUNTED: usize = 64;

/// Which encodings of a column come into question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alternatives {
    /// Only that by runs.
    Runs,
    /// Only that of each value.
    Apart,
    /// Whichever is shorter.
    Both,
}

/// Those for `runs` runs in `len` values. While the data are hot, time counts more than bytes.
pub(super) fn alternatives(len: usize, runs: usize, density: Density) -> Alternatives {
    let at_most = |part: usize| runs.saturating_mul(part) <= len;
    if len >= LEN_MIN && at_most(16) {
        Alternatives::Runs
    } else if len >= LEN_MIN && at_most(2) && density == Density::Sealed {
        Alternatives::Both
    } else {
        Alternatives::Apart
    }
}

impl Alternatives {
    /// Appends what comes into question, by the writer of runs or by that of each value.
    pub(super) fn shortest(
        self,
        out: &mut Vec<u8>,
        runs: &mut dyn FnMut(&mut Vec<u8>),
        apart: &mut dyn FnMut(&mut Vec<u8>),
    ) {
        match self {
            Self::Runs => runs(out),
            Self::Apart => apart(out),
            Self::Both => {
                let start = out.len();
                apart(out);
                let mut other = Vec::new();
                runs(&mut other);
                if other.len() < out.len().saturating_sub(start) {
                    out.truncate(start);
                    out.extend_from_slice(&other);
                }
            }
        }
    }
}

/// How many runs of equal values there are; where they do not come into question, at least as
/// many as that takes.
pub(super) fn count<T>(
    values: &[T],
    density: Density,
    alike: impl Fn(&T, &T) -> bool + Copy,
) -> usize {
    let most = match density {
        Density::Sealed => values.len() / 2,
        Density::Hot => values.len() / 16,
    };
    let mut runs = usize::from(!values.is_empty());
    for start in (0..values.len()).step_by(COUNTED) {
        let these = values.get(start..).unwrap_or_default();
        let rest = values.get(start.saturating_add(1)..).unwrap_or_default();
        let changes = these.iter().zip(rest).take(COUNTED);
        let changes = changes.map(|(one, two)| usize::from(!alike(one, two)));
        runs = runs.saturating_add(changes.fold(0, usize::wrapping_add));
        if runs > most {
            break;
        }
    }
    runs
}

/// How long the runs are, and the first value of each.
pub(super) fn of<T: Copy>(
    values: &[T],
    runs: usize,
    alike: impl Fn(&T, &T) -> bool,
) -> (Vec<i64>, Vec<T>) {
    let (mut lengths, mut firsts) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    for run in values.chunk_by(alike) {
        lengths.push((run.len() as u64).cast_signed());
        firsts.extend(run.first());
    }
    (lengths, firsts)
}

/// How many runs `len` values have.
pub(super) fn read_count(reader: &mut Reader<'_>, len: usize) -> Result<usize> {
    let runs = reader.varint()?;
    match usize::try_from(runs) {
        Ok(runs) if runs <= len => Ok(runs),
        _ => Err(reader.corrupt("there are more runs than values")),
    }
}

/// Gives the first value of each run with the places it is at. The lengths are those of `len`
/// values.
pub(super) fn expand<T>(
    reader: &Reader<'_>,
    (lengths, len): (&[i64], usize),
    firsts: &[T],
    take: &mut dyn FnMut(&T, Range<usize>),
) -> Result<()> {
    let mut start = 0_usize;
    for (length, first) in lengths.iter().zip(firsts) {
        let end = usize::try_from(*length).ok().and_then(|length| start.checked_add(length));
        let Some(end) = end.filter(|end| *end <= len) else {
            return Err(reader.corrupt("runs are longer than their column"));
        };
        take(first, start..end);
        start = end;
    }
    if start < len {
        return Err(reader.corrupt("runs are shorter than their column"));
    }
    Ok(())
}
