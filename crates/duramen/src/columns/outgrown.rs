//! Rows that are objects whose fields are not in columns: those that outgrew their shape, and those
//! that are stored whole. They are read by themselves, row by row, so that a field has the same
//! values whatever way its objects are stored.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ColumnChunk, ColumnKinds, ColumnRows, ColumnValue, Columns};
use crate::error::Result;
use crate::jsonpath::place::{At, Children, Opened, View};
use crate::jsonpath::value::Value;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::state::{ApartKind, Datum};
use crate::tree::data::node;
use crate::tree::schema::Label;

/// The kinds of the values that such rows have in their fields, by name.
pub(super) type OutgrownKinds = HashMap<Arc<str>, ColumnKinds>;

impl Columns {
    /// Whether a row may be such an object, or have been one.
    pub(super) fn has_outgrown(&self) -> Result<bool> {
        Ok(ColumnKinds::JSON.is_within(self.row_kinds()?))
    }

    /// Which rows are such objects, or arrays that are stored whole.
    fn outgrown(&self, rows: &ColumnRows) -> Result<Vec<usize>> {
        let Some(path) = self.path else { return Ok(Vec::new()) };
        let states = self.read_columns(rows, path)?;
        let is_json = |row: &usize| matches!(states.get(*row), ColumnValue::Json(_));
        Ok((0..rows.len()).filter(is_json).collect())
    }

    /// The name of a path that is a field of the rows, and which of these are such objects, if some
    /// are.
    pub(super) fn outgrown_at(
        &self,
        rows: &ColumnRows,
        path: PathId,
    ) -> Result<Option<(String, Vec<usize>)>> {
        // Most have none, which is known before anything is read.
        if !self.has_outgrown()? {
            return Ok(None);
        }
        let Some(name) = self.name_in_rows(path) else { return Ok(None) };
        let outgrown = self.outgrown(rows)?;
        Ok(Some((name, outgrown)).filter(|(_, outgrown)| !outgrown.is_empty()))
    }

    fn name_in_rows(&self, path: PathId) -> Option<String> {
        let data = self.tree.data.read();
        let is_below = Some(data.schema.path(path).parent) == self.path && Some(path) != self.path;
        match data.schema.label(path) {
            Label::Field(name) if is_below => Some(String::from_utf8_lossy(name).into_owned()),
            _ => None,
        }
    }

    /// Sets what such rows have in a field.
    pub(super) fn set_outgrown(
        &self,
        (rows, outgrown): (&ColumnRows, &[usize]),
        name: &str,
        chunk: &mut ColumnChunk,
    ) -> Result<()> {
        self.each_member((rows, outgrown), name, |row, view, member| {
            let Some(member) = member else {
                chunk.clear(row);
                return Ok(());
            };
            let value = view.value(&member)?;
            if let Some(state) = value.datum() {
                chunk.set(row, state);
                return Ok(());
            }
            chunk.read_bytes += set_json((view, &member), row, chunk)?;
            Ok(())
        })
    }

    /// The same as JSON text; `null` stays what it is.
    pub(super) fn set_outgrown_json(
        &self,
        of: (&ColumnRows, &[usize]),
        name: &str,
        chunk: &mut ColumnChunk,
    ) -> Result<()> {
        self.each_member(of, name, |row, view, member| {
            match &member {
                None => chunk.clear(row),
                Some(member) if matches!(view.value(member)?, Value::Null) => {
                    chunk.set(row, Datum::Null);
                }
                Some(member) => self.count_read(set_json((view, member), row, chunk)?),
            }
            Ok(())
        })
    }

    /// Visits the members of such rows that have a name.
    fn each_member(
        &self,
        (rows, outgrown): (&ColumnRows, &[usize]),
        name: &str,
        mut visit: impl FnMut(usize, View<'_>, Option<At>) -> Result<()>,
    ) -> Result<()> {
        for &row in outgrown {
            let Some((view, opened)) = self.opened(rows, row)? else { continue };
            visit(row, view, view.member(&opened, name)?)?;
        }
        Ok(())
    }

    /// The kinds of values in the fields of such rows.
    pub(super) fn outgrown_kinds(&self) -> Result<OutgrownKinds> {
        let mut kinds = OutgrownKinds::new();
        if !self.has_outgrown()? {
            return Ok(kinds);
        }
        if let Some(path) = self.path.filter(|_| self.is_staged) {
            let end = self.end_of(path)?;
            for first in (0..end).step_by(usize::try_from(ROW_GROUP_SLOTS).unwrap_or(1)) {
                let ordinals = (first..end.min(first + ROW_GROUP_SLOTS)).collect();
                let rows = ColumnRows { ordinals, ..ColumnRows::default() };
                self.add_outgrown_kinds(&rows, &mut kinds)?;
            }
        }
        for part in 0..self.parts() {
            self.add_outgrown_kinds(&self.rows(part)?, &mut kinds)?;
        }
        Ok(kinds)
    }

    fn add_outgrown_kinds(&self, rows: &ColumnRows, kinds: &mut OutgrownKinds) -> Result<()> {
        for row in self.outgrown(rows)? {
            let Some((view, opened)) = self.opened(rows, row)? else { continue };
            let mut members = Children::of(&opened);
            while let Some(member) = members.next(view)? {
                let kind = match view.value(&member.at)? {
                    Value::Container(_) => ColumnKinds::JSON,
                    value => ColumnKinds::of(&value.datum().unwrap_or(Datum::Absent)),
                };
                kinds.entry(view.name(&member.at)?).or_default().insert(kind);
            }
        }
        Ok(())
    }

    /// A row as of its moment, if it is an object.
    fn opened(&self, rows: &ColumnRows, row: usize) -> Result<Option<(View<'_>, Opened)>> {
        let (Some(path), Some(&ordinal)) = (self.path, rows.ordinals.get(row)) else {
            return Ok(None);
        };
        let view = View { tree: &self.tree, revision: self.moment(rows, row) };
        let opened = view.open(&At::Node(node(path, ordinal)))?;
        Ok((view.array_len(&opened)?.is_none()).then_some((view, opened)))
    }
}

/// Sets a row to the JSON text of a value, and gives its length.
fn set_json((view, at): (View<'_>, &At), row: usize, chunk: &mut ColumnChunk) -> Result<usize> {
    let mut text = Vec::new();
    view.append_json(at, &mut text)?;
    chunk.set(row, ApartKind::Opaque.inline(&text));
    Ok(text.len())
}
