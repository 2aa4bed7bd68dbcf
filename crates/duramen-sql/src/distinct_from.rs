//! `a IS DISTINCT FROM b AND c`, which the parser reads as `a IS DISTINCT FROM (b AND c)`.
//!
//! It takes all that follows for the right side (sqlparser 0.62), where the standard lets `IS` bind
//! closer than `NOT`, `AND` and `OR`. What stands in brackets is an expression of its own, so that
//! the operators can be told apart afterwards, and are put where they belong.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut,
};

/// Ends each `IS [NOT] DISTINCT FROM` before the next `AND` or `OR`.
pub(crate) fn regroup(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Ends);
}

struct Ends;

impl VisitorMut for Ends {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        if takes_too_much(expr) {
            let mut conditions = Conditions::default();
            conditions.add(std::mem::replace(expr, Expr::value(Value::Null)));
            *expr = conditions.grouped();
        }
        ControlFlow::Continue(())
    }
}

/// Whether a comparison at the end of an expression has conditions for its right side.
fn takes_too_much(mut expr: &Expr) -> bool {
    loop {
        expr = match expr {
            Expr::BinaryOp { op, right, .. } if is_junction(op) => right,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => expr,
            Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => match &**right {
                Expr::BinaryOp { op, .. } if is_junction(op) => return true,
                right => right,
            },
            _ => return false,
        }
    }
}

fn is_junction(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::And | BinaryOperator::Or)
}

/// What stands between the operators `OR`, and within each what stands between `AND`, as it is
/// written.
#[derive(Default)]
struct Conditions(Vec<Vec<Expr>>);

impl Conditions {
    fn add(&mut self, expr: Expr) {
        match expr {
            Expr::BinaryOp { left, op, right } if is_junction(&op) => {
                self.add(*left);
                self.join(Self::of(*right), op == BinaryOperator::And);
            }
            Expr::UnaryOp { op: op @ UnaryOperator::Not, expr } => {
                let within = Self::of(*expr);
                self.join(within.with_first(|expr| Expr::UnaryOp { op, expr }), true);
            }
            Expr::IsDistinctFrom(left, right) => {
                let distinct = |right| Expr::IsDistinctFrom(left, right);
                self.join(Self::of(*right).with_first(|right| in_brackets(distinct(right))), true);
            }
            Expr::IsNotDistinctFrom(left, right) => {
                let same = |right| Expr::IsNotDistinctFrom(left, right);
                self.join(Self::of(*right).with_first(|right| in_brackets(same(right))), true);
            }
            expr => self.join(Self(vec![vec![expr]]), true),
        }
    }

    fn of(expr: Expr) -> Self {
        let mut conditions = Self::default();
        conditions.add(expr);
        conditions
    }

    /// Adds what stands behind an `AND`, or else behind an `OR`.
    fn join(&mut self, behind: Self, is_and: bool) {
        let mut behind = behind.0.into_iter();
        if is_and && let Some(last) = self.0.last_mut() {
            last.extend(behind.next().into_iter().flatten());
        }
        self.0.extend(behind);
    }

    /// The same with another expression in the first place.
    fn with_first(mut self, wrap: impl FnOnce(Box<Expr>) -> Expr) -> Self {
        if let Some(first) = self.0.first_mut().and_then(|all| all.first_mut()) {
            let expr = std::mem::replace(first, Expr::value(Value::Null));
            *first = wrap(Box::new(expr));
        }
        self
    }

    fn grouped(self) -> Expr {
        let any = self.0.into_iter().map(|all| chain(all, &BinaryOperator::And));
        chain(any, &BinaryOperator::Or)
    }
}

/// It is read the same again when it is printed.
fn in_brackets(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

fn chain(conditions: impl IntoIterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let joined = conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    });
    joined.unwrap_or_else(|| Expr::value(Value::Null))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn read(text: &str) -> Expr {
        Parser::new(&GenericDialect {}).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    #[test]
    fn comparison_ends_before_the_next_operator() {
        for (text, grouped) in [
            ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
            ("a IS NOT DISTINCT FROM b OR c AND d", "(a IS NOT DISTINCT FROM b) OR c AND d"),
            ("p AND a IS DISTINCT FROM b OR q", "p AND (a IS DISTINCT FROM b) OR q"),
            ("p OR q AND a IS DISTINCT FROM b OR r", "p OR q AND (a IS DISTINCT FROM b) OR r"),
            ("NOT a IS DISTINCT FROM b AND c", "NOT (a IS DISTINCT FROM b) AND c"),
            ("a IS DISTINCT FROM b AND NOT c OR d", "(a IS DISTINCT FROM b) AND NOT c OR d"),
            (
                "a IS DISTINCT FROM b AND c IS NOT DISTINCT FROM d OR e IS DISTINCT FROM f AND g",
                "(a IS DISTINCT FROM b) AND (c IS NOT DISTINCT FROM d) \
                 OR (e IS DISTINCT FROM f) AND g",
            ),
            ("f(a IS DISTINCT FROM b AND c) OR d", "f((a IS DISTINCT FROM b) AND c) OR d"),
            (
                "x BETWEEN 1 AND 2 AND a IS DISTINCT FROM b + 1 AND c",
                "x BETWEEN 1 AND 2 AND (a IS DISTINCT FROM b + 1) AND c",
            ),
        ] {
            let mut found = read(text);
            regroup(&mut found);
            assert_eq!(found, read(grouped), "{text}");
        }
    }

    #[test]
    fn what_is_in_brackets_stays() {
        for text in ["a IS DISTINCT FROM (b AND c)", "a IS DISTINCT FROM b", "NOT (a OR b) AND c"] {
            let mut found = read(text);
            regroup(&mut found);
            assert_eq!(found, read(text), "{text}");
        }
    }
}
