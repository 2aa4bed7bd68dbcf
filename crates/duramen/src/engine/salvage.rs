//! Opens what is left of a damaged database, to read from it as from a whole one.
//!
//! A segment that verifies is read as it is; what verifies of any other is copied into one beside
//! it. The journal is applied tree by tree, as far as a tree is what the record was made for.
//!
//! Invariants:
//! - the damaged database is not written;
//! - a tree that lacks cells takes a record only if its facts are those of its last checkpoint.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::check::Finding;
use crate::engine::compaction::progress::Progress;
use crate::engine::options::Options;
use crate::engine::place::absence;
use crate::engine::record::Facts;
use crate::engine::{Engine, View, staging};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, read_exact_at};
use crate::journal::salvage::{Cut, SalvagedJournal};
use crate::journal::{self, identity};
use crate::manifest::{self, Manifest};
use crate::memory::Memory;
use crate::repair::device::SalvageDevice;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::segment::salvage::{DamagedSegment, LostKeys, Part, numbers};
use crate::segment::{Encoding, Segment, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::series::changes::SeriesChanges;
use crate::staging::Columns;
use crate::store::Store;
use crate::tree::Tree;
use crate::tree::cell_key::{self, TreeId};
use crate::tree::delta::{self, Parts, skip};
use crate::tree::persist::{self, Cells, Meta};
use crate::tree::salvage::{Extents, readable, trees};
use crate::wire::Reader;

/// The number of the first segment of copied cells, far above those of a database.
pub(super) const COPIES: u64 = 1 << 63;

/// Where the id of the database stands in a manifest.
const ID_OFFSET: u64 = 40;

/// What is left of a database.
#[derive(Debug)]
pub(crate) struct Salvaged {
    pub(crate) engine: Engine,
    /// What does not verify.
    pub(crate) damage: Vec<Finding>,
    /// Between which keys cells are lost.
    pub(crate) keys: Vec<LostKeys>,
    /// Trees of which anything is left.
    pub(crate) trees: BTreeSet<TreeId>,
    /// Revisions of trees that the journal has, but not what they were made from.
    pub(crate) unfounded: BTreeMap<TreeId, (Revision, Revision)>,
    /// What is lost of the journal: which commits, in words.
    pub(crate) commits: Vec<String>,
    /// Staged points that were left out.
    pub(crate) staged: usize,
    /// The timestamp of the newest commit.
    pub(crate) newest: Micros,
}

/// What has been found so far.
struct Search {
    device: Arc<dyn Device>,
    copies: Arc<dyn Device>,
    database: Option<u128>,
    damage: Vec<Finding>,
    keys: Vec<LostKeys>,
    infos: Vec<SegmentInfo>,
    copied: u64,
    /// Trees whose facts had to be completed.
    incomplete: BTreeSet<TreeId>,
}

/// Opens what is left of the database on `original`; `copies` gets cells of damaged segments.
pub(crate) fn open(
    original: &Arc<dyn Device>,
    copies: &Arc<dyn Device>,
    options: Options,
) -> Result<Salvaged> {
    let device = SalvageDevice { original: Arc::clone(original), copies: Arc::clone(copies) };
    let mut search = Search {
        device: Arc::new(device),
        copies: Arc::clone(copies),
        database: None,
        damage: Vec::new(),
        keys: Vec::new(),
        infos: Vec::new(),
        copied: 0,
        incomplete: BTreeSet::new(),
    };
    let manifest = search.manifest()?;
    let manifest = match manifest {
        Some(manifest) => search.unless_stale(manifest)?,
        None => None,
    };
    search.segments(manifest.as_ref())?;
    let journal = search.journal()?;
    let begins = manifest.as_ref().map(|manifest| manifest.checkpoint.position.file);
    let cut = journal.cut(begins);
    let mut manifest =
        manifest.unwrap_or_else(|| Manifest::new(search.database.unwrap_or(0), Micros(0)));
    if search.infos.is_empty() && journal.is_empty() {
        let absence = absence(original);
        if absence.kind() == ErrorKind::NotFound && !search.has_manifest() {
            return Err(absence);
        }
        let message = "nothing of a database verifies here: check the path, or restore a backup";
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    let memory = Memory::new(options.memory_bytes);
    let store = search.store(&mut manifest, &memory)?;
    search.complete(&store)?;
    let store = search.store(&mut manifest, &memory)?;
    search.replay((&journal, cut), (manifest, store), options)
}

impl Search {
    fn add(&mut self, place: impl Into<String>, message: impl std::fmt::Display) {
        self.damage.push(Finding { place: place.into(), message: message.to_string() });
    }

    fn has_manifest(&self) -> bool {
        self.device.open(manifest::PATH, Access::Read).is_ok()
    }

    fn manifest(&mut self) -> Result<Option<Manifest>> {
        let loaded = match Manifest::load(self.device.as_ref()) {
            Err(error) if error.kind() == ErrorKind::Corrupt => Err(error.to_string()),
            loaded => loaded?.ok_or_else(|| "there is none".to_owned()),
        };
        match loaded {
            Ok(manifest) => {
                self.database = Some(manifest.database_id);
                Ok(Some(manifest))
            }
            Err(message) => {
                self.add(manifest::PATH, message);
                Ok(None)
            }
        }
    }

    /// The manifest, unless it is an older one: something that it names is gone, and of segments
    /// that it does not name one has later commits, or the cells of what is gone. What is there is
    /// read as without it then.
    fn unless_stale(&mut self, manifest: Manifest) -> Result<Option<Manifest>> {
        let is_gone = |path: &str| {
            let opened = self.device.open(path, Access::Read);
            opened.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        };
        let (gone, there): (Vec<&SegmentInfo>, Vec<&SegmentInfo>) =
            manifest.segments.iter().partition(|info| is_gone(&info.path()));
        let journal = Some(journal::path(manifest.checkpoint.position.file));
        let first = gone.first().map(|info| info.path());
        let Some(first) = first.or(journal.filter(|path| is_gone(path))) else {
            return Ok(Some(manifest));
        };
        let newer = self.unnamed(&manifest)?;
        let has_cells_of =
            |gone: &SegmentInfo| newer.iter().any(|info| is_merged_into(gone, info, &there));
        let is_used = |info: &&SegmentInfo| {
            let has_gone = || gone.iter().any(|gone| is_merged_into(gone, info, &there));
            info.last_sequence > manifest.checkpoint.sequence || has_gone()
        };
        let Some(used) = newer.iter().find(is_used) else { return Ok(Some(manifest)) };
        let lost: Vec<_> = gone.into_iter().filter(|gone| !has_cells_of(gone)).collect();
        let used = used.path();
        self.add(
            manifest::PATH,
            format!(
                "it names {first}, which is gone, and not {used}, which verifies: so it is an \
                 older one, and the segments that are there are read without it"
            ),
        );
        for info in lost {
            let message = "the manifest names it, and it is gone: so may be what it had";
            self.add(info.path(), message);
            self.keys.push(LostKeys { low: Vec::new(), high: None });
        }
        Ok(None)
    }

    /// The segments of this database that a manifest does not name, as far as their footers verify:
    /// what is being merged or loaded has none.
    fn unnamed(&self, manifest: &Manifest) -> Result<Vec<SegmentInfo>> {
        let is_named = |number| manifest.segments.iter().any(|info| info.number == number);
        let mut found = Vec::new();
        for number in numbers(self.device.as_ref())? {
            let segment = DamagedSegment::open(self.device.as_ref(), number)?;
            if !is_named(number) && segment.database() == Some(manifest.database_id) {
                found.extend(segment.info());
            }
        }
        Ok(found)
    }

    /// Takes the segments of the manifest; without one every segment file, newest first.
    fn segments(&mut self, manifest: Option<&Manifest>) -> Result<()> {
        if let Some(manifest) = manifest {
            for info in &manifest.segments {
                self.segment(info.number, Some(*info))?;
            }
            return Ok(());
        }
        // What a merge has made so far is in the segments that it merges.
        let merge = Progress::load(self.device.as_ref())?.map(|merge| merge.segment);
        let mut found = Vec::new();
        for number in numbers(self.device.as_ref())? {
            let damaged = DamagedSegment::open(self.device.as_ref(), number)?;
            if merge == Some(number) && damaged.info().is_none() {
                continue;
            }
            self.database = self.database.or_else(|| damaged.database());
            found.push((number, damaged.info()));
        }
        found.sort_unstable_by_key(|&(number, _)| Reverse(number));
        if found.iter().all(|(_, info)| info.is_some()) {
            // A merged one is newer than what it was made of, which may still be there.
            found.sort_by_key(|(_, info)| info.as_ref().map(|info| Reverse(info.last_sequence)));
        }
        for (number, info) in found {
            self.segment(number, info)?;
        }
        Ok(())
    }

    /// Takes a segment as it is if it verifies, else what verifies of it.
    fn segment(&mut self, number: u64, info: Option<SegmentInfo>) -> Result<()> {
        let findings = match info.map(|info| Segment::open(self.device.as_ref(), &info)) {
            Some(Ok(segment)) => segment.check(&mut |_, _| Ok(())),
            Some(Err(error)) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Some(Err(error)) => vec![error],
            None => {
                let message = "its footer does not verify: its cells are looked for one by one";
                vec![Error::new(ErrorKind::Corrupt, message)]
            }
        };
        if let (true, Some(info)) = (findings.is_empty(), info) {
            self.infos.push(info);
            return Ok(());
        }
        let path = crate::segment::path(number);
        for error in &findings {
            self.add(&path, error);
        }
        let damaged = match DamagedSegment::open(self.device.as_ref(), number) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.keys.push(LostKeys { low: Vec::new(), high: None });
                return Ok(());
            }
            opened => opened?,
        };
        let copied = self.copy(&damaged, info.or_else(|| damaged.info()))?;
        self.infos.extend(copied);
        Ok(())
    }

    /// Copies the cells that verify into a segment of their own; none if none do.
    fn copy(
        &mut self,
        damaged: &DamagedSegment,
        info: Option<SegmentInfo>,
    ) -> Result<Option<SegmentInfo>> {
        let mut writer = None;
        let (copies, number) = (Arc::clone(&self.copies), self.next_copy());
        let keys = &mut self.keys;
        damaged.salvage(&mut |part| {
            let cells = match part {
                Part::Lost(lost) => {
                    keys.push(lost);
                    return Ok(());
                }
                Part::Cells(cells) => cells,
            };
            if writer.is_none() {
                writer = Some(SegmentWriter::create(&copies, number, meta(info))?);
            }
            let Some(writer) = &mut writer else { return Ok(()) };
            (0..cells.len()).try_for_each(|slot| writer.push(&cells.key(slot), &cells.cell(slot)))
        })?;
        writer.map(SegmentWriter::finish).transpose()
    }

    fn next_copy(&mut self) -> u64 {
        self.copied += 1;
        COPIES + self.copied
    }

    /// The journal under the id of the database, worked out from it if nothing else tells it.
    fn journal(&mut self) -> Result<SalvagedJournal> {
        if let Some(database) = self.database {
            return SalvagedJournal::read(&self.device, database);
        }
        // Nothing verifies under a wrong id, so a damaged manifest may be asked.
        let told = self.id_of_damaged_manifest().unwrap_or(0);
        let journal = SalvagedJournal::read(&self.device, told)?;
        let worked_out = if journal.is_empty() { identity::find(&self.device)? } else { None };
        let (id, journal) = worked_out.unwrap_or((told, journal));
        if journal.is_empty() {
            self.add("journal", "no commit verifies");
        }
        self.database = Some(id);
        Ok(journal)
    }

    fn id_of_damaged_manifest(&self) -> Option<u128> {
        let file = self.device.open(manifest::PATH, Access::Read).ok()?;
        let mut bytes = [0; size_of::<u128>()];
        read_exact_at(file.as_ref(), &mut bytes, ID_OFFSET).ok()?;
        Some(u128::from_le_bytes(bytes))
    }

    fn store(&self, manifest: &mut Manifest, memory: &Arc<Memory>) -> Result<Arc<Store>> {
        manifest.segments.clone_from(&self.infos);
        Store::open(&self.device, manifest, memory).map(Arc::new)
    }

    /// Adds a segment of what trees that lack cells must have to be opened: facts that know of
    /// every cell that is left, and a birth for every slot.
    fn complete(&mut self, store: &Arc<Store>) -> Result<()> {
        let live = store.live();
        let mut cells = Cells::new();
        for tree in trees(&live)? {
            if !self.keys.iter().any(|keys| keys.may_have(&tree.0.to_be_bytes())) {
                continue;
            }
            let Some(cell) = live.get(&cell_key::meta(tree))? else { continue };
            let Some(meta) = readable(Meta::decode(&cell))? else { continue };
            let extents = Extents::of(&live, tree)?;
            if let Some(meta) = extents.complete(&meta) {
                cells.push((cell_key::meta(tree), meta.encode()));
                self.incomplete.insert(tree);
            }
            if let Some(Some((tree, _))) = readable(persist::open(tree, store, |_| None))? {
                extents.complete_births(&tree, &mut cells);
            }
        }
        if cells.is_empty() {
            return Ok(());
        }
        cells.sort_unstable();
        let number = self.next_copy();
        let mut writer = SegmentWriter::create(&self.copies, number, meta(None))?;
        cells.iter().try_for_each(|(key, cell)| writer.push(key, cell))?;
        self.infos.insert(0, writer.finish()?);
        Ok(())
    }

    fn replay(
        mut self,
        (journal, cut): (&SalvagedJournal, Option<Cut>),
        (manifest, store): (Manifest, Arc<Store>),
        options: Options,
    ) -> Result<Salvaged> {
        let mut trees: BTreeSet<TreeId> = trees(&store.live())?.into_iter().collect();
        let mut view = View::new(store);
        let in_segments = self.infos.iter().map(|info| info.last_sequence).max();
        let known = manifest.checkpoint.sequence.max(in_segments.unwrap_or_default());
        let mut replay = Replay {
            view: &view,
            closed: std::mem::take(&mut self.incomplete),
            unfounded: BTreeMap::new(),
            newest: manifest.checkpoint.timestamp,
            last: known,
            undecoded: Vec::new(),
            touched: BTreeSet::new(),
        };
        let missing = journal.replay(known, &mut |sequence, committed, body| {
            replay.commit((sequence, committed), body)
        })?;
        let Replay { unfounded, newest, last, undecoded, touched, .. } = replay;
        trees.extend(touched);
        let mut commits = Vec::new();
        for gap in missing {
            let (of, offset) = (gap.commits(), gap.position.offset);
            let message = format!("offset {offset}: expected {of}, found nothing that verifies");
            self.add(gap.file(), message);
            commits.push(of);
        }
        for sequence in undecoded {
            self.add("journal", format!("commit {sequence} cannot be decoded"));
            commits.push(format!("commit {sequence}"));
        }
        if let Some(Cut { file, found }) = cut {
            self.add(file, found);
            commits.push(format!("commits after {last}, if there were any"));
        }
        let is_told = commits.is_empty() && self.is_checkpoint_told();
        let (staged, newest) =
            self.commit_staged(&view, (known, is_told), (last, newest), &options)?;
        view.fixed = Some(CommitSequence(u64::MAX));
        let engine =
            Engine::assemble((self.device, options), (None, None), (view, manifest), false);
        let (damage, keys) = (self.damage, self.keys);
        Ok(Salvaged { engine, damage, keys, trees, unfounded, commits, staged, newest })
    }

    /// Whether it is certain what the last checkpoint was: the manifest says it, or, without one,
    /// segments that are all whole.
    fn is_checkpoint_told(&self) -> bool {
        let is_manifest = |finding: &Finding| finding.place == manifest::PATH;
        !self.damage.iter().any(is_manifest) || self.damage.iter().all(is_manifest)
    }

    /// Makes what a killed process had staged one more commit, as the next process to write would
    /// have. Where it is not told what of it became commits already, nothing is taken: it would
    /// stand over what came later. How many points were left out, and when the last commit was.
    fn commit_staged(
        &self,
        view: &View,
        (checkpoint, is_told): (CommitSequence, bool),
        (last, newest): (CommitSequence, Micros),
        options: &Options,
    ) -> Result<(usize, Micros)> {
        let Some(database) = self.database else { return Ok((0, newest)) };
        let seals = |stripe| view.series.last_seal(stripe);
        let points = staging::recover(self.device.as_ref(), (database, checkpoint), &seals)?;
        if points.is_empty() {
            return Ok((0, newest));
        }
        let mut changes = SeriesChanges::default();
        let columns = readable(Columns::of(&points))?.filter(|_| is_told);
        let added = columns.map(|columns| readable(columns.add_to(&mut changes))).transpose()?;
        if added.flatten().is_none() {
            return Ok((points.len(), newest));
        }
        let newest = options.clock.now().max(Micros(newest.0.saturating_add(1)));
        view.series.stage(&changes.settled()?, (last.next(), newest));
        Ok((0, newest))
    }
}

