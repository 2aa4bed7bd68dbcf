//! Taking back what turned one revision into another.
//!
//! What comes back comes back as the nodes it was: states of the earlier revision are staged
//! again, those of the nodes below as well. An array or object whose members nobody changed since
//! gets its earlier order as it was; else the members that are to go and to come are woven into
//! what there is now.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::{Move, NodeId};
use crate::order::{Item, Places};
use crate::revision::Revision;
use crate::state::{Datum, Sequence};
use crate::tree::compare::Extents;
use crate::tree::difference::{Change, ChangeKind};
use crate::tree::edit::Ahead;
use crate::tree::history::short;
use crate::tree::locate::{Place, parent_of};
use crate::tree::schema::{Label, ROOT};
use crate::tree::writer::{Prior, Writer};

/// Values that a conflict names.
const NAMED_MAX: usize = 10;

/// The text of a state, apart from the tree that holds it.
enum Owned {
    Text { bytes: Vec<u8>, plain: bool },
    Digits(Vec<u8>),
    Opaque(Vec<u8>),
    Other(Datum<'static>),
}

/// What is to be taken back.
struct Inversion<'w> {
    writer: &'w Writer,
    before: u32,
    after: u32,
    /// Values that are to be as they were before.
    restored: FxHashSet<NodeId>,
    /// Values that were not there before.
    added: FxHashSet<NodeId>,
    /// Elements that only stood elsewhere in their array.
    shifted: FxHashSet<NodeId>,
    /// Arrays and objects whose members, or the order of them, are to be as before.
    containers: Vec<NodeId>,
    /// Where elements stood before anything was staged.
    places: RefCell<Places>,
}

