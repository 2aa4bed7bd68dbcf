//! What encodings take, asserted so that a change of them is noticed.

use super::*;

fn size(datums: &[Datum<'_>]) -> usize {
    let mut out = Vec::new();
    encode_column(datums, &mut out);
    out.len()
}

fn slots<'a>(datum: impl Fn(i64) -> Datum<'a>) -> Vec<Datum<'a>> {
    (0..4_096).map(datum).collect()
}

#[test]
fn a_column_of_one_slot_takes_at_most_four_bytes_beside_its_value() {
    assert_eq!(size(&[Datum::Null]), 2);
    assert_eq!(size(&[Datum::Bool(true)]), 2);
    assert_eq!(size(&[Datum::Int(42)]), 3 + 1);
    assert_eq!(size(&[Datum::Int(1 << 40)]), 3 + 8);
    assert_eq!(size(&[Datum::Decimal { mantissa: 110, scale: 2 }]), 3 + 1);
    assert_eq!(size(&[Datum::Object(ShapeId(7))]), 3 + 1);
    assert_eq!(size(&[Datum::Text { bytes: b"oak", plain: true }]), 5 + 3);
    let extent = Extent { first: 0, count: 3 };
    assert_eq!(size(&[Datum::Array(Sequence::Extent(extent))]), 3 + 1 + 2);
}

#[test]
fn a_column_of_one_kind_takes_what_its_values_take() {
    assert_eq!(size(&slots(|i| Datum::Int(18 + i * 37 % 48))), 4_096 + 20);
    assert_eq!(size(&slots(|_| Datum::Int(1 << 50))), 13);
    assert_eq!(size(&slots(|i| Datum::Int(1_700_000_000_000_000 + i * 60_000_000))), 17);
    assert_eq!(size(&slots(|_| Datum::Object(ShapeId(3)))), 6);
    assert_eq!(size(&slots(|_| Datum::Bool(true))), 4);
    assert_eq!(size(&slots(|i| Datum::Bool(i % 3 == 0))), 512 + 5);
    let decimals = slots(|i| Datum::Decimal { mantissa: 1_000 + i * 31 % 200, scale: 2 });
    assert_eq!(size(&decimals), 4_096 + 23);
    let arrays = slots(|i| {
        Datum::Array(Sequence::Extent(Extent { first: i.cast_unsigned() * 3, count: 3 }))
    });
    assert_eq!(size(&arrays), 9);
}

#[test]
fn an_optional_integer_takes_a_bit_and_a_little() {
    let optional = slots(|i| if i % 10 == 0 { Datum::Int(i % 7) } else { Datum::Absent });
    assert_eq!(size(&optional), 4_096 / 8 + 63 * 2 + 410 + 19);
}

#[test]
fn repeated_texts_take_codes_and_long_vectors_take_short_ends() {
    let words: [&[u8]; 3] = [b"heartwood", b"sapwood", b"cambium"];
    let repeated =
        slots(|i| Datum::Text { bytes: words[(i * i % 3).unsigned_abs() as usize], plain: true });
    assert!(size(&repeated) <= 4_096 + 40, "{}", size(&repeated));
    let names =
        (0..4_096).map(|i| format!("a name of a ring, number {}", i * i)).collect::<Vec<_>>();
    let bytes = names.iter().map(String::len).sum::<usize>();
    let datums = names.iter().map(|name| Datum::Text { bytes: name.as_bytes(), plain: true });
    let datums = datums.collect::<Vec<_>>();
    // The bytes need 17 bits; along the slope of the ends 16 suffice.
    assert!(size(&datums) <= bytes + 2 * 4_096 + 20, "{} for {bytes}", size(&datums));
}

#[test]
fn a_run_piece_of_one_change_takes_a_few_bytes() {
    let mut out = Vec::new();
    encode_run(&[(9, 120, Datum::Int(5))], &mut out);
    assert_eq!(out.len(), 10);
}

#[test]
fn revision_rows_of_single_changes_take_few_bytes_each() {
    let mut plain = RevisionRows { strings: vec![b"ada".to_vec()], ..RevisionRows::default() };
    for row in 0..1_024_u32 {
        plain.timestamps.push(Micros(1_700_000_000_000_000 + i64::from(row) * 1_000_000));
        plain.sequences.push(CommitSequence(u64::from(row) + 5));
        plain.authors.push(1);
        plain.messages.push(0);
        plain.committed.push(Micros(1_700_000_000_000_000 + i64::from(row) * 1_000_000));
        plain.changed.push(NodeId::from_number(u64::from(row % 50) << 40 | u64::from(row * 7)));
        plain.changed_ends.push(row + 1);
        plain.moves_ends.push(0);
    }
    let mut out = Vec::new();
    plain.encode(&mut out);
    assert!(out.len() < 1_024 * 2 + 100, "{}", out.len());
}

#[test]
fn long_vectors_of_small_integers_take_half_a_byte_each() {
    for count in [511, 512, 513, 4_096] {
        for base in [0, 7, -1_000_000, i64::MAX - 15] {
            let values: Vec<_> = (0..count).map(|i| base + i * i * 7 % 16).collect();
            let datums: Vec<_> = values.iter().map(|value| Datum::Int(*value)).collect();
            let mut cell = Vec::new();
            encode_column(&datums, &mut cell);
            let bytes = if count < 512 { 511 } else { (count + 1) / 2 };
            let beside = i64::try_from(cell.len()).unwrap() - bytes;
            assert!((4..80).contains(&beside), "{beside} beside {count} of {base}");
            let column = Column::parse(cell.into()).unwrap();
            let read: Vec<_> = column.iter().map(|datum| datum.unwrap()).collect();
            assert_eq!(read, datums);
            let mut filled = vec![Datum::Null; datums.len() - 3];
            column.view().fill(3, &mut filled).unwrap();
            assert_eq!(filled, datums[3..]);
            assert!(column.view().get(datums.len()).is_err());
            assert!(column.view().fill(4, &mut filled).is_err());
            let Stretch::Integers(all) = column.stretch() else { panic!("not integers") };
            assert_eq!(all, values);
            column.check().unwrap();
        }
    }
}