/// Whether a segment that is gone was merged into `merged`, as far as their commits tell. What a
/// merge takes in follows each other in age, so of one in its midst nothing else comes of it; the
/// newest may be one of several with the same last commit.
fn is_merged_into(gone: &SegmentInfo, merged: &SegmentInfo, there: &[&SegmentInfo]) -> bool {
    let is_within = merged.number > gone.number
        && merged.first_sequence <= gone.first_sequence
        && gone.last_sequence <= merged.last_sequence;
    let has_twin = || there.iter().any(|info| info.last_sequence == gone.last_sequence);
    is_within && (gone.last_sequence < merged.last_sequence || !has_twin())
}

/// Applies commits as far as their trees allow.
struct Replay<'v> {
    view: &'v View,
    /// Trees that take no more records.
    closed: BTreeSet<TreeId>,
    unfounded: BTreeMap<TreeId, (Revision, Revision)>,
    newest: Micros,
    /// The last commit that is there.
    last: CommitSequence,
    undecoded: Vec<CommitSequence>,
    touched: BTreeSet<TreeId>,
}

impl Replay<'_> {
    fn commit(&mut self, at: (CommitSequence, Micros), body: &[u8]) -> Result<()> {
        self.newest = self.newest.max(at.1);
        self.last = self.last.max(at.0);
        if readable(self.apply(at, body))?.is_none() {
            self.undecoded.push(at.0);
        }
        Ok(())
    }

    fn apply(&mut self, at: (CommitSequence, Micros), body: &[u8]) -> Result<()> {
        let mut reader = Reader::new(body);
        let (facts, behind) = Facts::decode(&mut reader)?;
        for _ in 0..reader.count()? {
            let (id, revision) = (TreeId(reader.varint()?), Revision(reader.varint()?));
            self.touched.insert(id);
            let mut delta = reader.clone();
            skip::skip(&mut reader)?;
            let Some(tree) = readable(self.view.tree(id))? else {
                self.note(id, revision);
                continue;
            };
            let last = tree.data.read().rows.last();
            if revision.0 <= last {
                continue;
            }
            let follows = revision.0 == last + 1 && !self.closed.contains(&id);
            if !follows || !apply_delta(&tree, &mut delta, (&facts, revision, at))? {
                self.closed.insert(id);
                self.note(id, revision);
            }
        }
        behind.replay(self.view, at, &mut reader)
    }

    fn note(&mut self, tree: TreeId, revision: Revision) {
        let (first, last) = self.unfounded.entry(tree).or_insert((revision, revision));
        (*first, *last) = ((*first).min(revision), (*last).max(revision));
    }
}

