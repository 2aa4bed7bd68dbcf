//! Segments: what is written is what is read, and what is damaged is told.

pub(crate) mod device;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use self::device::TestDevice;
use super::block::{Block, BlockKind, HEADER_BYTES, Origin, RECORD_BYTES};
use super::filter::Filter;
use super::footer::Footer;
use super::index::Index;
use super::*;
use crate::io::Device;
use crate::limits::BLOCK_BYTES_MAX;
use crate::{Error, ErrorKind, Result};

pub(crate) const META: SegmentMeta = SegmentMeta {
    database_id: 0x00d0_0d1e,
    epoch: 1,
    level: 0,
    encoding: Encoding::Warm,
    first_sequence: CommitSequence(1),
    last_sequence: CommitSequence(9),
};

/// A small generator (`SplitMix64`), so that a failing seed can be run again.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> usize {
        usize::try_from(self.next() % bound).unwrap()
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

pub(crate) type Cells = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn write(device: &Arc<dyn Device>, number: u64, cells: &Cells) -> SegmentInfo {
    write_as(Encoding::Warm, device, number, cells)
}

fn write_as(
    encoding: Encoding,
    device: &Arc<dyn Device>,
    number: u64,
    cells: &Cells,
) -> SegmentInfo {
    let meta = SegmentMeta { encoding, ..META };
    let mut writer = SegmentWriter::create(device, number, meta).unwrap();
    for (key, cell) in cells {
        writer.push(key, cell).unwrap();
    }
    writer.finish().unwrap()
}

/// Keys of a few trees, short ones among them, with cells from none to 300 KiB.
fn random_cells(random: &mut Random, count: usize) -> Cells {
    let mut cells = Cells::new();
    while cells.len() < count {
        let mut key = (random.next() % 7).to_be_bytes().to_vec();
        let more = random.below(16);
        key.extend(random.bytes(more));
        key.truncate(1 + random.below(key.len() as u64));
        let length = match random.below(100) {
            0 => random.below(300 << 10),
            1..=5 => random.below(40 << 10),
            _ => random.below(200),
        };
        cells.insert(key, random.bytes(length));
    }
    cells
}

fn small_cells() -> Cells {
    (0..12_u8)
        .map(|n| (u64::from(n << 3).to_be_bytes().to_vec(), vec![n; (n % 5).into()]))
        .collect()
}

/// Several blocks of small cells around one large cell.
fn mixed_cells() -> Cells {
    let mut random = Random(3);
    let mut cells: Cells =
        (0..300_u64).map(|n| (n.to_be_bytes().to_vec(), random.bytes(200))).collect();
    cells.insert([&150_u64.to_be_bytes()[..], b"large"].concat(), random.bytes(40 << 10));
    cells
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(1 << 20))
}

fn get_all(segment: &Segment, cells: &Cells) -> Vec<Result<Option<Bytes>>> {
    let cache = cache();
    cells.keys().map(|key| segment.get(&cache, key)).collect()
}

#[test]
fn entries_are_found_in_blocks_that_were_read_in_order_and_in_others() {
    let entry = |n: u64| ([&[7; 21], format!("{n:06}").as_bytes()].concat(), n.to_le_bytes());
    let cells: Cells = (0..5_000).map(|n| (entry(2 * n).0, entry(n).1.to_vec())).collect();
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let info = write(&device, 1, &cells);
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    assert!(info.file_bytes() < 24 * 5_000, "the blocks are shortened");
    let cache = cache();
    for is_read_in_order in [false, true] {
        for (key, cell) in &cells {
            let found = segment.get(&cache, key).unwrap();
            assert_eq!(found.as_deref(), Some(cell.as_slice()), "{is_read_in_order}");
            let absent = [key, b"0".as_slice()].concat();
            assert_eq!(segment.get(&cache, &absent).unwrap(), None, "{is_read_in_order}");
        }
        let mut keys = cells.keys();
        for block in 0..segment.blocks().unwrap() {
            let block = segment.block(&cache, block).unwrap();
            assert!((0..block.len()).all(|slot| Some(&block.key(slot).to_vec()) == keys.next()));
        }
        assert_eq!(keys.next(), None);
    }
}

