use std::cell::Cell;

use super::*;

/// A small, deterministic source of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// Blocks in memory, counting how many are read.
#[derive(Default)]
struct Shelf {
    blocks: Vec<Arc<OrderBlock>>,
    reads: Cell<usize>,
}

impl OrderBlocks for Shelf {
    fn block(&self, id: OrderId) -> Result<Arc<OrderBlock>> {
        self.reads.set(self.reads.get() + 1);
        let block = self.blocks.get(usize::try_from(id.0).unwrap());
        block.cloned().ok_or_else(|| corrupt("no such block"))
    }
}

impl OrderBlocksMut for Shelf {
    fn add(&mut self, block: OrderBlock) -> OrderId {
        block.check().unwrap();
        self.blocks.push(Arc::new(block));
        OrderId(self.blocks.len() as u64 - 1)
    }
}

impl Shelf {
    fn items(&self, sequence: Sequence) -> Vec<Item> {
        let mut cursor = OrderCursor::new(sequence);
        let mut items = Vec::new();
        while let Some(extent) = cursor.next(self).unwrap() {
            items.extend((0..extent.items()).map(|index| extent.item(index)));
        }
        items
    }

    /// Checks what the module promises of every tree; returns its depth.
    fn check(&self, sequence: Sequence) -> usize {
        match sequence {
            Sequence::Extent(_) => 0,
            Sequence::Blocks(root) => {
                let block = &self.blocks[usize::try_from(root.0).unwrap()];
                match &**block {
                    OrderBlock::Leaf(extents) => {
                        assert!(extents.len() > 1 || extents[0].count == 0, "could be inline");
                    }
                    OrderBlock::Inner(children) => assert!(children.len() > 1, "idle root"),
                }
                self.check_below(root, block.items(), true)
            }
        }
    }

    fn depth(&self, sequence: Sequence) -> usize {
        let Sequence::Blocks(mut id) = sequence else { return 0 };
        let mut depth = 1;
        while let OrderBlock::Inner(children) = &*self.blocks[usize::try_from(id.0).unwrap()] {
            id = children[0].0;
            depth += 1;
        }
        depth
    }

    fn check_below(&self, id: OrderId, items: u64, root: bool) -> usize {
        let block = &self.blocks[usize::try_from(id.0).unwrap()];
        block.check().unwrap();
        assert_eq!(block.items(), items);
        match &**block {
            OrderBlock::Leaf(extents) => {
                assert!(root || extents.len() >= FILL_MIN);
                let joined = extents.windows(2).all(|pair| {
                    pair[0].count == 0
                        || pair[1].count == 0
                        || pair[0].count == EXTENT_ITEMS_MAX
                        || pair[0].first + pair[0].items() != pair[1].first
                });
                assert!(joined, "neighbours not joined");
                1
            }
            OrderBlock::Inner(children) => {
                assert!(root || children.len() >= FILL_MIN);
                let depths: Vec<usize> = children
                    .iter()
                    .map(|&(id, items)| self.check_below(id, items, false))
                    .collect();
                assert!(depths.windows(2).all(|pair| pair[0] == pair[1]));
                depths[0] + 1
            }
        }
    }
}

/// The sequence of these extents in order.
fn build(shelf: &mut Shelf, extents: impl IntoIterator<Item = Extent>) -> Sequence {
    let extents = extents.into_iter().collect::<Vec<_>>();
    splice(shelf, Sequence::EMPTY, 0..0, &extents).unwrap()
}

fn extent(first: u64, count: u32) -> Extent {
    Extent { first, count }
}

fn items_of(extents: &[Extent]) -> Vec<Item> {
    extents.iter().flat_map(|e| (0..e.items()).map(|index| e.item(index))).collect()
}

/// Extents of new ordinals and some field items, with gaps between them.
fn fresh(random: &mut Random, next: &mut u64, count: u64, width: u64) -> Vec<Extent> {
    (0..count)
        .map(|_| {
            *next += random.below(2);
            let width = random.below(width + 1);
            if width == 0 && *next < 1 << 24 {
                *next += 1;
                return Extent::field(PathId(u32::try_from(*next - 1).unwrap()));
            }
            let extent = extent(*next, u32::try_from(width.max(1)).unwrap());
            *next += extent.items();
            extent
        })
        .collect()
}

/// What a splice is to draw.
struct Mix {
    rounds: usize,
    /// How often all of the sequence is compared, and kept to be compared later.
    samples: usize,
    /// Items of the sequence at the start.
    start: u64,
    removed_max: u64,
    inserted_max: u64,
    /// Ordinals of one inserted extent.
    width: u64,
}

