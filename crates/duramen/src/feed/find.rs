//! Which trees the next commits changed.
//!
//! What the last commits changed is remembered for feeds of all documents. A feed that is behind
//! that, or watches some documents only, reads the rows of its trees: in each the first one to be
//! looked at is found by bisection, and as many commits are gathered at once as fill a page.

use std::collections::BTreeMap;

use super::Filter;
use super::position::Position;
use crate::engine::catalogue::naming;
use crate::engine::recent::TreeChange;
use crate::engine::{Engine, View};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::FEED_PAGE_CHANGES;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;

/// What commits after a position up to one did, in their order and that of the trees, and the last
/// commit of which that is all.
pub(super) fn changes(
    engine: &Engine,
    filter: &Filter,
    position: Position,
    until: CommitSequence,
) -> Result<(Vec<TreeChange>, CommitSequence)> {
    let view = engine.view();
    if filter.trees.is_none() {
        let recent = view.recent.lock().between(position.whole(), until);
        if let Some(mut changes) = recent {
            changes.retain(|TreeChange { sequence, tree, .. }| {
                !tree.is_catalogue() && *sequence > position.whole_in(*tree)
            });
            // A place in a commit is one in the order of its trees.
            changes.sort_by_key(|change| (change.sequence, change.tree));
            return Ok((changes, until));
        }
    }
    let trees = trees(&view, filter, until)?;
    let mut page = Page { limit: FEED_PAGE_CHANGES.max(trees.len()), ..Page::default() };
    for tree in trees {
        let tree = view.tree(tree)?;
        let (head, after) = (tree.head_at(until)?, position.whole_in(tree.id()));
        if head.0 == 0 || tree.row(head)?.sequence <= after {
            continue;
        }
        let first = first_kept(&view, filter, (&tree, head), after)?;
        page.gather(&tree, first, (after, head))?;
    }
    let known = if page.count < page.limit { until } else { page.last() };
    let changes = page.commits.into_iter().flat_map(|(sequence, changes)| {
        changes.into_iter().map(move |(tree, revision)| TreeChange { sequence, tree, revision })
    });
    Ok((changes.collect(), known))
}

/// The trees that a feed watches.
fn trees(view: &View, filter: &Filter, until: CommitSequence) -> Result<Vec<TreeId>> {
    if let Some(trees) = &filter.trees {
        return Ok(trees.clone());
    }
    let mut trees: Vec<_> = view.names(until)?.into_iter().map(|(_, name)| name.tree).collect();
    trees.sort_unstable();
    Ok(trees)
}

/// The first commits after one, as many as there is room for and the last of them whole.
#[derive(Debug, Default)]
struct Page {
    limit: usize,
    commits: BTreeMap<CommitSequence, Vec<(TreeId, Revision)>>,
    count: usize,
}

impl Page {
    fn last(&self) -> CommitSequence {
        self.commits.last_key_value().map_or(CommitSequence(0), |(&sequence, _)| sequence)
    }

    fn gather(
        &mut self,
        tree: &Tree,
        first: Revision,
        (after, head): (CommitSequence, Revision),
    ) -> Result<()> {
        let next = tree.first_where(head.0, |row| row.sequence > after)?;
        for revision in (next.max(first).0..=head.0).map(Revision) {
            let sequence = tree.row(revision)?.sequence;
            if self.count >= self.limit && sequence > self.last() {
                break;
            }
            self.commits.entry(sequence).or_default().push((tree.id(), revision));
            self.count += 1;
            // The last commit goes if there are enough without it.
            while let Some(last) = self.commits.last_entry()
                && self.count - last.get().len() >= self.limit
            {
                self.count -= last.remove().len();
            }
        }
        Ok(())
    }
}

/// The first revision of which a tree still knows what it changed after a commit. The one that its
/// history begins with came about then, where nothing older is expected.
fn first_kept(
    view: &View,
    filter: &Filter,
    (tree, head): (&Tree, Revision),
    after: CommitSequence,
) -> Result<Revision> {
    let first = Revision(tree.first_revision());
    if first.0 <= 1 || first > head {
        return Ok(first);
    }
    let row = tree.row(first)?;
    if row.sequence <= after || filter.expects_nothing_before(&row) {
        return Ok(first);
    }
    Err(dropped(view, filter, tree, (first, row.sequence)))
}

/// What a revision changed was dropped, and is expected.
pub(super) fn dropped(
    view: &View,
    filter: &Filter,
    tree: &Tree,
    (first, begins): (Revision, CommitSequence),
) -> Error {
    let name = view
        .catalogue(begins)
        .and_then(|(catalogue, head)| naming::name_of(&catalogue, tree.id(), head));
    let name = name.unwrap_or_default();
    // Behind that commit a feed would pass over what others did to the other documents before.
    let read = if filter.trees.as_ref().is_some_and(|trees| trees.len() == 1) {
        format!(
            "read it as of that revision, then watch what came after its commit (--from c{begins})"
        )
    } else {
        "watch from now on and read all documents that are watched again".to_owned()
    };
    let message = format!(
        "the history of document {name:?} begins at revision {first}, what it was before was \
         dropped by its retention: {read}, or begin at the beginning, or at a time"
    );
    Error::new(ErrorKind::NotFound, message)
}

/// The last commit before a time, of those that changed what is watched.
pub(super) fn before_time(
    engine: &Engine,
    filter: &Filter,
    time: Micros,
    published: CommitSequence,
) -> Result<CommitSequence> {
    let view = engine.view();
    let mut before = published;
    for tree in trees(&view, filter, published)? {
        let tree = view.tree(tree)?;
        let head = tree.head_at(published)?;
        let first = tree.first_where(head.0, |row| row.committed >= time)?;
        if first <= head {
            let sequence = tree.row(first)?.sequence;
            before = before.min(CommitSequence(sequence.0.saturating_sub(1)));
        }
    }
    Ok(before)
}
