//! The staging side of a tree: what a transaction does to it before its commit.
//!
//! Invariant: everything staged is at the revision after the newest, which no reader sees, and
//! ends in a commit or is taken back when the writer is dropped.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::error::{Error, ErrorKind, Result};
use crate::json::Tape;
use crate::limits::{INLINE_BYTES_MAX, VALUE_BYTES_MAX};
use crate::node::{NodeId, PathId};
use crate::options::DocumentOptions;
use crate::order::{self, Item, OrderCursor};
use crate::revision::Revision;
use crate::state::{ApartKind, BlobId, Datum, Extent, Sequence, ShapeId};
use crate::tree::cell_key::TreeId;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::let_go::FEW;
use crate::tree::locate::parent_of;
use crate::tree::schema::{ROOT, SpaceId};
use crate::tree::{Tree, Turn};

/// A tree while one transaction writes it.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) tree: Arc<Tree>,
    pub(crate) revision: u32,
    /// What is declared of the document, if anything is.
    pub(crate) options: Option<Arc<DocumentOptions>>,
    /// So much staged beside the columns is looked through for what can be let go.
    pub(crate) much_apart: AtomicUsize,
    _turn: Turn,
    is_done: bool,
}

/// What a node last was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prior {
    Never,
    Scalar,
    Object(ShapeId),
    Array(Sequence),
    Map(Sequence),
}

/// What became of a node that a transaction touched.
enum Change {
    None,
    /// An array has other elements, or in another order.
    OfElements,
    Other,
}

/// What the end of a transaction finds among the nodes that it touched.
#[derive(Default)]
struct Settled {
    /// Those that are as they were before.
    unchanged: BTreeSet<NodeId>,
    /// Those of them that are not there.
    gone: BTreeSet<NodeId>,
    /// Arrays that have other elements, or in another order.
    rearranged: Vec<NodeId>,
}

impl Writer {
    /// Begins to write a tree whose turn was taken and of which `options` are declared.
    pub(crate) fn new(
        tree: Arc<Tree>,
        turn: Turn,
        options: Option<Arc<DocumentOptions>>,
    ) -> Result<Self> {
        tree.check_revisions()?;
        let revision = tree.data.read().staged_revision();
        let much_apart = AtomicUsize::new(FEW);
        Ok(Self { tree, revision, options, much_apart, _turn: turn, is_done: false })
    }

    /// Whether the tree had no revision before.
    pub(crate) fn is_new(&self) -> bool {
        self.revision == 1
    }

    /// Whether the tree has, or is about to have, a value.
    pub(crate) fn has_root(&self) -> bool {
        self.tree.data.read().spaces[0].next > 0
    }

    /// The root, born if it has not been.
    pub(crate) fn root(&self) -> Result<NodeId> {
        self.tree.change(|data| {
            if data.spaces[0].next == 0 {
                data.bear(SpaceId(0), 0, None)?;
            }
            Ok(node(ROOT, 0))
        })
    }

    /// Makes the whole tree `tape`'s value; only what differs is staged.
    pub(crate) fn put_root(&self, tape: &Tape<'_>) -> Result<()> {
        let root = self.root()?;
        self.put(root, tape, tape.root())
    }

    /// What a node last was, and whether it is now.
    pub(crate) fn prior(&self, node: NodeId) -> Result<(Prior, bool)> {
        self.tree.read(|data| {
            let mut alive = true;
            let mut revision = self.revision;
            while let Some((set, state)) = data.version_up_to(node, revision)? {
                let prior = match state {
                    Datum::Absent => {
                        alive = false;
                        revision = set - 1;
                        continue;
                    }
                    Datum::Object(shape) => Prior::Object(shape),
                    Datum::Array(sequence) => Prior::Array(sequence),
                    Datum::Map(sequence) => Prior::Map(sequence),
                    _ => Prior::Scalar,
                };
                return Ok((prior, alive));
            }
            Ok((Prior::Never, false))
        })
    }

    pub(crate) fn stage(&self, node: NodeId, state: Datum<'_>) -> Result<()> {
        self.tree.change(|data| data.stage(node, state))
    }

