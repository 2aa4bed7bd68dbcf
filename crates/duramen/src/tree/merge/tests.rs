//! Merged cells against the cells they were made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::encoding::{
    Column, RevisionRows, RevisionRowsBlock, RunPiece, encode_column, encode_run,
};
use crate::io::Device;
use crate::limits::SPAN_CHANGES_MAX;
use crate::manifest::Manifest;
use crate::memory::Memory;
use crate::node::PathId;
use crate::revision::{CommitSequence, Micros};
use crate::segment::tests::device::TestDevice;
use crate::segment::tests::{Cells, Random, write};
use crate::state::{Datum, ShapeId};
use crate::store::Store;
use crate::tree::cell_key::TreeId;
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;

const TREE: TreeId = TreeId(3);
const GROUP: GroupId = GroupId { space: SpaceId(0), group: 0 };
const PATH: PathId = PathId(2);

fn key(kind: GroupCell, number: u32) -> Vec<u8> {
    cell_key::group_cell(TREE, GROUP, PATH, (kind, number))
}

/// Nothing older.
fn nothing() -> LiveSegments {
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let store = Store::open(&device, &Manifest::new(1, Micros(0)), &Memory::new(4 << 20)).unwrap();
    store.live().part(0..0, 0)
}

fn merge(older: LiveSegments, cells: &Cells) -> Vec<Cell> {
    let mut merger = Merger::new(older);
    let mut out = Vec::new();
    for (key, cell) in cells {
        merger.push((key.clone().into(), cell.clone().into()), &mut out).unwrap();
    }
    merger.finish(&mut out).unwrap();
    assert!(out.is_sorted_by(|a, b| a.0 < b.0), "the keys do not rise");
    out
}

