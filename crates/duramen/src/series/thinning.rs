//! Fewer points within a tolerance: only when it is asked for, and never beyond what was promised.

use super::interpolation::number_at;
use super::points::Points;
use super::quality::Quality;
use super::values::Values;
use crate::error::{Error, ErrorKind, Result};

/// How points are thinned out before they are appended.
///
/// The first and the last point stay, and so do all points whose quality differs from that of the
/// one before, the one before it, and what is not a finite number with its neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Thinning {
    /// Swinging door (Bristol, 1987): the straight lines between the points that stay are never
    /// further than the tolerance from any point that went.
    SwingingDoor {
        /// The greatest distance of a value from the line.
        tolerance: f64,
        /// Two points that stay are at most so many microseconds apart, if there are points there.
        gap_us: Option<i64>,
    },
    /// Dead band: a point goes while its value is within the band around the last that stayed. So
    /// a value that is read as it holds is never further off than the band.
    DeadBand {
        /// The greatest distance of a value from the last one that stayed.
        band: f64,
        /// Two points that stay are at most so many microseconds apart, if there are points there.
        gap_us: Option<i64>,
    },
}

impl Thinning {
    /// The points that stay of `points`, which rise by time. Only points of type f64 are thinned.
    ///
    /// ```
    /// use duramen::{Micros, Points, Quality, Thinning, ValueType};
    ///
    /// let mut points = Points::new(ValueType::F64);
    /// for (time, value) in [(0, 1.0), (1, 2.1), (2, 2.9), (3, 4.0), (4, 4.0)] {
    ///     points.push(Micros(time), value, Quality::GOOD)?;
    /// }
    /// let door = Thinning::SwingingDoor { tolerance: 0.25, gap_us: None };
    /// assert_eq!(door.of(&points)?.times(), [0, 3, 4]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Invalid` if the points have another type or do not rise, or the tolerance is not a number
    /// from zero on.
    pub fn of(&self, points: &Points) -> Result<Points> {
        self.apart(points, &[])
    }

    /// The same where other points are stored already: nothing goes because of a line or a band
    /// that they break. `cuts` are the places, rising, of the points that come next behind them.
    pub(super) fn apart(&self, points: &Points, cuts: &[usize]) -> Result<Points> {
        let (tolerance, gap) = match self {
            Self::SwingingDoor { tolerance, gap_us } => (*tolerance, *gap_us),
            Self::DeadBand { band, gap_us } => (*band, *gap_us),
        };
        if !(tolerance >= 0.0 && tolerance.is_finite()) {
            return invalid(format!("a tolerance of {tolerance}: use a number from 0 on"));
        }
        let Values::F64(values) = points.values() else {
            let found = points.value_type();
            return invalid(format!("points of type {found}: only those of f64 are thinned"));
        };
        if !points.times().is_sorted() {
            return invalid("points that do not rise by time: sort them first".to_owned());
        }
        let qualities = |index| points.qualities().get(index);
        let column = Column { times: points.times(), values, tolerance, gap };
        let mut kept = Points::new(points.value_type());
        let (mut start, mut cuts) = (0, cuts.iter().copied().peekable());
        while start < values.len() {
            while cuts.next_if(|cut| *cut <= start).is_some() {}
            let limit = cuts.peek().map_or(values.len(), |cut| values.len().min(*cut));
            let end = column.stretch_end((start, limit), &qualities);
            let stay = match self {
                Self::SwingingDoor { .. } => column.swinging_door(start, end),
                Self::DeadBand { .. } => column.dead_band(start, end),
            };
            for index in stay {
                kept.append(points, index..index + 1);
            }
            start = end;
        }
        Ok(kept)
    }
}

/// Points to be thinned.
struct Column<'a> {
    times: &'a [i64],
    values: &'a [f64],
    tolerance: f64,
    gap: Option<i64>,
}

