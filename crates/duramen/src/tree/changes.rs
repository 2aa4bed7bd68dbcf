//! The revisions that changed one node, or anything below it, searched in either direction.
//!
//! A node's own changes are found by bisection in its run. Changes below it are found in one of
//! two ways, whichever costs less: by looking at what each revision lists as changed, or by
//! gathering the changes of all that was ever below. Which one it is shows while searching: the
//! first goes on until it has cost as much as the second is allowed to, and what that is allowed
//! to doubles each time. So a search costs at most a small multiple of the cheaper way.

use std::ops::{ControlFlow, Range};

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::node::NodeId;
use crate::order::{self, Edit, OrderCursor};
use crate::revision::Revision;
use crate::state::{Datum, Sequence};
use crate::tree::Tree;
use crate::tree::children::{is_there, is_within};
use crate::tree::data::{TreeData, node};
use crate::tree::difference::ChangeKind;
use crate::tree::group::Fault;

/// What counts as a change of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Another value of its own: for an array or object which children it has, in which order.
    #[default]
    Node,
    /// That, and any change of anything below it.
    Subtree,
}

/// A revision that changed a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeChange {
    /// The revision.
    pub revision: Revision,
    /// Added where the node was not there before, removed where it is not there any more, be it
    /// that something above it went or came; else replaced.
    pub kind: ChangeKind,
}

/// A search for the changes of one node.
#[derive(Debug)]
pub(crate) struct ChangeSearch {
    node: NodeId,
    /// The first revision with the node; after `head` if there is none.
    born: u32,
    head: u32,
    way: Way,
}

#[derive(Debug)]
enum Way {
    /// Own changes: those of the run, and these, where something above went or came.
    Own(Vec<u32>),
    /// Looks at every revision; has cost this much, and gathers when it has cost that much.
    Lists { cost: u64, allowed: u64 },
    /// Looks at these only.
    Gathered(Vec<u32>),
}

/// Where a search goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Forth,
}

/// Nodes and changes that the first attempt to gather may look at.
const GATHERED_FIRST: u64 = 64;
/// Nodes of a change list looked at under one lock.
const LISTED_AT_ONCE: usize = 512;

impl Tree {
    /// A search for the changes of a node up to revision `head`.
    pub(crate) fn change_search(
        &self,
        node: NodeId,
        scope: Scope,
        head: u32,
    ) -> Result<ChangeSearch> {
        let born =
            self.read(|data| Ok(data.created(node)?.map(|born| born.max(data.kept.first()))))?;
        let born = born.unwrap_or(u32::MAX);
        let way = match scope {
            Scope::Node => Way::Own(edges(&self.gaps(node, head)?)),
            Scope::Subtree => Way::Lists { cost: 0, allowed: 0 },
        };
        Ok(ChangeSearch { node, born, head, way })
    }

    /// The newest change in a revision up to `until`.
    pub(crate) fn change_before(
        &self,
        search: &mut ChangeSearch,
        until: u32,
    ) -> Result<Option<NodeChange>> {
        self.find_change(search, until.min(search.head), Direction::Back)
    }

    /// The oldest change in a revision from `from` on.
    pub(crate) fn change_after(
        &self,
        search: &mut ChangeSearch,
        from: u32,
    ) -> Result<Option<NodeChange>> {
        self.find_change(search, from.max(search.born), Direction::Forth)
    }

    /// The newest change in a revision up to `until`, those that are kept though the history begins
    /// after them among them. What was dropped between two revisions counts as changed in the later
    /// one; so the first of the history is no change where the one before it shows the same.
    pub(crate) fn kept_change_before(
        &self,
        search: &mut ChangeSearch,
        until: u32,
    ) -> Result<Option<Revision>> {
        let kept = self.data.read().kept.clone();
        if let Some(change) = self.change_before(search, until)? {
            let first = kept.first();
            let before = kept.pinned().last().filter(|_| change.revision.0 == u64::from(first));
            if before.is_none() || self.has_changed(search.node, before.copied(), first)? {
                return Ok(Some(change.revision));
            }
        }
        let end = kept.pinned().partition_point(|&revision| revision <= until);
        for index in (0..end).rev() {
            let before = index.checked_sub(1).map(|earlier| kept.pinned()[earlier]);
            let revision = kept.pinned()[index];
            if self.has_changed(search.node, before, revision)? {
                return Ok(Some(Revision(revision.into())));
            }
        }
        Ok(None)
    }

    /// Whether a node, or anything below it, is not what it was at an earlier revision.
    fn has_changed(&self, at: NodeId, before: Option<u32>, revision: u32) -> Result<bool> {
        let (was, is) = self.read(|data| {
            let was = before.map_or(Ok(false), |before| is_there(data, at, before))?;
            Ok((was, is_there(data, at, revision)?))
        })?;
        match before {
            Some(before) if was && is => self.differs(at, (before, revision)),
            _ => Ok(was != is),
        }
    }

