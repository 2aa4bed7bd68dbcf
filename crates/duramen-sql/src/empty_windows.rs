//! Windows without rows, such as `ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING`.
//!
//! The planner refuses them (55), where `PostgreSQL` gives what a function is of no rows: so they
//! are written as windows of which no row is taken.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, VisitMut, VisitorMut,
    WindowFrame, WindowFrameBound, WindowType,
};

use crate::statement;

/// Functions that give the value of a row of the window.
const OF_ROW: [&str; 3] = ["first_value", "last_value", "nth_value"];

/// Functions that look at all rows of a partition, whatever the window has.
const OF_PARTITION: [&str; 8] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

/// Spells such windows as the planner knows them.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Speller);
}

struct Speller;

impl VisitorMut for Speller {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(function) = expr
            && let Some(WindowType::WindowSpec(window)) = &mut function.over
            && window.window_frame.take_if(|frame| is_empty(frame)).is_some()
        {
            of_no_rows(function);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a window ends before it begins, both so many rows before or behind a row.
fn is_empty(frame: &WindowFrame) -> bool {
    match (&frame.start_bound, &frame.end_bound) {
        (
            WindowFrameBound::Preceding(Some(start)),
            Some(WindowFrameBound::Preceding(Some(end))),
        ) => number(start).zip(number(end)).is_some_and(|(start, end)| start < end),
        (
            WindowFrameBound::Following(Some(start)),
            Some(WindowFrameBound::Following(Some(end))),
        ) => number(start).zip(number(end)).is_some_and(|(start, end)| start > end),
        _ => false,
    }
}

fn number(bound: &Expr) -> Option<f64> {
    let Expr::Value(value) = bound else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    text.parse().ok()
}

/// Has a function take no row.
fn of_no_rows(function: &mut Function) {
    let name = function.name.to_string();
    let is_of = |names: &[&str]| names.iter().any(|of| name.eq_ignore_ascii_case(of));
    if is_of(&OF_PARTITION) {
        return;
    }
    if !is_of(&OF_ROW) {
        let none = Expr::value(Value::Boolean(false));
        function.filter = Some(Box::new(none));
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.first_mut()
        && let Ok(none) = statement::expression(&format!("CASE WHEN false THEN {value} END"))
    {
        *value = none;
    }
}
