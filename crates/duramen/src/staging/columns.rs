//! Staged points, those of each series apart: so a seal makes a commit of them without a look at
//! which point is of which series.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use crate::error::{Error, ErrorKind, Result};
use crate::series::changes::SeriesChanges;
use crate::series::{Lossy, Points, Qualities, Quality, SeriesValue, ValueType, Values};
use crate::staging::layout::StagedPoint;
use crate::tree::cell_key::TreeId;

/// Points of a column that a processor takes from memory at once.
const LINE_POINTS: usize = 4;

/// The points of any series, those of each in the order in which they came.
#[derive(Debug, Default)]
#[cfg_attr(duramen_teeth, derive(Clone))]
pub(crate) struct Columns {
    /// Those from `used` on are left of what was there before, for the room that they have.
    all: Vec<Column>,
    used: usize,
    points: usize,
    /// Bytes that all of them take, with their room.
    bytes: usize,
}

/// The points of one series.
#[derive(Debug)]
#[cfg_attr(duramen_teeth, derive(Clone))]
struct Column {
    series: TreeId,
    value_type: ValueType,
    /// What of the points a commit gets.
    lossy: Option<Lossy>,
    qualities: Qualities,
    /// Times, and the bits of values.
    points: Vec<(i64, u64)>,
}

impl Columns {
    /// The points of files.
    pub(crate) fn of(points: &[StagedPoint]) -> Result<Self> {
        let (mut columns, mut known) = (Self::default(), FxHashMap::default());
        for point in points {
            let column = *known.entry(point.series).or_insert_with(|| columns.begin(point, None));
            columns.check_type(column, point)?;
            columns.push(column, point);
        }
        Ok(columns)
    }

    /// How many points there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.points
    }

    /// Bytes that they take, with the room for more, about.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Of how many series there are any.
    #[inline]
    pub(crate) fn series(&self) -> usize {
        self.used
    }

    /// Makes a column for the series of a point, which is not in it yet; its number.
    pub(crate) fn begin(&mut self, point: &StagedPoint, lossy: Option<Lossy>) -> usize {
        let number = self.used;
        self.used += 1;
        let qualities = Qualities::All(Quality(point.quality));
        let (series, value_type) = (point.series, point.value_type);
        if let Some(left) = self.all.get_mut(number) {
            let points = std::mem::take(&mut left.points);
            *left = Column { series, value_type, lossy, qualities, points };
        } else {
            self.bytes += size_of::<Column>();
            let points = Vec::new();
            self.all.push(Column { series, value_type, lossy, qualities, points });
        }
        number
    }

    /// Appends a point to the column of its series.
    #[inline]
    pub(crate) fn push(&mut self, column: usize, point: &StagedPoint) {
        let column = &mut self.all[column];
        column.qualities.extend(column.points.len(), Quality(point.quality), 1);
        if column.points.len() == column.points.capacity() {
            self.bytes += column.grow();
        }
        column.points.push((point.time, point.bits));
        if let Some(next) = column.points.spare_capacity_mut().get(LINE_POINTS) {
            duramen_kernel::fetch_to_write(next);
        }
        self.points += 1;
    }

    /// Forgets all points; room for about as many stays.
    pub(crate) fn clear(&mut self) {
        self.all.truncate(self.used);
        for column in &mut self.all {
            column.points.shrink_to(2 * column.points.len());
            column.points.clear();
        }
        let bytes = |column: &Column| size_of::<Column>() + column.room_bytes();
        self.bytes = self.all.iter().map(bytes).sum();
        (self.used, self.points) = (0, 0);
    }

    /// Adds what appends them to the changes of a commit.
    pub(crate) fn add_to(&self, changes: &mut SeriesChanges) -> Result<()> {
        for column in self.all.iter().take(self.used) {
            changes.append(column.series, Cow::Owned(column.points()?), column.lossy)?;
        }
        Ok(())
    }

    fn check_type(&self, column: usize, point: &StagedPoint) -> Result<()> {
        let (is, other) = (self.all[column].value_type, point.value_type);
        if is == other {
            return Ok(());
        }
        let message = format!("one series has staged points of type {is} and {other}");
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}

impl Column {
    /// Makes room for more points; the bytes that this takes.
    #[cold]
    fn grow(&mut self) -> usize {
        let before = self.room_bytes();
        self.points.reserve(1);
        self.room_bytes() - before
    }

    fn room_bytes(&self) -> usize {
        self.points.capacity() * size_of::<(i64, u64)>()
    }

    fn points(&self) -> Result<Points> {
        let times = self.points.iter().map(|point| point.0).collect();
        let values = values(self.value_type, self.points.iter().map(|point| point.1));
        Points::from_columns(times, values, self.qualities.clone())
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
fn values(value_type: ValueType, bits: impl Iterator<Item = u64>) -> Values {
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

    fn changes(staged: &[StagedPoint]) -> SeriesChanges {
        let mut changes = SeriesChanges::default();
        Columns::of(staged).unwrap().add_to(&mut changes).unwrap();
        changes.settled().unwrap()
    }

    #[test]
    fn points_come_out_by_series_and_time_and_the_last_of_a_time_holds() {
        let point = |series, time, value: f64| point(series, time, &SeriesValue::F64(value), 192);
        let staged = [point(2, 5, 1.0), point(1, 9, f64::NAN), point(2, 3, -0.0), point(2, 5, 2.5)];
        let changes = changes(&staged);
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
        let changes = changes(&staged);
        let told = changes.iter().flat_map(|(_, change)| {
            let points = change.points.as_ref().unwrap();
            points.iter().map(|point| (point.time.0, point.quality.0)).collect::<Vec<_>>()
        });
        let mut told: Vec<_> = told.collect();
        told.sort_unstable();
        assert_eq!(told, staged.iter().map(|one| (one.time, one.quality)).collect::<Vec<_>>());
    }

    #[test]
    fn columns_that_were_cleared_have_nothing_of_what_they_had() {
        let point = |series, quality| point(series, 5, &SeriesValue::I64(3), quality);
        let mut columns = Columns::of(&[point(1, 192), point(1, 64), point(2, 0)]).unwrap();
        columns.clear();
        assert_eq!(columns.len(), 0);
        let third = point(3, 64);
        let number = columns.begin(&third, None);
        columns.push(number, &third);
        let mut changes = SeriesChanges::default();
        columns.add_to(&mut changes).unwrap();
        let told: Vec<_> = changes
            .iter()
            .map(|(series, change)| {
                let points = change.points.as_ref().unwrap();
                (series.0 - TreeId::SERIES.0, points.len(), points.qualities().get(0))
            })
            .collect();
        assert_eq!(told, [(3, 1, Quality(64))]);
    }

    #[test]
    fn points_of_two_types_in_one_series_are_refused() {
        let staged = [point(1, 5, &true.into(), 192), point(1, 6, &SeriesValue::I64(3), 192)];
        assert_eq!(Columns::of(&staged).unwrap_err().kind(), ErrorKind::Corrupt);
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
            assert_eq!(super::values(given.value_type(), [bits].into_iter()).get(0), Some(given));
        }
        assert_eq!(bits(&SeriesValue::String(String::new())), None);
    }
}