    fn find_change(
        &self,
        search: &mut ChangeSearch,
        mut from: u32,
        direction: Direction,
    ) -> Result<Option<NodeChange>> {
        while from >= search.born && from <= search.head {
            let Some(candidate) = self.candidate(search, from, direction)? else { break };
            if let Some(kind) = self.change_at(search, candidate)? {
                let revision = Revision(u64::from(candidate));
                return Ok(Some(NodeChange { revision, kind }));
            }
            from = match direction {
                Direction::Back => candidate - 1,
                Direction::Forth => candidate + 1,
            };
        }
        Ok(None)
    }

    /// The next revision, from `from` on, that may have changed the node.
    fn candidate(
        &self,
        search: &mut ChangeSearch,
        from: u32,
        direction: Direction,
    ) -> Result<Option<u32>> {
        if let Way::Lists { cost, allowed } = search.way
            && cost >= allowed
        {
            let allowed = allowed.saturating_mul(2).max(GATHERED_FIRST);
            search.way = match self.gather(search.node, search.head, allowed)? {
                None => Way::Lists { cost, allowed },
                Some(mut changes) => {
                    changes.extend(edges(&self.gaps(search.node, search.head)?));
                    changes.sort_unstable();
                    changes.dedup();
                    Way::Gathered(changes)
                }
            };
        }
        match (&mut search.way, direction) {
            (Way::Lists { cost, .. }, _) => {
                *cost += 1;
                Ok(Some(from))
            }
            (Way::Gathered(changes), _) => Ok(nearest(changes, from, direction)),
            (Way::Own(edges), Direction::Back) => {
                let set = self.set_at(search.node, from)?;
                Ok(nearest(edges, from, direction).max(set))
            }
            (Way::Own(edges), Direction::Forth) => {
                let set = self.set_after(search.node, from, search.head)?;
                let edge = nearest(edges, from, direction);
                Ok(edge.into_iter().chain(set).min())
            }
        }
    }

    /// The revision that set a node's state at a revision, or that the history begins with; none
    /// before that.
    fn set_at(&self, node: NodeId, revision: u32) -> Result<Option<u32>> {
        self.read(|data| {
            let first = data.kept.first();
            if revision < first {
                return Ok(None);
            }
            Ok(data.version(node, revision)?.map(|(set, _)| set.max(first)))
        })
    }

    /// The first revision from `from` to `head` that set a node's state, by bisection.
    fn set_after(&self, node: NodeId, from: u32, head: u32) -> Result<Option<u32>> {
        let before = self.set_at(node, from - 1)?;
        let (mut low, mut found) = (from, self.set_at(node, head)?);
        if found == before {
            return Ok(None);
        }
        while let Some(high) = found
            && low < high
        {
            let middle = low + (high - low) / 2;
            match self.set_at(node, middle)? {
                set if set == before => low = middle + 1,
                set => found = set,
            }
        }
        Ok(found)
    }

