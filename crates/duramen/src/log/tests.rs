//! Times as they are written, and logs.

use super::*;

/// Those of the last 26 hours of 9999 were all one, and those of the first of -9999 none.
#[test]
fn times_are_exact_in_all_years() {
    for (text, micros) in [
        ("9999-12-31", 253_402_214_400_000_000),
        ("9999-12-30T22:00:00.999999Z", 253_402_207_200_999_999),
        ("9999-12-30T22:00:01Z", 253_402_207_201_000_000),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),
        ("9999-12-31 23:59:59.9999999+00:00", 253_402_300_799_999_999),
        ("9999-12-31T23:59:59+01:00", 253_402_297_199_000_000),
        ("9999-12-31T23:59:59-01:00", 253_402_304_399_000_000),
        ("9999-12-31T23:59:60Z", 253_402_300_800_000_000),
        ("-009999-01-01", -377_705_116_800_000_000),
        ("-009999-01-01T00:00:00+01:00", -377_705_120_400_000_000),
    ] {
        assert_eq!(text.parse::<Moment>().ok(), Some(Moment::Time(Micros(micros))), "{text}");
    }
    for text in [
        "9999-12-32",
        "10000-01-01",
        "9999-12-31T25:00:00Z",
        "9999",
        "-010000-12-31",
        "9999-12-31T23:59:59[UTC]",
    ] {
        assert!(!matches!(text.parse(), Ok(Moment::Time(_))), "{text}");
    }
}

/// Before 1970 digits behind the sixth once rounded it up.
#[test]
fn times_are_rounded_down_to_microseconds() {
    for (text, micros) in [
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("1969-12-31T23:59:59.999999001Z", -1),
        ("1969-12-31T23:59:59.999999Z", -1),
        ("1969-12-31T23:59:59.9999989Z", -2),
        ("1970-01-01T00:59:59.9999999[Europe/Berlin]", -1),
        ("1969-12-31T23:59:60.0000009Z", 0),
        ("1970-01-01T00:00:00.0000019Z", 1),
    ] {
        assert_eq!(text.parse::<Moment>().ok(), Some(Moment::Time(Micros(micros))), "{text}");
    }
}

/// It was the second before it.
#[test]
fn a_leap_second_is_the_second_behind_it() {
    let moment = |text: &str| text.parse::<Moment>().ok();
    let next = moment("2017-01-01T00:00:00.25Z");
    assert!(next.is_some());
    for text in [
        "2016-12-31T23:59:60.25Z",
        "2016-12-31 23:59:60.25",
        "20161231t235960.25Z",
        "2017-01-01T00:59:60.25+01:00",
        "2017-01-01T00:59:60.25[Europe/Berlin]",
    ] {
        assert_eq!(moment(text), next, "{text}");
    }
    for text in ["2016-12-31T23:59:61Z", "2016-12-31T23:60:00Z", "2016-12-31T23:59:60.5.0Z"] {
        assert_eq!(moment(text), None, "{text}");
    }
    let hour = moment("2016-12-31T12:30+00:00");
    assert_eq!(moment("2016-12-31T12:30Z"), hour);
}

/// It was taken in any minute.
#[test]
fn a_leap_second_is_only_at_the_end_of_a_month_of_utc() {
    let moment = |text: &str| text.parse::<Moment>().ok();
    assert_eq!(moment("2016-12-31T18:59:60-05:00"), moment("2017-01-01"));
    assert_eq!(moment("2012-07-01T05:29:60+05:30"), moment("2012-07-01"));
    for text in [
        "2024-01-01T00:00:60Z",
        "2016-12-31T12:59:60Z",
        "2016-12-30T23:59:60Z",
        "2016-12-31T23:59:60+01:00",
        "2016-12-31T23:59:60[Europe/Berlin]",
    ] {
        assert_eq!(moment(text), None, "{text}");
    }
}

/// The zone was passed over, and the time taken for one of UTC.
#[test]
fn a_zone_in_brackets_says_the_offset_or_agrees_with_it() {
    let moment = |text: &str| text.parse::<Moment>().ok();
    let utc = moment("2024-06-30T22:00:00Z");
    assert!(utc.is_some());
    for text in [
        "2024-07-01T00:00:00[Europe/Berlin]",
        "2024-07-01T00:00:00+02:00[Europe/Berlin]",
        "2024-07-01[Europe/Berlin]",
        "2024-06-30T22:00:00Z[Europe/Berlin]",
    ] {
        assert_eq!(moment(text), utc, "{text}");
    }
    for text in ["2024-07-01T00:00:00+05:00[Europe/Berlin]", "2024-07-01T00:00:00[Nowhere/At]"] {
        assert_eq!(moment(text), None, "{text}");
    }
}