fn base(states: &[Datum<'_>]) -> Vec<u8> {
    let mut cell = Vec::new();
    encode_column(states, &mut cell);
    cell
}

/// The states of all slots that cells of first states have.
fn slots(cells: &[Cell]) -> Vec<String> {
    let mut slots = Vec::new();
    for (key, cell) in cells {
        let first = u32::from_be_bytes(*key.last_chunk().unwrap()) as usize;
        slots.resize(first, "Absent".to_owned());
        let column = Column::parse(cell.clone()).unwrap();
        slots.extend(column.iter().map(|state| format!("{:?}", state.unwrap())));
    }
    slots
}

#[test]
fn first_states_of_adjoining_slots_come_into_one_cell_and_gaps_stay_absent() {
    let mut cells = Cells::new();
    cells.insert(key(GroupCell::Base, 0), base(&[Datum::Int(1), Datum::Int(2)]));
    cells.insert(key(GroupCell::Base, 2), base(&[Datum::Bool(true)]));
    cells.insert(key(GroupCell::Base, 7), base(&[Datum::Null]));
    cells.insert(key(GroupCell::Born, 0), base(&[Datum::Int(1); 3]));
    cells.insert(key(GroupCell::Born, 7), base(&[Datum::Int(4)]));
    let before: Vec<Cell> =
        cells.iter().map(|(key, cell)| (key.clone().into(), cell.clone().into())).collect();
    let merged = merge(nothing(), &cells);
    assert_eq!(merged.len(), 3, "births have no gaps");
    assert_eq!(slots(&merged[..1]), slots(&before[..3]));
    assert_eq!(merged[1..], before[3..]);
}

#[test]
fn a_cell_is_cut_where_it_would_not_fit_a_block() {
    let texts: Vec<String> = (0..100).map(|slot| format!("{slot:01000}")).collect();
    let states: Vec<_> =
        texts.iter().map(|text| Datum::Text { bytes: text.as_bytes(), plain: true }).collect();
    let mut cells = Cells::new();
    for first in (0..100).step_by(10) {
        let states = &states[first..first + 10];
        cells.insert(key(GroupCell::Base, u32::try_from(first).unwrap()), base(states));
    }
    let merged = merge(nothing(), &cells);
    assert!(merged.iter().all(|(_, cell)| cell.len() <= CELL_BYTES_WANTED));
    let expected: Vec<String> = states.iter().map(|state| format!("{state:?}")).collect();
    assert_eq!(slots(&merged), expected);
}

type Changes = BTreeMap<u32, (u16, i64)>;

/// A change in every revision, mostly of slot 0.
fn changes(random: &mut Random, revisions: u32) -> Changes {
    let slot = |random: &mut Random| match random.below(10_000) {
        0 => 2,
        1..100 => 1,
        _ => 0,
    };
    let change = |revision| {
        let slot = if revision == 10 { 3 } else { slot(random) };
        (revision, (slot, (random.next() % 1_000_000).cast_signed()))
    };
    (2..2 + revisions).map(change).collect()
}

/// The run pieces that checkpoints of random lengths write.
fn pieces(random: &mut Random, changes: &Changes) -> Cells {
    let mut cells = Cells::new();
    let mut rest = changes.iter().map(|(&revision, &(slot, value))| (slot, revision, value));
    loop {
        let mut piece: Vec<_> = rest.by_ref().take(1 + random.below(1_500)).collect();
        let Some(first) = piece.first().map(|change| change.1) else { return cells };
        piece.sort_unstable();
        let piece: Vec<_> = piece
            .into_iter()
            .map(|(slot, revision, value)| (slot, revision, Datum::Int(value)))
            .collect();
        let mut cell = Vec::new();
        encode_run(&piece, &mut cell);
        cells.insert(key(GroupCell::Run, first), cell);
    }
}

/// The newest change at or before a revision, as a reader looks for it, and the pieces it took.
fn read(runs: &BTreeMap<u32, RunPiece>, slot: u16, revision: u32) -> (Option<(u32, i64)>, usize) {
    let mut looked_at = 0;
    for piece in runs.range(..=revision).rev().map(|(_, piece)| piece) {
        looked_at += 1;
        if let Some((set, Datum::Int(value))) = piece.at(slot, revision).unwrap() {
            return (Some((set, value)), looked_at);
        }
        if piece.is_complete() {
            break;
        }
    }
    (None, looked_at)
}

fn check_runs(merged: &[Cell], changes: &Changes, pieces_max: usize) {
    let runs: BTreeMap<u32, RunPiece> = merged
        .iter()
        .map(|(key, cell)| {
            let piece = RunPiece::parse(cell.clone()).unwrap();
            piece.check().unwrap();
            assert_eq!(piece.first_revision().to_be_bytes(), key[key.len() - 4..]);
            (piece.first_revision(), piece)
        })
        .collect();
    let own: usize = runs.values().map(|piece| piece.own_len().unwrap()).sum();
    assert_eq!(own, changes.len());
    let mut newest = [None; 5];
    for (&revision, &(slot, value)) in changes {
        newest[usize::from(slot)] = Some((revision, value));
        if revision % 97 == 0 {
            for (slot, &expected) in (0..).zip(&newest) {
                let (found, looked_at) = read(&runs, slot, revision);
                assert_eq!(found, expected, "slot {slot} at {revision}");
                assert!(looked_at <= pieces_max, "{looked_at} pieces for slot {slot}");
            }
        }
    }
}

/// Pieces between two complete ones at most, if each is as full as it gets.
const SPAN_PIECES: usize = SPAN_CHANGES_MAX / 2_500 + 2;

#[test]
fn a_long_run_is_split_in_time_so_that_reads_go_back_over_few_pieces() {
    let mut random = Random(7);
    let changes = changes(&mut random, 200_000);
    let merged = merge(nothing(), &pieces(&mut random, &changes));
    check_runs(&merged, &changes, SPAN_PIECES);
}

#[test]
fn a_split_repeats_what_older_segments_have() {
    let mut random = Random(8);
    let changes = changes(&mut random, 150_000);
    let cells: Vec<_> = pieces(&mut random, &changes).into_iter().collect();
    let device: Arc<dyn Device> = Arc::new(TestDevice::default());
    let store = Store::open(&device, &Manifest::new(1, Micros(0)), &Memory::new(4 << 20)).unwrap();
    let mut all = Vec::new();
    for (number, part) in (1..).zip(cells.chunks(cells.len() / 20)) {
        let older = store.live().part(0..store.live().segments().len(), 1 << 20);
        let merged = merge(older, &part.iter().cloned().collect());
        let merged_cells: Cells =
            merged.iter().map(|(key, cell)| (key.to_vec(), cell.to_vec())).collect();
        store.add(store.open_segment(&write(&device, number, &merged_cells)).unwrap());
        all.extend(merged);
    }
    check_runs(&all, &changes, SPAN_PIECES + 4);
    let again: Cells = all.iter().map(|(key, cell)| (key.to_vec(), cell.to_vec())).collect();
    check_runs(&merge(nothing(), &again), &changes, SPAN_PIECES + 4);
}

/// Of a slot's changes, what reads at kept revisions and the return of removed values need.
#[test]
fn trimming_keeps_the_newest_changes_up_to_each_kept_revision() {
    let mut random = Random(9);
    let changes = changes(&mut random, 20_000);
    let cells = pieces(&mut random, &changes);
    let kept = Kept::new(15_000, vec![3_000, 9_000]);
    let mut merger = Merger::new(nothing());
    merger.keep([(TREE, kept.clone())].into_iter().collect());
    let mut written = Vec::new();
    for (key, cell) in &cells {
        merger.push((key.clone().into(), cell.clone().into()), &mut written).unwrap();
    }
    merger.finish(&mut written).unwrap();
    assert!(written.is_sorted_by(|a, b| a.0 < b.0), "the keys do not rise");
    let runs: BTreeMap<u32, RunPiece> = written
        .iter()
        .map(|(_, cell)| {
            let piece = RunPiece::parse(cell.clone()).unwrap();
            piece.check().unwrap();
            (piece.first_revision(), piece)
        })
        .collect();
    let own: usize = runs.values().map(|piece| piece.own_len().unwrap()).sum();
    let after = changes.range(15_001..).count();
    assert!((after..after + 13).contains(&own), "{own} changes, {after} of them after");
    let mut newest = [None; 5];
    for (&revision, &(slot, value)) in &changes {
        newest[usize::from(slot)] = Some((revision, value));
        if kept.has(revision) {
            for (slot, &expected) in (0..).zip(&newest) {
                assert_eq!(read(&runs, slot, revision).0, expected, "slot {slot} at {revision}");
            }
        }
    }
}

#[test]
fn first_states_that_no_kept_revision_reads_become_null() {
    let text = |bytes| Datum::Text { bytes, plain: true };
    let first = [Datum::Int(1), text(b"read at 6"), Datum::Absent, text(b"removed"), text(b"gone")];
    let mut cells = Cells::from([(key(GroupCell::Base, 0), base(&first))]);
    let changes = [
        (2, vec![(4, Datum::Int(8))]),
        (4, vec![(0, Datum::Bool(true)), (3, Datum::Absent), (4, Datum::Absent)]),
        (5, vec![(2, Datum::Int(3))]),
        (8, vec![(1, Datum::Int(4))]),
        (12, vec![(3, text(b"back"))]),
    ];
    for (revision, slots) in changes {
        let changes: Vec<_> =
            slots.into_iter().map(|(slot, state)| (slot, revision, state)).collect();
        let mut cell = Vec::new();
        encode_run(&changes, &mut cell);
        cells.insert(key(GroupCell::Run, revision), cell);
    }
    cells.insert(key(GroupCell::Born, 0), base(&[Datum::Int(1); 5]));
    for (is_again, mut left) in [(false, cells.clone()), (true, cells)] {
        for _ in 0..=u8::from(is_again) {
            let mut merger = Merger::new(nothing());
            merger.keep([(TREE, Kept::new(10, vec![6]))].into_iter().collect());
            let mut written = Vec::new();
            for (key, cell) in left {
                merger.push((key.into(), cell.into()), &mut written).unwrap();
            }
            merger.finish(&mut written).unwrap();
            assert!(written.is_sorted_by(|a, b| a.0 < b.0), "the keys do not rise");
            assert_eq!(&written[1].0[..], key(GroupCell::Born, 0));
            let expected = [Datum::Null, first[1], Datum::Absent, Datum::Null, Datum::Null];
            assert_eq!(slots(&written[..1]), expected.map(|state| format!("{state:?}")));
            left = written.into_iter().map(|(key, cell)| (key.to_vec(), cell.to_vec())).collect();
        }
    }
}

/// What is left of the first state of a slot and of its changes, each in a piece of its own, where
/// only revisions from 9 on are kept.
fn trimmed(first: Datum<'_>, changes: &[(u32, Datum<'_>)]) -> Vec<String> {
    let mut cells = Cells::from([(key(GroupCell::Base, 0), base(&[first]))]);
    for &(revision, state) in changes {
        let mut cell = Vec::new();
        encode_run(&[(0, revision, state)], &mut cell);
        cells.insert(key(GroupCell::Run, revision), cell);
    }
    let mut merger = Merger::new(nothing());
    merger.keep([(TREE, Kept::new(9, Vec::new()))].into_iter().collect());
    let mut written = Vec::new();
    for (key, cell) in cells {
        merger.push((key.into(), cell.into()), &mut written).unwrap();
    }
    merger.finish(&mut written).unwrap();
    let mut left = slots(&written[..1]);
    for (_, cell) in &written[1..] {
        let piece = RunPiece::parse(cell.clone()).unwrap();
        let changes = (0..piece.len()).map(|index| piece.entry(index).unwrap());
        left.extend(changes.map(|(_, revision, state)| format!("{revision}: {state:?}")));
    }
    left
}

