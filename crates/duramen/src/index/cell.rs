//! The cells of an index: its entries in order, and what is known of it as a whole.
//!
//! An *entry* is a key, the ordinal of the record (big-endian) and, inverted, the revision in which
//! the record got the key or lost it. So of the entries of one key and record the newest comes
//! first, and the newest up to a revision is the first at or after that revision's place.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

use crate::error::Result;
use crate::limits::{
    INDEX_CELL_ENTRIES_MAX, INDEX_ENTRY_BYTES_MAX, INDEX_PATHS_MAX, INDEX_VALUE_BYTES_MAX,
    ORDINALS_MAX, REVISIONS_MAX,
};
use crate::tree::kept::Kept;
use crate::tree::young::low_half;
use crate::wire::{Reader, put_varint};

/// Bytes of the revision at the end of an entry.
const REVISION_BYTES: usize = size_of::<u32>();

/// Bytes of the ordinal before it.
const ORDINAL_BYTES: usize = size_of::<u64>();

const _: () = assert!(
    INDEX_PATHS_MAX * INDEX_VALUE_BYTES_MAX + ORDINAL_BYTES + REVISION_BYTES
        == INDEX_ENTRY_BYTES_MAX
);

/// Bytes of entries from which on a cell is full, so that several fit a block.
const CELL_BYTES_WANTED: usize = 8 << 10;

/// An entry, and whether the record got the key there, or lost it.
pub(crate) type Entry = (Box<[u8]>, bool);

/// Makes `place` that where the newest entry of a group up to a revision is, or would be; of
/// revision 0 it is behind all entries of the group, before those of the next one.
pub(crate) fn set_place(place: &mut Vec<u8>, group: &[u8], revision: u32) {
    place.clear();
    place.extend_from_slice(group);
    place.extend_from_slice(&(!revision).to_be_bytes());
}

/// The key and the record of an entry, which all entries of both begin with.
pub(crate) fn group(entry: &[u8]) -> &[u8] {
    entry.split_last_chunk::<REVISION_BYTES>().map_or(entry, |(group, _)| group)
}

/// Whether two entries are of the same key and record. Most that are not differ in the record.
#[inline]
pub(crate) fn is_same_group(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (split(group(a)), split(group(b)));
    a.1 == b.1 && a.0 == b.0
}

/// The revision of an entry.
pub(crate) fn revision(entry: &[u8]) -> u32 {
    entry.last_chunk().map_or(0, |bytes| !u32::from_be_bytes(*bytes))
}

/// The key and the ordinal that a group is of.
pub(crate) fn split(group: &[u8]) -> (&[u8], u64) {
    let split = group.split_last_chunk::<ORDINAL_BYTES>();
    split.map_or((group, 0), |(key, ordinal)| (key, u64::from_be_bytes(*ordinal)))
}

/// Entries in one piece of memory; in order, but for those that were just gathered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Entries {
    heap: Vec<u8>,
    /// Twice the lower bits of where each ends in the heap, and one more where the record got the
    /// key.
    ends: Vec<u32>,
    /// The entries from which on the bits above these are one more: of a heap of 2 GiB and more.
    wraps: Vec<usize>,
}

/// Bits of where an entry ends that stand with it; few in tests, whose entries are few.
const END_BITS: u32 = if cfg!(test) { 6 } else { u32::BITS - 1 };

impl Entries {
    /// None yet, with room.
    pub(crate) fn with_capacity(count: usize, bytes: usize) -> Self {
        let (heap, ends) = (Vec::with_capacity(bytes), Vec::with_capacity(count));
        Self { heap, ends, wraps: Vec::new() }
    }

    /// Decodes a cell.
    pub(crate) fn decode(cell: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(cell);
        let count = reader.count()?;
        if count == 0 || count > INDEX_CELL_ENTRIES_MAX {
            return Err(reader.corrupt("a cell of an index has none or too many entries"));
        }
        let mut entries = Self::with_capacity(count, cell.len());
        for _ in 0..count {
            entries.read(&mut reader)?;
        }
        reader.end()?;
        Ok(entries)
    }

    fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let shared = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
        let head = reader.varint()?;
        let own = reader.take(usize::try_from(head >> 1).unwrap_or(usize::MAX))?;
        let index = self.len();
        let before = index.checked_sub(1).and_then(|last| self.get(last));
        if before.map_or(0, |(entry, _)| entry.len()) < shared {
            return Err(reader.corrupt("an entry shares more than there is"));
        }
        self.heap.reserve(shared.saturating_add(own.len()));
        self.extend_from(index.wrapping_sub(1), shared);
        self.heap.extend_from_slice(own);
        self.close(head & 1 == 1);
        let before = index.checked_sub(1).and_then(|last| self.get(last));
        let before = before.map_or(&[][..], |(entry, _)| entry);
        let entry = self.get(index).map_or(&[][..], |(entry, _)| entry);
        let (_, ordinal) = split(group(entry));
        let is_possible = entry.len() > ORDINAL_BYTES.saturating_add(REVISION_BYTES)
            && entry.len() <= INDEX_ENTRY_BYTES_MAX
            && ordinal < ORDINALS_MAX
            && (1..=REVISIONS_MAX).contains(&revision(entry).into());
        if !is_possible || entry <= before {
            return Err(reader.corrupt("an entry of an index cannot be, or is out of order"));
        }
        Ok(())
    }

    /// Adds the first bytes of an entry, which has as many, to the heap.
    fn extend_from(&mut self, index: usize, bytes: usize) {
        if let Some(start) = self.start(index) {
            self.heap.extend_from_within(start..start.saturating_add(bytes));
        }
    }

    /// Makes what was added to the heap an entry.
    fn close(&mut self, begins: bool) {
        self.mark(self.heap.len(), begins);
    }

    /// Adds where an entry ends.
    #[inline]
    fn mark(&mut self, end: usize, begins: bool) {
        while end >> END_BITS > self.wraps.len() {
            self.wraps.push(self.ends.len());
        }
        let low = end as u64 & ((1 << END_BITS) - 1);
        self.ends.push(low_half(low << 1 | u64::from(begins)));
    }

    /// Where an entry ends, and whether the record got the key there.
    #[inline]
    fn end(&self, index: usize) -> Option<(usize, bool)> {
        let mark = *self.ends.get(index)?;
        let mut end = mark as usize >> 1;
        if !self.wraps.is_empty() {
            end |= self.wraps.partition_point(|&wrap| wrap <= index) << END_BITS;
        }
        Some((end, mark & 1 == 1))
    }

    /// Adds the entry of a key and a record that says what happened in a revision.
    pub(crate) fn add(&mut self, (key, ordinal): (&[u8], u64), revision: u32, begins: bool) {
        self.heap.extend_from_slice(key);
        self.heap.extend_from_slice(&ordinal.to_be_bytes());
        self.heap.extend_from_slice(&(!revision).to_be_bytes());
        self.close(begins);
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, (entry, begins): (&[u8], bool)) {
        self.heap.extend_from_slice(entry);
        self.close(begins);
    }

    /// Adds some of other entries, one behind the other.
    pub(crate) fn append(&mut self, others: &Self, range: Range<usize>) {
        let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) else { return };
        let (Some(start), Some((end, _))) = (others.start(range.start), others.end(last)) else {
            return;
        };
        let before = self.heap.len();
        self.heap.extend_from_slice(others.heap.get(start..end).unwrap_or_default());
        self.ends.reserve(range.len());
        for (end, begins) in range.filter_map(|index| others.end(index)) {
            self.mark(end.wrapping_sub(start).wrapping_add(before), begins);
        }
    }

    /// Gives back the room for more.
    pub(crate) fn shrink(&mut self) {
        self.heap.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all of them, their places left out.
    pub(crate) fn bytes(&self) -> usize {
        self.heap.len()
    }

    /// Where an entry begins in the heap.
    #[inline]
    fn start(&self, index: usize) -> Option<usize> {
        match index.checked_sub(1) {
            None if self.ends.is_empty() => None,
            None => Some(0),
            Some(before) => self.end(before).map(|(end, _)| end),
        }
    }

    /// An entry, and whether the record got the key there.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], bool)> {
        let (end, begins) = self.end(index)?;
        let start = self.start(index)?;
        Some((self.heap.get(start..end)?, begins))
    }

    /// Whether an entry is there, and before a place.
    #[inline]
    fn is_before(&self, index: usize, place: &[u8]) -> bool {
        self.get(index).is_some_and(|(entry, _)| entry < place)
    }

    /// The index of the first entry at or after a place, which is looked for from an index on, in
    /// steps that grow: what is near is found at once.
    pub(crate) fn at_or_after(&self, place: &[u8], near: usize) -> usize {
        let (mut low, mut high) = (near.min(self.len()), near.min(self.len()));
        let mut stride = 1_usize;
        if self.is_before(low, place) {
            low = low.saturating_add(1);
            high = low;
            while self.is_before(high, place) {
                low = high.saturating_add(1);
                high = high.saturating_add(stride);
                stride = stride.saturating_mul(2);
            }
            high = high.min(self.len());
        } else {
            while low > 0 && !self.is_before(low.saturating_sub(1), place) {
                high = low.saturating_sub(1);
                low = low.saturating_sub(stride);
                stride = stride.saturating_mul(2);
            }
        }
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.is_before(middle, place) {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        low
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], bool)> {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

/// Encodes entries in order as a cell.
pub(crate) fn encode(entries: &[(&[u8], bool)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, entries.len() as u64);
    let mut before: &[u8] = &[];
    for &(entry, begins) in entries {
        let shared = before.iter().zip(entry.iter()).take_while(|(a, b)| a == b).count();
        let own = entry.get(shared..).unwrap_or_default();
        put_varint(&mut out, shared as u64);
        put_varint(&mut out, (own.len() as u64) << 1 | u64::from(begins));
        out.extend_from_slice(own);
        before = entry;
    }
    out
}

/// Whether so many entries, of so many bytes in all, make a cell.
pub(crate) fn is_cell(count: usize, bytes: usize) -> bool {
    count >= INDEX_CELL_ENTRIES_MAX || bytes >= CELL_BYTES_WANTED
}

/// How many of these entries, in order, make the next cell.
pub(crate) fn cell_len(entries: &[(&[u8], bool)]) -> usize {
    let (mut count, mut bytes) = (0_usize, 0_usize);
    for (entry, _) in entries {
        if is_cell(count, bytes) {
            break;
        }
        (count, bytes) = (count.saturating_add(1), bytes.saturating_add(entry.len()));
    }
    count
}

/// A span of revisions whose reads find all they need in the cells of one slab: what was there at
/// its first revision, and what happened since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slab {
    /// Its first revision.
    pub(crate) start: u32,
    /// Entries that were there at it.
    pub(crate) alive: u64,
}

