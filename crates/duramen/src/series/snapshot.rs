//! A series as of one commit.

use std::ops::RangeBounds;
use std::sync::Arc;

use crate::engine::View;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::{CommitSequence, Micros};
use crate::series::cursor::SeriesCursor;
use crate::series::definition::SeriesInfo;
use crate::series::interpolation::{integer_at, number_at};
use crate::series::points::Point;
use crate::series::range::{RangeOptions, SeriesRange};
use crate::series::reading::{PointStore, Reading};
use crate::series::rollup::StoredRollup;
use crate::series::source::{self, Course};
use crate::series::span::TimeSpan;
use crate::series::value::SeriesValue;
use crate::series::young::{Delete, Young};
use crate::series::{deletes, tags};
use crate::sync::Mutex;
use crate::tree::cell_key::TreeId;

/// A series as of one commit: immutable, shared freely, never in the writer's way.
#[derive(Debug, Clone)]
pub struct SeriesSnapshot {
    view: Arc<View>,
    info: Arc<SeriesInfo>,
    sequence: CommitSequence,
    /// When it was made: what is kept only up to then is seen. Everything if nothing is said.
    now: Option<Micros>,
    /// A query asks several times.
    tiers: Arc<Mutex<Option<KnownTiers>>>,
}

/// What the catalogue said last, and as of which of its revisions.
#[derive(Debug)]
struct KnownTiers {
    revision: u32,
    info: Option<Arc<SeriesInfo>>,
    /// From when on points are seen. It is told once for all that a query asks: a checkpoint may
    /// write what rollups did not have before.
    seen_from: i64,
}

/// How the value between two points is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpolation {
    /// There is a value only where a point is.
    Stored,
    /// That of the last point before.
    #[default]
    Step,
    /// On the straight line between the point before and the point after. Where there is none
    /// after, and for truth values and text, as for a step.
    Linear,
}

impl SeriesSnapshot {
    pub(crate) fn new(view: Arc<View>, info: Arc<SeriesInfo>, sequence: CommitSequence) -> Self {
        Self { view, info, sequence, now: None, tiers: Arc::default() }
    }

    /// Without the points that are not kept any more at a time.
    pub(crate) fn kept_at(self, now: Micros) -> Self {
        Self { now: Some(now), ..self }
    }

    /// When it was made.
    pub(super) fn now(&self) -> Micros {
        self.now.unwrap_or(Micros(i64::MIN))
    }

    /// What the catalogue says now of the series, if that keeps not everything, or has rollups.
    pub(super) fn tiers(&self) -> Result<Option<Arc<SeriesInfo>>> {
        Ok(self.known_tiers()?.0)
    }

    /// The same, and from when on points are seen.
    fn known_tiers(&self) -> Result<(Option<Arc<SeriesInfo>>, i64)> {
        let tags = self.view.tree(TreeId::SERIES)?;
        let revision = tags::newest(&tags);
        let mut known = self.tiers.lock();
        if let Some(known) = known.as_ref().filter(|known| known.revision == revision) {
            return Ok((known.info.clone(), known.seen_from));
        }
        let info = tags::tiered(&tags, self.info.number, revision)?.map(Arc::new);
        let seen_from = info.as_ref().map_or(Ok(i64::MIN), |info| self.seen_from(info))?;
        *known = Some(KnownTiers { revision, info: info.clone(), seen_from });
        Ok((info, seen_from))
    }

    /// From when on points are seen: those that are kept, and all that not every rollup that is to
    /// have them reaches.
    fn seen_from(&self, tiers: &SeriesInfo) -> Result<i64> {
        let Some(now) = self.now else { return Ok(i64::MIN) };
        let mut from = tiers.definition.kept_from(now);
        if from > i64::MIN && !tiers.is_purged() {
            for rollup in &tiers.definition.rollups {
                let reach = StoredRollup::new(tiers, *rollup, &self.view).reach()?;
                from = from.min(reach.until.max(rollup.from(now)));
            }
        }
        Ok(from)
    }

