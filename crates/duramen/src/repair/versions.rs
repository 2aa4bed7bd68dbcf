//! The versions of the records of a damaged collection.
//!
//! A version is a change of a field that counts, so it is known where a value of that revision
//! would be. A record of which something is lost may differ in revisions that did not change it,
//! and so count more of them than there were: that is told.

use std::collections::BTreeMap;

use super::Lost;
use crate::database::Database;
use crate::error::Result;
use crate::node::PathId;
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::records::{version_of, version_path};
use crate::tree::salvage::{Losses, readable};
use crate::tree::schema::ROOT;

/// How many keys are named of those whose versions are lost.
const KEYS_TOLD: usize = 8;

/// The versions of the records of one document on its way into a new database.
pub(super) struct Versions<'r> {
    tree: &'r Tree,
    losses: &'r Losses,
    /// What counts; none if no record has a second version.
    version: Option<PathId>,
    /// The records whose keys are left, by their ordinals, and when each was born.
    records: Vec<(u64, u32, String)>,
    /// The keys of those that have another version in the new database, and in which revisions.
    wrong: BTreeMap<String, (Revision, Revision)>,
}

impl<'r> Versions<'r> {
    pub(super) fn of(tree: &'r Tree, losses: &'r Losses) -> Result<Self> {
        let (entries, version) = {
            let schema = &tree.data.read().schema;
            (schema.path(ROOT).entry, version_path(schema))
        };
        let mut records = Vec::new();
        if let Some(entries) = entries {
            let (space, end) = {
                let data = tree.data.read();
                let space = data.schema.path(entries).space;
                (space, data.spaces[space.0 as usize].next)
            };
            for ordinal in 0..end {
                let born = readable(tree.read(|data| data.born(space, ordinal)))?.flatten();
                let key = readable(tree.name_of(node(entries, ordinal)))?.flatten();
                records.extend(key.map(|key| (ordinal, born.unwrap_or(1), key)));
            }
        }
        Ok(Self { tree, losses, version, records, wrong: BTreeMap::new() })
    }

    /// The keys of the records that were born by a revision, with their versions as far as these
    /// are known.
    pub(super) fn at(&self, revision: Revision) -> Result<Vec<(&str, Option<u64>)>> {
        let at = short(revision);
        let mut known = Vec::new();
        for (ordinal, born, key) in &self.records {
            if *born <= at {
                known.push((key.as_str(), self.version(*ordinal, *born, at)?));
            }
        }
        Ok(known)
    }

    fn version(&self, ordinal: u64, born: u32, at: u32) -> Result<Option<u64>> {
        let Some(version) = self.version else { return Ok(Some(1)) };
        let versions = node(version, ordinal);
        let found = self.tree.read(|data| {
            let Some((set, state)) = data.version(versions, at)? else { return Ok((born, 1)) };
            Ok((set, version_of(state)?))
        });
        let Some((set, found)) = readable(found)? else { return Ok(None) };
        if self.losses.may_hide_more(self.tree, versions, set, at) {
            return Ok(None);
        }
        // Each change that is lost was the next version.
        Ok(Some(found + self.losses.changes_of(versions, set, at)))
    }

    /// The records that are not there at a revision, as far as that and their versions are known.
    pub(super) fn gone(&self, revision: Revision) -> Result<BTreeMap<String, u64>> {
        let (at, mut gone) = (short(revision), BTreeMap::new());
        let Some(entries) = self.tree.data.read().schema.path(ROOT).entry else { return Ok(gone) };
        for (ordinal, born, key) in self.records.iter().filter(|(_, born, _)| *born <= at) {
            let record = node(entries, *ordinal);
            let is_gone = self.tree.read(|data| Ok(data.state(record, at)?.is_absent()));
            if readable(is_gone)? == Some(true)
                && let Some(version) = self.version(*ordinal, *born, at)?
            {
                gone.insert(key.clone(), version);
            }
        }
        Ok(gone)
    }

    /// Holds what became of a revision against what is known of it.
    pub(super) fn compare(
        &mut self,
        (database, name): (&Database, &str),
        (revision, made): (Revision, Revision),
    ) -> Result<()> {
        let document = database.document(name)?;
        let (_, new) = document.parts();
        let mut wrong = Vec::new();
        for (key, known) in self.at(revision)? {
            let Some(record) = new.record(key.as_bytes(), short(made))? else { continue };
            if known != Some(new.record_version(record, short(made))?) {
                wrong.push(key.to_owned());
            }
        }
        self.tell(wrong, revision);
        Ok(())
    }

    /// Holds what all keys go on counting from, also those that are gone, against what is known of
    /// it at the last revision.
    pub(super) fn compare_all(
        &mut self,
        (database, name): (&Database, &str),
        (revision, made): (Revision, Revision),
    ) -> Result<()> {
        let document = database.document(name)?;
        let (_, new) = document.parts();
        let mut wrong = Vec::new();
        for (key, known) in self.at(revision)? {
            let found = match new.record_ever(key.as_bytes())? {
                Some(record) => Some(new.record_version(record, short(made))?),
                None => None,
            };
            if found.is_none() || found != known {
                wrong.push(key.to_owned());
            }
        }
        self.tell(wrong, revision);
        Ok(())
    }

    fn tell(&mut self, wrong: Vec<String>, revision: Revision) {
        for key in wrong {
            self.wrong.entry(key).or_insert((revision, revision)).1 = revision;
        }
    }

    /// What is to be told as lost.
    pub(super) fn lost(&self, name: &str) -> Option<Lost> {
        let first = self.wrong.values().map(|(first, _)| *first).min()?;
        let last = self.wrong.values().map(|(_, last)| *last).max()?;
        let keys: Vec<String> =
            self.wrong.keys().take(KEYS_TOLD).map(|key| format!("{key:?}")).collect();
        let rest = if keys.len() < self.wrong.len() { ", ..." } else { "" };
        let what = format!("versions of records: {}{rest}", keys.join(", "));
        let (document, values) = (Some(name.to_owned()), self.wrong.len() as u64);
        Some(Lost { document, path: None, first, last, values, what })
    }
}
