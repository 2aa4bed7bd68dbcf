//! Series of a database, and what happened to each of their times.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use super::super::naive::Told;
use super::super::rollups::Seconds;
use super::spans::{Kind, Span};
use crate::io::MemoryDevice;
use crate::series::block::tests::Numbers64;
use crate::{
    CommitOptions, CommitSequence, Database, Durability, Micros, Options, Points, Quality, Rollup,
    SeriesDefinition, SeriesValue, ValueType,
};

/// What happened to a time: in which commit, and the point then, if it was not deleted.
type Fate = (CommitSequence, Option<(SeriesValue, Quality)>);

/// One series.
pub(super) struct Tag {
    pub(super) of: ValueType,
    /// What it was called from which commit on; nothing from when it was dropped.
    names: Vec<(CommitSequence, Option<String>)>,
    is_purged: bool,
    /// For how many seconds its points are kept.
    keep: Option<i64>,
    fates: BTreeMap<i64, Vec<Fate>>,
}

impl Tag {
    pub(super) fn name_at(&self, at: CommitSequence) -> Option<&str> {
        if self.is_purged {
            return None;
        }
        self.names.iter().rev().find(|one| one.0 <= at)?.1.as_deref()
    }

    pub(super) fn is_asked_at(&self, at: CommitSequence) -> bool {
        self.name_at(at).is_some()
    }

    fn name(&self) -> Option<&str> {
        self.name_at(CommitSequence(u64::MAX))
    }
}

/// A database.
pub(super) struct Plant {
    pub(super) seed: u64,
    device: Arc<MemoryDevice>,
    clock: Arc<Seconds>,
    now: i64,
    db: Option<Database>,
    random: Numbers64,
    pub(super) tags: Vec<Tag>,
    pub(super) commits: Vec<CommitSequence>,
    /// Times are multiples of a unit behind a base.
    base: i64,
    unit: i64,
    has_ends_of_time: bool,
    is_of_calendar: bool,
}

const LAST: u64 = 900;
/// Widths of rollups in units; most are no multiples of others.
const WIDTHS: [i64; 6] = [3, 7, 10, 15, 60, 84];
const SECOND: i64 = 1_000_000;
/// Midnights near which clocks change, in seconds, and where they do.
const CHANGES: [(i64, &str); 8] = [
    (1_711_843_200, "Europe/Berlin"),
    (1_729_987_200, "Europe/Berlin"),
    (1_162_080_000, "America/St_Johns"),
    (1_143_936_000, "America/St_Johns"),
    (1_325_203_200, "Pacific/Apia"),
    (1_541_289_600, "America/Sao_Paulo"),
    (1_730_610_000, "America/Havana"),
    (1_696_000_000, "Australia/Lord_Howe"),
];

impl Plant {
    pub(super) fn new(seed: u64) -> Self {
        let (device, clock) = (Arc::new(MemoryDevice::new()), Arc::new(Seconds::default()));
        let mut new = Self {
            seed,
            device,
            clock,
            now: 0,
            db: None,
            random: Numbers64(seed.wrapping_mul(0x1_0001)),
            tags: Vec::new(),
            commits: Vec::new(),
            base: 0,
            unit: 1,
            has_ends_of_time: false,
            is_of_calendar: seed % 3 == 2,
        };
        if new.is_of_calendar {
            // Some days before a change, by twenty minutes.
            new.unit = 1_200 * SECOND;
            let change = CHANGES[new.below(CHANGES.len())].0;
            new.base = change * SECOND - 450 * new.unit;
        } else {
            new.unit = [1, 1_000, SECOND, 10 * SECOND][new.below(4)];
            new.base = [0, -300 * new.unit, 77_777 * SECOND][new.below(3)];
            new.has_ends_of_time = new.below(3) == 0;
        }
        new.now = (new.base + 900 * new.unit) / SECOND;
        new.clock.set(new.now);
        new.reopen();
        for at in 0..3 {
            new.create(format!("s/{at}"));
        }
        new
    }

