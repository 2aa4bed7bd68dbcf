//! Staged points of any series, in the order in which they came, as the changes of one commit.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::revision::Micros;
use crate::series::changes::SeriesChanges;
use crate::series::{Points, Quality, SeriesValue, ValueType};
use crate::staging::layout::StagedPoint;
use crate::tree::cell_key::TreeId;

/// The changes that append the points, those of each series in their order.
pub(crate) fn gather<'p>(
    points: impl IntoIterator<Item = &'p StagedPoint>,
) -> Result<SeriesChanges> {
    let mut places = FxHashMap::default();
    let mut all: Vec<(TreeId, Points)> = Vec::new();
    // Most points are of the series that the one before was of, or of one of a few.
    let mut last = (TreeId::SERIES, 0);
    for point in points {
        if point.series != last.0 {
            let place = *places.entry(point.series).or_insert_with(|| {
                all.push((point.series, Points::new(point.value_type)));
                all.len() - 1
            });
            last = (point.series, place);
        }
        let points = &mut all[last.1].1;
        points.push(Micros(point.time), value(point), Quality(point.quality))?;
    }
    let mut changes = SeriesChanges::default();
    for (series, points) in all {
        changes.append_all(series, points);
    }
    changes.settled()
}

/// The bits of a value; none of text.
pub(crate) fn bits(value: &SeriesValue) -> Option<u64> {
    match value {
        SeriesValue::F64(value) => Some(value.to_bits()),
        SeriesValue::F32(value) => Some(u64::from(value.to_bits())),
        SeriesValue::I64(value) => Some(value.cast_unsigned()),
        SeriesValue::Bool(value) => Some(u64::from(*value)),
        SeriesValue::String(_) => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the bits of a smaller value are low ones")]
fn value(point: &StagedPoint) -> SeriesValue {
    match point.value_type {
        ValueType::F64 => SeriesValue::F64(f64::from_bits(point.bits)),
        ValueType::F32 => SeriesValue::F32(f32::from_bits(point.bits as u32)),
        ValueType::I64 => SeriesValue::I64(point.bits.cast_signed()),
        ValueType::Bool => SeriesValue::Bool(point.bits != 0),
        ValueType::String => SeriesValue::String(String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_out_by_series_and_time_and_the_last_of_a_time_holds() {
        let point = |series: u64, time, value: f64| StagedPoint {
            series: TreeId(TreeId::SERIES.0 + series),
            time,
            bits: bits(&SeriesValue::F64(value)).unwrap(),
            value_type: ValueType::F64,
            quality: 192,
        };
        let staged = [point(2, 5, 1.0), point(1, 9, f64::NAN), point(2, 3, -0.0), point(2, 5, 2.5)];
        let changes = gather(&staged).unwrap();
        let told: Vec<_> = changes
            .iter()
            .map(|(series, change)| {
                let points = change.points.as_ref().unwrap();
                let values = points.iter().map(|point| point.value);
                (series.0 - TreeId::SERIES.0, points.times().to_vec(), values.collect::<Vec<_>>())
            })
            .collect();
        let value = SeriesValue::F64;
        let expected =
            [(1, vec![9], vec![value(f64::NAN)]), (2, vec![3, 5], vec![value(-0.0), value(2.5)])];
        assert_eq!(told, expected);
    }

    #[test]
    fn bits_are_those_of_the_value() {
        let values = [
            SeriesValue::F32(-1.5),
            SeriesValue::I64(i64::MIN),
            SeriesValue::Bool(true),
            SeriesValue::F64(f64::from_bits(0x7ff0_0000_0000_0001)),
        ];
        for given in values {
            let point = StagedPoint {
                series: TreeId::SERIES,
                time: 0,
                bits: bits(&given).unwrap(),
                value_type: given.value_type(),
                quality: 0,
            };
            assert_eq!(value(&point), given);
        }
        assert_eq!(bits(&SeriesValue::String(String::new())), None);
    }
}
