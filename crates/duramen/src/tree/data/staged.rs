//! The staged transaction of a tree: what it changes, and how it ends.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::error::Result;
use crate::node::NodeId;
use crate::state::Datum;
use crate::tree::data::{Address, TreeData};
use crate::tree::group::{Fault, locate};
use crate::tree::rows::Row;

impl TreeData {
    /// Sets the state of a node in the staged revision, if it differs from the present one.
    pub(crate) fn stage(&mut self, node: NodeId, datum: Datum<'_>) -> Result<(), Fault> {
        let Address { space, ordinal, .. } = self.address(node);
        let is_new = ordinal >= self.spaces[space.0 as usize].committed;
        if !is_new && self.state(node, self.staged_revision())? == datum {
            return Ok(());
        }
        Ok(self.stage_changed(&[(node, datum)])?)
    }

    /// Sets the states of nodes in the staged revision, which differ from the present ones or are
    /// the first.
    pub(crate) fn stage_changed(&mut self, states: &[(NodeId, Datum<'_>)]) -> Result<()> {
        let revision = self.staged_revision();
        for &(node, state) in states {
            let Address { space, column, ordinal } = self.address(node);
            self.stagings += 1;
            if ordinal >= self.spaces[space.0 as usize].committed {
                self.set_birth(space, column, ordinal, (state, revision))?;
            } else if self.set_change(space, column, ordinal, (state, revision))? {
                self.touched.push(node);
                if state.may_be_equal_in_another_form() {
                    self.doubtful.note(node);
                }
            } else {
                self.doubtful.note(node);
            }
            if state.names_others() {
                self.naming.note(node);
            }
        }
        Ok(())
    }

    /// The nodes that the staged transaction changed; births left out.
    pub(crate) fn touched(&self) -> &[NodeId] {
        &self.touched
    }

    /// Those of them that may be as they were before, rising.
    pub(crate) fn doubtful(&mut self) -> &[NodeId] {
        self.doubtful.all()
    }

    /// The nodes that may name order blocks or values stored apart which the staged transaction
    /// added, rising.
    pub(crate) fn naming(&mut self) -> &[NodeId] {
        self.naming.all()
    }

    /// Takes back changes of touched nodes that came to nothing, and sorts the rest.
    pub(crate) fn settle(&mut self, unchanged: &[NodeId]) {
        let revision = self.staged_revision();
        for &node in unchanged {
            self.pop_change(node, revision);
        }
        if !unchanged.is_empty() {
            let unchanged: FxHashSet<NodeId> = unchanged.iter().copied().collect();
            self.touched.retain(|node| !unchanged.contains(node));
        }
        self.touched.sort_unstable();
    }

    /// Ends the staged transaction: it is the revision of `row`.
    pub(crate) fn commit_staged(&mut self, row: &Row) {
        let touched = std::mem::take(&mut self.touched);
        self.commit_replayed(row, &touched);
        self.touched = touched;
        self.touched.clear();
        self.doubtful.clear();
        self.naming.clear();
    }

    /// Takes the staged transaction back.
    pub(crate) fn rollback(&mut self) {
        let revision = self.staged_revision();
        self.moves.clear();
        self.doubtful.clear();
        self.naming.clear();
        for node in std::mem::take(&mut self.touched) {
            self.pop_change(node, revision);
        }
        for space in &mut self.spaces {
            space.keys.truncate(space.committed);
            space.truncate_births();
        }
        self.truncate_schema();
        self.young_bytes = 0;
    }

    fn truncate_schema(&mut self) {
        let extent = self.committed_schema;
        if self.schema.extent() == extent {
            return;
        }
        Arc::make_mut(&mut self.schema).truncate(extent);
        self.spaces.truncate(self.schema.spaces().len());
        for (space, data) in self.schema.spaces().iter().zip(&mut self.spaces) {
            data.kinds.truncate(space.columns.len());
            for group in data.groups.iter_mut().flatten() {
                group.truncate_columns(space.columns.len());
            }
        }
    }

    fn pop_change(&mut self, node: NodeId, revision: u32) {
        let Address { space, column, ordinal } = self.address(node);
        let (group, slot) = locate(ordinal);
        self.group_mut(space, group).pop_change(column, slot, revision);
    }
}
