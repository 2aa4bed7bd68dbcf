//! When the elements of arrays were there, and when they changed: what versions of them are made
//! of, as they have no count of versions as records have.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::past::Past;
use super::{Columns, arrays_above, missing, no_elements, parts};
use crate::database::DatabaseSnapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::label_path::LabelPath;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::{NodeId, PathId};
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::data::TreeData;
use crate::tree::group::{Fault, locate};
use crate::tree::history::short;
use crate::tree::locate::parent_of;
use crate::tree::moments::RecordSpan;

/// Elements that came together and went together.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Life {
    ordinals: Range<u64>,
    first: u32,
    /// The revision without them, if there is one.
    end: Option<u32>,
}

/// The lives of the elements at a path, and the changes of them.
#[derive(Debug, Default)]
pub(super) struct Lives {
    /// By ordinals.
    lives: Vec<Life>,
    /// Elements with the revisions that changed them, rising.
    changes: Vec<(u64, u32)>,
}

/// Goes through the revisions of a tree.
struct Walk<'t> {
    tree: &'t Arc<Tree>,
    elements: PathId,
    arrays: &'t [PathId],
    /// The elements' ancestors.
    above: FxHashSet<PathId>,
    /// The first revision of which all changes are wanted.
    first: u32,
    /// The ordinals that are there, rising.
    there: Vec<Range<u64>>,
    /// Those that are there, by first ordinal.
    living: BTreeMap<u64, Life>,
    gone: Vec<Life>,
    /// The last change of an element before that.
    before: FxHashMap<u64, u32>,
    changes: Vec<(u64, u32)>,
}

impl Snapshot {
    /// The versions of the elements of the arrays at a path, such as `$.data[*]`, by column: each
    /// that stood at one of some revisions is a row, also of elements that were removed since. An
    /// element has another version when anything in it changed; to be moved makes none.
    /// [`Columns::changed`] says from when it stood,
    /// [`ColumnRows::ended`](super::ColumnRows::ended) until when.
    ///
    /// All revisions of the document are gone through, as far as they are kept. `NotFound` for
    /// revisions that the snapshot has not, or that were dropped, and if the document never had any
    /// elements there; `Full` if their changes do not fit into a quarter of the memory of the
    /// database.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, Revision};
    ///
    /// let db = Database::memory()?;
    /// let stock = db.create_document("stock")?;
    /// stock.put(r#"[{"n":3},{"n":5}]"#, &CommitOptions::default())?;
    /// stock.put(r#"[{"n":4},{"n":5}]"#, &CommitOptions::default())?;
    /// let path = "$[*]".parse()?;
    /// let columns = stock.head()?.version_columns(&path, Revision(1)..=Revision(2))?;
    /// let rows = columns.rows(0)?;
    /// assert_eq!(columns.changed(&rows)?, [Revision(1), Revision(2), Revision(1)]);
    /// assert_eq!(rows.ended(), [Some(Revision(2)), None, None]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn version_columns(
        &self,
        path: &LabelPath,
        revisions: RangeInclusive<Revision>,
    ) -> Result<Columns> {
        self.version_columns_while(path, revisions, &mut || ControlFlow::Continue(()))
    }

    /// The same, asking before each revision that is gone through whether to go on; `Cancelled` if
    /// not.
    pub fn version_columns_while(
        &self,
        path: &LabelPath,
        revisions: RangeInclusive<Revision>,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Columns> {
        let (first, last) = (*revisions.start(), *revisions.end());
        for revision in [first, last] {
            if revision.0 == 0 || revision > self.revision {
                let head = self.revision;
                let message = format!("the document has revisions 1 to {head}, and no {revision}");
                return Err(Error::new(ErrorKind::NotFound, message));
            }
            self.tree.check_kept(revision)?;
        }
        let (elements, arrays) = {
            let data = self.tree.data.read();
            let elements = path.find(&data.schema).ok_or_else(|| missing(path))?;
            let arrays = arrays_above(&data.schema, elements).ok_or_else(|| no_elements(path))?;
            (elements, arrays)
        };
        let (first, last) = (short(first), short(last));
        let mut walk = Walk::new(&self.tree, (elements, &arrays), first);
        walk.go(short(self.revision), go_on)?;
        let lives = walk.end();
        let mut columns = Columns::new(Arc::clone(&self.tree), last, None);
        columns.path = Some(elements);
        columns.parts = parts(lives.ordinals(first, last).into_iter()).into();
        columns.past = Some(Past::of_elements(first, lives));
        Ok(columns)
    }
}

