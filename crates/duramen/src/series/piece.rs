//! Points of one series in memory, each with the commit that wrote it.

use std::ops::Range;
use std::sync::Arc;

use crate::revision::CommitSequence;
use crate::series::block::Sequences;
use crate::series::line::Line;
use crate::series::points::Points;
use crate::series::{Qualities, Quality, SeriesValue, ValueType, Values};

impl Points {
    /// Bytes that they take in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let qualities = match self.qualities() {
            Qualities::All(_) => 0,
            Qualities::Each(each) => each.len(),
        };
        let values = match self.values() {
            Values::F64(_) | Values::I64(_) => self.len() * 8,
            Values::F32(_) => self.len() * 4,
            Values::Bool(_) => self.len(),
            Values::String(texts) => self.len() * 8 + texts.bytes(),
        };
        self.len() * 8 + values + qualities
    }
}

impl Sequences {
    /// The least and the greatest one.
    pub(crate) fn range(&self) -> (CommitSequence, CommitSequence) {
        match self {
            Self::All(sequence) => (*sequence, *sequence),
            Self::Each(all) => {
                let ends = (all.iter().min(), all.iter().max());
                (ends.0.copied().unwrap_or_default(), ends.1.copied().unwrap_or_default())
            }
        }
    }

    /// The least one of some points.
    pub(crate) fn least(&self, places: Range<usize>) -> CommitSequence {
        match self {
            Self::All(sequence) => *sequence,
            Self::Each(all) => {
                let some = all.get(places).unwrap_or_default();
                some.iter().min().copied().unwrap_or_default()
            }
        }
    }

    /// Appends `count` times the same to those of `len` points.
    pub(crate) fn extend(&mut self, len: usize, sequence: CommitSequence, count: usize) {
        match self {
            Self::All(all) if len == 0 || *all == sequence => *all = sequence,
            Self::All(all) => {
                let mut each = vec![*all; len];
                each.resize(len.saturating_add(count), sequence);
                *self = Self::Each(each);
            }
            Self::Each(each) => each.resize(each.len().saturating_add(count), sequence),
        }
    }

    /// Appends those at some places of `other` to those of `len` points.
    pub(crate) fn append(&mut self, len: usize, other: &Self, places: Range<usize>) {
        match other {
            Self::All(sequence) => self.extend(len, *sequence, places.len()),
            Self::Each(more) => {
                let more = more.get(places).unwrap_or_default();
                let mut len = len;
                for run in more.chunk_by(|a, b| a == b) {
                    self.extend(len, run.first().copied().unwrap_or_default(), run.len());
                    len = len.saturating_add(run.len());
                }
            }
        }
    }

    /// Drops all; what they took stays reserved.
    pub(crate) fn clear(&mut self) {
        if let Self::Each(each) = self {
            each.clear();
        }
    }

    /// Drops those of the first `count` points.
    pub(crate) fn drop_first(&mut self, count: usize) {
        if let Self::Each(each) = self {
            each.drain(..count);
        }
    }

    /// Those of other places: that at `order[i]` comes to place `i`.
    pub(crate) fn permuted(&self, order: &[usize]) -> Self {
        match self {
            Self::All(sequence) => Self::All(*sequence),
            Self::Each(_) => Self::Each(order.iter().map(|&at| self.get(at)).collect()),
        }
    }
}

/// Points whose times are made again: fewer are copied in less time.
const LINE_POINTS_MIN: usize = 512;

/// Points that rise by time; those of one time rise by sequence, and no two have both in common.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) points: Arc<Points>,
    pub(crate) sequences: Sequences,
    /// What their times are on, where that is known.
    line: Option<Line>,
    /// Whether no time is there twice.
    pub(crate) is_plain: bool,
    /// The greatest sequence.
    pub(crate) newest: CommitSequence,
}

impl Piece {
    /// Points in order, with their sequences; at least one.
    pub(crate) fn new(points: Arc<Points>, sequences: Sequences) -> Self {
        let line = Line::of(points.times());
        Self::on(line, points, sequences)
    }

    /// The same with the line that their times are on, if they are on one.
    pub(crate) fn on(line: Option<Line>, points: Arc<Points>, sequences: Sequences) -> Self {
        let newest = sequences.range().1;
        let is_plain = line.is_some() || points.times().is_sorted_by(|a, b| a < b);
        Self { points, sequences, line, is_plain, newest }
    }

    /// Points of one commit, no two of one time, and the line that they are known to be on.
    pub(crate) fn of_commit(
        points: Arc<Points>,
        line: Option<Line>,
        sequence: CommitSequence,
    ) -> Self {
        let sequences = Sequences::All(sequence);
        Self { points, sequences, line, is_plain: true, newest: sequence }
    }

