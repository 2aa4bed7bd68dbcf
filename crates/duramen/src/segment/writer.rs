//! Writes a segment: cells in key order stream out as blocks; filter, index and footer follow. The
//! cells of a group (a row group, the keys of a space), which are read together, stand in one block
//! if they fit one. Those of a larger group stand in small blocks, so that a read that needs one of
//! them does not read the others (benchmark K).
//!
//! Memory held is a block, a write buffer and, for the filter and the index, 8 bytes a cell and a
//! fence a block. A large cell goes to the file without being copied.

mod resume;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

use super::block::{BlockAddress, BlockHeader, BlockKind, HEADER_BYTES, RECORD_BYTES, Record};
use super::compression::{self, PLAIN, SHORTENED};
use super::filter::{self, KeyHash, TREE_PREFIX_BYTES};
use super::footer::{FOOTER_BYTES, Footer};
use super::index::IndexEntry;
use super::packing::FindVectors;
use super::shortening::shorten;
use super::{DIRECTORY, Encoding, FORMAT, MAGIC, SegmentInfo, path};
use crate::io::{self, Access, Device, File, zeros};
use crate::limits::{
    BASE_BYTES_MAX, BLOCK_BYTES_MAX, CELL_BYTES_MAX, CELL_KEY_BYTES_MAX, SMALL_BLOCK_BYTES_MAX,
    VALUE_BYTES_MAX,
};
use crate::{CommitSequence, Error, ErrorKind, Result};

/// Bytes of a cell's key that name its group: tree, class, space, and the number of a row group.
const GROUP_PREFIX_BYTES: usize = TREE_PREFIX_BYTES + 9;

/// Bytes of cells in a block.
const BLOCK_ROOM: usize = BLOCK_BYTES_MAX - HEADER_BYTES;

/// The same in a block of a group that takes several.
const SMALL_BLOCK_ROOM: usize = SMALL_BLOCK_BYTES_MAX - HEADER_BYTES;

/// Bytes of the key that name its space.
const SPACE_PREFIX_BYTES: usize = TREE_PREFIX_BYTES + 5;

/// Bytes of cells of a space, compressed, from which on they stand in small blocks: larger ones
/// compress better, and of so little next to all stays in memory.
const DENSE_BYTES: usize = 256 << 10;

/// Bytes up to which a cell with its key is tiny, as those of an index are. Where blocks are
/// compressed those of tiny cells alone have more room: what a block takes in the index of the
/// segment is not compressed.
const TINY_BYTES: usize = 128;
const TINY_BLOCK_ROOM: usize = 4 * SMALL_BLOCK_BYTES_MAX - HEADER_BYTES;

/// Bytes of the body of an index or a filter: 4 GiB less what is left for one more block of cells.
const GUIDE_BYTES_MAX: usize = (u32::MAX - (1 << 20)) as usize;

/// Bytes gathered before they are written.
const WRITE_BYTES: usize = 256 << 10;

const _: () = assert!(CELL_BYTES_MAX == VALUE_BYTES_MAX + (64 << 10));
const _: () = assert!(BASE_BYTES_MAX + 256 <= BLOCK_BYTES_MAX);

/// A body that is not kept as it is: the number of the way, and the result.
type Encoded = (u8, Vec<u8>);

/// What a segment is, told before it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentMeta {
    pub(crate) database_id: u128,
    pub(crate) epoch: u64,
    pub(crate) level: u8,
    pub(crate) encoding: Encoding,
    pub(crate) first_sequence: CommitSequence,
    pub(crate) last_sequence: CommitSequence,
}

/// A segment being written. Dropped before [`finish`](Self::finish), it removes its file.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    device: Arc<dyn Device>,
    number: u64,
    meta: SegmentMeta,
    find_vectors: FindVectors,
    out: Output,
    /// The cells of the block being filled: records and, apart from them, keys and cells.
    records: Vec<Record>,
    data: Vec<u8>,
    /// The first of these cells that is of the same group as the last one.
    group_start: usize,
    /// Bytes of the cells of its space so far.
    space_bytes: usize,
    /// Whether this group takes more than a block; then no cell of another one is among them.
    is_large: bool,
    entries: Vec<IndexEntry>,
    fences: Vec<u8>,
    /// The last key of the last block written, and the last key of all.
    block_last_key: Vec<u8>,
    last_key: Vec<u8>,
    hashes: Vec<KeyHash>,
    cells: u64,
    finished: bool,
    stop: Stop,
}

