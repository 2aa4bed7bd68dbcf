//! Where the points of a series are, as of a commit.

use std::sync::Arc;

use super::Reading;
use crate::engine::View;
use crate::error::Result;
use crate::memory::Memory;
use crate::revision::CommitSequence;
use crate::series::deletes;
use crate::series::piece::Piece;
use crate::series::source::{self, Course, Walk};
use crate::series::value::ValueType;
use crate::series::young::{Delete, Young};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, TreeId};

/// Where points are read from, held so that several readings see the same.
#[derive(Debug)]
pub(crate) struct PointStore {
    pub(crate) value_type: ValueType,
    pub(crate) sequence: CommitSequence,
    pub(crate) young: Vec<Arc<Piece>>,
    pub(crate) live: Arc<LiveSegments>,
    /// The prefix of the keys of its cells.
    pub(crate) column: Vec<u8>,
    pub(crate) deletes: Vec<Delete>,
    pub(crate) memory: Arc<Memory>,
}

impl PointStore {
    /// What a view has of a series, up to a commit.
    pub(crate) fn of(
        view: &View,
        (series, value_type): (TreeId, ValueType),
        sequence: CommitSequence,
    ) -> Result<Self> {
        let found = view.series.of_with(series, || view.store.live());
        Self::of_found(view, (series, value_type), sequence, found)
    }

    /// The same of what was young and what segments there were at one moment.
    pub(crate) fn of_found(
        view: &View,
        (series, value_type): (TreeId, ValueType),
        sequence: CommitSequence,
        (young, live): (Young, Arc<LiveSegments>),
    ) -> Result<Self> {
        Ok(Self {
            value_type,
            sequence,
            young: young.pieces,
            deletes: deletes::all(young.deletes, &live, series)?,
            live,
            column: cell_key::all_points(series),
            memory: Arc::clone(view.store.memory()),
        })
    }

    /// Begins to read a course.
    pub(crate) fn read(&self, course: Course) -> Result<Reading> {
        let mut sources = source::young(self.young.clone(), course, &self.memory)?;
        sources.extend(source::on_disk(&self.live, &self.column, course, &self.memory)?);
        let as_of = (self.sequence, self.deletes.clone());
        Ok(Reading::new(self.value_type, course, sources, as_of))
    }

    /// A walk over the cells of the segment that has most of a course.
    pub(crate) fn longest_walk(&self, course: Course) -> Result<Option<Walk>> {
        source::longest_walk(&self.live, &self.column, course)
    }
}
