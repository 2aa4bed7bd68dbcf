//! What two sequences over the same ordinals have in common.
//!
//! Blocks that both sequences hold are found from the roots down and never read, so the cost
//! follows what differs: O(d log d) for d extents in blocks that only one of them has.

use rustc_hash::FxHashSet;

use super::{DEPTH_MAX, Item, OrderBlock, OrderBlocks, corrupt, len, miscounted};
use crate::Result;
use crate::state::{Extent, OrderId, Sequence};
use crate::subsequence::{Point, heaviest_increasing};

/// A step from one sequence to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    /// That many items are next in both.
    Keep(u64),
    /// That many items come next in the old one and not here in the new one.
    Remove(u64),
    /// That many items come next in the new one and not here in the old one.
    Insert(u64),
}

/// A part of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All the items below a block that both sequences hold, so one thing: consecutive in both.
    Shared(OrderId, u64),
    /// A block not looked at yet.
    Block(OrderId, u64),
    Extent(Extent),
}

/// A sequence in parts; blocks among them are `height` levels above the extents.
struct Outline {
    parts: Vec<Part>,
    height: usize,
}

/// Whether two sequences hold the same items in the same order, whatever their blocks.
pub(crate) fn same_items(blocks: &impl OrderBlocks, a: Sequence, b: Sequence) -> Result<bool> {
    alike_items(blocks, (a, b), |_, _| Ok(false))
}

