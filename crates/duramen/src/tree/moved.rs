//! Where nodes came from: the pairs that moves and new names leave with their revisions, followed
//! back, for what is in a moved value too.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::{Move, NodeId};
use crate::revision::Revision;
use crate::tree::Tree;
use crate::tree::children::Children;
use crate::tree::history::short;
use crate::tree::locate::{Place, parent_of};

/// Where a value was before a revision moved it, or something it is in, to where it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovedFrom {
    /// Its id there.
    pub node: NodeId,
    /// The revision that moved it.
    pub revision: Revision,
    /// Its place in the revision before.
    pub pointer: JsonPointer,
}

impl Tree {
    /// The newest revision up to `until` that brought a node which was not there the one before.
    pub(crate) fn beginning(&self, node: NodeId, until: u32) -> Result<Option<u32>> {
        let created = self.read(|data| data.created(node))?.filter(|&created| created <= until);
        let Some(created) = created else { return Ok(None) };
        let mut end = until;
        for (from, to) in self.absences(Some(node), until)?.into_iter().rev() {
            // Spans that meet are one absence.
            if to < end {
                return Ok(Some(created.max(to + 1)));
            }
            end = from - 1;
        }
        Ok((created <= end).then_some(created))
    }

    /// Where a node was before a revision that has these moves; none if they moved neither it nor
    /// anything it is in.
    pub(crate) fn moved_from(
        &self,
        node: NodeId,
        revision: Revision,
        moves: &[Move],
    ) -> Result<Option<MovedFrom>> {
        let mut at = (!moves.is_empty()).then_some(node);
        while let Some(top) = at {
            if let Some(from) = source(top, moves) {
                return self.moved_within((node, revision), Move { to: top, from });
            }
            at = self.read(|data| parent_of(data, top))?;
        }
        Ok(None)
    }

    /// Where something in a moved value was: at the same place in that value, if that is there.
    fn moved_within(
        &self,
        (node, revision): (NodeId, Revision),
        Move { to, from }: Move,
    ) -> Result<Option<MovedFrom>> {
        let (now, before) = (short(revision), short(revision) - 1);
        let Some(old) = self.pointer_of(from, before)? else {
            let message = format!(
                "revision {revision} says that it moved {from}, which was not there before it"
            );
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        if node == to {
            return Ok(Some(MovedFrom { node: from, revision, pointer: old }));
        }
        let (top, inner) = (self.pointer_of(to, now)?, self.pointer_of(node, now)?);
        let (Some(top), Some(inner)) = (top, inner) else { return Ok(None) };
        let Some(rest) = inner.tokens_from(&top) else { return Ok(None) };
        let pointer = old.below(rest);
        Ok(match self.locate(&pointer, before)? {
            Place::Node(node) => Some(MovedFrom { node, revision, pointer }),
            Place::Inside(..) | Place::Missing(..) => None,
        })
    }

    /// The revision that set what a node is since `revision`: where that one only moved it, the one
    /// that set it where it was before, and so on. `moves_of` gives the moves of a revision.
    pub(crate) fn set_before_moves(
        &self,
        (mut node, mut revision): (NodeId, Revision),
        mut moves_of: impl FnMut(Revision) -> Result<Arc<[Move]>>,
    ) -> Result<Revision> {
        while let Some(origin) = self.moved_from(node, revision, &moves_of(revision)?)? {
            let before = short(revision) - 1;
            if !self.is_alike((node, short(revision)), (origin.node, before))? {
                break;
            }
            let set =
                self.read(|data| Ok(data.version(origin.node, before)?.map(|(set, _)| set)))?;
            let Some(set) = set else { break };
            (node, revision) = (origin.node, Revision(u64::from(set)));
        }
        Ok(revision)
    }

    /// Whether two nodes are the same scalar, or hold as many elements, or members of the same
    /// names in the same order.
    fn is_alike(&self, a: (NodeId, u32), b: (NodeId, u32)) -> Result<bool> {
        let (of_a, of_b) = (self.children(a.0, a.1)?, self.children(b.0, b.1)?);
        match (of_a, of_b) {
            (Children::None, Children::None) => {
                return Ok(self.json_at(a.0, a.1)? == self.json_at(b.0, b.1)?);
            }
            (Children::None, _) | (_, Children::None) => return Ok(false),
            _ => {}
        }
        let count = self.child_count(of_a)?;
        let is_array = |children| matches!(children, Children::Elements(_));
        if count != self.child_count(of_b)? || is_array(of_a) != is_array(of_b) {
            return Ok(false);
        }
        if is_array(of_a) {
            return Ok(true);
        }
        let name = |(object, children), index| match self.child((object, children), index)? {
            Some(child) => self.name_of(child),
            None => Ok(None),
        };
        for index in 0..count {
            if name((a.0, of_a), index)? != name((b.0, of_b), index)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What a node was made of by one of the moves of a revision, which are in order.
pub(crate) fn source(node: NodeId, moves: &[Move]) -> Option<NodeId> {
    let found = moves.binary_search_by_key(&node, |moved| moved.to).ok()?;
    moves.get(found).map(|moved| moved.from)
}
