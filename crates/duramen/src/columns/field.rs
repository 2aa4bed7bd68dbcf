//! What columns there are, and what kinds of values each has.

use std::ops::Range;

use super::outgrown::OutgrownKinds;
use super::{Columns, group_of, number_of, parts};
use crate::encoding::Column;
use crate::error::Result;
use crate::limits::COLUMN_LEVELS_MAX;
use crate::node::PathId;
use crate::state::{ColumnKinds, Datum};
use crate::tree::scan::Visitor;
use crate::tree::schema::{Label, ROOT};

/// Parts of which what leads to their cells is read together.
const PARTS_TOGETHER: usize = 16;

/// A column: the values at one path of a record or element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnField {
    /// The name of the field; empty for rows and elements themselves.
    pub name: String,
    /// The path in the tree.
    pub path: PathId,
    /// The kinds of its values, those missing left out. Some may be of values that are not there
    /// any more.
    pub kinds: ColumnKinds,
    /// The fields of its objects, in the order in which they first came.
    pub fields: Vec<Self>,
    /// The elements of its arrays.
    pub element: Option<Box<Self>>,
}

impl Columns {
    /// What columns the rows have, and the kinds of values in each. Of a column that has only ever
    /// had one kind beside `null` nothing is read, and it is told also where no row has it yet; of
    /// others the heads of cells, and changes, until all kinds that it has had are found.
    pub fn root(&self) -> Result<ColumnField> {
        self.root_of(&|_| true)
    }

    /// The same without those fields of the rows whose names are not wanted: of these nothing is
    /// read.
    pub fn root_of(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<ColumnField> {
        match self.path {
            Some(path) => self.field(path, (0, &self.outgrown_kinds()?), is_wanted),
            None => Ok(ColumnField {
                name: String::new(),
                path: ROOT,
                kinds: ColumnKinds::default(),
                fields: Vec::new(),
                element: None,
            }),
        }
    }

    /// Reads what [`root_of`](Self::root_of) looks at in some parts, so that it is in memory: who
    /// has other threads do so for other parts waits for fewer reads.
    pub fn load(&self, parts: Range<usize>, is_wanted: &dyn Fn(&str) -> bool) -> Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let parts = self.parts.get(parts.start..parts.end.min(self.parts())).unwrap_or_default();
        let columns = self.unsettled(path, is_wanted);
        if columns.is_empty() {
            return Ok(());
        }
        for parts in parts.chunks(PARTS_TOGETHER) {
            self.load_directories(path, parts)?;
            for ordinals in parts.iter().flatten() {
                for &path in &columns {
                    self.kinds_among(path, ordinals)?;
                }
            }
        }
        Ok(())
    }

    /// Whether [`root_of`](Self::root_of) reads anything.
    pub fn is_to_be_read(&self, is_wanted: &dyn Fn(&str) -> bool) -> bool {
        self.path.is_some_and(|path| !self.unsettled(path, is_wanted).is_empty())
    }

    /// The rows and their wanted fields, as far as they have to be looked through.
    fn unsettled(&self, path: PathId, is_wanted: &dyn Fn(&str) -> bool) -> Vec<PathId> {
        let columns = std::iter::once(path).chain(self.fields_of(path, is_wanted));
        let data = self.tree.data.read();
        let is_settled = |path| data.kinds(path).is_some_and(ColumnKinds::is_settled);
        columns.filter(|path| !is_settled(*path)).collect()
    }

    /// Reads what leads to the cells of some parts of the space of a path.
    fn load_directories(&self, path: PathId, parts: &[Vec<Range<u64>>]) -> Result<()> {
        let space = self.tree.data.read().schema.path(path).space;
        let ordinals = parts.iter().flatten().filter(|ordinals| !ordinals.is_empty());
        let mut groups: Vec<_> = ordinals.map(|range| number_of(group_of(range).0)).collect();
        groups.sort_unstable();
        groups.dedup();
        self.tree.load_directories(space, groups.into_iter())
    }

    /// The paths of the fields of objects that are wanted, in the order in which they first came.
    fn fields_of(&self, path: PathId, is_wanted: &dyn Fn(&str) -> bool) -> Vec<PathId> {
        let data = self.tree.data.read();
        let schema = &data.schema;
        let is_field = |field: &PathId| match schema.label(*field) {
            Label::Field(name) => {
                schema.path(*field).parent == path && str::from_utf8(name).is_ok_and(is_wanted)
            }
            _ => false,
        };
        let columns = schema.space(schema.path(path).space).columns.iter().copied();
        columns.filter(|field| *field != path).filter(is_field).collect()
    }

