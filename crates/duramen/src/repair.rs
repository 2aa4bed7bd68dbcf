//! Salvages what verifies of a damaged database into a new one.
//!
//! The new database is written by the engine itself, revision by revision, from what is left of the
//! old one; so it is whole, whatever the old one is. Documents keep their names, options, tags
//! and what is known of purges, revisions their numbers, timestamps, authors and messages. The ids
//! of values, commit sequences and commit timestamps are those of the new database, but for series:
//! what was written to them stays readable as of the same commits.
//!
//! Invariants:
//! - nothing of the damaged database is written;
//! - a value that is written is the one that was committed; what may be another one is lost, and
//!   told;
//! - a repair that fails, is stopped or killed leaves no database behind.

pub(crate) mod device;
mod long;
mod print;
mod rewrite;
mod series;
mod versions;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::check::Finding;
use crate::database::Database;
use crate::document::{Document, Tag};
use crate::engine::catalogue::purges::OPEN_HASH;
use crate::engine::catalogue::{Name, facts, salvage as catalogue};
use crate::engine::options::{CommitOptions, Options};
use crate::engine::recovery::keep_writers_out;
use crate::engine::salvage::{self, Salvaged};
use crate::engine::unfinished::Unfinished;
use crate::engine::{CATALOGUE, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::index::IndexDefinition;
use crate::io::{Device, DirectoryDevice};
use crate::options::DocumentOptions;
use crate::repair::rewrite::Rewrite;
use crate::retention::Retention;
use crate::revision::{Micros, Revision};
use crate::segment::salvage::LostKeys;
use crate::threads::piped;
use crate::tree::Tree;
use crate::tree::cell_key::{self, TreeId};
use crate::tree::history::short;
use crate::tree::salvage::{Losses, readable};
use crate::{Clock, Durability};

/// Commits of the new database that may be lost with the power until all is flushed.
const DURABILITY: Durability = Durability::Interval(1_000);

/// What a repair found and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepairReport {
    /// Documents of the new database.
    pub documents: u64,
    /// Their revisions.
    pub revisions: u64,
    /// What of the damaged database does not verify.
    pub damage: Vec<Finding>,
    /// What the new database lacks; empty if everything is there.
    pub lost: Vec<Lost>,
    /// What no repair takes over, of a database without damage neither: series that were deleted,
    /// which can be read as of commits before that.
    pub left_out: Vec<Lost>,
}

/// Something that could not be salvaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The document; none if it is of the database.
    pub document: Option<String>,
    /// The label path of the values, such as `$.data[*].age`.
    pub path: Option<String>,
    /// The first revision that lacks it.
    pub first: Revision,
    /// The last revision that lacks it; 0 if it is not of revisions.
    pub last: Revision,
    /// How many values, or revisions, counted in each revision.
    pub values: u64,
    /// What it is.
    pub what: String,
}

/// How far a repair is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepairProgress {
    /// Revisions written.
    pub done: u64,
    /// Revisions to be written in all.
    pub total: u64,
}

/// Called now and then; it may stop the repair.
type Progress<'p> = dyn FnMut(RepairProgress) -> ControlFlow<()> + 'p;

/// Called when so many more revisions are written, 0 while a long one is; it may stop the repair.
type Step<'s> = dyn FnMut(u64) -> Result<()> + 's;

