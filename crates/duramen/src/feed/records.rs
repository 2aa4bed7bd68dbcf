//! Which records of a collection one commit changed, and how.

use std::ops::Range;

use super::KeyFilter;
use super::event::{Event, TreeEvents, operation_of, text};
use crate::collection::KeyKind;
use crate::error::Result;
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::order::OrderCursor;
use crate::snapshot::Snapshot;
use crate::state::{Extent, Sequence};
use crate::tree::children::Children;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::history::short;
use crate::tree::records::{VERSION_FIELD, is_there};
use crate::tree::schema::ROOT;

/// A record that may have been changed, with the text of its key.
#[derive(Debug)]
pub(super) struct Changed {
    key: String,
    record: NodeId,
}

/// The records that one commit may have changed, in the order of their ordinals, found as they are
/// asked for.
#[derive(Debug)]
pub(super) struct RecordChanges {
    source: Source,
    /// Only those whose keys begin so.
    prefix: Option<String>,
}

#[derive(Debug)]
enum Source {
    None,
    /// The one that is watched. Others may have been changed behind it.
    One(Option<u64>),
    /// Those that the revision lists as changed, then those born in it.
    Listed {
        ordinals: std::vec::IntoIter<u64>,
        born: Range<u64>,
    },
    /// All that are there: the collection came or went as a whole.
    Whole {
        extents: Extents,
        extent: Range<u64>,
    },
}

/// The records of a collection by rising ordinals, though a change by place, or one that was taken
/// back, may have put some of them elsewhere.
#[derive(Debug)]
enum Extents {
    AsTheyStand(OrderCursor),
    Sorted(std::vec::IntoIter<Extent>),
}

/// What a record was, or is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Side {
    is_there: bool,
    is_purged: bool,
    value: Option<String>,
}

impl RecordChanges {
    pub(super) fn new(
        filter: &KeyFilter,
        keys: KeyKind,
        sides: (&Option<Snapshot>, &Option<Snapshot>),
    ) -> Result<Self> {
        let prefix = match filter {
            KeyFilter::Prefix(prefix) => Some(prefix.clone()),
            KeyFilter::All | KeyFilter::Key(_) => None,
        };
        let source = match (filter, sides) {
            (_, (None, None)) => Source::None,
            (KeyFilter::Prefix(_), _) if keys != KeyKind::Text => Source::None,
            (KeyFilter::Key(key), _) => match keys.text_of(key) {
                Ok(key) => Source::One(one(&key, sides)?),
                Err(_) => Source::None,
            },
            (_, (Some(_), Some(after))) => listed(after)?,
            (_, (Some(there), None) | (None, Some(there))) => whole(there)?,
        };
        Ok(Self { source, prefix })
    }

    /// Whether the commit is known to have changed no record behind the last one, watched or not.
    pub(super) fn is_at_end(&self) -> bool {
        match &self.source {
            Source::None => true,
            Source::One(_) => false,
            Source::Listed { ordinals, born } => ordinals.as_slice().is_empty() && born.is_empty(),
            Source::Whole { extent, .. } => extent.is_empty(),
        }
    }

    /// Leaves out the records up to one.
    pub(super) fn pass(
        &mut self,
        record: u64,
        (before, after): (&Option<Snapshot>, &Option<Snapshot>),
    ) -> Result<()> {
        match &mut self.source {
            Source::None => {}
            Source::One(ordinal) => *ordinal = ordinal.filter(|ordinal| *ordinal > record),
            Source::Listed { ordinals, born } => {
                let passed = ordinals.as_slice().partition_point(|ordinal| *ordinal <= record);
                ordinals.by_ref().take(passed).for_each(drop);
                born.start = born.start.max(record.saturating_add(1)).min(born.end);
            }
            Source::Whole { extents, extent } => {
                let Some(there) = after.as_ref().or(before.as_ref()) else { return Ok(()) };
                while !extent.is_empty() && extent.start <= record {
                    extent.start = record.saturating_add(1).min(extent.end);
                    extents.fill(extent, there)?;
                }
            }
        }
        Ok(())
    }

    /// The next record that may have been changed.
    pub(super) fn step(
        &mut self,
        (before, after): (&Option<Snapshot>, &Option<Snapshot>),
    ) -> Result<Option<Changed>> {
        let Some(there) = after.as_ref().or(before.as_ref()) else { return Ok(None) };
        let Some(entry) = there.tree.data.read().schema.path(ROOT).entry else { return Ok(None) };
        loop {
            let ordinal = match &mut self.source {
                Source::None => None,
                Source::One(ordinal) => ordinal.take(),
                Source::Listed { ordinals, born } => ordinals.next().or_else(|| born.next()),
                Source::Whole { extents, extent } => {
                    let next = extent.next();
                    extents.fill(extent, there)?;
                    next
                }
            };
            let Some(ordinal) = ordinal else { return Ok(None) };
            let record = node(entry, ordinal);
            let key = there.tree.name_of(record)?.unwrap_or_default();
            if self.prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix)) {
                return Ok(Some(Changed { key, record }));
            }
        }
    }
}

/// The record with a key, if the commit did something to it.
fn one(key: &str, (before, after): (&Option<Snapshot>, &Option<Snapshot>)) -> Result<Option<u64>> {
    let Some(there) = after.as_ref().or(before.as_ref()) else { return Ok(None) };
    let (tree, revision) = there.place();
    let Some(record) = tree.record_ever(key.as_bytes())? else { return Ok(None) };
    let is_changed = match (before, after) {
        (Some(_), Some(_)) => tree.read(|data| is_set(data, record, revision))?,
        _ => tree.read(|data| is_there(data, record, revision))?,
    };
    Ok(is_changed.then_some(record.ordinal().0))
}

