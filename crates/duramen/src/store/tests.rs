//! The store against an ordered map, over several segments.

use super::*;
use crate::Micros;
use crate::io::Access;
use crate::segment::tests::device::TestDevice;
use crate::segment::tests::{Cells, Random, write};

struct Model {
    device: Arc<TestDevice>,
    store: Store,
    manifest: Manifest,
    newest: Cells,
}

/// A memory with so much room for blocks.
fn memory(block_bytes: u64) -> Arc<Memory> {
    Memory::new(usize::try_from(4 * block_bytes).unwrap())
}

impl Model {
    fn new(cache_bytes: u64) -> Self {
        let device = Arc::new(TestDevice::default());
        let manifest = Manifest::new(1, Micros(0));
        let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&device);
        let store = Store::open(&shared, &manifest, &memory(cache_bytes)).unwrap();
        Self { device, store, manifest, newest: Cells::new() }
    }

    fn add(&mut self, cells: Cells) {
        let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&self.device);
        let info = write(&shared, self.manifest.next_segment, &cells);
        self.manifest.next_segment += 1;
        self.store.add(self.store.open_segment(&info).unwrap());
        self.manifest.segments = self.store.infos();
        self.newest.extend(cells);
    }

    fn reopen(&mut self, cache_bytes: u64) {
        let shared: Arc<dyn Device> = Arc::<TestDevice>::clone(&self.device);
        self.store = Store::open(&shared, &self.manifest, &memory(cache_bytes)).unwrap();
    }
}

/// Keys of 5 trees with a byte or two after them, so that segments share many.
fn random_key(random: &mut Random) -> Vec<u8> {
    let mut key = (random.next() % 5).to_be_bytes().to_vec();
    let length = random.below(4);
    key.extend((0..length).map(|_| u8::try_from(random.next() % 9).unwrap()));
    key
}

fn random_cells(random: &mut Random) -> Cells {
    let count = 1 + random.below(400);
    let cell = |random: &mut Random| {
        let length = if random.below(20) == 0 { 36 << 10 } else { random.below(600) };
        (random_key(random), random.bytes(length))
    };
    (0..count).map(|_| cell(random)).collect()
}

fn assert_same(model: &Model, random: &mut Random) {
    for _ in 0..150 {
        let key = random_key(random);
        let prefix = &key[..random.below(key.len() as u64 + 1)];
        let cell = model.newest.get(&key).map(Vec::as_slice);
        assert_eq!(model.store.get(&key).unwrap().as_deref(), cell);

        let before = model.newest.range(..=key.clone()).next_back();
        let before = before.filter(|(key, _)| key.starts_with(prefix));
        let found = model.store.live().last_before(prefix, &key).unwrap();
        let found = found.as_ref().map(|(key, cell)| (&key[..], &cell[..]));
        assert_eq!(found, before.map(|(key, cell)| (&key[..], &cell[..])));
    }
    for _ in 0..12 {
        let key = random_key(random);
        let prefix = &key[..random.below(key.len() as u64 + 1)];
        let expected = model.newest.iter().filter(|(key, _)| key.starts_with(prefix));
        let mut found = model.store.live().scan(prefix).unwrap();
        for (key, cell) in expected {
            let (found_key, found_cell) = found.next().unwrap().unwrap();
            assert_eq!((&found_key[..], &found_cell.load().unwrap()[..]), (&key[..], &cell[..]));
        }
        assert!(found.next().is_none());
        assert_seeks(model, prefix, random);
    }
    assert_turns(model, random.next() % 5);
}

/// A scan that goes on at rising keys, and stays where a key is behind it.
fn assert_seeks(model: &Model, prefix: &[u8], random: &mut Random) {
    let mut scan = model.store.live().scan(prefix).unwrap();
    let mut from = Vec::new();
    for _ in 0..20 {
        let key = random_key(random);
        scan.seek(&key).unwrap();
        from = from.max(key);
        let mut rest = model.newest.range(from.clone()..);
        let expected = rest.find(|(key, _)| key.starts_with(prefix)).map(|(key, _)| key);
        let found = scan.next().map(|found| found.unwrap().0);
        assert_eq!(found.as_deref(), expected.map(Vec::as_slice));
        let Some(found) = found else { break };
        from = [&found[..], &[0]].concat();
    }
}