impl DatabaseSnapshot {
    /// The versions of the elements of the arrays at a path of a document by column, as
    /// [`Snapshot::version_columns`] has them, as of that commit: also of a document that had been
    /// deleted by then. Asks before each revision whether to go on; `Cancelled` if not.
    pub fn element_version_columns(
        &self,
        name: &str,
        (path, revisions): (&LabelPath, RangeInclusive<Revision>),
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Columns> {
        self.last_of_document(name)?.version_columns_while(path, revisions, go_on)
    }
}

impl<'t> Walk<'t> {
    fn new(tree: &'t Arc<Tree>, (elements, arrays): (PathId, &'t [PathId]), first: u32) -> Self {
        let schema = Arc::clone(&tree.data.read().schema);
        let (mut above, mut at) = (FxHashSet::default(), elements);
        while schema.path(at).parent != at {
            at = schema.path(at).parent;
            above.insert(at);
        }
        Self {
            tree,
            elements,
            arrays,
            above,
            first,
            there: Vec::new(),
            living: BTreeMap::new(),
            gone: Vec::new(),
            before: FxHashMap::default(),
            changes: Vec::new(),
        }
    }

    /// Takes all revisions up to one.
    fn go(&mut self, head: u32, go_on: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
        let begin = {
            let data = self.tree.data.read();
            data.kept.check_period(self.first)?;
            data.kept.first()
        };
        let memory = self.tree.cells.memory();
        if begin <= head {
            self.meet(begin)?;
        }
        for revision in begin.saturating_add(1)..=head {
            if go_on().is_break() {
                return Err(stopped());
            }
            let changed = self.tree.changed(Revision(revision.into()))?;
            if changed.iter().any(|node| self.above.contains(&node.path())) {
                self.meet(revision)?;
            }
            let mut elements = self.tree.read(|data| {
                let found = changed.iter().map(|node| self.element_of(data, *node));
                found.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()
            })?;
            elements.sort_unstable();
            elements.dedup();
            for element in elements {
                if revision <= self.first {
                    self.before.insert(element, revision);
                } else {
                    self.changes.push((element, revision));
                }
            }
            let lives = self.gone.len() + self.living.len();
            let known = self.changes.len() + self.before.len() + lives;
            if known * size_of::<Life>() > memory.lives_max() {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// The element that a node is, or is in.
    fn element_of(&self, data: &TreeData, node: NodeId) -> Result<Option<u64>, Fault> {
        let mut at = Some(node);
        while let Some(node) = at {
            if node.path() == self.elements {
                return Ok(Some(node.ordinal().0));
            }
            // Paths are numbered after those that they are in.
            at = if node.path() > self.elements { parent_of(data, node)? } else { None };
        }
        Ok(None)
    }

    /// Finds out which elements came and went with a revision.
    fn meet(&mut self, revision: u32) -> Result<()> {
        let extents =
            Columns::new(Arc::clone(self.tree), revision, None).extents_of(self.arrays)?;
        let there = joined(extents);
        let before = std::mem::take(&mut self.there);
        for ordinals in without(&before, &there) {
            self.leave(&ordinals, revision);
        }
        for ordinals in without(&there, &before) {
            let start = ordinals.start;
            self.living.insert(start, Life { ordinals, first: revision, end: None });
        }
        self.there = there;
        Ok(())
    }
}

impl Walk<'_> {
    /// Ends the lives of some elements that are there.
    fn leave(&mut self, ordinals: &Range<u64>, revision: u32) {
        let first = self.living.range(..=ordinals.start).next_back();
        let first = first.map_or(ordinals.start, |(start, _)| *start);
        let starts: Vec<_> =
            self.living.range(first..ordinals.end).map(|(start, _)| *start).collect();
        for start in starts {
            let Some(mut life) = self.living.remove(&start) else { continue };
            if let Some(earlier) = cut_before(&mut life.ordinals, ordinals.start) {
                self.living.insert(earlier.start, Life { ordinals: earlier, ..life.clone() });
            }
            if let Some(ended) = cut_before(&mut life.ordinals, ordinals.end) {
                self.gone.push(Life { ordinals: ended, end: Some(revision), ..life.clone() });
            }
            if !life.ordinals.is_empty() {
                self.living.insert(life.ordinals.start, life);
            }
        }
    }

    fn end(self) -> Lives {
        let mut lives = Vec::new();
        for Life { ordinals, first, end } in self.gone.into_iter().chain(self.living.into_values())
        {
            let mut left = ordinals;
            while !left.is_empty() {
                let border = (left.start / ROW_GROUP_SLOTS + 1) * ROW_GROUP_SLOTS;
                let ordinals = cut_before(&mut left, border);
                lives.extend(ordinals.map(|ordinals| Life { ordinals, first, end }));
            }
        }
        lives.sort_unstable_by_key(|life| life.ordinals.start);
        let mut changes = self.changes;
        changes.extend(self.before);
        changes.sort_unstable();
        Lives { lives, changes }
    }
}

impl Lives {
    /// The elements that were there at one of some revisions.
    fn ordinals(&self, first: u32, last: u32) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        let is_there = |life: &&Life| life.first <= last && life.end.is_none_or(|end| end > first);
        for Life { ordinals, .. } in self.lives.iter().filter(is_there) {
            match found.last_mut() {
                Some(before) if ordinals.start <= before.end => {
                    before.end = before.end.max(ordinals.end);
                }
                _ => found.push(ordinals.clone()),
            }
        }
        found
    }

    /// How long some elements of one row group stood as they were: by element, oldest first.
    pub(super) fn spans(&self, ordinals: &Range<u64>) -> Vec<RecordSpan> {
        let group = ordinals.start / ROW_GROUP_SLOTS * ROW_GROUP_SLOTS;
        // Each life is in one row group.
        let from = self.lives.partition_point(|life| life.ordinals.start < group);
        let lives = self.lives[from..].iter().take_while(|life| life.ordinals.start < ordinals.end);
        let mut spans = Vec::new();
        for life in lives {
            let both = life.ordinals.start.max(ordinals.start)..life.ordinals.end.min(ordinals.end);
            for ordinal in both {
                self.add_spans(life, ordinal, &mut spans);
            }
        }
        spans.sort_unstable_by_key(|span| (span.slot, span.first));
        spans
    }

    fn add_spans(&self, life: &Life, ordinal: u64, spans: &mut Vec<RecordSpan>) {
        let (mut first, slot) = (life.first, locate(ordinal).1);
        let after = self.changes.partition_point(|change| *change <= (ordinal, first));
        let changes = self.changes[after..].iter();
        let until = life.end.unwrap_or(u32::MAX);
        for &(_, next) in changes.take_while(|(own, next)| *own == ordinal && *next < until) {
            spans.push(RecordSpan { slot, first, end: Some(next) });
            first = next;
        }
        spans.push(RecordSpan { slot, first, end: life.end });
    }
}

/// Ranges in their order, those that touch as one.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, before| {
        let touches = next.start <= before.end;
        if touches {
            before.end = before.end.max(next.end);
        }
        touches
    });
    ranges
}

