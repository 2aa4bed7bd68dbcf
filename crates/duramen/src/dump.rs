//! All that a database says, document by document, for another one to take over.
//!
//! Invariants:
//! - what is stored where makes no difference: a database that was checkpointed, restored or loaded
//!   from a dump says the same, and has the same hash;
//! - the hash is of what is said, not of how: of values, not of the patches between them.

mod load;

use std::sync::Arc;
use std::vec;

use sha2::{Digest, Sha256};

use crate::content_hash::ContentHash;
use crate::database::DatabaseSnapshot;
use crate::document::Document;
use crate::engine::Engine;
use crate::engine::catalogue::Name;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{ExportedFacts, ExportedRevision, HistoryExport};
use crate::revision::CommitSequence;

pub use load::DumpLoad;

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
    /// The next revision of the document.
    Revision(ExportedRevision),
}

/// What a dump said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpSummary {
    /// Documents, deleted ones counted in.
    pub documents: u64,
    /// Their revisions.
    pub revisions: u64,
    /// The SHA-256 of all of it. Databases have the same one exactly if their documents have the
    /// same names, options, tags and purges, and the same revisions with the same timestamps,
    /// authors, messages and values.
    pub hash: ContentHash,
}

/// What a database says as of one commit, one thing after the other.
#[derive(Debug)]
pub struct Dump {
    engine: Arc<Engine>,
    sequence: CommitSequence,
    names: vec::IntoIter<(String, Name)>,
    /// The revisions of the document that is on its way.
    history: Option<HistoryExport>,
    digest: DumpDigest,
}

impl DatabaseSnapshot {
    /// All documents with all revisions as of this commit, to be [loaded](DumpLoad) into another
    /// database. Deleted documents are among them; who renamed, declared and deleted what is not.
    /// `Unsupported` if there are series.
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
        if self.engine.view().series_count(self.sequence)? > 0 {
            let message = "the database has series, which a dump cannot say: export them one by \
                           one, or make a backup";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.dump_documents()
    }

    fn dump_documents(&self) -> Result<Dump> {
        let mut names = self.engine.view().names(self.sequence)?;
        names.retain(|(_, name)| !name.is_free());
        Ok(Dump {
            engine: Arc::clone(&self.engine),
            sequence: self.sequence,
            names: names.into_iter(),
            history: None,
            digest: DumpDigest::default(),
        })
    }

    /// What a dump of the documents would say, in short; series are not in it. It takes as long as
    /// the dump.
    pub fn hash(&self) -> Result<ContentHash> {
        let mut dump = self.dump_documents()?;
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

    fn next_item(&mut self) -> Result<Option<DumpItem>> {
        if let Some(revision) = self.history.as_mut().and_then(Iterator::next) {
            return revision.map(DumpItem::Revision).map(Some);
        }
        let Some((name, found)) = self.names.next() else { return Ok(None) };
        let tree = self.engine.view().tree(found.tree)?;
        let head = tree.head_at(self.sequence)?;
        let document = Document::new(Arc::clone(&self.engine), tree, &name);
        let facts = document.facts_at(self.sequence)?;
        self.history = Some(document.export_to(head)?);
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

/// The SHA-256 of what a dump says: every text with its length before it, so that none can be taken
/// for two others.
#[derive(Debug, Default)]
struct DumpDigest {
    sha256: Sha256,
    documents: u64,
    revisions: u64,
}

impl DumpDigest {
    fn summary(&self) -> DumpSummary {
        let hash = ContentHash::from_bytes(self.sha256.clone().finalize().into());
        DumpSummary { documents: self.documents, revisions: self.revisions, hash }
    }

    fn add(&mut self, item: &DumpItem) {
        match item {
            DumpItem::Document { name, facts } => self.add_document(name, facts),
            DumpItem::Revision(revision) => self.add_revision(revision),
        }
    }

    fn add_document(&mut self, name: &str, facts: &ExportedFacts) {
        self.documents += 1;
        self.bytes(b"document");
        self.bytes(name.as_bytes());
        self.bytes(facts.options.to_json().as_bytes());
        self.number(facts.tags.len() as u64);
        for tag in &facts.tags {
            self.bytes(tag.name.as_bytes());
            self.number(tag.revision.0);
            self.bytes(tag.hash.as_bytes());
            self.text(tag.author.as_deref());
            self.text(tag.message.as_deref());
        }
        for purge in &facts.purges {
            self.bytes(b"purge");
            self.bytes(purge.place.to_string().as_bytes());
            self.number(purge.timestamp.0.cast_unsigned());
            self.text(purge.author.as_deref());
            self.text(purge.message.as_deref());
        }
    }

    fn add_revision(&mut self, revision: &ExportedRevision) {
        self.revisions += 1;
        self.bytes(b"revision");
        self.number(revision.revision.0);
        self.number(revision.timestamp.0.cast_unsigned());
        self.text(revision.author.as_deref());
        self.text(revision.message.as_deref());
        // A deleted document has no hash.
        self.bytes(revision.hash.as_ref().map_or(&[], |hash| hash.as_bytes()));
        for key in &revision.counted {
            self.bytes(b"counted");
            self.bytes(key.as_bytes());
        }
    }

    fn number(&mut self, number: u64) {
        self.sha256.update(number.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.sha256.update(bytes);
    }

    fn text(&mut self, text: Option<&str>) {
        self.number(u64::from(text.is_some()));
        self.bytes(text.unwrap_or_default().as_bytes());
    }
}
