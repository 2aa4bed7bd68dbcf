//! What a series takes.

use std::cmp::Ordering;

use crate::error::Result;
use crate::revision::{CommitSequence, Micros};
use crate::series::block::Block;
use crate::series::reading::Deleted;
use crate::series::snapshot::SeriesSnapshot;
use crate::series::source::{Course, Direction};
use crate::series::span::TimeSpan;

/// The size of a series, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeriesStats {
    /// Points that are kept: also those that were written over or deleted, which snapshots from
    /// before still read.
    pub points: u64,
    /// Of these, those that no checkpoint has written yet.
    pub young_points: u64,
    /// Those that came when there was a point of a later time already.
    pub late_points: u64,
    /// Those that were written over: a later commit has a point of the same time.
    pub replaced_points: u64,
    /// Those that were deleted.
    pub deleted_points: u64,
    /// Blocks in segments.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub block_bytes: u64,
    /// Spans of time that were deleted.
    pub deletes: u64,
}

impl std::ops::AddAssign for SeriesStats {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.young_points += other.young_points;
        self.late_points += other.late_points;
        self.replaced_points += other.replaced_points;
        self.deleted_points += other.deleted_points;
        self.blocks += other.blocks;
        self.block_bytes += other.block_bytes;
        self.deletes += other.deletes;
    }
}

/// What becomes known of points when they are gone through, the latest first.
struct Census {
    deletes: Deleted,
    late: u64,
    replaced: u64,
    deleted: u64,
    /// The least sequence of all points of later times.
    later: CommitSequence,
    /// The time of the point before, and the least and greatest sequence of its points.
    open: Option<(i64, (CommitSequence, CommitSequence))>,
}

impl Census {
    /// Takes a block that is before all that came, if that is all there is to know of its points:
    /// none of them was written over or deleted. False, and nothing done, if there may be more.
    fn add_block(&mut self, block: &Block) -> Result<bool> {
        let (first, last) = block.time_range();
        let is_open = self.open.is_some_and(|(open, _)| open == last.0);
        if is_open || self.deletes.has_any_of((first.0, last.0), block.sequence_range().0) {
            return Ok(false);
        }
        let sequences = block.sequences()?;
        if let Some((_, (least, _))) = self.open {
            self.later = self.later.min(least);
        }
        let mut behind = self.later;
        for at in (0..block.len()).rev() {
            let sequence = sequences.get(at);
            self.late += u64::from(sequence > behind);
            (self.later, behind) = (behind, behind.min(sequence));
        }
        let of_first = sequences.get(0);
        self.open = Some((first.0, (of_first, of_first)));
        Ok(true)
    }

    fn add(&mut self, time: i64, sequence: CommitSequence) {
        match &mut self.open {
            Some((open, (least, greatest))) if *open == time => {
                self.replaced += u64::from(sequence.cmp(greatest) != Ordering::Equal);
                (*least, *greatest) = ((*least).min(sequence), (*greatest).max(sequence));
            }
            _ => {
                if let Some((_, (least, _))) = self.open.replace((time, (sequence, sequence))) {
                    self.later = self.later.min(least);
                }
            }
        }
        self.late += u64::from(sequence > self.later);
        self.deleted += u64::from(self.deletes.has(time, sequence));
    }
}

impl SeriesSnapshot {
    /// The size of the series as of now, whatever the snapshot shows. It reads the heads of all
    /// blocks, and points only where they are young, or blocks overlap or have deletes in them.
    pub fn stats(&self) -> Result<SeriesStats> {
        let from = (Micros(i64::MIN), Direction::Rising);
        self.counted().map_err(|error| self.info().named(error, from))
    }

    fn counted(&self) -> Result<SeriesStats> {
        // All of it is counted in what there was at one moment.
        let store = self.store()?;
        let young_points: usize = store.young.iter().map(|piece| piece.len()).sum();
        let mut stats = SeriesStats { young_points: young_points as u64, ..SeriesStats::default() };
        for found in store.live.scan(&store.column)? {
            let cell = found?.1.load()?;
            stats.blocks += 1;
            stats.block_bytes += cell.len() as u64;
            stats.points += Block::parse(cell)?.len() as u64;
        }
        stats.points += stats.young_points;
        let span = TimeSpan { first: i64::MIN, last: i64::MAX };
        let mut reading = store.read(Course { span, direction: Direction::Falling })?;
        stats.deletes = store.deletes.len() as u64;
        let mut census = Census {
            deletes: Deleted::new(store.deletes),
            late: 0,
            replaced: 0,
            deleted: 0,
            later: CommitSequence(u64::MAX),
            open: None,
        };
        loop {
            if let Some(block) = reading.next_block()?
                && census.add_block(&block)?
            {
                reading.skip_block()?;
            } else if !reading.each(&mut |time, sequence| census.add(time, sequence))? {
                break;
            }
        }
        stats.late_points = census.late;
        stats.replaced_points = census.replaced;
        stats.deleted_points = census.deleted;
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    use super::SeriesStats;
    use crate::{CommitOptions, Database, Micros, SeriesDefinition, ValueType};

    #[test]
    fn late_replaced_and_deleted_points_are_counted_wherever_they_are() {
        let db = Database::memory().unwrap();
        let series = db.create_series("a", &SeriesDefinition::new(ValueType::I64)).unwrap();
        let how = CommitOptions::default();
        for (step, time) in [10, 20, 15, 20, 30, 5].into_iter().enumerate() {
            series.append(Micros(time), 0, &how).unwrap();
            if step % 2 == 1 {
                db.checkpoint().unwrap();
            }
        }
        series.delete(Micros(15)..Micros(21), &how).unwrap();
        series.append(Micros(16), 1, &how).unwrap();
        for _ in 0..2 {
            let stats = series.stats().unwrap();
            let found = (stats.points, stats.late_points, stats.replaced_points);
            assert_eq!(found, (7, 3, 1));
            assert_eq!((stats.deleted_points, stats.deletes), (3, 1));
            db.checkpoint().unwrap();
        }
    }

    /// What a checkpoint wrote was young and in a segment for a moment, and counted twice then.
    #[test]
    fn points_count_once_while_a_checkpoint_ends() {
        let db = Database::memory().unwrap();
        let series = db.create_series("a", &SeriesDefinition::new(ValueType::I64)).unwrap();
        let how = CommitOptions::default();
        let whole = || {
            let stats = series.stats().unwrap();
            // Where the points are may change, not how many there are of which kind.
            SeriesStats { young_points: 0, blocks: 0, block_bytes: 0, ..stats }
        };
        for round in 0..40 {
            for time in (0..200).rev() {
                series.append(Micros(time * 10), round, &how).unwrap();
            }
            series.delete(Micros(round * 40)..Micros(round * 50), &how).unwrap();
            let expected = whole();
            std::thread::scope(|scope| {
                let checkpoint = scope.spawn(|| db.checkpoint().unwrap());
                while !checkpoint.is_finished() {
                    assert_eq!(whole(), expected, "round {round}");
                }
            });
        }
    }
}
