//! How long a series keeps its points, and the rollups that stay when they have gone.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Tape, TapeIndex};
use crate::limits::SERIES_ROLLUPS_MAX;
use crate::revision::Micros;
use crate::series::definition::{SeriesDefinition, number};

/// Summaries of windows of one width, which are kept beside the points of a series: how many there
/// are, between what, their sums, the first and the last one. They are made as points are written
/// to segments, late ones too, and answer what windows come to wherever that is the same.
///
/// ```
/// use std::time::Duration;
///
/// use duramen::{Rollup, SeriesDefinition, ValueType};
///
/// let day = Duration::from_secs(86_400);
/// let pressure = SeriesDefinition {
///     keep: Some(30 * day),
///     rollups: vec![Rollup::new(Duration::from_secs(60)).keeping(365 * day), Rollup::new(day)],
///     ..SeriesDefinition::new(ValueType::F64)
/// };
/// assert_eq!(pressure.rollups[1].keep, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollup {
    /// The width of its windows, which are counted from 1970.
    pub width: Duration,
    /// For how long they are kept; for ever if nothing is said.
    pub keep: Option<Duration>,
    /// Under which it is kept: above that of every rollup that the series had before.
    pub(super) number: i64,
}

impl Rollup {
    /// Of windows of a width, kept for ever.
    pub fn new(width: Duration) -> Self {
        Self { width, keep: None, number: 0 }
    }

    /// The same, kept for so long.
    pub fn keeping(self, keep: Duration) -> Self {
        Self { keep: Some(keep), ..self }
    }

    /// Its width in microseconds, above zero.
    pub(super) fn micros(&self) -> i64 {
        micros(self.width).max(1)
    }

    /// When the window begins that a time is in; the ends of all time are in none.
    pub(super) fn start(&self, time: i64) -> Option<i64> {
        time.div_euclid(self.micros()).checked_mul(self.micros())
    }

    /// The first window that is kept.
    pub(super) fn from(&self, now: Micros) -> i64 {
        let from = self.keep.map(|keep| now.0.saturating_sub(micros(keep)));
        from.map_or(i64::MIN, |from| self.start(from).unwrap_or(i64::MIN))
    }

    fn to_json(self) -> String {
        let keep = self.keep.map_or(String::new(), |keep| format!(",\"keep\":{}", micros(keep)));
        format!("{{\"number\":{},\"width\":{}{keep}}}", self.number, self.micros())
    }

    fn from_tape(tape: &Tape<'_>, at: TapeIndex) -> Option<Self> {
        let member = |name| number::<u64>(tape, tape.child(at, name)?);
        Some(Self {
            width: Duration::from_micros(member("width")?),
            keep: member("keep").map(Duration::from_micros),
            number: number(tape, tape.child(at, "number")?)?,
        })
    }
}

/// Says what is kept, in the record of a series or in a rule.
pub(super) fn to_json(keep: Option<Duration>, rollups: &[Rollup]) -> Option<String> {
    let keep = keep.map(|keep| format!("\"keep\":{}", micros(keep)));
    let rollups: Vec<String> = rollups.iter().map(|one| one.to_json()).collect();
    let rollups = (!rollups.is_empty()).then(|| format!("\"rollups\":[{}]", rollups.join(",")));
    let members: Vec<String> = [keep, rollups].into_iter().flatten().collect();
    (!members.is_empty()).then(|| members.join(","))
}

/// Reads what [`to_json`] said.
pub(super) fn from_tape(tape: &Tape<'_>, at: TapeIndex) -> Option<(Option<Duration>, Vec<Rollup>)> {
    let keep = match tape.child(at, "keep") {
        Some(keep) => Some(Duration::from_micros(number(tape, keep)?)),
        None => None,
    };
    let rollups = tape.child(at, "rollups").into_iter().flat_map(|at| tape.elements(at));
    let rollups: Option<Vec<Rollup>> = rollups.map(|at| Rollup::from_tape(tape, at)).collect();
    Some((keep, rollups?))
}

impl SeriesDefinition {
    /// Whether anything is dropped, or kept beside the points.
    pub(crate) fn has_tiers(&self) -> bool {
        self.keep.is_some() || !self.rollups.is_empty()
    }

    /// From which time on points are kept: whole windows of every rollup.
    pub(super) fn kept_from(&self, now: Micros) -> i64 {
        let Some(keep) = self.keep else { return i64::MIN };
        let from = now.0.saturating_sub(micros(keep));
        let start = |rollup: &Rollup| rollup.start(from).unwrap_or(i64::MIN);
        self.rollups.iter().map(start).min().unwrap_or(from)
    }