/// What has a segment not be written to its end: flags that have all been set.
#[derive(Debug, Default)]
pub(crate) struct Stop(Vec<Arc<AtomicBool>>);

impl Stop {
    pub(crate) fn new<'f>(flags: impl IntoIterator<Item = &'f Arc<AtomicBool>>) -> Self {
        Self(flags.into_iter().map(Arc::clone).collect())
    }

    /// `Cancelled` if they are.
    #[inline]
    fn check(&self) -> Result<()> {
        if !self.0.is_empty() && self.0.iter().all(|flag| flag.load(Ordering::Relaxed)) {
            let message = "the segment is left to the next open of the database";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        Ok(())
    }
}

impl SegmentWriter {
    /// Makes the file of segment `number`, which must not exist.
    pub(crate) fn create(device: &Arc<dyn Device>, number: u64, meta: SegmentMeta) -> Result<Self> {
        let path = path(number);
        let file = device
            .open(&path, Access::Create)
            .map_err(|error| Error::io(format!("cannot create {path}"), error))?;
        let out = Output::new(file, path, (MAGIC.to_vec(), 0));
        Ok(Self::without_cells(device, (number, meta), out))
    }

    fn without_cells(
        device: &Arc<dyn Device>,
        (number, meta): (u64, SegmentMeta),
        out: Output,
    ) -> Self {
        Self {
            device: Arc::clone(device),
            number,
            meta,
            find_vectors: |_, _| Vec::new(),
            out,
            records: Vec::new(),
            data: Vec::with_capacity(BLOCK_BYTES_MAX),
            group_start: 0,
            space_bytes: 0,
            is_large: false,
            entries: Vec::new(),
            fences: Vec::new(),
            block_last_key: Vec::new(),
            last_key: Vec::new(),
            hashes: Vec::new(),
            cells: 0,
            finished: false,
            stop: Stop::default(),
        }
    }

    /// Where in its cells vectors of integers stand, so that they compress better.
    pub(crate) fn with_vectors(mut self, find_vectors: FindVectors) -> Self {
        self.find_vectors = find_vectors;
        self
    }

    /// Adding a cell is `Cancelled` from then on.
    pub(crate) fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// As long as this is set, what is written is overwritten before the file is removed.
    pub(crate) fn erasing(mut self, erases: &Arc<AtomicBool>) -> Self {
        self.out.erases = Arc::clone(erases);
        self
    }

    /// Bytes of the cells in the block being filled.
    fn filled(&self) -> usize {
        self.records.len() * RECORD_BYTES + self.data.len()
    }

    /// Adds a cell; its key is above that of the cell before it.
    pub(crate) fn push(&mut self, key: &[u8], cell: &[u8]) -> Result<()> {
        self.push_behind(0, key, cell)
    }

    /// The same of a key that begins with so many bytes as that of the cell before it does.
    #[inline]
    pub(crate) fn push_behind(&mut self, alike: usize, key: &[u8], cell: &[u8]) -> Result<()> {
        self.stop.check()?;
        let shared = alike + shared_bytes(&key[alike..], &self.last_key[alike..]);
        assert!(
            key.get(shared) > self.last_key.get(shared),
            "cell keys must rise: {key:02x?} came after {:02x?}",
            self.last_key
        );
        assert!(key.len() <= CELL_KEY_BYTES_MAX, "a cell key of {} bytes", key.len());
        assert!(cell.len() <= CELL_BYTES_MAX, "a cell of {} bytes", cell.len());
        let bytes = RECORD_BYTES + key.len() + cell.len();
        let is_same_space = shared >= SPACE_PREFIX_BYTES;
        self.space_bytes = if is_same_space { self.space_bytes + bytes } else { bytes };
        self.make_room(bytes, shared >= GROUP_PREFIX_BYTES)?;
        self.note_key(key, shared >= TREE_PREFIX_BYTES);
        let record = Record { at: small(self.data.len()), key_len: small(key.len()) };
        if bytes > BLOCK_ROOM {
            let parts = [record.as_bytes(), key, cell];
            let compressed = self.compressed(1, &parts);
            return self.write_block_of_cells((key, key), 1, (compressed, &parts));
        }
        self.records.push(record);
        self.data.extend_from_slice(key);
        self.data.extend_from_slice(cell);
        Ok(())
    }

