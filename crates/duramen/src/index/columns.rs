//! The keys of many records, gathered by column under the tree's lock.
//!
//! A path that leads through objects to a value that stands in a column gives each record one key,
//! made of the state there. Where columns cannot tell (elements of arrays, an object that outgrew
//! its shape, what is stored whole or apart), the record has to be looked at by itself.

use std::cell::RefCell;
use std::ops::Range;

use crate::collection::{RecordPath, RecordStep, sort_key};
use crate::error::Result;
use crate::limits::INDEX_VALUE_BYTES_MAX;
use crate::node::{NodeId, PathId};
use crate::state::{ApartKind, Datum, ShapeId};
use crate::tree::Tree;
use crate::tree::conditions::has_field;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::locate::parent_of;
use crate::tree::schema::{Label, ROOT};
use crate::tree::strips::Strips;

/// Nodes that are looked at under one lock.
const NODES_AT_ONCE: usize = 1_024;

/// What a record has, as columns tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gathered<'k> {
    /// It is not there.
    Nothing,
    Key(&'k [u8]),
    /// They do not tell.
    Unsure,
}

/// The keys of some records, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    records: Vec<Record>,
}

#[derive(Debug)]
enum Record {
    Nothing,
    Key(Range<usize>),
    Unsure,
}

impl Keys {
    pub(crate) fn get(&self, index: usize) -> Gathered<'_> {
        match self.records.get(index) {
            None | Some(Record::Nothing) => Gathered::Nothing,
            Some(Record::Key(range)) => Gathered::Key(&self.bytes[range.clone()]),
            Some(Record::Unsure) => Gathered::Unsure,
        }
    }
}

/// Gathers the keys of records that were born up to a revision as they are there then, with values
/// cut at [`INDEX_VALUE_BYTES_MAX`] bytes.
pub(crate) fn gather(
    tree: &Tree,
    paths: &[RecordPath],
    ordinals: &[u64],
    revision: u32,
) -> Result<Keys> {
    if paths.iter().any(RecordPath::has_elements) {
        let records = ordinals.iter().map(|_| Record::Unsure).collect();
        return Ok(Keys { bytes: Vec::new(), records });
    }
    let keys = RefCell::new(Keys::default());
    tree.read(|data| {
        data.kept.check(revision)?;
        let Some(path) = data.schema.path(ROOT).entry else { return Ok(()) };
        let mut reader = Reader::new(data, (path, revision), paths);
        let mut keys = keys.borrow_mut();
        let Keys { bytes, records } = &mut *keys;
        // What was gathered before something had to be loaded stays.
        for &ordinal in &ordinals[records.len()..] {
            let start = bytes.len();
            let read = reader.read(ordinal, bytes);
            if !matches!(read, Ok(Seen::Key)) {
                bytes.truncate(start);
            }
            records.push(match read? {
                Seen::Nothing => Record::Nothing,
                Seen::Key => Record::Key(start..bytes.len()),
                Seen::Unsure => Record::Unsure,
            });
        }
        Ok(())
    })?;
    Ok(keys.into_inner())
}

/// What came of reading a record.
enum Seen {
    Nothing,
    /// Its key was appended.
    Key,
    Unsure,
}

/// Reads the keys of one record after the other.
struct Reader<'a> {
    strips: Strips<'a>,
    data: &'a TreeData,
    record: PathId,
    ways: Vec<Vec<Step>>,
}

/// From an object to its member with a name.
struct Step {
    /// Of the member, if any object ever had it.
    path: Option<PathId>,
    /// The last shape that was asked, and whether it has the member: most records are alike.
    last: Option<(ShapeId, bool)>,
}

impl<'a> Reader<'a> {
    fn new(data: &'a TreeData, (record, revision): (PathId, u32), paths: &[RecordPath]) -> Self {
        let way = |path: &RecordPath| {
            let mut at = Some(record);
            let step = |step: &RecordStep| {
                if let RecordStep::Field(name) = step {
                    at = at.and_then(|parent| data.schema.field(parent, name.as_bytes()));
                }
                Step { path: at, last: None }
            };
            path.steps().iter().map(step).collect()
        };
        let ways = paths.iter().map(way).collect();
        Self { strips: Strips::new(data, revision), data, record, ways }
    }

