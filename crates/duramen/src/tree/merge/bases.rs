//! First states of the slots of one column.

use bytes::Bytes;

use crate::encoding::Column;
use crate::error::Result;
use crate::limits::{BASE_BYTES_WANTED, ROW_GROUP_SLOTS};
use crate::state::Datum;
use crate::tree::cell_key::GroupCell;
use crate::tree::disk::corrupt;
use crate::tree::first_states;
use crate::tree::merge::Cell;

/// Bytes of the first slot at the end of a key.
const SLOT_BYTES: usize = size_of::<u32>();

/// Cells of first states whose slots follow each other.
#[derive(Debug)]
pub(crate) struct Bases {
    kind: GroupCell,
    /// What the keys of the column's cells begin with.
    column: Bytes,
    first: u32,
    end: u32,
    parts: Vec<Part>,
}

/// A cell that came in.
#[derive(Debug)]
struct Part {
    first: u32,
    cell: Cell,
    column: Column,
}

impl Bases {
    /// Begins with a cell of a kind whose first slot is given.
    pub(crate) fn new(cell: Cell, (kind, first): (GroupCell, u32)) -> Result<Self> {
        let column = cell.0.slice(..cell.0.len() - SLOT_BYTES);
        let mut bases = Self { kind, column, first, end: first, parts: Vec::new() };
        bases.add(first, cell)?;
        Ok(bases)
    }

    /// What the keys of the column's cells begin with.
    pub(crate) fn column(&self) -> &[u8] {
        &self.column
    }

    fn add(&mut self, first: u32, cell: Cell) -> Result<()> {
        let column = Column::parse(cell.1.clone())?;
        let len = u32::try_from(column.len()).unwrap_or(u32::MAX);
        let end = first.saturating_add(len);
        if first < self.end || u64::from(end) > ROW_GROUP_SLOTS {
            return Err(corrupt(format!("{len} first states begin at slot {first}")));
        }
        self.end = end;
        self.parts.push(Part { first, cell, column });
        Ok(())
    }

    pub(crate) fn push(&mut self, cell: Cell, out: &mut Vec<Cell>) -> Result<()> {
        let first = cell.0.last_chunk::<SLOT_BYTES>().map_or(0, |slot| u32::from_be_bytes(*slot));
        // Slots between two cells of values are absent, others are missing.
        if first == self.end || self.kind == GroupCell::Base {
            return self.add(first, cell);
        }
        let next = Self::new(cell, (self.kind, first))?;
        std::mem::replace(self, next).finish(out)
    }

    /// Whether cells made anew would be much the same.
    fn is_cut(&self) -> bool {
        let is_full = |part: &Part| part.column.cell_bytes() > BASE_BYTES_WANTED / 2;
        let before_last = self.parts.split_last().map_or(&[][..], |(_, before)| before);
        before_last.iter().all(is_full)
            && self.parts.iter().all(|part| first_states::is_cut(&part.column))
    }

    pub(crate) fn finish(self, out: &mut Vec<Cell>) -> Result<()> {
        if self.is_cut() {
            out.extend(self.parts.into_iter().map(|part| part.cell));
            return Ok(());
        }
        let mut states = Vec::with_capacity((self.end - self.first) as usize);
        for part in &self.parts {
            states.resize((part.first - self.first) as usize, Datum::Absent);
            for state in part.column.iter() {
                states.push(state?);
            }
        }
        for (first, cell) in first_states::encode_cells(self.kind, self.first, &states) {
            out.push(([self.column(), &first.to_be_bytes()].concat().into(), cell.into()));
        }
        Ok(())
    }
}
