//! Which records of a collection one commit changed, and how.

use std::ops::{Bound, Range};

use super::KeyFilter;
use super::event::{Event, TreeEvents, operation_of, text};
use crate::collection::KeyKind;
use crate::error::Result;
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::snapshot::Snapshot;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::history::short;
use crate::tree::record_keys::KeyRange;
use crate::tree::records::{VERSION_FIELD, is_there};
use crate::tree::schema::ROOT;

/// Keys looked up at once.
const PAGE_KEYS: usize = 256;

/// A record that may have been changed, with the text of its key.
#[derive(Debug)]
pub(super) struct Changed {
    key: String,
    record: NodeId,
}

/// The records that one commit may have changed, found as they are asked for.
#[derive(Debug)]
pub(super) enum RecordChanges {
    /// Those that the revision lists as changed, then those born in it.
    Listed { ordinals: std::vec::IntoIter<u64>, born: Range<u64>, prefix: Option<String> },
    /// All in a range of keys: the collection came or went as a whole.
    Whole { range: KeyRange, page: std::vec::IntoIter<(Vec<u8>, u64)>, is_at_end: bool },
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
        (before, after): (&Option<Snapshot>, &Option<Snapshot>),
    ) -> Result<Self> {
        let wanted = match filter {
            KeyFilter::All => Some(Wanted::All),
            KeyFilter::Key(key) => {
                keys.text_of(key).ok().map(|text| Wanted::Key(text.into_owned()))
            }
            KeyFilter::Prefix(prefix) if keys == KeyKind::Text => {
                Some(Wanted::Prefix(prefix.clone()))
            }
            KeyFilter::Prefix(_) => None,
        };
        let Some(wanted) = wanted else { return Ok(Self::some(Vec::new())) };
        match (before, after) {
            (None, None) => Ok(Self::some(Vec::new())),
            (Some(_), Some(after)) => match wanted {
                Wanted::All => Self::listed(after, None),
                Wanted::Prefix(prefix) => Self::listed(after, Some(prefix)),
                Wanted::Key(key) => Self::single(after, &key),
            },
            _ => {
                let page = Vec::new().into_iter();
                Ok(Self::Whole { range: wanted.range(), page, is_at_end: false })
            }
        }
    }

    fn some(ordinals: Vec<u64>) -> Self {
        Self::Listed { ordinals: ordinals.into_iter(), born: 0..0, prefix: None }
    }

    /// The record with a key, if the revision changed it.
    fn single(after: &Snapshot, key: &str) -> Result<Self> {
        let (tree, revision) = after.place();
        let mut ordinals = Vec::new();
        if let Some(record) = tree.record_ever(key.as_bytes())?
            && tree.read(|data| is_set(data, record, revision))?
        {
            ordinals.push(record.ordinal().0);
        }
        Ok(Self::some(ordinals))
    }

    fn listed(after: &Snapshot, prefix: Option<String>) -> Result<Self> {
        let (tree, revision) = after.place();
        let changed = tree.changed(after.revision)?;
        let mut ordinals = {
            let data = tree.data.read();
            let Some(entry) = data.schema.path(ROOT).entry else {
                return Ok(Self::some(Vec::new()));
            };
            // Each record that was changed got a version, or went.
            let version = data.schema.field(entry, VERSION_FIELD);
            let is_record = |node: &&NodeId| node.path() == entry || Some(node.path()) == version;
            let ordinals = changed.iter().filter(is_record).map(|node| node.ordinal().0);
            ordinals.collect::<Vec<_>>()
        };
        ordinals.sort_unstable();
        ordinals.dedup();
        let born = tree.first_record_born(revision)?..tree.first_record_born(revision + 1)?;
        Ok(Self::Listed { ordinals: ordinals.into_iter(), born, prefix })
    }

    /// The next record that may have been changed.
    pub(super) fn step(
        &mut self,
        (before, after): (&Option<Snapshot>, &Option<Snapshot>),
    ) -> Result<Option<Changed>> {
        let Some(snapshot) = after.as_ref().or(before.as_ref()) else { return Ok(None) };
        let (tree, revision) = snapshot.place();
        let Some(entry) = tree.data.read().schema.path(ROOT).entry else { return Ok(None) };
        match self {
            Self::Listed { ordinals, born, prefix } => {
                while let Some(ordinal) = ordinals.next().or_else(|| born.next()) {
                    let record = node(entry, ordinal);
                    let key = tree.name_of(record)?.unwrap_or_default();
                    if prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix)) {
                        return Ok(Some(Changed { key, record }));
                    }
                }
                Ok(None)
            }
            Self::Whole { range, page, is_at_end } => loop {
                let Some((name, ordinal)) = page.next() else {
                    if *is_at_end {
                        return Ok(None);
                    }
                    let next = tree.record_keys(range, false, PAGE_KEYS)?;
                    *is_at_end = next.len() < PAGE_KEYS;
                    if let Some((last, _)) = next.last() {
                        range.pass(last, false);
                    }
                    let keys = next.iter().map(|(name, ordinal)| (name.to_vec(), ordinal));
                    *page = keys.collect::<Vec<_>>().into_iter();
                    continue;
                };
                let record = node(entry, ordinal);
                if tree.read(|data| is_there(data, record, revision))? {
                    let key = String::from_utf8_lossy(&name).into_owned();
                    return Ok(Some(Changed { key, record }));
                }
            },
        }
    }
}

/// Which keys are watched in one collection.
enum Wanted {
    All,
    Key(String),
    Prefix(String),
}

impl Wanted {
    fn range(&self) -> KeyRange {
        let (low, high) = match self {
            Self::All => (Bound::Unbounded, Bound::Unbounded),
            Self::Key(key) => {
                let key = key.clone().into_bytes();
                (Bound::Included(key.clone()), Bound::Included(key))
            }
            // No UTF-8 has the byte 0xff, so the end is behind all that begin so.
            Self::Prefix(prefix) => (
                Bound::Included(prefix.clone().into_bytes()),
                Bound::Excluded([prefix.as_bytes(), &[0xff]].concat()),
            ),
        };
        KeyRange { low, high }
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
        let event = self.event(operation);
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
