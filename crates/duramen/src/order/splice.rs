//! Makes a sequence out of another by replacing a range of its items.
//!
//! A splice goes down with at most two neighbouring blocks a level, those the range begins and ends
//! in, joined to one *window*; whatever lies between them is dropped unread. On the way up the
//! content of each window is cut into blocks of even size, after it took in a neighbour if it is
//! too small for a block. So a splice adds at most three blocks a level, plus what the inserted
//! extents fill.

use std::mem::take;
use std::ops::Range;

use super::{DEPTH_MAX, FILL_MIN, OrderBlock, OrderBlocks, OrderBlocksMut};
use super::{corrupt, len, miscounted};
use crate::limits::{EXTENT_ITEMS_MAX, ORDER_BLOCK_EXTENTS_MAX};
use crate::state::{Extent, OrderId, Sequence};
use crate::{Error, ErrorKind, Result};

/// A child block and the number of items below it.
type Child = (OrderId, u64);

/// The entries of one block, or of neighbouring blocks joined, while they change.
enum Content {
    Leaf(Vec<Extent>),
    Inner(Vec<Child>),
}

/// Inner entries on the path of a splice; those that the level below stands for are `touched`.
struct Window {
    children: Vec<Child>,
    touched: Range<usize>,
}

/// The sequence that has `insert` in place of the items in `range`.
///
/// # Errors
/// `Invalid` if the range is not within the sequence, and what reading a block gives.
///
/// # Panics
/// If an inserted extent is over its limits.
pub(crate) fn splice(
    blocks: &mut impl OrderBlocksMut,
    sequence: Sequence,
    range: Range<u64>,
    insert: &[Extent],
) -> Result<Sequence> {
    assert!(insert.iter().all(|extent| extent.is_valid()), "extents {insert:?}");
    let items = len(blocks, sequence)?;
    if range.start > range.end || range.end > items {
        let message = format!("items {range:?} of a sequence of {items}");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if range.is_empty() && insert.is_empty() {
        return Ok(sequence);
    }
    let mut path = Vec::new();
    let (leaf, range) = descend(blocks, sequence, range, &mut path)?;
    let mut content = Content::Leaf(replace(&leaf, range, insert)?);
    loop {
        if content.is_short() {
            content = widen(blocks, &mut path, content)?.0;
        }
        // With nothing beside it, the content is all there is and becomes the root.
        if path.iter().all(Window::is_whole) {
            return Ok(finish(blocks, content));
        }
        let Some(mut window) = path.pop() else { return Ok(finish(blocks, content)) };
        window.children.splice(window.touched, write(blocks, &content));
        content = Content::Inner(window.children);
    }
}

/// Goes down to the extents that `range` begins and ends in, recording the path; the range returned
/// is counted from the first of them.
fn descend(
    blocks: &impl OrderBlocks,
    sequence: Sequence,
    mut range: Range<u64>,
    path: &mut Vec<Window>,
) -> Result<(Vec<Extent>, Range<u64>)> {
    let mut content = match sequence {
        Sequence::Extent(Extent { count: 0, .. }) => Content::Leaf(Vec::new()),
        Sequence::Extent(extent) => Content::Leaf(vec![extent]),
        Sequence::Blocks(root) => Content::load(blocks, root)?,
    };
    while path.len() < DEPTH_MAX {
        let children = match content {
            Content::Leaf(extents) => return Ok((extents, range)),
            Content::Inner(children) => children,
        };
        let (first, before_first) = ending_at(&children, range.start)?;
        let (last, before_last) = ending_at(&children, range.end)?;
        content = Content::load(blocks, children[first].0)?;
        range.start -= before_first;
        range.end -= before_last;
        if first < last {
            content = content.join(Content::load(blocks, children[last].0)?)?;
            range.end += children[first].1;
        }
        path.push(Window { children, touched: first..last + 1 });
    }
    Err(corrupt("order blocks are nested too deeply"))
}

/// The first child that ends at item `index` or after it, and the number of items before it. So
/// what is inserted between two children goes to the left one, where an append belongs.
fn ending_at(children: &[Child], index: u64) -> Result<(usize, u64)> {
    let mut before = 0;
    for (child, &(_, items)) in children.iter().enumerate() {
        if index <= before + items {
            return Ok((child, before));
        }
        before += items;
    }
    Err(miscounted())
}

/// The extents with `insert` in place of the items in `range`.
fn replace(extents: &[Extent], range: Range<u64>, insert: &[Extent]) -> Result<Vec<Extent>> {
    let mut result = Vec::with_capacity(extents.len() + insert.len() + 1);
    let mut rest = Vec::new();
    let mut at = 0;
    for &extent in extents {
        let end = at + extent.items();
        if at < range.start
            && let Some(head) = extent.head(range.start - at)
        {
            push(&mut result, head);
        }
        if end > range.end
            && let Some(tail) = extent.tail(range.end.saturating_sub(at))
        {
            rest.push(tail);
        }
        at = end;
    }
    if range.end > at {
        return Err(miscounted());
    }
    for &extent in insert.iter().chain(&rest) {
        push(&mut result, extent);
    }
    Ok(result)
}

/// Appends an extent; to the last one, as far as that has room, if its ordinals go on there.
fn push(extents: &mut Vec<Extent>, mut extent: Extent) {
    if let Some(last) = extents.last_mut()
        && last.count > 0
        && extent.count > 0
        && last.first + u64::from(last.count) == extent.first
    {
        let taken = extent.count.min(EXTENT_ITEMS_MAX - last.count);
        last.count += taken;
        extent.first += u64::from(taken);
        extent.count -= taken;
        if extent.count == 0 {
            return;
        }
    }
    extents.push(extent);
}

/// Joins a neighbour to the content that the lowest window of `path` stands for, if it has one;
/// returns how many entries were put in front as well.
fn widen(
    blocks: &impl OrderBlocks,
    path: &mut [Window],
    content: Content,
) -> Result<(Content, usize)> {
    let Some((window, above)) = path.split_last_mut() else { return Ok((content, 0)) };
    if window.is_whole() {
        let children = Content::Inner(take(&mut window.children));
        let (children, before) = widen(blocks, above, children)?;
        let Content::Inner(children) = children else { return Err(uneven()) };
        window.children = children;
        window.touched = before..before + window.touched.len();
    }
    let touched = &mut window.touched;
    if let Some(&(right, _)) = window.children.get(touched.end) {
        touched.end += 1;
        return Ok((content.join(Content::load(blocks, right)?)?, 0));
    }
    if touched.start > 0 {
        touched.start -= 1;
        let left = Content::load(blocks, window.children[touched.start].0)?;
        let before = left.len();
        return Ok((left.join(content)?, before));
    }
    Ok((content, 0))
}

/// Adds the content as blocks of even size.
fn write(blocks: &mut impl OrderBlocksMut, content: &Content) -> Vec<Child> {
    let mut add = |block: OrderBlock| {
        let items = block.items();
        (blocks.add(block), items)
    };
    match content {
        Content::Leaf(extents) => {
            evenly(extents).map(|part| add(OrderBlock::Leaf(part.into()))).collect()
        }
        Content::Inner(children) => {
            evenly(children).map(|part| add(OrderBlock::Inner(part.into()))).collect()
        }
    }
}

/// As few parts as blocks can hold, alike to one entry: no smaller than half a block if there are
/// several.
fn evenly<T>(entries: &[T]) -> impl Iterator<Item = &[T]> {
    let parts = entries.len().div_ceil(ORDER_BLOCK_EXTENTS_MAX);
    let bound = move |part| entries.len() * part / parts;
    (0..parts).map(move |part| &entries[bound(part)..bound(part + 1)])
}

/// Adds the content as a tree of its own.
fn finish(blocks: &mut impl OrderBlocksMut, mut content: Content) -> Sequence {
    loop {
        match &content {
            Content::Leaf(extents) => match extents[..] {
                [] => return Sequence::EMPTY,
                [extent] if extent.count > 0 => return Sequence::Extent(extent),
                _ => {}
            },
            Content::Inner(children) => match children[..] {
                [] => return Sequence::EMPTY,
                [(root, _)] => return Sequence::Blocks(root),
                _ => {}
            },
        }
        content = Content::Inner(write(blocks, &content));
    }
}

impl Content {
    fn load(blocks: &impl OrderBlocks, id: OrderId) -> Result<Self> {
        Ok(match &*blocks.block(id)? {
            OrderBlock::Leaf(extents) => Self::Leaf(extents.to_vec()),
            OrderBlock::Inner(children) => Self::Inner(children.to_vec()),
        })
    }

    /// The entries of both, which are neighbours of the same depth.
    fn join(self, right: Self) -> Result<Self> {
        match (self, right) {
            (Self::Leaf(mut left), Self::Leaf(right)) => {
                left.reserve(right.len());
                for extent in right {
                    push(&mut left, extent);
                }
                Ok(Self::Leaf(left))
            }
            (Self::Inner(mut left), Self::Inner(right)) => {
                left.extend(right);
                Ok(Self::Inner(left))
            }
            _ => Err(uneven()),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Leaf(extents) => extents.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// Whether it is too little for a block, but not nothing.
    fn is_short(&self) -> bool {
        (1..FILL_MIN).contains(&self.len())
    }
}

impl Window {
    fn is_whole(&self) -> bool {
        self.touched == (0..self.children.len())
    }
}

fn uneven() -> Error {
    corrupt("neighbouring order blocks are at different depths")
}
