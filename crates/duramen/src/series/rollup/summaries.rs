//! Windows of points as they are read.

use crate::error::Result;
use crate::limits::SERIES_READ_POINTS;
use crate::series::block::Summary;
use crate::series::points::Points;
use crate::series::reading::Reading;
use crate::series::tiers::Rollup;

/// Points that are read, as summaries of the windows that have any; rising.
#[derive(Debug)]
pub(crate) struct Summaries<'a> {
    rollup: &'a Rollup,
    reading: Reading,
    points: Points,
    /// The first point that was not taken yet.
    next: usize,
    /// Points that were read.
    pub(super) read: usize,
}

impl<'a> Summaries<'a> {
    /// Of points that rise, and that are all in a window.
    pub(crate) fn new(rollup: &'a Rollup, reading: Reading) -> Self {
        let points = Points::new(reading.value_type());
        Self { rollup, reading, points, next: 0, read: 0 }
    }

    /// The next window: when it begins, and what its points come to.
    pub(crate) fn next(&mut self) -> Result<Option<(i64, Summary)>> {
        let mut window: Option<(i64, Summary)> = None;
        while self.is_loaded()? {
            let times = self.points.times();
            let Some(&time) = times.get(self.next) else { break };
            let Some(start) = self.rollup.start(time) else {
                // At the very ends of time, where no whole window is.
                self.next += 1;
                continue;
            };
            if window.as_ref().is_some_and(|(open, _)| *open != start) {
                break;
            }
            let rest = times.get(self.next..).unwrap_or_default();
            let is_in = |time: &i64| self.rollup.start(*time) == Some(start);
            let places = self.next..self.next + rest.partition_point(is_in).max(1);
            let summary = Summary::of(&self.points, places.clone());
            self.next = places.end;
            match &mut window {
                Some((_, open)) => open.add(&summary),
                None => window = Some((start, summary)),
            }
        }
        Ok(window)
    }

    /// Whether there is another point, read by now.
    fn is_loaded(&mut self) -> Result<bool> {
        while self.next >= self.points.len() {
            self.points.truncate(0);
            self.next = 0;
            if !self.reading.read(&mut self.points, SERIES_READ_POINTS)? {
                return Ok(false);
            }
            self.read += self.points.len();
        }
        Ok(true)
    }
}
