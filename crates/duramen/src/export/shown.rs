//! Which of the revisions that are told of a collection show a record.

use crate::error::Result;
use crate::node::{NodeId, PathId};
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::history::short;
use crate::tree::kept::Kept;

/// How a record is at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// It was not born, or nothing of it is kept.
    Never,
    There,
    /// Since a revision.
    Gone(u32),
}

/// How a record was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    Alone,
    /// With the whole collection.
    WithAll,
}

/// A collection, and the revisions that are told of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown<'t> {
    pub(super) tree: &'t Tree,
    pub(super) kept: &'t Kept,
    /// The path of the records.
    pub(super) records: PathId,
}

impl Shown<'_> {
    /// The last kept revision up to one in which a record was there, and how it was removed since.
    pub(super) fn last(
        &self,
        record: NodeId,
        until: Option<u32>,
    ) -> Result<Option<(u32, Option<Gone>)>> {
        let (mut at, mut gone) = (until.unwrap_or(0), None);
        while at > 0 {
            if let Some(deleted) = self.tree.deleted_in(at)? {
                (at, gone) = (self.before(short(deleted)), gone.or(Some(Gone::WithAll)));
                continue;
            }
            match self.presence(record, at)? {
                Presence::Never => return Ok(None),
                Presence::There => return Ok(Some((at, gone))),
                Presence::Gone(since) => (at, gone) = (self.before(since), Some(Gone::Alone)),
            }
        }
        Ok(None)
    }

    /// The newest kept revision before another one; 0 if there is none.
    fn before(&self, revision: u32) -> u32 {
        short(Revision(self.kept.at_or_before(u64::from(revision).saturating_sub(1))))
    }

    pub(super) fn presence(&self, record: NodeId, at: u32) -> Result<Presence> {
        self.tree.read(|data| {
            let space = data.schema.path(self.records).space;
            let is_born = data.born(space, record.ordinal().0)?.is_some_and(|born| born <= at);
            Ok(match data.version(record, at)? {
                Some((since, state)) if is_born && state.is_absent() => Presence::Gone(since),
                Some(_) if is_born => Presence::There,
                _ => Presence::Never,
            })
        })
    }
}
