//! Columns that an operator passes on from its input, and fields of objects in them.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_plan::expressions::{Column, Literal};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::zeros;

/// The function that a dot between names is planned as.
pub(crate) const FIELD: &str = "get_field";

/// A column of a plan, or a field of the objects in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) column: usize,
    /// The names that lead to the field, none of a column.
    pub(crate) fields: Vec<String>,
}

impl Place {
    /// The place whose value an expression is; none if it is computed otherwise.
    pub(crate) fn of(expr: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        if let Some(column) = expr.downcast_ref::<Column>() {
            return Some(Self { column: column.index(), fields: Vec::new() });
        }
        let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
        let (object, names) = function.args().split_first()?;
        if function.name() != FIELD {
            return None;
        }
        names.iter().try_fold(Self::of(object)?, |mut place, name| {
            place.fields.push(text(name.downcast_ref::<Literal>()?.value())?.to_owned());
            Some(place)
        })
    }

    /// The place that rows are ordered by where they are by an expression.
    pub(crate) fn of_order(expr: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        Self::of(zeros::without_one_zero(expr))
    }

    /// The place in the input of a filter or projection; none if that is computed, or the operator
    /// is another one.
    pub(crate) fn below(&self, plan: &dyn ExecutionPlan) -> Option<Self> {
        let mut place = if let Some(filter) = plan.downcast_ref::<FilterExec>() {
            let column = match filter.projection().as_ref() {
                Some(chosen) => *chosen.get(self.column)?,
                None => self.column,
            };
            Self { column, fields: Vec::new() }
        } else {
            let list = plan.downcast_ref::<ProjectionExec>()?;
            Self::of(&list.expr().get(self.column)?.expr)?
        };
        place.fields.extend_from_slice(&self.fields);
        Some(place)
    }
}

/// The text of a constant.
fn text(value: &ScalarValue) -> Option<&str> {
    value.try_as_str().flatten()
}
