//! What records count that does not follow from the values of the revisions that are told.
//!
//! Invariant: what is told is about these values alone, so a history that was taken over tells the
//! same, whether revisions before it or between them were dropped here or elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::Document;
use crate::error::{Error, ErrorKind, Result};
use crate::export::shown::{Gone, Presence, Shown};
use crate::limits::RECORD_VERSION_MAX;
use crate::node::{NodeId, PathId};
use crate::revision::Revision;
use crate::state::Datum;
use crate::transaction::Transaction;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::kept::Kept;
use crate::tree::records::version_path;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;
use crate::tree::{Diff, Tree};

/// Records looked at under one lock.
const RECORDS_AT_ONCE: u64 = 4_096;

/// The records whose versions are not what counting gives.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Those that got their next version though nothing of them differs.
    pub(super) counted: Vec<String>,
    /// Those that have another one.
    pub(super) versions: BTreeMap<String, u64>,
}

/// The names of the root's members in which two values differ.
#[derive(Debug)]
pub(super) struct Differing(BTreeSet<String>);

impl Differing {
    pub(super) fn of(diff: &Diff) -> Self {
        let changed = diff.changes.iter().map(|change| &change.pointer);
        // A record that goes to another place is what it was.
        let moved = diff.moves.iter().map(|moved| &moved.member);
        let moved = moved.filter(|member| member.tokens().len() > 1);
        let names = changed.chain(moved).filter_map(|pointer| pointer.tokens().next());
        Self(names.map(str::to_owned).collect())
    }
}

/// A collection of which revisions are told.
struct Counted<'t> {
    tree: &'t Tree,
    shown: Shown<'t>,
    /// The path of what counts the records' versions.
    version: PathId,
}

impl Document {
    /// What the records of a revision count, which follows another one among those that are kept;
    /// `differing` is what differs between the two, where both have a value.
    pub(super) fn counts(
        &self,
        (revision, before): (Revision, Option<Revision>),
        kept: &Kept,
        differing: Option<&Differing>,
    ) -> Result<Counts> {
        let (_, tree) = self.parts();
        let (records, version) = {
            let schema = &tree.data.read().schema;
            (schema.path(ROOT).entry, version_path(schema))
        };
        let (Some(records), Some(version)) = (records, version) else {
            return Ok(Counts::default());
        };
        let counted = Counted { tree, shown: Shown { tree, kept, records }, version };
        let before = before.map(short);
        let follows = before.is_some_and(|before| before + 1 == short(revision));
        let ordinals = match differing {
            Some(_) if follows => counted.saved(revision)?,
            _ => counted.all(short(revision))?,
        };
        let mut counts = Counts::default();
        for ordinal in ordinals {
            counted.look((ordinal, before, short(revision)), differing, &mut counts)?;
        }
        counts.counted.sort_unstable();
        Ok(counts)
    }
}

