//! One series of an open database: how points come in, and what can be asked of them.

use std::borrow::Cow;
use std::ops::RangeBounds;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::database::{Database, DatabaseSnapshot};
use crate::durability::Durability;
use crate::engine::Engine;
use crate::engine::catalogue::check_name;
use crate::engine::options::CommitOptions;
use crate::engine::record::{Facts, Prepared};
use crate::error::{Error, ErrorKind, Result};
use crate::revision::{CommitSequence, Micros};
use crate::series::changes::SeriesChanges;
use crate::series::commits;
use crate::series::definition::{SeriesDefinition, SeriesInfo};
use crate::series::lossy::Lossy;
use crate::series::names;
use crate::series::points::{Point, Points};
use crate::series::quality::Quality;
use crate::series::range::{RangeOptions, SeriesRange};
use crate::series::rules::SeriesRule;
use crate::series::snapshot::SeriesSnapshot;
use crate::series::span::TimeSpan;
use crate::series::stats::SeriesStats;
use crate::series::tags;
use crate::series::value::{SeriesValue, ValueType};
use crate::staging::{self, Binding, StagedPoint};
use crate::sync::Mutex;
use crate::transaction::{Committed, check_text};
use crate::tree::cell_key::TreeId;

/// A series of an open database: points of one type, each with a time and a quality. Clones are
/// handles to the same one.
///
/// ```
/// use duramen::{CommitOptions, Database, Micros, SeriesDefinition, SeriesValue, ValueType};
///
/// let db = Database::memory()?;
/// let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
/// let how = CommitOptions::default();
/// level.append(Micros(1_000_000), 2.5, &how)?;
/// let before = level.append(Micros(2_000_000), 2.25, &how)?.sequence;
/// // The newest write of a time holds, and what it took the place of stays readable.
/// level.append(Micros(2_000_000), 2.75, &how)?;
/// let last = level.latest()?.expect("there are points");
/// assert_eq!(last.value, SeriesValue::F64(2.75));
/// let last = level.at(before).latest()?.expect("there were points");
/// assert_eq!(last.value, SeriesValue::F64(2.25));
/// assert_eq!(level.range(Micros(0)..Micros(2_000_000))?.read()?.times(), [1_000_000]);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Series {
    engine: Arc<Engine>,
    info: Arc<SeriesInfo>,
    known: Arc<Known>,
}

/// What handles to a series found out.
#[derive(Debug, Default)]
struct Known {
    /// The last revision of the catalogue that was found to have it.
    revision: AtomicU32,
    /// The last state of the catalogue, as the staging counts them, that was found to have it.
    catalogue: AtomicU64,
    /// What of its points is stored, as the catalogue said it then.
    lossy: Mutex<Option<Lossy>>,
    /// Whether these are kept for some time only, and the definition then.
    forgets: AtomicBool,
    forgetting: Mutex<Option<SeriesDefinition>>,
    /// Where its points are staged.
    binding: OnceLock<Arc<Binding>>,
}

impl Known {
    /// Takes what the catalogue says.
    fn learn(&self, definition: &SeriesDefinition) {
        *self.lossy.lock() = definition.lossy;
        let forgetting = definition.keep.map(|_| definition.clone());
        self.forgets.store(forgetting.is_some(), Ordering::Relaxed);
        *self.forgetting.lock() = forgetting;
    }
}

impl Series {
    pub(crate) fn new(engine: Arc<Engine>, info: SeriesInfo) -> Self {
        let known = Known::default();
        known.learn(&info.definition);
        Self { engine, info: Arc::new(info), known: Arc::new(known) }
    }

    /// Its name when the handle was made.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The type of its values.
    #[inline]
    pub fn value_type(&self) -> ValueType {
        self.info.definition.value_type
    }

    /// What the catalogue said of it when the handle was made.
    pub fn info(&self) -> &SeriesInfo {
        &self.info
    }

