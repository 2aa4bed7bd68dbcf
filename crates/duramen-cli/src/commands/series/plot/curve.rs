//! A curve as far as a chart of some width can show it: of each column the first, least, greatest
//! and last point (Jugel et al., "M4: A Visualization-Oriented Time Series Data Aggregation",
//! 2014).

use duramen::{Micros, Points, Quality};

use crate::moment;

/// The points that a chart shows.
#[derive(Debug)]
pub(crate) struct Curve {
    first: Micros,
    last: Micros,
    /// Values that it reaches over, whether they are there or not.
    reach: Option<(f64, f64)>,
    columns: Vec<Option<Column>>,
}

/// What is shown of the points in one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Column {
    pub(crate) first: Spot,
    pub(crate) least: Spot,
    pub(crate) greatest: Spot,
    pub(crate) last: Spot,
}

/// What the numbers are by which values are placed from left to right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Microseconds.
    Time,
    Number,
}

impl Axis {
    /// A place on it, for people.
    pub(crate) fn label(self, place: Micros) -> String {
        match self {
            Self::Time => moment::calendar(place).unwrap_or_else(|| moment::format(place)),
            Self::Number => place.0.to_string(),
        }
    }
}

/// A time in microseconds, or another whole number, and a value.
pub(crate) type Spot = (i64, f64);

impl Curve {
    /// Nothing yet between two times, both of them included.
    pub(crate) fn new((first, last): (Micros, Micros), columns: u32) -> Self {
        Self { first, last, reach: None, columns: vec![None; columns as usize] }
    }

    /// The same, reaching over some values at least.
    pub(crate) fn reaching(self, reach: Option<(f64, f64)>) -> Self {
        Self { reach, ..self }
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.iter().all(Option::is_none)
    }

    /// Adds points that come after those before.
    pub(crate) fn add(&mut self, points: &Points) {
        for (index, &time) in points.times().iter().enumerate() {
            let is_trusted = points.qualities().get(index).major();
            let is_trusted = is_trusted == Quality::GOOD || is_trusted == Quality::UNCERTAIN;
            let value = points.values().get_f64(index).filter(|value| value.is_finite());
            let (Some(value), true) = (value, is_trusted) else { continue };
            self.add_spot((time, value));
        }
    }

    /// Adds a finite value that comes after those before.
    pub(crate) fn add_spot(&mut self, spot: Spot) {
        let place = self.place(spot.0);
        match self.columns.get_mut(place) {
            None => {}
            Some(Some(column)) => column.add(spot),
            Some(column) => {
                let all = Column { first: spot, least: spot, greatest: spot, last: spot };
                *column = Some(all);
            }
        }
    }

    /// The column of a time.
    fn place(&self, time: i64) -> usize {
        let span = i128::from(self.last.0) - i128::from(self.first.0) + 1;
        let at = i128::from(time) - i128::from(self.first.0);
        usize::try_from(at * self.columns.len() as i128 / span).unwrap_or(usize::MAX)
    }

    /// The times of the first and the last column.
    pub(crate) fn times(&self) -> (Micros, Micros) {
        (self.first, self.last)
    }

    /// The least and the greatest value that it reaches over.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let values = self.columns.iter().flatten().map(|it| (it.least.1, it.greatest.1));
        values.chain(self.reach).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    pub(crate) fn columns(&self) -> &[Option<Column>] {
        &self.columns
    }

    /// All points that are shown, in the order of their times.
    pub(crate) fn spots(&self) -> impl Iterator<Item = Spot> {
        self.columns.iter().flatten().flat_map(|column| {
            let mut spots = [column.first, column.least, column.greatest, column.last];
            spots.sort_by_key(|spot| spot.0);
            spots
        })
    }
}

impl Column {
    fn add(&mut self, spot: Spot) {
        if spot.1 < self.least.1 {
            self.least = spot;
        }
        if spot.1 > self.greatest.1 {
            self.greatest = spot;
        }
        self.last = spot;
    }
}

#[cfg(test)]
mod tests {
    use duramen::ValueType;

    use super::*;

    #[test]
    fn a_column_keeps_its_ends_and_extremes() {
        let mut points = Points::new(ValueType::F64);
        for (time, value) in [(0, 5.0), (1, 9.0), (2, 1.0), (3, 4.0), (9, 7.0)] {
            points.push(Micros(time), value, Quality::GOOD).unwrap();
        }
        points.push(Micros(4), f64::INFINITY, Quality::GOOD).unwrap();
        points.push(Micros(4), 100.0, Quality::BAD).unwrap();
        let mut curve = Curve::new((Micros(0), Micros(9)), 2);
        curve.add(&points);
        let spots: Vec<Spot> = curve.spots().collect();
        let wanted =
            [(0, 5.0), (1, 9.0), (2, 1.0), (3, 4.0), (9, 7.0), (9, 7.0), (9, 7.0), (9, 7.0)];
        assert_eq!(spots, wanted);
        assert_eq!(curve.range(), Some((1.0, 9.0)));
        assert_eq!(curve.reaching(Some((0.0, 5.0))).range(), Some((0.0, 9.0)));
    }

    #[test]
    fn all_times_have_a_column() {
        let curve = Curve::new((Micros(i64::MIN), Micros(i64::MAX)), 100);
        assert_eq!([i64::MIN, -1, 0, i64::MAX].map(|time| curve.place(time)), [0, 49, 50, 99]);
        assert_eq!(Curve::new((Micros(7), Micros(7)), 100).place(7), 0);
    }
}