    /// Counts a cell, and remembers its key for the filter.
    fn note_key(&mut self, key: &[u8], is_same_tree: bool) {
        self.hashes.push(KeyHash::of(key));
        if !is_same_tree {
            self.hashes.extend(KeyHash::of_tree(key));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.cells += 1;
    }

    /// Writes blocks until a cell of so many bytes fits the one being filled, or that is empty.
    fn make_room(&mut self, bytes: usize, is_same_group: bool) -> Result<()> {
        if !is_same_group && self.is_large {
            self.write_cells(self.records.len())?;
            self.is_large = false;
        }
        while !self.records.is_empty() && self.filled() + bytes > self.room(bytes) {
            if is_same_group && self.group_start > 0 {
                self.write_cells(self.group_start)?;
            } else if is_same_group && self.may_be_small() {
                self.is_large = true;
                self.write_cells(self.cells_of_small_block(bytes))?;
            } else {
                self.write_cells(self.records.len())?;
            }
        }
        if !is_same_group {
            self.group_start = self.records.len();
        }
        Ok(())
    }

    /// Whether a group that takes more than a block stands in small ones.
    fn may_be_small(&self) -> bool {
        self.meta.encoding == Encoding::Warm || self.space_bytes > DENSE_BYTES
    }

    /// Bytes of cells that the block being filled may have, one of so many bytes among them.
    fn room(&self, bytes: usize) -> usize {
        let are_tiny = self.filled() + bytes <= TINY_BYTES * (self.records.len() + 1);
        match self.meta.encoding {
            _ if !self.is_large => BLOCK_ROOM,
            Encoding::Cold if are_tiny => TINY_BLOCK_ROOM,
            Encoding::Cold | Encoding::Warm => SMALL_BLOCK_ROOM,
        }
    }

    /// How many of the cells of the block being filled make a small one: one at least.
    fn cells_of_small_block(&self, bytes: usize) -> usize {
        let room = self.room(bytes);
        let ends = self.records.iter().skip(1).map(|next| usize::from(next.at.get()));
        let ends = (1..).zip(ends.chain([self.data.len()]));
        let fitting = ends.take_while(|(cells, end)| cells * RECORD_BYTES + end <= room);
        fitting.last().map_or(1, |(cells, _)| cells)
    }

    /// Whether all of its keys are before another one.
    pub(crate) fn is_before(&self, key: &[u8]) -> bool {
        self.last_key.as_slice() < key
    }

    /// Bytes that are held of the cells that were pushed.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of_val(&*self.hashes)
    }

    /// Gives the segment up: what was written is overwritten before the file is removed.
    pub(crate) fn erase(self) -> Result<()> {
        self.out.erase()
    }

    /// Completes the file and makes it durable, its name too; at least one cell was pushed.
    pub(crate) fn finish(self) -> Result<SegmentInfo> {
        let (first, last) = (self.meta.first_sequence, self.meta.last_sequence);
        let mut filled = self.complete()?;
        let info = filled.write_footer(first, last)?;
        filled.sync()?;
        // The directory is synced too: a segment that no directory entry names is lost with the
        // power.
        let synced = filled.device.sync_dir(DIRECTORY);
        synced.map_err(|error| Error::io(format!("cannot sync {DIRECTORY}"), error))?;
        filled.keep();
        Ok(info)
    }

    /// Makes everything but the footer durable, for a segment whose commit comes later.
    pub(crate) fn fill(self) -> Result<FilledSegment> {
        let filled = self.complete()?;
        filled.sync()?;
        Ok(filled)
    }

