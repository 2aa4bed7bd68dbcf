//! Indexes that follow the records beside those who read and write.
//!
//! A query for which an index would have to follow many changes first is answered without it, and
//! has it follow here if it would have been read: so no commit pays for an index, and no query
//! waits for one.

use std::sync::Arc;

use crate::engine::Engine;
use crate::engine::background::Signal;
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::tree::history::short;

/// An index, and the thread that can have it follow.
#[derive(Debug)]
pub(crate) struct Follower {
    signal: Arc<Signal>,
    index: Arc<Index>,
}

impl Follower {
    /// Has the index follow beside what the caller does.
    pub(crate) fn ask(&self) {
        self.index.ask_to_follow();
        self.signal.wake();
    }
}

impl Engine {
    /// Who can have an index follow beside what the caller does; none if there is no thread for it.
    pub(crate) fn follower(&self, index: &Arc<Index>) -> Option<Follower> {
        let (signal, index) = (Arc::clone(&self.signal), Arc::clone(index));
        self.has_worker().then_some(Follower { signal, index })
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
                let _ = index.follow(&tree, short(head), &mut || self.go_on());
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
}