    /// Appends points at some places to others.
    pub(crate) fn append_to(&self, places: Range<usize>, out: &mut Points) {
        let line = self.line.filter(|_| places.len() >= LINE_POINTS_MIN);
        out.append_on(&self.points, places, line);
    }

    pub(crate) fn first(&self) -> i64 {
        self.points.times().first().copied().unwrap_or(i64::MIN)
    }

    pub(crate) fn last(&self) -> i64 {
        self.points.times().last().copied().unwrap_or(i64::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Bytes that it takes in memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let sequences = match &self.sequences {
            Sequences::All(_) => 0,
            Sequences::Each(each) => size_of_val(each.as_slice()),
        };
        size_of::<Self>() + self.points.bytes() + sequences
    }

    /// The places of the points with these times.
    pub(crate) fn places(&self, first: i64, last: i64) -> Range<usize> {
        // Most often all of them. To search for that reads times all over the piece.
        if first <= self.first() && self.last() <= last {
            return 0..self.len();
        }
        let times = self.points.times();
        let start = times.partition_point(|&time| time < first);
        start..times.partition_point(|&time| time <= last).max(start)
    }
}

/// A point of a commit alone, in as few bytes as it can be; text takes no part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LonePoint {
    time: i64,
    bits: u64,
    pub(crate) sequence: CommitSequence,
    value_type: ValueType,
    quality: Quality,
}

impl LonePoint {
    /// Of points that are one; none for others.
    pub(crate) fn of(points: &Points, sequence: CommitSequence) -> Option<Self> {
        let &[time] = points.times() else { return None };
        let bits = match points.values().get(0)? {
            SeriesValue::F64(value) => value.to_bits(),
            SeriesValue::F32(value) => value.to_bits().into(),
            SeriesValue::I64(value) => value.cast_unsigned(),
            SeriesValue::Bool(value) => value.into(),
            SeriesValue::String(_) => return None,
        };
        let (value_type, quality) = (points.value_type(), points.qualities().get(0));
        Some(Self { time, bits, sequence, value_type, quality })
    }

    /// As what comes in first.
    pub(crate) fn tail(self) -> Tail {
        let Self { time, bits, sequence, value_type, quality } = self;
        let mut points = Points::new(value_type);
        let (times, values, qualities) = points.columns_mut();
        times.push(time);
        // A narrow value was widened from its own bits.
        let narrow = u32::try_from(bits).unwrap_or_default();
        match values {
            Values::F64(all) => all.push(f64::from_bits(bits)),
            Values::F32(all) => all.push(f32::from_bits(narrow)),
            Values::I64(all) => all.push(bits.cast_signed()),
            Values::Bool(all) => all.push(bits != 0),
            Values::String(_) => {}
        }
        *qualities = Qualities::All(quality);
        Tail { points, sequences: Sequences::All(sequence) }
    }
}

/// Points as they come in, to become a piece.
#[derive(Debug, Clone)]
pub(crate) struct Tail {
    points: Points,
    sequences: Sequences,
}

impl Tail {
    pub(crate) fn new(points: &Points, sequence: CommitSequence) -> Self {
        Self { points: points.clone(), sequences: Sequences::All(sequence) }
    }

    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether points are of its type, as those of one series are.
    pub(crate) fn takes(&self, points: &Points) -> bool {
        self.points.value_type() == points.value_type()
    }

    /// Appends points of a later commit.
    pub(crate) fn push(&mut self, points: &Points, sequence: CommitSequence) {
        self.sequences.extend(self.points.len(), sequence, points.len());
        self.points.append(points, 0..points.len());
    }

    /// The points in the order of a piece.
    pub(crate) fn into_piece(self) -> Piece {
        let Self { mut points, mut sequences } = self;
        // They came in the order of their commits.
        let newest = match &sequences {
            Sequences::All(all) => *all,
            Sequences::Each(each) => each.last().copied().unwrap_or_default(),
        };
        let times = points.times();
        if !times.is_sorted() {
            let mut order: Vec<usize> = (0..times.len()).collect();
            // Those of one time stay in the order of their commits.
            order.sort_by_key(|&at| times.get(at));
            sequences = sequences.permuted(&order);
            points.permute(&order);
        }
        let line = Line::of(points.times());
        let is_plain = line.is_some() || points.times().is_sorted_by(|a, b| a < b);
        Piece { points: Arc::new(points), sequences, line, is_plain, newest }
    }
}
