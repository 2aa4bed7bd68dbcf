//! What a compaction is to drop, by the retention of the documents.
//!
//! Invariants:
//! - a revision is refused to readers before a compaction drops anything of it, and until that
//!   has been installed or given up;
//! - no tag is set to a revision while it is being decided which are kept: if the catalogue changed
//!   meanwhile, it is decided anew;
//! - what departed is dropped in the moment in which nobody writes the tree, and only if nothing of
//!   it has come back: whoever brings something back compares it with what it last was.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::engine::catalogue::facts;
use crate::engine::{CATALOGUE, Engine};
use crate::error::Result;
use crate::retention::Retention;
use crate::revision::{CommitSequence, Revision};
use crate::sync;
use crate::tree::cell_key::TreeId;
use crate::tree::departed::Departed;
use crate::tree::history::short;
use crate::tree::kept::Kept;
use crate::tree::merge::IndexIds;
use crate::tree::{PassingTurn, Tree};
use crate::wire::{Reader, put_bytes, put_varint};

/// How often it is decided anew what to keep before nothing is dropped this time.
const TRIES: usize = 4;

/// What a compaction keeps of the trees that have revisions to drop. Until it is dropped as done,
/// dropping it gives everything back to the readers.
#[derive(Debug, Default)]
pub(crate) struct Trimming {
    trees: Vec<Trimmed>,
}

/// What of that which has departed is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Departing {
    Nothing,
    /// What is in documents that are deleted: hardly anybody brings these back just then.
    Deleted,
    All,
}

/// What a merge that was interrupted was to drop of a tree.
#[derive(Debug)]
struct Noted {
    tree: TreeId,
    kept: Kept,
}

/// A tree that stays in memory as long as it is trimmed.
#[derive(Debug)]
struct Trimmed {
    tree: Arc<Tree>,
    before: Kept,
    kept: Kept,
    /// What has departed from it, if that is dropped, and the revision up to which nothing of it
    /// has come back.
    departed: Option<(Arc<Departed>, Revision)>,
}

impl Trimming {
    pub(crate) fn is_empty(&self) -> bool {
        self.trees.is_empty()
    }

    /// What is kept of each tree.
    pub(crate) fn kept(&self) -> FxHashMap<TreeId, Kept> {
        self.trees.iter().map(|trimmed| (trimmed.tree.id(), trimmed.kept.clone())).collect()
    }

    /// Works out what has departed from the trees, which is dropped as well. Trees of which nothing
    /// is dropped after all are left alone.
    pub(super) fn find_departed(&mut self, departing: Departing) -> Result<()> {
        for Trimmed { tree, kept, departed, .. } in &mut self.trees {
            let found = match departing {
                Departing::Nothing => None,
                Departing::Deleted => Departed::deleted(tree, kept)?,
                Departing::All => Some(Departed::find(tree, kept)?),
            };
            *departed = found.map(|found| {
                let until = found.until;
                (Arc::new(found), until)
            });
        }
        self.trees.retain(|Trimmed { before, kept, departed, .. }| {
            kept != before || departed.as_ref().is_some_and(|(departed, _)| !departed.is_empty())
        });
        Ok(())
    }

    /// What has departed from each tree, where that is dropped.
    pub(crate) fn departed(&self) -> FxHashMap<TreeId, Arc<Departed>> {
        let departed = self.trees.iter().filter_map(|trimmed| trimmed.departed.as_ref());
        departed.map(|(departed, _)| (departed.tree.id(), Arc::clone(departed))).collect()
    }

