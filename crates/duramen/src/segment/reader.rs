//! An open segment: its footer from the start, its index from the first look-up on, its filter once
//! that spares as much reading as it takes, its blocks of cells through the cache.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::ErrorKind as Os;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::block::{Block, BlockAddress, BlockKind, CellBlock, KeptBlock, Origin};
use super::cache::{BlockCache, BlockKey, CachedBlock};
use super::filter::{Filter, KeyHash, TREE_PREFIX_BYTES};
use super::footer::{FOOTER_BYTES, Footer};
use super::index::{Index, IndexEntry};
use super::{MAGIC, SegmentInfo};
use crate::damage::corrupt;
use crate::io::{self, Access, Device, File};
use crate::manifest::Manifest;
use crate::{Error, ErrorKind, Result};

/// So many bytes more in one read take about as long as a read of their own.
const READ_BYTES: u64 = 32 << 10;

/// The same of a look-up in a block that was read before.
const LOOK_UP_BYTES: u64 = 1 << 10;

/// A segment open for reading. Whoever holds it can read it, whatever became of its name.
#[derive(Debug)]
pub(crate) struct Segment {
    info: SegmentInfo,
    path: String,
    file: Arc<dyn File>,
    footer: Footer,
    index: OnceLock<Index>,
    filter: OnceLock<Filter>,
    /// About as many bytes as look-ups read in vain without it.
    vain_bytes: AtomicU64,
    /// The device of a database that may give the segment up: its manifest tells whether it did.
    database: Option<Arc<dyn Device>>,
}

/// What leads to the blocks of a segment.
#[derive(Debug)]
pub(super) struct Guide {
    pub(super) index: Index,
    pub(super) filter: Filter,
}

/// Where a cell is: the block, and the slot in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CellPosition {
    pub(crate) block: usize,
    pub(crate) slot: usize,
}

impl Segment {
    /// Opens a segment and reads its footer.
    pub(crate) fn open(device: &dyn Device, info: &SegmentInfo) -> Result<Arc<Self>> {
        let path = info.path();
        let file = match device.open(&path, Access::Read) {
            Err(error) if error.kind() == Os::NotFound => {
                return Err(corrupt(
                    &path,
                    0,
                    "segment",
                    "the file that the manifest names",
                    "none",
                ));
            }
            opened => opened.map_err(|error| Error::io(format!("cannot open {path}"), error))?,
        };
        let bytes = file
            .len()
            .map_err(|error| Error::io(format!("cannot get the size of {path}"), error))?;
        // What stands behind the footer is in nobody's way; a check tells of it.
        if bytes < info.file_bytes() {
            return Err(corrupt(&path, 0, "bytes of the file", info.file_bytes(), bytes));
        }
        let footer = read_footer(file.as_ref(), &path, info)?;
        Ok(Arc::new(Self {
            info: *info,
            path,
            file,
            footer,
            index: OnceLock::new(),
            filter: OnceLock::new(),
            vain_bytes: AtomicU64::new(0),
            database: None,
        }))
    }

    /// Opens a segment of a database in use, which a purge may overwrite while it is read.
    pub(crate) fn open_live(device: &Arc<dyn Device>, info: &SegmentInfo) -> Result<Arc<Self>> {
        let mut segment = Self::open(device.as_ref(), info)?;
        if let Some(segment) = Arc::get_mut(&mut segment) {
            segment.database = Some(Arc::clone(device));
        }
        Ok(segment)
    }

    /// What the manifest says of the segment.
    pub(crate) fn info(&self) -> &SegmentInfo {
        &self.info
    }

