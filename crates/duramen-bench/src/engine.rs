//! Duramen itself as a subject: its public interface, on real files.
//!
//! A program keeps a handle to a document that it uses, so handles are looked up once, as rivals
//! prepare their statements once; after opening again they are looked up anew, on the clock.

use std::collections::HashMap;
use std::collections::hash_map;
use std::fmt::Write as _;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use duramen::io::Device;
use duramen::{
    Change, CommitOptions, Database, Document, Format, JsonPointer, LogEntry, LogQuery, Micros,
    Options, Outcome, Revision, Value, ValueRun,
};

use crate::device::CountingDevice;
use crate::files::{self, Space};
use crate::sampling::Latencies;
use crate::subject::{
    At, DURAMEN, Difference, Durability, Entry, FIRST, FieldChange, Journal, Rendering, Stage,
    Step, Target, VersionedStore,
};

/// How far the device may lag behind commits that are not timed as durable.
const RELAXED_MS: u32 = 100;
/// Runs of a history read at a time.
const PAGE_RUNS: usize = 256;

/// A database in a folder.
pub(crate) struct DuramenStore {
    folder: PathBuf,
    open: Option<Opened>,
    options: CommitOptions,
    text: Vec<u8>,
    runs: Vec<ValueRun>,
}

/// An open database with the documents in use.
struct Opened {
    database: Database,
    device: Arc<CountingDevice>,
    documents: HashMap<u32, Document>,
}

impl Opened {
    fn at(folder: &Path) -> Result<Self> {
        let device = Arc::new(CountingDevice::new(folder));
        let shared: Arc<dyn Device> = Arc::<CountingDevice>::clone(&device);
        let database = Database::open_device(shared, Options::default())?;
        Ok(Self { database, device, documents: HashMap::new() })
    }
}

impl DuramenStore {
    /// Opens the database in a folder, or makes it.
    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        let open = Some(Opened::at(&folder)?);
        Ok(Self {
            folder,
            open,
            options: CommitOptions::default(),
            text: Vec::new(),
            runs: Vec::new(),
        })
    }

    fn opened(&self) -> Result<&Opened> {
        self.open.as_ref().context("an open database")
    }

    fn document(&mut self, tree: u32) -> Result<&Document> {
        let opened = self.open.as_mut().context("an open database")?;
        let Opened { database, documents, .. } = opened;
        match documents.entry(tree) {
            hash_map::Entry::Occupied(known) => Ok(known.into_mut()),
            hash_map::Entry::Vacant(place) => Ok(place.insert(database.document(&name(tree))?)),
        }
    }

    /// What the database takes without its journal.
    fn without_journal(&self) -> Result<Space> {
        let journal = files::space(&self.folder.join("journal"))?;
        Ok(files::space(&self.folder)?.since(journal))
    }

    fn read_one(&mut self, target: Target) -> Result<u64> {
        let document = self.document(target.tree)?;
        let snapshot = match target.at {
            At::Revision(revision) => document.at(Revision(revision))?,
            At::Instant(instant) => document.at_time(Micros(instant))?,
        };
        self.text.clear();
        snapshot.append_json(&JsonPointer::root(), &Format::default(), &mut self.text)?;
        Ok(self.text.len() as u64)
    }

    /// The values that a field of the first document's root had, newest first, page by page.
    fn pages(
        &mut self,
        field: &str,
        mut page: impl FnMut(&[ValueRun]) -> Result<()>,
    ) -> Result<()> {
        let pointer = JsonPointer::parse(&format!("/{field}"))?;
        let mut history = self.document(FIRST)?.head()?.history(&pointer)?;
        loop {
            self.runs.clear();
            history.page(PAGE_RUNS, &mut self.runs)?;
            if self.runs.is_empty() {
                return Ok(());
            }
            page(&self.runs)?;
        }
    }
}

