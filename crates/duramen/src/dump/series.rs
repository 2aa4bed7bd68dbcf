//! What a dump says of series: what they are, the commits that changed them, and all that was
//! written to them, in the order of their names.
//!
//! Invariant: how much stands in one item depends on what is said alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::vec;

use super::{DumpItem, DumpedPoints};
use crate::database::DatabaseSnapshot;
use crate::engine::View;
use crate::error::Result;
use crate::limits::{DUMP_ITEM_POINTS, DUMP_ITEM_TEXT_BYTES};
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros};
use crate::series::commits::{CommitTime, Commits};
use crate::series::past::{self, Past};
use crate::series::span::TimeSpan;
use crate::series::young::Delete;
use crate::series::{
    Course, Direction, Points, Reading, Sequences, SeriesInfo, SeriesSnapshot, Values, rules, tags,
};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;

/// Points, commits and deleted spans of one item.
const ITEM_LEN: usize = if cfg!(test) { 5 } else { DUMP_ITEM_POINTS };

/// The series of a database as of one commit.
#[derive(Debug)]
pub(super) struct SeriesDump {
    view: Arc<View>,
    sequence: CommitSequence,
    now: Micros,
    /// Their catalogue, and its revision.
    tags: (Arc<Tree>, u32),
    names: Arc<[(Box<str>, NodeId)]>,
    /// What some of them were before.
    past: BTreeMap<TreeId, Past>,
    /// Rules that are still to be said.
    rules: Option<String>,
    /// The next series to be defined, and the next of which all is said.
    defined: usize,
    said: usize,
    commits: Option<CommitItems>,
    /// Of the series before the next.
    points: Option<PointItems>,
    deletes: Option<(String, vec::IntoIter<Delete>)>,
}

/// Commits on their way into items.
#[derive(Debug)]
struct CommitItems {
    commits: Commits,
    sequence: CommitSequence,
    waiting: Vec<CommitTime>,
}

/// Points of a series on their way into items.
#[derive(Debug)]
pub(crate) struct PointItems {
    series: String,
    reading: Reading,
    points: Points,
    sequences: Sequences,
    /// How many of those were said.
    said: usize,
}

