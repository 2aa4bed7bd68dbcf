//! Spans of time and windows in them, told apart from those that are tested.

use std::ops::Bound;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use jiff::tz::TimeZone;

use super::super::naive::{Part, Told};
use crate::{Micros, Windows};

/// Times from one on, this one included, up to another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: Option<i64>,
    pub(super) to: Option<i64>,
}

impl Span {
    pub(super) fn bounds(&self) -> (Bound<Micros>, Bound<Micros>) {
        let from = self.from.map_or(Bound::Unbounded, |from| Bound::Included(Micros(from)));
        (from, self.to.map_or(Bound::Unbounded, |to| Bound::Excluded(Micros(to))))
    }
}

/// The first and the last time of a span, and until when values hold in it: it reaches to the first
/// and the last point where it has no bound.
pub(super) fn spans_of(span: &Span, points: &[Told]) -> Option<(i64, i64, i64)> {
    let first = match span.from {
        Some(from) => from,
        None => points.first()?.0,
    };
    let (last, until) = match span.to {
        Some(to) => (to - 1, to),
        None => (points.last()?.0, points.last()?.0),
    };
    (first <= last).then_some((first, last, until))
}

/// Windows.
#[derive(Debug, Clone)]
pub(super) enum Kind {
    Fixed(i64),
    Whole,
    /// So many of a unit: `d`, `w`, `mo` or `y`.
    Calendar(i64, &'static str, &'static str),
}

impl Kind {
    pub(super) fn windows(&self) -> Windows {
        match self {
            Self::Fixed(width) => Windows::of_width(Micros(*width)).unwrap(),
            Self::Whole => Windows::whole(),
            Self::Calendar(count, unit, zone) => {
                Windows::parse(&format!("{count}{unit}"), zone).unwrap()
            }
        }
    }

    /// When the window begins that a time is in, and when the next one does.
    pub(super) fn around(&self, time: i64) -> (i64, i128) {
        match self {
            Self::Fixed(width) => {
                let start = i128::from(time.div_euclid(*width)) * i128::from(*width);
                let clamped = start.max(i64::MIN.into());
                (i64::try_from(clamped).unwrap(), start + i128::from(*width))
            }
            Self::Whole => (i64::MIN, i128::from(i64::MAX) + 1),
            Self::Calendar(count, unit, zone) => {
                let zone = TimeZone::get(zone).unwrap();
                let day = Timestamp::from_microsecond(time).unwrap().to_zoned(zone.clone()).date();
                let number = unit_of(day, unit).div_euclid(*count);
                let begins = |number: i64| {
                    let day = day_of(number * count, unit);
                    let midnight = day.to_zoned(zone.clone()).unwrap();
                    midnight.start_of_day().unwrap().timestamp().as_microsecond()
                };
                let found = (number - 1..=number + 1).rev().find(|one| begins(*one) <= time);
                let mut next = found.unwrap() + 1;
                // A day that was left out.
                while begins(next) <= time {
                    next += 1;
                }
                (begins(found.unwrap()), begins(next).into())
            }
        }
    }

    /// The windows of a span, as far as they are in it; none if there are too many.
    pub(super) fn parts(
        &self,
        (first, last, until): (i64, i64, i64),
        most: usize,
    ) -> Option<Vec<Part>> {
        let mut parts = Vec::new();
        let mut next = first;
        loop {
            let (start, end) = self.around(next);
            let within = i64::try_from(end - 1).unwrap_or(i64::MAX).min(last);
            let held = i64::try_from(end).unwrap_or(i64::MAX).min(until);
            parts.push(Part { start, first: next, last: within, until: held });
            if within == last {
                return Some(parts);
            }
            if parts.len() == most {
                return None;
            }
            next = within + 1;
        }
    }
}

fn unit_of(day: Date, unit: &str) -> i64 {
    let since = |from: Date| i64::from((day - from).get_days());
    let months = (i64::from(day.year()) - 1970) * 12 + i64::from(day.month()) - 1;
    match unit {
        "d" => since(date(1970, 1, 1)),
        "w" => since(date(1970, 1, 5)).div_euclid(7),
        "mo" => months,
        _ => months.div_euclid(12),
    }
}

fn day_of(number: i64, unit: &str) -> Date {
    let after = |from: Date, days: i64| from.checked_add(jiff::Span::new().days(days)).unwrap();
    let month = |months: i64| {
        let year = i16::try_from(1970 + months.div_euclid(12)).unwrap();
        date(year, i8::try_from(months.rem_euclid(12)).unwrap() + 1, 1)
    };
    match unit {
        "d" => after(date(1970, 1, 1), number),
        "w" => after(date(1970, 1, 5), number * 7),
        "mo" => month(number),
        _ => month(number * 12),
    }
}

/// The windows beside an edge in which a value may be, the nearest first: before it, up to the
/// edge, or behind it.
pub(super) fn beside<'a>(
    kind: &'a Kind,
    points: &'a [Told],
    (edge, falling): (i64, bool),
    counts: &'a dyn Fn(&Told) -> bool,
) -> Box<dyn Iterator<Item = Part> + 'a> {
    let part = move |time: i64| {
        let (start, end) = kind.around(time);
        // The last microsecond of all time may begin a window.
        let last = i64::try_from(end - 1).unwrap_or(i64::MAX);
        let end = i64::try_from(end).unwrap_or(i64::MAX);
        if falling {
            Part { start, first: start, last: last.min(edge - 1), until: end.min(edge) }
        } else {
            Part { start, first: start.max(edge + 1), last, until: end }
        }
    };
    let mut seen = None;
    let mut is_new = move |part: &Part| seen.replace(part.start) != Some(part.start);
    if falling {
        let before = points[..points.partition_point(|point| point.0 < edge)].iter().rev();
        let around = before.flat_map(|point| [Some(point.0), point.0.checked_sub(1)]).flatten();
        let first = edge.checked_sub(1).filter(|_| points.first().is_some_and(|one| one.0 < edge));
        Box::new(first.into_iter().chain(around).map(part).filter(move |part| is_new(part)))
    } else {
        let after = points[points.partition_point(|point| point.0 <= edge)..].iter();
        let after = after.filter(|point| counts(point)).map(|point| point.0);
        Box::new(after.map(part).filter(move |part| is_new(part)))
    }
}
