//! Blocks of revision rows: what is kept of each commit to a tree, columnar.

use std::ops::Range;

use bytes::Bytes;

use super::integers::Integers;
use super::reader::{Parsed, Reader, corrupt, unreadable};
use super::texts::Texts;
use crate::error::{Error, Result};
use crate::limits::{ORDINALS_MAX, REVISION_ROWS_MAX};
use crate::node::{Move, NodeId, Ordinal, PathId};
use crate::revision::{CommitSequence, Micros};

/// The rows of consecutive revisions, a vector for each column.
///
/// `ends` vectors have one value per row: where the row's part of the flat vector ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RevisionRows {
    /// The revision timestamp of each row.
    pub(crate) timestamps: Vec<Micros>,
    /// The commit timestamp of each row.
    pub(crate) committed: Vec<Micros>,
    /// The commit sequence of each row.
    pub(crate) sequences: Vec<CommitSequence>,
    /// Per row, the place of its author in `strings` from 1, or 0 for none.
    pub(crate) authors: Vec<u32>,
    /// Per row, the place of its message in `strings` from 1, or 0 for none.
    pub(crate) messages: Vec<u32>,
    /// The distinct authors and messages.
    pub(crate) strings: Vec<Vec<u8>>,
    /// The changed nodes.
    pub(crate) changed: Vec<NodeId>,
    /// Where each row ends in `changed`.
    pub(crate) changed_ends: Vec<u32>,
    /// The moved subtrees.
    pub(crate) moves: Vec<Move>,
    /// Where each row ends in `moves`.
    pub(crate) moves_ends: Vec<u32>,
}

impl RevisionRows {
    /// Appends the encoding of the rows.
    ///
    /// # Panics
    /// If there are more than [`REVISION_ROWS_MAX`], or the columns do not fit each other.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.check();
        out.extend(u16::try_from(self.timestamps.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend(u16::try_from(self.strings.len()).unwrap_or(u16::MAX).to_le_bytes());
        write(self.timestamps.iter().map(|timestamp| timestamp.0), out);
        // Most often both times are the same: then the differences take no bytes.
        let times = self.committed.iter().zip(&self.timestamps);
        write(times.map(|(committed, timestamp)| committed.0.wrapping_sub(timestamp.0)), out);
        write(self.sequences.iter().map(|sequence| sequence.0.cast_signed()), out);
        write(self.authors.iter().copied(), out);
        write(self.messages.iter().copied(), out);
        Texts::encode(&self.strings.iter().map(Vec::as_slice).collect::<Vec<_>>(), out);
        write(self.changed_ends.iter().copied(), out);
        write_nodes(self.changed.iter().copied(), out);
        write(self.moves_ends.iter().copied(), out);
        write_nodes(self.moves.iter().map(|moved| moved.to), out);
        write_nodes(self.moves.iter().map(|moved| moved.from), out);
    }

    fn check(&self) {
        let len = self.timestamps.len();
        assert!(len <= REVISION_ROWS_MAX, "a block of {len} revision rows");
        assert!(u16::try_from(self.strings.len()).is_ok(), "too many strings in revision rows");
        let lens = [
            self.committed.len(),
            self.sequences.len(),
            self.authors.len(),
            self.messages.len(),
            self.changed_ends.len(),
            self.moves_ends.len(),
        ];
        assert_eq!(lens, [len; 6], "revision rows of different lengths");
        let lists =
            [(&self.changed_ends, self.changed.len()), (&self.moves_ends, self.moves.len())];
        for (ends, len) in lists {
            let last = ends.last().copied().unwrap_or_default() as usize;
            assert!(ends.is_sorted() && last == len, "revision rows end elsewhere");
        }
        let places = self.authors.iter().chain(&self.messages);
        let named = places.copied().max().unwrap_or_default() as usize;
        assert!(named <= self.strings.len(), "revision rows name string {named}");
    }
}

fn write<T: Into<i64>>(values: impl Iterator<Item = T>, out: &mut Vec<u8>) {
    Integers::encode(&values.map(Into::into).collect::<Vec<_>>(), out);
}

fn write_nodes(nodes: impl Iterator<Item = NodeId> + Clone, out: &mut Vec<u8>) {
    write(nodes.clone().map(|node| node.path().0), out);
    write(nodes.map(|node| node.ordinal().0.cast_signed()), out);
}

/// A view of the nodes of a block: their paths and their ordinals.
#[derive(Debug, Clone)]
struct Nodes {
    paths: Integers,
    ordinals: Integers,
}

/// A view of an encoded block of revision rows.
#[derive(Debug, Clone)]
pub(crate) struct RevisionRowsBlock {
    cell: Bytes,
    timestamps: Integers,
    /// Commit timestamps less revision timestamps.
    lags: Integers,
    sequences: Integers,
    authors: Integers,
    messages: Integers,
    strings: Texts,
    changed_ends: Integers,
    changed: Nodes,
    moves_ends: Integers,
    moved_to: Nodes,
    moved_from: Nodes,
}

impl RevisionRowsBlock {
    /// Reads the headers of an encoded block, which fills `cell`.
    pub(crate) fn parse(cell: Bytes) -> Result<Self> {
        let mut reader = Reader::new(&cell)?;
        let len = usize::from(reader.u16()?);
        let strings = usize::from(reader.u16()?);
        if len > REVISION_ROWS_MAX {
            return Err(corrupt(0, "too many revision rows in a block").into());
        }
        let r = &mut reader;
        let timestamps = Integers::parse(r, len)?;
        let lags = Integers::parse(r, len)?;
        let sequences = Integers::parse(r, len)?;
        let authors = Integers::parse(r, len)?;
        let messages = Integers::parse(r, len)?;
        let strings = Texts::parse(r, strings)?;
        let (changed_ends, total) = parse_ends(r, len)?;
        let changed = Nodes::parse(r, total)?;
        let (moves_ends, total) = parse_ends(r, len)?;
        let moved_to = Nodes::parse(r, total)?;
        let moved_from = Nodes::parse(r, total)?;
        reader.finish()?;
        Ok(Self {
            cell,
            timestamps,
            lags,
            sequences,
            authors,
            messages,
            strings,
            changed_ends,
            changed,
            moves_ends,
            moved_to,
            moved_from,
        })
    }

