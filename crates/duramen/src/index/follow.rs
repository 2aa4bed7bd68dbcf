//! Has an index follow the records, revision by revision.
//!
//! What changed since is gathered into a batch of entries: of a revision the births first, then all
//! changes. Such a batch is sorted and becomes a run. It ends between two records, so that it takes
//! no more memory where they have many keys, or where a revision changed many of them.
//!
//! Invariants:
//! - with the last changes of a revision the watermark rises; entries of it may be there before,
//!   and whoever begins with it anew adds the same ones;
//! - what is known of an index counts births before the watermark rises, and changes with it;
//! - records are read while nothing but the right to follow is held; if something was erased
//!   meanwhile, what was read of them is thrown away.

use std::collections::VecDeque;
use std::ops::Range;

use crate::error::{ErrorKind, Result};
use crate::index::cell::{Entries, Facts, Slab};
use crate::index::columns::{self, Gathered, Keys};
use crate::index::keys::{Key, distinct, keys};
use crate::index::{Index, State};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::group::{Fault, GroupId, locate};
use crate::tree::history::short;
use crate::tree::schema::{ROOT, index_u32};
use crate::{PathId, Revision};

/// Records that are read under one lock; few in tests, so that a revision takes several steps.
const RECORDS_MAX: usize = if cfg!(test) { 4 } else { 1_024 };

/// Entries from which on a batch is full, and bytes of them.
const BATCH_ENTRIES: usize = if cfg!(test) { 8 } else { 16_384 };
const BATCH_BYTES: usize = 1 << 20;

/// Changed nodes and records that are looked at for one batch, so that a step takes a moment only
/// where they have nothing to do with the index.
const LOOKED_AT_MAX: usize = if cfg!(test) { 64 } else { 65_536 };

/// Nodes that change with a record, about: its fields and its version.
const NODES_PER_CHANGE: usize = 4;

/// What to do between two steps of following.
pub(crate) type Pause<'p> = dyn FnMut() -> Result<()> + 'p;

/// What some revisions changed, or a part of one.
struct Batch {
    entries: Entries,
    /// The facts with it.
    facts: Facts,
    /// Whether a new slab is to begin with the last revision.
    ends_slab: bool,
    /// What is left of the changes of a revision, if it ends in the middle of them.
    changing: Option<Changing>,
    /// Records that were looked at.
    looked: usize,
}

/// The changes of a revision, some of which were followed.
#[derive(Debug, Clone)]
pub(super) struct Changing {
    left: Left,
    /// What the facts count with those that were.
    counts: Counts,
}

/// How many entries are there, and how many of the newest slab are beside those at its start.
type Counts = (u64, u64);

/// Records whose changes are left to follow.
#[derive(Debug, Clone)]
enum Left {
    /// All up to the end: they went or came with the document.
    All(Range<u64>),
    These(VecDeque<u64>),
}

/// A record in a revision that changed it, and whether it was there before and is there after.
struct Change {
    ordinal: u64,
    revision: u32,
    was_there: bool,
    is_there: bool,
}

/// What an index has come to, and is to come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Followed {
    /// The revision up to which it has entries.
    pub(crate) revision: u32,
    /// Records that it has seen.
    pub(crate) records: u64,
    /// Entries that are there.
    pub(crate) alive: u64,
}

impl Index {
    /// Follows the records up to a revision, `pause` between steps.
    pub(crate) fn follow(&self, tree: &Tree, until: u32, pause: &mut Pause<'_>) -> Result<()> {
        while self.state(tree).facts.watermark < until {
            match self.step(tree, until) {
                // Revisions were dropped meanwhile: it begins anew with those that are kept.
                Err(error) if error.kind() == ErrorKind::NotFound && self.is_behind(tree) => {}
                done => done?,
            }
            pause()?;
        }
        Ok(())
    }

    /// About how much it would have to follow to be read at a revision: records that were born
    /// since, and revisions.
    #[cfg(test)]
    pub(crate) fn behind(&self, tree: &Tree, revision: u32) -> u64 {
        let state = self.state(tree);
        let revisions = revision.saturating_sub(state.facts.watermark);
        if revisions == 0 {
            return 0;
        }
        let births = tree.records_ever().saturating_sub(state.facts.ordinals);
        births + u64::from(revisions)
    }