/// What is in some ranges and not in others, both in their order.
fn without(ranges: &[Range<u64>], others: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = Vec::new();
    let mut others = others.iter().peekable();
    for range in ranges {
        let mut range = range.clone();
        while others.next_if(|other| other.end <= range.start).is_some() {}
        while let Some(other) = others.peek().filter(|other| other.start < range.end) {
            left.extend(cut_before(&mut range, other.start));
            range.start = other.end.min(range.end);
            if other.end > range.end {
                break;
            }
            others.next();
        }
        left.extend((!range.is_empty()).then_some(range));
    }
    left
}

/// Takes what is before an ordinal, if anything is.
fn cut_before(ordinals: &mut Range<u64>, until: u64) -> Option<Range<u64>> {
    let cut = ordinals.start..ordinals.end.min(until);
    (!cut.is_empty()).then(|| {
        ordinals.start = cut.end;
        cut
    })
}

fn stopped() -> Error {
    let message = "the versions of the elements were not looked for to the end: ask again";
    Error::new(ErrorKind::Cancelled, message)
}

fn too_many() -> Error {
    let message = "the elements of the arrays have too many versions for the memory of the \
                   database: ask for those of a shorter period, or give it more memory";
    Error::new(ErrorKind::Full, message)
}

#[cfg(test)]
mod tests;
