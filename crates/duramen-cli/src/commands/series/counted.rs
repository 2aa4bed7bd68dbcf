//! Times that are written as numbers, and what such a number probably means.

use duramen::{Error, ErrorKind, Micros, Result};
use jiff::civil::Date;

use crate::moment;

/// The years that a day in eight digits is of.
const YEARS: std::ops::RangeInclusive<i16> = 1900..=2099;

/// Refuses a number that is a year or a day, which nobody means as microseconds. `otherwise` says
/// how to give it where somebody does.
pub(super) fn check(text: &str, otherwise: &str) -> Result<()> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let day = match text.len() {
        _ if !is_number => return Ok(()),
        4 => format!("{text}-01-01"),
        8 => match text.parse::<Date>() {
            Ok(day) if YEARS.contains(&day.year()) => day.to_string(),
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let message = format!(
        "{text} alone would be {text} microseconds after 1970: write {day}, or {otherwise} if that \
         is meant"
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// What a number of microseconds would be as seconds or milliseconds, if these make a time of this
/// age of it.
pub(super) fn doubt(count: i64) -> Option<String> {
    let (unit, micros) = match count {
        1_000_000_000..10_000_000_000 => ("seconds", 1_000_000),
        1_000_000_000_000..10_000_000_000_000 => ("milliseconds", 1_000),
        _ => return None,
    };
    let (is, would_be) = (moment::format(Micros(count)), moment::format(Micros(count * micros)));
    Some(format!("{count} is read as microseconds, {is}: as {unit} it would be {would_be}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They were read as microseconds, which put the points of a year into the year 1970.
    #[test]
    fn years_and_days_in_digits_are_no_microseconds() {
        for (text, day) in [("2015", "2015-01-01"), ("20150228", "2015-02-28")] {
            let error = check(text, "15us").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(day) && error.message().contains("15us"), "{error}");
        }
        for text in
            ["", "0", "999", "soon", "0999", "-999", "10000", "20150230", "30150228", "201502281"]
        {
            check(text, "").unwrap();
        }
    }

    #[test]
    fn numbers_that_are_probably_of_another_unit_are_told() {
        let told = |count: i64, end: &str| doubt(count).is_some_and(|doubt| doubt.ends_with(end));
        assert!(told(1_714_521_600, "as seconds it would be 2024-05-01T00:00:00Z"));
        assert!(told(1_714_521_600_000, "as milliseconds it would be 2024-05-01T00:00:00Z"));
        for count in [0, -1_714_521_600, 1_714_521_600_000_000, i64::MAX, i64::MIN] {
            assert_eq!(doubt(count), None);
        }
    }
}
