#![expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests use small values and may panic"
)]

mod hostile;
mod sizes;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;

use super::bits::Bits;
use super::integers::Integers;
use super::reader::Reader;
use super::summary::Summary;
use super::tags::Tags;
use super::texts::Texts;
use super::*;
use crate::node::{Move, NodeId};
use crate::order::OrderBlock;
use crate::revision::{CommitSequence, Micros};
use crate::state::{ApartKind, BlobId, Datum, Extent, OrderId, Sequence, ShapeId};

/// A state that owns its bytes.
#[derive(Debug, Clone)]
enum Owned {
    Fixed(Datum<'static>),
    Text(Vec<u8>, bool),
    Digits(Vec<u8>),
    Opaque(Vec<u8>),
}

impl Owned {
    fn datum(&self) -> Datum<'_> {
        match self {
            Self::Fixed(datum) => *datum,
            Self::Text(bytes, plain) => Datum::Text { bytes, plain: *plain },
            Self::Digits(bytes) => Datum::Digits(bytes),
            Self::Opaque(bytes) => Datum::Opaque(bytes),
        }
    }
}

/// Unlike equality of states, the same in every field and bit.
fn same(a: Datum<'_>, b: Datum<'_>) -> bool {
    match (a, b) {
        (Datum::Float(a), Datum::Float(b)) => a.to_bits() == b.to_bits(),
        _ => format!("{a:?}") == format!("{b:?}"),
    }
}

fn any_integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        0..300_i64,
        Just(i64::MIN),
        Just(i64::MAX),
        any::<i32>().prop_map(i64::from)
    ]
}

/// Values along a line, with and without a jitter.
fn any_slope() -> impl Strategy<Value = Vec<i64>> {
    (any_integer(), any_integer(), 0..200_i64, 1..1_000_i64).prop_map(
        |(base, step, len, jitter)| {
            let value =
                |i: i64| base.wrapping_add(step.wrapping_mul(i)).wrapping_add(i * 7919 % jitter);
            (0..len).map(value).collect()
        },
    )
}

/// Along a line, as far as 64 bits hold it.
fn any_line() -> impl Strategy<Value = Vec<i64>> {
    let base = prop_oneof![-9..9_i64, -(1_i64 << 60)..1_i64 << 60];
    let step = prop_oneof![-3..4_i64, -(1_i64 << 50)..1_i64 << 50];
    let value = |base: i64, step: i64, i: i64| base + step * i;
    (base, step, 0..200_i64)
        .prop_map(move |(base, step, len)| (0..len).map(|i| value(base, step, i)).collect())
}

fn any_sequence() -> impl Strategy<Value = Sequence> {
    prop_oneof![
        (0..1_u64 << 40, 0..1_u32 << 24)
            .prop_map(|(first, count)| Sequence::Extent(Extent { first, count })),
        any::<u64>().prop_map(|order| Sequence::Blocks(OrderId(order))),
    ]
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![vec(any::<u8>(), 0..20), vec(Just(b'a'), 0..3), vec(any::<u8>(), 250..260)]
}

fn any_datum() -> impl Strategy<Value = Owned> {
    let kind = prop::sample::select(vec![
        ApartKind::PlainText,
        ApartKind::Text,
        ApartKind::Digits,
        ApartKind::Opaque,
    ]);
    let fixed = prop_oneof![
        Just(Datum::Absent),
        Just(Datum::Null),
        any::<bool>().prop_map(Datum::Bool),
        any_integer().prop_map(Datum::Int),
        (any_integer(), 1..19_u8).prop_map(|(mantissa, scale)| Datum::Decimal { mantissa, scale }),
        any::<f64>()
            .prop_filter("JSON has finite numbers", |value| value.is_finite())
            .prop_map(Datum::Float),
        any::<u32>().prop_map(|shape| Datum::Object(ShapeId(shape))),
        any_sequence().prop_map(Datum::Array),
        any_sequence().prop_map(Datum::Map),
        (any::<u64>(), kind).prop_map(|(blob, kind)| Datum::Apart { blob: BlobId(blob), kind }),
    ];
    prop_oneof![
        10 => fixed.prop_map(Owned::Fixed),
        2 => (any_bytes(), any::<bool>()).prop_map(|(bytes, plain)| Owned::Text(bytes, plain)),
        1 => any_bytes().prop_map(Owned::Digits),
        1 => any_bytes().prop_map(Owned::Opaque),
    ]
}

