//! What a change is made of, read before it has the turn, so that others wait for less.
//!
//! Invariants:
//! - what was read ahead is taken only where the tree is still as it was then, with nothing staged
//!   and nothing purged since; else it is read again with the turn, as if nothing had been;
//! - what cannot be read ahead says nothing: whoever has the turn finds out why.

use crate::error::Result;
use crate::node::{NodeId, Ordinal};
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::difference::Change;
use crate::tree::history::short;
use crate::tree::records::is_there;
use crate::tree::schema::ROOT;
use crate::tree::writer::Writer;

/// The differences between two revisions.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// The newest revision when they were read.
    newest: Revision,
    erasures: u64,
    between: (Revision, Revision),
    changes: Vec<Change>,
}

impl Tree {
    /// What differs between two revisions, of which one may be the newest.
    pub(crate) fn read_ahead(&self, between: (Revision, Revision)) -> Option<Ahead> {
        let (newest, erasures) = (self.newest(), self.erasures());
        let (before, after) = between;
        let are_there = before.0 > 0 && before <= after && after <= newest;
        if !are_there || self.check_kept(before).is_err() || self.check_kept(after).is_err() {
            return None;
        }
        let changes = self.changes(before, after).ok()?;
        Some(Ahead { newest, erasures, between, changes })
    }

    /// The ordinals of the records that have some keys, as far as they are there in the newest
    /// revision: with what is read for that, saying so again takes little.
    pub(crate) fn records_ahead(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<u64>>> {
        let (path, mut found) = self.record_ordinals(keys)?;
        let (Some(path), newest) = (path, short(self.newest())) else { return Ok(found) };
        for found in &mut found {
            let Some(ordinal) = *found else { continue };
            let record = NodeId::new(path, Ordinal(ordinal));
            if !self.read(|data| is_there(data, record, newest))? {
                *found = None;
            }
        }
        Ok(found)
    }
}

impl Writer {
    /// What differs between two revisions, read ahead or now. The revision that is being staged
    /// stands for the newest as long as nothing is.
    pub(super) fn changes(
        &self,
        (before, after): (Revision, Revision),
        ahead: Option<Ahead>,
    ) -> Result<Vec<Change>> {
        let staged = Revision(u64::from(self.revision));
        let newest = Revision(staged.0 - 1);
        let is_as_then = |ahead: &Ahead| {
            let (first, last) = ahead.between;
            let are_these = first == before && (last == after || last == newest && after == staged);
            are_these
                && ahead.newest == newest
                && ahead.erasures == self.tree.erasures()
                && self.tree.data.read().touched().is_empty()
        };
        match ahead.filter(is_as_then) {
            Some(ahead) => Ok(ahead.changes),
            None => self.tree.changes(before, after),
        }
    }

    /// The record of an ordinal that was read ahead, if it is there as staged.
    pub(crate) fn record_at(&self, ordinal: u64) -> Result<Option<NodeId>> {
        let Some(path) = self.tree.data.read().schema.path(ROOT).entry else { return Ok(None) };
        let record = NodeId::new(path, Ordinal(ordinal));
        let is_there = self.tree.read(|data| is_there(data, record, self.revision))?;
        Ok(is_there.then_some(record))
    }
}
