//! Damaged cells: errors or wrong values, but no panic and no large allocation.

use super::*;
use crate::error::ErrorKind;

/// Reads everything a damaged cell offers, as far as it goes.
type Visit = fn(Bytes);

fn visit_column(cell: Bytes) {
    let copy = cell.clone();
    let single = Column::single(&copy);
    let Ok(column) = Column::parse(cell) else { return assert!(single.is_none()) };
    if let Some(state) = single {
        assert_eq!(column.len(), 1);
        assert!(same(state, column.get(0).unwrap()));
    }
    assert!(u16::try_from(column.len()).is_ok());
    let _ = column.summary().is_ok();
    for slot in 0..column.len() + 2 {
        let _ = column.get(slot).is_ok();
    }
    let _ = column.check().is_ok();
}

fn visit_run(cell: Bytes) {
    let copy = cell.clone();
    let single = RunPiece::single(&copy);
    let Ok(piece) = RunPiece::parse(cell) else { return assert!(single.is_none()) };
    if let Some((slot, revision, state)) = single {
        assert_eq!((piece.len(), piece.first_revision()), (1, revision));
        let (found, set, expected) = piece.entry(0).unwrap();
        assert!((found, set) == (slot, revision) && same(state, expected));
    }
    for slot in (0..40).chain([u16::MAX]) {
        let _ = piece.run(slot).is_ok();
        for revision in [0, piece.first_revision(), piece.last_revision(), u32::MAX] {
            let _ = piece.at(slot, revision).is_ok();
        }
    }
    for index in 0..piece.len() + 2 {
        let _ = piece.entry(index).is_ok();
    }
    let _ = piece.check().is_ok();
}

fn visit_order(cell: Bytes) {
    let _ = decode_order_block(cell.as_ref()).is_ok();
    drop(cell);
}

fn visit_revision_rows(cell: Bytes) {
    let Ok(block) = RevisionRowsBlock::parse(cell) else { return };
    block.timestamps_into(&mut Vec::new());
    for row in 0..block.len() + 2 {
        let _ = (block.timestamp(row).is_ok(), block.sequence(row).is_ok());
        let _ = (block.author(row).is_ok(), block.message(row).is_ok());
        // A damaged end may span many values without a byte each; they are read one by one.
        let _ = block.committed(row).is_ok();
        let _ = block.changed(row).map(|all| all.take(100).flatten().count());
        let _ = block.moves(row).map(|all| all.take(100).flatten().count());
    }
    let _ = block.check().is_ok();
}

/// Visits `cell` cut at every length, with every byte replaced, and with bytes appended.
fn damage(cell: &[u8], visit: Visit) {
    visit(Bytes::copy_from_slice(cell));
    for len in 0..cell.len() {
        visit(Bytes::copy_from_slice(&cell[..len]));
    }
    let mut damaged = cell.to_vec();
    for at in 0..cell.len() {
        let values = (0..8).map(|bit| cell[at] ^ 1 << bit).chain([0, 0x7f, 0x80, 0xff]);
        for value in values {
            damaged[at] = value;
            visit(Bytes::copy_from_slice(&damaged));
        }
        damaged[at] = cell[at];
    }
    damaged.push(0);
    visit(Bytes::from(damaged));
}

fn columns() -> Vec<Vec<Datum<'static>>> {
    let words: [&[u8]; 4] = [b"oak", b"", b"elm and ash", b"yew"];
    let text = |i: usize| Datum::Text { bytes: words[i % 4], plain: i.is_multiple_of(3) };
    let mixed = all_kinds().into_iter().cycle().take(70).collect::<Vec<_>>();
    let mut columns = vec![
        vec![],
        (0..40).map(|i| Datum::Int(i * i)).collect(),
        (0..40).map(Datum::Int).collect(),
        (0..40).map(|i| Datum::Bool(i % 3 == 0)).collect(),
        (0..40).map(text).collect(),
        (0..5).map(text).collect(),
        (0..70).map(|i| if i % 3 == 0 { Datum::Null } else { text(i) }).collect(),
        vec![Datum::Absent; 300],
        all_kinds(),
        mixed,
    ];
    columns.extend(all_kinds().into_iter().map(|datum| vec![datum]));
    columns
}

#[test]
fn damaged_columns_never_panic() {
    for datums in columns() {
        let mut cell = Vec::new();
        encode_column(&datums, &mut cell);
        damage(&cell, visit_column);
    }
}

#[test]
fn damaged_run_pieces_never_panic() {
    let all = all_kinds();
    let runs = all.iter().enumerate().map(|(i, datum)| (i as u16 / 3, i as u32 + 9, *datum));
    let once = all.iter().enumerate().map(|(i, datum)| (i as u16, 7, *datum));
    for changes in [runs.collect::<Vec<_>>(), once.collect(), vec![(3, 4, Datum::Int(5))]] {
        let mut cell = Vec::new();
        encode_run(&changes, &mut cell);
        damage(&cell, visit_run);
    }
}