/// Columns of one state repeated, of a few states mixed, and of many.
fn any_column() -> impl Strategy<Value = Vec<Owned>> {
    let few = vec(any_datum(), 1..4).prop_flat_map(|few| vec(prop::sample::select(few), 0..300));
    prop_oneof![vec(any_datum(), 0..6), few, vec(any_datum(), 0..300)]
}

fn column(datums: &[Datum<'_>]) -> Column {
    let mut out = Vec::new();
    encode_column(datums, &mut out);
    Column::parse(Bytes::from(out)).unwrap()
}

fn integers(values: &[i64]) -> (Integers, Vec<u8>) {
    let mut cell = vec![7];
    Integers::encode(values, &mut cell);
    let mut reader = Reader::new(&cell).unwrap();
    reader.u8().unwrap();
    let integers = Integers::parse(&mut reader, values.len()).unwrap();
    reader.finish().unwrap();
    (integers, cell)
}

proptest! {
    #[test]
    fn integers_come_back(values in prop_oneof![vec(any_integer(), 0..200), any_slope()]) {
        let (integers, cell) = integers(&values);
        let mut all = vec![1];
        integers.decode_into(&cell, &mut all);
        prop_assert_eq!(&all[1..], &values);
        for (index, value) in values.iter().enumerate() {
            prop_assert_eq!(integers.get(&cell, index), Some(*value));
        }
        prop_assert_eq!(integers.get(&cell, values.len()), None);
    }

    #[test]
    fn where_integers_that_rise_pass_a_bound_is_found(
        values in prop_oneof![vec(any_integer(), 0..200), any_line(), vec(-3..3_i64, 0..200)],
        bounds in vec(any_integer(), 1..20),
        cut in 0..10_usize,
    ) {
        let (integers, cell) = integers(&values);
        let mut start = 0;
        for run in values.chunk_by(|a, b| a <= b) {
            let range = start + cut.min(run.len())..start + run.len();
            start = range.end;
            let run = &values[range.clone()];
            let beside = run.iter().flat_map(|value| [value.saturating_sub(1), *value]);
            for bound in beside.chain(bounds.iter().copied()) {
                let up_to = run.iter().filter(|value| **value <= bound).count();
                let after = integers.after(&cell, range.clone(), bound);
                prop_assert_eq!(after, range.start + up_to, "{} in {:?}", bound, range);
            }
        }
    }

    #[test]
    fn wide_integers_come_back(value in prop_oneof![any::<i128>(), (-70_000..70_000_i128)]) {
        let mut cell = Vec::new();
        reader::put_wide(&mut cell, value);
        prop_assert_eq!(Reader::new(&cell).unwrap().wide().unwrap(), value);
    }

    #[test]
    fn bits_count_both_sides(bits in vec(any::<bool>(), 0..700)) {
        let mut cell = Vec::new();
        Bits::encode(&bits, &mut cell);
        let mut reader = Reader::new(&cell).unwrap();
        let view = Bits::parse(&mut reader, bits.len()).unwrap();
        reader.finish().unwrap();
        for (index, bit) in bits.iter().enumerate() {
            let before = bits[..index].iter().filter(|other| *other == bit).count();
            let expected = bits::Rank { set: *bit, before };
            prop_assert_eq!(view.get(&cell, index), Some(*bit));
            prop_assert_eq!(view.rank(&cell, index), Some(expected));
        }
        prop_assert_eq!(view.get(&cell, bits.len()), None);
        prop_assert_eq!(view.count(&cell), Some(bits.iter().filter(|bit| **bit).count()));
    }

    #[test]
    fn tags_come_back(kinds in 1..128_u8, seeds in vec(any::<u8>(), 1..300)) {
        let tags = seeds.iter().map(|seed| seed % kinds).collect::<Vec<_>>();
        let mut cell = Vec::new();
        Tags::encode(&tags, &mut cell);
        let mut reader = Reader::new(&cell).unwrap();
        let view = Tags::parse(&mut reader, tags.len()).unwrap();
        reader.finish().unwrap();
        for (index, tag) in tags.iter().enumerate() {
            prop_assert_eq!(view.get(&cell, index), Some(*tag));
        }
        prop_assert_eq!(view.get(&cell, tags.len()), None);
    }

    #[test]
    fn texts_come_back(texts in prop_oneof![
        vec(any_bytes(), 0..100),
        vec(any_bytes(), 1..5).prop_flat_map(|few| vec(prop::sample::select(few), 0..400)),
    ]) {
        let mut cell = Vec::new();
        Texts::encode(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>(), &mut cell);
        let mut reader = Reader::new(&cell).unwrap();
        let view = Texts::parse(&mut reader, texts.len()).unwrap();
        reader.finish().unwrap();
        prop_assert_eq!(view.len(), texts.len());
        for (index, text) in texts.iter().enumerate() {
            prop_assert_eq!(view.get(&cell, index), Some(text.as_slice()));
        }
        prop_assert_eq!(view.get(&cell, texts.len()), None);
    }

    #[test]
    fn columns_come_back(owned in any_column()) {
        let datums = owned.iter().map(Owned::datum).collect::<Vec<_>>();
        let column = column(&datums);
        prop_assert_eq!(column.len(), datums.len());
        for (read, written) in column.iter().zip(&datums) {
            let read = read.unwrap();
            prop_assert!(same(read, *written), "{:?} became {:?}", written, read);
        }
        prop_assert!(column.get(datums.len()).is_err());
        prop_assert!(column.check().is_ok());
        prop_assert_eq!(column.summary().unwrap(), Summary::of(datums.iter().copied()));
    }

    #[test]
    fn one_state_is_read_without_a_view(owned in any_datum(), slot in 0..4_096_u16) {
        let datum = owned.datum();
        let mut cell = Vec::new();
        encode_column(&[datum], &mut cell);
        let is_extent = matches!(
            datum,
            Datum::Array(Sequence::Extent(_)) | Datum::Map(Sequence::Extent(_))
        );
        let read = Column::single(&cell);
        prop_assert_eq!(read.is_none(), is_extent);
        prop_assert!(read.is_none_or(|read| same(read, datum)));
        cell.clear();
        encode_run(&[(slot, 7, datum)], &mut cell);
        let read = RunPiece::single(&cell);
        prop_assert_eq!(read.is_none(), is_extent);
        prop_assert!(read.is_none_or(|read| (read.0, read.1) == (slot, 7) && same(read.2, datum)));
    }

    #[test]
    fn a_run_of_consecutive_slots_in_one_revision_is_as_first_states(
        owned in vec(any_datum(), 1..200),
        first in 0..3_000_u16,
        revision in 1..9_u32,
        odd in 0..4_u8,
    ) {
        let slots = (first..).step_by(if odd == 1 { 2 } else { 1 });
        let mut changes = slots.zip(&owned).map(|(slot, owned)| (slot, revision, owned.datum()))
            .collect::<Vec<_>>();
        if odd == 2 {
            changes[owned.len() / 2].1 += 1;
        }
        if odd == 3 {
            changes.push((changes[owned.len() - 1].0, revision + 1, Datum::Null));
        }
        let mut out = Vec::new();
        encode_run(&changes, &mut out);
        let piece = RunPiece::parse(Bytes::from(out)).unwrap();
        prop_assert!(piece.as_first_states(revision - 1).is_none());
        let found = piece.as_first_states(revision + 1);
        if odd != 0 {
            prop_assert!(found.is_none() || changes.len() == 1);
            return Ok(());
        }
        let (slot, column) = found.unwrap();
        prop_assert_eq!((slot, column.len()), (first, owned.len()));
        for (read, written) in column.iter().zip(&owned) {
            prop_assert!(same(read.unwrap(), written.datum()));
        }
    }

    #[test]
    fn runs_come_back_and_answer_for_every_revision(
        owned in vec(any_datum(), 1..200),
        slots in 1..40_u16,
        first in prop_oneof![0..10_u32, u32::MAX - 2_000..u32::MAX - 1_000],
    ) {
        let mut changes = owned.iter().enumerate().map(|(index, owned)| {
            (index as u16 * 31 % slots, first + index as u32, owned.datum())
        }).collect::<Vec<_>>();
        changes.sort_by_key(|change| (change.0, change.1));
        let mut out = Vec::new();
        encode_run(&changes, &mut out);
        let piece = RunPiece::parse(Bytes::from(out)).unwrap();
        prop_assert_eq!(piece.len(), changes.len());
        prop_assert_eq!(piece.first_revision(), first);
        prop_assert_eq!(piece.last_revision(), first + changes.len() as u32 - 1);
        prop_assert!(piece.check().is_ok());
        for (index, change) in changes.iter().enumerate() {
            let (slot, revision, datum) = piece.entry(index).unwrap();
            prop_assert_eq!((slot, revision), (change.0, change.1));
            prop_assert!(same(datum, change.2));
        }
        for slot in 0..=slots {
            let run = piece.run(slot).unwrap();
            prop_assert_eq!(run.len(), changes.iter().filter(|change| change.0 == slot).count());
            for revision in first.saturating_sub(1)..=first + changes.len() as u32 {
                let newest = changes.iter().rfind(|c| c.0 == slot && c.1 <= revision);
                let found = piece.at(slot, revision).unwrap();
                prop_assert_eq!(found.map(|found| found.0), newest.map(|change| change.1));
                prop_assert!(found.zip(newest).is_none_or(|(a, b)| same(a.1, b.2)));
            }
        }
    }

    #[test]
    fn order_blocks_come_back(
        extents in vec((0..1_u64 << 40, 0..1_u32 << 24), 0..256),
        children in vec((any::<u64>(), any::<u64>()), 0..256),
    ) {
        let extents = extents.into_iter().map(|(first, count)| Extent { first, count });
        let extents = extents.collect::<Vec<_>>();
        let children = children.into_iter().map(|(order, len)| (OrderId(order), len));
        for block in [
            OrderBlock::Leaf(extents.into_iter().filter(|extent| extent.is_valid()).collect()),
            OrderBlock::Inner(children.filter(|(_, len)| *len > 0 && *len < 1 << 48).collect()),
        ] {
            let mut out = Vec::new();
            encode_order_block(&block, &mut out);
            if block.check().is_ok() {
                prop_assert_eq!(decode_order_block(&out).unwrap(), block);
            } else {
                prop_assert!(decode_order_block(&out).is_err());
            }
        }
    }

    #[test]
    fn revision_rows_come_back(rows in vec(any_row(), 0..100)) {
        let plain = revision_rows(&rows);
        let mut out = Vec::new();
        plain.encode(&mut out);
        let block = RevisionRowsBlock::parse(Bytes::from(out)).unwrap();
        prop_assert_eq!(block.len(), rows.len());
        let mut timestamps = Vec::new();
        block.timestamps_into(&mut timestamps);
        for (index, row) in rows.iter().enumerate() {
            prop_assert_eq!(timestamps[index], row.timestamp);
            prop_assert_eq!(block.timestamp(index).unwrap(), Micros(row.timestamp));
            prop_assert_eq!(block.sequence(index).unwrap(), CommitSequence(row.sequence));
            prop_assert_eq!(block.author(index).unwrap(), row.author.as_deref());
            prop_assert_eq!(block.message(index).unwrap(), row.message.as_deref());
            prop_assert_eq!(block.committed(index).unwrap(), row.committed);
            let changed = block.changed(index).unwrap().map(|node| node.unwrap().number());
            prop_assert_eq!(&changed.collect::<Vec<_>>(), &row.changed);
            let moves = block.moves(index).unwrap().map(Result::unwrap);
            let moves = moves.map(|moved| (moved.to.number(), moved.from.number()));
            prop_assert_eq!(&moves.collect::<Vec<_>>(), &row.moves);
        }
        prop_assert!(block.timestamp(rows.len()).is_err());
    }
}

#[derive(Debug, Clone)]
struct Row {
    timestamp: i64,
    sequence: u64,
    author: Option<Vec<u8>>,
    message: Option<Vec<u8>>,
    committed: Micros,
    changed: Vec<u64>,
    moves: Vec<(u64, u64)>,
}

fn any_row() -> impl Strategy<Value = Row> {
    (
        any_integer(),
        any::<u64>(),
        prop::option::of(any_bytes()),
        prop::option::of(any_bytes()),
        any_integer().prop_map(Micros),
        vec(any::<u64>(), 0..5),
        vec(any::<(u64, u64)>(), 0..3),
    )
        .prop_map(|(timestamp, sequence, author, message, committed, changed, moves)| Row {
            timestamp,
            sequence,
            author,
            message,
            committed,
            changed,
            moves,
        })
}

fn revision_rows(rows: &[Row]) -> RevisionRows {
    let mut plain = RevisionRows::default();
    for row in rows {
        plain.timestamps.push(Micros(row.timestamp));
        plain.sequences.push(CommitSequence(row.sequence));
        for (places, string) in
            [(&mut plain.authors, &row.author), (&mut plain.messages, &row.message)]
        {
            let Some(string) = string else {
                places.push(0);
                continue;
            };
            let known = plain.strings.iter().position(|known| known == string);
            places.push(1 + known.unwrap_or(plain.strings.len()) as u32);
            if known.is_none() {
                plain.strings.push(string.clone());
            }
        }
        plain.committed.push(row.committed);
        plain.changed.extend(row.changed.iter().map(|node| NodeId::from_number(*node)));
        plain.changed_ends.push(plain.changed.len() as u32);
        plain.moves.extend(row.moves.iter().map(|&(to, from)| Move {
            to: NodeId::from_number(to),
            from: NodeId::from_number(from),
        }));
        plain.moves_ends.push(plain.moves.len() as u32);
    }
    plain
}

/// States of every kind, with extremes.
fn all_kinds() -> Vec<Datum<'static>> {
    let extent = Extent { first: (1 << 40) - 1, count: (1 << 24) - 1 };
    let apart = |kind| Datum::Apart { blob: BlobId(u64::MAX), kind };
    vec![
        Datum::Absent,
        Datum::Null,
        Datum::Bool(false),
        Datum::Bool(true),
        Datum::Int(i64::MIN),
        Datum::Decimal { mantissa: -1, scale: 18 },
        Datum::Float(-1e300),
        Datum::Text { bytes: b"\"\n", plain: false },
        Datum::Text { bytes: b"plain", plain: true },
        Datum::Digits(b"1E400"),
        Datum::Object(ShapeId(u32::MAX)),
        Datum::Array(Sequence::Extent(extent)),
        Datum::Array(Sequence::Blocks(OrderId(u64::MAX))),
        Datum::Map(Sequence::Extent(extent)),
        Datum::Map(Sequence::Blocks(OrderId(0))),
        Datum::Opaque(b"{}"),
        apart(ApartKind::PlainText),
        apart(ApartKind::Text),
        apart(ApartKind::Digits),
        apart(ApartKind::Opaque),
    ]
}

