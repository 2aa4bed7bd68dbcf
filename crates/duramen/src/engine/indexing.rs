//! Indexes that follow the records beside those who read and write.
//!
//! A query for which an index would have to follow many changes first is answered without it, and
//! has it follow here if it would have been read: so no commit pays for an index, and no query
//! waits for one. A checkpoint has the indexes of what changed follow as well, so that those of a
//! process that only writes are not further behind with each, and a compaction has all of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::engine::background::Signal;
use crate::engine::catalogue::facts;
use crate::engine::compaction::stopped;
use crate::engine::{CATALOGUE, Engine, View};
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::options::DocumentOptions;
use crate::revision::CommitSequence;
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::history::short;
use crate::tree::schema::ROOT;

/// Steps that an index which is behind goes forward at a checkpoint where no thread has it follow
/// beside: about a million entries, if not less.
const STEPS_AT_CHECKPOINT: usize = if cfg!(test) { 8 } else { 64 };

/// An index, and the thread that can have it follow.
#[derive(Debug)]
pub(crate) struct Follower {
    /// None where nobody would keep what it follows.
    signal: Option<Arc<Signal>>,
    index: Arc<Index>,
}

impl Follower {
    /// Has the index follow beside what the caller does, if somebody can.
    pub(crate) fn ask(&self) {
        if let Some(signal) = &self.signal {
            self.index.ask_to_follow();
            signal.wake();
        }
    }

    /// Whether what the index follows is kept.
    pub(crate) fn is_kept(&self) -> bool {
        self.signal.is_some()
    }
}

impl Engine {
    /// Who can have an index follow beside what the caller does. None if the caller has it follow,
    /// as there is no thread for it: not so in a database that was opened for reading, where it
    /// would take memory, and others would do it again.
    pub(crate) fn follower(&self, index: &Arc<Index>) -> Option<Follower> {
        let signal = self.has_worker().then(|| Arc::clone(&self.signal));
        let is_beside = signal.is_some() || self.journal.is_none();
        is_beside.then(|| Follower { signal, index: Arc::clone(index) })
    }

    /// Has the indexes that were asked to follow what was committed. Where that fails they follow
    /// later; whoever reads them is told why.
    pub(super) fn follow_asked(&self) {
        for tree in self.view().open_trees() {
            for index in tree.indexes.in_use() {
                if !index.was_asked_to_follow() {
                    continue;
                }
                let Ok(head) = tree.head_at(self.published()) else { continue };
                let followed = index.follow(&tree, short(head), &mut || self.go_on());
                index.set_kept_up(followed.is_ok());
            }
        }
    }

    /// Does what is due between two steps; an error at the end.
    fn go_on(&self) -> Result<()> {
        if self.signal.is_ending() {
            return Err(Error::new(ErrorKind::Cancelled, "the database is being closed"));
        }
        if self.is_checkpoint_due() { self.write_checkpoint() } else { Ok(()) }
    }

    /// Has the indexes of what changed since the last checkpoint follow what was committed, while
    /// what changed is in memory, and as far as there is room for their entries. Those that are
    /// further behind follow beside, or some more steps with each checkpoint. Where that fails they
    /// follow later; whoever reads them is told why.
    pub(super) fn follow_changed(&self) {
        let published = self.published();
        for tree in self.view().open_trees() {
            let before = {
                let data = tree.data.read();
                let is_changed = data.rows.last() > data.rows.before();
                is_changed.then(|| data.rows.before())
            };
            let Some(before) = before else { continue };
            // What cannot be read of the options is told to whoever writes the collection.
            let _ = use_declared(&self.view(), &tree, published);
            let indexes = tree.indexes.in_use();
            if indexes.is_empty() || tree.is_purging() {
                continue;
            }
            let Ok(head) = tree.head_at(published) else { continue };
            for index in indexes {
                let is_near =
                    index.is_kept_up() || u64::from(index.followed(&tree).revision) >= before;
                self.follow_for_checkpoint((&tree, &index), short(head), is_near);
            }
        }
    }

    /// Has an index follow that is near what was committed, or is not.
    fn follow_for_checkpoint(&self, (tree, index): (&Tree, &Arc<Index>), head: u32, is_near: bool) {
        let is_beside = self.has_worker() && !self.signal.is_ending();
        let mut steps = if is_near { usize::MAX } else { STEPS_AT_CHECKPOINT };
        let mut last = index.followed(tree);
        let mut pause = || {
            // The next process would begin anew within a revision, and with a new slab.
            let now = index.followed(tree);
            steps -= usize::from(now != std::mem::replace(&mut last, now));
            if steps > 0 && self.memory.has_room_to_follow() {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Cancelled, "the index goes on after the checkpoint"))
        };
        let is_done = (is_near || !is_beside) && index.follow(tree, head, &mut pause).is_ok();
        index.set_kept_up(is_done);
        if !is_done && let Some(follower) = self.follower(index).filter(|_| is_beside) {
            follower.ask();
        }
    }

    /// Has all indexes follow what was committed, with no more in memory than there may be, before
    /// all that they have is merged. Where that fails they follow later. `progress` may stop it,
    /// which is `Cancelled`.
    pub(super) fn follow_all(
        &self,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<()> {
        let (view, published) = (self.view(), self.published());
        // What cannot be read is told by the compaction.
        for (_, found) in view.names(published).unwrap_or_default() {
            let Ok(options) = options(&view, found.tree, published) else { continue };
            if options.indexes.ready().next().is_none() {
                continue;
            }
            let Ok(tree) = view.tree(found.tree) else { continue };
            let Ok(head) = tree.head_at(published) else { continue };
            for (_, declared) in options.indexes.ready() {
                let Ok(index) = tree.indexes.get(&tree, declared) else { continue };
                let followed = index.follow(&tree, short(head), &mut || {
                    if progress(0, self.segment_bytes().max(1)).is_break() {
                        return Err(stopped());
                    }
                    self.make_room()
                });
                index.set_kept_up(followed.is_ok());
                if let Err(error) = followed
                    && error.kind() == ErrorKind::Cancelled
                {
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// Brings the indexes into use that are declared of a tree.
fn use_declared(view: &View, tree: &Arc<Tree>, published: CommitSequence) -> Result<()> {
    let is_of_engine = [CATALOGUE, TreeId::SERIES].contains(&tree.id());
    // Only a map has records.
    if is_of_engine || tree.data.read().schema.path(ROOT).entry.is_none() {
        return Ok(());
    }
    let (catalogue, newest) = view.catalogue(published)?;
    let read = || facts::options(&catalogue, tree.id(), newest);
    let options = tree.options.at(newest, read)?;
    for (_, declared) in options.iter().flat_map(|options| options.indexes.ready()) {
        tree.indexes.get(tree, declared)?;
    }
    Ok(())
}

/// What is declared of a tree's document.
fn options(view: &View, tree: TreeId, published: CommitSequence) -> Result<DocumentOptions> {
    let (catalogue, newest) = view.catalogue(published)?;
    Ok(facts::options(&catalogue, tree, newest)?.unwrap_or_default())
}