    /// Whether it would have to follow more than so many changes to be read at a revision: records
    /// that were born since, and what revisions changed.
    pub(crate) fn is_far_behind(&self, tree: &Tree, revision: u32, most: u64) -> Result<bool> {
        let (mut watermark, mut ordinals) = {
            let state = self.state(tree);
            (state.facts.watermark, state.facts.ordinals)
        };
        if watermark >= revision {
            return Ok(false);
        }
        // Where revisions are not kept any more that it has not followed, it begins anew.
        let first = short(Revision(tree.first_revision()));
        if watermark + 1 < first {
            (watermark, ordinals) = (first - 1, 0);
        }
        let mut changes = tree.records_ever().saturating_sub(ordinals);
        for revision in watermark + 1..=revision {
            if changes > most {
                return Ok(true);
            }
            let nodes = tree.changed_count(Revision(revision.into()))?;
            changes += (nodes / NODES_PER_CHANGE).max(1) as u64;
        }
        Ok(changes > most)
    }

    /// How far it has followed.
    pub(crate) fn followed(&self, tree: &Tree) -> Followed {
        let state = self.state(tree);
        let Facts { watermark, ordinals, alive, .. } = state.facts;
        Followed { revision: watermark, records: ordinals, alive }
    }

    /// The first revision that can be read.
    pub(crate) fn first(&self, tree: &Tree) -> u32 {
        let state = self.state(tree);
        if state.facts.slabs.is_empty() {
            drop(state);
            return short(Revision(tree.first_revision()));
        }
        state.facts.first
    }

    /// Whether revisions that it has not followed are not kept any more.
    fn is_behind(&self, tree: &Tree) -> bool {
        let first = tree.first_revision();
        u64::from(self.state(tree).facts.watermark) < first
    }

    fn step(&self, tree: &Tree, until: u32) -> Result<()> {
        let _following = self.following.lock();
        let first = short(Revision(tree.first_revision()));
        let (facts, copying, changing, erasures) = {
            let mut state = self.state(tree);
            state.begin_if_behind(first);
            if state.facts.watermark >= until {
                return Ok(());
            }
            let (copying, changing) = (state.copying.clone(), state.changing.take());
            (state.facts.clone(), copying, changing, state.erasures)
        };
        if let Some(copying) = copying {
            self.copy(tree, &facts, copying)?;
        } else {
            let batch = self.gather(tree, (facts, changing), until)?;
            self.settle(tree, erasures, batch);
        }
        self.merge_runs(tree);
        Ok(())
    }

    /// Gathers what came after the watermark, until the batch is full or a slab ends.
    fn gather(
        &self,
        tree: &Tree,
        (facts, changing): (Facts, Option<Changing>),
        until: u32,
    ) -> Result<Batch> {
        let entries = Entries::default();
        let mut batch = Batch { entries, facts, ends_slab: false, changing, looked: 0 };
        let path = tree.data.read().schema.path(ROOT).entry;
        while batch.facts.watermark < until && !batch.is_full() {
            let revision = batch.facts.watermark + 1;
            let Some(path) = path else {
                batch.facts.rise(until);
                break;
            };
            let was_there = revision > batch.facts.first && tree.has_records(revision - 1)?;
            let is_there = tree.has_records(revision)?;
            let from = batch.facts.ordinals;
            let end = tree.born_until(path, from, revision)?.min(from + RECORDS_MAX as u64);
            if end > from {
                let born: Vec<u64> = (from..end).collect();
                let added = if is_there {
                    self.add_births(tree, &born, revision, &mut batch)?
                } else {
                    born.len()
                };
                batch.facts.ordinals = from + added as u64;
                continue;
            }
            if revision > batch.facts.first {
                self.add_changes(tree, path, (revision, was_there, is_there), &mut batch)?;
                if batch.changing.is_some() {
                    break;
                }
            }
            batch.facts.rise(revision);
            batch.ends_slab = batch.facts.is_slab_due();
            if batch.ends_slab {
                break;
            }
        }
        Ok(batch)
    }

    /// Puts what was gathered in place, unless something was erased.
    fn settle(&self, tree: &Tree, erasures: u64, batch: Batch) {
        let run = batch.entries.sorted();
        let mut state = self.state(tree);
        if state.erasures != erasures {
            return;
        }
        let slab = state.facts.slabs.last().map_or(0, |slab| slab.start);
        let bytes = state.add(slab, run);
        // A checkpoint may have forgotten slabs meanwhile.
        let known = std::mem::replace(&mut state.facts, batch.facts).slabs;
        let is_known = |slab: &Slab| known.iter().any(|known| known.start == slab.start);
        state.facts.slabs.retain(is_known);
        state.changing = batch.changing;
        state.is_dirty = true;
        if batch.ends_slab {
            state.begin_slab();
        }
        drop(state);
        tree.cells.memory().add_young(bytes);
    }

