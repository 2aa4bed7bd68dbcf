//! The columns of a document that is being loaded: what is born goes into the row group that its
//! space is filling, and from there to what is gathered.
//!
//! Invariants:
//! - every state is a first state, of revision 1, and each column gets its slots in rising order;
//! - a space fills one row group at a time: nothing of an earlier one comes after a later birth.

use std::sync::Arc;

use crate::bulk::gathered::{Batch, Filled};
use crate::encoding::{ColumnBuilder, Sizes, encode_order_block};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{INLINE_BYTES_MAX, ORDINALS_MAX, ROW_GROUP_SLOTS, VALUE_BYTES_MAX};
use crate::node::PathId;
use crate::order::{self, OrderBlock, OrderBlocks, OrderBlocksMut};
use crate::state::{ApartKind, BlobId, Datum, Extent, OrderId, Sequence, ShapeId, SpaceKinds};
use crate::tree::cell_key::{self, GroupCell, TreeId};
use crate::tree::group::GroupId;
use crate::tree::schema::{Schema, SpaceId, index_u32};

/// The columns of a document that is being loaded.
#[derive(Debug)]
pub(super) struct Columns {
    tree: TreeId,
    spaces: Vec<Space>,
    /// What is filled, and what else is to be written.
    gathered: Batch,
    orders: u64,
    blobs: u64,
}

/// One ordinal space.
#[derive(Debug, Default)]
struct Space {
    /// The next ordinal.
    next: u64,
    /// The first one whose birth is not gathered.
    unwritten: u64,
    /// The row group that is being filled.
    group: u64,
    columns: Vec<Filling>,
    parent: Filling,
    key: Filling,
    /// What the columns had in row groups that were gathered.
    kinds: SpaceKinds,
}

/// A column of the row group that is being filled.
#[derive(Debug, Default)]
struct Filling {
    first: usize,
    states: ColumnBuilder,
    /// Those of the row group before: the next one has as much, most often.
    sizes: Sizes,
}

impl Filling {
    #[inline]
    fn set(&mut self, slot: usize, state: Datum<'_>) {
        self.next(slot).push(state);
    }

    /// The states up to a slot, to which that of the slot is to be pushed.
    #[inline]
    fn next(&mut self, slot: usize) -> &mut ColumnBuilder {
        if self.states.len() == 0 {
            self.first = slot;
            self.states = ColumnBuilder::with_room(self.sizes);
        }
        let before = slot - self.first;
        if before != self.states.len() {
            assert!(before > self.states.len(), "slots come in order");
            self.states.pad(before);
        }
        &mut self.states
    }
}

/// A column that is taken out, to be pushed states to.
#[derive(Debug, Default)]
pub(super) struct Lent {
    pub(super) states: ColumnBuilder,
    /// How many states it had.
    before: usize,
    /// The same with those of the slots that have none.
    start: usize,
}

impl Columns {
    /// The columns of a tree without any state.
    pub(super) fn new(tree: TreeId) -> Self {
        Self { tree, spaces: Vec::new(), gathered: Batch::default(), orders: 0, blobs: 0 }
    }