    pub(super) fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.db = None;
        let clock = self.clock.clone();
        let durability = Durability::Interval(1_000);
        let options = Options { background: false, durability, clock, ..Options::default() };
        self.db = Some(Database::open_device(self.device.clone(), options).unwrap());
    }

    pub(super) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.random.below(count as u64)).unwrap()
    }

    fn create(&mut self, name: String) {
        let of = ValueType::ALL[self.below(5)];
        let can_keep = self.unit >= SECOND && !self.has_ends_of_time;
        let keep = (can_keep && self.below(3) == 0).then(|| 400 * self.unit / SECOND);
        let mut definition = self.definition(of);
        if let Some(keep) = keep {
            definition.keep = Some(Duration::from_secs(keep.unsigned_abs()));
            definition.rollups.clear();
        }
        self.db().create_series(&name, &definition).unwrap();
        let at = self.db().snapshot().sequence();
        let names = vec![(at, Some(name))];
        self.tags.push(Tag { of, names, is_purged: false, keep, fates: BTreeMap::new() });
        self.commits.push(at);
    }

    fn definition(&mut self, of: ValueType) -> SeriesDefinition {
        let bits = self.below(1 << WIDTHS.len()) & self.below(1 << WIDTHS.len());
        let widths = (0..WIDTHS.len()).filter(|at| bits >> at & 1 == 1).map(|at| WIDTHS[at]);
        let micros = |width: i64| (width * self.unit).unsigned_abs();
        let rollups = widths.map(|width| Rollup::new(Duration::from_micros(micros(width))));
        SeriesDefinition { rollups: rollups.collect(), ..SeriesDefinition::new(of) }
    }

    pub(super) fn value(&mut self, of: ValueType) -> SeriesValue {
        let number = self.random.below(12);
        let float = f64::from(u8::try_from(number).unwrap()) - 5.5;
        match of {
            ValueType::F64 => SeriesValue::F64(match number {
                0 => f64::NAN,
                1 => -0.0,
                2 => 0.0,
                3 => 1e15 + 0.25,
                4 if self.seed.is_multiple_of(4) => f64::INFINITY,
                5 if self.seed.is_multiple_of(8) => f64::NEG_INFINITY,
                _ => float,
            }),
            ValueType::F32 => SeriesValue::F32([f32::NAN, 0.0, 0.1, 7.5, -2.5, 1e7][self.below(6)]),
            ValueType::I64 => SeriesValue::I64(match number {
                0 => i64::MAX,
                1 => i64::MIN,
                2 => i64::MAX - 1,
                3 => 9_007_199_254_740_993,
                _ => number.cast_signed() - 5,
            }),
            ValueType::Bool => SeriesValue::Bool(number < 4),
            ValueType::String => SeriesValue::String(["", "on", "off", "7"][self.below(4)].into()),
        }
    }

    pub(super) fn time(&mut self) -> i64 {
        if self.has_ends_of_time {
            match self.below(40) {
                0 => return i64::MIN + self.random.below(3).cast_signed(),
                1 => return i64::MAX - self.random.below(3).cast_signed(),
                _ => {}
            }
        }
        let time = self.base + self.random.below(LAST).cast_signed() * self.unit;
        if self.below(8) > 0 {
            time
        } else {
            time + self.random.below(self.unit.unsigned_abs()).cast_signed()
        }
    }

    /// A span, most often between times where something is, and of whole windows sometimes.
    pub(super) fn span(&mut self) -> Span {
        let from = self.time().saturating_sub(20 * self.unit).max(i64::MIN + 1);
        let units = 1 + self.random.below(LAST).cast_signed();
        let to = from.saturating_add(units * self.unit).min(i64::MAX - 1);
        match self.below(8) {
            0 => Span { from: None, to: None },
            1 => Span { from: Some(from), to: None },
            2 => Span { from: None, to: Some(to) },
            _ => Span { from: Some(from), to: Some(to) },
        }
    }

    pub(super) fn kind(&mut self) -> Kind {
        if self.is_of_calendar && self.below(4) > 0 {
            let zones = [CHANGES[self.below(CHANGES.len())].1, self.zone(), "UTC"];
            let count = [1, 1, 2, 3][self.below(4)];
            let unit = ["d", "d", "w", "mo", "y"][self.below(5)];
            return Kind::Calendar(count, unit, zones[self.below(3)]);
        }
        let widths = [7, 14, 60, 84, 105, 120, 210, 420, 1 + self.random.below(99).cast_signed()];
        match self.below(10) {
            0 => Kind::Whole,
            1 if self.has_ends_of_time => {
                Kind::Fixed(i64::MAX - self.random.below(9).cast_signed())
            }
            2 if self.has_ends_of_time => Kind::Fixed(1 << 60),
            _ => Kind::Fixed(widths[self.below(widths.len())] * self.unit),
        }
    }

    /// The zone whose change the points are around.
    fn zone(&self) -> &'static str {
        let change = (self.base + 450 * self.unit) / SECOND;
        CHANGES.iter().find(|one| one.0 == change).map_or("UTC", |one| one.1)
    }

    /// A series that is there.
    fn living(&mut self) -> Option<usize> {
        let all: Vec<usize> =
            (0..self.tags.len()).filter(|at| self.tags[*at].name().is_some()).collect();
        (!all.is_empty()).then(|| all[self.below(all.len())])
    }

    fn name(&self, tag: usize) -> String {
        self.tags[tag].name().unwrap().to_owned()
    }

    /// Points, most often behind each other, as they come from devices.
    fn some_points(&mut self, of: ValueType) -> (Points, BTreeMap<i64, (SeriesValue, Quality)>) {
        let mut points = Points::new(of);
        let count = 1 + self.below(40);
        let step = (1 + self.random.below(9).cast_signed()) * self.unit;
        let (mut time, in_order) = (self.time(), self.below(3) > 0);
        let mut written = BTreeMap::new();
        for _ in 0..count {
            time = if in_order { time.saturating_add(step) } else { self.time() };
            let value = self.value(of);
            let quality =
                [Quality::GOOD, Quality::GOOD, Quality::BAD, Quality::UNCERTAIN][self.below(4)];
            points.push(Micros(time), value.clone(), quality).unwrap();
            written.insert(time, (value, quality));
        }
        (points, written)
    }

    fn note(
        &mut self,
        tag: usize,
        at: CommitSequence,
        time: i64,
        point: Option<(SeriesValue, Quality)>,
    ) {
        let fates = self.tags[tag].fates.entry(time).or_default();
        fates.retain(|fate| fate.0 != at);
        fates.push((at, point));
    }

    fn note_delete(&mut self, tag: usize, at: CommitSequence, (from, to): (i64, i64)) {
        let times: Vec<i64> = self.tags[tag].fates.range(from..to).map(|(time, _)| *time).collect();
        for time in times {
            self.note(tag, at, time, None);
        }
    }

    /// A commit of points of some series, and of spans that are deleted.
    fn commit(&mut self) {
        let mut changes = Vec::new();
        for _ in 0..=self.below(3) {
            let Some(tag) = self.living() else { return };
            let deleted = (self.below(4) == 0).then(|| {
                let from = self.time();
                (from, from.saturating_add((1 + self.random.below(200).cast_signed()) * self.unit))
            });
            let (points, written) = self.some_points(self.tags[tag].of);
            changes.push((tag, deleted, points, written));
        }
        let mut transaction = self.db().transaction();
        for (tag, deleted, points, _) in &changes {
            let name = self.name(*tag);
            if let Some((from, to)) = *deleted {
                transaction.delete_points(&name, Micros(from)..Micros(to)).unwrap();
            }
            transaction.append_points(&name, points).unwrap();
        }
        let at = transaction.commit(&CommitOptions::default()).unwrap().sequence;
        for (tag, deleted, _, written) in changes {
            if let Some(span) = deleted {
                self.note_delete(tag, at, span);
            }
            for (time, point) in written {
                self.note(tag, at, time, Some(point));
            }
        }
        self.commits.push(at);
    }

    /// Points one by one, which become one commit when they are sealed.
    fn stage(&mut self) {
        let mut staged = Vec::new();
        for _ in 0..=self.below(30) {
            let Some(tag) = self.living() else { return };
            let of = self.tags[tag].of;
            if of == ValueType::String {
                continue;
            }
            let (time, value) = (self.time(), self.value(of));
            let quality = [Quality::GOOD, Quality::BAD][self.below(2)];
            let series = self.db().series(&self.name(tag)).unwrap();
            let how = CommitOptions::default();
            series.append_with_quality((Micros(time), quality), value.clone(), &how).unwrap();
            staged.push((tag, time, value, quality));
        }
        self.db().flush().unwrap();
        let at = self.db().snapshot().sequence();
        if staged.is_empty() {
            return;
        }
        for (tag, time, value, quality) in staged {
            self.note(tag, at, time, Some((value, quality)));
        }
        self.commits.push(at);
    }

    fn delete(&mut self) {
        let Some(tag) = self.living() else { return };
        let from = self.time();
        let to = from.saturating_add((1 + self.random.below(200).cast_signed()) * self.unit);
        let series = self.db().series(&self.name(tag)).unwrap();
        let made = series.delete(Micros(from)..Micros(to), &CommitOptions::default()).unwrap();
        if made.sequence.0 > 0 {
            self.note_delete(tag, made.sequence, (from, to));
            self.commits.push(made.sequence);
        }
    }

    /// What is done to a series and not to its points.
    fn rename_or_drop(&mut self) {
        let Some(tag) = self.living() else { return };
        let name = self.name(tag);
        let new = format!("s/{}", self.below(7));
        let is_free = self.tags.iter().all(|tag| tag.name() != Some(&new));
        let mut transaction = self.db().transaction();
        match self.below(6) {
            0..3 if is_free => {
                transaction.rename_series(&name, &new).unwrap();
                let at = transaction.commit(&CommitOptions::default()).unwrap().sequence;
                self.tags[tag].names.push((at, Some(new)));
                self.commits.push(at);
            }
            3 => {
                transaction.delete_series(&name).unwrap();
                let at = transaction.commit(&CommitOptions::default()).unwrap().sequence;
                self.tags[tag].names.push((at, None));
                self.commits.push(at);
            }
            _ => {
                drop(transaction);
                if is_free {
                    self.create(new);
                }
            }
        }
    }

    fn define(&mut self) {
        let Some(tag) = self.living() else { return };
        if self.tags[tag].keep.is_some() {
            return;
        }
        let definition = self.definition(self.tags[tag].of);
        let mut transaction = self.db().transaction();
        transaction.change_series(&self.name(tag), &definition).unwrap();
        transaction.commit(&CommitOptions::default()).unwrap();
    }

    pub(super) fn step(&mut self) {
        match self.below(24) {
            0..9 => self.commit(),
            9 | 10 => self.stage(),
            11 | 12 => self.delete(),
            13..17 => self.db().checkpoint().unwrap(),
            17 => self.db().compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            18 => {
                self.db().engine.compact_all(&mut |_, _| ControlFlow::Continue(())).unwrap();
            }
            19 => self.reopen(),
            20 | 21 => self.rename_or_drop(),
            22 => self.define(),
            _ => {
                let units = self.random.below(60).cast_signed();
                self.now += units * self.unit.max(SECOND) / SECOND;
                self.clock.set(self.now);
            }
        }
    }

    /// The points that are there as of a commit.
    pub(super) fn points(&self, tag: usize, at: CommitSequence) -> Vec<Told> {
        let tag = &self.tags[tag];
        let now = self.db().engine.now().0;
        let from = tag.keep.map_or(i64::MIN, |keep| now - keep * SECOND);
        let seen = |fates: &Vec<Fate>| {
            fates.iter().rev().find(|fate| fate.0 <= at).and_then(|fate| fate.1.clone())
        };
        let points = tag.fates.range(from..);
        points
            .filter_map(|(time, fates)| seen(fates).map(|(value, quality)| (*time, value, quality)))
            .collect()
    }
}
