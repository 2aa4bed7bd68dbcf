//! Holds the indexes of a collection against its records.

use std::sync::Arc;

use crate::check::{CheckReport, Finding};
use crate::collection::KeyKind;
use crate::engine::View;
use crate::engine::catalogue::facts;
use crate::error::{ErrorKind, Result};
use crate::index::{self, Index, was_dropped};
use crate::revision::{CommitSequence, Revision};
use crate::tree::Tree;
use crate::tree::history::short;

impl CheckReport {
    /// Each index has the entries that the records ask for, at the newest revision and at older
    /// ones.
    pub(super) fn check_indexes(
        &mut self,
        place: &str,
        (view, published): (&View, CommitSequence),
        tree: &Arc<Tree>,
    ) -> Result<()> {
        let (catalogue, now) = view.catalogue(published)?;
        let options = facts::options(&catalogue, tree.id(), now)?.unwrap_or_default();
        let head = short(tree.head_at(published)?);
        for (name, declared) in options.indexes.iter().filter(|(_, index)| !index.is_building) {
            self.indexes += 1;
            let place = format!("{place}, index {name:?}");
            let index = match tree.indexes.get(tree, declared) {
                Err(error) if was_dropped(&error) => continue,
                index => self.found(&place, index)?,
            };
            let Some(index) = index else { continue };
            let first = index.first(tree).max(short(Revision(tree.first_revision())));
            for revision in revisions(first, head) {
                self.check_index(&place, (tree, &index), revision)?;
            }
            if declared.is_unique && head >= first {
                let keys = options.collection.unwrap_or_default();
                self.check_unique(&place, (tree, &index), (name, keys), head)?;
            }
        }
        Ok(())
    }

    /// No two records have the same values where an index is unique. Earlier revisions may, from
    /// before it was.
    fn check_unique(
        &mut self,
        place: &str,
        of: (&Arc<Tree>, &Arc<Index>),
        named: (&str, KeyKind),
        head: u32,
    ) -> Result<()> {
        match index::check_all(of, named, head, &mut || Ok(())) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                let (place, message) = (place.to_owned(), error.message().to_owned());
                self.findings.push(Finding { place, message });
                Ok(())
            }
            // It was dropped meanwhile, or a compaction dropped the revision.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            checked => self.found(place, checked).map(drop),
        }
    }

    fn check_index(
        &mut self,
        place: &str,
        of: (&Arc<Tree>, &Arc<Index>),
        revision: u32,
    ) -> Result<()> {
        if of.0.deleted_in(revision)?.is_some() {
            return Ok(());
        }
        let place = format!("{place}, revision {revision}");
        let checked = match index::check(of, revision) {
            // A compaction dropped it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            checked => checked,
        };
        if let Some(messages) = self.found(&place, checked)? {
            let finding = |message| Finding { place: place.clone(), message };
            self.findings.extend(messages.into_iter().map(finding));
        }
        Ok(())
    }
}

/// The newest revision, the first one and those in the middle of each half.
fn revisions(first: u32, head: u32) -> Vec<u32> {
    let (first, span) = (Revision(first.into()), u64::from(head.saturating_sub(first)));
    let quarters = [0, span / 4, span / 2, span - span / 4, span];
    let mut revisions: Vec<u32> =
        quarters.into_iter().map(|after| short(Revision(first.0 + after))).collect();
    revisions.retain(|&revision| revision <= head && revision > 0);
    revisions.dedup();
    revisions
}