    /// Makes few runs of many; nobody waits for that.
    fn merge_runs(&self, tree: &Tree) {
        let due = {
            let state = self.state(tree);
            state.facts.slabs.last().and_then(|slab| state.young.merge_due(slab.start))
        };
        let Some(merge) = due else { return };
        let merged = merge.merged();
        self.state(tree).young.replace(&merge, merged);
    }

    /// The keys of records that were born in a revision, of as many as fit; how many those are.
    fn add_births(
        &self,
        tree: &Tree,
        born: &[u64],
        revision: u32,
        batch: &mut Batch,
    ) -> Result<usize> {
        let gathered = columns::gather(tree, &self.paths, born, revision)?;
        for (index, &ordinal) in born.iter().enumerate() {
            if batch.is_full() {
                return Ok(index);
            }
            batch.looked += 1;
            match gathered.get(index) {
                Gathered::Nothing => {}
                Gathered::Key(key) => batch.add((key, ordinal), revision, true),
                Gathered::Unsure => {
                    let change = Change { ordinal, revision, was_there: false, is_there: true };
                    self.add_change(tree, &change, batch)?;
                }
            }
        }
        Ok(born.len())
    }

    /// What a revision changed of the keys of records that were born before, of as many as fit: if
    /// some are left, the batch says so.
    fn add_changes(
        &self,
        tree: &Tree,
        path: PathId,
        (revision, was_there, is_there): (u32, bool, bool),
        batch: &mut Batch,
    ) -> Result<()> {
        let at = (revision, was_there, is_there);
        let before = batch.facts.counts();
        let mut left = match batch.changing.take() {
            Some(changing) => {
                batch.facts.set_counts(changing.counts);
                changing.left
            }
            None if was_there && is_there => {
                let changed = tree.changed(Revision(revision.into()))?;
                batch.looked += changed.len();
                Left::These(columns::concerned(tree, &changed, &self.paths)?.into())
            }
            None if was_there != is_there => Left::All(0..tree.born_until(path, 0, revision - 1)?),
            None => return Ok(()),
        };
        loop {
            let some = left.first();
            if some.is_empty() {
                return Ok(());
            }
            let added = if batch.is_full() { 0 } else { self.add_changed(tree, &some, at, batch)? };
            left.pass(added);
            if added < some.len() {
                batch.changing = Some(Changing { left, counts: batch.facts.counts() });
                batch.facts.set_counts(before);
                return Ok(());
            }
        }
    }

    /// The same of some records; of how many.
    fn add_changed(
        &self,
        tree: &Tree,
        changed: &[u64],
        (revision, was_there, is_there): (u32, bool, bool),
        batch: &mut Batch,
    ) -> Result<usize> {
        let gathered = |revision: u32, is_there: bool| {
            if !is_there {
                return Ok(Keys::default());
            }
            columns::gather(tree, &self.paths, changed, revision)
        };
        let (before, after) = (gathered(revision - 1, was_there)?, gathered(revision, is_there)?);
        for (index, &ordinal) in changed.iter().enumerate() {
            if batch.is_full() {
                return Ok(index);
            }
            batch.looked += 1;
            match (before.get(index), after.get(index)) {
                (Gathered::Unsure, _) | (_, Gathered::Unsure) => {
                    let change = Change { ordinal, revision, was_there, is_there };
                    self.add_change(tree, &change, batch)?;
                }
                (before, after) if before == after => {}
                (before, after) => {
                    if let Gathered::Key(key) = before {
                        batch.add((key, ordinal), revision, false);
                    }
                    if let Gathered::Key(key) = after {
                        batch.add((key, ordinal), revision, true);
                    }
                }
            }
        }
        Ok(changed.len())
    }

    /// The same of a record that columns do not tell of.
    fn add_change(&self, tree: &Tree, change: &Change, batch: &mut Batch) -> Result<()> {
        let Change { ordinal, revision, was_there, is_there } = *change;
        let keys = |revision: u32, is_there: bool| {
            if !is_there {
                return Ok(Vec::new());
            }
            keys(tree, &self.paths, (ordinal, revision)).map(distinct)
        };
        let (before, after) = (keys(revision - 1, was_there)?, keys(revision, is_there)?);
        let lacks = |keys: &[Key], key: &Key| {
            keys.binary_search_by(|other| other.bytes.cmp(&key.bytes)).is_err()
        };
        for lost in before.iter().filter(|key| lacks(&after, key)) {
            batch.add((&lost.bytes, ordinal), revision, false);
        }
        for got in after.iter().filter(|key| lacks(&before, key)) {
            batch.add((&got.bytes, ordinal), revision, true);
        }
        Ok(())
    }
}

