//! Taking a dump over into a new database.

mod series;

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use super::{DumpDigest, DumpItem, DumpSummary, DumpedPoints};
use crate::bulk::Progress;
use crate::content_hash::ContentHash;
use crate::database::Database;
use crate::durability::Durability;
use crate::engine::options::Options;
use crate::engine::unfinished::Unfinished;
use crate::error::{Error, ErrorKind, Result};
use crate::export::{ExportedFacts, ExportedRevision, HistoryImport};
use crate::io::Device;

pub(crate) use series::SeriesLoad;

/// How long the device may lag behind while loading: until the end nothing is promised.
const SYNC_INTERVAL_MS: u32 = 1_000;

/// The loading of a dump.
pub struct DumpLoad {
    database: Database,
    /// Where the database will be once all is loaded.
    place: Arc<Unfinished>,
    series: SeriesLoad,
    document: Option<LoadedDocument>,
    last_name: String,
    digest: DumpDigest,
}

/// The document whose revisions come.
struct LoadedDocument {
    name: String,
    facts: ExportedFacts,
    import: HistoryImport,
}

impl fmt::Debug for DumpLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DumpLoad").field("digest", &self.digest).finish_non_exhaustive()
    }
}

impl DumpLoad {
    /// Begins a new database on a device, which is none until the end: what is dropped before
    /// leaves nothing but the folder, if there was one.
    ///
    /// `Invalid` if there is anything on the device.
    pub fn into_new(device: Arc<dyn Device>, options: Options) -> Result<Self> {
        let place = Unfinished::begin(device)?;
        let options = Options { create: true, read_only: false, ..options };
        let on: Arc<dyn Device> = Arc::clone(&place) as Arc<dyn Device>;
        let database = Database::open_device(on, options)?;
        let (digest, last_name) = (DumpDigest::default(), String::new());
        let series = SeriesLoad::default();
        Ok(Self { database, place, series, document: None, last_name, digest })
    }

    /// Takes what the dump says next.
    ///
    /// `Invalid` if it cannot stand there, `Corrupt` if a value has not the hash that it is to
    /// have.
    pub fn push(&mut self, item: DumpItem) -> Result<()> {
        self.digest.add(&item);
        let database = &self.database;
        match item {
            DumpItem::SeriesRules(rules) => self.series.rule(database, &rules),
            DumpItem::Series { name, record } => self.series.define(database, &name, &record),
            DumpItem::Commits(commits) => self.series.push_commits(database, &commits),
            DumpItem::Points(points) => self.series.push_points(database, &points),
            DumpItem::Deletes { series, spans } => {
                self.series.push_deletes(database, &series, &spans)
            }
            DumpItem::Document { name, facts } => self.begin_document(name, facts),
            DumpItem::Revision(revision) => self.take(|import| import.push(&revision)),
        }
    }

    /// Takes the first revision of a document, of which something is too long to be held in memory
    /// and is read from `text`, as [`HistoryImport::push_long`] does.
    pub fn push_long(
        &mut self,
        revision: ExportedRevision,
        text: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.take(|import| import.push_long(&revision, text, progress))?;
        self.digest.add(&DumpItem::Revision(revision));
        Ok(())
    }

    fn begin_document(&mut self, name: String, facts: ExportedFacts) -> Result<()> {
        self.series.finish(&self.database)?;
        self.finish_document()?;
        if name <= self.last_name {
            let message = format!(
                "document {name:?} stands after {:?}: documents come once, in the order of their \
                 names",
                self.last_name
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let durability = Some(Durability::Interval(SYNC_INTERVAL_MS));
        let mut import = self.database.import_history(&name, durability)?;
        import.set_facts(facts.clone())?;
        self.last_name.clone_from(&name);
        self.document = Some(LoadedDocument { name, facts, import });
        Ok(())
    }

    /// Has the document that is being loaded take a revision.
    fn take(&mut self, push: impl FnOnce(&mut HistoryImport) -> Result<bool>) -> Result<()> {
        let Some(document) = &mut self.document else {
            let message = "a revision stands before the first document";
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let pushed = push(&mut document.import);
        pushed.map_err(|error| error.in_context(format_args!("document {:?}", document.name)))?;
        Ok(())
    }

    /// Ends it: all of it is durable, and it is a database.
    ///
    /// `Corrupt` if the dump has another hash than it is to have.
    pub fn finish(mut self, expected: Option<ContentHash>) -> Result<DumpSummary> {
        self.series.finish(&self.database)?;
        self.finish_document()?;
        let summary = self.digest.summary();
        if let Some(expected) = expected.filter(|expected| *expected != summary.hash) {
            let message = format!(
                "the dump is to have the hash {expected}, but has {}: it was changed or cut after \
                 it was made; dump the database again",
                summary.hash
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        }
        let Self { database, place, .. } = self;
        database.checkpoint()?;
        // Nobody writes any more when the manifest gets its name.
        database.close()?;
        place.finish()?;
        Ok(summary)
    }

    fn finish_document(&mut self) -> Result<()> {
        let Some(LoadedDocument { name, facts, import }) = self.document.take() else {
            return Ok(());
        };
        let context = |error: Error| error.in_context(format_args!("document {name:?}"));
        let revision = import.finish().map_err(context)?;
        if revision.0 == 0 && facts.is_empty() {
            self.database.create_document(&name)?;
        }
        Ok(())
    }
}