    /// Stages a string, number text or opaque text, apart from its column if it is long.
    pub(crate) fn stage_bytes(&self, node: NodeId, kind: ApartKind, bytes: &[u8]) -> Result<()> {
        if bytes.len() <= INLINE_BYTES_MAX {
            return self.stage(node, kind.inline(bytes));
        }
        if bytes.len() > VALUE_BYTES_MAX {
            let message =
                format!("a value has {} bytes: at most {VALUE_BYTES_MAX} are allowed", bytes.len());
            return Err(Error::new(ErrorKind::Full, message));
        }
        let present = self.tree.read(|data| match data.state(node, self.revision)? {
            Datum::Apart { blob, kind } => Ok(Some((blob, kind))),
            _ => Ok(None),
        })?;
        if let Some((blob, present)) = present
            && present == kind
            && self.tree.blobs.get(blob)? == bytes
        {
            return Ok(());
        }
        let blob = self.tree.blobs.add(bytes::Bytes::copy_from_slice(bytes));
        self.stage(node, Datum::Apart { blob, kind })
    }

    /// Removes a node. Of what earlier revisions set, only the top is marked; what this one set
    /// below is marked too, so that nothing of it can come back.
    pub(crate) fn erase(&self, node: NodeId) -> Result<()> {
        let version = self.tree.read(|data| {
            let version = data.version(node, self.revision)?;
            Ok(version.map(|(set, state)| (set, state.is_absent(), state.is_container())))
        })?;
        match version {
            None | Some((_, true, _)) => return Ok(()),
            Some((set, _, true)) if set == self.revision => self.erase_children(node)?,
            Some(_) => {}
        }
        self.stage(node, Datum::Absent)
    }

    /// Removes the children of a node that will not be their container any more.
    pub(crate) fn erase_children(&self, parent: NodeId) -> Result<()> {
        let (prior, _) = self.prior(parent)?;
        match prior {
            Prior::Never | Prior::Scalar => Ok(()),
            Prior::Object(shape) => {
                for path in self.shape_paths(shape)? {
                    self.erase(node(path, parent.ordinal().0))?;
                }
                Ok(())
            }
            Prior::Array(sequence) | Prior::Map(sequence) => {
                let is_map = matches!(prior, Prior::Map(_));
                for item in self.items(sequence)? {
                    self.erase(self.item_node(parent, is_map, item)?)?;
                }
                Ok(())
            }
        }
    }

    pub(crate) fn shape_paths(&self, shape: ShapeId) -> Result<Vec<PathId>> {
        self.tree.read(|data| Ok(data.schema.shape(shape).iter().map(|field| field.path).collect()))
    }

