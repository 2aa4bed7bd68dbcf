//! Which columns of a query are numbers as they stand in it, in a subquery or behind `WITH`.

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Distinct, Expr, Join, JoinType, LogicalPlan};

/// The floats that a column of a plan is made of where nothing is computed of them.
pub(super) fn floats(plan: &LogicalPlan, column: usize) -> Vec<f64> {
    match plan {
        LogicalPlan::Projection(of) => {
            of.expr.get(column).map_or_else(Vec::new, |expr| of_expr(expr, &of.input))
        }
        LogicalPlan::Values(of) => {
            let values = of.values.iter().filter_map(|row| row.get(column));
            values.filter_map(literal).collect()
        }
        LogicalPlan::Union(of) => {
            of.inputs.iter().flat_map(|input| floats(input, column)).collect()
        }
        LogicalPlan::Join(join) => of_join(join, column),
        LogicalPlan::Aggregate(of) => {
            of.group_expr.get(column).map_or_else(Vec::new, |expr| of_expr(expr, &of.input))
        }
        LogicalPlan::SubqueryAlias(of) => floats(&of.input, column),
        LogicalPlan::Filter(of) => floats(&of.input, column),
        LogicalPlan::Sort(of) => floats(&of.input, column),
        LogicalPlan::Limit(of) => floats(&of.input, column),
        LogicalPlan::Window(of) => floats(&of.input, column),
        LogicalPlan::Distinct(Distinct::All(input)) => floats(input, column),
        _ => Vec::new(),
    }
}

fn of_expr(expr: &Expr, input: &LogicalPlan) -> Vec<f64> {
    match expr {
        Expr::Alias(alias) => of_expr(&alias.expr, input),
        Expr::ScalarSubquery(of) => floats(&of.subquery, 0),
        Expr::Column(name) => {
            index(name, input).map_or_else(Vec::new, |column| floats(input, column))
        }
        expr => literal(expr).into_iter().collect(),
    }
}

fn index(name: &Column, input: &LogicalPlan) -> Option<usize> {
    input.schema().maybe_index_of_column(name)
}

fn literal(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(float), _) => *float,
        Expr::Negative(of) => literal(of).map(|float| -float),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn of_join(join: &Join, column: usize) -> Vec<f64> {
    let is_right = matches!(join.join_type, JoinType::RightSemi | JoinType::RightAnti);
    let left = if is_right { 0 } else { join.left.schema().fields().len() };
    if column < left { floats(&join.left, column) } else { floats(&join.right, column - left) }
}
