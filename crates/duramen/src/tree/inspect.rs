//! Facts about a tree, its revisions and its nodes.

use std::io::{self, Write};

use crate::document::DocumentStats;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{JsonPointer, ParseOptions, Tape};
use crate::node::{NodeId, NodeKind};
use crate::order::{self, OrderCursor};
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Node;
use crate::state::{ApartKind, Datum, Sequence};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::locate::not_found;
use crate::tree::schema::ROOT;
use crate::tree::serialize::{Format, kind_of};

/// Counts what is written to it.
#[derive(Debug, Default)]
pub(crate) struct ByteCount(pub(crate) u64);

impl Write for ByteCount {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0 += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is below a node, one level down.
enum Below {
    Nothing { is_opaque: bool },
    Fields(Vec<NodeId>),
    Items(Sequence, bool),
}

impl Tree {
    /// The commit that made the newest revision, published or not; 0 if there is none.
    pub(crate) fn newest_sequence(&self) -> Result<CommitSequence> {
        let (young, last) = {
            let data = self.data.read();
            (data.rows.last_sequence(), data.rows.last())
        };
        match (young, last) {
            (Some(sequence), _) => Ok(sequence),
            (None, 0) => Ok(CommitSequence(0)),
            (None, last) => Ok(self.row(Revision(last))?.sequence),
        }
    }

    /// The timestamp of the newest revision, published or not.
    pub(crate) fn last_timestamp(&self) -> Result<Option<Micros>> {
        let (young, last) = {
            let data = self.data.read();
            (data.rows.last_timestamp(), data.rows.last())
        };
        match (young, last) {
            (Some(timestamp), _) => Ok(Some(timestamp)),
            (None, 0) => Ok(None),
            (None, last) => Ok(Some(self.row(Revision(last))?.timestamp)),
        }
    }

    /// The first revision up to `head` after a time; the one after `head` if none is.
    pub(crate) fn first_after(&self, time: Micros, head: Revision) -> Result<Revision> {
        let (before, young) = {
            let data = self.data.read();
            let young = data.rows.timestamps().partition_point(|&other| other <= time.0);
            (data.rows.before(), young as u64)
        };
        if young > 0 || before == 0 {
            return Ok(Revision((before + young + 1).min(head.0 + 1)));
        }
        self.first_where(before.min(head.0), |row| row.timestamp > time)
    }

    /// The timestamps of the revisions from the one that the history begins with up to `head`.
    pub(crate) fn timestamps(&self, head: Revision) -> Result<Vec<Micros>> {
        let index = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        loop {
            let first = self.first_revision();
            let count = index((head.0 + 1).saturating_sub(first));
            let before = self.data.read().rows.before();
            let mut old = Vec::new();
            if before > 0 {
                self.cells.timestamps_into(first, &mut old)?;
            }
            let data = self.data.read();
            if data.rows.before() != before || u64::from(data.kept.first()) != first {
                // A checkpoint or compaction came between: the disk has others now.
                continue;
            }
            // While a checkpoint comes to its end, the disk has young rows too.
            old.truncate(index((before + 1).saturating_sub(first)));
            let mut timestamps = Vec::with_capacity(count);
            timestamps.extend(old.into_iter().map(Micros));
            timestamps.extend(data.rows.timestamps().iter().copied().map(Micros));
            timestamps.truncate(count);
            return Ok(timestamps);
        }
    }

    /// What is known of a node that is there at a revision.
    pub(crate) fn node(&self, (id, revision): (NodeId, Revision)) -> Result<Node> {
        let revision = short(revision);
        let (kind, children, created, changed) = self.read(|data| {
            let (changed, state) = data.version(id, revision)?.unwrap_or((0, Datum::Absent));
            let children = match state {
                Datum::Object(shape) => Some(Err(data.schema.shape(shape).len() as u64)),
                Datum::Array(sequence) | Datum::Map(sequence) => Some(Ok(sequence)),
                _ => None,
            };
            let created = data.created(id)?.unwrap_or(changed);
            Ok((kind_of(&state), children, created, changed))
        })?;
        let children = match children {
            None => None,
            Some(Err(fields)) => Some(fields),
            Some(Ok(sequence)) => Some(order::len(&&self.orders, sequence)?),
        };
        Ok(Node {
            id,
            kind: kind.unwrap_or(NodeKind::Null),
            children,
            created: Revision(u64::from(created)),
            changed: Revision(u64::from(changed)),
        })
    }

    /// Appends what the rest of a pointer names inside a subtree stored whole.
    pub(crate) fn append_inside(
        &self,
        root: (NodeId, u32),
        (pointer, depth): (&JsonPointer, usize),
        format: &Format,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if *format != Format::default() {
            let message = format!(
                "\"{pointer}\" is inside a value that is stored whole, because the document has \
                 too many paths: it can only be printed compact and whole"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let mut text = Vec::new();
        self.append_json(root, &Format::default(), &mut text)?;
        let tape = Tape::parse(&text, ParseOptions::default())?;
        let mut at = tape.root();
        for (level, token) in pointer.tokens().enumerate().skip(depth) {
            at = tape.child(at, token).ok_or_else(|| not_found(pointer, level))?;
        }
        tape.write(at, out);
        Ok(())
    }

    /// The size of a document at a revision.
    pub(crate) fn stats(&self, revision: Revision) -> Result<DocumentStats> {
        let mut stats = DocumentStats { revisions: revision.0, ..DocumentStats::default() };
        {
            let extent = self.data.read().committed_schema();
            (stats.paths, stats.shapes) = (u64::from(extent.paths), u64::from(extent.shapes));
        }
        if revision.0 == 0 || self.deleted_in(short(revision))?.is_some() {
            return Ok(stats);
        }
        let root = node(ROOT, 0);
        let mut bytes = ByteCount::default();
        self.write_json((root, short(revision)), &Format::default(), &mut bytes)?;
        stats.json_bytes = bytes.0;
        let mut waiting = vec![root];
        while let Some(at) = waiting.pop() {
            stats.nodes += 1;
            match self.below(at, short(revision))? {
                Below::Nothing { is_opaque } => stats.opaque_nodes += u64::from(is_opaque),
                Below::Fields(fields) => waiting.extend(fields),
                Below::Items(sequence, is_map) => {
                    let mut cursor = OrderCursor::new(sequence);
                    while let Some(extent) = cursor.next(&&self.orders)? {
                        waiting.extend(self.read(|data| {
                            let items = (0..extent.items()).map(|index| extent.item(index));
                            let nodes = items.map(|item| data.item_node(at, is_map, item));
                            Ok(nodes.collect::<Result<Vec<_>>>()?)
                        })?);
                    }
                }
            }
        }
        Ok(stats)
    }

    fn below(&self, at: NodeId, revision: u32) -> Result<Below> {
        self.read(|data| {
            Ok(match data.state(at, revision)? {
                Datum::Object(shape) => {
                    let fields = data.schema.shape(shape).iter();
                    Below::Fields(fields.map(|field| node(field.path, at.ordinal().0)).collect())
                }
                Datum::Array(sequence) => Below::Items(sequence, false),
                Datum::Map(sequence) => Below::Items(sequence, true),
                Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. } => {
                    Below::Nothing { is_opaque: true }
                }
                _ => Below::Nothing { is_opaque: false },
            })
        })
    }
}
