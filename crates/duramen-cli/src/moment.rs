//! Moments of history as people write them, and times as they read them.

use duramen::{Error, ErrorKind, Micros, Moment, Result};
use jiff::SignedDuration;
use jiff::civil::{DateTime, date};

/// A revision (digits alone) or a time, if the text is either.
pub(crate) fn parse(text: &str) -> Option<Moment> {
    text.parse().ok()
}

/// A time in RFC 3339 form; UTC if it names no zone, 00:00 if it is a date alone.
pub(crate) fn parse_time(text: &str) -> Result<Micros> {
    time(text).ok_or_else(|| {
        let message = format!("{text:?} is not a time, such as 2024-05-01 or 2024-05-01T12:30:00Z");
        Error::new(ErrorKind::Invalid, message)
    })
}

fn time(text: &str) -> Option<Micros> {
    match text.parse() {
        Ok(Moment::Time(time)) => Some(time),
        Ok(Moment::Revision(_)) | Err(_) => None,
    }
}

/// RFC 3339 in UTC for people: microseconds are all there, or none if the second is whole, so that
/// times stand below each other as columns do.
pub(crate) fn format(time: Micros) -> String {
    match civil(time) {
        Some(local) if local.subsec_nanosecond() == 0 => format!("{local}Z"),
        Some(local) => format!("{local:.6}Z"),
        // No calendar reaches farther, so the count itself has to do.
        None => format!("{} us", time.0),
    }
}

/// RFC 3339 in UTC, with as many digits of the second as are needed, of a time of the years from
/// -9999 to 9999.
pub(crate) fn calendar(time: Micros) -> Option<String> {
    civil(time).map(|local| format!("{local}Z"))
}

fn civil(time: Micros) -> Option<DateTime> {
    // Timestamps end some hours before years do.
    const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);
    EPOCH.checked_add(SignedDuration::from_micros(time.0)).ok()
}

#[cfg(test)]
mod tests {
    use duramen::Revision;

    use super::*;

    fn micros(text: &str) -> Option<i64> {
        time(text).map(|time| time.0)
    }

    #[test]
    fn digits_are_a_revision_and_what_reads_as_one_a_time() {
        assert_eq!(parse("7"), Some(Moment::Revision(Revision(7))));
        assert_eq!(parse("1970-01-02"), Some(Moment::Time(Micros(86_400_000_000))));
        assert_eq!(parse(""), None);
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("-1"), None);
    }

    #[test]
    fn a_time_without_a_zone_is_utc_and_a_date_its_first_moment() {
        let midnight = micros("2024-05-01T00:00:00Z");
        assert!(midnight.is_some());
        assert_eq!(micros("2024-05-01"), midnight);
        assert_eq!(micros("2024-05-01T00:00"), midnight);
        assert_eq!(micros("2024-05-01 02:00:00+02:00"), midnight);
        assert_eq!(micros("2024-05"), None);
    }

    #[test]
    fn times_print_as_they_are_read() {
        for text in [
            "2024-05-01T12:30:00Z",
            "1969-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59.500000Z",
            "-009999-01-01T00:00:00Z",
        ] {
            assert_eq!(format(time(text).unwrap()), text);
        }
        let half = time("9999-12-31T23:59:59.500000Z").unwrap();
        assert_eq!(calendar(half).as_deref(), Some("9999-12-31T23:59:59.5Z"));
        for beyond in [Micros(i64::MIN), Micros(i64::MAX)] {
            assert_eq!(time(&format(beyond)), Some(beyond));
        }
        assert_eq!(format(Micros(i64::MAX)), "9223372036854775807 us");
        assert_eq!(time("1.5 us").or(time("us")), None);
    }
}