/// The records that a revision changed, and those that it added.
fn listed(after: &Snapshot) -> Result<Source> {
    let (tree, revision) = after.place();
    let changed = tree.changed(after.revision)?;
    let mut ordinals = {
        let data = tree.data.read();
        let Some(entry) = data.schema.path(ROOT).entry else { return Ok(Source::None) };
        // Each record that was changed got a version, or went.
        let version = data.schema.field(entry, VERSION_FIELD);
        let is_record = |node: &&NodeId| node.path() == entry || Some(node.path()) == version;
        let ordinals = changed.iter().filter(is_record).map(|node| node.ordinal().0);
        ordinals.collect::<Vec<_>>()
    };
    ordinals.sort_unstable();
    ordinals.dedup();
    let born = tree.first_record_born(revision)?..tree.first_record_born(revision + 1)?;
    Ok(Source::Listed { ordinals: ordinals.into_iter(), born })
}

/// All records of a collection.
fn whole(there: &Snapshot) -> Result<Source> {
    let (tree, revision) = there.place();
    let Children::Members(sequence) = tree.children(node(ROOT, 0), revision)? else {
        return Ok(Source::None);
    };
    let (mut extents, mut extent) = (Extents::of(sequence, there)?, 0..0);
    extents.fill(&mut extent, there)?;
    Ok(Source::Whole { extents, extent })
}

impl Extents {
    fn of(sequence: Sequence, there: &Snapshot) -> Result<Self> {
        let (mut order, mut end) = (OrderCursor::new(sequence), 0);
        while let Some(next) = order.next(&&there.tree.orders)? {
            if next.first < end {
                return Self::sorted(sequence, there);
            }
            end = next.first + u64::from(next.count);
        }
        Ok(Self::AsTheyStand(OrderCursor::new(sequence)))
    }

    fn sorted(sequence: Sequence, there: &Snapshot) -> Result<Self> {
        let (mut order, mut extents) = (OrderCursor::new(sequence), Vec::new());
        while let Some(next) = order.next(&&there.tree.orders)? {
            extents.push(next);
        }
        extents.sort_unstable_by_key(|extent| extent.first);
        Ok(Self::Sorted(extents.into_iter()))
    }

    /// Takes the next extent when nothing is left of one, so that an empty one is the end.
    fn fill(&mut self, extent: &mut Range<u64>, there: &Snapshot) -> Result<()> {
        while extent.is_empty() {
            let next = match self {
                Self::AsTheyStand(order) => order.next(&&there.tree.orders)?,
                Self::Sorted(extents) => extents.next(),
            };
            let Some(next) = next else { break };
            *extent = next.first..next.first + u64::from(next.count);
        }
        Ok(())
    }
}

/// Whether a revision brought, changed or took a record.
fn is_set(data: &TreeData, record: NodeId, revision: u32) -> Result<bool, Fault> {
    let set = |node| -> Result<Option<u32>, Fault> {
        Ok(data.version(node, revision)?.map(|(set, _)| set))
    };
    let born = data.born(data.schema.path(record.path()).space, record.ordinal().0)?;
    if born == Some(revision) || set(record)? == Some(revision) {
        return Ok(true);
    }
    let Some(path) = data.schema.field(record.path(), VERSION_FIELD) else { return Ok(false) };
    Ok(set(node(path, record.ordinal().0))? == Some(revision))
}

impl TreeEvents {
    /// What happened to a record; none if that is nothing that is watched.
    pub(super) fn record_event(&self, keys: KeyKind, changed: &Changed) -> Result<Option<Event>> {
        let (old, new) =
            (self.side(self.before.as_ref(), changed)?, self.side(self.after.as_ref(), changed)?);
        let Some(operation) = operation_of(old.is_there, new.is_there) else { return Ok(None) };
        if self.filter.path.is_some() && old == new {
            return Ok(None);
        }
        let version = match &self.after {
            Some(after) => version(after, changed.record)?,
            None => None,
        };
        let event = self.event(operation, Some(changed.record.ordinal().0));
        Ok(Some(Event {
            key: Some(keys.key_of(changed.key.as_bytes())?),
            version,
            is_purged: old.is_purged || new.is_purged,
            old: old.value,
            new: new.value,
            ..event
        }))
    }

    fn side(&self, snapshot: Option<&Snapshot>, changed: &Changed) -> Result<Side> {
        let Some(snapshot) = snapshot else { return Ok(Side::default()) };
        let (tree, revision) = snapshot.place();
        let record = changed.record;
        if !tree.read(|data| is_there(data, record, revision))? {
            return Ok(Side::default());
        }
        if tree.is_purged(record, revision)? {
            return Ok(Side { is_there: true, is_purged: true, value: None });
        }
        let Some(path) = &self.filter.path else {
            let mut json = Vec::new();
            tree.append_json((record, revision), &crate::Format::default(), &mut json)?;
            let value = Some(String::from_utf8_lossy(&json).into_owned());
            return Ok(Side { is_there: true, is_purged: false, value });
        };
        let mut pointer = JsonPointer::root().child(changed.key.clone());
        path.tokens().for_each(|token| pointer.push(token));
        let value = text(snapshot, &pointer)?;
        Ok(Side { is_there: value.is_some(), is_purged: false, value })
    }
}

/// The version of a record, if it is there.
fn version(snapshot: &Snapshot, record: NodeId) -> Result<Option<u64>> {
    let (tree, revision) = (&snapshot.tree, short(snapshot.revision));
    let is_there = tree.read(|data| is_there(data, record, revision))?;
    is_there.then(|| tree.record_version(record, revision)).transpose()
}