    /// Appends a point of good quality.
    ///
    /// With the durability [`Interval`](Durability::Interval) it is *staged*: a killed process
    /// cannot lose it, nor can a power loss once the interval is over, and it becomes part of a
    /// commit later, so that [`Committed::sequence`] is 0. Reads of the series see it at once,
    /// snapshots of the database with its commit; [`Database::flush`] makes that commit. Text, and
    /// a point with an author, a message or a timestamp, is a commit of its own.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Durability, Micros, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::F64))?;
    /// let durability = Some(Durability::Interval(100));
    /// let soon = CommitOptions { durability, ..CommitOptions::default() };
    /// for second in 0..1_000 {
    ///     level.append(Micros(second * 1_000_000), 2.5, &soon)?;
    /// }
    /// assert_eq!(level.stats()?.points, 1_000);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Series::append_points`].
    #[inline]
    pub fn append(
        &self,
        time: Micros,
        value: impl Into<SeriesValue>,
        options: &CommitOptions,
    ) -> Result<Committed> {
        self.append_with_quality((time, Quality::GOOD), value, options)
    }

    /// Appends a point of any quality.
    ///
    /// # Errors
    /// Those of [`Series::append_points`].
    #[inline]
    pub fn append_with_quality(
        &self,
        (time, quality): (Micros, Quality),
        value: impl Into<SeriesValue>,
        options: &CommitOptions,
    ) -> Result<Committed> {
        let value = value.into();
        let durability = options.durability.unwrap_or(self.engine.options.durability);
        if let Durability::Interval(interval_ms) = durability
            && options.is_plain()
            && value.value_type() == self.value_type()
            && let Some(bits) = staging::bits(&value)
        {
            let point = StagedPoint {
                series: self.info.number,
                time: time.0,
                bits,
                value_type: value.value_type(),
                quality: quality.0,
            };
            match self.stage(&point, interval_ms) {
                // There is no room for a file to stage it in; there may be for a commit.
                Err(error) if error.kind() == ErrorKind::Full => {}
                staged => {
                    let unkept = || self.unkept(&[time.0]);
                    return staged.map(|()| Committed { unkept: unkept(), ..Committed::default() });
                }
            }
        }
        let mut points = Points::new(self.value_type());
        let pushed = points.push(time, value, quality);
        pushed.map_err(|error| error.in_context(format!("series {:?}", self.name())))?;
        self.append_points(&points, options)
    }

    /// Appends points as one commit, in any order of their times. Where there is a point of that
    /// time the new one takes its place; of several of one time the last one given does. Those that
    /// are older than the series keeps them are counted in [`Committed::unkept`].
    ///
    /// # Errors
    /// `Invalid` if they are of another type, `NotFound` if the series was deleted or has got
    /// another name, and those of every commit.
    pub fn append_points(&self, points: &Points, options: &CommitOptions) -> Result<Committed> {
        check_type(&self.info, points)?;
        self.engine.journal()?;
        let mut changes = SeriesChanges::default();
        if !points.is_empty() {
            self.check_is_there()?;
            let lossy = *self.known.lossy.lock();
            changes.append(self.info.number, Cow::Borrowed(points), lossy)?;
        }
        let committed = self.commit(changes, options)?;
        Ok(Committed { unkept: self.unkept(points.times()), ..committed })
    }

    /// What [`Committed::unkept`] says of points with these times.
    #[inline]
    fn unkept(&self, times: &[i64]) -> Vec<(String, u64)> {
        // Points that are staged take less time than a lock.
        if !self.known.forgets.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let known = self.known.forgetting.lock();
        let count = |known: &SeriesDefinition| known.count_unkept(times, self.engine.now());
        let count = known.as_ref().map_or(0, count);
        if count > 0 { vec![(self.name().to_owned(), count)] } else { Vec::new() }
    }