/// Which members there were has to be known when it comes back; nothing else has.
#[test]
fn a_removal_keeps_what_had_members_and_of_anything_else_that_it_was_there() {
    let (text, object) = (Datum::Text { bytes: b"long", plain: true }, Datum::Object(ShapeId(3)));
    let gone = [(6, Datum::Absent), (8, Datum::Absent)];
    let removed = "8: Absent".to_owned();
    let [as_null, as_object] = [Datum::Null, object].map(|state| format!("{state:?}"));
    let left = [as_null.clone(), "4: Null".to_owned(), removed.clone()];
    assert_eq!(trimmed(Datum::Int(1), &[(4, text), gone[0], gone[1]]), left);
    let left = [as_null.clone(), format!("4: {as_object}"), removed.clone()];
    assert_eq!(trimmed(Datum::Int(1), &[(4, object), gone[0], gone[1]]), left);
    assert_eq!(trimmed(text, &[(8, Datum::Absent)]), [as_null, removed.clone()]);
    assert_eq!(trimmed(object, &[(8, Datum::Absent)]), [as_object, removed]);
}

#[test]
fn rows_of_dropped_revisions_go_and_those_left_have_their_own_numbers() {
    let mut cells = Cells::new();
    for first in [1, 101, 201] {
        cells.insert(cell_key::rows(TREE, first.into()), rows(first, 100));
    }
    let kept = Kept::new(150, vec![7, 8, 120]);
    let mut merger = Merger::new(nothing());
    merger.keep([(TREE, kept)].into_iter().collect());
    let mut written = Vec::new();
    for (key, cell) in &cells {
        merger.push((key.clone().into(), cell.clone().into()), &mut written).unwrap();
    }
    merger.finish(&mut written).unwrap();
    let spans: Vec<(u64, usize)> = written
        .iter()
        .map(|(key, cell)| {
            let first = u64::from_be_bytes(*key.last_chunk().unwrap());
            let block = RevisionRowsBlock::parse(cell.clone()).unwrap();
            block.check().unwrap();
            assert_eq!(block.timestamp(0).unwrap().0, first.cast_signed() * 10);
            (first, block.len())
        })
        .collect();
    assert_eq!(spans, [(7, 2), (120, 1), (150, 151)]);
}