    /// How many order blocks and values stored apart there are.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.orders, self.blobs)
    }

    /// The next ordinal of a space.
    pub(super) fn next(&self, space: SpaceId) -> u64 {
        self.spaces.get(space.0 as usize).map_or(0, |space| space.next)
    }

    /// The kinds of values in the columns of a space, as far as they are gathered.
    pub(super) fn kinds(&self, space: SpaceId) -> SpaceKinds {
        self.spaces.get(space.0 as usize).map(|space| space.kinds.clone()).unwrap_or_default()
    }

    /// Bytes of the row groups that are being filled.
    pub(super) fn filling_bytes(&self) -> usize {
        let columns = self.spaces.iter().flat_map(|space| space.columns.iter().chain(space.ends()));
        columns.map(|column| column.states.bytes()).sum()
    }

    /// Takes what is to be written.
    pub(super) fn take_gathered(&mut self) -> Batch {
        std::mem::take(&mut self.gathered)
    }

    fn space_mut(&mut self, space: SpaceId) -> &mut Space {
        let index = space.0 as usize;
        if index >= self.spaces.len() {
            self.spaces.resize_with(index + 1, Space::default);
        }
        &mut self.spaces[index]
    }

    /// Gives a new element, entry or the root its ordinal.
    pub(super) fn bear(&mut self, schema: &Schema, space: SpaceId, parent: u64) -> Result<u64> {
        let ordinal = self.next(space);
        if ordinal >= ORDINALS_MAX {
            let message = "a path has 2^40 elements: no more can be added to it";
            return Err(Error::new(ErrorKind::Full, message));
        }
        if ordinal / ROW_GROUP_SLOTS != self.space_mut(space).group {
            self.gather_group(schema, space);
        }
        let born = self.space_mut(space);
        born.group = ordinal / ROW_GROUP_SLOTS;
        born.next += 1;
        if space.0 != 0 {
            born.parent.set(slot_of(ordinal), Datum::Int(parent.cast_signed()));
        }
        Ok(ordinal)
    }

    /// Names the entry of a space that was born last. An integer is for its text as a key.
    #[inline]
    pub(super) fn name(&mut self, space: SpaceId, name: Datum<'_>) {
        let entries = self.space_mut(space);
        let ordinal = entries.next - 1;
        entries.key.set(slot_of(ordinal), name);
    }

    /// Sets the state of a node.
    pub(super) fn set(&mut self, (space, column): (SpaceId, u32), ordinal: u64, state: Datum<'_>) {
        self.row(space, ordinal).set(column, state);
    }

    /// The columns of a space at an ordinal.
    #[inline]
    pub(super) fn row(&mut self, space: SpaceId, ordinal: u64) -> Row<'_> {
        let space = self.space_mut(space);
        debug_assert_eq!(ordinal / ROW_GROUP_SLOTS, space.group, "of the group being filled");
        Row { columns: &mut space.columns, slot: slot_of(ordinal) }
    }

    /// How many nodes a space has yet to bear in the row group that it is filling.
    pub(super) fn room(&self, space: SpaceId) -> usize {
        let Some(space) = self.spaces.get(space.0 as usize) else { return 0 };
        let end = (space.group + 1) * ROW_GROUP_SLOTS;
        slot_or_group(end.saturating_sub(space.next))
    }

    /// Takes out a column of a space, to be pushed the states of the nodes that are
    /// [born](Self::bear_run) next. It has to be [given back](Self::give_back).
    pub(super) fn lend(&mut self, space: SpaceId, column: u32) -> Lent {
        let slot = slot_of(self.next(space));
        let mut row = Row { columns: &mut self.space_mut(space).columns, slot };
        let before = row.filling(column).states.len();
        let states = std::mem::take(row.next(column));
        Lent { before, start: states.len(), states }
    }

    /// Takes a column back.
    pub(super) fn give_back(&mut self, (space, column): (SpaceId, u32), lent: Lent) {
        let Lent { mut states, before, start } = lent;
        if states.len() == start {
            (before..start).for_each(|_| states.pop());
        }
        let mut row = Row { columns: &mut self.space_mut(space).columns, slot: 0 };
        row.filling(column).states = states;
    }

    /// Gives so many objects of a shape that are elements or entries of one parent their ordinals,
    /// all of which are in the row group that is being filled.
    pub(super) fn bear_run(
        &mut self,
        (space, parent): (SpaceId, u64),
        (shape, count): (ShapeId, usize),
    ) {
        if count == 0 {
            return;
        }
        let born = self.space_mut(space);
        let slot = slot_of(born.next);
        if space.0 != 0 {
            born.parent.next(slot).repeat(Datum::Int(parent.cast_signed()), count);
        }
        Row { columns: &mut born.columns, slot }.next(0).repeat(Datum::Object(shape), count);
        born.next += count as u64;
        debug_assert!(born.next <= (born.group + 1) * ROW_GROUP_SLOTS, "of the group being filled");
    }

    /// Names so many entries that are born next by the states that were pushed to a column last.
    pub(super) fn name_run(&mut self, space: SpaceId, column: &Lent, count: usize) {
        if count > 0 {
            let entries = self.space_mut(space);
            entries.key.next(slot_of(entries.next)).extend_from(&column.states, count);
        }
    }

    /// The state of a string, number text or opaque text, stored apart if it is long.
    pub(super) fn state_of<'b>(&mut self, kind: ApartKind, bytes: &'b [u8]) -> Result<Datum<'b>> {
        if bytes.len() <= INLINE_BYTES_MAX {
            return Ok(kind.inline(bytes));
        }
        if bytes.len() > VALUE_BYTES_MAX {
            let message =
                format!("a value has {} bytes: at most {VALUE_BYTES_MAX} are allowed", bytes.len());
            return Err(Error::new(ErrorKind::Full, message));
        }
        let blob = BlobId(self.blobs);
        self.blobs += 1;
        self.gathered.cells.push((cell_key::blob(self.tree, blob), bytes.to_vec()));
        Ok(Datum::Apart { blob, kind })
    }

    /// The order of these extents.
    pub(super) fn sequence(&mut self, extents: &[Extent]) -> Result<Sequence> {
        let mut blocks = NewBlocks { first: self.orders, blocks: Vec::new() };
        let sequence = order::splice(&mut blocks, Sequence::EMPTY, 0..0, extents)?;
        for (id, block) in (self.orders..).zip(&blocks.blocks) {
            let mut cell = Vec::new();
            encode_order_block(block, &mut cell);
            self.gathered.cells.push((cell_key::order(self.tree, OrderId(id)), cell));
        }
        self.orders += blocks.blocks.len() as u64;
        Ok(sequence)
    }

    /// Gathers what is in the row groups being filled; they go on behind it.
    pub(super) fn gather_groups(&mut self, schema: &Schema) {
        for index in 0..self.spaces.len() {
            self.gather_group(schema, SpaceId(index_u32(index)));
        }
    }

    fn gather_group(&mut self, schema: &Schema, id: SpaceId) {
        let mut space = std::mem::take(self.space_mut(id));
        let group = GroupId { space: id, group: index_u32(slot_or_group(space.group)) };
        let columns = &schema.space(id).columns;
        for (index, (&path, column)) in (0..).zip(columns.iter().zip(&mut space.columns)) {
            space.kinds.add(index, column.states.kinds());
            self.gather_column((group, path, GroupCell::Base), column);
        }
        let own = columns[0];
        self.gather_column((group, own, GroupCell::Parent), &mut space.parent);
        self.gather_column((group, own, GroupCell::Key), &mut space.key);
        if space.unwritten < space.next {
            let mut born = Filling::default();
            let slots = slot_or_group(space.next - space.unwritten);
            born.next(slot_of(space.unwritten)).repeat(Datum::Int(1), slots);
            self.gather_column((group, own, GroupCell::Born), &mut born);
            space.unwritten = space.next;
        }
        *self.space_mut(id) = space;
    }

    fn gather_column(&mut self, column: (GroupId, PathId, GroupCell), filling: &mut Filling) {
        if filling.states.len() > 0 {
            let states = std::mem::take(&mut filling.states);
            filling.sizes = states.sizes();
            let first_slot = index_u32(filling.first);
            self.gathered.columns.push(Filled::new(column, first_slot, states));
        }
    }
}