    /// Deletes the points of a span of time. As of an earlier commit they are still there.
    ///
    /// # Errors
    /// `NotFound` if the series was deleted or has got another name, and those of every commit.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// let how = CommitOptions::default();
    /// level.append(Micros(1), 10, &how)?;
    /// level.append(Micros(2), 20, &how)?;
    /// level.delete(..Micros(2), &how)?;
    /// assert_eq!(level.range(..)?.read()?.times(), [2]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn delete(
        &self,
        span: impl RangeBounds<Micros>,
        options: &CommitOptions,
    ) -> Result<Committed> {
        let mut changes = SeriesChanges::default();
        if let Some(span) = TimeSpan::of(&span) {
            changes.delete(self.info.number, span);
        }
        self.commit(changes, options)
    }

    #[inline]
    fn stage(&self, point: &StagedPoint, interval_ms: u32) -> Result<()> {
        let catalogue = self.engine.staging.catalogue();
        if self.known.catalogue.load(Ordering::Relaxed) != catalogue {
            self.engine.journal()?;
            self.check_is_there()?;
            self.bind();
            self.known.catalogue.store(catalogue, Ordering::Relaxed);
        }
        let binding = self.known.binding.get_or_init(|| self.bind());
        self.engine.stage(binding, point, interval_ms)
    }

    /// Where its points are staged, which is told what of them is stored.
    fn bind(&self) -> Arc<Binding> {
        self.engine.staging.bind(self.info.number, *self.known.lossy.lock())
    }

    fn commit(&self, changes: SeriesChanges, options: &CommitOptions) -> Result<Committed> {
        check_text("author", options.author.as_deref())?;
        check_text("message", options.message.as_deref())?;
        self.engine.journal()?;
        if changes.is_empty() {
            return Ok(Committed::default());
        }
        self.check_is_there()?;
        // Points that were staged before come before this commit.
        self.engine.seal_of(self.info.number)?;
        let changes = changes.settled()?;
        let prepare = || Prepared::new(Vec::new(), Facts::of(options));
        let durability = options.durability.unwrap_or(self.engine.options.durability);
        let ticket = self.engine.queue_points(&changes, prepare, durability)?;
        self.engine.acknowledge(ticket)?;
        let (sequence, timestamp) = (ticket.sequence, ticket.timestamp);
        Ok(Committed { sequence, timestamp, ..Committed::default() })
    }

    /// Refuses to write a series that the catalogue does not have by this name any more.
    fn check_is_there(&self) -> Result<()> {
        let (name, view) = (self.name(), self.engine.view());
        let newest = tags::newest(view.tree(TreeId::SERIES)?.as_ref());
        if self.known.revision.load(Ordering::Relaxed) == newest {
            return Ok(());
        }
        let (tags, head) = view.series_tags(self.engine.published())?;
        let now = tags::find(&tags, name, head)?.ok_or_else(|| tags::no_series(name))?;
        if now.number == self.info.number {
            // A handle that is older says so too: what it appends is stored as it was told last.
            self.known.learn(&now.definition);
            self.known.revision.store(head, Ordering::Relaxed);
            return Ok(());
        }
        let message = format!(
            "series {name:?} was deleted or renamed, and there is another one of that name: open \
             it anew"
        );
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// The series as of the last commit. Points that are staged become one first; those for which
    /// the device has no room are not in it.
    pub fn snapshot(&self) -> SeriesSnapshot {
        // Who asks for points, and not for a snapshot, is told why they cannot be read.
        let _ = self.engine.seal_of(self.info.number);
        self.at(self.engine.published())
    }

    /// The series with all points that were acknowledged.
    pub(super) fn head(&self) -> Result<SeriesSnapshot> {
        self.engine.seal_of(self.info.number)?;
        Ok(self.at(self.engine.published()))
    }

    /// The series as of a commit, as [`Committed::sequence`] tells it.
    pub fn at(&self, sequence: CommitSequence) -> SeriesSnapshot {
        let sequence = sequence.min(self.engine.published());
        SeriesSnapshot::new(self.engine.view(), Arc::clone(&self.info), sequence)
            .kept_at(self.engine.now())
    }

    /// The series as of a time: of the last commit that changed series and was made by then. Before
    /// the first one it has no points.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// # let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// let first = level.append(Micros(1), 10, &CommitOptions::default())?;
    /// level.append(Micros(2), 20, &CommitOptions::default())?;
    /// assert_eq!(level.at_time(first.timestamp)?.range(..)?.read()?.times(), [1]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of reading.
    pub fn at_time(&self, time: Micros) -> Result<SeriesSnapshot> {
        Ok(self.at(commits::last_by(&self.engine.view(), time)?))
    }

    /// The points of a span of time, rising.
    pub fn range(&self, span: impl RangeBounds<Micros>) -> Result<SeriesRange> {
        self.head()?.range(span)
    }

    /// The same, saying in which order, and how many.
    pub fn range_with(
        &self,
        span: impl RangeBounds<Micros>,
        options: &RangeOptions,
    ) -> Result<SeriesRange> {
        self.head()?.range_with(span, options)
    }

    /// The size of the series.
    pub fn stats(&self) -> Result<SeriesStats> {
        self.head()?.stats()
    }

    /// The point with the greatest time.
    pub fn latest(&self) -> Result<Option<Point>> {
        self.head()?.latest()
    }
}