    pub(super) fn origin(&self) -> Origin<'_> {
        Origin { path: &self.path, segment: self.info.number }
    }

    pub(super) fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The file as it is, for copying.
    pub(crate) fn shared_file(&self) -> Arc<dyn File> {
        Arc::clone(&self.file)
    }

    pub(super) fn file(&self) -> &dyn File {
        self.file.as_ref()
    }

    /// Reads the index and the filter from the file.
    pub(super) fn read_guide(&self) -> Result<Guide> {
        Ok(Guide { index: self.read_index()?, filter: self.read_filter()? })
    }

    fn read_index(&self) -> Result<Index> {
        let index = self.read_block(&self.footer.index, BlockKind::Index)?;
        Index::decode(index, self.origin(), &self.footer)
    }

    fn read_filter(&self) -> Result<Filter> {
        let filter = self.read_block(&self.footer.filter, BlockKind::Filter)?;
        Filter::decode(filter, self.origin(), &self.footer.filter)
    }

    fn index(&self) -> Result<&Index> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        // Two first look-ups at once both read; that is cheaper than a lock on every look-up.
        let index = self.read_index()?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Whether the key with a hash may be in the segment; `false` is certain.
    pub(crate) fn may_have_key(&self, key: &[u8], hash: KeyHash) -> Result<bool> {
        match self.filter.get() {
            Some(filter) => Ok(filter.may_have(hash)),
            None => self.may_have_unfiltered(key, hash),
        }
    }

    /// Whether keys that begin so may be in the segment, as far as the hash of their tree tells;
    /// `false` is certain.
    pub(crate) fn may_have_prefix(&self, prefix: &[u8], tree: Option<KeyHash>) -> Result<bool> {
        let Some(tree) = tree else { return Ok(true) };
        if let Some(filter) = self.filter.get() {
            return Ok(filter.may_have(tree));
        }
        let of_tree = prefix.get(..TREE_PREFIX_BYTES).unwrap_or(prefix);
        if self.index()?.has_fence(of_tree) {
            return Ok(true);
        }
        // A tree without a fence is seldom there, and its scan looks at one block.
        self.vain_bytes.fetch_add(LOOK_UP_BYTES, Ordering::Relaxed);
        self.may_have_unfiltered(prefix, tree)
    }

    /// The same before the filter is read: of many small cells it is as large as thousands of their
    /// blocks, and it tells nothing to look-ups of what is there.
    #[cold]
    fn may_have_unfiltered(&self, begin: &[u8], hash: KeyHash) -> Result<bool> {
        if !self.index()?.is_among_keys(begin) {
            return Ok(false);
        }
        let bytes = self.vain_bytes.load(Ordering::Relaxed).saturating_add(READ_BYTES);
        if bytes < self.footer.filter.length.get().into() {
            return Ok(true);
        }
        let filter = self.read_filter()?;
        Ok(self.filter.get_or_init(|| filter).may_have(hash))
    }

    /// The cell with this key.
    pub(crate) fn get(&self, cache: &BlockCache, key: &[u8]) -> Result<Option<Bytes>> {
        let index = self.index()?;
        let Some(block) = index.block_for(key) else { return Ok(None) };
        let Some((entry, fence)) = index.get(block) else { return Ok(None) };
        if entry.is_single() && fence != key {
            return Ok(None);
        }
        let key_of_block = BlockKey { segment: self.info.number, block };
        let mut bytes = LOOK_UP_BYTES;
        let cached = cache.get_or_insert_with(&key_of_block, || {
            bytes = READ_BYTES.saturating_add(entry.block.length.get().into());
            let kept = self.read_kept(&entry.block, BlockKind::Cells)?;
            let short = kept.short_cells();
            Ok(match short.filter(|short| short.len() == usize::from(entry.cells.get())) {
                Some(short) => CachedBlock::Short(short),
                None => CachedBlock::Cells(self.cells_of(kept, &entry)?),
            })
        })?;
        let found = match cached {
            CachedBlock::Cells(cells) => cells.find(key).map(|slot| cells.cell(slot)),
            CachedBlock::Short(short) => {
                let found = short.find(key).map_err(|_| self.not_shortened(&entry))?;
                found.map(|cell| Bytes::copy_from_slice(&cell))
            }
        };
        if found.is_none() && self.filter.get().is_none() {
            self.vain_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(found)
    }

    /// Where the cell with the greatest key at or before `key` is.
    pub(crate) fn at_or_before(
        &self,
        cache: &BlockCache,
        key: &[u8],
    ) -> Result<Option<CellPosition>> {
        let index = self.index()?;
        let Some(block) = index.block_for(key) else { return Ok(None) };
        let Some((entry, _)) = index.get(block) else { return Ok(None) };
        if entry.is_single() {
            return Ok(Some(CellPosition { block, slot: 0 }));
        }
        let cells = self.block(cache, block)?;
        let after = cells.at_or_after(key);
        if after < cells.len() && cells.key(after) == key {
            return Ok(Some(CellPosition { block, slot: after }));
        }
        if let Some(slot) = after.checked_sub(1) {
            return Ok(Some(CellPosition { block, slot }));
        }
        // The fence is at or before `key`, but every key of the block is after it.
        let Some(block) = block.checked_sub(1) else { return Ok(None) };
        let last = index.get(block).and_then(|(entry, _)| entry.cells.get().checked_sub(1));
        Ok(last.map(|slot| CellPosition { block, slot: slot.into() }))
    }

    /// Where the cell with the least key at or after `key` is, or would be.
    pub(crate) fn at_or_after(&self, cache: &BlockCache, key: &[u8]) -> Result<CellPosition> {
        let index = self.index()?;
        let block = index.block_for(key).unwrap_or(0);
        let Some((entry, fence)) = index.get(block) else {
            return Ok(CellPosition { block, slot: 0 });
        };
        let slot = match () {
            () if fence >= key => 0,
            () if entry.is_single() => 1,
            () => self.block(cache, block)?.at_or_after(key),
        };
        Ok(CellPosition { block, slot })
    }

    /// Blocks of cells in the segment.
    pub(crate) fn blocks(&self) -> Result<usize> {
        Ok(self.index()?.len())
    }

    /// The index entry of a block, and its fence.
    pub(crate) fn entry(&self, block: usize) -> Result<Option<(IndexEntry, Bytes)>> {
        Ok(self.index()?.get(block))
    }

    /// A block of cells, from the cache if it is there.
    pub(crate) fn block(&self, cache: &BlockCache, block: usize) -> Result<CellBlock> {
        let key = BlockKey { segment: self.info.number, block };
        let found = cache.get_or_insert_with(&key, || {
            self.read_cells(&self.entry_of(block)?).map(CachedBlock::Cells)
        })?;
        let short = match found {
            CachedBlock::Cells(cells) => return Ok(cells),
            CachedBlock::Short(short) => short,
        };
        let entry = self.entry_of(block)?;
        let body = short.lengthen().ok_or_else(|| self.not_shortened(&entry))?;
        let block = Block { items: u32::from(entry.cells.get()), body };
        let cells = CellBlock::decode(block, self.origin(), &entry.block, entry.cells.get())?;
        cache.replace(key, &cells);
        Ok(cells)
    }

    /// The same, which does not stay in the cache if it is not there.
    pub(crate) fn block_in_passing(&self, cache: &BlockCache, block: usize) -> Result<CellBlock> {
        let key = BlockKey { segment: self.info.number, block };
        match cache.get(&key) {
            Some(CachedBlock::Cells(cells)) => Ok(cells),
            Some(CachedBlock::Short(_)) | None => self.read_cells(&self.entry_of(block)?),
        }
    }

    pub(super) fn entry_of(&self, block: usize) -> Result<IndexEntry> {
        let Some((entry, _)) = self.entry(block)? else {
            let expected = format!("fewer than {}", self.blocks()?);
            let offset = self.footer.index.offset.get();
            return Err(corrupt(&self.path, offset, "number of a block", expected, block));
        };
        Ok(entry)
    }

    /// Reads and verifies a block of cells, past the cache.
    pub(super) fn read_cells(&self, entry: &IndexEntry) -> Result<CellBlock> {
        self.cells_of(self.read_kept(&entry.block, BlockKind::Cells)?, entry)
    }

    pub(super) fn cells_of(&self, kept: KeptBlock, entry: &IndexEntry) -> Result<CellBlock> {
        let block = kept.open(self.origin(), &entry.block)?;
        CellBlock::decode(block, self.origin(), &entry.block, entry.cells.get())
    }

    #[cold]
    fn not_shortened(&self, entry: &IndexEntry) -> Error {
        let offset = entry.block.offset.get();
        corrupt(&self.path, offset, "body", "shortened cells", "something else")
    }

    fn read_block(&self, address: &BlockAddress, kind: BlockKind) -> Result<Block> {
        self.read_kept(address, kind)?.open(self.origin(), address)
    }

    fn read_kept(&self, address: &BlockAddress, kind: BlockKind) -> Result<KeptBlock> {
        // The footer's decoding found its blocks to end before it, the index's found its own to
        // end before the filter; so no length is more than the file has.
        let block = read_kept(self.file.as_ref(), self.origin(), address, kind);
        block.map_err(|error| if self.is_overwritten() { self.overwritten() } else { error })
    }

    /// Whether a purge overwrote the file: it begins with zeros then, and the manifest does not
    /// name it any more. Zeros in one that it names are damage.
    fn is_overwritten(&self) -> bool {
        let Some(device) = &self.database else { return false };
        let mut magic = MAGIC;
        io::read_exact_at(self.file.as_ref(), &mut magic, 0).is_ok_and(|()| magic == [0; 8])
            && Manifest::load(device.as_ref()).is_ok_and(|now| {
                let is_this = |named: &SegmentInfo| named.number == self.info.number;
                !now.is_some_and(|now| now.segments.iter().any(is_this))
            })
    }

    /// Refuses a segment of which the file may have been read while a purge overwrote it.
    pub(crate) fn check_not_overwritten(&self) -> Result<()> {
        if self.is_overwritten() { Err(self.overwritten()) } else { Ok(()) }
    }

    /// What does not verify, unless a purge overwrote it.
    pub(super) fn unless_overwritten(&self, findings: Vec<Error>) -> Vec<Error> {
        if !findings.is_empty() && self.is_overwritten() {
            return vec![self.overwritten()];
        }
        findings
    }

    #[cold]
    fn overwritten(&self) -> Error {
        let message = format!(
            "{} was written anew without a value that was purged: read again, or refresh a \
             database that was opened for reading",
            self.path
        );
        Error::new(ErrorKind::Busy, message)
    }
}