impl SeriesDump {
    pub(super) fn of(snapshot: &DatabaseSnapshot) -> Result<Self> {
        let (view, sequence) = (snapshot.engine.view(), snapshot.sequence);
        let tags = view.series_tags(sequence)?;
        let mut names: Vec<(Box<str>, NodeId)> = Vec::new();
        tags::each(&tags.0, tags.1, &mut |name, entry| {
            names.push((name.into(), entry));
            Ok(())
        })?;
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let past = past::all(&tags.0, tags.1)?;
        let rules = view.series_rules(sequence)?;
        let rules = (!rules.is_empty()).then(|| rules::to_json(&rules));
        let commits = match names.len() {
            0 => None,
            _ => Some(CommitItems { commits: Commits::of(&view)?, sequence, waiting: Vec::new() }),
        };
        let now = snapshot.engine.now();
        Ok(Self {
            view,
            sequence,
            now,
            tags,
            names: names.into(),
            past,
            rules,
            defined: 0,
            said: 0,
            commits,
            points: None,
            deletes: None,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.rules.is_none()
    }

    /// The next thing that is said; none if that was all.
    pub(super) fn next(&mut self) -> Result<Option<DumpItem>> {
        if let Some(rules) = self.rules.take() {
            return Ok(Some(DumpItem::SeriesRules(rules)));
        }
        if self.defined < self.names.len() {
            let info = self.info(self.defined)?;
            self.defined += 1;
            let record = past::to_json(&info, self.past.get(&info.number));
            return Ok(Some(DumpItem::Series { record, name: info.name }));
        }
        if let Some(commits) = &mut self.commits {
            match commits.next()? {
                Some(item) => return Ok(Some(item)),
                None => self.commits = None,
            }
        }
        loop {
            if let Some(points) = &mut self.points {
                match points.next()? {
                    Some(item) => return Ok(Some(DumpItem::Points(item))),
                    None => self.points = None,
                }
            }
            if let Some((series, deletes)) = &mut self.deletes {
                let some: Vec<Delete> = deletes.by_ref().take(ITEM_LEN).collect();
                if !some.is_empty() {
                    return Ok(Some(deletes_of(series, &some)));
                }
                self.deletes = None;
            }
            if self.said >= self.names.len() {
                return Ok(None);
            }
            let info = self.info(self.said)?;
            self.said += 1;
            self.begin(info)?;
        }
    }

    fn info(&self, at: usize) -> Result<SeriesInfo> {
        let (name, entry) = &self.names[at];
        tags::read(&self.tags.0, (name, *entry), self.tags.1)
    }

    fn begin(&mut self, info: SeriesInfo) -> Result<()> {
        let view = Arc::clone(&self.view);
        let snapshot = SeriesSnapshot::new(view, Arc::new(info), self.sequence).kept_at(self.now);
        let deletes = deletes_until(&snapshot)?;
        self.deletes = Some((snapshot.info().name.clone(), deletes.into_iter()));
        self.points = PointItems::of(&snapshot)?;
        Ok(())
    }
}

/// What was deleted of a series until a snapshot of it, in the order of the commits, but for what
/// was before the points that are kept.
pub(crate) fn deletes_until(snapshot: &SeriesSnapshot) -> Result<Vec<Delete>> {
    let mut deletes = snapshot.deletes()?;
    let kept = snapshot.kept(TimeSpan { first: i64::MIN, last: i64::MAX })?;
    let from = kept.map_or(i64::MAX, |kept| kept.first);
    deletes.retain(|delete| delete.sequence <= snapshot.sequence() && delete.span.last >= from);
    // Those of one commit stay in its order.
    deletes.sort_by_key(|delete| delete.sequence);
    Ok(deletes)
}

impl CommitItems {
    fn next(&mut self) -> Result<Option<DumpItem>> {
        while self.waiting.len() < ITEM_LEN {
            let some = self.commits.next()?;
            if some.is_empty() {
                break;
            }
            let until = self.sequence;
            self.waiting.extend(some.into_iter().filter(|commit| commit.0 <= until));
        }
        let len = self.waiting.len().min(ITEM_LEN);
        let some: Vec<CommitTime> = self.waiting.drain(..len).collect();
        Ok((!some.is_empty()).then_some(DumpItem::Commits(some)))
    }
}

impl PointItems {
    /// All that was written to a series until a snapshot of it and is kept; none if it keeps
    /// nothing.
    pub(crate) fn of(snapshot: &SeriesSnapshot) -> Result<Option<Self>> {
        let all = TimeSpan { first: i64::MIN, last: i64::MAX };
        let Some(span) = snapshot.kept(all)? else { return Ok(None) };
        let reading = snapshot.read(Course { span, direction: Direction::Rising })?;
        let SeriesInfo { name, definition, .. } = snapshot.info();
        let (series, points) = (name.clone(), Points::new(definition.value_type));
        let sequences = Sequences::All(CommitSequence(0));
        Ok(Some(Self { series, reading, points, sequences, said: 0 }))
    }

    pub(crate) fn next(&mut self) -> Result<Option<DumpedPoints>> {
        while self.points.len() - self.said < ITEM_LEN {
            self.forget_said();
            if !self.reading.read_written(&mut self.points, &mut self.sequences)? {
                break;
            }
        }
        let places = self.said..self.said + self.item_len();
        if places.is_empty() {
            return Ok(None);
        }
        self.said = places.end;
        let mut points = Points::new(self.points.value_type());
        points.append(&self.points, places.clone());
        let commits = places.map(|at| self.sequences.get(at)).collect();
        let series = self.series.clone();
        Ok(Some(DumpedPoints { series, points, commits }))
    }

    fn forget_said(&mut self) {
        let (mut points, mut sequences) =
            (Points::new(self.points.value_type()), Sequences::All(CommitSequence(0)));
        let left = self.said..self.points.len();
        sequences.append(0, &self.sequences, left.clone());
        points.append(&self.points, left);
        (self.points, self.sequences, self.said) = (points, sequences, 0);
    }

    /// How many of the next points make an item.
    fn item_len(&self) -> usize {
        let most = (self.points.len() - self.said).min(ITEM_LEN);
        let Values::String(texts) = self.points.values() else { return most };
        let mut bytes = 0;
        let is_over = |at: &usize| {
            bytes += texts.get(self.said + at).map_or(0, str::len);
            bytes > DUMP_ITEM_TEXT_BYTES
        };
        (0..most).find(is_over).map_or(most, |at| at.max(1))
    }
}

fn deletes_of(series: &str, deletes: &[Delete]) -> DumpItem {
    let span = |delete: &Delete| (delete.sequence, delete.span.first(), delete.span.last());
    DumpItem::Deletes { series: series.to_owned(), spans: deletes.iter().map(span).collect() }
}
