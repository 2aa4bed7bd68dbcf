//! The journal's record of one commit: what it does to each of its trees.

use crate::engine::View;
use crate::engine::options::CommitOptions;
use crate::error::Result;
use crate::limits::COMMIT_BYTES_MAX;
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::series::changes::SeriesChanges;
use crate::tree::TREE_BYTES;
use crate::tree::cell_key::TreeId;
use crate::tree::delta::{self, Parts};
use crate::tree::rows::Row;
use crate::tree::writer::Writer;
use crate::wire::{Reader, put_bytes, put_varint};

const HAS_TIMESTAMP: u8 = 1;
const HAS_AUTHOR: u8 = 2;
const HAS_MESSAGE: u8 = 4;
const HAS_SERIES: u8 = 8;
const HAS_SEAL: u8 = 16;

/// What stands in a record behind its trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Behind {
    series: bool,
    seal: bool,
}

/// What a commit says of its revisions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) timestamp: Option<Micros>,
    /// Whether that is when another database made the commit, which is loaded: it is that of the
    /// catalogues too. The journal does not keep it: until it is loaded there is no database.
    pub(crate) is_loaded: bool,
    pub(crate) author: Option<Box<str>>,
    pub(crate) message: Option<Box<str>>,
}

/// A commit ready to be queued.
#[derive(Debug)]
pub(crate) struct Prepared<'w> {
    pub(crate) body: Vec<u8>,
    facts: Facts,
    writers: Vec<&'w Writer>,
    series: Option<&'w SeriesChanges>,
    gives_room: bool,
}

impl<'w> Prepared<'w> {
    /// Encodes the staged changes of trees, in rising order of their numbers.
    pub(crate) fn new(writers: Vec<&'w Writer>, facts: Facts) -> Self {
        let mut body = Vec::new();
        let flags = [
            (facts.timestamp.is_some(), HAS_TIMESTAMP),
            (facts.author.is_some(), HAS_AUTHOR),
            (facts.message.is_some(), HAS_MESSAGE),
        ];
        body.push(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag).sum());
        if let Some(timestamp) = facts.timestamp {
            body.extend(timestamp.0.to_le_bytes());
        }
        for text in [&facts.author, &facts.message].into_iter().flatten() {
            put_bytes(&mut body, text.as_bytes());
        }
        put_varint(&mut body, writers.len() as u64);
        for writer in &writers {
            let tree = &writer.tree;
            put_varint(&mut body, tree.id().0);
            put_varint(&mut body, u64::from(writer.revision));
            delta::encode(&tree.data.read(), &tree.orders, &tree.blobs, &mut body);
        }
        Self { body, facts, writers, series: None, gives_room: false }
    }

    /// Adds what the commit does to the points of series.
    pub(crate) fn with_series(mut self, changes: &'w SeriesChanges) -> Self {
        if let (Some(flags), false) = (self.body.first_mut(), changes.is_empty()) {
            *flags |= HAS_SERIES;
            changes.encode(&mut self.body);
            self.series = Some(changes);
        }
        self
    }

    /// Says that the commit has all points of a stripe up to a generation. Comes after the series.
    pub(crate) fn with_seal(mut self, (stripe, generation): (u64, u64)) -> Self {
        if let Some(flags) = self.body.first_mut() {
            *flags |= HAS_SEAL;
        }
        self.body.extend(stripe.to_le_bytes());
        put_varint(&mut self.body, generation);
        self
    }

    /// Marks a commit that lets something go, so that it may take what is kept for a full device.
    pub(crate) fn giving_room(self, gives_room: bool) -> Self {
        Self { gives_room, ..self }
    }

    pub(crate) fn gives_room(&self) -> bool {
        self.gives_room
    }

    /// Whether the commit is not too large for any journal.
    pub(crate) fn fits(&self) -> bool {
        self.body.len() <= COMMIT_BYTES_MAX
    }

    /// Approximate bytes that the staged changes take in memory.
    pub(crate) fn young_bytes(&self) -> usize {
        let taken = |writer: &&Writer| {
            let mut data = writer.tree.data.write();
            let is_first = data.rows.last() == data.rows.before();
            // With its first young revision a tree has to stay in memory itself.
            let tree_bytes = if is_first { TREE_BYTES } else { 0 };
            let apart = writer.tree.blobs.staged_bytes() + writer.tree.orders.staged_bytes();
            std::mem::take(&mut data.young_bytes) + apart + tree_bytes
        };
        let series = self.series.map_or(0, SeriesChanges::young_bytes);
        self.writers.iter().map(taken).sum::<usize>() + series
    }

    /// The trees that it changes, with the revisions that they get.
    pub(crate) fn trees(&self) -> impl Iterator<Item = (TreeId, Revision)> {
        self.writers.iter().map(|writer| writer.change())
    }

    /// Gives every tree its revision: staged changes become visible at the commit's sequence.
    pub(crate) fn stage(&self, view: &View, sequence: CommitSequence, committed: Micros) {
        if let Some(changes) = self.series {
            view.series.stage(changes, (sequence, committed));
        }
        for writer in &self.writers {
            let revision = Revision(u64::from(writer.revision));
            let row = self.facts.row((writer.tree.id(), revision), sequence, committed);
            let mut data = writer.tree.data.write();
            data.commit_staged(&row);
            writer.tree.orders.commit_staged();
            writer.tree.blobs.commit_staged();
        }
    }
}