    /// Numbers the rollups that the definition before did not have.
    pub(crate) fn number_rollups(&mut self, before: &[Rollup], now: Micros) {
        let greatest = before.iter().map(|rollup| rollup.number).max().unwrap_or(0);
        let mut next = now.0.max(greatest.saturating_add(1));
        for rollup in &mut self.rollups {
            let known = before.iter().find(|known| known.width == rollup.width);
            rollup.number = known.map_or(next, |known| known.number);
            next = next.saturating_add(i64::from(known.is_none()));
        }
    }
}

/// Refuses rollups and spans that cannot be.
pub(super) fn check(keep: Option<Duration>, rollups: &[Rollup]) -> Result<()> {
    let invalid = |message| Err(Error::new(ErrorKind::Invalid, message));
    let spans = rollups.iter().flat_map(|rollup| [Some(rollup.width), rollup.keep]);
    for span in spans.chain([keep]).flatten() {
        if span.is_zero() || span.as_micros() > u128::from(i64::MAX.unsigned_abs()) {
            return invalid(format!(
                "a rollup or a span to keep of {span:?}: use 1 us to 292,000 years"
            ));
        }
    }
    if rollups.len() > SERIES_ROLLUPS_MAX {
        let count = rollups.len();
        return invalid(format!("{count} rollups: a series has at most {SERIES_ROLLUPS_MAX}"));
    }
    for (at, rollup) in rollups.iter().enumerate() {
        let width = rollup.width;
        if rollups.iter().take(at).any(|other| other.width == width) {
            return invalid(format!("two rollups of {width:?}: one of each width will do"));
        }
        if let Some(keep) = keep
            && keep < width
        {
            return invalid(format!(
                "points are kept for {keep:?}, and a rollup has windows of {width:?}: keep \
                 the points for a window at least"
            ));
        }
    }
    Ok(())
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::ValueType;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn points_are_kept_for_whole_windows_of_every_rollup() {
        let mut definition =
            SeriesDefinition { keep: Some(100 * SECOND), ..SeriesDefinition::new(ValueType::F64) };
        let now = Micros(1_000_500_000);
        assert_eq!(definition.kept_from(now), 900_500_000);
        definition.rollups = vec![Rollup::new(SECOND), Rollup::new(70 * SECOND)];
        assert_eq!(definition.kept_from(now), 840_000_000);
        assert_eq!(definition.rollups[1].keeping(SECOND).from(now), 980_000_000);
        assert_eq!(definition.rollups[1].from(now), i64::MIN);
        assert_eq!(definition.rollups[1].start(i64::MIN), None);
    }

    #[test]
    fn a_rollup_that_comes_back_is_another_one() {
        let mut definition = SeriesDefinition::new(ValueType::F64);
        definition.rollups = vec![Rollup::new(SECOND), Rollup::new(2 * SECOND)];
        definition.number_rollups(&[], Micros(7));
        let before = definition.rollups.clone();
        assert_eq!((before[0].number, before[1].number), (7, 8));
        definition.rollups = vec![Rollup::new(2 * SECOND), Rollup::new(SECOND)];
        definition.number_rollups(&before[1..], Micros(8));
        assert_eq!((definition.rollups[0].number, definition.rollups[1].number), (8, 9));
    }

    #[test]
    fn tiers_that_cannot_be_are_refused() {
        let check = |keep, rollups: &[Duration]| {
            let rollups: Vec<Rollup> = rollups.iter().copied().map(Rollup::new).collect();
            super::check(keep, &rollups).map_err(|error| error.kind())
        };
        assert_eq!(check(Some(SECOND), &[SECOND]), Ok(()));
        assert_eq!(check(Some(SECOND), &[2 * SECOND]), Err(ErrorKind::Invalid));
        assert_eq!(check(Some(Duration::ZERO), &[]), Err(ErrorKind::Invalid));
        assert_eq!(check(None, &[Duration::MAX]), Err(ErrorKind::Invalid));
        assert_eq!(check(None, &[SECOND, SECOND]), Err(ErrorKind::Invalid));
        let many: Vec<Duration> = (1..=9).map(Duration::from_secs).collect();
        assert_eq!(check(None, &many), Err(ErrorKind::Invalid));
    }
}