/// What is known of an index as a whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The first revision that can be read.
    pub(crate) first: u32,
    /// The revision up to which there are entries.
    pub(crate) watermark: u32,
    /// Records with ordinals below this one have theirs, up to the watermark or, born after it, of
    /// their birth.
    pub(crate) ordinals: u64,
    /// Entries that are there at the watermark, those of births after it included.
    pub(crate) alive: u64,
    /// Entries of the newest slab beside what was there at its start.
    pub(crate) events: u64,
    /// Rising; none before anything was indexed.
    pub(crate) slabs: Vec<Slab>,
}

impl Facts {
    /// The slab that a revision is read in.
    pub(crate) fn slab(&self, revision: u32) -> Option<u32> {
        let after = self.slabs.partition_point(|slab| slab.start <= revision);
        let slab = after.checked_sub(1).and_then(|last| self.slabs.get(last));
        slab.map(|slab| slab.start)
    }

    /// The first revision that is not read in a slab; none of the newest.
    pub(crate) fn end(&self, slab: u32) -> Option<u32> {
        let after = self.slabs.partition_point(|other| other.start <= slab);
        self.slabs.get(after).map(|next| next.start)
    }

    /// Whether a kept revision is read in a slab, or will be: one behind those that are known is in
    /// the making.
    pub(crate) fn is_kept(&self, slab: u32, kept: &Kept) -> bool {
        let last = self.end(slab).map_or(u32::MAX, |end| end.saturating_sub(1));
        let is_known = self.slabs.iter().any(|known| known.start == slab);
        let is_coming = self.slabs.last().is_some_and(|last| last.start < slab);
        is_coming || is_known && kept.at_or_before(last.into()) >= slab.into()
    }

    /// Forgets slabs in which no kept revision is read.
    pub(crate) fn trim(&mut self, kept: &Kept) {
        let all = self.clone();
        self.slabs.retain(|slab| all.is_kept(slab.start, kept));
    }

    /// The cell that says so.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let numbers = [
            self.first.into(),
            self.watermark.into(),
            self.ordinals,
            self.alive,
            self.events,
            self.slabs.len() as u64,
        ];
        for number in numbers {
            put_varint(&mut out, number);
        }
        let mut before = 0;
        for slab in &self.slabs {
            put_varint(&mut out, slab.start.saturating_sub(before).into());
            put_varint(&mut out, slab.alive);
            before = slab.start;
        }
        out
    }

    /// What a cell says.
    pub(crate) fn decode(cell: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(cell);
        let mut facts = Self {
            first: reader.varint_u32()?,
            watermark: reader.varint_u32()?,
            ordinals: reader.varint()?,
            alive: reader.varint()?,
            events: reader.varint()?,
            slabs: Vec::new(),
        };
        let mut start = 0_u32;
        for _ in 0..reader.count()? {
            let added = reader.varint_u32()?;
            let next = start.checked_add(added).filter(|&next| next > start);
            start = next.ok_or_else(|| reader.corrupt("slabs of an index do not rise"))?;
            facts.slabs.push(Slab { start, alive: reader.varint()? });
        }
        let is_possible = facts.ordinals <= ORDINALS_MAX
            && u64::from(start.max(facts.watermark)) <= REVISIONS_MAX
            && facts.slabs.first().is_none_or(|slab| slab.start >= facts.first);
        if !is_possible {
            return Err(reader.corrupt("the facts of an index cannot be"));
        }
        reader.end()?;
        Ok(facts)
    }
}

#[cfg(test)]
mod tests;
