//! `x = ANY (list)` that is unknown where SQL has it so.
//!
//! The planner asks whether the list has the value, or is above its least one, which is false where
//! no element is but one of them is NULL. What it makes of `ALL` knows of that, and is the
//! opposite.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Spells `x > ANY (list)` as `NOT x <= ALL (list)`.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Opposites);
}

struct Opposites;

impl VisitorMut for Opposites {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let Expr::AnyOp { left, compare_op, right, .. } = expr else {
            return ControlFlow::Continue(());
        };
        if let Some(opposite) = opposite(compare_op)
            && may_have_null(right)
        {
            let null = || Box::new(Expr::value(Value::Null));
            let left = std::mem::replace(left, null());
            let right = std::mem::replace(right, null());
            let of_all = Expr::AllOp { left, compare_op: opposite, right };
            let of_all = Box::new(Expr::Nested(Box::new(of_all)));
            let not = Expr::UnaryOp { op: UnaryOperator::Not, expr: of_all };
            *expr = Expr::Nested(Box::new(not));
        }
        ControlFlow::Continue(())
    }
}

/// A list that is written without NULL is a list of `IN` to the planner, which takes less.
fn may_have_null(list: &Expr) -> bool {
    match list {
        Expr::Nested(list) => may_have_null(list),
        Expr::Subquery(_) => false,
        Expr::Array(array) => array
            .elem
            .iter()
            .any(|element| !matches!(element, Expr::Value(value) if value.value != Value::Null)),
        _ => true,
    }
}

fn opposite(op: &BinaryOperator) -> Option<BinaryOperator> {
    Some(match op {
        BinaryOperator::Eq => BinaryOperator::NotEq,
        BinaryOperator::NotEq => BinaryOperator::Eq,
        BinaryOperator::Lt => BinaryOperator::GtEq,
        BinaryOperator::LtEq => BinaryOperator::Gt,
        BinaryOperator::Gt => BinaryOperator::LtEq,
        BinaryOperator::GtEq => BinaryOperator::Lt,
        _ => return None,
    })
}
