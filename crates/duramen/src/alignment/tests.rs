use super::*;

/// A small, deterministic source of numbers (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 1).unwrap() % bound
    }

    fn list(&mut self, items: usize, values: usize) -> Vec<u64> {
        (0..items).map(|_| self.below(values) as u64).collect()
    }

    /// A list with `edits` items put in, taken out or replaced.
    fn edited(&mut self, list: &[u64], edits: usize, values: usize) -> Vec<u64> {
        let mut list = list.to_vec();
        for _ in 0..edits {
            let at = self.below(list.len() + 1);
            let removed = self.below(2).min(list.len() - at);
            let inserted = self.below(2);
            let new = self.list(inserted, values);
            list.splice(at..at + removed, new);
        }
        list
    }
}

const NO_CAPS: Caps = Caps { pairs: 1 << 40, edits: 1 << 40, steps: 1 << 40 };
const NO_EDITS: Caps = Caps { edits: 0, ..NO_CAPS };
const NO_PAIRS: Caps = Caps { pairs: 0, ..NO_CAPS };
const NOTHING: Caps = Caps { pairs: 0, edits: 0, steps: 0 };

/// Checks that the pairings are in order and complete; returns how many items they keep.
fn check(old: &[u64], new: &[u64], pairings: &[Pairing]) -> usize {
    let (mut old_at, mut new_at, mut kept) = (0, 0, 0);
    for &pairing in pairings {
        let count = match pairing {
            Pairing::Same { old: o, new: n, items } => {
                assert_eq!((o, n), (old_at, new_at));
                assert_eq!(old[o..o + items], new[n..n + items]);
                kept += items;
                old_at += items;
                new_at += items;
                items
            }
            Pairing::Update { old: o, new: n, items } => {
                assert_eq!((o, n), (old_at, new_at));
                assert!((0..items).all(|i| old[o + i] != new[n + i]));
                old_at += items;
                new_at += items;
                items
            }
            Pairing::Remove { old: o, items } => {
                assert_eq!(o, old_at);
                old_at += items;
                items
            }
            Pairing::Insert { new: n, items } => {
                assert_eq!(n, new_at);
                new_at += items;
                items
            }
        };
        assert!(count > 0, "an empty run in {pairings:?}");
    }
    assert_eq!((old_at, new_at), (old.len(), new.len()));
    let kinds: Vec<_> = pairings.iter().map(std::mem::discriminant).collect();
    assert!(kinds.windows(2).all(|pair| pair[0] != pair[1]), "runs not joined: {pairings:?}");
    kept
}

fn longest_common(old: &[u64], new: &[u64]) -> usize {
    let mut row = vec![0; new.len() + 1];
    for o in old {
        let mut diagonal = 0;
        for (n, item) in new.iter().enumerate() {
            let above = row[n + 1];
            row[n + 1] = if o == item { diagonal + 1 } else { above.max(row[n]) };
            diagonal = above;
        }
    }
    row[new.len()]
}

#[test]
fn keeps_as_many_items_as_the_longest_common_subsequence() {
    let mut random = Random(1);
    for round in 0..4_000 {
        let values = 1 + random.below(12);
        let items = random.below(24);
        let old = random.list(items, values);
        let new = if round % 2 == 0 {
            let items = random.below(24);
            random.list(items, values)
        } else {
            let edits = random.below(8);
            random.edited(&old, edits, values)
        };
        let best = longest_common(&old, &new);
        for caps in [NO_CAPS, NO_EDITS, NO_PAIRS] {
            let pairings = align_within(&old, &new, caps);
            let kept = check(&old, &new, &pairings);
            assert_eq!(kept, best, "{old:?} {new:?} {caps:?}");
        }
        assert_eq!(check(&old, &new, &align(&old, &new)), best);
        // Whatever the caps, the result is an alignment.
        check(&old, &new, &align_within(&old, &new, NOTHING));
    }
}

#[test]
fn pairs_up_by_position_what_is_between_kept_items() {
    assert_eq!(
        align(&[1, 2, 3, 4, 5, 6], &[1, 7, 8, 4, 9, 9, 9, 6]),
        [
            Pairing::Same { old: 0, new: 0, items: 1 },
            Pairing::Update { old: 1, new: 1, items: 2 },
            Pairing::Same { old: 3, new: 3, items: 1 },
            Pairing::Update { old: 4, new: 4, items: 1 },
            Pairing::Insert { new: 5, items: 2 },
            Pairing::Same { old: 5, new: 7, items: 1 },
        ]
    );
    assert_eq!(
        align(&[1, 2, 3, 4], &[5, 4]),
        [
            Pairing::Update { old: 0, new: 0, items: 1 },
            Pairing::Remove { old: 1, items: 2 },
            Pairing::Same { old: 3, new: 1, items: 1 },
        ]
    );
    assert_eq!(align(&[], &[]), []);
    assert_eq!(align(&[], &[3, 3]), [Pairing::Insert { new: 0, items: 2 }]);
    assert_eq!(align(&[3, 3], &[]), [Pairing::Remove { old: 0, items: 2 }]);
}

/// Two far edits in a list of few values leave too many pairs of equal items to look at each.
#[test]
fn finds_few_edits_in_a_long_list_of_few_values() {
    let mut random = Random(2);
    let old = random.list(200_000, 2);
    let new = random.edited(&old, 40, 2);
    let pairings = align(&old, &new);
    let kept = check(&old, &new, &pairings);
    assert!(kept + 40 >= old.len(), "kept {kept} of {}", old.len());
}

/// A shuffled list of distinct items has one pair each, so the alignment is exact at any size.
#[test]
fn keeps_a_longest_rising_part_of_a_shuffled_list() {
    let mut random = Random(3);
    let old: Vec<u64> = (0..50_000).collect();
    let mut new = old.clone();
    for index in (1..new.len()).rev() {
        new.swap(index, random.below(index + 1));
    }
    let kept = check(&old, &new, &align(&old, &new));
    let mut tails: Vec<u64> = Vec::new();
    for &item in &new {
        let at = tails.partition_point(|&tail| tail < item);
        tails.truncate(at.max(tails.len().min(at + 1)));
        if at == tails.len() { tails.push(item) } else { tails[at] = item }
    }
    assert!(kept >= tails.len(), "kept {kept}, longest rising part {}", tails.len());
}

#[test]
fn gives_up_exactness_but_not_order_beyond_the_caps() {
    let mut random = Random(4);
    let mut old = random.list(60_000, 3);
    let mut new = random.list(60_000, 3);
    // One rare item stands at different places: it anchors what the caps leave undecided.
    old[20_000] = 99;
    new[30_000] = 99;
    let pairings = align(&old, &new);
    let kept = check(&old, &new, &pairings);
    assert!(kept > 10_000, "about a third of the items are equal by chance");
    let anchored = pairings.iter().any(|&pairing| {
        let Pairing::Same { old, new, items } = pairing else { return false };
        (old..old + items).contains(&20_000) && new + (20_000 - old) == 30_000
    });
    assert!(anchored);
}

#[test]
fn long_lists_with_nothing_in_common_pair_up_by_place() {
    let (old, new): (Vec<u64>, Vec<u64>) = ((0..5_000).collect(), (10_000..14_000).collect());
    let expected = [
        Pairing::Update { old: 0, new: 0, items: 4_000 },
        Pairing::Remove { old: 4_000, items: 1_000 },
    ];
    assert_eq!(align(&old, &new), expected);
    let with_one = [&new[..], &[4_999]].concat();
    assert_eq!(check(&old, &with_one, &align(&old, &with_one)), 1);
}
