//! How long a series keeps its points, and the rollups that stay when they have gone.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Tape, TapeIndex};
use crate::limits::{SERIES_ROLLUP_SLICE_WINDOWS, SERIES_ROLLUPS_MAX, SERIES_TEXT_SLICE_WINDOWS};
use crate::revision::Micros;
use crate::series::definition::{SeriesDefinition, number};
use crate::series::source::Direction;
use crate::series::span::TimeSpan;
use crate::series::value::ValueType;

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
    /// Of windows that begin before this there are no rows: their points had gone when it was
    /// defined.
    rows_from: i64,
    /// Points before this time may have gone under what the series kept before, so that of windows
    /// that begin before it rows alone tell.
    points_from: i64,
    /// Windows whose rows stand together, and are in memory together.
    slice_windows: i64,
}

impl Rollup {
    /// Of windows of a width, kept for ever.
    pub fn new(width: Duration) -> Self {
        let (rows_from, points_from) = (i64::MIN, i64::MIN);
        let slice_windows = SERIES_ROLLUP_SLICE_WINDOWS;
        Self { width, keep: None, number: 0, rows_from, points_from, slice_windows }
    }

    /// The same, kept for so long.
    pub fn keeping(self, keep: Duration) -> Self {
        Self { keep: Some(keep), ..self }
    }

    /// Has rows be of all points that there are.
    pub(crate) fn begin_anew(&mut self) {
        (self.rows_from, self.points_from) = (i64::MIN, i64::MIN);
    }

    /// Its width in microseconds, above zero.
    pub(super) fn micros(&self) -> i64 {
        micros(self.width).max(1)
    }

    /// The slice that a window is in which begins at a time.
    pub(super) fn slice_of(&self, start: i64) -> i64 {
        start.div_euclid(self.micros()).div_euclid(self.slice_windows)
    }

    /// How long a slice is.
    pub(super) fn slice_micros(&self) -> i64 {
        self.micros().saturating_mul(self.slice_windows)
    }

    /// Whether its slices are shorter than those that there were at first.
    pub(crate) fn has_short_slices(&self) -> bool {
        self.slice_windows < SERIES_ROLLUP_SLICE_WINDOWS
    }

    /// When the window begins that a time is in; the ends of all time are in none.
    pub(super) fn start(&self, time: i64) -> Option<i64> {
        time.div_euclid(self.micros()).checked_mul(self.micros())
    }

    /// The first time from one on at which a window begins; the end of all time if none does.
    fn next_start(&self, time: i64) -> i64 {
        time.checked_add(self.micros() - 1).and_then(|up| self.start(up)).unwrap_or(i64::MAX)
    }

    /// The whole windows from a time on that end by another one, as a span; none if there are none.
    pub(super) fn whole(&self, from: i64, end: i64) -> Option<TimeSpan> {
        let (first, end) = (self.next_start(from), self.start(end)?);
        (first < end).then(|| TimeSpan { first, last: end - 1 })
    }

    /// Those of whole windows that end by a time; none if there are none.
    pub(super) fn until(&self, windows: TimeSpan, end: i64) -> Option<TimeSpan> {
        if end > windows.last { Some(windows) } else { self.whole(windows.first, end) }
    }

    /// The whole windows before a time or from it on, of those between two times; none if there are
    /// none.
    pub(super) fn beside(
        &self,
        edge: i64,
        direction: Direction,
        (from, end): (i64, i64),
    ) -> Option<TimeSpan> {
        match direction {
            Direction::Falling => self.whole(from, end.min(edge)),
            Direction::Rising => self.whole(from.max(edge), end),
        }
    }

    /// The windows of which nothing is left when a span is deleted, of those before the ones that
    /// points tell of: the rows of whole ones.
    pub(super) fn gone(&self, deleted: TimeSpan, points_from: i64) -> Option<TimeSpan> {
        self.whole(deleted.first, deleted.last.saturating_add(1).min(points_from))
    }