impl Counted<'_> {
    /// The records that a revision saved or made, as far as any has a version that is stored.
    fn saved(&self, revision: Revision) -> Result<Vec<u64>> {
        let at = short(revision);
        let changed = self.tree.changed(revision)?.into_iter();
        let changed = changed.filter(|node| node.path() == self.version);
        let mut saved: Vec<u64> = changed.map(|node| node.ordinal().0).collect();
        let born = self.tree.first_record_born(at)?..self.tree.first_record_born(at + 1)?;
        saved.extend(self.versioned(born, at)?);
        Ok(saved)
    }

    /// All records with a version that is stored.
    fn all(&self, at: u32) -> Result<Vec<u64>> {
        self.versioned(0..self.tree.first_record_born(at + 1)?, at)
    }

    /// Those of some records with a version that is stored.
    fn versioned(&self, among: std::ops::Range<u64>, at: u32) -> Result<Vec<u64>> {
        let mut all = Vec::new();
        let mut first = among.start;
        while first < among.end {
            let some = first..among.end.min(first + RECORDS_AT_ONCE);
            first = some.end;
            all.extend(self.tree.read(|data| {
                let mut found = Vec::new();
                for ordinal in some.clone() {
                    if matches!(data.state(node(self.version, ordinal), at)?, Datum::Int(_)) {
                        found.push(ordinal);
                    }
                }
                Ok(found)
            })?);
        }
        Ok(all)
    }

    fn look(
        &self,
        (ordinal, before, at): (u64, Option<u32>, u32),
        differing: Option<&Differing>,
        counts: &mut Counts,
    ) -> Result<()> {
        let record = node(self.shown.records, ordinal);
        if self.shown.presence(record, at)? != Presence::There {
            return Ok(());
        }
        let Some(key) = self.tree.name_of(record)? else { return Ok(()) };
        let found = self.tree.record_version(record, at)?;
        let (known, differs) = match self.shown.last(record, before)? {
            None => (0, true),
            Some((last, gone)) => {
                // It was once not counted that a record came back with its collection.
                let is_back = gone == Some(Gone::WithAll)
                    && found > self.tree.record_version(record, last)?;
                let differs = gone == Some(Gone::Alone)
                    || is_back
                    || match differing.filter(|_| Some(last) == before) {
                        Some(differing) => differing.0.contains(&key),
                        None => self.text(record, last)? != self.text(record, at)?,
                    };
                (self.tree.record_version(record, last)?, differs)
            }
        };
        if found == known + u64::from(differs) {
            return Ok(());
        }
        if found == known + 1 {
            counts.counted.push(key);
        } else {
            counts.versions.insert(key, found);
        }
        Ok(())
    }

    /// A record as it is at a revision, whatever its collection is.
    fn text(&self, record: NodeId, at: u32) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        self.tree.append_json((record, at), &Format::default(), &mut text)?;
        Ok(text)
    }
}

impl Transaction {
    /// Gives records their next version, whether anything of them differs or not.
    pub(super) fn count_versions(&mut self, name: &str, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.change_collection(name, |writer| {
            for key in keys {
                let record = writer.record(key)?.ok_or_else(|| not_there(key))?;
                writer.count_version(record)?;
            }
            Ok(())
        })
    }

    /// Gives records these versions, whatever they would count.
    pub(super) fn give_versions(
        &mut self,
        name: &str,
        versions: &BTreeMap<String, u64>,
    ) -> Result<()> {
        if versions.is_empty() {
            return Ok(());
        }
        self.change_collection(name, |writer| {
            for (key, &given) in versions {
                let record = writer.record(key)?.ok_or_else(|| not_there(key))?;
                let before = writer.tree.record_version(record, writer.revision - 1)?;
                if given <= before || given > RECORD_VERSION_MAX {
                    let message = format!(
                        "record {key:?} has version {given} behind {before}: versions rise, up to \
                         {RECORD_VERSION_MAX}"
                    );
                    return Err(Error::new(ErrorKind::Invalid, message));
                }
                writer.give_version(record, given)?;
            }
            Ok(())
        })
    }

    /// Gives those of the records that are there the versions that are known, as far as these are
    /// later ones than they have.
    pub(crate) fn give_versions_there(
        &mut self,
        name: &str,
        known: &[(&str, Option<u64>)],
    ) -> Result<()> {
        self.change_collection(name, |writer| {
            let later = known.iter().filter_map(|&(key, known)| Some((key, known?)));
            for (key, known) in later.filter(|(_, known)| *known > 1) {
                if let Some(record) = writer.record(key)?
                    && known > writer.tree.record_version(record, writer.revision - 1)?
                {
                    writer.give_version(record, known)?;
                }
            }
            Ok(())
        })
    }

    /// Gives those of the records that are there their next version.
    pub(crate) fn count_records_there(&mut self, name: &str, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        self.change_collection(name, |writer| {
            for key in keys {
                if let Some(record) = writer.record(key)? {
                    writer.count_version(record)?;
                }
            }
            Ok(())
        })
    }
}

fn not_there(key: &str) -> Error {
    let message = format!("record {key:?} has a version, but is not there");
    Error::new(ErrorKind::Invalid, message)
}
