//! The versioned state of one tree in memory: committed, staged, and what is loaded from disk.
//!
//! Invariants:
//! - a staged transaction writes at the revision after the last row, so no reader sees it;
//! - `rollback` leaves the data as the last `settle` or `apply` left it;
//! - births have ordinals from `committed` on, changes have ordinals below it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::{OBJECT_FIELDS_MAX, ORDINALS_MAX, ROW_GROUP_SLOTS};
use crate::memory::{Evict, Memory, TreeNumber};
use crate::node::{Move, NodeId, Ordinal, PathId};
use crate::order::Item;
use crate::state::{ColumnKinds, Datum, ShapeId, SpaceKinds};
use crate::sync::RwLock;
use crate::tree::disk::{Directory, FoundRun, Load, Loaded};
use crate::tree::group::{ColumnId, DiskPart, Fault, GroupId, RowGroup, locate};
use crate::tree::kept::Kept;
use crate::tree::keys::YoungKeys;
use crate::tree::noted::NotedNodes;
use crate::tree::records::VERSION_FIELD;
use crate::tree::rows::{Row, YoungRows};
use crate::tree::schema::{Label, ROOT, Schema, SchemaExtent, ShapeField, SpaceId, index_u32};
use crate::tree::young::{Packed, YoungColumn};

mod staged;

/// One ordinal space of a tree.
#[derive(Debug, Default)]
pub(crate) struct SpaceData {
    /// The next ordinal, staged births counted.
    pub(crate) next: u64,
    /// The next ordinal as of the last commit.
    pub(crate) committed: u64,
    /// The next ordinal as of the last checkpoint.
    pub(crate) on_disk: u64,
    groups: Vec<Option<Box<RowGroup>>>,
    /// Keys of young entries.
    pub(crate) keys: YoungKeys,
    pub(crate) kinds: SpaceKinds,
}

/// The versioned state of one tree.
#[derive(Debug)]
pub(crate) struct TreeData {
    pub(crate) schema: Arc<Schema>,
    pub(crate) spaces: Vec<SpaceData>,
    pub(crate) rows: YoungRows,
    /// Which revisions can be read.
    pub(crate) kept: Kept,
    /// The same as segments say: more, while it is not sure that what is let go will be dropped.
    pub(crate) kept_on_disk: Kept,
    /// How often values were erased on disk since the tree was opened.
    erasures: u64,
    /// How often what had departed was dropped there.
    departures: u64,
    /// Nodes of earlier revisions that the staged transaction changed.
    touched: Vec<NodeId>,
    /// Those of them that may be as they were before all the same.
    doubtful: NotedNodes,
    /// Nodes whose states named order blocks or values stored apart at some time since the last
    /// commit.
    naming: NotedNodes,
    /// Subtrees that the staged transaction moved to other paths.
    pub(crate) moves: Vec<Move>,
    /// Rises with everything that is staged, so that a change which did nothing is known.
    pub(crate) stagings: u64,
    /// The schema as of the last commit.
    committed_schema: SchemaExtent,
    /// How much of the schema the disk has; none before the first checkpoint.
    pub(crate) disk_schema: Option<SchemaExtent>,
    /// The part of the schema that trees share on disk, by its content.
    pub(crate) shared_schema: u128,
    /// Whether the kinds of what is on disk are known: what wrote it may not have told them.
    has_kinds: bool,
    /// Approximate bytes that the young part takes.
    pub(crate) young_bytes: usize,
    /// The shape that was looked for last.
    last_shape: Option<ShapeId>,
    /// Where records that commits change are forgotten.
    recent: Option<(Arc<Memory>, TreeNumber)>,
}

/// What the disk has of a tree: it changes with checkpoints and purges alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskState {
    pub(crate) revisions: u64,
    pub(crate) erasures: u64,
    /// How often what had departed was dropped.
    pub(crate) departures: u64,
}

/// Where a node's states are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) space: SpaceId,
    pub(crate) column: ColumnId,
    pub(crate) ordinal: u64,
}

/// Approximate bytes that a first state takes in memory beside its text.
const BIRTH_BYTES: usize = 24;

