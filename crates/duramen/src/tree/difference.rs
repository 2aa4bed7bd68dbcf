//! What changed between two revisions, in either direction.
//!
//! The walk goes down from the root and only where something can differ: below nodes that the
//! revisions between list as changed, or, if those lists are longer than the tree, everywhere.
//! States are compared, so that what was changed and changed back is no difference.
//!
//! Changes are in the order of a JSON Patch (RFC 6902): each pointer holds for the value that the
//! changes before it have made. The order of an object's members is no part of JSON's values and
//! a patch cannot express it, so it is a change of its own that the patch leaves out.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::order::{self, Edit, Item, OrderCursor};
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::state::{Datum, Sequence, ShapeId};
use crate::target::Target;
use crate::tree::Tree;
use crate::tree::children::is_there;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::history::short;
use crate::tree::locate::parent_of;
use crate::tree::records::version_path;
use crate::tree::schema::{Label, ROOT};
use crate::tree::serialize::{Format, write_scalar};

pub use places::MemberMove;
pub use stat::{DiffCounts, DiffStat};

mod places;
mod stat;

/// What happened at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// A value is there that was not.
    Added,
    /// A value is not there that was.
    Removed,
    /// Another value is there.
    Replaced,
    /// Members of an object that are there at both revisions stand in another order. JSON does not
    /// count that as a difference and a JSON Patch leaves it out.
    Reordered,
}

/// One difference between two revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub kind: ChangeKind,
    /// Where, in the value that the changes before this one have made.
    pub pointer: JsonPointer,
    /// The node that holds the value.
    pub node: NodeId,
    /// The value before, as compact JSON; none if it was added, or only reordered.
    pub before: Option<String>,
    /// The value after, as compact JSON; none if it was removed, or only reordered.
    pub after: Option<String>,
}

/// Which part of two revisions to compare, and how closely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// Only this value and what is below it; the whole document if none. It is looked for at the
    /// revision before and, if it is not there, at the one after; then the value is followed, not
    /// the place.
    pub start: Option<Target>,
    /// So many levels below the start; what differs below that makes the whole value at that level
    /// replaced. 0 says only whether the start differs.
    pub depth: Option<usize>,
}

/// The differences between two revisions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diff {
    /// Where the comparison began: the place of the start in the revision before, or, if it is not
    /// there, in the one after.
    pub start: JsonPointer,
    /// The changes, in an order in which they can be applied. Their pointers are from the root of
    /// the document, as if nothing outside the start had changed.
    pub changes: Vec<Change>,
    /// What makes the second value to the character once the JSON Patch was applied, which cannot
    /// state an order: members of objects that go to other places, one after the other.
    pub moves: Vec<MemberMove>,
}

impl Diff {
    /// Appends the changes as a JSON Patch (RFC 6902) that turns the first value into the second.
    pub fn write_json_patch(&self, out: &mut Vec<u8>) {
        out.push(b'[');
        for change in &self.changes {
            let operation = match change.kind {
                ChangeKind::Added => "add",
                ChangeKind::Removed => "remove",
                ChangeKind::Replaced => "replace",
                ChangeKind::Reordered => continue,
            };
            if out.last() == Some(&b'}') {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"op\":\"");
            out.extend_from_slice(operation.as_bytes());
            out.extend_from_slice(b"\",\"path\":");
            let pointer = change.pointer.to_string();
            write_scalar(Datum::Text { bytes: pointer.as_bytes(), plain: false }, out);
            if let Some(after) = &change.after {
                out.extend_from_slice(b",\"value\":");
                out.extend_from_slice(after.as_bytes());
            }
            out.push(b'}');
        }
        out.push(b']');
    }

