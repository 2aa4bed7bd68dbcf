//! A tree whose root is a map of records: how they are found, counted and changed.
//!
//! Invariants:
//! - a key keeps its ordinal for ever, and with it what it counts;
//! - the map's order is that of the ordinals, so that a record's place is found by bisection;
//! - a record's first version is 1 and is not stored; each later revision that changes the record,
//!   or brings it back with the collection, and leaves it there stores the next in a field that no
//!   JSON text can name;
//! - a key has an ordinal without a record from its birth on where the commit that brought it took
//!   it again, or where it came with a history of which no revision shows it. There it may store a
//!   version from then on.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use crate::collection::KeyKind;
use crate::error::{Error, ErrorKind, Result};
use crate::json::Tape;
use crate::limits::EXTENT_ITEMS_MAX;
use crate::node::{NodeId, Ordinal, PathId};
use crate::order::{self, Item};
use crate::state::{Datum, Extent, Sequence};
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::{ColumnId, Fault, locate};
use crate::tree::locate::parent_of;
use crate::tree::schema::{Label, ROOT, Schema};
use crate::tree::writer::{Prior, Writer};

/// The name of the field that counts a record's versions: no UTF-8, so that no member has it.
pub(crate) const VERSION_FIELD: &[u8] = b"\xff";

/// Records that are looked at under one lock, and once more if that finds something missing.
const RECORDS_AT_ONCE: usize = 1_024;

/// Whether another order of its members, or of those of objects in it, makes a record another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Members {
    InOrder,
    /// Those of a hash map come in another one each time that it is made.
    #[cfg_attr(not(feature = "typed"), expect(dead_code, reason = "JSON has an order"))]
    InAnyOrder,
}

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordEvent {
    /// It got this version.
    Saved(u64),
    Deleted,
}

impl Tree {
    /// The record with a key at a revision; none where it was purged.
    pub(crate) fn record(&self, key: &[u8], revision: u32) -> Result<Option<NodeId>> {
        let Some(record) = self.entry_node(node(ROOT, 0), key, revision)? else { return Ok(None) };
        Ok((!self.is_purged(record, revision)?).then_some(record))
    }

    /// Whether a record that is there was purged: nothing else makes one `null`.
    pub(crate) fn is_purged(&self, record: NodeId, revision: u32) -> Result<bool> {
        self.read(|data| Ok(matches!(data.state(record, revision)?, Datum::Null)))
    }

    /// The version of a record that is there at a revision.
    pub(crate) fn record_version(&self, record: NodeId, revision: u32) -> Result<u64> {
        self.read(|data| version(data, record, revision))
    }

    /// How many records there are at a revision.
    pub(crate) fn record_count(&self, revision: u32) -> Result<u64> {
        self.child_count(self.children(node(ROOT, 0), revision)?)
    }

    /// The record of an ordinal if it is there at a revision.
    pub(crate) fn record_of_ordinal(&self, ordinal: u64, revision: u32) -> Result<Option<NodeId>> {
        self.read(|data| {
            let Some(path) = data.schema.path(ROOT).entry else { return Ok(None) };
            let record = node(path, ordinal);
            let born = data.born(data.schema.path(path).space, ordinal)?;
            let is_born = born.is_some_and(|born| born <= revision);
            let is_gone = matches!(data.state(record, revision)?, Datum::Absent | Datum::Null);
            Ok((is_born && !is_gone).then_some(record))
        })
    }

