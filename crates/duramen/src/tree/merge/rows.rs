//! Revision rows of one tree.

use rustc_hash::FxHashMap;

use crate::encoding::{RevisionRows, RevisionRowsBlock};
use crate::error::Result;
use crate::limits::REVISION_ROWS_MAX;
use crate::tree::disk::corrupt;
use crate::tree::kept::Kept;
use crate::tree::merge::Cell;
use crate::tree::persist::ROWS_CHANGED_MAX;
use crate::tree::schema::index_u32;

/// Bytes of the first revision at the end of a key.
const REVISION_BYTES: usize = size_of::<u64>();

/// Blocks of rows that follow each other and fit one block.
#[derive(Debug)]
pub(crate) struct Rows {
    /// The first block as it came, for when it stays alone.
    alone: Cell,
    first: u64,
    blocks: Vec<RevisionRowsBlock>,
    count: usize,
    changed: usize,
}

impl Rows {
    /// Begins with the block of the rows from revision `first` on.
    pub(crate) fn new(cell: Cell, first: u64) -> Result<Self> {
        let block = RevisionRowsBlock::parse(cell.1.clone())?;
        let (count, changed) = (block.len(), block.changed_len());
        Ok(Self { alone: cell, first, blocks: vec![block], count, changed })
    }

    /// What the keys of all rows of the tree begin with.
    pub(crate) fn column(&self) -> &[u8] {
        let key = &self.alone.0;
        &key[..key.len() - REVISION_BYTES]
    }

    pub(crate) fn push(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let block = RevisionRowsBlock::parse(cell.clone())?;
        let first =
            key.last_chunk::<REVISION_BYTES>().map_or(0, |first| u64::from_be_bytes(*first));
        let (count, changed) = (self.count + block.len(), self.changed + block.changed_len());
        let follows = first == self.first + self.count as u64;
        if !follows || count > REVISION_ROWS_MAX || changed > ROWS_CHANGED_MAX {
            let next = Self::new((key, cell), first)?;
            return std::mem::replace(self, next).finish(out);
        }
        (self.count, self.changed) = (count, changed);
        self.blocks.push(block);
        Ok(())
    }

    pub(crate) fn finish(self, out: &mut Vec<Cell>) -> Result<()> {
        if self.blocks.len() == 1 {
            out.push(self.alone);
            return Ok(());
        }
        let mut rows = RevisionRows::default();
        let mut numbers = FxHashMap::default();
        for block in &self.blocks {
            for row in 0..block.len() {
                append(&mut rows, (block, row), &mut numbers)?;
            }
        }
        let mut cell = Vec::new();
        rows.encode(&mut cell);
        out.push((self.alone.0, cell.into()));
        Ok(())
    }
}

/// Appends the rows of a block that are kept, as blocks of rows that follow each other.
pub(crate) fn trim(
    (key, cell): Cell,
    (block, first): (&RevisionRowsBlock, u64),
    kept: &Kept,
    out: &mut Vec<Cell>,
) -> Result<()> {
    let revisions = first..first.saturating_add(block.len() as u64);
    let is_kept = |revision: &u64| kept.at_or_before(*revision) == *revision;
    if revisions.clone().all(|revision| is_kept(&revision)) {
        out.push((key, cell));
        return Ok(());
    }
    let left: Vec<u64> = revisions.filter(is_kept).collect();
    for span in left.chunk_by(|a, b| a + 1 == *b) {
        let mut rows = RevisionRows::default();
        let mut numbers = FxHashMap::default();
        for revision in span {
            let row = usize::try_from(revision - first).unwrap_or(usize::MAX);
            append(&mut rows, (block, row), &mut numbers)?;
        }
        let mut cell = Vec::new();
        rows.encode(&mut cell);
        let column = &key[..key.len() - REVISION_BYTES];
        out.push(([column, &span[0].to_be_bytes()].concat().into(), cell.into()));
    }
    Ok(())
}

/// Appends a row, its author and message interned.
pub(crate) fn append<'a>(
    rows: &mut RevisionRows,
    (block, row): (&'a RevisionRowsBlock, usize),
    numbers: &mut FxHashMap<&'a [u8], u32>,
) -> Result<()> {
    let mut intern = |text: Option<&'a [u8]>| {
        let Some(text) = text else { return 0 };
        *numbers.entry(text).or_insert_with(|| {
            rows.strings.push(text.to_vec());
            index_u32(rows.strings.len())
        })
    };
    let (author, message) = (intern(block.author(row)?), intern(block.message(row)?));
    rows.authors.push(author);
    rows.messages.push(message);
    rows.timestamps.push(block.timestamp(row)?);
    rows.committed.push(block.committed(row)?);
    rows.sequences.push(block.sequence(row)?);
    for node in block.changed(row)? {
        rows.changed.push(node?);
    }
    rows.changed_ends.push(index_u32(rows.changed.len()));
    for moved in block.moves(row)? {
        rows.moves.push(moved?);
    }
    rows.moves_ends.push(index_u32(rows.moves.len()));
    if rows.strings.len() > usize::from(u16::MAX) {
        return Err(corrupt("revision rows have more strings than rows".to_owned()));
    }
    Ok(())
}