    /// The changes as a JSON Patch (RFC 6902) that turns the first value into the second.
    pub fn to_json_patch(&self) -> String {
        let mut out = Vec::new();
        self.write_json_patch(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Nodes with a listed change at or below them, by the node they are in.
type Touched = FxHashMap<NodeId, Vec<NodeId>>;

struct Walk<'t> {
    tree: &'t Tree,
    before: u32,
    after: u32,
    touched: Option<Touched>,
    pointer: JsonPointer,
    /// Tokens of the longest pointer that a change may have.
    deepest: usize,
    /// While the walk is below that: what it has found, which is not listed.
    found: Option<Found>,
    changes: Vec<Change>,
    moves: Vec<MemberMove>,
}

/// What differs below the deepest level that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nothing,
    Reordered,
    Changed,
}

/// A node's state at both revisions, as far as the walk needs it.
enum Pair {
    Same,
    Objects(ShapeId, ShapeId),
    Arrays(Sequence, Sequence),
    /// Objects of which at least one is a map.
    Members(Members, Members),
    /// The document was deleted at one of them.
    Appeared,
    Vanished,
    Differ,
}

#[derive(Clone, Copy)]
enum Members {
    Shape(ShapeId),
    Sequence(Sequence),
}

/// Change lists are used while they have at most this many entries for each node of the tree.
const LISTED_PER_NODE: u64 = 1;
/// Change lists of so many entries are always used.
const LISTED_MIN: u64 = 64;

impl Snapshot {
    /// What turns one snapshot of a document into another.
    pub(crate) fn diff(before: &Self, after: &Self, options: &DiffOptions) -> Result<Diff> {
        let tree = &*before.tree;
        let (from, to) = (before.revision, after.revision);
        let target = options.start.clone().unwrap_or_else(|| JsonPointer::root().into());
        let at = match before.find(&target) {
            Err(missing) if missing.kind() == ErrorKind::NotFound => match after.find(&target) {
                // A document that is deleted at both revisions does not differ.
                Err(_) if options.start.is_none() => return Ok(Diff::default()),
                found => found?,
            },
            found => found?,
        };
        let start = match tree.pointer_of(at, short(from))? {
            Some(start) => start,
            None => after.pointer(at)?,
        };
        let deepest = start.tokens().len().saturating_add(options.depth.unwrap_or(usize::MAX));
        let mut walk = Walk::new(tree, (from, to), (start.clone(), deepest))?;
        walk.compare_start(at)?;
        Ok(Diff { start, changes: walk.changes, moves: walk.moves })
    }
}

impl Tree {
    /// What turns one revision into another; the later one may be staged.
    pub(crate) fn changes(&self, before: Revision, after: Revision) -> Result<Vec<Change>> {
        let mut walk = Walk::new(self, (before, after), (JsonPointer::root(), usize::MAX))?;
        walk.compare_start(node(ROOT, 0))?;
        Ok(walk.changes)
    }

    /// Where a revision changed a node that is there before and after, or what is in it: pointers
    /// that begin at the node. Its states are compared, so that what else the revision changed
    /// costs nothing.
    pub(crate) fn changed_places(
        &self,
        at: NodeId,
        revision: Revision,
    ) -> Result<Vec<JsonPointer>> {
        let revision = short(revision);
        let walk = self.compared(at, (revision - 1, revision))?;
        let mut places: Vec<_> = walk.changes.into_iter().map(|change| change.pointer).collect();
        places.dedup();
        Ok(places)
    }

    /// Whether a node that is there at two revisions, or what is in it, differs between them. Only
    /// states are compared, so that what lies between the revisions may have been dropped.
    pub(crate) fn differs(&self, at: NodeId, revisions: (u32, u32)) -> Result<bool> {
        let walk = self.compared(at, revisions)?;
        Ok(!walk.changes.is_empty() || !walk.moves.is_empty())
    }

    fn compared(&self, at: NodeId, (before, after): (u32, u32)) -> Result<Walk<'_>> {
        let mut walk = Walk {
            tree: self,
            before,
            after,
            touched: None,
            pointer: JsonPointer::root(),
            deepest: usize::MAX,
            found: None,
            changes: Vec::new(),
            moves: Vec::new(),
        };
        walk.compare(at)?;
        Ok(walk)
    }