    /// What the catalogue says of the series.
    pub fn info(&self) -> &SeriesInfo {
        &self.info
    }

    /// The commit that the snapshot shows.
    pub fn sequence(&self) -> CommitSequence {
        self.sequence
    }

    /// The points of a span of time, rising.
    pub fn range(&self, span: impl RangeBounds<Micros>) -> Result<SeriesRange> {
        self.range_with(span, &RangeOptions::default())
    }

    /// The same, saying in which order, and how many.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, RangeOptions, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// for time in 1..=9 {
    ///     level.append(Micros(time), time * 10, &CommitOptions::default())?;
    /// }
    /// let last_two = RangeOptions { limit: Some(2), reverse: true, ..RangeOptions::default() };
    /// let points = level.range_with(..Micros(6), &last_two)?.read()?;
    /// assert_eq!(points.times(), [5, 4]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn range_with(
        &self,
        span: impl RangeBounds<Micros>,
        options: &RangeOptions,
    ) -> Result<SeriesRange> {
        let left = options.limit.unwrap_or(usize::MAX);
        let mut wanted = TimeSpan::of(&span);
        let (first, last) = TimeSpan::ends(&span);
        // An instant has neighbours too.
        if options.bounding && last >= first - 1 {
            wanted = self.with_neighbours((first, last))?;
        }
        let kept = match wanted.filter(|_| left > 0) {
            Some(span) => self.kept(span)?,
            None => None,
        };
        let store = kept.map(|_| self.store()).transpose()?;
        let (first, last) = kept.map_or((Micros(0), Micros(0)), |kept| (kept.first(), kept.last()));
        let rest = SeriesCursor { sequence: self.sequence, first, last, reverse: options.reverse };
        SeriesRange::new(Arc::clone(&self.info), store, rest, left)
    }

    /// What of a span has points that are seen; none if nothing has.
    pub(crate) fn kept(&self, span: TimeSpan) -> Result<Option<TimeSpan>> {
        let (tiers, seen_from) = self.known_tiers()?;
        if tiers.is_some_and(|info| info.is_purged()) {
            return Ok(None);
        }
        let kept = TimeSpan { first: span.first.max(seen_from), ..span };
        Ok((kept.first <= kept.last).then_some(kept))
    }

    /// Goes on where another range ended, with at most so many points. The snapshot has to show the
    /// commit of that one: [`SeriesCursor::sequence`].
    ///
    /// # Errors
    /// `Invalid` if it shows another commit.
    pub fn resume(&self, cursor: SeriesCursor, limit: Option<usize>) -> Result<SeriesRange> {
        if cursor.sequence != self.sequence {
            let (is, wanted) = (self.sequence, cursor.sequence);
            let message = format!(
                "the cursor goes on as of commit {wanted}, not {is}: read the series as of that one"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let options = RangeOptions { limit, reverse: cursor.reverse, bounding: false };
        self.range_with(cursor.first..=cursor.last, &options)
    }

    /// A span together with the points beside it; none if there is nothing.
    fn with_neighbours(&self, (first, last): (i128, i128)) -> Result<Option<TimeSpan>> {
        let before = match i64::try_from(first - 1) {
            Ok(before) => self.last_until(Micros(before))?,
            Err(_) => None,
        };
        let after = match i64::try_from(last + 1) {
            Ok(after) => self.first_from(Micros(after))?,
            Err(_) => None,
        };
        let first = before.map_or(first, |point| point.time.0.into());
        Ok(TimeSpan::between(first, after.map_or(last, |point| point.time.0.into())))
    }

    /// The first point that is not before a time.
    fn first_from(&self, time: Micros) -> Result<Option<Point>> {
        let one = RangeOptions { limit: Some(1), ..RangeOptions::default() };
        Ok(self.range_with(time.., &one)?.read()?.get(0))
    }

    /// Where its points are, and under which number.
    pub(super) fn place(&self) -> (&View, TreeId) {
        (&self.view, self.info.number)
    }

    /// Reads all that is there, also what is not kept any more.
    pub(crate) fn read(&self, course: Course) -> Result<Reading> {
        self.store()?.read(course)
    }

    /// Reads what is young of it, and nothing else.
    pub(super) fn read_young(&self, young: &Young, course: Course) -> Result<Reading> {
        let sources = source::young(young.pieces.clone(), course, self.view.store.memory())?;
        let as_of = (self.sequence, young.deletes.clone());
        Ok(Reading::new(self.info.definition.value_type, course, sources, as_of))
    }

    /// What its points are read from.
    pub(super) fn store(&self) -> Result<PointStore> {
        let (view, series) = self.place();
        PointStore::of(view, (series, self.info.definition.value_type), self.sequence)
    }

    /// What was deleted of it, as of now.
    pub(crate) fn deletes(&self) -> Result<Vec<Delete>> {
        let (view, series) = self.place();
        let young = view.series.of(series);
        deletes::all(young.deletes, &view.store.live(), series)
    }

    /// The point with the greatest time.
    pub fn latest(&self) -> Result<Option<Point>> {
        self.last_until(Micros(i64::MAX))
    }

    /// The last point that is not after a time.
    fn last_until(&self, time: Micros) -> Result<Option<Point>> {
        let one = RangeOptions { limit: Some(1), reverse: true, bounding: false };
        Ok(self.range_with(..=time, &one)?.read()?.get(0))
    }

    /// The value at a time: none before the first point. Its time is the one that was asked for,
    /// its quality that of the point it was made from, of two
    /// [the worse one](crate::Quality::worse).
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Interpolation, Micros, SeriesDefinition};
    /// # use duramen::{SeriesValue, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
    /// level.append(Micros(10), 1.0, &CommitOptions::default())?;
    /// level.append(Micros(20), 3.0, &CommitOptions::default())?;
    /// let now = level.snapshot();
    /// let at = |how| Ok::<_, duramen::Error>(now.value_at(Micros(15), how)?.map(|p| p.value));
    /// assert_eq!(at(Interpolation::Linear)?, Some(SeriesValue::F64(2.0)));
    /// assert_eq!(at(Interpolation::Step)?, Some(SeriesValue::F64(1.0)));
    /// assert_eq!(at(Interpolation::Stored)?, None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn value_at(&self, time: Micros, how: Interpolation) -> Result<Option<Point>> {
        if how == Interpolation::Stored {
            return Ok(self.range(time..=time)?.read()?.get(0));
        }
        let Some(before) = self.last_until(time)? else { return Ok(None) };
        if before.time == time || how == Interpolation::Step || time.0 == i64::MAX {
            return Ok(Some(Point { time, ..before }));
        }
        let after = self.first_from(Micros(time.0 + 1))?;
        Ok(Some(
            after.map_or(Point { time, ..before.clone() }, |after| between(&before, &after, time)),
        ))
    }
}

/// The point on the line between two.
fn between(before: &Point, after: &Point, time: Micros) -> Point {
    let quality = before.quality.worse(after.quality);
    let (times, at) = ((before.time.0, after.time.0), time.0);
    let value = match (&before.value, &after.value) {
        (SeriesValue::F64(a), SeriesValue::F64(b)) => {
            SeriesValue::F64(number_at((*a, *b), times, at))
        }
        (SeriesValue::F32(a), SeriesValue::F32(b)) => {
            let ends = (f64::from(*a), f64::from(*b));
            SeriesValue::F32(to_f32(number_at(ends, times, at)))
        }
        (SeriesValue::I64(a), SeriesValue::I64(b)) => {
            SeriesValue::I64(integer_at((*a, *b), times, at))
        }
        _ => return Point { time, ..before.clone() },
    };
    Point { time, value, quality }
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest f32 is what is asked for")]
fn to_f32(value: f64) -> f32 {
    value as f32
}