/// Reads the footer that `info` names.
pub(super) fn read_footer(file: &dyn File, path: &str, info: &SegmentInfo) -> Result<Footer> {
    let address = &info.footer;
    let length = address.length.get() as usize;
    let before = (MAGIC.len() as u64).saturating_add(address.length.get().into());
    // A newer format may have a longer footer, which must verify before it can say so.
    if length < FOOTER_BYTES || info.file_bytes() < before {
        return Err(corrupt(
            path,
            address.offset.get(),
            "length of the footer",
            FOOTER_BYTES,
            length,
        ));
    }
    let origin = Origin { path, segment: info.number };
    let block = read_kept(file, origin, address, BlockKind::Footer)?.open(origin, address)?;
    Footer::decode(&block, origin, address)
}

fn read_kept(
    file: &dyn File,
    origin: Origin<'_>,
    address: &BlockAddress,
    kind: BlockKind,
) -> Result<KeptBlock> {
    let length = address.length.get() as usize;
    let offset = address.offset.get();
    let bytes = io::read_vec_at(file, length, offset).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            let found = file.len().unwrap_or_default().saturating_sub(offset);
            corrupt(origin.path, offset, "bytes to the end of the file", length, found)
        }
        _ => Error::io(format!("cannot read {} at {offset}", origin.path), error),
    })?;
    KeptBlock::verify(&bytes.into(), origin, address, kind)
}