#[test]
fn every_kind_of_state_comes_back_alone_and_among_the_others() {
    let all = all_kinds();
    for datum in &all {
        assert!(same(column(&[*datum]).get(0).unwrap(), *datum), "{datum:?}");
    }
    let mixed = column(&all);
    for (slot, datum) in all.iter().enumerate() {
        assert!(same(mixed.get(slot).unwrap(), *datum), "{datum:?}");
    }
}

#[test]
fn a_summary_is_exact_over_scales_and_counts_the_numbers_it_leaves_out() {
    let mut datums = vec![
        Datum::Int(2),
        Datum::Decimal { mantissa: 125, scale: 2 },
        Datum::Decimal { mantissa: -5, scale: 1 },
        Datum::Float(1e300),
        Datum::Digits(b"1E9"),
        Datum::Null,
    ];
    let expected = Summary { count: 3, others: 2, scale: 2, min: -50, max: 200, sum: 275 };
    assert_eq!(column(&datums).summary().unwrap(), Some(expected));
    datums.resize(100, Datum::Absent);
    assert_eq!(column(&datums).summary().unwrap(), Some(expected));
}

#[test]
fn a_sum_beyond_128_bits_leaves_no_summary() {
    let datums =
        vec![[Datum::Int(i64::MAX), Datum::Decimal { mantissa: 1, scale: 18 }]; 50].concat();
    assert_eq!(column(&datums).summary().unwrap(), None);
}

