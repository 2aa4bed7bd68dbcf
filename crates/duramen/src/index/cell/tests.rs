use super::*;

fn entry(key: &[u8], ordinal: u64, revision: u32) -> Vec<u8> {
    [key, &ordinal.to_be_bytes(), &(!revision).to_be_bytes()].concat()
}

fn place(group: &[u8], revision: u32) -> Vec<u8> {
    let mut place = vec![9];
    set_place(&mut place, group, revision);
    place
}

fn entries() -> Entries {
    let mut entries = Entries::default();
    entries.add((b"a", 7), 5, false);
    entries.add((b"a", 7), 3, true);
    entries.add((b"a", 8), 1, true);
    entries.add((b"ab", 0), 1, true);
    entries
}

fn encoded(entries: &Entries) -> Vec<u8> {
    encode(&entries.iter().collect::<Vec<_>>())
}

#[test]
fn the_newest_entry_up_to_a_revision_is_the_first_at_its_place() {
    let entries = entries();
    let cell = Entries::decode(&encoded(&entries)).unwrap();
    assert_eq!(cell, entries);
    let group = [b"a".as_slice(), &7_u64.to_be_bytes()].concat();
    let found = |revision| {
        let (entry, begins) = cell.get(cell.at_or_after(&place(&group, revision), 0))?;
        (super::group(entry) == group).then_some((super::revision(entry), begins))
    };
    let states = [2, 3, 4, 5, 9].map(found);
    let set = Some((3, true));
    assert_eq!(states, [None, set, set, Some((5, false)), Some((5, false))]);
    let next = cell.get(cell.at_or_after(&place(&group, 0), 3)).unwrap();
    assert_eq!(split(super::group(next.0)), (b"a".as_slice(), 8));
    assert_eq!(revision(next.0), 1);
}

#[test]
fn a_place_is_found_from_wherever_the_search_begins() {
    let mut entries = Entries::default();
    (0..40).for_each(|ordinal| entries.add((b"k", 2 * ordinal), 1, true));
    for ordinal in 0..82 {
        let place = entry(b"k", ordinal, 1);
        let expected = usize::try_from(ordinal.div_ceil(2)).unwrap().min(40);
        for near in 0..50 {
            assert_eq!(entries.at_or_after(&place, near), expected, "{ordinal} from {near}");
        }
    }
    assert_eq!(Entries::default().at_or_after(b"k", 3), 0);
}

#[test]
fn cells_that_cannot_be_are_refused() {
    let entries = entries();
    let whole = encoded(&entries);
    for len in 0..whole.len() {
        assert!(Entries::decode(whole.get(..len).unwrap()).is_err(), "{len}");
    }
    let first = entries.get(0).unwrap();
    assert!(Entries::decode(&encode(&[first, first])).is_err());
    let reversed: Vec<_> = (0..entries.len()).rev().filter_map(|at| entries.get(at)).collect();
    assert!(Entries::decode(&encode(&reversed)).is_err());
    assert!(Entries::decode(&encode(&[(b"abc", true)])).is_err());
    assert!(Entries::decode(&[1, 9, 2, 0]).is_err(), "more shared than there is");
}

/// What had been copied of a slab when a checkpoint came was dropped by a merge before the rest
/// was copied, since no facts named the slab yet.
#[test]
fn a_slab_behind_all_that_are_known_is_kept() {
    let slabs = [3, 40, 90].map(|start| Slab { start, alive: 9 }).to_vec();
    let facts = Facts { first: 3, slabs, ..Facts::default() };
    let kept = Kept::new(95, vec![5]);
    let are_kept = [3, 20, 40, 90, 96].map(|slab| facts.is_kept(slab, &kept));
    assert_eq!(are_kept, [true, false, false, true, true]);
}

#[test]
fn facts_are_kept_as_they_were_and_refused_if_they_cannot_be() {
    let slabs = vec![Slab { start: 3, alive: 0 }, Slab { start: 40, alive: 900 }];
    let facts = Facts { first: 3, watermark: 50, ordinals: 9, alive: 8, events: 7, slabs };
    let cell = facts.encode();
    assert_eq!(Facts::decode(&cell).unwrap(), facts);
    assert_eq!(
        [2, 3, 39, 40, 99].map(|at| facts.slab(at)),
        [None, Some(3), Some(3), Some(40), Some(40)]
    );
    for len in 0..cell.len() {
        assert!(Facts::decode(cell.get(..len).unwrap()).is_err(), "{len}");
    }
    let falling = Facts { first: 4, ..facts };
    assert!(Facts::decode(&falling.encode()).is_err());
}