/// Whether a long revision is to be gone on with.
fn go_on(step: &mut Step<'_>) -> ControlFlow<()> {
    if step(0).is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

impl Database {
    /// Salvages what verifies of the damaged database in the folder `from` into a new one in the
    /// folder `to`. No process may be writing `from`, and nothing of it is changed.
    ///
    /// Of a value that is lost, the new database lacks that value alone: a member is left out, an
    /// element is `null`, a whole document at a revision too. [`RepairReport::lost`] names all of
    /// it.
    ///
    /// `Corrupt` if nothing verifies, `Invalid` if there is something in `to`, `Busy` if a process
    /// writes `from`, `Cancelled` if `progress` says so. Nothing is left then but a folder `to`
    /// that was there before.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use duramen::{CommitOptions, Database, Options};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    /// let db = Database::open(&old, Options::default())?;
    /// db.create_document("config")?.put("[1,2]", &CommitOptions::default())?;
    /// db.close()?;
    /// let mut manifest = std::fs::read(old.join("MANIFEST")).unwrap();
    /// manifest[8] ^= 1;
    /// std::fs::write(old.join("MANIFEST"), manifest).unwrap();
    ///
    /// let report = Database::repair(&old, &new, &mut |_| ControlFlow::Continue(()))?;
    /// assert!(report.damage.len() == 1 && report.is_complete());
    /// let db = Database::open(&new, Options::default())?;
    /// assert_eq!(db.document("config")?.head()?.to_json()?, "[1,2]");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn repair(
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        progress: &mut Progress<'_>,
    ) -> Result<RepairReport> {
        let device = |path: &Path| -> Arc<dyn Device> { Arc::new(DirectoryDevice::new(path)) };
        let (old, new) = (device(from.as_ref()), device(to.as_ref()));
        let place = Unfinished::begin(new);
        let place = place.map_err(|error| error.in_context(to.as_ref().display()))?;
        repair_into((old, place), &Options::default(), progress).map_err(|error| {
            // Nothing of the old one is written.
            let is_of_new = error.kind() == ErrorKind::Full;
            let folder = if is_of_new { to.as_ref() } else { from.as_ref() };
            error.in_context(folder.display())
        })
    }

    /// The same from device to device. Of the options, the memory and the clock count.
    pub fn repair_device(
        (from, to): (Arc<dyn Device>, Arc<dyn Device>),
        options: &Options,
        progress: &mut Progress<'_>,
    ) -> Result<RepairReport> {
        repair_into((from, Unfinished::begin(to)?), options, progress)
    }
}

impl RepairReport {
    /// Whether the new database has all that the damaged one had, but for what is left out.
    pub fn is_complete(&self) -> bool {
        self.lost.is_empty()
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.document {
            Some(name) => write!(f, "document {name:?}")?,
            None => f.write_str("database")?,
        }
        if let Some(path) = &self.path {
            write!(f, ", {path}")?;
        }
        match (self.first, self.last) {
            (_, Revision(0)) => {}
            (first, last) if first == last => write!(f, ", revision {first}")?,
            (first, last) => write!(f, ", revisions {first} to {last}")?,
        }
        write!(f, ": {}", self.what)?;
        if self.values > 1 {
            write!(f, " ({})", self.values)?;
        }
        Ok(())
    }
}

/// A clock that is never before the commits that are to be written again.
#[derive(Debug)]
struct NotBefore(Arc<dyn Clock>, Micros);

impl Clock for NotBefore {
    fn now(&self) -> Micros {
        self.0.now().max(self.1)
    }
}

fn repair_into(
    (from, place): (Arc<dyn Device>, Arc<Unfinished>),
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<RepairReport> {
    let _no_writer = keep_writers_out(from.as_ref())?;
    let to = Arc::clone(&place) as Arc<dyn Device>;
    let report = repair((&from, &to), options, progress)?;
    place.finish()?;
    Ok(report)
}

fn repair(
    (from, to): (&Arc<dyn Device>, &Arc<dyn Device>),
    options: &Options,
    progress: &mut Progress<'_>,
) -> Result<RepairReport> {
    let reading = Options { read_only: true, background: false, ..options.clone() };
    let Salvaged { engine, damage, keys, trees, unfounded, commits, staged, newest } =
        salvage::open(from, to, reading)?;
    let writing = Options {
        create: true,
        read_only: false,
        clock: Arc::new(NotBefore(Arc::clone(&options.clock), newest)),
        ..options.clone()
    };
    let mut repair = Repair {
        engine: Arc::new(engine),
        // The copied cells, which it removes as unfinished, stay readable to who has them open.
        database: Database::open_device(Arc::clone(to), writing)?,
        keys,
        newest,
        report: RepairReport { damage, ..RepairReport::default() },
    };
    let documents = repair.documents(&trees)?;
    repair.series(&trees, &documents.iter().map(|(name, _)| name.as_str()).collect())?;
    let total = documents.iter().map(|(_, tree)| tree.data.read().rows.last()).sum();
    let mut done = 0;
    let mut step = |written| {
        done += written;
        match progress(RepairProgress { done, total }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(Error::new(ErrorKind::Cancelled, "the repair was stopped"))
            }
        }
    };
    for (name, tree) in documents {
        repair.document(&name, &tree, &mut step)?;
        if let Some((first, last)) = unfounded.get(&tree.id()) {
            repair.lose(
                Some(&name),
                (*first, *last),
                "revisions of which the ones before are lost",
            );
        }
    }
    for commits in commits {
        repair.lose(None, NO_REVISIONS, format!("whatever was changed by {commits}"));
    }
    if staged > 0 {
        let what = format!(
            "points of series on their way into a commit, {staged} at most: which of them became \
             commits that are lost, and what was written after them, is not known"
        );
        repair.lose(None, NO_REVISIONS, what);
    }
    if unfounded.contains_key(&CATALOGUE) {
        repair.lose(None, NO_REVISIONS, "the last changes of names, tags and options");
    }
    if unfounded.contains_key(&TreeId::SERIES) {
        repair.lose(None, NO_REVISIONS, "the last changes of what series there are");
    }
    repair.finish()
}