    /// The ordinal of the first record that was born in a revision or after it, by bisection:
    /// ordinals are in the order of the births.
    pub(crate) fn first_record_born(&self, revision: u32) -> Result<u64> {
        let (space, mut high) = {
            let data = self.data.read();
            let Some(entry) = data.schema.path(ROOT).entry else { return Ok(0) };
            let space = data.schema.path(entry).space;
            (space, data.spaces[space.0 as usize].next)
        };
        let mut low = 0;
        while low < high {
            let middle = low + (high - low) / 2;
            let born = self.read(|data| data.born(space, middle))?;
            // What is not born yet is staged by somebody.
            if born.is_some_and(|born| born < revision) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The records that some nodes are in; `path` is that of the records.
    pub(crate) fn records_of(&self, nodes: &[NodeId], path: PathId) -> Result<BTreeSet<u64>> {
        let mut records = BTreeSet::new();
        for &touched in nodes {
            let record = self.read(|data| {
                let mut at = touched;
                while at.path() != path {
                    match parent_of(data, at)? {
                        Some(parent) => at = parent,
                        None => return Ok(None),
                    }
                }
                Ok(Some(at.ordinal().0))
            })?;
            records.extend(record);
        }
        Ok(records)
    }

    /// What happened to a record up to a revision, newest first; fewer than `limit` only at the
    /// beginning. It comes and goes with the whole collection too. Of revisions before the history
    /// begins the kept ones are told, each with what is another than in the one before.
    pub(crate) fn record_events(
        &self,
        record: NodeId,
        until: u32,
        limit: usize,
    ) -> Result<Vec<(u32, RecordEvent)>> {
        self.read(|data| {
            let mut events = own_events(data, record, until, limit)?;
            with_all(data, record, until, &mut events)?;
            early_events(data, record, until, &mut events)?;
            events.sort_unstable_by_key(|&(revision, _)| std::cmp::Reverse(revision));
            events.truncate(limit);
            Ok(events)
        })
    }
}

/// What happened to a record itself after the revision that the history begins with.
fn own_events(
    data: &TreeData,
    record: NodeId,
    until: u32,
    limit: usize,
) -> Result<Vec<(u32, RecordEvent)>, Fault> {
    let after = if data.kept.is_all() { 0 } else { data.kept.first() };
    let mut events = Vec::new();
    let born = data.born(data.schema.path(record.path()).space, record.ordinal().0)?;
    if let Some(path) = data.schema.field(record.path(), VERSION_FIELD) {
        let versions = node(path, record.ordinal().0);
        let mut fault = None;
        data.versions(versions, until, &mut |set, state| {
            if let Datum::Int(version) = state
                && set > after
            {
                match went_with_all(data, set) {
                    Ok(true) => {}
                    Ok(false) => events.push((set, RecordEvent::Saved(version.cast_unsigned()))),
                    Err(error) => fault = Some(error),
                }
            }
            stop(set <= after || events.len() >= limit || fault.is_some())
        })?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        // It came as a key alone, with what it goes on counting from.
        if let Some(&(first, _)) = events.last()
            && born == Some(first)
            && data.state(record, first)?.is_absent()
        {
            events.pop();
        }
    }
    let created = data.created(record)?.filter(|&created| created > after && created <= until);
    if let Some(created) = created {
        let is_counted = events.last().is_some_and(|&(first, _)| first <= created);
        if !is_counted && events.len() < limit && !went_with_all(data, created)? {
            events.push((created, RecordEvent::Saved(1)));
        }
    }
    let saved = events.len();
    data.versions(record, until, &mut |set, state| {
        if state.is_absent() && set > after {
            events.push((set, RecordEvent::Deleted));
        }
        stop(set <= after || events.len() >= saved + limit)
    })?;
    Ok(events)
}

/// Adds that a record went with the whole collection to what happened to the record itself, which
/// tells of each time that the collection came back: with the record, as its next version, or
/// without it, where it is marked as removed.
fn with_all(
    data: &TreeData,
    record: NodeId,
    until: u32,
    events: &mut Vec<(u32, RecordEvent)>,
) -> Result<(), Fault> {
    let begin = data.kept.first();
    let mut ends: Vec<u32> = events.iter().map(|&(revision, _)| revision).collect();
    ends.push(until + 1);
    for end in ends.into_iter().filter(|&end| end > begin) {
        let Some((gone, Datum::Absent)) = data.version(node(ROOT, 0), end - 1)? else { continue };
        events.retain(|&(set, event)| set != end || event != RecordEvent::Deleted);
        // The commit may have deleted the record first, and then the collection.
        let gone = (gone, RecordEvent::Deleted);
        if gone.0 > begin && !events.contains(&gone) && is_there(data, record, gone.0 - 1)? {
            events.push(gone);
        }
    }
    Ok(())
}

/// Whether the collection went in a revision: what else that did to records is nowhere to be seen.
fn went_with_all(data: &TreeData, revision: u32) -> Result<bool, Fault> {
    Ok(matches!(data.version(node(ROOT, 0), revision)?, Some((_, Datum::Absent))))
}

/// Adds what the revision that a cut history begins with, and the kept ones before it, have of a
/// record.
fn early_events(
    data: &TreeData,
    record: NodeId,
    until: u32,
    events: &mut Vec<(u32, RecordEvent)>,
) -> Result<(), Fault> {
    if data.kept.is_all() {
        return Ok(());
    }
    let mut before = None;
    let kept = data.kept.pinned().iter().copied().chain([data.kept.first()]);
    for revision in kept.take_while(|&revision| revision <= until) {
        let is_there =
            !data.state(node(ROOT, 0), revision)?.is_absent() && is_there(data, record, revision)?;
        let now = if is_there { Some(version(data, record, revision)?) } else { None };
        match (before, now) {
            (before, Some(version)) if before != now => {
                events.push((revision, RecordEvent::Saved(version)));
            }
            (Some(_), None) => events.push((revision, RecordEvent::Deleted)),
            _ => {}
        }
        before = now;
    }
    Ok(())
}

/// Whether a record is there at a revision, purged or not, if its collection is.
pub(crate) fn is_there(data: &TreeData, record: NodeId, revision: u32) -> Result<bool, Fault> {
    let born = data.born(data.schema.path(record.path()).space, record.ordinal().0)?;
    Ok(born.is_some_and(|born| born <= revision) && !data.state(record, revision)?.is_absent())
}

/// The path of the field that counts the versions of a collection's records, if any has one.
pub(crate) fn version_path(schema: &Schema) -> Option<PathId> {
    schema.field(schema.path(ROOT).entry?, VERSION_FIELD)
}

fn stop(is_enough: bool) -> ControlFlow<()> {
    if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The version of a record that is there, or was last, at a revision.
fn version(data: &TreeData, record: NodeId, revision: u32) -> Result<u64, Fault> {
    let Some(path) = data.schema.field(record.path(), VERSION_FIELD) else { return Ok(1) };
    Ok(version_of(data.state(node(path, record.ordinal().0), revision)?)?)
}

/// The version that a state of the field that counts them says.
pub(crate) fn version_of(state: Datum<'_>) -> Result<u64> {
    match state {
        Datum::Absent => Ok(1),
        Datum::Int(version @ 2..) => Ok(version.cast_unsigned()),
        other => {
            let message = format!("a record has the version {other:?}");
            Err(Error::new(ErrorKind::Corrupt, message))
        }
    }
}

/// The ordinals of records that a transaction changed or made.
#[derive(Debug, Default)]
pub(crate) struct ChangedRecords {
    /// Those that were there before.
    pub(crate) old: BTreeSet<u64>,
    pub(crate) born: Range<u64>,
}

/// Records that are put one after the other.
///
/// Those that are new get their places together, when [`RecordPuts::finish`] is called: that costs
/// less than one by one (benchmark B).
pub(crate) struct RecordPuts<'w> {
    writer: &'w Writer,
    root: NodeId,
    path: PathId,
    sequence: Sequence,
    /// Those that have no place yet.
    born: Extent,
}

impl<'w> RecordPuts<'w> {
    /// None yet.
    pub(crate) fn of(writer: &'w Writer) -> Result<Self> {
        let (root, path, sequence) = writer.records()?;
        Ok(Self { writer, root, path, sequence, born: Extent { first: 0, count: 0 } })
    }

    /// Makes a value that of the record with a key.
    pub(crate) fn put(&mut self, key: &[u8], (tape, members): (&Tape<'_>, Members)) -> Result<()> {
        let (writer, path, at) = (self.writer, self.path, tape.root());
        if let Some(ordinal) = writer.entry(self.root, path, key)? {
            let record = node(path, ordinal);
            let is_gone =
                writer.tree.read(|data| Ok(data.state(record, writer.revision)?.is_absent()))?;
            match members {
                Members::InAnyOrder if !is_gone => writer.put_unordered(record, tape, at)?,
                _ => writer.put(record, tape, at)?,
            }
            if is_gone {
                self.place_born()?;
                let place = writer.sorted_place(self.sequence, ordinal)?;
                self.splice(place, Extent { first: ordinal, count: 1 })?;
            }
            return Ok(());
        }
        let plain = crate::json::escape::is_plain(key);
        let ordinal = writer.bear((path, 0), Some((key, plain)), (tape, at))?;
        let Extent { first, count } = self.born;
        if first + u64::from(count) != ordinal || count == EXTENT_ITEMS_MAX {
            self.place_born()?;
            self.born.first = ordinal;
        }
        self.born.count += 1;
        Ok(())
    }

    /// Gives all of them their places.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.place_born()
    }

    fn place_born(&mut self) -> Result<()> {
        let born = self.born;
        if born.count == 0 {
            return Ok(());
        }
        self.born.count = 0;
        let end = order::len(&&self.writer.tree.orders, self.sequence)?;
        self.splice(end, born)
    }

    fn splice(&mut self, place: u64, records: Extent) -> Result<()> {
        self.sequence = self.writer.splice_items(self.sequence, (place, 0), &[records])?;
        self.writer.stage(self.root, Datum::Map(self.sequence))?;
        self.writer.let_go_much()
    }
}

impl Writer {
    /// The map of records and the path of its entries, made if they are missing.
    fn records(&self) -> Result<(NodeId, PathId, Sequence)> {
        let known = self.tree.read(|data| {
            let Some(path) = data.schema.path(ROOT).entry else { return Ok(None) };
            if data.spaces[0].next == 0 {
                return Ok(None);
            }
            Ok(match data.state(node(ROOT, 0), self.revision)? {
                Datum::Map(sequence) => Some((node(ROOT, 0), path, sequence)),
                _ => None,
            })
        })?;
        match known {
            Some(known) => Ok(known),
            None => self.make_records(),
        }
    }

    fn make_records(&self) -> Result<(NodeId, PathId, Sequence)> {
        let root = self.root()?;
        let sequence = match self.prior(root)? {
            (Prior::Map(sequence), true) => sequence,
            (Prior::Map(_), false) | (Prior::Never, _) => {
                self.stage(root, Datum::Map(Sequence::EMPTY))?;
                Sequence::EMPTY
            }
            _ => return Err(not_records()),
        };
        match self.tree.change(|data| Ok(data.entry_or_add(ROOT)))? {
            Some(path) => Ok((root, path, sequence)),
            None => Err(full()),
        }
    }

    /// The record with a key, as staged.
    pub(crate) fn record(&self, key: impl AsRef<[u8]>) -> Result<Option<NodeId>> {
        let Some(path) = self.tree.data.read().schema.path(ROOT).entry else { return Ok(None) };
        let Some(ordinal) = self.entry(node(ROOT, 0), path, key.as_ref())? else {
            return Ok(None);
        };
        let record = node(path, ordinal);
        let is_there =
            self.tree.read(|data| Ok(!data.state(record, self.revision)?.is_absent()))?;
        Ok(is_there.then_some(record))
    }

    /// Whether a record has no committed state: its key is new.
    pub(crate) fn is_born(&self, record: NodeId) -> bool {
        let data = self.tree.data.read();
        let space = &data.spaces[data.schema.path(record.path()).space.0 as usize];
        record.ordinal().0 >= space.committed
    }

    /// Removes records that are there.
    pub(crate) fn remove_records(&self, records: &[NodeId]) -> Result<()> {
        let (root, _, mut sequence) = self.records()?;
        let mut ordinals: Vec<u64> = records.iter().map(|record| record.ordinal().0).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        // From the last on, so that the places of those before stay; neighbours go at once.
        while let Some(last) = ordinals.pop() {
            let place = self.record_place(sequence, last)?;
            if self.item_at(sequence, place)? != Some(last) {
                let message = format!("record {last} that is to be deleted is not in its place");
                return Err(Error::new(ErrorKind::Internal, message));
            }
            let mut count = 1;
            while count <= place
                && let Some(&before) = ordinals.last()
                && self.item_at(sequence, place - count)? == Some(before)
            {
                ordinals.pop();
                count += 1;
            }
            sequence = self.splice_items(sequence, (place + 1 - count, count), &[])?;
            self.stage(root, Datum::Map(sequence))?;
            self.let_go_much()?;
        }
        records.iter().try_for_each(|&record| self.erase(record))
    }

    fn item_at(&self, sequence: Sequence, index: u64) -> Result<Option<u64>> {
        Ok(match order::get(&&self.tree.orders, sequence, index)? {
            Some(Item::Ordinal(ordinal)) => Some(ordinal.0),
            _ => None,
        })
    }

    /// Where a record stands in the order that is there.
    fn record_place(&self, sequence: Sequence, ordinal: u64) -> Result<u64> {
        let place = self.sorted_place(sequence, ordinal)?;
        let end = order::len(&&self.tree.orders, sequence)?;
        if place < end && self.item_at(sequence, place)? == Some(ordinal) {
            return Ok(place);
        }
        // A change by place, such as of JSON Patch, may have put it elsewhere.
        let item = Item::Ordinal(Ordinal(ordinal));
        Ok(order::position(&&self.tree.orders, sequence, item)?.unwrap_or(place))
    }

    /// Where a record would stand that came as it did first, behind those that came before it.
    fn sorted_place(&self, sequence: Sequence, ordinal: u64) -> Result<u64> {
        let (mut low, mut high) = (0, order::len(&&self.tree.orders, sequence)?);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.item_at(sequence, middle)?.is_some_and(|found| found < ordinal) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Gives each record that the staged transaction changed its next version, and refuses what is
    /// no record. What `repeats` a history has `null` for those that were purged. Returns those
    /// that it changed or made.
    pub(crate) fn settle_records(&self, repeats: bool, keys: KeyKind) -> Result<ChangedRecords> {
        let root = self.tree.read(|data| {
            Ok(match data.state(node(ROOT, 0), self.revision)? {
                Datum::Absent => Some(false),
                Datum::Map(_) => Some(true),
                _ => None,
            })
        })?;
        let Some(is_live) = root else { return Err(not_records()) };
        let Some(path) = self.tree.data.read().schema.path(ROOT).entry else {
            return Ok(ChangedRecords::default());
        };
        let touched = self.tree.data.read().touched().to_vec();
        let mut changed = self.tree.records_of(&touched, path)?;
        changed.extend(self.returning(path)?);
        for &ordinal in &changed {
            // What a commit changes before it deletes the collection is in no version.
            if self.check_record(node(path, ordinal), (keys, repeats))? && is_live {
                self.count_version(node(path, ordinal))?;
            }
        }
        let (born, end) = {
            let data = self.tree.data.read();
            let space = &data.spaces[data.schema.path(path).space.0 as usize];
            (space.committed, space.next)
        };
        for first in (born..end).step_by(RECORDS_AT_ONCE) {
            let some = first..end.min(first + RECORDS_AT_ONCE as u64);
            for ordinal in self.doubtful(path, some, keys)? {
                self.check_record(node(path, ordinal), (keys, repeats))?;
                keys.check(&self.tree.name_of(node(path, ordinal))?.unwrap_or_default())?;
            }
        }
        Ok(ChangedRecords { old: changed, born: born..end })
    }

    /// The records that come back as they were, with the whole collection.
    fn returning(&self, path: PathId) -> Result<Vec<u64>> {
        let (has_come, committed) = self.tree.read(|data| {
            let before = self.revision - 1;
            let root = node(ROOT, 0);
            let has_come = before > 0
                && data.state(root, before)?.is_absent()
                && !data.state(root, self.revision)?.is_absent();
            Ok((has_come, data.spaces[data.schema.path(path).space.0 as usize].committed))
        })?;
        let end = if has_come { committed } else { 0 };
        let mut back = Vec::new();
        for first in (0..end).step_by(RECORDS_AT_ONCE) {
            let some = first..end.min(first + RECORDS_AT_ONCE as u64);
            back.extend(self.tree.read(|data| {
                let mut there = Vec::new();
                for ordinal in some.clone() {
                    if !data.state(node(path, ordinal), self.revision)?.is_absent() {
                        there.push(ordinal);
                    }
                }
                Ok(there)
            })?);
        }
        Ok(back)
    }

    /// Those of some new entries that do not surely have a key and an object.
    fn doubtful(&self, path: PathId, born: Range<u64>, keys: KeyKind) -> Result<Vec<u64>> {
        self.tree.read(|data| {
            let space = data.schema.path(path).space;
            let mut doubtful = Vec::new();
            let value = data.address(node(path, 0)).column;
            for ordinal in born.clone() {
                let (group, slot) = locate(ordinal);
                let Some(group) = data.group(space, group)? else {
                    doubtful.push(ordinal);
                    continue;
                };
                let state = group.state(value, slot, self.revision)?;
                let is_object = matches!(state, Datum::Object(_) | Datum::Map(_));
                let key = group.state(ColumnId::Key, slot, self.revision)?;
                let is_keyed = matches!(key, Datum::Text { bytes, .. } if keys.has(bytes));
                if !is_object || !is_keyed {
                    doubtful.push(ordinal);
                }
            }
            Ok(doubtful)
        })
    }

    /// Whether a record is there; `Invalid` if it is no object.
    fn check_record(&self, record: NodeId, (keys, repeats): (KeyKind, bool)) -> Result<bool> {
        let (is_there, is_object) = self.tree.read(|data| {
            let state = data.state(record, self.revision)?;
            let is_object = matches!(state, Datum::Object(_) | Datum::Map(_))
                || repeats && matches!(state, Datum::Null);
            Ok((!state.is_absent(), is_object))
        })?;
        if is_there && !is_object && !self.is_stored_object(record)? {
            let key = self.tree.name_of(record)?.unwrap_or_default();
            let key = keys.shown(&key);
            let message = format!("record {key} is no JSON object: a record has fields");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(is_there)
    }

    /// Whether a record that is stored whole is an object.
    fn is_stored_object(&self, record: NodeId) -> Result<bool> {
        let mut text = Vec::new();
        let format = crate::Format { max_level: Some(0), ..crate::Format::default() };
        self.tree.append_json((record, self.revision), &format, &mut text)?;
        Ok(text.starts_with(b"{"))
    }

    /// Gives a record the version after that of the revision before, unless it was given one.
    pub(crate) fn count_version(&self, record: NodeId) -> Result<()> {
        self.tree.change(|data| {
            let versions = node(version_field(data, record.path())?, record.ordinal().0);
            let before = version(data, record, self.revision - 1)?;
            if version(data, record, self.revision)? != before {
                return Ok(());
            }
            data.stage(versions, Datum::Int((before + 1).cast_signed()))
        })
    }

    /// Gives a key an ordinal, as one of a record that is gone and had so many versions; false if
    /// it has one. A key that comes back goes on counting from there.
    pub(crate) fn bear_departed(&self, key: &str, versions: u64) -> Result<bool> {
        let root = self.root()?;
        let Some(path) = self.tree.change(|data| Ok(data.entry_or_add(ROOT)))? else {
            return Err(full());
        };
        if self.entry(root, path, key.as_bytes())?.is_some() {
            return Ok(false);
        }
        self.tree.change(|data| {
            let space = data.schema.path(path).space;
            let key = (key.as_bytes(), crate::json::escape::is_plain(key.as_bytes()));
            let ordinal = data.bear(space, 0, Some(key))?;
            if versions > 1 {
                let field = version_field(data, path)?;
                data.stage(node(field, ordinal), Datum::Int(versions.cast_signed()))?;
            }
            Ok(true)
        })
    }

    /// Gives a record that is there this version, which is a later one than it had.
    pub(crate) fn give_version(&self, record: NodeId, given: u64) -> Result<()> {
        self.tree.change(|data| {
            let versions = node(version_field(data, record.path())?, record.ordinal().0);
            data.stage(versions, Datum::Int(given.cast_signed()))
        })
    }
}

/// The path of the field that counts the versions of the records at a path, made if it is missing.
pub(crate) fn version_field(data: &mut TreeData, records: PathId) -> Result<PathId> {
    match data.schema.field(records, VERSION_FIELD) {
        Some(path) => Ok(path),
        None if data.schema.is_full() => Err(full()),
        None => Ok(data.add_path(records, Label::Field(VERSION_FIELD))),
    }
}

fn not_records() -> Error {
    let message = "the document is a collection: its value is an object of records";
    Error::new(ErrorKind::Invalid, message)
}

fn full() -> Error {
    let message = "the collection has as many label paths as can be counted (65,536), so there is \
                   none left for its records: keep values with names of their own in arrays";
    Error::new(ErrorKind::Full, message)
}
