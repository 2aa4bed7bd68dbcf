//! The three ways in which history is counted: revisions, commit sequences and time.

use std::fmt;

/// A revision of one tree: 1, 2, 3 ... A commit that changes the tree makes exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(pub u64);

/// The number of a commit: 1, 2, 3 ... over all trees of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitSequence(pub u64);

/// Microseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub i64);

impl Revision {
    /// The revision after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl CommitSequence {
    /// The sequence after this one.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for CommitSequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// RFC 3339 in UTC, with as many digits of the second as are not zero: 0, 3 or 6. Years outside
/// 0 to 9999, which RFC 3339 cannot write, are written with their sign.
impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECOND: i64 = 1_000_000;
        let (seconds, micros) = (self.0.div_euclid(SECOND), self.0.rem_euclid(SECOND));
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil_date(days);
        if (0..10_000).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+}")?;
        }
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        write!(f, "-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}", second % 60)?;
        match micros {
            0 => {}
            _ if micros % 1_000 == 0 => write!(f, ".{:03}", micros / 1_000)?,
            _ => write!(f, ".{micros:06}")?,
        }
        f.write_str("Z")
    }
}

/// The year, month and day of a day counted from 1970-01-01, in the proleptic Gregorian calendar
/// (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn civil_date(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_rfc_3339() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00Z"),
            (1_714_521_600_123_000, "2024-05-01T00:00:00.123Z"),
            (253_402_300_799_000_001, "9999-12-31T23:59:59.000001Z"),
            (i64::MAX, "+294247-01-10T04:00:54.775807Z"),
        ];
        for (micros, text) in cases {
            assert_eq!(Micros(micros).to_string(), text);
        }
    }
}