fn run(seed: u64, mix: &Mix) {
    let mut random = Random(seed);
    let mut shelf = Shelf::default();
    let mut next = 0;
    let start = fresh(&mut random, &mut next, mix.start, 1);
    let mut model = items_of(&start);
    let mut sequence = build(&mut shelf, start);
    let mut old = vec![(sequence, model.clone())];
    for round in 0..mix.rounds {
        let len = model.len() as u64;
        let at = random.below(len + 1);
        let removed = random.below(mix.removed_max + 1).min(len - at);
        let inserted = random.below(mix.inserted_max + 1);
        let mut insert = fresh(&mut random, &mut next, inserted, mix.width);
        if random.below(3) == 0 {
            // A move: the same ordinals at another place.
            insert = moved(&model, at, removed);
        }
        let (blocks, range) = (shelf.blocks.len(), at..at + removed);
        let depth = shelf.depth(sequence);
        sequence = splice(&mut shelf, sequence, range, &insert).unwrap();
        let added = shelf.blocks.len() - blocks;
        assert!(added <= 3 * depth + 1 + insert.len() / 100, "{added} blocks at depth {depth}");
        let bounds = usize::try_from(at).unwrap()..usize::try_from(at + removed).unwrap();
        model.splice(bounds, items_of(&insert));
        let sampled = round % (mix.rounds / mix.samples) == 0;
        if model.len() < 1_000 || sampled {
            shelf.check(sequence);
        }
        if sampled {
            assert_eq!(shelf.items(sequence), model);
            old.push((sequence, model.clone()));
        }
        probe(&shelf, sequence, &model, &mut random);
    }
    shelf.check(sequence);
    old.push((sequence, model));
    for (sequence, model) in &old {
        assert_eq!(&shelf.items(*sequence), model, "an old root reads as it did");
    }
    for pair in old.windows(2) {
        compare(&mut shelf, &pair[0], &pair[1]);
    }
}

fn moved(model: &[Item], at: u64, removed: u64) -> Vec<Extent> {
    let range = usize::try_from(at).unwrap()..usize::try_from(at + removed).unwrap();
    let single = |item: &Item| match *item {
        Item::Ordinal(Ordinal(first)) => extent(first, 1),
        Item::Field(path) => Extent::field(path),
    };
    model[range].iter().rev().map(single).collect()
}

fn probe(shelf: &Shelf, sequence: Sequence, model: &[Item], random: &mut Random) {
    let items = model.len() as u64;
    assert_eq!(len(shelf, sequence).unwrap(), items);
    assert_eq!(get(shelf, sequence, items).unwrap(), None);
    let index = random.below(items + 1);
    let expected = model.get(usize::try_from(index).unwrap()).copied();
    assert_eq!(get(shelf, sequence, index).unwrap(), expected);
    let mut cursor = OrderCursor::new(sequence);
    cursor.seek(shelf, index).unwrap();
    let found = cursor.next(shelf).unwrap().map(|extent| extent.item(0));
    assert_eq!(found, expected);
    if let Some(item) = expected
        && random.below(50) == 0
    {
        assert_eq!(position(shelf, sequence, item).unwrap(), Some(index));
        let nowhere = Item::Ordinal(Ordinal(u64::MAX));
        let asked: Vec<Item> = model.iter().rev().step_by(7).copied().chain([nowhere]).collect();
        let number = |item: &Item| asked.iter().position(|asked| asked == item);
        let stand = (0..).zip(model).filter_map(|(place, item)| Some((place, number(item)?)));
        let stand: Vec<(u64, usize)> = stand.collect();
        assert_eq!(positions(shelf, sequence, &asked).unwrap(), stand);
        let mut places = Places::default();
        for item in asked {
            let expected = position(shelf, sequence, item).unwrap();
            assert_eq!(places.position(shelf, sequence, item).unwrap(), expected);
        }
    }
}