    /// The items of an array or a map in order.
    pub(crate) fn items(&self, sequence: Sequence) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        let mut cursor = OrderCursor::new(sequence);
        while let Some(extent) = cursor.next(&&self.tree.orders)? {
            items.extend((0..extent.items()).map(|index| extent.item(index)));
        }
        Ok(items)
    }

    /// The node of an item of an array or a map.
    pub(crate) fn item_node(&self, parent: NodeId, is_map: bool, item: Item) -> Result<NodeId> {
        self.tree.read(|data| Ok(data.item_node(parent, is_map, item)?))
    }

    /// The entry of a map by its key, whether it is alive or not.
    pub(crate) fn entry(&self, map: NodeId, path: PathId, key: &[u8]) -> Result<Option<u64>> {
        let young = self.tree.read(|data| {
            let space = data.schema.path(path).space;
            let is_new = map.ordinal().0 >= data.spaces[data.address(map).space.0 as usize].on_disk;
            let none_on_disk = is_new || data.spaces[space.0 as usize].on_disk == 0;
            Ok((data.young_entry(space, map.ordinal().0, key), none_on_disk))
        })?;
        match young {
            (None, false) => self.tree.cells.entry(path, map.ordinal().0, key),
            (found, _) => Ok(found),
        }
    }

    /// The order with a range of items replaced.
    pub(crate) fn splice_items(
        &self,
        sequence: Sequence,
        (at, remove): (u64, u64),
        insert: &[Extent],
    ) -> Result<Sequence> {
        order::splice(&mut &self.tree.orders, sequence, at..at + remove, insert)
    }

    /// Ends staging: takes back what came to nothing. Whether anything is left to commit. What
    /// `repeats` a history may have purged records, and values that are unique now twice.
    pub(crate) fn settle(&mut self, repeats: bool) -> Result<bool> {
        let mut found = self.find_unchanged()?;
        // A revision of a history may have nothing but new elements of the same values.
        if !repeats && self.regain_elements(&found.rearranged)? {
            found = self.find_unchanged()?;
        }
        let Settled { mut unchanged, gone, .. } = found;
        // What was set below something that came and went was not there before, and is not now.
        if !gone.is_empty() {
            let touched = self.tree.data.read().touched().to_vec();
            for node in touched {
                if self.is_below(node, &gone)? {
                    unchanged.insert(node);
                }
            }
        }
        let unchanged: Vec<NodeId> = unchanged.into_iter().collect();
        self.settle_moves()?;
        self.tree.data.write().settle(&unchanged);
        if let Some(options) = &self.options
            && let Some(keys) = options.collection
        {
            let changed = self.settle_records(repeats, keys)?;
            self.tree.data.write().settle(&[]);
            // An earlier revision may have had twice what is unique since. Of a collection that the
            // transaction deleted in the end no record has anything.
            if !repeats && self.deleted()?.is_none() {
                self.check_unique(keys, &options.indexes, &changed)?;
            }
        }
        self.let_go_unnamed()?;
        let data = self.tree.data.read();
        let is_born = self.revision == 1 && data.spaces[0].next > 0;
        Ok(is_born || !data.touched().is_empty())
    }

    /// Looks for what was staged and is as it was before.
    fn find_unchanged(&self) -> Result<Settled> {
        let doubtful = self.tree.data.write().doubtful().to_vec();
        let mut found = Settled::default();
        for node in doubtful {
            match self.change_of(node)? {
                Change::None => {
                    found.unchanged.insert(node);
                    if self.tree.read(|data| Ok(data.state(node, self.revision)?.is_absent()))? {
                        found.gone.insert(node);
                    }
                }
                Change::OfElements => found.rearranged.push(node),
                Change::Other => {}
            }
        }
        Ok(found)
    }

    /// What became of a touched node.
    fn change_of(&self, node: NodeId) -> Result<Change> {
        enum Found {
            Same(bool),
            Elements(Sequence, Sequence),
            Entries(Sequence, Sequence),
            Blobs(BlobId, BlobId),
        }
        let found = self.tree.read(|data: &TreeData| -> Result<Found, Fault> {
            let before = data.state(node, self.revision - 1)?;
            let now = data.state(node, self.revision)?;
            Ok(match (before, now) {
                (Datum::Array(a), Datum::Array(b)) if a != b => Found::Elements(a, b),
                (Datum::Map(a), Datum::Map(b)) if a != b => Found::Entries(a, b),
                (Datum::Apart { blob: a, kind }, Datum::Apart { blob: b, kind: other })
                    if kind == other =>
                {
                    Found::Blobs(a, b)
                }
                _ => Found::Same(before == now),
            })
        })?;
        let is_same = match found {
            Found::Same(same) => same,
            Found::Elements(a, b) | Found::Entries(a, b) => {
                order::same_items(&&self.tree.orders, a, b)?
            }
            Found::Blobs(a, b) => a == b || self.tree.blobs.get(a)? == self.tree.blobs.get(b)?,
        };
        Ok(match found {
            _ if is_same => Change::None,
            Found::Elements(..) => Change::OfElements,
            _ => Change::Other,
        })
    }

    /// Whether a node is below one of some others.
    fn is_below(&self, node: NodeId, others: &BTreeSet<NodeId>) -> Result<bool> {
        self.tree.read(|data| {
            let mut at = node;
            while let Some(parent) = parent_of(data, at)? {
                if others.contains(&parent) {
                    return Ok(true);
                }
                at = parent;
            }
            Ok(false)
        })
    }

    /// Takes back everything staged.
    pub(crate) fn take_back(&self) {
        self.tree.data.write().rollback();
        self.tree.orders.rollback();
        self.tree.blobs.rollback();
    }

    /// The tree, and the revision that the commit gives it.
    pub(crate) fn change(&self) -> (TreeId, Revision) {
        (self.tree.id(), Revision(u64::from(self.revision)))
    }

    /// What was staged has become a revision.
    pub(crate) fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if !self.is_done {
            self.take_back();
        }
    }
}
