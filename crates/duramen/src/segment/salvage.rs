//! Reads what verifies of a segment file that may be damaged anywhere.
//!
//! With an index that verifies every block of cells is known, and a damaged one by its fence.
//! Without one the file is walked from block to block; where no block begins, it is searched for
//! the next header that says where it is itself.
//!
//! Invariants:
//! - what is visited has the checksum, the segment and the place that its header says;
//! - keys are visited rising; whatever may have stood between two of them is told as lost.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use bytes::Bytes;
use zerocopy::FromBytes;

use super::block::{Block, BlockAddress, BlockHeader, BlockKind, CellBlock, HEADER_BYTES, Origin};
use super::footer::{FOOTER_BYTES, Footer};
use super::index::Index;
use super::{DIRECTORY, MAGIC, SegmentInfo, file_name, path};
use crate::io::{self, Access, Device, File};
use crate::{CommitSequence, Error, Result};

/// Keys between which cells are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostKeys {
    /// No lost key is below it.
    pub(crate) low: Vec<u8>,
    /// Every lost key is below it; none if that is not known.
    pub(crate) high: Option<Vec<u8>>,
}

impl LostKeys {
    /// Whether a key that begins with `prefix` may be lost.
    pub(crate) fn may_have(&self, prefix: &[u8]) -> bool {
        let is_before = self.high.as_ref().is_some_and(|high| high.as_slice() <= prefix);
        !is_before && (self.low.starts_with(prefix) || self.low.as_slice() <= prefix)
    }
}

/// What comes of a damaged file, part by part.
#[derive(Debug)]
pub(crate) enum Part {
    Cells(CellBlock),
    Lost(LostKeys),
}

/// Takes the parts of a damaged file.
pub(crate) type VisitPart<'v> = dyn FnMut(Part) -> Result<()> + 'v;

/// A segment file that may be damaged.
#[derive(Debug)]
pub(crate) struct DamagedSegment {
    number: u64,
    path: String,
    file: Arc<dyn File>,
    bytes: u64,
    footer: Option<(BlockAddress, Footer)>,
}

/// The numbers of the segment files of a database, rising.
pub(crate) fn numbers(device: &dyn Device) -> Result<Vec<u64>> {
    let names = match device.list(DIRECTORY) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(|error| Error::io("cannot list segments", error))?,
    };
    // Those that others have put there under such a name are none.
    let number = |name: String| {
        let number = name.strip_suffix(".segment")?.parse().ok()?;
        (file_name(number) == name).then_some(number)
    };
    let mut numbers: Vec<u64> = names.into_iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

impl DamagedSegment {
    /// Opens the file of a segment and looks for its footer at its end.
    pub(crate) fn open(device: &dyn Device, number: u64) -> Result<Self> {
        let path = path(number);
        let file = device
            .open(&path, Access::Read)
            .map_err(|error| Error::io(format!("cannot open {path}"), error))?;
        let bytes = file
            .len()
            .map_err(|error| Error::io(format!("cannot get the size of {path}"), error))?;
        let mut segment = Self { number, path, file, bytes, footer: None };
        segment.footer = segment.find_footer()?;
        Ok(segment)
    }

    /// The first so many bytes of a file that has no footer yet.
    pub(super) fn begun((number, path): (u64, &str), file: Arc<dyn File>, bytes: u64) -> Self {
        Self { number, path: path.to_owned(), file, bytes, footer: None }
    }

    /// The block of cells that begins at `offset`, if it verifies.
    pub(super) fn cells_at(&self, offset: u64) -> Result<Option<(BlockAddress, CellBlock)>> {
        let Some((address, block)) = self.block_at(offset, BlockKind::Cells)? else {
            return Ok(None);
        };
        Ok(self.cells(block, &address).map(|cells| (address, cells)))
    }

