//! Windows of time: of a fixed width, or of the calendar of a time zone.
//!
//! Every window has a number; windows follow each other without gaps. They lie where they lie
//! whatever is asked for, so that the windows of several series agree.

use jiff::civil::{Date, Time, date};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

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
        match day.and_then(|day| beginning(day, zone)) {
            Some(beginning) => beginning.as_microsecond(),
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
            let days = Span::new().try_days(days).ok()?;
            day.checked_add(days).ok()
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

/// When a day begins in a zone; none if no timestamp reaches there.
fn beginning(day: Date, zone: &TimeZone) -> Option<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(day.to_datetime(Time::midnight()));
    let AmbiguousOffset::Gap { after, .. } = midnight.offset() else {
        return midnight.compatible().ok();
    };
    // Midnight was passed over: the day begins when the clock was put forward, at any time of it.
    let earlier = after.to_timestamp(midnight.datetime()).ok()?;
    let change = zone.following(earlier).find(|change| change.offset() == after);
    change.map(|change| change.timestamp())
}

fn time_zone(name: &str) -> Result<TimeZone> {
    TimeZone::get(name).map_err(|error| {
        let what = format!("there is no time zone {name:?}: use one such as Europe/Berlin, or UTC");
        Error::new(ErrorKind::Invalid, what).with_source(error)
    })
}

fn beyond_calendar() -> Error {
    invalid("the calendar does not reach there: use windows of a fixed width".to_owned())
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::Invalid, what)
}

#[cfg(test)]
mod tests;