fn rows(from: u32, count: u32) -> Vec<u8> {
    let mut rows = RevisionRows::default();
    for row in from..from + count {
        rows.timestamps.push(Micros(i64::from(row) * 10));
        rows.committed.push(Micros(i64::from(row) * 10 + 1));
        rows.sequences.push(CommitSequence(u64::from(row)));
        rows.strings.push(format!("author {}", row % 3).into_bytes());
        rows.authors.push(u32::try_from(rows.strings.len()).unwrap());
        rows.messages.push(0);
        rows.changed.push(crate::tree::data::node(PATH, row.into()));
        rows.changed_ends.push(u32::try_from(rows.changed.len()).unwrap());
        rows.moves_ends.push(0);
    }
    let mut cell = Vec::new();
    rows.encode(&mut cell);
    cell
}

#[test]
fn revision_rows_come_into_blocks_of_1024() {
    let mut cells = Cells::new();
    for first in (1..=2_100).step_by(100) {
        cells.insert(cell_key::rows(TREE, first.into()), rows(first, 100));
    }
    let merged = merge(nothing(), &cells);
    let blocks: Vec<_> =
        merged.iter().map(|(_, cell)| RevisionRowsBlock::parse(cell.clone()).unwrap()).collect();
    assert_eq!(blocks.iter().map(RevisionRowsBlock::len).collect::<Vec<_>>(), [1_000, 1_000, 100]);
    let mut revision = 1;
    for block in &blocks {
        block.check().unwrap();
        for row in 0..block.len() {
            assert_eq!(block.timestamp(row).unwrap(), Micros(revision * 10));
            let author = format!("author {}", revision % 3);
            assert_eq!(block.author(row).unwrap(), Some(author.as_bytes()));
            let changed: Vec<_> = block.changed(row).unwrap().map(Result::unwrap).collect();
            assert_eq!(changed, [crate::tree::data::node(PATH, revision.cast_unsigned())]);
            revision += 1;
        }
    }
}