/// Of something that is not of revisions.
const NO_REVISIONS: (Revision, Revision) = (Revision(0), Revision(0));

/// A repair on its way.
struct Repair {
    /// What is left of the damaged database.
    engine: Arc<Engine>,
    /// The new one.
    database: Database,
    keys: Vec<LostKeys>,
    newest: Micros,
    report: RepairReport,
}

impl Repair {
    fn lose(
        &mut self,
        document: Option<&str>,
        (first, last): (Revision, Revision),
        what: impl Into<String>,
    ) {
        let values = if last.0 == 0 { 1 } else { last.0 - first.0 + 1 };
        let (document, what) = (document.map(str::to_owned), what.into());
        self.report.lost.push(Lost { document, path: None, first, last, values, what });
    }

    fn may_lack(&self, prefix: &[u8]) -> bool {
        self.keys.iter().any(|keys| keys.may_have(prefix))
    }

    /// The catalogue and its newest revision, if it can be read.
    fn catalogue(&self) -> Result<Option<(Arc<Tree>, u32)>> {
        let tree = readable(self.engine.view().tree(CATALOGUE))?;
        Ok(tree.map(|tree| {
            let head = short(Revision(tree.data.read().rows.last()));
            (tree, head)
        }))
    }

    /// The trees of documents in the order of their numbers, with their names. One whose name is
    /// lost is named after its number.
    fn documents(&mut self, trees: &BTreeSet<TreeId>) -> Result<Vec<(String, Arc<Tree>)>> {
        if self.may_lack(&CATALOGUE.0.to_be_bytes()) {
            self.lose(None, NO_REVISIONS, "some of what the catalogue said of names and tags");
        }
        let (mut names, entries) = match self.catalogue()? {
            Some((tree, head)) => (catalogue::names(&tree, head)?, catalogue::entries_made(&tree)),
            None => (Vec::new(), 0),
        };
        self.lose_without_trace(trees, (&names, entries));
        names.retain(|(_, name)| !name.is_free());
        names.sort_by_key(|(_, name)| name.tree);
        names.dedup_by_key(|(_, name)| name.tree);
        let known: BTreeSet<TreeId> = names.iter().map(|(_, name)| name.tree).collect();
        let taken: BTreeSet<String> = names.iter().map(|(name, _)| name.clone()).collect();
        let mut wanted: Vec<_> = names.into_iter().map(|(name, at)| (at.tree, name)).collect();
        for &tree in
            trees.difference(&known).filter(|&&tree| tree < TreeId::SERIES && tree != CATALOGUE)
        {
            wanted.push((tree, String::new()));
        }
        let mut documents = Vec::new();
        for (id, name) in wanted {
            let tree = readable(self.engine.view().tree(id))?;
            let has_revisions = tree.as_ref().is_some_and(|tree| tree.data.read().rows.last() > 0);
            let is_lost = !has_revisions && self.may_lack(&id.0.to_be_bytes());
            match tree {
                _ if name.is_empty() && !has_revisions => self.lose_unnamed((id.0, id.0)),
                Some(tree) if !is_lost => documents.push((self.name_of(id, name, &taken), tree)),
                _ => {
                    let name = self.name_of(id, name, &taken);
                    self.lose(Some(&name), NO_REVISIONS, "all of it");
                }
            }
        }
        Ok(documents)
    }