#[test]
fn cells_of_every_size_come_back() {
    for seed in 0..12 {
        let mut random = Random(seed);
        let mut cells = random_cells(&mut random, 400);
        let device: Arc<dyn Device> = Arc::new(TestDevice::default());
        let encoding = if seed % 2 == 0 { Encoding::Warm } else { Encoding::Cold };
        if seed % 4 == 3 {
            // Else there is nothing to compress.
            for cell in cells.values_mut() {
                cell.fill(7);
            }
        }
        let info = write_as(encoding, &device, 1, &cells);
        let segment = Segment::open(device.as_ref(), &info).unwrap();
        for (cell, found) in cells.values().zip(get_all(&segment, &cells)) {
            assert_eq!(Some(&cell[..]), found.unwrap().as_deref(), "seed {seed}");
        }
        for _ in 0..200 {
            let length = 1 + random.below(12);
            let key = random.bytes(length);
            let found = segment.get(&cache(), &key).unwrap();
            assert_eq!(found.as_deref(), cells.get(&key).map(Vec::as_slice), "seed {seed}");
        }
        assert!(
            segment.check(&mut |_, _| Ok(())).is_empty(),
            "seed {seed}: {:?}",
            segment.check(&mut |_, _| Ok(()))
        );
    }
}

#[test]
fn blocks_stay_within_their_limit_and_a_large_cell_has_its_own() {
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let info = write(&device, 1, &mixed_cells());
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    let entries: Vec<_> =
        (0..segment.blocks().unwrap()).map(|n| segment.entry(n).unwrap().unwrap()).collect();
    let (single, packed): (Vec<_>, Vec<_>) = entries.iter().partition(|(e, _)| e.is_single());
    assert_eq!(single.len(), 1);
    assert_eq!(&single[0].1[8..], b"large");
    assert!(packed.len() >= 2);
    assert!(packed.iter().all(|(entry, _)| entry.block.length.get() as usize <= BLOCK_BYTES_MAX));
}

#[test]
fn opening_reads_the_footer_and_an_absent_tree_no_block() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let info = write(&shared, 1, &small_cells());
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    assert_eq!(device.reads(), 1);
    let may_have = |key: u64| {
        let key = key.to_be_bytes();
        segment.may_have_key(&key, KeyHash::of(&key)).unwrap()
    };
    assert!(!may_have(89) && !may_have(u64::MAX));
    assert_eq!(device.reads(), 2);
    assert!(!may_have(77));
    assert_eq!(device.reads(), 3);
    assert!(may_have(0) && may_have(8) && may_have(88));
    assert_eq!(device.reads(), 3);
}

#[test]
fn the_filter_of_many_cells_is_read_once_look_ups_have_read_as_much_in_vain() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let cell = |number: u64| ((2 * number).to_be_bytes().to_vec(), Vec::new());
    let info = write(&shared, 1, &(0..200_000).map(cell).collect());
    let (segment, cache) = (Segment::open(device.as_ref(), &info).unwrap(), cache());
    let may_have = |key: u64| {
        let key = key.to_be_bytes();
        segment.may_have_key(&key, KeyHash::of(&key)).unwrap()
    };
    let find = |key: u64| {
        let is_there = may_have(key) && segment.get(&cache, &key.to_be_bytes()).unwrap().is_some();
        assert_eq!(is_there, key.is_multiple_of(2));
    };
    for number in 0..100 {
        find(4_000 * number);
    }
    assert!(may_have(1), "what is found is no reason to read it");
    for number in 0..100 {
        find(4_000 * number + 1);
    }
    let before = device.reads();
    let passed = (0..60).filter(|number| may_have(2 * number + 1)).count();
    assert!(passed < 20, "{passed} of 60 absent keys passed");
    assert!((0..60).all(|number| may_have(2 * number)));
    assert_eq!(device.reads(), before);
}

/// The number of a group, and of a cell in it.
fn grouped(group: u8, number: u32) -> Vec<u8> {
    [&[7; 16], &[group][..], &number.to_be_bytes()].concat()
}

