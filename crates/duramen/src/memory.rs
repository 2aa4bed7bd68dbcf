//! The memory of a database: a budget for what is young and for what is decoded of segments.
//!
//! Invariants:
//! - every byte decoded and kept is counted by a [`Resident`], for as long as it is kept;
//! - what points take that are staged is counted by a [`StagedBytes`] for each of their files;
//! - what others hold in a [`MemoryShare`] is taken from what may be kept of what was read;
//! - over the budget, what was not used since it was last looked at is dropped, the longest in
//!   memory first (the clock algorithm, Corbato 1968);
//! - a reader that misses one part after the other can hold evictions off until it is done, so
//!   that it comes to an end however small the budget is.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::error::Result;
use crate::order::OrderBlock;
use crate::segment::{BlockCache, CellPosition};
use crate::series::Piece;
use crate::state::OrderId;
use crate::sync::Mutex;
use crate::tree::cell_key::TreeId;
use crate::tree::group::GroupId;

mod recent;
mod share;

pub(crate) use recent::{Recent, RecentRecord, TreeNumber};
pub use share::MemoryShare;

/// Residents that may be gone before those who are not are sorted out.
const GONE_MIN: usize = 1_024;

/// Approximate bytes of an order block beside its extents.
const ORDER_BLOCK_BYTES: usize = 96;

/// About as many bytes as a full block of points takes decoded.
const PIECE_BYTES: usize = 512 << 10;

/// Shares of the budget: blocks of cells as they are in segments, order blocks, and points.
const BLOCKS_SHARE: usize = 4;
const ORDERS_SHARE: usize = 16;
const PIECES_SHARE: usize = 8;

/// The share that is left to the database whatever is lent.
const OWN_SHARE_MIN: usize = 64;

/// What keeps decoded parts and can drop them.
pub(crate) trait Evict: fmt::Debug + Send + Sync {
    /// Drops a part, unless it was used since it was asked before; false if it was.
    fn evict(&self, part: GroupId) -> bool;
}

/// The memory of a database.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: usize,
    /// Approximate bytes of what no checkpoint has written.
    young: AtomicUsize,
    /// Bytes of points that are staged, and of the room for more of them.
    staged: AtomicUsize,
    decoded: AtomicUsize,
    /// Bytes of the budget that others hold, or are not to be held beside these.
    lent: AtomicUsize,
    /// Readers that hold evictions off.
    holds: AtomicUsize,
    residents: Mutex<VecDeque<Weak<Resident>>>,
    /// How many residents there are.
    living: AtomicUsize,
    /// Blocks of cells as they are in segments.
    blocks: Arc<BlockCache>,
    orders: Cache<(TreeId, OrderId), Arc<OrderBlock>, OrderBytes>,
    recent: Recent,
    pieces: Cache<PieceId, Arc<Piece>, PieceBytes>,
}

/// A block of points: its segment and where it is in that.
pub(crate) type PieceId = (u64, CellPosition);

/// A decoded part of something, counted while it lives.
#[derive(Debug)]
pub(crate) struct Resident {
    memory: Arc<Memory>,
    owner: Weak<dyn Evict>,
    part: GroupId,
    bytes: AtomicUsize,
}

/// What the points take that are staged in one file, counted while it lives.
#[derive(Debug)]
pub(crate) struct StagedBytes {
    memory: Arc<Memory>,
    bytes: usize,
}

/// While it lives nothing is evicted.
#[derive(Debug)]
pub(crate) struct Hold<'m>(&'m Memory);

#[derive(Debug, Clone, Copy)]
struct OrderBytes;

impl Weighter<(TreeId, OrderId), Arc<OrderBlock>> for OrderBytes {
    fn weight(&self, _: &(TreeId, OrderId), block: &Arc<OrderBlock>) -> u64 {
        (ORDER_BLOCK_BYTES + 16 * block.parts()) as u64
    }
}

#[derive(Debug, Clone, Copy)]
struct PieceBytes;

impl Weighter<PieceId, Arc<Piece>> for PieceBytes {
    fn weight(&self, _: &PieceId, piece: &Arc<Piece>) -> u64 {
        piece.bytes() as u64
    }
}

impl Memory {
    /// A budget of so many bytes.
    pub(crate) fn new(budget: usize) -> Arc<Self> {
        let (orders, pieces) = (budget / ORDERS_SHARE, budget / PIECES_SHARE);
        Arc::new(Self {
            budget,
            young: AtomicUsize::new(0),
            staged: AtomicUsize::new(0),
            decoded: AtomicUsize::new(0),
            lent: AtomicUsize::new(0),
            holds: AtomicUsize::new(0),
            residents: Mutex::default(),
            living: AtomicUsize::new(0),
            blocks: Arc::new(BlockCache::new((budget / BLOCKS_SHARE) as u64)),
            orders: Cache::with_weighter(orders / 1_024 + 1, orders as u64, OrderBytes),
            recent: Recent::new(budget / 32),
            pieces: Cache::with_weighter(pieces / PIECE_BYTES + 1, pieces as u64, PieceBytes),
        })
    }

    /// The cache of blocks of cells.
    pub(crate) fn blocks(&self) -> &Arc<BlockCache> {
        &self.blocks
    }

    /// What is not lent of the budget.
    fn own(&self) -> usize {
        let lent = self.lent.load(Ordering::Relaxed);
        self.budget.saturating_sub(lent).max(self.budget / OWN_SHARE_MIN)
    }