/// What two strings have together where they meet is in none of them.
#[test]
fn a_text_is_found_in_strings_and_not_across_them() {
    let text = |bytes: &&'static str| Datum::Text { bytes: bytes.as_bytes(), plain: true };
    let names = ["ab", "aba", "", "b", "ba", "bab", "cab", "abab"];
    let joined: Vec<Datum<'_>> = names.iter().map(text).collect();
    let mut mixed = joined.clone();
    mixed.extend([Datum::Null, Datum::Int(7), Datum::Digits(b"1E9"), text(&"cab")]);
    let repeated = joined.repeat(9);
    let alike = vec![text(&"cab"); 5];
    for states in [&joined, &mixed, &repeated, &alike] {
        let column = column(states);
        for part in ["a", "ab", "ba", "bab", "aa", "bb", "c", "", "cabx", "bc", "1E9"] {
            let has = |state: &Datum<'_>| match state {
                Datum::Text { bytes, .. } => std::str::from_utf8(bytes).unwrap().contains(part),
                _ => false,
            };
            let expected: Vec<usize> = (0..states.len()).filter(|at| has(&states[*at])).collect();
            let mut found = Vec::new();
            let mut visit = |slot: usize, bytes: &[u8]| {
                assert!(same(Datum::Text { bytes, plain: true }, states[slot]), "{slot}");
                found.push(slot);
            };
            column.each_with(&memchr::memmem::Finder::new(part), &mut visit).unwrap();
            assert_eq!(found, expected, "{part:?} in {} states", states.len());
        }
    }
}
