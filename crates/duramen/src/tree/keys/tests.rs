//! What young keys say after all that is done to them.

use std::collections::btree_map::Entry;

use super::*;

fn names(keys: &YoungKeys, bounds: NameBounds<'_>) -> Vec<(String, u64)> {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    let settled = keys.settled(bounds).map(|(name, ordinal)| (text(name.as_ref()), ordinal));
    let recent = keys.recent(bounds).map(|(name, ordinal)| (text(name), ordinal));
    let mut all: Vec<_> = settled.chain(recent).collect();
    all.sort();
    all
}

fn uuid(place: u64) -> String {
    let spread = u128::from(place.wrapping_mul(0x9e37_79b9_7f4a_7c15)) << 60;
    String::from_utf8(text_of_uuid(spread).to_vec()).unwrap()
}

#[test]
fn sorted_keys_follow_what_is_inserted_taken_back_and_dropped() {
    follow(|place| format!("key/{place:03}"));
    follow(uuid);
    // All are kept as texts from the first one on that is no UUID, and until that is dropped.
    follow(|place| if place == 450 { "450".to_owned() } else { uuid(place) });
    follow(|place| if place % 9 == 7 { uuid(place).to_uppercase() } else { uuid(place) });
}

fn follow(name: impl Fn(u64) -> String) {
    let mut keys = YoungKeys::default();
    let mut model: BTreeMap<String, u64> = BTreeMap::new();
    let (mut random, mut first, mut next) = (5_u64, 0, 0);
    for step in 0..3_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = random >> 40;
        match (random >> 33) % 50 {
            0..40 => {
                let name = name(place % 900);
                if let Entry::Vacant(place) = model.entry(name.clone()) {
                    assert_eq!(keys.get(0, name.as_bytes()), None);
                    keys.insert(0, name.as_bytes(), next);
                    keys.insert(next + 1, name.as_bytes(), next + 1);
                    place.insert(next);
                    next += 2;
                }
            }
            40..44 => keys.sort(),
            44..46 => {
                next = next.saturating_sub(2 * (place % 4)).max(first);
                keys.truncate(next);
                model.retain(|_, ordinal| *ordinal < next);
            }
            46 if step % 9 == 0 => {
                first = u64::midpoint(first, next) / 2 * 2;
                keys.retain_from(first);
                model.retain(|_, ordinal| *ordinal >= first);
            }
            _ => {}
        }
        for (name, ordinal) in model.iter().take(20) {
            assert_eq!(keys.get(0, name.as_bytes()), Some(*ordinal), "in step {step}");
            assert_eq!(keys.get(ordinal + 1, name.as_bytes()), Some(ordinal + 1));
        }
        if keys.is_sorted() {
            let (low, high) = (name(place % 900), name(700));
            let bounds = (Bound::Excluded(low.as_bytes()), Bound::Included(high.as_bytes()));
            let expected = model.iter().filter(|(name, _)| **name > low && **name <= high);
            let expected: Vec<_> =
                expected.map(|(name, ordinal)| (name.clone(), *ordinal)).collect();
            assert_eq!(names(&keys, bounds), expected, "in step {step}");
            let settled: Vec<_> = keys.settled((Bound::Unbounded, Bound::Unbounded)).collect();
            assert!(
                settled.is_sorted_by(|(a, _), (b, _)| a.as_ref() < b.as_ref())
                    && settled.len() + keys.recent.len() == model.len()
            );
        }
    }
}

#[test]
fn a_key_that_gets_another_ordinal_is_read_with_that_one() {
    let mut keys = YoungKeys::default();
    keys.insert(0, b"b", 0);
    keys.sort();
    keys.insert(0, b"b", 7);
    keys.sort();
    assert_eq!(names(&keys, (Bound::Unbounded, Bound::Unbounded)), [("b".into(), 7)]);
}

#[test]
fn few_keys_that_come_are_not_sorted_in_with_all() {
    let mut keys = YoungKeys::default();
    let name = |ordinal: u64| format!("{:05}", ordinal * 7_919 % 100_000);
    (0..1_000).for_each(|ordinal| keys.insert(0, name(ordinal).as_bytes(), ordinal));
    keys.sort();
    assert_eq!((keys.settled, keys.recent.len()), (1_000, 0));
    for ordinal in 1_000..1_200 {
        keys.insert(0, name(ordinal).as_bytes(), ordinal);
        assert!(!keys.is_sorted());
        keys.sort();
    }
    assert_eq!((keys.settled, keys.recent.len()), (1_000, 200));
    keys.truncate(1_100);
    assert_eq!(names(&keys, (Bound::Unbounded, Bound::Unbounded)).len(), 1_100);
    for bounds in [
        (Bound::Included(&b"5"[..]), Bound::Included(&b"4"[..])),
        (Bound::Excluded(&b"5"[..]), Bound::Excluded(&b"5"[..])),
    ] {
        assert_eq!(names(&keys, bounds), []);
    }
}
