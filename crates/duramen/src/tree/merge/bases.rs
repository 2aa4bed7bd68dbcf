//! First states of the slots of one column.

use bytes::Bytes;

use crate::encoding::{Column, encode_column};
use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::state::Datum;
use crate::tree::cell_key::GroupCell;
use crate::tree::disk::corrupt;
use crate::tree::merge::{CELL_BYTES_WANTED, Cell};

/// Bytes of the first slot at the end of a key.
const SLOT_BYTES: usize = size_of::<u32>();

/// Cells of first states whose slots follow each other.
#[derive(Debug)]
pub(crate) struct Bases {
    /// Whether slots between two cells are absent, not missing.
    has_gaps: bool,
    /// The first cell as it came, for when it stays alone.
    alone: Cell,
    first: u32,
    end: u32,
    parts: Vec<(u32, Column)>,
}

impl Bases {
    /// Begins with a cell of a kind whose first slot is given.
    pub(crate) fn new(cell: Cell, (kind, first): (GroupCell, u32)) -> Result<Self> {
        Self::begin(cell, first, kind == GroupCell::Base)
    }

    fn begin(cell: Cell, first: u32, has_gaps: bool) -> Result<Self> {
        let mut bases = Self { has_gaps, alone: cell, first, end: first, parts: Vec::new() };
        bases.add(first, bases.alone.1.clone())?;
        Ok(bases)
    }

    /// What the keys of the column's cells begin with.
    pub(crate) fn column(&self) -> &[u8] {
        let key = &self.alone.0;
        &key[..key.len() - SLOT_BYTES]
    }

    fn add(&mut self, first: u32, cell: Bytes) -> Result<()> {
        let column = Column::parse(cell)?;
        let len = u32::try_from(column.len()).unwrap_or(u32::MAX);
        let end = first.saturating_add(len);
        if first < self.end || u64::from(end) > ROW_GROUP_SLOTS {
            return Err(corrupt(format!("{len} first states begin at slot {first}")));
        }
        self.end = end;
        self.parts.push((first, column));
        Ok(())
    }

    pub(crate) fn push(&mut self, (key, cell): Cell, out: &mut Vec<Cell>) -> Result<()> {
        let first = key.last_chunk::<SLOT_BYTES>().map_or(0, |slot| u32::from_be_bytes(*slot));
        if first == self.end || self.has_gaps {
            return self.add(first, cell);
        }
        let next = Self::begin((key, cell), first, self.has_gaps)?;
        std::mem::replace(self, next).finish(out)
    }

    pub(crate) fn finish(self, out: &mut Vec<Cell>) -> Result<()> {
        if self.parts.len() == 1 && self.alone.1.len() <= CELL_BYTES_WANTED {
            out.push(self.alone);
            return Ok(());
        }
        let mut states = Vec::with_capacity((self.end - self.first) as usize);
        for (first, column) in &self.parts {
            states.resize((first - self.first) as usize, Datum::Absent);
            for state in column.iter() {
                states.push(state?);
            }
        }
        put(self.column(), self.first, &states, out);
        Ok(())
    }
}

/// Encodes states in as few cells as are read as one block each.
fn put(column: &[u8], first: u32, states: &[Datum<'_>], out: &mut Vec<Cell>) {
    if states.iter().all(Datum::is_absent) {
        return;
    }
    let mut cell = Vec::new();
    encode_column(states, &mut cell);
    if cell.len() > CELL_BYTES_WANTED && states.len() > 1 {
        let (left, right) = states.split_at(states.len() / 2);
        let middle = first + u32::try_from(left.len()).unwrap_or(u32::MAX);
        put(column, first, left, out);
        put(column, middle, right, out);
        return;
    }
    let key = [column, &first.to_be_bytes()].concat();
    out.push((key.into(), cell.into()));
}
