//! Blocks of segments as fuzzing makes them up: with whatever body, as if their checksum held.

use bytes::Bytes;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::block::{
    Block, BlockAddress, BlockHeader, BlockKind, CellBlock, HEADER_BYTES, Origin, Record,
};
use super::filter::{Filter, KeyHash};
use super::footer::Footer;
use super::index::{Index, IndexEntry};
use super::packing::{pack, unpack};
use super::salvage::DamagedSegment;
use super::shortening::{ShortCells, shorten};
use super::{MAGIC, Segment, path};
use crate::io::{Access, Device, MemoryDevice, write_all_at};
use crate::limits::BLOCK_BYTES_MAX;

const ORIGIN: Origin<'static> = Origin { path: "segment", segment: 1 };
/// Items are looked up at the most.
const LOOKED_UP_MAX: usize = 1_000;

/// A block out of its number of items, in 4 bytes, and its body; its address.
fn block(data: &[u8]) -> Option<(Block, BlockAddress)> {
    let (items, body) = data.split_first_chunk()?;
    let length = u32::try_from(HEADER_BYTES + body.len()).ok()?;
    let address = BlockAddress { offset: 8.into(), length: length.into(), checksum: 0.into() };
    let body = Bytes::copy_from_slice(body);
    Some((Block { items: u32::from_le_bytes(*items), body }, address))
}

/// A block of cells, and the same as something packed or shortened.
pub(crate) fn cells(data: &[u8]) {
    let Some((block, address)) = block(data) else { return };
    let Ok(count) = u16::try_from(block.items) else { return };
    let (body, how_many) = (block.body.clone(), usize::from(count));
    let unpacked = unpack(&body, (how_many, body.len()));
    assert!(unpacked.is_none_or(|unpacked| unpacked.len() == body.len()));
    let short = ShortCells::parse(body.clone(), how_many);
    let lengthened = short.as_ref().and_then(ShortCells::lengthen);
    assert!(lengthened.is_none_or(|body| body.len() <= BLOCK_BYTES_MAX));
    let _ = short.map(|short| short.find(data));
    let Ok(cells) = CellBlock::decode(block, ORIGIN, &address, count) else { return };
    for slot in 0..cells.len() {
        let key = cells.key(slot);
        assert!(key.len() + cells.cell(slot).len() <= data.len());
        assert!(cells.at_or_after(&key) <= cells.len());
        assert!(cells.find(&key).is_none_or(|found| found < cells.len()));
    }
    if how_many > 0 {
        let packed = pack(&body, how_many, |_, _| Vec::new()).unwrap_or_default();
        assert_eq!(unpack(&packed, (how_many, body.len())).as_deref(), Some(&body[..]));
        let parts = <[Record]>::ref_from_prefix_with_elems(&body, how_many);
        let Ok((records, data)) = parts else { return };
        // What is written rises and fits a block; anything else comes back otherwise or not.
        let keys: Vec<_> = (0..cells.len()).map(|slot| cells.key(slot)).collect();
        if body.len() <= BLOCK_BYTES_MAX - HEADER_BYTES
            && keys.is_sorted()
            && let Some(shortened) = shorten(records, data)
        {
            let short = ShortCells::parse(shortened.into(), how_many);
            assert_eq!(short.as_ref().and_then(ShortCells::lengthen).as_deref(), Some(&body[..]));
            let cell =
                |key: &Bytes| short.as_ref().and_then(|short| short.find(key).ok()).flatten();
            assert!(keys.iter().all(|key| cell(key).is_some()));
        }
    }
}