    /// What a manifest would say of it; none if its footer does not verify.
    pub(crate) fn info(&self) -> Option<SegmentInfo> {
        let (address, footer) = self.footer.as_ref()?;
        Some(SegmentInfo {
            number: self.number,
            footer: *address,
            cells: footer.cells.get(),
            level: footer.level,
            encoding: super::Encoding::from_byte(footer.encoding)?,
            first_sequence: CommitSequence(footer.first_sequence.get()),
            last_sequence: CommitSequence(footer.last_sequence.get()),
        })
    }

    /// The database it says it is of; none if its footer does not verify.
    pub(crate) fn database(&self) -> Option<u128> {
        self.footer.as_ref().map(|(_, footer)| footer.database_id.get())
    }

    /// Visits every block of cells that verifies, and the keys lost between them.
    pub(crate) fn salvage(&self, visit: &mut VisitPart<'_>) -> Result<()> {
        let mut salvage = Salvage { visit, last: None, is_lost: false, fence: Vec::new() };
        match self.index()? {
            Some(index) => self.follow(&index, &mut salvage)?,
            None => self.walk(&mut salvage)?,
        }
        salvage.end()
    }

    fn origin(&self) -> Origin<'_> {
        Origin { path: &self.path, segment: self.number }
    }

    fn find_footer(&self) -> Result<Option<(BlockAddress, Footer)>> {
        let Some(offset) = self.bytes.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let Some((address, block)) = self.block_at(offset, BlockKind::Footer)? else {
            return Ok(None);
        };
        match Footer::decode(&block, self.origin(), &address) {
            Ok(footer) => Ok(Some((address, footer))),
            Err(error) if error.kind() == crate::ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn index(&self) -> Result<Option<Index>> {
        let Some((_, footer)) = &self.footer else { return Ok(None) };
        let Some(block) = self.read(&footer.index, BlockKind::Index)? else { return Ok(None) };
        Ok(Index::decode(block, self.origin(), footer).ok())
    }

    fn follow(&self, index: &Index, salvage: &mut Salvage<'_>) -> Result<()> {
        for number in 0..index.len() {
            let Some((entry, fence)) = index.get(number) else { break };
            salvage.fence_at(&fence)?;
            let block = self.read(&entry.block, BlockKind::Cells)?;
            let cells = block.and_then(|block| self.cells(block, &entry.block));
            salvage.take(cells)?;
        }
        let end = [index.last_key(), &[0]].concat();
        salvage.fence_at(&end)
    }

    fn walk(&self, salvage: &mut Salvage<'_>) -> Result<()> {
        let mut offset = MAGIC.len() as u64;
        while offset < self.bytes {
            let Some((at, address, kind, block)) = self.next_block(offset)? else { break };
            if at != offset {
                salvage.take(None)?;
            }
            offset = address.end().unwrap_or(u64::MAX);
            if kind != BlockKind::Cells {
                // The cells end where the filter begins.
                return Ok(());
            }
            salvage.take(self.cells(block, &address))?;
        }
        // Whether more cells stood here nobody can tell.
        salvage.take(None)
    }

    fn cells(&self, block: Block, address: &BlockAddress) -> Option<CellBlock> {
        let count = u16::try_from(block.items).ok().filter(|&count| count > 0)?;
        CellBlock::decode(block, self.origin(), address, count).ok()
    }

    /// The first block at or after `offset` that verifies.
    fn next_block(&self, mut offset: u64) -> Result<Option<(u64, BlockAddress, BlockKind, Block)>> {
        const WINDOW_BYTES: usize = 1 << 20;
        let mut window = Vec::new();
        let mut start = offset;
        while let Some(left) = self.bytes.checked_sub(offset).filter(|&left| left > 0) {
            let skipped = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
            if window.len().saturating_sub(skipped) < HEADER_BYTES {
                let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW_BYTES);
                if bytes < HEADER_BYTES {
                    return Ok(None);
                }
                window.resize(bytes, 0);
                start = offset;
                self.read_bytes(offset, &mut window)?;
                continue;
            }
            let header = window.get(skipped..).unwrap_or_default();
            if let Some((address, kind)) = self.plausible(offset, header)
                && let Some(block) = self.read(&address, kind)?
            {
                return Ok(Some((offset, address, kind, block)));
            }
            offset = offset.saturating_add(1);
        }
        Ok(None)
    }

    /// The address that a header gives, if it says that it stands where it does.
    fn plausible(&self, offset: u64, bytes: &[u8]) -> Option<(BlockAddress, BlockKind)> {
        let (header, _) = BlockHeader::read_from_prefix(bytes).ok()?;
        let kinds = [BlockKind::Cells, BlockKind::Filter, BlockKind::Index, BlockKind::Footer];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == header.kind)?;
        let address = BlockAddress {
            offset: offset.into(),
            length: header.length,
            checksum: header.checksum,
        };
        let is_here = header.segment == self.number && header.offset == offset;
        let fits = header.length.get() as usize >= HEADER_BYTES && address.end()? <= self.bytes;
        (is_here && fits).then_some((address, kind))
    }

    /// The block of a kind that begins at `offset`, if it verifies.
    fn block_at(&self, offset: u64, kind: BlockKind) -> Result<Option<(BlockAddress, Block)>> {
        let mut header = [0; HEADER_BYTES];
        self.read_bytes(offset, &mut header)?;
        let Some((address, found)) = self.plausible(offset, &header) else { return Ok(None) };
        if found != kind {
            return Ok(None);
        }
        Ok(self.read(&address, kind)?.map(|block| (address, block)))
    }

    /// The block at an address that lies in the file, if it verifies.
    fn read(&self, address: &BlockAddress, kind: BlockKind) -> Result<Option<Block>> {
        if address.end().is_none_or(|end| end > self.bytes) {
            return Ok(None);
        }
        let mut bytes = vec![0; address.length.get() as usize];
        self.read_bytes(address.offset.get(), &mut bytes)?;
        Ok(Block::verify(&Bytes::from(bytes), self.origin(), address, kind).ok())
    }

    fn read_bytes(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        io::read_exact_at(self.file.as_ref(), bytes, offset)
            .map_err(|error| Error::io(format!("cannot read {} at {offset}", self.path), error))
    }
}