    /// What is dropped, as a merge notes it: of each tree what is kept and, if something departs,
    /// the revision up to which it is known what does.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut trees: Vec<_> = self.trees.iter().collect();
        trees.sort_unstable_by_key(|trimmed| trimmed.tree.id());
        let mut bytes = Vec::new();
        for Trimmed { tree, kept, departed, .. } in trees {
            put_varint(&mut bytes, tree.id().0);
            put_bytes(&mut bytes, &kept.encode());
            put_varint(&mut bytes, departed.as_ref().map_or(0, |(departed, _)| departed.until.0));
        }
        bytes
    }

    /// Keeps what was noted, and drops nothing of other trees. False if that drops anything which
    /// is to be kept now: then it is to be given up.
    fn keep_as_noted(&mut self, noted: &[Noted]) -> bool {
        let noted_of = |tree: &Tree| noted.iter().find(|noted| noted.tree == tree.id());
        self.trees.retain_mut(|Trimmed { tree, before, kept, .. }| {
            let noted = noted_of(tree).filter(|noted| kept.is_within(&noted.kept));
            let stays = noted.map(|noted| noted.kept.clone());
            *kept = stays.clone().unwrap_or_else(|| before.clone());
            tree.data.write().kept = kept.clone();
            stays.is_some()
        });
        self.trees.len() == noted.len()
    }

    /// The turns of the trees of which something departed is dropped, so that nothing of it comes
    /// back; none if something has, or if somebody keeps such a turn.
    pub(super) fn close(&mut self, wait_ms: u64) -> Result<Option<Vec<PassingTurn>>> {
        let mut trees: Vec<_> = self.departed().into_values().collect();
        // Most of the commits are gone through before anybody has to wait.
        if self.comes_back()? {
            return Ok(None);
        }
        trees.sort_unstable_by_key(|departed| departed.tree.id());
        // None of them is kept while another one is waited for: who has that may wait for this one.
        let pauses_max = if cfg!(shuttle) { 0 } else { wait_ms };
        let turns = (0..=pauses_max).find_map(|pauses| {
            if pauses > 0 {
                sync::pause();
            }
            let turns = trees.iter().map(|departed| departed.tree.passing_turn());
            turns.collect::<Option<Vec<_>>>()
        });
        let Some(turns) = turns else { return Ok(None) };
        Ok((!self.comes_back()?).then_some(turns))
    }

    /// Whether something that departed has come back.
    fn comes_back(&mut self) -> Result<bool> {
        let departed = self.trees.iter_mut().filter_map(|trimmed| trimmed.departed.as_mut());
        for (departed, until) in departed {
            let (comes_back, last) = departed.comes_back(*until)?;
            if comes_back {
                return Ok(true);
            }
            *until = last;
        }
        Ok(false)
    }

    /// What is to be dropped has been.
    pub(crate) fn finish(mut self) {
        for Trimmed { tree, kept, .. } in self.trees.drain(..) {
            tree.data.write().kept_on_disk = kept;
        }
    }

    fn add(&mut self, tree: Arc<Tree>, kept: Kept) {
        let before = std::mem::replace(&mut tree.data.write().kept, kept.clone());
        self.trees.push(Trimmed { tree, before, kept, departed: None });
    }
}

impl Drop for Trimming {
    fn drop(&mut self) {
        for Trimmed { tree, before, .. } in self.trees.drain(..) {
            tree.data.write().kept = before;
        }
    }
}

impl Engine {
    /// What a compaction of everything that is in segments now is to drop: nothing if somebody
    /// changes the catalogue for longer than so many milliseconds, or again and again. With the
    /// trees of which only something may have departed, if all of that is to go.
    pub(super) fn trimming(&self, wait_ms: u64, departing: Departing) -> Result<Trimming> {
        for _ in 0..TRIES {
            let catalogue = self.view().tree(CATALOGUE)?;
            let before = state_of(&catalogue);
            let trimming = self.decide(&catalogue, departing)?;
            if trimming.is_empty() {
                return Ok(trimming);
            }
            // Who sets a tag has this turn while he makes sure that its revision is kept: if he has
            // it now, or has had it, that may have been before it was refused. It is looked at and
            // not taken: an edit that comes to the catalogue last does not wait for its turn.
            if !catalogue.is_turn_free(wait_ms) {
                break;
            }
            if state_of(&catalogue) == before {
                return Ok(trimming);
            }
        }
        Ok(Trimming::default())
    }

    /// What a merge in the background noted that it drops, if that may still be dropped, and
    /// nothing has come back of what departed.
    pub(super) fn trimming_again(&self, noted: &[u8]) -> Result<Option<Trimming>> {
        if noted.is_empty() {
            return Ok(Some(Trimming::default()));
        }
        let mut trimming = self.trimming(0, Departing::Deleted)?;
        if !trimming.keep_as_noted(&decode(noted)?) {
            return Ok(None);
        }
        trimming.find_departed(Departing::Deleted)?;
        Ok((trimming.encode() == noted).then_some(trimming))
    }

