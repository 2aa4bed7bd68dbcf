//! Writes what was salvaged of one document into the new database, revision by revision.
//!
//! Invariant: a revision keeps its number, whatever of it is lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::content_hash::ContentHash;
use crate::database::Database;
use crate::durability::Durability;
use crate::engine::options::CommitOptions;
use crate::error::{ErrorKind, Result};
use crate::export::held_bytes;
use crate::repair::long::Printed;
use crate::repair::print::{Printer, Root};
use crate::repair::versions::Versions;
use crate::repair::{Lost, Step};
use crate::revision::{Micros, Revision};
use crate::transaction::Transaction;
use crate::tree::history::short;
use crate::tree::records::version_path;
use crate::tree::rows::Row;
use crate::tree::salvage::{Losses, readable};
use crate::tree::schema::ROOT;
use crate::tree::{Tree, data};

/// How long the device may lag behind; all is flushed at the end.
const DURABILITY: Durability = Durability::Interval(1_000);

/// A document on its way from a damaged database into a new one.
pub(crate) struct Rewrite<'d> {
    pub(crate) tree: Arc<Tree>,
    pub(crate) losses: Losses,
    pub(crate) name: &'d str,
    pub(crate) database: &'d Database,
    /// The timestamp of the newest commit that was found.
    pub(crate) newest: Micros,
    /// The first revision that is not there yet.
    pub(crate) first: Revision,
}

