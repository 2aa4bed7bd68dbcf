//! A collection at a revision as queries read it: records by their ordinals.

use std::sync::Arc;

use super::super::{CollectionSnapshot, KeyKind, Record};
use super::projection::Projection;
use crate::error::Result;
use crate::io::Device;
use crate::jsonpath::place::{At, View};
use crate::node::{NodeId, PathId};
use crate::snapshot::Snapshot;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::schema::ROOT;
use crate::tree::stored_records::{RecordBatch, StoredRecord};

/// Records that room is made for before they are read.
const ROOM_RECORDS: usize = 1_024;

/// The records of a collection at a revision.
#[derive(Debug, Clone)]
pub(crate) struct RecordView {
    snapshot: Snapshot,
    keys: KeyKind,
    /// The path of records.
    path: PathId,
}

impl RecordView {
    /// None if the collection never had a record up to then.
    pub(crate) fn of(collection: &CollectionSnapshot) -> Option<Self> {
        Self::new(collection.snapshot.clone()?, collection.keys)
    }

    /// The same of a document that is a collection.
    pub(crate) fn new(snapshot: Snapshot, keys: KeyKind) -> Option<Self> {
        let path = snapshot.tree.data.read().schema.path(ROOT).entry?;
        Some(Self { snapshot, keys, path })
    }

    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.snapshot.tree
    }

    pub(crate) fn revision(&self) -> u32 {
        short(self.snapshot.revision)
    }

    /// The tree and the revision in it.
    pub(crate) fn place(&self) -> (&Tree, u32) {
        self.snapshot.place()
    }

    pub(crate) fn path(&self) -> PathId {
        self.path
    }

    pub(crate) fn node(&self, ordinal: u64) -> NodeId {
        node(self.path, ordinal)
    }

    /// A record that is there, as a place.
    pub(crate) fn at(&self, ordinal: u64) -> At {
        At::Node(self.node(ordinal))
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { tree: self.tree(), revision: self.revision() }
    }

    /// The text of the key of a record.
    pub(crate) fn name(&self, ordinal: u64) -> Result<Arc<str>> {
        self.view().name(&self.at(ordinal))
    }

    /// Records that are there, or parts of them, and how many were asked for up to the one that
    /// reaches so many bytes: those behind it are left out.
    pub(super) fn records(
        &self,
        ordinals: &[u64],
        parts: Option<&Projection>,
        bytes: usize,
    ) -> Result<(Vec<Record>, usize)> {
        let mut records = Vec::with_capacity(ordinals.len().min(ROOM_RECORDS));
        let mut left = bytes;
        let mut is_last = |record: &Record| {
            left = left.saturating_sub(record.json.len());
            left == 0
        };
        if let Some(parts) = parts {
            for (count, &ordinal) in (1..).zip(ordinals) {
                let record = self.part(ordinal, parts)?;
                let is_last = is_last(&record);
                records.push(record);
                if is_last {
                    return Ok((records, count));
                }
            }
            return Ok((records, ordinals.len()));
        }
        let mut batch = RecordBatch::new(ordinals.to_vec(), true);
        while let Some((at, stored)) = batch.next(self.place())? {
            let record = self.record(stored)?;
            let is_last = is_last(&record);
            records.push(record);
            if is_last {
                return Ok((records, at + 1));
            }
        }
        Ok((records, ordinals.len()))
    }

    /// A record that was read.
    #[inline]
    pub(super) fn record(&self, stored: StoredRecord<'_>) -> Result<Record> {
        Ok(Record::of(self.keys.key_of(stored.key.as_bytes())?, stored))
    }

    /// The parts of a record that are asked for.
    pub(super) fn part(&self, ordinal: u64, parts: &Projection) -> Result<Record> {
        let record = self.node(ordinal);
        let key = self.keys.key_of(self.name(ordinal)?.as_bytes())?;
        let mut json = Vec::new();
        if !parts.append(self.view(), &self.at(ordinal), &mut json)? {
            json.extend_from_slice(b"{}");
        }
        let json = String::from_utf8_lossy(&json).into_owned();
        Ok(Record { key, version: self.tree().record_version(record, self.revision())?, json })
    }

    /// Where what is sorted may go.
    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        self.tree().cells.device()
    }

    /// The first ordinal that was born after the revision: ordinals are given in the order of
    /// birth, so that it is found by bisection.
    pub(crate) fn end(&self) -> Result<u64> {
        let space = self.tree().data.read().schema.path(self.path).space;
        let next = self.tree().data.read().spaces[space.0 as usize].next;
        let is_born = |ordinal: u64| {
            let born = self.tree().read(|data| data.born(space, ordinal))?;
            Ok::<_, crate::Error>(born.is_none_or(|born| born <= self.revision()))
        };
        if next == 0 || is_born(next - 1)? {
            return Ok(next);
        }
        let (mut low, mut high) = (0, next - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_born(middle)? {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