/// Where the keys of the parts visited so far end.
struct Salvage<'v> {
    visit: &'v mut VisitPart<'v>,
    /// The last key visited.
    last: Option<Vec<u8>>,
    /// Whether cells after it are lost.
    is_lost: bool,
    /// No key from here on is below it.
    fence: Vec<u8>,
}

impl Salvage<'_> {
    /// The next block has no key below its fence.
    fn fence_at(&mut self, fence: &[u8]) -> Result<()> {
        self.tell_lost(Some(fence))?;
        fence.clone_into(&mut self.fence);
        Ok(())
    }

    /// Takes the next block of cells; none if it does not verify.
    fn take(&mut self, cells: Option<CellBlock>) -> Result<()> {
        let Some(cells) = cells.filter(|cells| self.continues(cells)) else {
            self.is_lost = true;
            return Ok(());
        };
        self.tell_lost(Some(&cells.key(0)))?;
        self.last = cells.len().checked_sub(1).map(|last| cells.key(last).to_vec());
        (self.visit)(Part::Cells(cells))
    }

    fn end(mut self) -> Result<()> {
        self.tell_lost(None)
    }

    /// Whether the keys of a block rise, from the last one visited on.
    fn continues(&self, cells: &CellBlock) -> bool {
        let rise = (1..cells.len()).all(|slot| cells.key(slot.saturating_sub(1)) < cells.key(slot));
        rise && cells.len() > 0 && self.last.as_deref().is_none_or(|last| last < &*cells.key(0))
    }

    fn tell_lost(&mut self, high: Option<&[u8]>) -> Result<()> {
        if !std::mem::take(&mut self.is_lost) {
            return Ok(());
        }
        // A lost key is after the last one: the least key after it is it with a zero behind.
        let mut low = self.last.clone().unwrap_or_default();
        if self.last.is_some() {
            low.push(0);
        }
        let low = low.max(std::mem::take(&mut self.fence));
        (self.visit)(Part::Lost(LostKeys { low, high: high.map(<[u8]>::to_vec) }))
    }
}
