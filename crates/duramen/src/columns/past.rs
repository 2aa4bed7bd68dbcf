//! The versions of records or elements as rows: each is read as of a revision at which it stood.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use super::lives::Lives;
use super::{ColumnChunk, ColumnRows, Columns, group_of};
use crate::collection::CollectionSnapshot;
use crate::database::DatabaseSnapshot;
use crate::error::Result;
use crate::node::PathId;
use crate::revision::Revision;
use crate::snapshot::check_revision;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{Fault, GroupId, locate};
use crate::tree::history::short;
use crate::tree::moments::{Moment, Moments};
use crate::tree::schema::{ROOT, index_u32};

/// Which versions are rows.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// Those that stood at this revision or came after it, up to the revision of the columns.
    pub(super) first: u32,
    /// Until when is known what ended them.
    head: u32,
    /// The revisions in which the collection itself was not there.
    gaps: Vec<(u32, u32)>,
    /// Of elements of arrays.
    lives: Option<Arc<Lives>>,
}

impl Past {
    /// That of elements.
    pub(super) fn of_elements(first: u32, lives: Lives) -> Self {
        Self { first, head: u32::MAX, gaps: Vec::new(), lives: Some(Arc::new(lives)) }
    }
}

impl CollectionSnapshot {
    /// The versions of the records by column: each that stood at one of some revisions is a row,
    /// also of records that are deleted since. [`Columns::changed`] says from when it stood,
    /// [`ColumnRows::ended`] until when.
    ///
    /// `NotFound` for revisions that the snapshot has not, or that were dropped.
    ///
    /// ```
    /// use duramen::{ColumnValue, CommitOptions, Database, KeyKind, Revision};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::Text)?;
    /// players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
    /// players.put("ann", r#"{"score":5}"#, &CommitOptions::default())?;
    /// let columns = players.head()?.version_columns(Revision(1)..=Revision(2))?;
    /// let score = columns.root()?.fields[0].path;
    /// let rows = columns.rows(0)?;
    /// let scores = columns.read(&rows, score)?;
    /// assert_eq!((scores.get(0), scores.get(1)), (ColumnValue::Int(3), ColumnValue::Int(5)));
    /// assert_eq!(columns.changed(&rows)?, [Revision(1), Revision(2)]);
    /// assert_eq!(rows.ended(), [Some(Revision(2)), None]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn version_columns(&self, revisions: RangeInclusive<Revision>) -> Result<Columns> {
        self.versions_known(&revisions, self.revision())
    }

    /// The same, where what ended versions is known up to a later revision.
    fn versions_known(
        &self,
        revisions: &RangeInclusive<Revision>,
        head: Revision,
    ) -> Result<Columns> {
        let (first, last) = (*revisions.start(), *revisions.end());
        let mut columns = self.columns()?;
        if columns.path.is_none() {
            return Ok(columns);
        }
        for revision in [first, last] {
            check_revision(&columns.tree, (revision, head), self.document().name())?;
        }
        columns.tree.kept().check_period(short(first))?;
        let gaps = columns.tree.absences(Some(node(ROOT, 0)), short(head))?;
        columns.past = Some(Past { first: short(first), head: short(head), gaps, lives: None });
        columns.revision = short(last.min(self.revision()));
        Ok(columns)
    }
}

impl DatabaseSnapshot {
    /// The versions of the records of a collection by column, as
    /// [`CollectionSnapshot::version_columns`] has them, as of that commit: also of a collection
    /// that had been deleted by then.
    pub fn version_columns(
        &self,
        name: &str,
        revisions: &RangeInclusive<Revision>,
    ) -> Result<Columns> {
        let (collection, head) = self.last_of_collection(name)?;
        collection.versions_known(revisions, head)
    }
}

impl Columns {
    /// Whether rows are versions of records or elements, and not these.
    pub fn are_versions(&self) -> bool {
        self.past.is_some()
    }

    /// As of when a row is.
    pub(super) fn moment(&self, rows: &ColumnRows, row: usize) -> u32 {
        rows.moments.get(row).copied().unwrap_or(self.revision)
    }