    /// What the options and tags as they are now let go; it is refused to readers from here on.
    fn decide(&self, catalogue: &Tree, departing: Departing) -> Result<Trimming> {
        let (view, published) = (self.view(), self.published());
        let mut trimming = Trimming::default();
        let (_, head) = view.catalogue(published)?;
        let newest = short(Revision(catalogue.data.read().rows.last()));
        for (_, found) in view.names(published)? {
            let keep = keep_of((catalogue, head), found.tree)?;
            if keep == Retention::All {
                continue;
            }
            let tree = view.tree(found.tree)?;
            let mut pinned = tagged(catalogue, found.tree, head)?;
            pinned.extend(tagged(catalogue, found.tree, newest)?);
            let (wanted, is_less) = self.wanted(&tree, (keep, published), pinned)?;
            // What a merge in the background left of revisions that it dropped goes as well.
            let may_have_departed = departing == Departing::All && wanted.first() > 1;
            if is_less || may_have_departed {
                trimming.add(tree, wanted);
            }
        }
        Ok(trimming)
    }

    /// The ids of all indexes of all trees. Those that are dropped by then are forgotten before
    /// their cells go, so that nobody looks for them.
    pub(super) fn index_ids(&self) -> Result<IndexIds> {
        let (view, published) = (self.view(), self.published());
        let (catalogue, head) = view.catalogue(published)?;
        let mut ids = IndexIds::default();
        let open = view.open_trees();
        for (_, found) in view.names(published)? {
            let options = facts::options(&catalogue, found.tree, head)?.unwrap_or_default();
            ids.extend(options.indexes.iter().map(|(_, index)| (found.tree, index.id)));
            if let Some(tree) = open.iter().find(|tree| tree.id() == found.tree) {
                tree.indexes.forget_dropped(&options.indexes);
            }
        }
        Ok(ids)
    }

    /// About as many bytes as a compaction of everything would give back of what the documents'
    /// retention lets go.
    pub(crate) fn superseded_bytes(&self) -> Result<u64> {
        let (view, published) = (self.view(), self.published());
        let (catalogue, head) = view.catalogue(published)?;
        let mut bytes = 0;
        for (_, found) in view.names(published)? {
            let keep = keep_of((&catalogue, head), found.tree)?;
            if keep == Retention::All {
                continue;
            }
            let tree = view.tree(found.tree)?;
            let pinned = tagged(&catalogue, found.tree, head)?;
            let (wanted, is_less) = self.wanted(&tree, (keep, published), pinned)?;
            if is_less {
                bytes += tree.superseded_bytes(&wanted)?;
            }
        }
        Ok(bytes)
    }

    /// What is to be kept of a tree on disk, and whether something is to be dropped for that.
    fn wanted(
        &self,
        tree: &Tree,
        (keep, published): (Retention, CommitSequence),
        mut pinned: Vec<u32>,
    ) -> Result<(Kept, bool)> {
        let (before, kept) = {
            let data = tree.data.read();
            (data.rows.before(), data.kept.clone())
        };
        let first = keep.first(tree, tree.head_at(published)?, self.now())?.0.min(before);
        let first = short(Revision(first)).max(kept.first());
        pinned.retain(|&revision| kept.has(revision));
        let wanted = Kept::new(first, pinned);
        let is_less = wanted != kept || tree.let_go(&wanted)?.is_some();
        Ok((wanted, is_less))
    }
}

/// What a merge noted that it drops.
fn decode(noted: &[u8]) -> Result<Vec<Noted>> {
    let mut reader = Reader::new(noted);
    let mut trees = Vec::new();
    while reader.left() > 0 {
        let (tree, kept) = (TreeId(reader.varint()?), Kept::decode(reader.bytes()?)?);
        reader.varint()?;
        trees.push(Noted { tree, kept });
    }
    Ok(trees)
}

/// What changes whenever somebody stages or commits something in a tree.
fn state_of(tree: &Tree) -> (u64, u64) {
    let data = tree.data.read();
    (data.stagings, data.rows.last())
}

/// The revisions of a tree that have tags at a revision of the catalogue.
fn tagged(catalogue: &Tree, tree: TreeId, revision: u32) -> Result<Vec<u32>> {
    let tags = facts::tags(catalogue, tree, revision)?;
    Ok(tags.iter().map(|tag| short(tag.revision)).collect())
}

/// How much of its history the document of a tree is to keep.
fn keep_of((catalogue, head): (&Tree, u32), tree: TreeId) -> Result<Retention> {
    Ok(facts::options(catalogue, tree, head)?.map_or(Retention::All, |options| options.keep))
}