    /// Tells of documents of which nothing is left. Numbers are given one after the other, and a
    /// name keeps each, so that one below the highest known belonged to a document.
    fn lose_without_trace(
        &mut self,
        trees: &BTreeSet<TreeId>,
        (names, entries): (&[(String, Name)], u64),
    ) {
        let is_document = |id: &TreeId| *id < TreeId::SERIES && *id != CATALOGUE;
        let mut known: BTreeSet<u64> = names.iter().map(|(_, name)| name.tree.0).collect();
        known.extend(trees.iter().filter(|id| is_document(id)).map(|id| id.0));
        let numbered = names.iter().map(|(_, name)| name.own.0).chain([entries]);
        let end = numbered.chain(known.last().copied()).max().unwrap_or(0) + 1;
        let mut next = 1;
        for number in known.into_iter().chain([end]) {
            if number > next {
                self.lose_unnamed((next, number - 1));
            }
            next = number + 1;
        }
    }

    /// Tells that all is lost of documents from one number to another, and what they were called.
    fn lose_unnamed(&mut self, (first, last): (u64, u64)) {
        let what = if first == last {
            format!("document {first}: all of it, and its name")
        } else {
            format!("documents {first} to {last}: all of them, and their names")
        };
        let (document, path, values) = (None, None, last - first + 1);
        let (first, last) = NO_REVISIONS;
        self.report.lost.push(Lost { document, path, first, last, values, what });
    }

    fn name_of(&mut self, id: TreeId, name: String, taken: &BTreeSet<String>) -> String {
        if !name.is_empty() {
            return name;
        }
        let mut name = format!("salvaged-{}", id.0);
        // An earlier repair may have given that one.
        while taken.contains(&name) {
            name.push_str("-again");
        }
        self.lose(Some(&name), NO_REVISIONS, "the name of the document, and its tags and options");
        name
    }

    fn document(&mut self, name: &str, tree: &Arc<Tree>, step: &mut Step<'_>) -> Result<()> {
        let (document, unique, keep) = self.create(name, tree)?;
        let prefix = tree.id().0.to_be_bytes();
        let keys: Vec<_> =
            self.keys.iter().filter(|keys| keys.may_have(&prefix)).cloned().collect();
        let revisions =
            if keys.is_empty() { self.take_over(name, tree, step)? } else { Revision(0) };
        let last = Revision(tree.data.read().rows.last());
        // A history that was cut is numbered from 1 on, as in an export.
        let there = tree.kept().count_up_to(last.0);
        if revisions.0 < there {
            if self.may_lack(&cell_key::meta(tree.id())) {
                let what = format!("revisions after {last}, if there were any");
                self.lose(Some(name), NO_REVISIONS, what);
            }
            let losses = Losses::find(tree, keys)?;
            let (tree, database, newest) = (Arc::clone(tree), &self.database, self.newest);
            let first = revisions.next();
            let rewrite = Rewrite { tree, losses, name, database, newest, first };
            rewrite.run(step, &mut self.report.lost)?;
        }
        self.unique_indexes(&document, &unique)?;
        self.report.documents += 1;
        self.report.revisions += there;
        self.tags(&document, tree)?;
        if keep != Retention::All {
            document.retain(keep, &CommitOptions::default())?;
        }
        self.purges(&document, tree)
    }

    /// Makes the document, with its options but for the unique indexes and how much is kept, and
    /// these: nothing is to be let go before its tags are set.
    fn create(
        &mut self,
        name: &str,
        tree: &Tree,
    ) -> Result<(Document, Vec<IndexDefinition>, Retention)> {
        let declared = match self.catalogue()? {
            Some((catalogue, head)) => readable(facts::options(&catalogue, tree.id(), head))?,
            None => Some(None),
        };
        if declared.is_none() {
            self.lose(Some(name), NO_REVISIONS, "its options");
        }
        let declared = declared.flatten().unwrap_or_default();
        let keep = declared.keep;
        let (declared, unique) = declared.without_unique();
        let declared = DocumentOptions { keep: Retention::All, ..declared };
        let document = self.database.create_document_with(name, &declared)?;
        Ok((document, unique, keep))
    }