    /// Rows of windows that begin before this are not kept.
    pub(super) fn from(&self, now: Micros) -> i64 {
        let from = self.keep.map(|keep| now.0.saturating_sub(micros(keep)));
        let from = from.and_then(|from| self.start(from)).unwrap_or(i64::MIN);
        from.max(self.rows_from)
    }

    fn to_json(self) -> String {
        let keep = self.keep.map_or(String::new(), |keep| format!(",\"keep\":{}", micros(keep)));
        let bound = |name: &str, from: i64| match from {
            i64::MIN => String::new(),
            from => format!(",\"{name}\":{from}"),
        };
        let rows = bound("rows_from", self.rows_from);
        let points = bound("points_from", self.points_from);
        let slice = match self.slice_windows {
            SERIES_ROLLUP_SLICE_WINDOWS => String::new(),
            windows => format!(",\"slice\":{windows}"),
        };
        let (number, width) = (self.number, self.micros());
        format!("{{\"number\":{number},\"width\":{width}{keep}{rows}{points}{slice}}}")
    }

    fn from_tape(tape: &Tape<'_>, at: TapeIndex) -> Option<Self> {
        let member = |name| number::<u64>(tape, tape.child(at, name)?);
        let bound = |name| match tape.child(at, name) {
            Some(at) => number(tape, at),
            None => Some(i64::MIN),
        };
        Some(Self {
            width: Duration::from_micros(member("width")?),
            keep: member("keep").map(Duration::from_micros),
            number: number(tape, tape.child(at, "number")?)?,
            rows_from: bound("rows_from")?,
            points_from: bound("points_from")?,
            slice_windows: match tape.child(at, "slice") {
                Some(at) => number(tape, at).filter(|windows| *windows > 0)?,
                None => SERIES_ROLLUP_SLICE_WINDOWS,
            },
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

/// Reads what [`to_json`] said in the members `keep` and `rollups`.
pub(super) fn from_tape(
    tape: &Tape<'_>,
    (keep, rollups): (Option<TapeIndex>, Option<TapeIndex>),
) -> Option<(Option<Duration>, Vec<Rollup>)> {
    let keep = match keep {
        Some(keep) => Some(Duration::from_micros(number(tape, keep)?)),
        None => None,
    };
    let rollups = rollups.into_iter().flat_map(|at| tape.elements(at));
    let rollups: Option<Vec<Rollup>> = rollups.map(|at| Rollup::from_tape(tape, at)).collect();
    Some((keep, rollups?))
}

impl SeriesDefinition {
    /// Whether anything is dropped, or kept beside the points.
    pub(crate) fn has_tiers(&self) -> bool {
        self.keep.is_some() || !self.rollups.is_empty()
    }

    /// From which time on points are kept: whole windows of every rollup. None is of a series that
    /// was purged, which keeps them for no time.
    pub(super) fn kept_from(&self, now: Micros) -> i64 {
        let Some(keep) = self.keep else { return i64::MIN };
        if keep.is_zero() {
            return i64::MAX;
        }
        let from = now.0.saturating_sub(micros(keep));
        let start = |rollup: &Rollup| rollup.start(from).unwrap_or(i64::MIN);
        self.rollups.iter().map(start).min().unwrap_or(from)
    }

    /// How many of these times are before the ones whose points are kept.
    pub(crate) fn count_unkept(&self, times: &[i64], now: Micros) -> u64 {
        match self.kept_from(now) {
            i64::MIN => 0,
            from => times.iter().filter(|time| **time < from).count() as u64,
        }
    }

    /// That of a series all points of which are to go.
    pub(super) fn purged() -> Self {
        Self { keep: Some(Duration::ZERO), ..Self::new(ValueType::F64) }
    }

    /// From which window of a rollup on its points are there, so that these tell what they come to;
    /// of windows before, rows alone do.
    pub(super) fn points_from(&self, rollup: &Rollup, now: Micros) -> i64 {
        match self.kept_from(now).max(rollup.points_from) {
            i64::MIN => i64::MIN,
            from => rollup.next_start(from),
        }
    }

    /// Takes over what is known of the rollups that stay, of the definition before if there was
    /// one and the clock of its series, and numbers the others. One that is kept longer is another
    /// one where there are points of windows whose rows have gone: it is made of these anew.
    pub(crate) fn number_rollups(&mut self, before: Option<(&Self, Micros)>, now: Micros) {
        let gone = before.map_or(i64::MIN, |(before, clock)| before.gone_before(clock));
        let known = before.map_or(&[][..], |(before, _)| &before.rollups);
        let greatest = known.iter().map(|rollup| rollup.number).max().unwrap_or(0);
        let mut next = now.0.max(greatest.saturating_add(1));
        for rollup in &mut self.rollups {
            rollup.points_from = gone;
            let known = known.iter().find(|known| known.width == rollup.width);
            let lost = known.filter(|known| is_longer(rollup.keep, known.keep));
            let lost = lost.map(|known| known.from(now));
            match known {
                Some(known) if lost.is_none_or(|lost| lost <= rollup.next_start(gone)) => {
                    rollup.number = known.number;
                    rollup.rows_from = lost.unwrap_or(known.rows_from);
                    rollup.slice_windows = known.slice_windows;
                }
                _ => {
                    rollup.number = next;
                    rollup.rows_from = gone;
                    rollup.slice_windows = match self.value_type {
                        ValueType::String => SERIES_TEXT_SLICE_WINDOWS,
                        _ => SERIES_ROLLUP_SLICE_WINDOWS,
                    };
                    next = next.saturating_add(1);
                }
            }
        }
    }

    /// Before which time points may have gone, as of the clock of the series.
    pub(crate) fn gone_before(&self, clock: Micros) -> i64 {
        let earlier = self.rollups.iter().map(|rollup| rollup.points_from);
        earlier.fold(self.kept_from(clock), i64::max)
    }
}

/// Whether something is kept for longer than it was.
fn is_longer(keep: Option<Duration>, before: Option<Duration>) -> bool {
    before.is_some_and(|before| keep.is_none_or(|keep| keep > before))
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
        definition.number_rollups(None, Micros(7));
        let mut before = definition.clone();
        assert_eq!((before.rollups[0].number, before.rollups[1].number), (7, 8));
        before.rollups.remove(0);
        definition.rollups = vec![Rollup::new(2 * SECOND), Rollup::new(SECOND)];
        definition.number_rollups(Some((&before, Micros(8))), Micros(8));
        assert_eq!((definition.rollups[0].number, definition.rollups[1].number), (8, 9));
    }

    /// Rows stay where they are of a rollup that was defined before slices of texts were shorter.
    #[test]
    fn slices_stay_as_long_as_they_were() {
        let read = |record: &str| {
            let text = format!(r#"{{"rollups":[{record}]}}"#);
            let tape = Tape::parse(text.as_bytes(), crate::json::ParseOptions::default()).unwrap();
            from_tape(&tape, (None, tape.child(tape.root(), "rollups"))).unwrap().1
        };
        let mut texts = SeriesDefinition::new(ValueType::String);
        texts.rollups = read(r#"{"number":7,"width":1000000}"#);
        assert!(!texts.rollups[0].has_short_slices());
        let before = texts.clone();
        texts.rollups = vec![Rollup::new(SECOND), Rollup::new(2 * SECOND)];
        texts.number_rollups(Some((&before, Micros(8))), Micros(8));
        let are_short = [false, true];
        assert_eq!([0, 1].map(|at| texts.rollups[at].has_short_slices()), are_short);
        let again: Vec<Rollup> =
            texts.rollups.iter().flat_map(|rollup| read(&rollup.to_json())).collect();
        assert_eq!(again, texts.rollups);
        let mut numbers = SeriesDefinition::new(ValueType::I64);
        numbers.rollups = vec![Rollup::new(SECOND)];
        numbers.number_rollups(None, Micros(8));
        assert!(!numbers.rollups[0].has_short_slices());
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