impl Column<'_> {
    /// Where the points end that are thinned together, before a limit: finite, of one quality.
    fn stretch_end(
        &self,
        (start, limit): (usize, usize),
        quality: &impl Fn(usize) -> Quality,
    ) -> usize {
        if !self.values[start].is_finite() {
            return start + 1;
        }
        let alike =
            |index: &usize| self.values[*index].is_finite() && quality(*index) == quality(start);
        (start + 1..limit).find(|index| !alike(index)).unwrap_or(limit)
    }

    /// Whether a point has to stay for the one that stayed before it to be near enough.
    fn is_gap(&self, kept: usize, index: usize) -> bool {
        self.gap
            .is_some_and(|gap| self.times[index].abs_diff(self.times[kept]) > gap.unsigned_abs())
    }

    /// The points of a stretch that stay.
    fn swinging_door(&self, start: usize, end: usize) -> Vec<usize> {
        let mut stay = vec![start];
        let mut kept = start;
        while kept + 1 < end {
            kept = self.line_end(kept, end);
            stay.push(kept);
        }
        stay
    }

    /// Where the line ends that begins at a point that stays: it is allowed while it passes all
    /// points between its ends within the tolerance. Slopes tell how far that may be; then it is
    /// checked of the very line that will be read, so that rounding breaks no promise. A look at
    /// all points for each one would take the square of their number: a line is looked at whenever
    /// it is twice as long, so what is known to be allowed is half of what is looked at, at least.
    fn line_end(&self, kept: usize, end: usize) -> usize {
        let mut door = Door::open();
        let (mut allowed, mut reached) = (kept + 1, kept + 1);
        for index in kept + 1..end {
            let fits = self.times[index] > self.times[index - 1]
                && !self.is_gap(kept, index)
                && door.lets(self.slope(kept, index, 0.0));
            if index > kept + 1 && !fits {
                break;
            }
            reached = index;
            if (index - kept).is_power_of_two() {
                if !self.is_within(kept, index) {
                    break;
                }
                allowed = index;
            }
            let low = self.slope(kept, index, -self.tolerance);
            door.narrow(low, self.slope(kept, index, self.tolerance));
        }
        if self.is_within(kept, reached) {
            return reached;
        }
        while reached - allowed > 1 {
            let middle = allowed.midpoint(reached);
            if self.is_within(kept, middle) {
                allowed = middle;
            } else {
                reached = middle;
            }
        }
        allowed
    }

    fn dead_band(&self, start: usize, end: usize) -> Vec<usize> {
        let mut stay = vec![start];
        let mut kept = start;
        for index in start + 1..end {
            if kept + 1 < index && self.is_gap(kept, index) {
                kept = index - 1;
                stay.push(kept);
            }
            let off = (self.values[index] - self.values[kept]).abs();
            let is_last = index == end - 1;
            if off > self.tolerance || is_last || self.is_gap(kept, index) {
                stay.push(index);
                kept = index;
            }
        }
        stay
    }

    fn slope(&self, from: usize, to: usize, above: f64) -> f64 {
        let after = elapsed(self.times[from], self.times[to]);
        (self.values[to] + above - self.values[from]) / after
    }

    /// Whether all points between two are within the tolerance of the line.
    fn is_within(&self, from: usize, to: usize) -> bool {
        let (values, times) =
            ((self.values[from], self.values[to]), (self.times[from], self.times[to]));
        (from + 1..to).all(|index| {
            let off = number_at(values, times, self.times[index]) - self.values[index];
            off.abs() <= self.tolerance
        })
    }
}

/// The slopes that pass all points since the last one that stayed.
struct Door {
    low: f64,
    high: f64,
}

impl Door {
    fn open() -> Self {
        Self { low: f64::NEG_INFINITY, high: f64::INFINITY }
    }

    fn lets(&self, slope: f64) -> bool {
        self.low <= slope && slope <= self.high
    }

    fn narrow(&mut self, low: f64, high: f64) {
        self.low = self.low.max(low);
        self.high = self.high.min(high);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of a span is a float")]
fn elapsed(from: i64, to: i64) -> f64 {
    to.abs_diff(from) as f64
}

fn invalid<T>(what: String) -> Result<T> {
    Err(Error::new(ErrorKind::Invalid, what))
}

#[cfg(test)]
mod tests;