/// An index, in a segment that is as long as it says.
pub(crate) fn index(data: &[u8]) {
    let Some((block, address)) = block(data) else { return };
    let entries = <[IndexEntry]>::ref_from_prefix_with_elems(&block.body, block.items as usize);
    let Ok((entries, _)) = entries else { return };
    let length = |entry: &IndexEntry| u64::from(entry.block.length.get());
    let end = entries.iter().map(length).fold(MAGIC.len() as u64, u64::saturating_add);
    let cells: u64 = entries.iter().map(|entry| u64::from(entry.cells.get())).sum();
    let mut footer = Footer::new_zeroed();
    (footer.filter.offset, footer.cells, footer.index) = (end.into(), cells.into(), address);
    let Ok(index) = Index::decode(block, ORIGIN, &footer) else { return };
    for number in 0..index.len().min(LOOKED_UP_MAX) {
        let fence = index.get(number).map(|(_, fence)| fence).unwrap_or_default();
        assert_eq!(index.block_for(&fence), Some(number), "fences rise");
    }
    assert!(index.last_key().len() <= data.len() && index.get(index.len()).is_none());
}

/// A filter.
pub(crate) fn filter(data: &[u8]) {
    let Some((block, address)) = block(data) else { return };
    let Ok(filter) = Filter::decode(block, ORIGIN, &address) else { return };
    let _ = (filter.may_have(KeyHash::of(data)), KeyHash::of_tree(data));
}

/// A footer at the place that it says.
pub(crate) fn footer(data: &[u8]) {
    let Some((block, mut address)) = block(data) else { return };
    if let Ok((footer, _)) = Footer::read_from_prefix(&block.body) {
        address.offset = footer.index.end().unwrap_or(8).into();
    }
    if let Ok(footer) = Footer::decode(&block, ORIGIN, &address) {
        assert_eq!(footer.filter.end(), Some(footer.index.offset.get()));
    }
}

/// A whole file, every block that says where it is sealed anew.
pub(crate) fn file(data: &[u8]) {
    let mut bytes = data.to_vec();
    let mut at = MAGIC.len();
    while let Some(block) = bytes.get_mut(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        let Ok((mut header, _)) = BlockHeader::read_from_prefix(block) else { break };
        let length = (header.length.get() as usize).clamp(HEADER_BYTES, block.len());
        header.checksum = crc32c::crc32c(&block[4..length]).into();
        block[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        at += length;
    }
    let device = MemoryDevice::new();
    let written = device
        .open(&path(1), Access::Create)
        .and_then(|file| write_all_at(file.as_ref(), &bytes, 0));
    let Ok(damaged) =
        written.map_err(drop).and_then(|()| DamagedSegment::open(&device, 1).map_err(drop))
    else {
        return;
    };
    let mut last = Vec::new();
    let visited = damaged.salvage(&mut |part| {
        if let super::salvage::Part::Cells(cells) = part {
            for slot in 0..cells.len() {
                assert!(last.as_slice() < &*cells.key(slot) || last.is_empty(), "keys rise");
                last = cells.key(slot).to_vec();
            }
        }
        Ok(())
    });
    assert!(visited.is_ok(), "what does not verify is passed over");
    if let Some(info) = damaged.info()
        && let Ok(segment) = Segment::open(&device, &info)
    {
        let _ = segment.check(&mut |_, _| Ok(())).len();
    }
}

/// The blocks of a segment file, each with its kind, as [`block`] takes them.
pub(crate) fn blocks(file: &[u8]) -> Vec<(BlockKind, Vec<u8>)> {
    let mut blocks = Vec::new();
    let mut rest = file.get(MAGIC.len()..).unwrap_or_default();
    while let Ok((header, _)) = BlockHeader::read_from_prefix(rest) {
        let Some((block, after)) = rest.split_at_checked(header.length.get() as usize) else {
            break;
        };
        let kinds = [BlockKind::Cells, BlockKind::Filter, BlockKind::Index, BlockKind::Footer];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == header.kind);
        let (Some(kind), Some(body)) = (kind, block.get(HEADER_BYTES..)) else { break };
        blocks.push((kind, [header.items.as_bytes(), body].concat()));
        rest = after;
    }
    blocks
}