/// Compares the difference with a longest increasing subsequence over single items, and the
/// equality with a rebuilt twin.
fn compare(shelf: &mut Shelf, a: &(Sequence, Vec<Item>), b: &(Sequence, Vec<Item>)) {
    let edits = difference(shelf, a.0, b.0).unwrap();
    let (mut old, mut new, mut kept) = (&a.1[..], &b.1[..], 0);
    for edit in &edits {
        let take = |list: &mut &[Item], items: u64| {
            let (head, tail) = list.split_at(usize::try_from(items).unwrap());
            assert!(items > 0);
            *list = tail;
            head.to_vec()
        };
        match *edit {
            Edit::Keep(items) => {
                assert_eq!(take(&mut old, items), take(&mut new, items));
                kept += items;
            }
            Edit::Remove(items) => drop(take(&mut old, items)),
            Edit::Insert(items) => drop(take(&mut new, items)),
        }
    }
    assert!(old.is_empty() && new.is_empty());
    assert_eq!(kept, longest_common(&a.1, &b.1));
    assert_eq!(same_items(shelf, a.0, b.0).unwrap(), a.1 == b.1);
    let mut pairs = Vec::new();
    let are_alike = |old, new| {
        pairs.push((old, new));
        Ok(true)
    };
    let are_all = alike_items(shelf, (a.0, b.0), are_alike).unwrap();
    let both = a.1.iter().copied().zip(b.1.iter().copied());
    let differing: Vec<_> = both.filter(|(old, new)| old != new).collect();
    assert!(!are_all || a.1.len() == b.1.len() && pairs == differing);
    let twin = build(shelf, moved(&b.1, 0, b.1.len() as u64).into_iter().rev());
    assert!(same_items(shelf, twin, b.0).unwrap());
    let keep_all = Vec::from_iter((!b.1.is_empty()).then_some(Edit::Keep(b.1.len() as u64)));
    assert_eq!(difference(shelf, twin, b.0).unwrap(), keep_all);
}

fn longest_common(a: &[Item], b: &[Item]) -> u64 {
    let places: std::collections::HashMap<Item, usize> =
        b.iter().enumerate().map(|(place, &item)| (item, place)).collect();
    let mut tails: Vec<usize> = Vec::new();
    for place in a.iter().filter_map(|item| places.get(item)) {
        let at = tails.partition_point(|tail| tail < place);
        if at == tails.len() { tails.push(*place) } else { tails[at] = *place }
    }
    tails.len() as u64
}

/// To take back a change of each element of an array was quadratic by this.
#[test]
fn many_places_are_found_by_one_walk() {
    let mut shelf = Shelf::default();
    let sequence = build(&mut shelf, (0..5_000).rev().map(|number| extent(2 * number, 1)));
    shelf.reads.set(0);
    let mut places = Places::default();
    for number in 0..5_000 {
        let item = Item::Ordinal(Ordinal(2 * number));
        let place = places.position(&shelf, sequence, item).unwrap();
        assert_eq!(place, Some(4_999 - number));
    }
    assert!(shelf.reads.get() <= shelf.blocks.len(), "{} reads", shelf.reads.get());
}

#[test]
fn small_sequences_follow_the_model() {
    for seed in 0..20 {
        let mix =
            Mix { rounds: 200, samples: 20, start: 0, removed_max: 6, inserted_max: 3, width: 4 };
        run(seed, &mix);
    }
}

#[test]
fn growing_sequences_follow_the_model() {
    let mix =
        Mix { rounds: 3_000, samples: 20, start: 600, removed_max: 3, inserted_max: 12, width: 9 };
    run(100, &mix);
}

#[test]
fn shrinking_sequences_follow_the_model() {
    let mix = Mix {
        rounds: 1_500,
        samples: 10,
        start: 40_000,
        removed_max: 90,
        inserted_max: 2,
        width: 1,
    };
    run(101, &mix);
}

#[test]
fn large_sequences_follow_the_model() {
    let mix = Mix {
        rounds: 60,
        samples: 4,
        start: 100_000,
        removed_max: 9_000,
        inserted_max: 9_000,
        width: 1,
    };
    run(102, &mix);
}

#[test]
fn bulk_load_joins_neighbours_and_stays_inline_if_it_can() {
    let mut shelf = Shelf::default();
    let sequence = build(&mut shelf, (0..1_000).map(|first| extent(first * 3, 3)));
    assert_eq!(sequence, Sequence::Extent(extent(0, 3_000)));
    assert_eq!(build(&mut shelf, []), Sequence::EMPTY);
    assert!(shelf.blocks.is_empty());
    let full = extent(0, EXTENT_ITEMS_MAX);
    let rest = extent(u64::from(EXTENT_ITEMS_MAX), 7);
    let sequence = build(&mut shelf, [full, rest]);
    assert_eq!(len(&shelf, sequence).unwrap(), full.items() + 7);
    assert_eq!(shelf.check(sequence), 1);
}