/// Approximate bytes that a change takes beside its text: most are alone in their run.
const CHANGE_BYTES: usize = 56;

/// Approximate bytes that a row group takes before it has any state.
const GROUP_BYTES: usize = size_of::<RowGroup>() + 4 * size_of::<YoungColumn>();

impl TreeData {
    /// A tree without revisions.
    pub(crate) fn new(schema: Arc<Schema>) -> Self {
        let mut data = Self {
            spaces: Vec::new(),
            rows: YoungRows::default(),
            kept: Kept::default(),
            kept_on_disk: Kept::default(),
            erasures: 0,
            departures: 0,
            touched: Vec::new(),
            doubtful: NotedNodes::default(),
            naming: NotedNodes::default(),
            moves: Vec::new(),
            stagings: 0,
            committed_schema: schema.extent(),
            disk_schema: None,
            shared_schema: 0,
            has_kinds: true,
            young_bytes: 0,
            last_shape: None,
            recent: None,
            schema,
        };
        data.add_spaces();
        data
    }

    /// A tree as of its last checkpoint, nothing of it loaded.
    pub(crate) fn from_disk(
        schema: Arc<Schema>,
        revisions: u64,
        high_waters: &[u64],
        kinds: Option<&[SpaceKinds]>,
    ) -> Self {
        let mut data = Self::new(schema);
        data.rows = YoungRows::after(revisions);
        for (space, &next) in data.spaces.iter_mut().zip(high_waters) {
            (space.next, space.committed, space.on_disk) = (next, next, next);
        }
        data.has_kinds = kinds.is_some();
        for (space, kinds) in data.spaces.iter_mut().zip(kinds.into_iter().flatten()) {
            space.kinds.clone_from(kinds);
        }
        data
    }

    /// The kinds of all values that a path has had; some may be of what came to nothing. None if
    /// they are not known.
    pub(crate) fn kinds(&self, path: PathId) -> Option<ColumnKinds> {
        let info = self.schema.path(path);
        let space = self.spaces.get(info.space.0 as usize)?;
        self.has_kinds.then(|| space.kinds.get(info.column))
    }

    /// The same of all columns of the first spaces, if they are known.
    pub(crate) fn kinds_of_spaces(&self, spaces: usize) -> Option<Vec<SpaceKinds>> {
        let kinds = || self.spaces.iter().take(spaces).map(|space| space.kinds.clone()).collect();
        self.has_kinds.then(kinds)
    }

    /// From now on records that commits change, or purges erase, are forgotten there.
    pub(crate) fn forget_recent_in(&mut self, memory: &Arc<Memory>, tree: TreeNumber) {
        self.recent = Some((Arc::clone(memory), tree));
    }

    /// The revision that a staged transaction writes.
    pub(crate) fn staged_revision(&self) -> u32 {
        u32::try_from(self.rows.last() + 1).expect("REVISIONS_MAX is checked when staging begins")
    }

    /// Gives every space of the schema its data.
    fn add_spaces(&mut self) {
        let count = self.schema.spaces().len();
        self.spaces.resize_with(count, SpaceData::default);
    }

    /// Adds to the schema; spaces of new paths get their data. A schema that other trees share is
    /// copied, so whoever only may have to add looks first.
    fn add_to_schema<T>(&mut self, add: impl FnOnce(&mut Schema) -> T) -> T {
        let result = add(Arc::make_mut(&mut self.schema));
        self.add_spaces();
        result
    }

    /// Adds a path that is not there.
    pub(crate) fn add_path(&mut self, parent: PathId, label: Label<'_>) -> PathId {
        self.add_to_schema(|schema| schema.add(parent, label))
    }

    /// The path of a field, made if there is room for it.
    pub(crate) fn field_or_add(&mut self, parent: PathId, name: &[u8]) -> Option<PathId> {
        match self.schema.field(parent, name) {
            Some(path) => Some(path),
            None if !self.schema.has_room_for_field(parent) => None,
            None => Some(self.add_path(parent, Label::Field(name))),
        }
    }

