//! Aggregates over windows of time: what is asked for, and what comes out.
//!
//! Points stream through once, rising; only the window that is open is kept, and the results.

mod checking;
mod columns;
mod digest;
mod filling;
mod query;
mod rolled;
mod stream;
mod window;

use super::quality::Quality;
use super::value::{SeriesValue, ValueType};
use super::values::Values;
use super::windows::Windows;
use crate::error::{Error, ErrorKind, Result};

pub(crate) use stream::{Before, Stream};

/// What is computed of the points of a window.
///
/// Points that the quality filter leaves out do not count. Numbers are those that are not NaN;
/// false and true are 0 and 1, and text has no numbers. Without the points that it needs an
/// aggregate has no value.
#[derive(Debug, Clone, PartialEq)]
pub enum Aggregate {
    /// How many points.
    Count,
    /// The sum of the numbers, as a float. Integers and truth values are added without rounding,
    /// and what they come to is rounded once, to the nearest float: up to 2^53 it is exact. That of
    /// floats is infinite if it is more than a float can be. It does not matter what they come to
    /// on the way there, unless no more than a row of a rollup is left of them, and its sum is
    /// infinite or NaN.
    Sum,
    /// Their mean. It is finite if they are, with the same exception.
    Mean,
    /// Their mean, each weighted by the time that it held: up to the next point ([`Hold`]).
    TimeWeightedMean(Hold),
    /// The least number.
    Min,
    /// The greatest number.
    Max,
    /// The value of the first point.
    First,
    /// The value of the last point.
    Last,
    /// What the last number of the window is above the last one before it, however far back that
    /// is: also before the span, and before where it cuts the window. Only if there is none at all
    /// it is above the first one in the window. So the deltas of windows add up, and a window with
    /// one number has one, but a window without numbers has none.
    Delta,
    /// That per second of the time between the two; none where they are one.
    Rate,
    /// The standard deviation of the numbers as a sample (by n - 1). Where their sum, or that of
    /// the squares of their differences, is more than a float can be, it is infinite or NaN.
    StdDev,
    /// What this share of the numbers, 0 to 1, is up to, between two numbers on a straight line.
    /// Up to 4,096 numbers it is exact, of more by t-digest (Dunning, "Computing Extremely
    /// Accurate Quantiles Using t-Digests"). Infinities are the least and the greatest numbers; all
    /// that is between one of them and another number is infinite too.
    Percentile(f64),
    /// How many microseconds the value was this one, or the one of the series' type that is written
    /// the same way, each point holding up to the next one. Zeros of both signs are one value, and
    /// so is NaN.
    DurationIn(SeriesValue),
}

/// What holds between two points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hold {
    /// The value of the first of them.
    #[default]
    Step,
    /// The straight line between them.
    Linear,
}

/// What stands in windows that have no value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fill {
    /// Windows without points are left out, unless they are asked for the time that values held
    /// ([`Aggregate::TimeWeightedMean`], [`Aggregate::DurationIn`]) and one held in them: so
    /// durations of all rows add up.
    #[default]
    None,
    /// They are there without values.
    Null,
    /// The value of the last window before that has one. It may be before the span: then what was
    /// there is the same as in the middle of a longer one. For that the last point that counts is
    /// looked for, as [`SeriesSnapshot::value_at`](crate::SeriesSnapshot::value_at) does, and its
    /// window is read; of windows with points in which an aggregate has no value, up to 16.
    Previous,
    /// What is on the straight line between the windows before and after, from beginning to
    /// beginning; only of numbers. They may be before and behind the span, and are looked for in
    /// the same way.
    Linear,
    /// This number, rounded where numbers are integers.
    Value(f64),
}

/// Which points count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QualityFilter {
    /// Those of good quality.
    #[default]
    Good,
    /// Those of good or uncertain quality.
    Usable,
    /// All of them.
    All,
}

/// What is asked of the points of a span of time.
#[derive(Debug, Clone)]
pub struct AggregateOptions {
    /// What is computed, a column each.
    pub aggregates: Vec<Aggregate>,
    /// Over which windows.
    pub windows: Windows,
    /// What stands in windows that have no value.
    pub fill: Fill,
    /// Which points count.
    pub quality: QualityFilter,
}

/// A row for each window: when it begins, and what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowTable {
    /// When each window begins, in microseconds since the Unix epoch, UTC.
    pub starts: Vec<i64>,
    /// A column for each aggregate.
    pub columns: Vec<WindowColumn>,
}

/// One aggregate of all windows. Counts and durations are integers; least, greatest, first and
/// last have the type of the series; all else are floats.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowColumn {
    /// Its values.
    pub values: Values,
    /// Whether each window has none; what stands in its place then means nothing.
    pub nulls: Vec<bool>,
}

impl Aggregate {
    /// Whether the number of points and their sum tell it.
    fn is_sum(&self) -> bool {
        matches!(self, Self::Count | Self::Sum | Self::Mean)
    }

    /// Whether there are values of it in a series of a type.
    fn has_values_of(&self, value_type: ValueType) -> bool {
        value_type != ValueType::String
            || matches!(self, Self::First | Self::Last | Self::Count | Self::DurationIn(_))
    }

    /// Whether it compares numbers with the last one before a window.
    fn is_change(&self) -> bool {
        matches!(self, Self::Delta | Self::Rate)
    }

    /// Whether it weighs values by the time that they held.
    fn is_of_time(&self) -> bool {
        matches!(self, Self::TimeWeightedMean(_) | Self::DurationIn(_))
    }
}

impl QualityFilter {
    /// Whether a point of a quality counts.
    #[inline]
    pub fn takes(self, quality: Quality) -> bool {
        match self {
            Self::Good => quality.is_good(),
            Self::Usable => quality.is_good() || quality.major() == Quality::UNCERTAIN,
            Self::All => true,
        }
    }
}

impl WindowColumn {
    /// The value of window `index`, if it has one.
    pub fn get(&self, index: usize) -> Option<SeriesValue> {
        if self.nulls.get(index).copied().unwrap_or(true) { None } else { self.values.get(index) }
    }
}

impl AggregateOptions {
    /// Of points of good quality, windows without points left out.
    pub fn new(aggregates: Vec<Aggregate>, windows: Windows) -> Self {
        Self { aggregates, windows, fill: Fill::default(), quality: QualityFilter::default() }
    }

    /// Whether the points beside a span matter.
    fn needs_neighbours(&self) -> bool {
        self.aggregates.iter().any(|aggregate| aggregate.is_of_time() || aggregate.is_change())
    }

    fn check(&self) -> Result<()> {
        for aggregate in &self.aggregates {
            if let Aggregate::Percentile(share) = aggregate
                && !(0.0..=1.0).contains(share)
            {
                let what = format!("a percentile of {share}: use a share from 0 to 1");
                return Err(Error::new(ErrorKind::Invalid, what));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