    /// Counts as lent what was `before` as it is now.
    fn lend(&self, before: usize, now: usize) {
        if before == now {
            return;
        }
        self.lent.fetch_add(now, Ordering::Relaxed);
        self.lent.fetch_sub(before, Ordering::Relaxed);
        let own = self.own();
        self.blocks.set_capacity((own / BLOCKS_SHARE) as u64);
        self.orders.set_capacity((own / ORDERS_SHARE) as u64);
        self.pieces.set_capacity((own / PIECES_SHARE) as u64);
        if now > before {
            self.settle();
        }
    }

    /// What may be known of the columns of the rows of one table.
    pub(crate) fn views_max(&self) -> usize {
        self.own() / 8
    }

    /// What one query may know of the versions of elements.
    pub(crate) fn lives_max(&self) -> usize {
        self.own() / 4
    }

    /// Trees that may be kept though nobody uses them.
    pub(crate) fn idle_trees(&self) -> usize {
        self.budget / 16 / crate::tree::TREE_BYTES + 16
    }

    /// An order block of a tree, if it is decoded.
    pub(crate) fn order(&self, tree: TreeId, id: OrderId) -> Option<Arc<OrderBlock>> {
        self.orders.get(&(tree, id))
    }

    pub(crate) fn keep_order(&self, tree: TreeId, id: OrderId, block: &Arc<OrderBlock>) {
        self.orders.insert((tree, id), Arc::clone(block));
    }

    /// Records that were read by key: a thirty-second is for them, and another one for keys.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }

    /// Whether a block of points is decoded.
    pub(crate) fn has_piece(&self, id: PieceId) -> bool {
        self.pieces.peek(&id).is_some()
    }

    /// A block of points, decoded with `decode` if it is not.
    pub(crate) fn piece(
        &self,
        id: PieceId,
        decode: impl FnOnce() -> Result<Piece>,
    ) -> Result<Arc<Piece>> {
        if let Some(piece) = self.pieces.get(&id) {
            return Ok(piece);
        }
        let piece = Arc::new(decode()?);
        self.pieces.insert(id, Arc::clone(&piece));
        Ok(piece)
    }

    /// Approximate bytes of what no checkpoint has written.
    pub(crate) fn young(&self) -> usize {
        self.young.load(Ordering::Relaxed)
    }

    pub(crate) fn add_young(&self, bytes: usize) {
        self.young.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of points that are staged, and of the room for more of them.
    #[cfg(test)]
    pub(crate) fn staged(&self) -> usize {
        self.staged.load(Ordering::Relaxed)
    }

    /// A checkpoint has written so many bytes of what was young.
    pub(crate) fn remove_young(&self, bytes: usize) {
        self.young.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a checkpoint should be written.
    pub(crate) fn is_half_young(&self) -> bool {
        self.young() >= self.budget / 2
    }

    /// Whether commits should wait for it.
    pub(crate) fn is_full_of_young(&self) -> bool {
        self.young() >= self.budget / 4 * 3
    }

    /// Whether what follows the commits, such as entries of indexes, may take some more: it is not
    /// to have commits wait.
    pub(crate) fn has_room_to_follow(&self) -> bool {
        self.young() < self.budget / 8 * 5
    }

    /// What is decoded may take what is young and staged leaves of a half, and at least an eighth.
    fn decoded_max(&self) -> usize {
        let taken = self.young().saturating_add(self.staged.load(Ordering::Relaxed));
        let own = self.own();
        (own / 2).saturating_sub(taken).max(own / 8)
    }

    /// Keeps everything decoded until the hold is dropped.
    pub(crate) fn hold(&self) -> Hold<'_> {
        self.holds.fetch_add(1, Ordering::Relaxed);
        Hold(self)
    }

    /// Evicts what is over the budget. The caller holds no lock of a tree.
    pub(crate) fn settle(&self) {
        let is_over = || self.decoded.load(Ordering::Relaxed) > self.decoded_max();
        if !is_over() {
            return;
        }
        // Each is looked at once: what is in use by those who read now is not chased around.
        let looks = self.residents.lock().len();
        for _ in 0..looks {
            if !is_over() || self.holds.load(Ordering::Relaxed) > 0 {
                return;
            }
            let Some(next) = self.residents.lock().pop_front() else { return };
            let Some(resident) = next.upgrade() else { continue };
            let Some(owner) = resident.owner.upgrade() else { continue };
            if !owner.evict(resident.part) {
                self.residents.lock().push_back(next);
            }
        }
    }
}

impl Resident {
    /// Counts nothing yet for a part that `owner` is about to keep.
    pub(crate) fn new(memory: &Arc<Memory>, owner: Weak<dyn Evict>, part: GroupId) -> Arc<Self> {
        memory.living.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { memory: Arc::clone(memory), owner, part, bytes: AtomicUsize::new(0) })
    }

    /// How many bytes it counts.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts more bytes.
    pub(crate) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.memory.decoded.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The owner keeps it from now on, and can be asked to drop it.
    pub(crate) fn settle_in(self: &Arc<Self>) {
        let mut residents = self.memory.residents.lock();
        residents.push_back(Arc::downgrade(self));
        if residents.len() > 2 * self.memory.living.load(Ordering::Relaxed) + GONE_MIN {
            residents.retain(|resident| resident.strong_count() > 0);
        }
    }
}

impl StagedBytes {
    /// Nothing yet.
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Counts what was `before` as it is now.
    pub(crate) fn change(&mut self, before: usize, now: usize) {
        let all = (self.bytes + now).saturating_sub(before);
        self.memory.staged.fetch_add(all, Ordering::Relaxed);
        self.memory.staged.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = all;
    }
}

impl Drop for StagedBytes {
    fn drop(&mut self) {
        self.memory.staged.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.memory.decoded.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.living.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