    /// The nodes changed after `from` up to `to`, with those they are in; none if the lists of
    /// changes are longer than the tree, or some were dropped.
    fn touched_between(&self, from: Revision, to: Revision) -> Result<Option<Touched>> {
        let nodes: u64 = {
            let data = self.data.read();
            let spaces = data.schema.spaces().iter().zip(&data.spaces);
            spaces.map(|(space, data)| space.columns.len() as u64 * data.next).sum()
        };
        let first = self.first_revision();
        if from.0 < first && first > 1 {
            return Ok(None);
        }
        let listed_max = LISTED_MIN.max(nodes.saturating_mul(LISTED_PER_NODE));
        if to.0 - from.0 > listed_max {
            return Ok(None);
        }
        let (mut listed, mut changed) = (0, FxHashSet::default());
        // What counts the versions of records is no member of them.
        let version = version_path(&self.data.read().schema);
        for revision in from.0 + 1..=to.0 {
            let nodes = self.changed(Revision(revision))?;
            listed += nodes.len() as u64;
            if listed > listed_max {
                return Ok(None);
            }
            changed.extend(nodes.into_iter().filter(|node| Some(node.path()) != version));
        }
        let (mut touched, mut known) = (Touched::default(), FxHashSet::default());
        for &node in &changed {
            let mut at = node;
            // Each is in one other only, at whatever revision.
            while known.insert(at)
                && let Some(parent) = self.read(|data| parent_of(data, at))?
            {
                touched.entry(parent).or_default().push(at);
                at = parent;
            }
        }
        Ok(Some(touched))
    }
}

impl<'t> Walk<'t> {
    fn new(
        tree: &'t Tree,
        (from, to): (Revision, Revision),
        (start, deepest): (JsonPointer, usize),
    ) -> Result<Self> {
        Ok(Self {
            tree,
            before: short(from),
            after: short(to),
            touched: tree.touched_between(from.min(to), from.max(to))?,
            pointer: start,
            deepest,
            found: None,
            changes: Vec::new(),
            moves: Vec::new(),
        })
    }

    fn compare_start(&mut self, at: NodeId) -> Result<()> {
        let (before, after) = self
            .tree
            .read(|data| Ok((is_there(data, at, self.before)?, is_there(data, at, self.after)?)))?;
        match (before, after) {
            (true, true) => self.compare(at),
            (true, false) => self.push(ChangeKind::Removed, at),
            (false, true) => self.push(ChangeKind::Added, at),
            (false, false) => Ok(()),
        }
    }

    /// Compares what is at the pointer, as closely as the level allows.
    fn compare(&mut self, at: NodeId) -> Result<()> {
        if self.found.is_some() || self.pointer.tokens().len() < self.deepest {
            return self.compare_below(at);
        }
        self.found = Some(Found::Nothing);
        self.compare_below(at)?;
        match self.found.take() {
            Some(Found::Changed) => {
                self.push(ChangeKind::Replaced, at)?;
                // Elements that others have taken the place of can be equal to them.
                self.changes.pop_if(|change| change.before == change.after);
                Ok(())
            }
            Some(Found::Reordered) => {
                self.push_reordered(at);
                Ok(())
            }
            Some(Found::Nothing) | None => Ok(()),
        }
    }

    fn compare_below(&mut self, at: NodeId) -> Result<()> {
        match self.tree.read(|data| self.pair(data, at))? {
            Pair::Same => Ok(()),
            Pair::Appeared => self.push(ChangeKind::Added, at),
            Pair::Vanished => self.push(ChangeKind::Removed, at),
            Pair::Differ => self.push(ChangeKind::Replaced, at),
            Pair::Arrays(before, after) => self.compare_arrays(at, before, after),
            Pair::Objects(before, after) if before == after => {
                for child in self.children_to_compare(at, before)? {
                    self.compare_field(child)?;
                }
                Ok(())
            }
            Pair::Objects(before, after) => {
                self.compare_members(at, Members::Shape(before), Members::Shape(after))
            }
            Pair::Members(before, after) => self.compare_members(at, before, after),
        }
    }

    fn pair(&self, data: &TreeData, at: NodeId) -> Result<Pair, Fault> {
        let (before, after) = (data.state(at, self.before)?, data.state(at, self.after)?);
        Ok(match (before, after) {
            (Datum::Object(before), Datum::Object(after)) => Pair::Objects(before, after),
            (Datum::Array(before), Datum::Array(after)) => Pair::Arrays(before, after),
            (Datum::Map(before), Datum::Map(after)) => {
                Pair::Members(Members::Sequence(before), Members::Sequence(after))
            }
            (Datum::Object(before), Datum::Map(after)) => {
                Pair::Members(Members::Shape(before), Members::Sequence(after))
            }
            (Datum::Map(before), Datum::Object(after)) => {
                Pair::Members(Members::Sequence(before), Members::Shape(after))
            }
            (before, after) if before == after => Pair::Same,
            (Datum::Absent, _) => Pair::Appeared,
            (_, Datum::Absent) => Pair::Vanished,
            _ => Pair::Differ,
        })
    }

