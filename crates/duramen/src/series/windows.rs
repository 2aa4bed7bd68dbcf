//! Windows of time: of a fixed width, or of the calendar of a time zone.
//!
//! Every window has a number; windows follow each other without gaps. They lie where they lie
//! whatever is asked for, so that the windows of several series agree.

use jiff::civil::{Date, date};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::error::{Error, ErrorKind, Result};
use crate::revision::Micros;

/// Spans of time that follow each other without gaps.
///
/// ```
/// use duramen::{Micros, Windows};
///
/// let quarters = Windows::parse("15m", "UTC")?;
/// let (start, end) = quarters.around(Micros(1_000_000_000))?;
/// assert_eq!((start, end), (Micros(900_000_000), Micros(1_800_000_000)));
/// // The day on which the clocks of Berlin went forward had 23 hours.
/// let days = Windows::parse("1d", "Europe/Berlin")?;
/// let (start, end) = days.around(Micros(1_711_850_000_000_000))?;
/// assert_eq!(end.0 - start.0, 23 * 3_600_000_000);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Windows {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// Microseconds, from the Unix epoch on.
    Fixed(i64),
    /// All of time is one.
    Whole,
    /// So many units of the calendar in a zone.
    Calendar(Unit, i64, TimeZone),
}

/// A unit of the calendar. All of them begin at midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Day,
    /// From Monday on.
    Week,
    Month,
    Year,
}

/// Names of fixed units, and their microseconds.
const FIXED: [(&str, i64); 5] =
    [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];
const CALENDAR: [(&str, Unit); 4] =
    [("d", Unit::Day), ("w", Unit::Week), ("mo", Unit::Month), ("y", Unit::Year)];
/// The Monday from which weeks are counted.
const FIRST_MONDAY: Date = date(1970, 1, 5);
const FIRST_DAY: Date = date(1970, 1, 1);

impl Windows {
    /// Windows of a number and a unit: `us`, `ms`, `s`, `m`, `h`, counted from the Unix epoch, or
    /// `d`, `w`, `mo`, `y` of the calendar of a zone of the IANA time zone database, counted from
    /// 1970; weeks begin on Monday.
    ///
    /// # Errors
    /// `Invalid` if there is no such window or zone.
    pub fn parse(text: &str, zone: &str) -> Result<Self> {
        let zone = time_zone(zone)?;
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let count: i64 = number.parse().unwrap_or(0);
        let fixed = FIXED.iter().find(|(name, _)| *name == unit);
        let calendar = CALENDAR.iter().find(|(name, _)| *name == unit);
        let kind = match (fixed, calendar) {
            (Some((_, micros)), _) => count.checked_mul(*micros).map(Kind::Fixed),
            (_, Some((_, unit))) => Some(Kind::Calendar(*unit, count, zone)),
            _ => None,
        };
        match kind {
            Some(kind) if (1..=MOST).contains(&count) => Ok(Self { kind }),
            _ => Err(invalid(format!(
                "no window is {text:?}: write a number and us, ms, s, m, h, d, w, mo or y, like 15m"
            ))),
        }
    }

    /// Windows of a fixed width above zero, counted from the Unix epoch.
    ///
    /// # Errors
    /// `Invalid` if the width is not above zero.
    pub fn of_width(width: Micros) -> Result<Self> {
        if width.0 <= 0 {
            return Err(invalid(format!("windows of {} microseconds: use at least 1", width.0)));
        }
        Ok(Self { kind: Kind::Fixed(width.0) })
    }

    /// One window that is all of time.
    pub fn whole() -> Self {
        Self { kind: Kind::Whole }
    }

    /// Where the window begins that a time is in, and where it ends, which the next one begins.
    ///
    /// # Errors
    /// `Invalid` if the calendar does not reach there.
    pub fn around(&self, time: Micros) -> Result<(Micros, Micros)> {
        let number = self.number(time.0)?;
        Ok((Micros(self.start(number)), Micros(self.end(number))))
    }

    /// Whether they are those of a width, counted from the Unix epoch.
    pub(crate) fn are_of(&self, width: i64) -> bool {
        self.width() == Some(width)
    }

    /// Their width, if they all have one.
    pub(crate) fn width(&self) -> Option<i64> {
        match self.kind {
            Kind::Fixed(width) => Some(width),
            Kind::Whole | Kind::Calendar(..) => None,
        }
    }