impl Facts {
    /// What a record begins with, and what stands after its trees.
    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<(Self, Behind)> {
        let flags = reader.byte()?;
        if flags & !(HAS_TIMESTAMP | HAS_AUTHOR | HAS_MESSAGE | HAS_SERIES | HAS_SEAL) != 0 {
            return Err(reader.corrupt(&format!("expected known flags, found {flags:#04x}")));
        }
        let mut facts = Self::default();
        if flags & HAS_TIMESTAMP != 0 {
            facts.timestamp = Some(Micros(reader.i64()?));
        }
        if flags & HAS_AUTHOR != 0 {
            facts.author = Some(reader.text()?.into());
        }
        if flags & HAS_MESSAGE != 0 {
            facts.message = Some(reader.text()?.into());
        }
        let behind = Behind { series: flags & HAS_SERIES != 0, seal: flags & HAS_SEAL != 0 };
        Ok((facts, behind))
    }

    /// What the options of a commit say.
    pub(crate) fn of(options: &CommitOptions) -> Self {
        Self {
            timestamp: options.timestamp,
            is_loaded: false,
            author: options.author.as_deref().map(Into::into),
            message: options.message.as_deref().map(Into::into),
        }
    }

    /// The row of a revision that the commit makes.
    pub(crate) fn row(
        &self,
        (tree, revision): (TreeId, Revision),
        sequence: CommitSequence,
        committed: Micros,
    ) -> Row {
        // A given timestamp is that of the documents; the catalogue's own rise with the commits.
        let given = self.timestamp.filter(|_| self.is_loaded || !tree.is_catalogue());
        Row {
            revision,
            // The clock may have gone back since the timestamp was checked.
            timestamp: given.map_or(committed, |given| given.min(committed)),
            committed,
            sequence,
            author: self.author.clone(),
            message: self.message.clone(),
        }
    }
}

impl Behind {
    /// Repeats what stands behind the trees.
    pub(super) fn replay(
        self,
        view: &View,
        at: (CommitSequence, Micros),
        reader: &mut Reader<'_>,
    ) -> Result<()> {
        if self.series {
            view.series.stage(&SeriesChanges::decode(reader)?, at);
        }
        if self.seal {
            let stripe = reader.i64()?.cast_unsigned();
            view.series.note_seal(stripe, reader.varint()?);
        }
        reader.end()
    }
}

/// Repeats a commit that the journal recorded.
pub(crate) fn replay(
    view: &View,
    (sequence, committed): (CommitSequence, Micros),
    body: &[u8],
) -> Result<()> {
    let mut reader = Reader::new(body);
    let (facts, behind) = Facts::decode(&mut reader)?;
    let mut trees = Vec::new();
    for _ in 0..reader.count()? {
        let tree = view.tree(TreeId(reader.varint()?))?;
        let revision = Revision(reader.varint()?);
        let mut data = tree.data.write();
        if revision.0 != data.rows.last() + 1 {
            let message = format!("revision {revision} follows {}", data.rows.last());
            return Err(reader.corrupt(&message));
        }
        let mut parts = Parts { data: &mut data, orders: &tree.orders, blobs: &tree.blobs };
        let changed: Vec<NodeId> = delta::apply(&mut parts, &mut reader)?;
        data.commit_replayed(&facts.row((tree.id(), revision), sequence, committed), &changed);
        tree.orders.commit_staged();
        tree.blobs.commit_staged();
        trees.push((tree.id(), revision));
    }
    behind.replay(view, (sequence, committed), &mut reader)?;
    view.recent.lock().push(sequence, trees);
    Ok(())
}