    /// The fields of an object of one shape that can differ, looked at under one lock.
    fn children_to_compare(&self, object: NodeId, shape: ShapeId) -> Result<Vec<NodeId>> {
        if let Some(touched) = &self.touched {
            let mut children = touched.get(&object).cloned().unwrap_or_default();
            if children.len() > 1 {
                let listed: FxHashSet<NodeId> = children.drain(..).collect();
                let fields = self.members(object, Members::Shape(shape))?;
                children.extend(fields.into_iter().filter(|field| listed.contains(field)));
            }
            return Ok(children);
        }
        self.tree.read(|data| {
            let mut children = Vec::new();
            for field in data.schema.shape(shape) {
                if data.is_same_scalar((object, field), self.before, self.after)? {
                    continue;
                }
                let child = node(field.path, object.ordinal().0);
                if !matches!(self.pair(data, child)?, Pair::Same) {
                    children.push(child);
                }
            }
            Ok(children)
        })
    }

    /// Compares a field, or an entry, that is there at both revisions.
    fn compare_field(&mut self, child: NodeId) -> Result<()> {
        let Some(name) = self.tree.name_of(child)? else { return Ok(()) };
        self.pointer.push(name);
        self.compare(child)?;
        self.pointer.pop();
        Ok(())
    }

    fn compare_arrays(&mut self, array: NodeId, before: Sequence, after: Sequence) -> Result<()> {
        let orders = &&self.tree.orders;
        let edits = if before == after {
            vec![Edit::Keep(order::len(orders, after)?)]
        } else {
            order::difference(orders, before, after)?
        };
        let touched = self.touched_positions(array, after)?;
        let (mut old, mut new) = (0, 0);
        for edit in edits {
            match edit {
                Edit::Keep(items) => {
                    self.compare_kept(array, (after, new..new + items), touched.as_deref())?;
                    (old, new) = (old + items, new + items);
                }
                Edit::Remove(items) => {
                    for index in old..old + items {
                        let element = self.item(array, false, (before, index))?;
                        self.push_below(ChangeKind::Removed, element, new.to_string())?;
                    }
                    old += items;
                }
                Edit::Insert(items) => {
                    for index in new..new + items {
                        let element = self.item(array, false, (after, index))?;
                        self.push_below(ChangeKind::Added, element, index.to_string())?;
                    }
                    new += items;
                }
            }
        }
        Ok(())
    }

    /// Where the touched elements of an array stand, rising; none if all have to be compared.
    fn touched_positions(
        &self,
        array: NodeId,
        sequence: Sequence,
    ) -> Result<Option<Vec<(u64, NodeId)>>> {
        let Some(touched) = &self.touched else { return Ok(None) };
        let children = touched.get(&array).map_or(&[][..], Vec::as_slice);
        let items: Vec<Item> =
            children.iter().map(|child| Item::Ordinal(child.ordinal())).collect();
        let found = order::positions(&&self.tree.orders, sequence, &items)?;
        Ok(Some(found.into_iter().map(|(index, child)| (index, children[child])).collect()))
    }

    /// Compares elements that are there at both revisions.
    fn compare_kept(
        &mut self,
        array: NodeId,
        (sequence, range): (Sequence, std::ops::Range<u64>),
        touched: Option<&[(u64, NodeId)]>,
    ) -> Result<()> {
        if let Some(touched) = touched {
            let first = touched.partition_point(|&(index, _)| index < range.start);
            for &(index, child) in touched[first..].iter().take_while(|(i, _)| *i < range.end) {
                self.compare_element(child, index)?;
            }
            return Ok(());
        }
        let mut cursor = OrderCursor::new(sequence);
        cursor.seek(&&self.tree.orders, range.start)?;
        let mut index = range.start;
        while index < range.end
            && let Some(extent) = cursor.next(&&self.tree.orders)?
        {
            for offset in 0..extent.items().min(range.end - index) {
                let child = self.node_of(array, false, extent.item(offset))?;
                self.compare_element(child, index + offset)?;
            }
            index += extent.items();
        }
        Ok(())
    }