    /// Whether windows of a width, counted from the Unix epoch, never reach over the beginning of
    /// one of these in a span of time.
    pub(crate) fn are_made_of(&self, width: i64, (first, last): (i64, i64)) -> Result<bool> {
        match &self.kind {
            Kind::Fixed(own) => return Ok(own % width == 0),
            Kind::Whole => return Ok(true),
            Kind::Calendar(..) => {}
        }
        for number in self.number(first)?..=self.number(last)? {
            if self.start(number) % width != 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number of the window that a time is in.
    pub(crate) fn number(&self, time: i64) -> Result<i64> {
        let (unit, count, zone) = match &self.kind {
            Kind::Fixed(width) => return Ok(time.div_euclid(*width)),
            Kind::Whole => return Ok(0),
            Kind::Calendar(unit, count, zone) => (*unit, *count, zone),
        };
        let day = Timestamp::from_microsecond(time)
            .map_err(|_| beyond_calendar())?
            .to_zoned(zone.clone())
            .date();
        let mut number = unit.since_start(day).div_euclid(count);
        // Where a change of the clock takes midnight, the day begins before or after it.
        while self.start(number) > time {
            number -= 1;
        }
        while self.start(number + 1) <= time {
            number += 1;
        }
        Ok(number)
    }

    /// When a window begins. Those of a fixed width at the ends of all time are cut there, those of
    /// a calendar at its ends.
    pub(crate) fn start(&self, number: i64) -> i64 {
        let (unit, count, zone) = match &self.kind {
            Kind::Fixed(width) => return number.saturating_mul(*width),
            Kind::Whole if number <= 0 => return i64::MIN,
            Kind::Whole => return i64::MAX,
            Kind::Calendar(unit, count, zone) => (*unit, *count, zone),
        };
        let day = number.checked_mul(count).and_then(|units| unit.day(units));
        let midnight = day.and_then(|day| day.to_zoned(zone.clone()).ok());
        match midnight {
            Some(midnight) => midnight.timestamp().as_microsecond(),
            None if number < 0 => Timestamp::MIN.as_microsecond(),
            None => Timestamp::MAX.as_microsecond() + 1,
        }
    }

    /// When a window ends, which the next one begins. Of the last one of all time it is the last
    /// microsecond, which is in it all the same.
    pub(crate) fn end(&self, number: i64) -> i64 {
        self.start(number.saturating_add(1))
    }
}

/// Units of one window.
const MOST: i64 = 1_000_000_000;

impl Unit {
    /// The whole units from the first one to that of a day.
    fn since_start(self, day: Date) -> i64 {
        let months = |day: Date| (i64::from(day.year()) - 1970) * 12 + i64::from(day.month()) - 1;
        let days = |from: Date| i64::from((day - from).get_days());
        match self {
            Self::Day => days(FIRST_DAY),
            Self::Week => days(FIRST_MONDAY).div_euclid(7),
            Self::Month => months(day),
            Self::Year => i64::from(day.year()) - 1970,
        }
    }

    /// The first day of a unit.
    fn day(self, number: i64) -> Option<Date> {
        let after = |day: Date, days: i64| {
            let days = i32::try_from(days).ok()?;
            day.checked_add(days.days()).ok()
        };
        match self {
            Self::Day => after(FIRST_DAY, number),
            Self::Week => after(FIRST_MONDAY, number.checked_mul(7)?),
            Self::Month => {
                let year = i16::try_from(number.div_euclid(12).checked_add(1970)?).ok()?;
                let month = i8::try_from(number.rem_euclid(12)).ok()?.checked_add(1)?;
                Date::new(year, month, 1).ok()
            }
            Self::Year => {
                let year = i16::try_from(number.checked_add(1970)?).ok()?;
                Date::new(year, 1, 1).ok()
            }
        }
    }
}

fn time_zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|error| {
        let what = format!("there is no time zone {name:?}: use one such as Europe/Berlin, or UTC");
        Error::new(ErrorKind::Invalid, what).with_source(error)
    })
}

fn beyond_calendar() -> Error {
    invalid("the calendar has no such year: use windows of a fixed width".to_owned())
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::Invalid, what)
}

#[cfg(test)]
mod tests {
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
        check(
            ("15m", "UTC"),
            "1969-12-31T23:59:59Z",
            "1969-12-31T23:45:00Z",
            "1970-01-01T00:00:00Z",
        );
        check(
            ("7h", "UTC"),
            "1970-01-01T07:00:00Z",
            "1970-01-01T07:00:00Z",
            "1970-01-01T14:00:00Z",
        );
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

    #[test]
    fn weeks_months_and_years_begin_where_the_calendar_says() {
        check(
            ("1w", "UTC"),
            "2024-05-01T00:00:00Z",
            "2024-04-29T00:00:00Z",
            "2024-05-06T00:00:00Z",
        );
        check(
            ("1mo", "UTC"),
            "2024-02-29T23:59:59Z",
            "2024-02-01T00:00:00Z",
            "2024-03-01T00:00:00Z",
        );
        check(
            ("3mo", "UTC"),
            "1969-06-01T00:00:00Z",
            "1969-04-01T00:00:00Z",
            "1969-07-01T00:00:00Z",
        );
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
}