    fn complete(mut self) -> Result<FilledSegment> {
        assert!(self.cells > 0, "a segment without cells");
        self.write_cells(self.records.len())?;
        let (lanes, count) = filter::build(&self.hashes, self.meta.encoding);
        let filter = self.out.block(self.number, BlockKind::Filter, count, &[&lanes])?;
        let blocks = length(self.entries.len());
        let parts = [self.entries.as_bytes(), &self.fences, &self.last_key];
        let index = self.out.block(self.number, BlockKind::Index, blocks, &parts)?;
        self.out.flush()?;
        self.finished = true;
        let out = Output {
            file: Arc::clone(&self.out.file),
            path: std::mem::take(&mut self.out.path),
            buffer: Vec::new(),
            flushed: self.out.flushed,
            erases: Arc::clone(&self.out.erases),
        };
        Ok(FilledSegment {
            device: Arc::clone(&self.device),
            number: self.number,
            meta: self.meta,
            footer_at: out.flushed,
            out,
            cells: self.cells,
            index,
            filter,
            kept: false,
        })
    }

    /// Writes a block of the first `count` cells of the one being filled, if it has any; the others
    /// begin the next one.
    fn write_cells(&mut self, count: usize) -> Result<()> {
        let Some(last) = count.checked_sub(1) else { return Ok(()) };
        let mut records = std::mem::take(&mut self.records);
        let mut data = std::mem::take(&mut self.data);
        let key = |record: &Record| {
            let at = usize::from(record.at.get());
            data[at..at + usize::from(record.key_len.get())].to_vec()
        };
        let keys = (key(&records[0]), key(&records[last]));
        let end = records.get(count).map_or(data.len(), |record| record.at.get().into());
        let parts = [records[..count].as_bytes(), &data[..end]];
        let shortened = || Some((SHORTENED, shorten(&records[..count], &data[..end])?));
        let encoded = self.compressed(count, &parts).or_else(shortened);
        self.write_block_of_cells((&keys.0, &keys.1), count, (encoded, &parts))?;
        data.drain(..end);
        records.drain(..count);
        for record in &mut records {
            record.at = small(usize::from(record.at.get()) - end);
        }
        self.group_start = self.group_start.saturating_sub(count);
        (self.records, self.data) = (records, data);
        Ok(())
    }

    /// The body of a block, compressed, where that is worth it.
    fn compressed(&self, cells: usize, parts: &[&[u8]]) -> Option<Encoded> {
        match self.meta.encoding {
            Encoding::Warm => None,
            Encoding::Cold => {
                compression::compress(&parts.concat().into(), cells, self.find_vectors)
            }
        }
    }

    /// Writes a block, its body encoded if it is to be.
    fn write_block_of_cells(
        &mut self,
        (first_key, last_key): (&[u8], &[u8]),
        cells: usize,
        (encoded, parts): (Option<Encoded>, &[&[u8]]),
    ) -> Result<()> {
        let what = (self.number, BlockKind::Cells, length(cells));
        let block = match encoded {
            Some((way, body)) => self.out.block_of(what, way, &[&body])?,
            None => self.out.block_of(what, PLAIN, parts)?,
        };
        self.note_block(block, (first_key, last_key), cells);
        let index = size_of_val(&*self.entries) + self.fences.len() + CELL_KEY_BYTES_MAX;
        check_guide(index, filter::bytes(self.hashes.len(), self.meta.encoding))
    }

    /// Remembers a block for the index.
    fn note_block(
        &mut self,
        block: BlockAddress,
        (first_key, last_key): (&[u8], &[u8]),
        cells: usize,
    ) {
        let fence = match cells {
            1 => first_key,
            _ => shortest_fence(&self.block_last_key, first_key),
        };
        self.entries.push(IndexEntry {
            block,
            fence_at: length(self.fences.len()).into(),
            fence_len: small(fence.len()),
            cells: small(cells),
        });
        self.fences.extend_from_slice(fence);
        self.block_last_key.clear();
        self.block_last_key.extend_from_slice(last_key);
    }
}

impl Drop for SegmentWriter {
    fn drop(&mut self) {
        if !self.finished {
            self.out.remove(self.device.as_ref());
        }
    }
}