    fn compare_element(&mut self, element: NodeId, index: u64) -> Result<()> {
        // Most elements are the same: they are passed without making a pointer to them.
        let children = match self.tree.read(|data| self.pair(data, element))? {
            Pair::Same => return Ok(()),
            Pair::Objects(before, after) if before == after => {
                Some(self.children_to_compare(element, before)?)
            }
            _ => None,
        };
        if children.as_ref().is_some_and(Vec::is_empty) {
            return Ok(());
        }
        self.pointer.push(index.to_string());
        let is_deepest = self.found.is_none() && self.pointer.tokens().len() >= self.deepest;
        match children {
            Some(children) if !is_deepest => {
                children.into_iter().try_for_each(|child| self.compare_field(child))?;
            }
            _ => self.compare(element)?,
        }
        self.pointer.pop();
        Ok(())
    }

    fn item(
        &self,
        container: NodeId,
        is_map: bool,
        (sequence, index): (Sequence, u64),
    ) -> Result<NodeId> {
        let item = order::get(&&self.tree.orders, sequence, index)?;
        let item = item.ok_or_else(|| {
            let message = format!("item {index} of {container} is not there");
            crate::Error::new(crate::ErrorKind::Corrupt, message)
        })?;
        self.node_of(container, is_map, item)
    }

    fn node_of(&self, container: NodeId, is_map: bool, item: Item) -> Result<NodeId> {
        self.tree.read(|data| Ok(data.item_node(container, is_map, item)?))
    }

    /// Compares objects whose members, or their order, may differ.
    fn compare_members(&mut self, at: NodeId, before: Members, after: Members) -> Result<()> {
        if let (Members::Sequence(a), Members::Sequence(b), Some(touched)) =
            (before, after, &self.touched)
        {
            let children = touched.get(&at).cloned().unwrap_or_default();
            let children = self.in_order(b, children)?;
            return self.edit_map(at, (a, b), children);
        }
        let old = self.members(at, before)?;
        let new = self.members(at, after)?;
        self.compare_lists(at, &old, &new)
    }

    /// Members of a map in its order, so that the changes do not tell how it is stored.
    fn in_order(&self, sequence: Sequence, members: Vec<NodeId>) -> Result<Vec<NodeId>> {
        if members.len() <= 1 {
            return Ok(members);
        }
        let items: Vec<Item> = {
            let data = self.tree.data.read();
            let item = |member: &NodeId| match data.schema.label(member.path()) {
                Label::Entry => Item::Ordinal(member.ordinal()),
                _ => Item::Field(member.path()),
            };
            members.iter().map(item).collect()
        };
        let found = order::positions(&&self.tree.orders, sequence, &items)?;
        let placed: FxHashSet<usize> = found.iter().map(|&(_, member)| member).collect();
        let mut others: Vec<NodeId> =
            (0..).zip(&members).filter(|(at, _)| !placed.contains(at)).map(|(_, m)| *m).collect();
        others.sort_unstable();
        others.extend(found.into_iter().map(|(_, member)| members[member]));
        Ok(others)
    }

    /// Compares two orders of a map's items, looking at kept items only if they were touched.
    fn edit_map(
        &mut self,
        map: NodeId,
        (before, after): (Sequence, Sequence),
        touched: Vec<NodeId>,
    ) -> Result<()> {
        let orders = &&self.tree.orders;
        let edits =
            if before == after { Vec::new() } else { order::difference(orders, before, after)? };
        let (mut old, mut new) = (0, 0);
        let (mut removed, mut added) = (Vec::new(), Vec::new());
        let mut is_added_last = true;
        for edit in edits {
            match edit {
                Edit::Keep(items) => {
                    is_added_last &= added.is_empty();
                    (old, new) = (old + items, new + items);
                }
                Edit::Remove(items) => {
                    for index in old..old + items {
                        removed.push(self.item(map, true, (before, index))?);
                    }
                    old += items;
                }
                Edit::Insert(items) => {
                    for index in new..new + items {
                        added.push(self.item(map, true, (after, index))?);
                    }
                    new += items;
                }
            }
        }
        let removed_set: FxHashSet<NodeId> = removed.iter().copied().collect();
        let added_set: FxHashSet<NodeId> = added.iter().copied().collect();
        let is_moved = |child: &NodeId| removed_set.contains(child) && added_set.contains(child);
        let is_reordered = removed.iter().any(is_moved);
        for &child in removed.iter().filter(|child| !added_set.contains(child)) {
            self.push_member(ChangeKind::Removed, child)?;
        }
        for child in touched {
            let is_kept = !removed_set.contains(&child) && !added_set.contains(&child);
            if (is_kept || is_moved(&child)) && self.is_there_twice(child)? {
                self.compare_field(child)?;
            }
        }
        for &child in added.iter().filter(|child| !removed_set.contains(child)) {
            self.push_member(ChangeKind::Added, child)?;
        }
        if is_reordered {
            self.push_reordered(map);
        }
        if is_reordered || !is_added_last {
            let old = self.members(map, Members::Sequence(before))?;
            let new = self.members(map, Members::Sequence(after))?;
            self.place_members(&old, &new)?;
        }
        Ok(())
    }

