//! All that a database says, document by document, for another one to take over.
//!
//! Invariants:
//! - what is stored where makes no difference: a database that was checkpointed, restored or loaded
//!   from a dump says the same, and has the same hash;
//! - the hash is of what is said, not of how: of values, not of the patches between them.

mod digest;
mod load;
mod series;

use std::io::Write;
use std::sync::Arc;
use std::vec;

use crate::content_hash::ContentHash;
use crate::database::DatabaseSnapshot;
use crate::document::Document;
use crate::engine::Engine;
use crate::engine::catalogue::Name;
use crate::error::Result;
use crate::export::{ExportedFacts, ExportedRevision, HistoryExport, none_told};
use crate::revision::{CommitSequence, Micros};
use crate::series::Points;

use digest::DumpDigest;
pub use load::DumpLoad;
pub(crate) use load::SeriesLoad;
use series::SeriesDump;
pub(crate) use series::{PointItems, deletes_until};

/// One thing that a dump says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpItem {
    /// A document begins; its revisions follow, oldest first.
    Document {
        /// Its name. Documents come in the order of their names.
        name: String,
        /// Its options, its tags and what was purged of it.
        facts: ExportedFacts,
    },
    /// The next revision of the document. What is too long to be held in memory the dump
    /// [writes](Dump::write_long), and [`DumpLoad::push_long`] reads it.
    Revision(ExportedRevision),
    /// The rules of what is kept of series, as JSON. They come before everything else.
    SeriesRules(String),
    /// A series. All of them come first, in the order of their names.
    Series {
        /// Its name.
        name: String,
        /// What the catalogue says of it, as JSON, and what it said before.
        record: String,
    },
    /// Commits that changed points of series, rising, and when they were made. They follow all
    /// series.
    Commits(Vec<(CommitSequence, Micros)>),
    /// Points of a series, in the order of their times and then of their commits; also those that
    /// later commits wrote over or deleted. They come in the order of the series' names, before
    /// all documents.
    Points(DumpedPoints),
    /// What was deleted of a series, in the order of the commits. It follows its points.
    Deletes {
        /// The series.
        series: String,
        /// Which commit deleted what of the points that were there before it: the first time and
        /// the last one.
        spans: Vec<(CommitSequence, Micros, Micros)>,
    },
}

/// Points that a dump says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedPoints {
    /// The series.
    pub series: String,
    /// The points.
    pub points: Points,
    /// Of each point the commit that wrote it.
    pub commits: Vec<CommitSequence>,
}

/// What a dump said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpSummary {
    /// Documents, deleted ones counted in.
    pub documents: u64,
    /// Their revisions.
    pub revisions: u64,
    /// Series.
    pub series: u64,
    /// Their points, those that were written over or deleted counted in.
    pub points: u64,
    /// The SHA-256 of all of it. Databases have the same one exactly if their documents have the
    /// same names, options, tags and purges, and the same revisions with the same timestamps,
    /// authors, messages, values and versions of records, also of those that departed; and if their
    /// series have the same names, definitions and rules, the same names and definitions before,
    /// and the same points as of the same commits. Versions that a deleted record got in dropped
    /// revisions, behind one that shows it, are not told.
    pub hash: ContentHash,
}

/// What a database says as of one commit, one thing after the other.
#[derive(Debug)]
pub struct Dump {
    engine: Arc<Engine>,
    sequence: CommitSequence,
    series: SeriesDump,
    names: vec::IntoIter<(String, Name)>,
    /// The revisions of the document that is on its way.
    history: Option<HistoryExport>,
    digest: DumpDigest,
}

impl DatabaseSnapshot {
    /// All documents with all revisions as of this commit, and all series with all that was
    /// written to them until then and is kept, to be [loaded](DumpLoad) into another database.
    /// Deleted documents are among them, deleted series are not; who renamed, declared and deleted
    /// what of documents is not.
    ///
    /// A loaded database has the points of series as of the same commits as before; documents are
    /// made by commits that come after those.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, DumpLoad};
    ///
    /// let db = Database::memory()?;
    /// db.create_document("a")?.put("[1]", &CommitOptions::default())?;
    /// db.document("a")?.put("[1,2]", &CommitOptions::default())?;
    ///
    /// let device = std::sync::Arc::new(duramen::io::MemoryDevice::new());
    /// let mut load = DumpLoad::into_new(device.clone(), Default::default())?;
    /// let mut dump = db.snapshot().dump()?;
    /// for item in &mut dump {
    ///     load.push(item?)?;
    /// }
    /// load.finish(Some(dump.summary().hash))?;
    /// let copy = Database::open_device(device, Default::default())?;
    /// assert_eq!(copy.document("a")?.at(duramen::Revision(1))?.to_json()?, "[1]");
    /// assert_eq!(copy.snapshot().hash()?, db.snapshot().hash()?);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn dump(&self) -> Result<Dump> {
        let mut names = self.engine.view().names(self.sequence)?;
        names.retain(|(_, name)| !name.is_free());
        Ok(Dump {
            engine: Arc::clone(&self.engine),
            sequence: self.sequence,
            series: SeriesDump::of(self)?,
            names: names.into_iter(),
            history: None,
            digest: DumpDigest::default(),
        })
    }

    /// What a dump would say, in short. It takes as long as the dump.
    pub fn hash(&self) -> Result<ContentHash> {
        let mut dump = self.dump()?;
        for item in &mut dump {
            item?;
        }
        Ok(dump.summary().hash)
    }
}

impl Dump {
    /// What was said so far.
    pub fn summary(&self) -> DumpSummary {
        self.digest.summary()
    }

    /// How many documents are still to come.
    pub fn remaining(&self) -> usize {
        self.names.len()
    }

    /// Whether the database has series, or rules for them.
    pub fn has_series(&self) -> bool {
        !self.series.is_empty()
    }

    /// Writes the whole value of the revision that was told last, as JSON.
    ///
    /// `Invalid` if none of the document was told yet.
    pub fn write_value(&self, out: &mut dyn Write) -> Result<()> {
        let history = self.history.as_ref().ok_or_else(none_told)?;
        history.write_value(out)
    }

    /// Writes what of the revision that was told last is too long to be held, as
    /// [`HistoryExport::write_long`] does.
    pub fn write_long(&self, revision: &ExportedRevision, out: &mut dyn Write) -> Result<()> {
        let history = self.history.as_ref().ok_or_else(none_told)?;
        history.write_long(revision, out)
    }

    fn next_item(&mut self) -> Result<Option<DumpItem>> {
        if let Some(item) = self.series.next()? {
            return Ok(Some(item));
        }
        if let Some(revision) = self.history.as_mut().and_then(Iterator::next) {
            return revision.map(DumpItem::Revision).map(Some);
        }
        let Some((name, found)) = self.names.next() else { return Ok(None) };
        let tree = self.engine.view().tree(found.tree)?;
        let head = tree.head_at(self.sequence)?;
        let document = Document::new(Arc::clone(&self.engine), tree, &name);
        let history = document.export_to(head);
        let facts = history.facts_at(self.sequence)?;
        self.history = Some(history);
        Ok(Some(DumpItem::Document { name, facts }))
    }
}

impl Iterator for Dump {
    type Item = Result<DumpItem>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.next_item();
        if let Ok(Some(item)) = &item {
            self.digest.add(item);
        }
        item.transpose()
    }
}