    fn read(&mut self, ordinal: u64, out: &mut Vec<u8>) -> Result<Seen, Fault> {
        let record = self.strips.state(self.record, ordinal)?;
        match record {
            Datum::Absent | Datum::Null => return Ok(Seen::Nothing),
            Datum::Object(_) => {}
            _ => return Ok(Seen::Unsure),
        }
        for way in &mut self.ways {
            let mut state = record;
            for step in way {
                state = match state {
                    Datum::Object(shape) => match step.member(self.data, shape) {
                        Some(path) => self.strips.state(path, ordinal)?,
                        None => Datum::Absent,
                    },
                    Datum::Map(_)
                    | Datum::Opaque(_)
                    | Datum::Apart { kind: ApartKind::Opaque, .. } => return Ok(Seen::Unsure),
                    _ => Datum::Absent,
                };
            }
            let start = out.len();
            if !sort_key::append_scalar(state, out) {
                return Ok(Seen::Unsure);
            }
            out.truncate(start + INDEX_VALUE_BYTES_MAX);
        }
        Ok(Seen::Key)
    }
}

impl Step {
    /// The path of the member, if objects of a shape have it.
    fn member(&mut self, data: &TreeData, shape: ShapeId) -> Option<PathId> {
        let path = self.path?;
        let known = self.last.filter(|(last, _)| *last == shape);
        let has = known.map_or_else(|| has_field(data, shape, path), |(_, has)| has);
        self.last = Some((shape, has));
        has.then_some(path)
    }
}

/// The records, rising, among those that some changed nodes are in whose keys these changes may
/// have changed: not if what changed is on the way to no value of a key, nor in one.
pub(super) fn concerned(tree: &Tree, nodes: &[NodeId], paths: &[RecordPath]) -> Result<Vec<u64>> {
    let mut records = Vec::new();
    for nodes in nodes.chunks(NODES_AT_ONCE) {
        let found = tree.read(|data| {
            let Some(path) = data.schema.path(ROOT).entry else { return Ok(Vec::new()) };
            let mut found = Vec::new();
            let mut last: Option<(PathId, bool)> = None;
            for &touched in nodes {
                let at = touched.path();
                let known = last.filter(|(of, _)| *of == at);
                let is_on_way = known.map_or_else(|| leads(data, at, paths), |(_, is)| is);
                last = Some((at, is_on_way));
                if is_on_way {
                    found.extend(record_of(data, touched, path)?);
                }
            }
            Ok(found)
        })?;
        records.extend(found);
    }
    records.sort_unstable();
    records.dedup();
    Ok(records)
}

/// The ordinal of the record that a node is in, or is.
fn record_of(data: &TreeData, node: NodeId, path: PathId) -> Result<Option<u64>, Fault> {
    let space = data.schema.path(path).space;
    let mut at = node;
    while data.schema.path(at.path()).space != space {
        match parent_of(data, at)? {
            Some(parent) => at = parent,
            None => return Ok(None),
        }
    }
    Ok(Some(at.ordinal().0))
}

/// Whether nodes of a path are records, or on the way from records to values of a key, or in one.
fn leads(data: &TreeData, path: PathId, keys: &[RecordPath]) -> bool {
    let mut labels = Vec::new();
    let mut at = path;
    while Some(at) != data.schema.path(ROOT).entry {
        match data.schema.label(at) {
            Label::Root => return false,
            label => labels.push(label),
        }
        at = data.schema.path(at).parent;
    }
    let is_alike = |(label, step): (&Label<'_>, &RecordStep)| match (label, step) {
        (Label::Field(name), RecordStep::Field(field)) => *name == field.as_bytes(),
        // An object that outgrew its shape has members as entries.
        (Label::Entry, RecordStep::Field(_)) | (Label::Element, RecordStep::Elements) => true,
        _ => false,
    };
    keys.iter().any(|key| labels.iter().rev().zip(key.steps()).all(is_alike))
}