#[test]
fn neighbouring_blocks_are_read_at_once_and_what_is_damaged_is_told() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let mut random = Random(5);
    let cells: Cells = (0..100).map(|number| (grouped(1, number), random.bytes(5_000))).collect();
    let cells_in_order: Vec<&Vec<u8>> = cells.values().collect();
    let info = write(&shared, 1, &cells);
    let (segment, cache) = (Segment::open(device.as_ref(), &info).unwrap(), cache());
    // 60 of them are more than is read at once; the others follow behind a gap.
    let wanted: Vec<usize> = (0..100).filter(|number| *number != 60).collect();
    let handle = |block: &usize| -> Result<CellHandle> {
        let (_, handle) =
            segment.cell_at(&cache, CellPosition { block: *block, slot: 0 })?.unwrap();
        assert!(!handle.is_read());
        Ok(handle)
    };
    let handles: Vec<CellHandle> = wanted.iter().map(handle).collect::<Result<_>>().unwrap();
    let handles: Vec<&CellHandle> = handles.iter().collect();
    let (mut room, mut rooms) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (before, mut seen) = (device.reads(), 0);
        CellHandle::visit_all(&handles, &mut room, &mut |at, cell| {
            assert!(at == seen && cell == *cells_in_order[wanted[at]], "cell {at}");
            seen += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!((seen, device.reads() - before), (wanted.len(), 3));
        rooms.push(room.as_ptr());
    }
    assert_eq!(rooms[0], rooms[1], "the room is used again");
    let mut damaged = device.bytes(&info.path());
    damaged[5 * 5_100] ^= 1;
    device.set_bytes(&info.path(), damaged);
    let mut seen = 0;
    let failed = CellHandle::visit_all(&handles, &mut room, &mut |_, _| {
        seen += 1;
        Ok(())
    });
    let error = failed.unwrap_err();
    assert_eq!((error.kind(), seen), (ErrorKind::Corrupt, 5));
    assert!(error.message().contains("checksum of the block"), "{error}");
}

#[test]
fn cells_of_a_group_that_fits_no_block_stand_in_small_ones_and_no_other_group_among_them() {
    // The first takes so much that cold blocks may be small from there on.
    let first = [(0, 20, 20_000), (1, 8, 900), (2, 60, 900), (3, 9, 3_900)];
    let mut cells = Cells::new();
    for (group, count, bytes) in first.into_iter().chain([(4, 5, 20_000), (5, 2_000, 8), (6, 3, 9)])
    {
        cells.extend((0..count).map(|number| (grouped(group, number), vec![group; bytes])));
    }
    for (encoding, keys_room, of_keys) in [(Encoding::Warm, 4_096, 17), (Encoding::Cold, 16_384, 5)]
    {
        let device: Arc<dyn Device> = Arc::new(TestDevice::default());
        let info = write_as(encoding, &device, 1, &cells);
        let segment = Segment::open(device.as_ref(), &info).unwrap();
        let cache = BlockCache::new(0);
        let mut blocks = [0; 7];
        for number in 0..segment.blocks().unwrap() {
            let block = segment.block(&cache, number).unwrap();
            let groups = [0, block.len() - 1].map(|slot| block.key(slot)[16]);
            assert!(groups[0] == groups[1] || groups == [1, 2], "{groups:?}");
            let last = usize::from(groups[1]);
            blocks[last] += 1;
            let room = [32_768, 32_768, 4_096, 4_096, 32_768, keys_room, 32_768][last];
            let bytes: usize = (0..block.len())
                .map(|slot| RECORD_BYTES + block.key(slot).len() + block.cell(slot).len())
                .sum();
            assert!(HEADER_BYTES + bytes <= room, "{bytes} of group {last}");
        }
        assert_eq!(blocks, [20, 1, 15, 9, 5, of_keys, 1], "{encoding:?}");
        for (found, cell) in get_all(&segment, &cells).into_iter().zip(cells.values()) {
            assert_eq!(found.unwrap().as_deref(), Some(&cell[..]));
        }
    }
}

/// So little stays in memory anyway, and larger blocks compress better.
#[test]
fn the_first_256_kib_of_a_compressed_space_stand_in_full_blocks() {
    let cells = (0..300).map(|number| (grouped(1, number), vec![1; 900])).collect();
    let blocks = |encoding| {
        let device: Arc<dyn Device> = Arc::new(TestDevice::default());
        let info = write_as(encoding, &device, 1, &cells);
        Segment::open(device.as_ref(), &info).unwrap().blocks().unwrap()
    };
    assert_eq!(blocks(Encoding::Warm), 75);
    assert!(blocks(Encoding::Cold) < 20, "{}", blocks(Encoding::Cold));
}

