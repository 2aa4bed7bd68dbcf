//! Has an index follow the records, revision by revision.
//!
//! Invariants:
//! - of a revision the births come first, in batches; then all changes at once, and with them the
//!   watermark rises;
//! - records are read while nothing but the right to follow is held; if something was erased
//!   meanwhile, what was read of them is thrown away.

use crate::error::{ErrorKind, Result};
use crate::index::cell::{self, Facts, Slab};
use crate::index::keys::{Key, distinct, keys};
use crate::index::{Index, State};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::schema::ROOT;
use crate::{PathId, Revision};

/// Records that are born read at once; few in tests, so that a revision takes several steps.
const BORN_MAX: u64 = if cfg!(test) { 4 } else { 1_024 };

/// What to do between two steps of following.
pub(crate) type Pause<'p> = dyn FnMut() -> Result<()> + 'p;

/// Keys that records got or lost.
type Events = Vec<(Key, u64, bool)>;

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
        let (facts, copying, erasures) = {
            let mut state = self.state(tree);
            state.begin_if_behind(first);
            (state.facts.clone(), state.copying.clone(), state.erasures)
        };
        if facts.watermark >= until {
            return Ok(());
        }
        if let Some(copying) = copying {
            return self.copy(tree, &facts, copying);
        }
        let revision = facts.watermark + 1;
        let entries = tree.data.read().schema.path(ROOT).entry;
        let mut born = (facts.ordinals, Events::new());
        if let Some(path) = entries {
            born = self.births(tree, path, (facts.ordinals, revision))?;
        }
        if born.0 > facts.ordinals {
            self.settle(tree, erasures, born.1, |state| state.facts.ordinals = born.0);
            return Ok(());
        }
        let changes = match entries {
            Some(path) if revision > facts.first => self.changes(tree, path, revision)?,
            _ => Events::new(),
        };
        self.settle(tree, erasures, changes, |state| {
            state.facts.watermark = revision;
            if revision == state.facts.first {
                let alive = state.facts.alive;
                state.facts.events = 0;
                state.facts.slabs.iter_mut().for_each(|slab| slab.alive = alive);
            }
            state.begin_slab_if_due();
        });
        Ok(())
    }

    /// Puts what was read in place, and `then` what goes with it, unless something was erased.
    fn settle(&self, tree: &Tree, erasures: u64, events: Events, then: impl FnOnce(&mut State)) {
        let mut bytes = 0;
        let mut state = self.state(tree);
        if state.erasures != erasures {
            return;
        }
        // Births of the next revision come while the watermark is still before it.
        let revision = state.facts.watermark + 1;
        let slab = state.facts.slabs.last().map_or(0, |slab| slab.start);
        state.facts.events += events.len() as u64;
        for (key, ordinal, begins) in events {
            let alive = state.facts.alive;
            state.facts.alive = if begins { alive + 1 } else { alive.saturating_sub(1) };
            bytes += state.insert(slab, (cell::entry(&key.bytes, ordinal, revision), begins));
        }
        then(&mut state);
        state.is_dirty = true;
        drop(state);
        tree.cells.memory().add_young(bytes);
    }

    /// The keys of some more records that were born up to a revision, and the ordinal after them.
    fn births(
        &self,
        tree: &Tree,
        path: PathId,
        (from, revision): (u64, u32),
    ) -> Result<(u64, Events)> {
        let mut events = Events::new();
        let mut ordinal = from;
        let is_there = tree.has_records(revision)?;
        while ordinal < from + BORN_MAX && tree.is_born(path, ordinal, revision)? {
            if is_there {
                let keys = distinct(keys(tree, &self.paths, (ordinal, revision))?);
                events.extend(keys.into_iter().map(|key| (key, ordinal, true)));
            }
            ordinal += 1;
        }
        Ok((ordinal, events))
    }

    /// What a revision changed of the keys of records that were born before.
    fn changes(&self, tree: &Tree, path: PathId, revision: u32) -> Result<Events> {
        let changed = tree.changed(Revision(revision.into()))?;
        let was_there = tree.has_records(revision - 1)?;
        let is_there = tree.has_records(revision)?;
        let mut events = Events::new();
        let mut change = |ordinal: u64| -> Result<()> {
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
            let lost = before.iter().filter(|key| lacks(&after, key));
            events.extend(lost.map(|key| (key.clone(), ordinal, false)));
            let got = after.iter().filter(|key| lacks(&before, key));
            events.extend(got.map(|key| (key.clone(), ordinal, true)));
            Ok(())
        };
        if was_there == is_there {
            tree.records_of(&changed, path)?.into_iter().try_for_each(&mut change)?;
        } else {
            // All of them went or came with the document.
            let mut ordinal = 0;
            while tree.is_born(path, ordinal, revision - 1)? {
                change(ordinal)?;
                ordinal += 1;
            }
        }
        Ok(events)
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
        self.copying = None;
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

    /// Whether an ordinal was given out up to a revision.
    fn is_born(&self, path: PathId, ordinal: u64, revision: u32) -> Result<bool> {
        self.read(|data| {
            let space = data.schema.path(path).space;
            if ordinal >= data.spaces[space.0 as usize].committed {
                return Ok(false);
            }
            Ok(data.born(space, ordinal)?.is_some_and(|born| born <= revision))
        })
    }
}
