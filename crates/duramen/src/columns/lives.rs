//! When the elements of arrays were there, and when they changed: what versions of them are made
//! of, as they have no count of versions as records have.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::past::Past;
use super::{Columns, arrays_above, missing, no_elements, parts};
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
    /// Those that are there, by ordinals.
    living: Vec<Life>,
    gone: Vec<Life>,
    /// The last change of an element before that.
    before: FxHashMap<u64, u32>,
    changes: Vec<(u64, u32)>,
}

impl Snapshot {
    /// The versions of the elements of the arrays at a path, such as `$.data[*]`, by column: each
    /// that stood at one of some revisions is a row, also of elements that were removed since. An
    /// element has another version when anything in it changed; to be moved makes none.
    /// [`Columns::changed`] says from when it stood, [`ColumnRows::ended`] until when.
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
        walk.go(short(self.revision))?;
        let lives = walk.end();
        let mut columns = Columns::new(Arc::clone(&self.tree), last, None);
        columns.path = Some(elements);
        columns.parts = parts(lives.ordinals(first, last).into_iter()).into();
        columns.past = Some(Past::of_elements(first, lives));
        Ok(columns)
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
            living: Vec::new(),
            gone: Vec::new(),
            before: FxHashMap::default(),
            changes: Vec::new(),
        }
    }

    /// Takes all revisions up to one.
    fn go(&mut self, head: u32) -> Result<()> {
        let begin = {
            let data = self.tree.data.read();
            if self.first < data.kept.first() {
                return Err(data.kept.dropped(self.first.into()));
            }
            data.kept.first()
        };
        let memory = self.tree.cells.memory();
        if begin <= head {
            self.meet(begin)?;
        }
        for revision in begin.saturating_add(1)..=head {
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
            let known = self.changes.len() + self.before.len() + self.gone.len();
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
        let mut there =
            Columns::new(Arc::clone(self.tree), revision, None).extents_of(self.arrays)?;
        there.sort_unstable_by_key(|ordinals| ordinals.start);
        let mut there = there.into_iter();
        let mut living = std::mem::take(&mut self.living).into_iter();
        let (mut old, mut new) = (living.next(), there.next());
        while let (Some(life), Some(ordinals)) = (&mut old, &mut new) {
            let both = life.ordinals.start.max(ordinals.start)..life.ordinals.end.min(ordinals.end);
            let until = both.start;
            self.leave(life, until, revision);
            self.come(ordinals, until, revision);
            if !both.is_empty() {
                self.living.push(Life { ordinals: both.clone(), ..life.clone() });
                life.ordinals.start = both.end;
                ordinals.start = both.end;
            }
            if life.ordinals.is_empty() {
                old = living.next();
            }
            if ordinals.is_empty() {
                new = there.next();
            }
        }
        for mut life in old.into_iter().chain(living) {
            self.leave(&mut life, u64::MAX, revision);
        }
        for mut ordinals in new.into_iter().chain(there) {
            self.come(&mut ordinals, u64::MAX, revision);
        }
        Ok(())
    }
}

impl Walk<'_> {
    /// Ends what is left of a life before an ordinal.
    fn leave(&mut self, life: &mut Life, until: u64, revision: u32) {
        if let Some(ordinals) = cut_before(&mut life.ordinals, until) {
            self.gone.push(Life { ordinals, first: life.first, end: Some(revision) });
        }
    }

    /// Begins lives with what is left of some ordinals before one.
    fn come(&mut self, ordinals: &mut Range<u64>, until: u64, revision: u32) {
        if let Some(ordinals) = cut_before(ordinals, until) {
            self.living.push(Life { ordinals, first: revision, end: None });
        }
    }

    fn end(self) -> Lives {
        let mut lives = Vec::new();
        for Life { ordinals, first, end } in self.gone.into_iter().chain(self.living) {
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

/// Takes what is before an ordinal, if anything is.
fn cut_before(ordinals: &mut Range<u64>, until: u64) -> Option<Range<u64>> {
    let cut = ordinals.start..ordinals.end.min(until);
    (!cut.is_empty()).then(|| {
        ordinals.start = cut.end;
        cut
    })
}

fn too_many() -> Error {
    let message = "the elements of the arrays have too many versions for the memory of the \
                   database: ask for those of a shorter period, or give it more memory";
    Error::new(ErrorKind::Full, message)
}

#[cfg(test)]
mod tests;
