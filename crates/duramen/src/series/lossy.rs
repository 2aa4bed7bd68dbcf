//! What a series gives up of its values, if it is told to: less is stored, within what was
//! promised.

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Tape, TapeIndex};
use crate::series::definition::number;
use crate::series::points::Points;
use crate::series::thinning::Thinning;
use crate::series::value::ValueType;
use crate::series::values::Values;

/// Steps of a quantised range, at most: as many as 16 bits can number.
const STEPS_MAX: f64 = 65_535.0;

/// What of the points that are appended to a series is stored. The catalogue says it; points that
/// were appended before stay as they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lossy {
    /// Of points that become one commit those go that the others tell within a tolerance, beside
    /// those that are stored by then.
    Thinned(Thinning),
    /// Values in a range are rounded to the next of at most 65,536 steps of equal width, 1, 2 or 5
    /// times a power of ten; so they are off by half a step at most ([`Lossy::step`]). Those out of
    /// the range are stored as they are.
    Quantised {
        /// Where the range begins.
        low: f64,
        /// Where it ends.
        high: f64,
    },
}

impl Lossy {
    /// The width of the steps that values are rounded to; none if they are not rounded.
    ///
    /// ```
    /// assert_eq!(duramen::Lossy::Quantised { low: 0.0, high: 120.0 }.step(), Some(0.002));
    /// ```
    pub fn step(&self) -> Option<f64> {
        let Self::Quantised { low, high } = self else { return None };
        let least = (high - low) / STEPS_MAX;
        let power = least.log10().floor();
        let steps = [1.0, 2.0, 5.0, 10.0].map(|part| decimal(part, power));
        steps.into_iter().find(|step| *step >= least)
    }

    /// What is stored of points that are appended together.
    ///
    /// # Errors
    /// `Invalid` if they are not of type f64, or nothing can be done so.
    pub fn of(&self, points: &Points) -> Result<Points> {
        self.check(points.value_type())?;
        match self {
            Self::Thinned(thinning) => thinning.of(&risen(points)),
            Self::Quantised { .. } => self.quantised(points),
        }
    }

    fn quantised(&self, points: &Points) -> Result<Points> {
        let (times, values, qualities) = points.clone().into_columns();
        let (Values::F64(mut values), Self::Quantised { low, high }, Some(step)) =
            (values, *self, self.step())
        else {
            return Ok(points.clone());
        };
        // Below one a power of ten is exact as a divisor, and its inverse is not.
        let (factor, divisor) = if step < 1.0 { (1.0, (1.0 / step).round()) } else { (step, 1.0) };
        for value in &mut values {
            let rounded = (*value / factor * divisor).round() / divisor * factor;
            let is_near = (rounded - *value).abs() <= step * 0.5;
            if (low..=high).contains(value) && is_near {
                *value = rounded;
            }
        }
        Points::from_columns(times, Values::F64(values), qualities)
    }

    /// Refuses what cannot be done with values of a type.
    pub(super) fn check(&self, value_type: ValueType) -> Result<()> {
        let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
        if value_type != ValueType::F64 {
            return invalid(format!(
                "values of type {value_type} are stored as they are: only those of f64 are thinned \
                 or quantised"
            ));
        }
        match self {
            Self::Thinned(thinning) => thinning.of(&Points::new(value_type)).map(drop),
            Self::Quantised { low, high } => {
                let is_range = low.is_finite() && high.is_finite() && low < high;
                let is_counted = is_range
                    && (high - low).is_finite()
                    && self.step().is_some_and(|step| step.is_normal() && 1.0 / step < 1e300);
                if is_counted {
                    return Ok(());
                }
                invalid(format!("the range {low} to {high} to quantise: use a rising, finite one"))
            }
        }
    }

    pub(super) fn to_json(self) -> String {
        let thinned = |kind: &str, tolerance: f64, gap: Option<i64>| {
            let gap = gap.map_or(String::new(), |gap| format!(",\"gap\":{gap}"));
            format!("\"lossy\":{{\"kind\":\"{kind}\",\"tolerance\":{tolerance}{gap}}}")
        };
        match self {
            Self::Thinned(Thinning::SwingingDoor { tolerance, gap_us }) => {
                thinned("door", tolerance, gap_us)
            }
            Self::Thinned(Thinning::DeadBand { band, gap_us }) => thinned("band", band, gap_us),
            Self::Quantised { low, high } => {
                format!("\"lossy\":{{\"kind\":\"steps\",\"low\":{low},\"high\":{high}}}")
            }
        }
    }

    pub(super) fn from_tape(tape: &Tape<'_>, at: TapeIndex) -> Option<Self> {
        let member = |name| number::<f64>(tape, tape.child(at, name)?);
        let gap_us = tape.child(at, "gap").and_then(|gap| number(tape, gap));
        let kind = tape.item(tape.child(at, "kind")?).text()?;
        Some(match kind {
            "door" => {
                let tolerance = member("tolerance")?;
                Self::Thinned(Thinning::SwingingDoor { tolerance, gap_us })
            }
            "band" => {
                let band = member("tolerance")?;
                Self::Thinned(Thinning::DeadBand { band, gap_us })
            }
            "steps" => Self::Quantised { low: member("low")?, high: member("high")? },
            _ => return None,
        })
    }
}

/// `part` times ten to a power, as near as a float is.
fn decimal(part: f64, power: f64) -> f64 {
    if power < 0.0 { part / 10_f64.powf(-power) } else { part * 10_f64.powf(power) }
}

/// The points in the order of their times; of several of one time the last one given.
fn risen(points: &Points) -> Points {
    let times = points.times();
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|at| times[*at]);
    let mut last: Vec<usize> = Vec::with_capacity(order.len());
    for at in order {
        match last.last_mut() {
            Some(before) if times[*before] == times[at] => *before = at,
            _ => last.push(at),
        }
    }
    let mut risen = points.clone();
    risen.permute(&last);
    risen
}

#[cfg(test)]
mod tests;
