//! Indexes that follow the records beside those who read and write.
//!
//! A query for which an index would have to follow many changes first is answered without it, and
//! has it follow here: so no commit pays for an index, and no query waits for one.

use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::index::Index;
use crate::tree::history::short;

impl Engine {
    /// Has an index follow beside what the caller does; false if there is no thread for it.
    pub(crate) fn follow_later(&self, index: &Index) -> bool {
        if !self.has_worker() {
            return false;
        }
        index.ask_to_follow();
        self.signal.wake();
        true
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