/// Whether a delta could be applied; if not, nothing of it is seen.
fn apply_delta(
    tree: &Tree,
    delta: &mut Reader<'_>,
    (facts, revision, (sequence, committed)): (&Facts, Revision, (CommitSequence, Micros)),
) -> Result<bool> {
    let mut data = tree.data.write();
    let mut parts = Parts { data: &mut data, orders: &tree.orders, blobs: &tree.blobs };
    let Some(changed) = readable(delta::apply(&mut parts, delta))? else {
        data.rollback();
        tree.orders.rollback();
        tree.blobs.rollback();
        return Ok(false);
    };
    data.commit_replayed(&facts.row((tree.id(), revision), sequence, committed), &changed);
    tree.orders.commit_staged();
    tree.blobs.commit_staged();
    Ok(true)
}

fn meta(info: Option<SegmentInfo>) -> SegmentMeta {
    let first = info.map_or(CommitSequence(0), |info| info.first_sequence);
    let last = info.map_or(CommitSequence(0), |info| info.last_sequence);
    SegmentMeta {
        database_id: 0,
        epoch: 0,
        level: info.map_or(0, |info| info.level),
        encoding: info.map_or(Encoding::Warm, |info| info.encoding),
        first_sequence: first,
        last_sequence: last,
    }
}