    /// Makes the unique indexes of a collection, once its records are there: what was lost may have
    /// told two of them apart, and a first revision that is loaded in bulk is not compared.
    fn unique_indexes(&mut self, document: &Document, unique: &[IndexDefinition]) -> Result<()> {
        for index in unique {
            match self.database.collection(document.name())?.create_index(index) {
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    let what = format!("the unique index {:?}: {error}", index.name);
                    self.lose(Some(document.name()), NO_REVISIONS, what);
                }
                made => made?,
            }
        }
        Ok(())
    }

    /// Takes over the history of a document that lacks nothing, as far as it can be read; the last
    /// revision taken.
    fn take_over(&self, name: &str, tree: &Arc<Tree>, step: &mut Step<'_>) -> Result<Revision> {
        let document = Document::new(Arc::clone(&self.engine), Arc::clone(tree), name);
        let Some(mut history) = readable(document.export())? else { return Ok(Revision(0)) };
        let mut import = self.database.import_history(name, Some(DURABILITY))?;
        let mut taken = Revision(0);
        while let Some(revision) = history.next() {
            let Some(revision) = readable(revision)? else { break };
            // Of those that can be read the rest is told.
            if history.lacks_departed() {
                break;
            }
            let pushed = if revision.long_texts() > 0 {
                piped(
                    |out| history.write_long(&revision, out),
                    |text| import.push_long(&revision, text, &mut |_| go_on(step)),
                )
            } else {
                import.push(&revision)
            };
            match pushed {
                // What cannot be taken over is written as far as it can be.
                Err(error) if matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Corrupt) => {
                    break;
                }
                pushed => pushed?,
            };
            taken = revision.revision;
            step(1)?;
        }
        Ok(taken)
    }

    /// Sets the tags of revisions that have the value they had.
    fn tags(&mut self, document: &Document, tree: &Tree) -> Result<()> {
        let Some((catalogue, head)) = self.catalogue()? else { return Ok(()) };
        let name = document.name();
        let Some(tags) = readable(facts::tags(&catalogue, tree.id(), head))? else {
            self.lose(Some(name), NO_REVISIONS, "its tags");
            return Ok(());
        };
        let kept = tree.kept();
        for tag in tags {
            let made = Revision(kept.count_up_to(tag.revision.0));
            let found = document.at(made).and_then(|at| at.content_hash());
            let is_known = tag.hash != OPEN_HASH;
            if found.is_err() || is_known && found.ok() != Some(tag.hash) {
                let revisions = (tag.revision, tag.revision);
                self.lose(Some(name), revisions, format!("the value of the tag {:?}", tag.name));
                continue;
            }
            let row = readable(catalogue.row(tag.set))?;
            let timestamp = tag.elsewhere.or(row.as_ref().map(|row| row.timestamp));
            let (author, message) = row.map_or((None, None), |row| (row.author, row.message));
            let tag = Tag {
                name: tag.name,
                revision: tag.revision,
                hash: tag.hash,
                timestamp: timestamp.unwrap_or_default(),
                author: author.map(Into::into),
                message: message.map(Into::into),
            };
            document.take_tag(&tag, made, Some(DURABILITY))?;
        }
        Ok(())
    }

    /// Remembers what was purged.
    fn purges(&mut self, document: &Document, tree: &Arc<Tree>) -> Result<()> {
        let old = Document::new(Arc::clone(&self.engine), Arc::clone(tree), document.name());
        let Some(purges) = readable(old.purges())? else {
            self.lose(Some(document.name()), NO_REVISIONS, "what was purged of it, and when");
            return Ok(());
        };
        for purge in purges {
            if purge.is_pending {
                let place = &purge.place;
                let what = format!("the purge of {place}, which was under way: purge it again");
                self.lose(Some(document.name()), NO_REVISIONS, what);
            } else {
                document.remember_purge(&purge, Some(DURABILITY))?;
            }
        }
        Ok(())
    }

    /// Makes the new database durable, verifies it and closes it.
    fn finish(self) -> Result<RepairReport> {
        self.database.flush()?;
        self.database.checkpoint()?;
        let found = self.database.check()?;
        if let Some(finding) = found.findings.first() {
            let message = format!("the repaired database: {}: {}", finding.place, finding.message);
            return Err(Error::new(ErrorKind::Internal, message));
        }
        self.database.close()?;
        Ok(self.report)
    }
}
