//! First states of a new element or entry and of its fields, which stand in one row group: that is
//! looked up once for all of them (benchmark B).

use std::sync::Arc;

use crate::error::Result;
use crate::node::{NodeId, PathId};
use crate::state::{ColumnKinds, Datum};
use crate::tree::data::{Address, TreeData, birth_bytes};
use crate::tree::group::{ColumnId, locate};

impl TreeData {
    /// Stages the first states of an element or entry that was born in the staged revision, and of
    /// fields of it.
    pub(crate) fn stage_new<'s>(
        &mut self,
        new: NodeId,
        states: impl Iterator<Item = (PathId, Datum<'s>)>,
    ) -> Result<()> {
        let revision = self.staged_revision();
        let Address { space, ordinal, .. } = self.address(new);
        assert!(ordinal >= self.spaces[space.0 as usize].committed, "{new:?} was there before");
        let schema = Arc::clone(&self.schema);
        let (group, slot) = locate(ordinal);
        let mut kinds = std::mem::take(&mut self.spaces[space.0 as usize].kinds);
        let group = self.group_mut(space, group);
        let (mut staged, mut bytes) = (0, 0);
        let mut set = |(path, state): (PathId, Datum<'_>)| {
            staged += 1;
            bytes += birth_bytes(&state);
            let column = schema.path(path).column;
            kinds.add(column, ColumnKinds::of(&state));
            group.set_birth(ColumnId::Value(column), slot, state, revision)
        };
        let result = { states }.try_for_each(&mut set);
        self.spaces[space.0 as usize].kinds = kinds;
        self.stagings += staged;
        self.young_bytes += bytes;
        result
    }
}