/// A segment that wants its footer only. Dropped before it is [kept](Self::keep), it removes its
/// file.
#[derive(Debug)]
pub(crate) struct FilledSegment {
    device: Arc<dyn Device>,
    number: u64,
    meta: SegmentMeta,
    footer_at: u64,
    out: Output,
    cells: u64,
    index: BlockAddress,
    filter: BlockAddress,
    kept: bool,
}

impl FilledSegment {
    /// Completes the file: its cells are those of the commit `sequence`. Until a manifest names
    /// the segment it can be completed anew. It is durable once it is [synced](Self::sync), and its
    /// directory.
    pub(crate) fn seal(&mut self, sequence: CommitSequence) -> Result<SegmentInfo> {
        self.write_footer(sequence, sequence)
    }

    /// Makes what the file has durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.out.sync()
    }

    /// The file stays.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }

    fn write_footer(&mut self, first: CommitSequence, last: CommitSequence) -> Result<SegmentInfo> {
        let footer = Footer {
            format: FORMAT.into(),
            level: self.meta.level,
            encoding: self.meta.encoding as u8,
            reserved: U16::ZERO,
            features_read: U64::ZERO,
            features_write: U64::ZERO,
            database_id: self.meta.database_id.into(),
            epoch: self.meta.epoch.into(),
            first_sequence: first.0.into(),
            last_sequence: last.0.into(),
            cells: self.cells.into(),
            index: self.index,
            filter: self.filter,
        };
        self.out.flushed = self.footer_at;
        let footer = self.out.block(self.number, BlockKind::Footer, 1, &[footer.as_bytes()])?;
        assert_eq!(footer.length.get() as usize, FOOTER_BYTES);
        self.out.flush()?;
        Ok(SegmentInfo {
            number: self.number,
            footer,
            cells: self.cells,
            level: self.meta.level,
            encoding: self.meta.encoding,
            first_sequence: first,
            last_sequence: last,
        })
    }
}

impl Drop for FilledSegment {
    fn drop(&mut self) {
        if !self.kept {
            self.out.remove(self.device.as_ref());
        }
    }
}

/// The file and what is not yet written to it.
#[derive(Debug)]
struct Output {
    file: Arc<dyn File>,
    path: String,
    buffer: Vec<u8>,
    /// Bytes written to the file.
    flushed: u64,
    /// Whether these are overwritten before the file is removed.
    erases: Arc<AtomicBool>,
}

impl Output {
    fn new(file: Arc<dyn File>, path: String, (buffer, flushed): (Vec<u8>, u64)) -> Self {
        Self { file, path, buffer, flushed, erases: Arc::default() }
    }

    /// Appends a block whose body is `parts` one after the other.
    fn block(
        &mut self,
        segment: u64,
        kind: BlockKind,
        items: u32,
        parts: &[&[u8]],
    ) -> Result<BlockAddress> {
        self.block_of((segment, kind, items), PLAIN, parts)
    }