/// Keys that begin alike with an ordinal each, as the entries of a large map have them.
#[test]
fn a_compressed_segment_of_small_cells_takes_a_few_bytes_for_each() {
    let key = |n: u64| [&[9; 20], format!("item-{n:06}").as_bytes()].concat();
    let cells: Cells = (0..9_000_u64).map(|n| (key(n), n.to_le_bytes().to_vec())).collect();
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let info = write_as(Encoding::Cold, &device, 1, &cells);
    let filter_bytes = cells.len() as u64;
    assert!(info.file_bytes() < 2 * filter_bytes, "{} bytes", info.file_bytes());
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    assert!(segment.blocks().unwrap() >= 2);
    for (found, cell) in get_all(&segment, &cells).into_iter().zip(cells.values()) {
        assert_eq!(found.unwrap().as_deref(), Some(&cell[..]));
    }
}

#[test]
fn an_unfinished_segment_removes_its_file() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let mut writer = SegmentWriter::create(&shared, 7, META).unwrap();
    writer.push(b"key", b"cell").unwrap();
    assert_eq!(device.paths(), ["segments/00000007.segment"]);
    drop(writer);
    assert!(device.paths().is_empty());
}

#[test]
#[should_panic(expected = "cell keys must rise")]
fn keys_that_do_not_rise_are_refused() {
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let mut writer = SegmentWriter::create(&device, 1, META).unwrap();
    writer.push(b"b", b"").unwrap();
    writer.push(b"b", b"").unwrap();
}

/// Either everything is as it was written or it is told to be corrupt, and `check` tells it too.
fn assert_damage_is_told(device: &TestDevice, info: &SegmentInfo, cells: &Cells, what: &str) {
    let segment = match Segment::open(device, info) {
        Ok(segment) => segment,
        Err(error) => return assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}"),
    };
    for (cell, found) in cells.values().zip(get_all(&segment, cells)) {
        match found {
            Ok(found) => assert_eq!(found.as_deref(), Some(&cell[..]), "{what}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}"),
        }
    }
    let findings = segment.check(&mut |_, _| Ok(()));
    assert!(!findings.is_empty(), "{what} was not found");
    assert!(findings.iter().all(|error| error.message().contains("00000001.segment, offset")));
}

#[test]
fn damage_to_any_byte_of_a_small_segment_is_told() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let cells = small_cells();
    let info = write(&shared, 1, &cells);
    let path = info.path();
    let sound = device.bytes(&path);
    for at in 0..sound.len() {
        for flip in [1, 0x80, 0xff] {
            let mut damaged = sound.clone();
            damaged[at] ^= flip;
            device.set_bytes(&path, damaged);
            assert_damage_is_told(&device, &info, &cells, &format!("byte {at} ^ {flip}"));
        }
    }
    for length in 0..sound.len() {
        device.set_bytes(&path, sound[..length].to_vec());
        assert_damage_is_told(&device, &info, &cells, &format!("cut to {length}"));
    }
}

#[test]
fn damage_to_one_block_leaves_the_others_readable() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let cells = mixed_cells();
    let info = write(&shared, 1, &cells);
    let sound = device.bytes(&info.path());
    for at in (0..sound.len()).step_by(1_499) {
        let mut damaged = sound.clone();
        damaged[at] ^= 4;
        device.set_bytes(&info.path(), damaged);
        assert_damage_is_told(&device, &info, &cells, &format!("byte {at}"));
    }
    let mut damaged = sound;
    damaged[100] ^= 4;
    device.set_bytes(&info.path(), damaged);
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    let found = get_all(&segment, &cells);
    assert!(found.first().unwrap().is_err());
    assert!(found.last().unwrap().is_ok());
    assert_eq!(segment.check(&mut |_, _| Ok(())).len(), 1);
}

/// A block that is whole but stands where another was written, as a misdirected write leaves it.
#[test]
fn a_whole_block_in_the_wrong_place_is_told() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let cells: Cells = (0..4_u8).map(|n| (vec![n + 1], vec![n; 40 << 10])).collect();
    let info = write(&shared, 1, &cells);
    let other = write(&shared, 2, &cells);
    let sound = device.bytes(&info.path());
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    let length = segment.entry(0).unwrap().unwrap().0.block.length.get() as usize;

    let mut moved = sound.clone();
    moved.copy_within(8..8 + length, 8 + length);
    device.set_bytes(&info.path(), moved);
    let error = segment.get(&cache(), &[2]).unwrap_err();
    assert!(error.message().contains("offset of the block"), "{error}");
    assert_eq!(segment.get(&cache(), &[1]).unwrap().unwrap(), vec![0; 40 << 10]);

    device.set_bytes(&info.path(), device.bytes(&other.path()));
    let error = segment.get(&cache(), &[2]).unwrap_err();
    assert!(error.message().contains("segment of the block"), "{error}");
}