    /// The paths of an object's fields, made if there is room for them; none if the object has to
    /// be a map. One that is declared a map only has fields that are there.
    pub(crate) fn paths_of_fields<'n>(
        &mut self,
        object: PathId,
        names: impl ExactSizeIterator<Item = &'n [u8]>,
        is_declared: bool,
    ) -> Option<Vec<PathId>> {
        if self.schema.path(object).always_map || names.len() > OBJECT_FIELDS_MAX {
            return None;
        }
        let paths = names.map(|name| {
            if is_declared {
                self.schema.field(object, name)
            } else {
                self.field_or_add(object, name)
            }
        });
        let paths: Vec<PathId> = paths.collect::<Option<_>>()?;
        self.schema.has_room_for_shape(&paths).then_some(paths)
    }

    /// The shape of an object with fields of these names in this order, made if there is room for
    /// it; none if the object has to be a map.
    pub(crate) fn shape_of_names<'n>(
        &mut self,
        object: PathId,
        names: impl ExactSizeIterator<Item = &'n [u8]> + Clone,
    ) -> Option<ShapeId> {
        // Most objects that come one after the other are alike (benchmark B).
        let again = self.last_shape.filter(|_| !self.schema.path(object).always_map);
        if let Some(shape) = again
            && self.schema.has_names(shape, object, names.clone())
        {
            return Some(shape);
        }
        let paths = self.paths_of_fields(object, names, false)?;
        let shape = self.shape_or_add(&paths);
        self.last_shape = Some(shape);
        Some(shape)
    }

    /// The path of the elements of arrays at a path, made if there is room for it.
    pub(crate) fn element_or_add(&mut self, parent: PathId) -> Option<PathId> {
        match self.schema.path(parent).element {
            Some(path) => Some(path),
            None if self.schema.is_full() => None,
            None => Some(self.add_path(parent, Label::Element)),
        }
    }

    /// The path of the entries of maps at a path, made if there is room for it.
    pub(crate) fn entry_or_add(&mut self, parent: PathId) -> Option<PathId> {
        match self.schema.path(parent).entry {
            Some(path) => Some(path),
            None if self.schema.is_full() => None,
            None => Some(self.add_path(parent, Label::Entry)),
        }
    }

    /// The shape with these fields in this order, made if it is new.
    pub(crate) fn shape_or_add(&mut self, fields: &[PathId]) -> ShapeId {
        match self.schema.find_shape(fields) {
            Some(shape) => shape,
            None => self.add_to_schema(|schema| schema.add_shape(fields)),
        }
    }

    #[inline]
    pub(crate) fn address(&self, node: NodeId) -> Address {
        let info = self.schema.path(node.path());
        let column = ColumnId::Value(info.column);
        Address { space: info.space, column, ordinal: node.ordinal().0 }
    }

    /// The row group that holds an ordinal, if it has any state.
    #[inline]
    pub(crate) fn group(&self, space: SpaceId, group: usize) -> Result<Option<&RowGroup>, Fault> {
        let data = &self.spaces[space.0 as usize];
        match data.groups.get(group) {
            Some(Some(found)) => {
                found.touch();
                Ok(Some(found))
            }
            _ if (group as u64) * ROW_GROUP_SLOTS < data.on_disk => {
                Err(Fault::load(Load::Group(GroupId { space, group: index_u32(group) })))
            }
            _ => Ok(None),
        }
    }

    /// The state of a node at a revision.
    #[inline]
    pub(crate) fn state(&self, node: NodeId, revision: u32) -> Result<Datum<'_>, Fault> {
        let Address { space, column, ordinal } = self.address(node);
        self.state_at(space, column, ordinal, revision)
    }

    #[inline]
    pub(crate) fn state_at(
        &self,
        space: SpaceId,
        column: ColumnId,
        ordinal: u64,
        revision: u32,
    ) -> Result<Datum<'_>, Fault> {
        self.kept.check(revision)?;
        let (group, slot) = locate(ordinal);
        match self.group(space, group)? {
            Some(group) => group.state(column, slot, revision),
            None => Ok(Datum::Absent),
        }
    }

    /// The state of a node at a revision and the revision that set it, which may be one that was
    /// dropped since.
    pub(crate) fn version(
        &self,
        node: NodeId,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        self.kept.check(revision)?;
        self.version_up_to(node, revision)
    }

    /// The same where the revision may have been dropped: of what was removed the state before is
    /// kept, and found so.
    pub(crate) fn version_up_to(
        &self,
        node: NodeId,
        revision: u32,
    ) -> Result<Option<(u32, Datum<'_>)>, Fault> {
        let Address { space, column, ordinal } = self.address(node);
        let (group, slot) = locate(ordinal);
        match self.group(space, group)? {
            Some(group) => group.version(column, slot, revision),
            None => Ok(None),
        }
    }

    /// Visits the states of a node up to a revision, newest first, until told to stop. What was set
    /// before the history begins was so when it begins, and is the last that is told.
    pub(crate) fn versions(
        &self,
        node: NodeId,
        revision: u32,
        visit: &mut impl FnMut(u32, Datum<'_>) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let Address { space, column, ordinal } = self.address(node);
        let (group, slot) = locate(ordinal);
        let Some(group) = self.group(space, group)? else { return Ok(()) };
        if self.kept.is_all() {
            return group.versions(column, slot, revision, visit);
        }
        let first = self.kept.first();
        if revision < first {
            return Ok(());
        }
        group.versions(column, slot, revision, &mut |set, state| {
            let told = visit(set.max(first), state);
            if set <= first { ControlFlow::Break(()) } else { told }
        })
    }

    /// Whether a field of an object surely has one scalar value at two revisions. False says
    /// nothing.
    #[inline]
    pub(crate) fn is_same_scalar(
        &self,
        (object, field): (NodeId, &ShapeField),
        before: u32,
        after: u32,
    ) -> Result<bool, Fault> {
        let space = self.schema.path(field.path).space;
        let (group, slot) = locate(object.ordinal().0);
        let group = self.group(space, group)?;
        Ok(group.is_some_and(|group| group.is_same_scalar(field.column, slot, before, after)))
    }

    /// The young changes of a node, oldest first.
    pub(crate) fn young_run(&self, node: NodeId) -> Result<&[Packed], Fault> {
        let Address { space, column, ordinal } = self.address(node);
        let (group, slot) = locate(ordinal);
        let run = self.group(space, group)?.and_then(|group| group.young_run(column, slot));
        Ok(run.map_or(&[], |run| run))
    }

    /// The revision in which a node first had a value.
    pub(crate) fn created(&self, node: NodeId) -> Result<Option<u32>, Fault> {
        let Address { space, column, ordinal } = self.address(node);
        let (group, slot) = locate(ordinal);
        match self.group(space, group)? {
            Some(group) => group.created(column, slot),
            None => Ok(None),
        }
    }

    /// The revision in which an element or entry was born.
    pub(crate) fn born(&self, space: SpaceId, ordinal: u64) -> Result<Option<u32>, Fault> {
        let (group, slot) = locate(ordinal);
        match self.group(space, group)? {
            Some(group) => group.born(slot),
            None => Ok(None),
        }
    }

    /// The ordinal of the array or map that an element or entry is in.
    pub(crate) fn parent_ordinal(&self, space: SpaceId, ordinal: u64) -> Result<u64, Fault> {
        match self.state_at(space, ColumnId::Parent, ordinal, u32::MAX)? {
            Datum::Int(parent) if (0..ORDINALS_MAX.cast_signed()).contains(&parent) => {
                Ok(parent.cast_unsigned())
            }
            other => Err(missing(format!("the parent of ordinal {ordinal} is {other:?}")).into()),
        }
    }

    /// The key of an entry.
    pub(crate) fn key(&self, space: SpaceId, ordinal: u64) -> Result<Datum<'_>, Fault> {
        self.state_at(space, ColumnId::Key, ordinal, u32::MAX)
    }

    /// The node of an item of an array or a map.
    pub(crate) fn item_node(&self, parent: NodeId, is_map: bool, item: Item) -> Result<NodeId> {
        let ordinal = match item {
            Item::Field(path) if self.schema.has_path(path) => {
                return Ok(node(path, parent.ordinal().0));
            }
            Item::Field(path) => {
                return Err(missing(format!("{parent} has a field of path {}", path.0)));
            }
            Item::Ordinal(ordinal) if ordinal.0 < ORDINALS_MAX => ordinal,
            Item::Ordinal(ordinal) => {
                return Err(missing(format!("{parent} has an item of ordinal {}", ordinal.0)));
            }
        };
        let info = self.schema.path(parent.path());
        let path = if is_map { info.entry } else { info.element };
        let path =
            path.ok_or_else(|| missing(format!("{parent} has items but no path for them")))?;
        Ok(NodeId::new(path, ordinal))
    }

    /// The entry of a map by its key, if it was born since the last checkpoint.
    pub(crate) fn young_entry(&self, space: SpaceId, map: u64, key: &[u8]) -> Option<u64> {
        self.spaces[space.0 as usize].keys.get(map, key)
    }

    /// What the disk has of the tree.
    pub(crate) fn disk_state(&self) -> DiskState {
        let (erasures, departures) = (self.erasures, self.departures);
        DiskState { revisions: self.rows.before(), erasures, departures }
    }

    /// Puts in place what was read of a row group when the disk was in a state. Nothing happens if
    /// a checkpoint, a purge or another reader came first.
    pub(crate) fn attach(&mut self, id: GroupId, loaded: Loaded, read: DiskState) -> Result<()> {
        let now = self.disk_state();
        let groups = &mut self.spaces[id.space.0 as usize].groups;
        let index = id.group as usize;
        if index >= groups.len() {
            groups.resize_with(index + 1, || None);
        }
        let is_waited_for =
            groups[index].as_ref().is_none_or(|group| matches!(group.disk, DiskPart::NotLoaded(_)));
        if now != read || !is_waited_for {
            return Ok(());
        }
        match loaded {
            Loaded::Small(mut whole, resident) => {
                if let Some(younger) = &groups[index] {
                    whole.add_after(0, younger)?;
                }
                whole.disk = DiskPart::Unpacked(resident);
                groups[index].insert(whole).settle_in();
            }
            Loaded::Large(disk) => {
                let group = groups[index].get_or_insert_default();
                group.disk = DiskPart::Loaded(Box::new(disk));
                group.settle_in();
            }
        }
        Ok(())
    }

    /// Drops what is loaded of a row group: it is read again when it is asked for.
    fn evict(&mut self, id: GroupId) -> Result<()> {
        let before = u32::try_from(self.rows.before()).unwrap_or(u32::MAX);
        let groups = &mut self.spaces[id.space.0 as usize].groups;
        let Some(slot) = groups.get_mut(id.group as usize) else { return Ok(()) };
        if let Some(group) = slot
            && matches!(group.disk, DiskPart::Loaded(_) | DiskPart::Unpacked(_))
        {
            group.prune(id, before)?;
            if group.is_young_empty() {
                *slot = None;
            }
        }
        Ok(())
    }

    /// Puts in place run pieces, or that there are none, as they were looked up for `disk`.
    pub(crate) fn attach_runs(
        &mut self,
        (disk, column): (&Arc<Directory>, u32),
        found: Vec<FoundRun>,
    ) {
        let groups = &mut self.spaces[disk.id.space.0 as usize].groups;
        if let Some(Some(group)) = groups.get_mut(disk.id.group as usize)
            && let DiskPart::Loaded(large) = &mut group.disk
        {
            large.add_runs((disk, column), found);
        }
    }

    /// Gives a new element, or with a key a new entry, its ordinal.
    pub(crate) fn bear(
        &mut self,
        space: SpaceId,
        parent: u64,
        key: Option<(&[u8], bool)>,
    ) -> Result<u64, Fault> {
        let revision = self.staged_revision();
        let ordinal = self.spaces[space.0 as usize].next;
        if ordinal >= ORDINALS_MAX {
            let message = "a path has had 2^40 elements: no more can be added to it";
            return Err(Error::new(ErrorKind::Full, message).into());
        }
        self.spaces[space.0 as usize].next += 1;
        self.stagings += 1;
        if space.0 != 0 {
            let parent = Datum::Int(parent.cast_signed());
            self.set_birth(space, ColumnId::Parent, ordinal, (parent, revision))?;
        }
        if let Some((bytes, plain)) = key {
            let text = Datum::Text { bytes, plain };
            self.set_birth(space, ColumnId::Key, ordinal, (text, revision))?;
            self.spaces[space.0 as usize].keys.insert(parent, bytes, ordinal);
        }
        Ok(ordinal)
    }

    /// Puts the key of an entry into the index of its map.
    pub(crate) fn index_key(
        &mut self,
        space: SpaceId,
        key: Datum<'_>,
        ordinal: u64,
    ) -> Result<(), Fault> {
        let parent = self.parent_ordinal(space, ordinal)?;
        let Datum::Text { bytes, .. } = key else {
            return Err(missing(format!("entry {ordinal} has no key")).into());
        };
        self.spaces[space.0 as usize].keys.insert(parent, bytes, ordinal);
        Ok(())
    }

    /// Sets a first state.
    pub(crate) fn set_birth(
        &mut self,
        space: SpaceId,
        column: ColumnId,
        ordinal: u64,
        (datum, revision): (Datum<'_>, u32),
    ) -> Result<()> {
        self.young_bytes += birth_bytes(&datum);
        self.spaces[space.0 as usize].note_kind(column, &datum);
        let (group, slot) = locate(ordinal);
        self.group_mut(space, group).set_birth(column, slot, datum, revision)
    }

    /// Sets a later state; whether the revision had not changed the node yet.
    pub(crate) fn set_change(
        &mut self,
        space: SpaceId,
        column: ColumnId,
        ordinal: u64,
        (datum, revision): (Datum<'_>, u32),
    ) -> Result<bool> {
        self.young_bytes += CHANGE_BYTES + text_bytes(&datum);
        self.spaces[space.0 as usize].note_kind(column, &datum);
        let (group, slot) = locate(ordinal);
        self.group_mut(space, group).set_change(column, slot, datum, revision)
    }

    /// The schema as of the last commit.
    pub(crate) fn committed_schema(&self) -> SchemaExtent {
        self.committed_schema
    }

    /// Ends what replay staged: it is the revision of `row`, which changed these nodes.
    pub(crate) fn commit_replayed(&mut self, row: &Row, changed: &[NodeId]) {
        if let Some((memory, tree)) = &self.recent
            && let Some(entry) = self.schema.path(ROOT).entry
        {
            // A record that a commit changes gets a version, or goes.
            let version = self.schema.field(entry, VERSION_FIELD);
            let is_record = |node: &&NodeId| node.path() == entry || Some(node.path()) == version;
            let ordinals = changed.iter().filter(is_record).map(|node| node.ordinal().0);
            memory.recent().forget(*tree, ordinals);
        }
        self.rows.push(row, changed, &std::mem::take(&mut self.moves));
        self.spaces.iter_mut().for_each(SpaceData::commit);
        self.committed_schema = self.schema.extent();
    }

    pub(super) fn group_mut(&mut self, space: SpaceId, group: usize) -> &mut RowGroup {
        let data = &mut self.spaces[space.0 as usize];
        if group >= data.groups.len() {
            data.groups.resize_with(group + 1, || None);
        }
        let on_disk = (group as u64) * ROW_GROUP_SLOTS < data.on_disk;
        let id = GroupId { space, group: index_u32(group) };
        let young_bytes = &mut self.young_bytes;
        data.groups[group].get_or_insert_with(|| {
            *young_bytes += GROUP_BYTES;
            let mut new = RowGroup::default();
            if on_disk {
                new.disk = DiskPart::NotLoaded(id);
            }
            Box::new(new)
        })
    }

    /// The row groups that hold anything.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (GroupId, &RowGroup)> {
        (0..).zip(&self.spaces).flat_map(|(space, data)| {
            (0..).zip(&data.groups).filter_map(move |(group, found)| {
                let id = GroupId { space: SpaceId(space), group };
                found.as_deref().map(|found| (id, found))
            })
        })
    }

    /// A row group as far as it is in memory.
    pub(crate) fn young_group(&self, id: GroupId) -> Option<&RowGroup> {
        self.spaces.get(id.space.0 as usize)?.groups.get(id.group as usize)?.as_deref()
    }

    /// Drops what a checkpoint at `revision` has written: it is read from disk from now on.
    pub(crate) fn prune(&mut self, revision: u32, high_waters: &[u64]) -> Result<()> {
        for (index, space) in self.spaces.iter_mut().enumerate() {
            space.on_disk = high_waters.get(index).copied().unwrap_or(0);
            space.keys.retain_from(space.on_disk);
        }
        self.drop_on_disk(revision)?;
        self.rows.prune(crate::Revision(u64::from(revision)));
        self.young_bytes = 0;
        Ok(())
    }

    /// Drops what holds the segments open that it was read from.
    pub(crate) fn release_decoded(&mut self) -> Result<()> {
        let held = self.groups().filter(|(_, group)| matches!(group.disk, DiskPart::Loaded(_)));
        let held: Vec<GroupId> = held.map(|(id, _)| id).collect();
        held.into_iter().try_for_each(|id| self.evict(id))
    }

    /// Drops all that was read of the disk, where values were erased: who is reading it now reads
    /// it again.
    pub(crate) fn forget_disk(&mut self) -> Result<()> {
        self.erasures += 1;
        if let Some((memory, _)) = &self.recent {
            memory.recent().clear();
        }
        self.evict_all()
    }

    /// Forgets what was read from disk before what had departed was dropped there. What readers see
    /// stays as it is.
    pub(crate) fn forget_departed(&mut self) -> Result<()> {
        self.departures += 1;
        self.evict_all()
    }

    fn evict_all(&mut self) -> Result<()> {
        let read: Vec<GroupId> = self.groups().map(|(id, _)| id).collect();
        read.into_iter().try_for_each(|id| self.evict(id))
    }

    /// Drops the states that the disk has, which are those up to `revision`.
    fn drop_on_disk(&mut self, revision: u32) -> Result<()> {
        for (index, space) in (0..).zip(&mut self.spaces) {
            for (group, slot) in (0..).zip(&mut space.groups) {
                let Some(found) = slot else { continue };
                found.prune(GroupId { space: SpaceId(index), group }, revision)?;
                if u64::from(group) * ROW_GROUP_SLOTS >= space.on_disk {
                    found.disk = DiskPart::None;
                } else if found.is_young_empty() {
                    *slot = None;
                }
            }
        }
        Ok(())
    }
}