    /// What a revision changed about the node, if anything.
    fn change_at(&self, search: &mut ChangeSearch, revision: u32) -> Result<Option<ChangeKind>> {
        let at = search.node;
        let (before, after) = self.read(|data| {
            let set = |revision| -> Result<Option<u32>, Fault> {
                // What the history begins with comes with its first revision.
                if revision < data.kept.first() {
                    return Ok(None);
                }
                let is_there = is_there(data, at, revision)?;
                Ok(data.version(at, revision)?.map(|(set, _)| set).filter(|_| is_there))
            };
            Ok((set(revision - 1)?, set(revision)?))
        })?;
        Ok(match (before, after) {
            (None, None) => None,
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Removed),
            (Some(before), Some(after)) if before != after => Some(ChangeKind::Replaced),
            _ if matches!(search.way, Way::Own(_)) => None,
            _ => self.changes_within(search, revision)?.then_some(ChangeKind::Replaced),
        })
    }

    /// Whether a revision changed something below the node that is, or was, there.
    fn changes_within(&self, search: &mut ChangeSearch, revision: u32) -> Result<bool> {
        let changed = self.changed(Revision(u64::from(revision)))?;
        for nodes in changed.chunks(LISTED_AT_ONCE) {
            let is_changed = self.read(|data| {
                for &inner in nodes {
                    if is_within(data, inner, search.node)?
                        && (is_there(data, inner, revision)?
                            || is_there(data, inner, revision - 1)?)
                    {
                        return Ok(true);
                    }
                }
                Ok(false)
            })?;
            if let Way::Lists { cost, .. } = &mut search.way {
                *cost += nodes.len() as u64;
            }
            if is_changed {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The revisions up to `until` that set a node or anything that was ever below it, rising; none
    /// if that means to look at more than so many nodes and changes. Of each older order of an
    /// array or map only what the next newer one has not is looked at.
    pub(crate) fn gather(
        &self,
        node: NodeId,
        until: u32,
        allowed: u64,
    ) -> Result<Option<Vec<u32>>> {
        let mut changes = Vec::new();
        let mut waiting = vec![node];
        let mut seen = FxHashSet::default();
        let is_too_much = |changes: &Vec<u32>, waiting: &Vec<NodeId>, seen: &FxHashSet<NodeId>| {
            (changes.len() + waiting.len() + seen.len()) as u64 > allowed
        };
        while let Some(next) = waiting.pop() {
            if !seen.insert(next) {
                continue;
            }
            let below = self.read(|data| Below::read(data, next, until, allowed))?;
            changes.extend(below.set);
            waiting.extend(below.fields);
            let mut newer: Option<(bool, Sequence)> = None;
            for (is_map, sequence) in below.sequences {
                let more = match newer {
                    Some((other, newer)) if other == is_map => {
                        order::difference(&&self.orders, newer, sequence)?
                    }
                    _ => vec![Edit::Insert(order::len(&&self.orders, sequence)?)],
                };
                newer = Some((is_map, sequence));
                if inserted(&more).any(|range| range.end - range.start > allowed)
                    || is_too_much(&changes, &waiting, &seen)
                {
                    return Ok(None);
                }
                for range in inserted(&more) {
                    self.add_items((next, is_map), (sequence, range), &mut waiting)?;
                }
            }
            if is_too_much(&changes, &waiting, &seen) {
                return Ok(None);
            }
        }
        changes.sort_unstable();
        changes.dedup();
        Ok(Some(changes))
    }

    /// Adds the nodes of a range of a container's order.
    fn add_items(
        &self,
        (container, is_map): (NodeId, bool),
        (sequence, range): (Sequence, Range<u64>),
        nodes: &mut Vec<NodeId>,
    ) -> Result<()> {
        let mut cursor = OrderCursor::new(sequence);
        cursor.seek(&&self.orders, range.start)?;
        let mut left = range.end - range.start;
        while left > 0
            && let Some(extent) = cursor.next(&&self.orders)?
        {
            let items = extent.items().min(left);
            let data = self.data.read();
            for index in 0..items {
                nodes.push(data.item_node(container, is_map, extent.item(index))?);
            }
            left -= items;
        }
        Ok(())
    }
}

/// The ranges of the newer sequence that edits insert.
fn inserted(edits: &[Edit]) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    edits.iter().filter_map(move |edit| match *edit {
        Edit::Remove(_) => None,
        Edit::Keep(items) => {
            at += items;
            None
        }
        Edit::Insert(items) => {
            at += items;
            Some(at - items..at)
        }
    })
}

/// What a node was, and held, up to a revision.
#[derive(Default)]
struct Below {
    /// The revisions that set it.
    set: Vec<u32>,
    /// Its children by shape.
    fields: FxHashSet<NodeId>,
    /// Its orders, newest first, and whether each is that of a map.
    sequences: Vec<(bool, Sequence)>,
}

impl Below {
    /// Reads a little more than `allowed` changes at most.
    fn read(data: &TreeData, at: NodeId, until: u32, allowed: u64) -> Result<Self, Fault> {
        let mut below = Self::default();
        data.versions(at, until, &mut |revision, state| {
            below.set.push(revision);
            match state {
                Datum::Object(shape) => {
                    let paths = data.schema.shape(shape).iter().map(|field| field.path);
                    below.fields.extend(paths.map(|path| node(path, at.ordinal().0)));
                }
                Datum::Array(sequence) => below.sequences.push((false, sequence)),
                Datum::Map(sequence) => below.sequences.push((true, sequence)),
                _ => {}
            }
            if below.set.len() as u64 > allowed {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(below)
    }
}

/// Where gaps begin, and where they have ended.
fn edges(gaps: &[(u32, u32)]) -> Vec<u32> {
    gaps.iter().flat_map(|&(first, last)| [first, last.saturating_add(1)]).collect()
}

/// The last of rising revisions up to `from`, or the first from there on.
fn nearest(revisions: &[u32], from: u32, direction: Direction) -> Option<u32> {
    match direction {
        Direction::Back => {
            revisions[..revisions.partition_point(|&revision| revision <= from)].last().copied()
        }
        Direction::Forth => {
            revisions.get(revisions.partition_point(|&revision| revision < from)).copied()
        }
    }
}