impl Rewrite<'_> {
    /// Writes all revisions. What was lost is added to `lost`.
    pub(crate) fn run(&self, step: &mut Step<'_>, lost: &mut Vec<Lost>) -> Result<u64> {
        let newest = self.tree.data.read().rows.last();
        // What is left of a history that was cut is numbered from 1 on, as in an export.
        let kept_revisions = self.tree.kept();
        let count = kept_revisions.count_up_to(newest);
        let revisions: Vec<_> =
            (1..=count).map(|number| Revision(kept_revisions.numbered(number))).collect();
        let times = self.times(&revisions)?;
        let mut printer = Printer::new(&self.tree, &self.losses);
        let kept = self.kept_hashes()?;
        let is_collection = self.database.document(self.name)?.options()?.collection.is_some();
        let mut versions =
            if is_collection { Some(Versions::of(&self.tree, &self.losses)?) } else { None };
        let mut gone = Vec::new();
        let mut is_deleted = self.is_deleted_before()?;
        for ((made, &revision), &timestamp) in (1..).map(Revision).zip(&revisions).zip(&times) {
            if made < self.first {
                continue;
            }
            let how = options(timestamp, readable(self.tree.row(revision))?);
            let mut value = self.value(&mut printer, (revision, made), kept.get(&revision))?;
            let mut is_there = value.is_long
                && self.load((&mut printer, revision), (versions.as_ref(), &how), step)?;
            if value.is_long && !is_there {
                value = Printed::lost();
            }
            if !is_there {
                let before = if is_deleted { Root::Deleted } else { Root::Printed };
                is_there =
                    self.commit((&value, before), (revision, made), versions.as_ref(), &how)?;
            }
            if value.root == Root::Lost || !is_there {
                gone.push(revision);
            }
            is_deleted = value.root == Root::Deleted;
            if let Some(versions) = &mut versions {
                let (document, revisions) = ((self.database, self.name), (revision, made));
                if self.is_last(revision) {
                    versions.compare_all(document, revisions)?;
                } else if !is_deleted {
                    versions.compare(document, revisions)?;
                }
            }
            step(1)?;
        }
        self.tell(&printer, &gone, lost);
        lost.extend(versions.and_then(|versions| versions.lost(self.name)));
        Ok(count)
    }

    /// The value of a revision. What seems to be whole is lost if it has not the hash that was kept
    /// of it.
    fn value(
        &self,
        printer: &mut Printer<'_>,
        (revision, made): (Revision, Revision),
        kept: Option<&ContentHash>,
    ) -> Result<Printed> {
        let before = printer.lost_values();
        // Only a first revision is loaded in bulk.
        let bytes_max = if made.0 == 1 { held_bytes(&self.database.engine) } else { usize::MAX };
        let value = Printed::of(printer, short(revision), bytes_max)?;
        if value.root == Root::Printed
            && printer.lost_values() == before
            && kept.is_some_and(|hash| *hash != value.hash())
        {
            return Ok(Printed::lost());
        }
        Ok(value)
    }

    /// Commits a value that is at hand; whether it is there. `before` is what the root was in the
    /// revision before.
    fn commit(
        &self,
        (value, before): (&Printed, Root),
        (revision, made): (Revision, Revision),
        versions: Option<&Versions<'_>>,
        how: &CommitOptions,
    ) -> Result<bool> {
        let nothing: &[u8] = if versions.is_some() { b"{}" } else { b"null" };
        let mut transaction = self.database.transaction();
        transaction.keep_unchanged();
        transaction.repeat();
        let mut is_there = true;
        match value.root {
            Root::Deleted if before == Root::Deleted => {
                transaction.expect(self.name, Revision(made.0 - 1))?;
            }
            Root::Deleted => transaction.delete_document(self.name)?,
            root => {
                let text = if root == Root::Lost { nothing } else { &value.text };
                is_there = self.put(&mut transaction, text, nothing)?;
                if let Some(versions) = versions {
                    transaction.count_records_there(self.name, &self.counted(revision)?)?;
                    transaction.give_versions_there(self.name, &versions.at(revision)?)?;
                }
            }
        }
        if let Some(versions) = versions.filter(|_| self.is_last(revision)) {
            let known = versions.at(revision)?;
            let known = known.into_iter().filter_map(|(key, versions)| Some((key, versions?)));
            transaction.depart_unknown_records(self.name, known)?;
        }
        transaction.commit(how)?;
        Ok(is_there)
    }

    /// Whether a revision is the newest one.
    pub(super) fn is_last(&self, revision: Revision) -> bool {
        revision.0 == self.tree.data.read().rows.last()
    }

    /// Puts a value, or nothing in the place of one that may not be there: what could be stored
    /// once may be over a limit now. Whether it is there.
    fn put(&self, transaction: &mut Transaction, text: &[u8], nothing: &[u8]) -> Result<bool> {
        match transaction.put(self.name, text) {
            Err(error) if error.kind() == ErrorKind::Invalid => {
                transaction.put(self.name, nothing).map(|()| false)
            }
            put => put.map(|()| true),
        }
    }

    /// The content hashes that checkpoints kept, as far as they are left.
    fn kept_hashes(&self) -> Result<BTreeMap<Revision, ContentHash>> {
        let mut kept = BTreeMap::new();
        for found in readable(self.tree.kept_hashes())?.into_iter().flatten() {
            kept.extend(readable(found)?);
        }
        Ok(kept)
    }

    /// The keys of the records that got a version in a revision, whatever of them is left.
    pub(super) fn counted(&self, revision: Revision) -> Result<Vec<String>> {
        let (records, version) = {
            let schema = &self.tree.data.read().schema;
            (schema.path(ROOT).entry, version_path(schema))
        };
        let (Some(records), Some(version)) = (records, version) else { return Ok(Vec::new()) };
        let mut keys = Vec::new();
        for node in readable(self.tree.changed(revision))?.unwrap_or_default() {
            if node.path() == version {
                let record = data::node(records, node.ordinal().0);
                keys.extend(readable(self.tree.name_of(record))?.flatten());
            }
        }
        Ok(keys)
    }

    fn is_deleted_before(&self) -> Result<bool> {
        let document = self.database.document(self.name)?;
        document.is_deleted()
    }

    fn tell(&self, printer: &Printer<'_>, gone: &[Revision], lost: &mut Vec<Lost>) {
        let document = Some(self.name.to_owned());
        let mut tell = |path: Option<String>, (first, last), values, what: &str| {
            let (document, what) = (document.clone(), what.to_owned());
            lost.push(Lost { document, path, first, last, values, what });
        };
        for (first, last) in spans(gone) {
            let values = last.0 - first.0 + 1;
            tell(Some("$".to_owned()), (first, last), values, "the whole value");
        }
        for (&path, values) in &printer.lost {
            let revisions = (Revision(values.first.into()), Revision(values.last.into()));
            tell(Some(printer.label(path)), revisions, values.count, "values");
        }
        for (first, last) in spans(&self.losses.rows) {
            let values = last.0 - first.0 + 1;
            tell(None, (first, last), values, "times, authors and messages");
        }
    }

    /// The timestamps of the revisions. One that is lost is the least after the one before it.
    fn times(&self, revisions: &[Revision]) -> Result<Vec<Micros>> {
        let mut known = Vec::new();
        for &revision in revisions {
            known.push(readable(self.tree.row(revision))?.map(|row| row.timestamp.0));
        }
        let first = known.iter().position(Option::is_some).unwrap_or(known.len());
        let found = known.get(first).copied().flatten();
        let end = found.unwrap_or_else(|| self.newest.0.saturating_add(1));
        let mut before = end.saturating_sub_unsigned(first as u64 + 1);
        let times = known.into_iter().map(|time| {
            before = time.unwrap_or_else(|| before.saturating_add(1));
            Micros(before)
        });
        Ok(times.collect())
    }
}

fn options(timestamp: Micros, row: Option<Row>) -> CommitOptions {
    let (author, message) = row.map_or((None, None), |row| (row.author, row.message));
    CommitOptions {
        author: author.map(Into::into),
        message: message.map(Into::into),
        timestamp: Some(timestamp),
        durability: Some(DURABILITY),
        ..CommitOptions::default()
    }
}

/// Numbers that follow each other, as the first and the last.
fn spans(revisions: &[Revision]) -> Vec<(Revision, Revision)> {
    let mut spans: Vec<(Revision, Revision)> = Vec::new();
    for &revision in revisions {
        match spans.last_mut() {
            Some((_, last)) if last.next() == revision => *last = revision,
            _ => spans.push((revision, revision)),
        }
    }
    spans
}
