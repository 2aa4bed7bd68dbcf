//! `ASOF JOIN`: to each row the row of another table that is nearest in time.
//!
//! The planner does not know it. So it becomes a left join on a function that stands for what is
//! matched, and then, once names and types are known, a node of our own.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, Extension, Join, LogicalPlan, Operator,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as Parsed, JoinConstraint, JoinOperator, Select, Statement, TableFactor,
    TableWithJoins, VisitMut, VisitorMut,
};
use duramen::{Error, ErrorKind};

use crate::statement::{self, Places};

mod execution;
mod marker;
mod node;

use marker::MARKER;
use node::{AsOfJoin, Nearest};

/// Makes the join known to a query.
pub(crate) fn register(context: &SessionContext) {
    context.register_udf(marker::function());
    context.add_analyzer_rule(Arc::new(Rule));
}

pub(crate) use node::Planner;

/// Puts what the planner knows in the place of such joins.
pub(crate) fn rewrite(statement: &mut Statement, places: &Places) -> duramen::Result<()> {
    match statement.visit(&mut Joins { at: places.of_keyword("ASOF") }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// Looks for joins.
struct Joins {
    /// Where the first one stands, for people.
    at: String,
}

impl VisitorMut for Joins {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        match select.from.iter_mut().try_for_each(|tables| rewrite_joins(tables, &self.at)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

fn rewrite_joins(tables: &mut TableWithJoins, at: &str) -> duramen::Result<()> {
    let inner = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(inner) {
        if let TableFactor::NestedJoin { table_with_joins, .. } = table {
            rewrite_joins(table_with_joins, at)?;
        }
    }
    for join in &mut tables.joins {
        if let JoinOperator::AsOf { match_condition, constraint } = &join.join_operator {
            let on = marked(match_condition, constraint, at)?;
            join.join_operator = JoinOperator::LeftOuter(JoinConstraint::On(on));
        }
    }
    Ok(())
}

/// The condition of the left join.
fn marked(matched: &Parsed, constraint: &JoinConstraint, at: &str) -> duramen::Result<Parsed> {
    let refused =
        |why: &str| Error::new(ErrorKind::Invalid, format!("this is no SQL: ASOF JOIN{at} {why}"));
    let compared = match matched {
        Parsed::BinaryOp { left, op, right } => match op {
            BinaryOperator::GtEq
            | BinaryOperator::Gt
            | BinaryOperator::LtEq
            | BinaryOperator::Lt => Some(format!("{MARKER}({left}, '{op}', {right})")),
            _ => None,
        },
        _ => None,
    };
    let mut text = compared.ok_or_else(|| {
        refused(
            "compares behind MATCH_CONDITION a time of the left table with one of the right \
             table by >=, >, <= or <, as in (o.at >= s.timestamp)",
        )
    })?;
    match constraint {
        JoinConstraint::None => {}
        JoinConstraint::On(on) => text = format!("({on}) AND {text}"),
        JoinConstraint::Using(_) | JoinConstraint::Natural => {
            let why = "takes ON and equalities, as in ON o.tag = s.tag, and neither USING nor \
                       NATURAL";
            return Err(refused(why));
        }
    }
    statement::expression(&text).map_err(|error| refused(&error.to_string()))
}

/// Puts our node in the place of left joins that have the function.
#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Join(join) if join.filter.as_ref().is_some_and(has_marker) => {
                as_of_join(join).map(Transformed::yes)
            }
            plan => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }

    fn name(&self) -> &'static str {
        "as_of_join"
    }
}

fn has_marker(filter: &Expr) -> bool {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
            has_marker(left) || has_marker(right)
        }
        Expr::ScalarFunction(ScalarFunction { func, .. }) => func.name() == MARKER,
        _ => false,
    }
}

fn as_of_join(join: Join) -> Result<LogicalPlan> {
    let mut on = join.on;
    let mut times = None;
    for part in join.filter.map(split_conjunction_owned).into_iter().flatten() {
        match part {
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == MARKER => {
                let Ok([left, op, right]) = <[Expr; 3]>::try_from(args) else {
                    return plan_err!("a match is of two times");
                };
                times = Some((left, Nearest::of(&op)?, right));
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
                on.push((*left, *right));
            }
            other => {
                return plan_err!(
                    "an ASOF JOIN takes equalities only behind ON, and not {other}: put the rest \
                     behind WHERE"
                );
            }
        }
    }
    let Some((left_time, nearest, right_time)) = times else {
        return plan_err!("an ASOF JOIN takes one MATCH_CONDITION");
    };
    let (left, right) = (join.left, join.right);
    let on = on.into_iter().map(|pair| sides(pair, (&left, &right))).collect::<Result<Vec<_>>>()?;
    let (times, nearest) = match sides((left_time.clone(), right_time.clone()), (&left, &right)) {
        // Written the other way round it means the same.
        Ok(times) if is_of(&left_time, &left) => (times, nearest),
        Ok(times) => (times, nearest.swapped()),
        Err(error) => return Err(error),
    };
    let node = AsOfJoin::new((left, right), on, times, nearest)?;
    Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
}

/// Whether an expression is one of a table alone.
fn is_of(expr: &Expr, table: &LogicalPlan) -> bool {
    let columns = expr.column_refs();
    !columns.is_empty() && columns.iter().all(|column| table.schema().has_column(column))
}

/// Two expressions as one of the left and one of the right table, of one type.
fn sides(
    (a, b): (Expr, Expr),
    (left, right): (&LogicalPlan, &LogicalPlan),
) -> Result<(Expr, Expr)> {
    let (a, b) = if is_of(&a, left) && is_of(&b, right) {
        (a, b)
    } else if is_of(&b, left) && is_of(&a, right) {
        (b, a)
    } else {
        return plan_err!(
            "an ASOF JOIN compares what is of the left table with what is of the right one, and \
             not {a} with {b}"
        );
    };
    let (of_a, of_b) = (a.get_type(left.schema())?, b.get_type(right.schema())?);
    let cast = |expr: Expr, to| Expr::Cast(Cast::new(Box::new(expr), to));
    Ok(match (of_a == of_b, of_b.is_string()) {
        (true, _) => (a, b),
        // Times of records are text.
        (false, true) => (a, cast(b, of_a)),
        (false, false) => (cast(a, of_b), b),
    })
}