/// Refuses points of another type than the series has.
pub(crate) fn check_type(info: &SeriesInfo, points: &Points) -> Result<()> {
    let (wanted, given) = (info.definition.value_type, points.value_type());
    if wanted == given {
        return Ok(());
    }
    let name = &info.name;
    let message = format!("series {name:?} has values of type {wanted}, not {given}");
    Err(Error::new(ErrorKind::Invalid, message))
}

impl Database {
    /// Makes a series.
    ///
    /// # Errors
    /// `Conflict` if there is a series or a document of that name, `Invalid` if the name or the
    /// definition cannot be.
    pub fn create_series(&self, name: &str, definition: &SeriesDefinition) -> Result<Series> {
        self.create_series_all(&[(name, definition.clone())])?;
        self.series(name)
    }

    /// Makes any number of series in one commit, all or none. The errors of
    /// [`Database::create_series`].
    pub fn create_series_all<N: AsRef<str>>(
        &self,
        series: &[(N, SeriesDefinition)],
    ) -> Result<Committed> {
        let mut transaction = self.transaction();
        transaction.create_series_all(series)?;
        transaction.commit(&CommitOptions::default())
    }

    /// A series; `NotFound` if there is none of that name.
    pub fn series(&self, name: &str) -> Result<Series> {
        check_name(name)?;
        let info = self.engine.view().series_info(name, self.engine.published())?;
        Ok(Series::new(Arc::clone(&self.engine), info))
    }

    /// The database as of a time, to read its series: as of the last commit made by then that
    /// changed points, or what is said of series. Before the first one there are none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn series_at_time(&self, time: Micros) -> Result<DatabaseSnapshot> {
        let view = self.engine.view();
        let points = commits::last_by(&view, time)?;
        Ok(self.snapshot_at(points.max(view.series_tags_by(self.engine.published(), time)?)))
    }

    /// What is kept of series by the patterns of their names, sorted by these.
    pub fn series_rules(&self) -> Result<Vec<SeriesRule>> {
        self.snapshot().series_rules()
    }

    /// The series that a filter lets through, sorted by name.
    pub fn find_series(&self, filter: &crate::SeriesFilter) -> Result<Vec<SeriesInfo>> {
        self.snapshot().find_series(filter)
    }
}

impl DatabaseSnapshot {
    /// A series as of that commit; `NotFound` if there was none of that name.
    pub fn series(&self, name: &str) -> Result<SeriesSnapshot> {
        check_name(name)?;
        let view = self.engine.view();
        let info = view.series_info(name, self.sequence)?;
        let snapshot = SeriesSnapshot::new(view, Arc::new(info), self.sequence);
        Ok(snapshot.kept_at(self.engine.now()))
    }

    /// What was kept of series by the patterns of their names, sorted by these.
    pub fn series_rules(&self) -> Result<Vec<SeriesRule>> {
        self.engine.view().series_rules(self.sequence)
    }

    /// The series as of that commit that a filter lets through, sorted by name.
    pub fn find_series(&self, filter: &crate::SeriesFilter) -> Result<Vec<SeriesInfo>> {
        let view = self.engine.view();
        let (tags, head) = view.series_tags(self.sequence)?;
        let found = names::like((&tags, head), filter.name_pattern())?;
        names::read((&tags, head), &found, filter)
    }
}
