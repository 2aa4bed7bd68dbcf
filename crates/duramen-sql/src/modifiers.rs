//! What stands in a call beside its arguments: `DISTINCT`, `ORDER BY`, `FILTER`, `OVER` and others.
//!
//! The planner passes it over where a function is not one of groups or windows, and counts an
//! order among the arguments of aggregates that do not know of any: `count(a ORDER BY b)` would
//! count where neither is NULL (55).

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Diagnostic, Result, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawAggregateExpr};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArgumentClause, FunctionArguments, Visit, Visitor,
};

use crate::natural;

/// Aggregates of which the order of what they take is a part, beside those `WITHIN GROUP`.
const ORDERED: [&str; 5] = ["array_agg", "string_agg", "first_value", "last_value", "nth_value"];

/// Functions of windows that give one of the values in them, and how many they take.
const VALUES: [(&str, usize); 3] = [("first_value", 1), ("last_value", 1), ("nth_value", 2)];

/// The function that gives rows of lists, which the planner has for itself.
const UNNEST: &str = "unnest";

/// The plan of a statement, if nothing in it would be passed over.
pub(crate) async fn plan(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    if let Statement::Statement(parsed) = &mut statement {
        natural::rewrite(state, parsed).await?;
        if let ControlFlow::Break(error) = parsed.visit(&mut Finder { state }) {
            return Err(error);
        }
    }
    state.statement_to_plan(statement).await
}

struct Finder<'s> {
    state: &'s SessionState,
}

impl Visitor for Finder<'_> {
    type Break = DataFusionError;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let Some(name) = function.name.0.last().and_then(|part| part.as_ident()) else {
            return ControlFlow::Continue(());
        };
        let span = Span::try_from_sqlparser_span(name.span);
        let known = match name.quote_style {
            None => name.value.to_lowercase(),
            Some(_) => name.value.clone(),
        };
        let name = &name.value;
        let message = match self.passed_over(&known, function) {
            Some((modifier, of)) => format!("{modifier} in a call of {of} {name}"),
            None if takes_others(&known, function) => {
                format!("The function of windows {name} is called with other values")
            }
            None => return ControlFlow::Continue(()),
        };
        let diagnostic = Diagnostic::new_error(&message, span);
        ControlFlow::Break(DataFusionError::Plan(message).with_diagnostic(diagnostic))
    }
}

impl Finder<'_> {
    /// What would be passed over of a call, and of what kind its function is.
    fn passed_over(&self, name: &str, call: &Function) -> Option<(&'static str, &'static str)> {
        let state = self.state;
        if state.scalar_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name)
            || name == UNNEST
        {
            let over = call.over.is_some().then_some("OVER");
            let nulls = call.null_treatment.is_some().then_some("NULLS");
            return of_values(call).or(over).or(nulls).map(|modifier| (modifier, "the function"));
        }
        // One that is both is an aggregate here.
        let is_of_windows = state.window_functions().contains_key(name)
            && !state.aggregate_functions().contains_key(name);
        let modifier = of_values(call).filter(|_| is_of_windows)?;
        Some((modifier, "the function of windows"))
    }
}

/// Whether a function of windows takes other values than it is called with, which the planner finds
/// too late, or not at all (55).
fn takes_others(name: &str, call: &Function) -> bool {
    let Some((_, taken)) = VALUES.iter().find(|(known, _)| *known == name) else { return false };
    let is_so = matches!(&call.args, FunctionArguments::List(list) if list.args.len() == *taken);
    call.over.is_some() && !is_so
}

/// What says which values an aggregate takes, and in which order.
fn of_values(call: &Function) -> Option<&'static str> {
    if call.filter.is_some() {
        return Some("FILTER");
    }
    if !call.within_group.is_empty() {
        return Some("WITHIN GROUP");
    }
    let FunctionArguments::List(list) = &call.args else { return None };
    if list.duplicate_treatment == Some(DuplicateTreatment::Distinct) {
        return Some("DISTINCT");
    }
    let is_order =
        |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
    list.clauses.iter().any(is_order).then_some("ORDER BY")
}

/// Leaves the order out of aggregates that come to the same in each.
#[derive(Debug)]
pub(crate) struct Unordered;

impl ExprPlanner for Unordered {
    fn plan_aggregate(
        &self,
        mut expr: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        let func = &expr.func;
        if !ORDERED.contains(&func.name()) && !func.supports_within_group_clause() {
            expr.order_by.clear();
        }
        Ok(PlannerResult::Original(expr))
    }
}