impl Evict for RwLock<TreeData> {
    fn evict(&self, id: GroupId) -> bool {
        if self.read().young_group(id).is_some_and(RowGroup::take_used) {
            return false;
        }
        // What cannot be taken apart stays, and is asked again.
        self.write().evict(id).is_ok()
    }
}

impl SpaceData {
    /// Notes the kind of a state that a column gets.
    #[inline]
    fn note_kind(&mut self, column: ColumnId, state: &Datum<'_>) {
        if let ColumnId::Value(column) = column {
            self.kinds.add(column, ColumnKinds::of(state));
        }
    }

    fn commit(&mut self) {
        let full = locate(self.committed).0..locate(self.next).0;
        let groups = self.groups.get_mut(full).unwrap_or_default();
        groups.iter_mut().flatten().for_each(|group| group.end_births());
        self.committed = self.next;
    }

    fn truncate_births(&mut self) {
        let (first, slot) = locate(self.committed);
        if self.next == self.committed {
            return;
        }
        for (index, group) in self.groups.iter_mut().enumerate().skip(first) {
            if let Some(group) = group {
                group.truncate_births(if index == first { slot } else { 0 });
            }
        }
        self.next = self.committed;
    }
}

/// The node of a path and an ordinal.
pub(crate) fn node(path: PathId, ordinal: u64) -> NodeId {
    NodeId::new(path, Ordinal(ordinal))
}

/// Approximate bytes of a first state in memory.
pub(super) fn birth_bytes(datum: &Datum<'_>) -> usize {
    BIRTH_BYTES + text_bytes(datum)
}

fn text_bytes(datum: &Datum<'_>) -> usize {
    match datum {
        Datum::Text { bytes, .. } | Datum::Digits(bytes) | Datum::Opaque(bytes) => bytes.len(),
        _ => 0,
    }
}

fn missing(what: String) -> Error {
    Error::new(ErrorKind::Corrupt, what)
}
