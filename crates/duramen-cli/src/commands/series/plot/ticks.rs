//! Where the axes of a picture are marked, and with what.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::curve::Axis;

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Steps between a second and a day that people read times by.
const STEPS: [i64; 16] = [
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
];
/// A value with more characters has an exponent instead.
const VALUE_LEN_MAX: usize = 20;

/// The axis from left to right, with its marks.
#[derive(Debug)]
pub(super) struct Ticks {
    axis: Axis,
    first: i64,
    last: i64,
    step: i64,
    places: Vec<i64>,
}

impl Ticks {
    /// At most so many marks between two places, at round numbers or times.
    pub(super) fn new(axis: Axis, (first, last): (i64, i64), most: usize) -> Self {
        let fits =
            |step: &i64| last.div_euclid(*step).abs_diff(first.div_euclid(*step)) <= most as u64;
        let step = steps(axis).find(fits).unwrap_or(i64::MAX);
        let after = |place: &i64| place.checked_add(step);
        let start = first.div_euclid(step).checked_add(i64::from(first.rem_euclid(step) > 0));
        let start = start.and_then(|steps| steps.checked_mul(step));
        let places = std::iter::successors(start, after).take_while(|place| *place <= last);
        Self { axis, first, last, step, places: places.collect() }
    }

    /// What stands at a mark: a time as exactly as the step between them is.
    fn label(&self, place: i64) -> String {
        let text = self.axis.label(duramen::Micros(place));
        if self.axis == Axis::Number {
            return text;
        }
        let shown = match self.step {
            step if step % DAY == 0 => "2024-05-01".len(),
            step if step % MINUTE == 0 => "2024-05-01T12:30".len(),
            step if step % SECOND == 0 => "2024-05-01T12:30:00".len(),
            _ => text.len(),
        };
        // Years of other lengths, and what no calendar reaches, are shown whole.
        let has_year = text.find('-') == Some("2024".len());
        let shown = text.get(..shown).filter(|_| has_year).unwrap_or(&text);
        shown.trim_end_matches('Z').replace('T', " ")
    }
}

impl Ranged for Ticks {
    type FormatOption = NoDefaultFormatting;
    type ValueType = i64;

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "a place in a picture is no exact time"
    )]
    fn map(&self, place: &i64, (left, right): (i32, i32)) -> i32 {
        let span = self.last.abs_diff(self.first).max(1) as f64;
        let share = place.saturating_sub(self.first) as f64 / span;
        left + (share * f64::from(right - left)) as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<i64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.places.clone() }
    }

    fn range(&self) -> Range<i64> {
        self.first..self.last
    }
}

impl ValueFormatter<i64> for Ticks {
    fn format(place: &i64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &i64) -> String {
        self.label(*place)
    }
}

/// What may be between two marks, rising.
fn steps(axis: Axis) -> impl Iterator<Item = i64> {
    let (below, times, above) = match axis {
        Axis::Time => (SECOND, &STEPS[..], DAY),
        Axis::Number => (i64::MAX, &[][..], i64::MAX),
    };
    let below = round(1).take_while(move |step| *step < below);
    below.chain(times.iter().copied()).chain(round(above))
}

/// 1, 2, 5, 10 and so on times a unit.
fn round(unit: i64) -> impl Iterator<Item = i64> {
    let tens = std::iter::successors(Some(unit), |ten| ten.checked_mul(10));
    tens.flat_map(|ten| [1, 2, 5].into_iter().filter_map(move |by| ten.checked_mul(by)))
}

/// A value as exactly as it is told from others on an axis of some length.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is 0 to 12")]
pub(super) fn value_label(value: f64, span: f64) -> String {
    let places = (2.0 - span.log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.places$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text.len() <= VALUE_LEN_MAX { text.to_owned() } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moment::parse_time;

    fn labels(axis: Axis, first: i64, last: i64) -> Vec<String> {
        let ticks = Ticks::new(axis, (first, last), 5);
        ticks.places.iter().map(|place| ticks.label(*place)).collect()
    }

    #[test]
    fn marks_are_at_round_times_and_say_no_more_than_these() {
        let time = |text| parse_time(text).unwrap().0;
        let between = |first, last| labels(Axis::Time, time(first), time(last));
        assert_eq!(
            between("2024-05-01T07:00:00Z", "2024-05-09T07:00:00Z"),
            ["2024-05-03", "2024-05-05", "2024-05-07", "2024-05-09"]
        );
        assert_eq!(
            between("2024-05-01T23:10:00Z", "2024-05-02T01:10:00Z"),
            ["2024-05-01 23:30", "2024-05-02 00:00", "2024-05-02 00:30", "2024-05-02 01:00"]
        );
        assert_eq!(
            between("2024-05-01T00:00:00.000001Z", "2024-05-01T00:00:00.000004Z"),
            [
                "2024-05-01 00:00:00.000001",
                "2024-05-01 00:00:00.000002",
                "2024-05-01 00:00:00.000003",
                "2024-05-01 00:00:00.000004"
            ]
        );
        assert_eq!(labels(Axis::Number, -7, 12), ["-5", "0", "5", "10"]);
        assert_eq!(labels(Axis::Number, 3, 3), ["3"]);
        for axis in [Axis::Time, Axis::Number] {
            let all = Ticks::new(axis, (i64::MIN / 4, i64::MAX / 4), 5);
            assert!((2..=6).contains(&all.places.len()), "{all:?}");
            assert!(Ticks::new(axis, (i64::MIN, i64::MAX), 5).places.len() <= 6);
        }
    }

    #[test]
    fn values_have_the_places_that_tell_them_apart() {
        assert_eq!(value_label(123_456_789_012.0, 200_000.0), "123456789012");
        assert_eq!(value_label(20.5, 10.0), "20.5");
        assert_eq!(value_label(0.000_25, 0.001), "0.00025");
        assert_eq!(value_label(-1e300, 1e300), "-1e300");
        assert_eq!(value_label(0.0, 0.0), "0");
    }
}
