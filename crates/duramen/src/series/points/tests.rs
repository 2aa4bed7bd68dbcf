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
