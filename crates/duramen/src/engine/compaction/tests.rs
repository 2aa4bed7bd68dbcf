//! What is due, and how often a cell is merged.

use super::*;
use crate::CommitSequence;
use crate::segment::BlockAddress;

fn segments(levels_and_bytes: &[(u8, u64)]) -> Vec<SegmentInfo> {
    let info = |&(level, bytes): &(u8, u64)| SegmentInfo {
        number: 1,
        footer: BlockAddress { offset: bytes.into(), length: 0.into(), checksum: 0.into() },
        cells: 1,
        level,
        encoding: Encoding::Warm,
        first_sequence: CommitSequence(1),
        last_sequence: CommitSequence(1),
    };
    levels_and_bytes.iter().map(info).collect()
}

fn due(levels_and_bytes: &[(u8, u64)]) -> Option<(usize, u8)> {
    Plan::due(&segments(levels_and_bytes)).map(|plan| (plan.inputs.end, plan.level))
}

/// With as many young segments of 10 bytes as make a merge due.
fn due_with(levels: &[(u8, u64)]) -> Option<(usize, u8)> {
    let young = vec![(0, 10); SEGMENTS_KEPT_MAX + 1 - levels.len()];
    due(&[&young, levels].concat())
}

#[test]
fn young_segments_are_merged_once_there_are_eight_in_all() {
    assert_eq!(due(&[]), None);
    assert_eq!(due(&[(0, 10); 7]), None);
    assert_eq!(due(&[(0, 10); 8]), Some((8, 4)));
    assert_eq!(due(&[(0, 10), (0, 10), (0, 10), (1, 9), (2, 9), (3, 9), (4, 9)]), None);
    // Nothing is merged for levels alone, however many there are.
    assert_eq!(due(&[(4, 10); 8]), None);
}

#[test]
fn levels_are_filled_before_any_is_merged_again() {
    assert_eq!(due_with(&[(4, 9)]), Some((7, 3)));
    assert_eq!(due_with(&[(2, 10), (3, 10), (4, 10)]), Some((5, 1)));
}

#[test]
fn of_full_levels_those_are_merged_that_give_back_most_for_their_bytes() {
    assert_eq!(due_with(&[(1, 40), (2, 40), (3, 40), (4, 40)]), Some((8, 4)));
    assert_eq!(due_with(&[(1, 40), (2, 90), (3, 192), (4, 400)]), Some((7, 3)));
    assert_eq!(due_with(&[(1, 40), (2, 70), (3, 600), (4, 900)]), Some((6, 2)));
    assert_eq!(due_with(&[(1, 90), (2, 900), (3, 9_000), (4, 90_000)]), Some((5, 1)));
}

#[test]
fn what_is_small_is_merged_though_a_level_is_free() {
    assert_eq!(due_with(&[(4, 8)]), Some((8, 4)));
    assert_eq!(due_with(&[(3, 7), (4, 9)]), Some((7, 3)));
}

/// A segment of which index or filter had 4 GiB ended the process that wrote it.
#[test]
fn what_would_be_too_large_for_one_segment_stays_apart() {
    const MOST: u64 = MERGED_BYTES_MAX;
    assert_eq!(due_with(&[(3, MOST / 2), (4, MOST / 2)]), Some((6, 2)));
    assert_eq!(due_with(&[(1, MOST), (2, MOST), (3, MOST), (4, MOST)]), Some((4, 0)));
    assert_eq!(due(&[&[(0, 10); 3], &[(0, MOST); 5][..]].concat()), Some((3, 0)));
    assert_eq!(due(&[(0, MOST); 8]), None);
    let mut many = segments(&[(0, 10); 9]);
    many[6].cells = MERGED_CELLS_MAX;
    let plan = Plan::due(&many).unwrap();
    assert_eq!((plan.inputs, plan.level), (0..6, 0));
}

/// How often a cell was merged on average, in thousandths, at most, while there are up to so many
/// checkpoints, whose lengths differ by up to three times.
fn thousandths_merged(seed: u64, checkpoints: u64) -> u64 {
    let (mut live, mut written, mut merged) = (Vec::new(), 0, 0);
    let (mut most, mut random) = (0, seed);
    for _ in 0..checkpoints {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let bytes = 500 + (random >> 33) % 1_000;
        live.insert(0, (0, bytes));
        written += bytes;
        if let Some((end, level)) = due(&live) {
            let bytes = live.drain(..end).map(|(_, bytes)| bytes).sum();
            live.insert(0, (level, bytes));
            merged += bytes;
        }
        assert!(live.len() <= SEGMENTS_KEPT_MAX);
        most = most.max(1_000 * merged / written);
    }
    most
}

/// Besides, each is in the journal and in the segment of its checkpoint: that makes less than
/// four times that its bytes are written.
#[test]
fn a_cell_is_merged_less_than_twice_while_there_are_60_checkpoints() {
    for seed in 0..50 {
        let most = thousandths_merged(seed, 60);
        assert!(most < 2_000, "{most}");
    }
}

#[test]
fn a_cell_is_merged_less_than_six_times_while_there_are_500_checkpoints() {
    for seed in 0..50 {
        let most = thousandths_merged(seed, 500);
        assert!(most < 6_000, "{most}");
    }
}

#[test]
fn what_was_compressed_stays_so_when_more_is_merged_into_it() {
    let encoding = |live: &[SegmentInfo]| Plan::due(live).map(|plan| plan.encoding);
    let levels = [(1, 40), (2, 40), (3, 40), (4, 40)];
    let mut near = segments(&[&[(0, 10); 4][..], &levels].concat());
    assert_eq!(encoding(&near), Some(Encoding::Warm));
    near[7].encoding = Encoding::Cold;
    assert_eq!(encoding(&near), Some(Encoding::Cold));
    let mut far = segments(&[&[(0, 10); 7][..], &[(4, 40)]].concat());
    far[7].encoding = Encoding::Cold;
    assert_eq!(encoding(&far), Some(Encoding::Warm));
}

#[test]
fn what_is_one_compressed_segment_stays_as_it_is() {
    let all = |levels: &[(u8, u64)]| Plan::all(&segments(levels)).map(|plan| plan.inputs);
    assert_eq!(all(&[]), None);
    let mut one = segments(&[(4, 10)]);
    assert_eq!(Plan::all(&one).map(|plan| plan.inputs), Some(0..1));
    one[0].encoding = Encoding::Cold;
    assert_eq!(Plan::all(&one), None);
    assert_eq!(all(&[(0, 10)]), Some(0..1));
    assert_eq!(all(&[(3, 10), (4, 10)]), Some(0..2));
}
