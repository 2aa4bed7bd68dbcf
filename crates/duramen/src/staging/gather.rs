//! Staged points of any series, in the order in which they came, as the changes of one commit.

use rustc_hash::FxHashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::series::changes::SeriesChanges;
use crate::series::{Points, Qualities, Quality, SeriesValue, ValueType, Values};
use crate::staging::layout::StagedPoint;
use crate::tree::cell_key::TreeId;

/// The points of one series, first counted and then filled in.
struct Gathered {
    series: TreeId,
    value_type: ValueType,
    count: usize,
    quality: u8,
    /// Whether any point has another quality.
    is_mixed: bool,
    times: Vec<i64>,
    bits: Vec<u64>,
    /// Empty if all have one.
    qualities: Vec<Quality>,
}

/// The changes that append the points, those of each series in their order.
pub(crate) fn gather<'p>(
    points: impl Iterator<Item = &'p StagedPoint> + Clone,
) -> Result<SeriesChanges> {
    let (mut all, places) = count(points.clone())?;
    for gathered in &mut all {
        gathered.reserve();
    }
    for (point, place) in points.zip(places) {
        all[place as usize].push(point);
    }
    let mut changes = SeriesChanges::default();
    for gathered in all {
        changes.append_all(gathered.series, gathered.into_points()?);
    }
    changes.settled()
}

/// The series of the points, and of each point which of them it is of.
fn count<'p>(points: impl Iterator<Item = &'p StagedPoint>) -> Result<(Vec<Gathered>, Vec<u32>)> {
    let (mut all, mut known): (Vec<Gathered>, _) = (Vec::new(), FxHashMap::default());
    let mut places = Vec::with_capacity(points.size_hint().0);
    // Most points are of the series that the one before was of, or of one of a few.
    let mut last = (TreeId::SERIES, 0);
    for point in points {
        if point.series != last.0 {
            let next = u32::try_from(all.len()).unwrap_or(u32::MAX);
            let place = *known.entry(point.series).or_insert(next);
            if place == next {
                all.push(Gathered::new(point));
            }
            last = (point.series, place);
        }
        all[last.1 as usize].note(point)?;
        places.push(last.1);
    }
    Ok((all, places))
}

impl Gathered {
    fn new(point: &StagedPoint) -> Self {
        Self {
            series: point.series,
            value_type: point.value_type,
            count: 0,
            quality: point.quality,
            is_mixed: false,
            times: Vec::new(),
            bits: Vec::new(),
            qualities: Vec::new(),
        }
    }

    fn note(&mut self, point: &StagedPoint) -> Result<()> {
        self.count += 1;
        self.is_mixed |= point.quality != self.quality;
        if point.value_type == self.value_type {
            return Ok(());
        }
        let (is, other) = (self.value_type, point.value_type);
        let message = format!("one series has staged points of type {is} and {other}");
        Err(Error::new(ErrorKind::Corrupt, message))
    }

    fn reserve(&mut self) {
        self.times.reserve_exact(self.count);
        self.bits.reserve_exact(self.count);
    }

    fn push(&mut self, point: &StagedPoint) {
        self.times.push(point.time);
        self.bits.push(point.bits);
        if self.is_mixed {
            self.qualities.push(Quality(point.quality));
        }
    }

    fn into_points(self) -> Result<Points> {
        let qualities = if self.is_mixed {
            Qualities::Each(self.qualities)
        } else {
            Qualities::All(Quality(self.quality))
        };
        Points::from_columns(self.times, values(self.value_type, self.bits), qualities)
    }
}

/// The bits of a value; none of text.
#[inline]
pub(crate) fn bits(value: &SeriesValue) -> Option<u64> {
    match value {
        SeriesValue::F64(value) => Some(value.to_bits()),
        SeriesValue::F32(value) => Some(u64::from(value.to_bits())),
        SeriesValue::I64(value) => Some(value.cast_unsigned()),
        SeriesValue::Bool(value) => Some(u64::from(*value)),
        SeriesValue::String(_) => None,
    }
}

/// The values of bits.
#[expect(clippy::cast_possible_truncation, reason = "the bits of a smaller value are low ones")]
fn values(value_type: ValueType, bits: Vec<u64>) -> Values {
    let bits = bits.into_iter();
    match value_type {
        ValueType::F64 => Values::F64(bits.map(f64::from_bits).collect()),
        ValueType::F32 => Values::F32(bits.map(|bits| f32::from_bits(bits as u32)).collect()),
        ValueType::I64 => Values::I64(bits.map(u64::cast_signed).collect()),
        ValueType::Bool => Values::Bool(bits.map(|bits| bits != 0).collect()),
        ValueType::String => Values::new(ValueType::String),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_come_out_by_series_and_time_and_the_last_of_a_time_holds() {
        let point = |series, time, value: f64| point(series, time, &SeriesValue::F64(value), 192);
        let staged = [point(2, 5, 1.0), point(1, 9, f64::NAN), point(2, 3, -0.0), point(2, 5, 2.5)];
        let changes = gather(staged.iter()).unwrap();
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

    fn point(series: u64, time: i64, value: &SeriesValue, quality: u8) -> StagedPoint {
        StagedPoint {
            series: TreeId(TreeId::SERIES.0 + series),
            time,
            bits: bits(value).unwrap(),
            value_type: value.value_type(),
            quality,
        }
    }

    #[test]
    fn each_point_keeps_its_quality() {
        let staged: Vec<_> = (0..300)
            .map(|time: i64| {
                let quality = if time % 5 == 0 { 64 } else { 192 };
                point(1 + time.unsigned_abs() % 3, time, &SeriesValue::I64(time), quality)
            })
            .collect();
        let changes = gather(staged.iter()).unwrap();
        let told = changes.iter().flat_map(|(_, change)| {
            let points = change.points.as_ref().unwrap();
            points.iter().map(|point| (point.time.0, point.quality.0)).collect::<Vec<_>>()
        });
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        assert_eq!(told, staged.iter().map(|one| (one.time, one.quality)).collect::<Vec<_>>());
    }

    #[test]
    fn points_of_two_types_in_one_series_are_refused() {
        let staged = [point(1, 5, &true.into(), 192), point(1, 6, &SeriesValue::I64(3), 192)];
        assert_eq!(gather(staged.iter()).unwrap_err().kind(), ErrorKind::Corrupt);
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
            let bits = bits(&given).unwrap();
            assert_eq!(super::values(given.value_type(), vec![bits]).get(0), Some(given));
        }
        assert_eq!(bits(&SeriesValue::String(String::new())), None);
    }
}
