use super::*;

fn micros(text: &str) -> i64 {
    text.parse::<Timestamp>().unwrap().as_microsecond()
}

#[track_caller]
fn check(windows: (&str, &str), time: &str, start: &str, end: &str) {
    let windows = Windows::parse(windows.0, windows.1).unwrap();
    let around = windows.around(Micros(micros(time))).unwrap();
    assert_eq!(around, (Micros(micros(start)), Micros(micros(end))));
}

#[test]
fn windows_of_a_fixed_width_are_counted_from_the_epoch() {
    check(("15m", "UTC"), "1969-12-31T23:59:59Z", "1969-12-31T23:45:00Z", "1970-01-01T00:00:00Z");
    check(("7h", "UTC"), "1970-01-01T07:00:00Z", "1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z");
}

#[test]
fn days_follow_the_clocks_of_their_zone() {
    let berlin = ("1d", "Europe/Berlin");
    check(berlin, "2024-03-31T12:00:00Z", "2024-03-30T23:00:00Z", "2024-03-31T22:00:00Z");
    check(berlin, "2024-10-27T22:30:00Z", "2024-10-26T22:00:00Z", "2024-10-27T23:00:00Z");
    // Midnight of this day was skipped in Sao Paulo: it began at one o'clock.
    let paulo = ("1d", "America/Sao_Paulo");
    check(paulo, "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z");
    check(paulo, "2018-11-04T02:59:59Z", "2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z");
}

/// It began as long after midnight as the clock was put forward.
#[test]
fn a_day_begins_when_a_clock_is_put_forward_over_midnight() {
    let toronto = ("1d", "America/Toronto");
    // At 23:30 it was 00:30.
    check(toronto, "1919-03-31T04:45:00Z", "1919-03-31T04:30:00Z", "1919-04-01T04:00:00Z");
    check(toronto, "1919-03-31T04:29:59Z", "1919-03-30T05:00:00Z", "1919-03-31T04:30:00Z");
    // The whole day was passed over.
    let apia = Windows::parse("1d", "Pacific/Apia").unwrap();
    let (start, end) = apia.around(Micros(micros("2011-12-30T10:00:00Z"))).unwrap();
    assert_eq!((start.0, end.0 - start.0), (micros("2011-12-30T10:00:00Z"), 86_400_000_000));
}

/// The library for calendars panicked.
#[test]
fn windows_of_more_days_than_a_calendar_has_are_one() {
    const DAY: i64 = 86_400_000_000;
    // Weeks are counted from the first Monday.
    for (window, first) in [
        ("7304484d", 0),
        ("7304485d", 0),
        ("1000000000d", 0),
        ("1000000000w", 4 * DAY),
        ("1000000000mo", 0),
    ] {
        let windows = Windows::parse(window, "UTC").unwrap();
        let around = |text| windows.around(Micros(micros(text))).unwrap();
        let (start, end) = around("2024-05-01T12:00:00Z");
        let last = Timestamp::MAX.as_microsecond() + 1;
        assert_eq!((start.0, end.0), (first, last), "{window}");
        let (start, end) = around("1969-05-01T12:00:00Z");
        assert_eq!((start.0, end.0), (Timestamp::MIN.as_microsecond(), first), "{window}");
    }
}

#[test]
fn weeks_months_and_years_begin_where_the_calendar_says() {
    check(("1w", "UTC"), "2024-05-01T00:00:00Z", "2024-04-29T00:00:00Z", "2024-05-06T00:00:00Z");
    check(("1mo", "UTC"), "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z");
    check(("3mo", "UTC"), "1969-06-01T00:00:00Z", "1969-04-01T00:00:00Z", "1969-07-01T00:00:00Z");
    check(
        ("1y", "Asia/Tokyo"),
        "2023-12-31T15:00:00Z",
        "2023-12-31T15:00:00Z",
        "2024-12-31T15:00:00Z",
    );
}

#[test]
fn the_last_windows_of_a_calendar_end_with_it() {
    let last = Timestamp::MAX.as_second() * 1_000_000;
    for unit in ["1d", "1w", "5mo", "1y", "900y"] {
        for zone in ["UTC", "Asia/Tokyo"] {
            let windows = Windows::parse(unit, zone).unwrap();
            let (start, end) = windows.around(Micros(last)).unwrap();
            assert!(start.0 < last && end.0 > last, "{unit} {zone}: {start} to {end}");
            let first = Timestamp::MIN.as_microsecond();
            let (start, end) = windows.around(Micros(first)).unwrap();
            assert!(start.0 == first && end.0 > first, "{unit} {zone}: {start} to {end}");
        }
    }
}

/// The number of the window after the last one was more than there is.
#[test]
fn windows_of_a_fixed_width_are_cut_at_both_ends_of_time() {
    // Windows of 7 and of 73 have the last microsecond as their beginning.
    for width in [1, 2, 7, 10, 73, i64::MAX] {
        let windows = Windows::of_width(Micros(width)).unwrap();
        let (start, end) = windows.around(Micros(i64::MAX)).unwrap();
        assert_eq!(start.0, i64::MAX - i64::MAX % width, "{width}");
        assert_eq!(end.0, i64::MAX, "{width}");
        let (start, end) = windows.around(Micros(i64::MIN)).unwrap();
        assert_eq!(start.0, i64::MIN, "{width}");
        assert!(end.0 > i64::MIN && end.0.abs_diff(i64::MIN) <= width.unsigned_abs());
    }
}

#[test]
fn what_is_no_window_is_refused() {
    for text in ["", "m", "0s", "-1s", "1.5h", "5 m", "5x", "99999999999999999999s"] {
        let refused = Windows::parse(text, "UTC").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{text}");
    }
    assert!(Windows::parse("1d", "Mars/Olympus").is_err());
    assert!(Windows::parse("1s", "Mars/Olympus").is_err());
    assert!(Windows::of_width(Micros(0)).is_err());
    let days = Windows::parse("1d", "UTC").unwrap();
    assert_eq!(days.around(Micros(i64::MAX)).unwrap_err().kind(), ErrorKind::Invalid);
    let whole = Windows::of_width(Micros(1_000)).unwrap().around(Micros(i64::MIN)).unwrap();
    assert_eq!(whole.0.0, i64::MIN);
}