    /// Appends a block whose body, compressed in a way or not, is `parts`.
    fn block_of(
        &mut self,
        (segment, kind, items): (u64, BlockKind, u32),
        compression: u8,
        parts: &[&[u8]],
    ) -> Result<BlockAddress> {
        let offset = self.flushed + self.buffer.len() as u64;
        let bytes = HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut header = BlockHeader {
            checksum: U32::ZERO,
            kind: kind as u8,
            compression,
            reserved: [0; 2],
            length: length(bytes).into(),
            items: items.into(),
            segment: segment.into(),
            offset: offset.into(),
        };
        let covered = crc32c::crc32c(&header.as_bytes()[size_of::<U32>()..]);
        let checksum = parts.iter().fold(covered, |sum, part| crc32c::crc32c_append(sum, part));
        header.checksum = checksum.into();
        self.append(header.as_bytes())?;
        parts.iter().try_for_each(|part| self.append(part))?;
        Ok(BlockAddress { offset: offset.into(), length: header.length, checksum: header.checksum })
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > WRITE_BYTES {
            self.flush()?;
        }
        if bytes.len() > WRITE_BYTES {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.write(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        io::write_all_at(self.file.as_ref(), bytes, self.flushed)
            .map_err(|error| Error::io(format!("cannot write {}", self.path), error))?;
        self.flushed += bytes.len() as u64;
        Ok(())
    }

    /// Removes the file. It is cut first: a process that is being started has it open until it
    /// runs its program, and keeps its room as long.
    fn remove(&self, device: &dyn Device) {
        if self.erases.load(Ordering::Relaxed) {
            let _ = self.erase();
        }
        let _ = self.file.set_len(0);
        // One that stays is named by no manifest, so the next open removes it.
        let _ = device.remove(&self.path);
    }

    /// Overwrites what is written, durably.
    fn erase(&self) -> Result<()> {
        let erased = zeros::write(self.file.as_ref(), 0, self.flushed);
        erased
            .and_then(|()| self.file.sync())
            .map_err(|error| Error::io(format!("cannot overwrite {}", self.path), error))
    }

    /// Makes durable what is written.
    fn sync(&self) -> Result<()> {
        let synced = self.file.sync();
        synced.map_err(|error| Error::io(format!("cannot sync {}", self.path), error))
    }
}

/// Refuses what makes the index or the filter, of so many bytes, larger than a block can be.
fn check_guide(index: usize, filter: usize) -> Result<()> {
    if index.max(filter) <= GUIDE_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the segment would be too large: its index takes {index} bytes and its filter {filter}, \
         each may have {GUIDE_BYTES_MAX}; keep less (\"duramen retain\"), or leave segments apart"
    );
    Err(Error::new(ErrorKind::Full, message))
}

/// The shortest prefix of `first_key` that is above `before`, the last key of the block before.
fn shortest_fence<'a>(before: &[u8], first_key: &'a [u8]) -> &'a [u8] {
    &first_key[..=shared_bytes(before, first_key)]
}

/// How many bytes two keys begin with alike.
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let ((words, _), (others, _)) = (a.as_chunks(), b.as_chunks());
    let mut shared = 0;
    for (word, other) in words.iter().zip(others) {
        let difference = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if difference != 0 {
            return shared + difference.trailing_zeros() as usize / 8;
        }
        shared += size_of::<u64>();
    }
    // The words at the ends of keys of one length, which begin before what is left of them.
    if a.len() == b.len()
        && let (Some(word), Some(other)) = (a.last_chunk(), b.last_chunk())
    {
        let difference = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        return a.len() - size_of::<u64>() + difference.trailing_zeros() as usize / 8;
    }
    let (a, b) = (&a[shared..], &b[shared..]);
    shared + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn small(number: usize) -> U16 {
    U16::new(u16::try_from(number).expect("a block has under 64 Ki cells and bytes"))
}

fn length(number: usize) -> u32 {
    u32::try_from(number).expect("a block has under 4 GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_share_what_they_begin_with_whatever_their_lengths_are() {
        let key: Vec<u8> = (0..40).collect();
        for len in 0..key.len() {
            for at in 0..len {
                let mut other = key[..len].to_vec();
                other[at] ^= 0x80;
                assert_eq!(shared_bytes(&key, &other), at);
                assert_eq!(shared_bytes(&other, &key), at);
                assert_eq!(shared_bytes(&other, &key[..len]), at);
            }
            assert_eq!(shared_bytes(&key, &key[..len]), len);
            assert_eq!(shared_bytes(&key[..len], &key), len);
            assert_eq!(shared_bytes(&key[..len], &key[..len]), len);
        }
    }

    /// It ended the process once, where `length` found it out.
    #[test]
    fn an_index_or_a_filter_of_4_gib_is_refused_before_it_is_written() {
        check_guide(GUIDE_BYTES_MAX, GUIDE_BYTES_MAX).unwrap();
        for (index, filter) in [(GUIDE_BYTES_MAX + 1, 0), (0, GUIDE_BYTES_MAX + 1)] {
            let error = check_guide(index, filter).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Full, "{error}");
        }
        // What a block of the most cells adds fits all the same.
        let keys = 1 << 16;
        let more = filter::bytes(keys, Encoding::Warm).max(keys);
        assert!(GUIDE_BYTES_MAX + more + HEADER_BYTES < u32::MAX as usize);
    }
}