    /// The vectors of integers that are worth knowing of.
    pub(super) fn integers(&self) -> [&Integers; 8] {
        [
            &self.timestamps,
            &self.lags,
            &self.sequences,
            &self.authors,
            &self.messages,
            &self.changed_ends,
            &self.changed.paths,
            &self.changed.ordinals,
        ]
    }

    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// How many changed nodes all rows list.
    pub(crate) fn changed_len(&self) -> usize {
        self.changed.paths.len()
    }

    /// The revision timestamp of a row.
    pub(crate) fn timestamp(&self, row: usize) -> Result<Micros> {
        self.timestamps.get(&self.cell, row).map(Micros).ok_or_else(|| self.unreadable(row))
    }

    /// The commit timestamp of a row.
    pub(crate) fn committed(&self, row: usize) -> Result<Micros> {
        let lag = self.lags.get(&self.cell, row).ok_or_else(|| self.unreadable(row))?;
        Ok(Micros(self.timestamp(row)?.0.wrapping_add(lag)))
    }

    /// Appends the revision timestamps of all rows, in microseconds.
    pub(crate) fn timestamps_into(&self, out: &mut Vec<i64>) {
        self.timestamps.decode_into(&self.cell, out);
    }

    /// The commit sequence of a row.
    pub(crate) fn sequence(&self, row: usize) -> Result<CommitSequence> {
        let sequence = self.sequences.get_unsigned(&self.cell, row);
        sequence.map(CommitSequence).ok_or_else(|| self.unreadable(row))
    }

    /// The author of a row, if it has one.
    pub(crate) fn author(&self, row: usize) -> Result<Option<&[u8]>> {
        self.string(&self.authors, row)
    }

    /// The message of a row, if it has one.
    pub(crate) fn message(&self, row: usize) -> Result<Option<&[u8]>> {
        self.string(&self.messages, row)
    }