/// Whether all places pass, asked up to the first that does not.
fn all_pass(
    places: impl Iterator<Item = u64>,
    mut passes: impl FnMut(u64) -> Result<bool>,
) -> Result<bool> {
    for place in places {
        if !passes(place)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two sequences are as long as each other, and items that differ at one place are alike,
/// as `are_alike` says. It is asked from the first place on, until it says no. Blocks that both
/// hold make them different where they stand at other places.
pub(crate) fn alike_items(
    blocks: &impl OrderBlocks,
    (a, b): (Sequence, Sequence),
    mut are_alike: impl FnMut(Item, Item) -> Result<bool>,
) -> Result<bool> {
    if a == b {
        return Ok(true);
    }
    if len(blocks, a)? != len(blocks, b)? {
        return Ok(false);
    }
    let (a, b) = outlines(blocks, a, b)?;
    let (mut left, mut right) = (a.iter().copied(), b.iter().copied());
    let (mut x, mut y) = (left.next(), right.next());
    loop {
        match (x, y) {
            (Some(Part::Extent(a)), Some(Part::Extent(b))) => {
                let common = a.items().min(b.items());
                let alike = |index| are_alike(a.item(index), b.item(index));
                if a.item(0) != b.item(0) && !all_pass(0..common, alike)? {
                    return Ok(false);
                }
                x = a.tail(common).map(Part::Extent).or_else(|| left.next());
                y = b.tail(common).map(Part::Extent).or_else(|| right.next());
            }
            (None, None) => return Ok(true),
            // A shared block stands at the same place in both, or something before it differs.
            _ if x != y => return Ok(false),
            _ => (x, y) = (left.next(), right.next()),
        }
    }
}

/// The fewest removals and insertions that make `b` of `a`. Items that stand in another order
/// relative to those kept are removed in one place and inserted in the other.
pub(crate) fn difference(blocks: &impl OrderBlocks, a: Sequence, b: Sequence) -> Result<Vec<Edit>> {
    let (a_items, b_items) = (len(blocks, a)?, len(blocks, b)?);
    let mut edits = Vec::new();
    let (mut a_at, mut b_at) = (0, 0);
    if a == b {
        add(&mut edits, Edit::Keep(a_items));
        return Ok(edits);
    }
    let (a, b) = outlines(blocks, a, b)?;
    let pieces = common_pieces(&a, &b);
    let points: Vec<Point> =
        pieces.iter().map(|piece| Point { place: piece.b, weight: piece.items }).collect();
    for index in heaviest_increasing(&points) {
        let piece = &pieces[index];
        let (removed, inserted) = (piece.a.checked_sub(a_at), piece.b.checked_sub(b_at));
        let (Some(removed), Some(inserted)) = (removed, inserted) else {
            return Err(corrupt("an ordinal occurs twice in a sequence"));
        };
        add(&mut edits, Edit::Remove(removed));
        add(&mut edits, Edit::Insert(inserted));
        add(&mut edits, Edit::Keep(piece.items));
        (a_at, b_at) = (piece.a + piece.items, piece.b + piece.items);
    }
    add(&mut edits, Edit::Remove(a_items - a_at));
    add(&mut edits, Edit::Insert(b_items - b_at));
    Ok(edits)
}

/// Appends an edit, to the last one if that is of the same kind.
fn add(edits: &mut Vec<Edit>, edit: Edit) {
    match (edits.last_mut(), edit) {
        (_, Edit::Keep(0) | Edit::Remove(0) | Edit::Insert(0)) => {}
        (Some(Edit::Keep(last)), Edit::Keep(items))
        | (Some(Edit::Remove(last)), Edit::Remove(items))
        | (Some(Edit::Insert(last)), Edit::Insert(items)) => *last += items,
        _ => edits.push(edit),
    }
}

/// Both sequences in parts that are shared blocks or extents.
fn outlines(blocks: &impl OrderBlocks, a: Sequence, b: Sequence) -> Result<(Vec<Part>, Vec<Part>)> {
    let mut a = Outline::new(blocks, a)?;
    let mut b = Outline::new(blocks, b)?;
    while a.height > 0 || b.height > 0 {
        let (a_height, b_height) = (a.height, b.height);
        if a_height == b_height {
            let shared: FxHashSet<OrderId> = a.blocks().collect();
            let shared = b.blocks().filter(|id| shared.contains(id)).collect();
            a.share(&shared);
            b.share(&shared);
        }
        if a_height >= b_height {
            a.lower(blocks)?;
        }
        if b_height >= a_height {
            b.lower(blocks)?;
        }
    }
    Ok((a.parts, b.parts))
}

impl Outline {
    fn new(blocks: &impl OrderBlocks, sequence: Sequence) -> Result<Self> {
        let root = match sequence {
            Sequence::Extent(Extent { count: 0, .. }) => {
                return Ok(Self { parts: Vec::new(), height: 0 });
            }
            Sequence::Extent(extent) => {
                return Ok(Self { parts: vec![Part::Extent(extent)], height: 0 });
            }
            Sequence::Blocks(root) => root,
        };
        let parts = vec![Part::Block(root, len(blocks, sequence)?)];
        let mut id = root;
        for height in 1..=DEPTH_MAX {
            match &*blocks.block(id)? {
                OrderBlock::Inner(children) if !children.is_empty() => id = children[0].0,
                _ => return Ok(Self { parts, height }),
            }
        }
        Err(corrupt("order blocks are nested too deeply"))
    }

    fn blocks(&self) -> impl Iterator<Item = OrderId> {
        self.parts.iter().filter_map(|part| match part {
            Part::Block(id, _) => Some(*id),
            _ => None,
        })
    }

    fn share(&mut self, shared: &FxHashSet<OrderId>) {
        for part in &mut self.parts {
            if let Part::Block(id, items) = *part
                && shared.contains(&id)
            {
                *part = Part::Shared(id, items);
            }
        }
    }

    /// Replaces the blocks by what is in them.
    fn lower(&mut self, blocks: &impl OrderBlocks) -> Result<()> {
        self.height -= 1;
        let mut parts = Vec::with_capacity(self.parts.len());
        for &part in &self.parts {
            let Part::Block(id, items) = part else {
                parts.push(part);
                continue;
            };
            let block = blocks.block(id)?;
            if block.items() != items {
                return Err(miscounted());
            }
            match &*block {
                OrderBlock::Leaf(extents) if self.height == 0 => {
                    parts.extend(extents.iter().copied().map(Part::Extent));
                }
                OrderBlock::Inner(children) if self.height > 0 => {
                    parts.extend(children.iter().map(|&(id, items)| Part::Block(id, items)));
                }
                _ => return Err(corrupt("order blocks are at different depths")),
            }
        }
        self.parts = parts;
        Ok(())
    }
}

/// Items that follow each other in both sequences.
struct Piece {
    /// Where they begin in the old sequence.
    a: u64,
    /// Where they begin in the new one.
    b: u64,
    items: u64,
}

/// A part with its place in its sequence, and what identifies its items: a range of numbers of a
/// kind.
struct Span {
    kind: Kind,
    first: u64,
    /// After the last number; a shared block has one number, whatever its items.
    end: u64,
    items: u64,
    at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Ordinals,
    Field,
    Shared,
}

/// What occurs in both, in the order of `a`.
///
/// A piece is consecutive in both, so every other item stands before all or after all of it in
/// either: the best alignment keeps all of it or nothing.
fn common_pieces(a: &[Part], b: &[Part]) -> Vec<Piece> {
    let (a, b) = (spans(a), spans(b));
    let mut pieces = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (first, end) = (x.first.max(y.first), x.end.min(y.end));
        if x.kind == y.kind && first < end {
            let items = if x.kind == Kind::Shared { x.items } else { end - first };
            let (a, b) = (x.at + (first - x.first), y.at + (first - y.first));
            pieces.push(Piece { a, b, items });
        }
        if (x.kind, x.end) <= (y.kind, y.end) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pieces.sort_unstable_by_key(|piece| piece.a);
    pieces
}

/// The parts by what identifies their items.
fn spans(parts: &[Part]) -> Vec<Span> {
    let mut at = 0;
    let mut spans: Vec<Span> = Vec::with_capacity(parts.len());
    for part in parts {
        let (kind, first, items) = match *part {
            Part::Shared(id, items) | Part::Block(id, items) => (Kind::Shared, id.0, items),
            Part::Extent(extent) if extent.count == 0 => (Kind::Field, extent.first, 1),
            Part::Extent(extent) => (Kind::Ordinals, extent.first, extent.items()),
        };
        let end = first.saturating_add(if kind == Kind::Ordinals { items } else { 1 });
        spans.push(Span { kind, first, end, items, at });
        at += items;
    }
    spans.sort_unstable_by_key(|span| (span.kind, span.first));
    spans
}