#[test]
fn appending_and_undoing_an_insertion_stay_inline() {
    let mut shelf = Shelf::default();
    let start = Sequence::Extent(extent(0, 10));
    let longer = splice(&mut shelf, start, 10..10, &[extent(10, 1)]).unwrap();
    assert_eq!(longer, Sequence::Extent(extent(0, 11)));
    let split = splice(&mut shelf, longer, 4..4, &[extent(50, 2)]).unwrap();
    assert_eq!(len(&shelf, split).unwrap(), 13);
    let undone = splice(&mut shelf, split, 4..6, &[]).unwrap();
    assert_eq!(undone, longer);
    let field = splice(&mut shelf, Sequence::EMPTY, 0..0, &[Extent::field(PathId(3))]).unwrap();
    assert_eq!(get(&shelf, field, 0).unwrap(), Some(Item::Field(PathId(3))));
    assert_eq!(splice(&mut shelf, field, 0..1, &[]).unwrap(), Sequence::EMPTY);
}

#[test]
fn a_small_change_in_a_large_sequence_touches_few_blocks() {
    let mut shelf = Shelf::default();
    let base = build(&mut shelf, (0..200_000).map(|index| extent(index * 2, 1)));
    assert_eq!(shelf.check(base), 3);
    let (blocks, reads) = (shelf.blocks.len(), shelf.reads.get());
    let changed = splice(&mut shelf, base, 99_999..100_000, &[extent(1, 1)]).unwrap();
    assert_eq!(shelf.blocks.len() - blocks, 3);
    assert!(shelf.reads.get() - reads <= 8, "{} reads", shelf.reads.get() - reads);
    shelf.reads.set(0);
    let edits = difference(&shelf, base, changed).unwrap();
    let expected = [Edit::Keep(99_999), Edit::Remove(1), Edit::Insert(1), Edit::Keep(100_000)];
    assert_eq!(edits, expected);
    assert!(!same_items(&shelf, base, changed).unwrap());
    assert!(shelf.reads.get() <= 32, "{} reads", shelf.reads.get());
}

#[test]
fn places_of_many_items_are_found_in_one_walk() {
    let mut shelf = Shelf::default();
    let base = build(&mut shelf, (0..20_000).map(|index| extent(index * 2, 1)));
    let asked = |index: u64| Item::Ordinal(Ordinal(index * 7 % 40_000));
    let asked: Vec<Item> = (0..20_000).map(asked).collect();
    shelf.reads.set(0);
    let found = positions(&shelf, base, &asked).unwrap();
    assert_eq!(found.len(), 10_000);
    assert!(shelf.reads.get() <= shelf.blocks.len(), "{} reads", shelf.reads.get());
}

#[test]
fn damaged_trees_are_errors() {
    let mut shelf = Shelf::default();
    let leaf = shelf.add(OrderBlock::Leaf([extent(0, 2), extent(9, 2)].into()));
    let miscounted = shelf.add(OrderBlock::Inner([(leaf, 9), (leaf, 4)].into()));
    let next = OrderId(shelf.blocks.len() as u64);
    let cycle = shelf.add(OrderBlock::Inner([(next, 5), (leaf, 4)].into()));
    for root in [miscounted, cycle] {
        let sequence = Sequence::Blocks(root);
        assert_eq!(get(&shelf, sequence, 4).unwrap_err().kind(), ErrorKind::Corrupt);
        let mut cursor = OrderCursor::new(sequence);
        assert_eq!(cursor.seek(&shelf, 4).unwrap_err().kind(), ErrorKind::Corrupt);
        let failed = splice(&mut shelf, sequence, 4..6, &[]).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Corrupt);
        let failed = difference(&shelf, sequence, Sequence::Extent(extent(0, 9))).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Corrupt);
    }
    let twice = shelf.add(OrderBlock::Leaf([extent(0, 4), extent(2, 4)].into()));
    let single = Sequence::Extent(extent(0, 9));
    let failed = difference(&shelf, Sequence::Blocks(twice), single).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Corrupt);
    assert!(OrderBlock::Leaf([].into()).check().is_err());
    assert!(OrderBlock::Leaf([extent(ORDINALS_MAX - 1, 2)].into()).check().is_err());
    assert!(OrderBlock::Inner([(leaf, 0)].into()).check().is_err());
    let beyond = splice(&mut shelf, Sequence::EMPTY, 0..1, &[]).unwrap_err();
    assert_eq!(beyond.kind(), ErrorKind::Invalid);
}