    fn field(
        &self,
        path: PathId,
        (level, outgrown): (usize, &OutgrownKinds),
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<ColumnField> {
        let (name, element) = {
            let data = self.tree.data.read();
            let schema = &data.schema;
            let name = match schema.label(path) {
                Label::Field(name) => String::from_utf8_lossy(name).into_owned(),
                Label::Root | Label::Element | Label::Entry => String::new(),
            };
            (name, schema.path(path).element)
        };
        let fields = self.fields_of(path, is_wanted);
        let mut kinds = if level == 0 { self.row_kinds()? } else { self.kinds(path)? };
        if level == 1 {
            kinds.insert(outgrown.get(name.as_str()).copied().unwrap_or_default());
        }
        if level >= COLUMN_LEVELS_MAX {
            kinds.insert(ColumnKinds::JSON);
        }
        let has = |kind: ColumnKinds| kind.is_within(kinds) && level < COLUMN_LEVELS_MAX;
        // Outgrown rows have fields too.
        let has_fields = has(ColumnKinds::OBJECT) || level == 0 && !outgrown.is_empty();
        let within = |path: PathId| self.field(path, (level + 1, outgrown), &|_| true);
        let fields = fields.into_iter().filter(|_| has_fields);
        let fields = fields.map(within).collect::<Result<_>>()?;
        let element = element.filter(|_| has(ColumnKinds::ARRAY)).map(within).transpose()?;
        Ok(ColumnField { name, path, kinds, fields, element: element.map(Box::new) })
    }

    pub(super) fn row_kinds(&self) -> Result<ColumnKinds> {
        let Some(path) = self.path else { return Ok(ColumnKinds::default()) };
        if let Some(known) = self.row_kinds.get() {
            return Ok(*known);
        }
        let kinds = self.kinds(path)?;
        Ok(*self.row_kinds.get_or_init(|| kinds))
    }

    /// The kinds of values of a column: what it has ever had if that is one kind, so that a column
    /// has a type before it has a value; else what is found as of the revision, until that is all
    /// there ever was.
    fn kinds(&self, path: PathId) -> Result<ColumnKinds> {
        let ever = self.tree.data.read().kinds(path);
        let is_all = |kinds: ColumnKinds| {
            ever.is_some_and(|ever| {
                ever.is_settled() || ever.is_within(kinds.or(ColumnKinds::NULL))
            })
        };
        let mut kinds = ColumnKinds::default();
        let end = if is_all(kinds) { 0 } else { self.end_of(path)? };
        for parts in parts(std::iter::once(0..end)).chunks(PARTS_TOGETHER) {
            if is_all(kinds) {
                break;
            }
            self.load_directories(path, parts)?;
            for ordinals in parts.iter().flatten().filter(|range| !range.is_empty()) {
                kinds.insert(self.kinds_among(path, ordinals)?);
            }
        }
        Ok(if is_all(kinds) { kinds.or(ever.unwrap_or_default()) } else { kinds })
    }

    /// The ordinal behind the last one at a path.
    pub(super) fn end_of(&self, path: PathId) -> Result<u64> {
        if !self.is_staged {
            return self.tree.born_until(path, 0, self.revision);
        }
        let data = self.tree.data.read();
        Ok(data.spaces[data.schema.path(path).space.0 as usize].next)
    }

    /// The kinds of values among ordinals of one row group.
    fn kinds_among(&self, path: PathId, ordinals: &Range<u64>) -> Result<ColumnKinds> {
        let (group, slots) = group_of(ordinals);
        self.tree.read(|data| {
            let mut found = ColumnKinds::default();
            let scan = self.scan(data, path, group, slots.clone());
            match &self.past {
                Some(past) => data.scan_since(&scan, past.first, &mut found)?,
                None => data.scan(&scan, &mut found)?,
            }
            Ok(found)
        })
    }
}

/// Notes kinds, and nothing else, of what it visits.
impl Visitor for ColumnKinds {
    fn state(&mut self, _: u16, state: Datum<'_>) {
        self.insert(Self::of(&state));
    }

    fn same(&mut self, _: Range<u16>, state: Datum<'_>) {
        self.state(0, state);
    }

    fn cell(&mut self, cell: &Column) -> bool {
        cell.forms().for_each(|state| self.state(0, state));
        true
    }

    fn integers(&mut self, _: u16, values: &[i64]) {
        if !values.is_empty() {
            self.insert(Self::INT);
        }
    }

    fn coded(&mut self, _: u16, _: &[i64], states: &[Datum<'_>]) {
        for state in states {
            self.state(0, *state);
        }
    }
}