/// The columns of a space at one slot.
pub(super) struct Row<'a> {
    columns: &'a mut Vec<Filling>,
    slot: usize,
}

impl Row<'_> {
    /// Sets the state in a column.
    #[inline]
    pub(super) fn set(&mut self, column: u32, state: Datum<'_>) {
        self.next(column).push(state);
    }

    /// The states of a column up to this slot, to which that of the slot is to be pushed.
    #[inline]
    pub(super) fn next(&mut self, column: u32) -> &mut ColumnBuilder {
        let slot = self.slot;
        self.filling(column).next(slot)
    }

    #[inline]
    fn filling(&mut self, column: u32) -> &mut Filling {
        let column = column as usize;
        if column >= self.columns.len() {
            self.columns.resize_with(column + 1, Filling::default);
        }
        &mut self.columns[column]
    }
}

impl Space {
    fn ends(&self) -> [&Filling; 2] {
        [&self.parent, &self.key]
    }
}

#[inline]
fn slot_of(ordinal: u64) -> usize {
    slot_or_group(ordinal % ROW_GROUP_SLOTS)
}

fn slot_or_group(number: u64) -> usize {
    usize::try_from(number).expect("ordinals have 40 bits")
}

/// The blocks of one order, which nothing else refers to yet.
struct NewBlocks {
    first: u64,
    blocks: Vec<Arc<OrderBlock>>,
}

impl OrderBlocks for NewBlocks {
    fn block(&self, id: OrderId) -> Result<Arc<OrderBlock>> {
        let index = id.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        let block = index.and_then(|index| self.blocks.get(index)).cloned();
        block.ok_or_else(|| Error::new(ErrorKind::Internal, format!("no new block {}", id.0)))
    }
}

impl OrderBlocksMut for NewBlocks {
    fn add(&mut self, block: OrderBlock) -> OrderId {
        self.blocks.push(Arc::new(block));
        OrderId(self.first + self.blocks.len() as u64 - 1)
    }
}
