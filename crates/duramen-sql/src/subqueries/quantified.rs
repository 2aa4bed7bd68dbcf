//! Comparisons with `ANY` and `ALL` of a subquery.
//!
//! The planner makes them conditions of another name, which a list of columns is then said not to
//! have (55). They are what all comparisons come to.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::expr_fn::{bool_and, bool_or, count};
use datafusion::logical_expr::expr::{InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::{
    BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, lit, when,
};
use datafusion::optimizer::AnalyzerRule;

use super::has_subquery;
use crate::rewriting::each_expression;

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "quantified_comparisons"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            expr.transform_up(|expr| match expr {
                Expr::SetComparison(of) => spelled(of, schema),
                expr => Ok(Transformed::no(expr)),
            })
        })
    }
}

/// `= ANY` is `IN`, and `<> ALL` is `NOT IN`.
fn spelled(of: SetComparison, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let negated = match (of.op, of.quantifier) {
        (Operator::Eq, SetQuantifier::Any) => false,
        (Operator::NotEq, SetQuantifier::All) => true,
        _ => return of_rows(of, schema),
    };
    let SetComparison { expr, subquery, .. } = of;
    Ok(Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated })))
}

/// The value that the comparisons with all rows come to.
pub(super) fn of_rows(of: SetComparison, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if has_subquery(&of.expr) {
        return Ok(Transformed::no(Expr::SetComparison(of)));
    }
    let SetComparison { expr, subquery, op, quantifier } = of;
    let sought = looking_in(*expr, schema)?;
    let found = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let compared = Expr::BinaryExpr(BinaryExpr::new(Box::new(sought), op, Box::new(found)));
    // One that is so decides, what is unknown leaves it open, and without either it is the other.
    let (together, decides) = match quantifier {
        SetQuantifier::Any => (bool_or(compared.clone()), true),
        SetQuantifier::All => (bool_and(compared.clone()), false),
    };
    let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
        .aggregate(Vec::<Expr>::new(), vec![count(lit(1_i64)), count(compared), together])?
        .build()?;
    let [rows, known, together] =
        [0, 1, 2].map(|at| Expr::Column(Column::from(plan.schema().qualified_field(at))));
    let value = when(together.eq(lit(decides)), lit(decides))
        .when(known.lt(rows), lit(ScalarValue::Boolean(None)))
        .otherwise(lit(!decides))?;
    let plan = LogicalPlanBuilder::from(plan).project(vec![value])?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    let subquery = Subquery { outer_ref_columns, ..subquery.with_plan(Arc::new(plan)) };
    Ok(Transformed::yes(Expr::ScalarSubquery(subquery)))
}

/// An expression as one of a subquery, which looks at the row outside.
pub(super) fn looking_in(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let looking = expr.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(looking.data)
}

/// `x IN s`, whether or not it is negated.
pub(super) fn of_in(of: InSubquery) -> SetComparison {
    let InSubquery { expr, subquery, .. } = of;
    SetComparison { expr, subquery, op: Operator::Eq, quantifier: SetQuantifier::Any }
}