/// Whether so many entries are enough for a run.
pub(super) fn is_full(entries: &Entries) -> bool {
    entries.len() >= BATCH_ENTRIES || entries.bytes() >= BATCH_BYTES
}

impl Batch {
    /// Whether it is long enough: in entries, or in what it took to find them.
    fn is_full(&self) -> bool {
        is_full(&self.entries) || self.looked >= LOOKED_AT_MAX
    }

    /// Adds what happened to a key of a record.
    fn add(&mut self, of: (&[u8], u64), revision: u32, begins: bool) {
        self.entries.add(of, revision, begins);
        let Facts { alive, events, .. } = &mut self.facts;
        *alive = if begins { *alive + 1 } else { alive.saturating_sub(1) };
        *events += 1;
    }
}

impl Left {
    /// The next ones, none at the end.
    fn first(&self) -> Vec<u64> {
        match self {
            Self::All(left) => left.clone().take(RECORDS_MAX).collect(),
            Self::These(left) => left.iter().copied().take(RECORDS_MAX).collect(),
        }
    }

    /// Goes past so many.
    fn pass(&mut self, count: usize) {
        match self {
            Self::All(left) => left.start += count as u64,
            Self::These(left) => drop(left.drain(..count)),
        }
    }
}

impl Facts {
    fn counts(&self) -> Counts {
        (self.alive, self.events)
    }

    fn set_counts(&mut self, (alive, events): Counts) {
        (self.alive, self.events) = (alive, events);
    }

    /// A revision was followed.
    fn rise(&mut self, revision: u32) {
        self.watermark = revision;
        if revision == self.first {
            self.events = 0;
            let alive = self.alive;
            self.slabs.iter_mut().for_each(|slab| slab.alive = alive);
        }
    }
}

impl State {
    /// Begins at the first kept revision where there is nothing yet, or where revisions that were
    /// not followed are not kept any more.
    fn begin_if_behind(&mut self, first: u32) {
        let Facts { first: begun, watermark, .. } = self.facts;
        let is_beginning = begun == first && watermark + 1 == first;
        if !self.facts.slabs.is_empty() && (watermark >= first || is_beginning) {
            return;
        }
        let slabs = vec![Slab { start: first, alive: 0 }];
        self.facts = Facts { first, watermark: first - 1, slabs, ..Facts::default() };
        (self.copying, self.changing) = (None, None);
        self.generation += 1;
    }
}

impl Tree {
    /// How many records there ever were.
    pub(crate) fn records_ever(&self) -> u64 {
        let data = self.data.read();
        let Some(path) = data.schema.path(ROOT).entry else { return 0 };
        data.spaces[data.schema.path(path).space.0 as usize].committed
    }

    /// Whether the document is there at a revision, and its records with it.
    fn has_records(&self, revision: u32) -> Result<bool> {
        self.read(|data| Ok(!data.state(node(ROOT, 0), revision)?.is_absent()))
    }

    /// The first ordinal, from one on, that was not given out up to a revision. They are given in
    /// the order of births, so it is found in steps that grow.
    pub(crate) fn born_until(&self, path: PathId, from: u64, revision: u32) -> Result<u64> {
        self.read(|data| {
            let space = data.schema.path(path).space;
            let end = data.spaces[space.0 as usize].committed;
            let is_born = |ordinal: u64| {
                if ordinal >= end {
                    return Ok(false);
                }
                let group = index_u32(locate(ordinal).0);
                // Whoever asks goes on to read columns.
                data.group_for_scan(GroupId { space, group })?;
                Ok::<_, Fault>(data.born(space, ordinal)?.is_some_and(|born| born <= revision))
            };
            // Most often all of them are.
            if end > from && is_born(end - 1)? {
                return Ok(end);
            }
            let (mut low, mut high, mut stride) = (from, from, 1);
            while is_born(high)? {
                low = high + 1;
                high += stride;
                stride *= 2;
            }
            while low < high {
                let middle = u64::midpoint(low, high);
                if is_born(middle)? {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            Ok(low)
        })
    }
}
