//! The series of which a transaction writes points.
//!
//! A series has no turn: any number of transactions write its points at once, while others may
//! delete it or give it another name. What is written then would be points of no series, or of one
//! that nobody named; so who writes looks again before the commit.

use std::collections::BTreeMap;

use super::Transaction;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::Micros;
use crate::series::changes::SeriesChanges;
use crate::series::{SeriesInfo, tags};
use crate::tree::cell_key::TreeId;

/// The series of which points are appended or deleted, as they were found by their names.
#[derive(Debug, Default)]
pub(super) struct WrittenSeries {
    all: BTreeMap<TreeId, SeriesInfo>,
    /// The oldest revision of the catalogue in which any of them was found.
    found: Option<u32>,
}

impl WrittenSeries {
    /// Takes one that was found in a revision of the catalogue.
    pub(super) fn note(&mut self, info: SeriesInfo, revision: u32) {
        let found = self.found.get_or_insert(revision);
        *found = revision.min(*found);
        self.all.insert(info.number, info);
    }

    /// The transaction itself has given a series another name.
    pub(super) fn rename(&mut self, info: &SeriesInfo) {
        if let Some(known) = self.all.get_mut(&info.number) {
            known.name.clone_from(&info.name);
        }
    }

    /// The transaction itself has deleted a series.
    pub(super) fn forget(&mut self, series: TreeId) {
        self.all.remove(&series);
    }

    /// Of how many points each series tells nobody, as they are older than it keeps them.
    pub(super) fn count_unkept(
        &self,
        changes: &SeriesChanges,
        now: impl FnOnce() -> Micros,
    ) -> Vec<(String, u64)> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let now = now();
        let count = |(series, info): (&TreeId, &SeriesInfo)| {
            let points = changes.points(*series)?;
            let count = info.definition.count_unkept(points.times(), now);
            (count > 0).then(|| (info.name.clone(), count))
        };
        self.all.iter().filter_map(count).collect()
    }
}

impl Transaction {
    /// A series of which points are written and that another commit has deleted or renamed, if
    /// there is one.
    pub(super) fn lost_series(&self) -> Result<Option<&str>> {
        let Some(found) = self.written.found else { return Ok(None) };
        let tags = self.engine.view().tree(TreeId::SERIES)?;
        let own = self.writers.get(&TreeId::SERIES).map(|writer| writer.revision);
        let newest = own.unwrap_or_else(|| tags::newest(&tags));
        if newest == found {
            return Ok(None);
        }
        for info in self.written.all.values() {
            let now = tags::find(&tags, &info.name, newest)?;
            if now.is_none_or(|now| now.number != info.number) {
                self.wait_published(&tags)?;
                return Ok(Some(&info.name));
            }
        }
        Ok(None)
    }

    /// Refuses points of such a series.
    pub(super) fn check_written_series(&self) -> Result<()> {
        let Some(name) = self.lost_series()? else { return Ok(()) };
        let message = format!(
            "another commit deleted or renamed series {name:?} since the transaction wrote points \
             of it: retry"
        );
        Err(Error::new(ErrorKind::Conflict, message))
    }
}