impl VersionedStore for DuramenStore {
    fn subject(&self) -> &'static str {
        DURAMEN
    }

    fn rendering(&self) -> Rendering {
        Rendering::Compact
    }

    fn process(&self) -> Option<u32> {
        Some(std::process::id())
    }

    fn set_durability(&mut self, durability: Durability) -> Result<()> {
        self.options.durability = Some(match durability {
            Durability::Sync => duramen::Durability::Sync,
            Durability::Relaxed => duramen::Durability::Interval(RELAXED_MS),
        });
        Ok(())
    }

    fn insert(&mut self, tree: u32, json: &str) -> Result<()> {
        let mut transaction = self.opened()?.database.transaction();
        transaction.put(&name(tree), json.as_bytes())?;
        let committed = transaction.commit(&self.options)?;
        ensure!(committed.revisions.len() == 1, "one document changes");
        Ok(())
    }

    fn count_up(
        &mut self,
        tree: u32,
        values: RangeInclusive<u64>,
        latencies: &mut Latencies,
    ) -> Result<()> {
        let counter = JsonPointer::parse("/counter")?;
        let options = self.options.clone();
        let document = self.document(tree)?;
        let mut json = String::new();
        for value in values {
            json.clear();
            write!(json, "{value}")?;
            let outcome = latencies.time(|| Ok(document.set(&counter, &json, &options)?))?;
            expect_revision(outcome, value + 1)?;
        }
        Ok(())
    }

    fn commit(&mut self, tree: u32, step: &Step) -> Result<()> {
        if let [change] = step.changes.as_slice() {
            let options = self.options.clone();
            let pointer = JsonPointer::parse(&change.pointer)?;
            let outcome = self.document(tree)?.set(&pointer, &change.value, &options)?;
            ensure!(outcome.is_committed(), "one document changes");
            return Ok(());
        }
        let name = name(tree);
        let mut transaction = self.opened()?.database.transaction();
        for change in &step.changes {
            let pointer = JsonPointer::parse(&change.pointer)?;
            transaction.set(&name, &pointer, change.value.as_bytes())?;
        }
        let committed = transaction.commit(&self.options)?;
        ensure!(committed.revisions.len() == 1, "one document changes");
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        Ok(self.opened()?.database.checkpoint()?)
    }

    fn reopen(&mut self) -> Result<()> {
        drop(self.open.take());
        self.open = Some(Opened::at(&self.folder)?);
        Ok(())
    }

    fn read(&mut self, targets: &[Target], latencies: &mut Latencies) -> Result<u64> {
        let mut bytes = 0;
        for target in targets {
            bytes += latencies.time(|| self.read_one(*target))?;
        }
        Ok(bytes)
    }

    fn timestamps(&mut self) -> Result<Vec<i64>> {
        let timestamps = self.document(FIRST)?.timestamps()?;
        Ok(timestamps.into_iter().map(|at| at.0).collect())
    }

    fn entries(&mut self, newest: Option<u32>) -> Result<Vec<Entry>> {
        let limit = newest.map(usize::try_from).transpose()?;
        let log = self.document(FIRST)?.log(&LogQuery { limit, ..LogQuery::default() })?;
        let entry = |entry: duramen::Result<LogEntry>| {
            let entry = entry?;
            let revision = i64::try_from(entry.revision.0)?;
            Ok(Entry { revision, at: entry.timestamp.0 })
        };
        log.map(entry).collect()
    }

    fn counters(&mut self) -> Result<Vec<i64>> {
        let revisions = self.document(FIRST)?.head_revision()?.0;
        let mut counters = Vec::with_capacity(usize::try_from(revisions)?);
        self.pages("counter", |runs| {
            for ValueRun { first, last, value } in runs {
                let Value::Integer(value) = value else { bail!("{value} is no integer") };
                counters.extend((first.0..=last.0).map(|_| *value));
            }
            Ok(())
        })?;
        Ok(counters)
    }

    fn runs(&mut self, field: &str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        self.pages(field, |runs| {
            for run in runs {
                let Value::String(text) = &run.value else { bail!("{} is no string", run.value) };
                texts.push(text.to_string());
            }
            Ok(())
        })?;
        Ok(texts)
    }

    fn counter_at(&mut self, revision: u64) -> Result<i64> {
        let counter = JsonPointer::parse("/counter")?;
        let snapshot = self.document(FIRST)?.at(Revision(revision))?;
        self.text.clear();
        snapshot.append_json(&counter, &Format::default(), &mut self.text)?;
        Ok(std::str::from_utf8(&self.text)?.parse()?)
    }

    fn diff(&mut self, from: u64, to: u64) -> Result<Difference> {
        let diff = self.document(FIRST)?.diff(Revision(from), Revision(to))?;
        let patch = Some(diff.to_json_patch());
        let change = |change: Change| FieldChange {
            pointer: change.pointer.to_string(),
            old: change.before,
            new: change.after,
        };
        Ok(Difference { changes: diff.changes.into_iter().map(change).collect(), patch })
    }

    fn journal(&mut self) -> Result<Journal> {
        let Opened { database, device, .. } = self.opened()?;
        let counters = database.counters();
        let (syncs, bytes) = (Some(counters.syncs), Some(counters.journal_bytes));
        Ok(Journal { syncs, bytes, device: Some(device.calls()) })
    }

    fn space(&mut self, stage: Stage) -> Result<Option<Space>> {
        match stage {
            Stage::WithJournal => Ok(Some(files::space(&self.folder)?)),
            Stage::Checkpointed => {
                self.checkpoint()?;
                self.without_journal().map(Some)
            }
            Stage::Compacted => {
                self.opened()?.database.compact(&mut |_, _| ControlFlow::Continue(()))?;
                self.without_journal().map(Some)
            }
        }
    }

    fn another_handle(&self) -> Result<Box<dyn VersionedStore>> {
        let Opened { database, device, .. } = self.opened()?;
        let (database, device) = (database.clone(), Arc::clone(device));
        let open = Some(Opened { database, device, documents: HashMap::new() });
        let (folder, options) = (self.folder.clone(), self.options.clone());
        Ok(Box::new(Self { folder, open, options, text: Vec::new(), runs: Vec::new() }))
    }

    fn discard(self: Box<Self>) -> Result<()> {
        let Self { folder, open, .. } = *self;
        drop(open);
        Ok(std::fs::remove_dir_all(folder)?)
    }
}

fn name(tree: u32) -> String {
    format!("document-{tree}")
}

fn expect_revision(outcome: Outcome, revision: u64) -> Result<()> {
    let made = outcome.revision().0;
    ensure!(outcome.is_committed() && made == revision, "revision {made}, not {revision}");
    Ok(())
}