    /// The versions of the records or elements of some ordinals, by ordinal and oldest first.
    pub(super) fn versions_of(
        &self,
        past: &Past,
        path: PathId,
        ranges: &[Range<u64>],
    ) -> Result<ColumnRows> {
        let mut rows = ColumnRows::default();
        let paths = (path, self.version_path());
        for ordinals in ranges {
            let (group, slots) = group_of(ordinals);
            let spans = if let Some(lives) = &past.lives {
                lives.spans(ordinals)
            } else {
                let (spans, bytes) = self.tree.read(|data| {
                    let id = group_id(data, path, group);
                    data.record_spans(paths, (id, slots.clone()), (past.first, past.head))
                })?;
                self.count_read(bytes);
                spans
            };
            for span in spans.into_iter().filter(|span| span.first <= self.revision) {
                let gap = past.gaps.iter().find(|(_, back)| *back >= span.first);
                let gone = gap.map(|(gone, _)| *gone).filter(|gone| *gone <= past.head);
                let end = span.end.into_iter().chain(gone).min();
                if end.is_some_and(|end| end <= span.first.max(past.first)) {
                    continue;
                }
                rows.ordinals.push(ordinals.start - u64::from(slots.start) + u64::from(span.slot));
                rows.moments.push(end.map_or(self.revision, |end| self.revision.min(end - 1)));
                rows.firsts.push(span.first);
                rows.ends.push(end.unwrap_or(0));
            }
        }
        Ok(rows)
    }

    /// The states of a column at rows that are each as of a revision of its own, a row group at a
    /// time, each after it was looked over.
    pub(super) fn gather_moments(
        &self,
        rows: &ColumnRows,
        path: PathId,
        look: impl Fn(&TreeData, &mut ColumnChunk, &Moments) -> Result<(), Fault>,
    ) -> Result<ColumnChunk> {
        let mut chunk = ColumnChunk::missing(rows.len());
        let mut at = 0;
        let together = |a: &u64, b: &u64| locate(*a).0 == locate(*b).0;
        for ordinals in rows.ordinals.chunk_by(together) {
            let group = ordinals.first().map_or(0, |&ordinal| locate(ordinal).0 as u64);
            let moment = |(row, ordinal): (usize, &u64)| Moment {
                slot: locate(*ordinal).1,
                revision: self.moment(rows, at + row),
                row,
            };
            let moments: Vec<_> = ordinals.iter().enumerate().map(moment).collect();
            let id = self.tree.read(|data| Ok(group_id(data, path, group)))?;
            let moments = Moments::new(id, moments);
            let found = self.tree.read(|data| {
                let mut found = ColumnChunk::missing(ordinals.len());
                let column = data.schema.path(path).column;
                found.read_bytes = data.scan_moments(column, &moments, &mut |some, state| {
                    found.set_all(some.iter().map(|moment| moment.row), state);
                })?;
                look(data, &mut found, &moments)?;
                Ok(found)
            })?;
            chunk.copy(at, &found, 0..ordinals.len());
            at += ordinals.len();
        }
        self.finish(chunk)
    }
}

impl ColumnRows {
    /// The revisions that ended rows that are versions, by changing or removing these; none
    /// for what still stands.
    pub fn ended(&self) -> Vec<Option<Revision>> {
        let end = |row| self.ends.get(row).copied().filter(|&end| end > 0);
        (0..self.len()).map(|row| end(row).map(|end| Revision(end.into()))).collect()
    }

    /// Takes the rows behind the first so many.
    #[must_use]
    pub fn split_off(&mut self, first: usize) -> Self {
        fn split<T>(all: &mut Vec<T>, at: usize) -> Vec<T> {
            all.split_off(at.min(all.len()))
        }
        Self {
            ordinals: split(&mut self.ordinals, first),
            moments: split(&mut self.moments, first),
            firsts: split(&mut self.firsts, first),
            ends: split(&mut self.ends, first),
        }
    }

    pub(super) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        fn filter<T>(all: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
            let mut row = 0;
            all.retain(|_| {
                row += 1;
                keep(row - 1)
            });
        }
        filter(&mut self.ordinals, &keep);
        filter(&mut self.moments, &keep);
        filter(&mut self.firsts, &keep);
        filter(&mut self.ends, &keep);
    }
}

fn group_id(data: &TreeData, path: PathId, group: u64) -> GroupId {
    let space = data.schema.path(path).space;
    GroupId { space, group: index_u32(usize::try_from(group).unwrap_or(usize::MAX)) }
}