#[test]
fn damaged_order_blocks_never_panic() {
    let mut leaf = Vec::new();
    let extents = (0..20).map(|i| Extent { first: i * i, count: 3 }).collect::<Vec<_>>();
    encode_order_block(&OrderBlock::Leaf(extents.into()), &mut leaf);
    damage(&leaf, visit_order);
    let mut inner = Vec::new();
    let children = [(OrderId(1), 2), (OrderId(3), 900), (OrderId(9), 7)];
    encode_order_block(&OrderBlock::Inner(children.into()), &mut inner);
    damage(&inner, visit_order);
}

#[test]
fn damaged_revision_rows_never_panic() {
    let rows = (0..8_u64).map(|i| Row {
        timestamp: i.cast_signed() * 1_000 + 7,
        sequence: i * i,
        author: (i % 2 == 0).then(|| b"ada".to_vec()),
        message: Some(vec![b'm'; i as usize]),
        committed: Micros(i.cast_signed() * 1_000 + 9),
        changed: vec![i << 40 | 5, 9],
        moves: vec![(i << 41 | 3, i); i as usize % 3],
    });
    let mut cell = Vec::new();
    revision_rows(&rows.collect::<Vec<_>>()).encode(&mut cell);
    damage(&cell, visit_revision_rows);
}

proptest! {
    #[test]
    fn bytes_of_no_cell_never_panic(bytes in vec(any::<u8>(), 0..120)) {
        let cell = Bytes::from(bytes);
        visit_column(cell.clone());
        visit_run(cell.clone());
        visit_order(cell.clone());
        visit_revision_rows(cell);
    }
}

#[test]
fn a_piece_of_unsorted_changes_is_refused_when_written() {
    let changes = [(1, 5, Datum::Null), (1, 5, Datum::Absent)];
    let written = std::panic::catch_unwind(|| encode_run(&changes, &mut Vec::new()));
    assert!(written.is_err());
}

#[test]
fn numbers_that_json_does_not_have_do_not_decode() {
    let mut float = Vec::new();
    encode_column(&[Datum::Float(1.5)], &mut float);
    for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let at = float.len() - 8;
        float[at..].copy_from_slice(&value.to_bits().to_le_bytes());
        let column = Column::parse(Bytes::copy_from_slice(&float)).unwrap();
        assert_eq!(column.get(0).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let mut decimal = Vec::new();
    encode_column(&[Datum::Decimal { mantissa: 15, scale: 1 }], &mut decimal);
    for scale in [0, 19, 63] {
        // Behind the head stands the only tag, marked as the last of its list.
        decimal[1] = 0x80 | 64 | scale;
        let column = Column::parse(Bytes::copy_from_slice(&decimal)).unwrap();
        assert_eq!(column.get(0).unwrap_err().kind(), ErrorKind::Corrupt, "scale {scale}");
        assert!(column.check().is_err());
    }
}

#[test]
fn a_column_with_another_summary_and_a_piece_out_of_order_are_refused() {
    let datums = (0..40).map(|i| Datum::Int(i * i)).collect::<Vec<_>>();
    let mut cell = Vec::new();
    encode_column(&datums, &mut cell);
    // Behind the head, the number of slots and the length of the summary: its count.
    cell[3] -= 1;
    let column = Column::parse(Bytes::from(cell)).unwrap();
    assert!(column.check().unwrap_err().message().contains("summary"));
    let mut cell = Vec::new();
    encode_run(&[(3, 9, Datum::Null), (3, 10, Datum::Null)], &mut cell);
    let at = cell.iter().rposition(|byte| *byte == 9).unwrap();
    cell[at] = 8;
    let piece = RunPiece::parse(Bytes::from(cell)).unwrap();
    assert!(piece.check().unwrap_err().message().contains("out of order"));
}

/// They were visited one by one once, which no one waits for.
#[test]
fn billions_of_nodes_on_a_line_are_checked_by_their_ends() {
    let billions = 4_000_000_000_u32;
    let mut cell = vec![1, 0, 0, 0];
    for column in [7, 0, 1, 0, 0] {
        Integers::encode(&[column], &mut cell);
    }
    Texts::encode(&[], &mut cell);
    Integers::encode(&[billions.into()], &mut cell);
    let line = |cell: &mut Vec<u8>| {
        Integers::encode(&[5, 5, 5], cell);
        Integers::encode(&[0, 1, 2], cell);
    };
    line(&mut cell);
    Integers::encode(&[billions.into()], &mut cell);
    line(&mut cell);
    line(&mut cell);
    let block = RevisionRowsBlock::parse(Bytes::from(cell)).unwrap();
    assert_eq!(block.changed_len(), billions as usize);
    block.check().unwrap();
}
