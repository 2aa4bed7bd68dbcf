//! Changes of the slots of one column.

use bytes::Bytes;
use rustc_hash::FxHashMap;

use crate::encoding::{RunChange, RunPiece, encode_complete_run, encode_run};
use crate::error::Result;
use crate::limits::{ROW_GROUP_SLOTS, RUN_PIECE_CHANGES_MAX, SPAN_BYTES_MIN, SPAN_CHANGES_MAX};
use crate::store::LiveSegments;
use crate::tree::disk::corrupt;
use crate::tree::merge::{CELL_BYTES_WANTED, Cell};

/// Bytes of the first revision at the end of a key.
const REVISION_BYTES: usize = size_of::<u32>();

/// How many times as many changes as it would repeat lie between two complete pieces at least: of a
/// whole row group as many as a read goes back over at most.
const CHANGES_PER_REPEATED: usize = 8;

const _: () = assert!(CHANGES_PER_REPEATED as u64 * ROW_GROUP_SLOTS <= SPAN_CHANGES_MAX as u64);

/// Run pieces of one column: those that will be one, and what is known of those before.
#[derive(Debug)]
pub(crate) struct Runs {
    column: Vec<u8>,
    /// The pieces to be combined, oldest first, with the first one's key.
    pieces: Vec<RunPiece>,
    alone: Option<Cell>,
    changes: usize,
    bytes: usize,
    /// None as long as nobody had to know.
    span: Option<Span>,
}

/// The changes since the last complete piece, or since the first.
#[derive(Debug, Default)]
struct Span {
    changes: usize,
    bytes: usize,
    /// By slot the newest change, as piece and index in it.
    newest: FxHashMap<u16, (usize, usize)>,
    pieces: Vec<RunPiece>,
}

impl Runs {
    /// No changes yet of the column of a cell.
    pub(crate) fn new(key: &[u8]) -> Self {
        let column = key[..key.len() - REVISION_BYTES].to_vec();
        Self { column, pieces: Vec::new(), alone: None, changes: 0, bytes: 0, span: None }
    }

    /// What the keys of the column's cells begin with.
    pub(crate) fn column(&self) -> &[u8] {
        &self.column
    }

    pub(crate) fn push(
        &mut self,
        older: &LiveSegments,
        (key, cell): Cell,
        out: &mut Vec<Cell>,
    ) -> Result<()> {
        let piece = RunPiece::parse(cell.clone())?;
        let bytes = self.bytes + cell.len();
        let is_full = self.changes + piece.own_len()? > RUN_PIECE_CHANGES_MAX
            || bytes > CELL_BYTES_WANTED
            || piece.is_complete();
        if is_full && !self.pieces.is_empty() {
            self.put(Some(older), out)?;
        }
        if piece.is_complete() {
            let mut span = Span::default();
            span.add(&piece, cell.len())?;
            self.span = Some(span);
            out.push((key, cell));
            return Ok(());
        }
        self.changes += piece.own_len()?;
        self.bytes += cell.len();
        self.alone = if self.pieces.is_empty() { Some((key, cell)) } else { None };
        self.pieces.push(piece);
        Ok(())
    }

    pub(crate) fn finish(mut self, older: &LiveSegments, out: &mut Vec<Cell>) -> Result<()> {
        // A short end can wait: it will be combined with what comes next.
        let is_short = self.changes < RUN_PIECE_CHANGES_MAX / 4;
        self.put((!is_short).then_some(older), out)
    }

    /// Writes the pending pieces as one: a complete one if it is time. Without `older` it is not,
    /// unless what is before has been looked up.
    fn put(&mut self, older: Option<&LiveSegments>, out: &mut Vec<Cell>) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        let Some(first) = pieces.first().map(RunPiece::first_revision) else { return Ok(()) };
        let alone = self.alone.take();
        let mut span = match (self.span.take(), older) {
            (Some(span), _) => span,
            (None, Some(older)) => Span::before(&self.column, first, older)?,
            (None, None) => Span::default(),
        };
        let mut changes = Vec::with_capacity(self.changes + span.newest.len());
        for piece in &pieces {
            for index in 0..piece.len() {
                changes.push(piece.entry(index)?);
            }
        }
        let is_complete = span.is_long();
        if is_complete {
            span.repeat_into(&mut changes)?;
        }
        let (key, cell) = match alone.filter(|_| !is_complete) {
            Some(alone) => alone,
            None => (
                [&self.column[..], &first.to_be_bytes()].concat().into(),
                encode(&mut changes, (first, is_complete))?,
            ),
        };
        let piece = RunPiece::parse(cell.clone())?;
        if is_complete {
            span = Span::default();
        }
        span.add(&piece, cell.len())?;
        out.push((key, cell));
        (self.span, self.changes, self.bytes) = (Some(span), 0, 0);
        Ok(())
    }
}

fn encode(changes: &mut [RunChange<'_>], (first, is_complete): (u32, bool)) -> Result<Bytes> {
    changes.sort_unstable_by_key(|&(slot, revision, _)| (slot, revision));
    if changes.windows(2).any(|two| (two[0].0, two[0].1) == (two[1].0, two[1].1)) {
        return Err(corrupt(format!("two changes of one slot in one revision from {first} on")));
    }
    let mut cell = Vec::new();
    if is_complete {
        encode_complete_run(changes, first, &mut cell);
    } else {
        encode_run(changes, &mut cell);
    }
    Ok(cell.into())
}

impl Span {
    /// What older segments have of a column before a revision, back to a complete piece.
    fn before(column: &[u8], first: u32, older: &LiveSegments) -> Result<Self> {
        let mut found = Vec::new();
        let mut revision = first;
        while let Some(before) = revision.checked_sub(1) {
            let key = [column, &before.to_be_bytes()].concat();
            let Some((_, cell)) = older.last_before(column, &key)? else { break };
            let bytes = cell.len();
            let piece = RunPiece::parse(cell)?;
            let is_complete = piece.is_complete();
            if piece.first_revision() >= revision {
                return Err(corrupt(format!("a run piece before revision {revision} is not")));
            }
            revision = piece.first_revision();
            found.push((piece, bytes));
            if is_complete {
                break;
            }
        }
        let mut span = Self::default();
        for (piece, bytes) in found.into_iter().rev() {
            span.add(&piece, bytes)?;
        }
        Ok(span)
    }

    /// Whether a complete piece is worth what it repeats.
    fn is_long(&self) -> bool {
        let is_much = self.changes >= SPAN_CHANGES_MAX || self.bytes >= SPAN_BYTES_MIN;
        is_much && self.changes >= CHANGES_PER_REPEATED * self.newest.len()
    }

    fn add(&mut self, piece: &RunPiece, bytes: usize) -> Result<()> {
        let number = self.pieces.len();
        for index in 0..piece.len() {
            let (slot, ..) = piece.entry(index)?;
            // Within a piece the changes of a slot rise.
            self.newest.insert(slot, (number, index));
        }
        self.changes += piece.own_len()?;
        self.bytes += bytes;
        self.pieces.push(piece.clone());
        Ok(())
    }

    /// Appends the newest change of each slot.
    fn repeat_into<'a>(&'a self, changes: &mut Vec<RunChange<'a>>) -> Result<()> {
        for &(piece, index) in self.newest.values() {
            changes.push(self.pieces[piece].entry(index)?);
        }
        Ok(())
    }
}
