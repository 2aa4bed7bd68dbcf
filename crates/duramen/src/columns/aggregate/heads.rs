//! What heads of cells say of whole row groups, without a look at slots.

use smallvec::SmallVec;

use super::states::{Aggregates, Measure, Sum};
use super::value::{AggregateValue, Value};
use super::{AggregatePlan, Place, RowFilter};
use crate::columns::Columns;
use crate::encoding::{Column, Encoded, Summary};
use crate::node::PathId;
use crate::state::{Datum, ShapeId};
use crate::tree::conditions::has_field;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;

/// What the head of a cell says of its values, all of which are there.
enum Head<'a> {
    Integers(Summary),
    /// The distinct values.
    Values(Vec<Value<'a>>),
}

impl Columns {
    /// Adds all rows of a range, if heads say all that is measured; false with nothing added if
    /// not.
    pub(super) fn add_heads(
        &self,
        data: &TreeData,
        place: &Place,
        plan: &AggregatePlan,
        found: &mut Aggregates,
    ) -> Result<bool, Fault> {
        let is_all = matches!(&plan.filter, RowFilter::All(parts) if parts.is_empty());
        if !is_all || !plan.keys.is_empty() {
            return Ok(false);
        }
        let Some(path) = self.path else { return Ok(false) };
        let Some(objects) = self.whole_cell(data, path, place)? else { return Ok(false) };
        let Encoded::Same(Datum::Object(shape)) = objects.encoded() else { return Ok(false) };
        let mut heads = SmallVec::<[Head<'_>; 4]>::new();
        for column in &plan.columns {
            if !is_field(data, (path, shape), column.path) {
                return Ok(false);
            }
            let Some(cell) = self.whole_cell(data, column.path, place)? else { return Ok(false) };
            let Some(head) = Head::of(cell, column.kind) else { return Ok(false) };
            heads.push(head);
        }
        let rows = place.1.len() as u64;
        let is_told = |measure: &Measure| Head::tells(&heads, *measure);
        if !plan.measures.iter().all(is_told) {
            return Ok(false);
        }
        found.work.rows += rows;
        found.work.summarised += 1;
        for (index, measure) in plan.measures.iter().enumerate() {
            found.add_head((index, *measure), &heads, rows);
        }
        Ok(true)
    }

    /// The one cell that has all states of a column in a range and no others.
    fn whole_cell<'d>(
        &self,
        data: &'d TreeData,
        path: PathId,
        (group, slots): &Place,
    ) -> Result<Option<&'d Column>, Fault> {
        let Some(column) = data.encoded(&self.scan(data, path, *group, slots.clone()))? else {
            return Ok(None);
        };
        let [(first, cell)] = column.bases[..] else { return Ok(None) };
        let is_whole = first == slots.start && cell.len() == slots.len();
        Ok((is_whole && column.patches.is_empty()).then_some(cell))
    }
}

fn is_field(data: &TreeData, (path, shape): (PathId, ShapeId), field: PathId) -> bool {
    field != path && data.schema.path(field).parent == path && has_field(data, shape, field)
}

impl<'a> Head<'a> {
    fn of(cell: &'a Column, kind: super::ValueKind) -> Option<Self> {
        match cell.encoded() {
            Encoded::Integers(_) if kind == super::ValueKind::Int => {
                let summary = cell.summary().ok()??;
                let is_all = usize::from(summary.count) == cell.len();
                let are_integers = summary.scale == 0 && summary.others == 0;
                (is_all && are_integers).then_some(Self::Integers(summary))
            }
            Encoded::Coded(codes, states) if codes.are_below(states.len()) => {
                let values = states.into_iter().map(|state| Value::of(state, kind));
                let values = values.collect::<Option<Vec<_>>>()?;
                let are_there = !values.iter().any(|value| value.is_missing());
                are_there.then_some(Self::Values(values))
            }
            _ => None,
        }
    }

    fn tells(heads: &[Self], measure: Measure) -> bool {
        let is_integers = |column: usize| matches!(heads.get(column), Some(Self::Integers(_)));
        match measure {
            Measure::Sum(column) => is_integers(column),
            Measure::Rows | Measure::Count(_) | Measure::Least(_) | Measure::Greatest(_) => true,
            Measure::Distinct(column) => !is_integers(column),
        }
    }
}

impl Aggregates {
    fn add_head(&mut self, (index, measure): (usize, Measure), heads: &[Head<'_>], rows: u64) {
        match measure {
            Measure::Rows | Measure::Count(_) => self.add_count(index, 0, rows),
            Measure::Sum(column) => {
                if let Some(Head::Integers(summary)) = heads.get(column) {
                    self.add_sum(index, 0, Sum::of_summary(summary, rows));
                }
            }
            Measure::Least(column) | Measure::Greatest(column) => match heads.get(column) {
                Some(Head::Integers(summary)) => {
                    for bound in [summary.min, summary.max] {
                        let bound = i64::try_from(bound).map(AggregateValue::Int);
                        self.add_bound(index, 0, &bound.unwrap_or(AggregateValue::Missing));
                    }
                }
                Some(Head::Values(values)) => {
                    for value in values {
                        self.add_bound(index, 0, &value.owned());
                    }
                }
                None => {}
            },
            Measure::Distinct(column) => {
                if let Some(Head::Values(values)) = heads.get(column) {
                    for value in values {
                        self.add_distinct(index, 0, value.owned());
                    }
                }
            }
        }
    }
}