    /// The nodes that changed in a row.
    pub(crate) fn changed(
        &self,
        row: usize,
    ) -> Result<impl ExactSizeIterator<Item = Result<NodeId>>> {
        let span = self.span((&self.changed_ends, &self.changed), row)?;
        Ok(span.map(move |index| self.node(&self.changed, (index, row))))
    }

    /// The subtrees that a row moved.
    pub(crate) fn moves(&self, row: usize) -> Result<impl ExactSizeIterator<Item = Result<Move>>> {
        let span = self.span((&self.moves_ends, &self.moved_to), row)?;
        Ok(span.map(move |index| {
            let to = self.node(&self.moved_to, (index, row))?;
            Ok(Move { to, from: self.node(&self.moved_from, (index, row))? })
        }))
    }

    /// Refuses a block of which a row does not decode, or whose changed nodes are not its rows'.
    pub(crate) fn check(&self) -> Result<()> {
        for row in 0..self.len() {
            self.committed(row)?;
            self.sequence(row)?;
            self.author(row)?;
            self.message(row)?;
            self.check_nodes((&self.changed_ends, &self.changed), row)?;
            self.check_nodes((&self.moves_ends, &self.moved_to), row)?;
            self.check_nodes((&self.moves_ends, &self.moved_from), row)?;
        }
        Ok(())
    }

    /// Reads all of a row's nodes. On a line they take no bytes however many they are: then its
    /// ends answer for them.
    fn check_nodes(&self, (ends, nodes): (&Integers, &Nodes), row: usize) -> Result<()> {
        let mut span = self.span((ends, nodes), row)?;
        let read = |index| self.node(nodes, (index, row)).map(drop);
        if nodes.is_line() {
            return span.next().into_iter().chain(span.next_back()).try_for_each(read);
        }
        span.try_for_each(read)
    }

    fn string(&self, places: &Integers, row: usize) -> Result<Option<&[u8]>> {
        let place = places.get_index(&self.cell, row).ok_or_else(|| self.unreadable(row))?;
        let Some(index) = place.checked_sub(1) else { return Ok(None) };
        let string = self.strings.get(&self.cell, index);
        string.map(Some).ok_or_else(|| self.unreadable(row))
    }

    /// The part of a list of nodes that is a row's.
    fn span(&self, (ends, nodes): (&Integers, &Nodes), row: usize) -> Result<Range<usize>> {
        let span = ends.span(&self.cell, row).filter(|span| span.end <= nodes.paths.len());
        span.ok_or_else(|| self.unreadable(row))
    }

    fn node(&self, nodes: &Nodes, (index, row): (usize, usize)) -> Result<NodeId> {
        nodes.get(&self.cell, index).ok_or_else(|| self.unreadable(row))
    }

    #[cold]
    fn unreadable(&self, row: usize) -> Error {
        unreadable(row, self.len(), "revision row")
    }
}

impl Nodes {
    fn is_line(&self) -> bool {
        self.paths.line().is_some() && self.ordinals.line().is_some()
    }

    fn parse(reader: &mut Reader<'_>, len: usize) -> Parsed<Self> {
        Ok(Self { paths: Integers::parse(reader, len)?, ordinals: Integers::parse(reader, len)? })
    }

    fn get(&self, cell: &[u8], index: usize) -> Option<NodeId> {
        let path = u32::try_from(self.paths.get(cell, index)?).ok()?;
        let ordinal = self.ordinals.get_unsigned(cell, index)?;
        let valid = path < 1 << 24 && ordinal < ORDINALS_MAX;
        valid.then(|| NodeId::new(PathId(path), Ordinal(ordinal)))
    }
}

fn parse_ends(reader: &mut Reader<'_>, len: usize) -> Parsed<(Integers, usize)> {
    let start = reader.position();
    let ends = Integers::parse(reader, len)?;
    let total = ends.total(reader.cell());
    Ok((ends, total.ok_or_else(|| corrupt(start, "rows end before they begin"))?))
}
