//! Times that are written as numbers, and what such a number is probably meant as.

use duramen::Micros;
use jiff::civil::Date;

use crate::moment;

/// The years that a number is of, and the days.
const YEARS: std::ops::RangeInclusive<i64> = 1900..=2099;
const DAYS: std::ops::RangeInclusive<i64> = 19_000_101..=20_991_231;

/// What a number of microseconds would be as a year, a day, or seconds or milliseconds, if these
/// make a time of this age of it.
pub(super) fn doubt(count: i64) -> Option<String> {
    let time = |unit: i64| moment::format(Micros(count.saturating_mul(unit)));
    let otherwise = match count {
        _ if YEARS.contains(&count) => format!("the year is {count}-01-01"),
        _ if DAYS.contains(&count) => {
            format!("the day is {}", count.to_string().parse::<Date>().ok()?)
        }
        1_000_000_000..10_000_000_000 => format!("as seconds it would be {}", time(1_000_000)),
        1_000_000_000_000..10_000_000_000_000 => {
            format!("as milliseconds it would be {}", time(1_000))
        }
        _ => return None,
    };
    Some(format!("{count} is read as microseconds, {}: {otherwise}", time(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_probably_no_microseconds_are_told() {
        for (count, end) in [
            (2015, "1970-01-01T00:00:00.002015Z: the year is 2015-01-01"),
            (20_150_228, "1970-01-01T00:00:20.150228Z: the day is 2015-02-28"),
            (1_714_521_600, "as seconds it would be 2024-05-01T00:00:00Z"),
            (1_714_521_600_000, "as milliseconds it would be 2024-05-01T00:00:00Z"),
        ] {
            let told = doubt(count).unwrap();
            assert!(told.ends_with(end), "{told}");
        }
        for count in
            [0, 1_000, 1_899, 2_100, -2_015, 20_150_230, 1_714_521_600_000_000, i64::MAX, i64::MIN]
        {
            assert_eq!(doubt(count), None);
        }
    }
}
