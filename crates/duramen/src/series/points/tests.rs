use super::*;
use crate::series::Texts;

#[test]
fn points_of_another_type_or_length_are_refused() {
    let mut points = Points::new(ValueType::I64);
    points.push(Micros(5), 1, Quality::GOOD).unwrap();
    let refused = points.push(Micros(6), 1.5, Quality::GOOD).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(points.len(), 1);
    let refused = Points::from_columns(vec![1], vec![1.0, 2.0].into(), Qualities::All(Quality(0)));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    let long = "x".repeat(SERIES_TEXT_BYTES_MAX + 1);
    let mut texts = Points::new(ValueType::String);
    assert_eq!(texts.push(Micros(0), &*long, Quality(0)).unwrap_err().kind(), ErrorKind::Invalid);
    let values = Values::String([&*long].into_iter().collect());
    assert!(Points::from_columns(vec![1], values, Qualities::All(Quality(0))).is_err());
    assert!(texts.is_empty());
}

#[test]
fn sorting_keeps_the_order_of_points_of_one_time() {
    let mut points = Points::new(ValueType::String);
    for (time, text, quality) in [(3, "c", 0), (1, "a", 64), (3, "d", 192), (2, "b", 1)] {
        points.push(Micros(time), text, Quality(quality)).unwrap();
    }
    points.sort();
    let read: Vec<_> =
        points.iter().map(|one| (one.time.0, one.value.to_string(), one.quality.0)).collect();
    let expected = [(1, "a", 64), (2, "b", 1), (3, "c", 0), (3, "d", 192)];
    assert_eq!(read, expected.map(|(time, text, quality)| (time, text.to_owned(), quality)));
}

#[test]
fn blocks_are_cut_by_points_and_by_text() {
    let numbers = Points::from_columns(
        (0..40_000).collect(),
        (0..40_000).collect::<Vec<i64>>().into(),
        Qualities::All(Quality::GOOD),
    )
    .unwrap();
    assert_eq!(numbers.block_len(0), SERIES_BLOCK_POINTS_MAX);
    assert_eq!(numbers.block_len(39_999), 1);
    let text = "x".repeat(SERIES_TEXT_BYTES_MAX);
    let texts: Texts = std::iter::repeat_n(&*text, 100).collect();
    let texts = Values::String(texts);
    let texts =
        Points::from_columns((0..100).collect(), texts, Qualities::All(Quality::GOOD)).unwrap();
    assert_eq!(texts.block_len(3), SERIES_BLOCK_TEXT_BYTES_MAX / SERIES_TEXT_BYTES_MAX);
    assert_eq!(texts.block_len(99), 1);
}

#[test]
fn whole_columns_are_shared_until_one_of_their_owners_changes_them() {
    let good = || Qualities::All(Quality::GOOD);
    let whole = Points::from_columns(vec![1, 2, 3], vec![1.0, 2.0, 3.0].into(), good()).unwrap();
    let is_shared = |one: &Points, two: &Points| std::ptr::eq(one.times(), two.times());
    assert!(is_shared(&whole, &whole.clone()));
    let changes: [fn(&mut Points); 6] = [
        |points| points.push(Micros(4), 4.0, Quality(0)).unwrap(),
        |points| points.truncate(1),
        Points::clear,
        |points| points.drop_first(2),
        |points| points.permute(&[2, 0]),
        |points| points.append(&points.clone(), 0..2),
    ];
    for (change, expected) in
        changes.into_iter().zip([&[1, 2, 3, 4][..], &[1], &[], &[3], &[3, 1], &[1, 2, 3, 1, 2]])
    {
        let mut other = whole.clone();
        change(&mut other);
        assert_eq!((other.times(), other.len()), (expected, other.values().len()));
        assert_eq!((whole.times(), whole.values().len()), (&[1, 2, 3][..], 3));
        assert_eq!(other.into_columns().0, expected);
    }
    // Who is alone takes what there is.
    let mut alone = whole.clone();
    drop(whole);
    let before = alone.times().as_ptr();
    alone.truncate(2);
    assert_eq!((alone.times(), alone.times().as_ptr()), (&[1, 2][..], before));
}

#[test]
fn columns_that_reserve_much_more_than_they_have_are_copied() {
    let mut times = Vec::with_capacity(1_000);
    times.extend([1, 2, 3]);
    let good = Qualities::All(Quality::GOOD);
    let points = Points::from_columns(times, vec![1, 2, 3_i64].into(), good).unwrap();
    let copy = points.clone();
    assert_ne!(points.times().as_ptr(), copy.times().as_ptr());
    assert_eq!(points, copy);
}