    /// Whether a node has a value at both revisions.
    fn is_there_twice(&self, child: NodeId) -> Result<bool> {
        self.tree.read(|data| {
            let before = data.state(child, self.before)?.is_absent();
            Ok(!before && !data.state(child, self.after)?.is_absent())
        })
    }

    fn members(&self, at: NodeId, members: Members) -> Result<Vec<NodeId>> {
        match members {
            Members::Shape(shape) => self.tree.read(|data| {
                let fields = data.schema.shape(shape).iter();
                Ok(fields.map(|field| node(field.path, at.ordinal().0)).collect())
            }),
            Members::Sequence(sequence) => {
                let mut nodes = Vec::new();
                let mut cursor = OrderCursor::new(sequence);
                while let Some(extent) = cursor.next(&&self.tree.orders)? {
                    for index in 0..extent.items() {
                        nodes.push(self.node_of(at, true, extent.item(index))?);
                    }
                }
                Ok(nodes)
            }
        }
    }

    /// Compares all members of an object.
    fn compare_lists(&mut self, at: NodeId, old: &[NodeId], new: &[NodeId]) -> Result<()> {
        let old_set: FxHashSet<NodeId> = old.iter().copied().collect();
        let new_set: FxHashSet<NodeId> = new.iter().copied().collect();
        for &child in old.iter().filter(|child| !new_set.contains(child)) {
            self.push_member(ChangeKind::Removed, child)?;
        }
        for &child in new.iter().filter(|child| old_set.contains(child)) {
            self.compare_field(child)?;
        }
        for &child in new.iter().filter(|child| !old_set.contains(child)) {
            self.push_member(ChangeKind::Added, child)?;
        }
        let is_kept = |child: &NodeId| old_set.contains(child);
        let is_added_last =
            new.iter().skip_while(|child| is_kept(child)).all(|child| !is_kept(child));
        let kept_before = old.iter().filter(|child| new_set.contains(child));
        let kept_after = new.iter().filter(|child| old_set.contains(child));
        let is_reordered = !kept_before.eq(kept_after);
        if is_reordered {
            self.push_reordered(at);
        }
        if is_reordered || !is_added_last {
            self.place_members(old, new)?;
        }
        Ok(())
    }

    fn push_reordered(&mut self, at: NodeId) {
        if let Some(found) = &mut self.found {
            *found = Found::Reordered.max(*found);
            return;
        }
        let pointer = self.pointer.clone();
        let kind = ChangeKind::Reordered;
        self.changes.push(Change { kind, pointer, node: at, before: None, after: None });
    }

    fn push_member(&mut self, kind: ChangeKind, child: NodeId) -> Result<()> {
        match self.tree.name_of(child)? {
            Some(name) => self.push_below(kind, child, name),
            None => Ok(()),
        }
    }

    fn push_below(&mut self, kind: ChangeKind, child: NodeId, token: String) -> Result<()> {
        self.pointer.push(token);
        self.push(kind, child)?;
        self.pointer.pop();
        Ok(())
    }

    fn push(&mut self, kind: ChangeKind, at: NodeId) -> Result<()> {
        if let Some(found) = &mut self.found {
            *found = Found::Changed;
            return Ok(());
        }
        let text = |revision: u32| -> Result<String> {
            let mut text = Vec::new();
            self.tree.append_json((at, revision), &Format::default(), &mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let before = if kind == ChangeKind::Added { None } else { Some(text(self.before)?) };
        let after = if kind == ChangeKind::Removed { None } else { Some(text(self.after)?) };
        let pointer = self.pointer.clone();
        self.changes.push(Change { kind, pointer, node: at, before, after });
        Ok(())
    }
}
