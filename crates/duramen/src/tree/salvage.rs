//! What repair reads of a tree of which some cells are lost.
//!
//! A state on disk is a first state and the changes since. A lost first state shows: structure says
//! that a value is there, and none is. A lost change does not: an older state stands there still.
//! So the revision rows, which name every node that changed, are held against the changes.
//!
//! Invariant: a state that [`Losses::hide`] does not hide is the one that was committed.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::encoding::{Column, RevisionRowsBlock, RunPiece, encode_column};
use crate::error::{ErrorKind, Result};
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::NodeId;
use crate::revision::Revision;
use crate::segment::salvage::LostKeys;
use crate::state::Datum;
use crate::store::LiveSegments;
use crate::tree::Tree;
use crate::tree::cell_key::{self, CellKey, GroupCell, TreeId};
use crate::tree::group::{GroupId, locate};
use crate::tree::history::short;
use crate::tree::persist::{Cells, Meta};
use crate::tree::schema::{SpaceId, index_u32};

/// What the cells of a tree that are left say of its extent.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    revisions: u64,
    orders: u64,
    blobs: u64,
    /// By space.
    high_waters: BTreeMap<u32, u64>,
    /// The slots from the first on that have a revision of birth, and the end of all slots.
    groups: BTreeMap<(SpaceId, u32), GroupSlots>,
}

#[derive(Debug, Default)]
struct GroupSlots {
    born: Vec<(u64, u64)>,
    end: u64,
}

impl Extents {
    /// Looks at every cell of a tree that is left; what does not decode says nothing.
    pub(crate) fn of(live: &LiveSegments, tree: TreeId) -> Result<Self> {
        let mut extents = Self::default();
        for found in live.scan(&tree.0.to_be_bytes())? {
            let (key, handle) = found?;
            let Some((_, key)) = cell_key::parse(&key) else { continue };
            let cell = || handle.load();
            match key {
                CellKey::Rows { first } => {
                    let rows = RevisionRowsBlock::parse(cell()?).map_or(0, |block| block.len());
                    extents.revisions =
                        extents.revisions.max(first.saturating_sub(1) + rows as u64);
                }
                CellKey::Order(id) => extents.orders = extents.orders.max(id.0 + 1),
                CellKey::Blob(id) => extents.blobs = extents.blobs.max(id.0 + 1),
                CellKey::Group { id, kind: GroupCell::Run, .. } => {
                    let piece = RunPiece::parse(cell()?);
                    let last = piece.map_or(0, |piece| u64::from(piece.last_revision()));
                    extents.revisions = extents.revisions.max(last);
                    extents.groups.entry((id.space, id.group)).or_default();
                }
                CellKey::Group { id, kind, number, .. } => {
                    let len = Column::parse(cell()?).map_or(0, |column| column.len() as u64);
                    extents.add_slots(id, kind, (u64::from(number), u64::from(number) + len));
                }
                _ => {}
            }
        }
        Ok(extents)
    }

    fn add_slots(&mut self, id: GroupId, kind: GroupCell, (first, end): (u64, u64)) {
        let end = end.min(ROW_GROUP_SLOTS);
        let slots = self.groups.entry((id.space, id.group)).or_default();
        slots.end = slots.end.max(end);
        if kind == GroupCell::Born {
            slots.born.push((first, end));
        }
        let high_water = self.high_waters.entry(id.space.0).or_default();
        *high_water = (*high_water).max(u64::from(id.group) * ROW_GROUP_SLOTS + end);
    }

    /// The tree's facts with what they do not know of; none if they know of everything.
    pub(crate) fn complete(&self, meta: &Meta) -> Option<Meta> {
        let spaces = self.high_waters.keys().next_back().map_or(0, |&last| last as usize + 1);
        let mut high_waters = meta.high_waters.clone();
        high_waters.resize(high_waters.len().max(spaces), 0);
        for (&space, &end) in &self.high_waters {
            let known = &mut high_waters[space as usize];
            *known = (*known).max(end);
        }
        let complete = Meta {
            revisions: meta.revisions.max(self.revisions),
            schema: meta.schema,
            orders: meta.orders.max(self.orders),
            blobs: meta.blobs.max(self.blobs),
            high_waters,
            kinds: meta.kinds.clone(),
        };
        // Of what the facts do not know, the kinds are not known either.
        (complete != *meta).then_some(Meta { kinds: None, ..complete })
    }