impl Writer {
    /// Takes back what a revision changed; `Conflict` if any of it has changed since.
    pub(crate) fn undo(&self, revision: Revision, ahead: Option<Ahead>) -> Result<()> {
        let last = Revision(u64::from(self.revision) - 1);
        if revision.0 == 0 || revision > last {
            let message =
                format!("there is no revision {revision} to undo: there are revisions 1 to {last}");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        self.tree.check_kept(revision)?;
        let before = short(revision) - 1;
        if before > 0 && self.tree.check_kept(Revision(before.into())).is_err() {
            let message = format!(
                "revision {revision} cannot be undone, because what it changed is not known: the \
                 history begins at revision {}, earlier ones were dropped by the document's \
                 retention",
                self.tree.first_revision()
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        // Before the first revision there is nothing, whatever is kept.
        let had_value = before > 0 && self.has_value(before)?;
        if !self.has_value(before + 1)? || !had_value {
            let message = format!(
                "revision {revision} made or deleted the whole document, which cannot be undone: \
                 delete it, or revert to a revision that has a value"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let changes = self.changes((Revision(revision.0 - 1), revision), ahead)?;
        let inversion = Inversion::new(self, (before, before + 1), &changes)?;
        inversion.check(revision, &changes)?;
        inversion.apply()?;
        self.remove_purged()?;
        self.move_back(revision)
    }

    /// Makes the document what it was at a revision; only what differs is staged.
    pub(crate) fn revert_to(&self, revision: Revision, ahead: Option<Ahead>) -> Result<()> {
        let last = Revision(u64::from(self.revision) - 1);
        if revision.0 == 0 || revision > last || !self.has_value(short(revision))? {
            let message = format!(
                "there is no value at revision {revision} to revert to: there are revisions 1 to \
                 {last}"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let now = self.revision;
        if self.has_value(now)? {
            let changes = self.changes((revision, Revision(u64::from(now))), ahead)?;
            Inversion::new(self, (short(revision), now), &changes)?.apply()?;
        } else {
            self.restore(self.root()?, short(revision))?;
        }
        self.remove_purged()
    }

    /// Takes out again what came back in the place of records that were purged since.
    fn remove_purged(&self) -> Result<()> {
        let is_collection = self.options.as_ref().is_some_and(|found| found.collection.is_some());
        let records = self.tree.data.read().schema.path(ROOT).entry.filter(|_| is_collection);
        let Some(records) = records else { return Ok(()) };
        let touched = self.tree.data.read().touched().to_vec();
        let mut purged = Vec::new();
        for record in touched.into_iter().filter(|node| node.path() == records) {
            if self.tree.is_purged(record, self.revision)? {
                purged.push(record);
            }
        }
        if purged.is_empty() { Ok(()) } else { self.remove_records(&purged) }
    }

    fn has_value(&self, revision: u32) -> Result<bool> {
        let place = self.tree.locate(&JsonPointer::root(), revision)?;
        Ok(revision > 0 && matches!(place, Place::Node(_)))
    }

    /// Makes a node, with all below it, what it was at a revision.
    pub(crate) fn restore(&self, top: NodeId, revision: u32) -> Result<()> {
        let mut waiting = vec![top];
        while let Some(node) = waiting.pop() {
            let restored = self.children(node, revision)?.unwrap_or_default();
            // Also those of a container that was removed: nobody has marked them.
            if let Some(last) = self.members(node, self.prior(node)?.0)? {
                let kept: FxHashSet<NodeId> = restored.iter().copied().collect();
                let mut gone = last.into_iter().filter(|child| !kept.contains(child));
                gone.try_for_each(|child| self.erase(child))?;
            }
            self.restage(node, revision)?;
            waiting.extend(restored);
        }
        Ok(())
    }

    /// Gives a node the state that it had at a revision.
    fn restage(&self, node: NodeId, revision: u32) -> Result<()> {
        let apart = self.tree.read(|data| {
            Ok(match data.state(node, revision)? {
                Datum::Apart { blob, kind } => Some((blob, kind)),
                _ => None,
            })
        })?;
        if let Some((blob, kind)) = apart {
            // A value of its own, as retention drops those that only dropped revisions name.
            let bytes = self.tree.blobs.get(blob)?;
            return self.stage_bytes(node, kind, &bytes);
        }
        let state = self.tree.read(|data| {
            Ok(match data.state(node, revision)? {
                Datum::Text { bytes, plain } => Owned::Text { bytes: bytes.to_vec(), plain },
                Datum::Digits(bytes) => Owned::Digits(bytes.to_vec()),
                Datum::Opaque(bytes) => Owned::Opaque(bytes.to_vec()),
                Datum::Absent => Owned::Other(Datum::Absent),
                Datum::Null => Owned::Other(Datum::Null),
                Datum::Bool(value) => Owned::Other(Datum::Bool(value)),
                Datum::Int(value) => Owned::Other(Datum::Int(value)),
                Datum::Decimal { mantissa, scale } => {
                    Owned::Other(Datum::Decimal { mantissa, scale })
                }
                Datum::Float(value) => Owned::Other(Datum::Float(value)),
                Datum::Object(shape) => Owned::Other(Datum::Object(shape)),
                Datum::Array(sequence) => Owned::Other(Datum::Array(sequence)),
                Datum::Map(sequence) => Owned::Other(Datum::Map(sequence)),
                Datum::Apart { blob, kind } => Owned::Other(Datum::Apart { blob, kind }),
            })
        })?;
        let state = match &state {
            Owned::Text { bytes, plain } => Datum::Text { bytes, plain: *plain },
            Owned::Digits(bytes) => Datum::Digits(bytes),
            Owned::Opaque(bytes) => Datum::Opaque(bytes),
            Owned::Other(Datum::Array(order)) => Datum::Array(self.order_of_its_own(*order)?),
            Owned::Other(Datum::Map(order)) => Datum::Map(self.order_of_its_own(*order)?),
            Owned::Other(state) => *state,
        };
        self.stage(node, state)
    }

    /// The same order in other blocks, as retention drops those that only dropped revisions name.
    fn order_of_its_own(&self, order: Sequence) -> Result<Sequence> {
        if let Sequence::Extent(_) = order {
            return Ok(order);
        }
        let mut extents = Extents::default();
        self.items(order)?.into_iter().for_each(|item| extents.push_item(item));
        self.splice_items(Sequence::EMPTY, (0, 0), &extents.0)
    }

    /// The members of an array or object in order; none of anything else.
    fn children(&self, at: NodeId, revision: u32) -> Result<Option<Vec<NodeId>>> {
        let prior = self.tree.read(|data| {
            Ok(match data.state(at, revision)? {
                Datum::Object(shape) => Prior::Object(shape),
                Datum::Array(sequence) => Prior::Array(sequence),
                Datum::Map(sequence) => Prior::Map(sequence),
                _ => Prior::Scalar,
            })
        })?;
        self.members(at, prior)
    }

    fn members(&self, at: NodeId, form: Prior) -> Result<Option<Vec<NodeId>>> {
        let (items, is_map) = match form {
            Prior::Never | Prior::Scalar => return Ok(None),
            Prior::Object(shape) => {
                (self.shape_paths(shape)?.into_iter().map(Item::Field).collect(), true)
            }
            Prior::Array(sequence) => (self.items(sequence)?, false),
            Prior::Map(sequence) => (self.items(sequence)?, true),
        };
        let nodes = items.into_iter().map(|item| self.item_node(at, is_map, item));
        nodes.collect::<Result<_>>().map(Some)
    }

    fn is_array(&self, at: NodeId, revision: u32) -> Result<bool> {
        self.tree.read(|data| Ok(matches!(data.state(at, revision)?, Datum::Array(_))))
    }

    /// Notes that what a revision moved has moved back.
    fn move_back(&self, revision: Revision) -> Result<()> {
        let mut places = Places::default();
        let mut is_there = |node| -> Result<bool> {
            Ok(self.tree.pointer_among(&mut places, (node, self.revision))?.is_some())
        };
        for Move { to, from } in self.tree.moves(revision)? {
            if is_there(from)? && !is_there(to)? {
                self.tree.data.write().moves.push(Move { to: from, from: to });
            }
        }
        Ok(())
    }
}

impl<'w> Inversion<'w> {
    fn new(writer: &'w Writer, (before, after): (u32, u32), changes: &[Change]) -> Result<Self> {
        let (mut removed, mut added) = (FxHashMap::default(), FxHashSet::default());
        let (mut restored, mut shifted) = (FxHashSet::default(), FxHashSet::default());
        let (mut containers, mut known) = (Vec::new(), FxHashSet::default());
        for change in changes {
            let container = match change.kind {
                ChangeKind::Replaced => None,
                ChangeKind::Reordered => Some(change.node),
                ChangeKind::Added | ChangeKind::Removed => {
                    writer.tree.read(|data| parent_of(data, change.node))?
                }
            };
            containers.extend(container.filter(|&container| known.insert(container)));
            match change.kind {
                ChangeKind::Removed => drop(removed.insert(change.node, &change.before)),
                ChangeKind::Added => drop(added.insert(change.node)),
                ChangeKind::Replaced => drop(restored.insert(change.node)),
                ChangeKind::Reordered => {}
            }
        }
        // What stands elsewhere in its array comes as removed and as added.
        for change in changes.iter().filter(|change| change.kind == ChangeKind::Added) {
            if let Some(&before) = removed.get(&change.node) {
                added.remove(&change.node);
                if *before == change.after {
                    shifted.insert(change.node);
                }
            }
        }
        restored.extend(removed.into_keys().filter(|node| !shifted.contains(node)));
        let places = RefCell::default();
        Ok(Self { writer, before, after, restored, added, shifted, containers, places })
    }

    fn pointer_of(&self, node: NodeId, revision: u32) -> Result<Option<JsonPointer>> {
        self.writer.tree.pointer_among(&mut self.places.borrow_mut(), (node, revision))
    }

    /// Refuses to take back what is not as the revision left it.
    fn check(&self, revision: Revision, changes: &[Change]) -> Result<()> {
        let now = self.writer.revision;
        let lasting: FxHashMap<NodeId, &str> = changes
            .iter()
            .filter_map(|change| Some((change.node, change.after.as_deref()?)))
            .collect();
        let (mut others, mut known) = (Vec::new(), FxHashSet::default());
        for change in changes {
            let Change { kind, node, .. } = *change;
            if kind == ChangeKind::Reordered || self.shifted.contains(&node) || !known.insert(node)
            {
                continue;
            }
            let is_as_left = match lasting.get(&node) {
                Some(after) => self.is_now(node, after)?,
                None => self.is_free(node)?,
            };
            if !is_as_left {
                let pointer = self.pointer_of(node, now)?;
                others.push((pointer.unwrap_or_else(|| change.pointer.clone()), node));
            }
        }
        for &container in &self.containers {
            if others.is_empty() && !self.can_order(container)? {
                let pointer = self.pointer_of(container, self.after)?;
                others.push((pointer.unwrap_or_default(), container));
            }
        }
        if others.is_empty() { Ok(()) } else { Err(conflict(revision, &others)) }
    }

    /// Whether a node is there with a value.
    fn is_now(&self, node: NodeId, value: &str) -> Result<bool> {
        let Writer { tree, revision, .. } = self.writer;
        if self.pointer_of(node, *revision)?.is_none() {
            return Ok(false);
        }
        let mut text = Vec::new();
        tree.append_json((node, *revision), &crate::Format::default(), &mut text)?;
        Ok(text == value.as_bytes())
    }

    /// Whether a removed node can come back: what it was in is there, and its place is free.
    fn is_free(&self, node: NodeId) -> Result<bool> {
        let writer = self.writer;
        let now = writer.revision;
        let Some(parent) = writer.tree.read(|data| parent_of(data, node))? else {
            return Ok(false);
        };
        let Some(container) = self.pointer_of(parent, now)? else { return Ok(false) };
        if self.pointer_of(node, now)?.is_some() {
            return Ok(false);
        }
        let is_element =
            writer.tree.read(|data| Ok(data.schema.label(node.path()) == Label::Element))?;
        if is_element {
            return Ok(true);
        }
        let Some(place) = self.pointer_of(node, self.before)? else { return Ok(false) };
        let name = place.last().unwrap_or_default();
        Ok(match writer.tree.locate(&container.child(name), now)? {
            Place::Missing(..) => true,
            // A field and an entry of one name: the one that was added makes way.
            Place::Node(there) => self.added.contains(&there),
            Place::Inside(..) => false,
        })
    }

    /// Whether the members of a container can be ordered as before: it is there as one still, and
    /// nobody else changed the order since if this did.
    fn can_order(&self, container: NodeId) -> Result<bool> {
        let writer = self.writer;
        let is_at =
            |revision| -> Result<bool> { Ok(self.pointer_of(container, revision)?.is_some()) };
        let is_there = is_at(writer.revision)?;
        // One that was removed with what it was in keeps the state that it had.
        if self.is_unchanged_since(container)? {
            return Ok(is_there || !is_at(self.after)?);
        }
        let Some(present) = writer.children(container, writer.revision)?.filter(|_| is_there)
        else {
            return Ok(false);
        };
        if writer.is_array(container, writer.revision)? != writer.is_array(container, self.after)? {
            return Ok(false);
        }
        let (old, new) = self.orders(container)?;
        Ok(is_one_order(&old, &new) || is_one_order(&new, &present))
    }

    fn orders(&self, container: NodeId) -> Result<(Vec<NodeId>, Vec<NodeId>)> {
        let old = self.writer.children(container, self.before)?.unwrap_or_default();
        Ok((old, self.writer.children(container, self.after)?.unwrap_or_default()))
    }

    fn is_unchanged_since(&self, container: NodeId) -> Result<bool> {
        self.writer.tree.read(|data| {
            let after = data.state(container, self.after)?;
            Ok(data.state(container, self.writer.revision)? == after)
        })
    }

    fn apply(&self) -> Result<()> {
        let writer = self.writer;
        for &container in &self.containers {
            if self.is_unchanged_since(container)? {
                writer.restage(container, self.before)?;
            } else {
                self.weave_members(container)?;
            }
        }
        self.added.iter().try_for_each(|&node| writer.erase(node))?;
        self.restored.iter().try_for_each(|&node| writer.restore(node, self.before))
    }

    /// Gives a container whose members have changed since the ones it had before.
    fn weave_members(&self, container: NodeId) -> Result<()> {
        let writer = self.writer;
        let present = writer.children(container, writer.revision)?.unwrap_or_default();
        let (old, new) = self.orders(container)?;
        let set = |nodes: &[NodeId]| nodes.iter().copied().collect::<FxHashSet<NodeId>>();
        let (in_old, in_new, in_present) = (set(&old), set(&new), set(&present));
        let members = if is_one_order(&old, &new) {
            let base = present.into_iter().filter(|node| !self.added.contains(node));
            weave(base.collect(), &old, |node| !in_new.contains(node))
        } else {
            let is_left = |node: &NodeId| !in_new.contains(node) || in_present.contains(node);
            let base = old.into_iter().filter(is_left).collect();
            let is_later = |node: &NodeId| !in_new.contains(node) && !in_old.contains(node);
            weave(base, &present, is_later)
        };
        self.stage_members(container, &members)
    }

    fn stage_members(&self, container: NodeId, members: &[NodeId]) -> Result<()> {
        let writer = self.writer;
        let is_array = writer.is_array(container, writer.revision)?;
        let mut extents = Extents::default();
        let mut paths = Vec::new();
        for &member in members {
            let item = if is_array {
                Item::Ordinal(member.ordinal())
            } else {
                writer.item_of(container, member)
            };
            extents.push_item(item);
            if let Item::Field(path) = item {
                paths.push(path);
            }
        }
        if !is_array && paths.len() == members.len() && writer.stage_fields(container, &paths)? {
            return Ok(());
        }
        let sequence = writer.splice_items(Sequence::EMPTY, (0, 0), &extents.0)?;
        let state = if is_array { Datum::Array(sequence) } else { Datum::Map(sequence) };
        writer.stage(container, state)
    }
}

/// Whether what is in both lists is in the same order in both.
fn is_one_order(a: &[NodeId], b: &[NodeId]) -> bool {
    let in_a: FxHashSet<NodeId> = a.iter().copied().collect();
    let in_b: FxHashSet<NodeId> = b.iter().copied().collect();
    a.iter().filter(|node| in_b.contains(node)).eq(b.iter().filter(|node| in_a.contains(node)))
}

/// A list with more nodes put into it, each behind the last one before it that the list has in
/// the order that both come from.
fn weave(base: Vec<NodeId>, order: &[NodeId], is_more: impl Fn(&NodeId) -> bool) -> Vec<NodeId> {
    let in_base: FxHashSet<NodeId> = base.iter().copied().collect();
    let (mut first, mut behind) = (Vec::new(), FxHashMap::<NodeId, Vec<NodeId>>::default());
    let mut last = None;
    for &node in order {
        if in_base.contains(&node) {
            last = Some(node);
        } else if is_more(&node) {
            match last {
                None => first.push(node),
                Some(last) => behind.entry(last).or_default().push(node),
            }
        }
    }
    let mut woven = first;
    for node in base {
        woven.push(node);
        woven.extend(behind.remove(&node).unwrap_or_default());
    }
    woven
}

fn conflict(revision: Revision, others: &[(JsonPointer, NodeId)]) -> Error {
    let named: Vec<String> = others
        .iter()
        .take(NAMED_MAX)
        .map(|(pointer, node)| format!("\"{pointer}\" ({node})"))
        .collect();
    let more = if others.len() > NAMED_MAX { ", and more" } else { "" };
    let message = format!(
        "revision {revision} cannot be undone, as what it changed has changed since: {}{more}; \
         undo the later revisions first, or set these values",
        named.join(", ")
    );
    Error::new(ErrorKind::Conflict, message)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::sync::Arc;

    use super::*;
    use crate::io::{Device, MemoryDevice};
    use crate::node::{Ordinal, PathId};
    use crate::{CommitOptions, Database, Options, Position, Retention};

    fn nodes(numbers: &[u64]) -> Vec<NodeId> {
        numbers.iter().map(|&number| NodeId::new(PathId(1), Ordinal(number))).collect()
    }

    #[test]
    fn what_comes_back_stands_behind_what_it_stood_behind() {
        let (base, order) = (nodes(&[9, 3, 1]), nodes(&[7, 1, 2, 8, 3, 4]));
        let more = nodes(&[7, 2, 8, 4]);
        let woven = weave(base, &order, |node| more.contains(node));
        assert_eq!(woven, nodes(&[7, 9, 3, 4, 1, 2, 8]));
        assert_eq!(weave(Vec::new(), &order, |node| more.contains(node)), more);
    }

    #[test]
    fn only_what_two_lists_share_has_one_order_or_not() {
        assert!(is_one_order(&nodes(&[1, 2, 3]), &nodes(&[9, 1, 3])));
        assert!(!is_one_order(&nodes(&[1, 2, 3]), &nodes(&[3, 9, 1])));
    }

    /// What is undone once named the order of the revision that it brought back.
    #[test]
    fn the_order_that_comes_back_stays_when_its_revision_is_let_go() {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let open = || {
            let options = Options { background: false, ..Options::default() };
            Database::open_device(Arc::clone(&device), options).unwrap()
        };
        let (db, options) = (open(), CommitOptions::default());
        let document = db.create_document("d").unwrap();
        document.put("[0,1,2,3,4,5,6]", &options).unwrap();
        document.retain(Retention::Last(2), &options).unwrap();
        let place = |text| JsonPointer::parse(text).unwrap();
        document.remove(&place("/2"), &options).unwrap();
        let first = Position::First("".parse().unwrap());
        document.move_to(&place("/4"), &first, None, &options).unwrap();
        db.checkpoint().unwrap();
        document.undo(Revision(3), &options).unwrap();
        // As when the disk is too full for another checkpoint before.
        db.engine.compact_all(&mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(document.first_revision().unwrap(), Revision(3));
        drop((document, db));
        let db = open();
        let head = db.document("d").unwrap().head().unwrap();
        assert_eq!(head.to_json().unwrap(), "[0,1,3,4,5,6]");
    }
}