/// A scan that goes on from tree to tree.
fn assert_turns(model: &Model, first: u64) {
    let begin = |tree: u64| tree.to_be_bytes();
    let live = model.store.live();
    let mut scan = live.scan_in_turn(&begin(0)[..7], &begin(first)).unwrap();
    for tree in first..5 {
        if tree > first {
            scan.turn_to(&begin(tree)).unwrap();
        }
        for (key, cell) in model.newest.range(begin(tree).to_vec()..begin(tree + 1).to_vec()) {
            let (found_key, found_cell) = scan.next().unwrap().unwrap();
            assert_eq!((&found_key[..], &found_cell.load().unwrap()[..]), (&key[..], &cell[..]));
        }
        assert!(scan.next().is_none());
    }
}

#[test]
fn look_ups_and_scans_over_segments_equal_an_ordered_map() {
    for seed in 0..5 {
        let mut random = Random(seed);
        // From nothing cached to everything.
        let mut model = Model::new(seed * (100 << 10));
        for _ in 0..5 {
            model.add(random_cells(&mut random));
            assert_same(&model, &mut random);
        }
        model.reopen(1 << 20);
        assert_same(&model, &mut random);
        assert!(model.store.check(&mut |_, _| Ok(())).is_empty());
    }
}

#[test]
fn a_reader_keeps_the_segments_it_began_with() {
    let mut model = Model::new(1 << 20);
    model.add([(b"a".to_vec(), b"old".to_vec())].into());
    let live = model.store.live();
    model.add([(b"a".to_vec(), b"new".to_vec())].into());
    model.device.remove("segments/00000001.segment").unwrap();
    assert_eq!(live.get(b"a").unwrap().unwrap(), "old");
    assert_eq!(model.store.get(b"a").unwrap().unwrap(), "new");
}

#[test]
fn listing_keys_reads_no_large_cell_and_an_absent_tree_no_block() {
    let mut model = Model::new(1 << 20);
    let key = |tree: u64, cell: u8| [&tree.to_be_bytes()[..], &[cell]].concat();
    model.add((0..50).map(|cell| (key(2, cell), vec![cell; 64 << 10])).collect());
    model.add((0..50).map(|cell| (key(4, cell), vec![cell; 10])).collect());
    let live = model.store.live();
    // Among the keys of the first, so that its filter is read.
    assert!(live.get(&key(2, 1)[..8]).unwrap().is_none());
    assert!(live.get(&key(3, 1)).unwrap().is_none());
    let reads = model.device.reads();
    assert!(live.get(&key(3, 1)).unwrap().is_none());
    assert!(live.last_before(&key(3, 1)[..8], &key(3, 1)).unwrap().is_none());
    assert_eq!(live.scan(&key(3, 1)[..8]).unwrap().count(), 0);
    assert_eq!(live.scan(&key(2, 0)[..8]).unwrap().count(), 50);
    assert_eq!(model.device.reads(), reads);
    let (_, cell) = live.scan(&key(2, 7)).unwrap().next().unwrap().unwrap();
    assert_eq!(cell.load().unwrap(), vec![7; 64 << 10]);
    assert_eq!(model.device.reads(), reads + 1);
    assert_eq!(cell.load().unwrap(), vec![7; 64 << 10]);
    assert_eq!(model.device.reads(), reads + 1);
}

/// Whatever else stood in the folder once went with them.
#[test]
fn only_segments_that_the_manifest_names_and_files_of_others_stay() {
    let mut model = Model::new(1 << 20);
    model.add([(b"a".to_vec(), b"1".to_vec())].into());
    model.add([(b"b".to_vec(), b"2".to_vec())].into());
    model.manifest.segments.pop();
    let others = ["segments/1.segment", "segments/notes", "segments/query-x.tmp"];
    let query = format!("segments/query-{:032x}.tmp", 7);
    for path in others.into_iter().chain(["segments/MERGE", &query]) {
        model.device.open(path, Access::Create).unwrap();
    }
    model.manifest.purging = true;
    remove_unnamed(model.device.as_ref(), &model.manifest, &[]).unwrap();
    let left = ["segments/00000002.segment"].into_iter().chain(others);
    assert!(model.device.paths().into_iter().eq(left));
    remove_unnamed(&TestDevice::default(), &model.manifest, &[]).unwrap();
}