#[test]
fn a_newer_format_is_unsupported_not_corrupt() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let mut info = write(&shared, 1, &small_cells());
    let mut bytes = device.bytes(&info.path());
    let at = usize::try_from(info.footer.offset.get()).unwrap();
    bytes[at + HEADER_BYTES] = 2;
    let checksum = crc32c::crc32c(&bytes[at + 4..]);
    bytes[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
    info.footer.checksum = checksum.into();
    device.set_bytes(&info.path(), bytes);
    let error = Segment::open(device.as_ref(), &info).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

/// Bodies whose checksum holds but whose content does not: decoding refuses them or what it
/// returns can be used.
#[test]
fn decoding_any_body_never_panics() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let info = write(&shared, 1, &small_cells());
    let file: Bytes = device.bytes(&info.path()).into();
    let origin = Origin { path: "segment", segment: 1 };
    let read = |address: &BlockAddress, kind| {
        let at = usize::try_from(address.offset.get()).unwrap();
        let bytes = file.slice(at..at + address.length.get() as usize);
        Block::verify(&bytes, origin, address, kind).unwrap()
    };
    let footer_block = read(&info.footer, BlockKind::Footer);
    let footer = Footer::decode(&footer_block, origin, &info.footer).unwrap();
    let index_block = read(&footer.index, BlockKind::Index);
    let index = Index::decode(index_block.clone(), origin, &footer).unwrap();
    let (entry, _) = index.get(0).unwrap();
    let cell_block = read(&entry.block, BlockKind::Cells);
    let filter_block = read(&footer.filter, BlockKind::Filter);

    for body in altered(&footer_block.body) {
        let _ = Footer::decode(&Block { items: 1, body }, origin, &info.footer);
    }
    for (items, body) in altered(&index_block.body).flat_map(|body| with_counts(&body)) {
        let Ok(index) = Index::decode(Block { items, body }, origin, &footer) else { continue };
        let _ = (index.block_for(b"k"), index.last_key(), index.get(0), index.get(items as usize));
    }
    for (items, body) in altered(&filter_block.body).flat_map(|body| with_counts(&body)) {
        let filter = Filter::decode(Block { items, body }, origin, &footer.filter);
        let _ = filter.map(|filter| filter.may_have(KeyHash::of(b"k")));
    }
    for (items, body) in altered(&cell_block.body).flat_map(|body| with_counts(&body)) {
        let cells = u16::try_from(items).unwrap();
        let block = Block { items, body };
        let Ok(cells) = CellBlock::decode(block, origin, &entry.block, cells) else { continue };
        (0..cells.len()).for_each(|slot| drop((cells.key(slot), cells.cell(slot))));
        let _ = (cells.find(b"k"), cells.at_or_after(b"k"));
    }
}

/// The body cut at every length, and with every byte changed to a few others.
fn altered(body: &Bytes) -> impl Iterator<Item = Bytes> {
    let flips = (0..body.len()).flat_map(move |at| {
        [1, 0x10, 0xff].map(|flip| {
            let mut changed = body.to_vec();
            changed[at] ^= flip;
            changed.into()
        })
    });
    (0..body.len()).map(|length| body.slice(..length)).chain(flips)
}

fn with_counts(body: &Bytes) -> [(u32, Bytes); 4] {
    [0, 1, 12, 60_000].map(|items| (items, body.clone()))
}

/// A backup once read all of a segment before it saw that it was stopped.
#[test]
fn check_that_is_stopped_reads_no_further() {
    let device = Arc::new(TestDevice::default());
    let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
    let cells = small_cells();
    let info = write(&shared, 1, &cells);
    let segment = Segment::open(device.as_ref(), &info).unwrap();
    let mut visited = 0;
    let findings = segment.check(&mut |_, _| {
        visited += 1;
        Err(Error::new(ErrorKind::Cancelled, "enough"))
    });
    assert_eq!((visited, findings.len()), (1, 1));
    assert_eq!(findings[0].kind(), ErrorKind::Cancelled);
}