    /// Appends revisions of birth for slots that have lost theirs: the first one. Whether a value
    /// is there at a revision is said by what it is in, so an earlier birth shows nowhere.
    pub(crate) fn complete_births(&self, tree: &Tree, cells: &mut Cells) {
        let schema = std::sync::Arc::clone(&tree.data.read().schema);
        for (&(space, group), slots) in &self.groups {
            let Some(path) = schema.spaces().get(space.0 as usize).map(|space| space.path) else {
                continue;
            };
            let mut born = slots.born.clone();
            born.sort_unstable();
            born.push((slots.end, slots.end));
            let mut next = 0;
            for (first, end) in born {
                if first > next {
                    let count = usize::try_from(first - next).unwrap_or_default();
                    let mut cell = Vec::new();
                    encode_column(&vec![Datum::Int(1); count], &mut cell);
                    let kind = (GroupCell::Born, u32::try_from(next).unwrap_or_default());
                    let id = GroupId { space, group };
                    cells.push((cell_key::group_cell(tree.id(), id, path, kind), cell));
                }
                next = next.max(end);
            }
        }
    }
}

/// What is lost of a tree beside first states.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    keys: Vec<LostKeys>,
    /// Revisions whose rows are lost, rising.
    pub(crate) rows: Vec<Revision>,
    /// The revisions of changes that are lost, rising, by node.
    changes: FxHashMap<NodeId, Vec<u32>>,
    /// Columns of which changes may be lost beside those.
    columns: parking_lot::Mutex<FxHashMap<(GroupId, u32), bool>>,
}

impl Losses {
    /// Holds the rows of a tree against its changes; `keys` are those lost of its cells.
    pub(crate) fn find(tree: &Tree, keys: Vec<LostKeys>) -> Result<Self> {
        let mut losses = Self { keys, ..Self::default() };
        let last = tree.data.read().rows.last();
        for revision in (tree.first_revision()..=last).map(Revision) {
            let changed = tree.row(revision).and_then(|_| tree.changed(revision));
            match readable(changed)? {
                None => losses.rows.push(revision),
                Some(changed) => losses.find_changes(tree, revision, &changed)?,
            }
        }
        Ok(losses)
    }

    fn find_changes(&mut self, tree: &Tree, at: Revision, changed: &[NodeId]) -> Result<()> {
        let revision = short(at);
        for &node in changed {
            let version = tree.read(|data| {
                Ok(data.version(node, revision)?.is_some_and(|(set, _)| set == revision))
            });
            if !readable(version)?.unwrap_or(false) {
                self.changes.entry(node).or_default().push(revision);
            }
        }
        Ok(())
    }

    /// Whether the state that `set` gave a node may not be that of a later revision any more.
    pub(crate) fn hide(&self, tree: &Tree, node: NodeId, set: u32, revision: u32) -> bool {
        self.changes_of(node, set, revision) > 0 || self.may_hide_more(tree, node, set, revision)
    }

    /// How many changes of a node behind the one that `set` its state are known to be lost.
    pub(crate) fn changes_of(&self, node: NodeId, set: u32, revision: u32) -> u64 {
        let lost = self.changes.get(&node).into_iter().flatten();
        lost.filter(|&&lost| lost > set && lost <= revision).count() as u64
    }

    /// Whether others may be lost beside those that are known.
    pub(crate) fn may_hide_more(&self, tree: &Tree, node: NodeId, set: u32, revision: u32) -> bool {
        let next = self.rows.partition_point(|row| row.0 <= u64::from(set));
        let has_no_row = self.rows.get(next).is_some_and(|row| row.0 <= u64::from(revision));
        // Nothing tells what changed before the history begins.
        let is_untold = u64::from(set) < tree.first_revision();
        (has_no_row || is_untold) && self.may_lack_changes(tree, node)
    }

    /// Whether a cell of changes of the node's column may be lost.
    fn may_lack_changes(&self, tree: &Tree, node: NodeId) -> bool {
        let space = tree.data.read().address(node).space;
        let id = GroupId { space, group: index_u32(locate(node.ordinal().0).0) };
        let prefix = || cell_key::runs(tree.id(), id, node.path());
        *self.columns.lock().entry((id, node.path().0)).or_insert_with(|| {
            let prefix = prefix();
            self.keys.iter().any(|keys| keys.may_have(&prefix))
        })
    }
}

/// The trees that have cells.
pub(crate) fn trees(live: &LiveSegments) -> Result<FxHashSet<TreeId>> {
    let mut trees = FxHashSet::default();
    let mut scan = live.scan(&[])?;
    while let Some(found) = scan.next() {
        let (key, _) = found?;
        let Some((tree, parsed)) = cell_key::parse(&key) else { continue };
        if matches!(parsed, CellKey::Schema(_)) {
            break;
        }
        trees.insert(tree);
        scan.seek(&tree.0.saturating_add(1).to_be_bytes())?;
    }
    Ok(trees)
}

/// What was read; none if it is damaged. Any other error stays one.
pub(crate) fn readable<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        Err(error) => Err(error),
    }
}
