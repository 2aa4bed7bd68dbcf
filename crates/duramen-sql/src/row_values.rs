//! Rows in brackets that are compared: `(a, b) = (1, 2)`, `(a, b) < (1, 2)` and `(a, b) IN (...)`.
//!
//! The planner takes rows for structs, which are equal or not, whatever is NULL in them. So what is
//! compared are their parts, as the standard has it. Those of a row that is sought in a subquery
//! are compared there.

use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Select, UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};

mod sought;

/// Expressions that the parts of rows may come to, as each of them stands wherever it is compared.
const EXPRESSIONS_MAX: usize = 1 << 17;

/// Compares the parts of rows.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Rows);
}

struct Rows;

impl VisitorMut for Rows {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if let Some(condition) = &mut select.selection {
            sought::in_condition(condition);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        let compared = match &*expr {
            Expr::BinaryOp { left, op, right } => match (row(left), row(right)) {
                (Some(left), Some(right)) => compared(left, op, right),
                _ => None,
            },
            Expr::InList { expr: left, list, negated } => {
                row(left).and_then(|left| listed(left, list, *negated))
            }
            Expr::InSubquery { expr: left, subquery, negated } => {
                row(left).and_then(|left| sought::anywhere(left, subquery, *negated))
            }
            _ => None,
        };
        if let Some(compared) = compared {
            *expr = Expr::Nested(Box::new(compared));
        }
        ControlFlow::Continue(())
    }
}

/// The parts of a row.
fn row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::Tuple(parts) => Some(parts),
        _ => None,
    }
}

fn compared(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    let is_alike = left.len() == right.len() && !left.is_empty();
    if !is_alike || size(left)?.saturating_add(size(right)?) > EXPRESSIONS_MAX {
        return None;
    }
    match op {
        BinaryOperator::Eq => Some(equal(left, right)),
        BinaryOperator::NotEq => Some(not(equal(left, right))),
        BinaryOperator::Lt | BinaryOperator::LtEq => {
            Some(in_order(left, (&BinaryOperator::Lt, op), right))
        }
        BinaryOperator::Gt | BinaryOperator::GtEq => {
            Some(in_order(left, (&BinaryOperator::Gt, op), right))
        }
        _ => None,
    }
}

fn equal(left: &[Expr], right: &[Expr]) -> Expr {
    let pairs = left.iter().zip(right);
    let parts = pairs.map(|(left, right)| comparison(left, &BinaryOperator::Eq, right));
    joined(parts, &BinaryOperator::And)
}

/// `a < x OR (a = x AND (b < y OR (...)))`, where the last parts are compared as is asked.
fn in_order(
    left: &[Expr],
    (before, asked): (&BinaryOperator, &BinaryOperator),
    right: &[Expr],
) -> Expr {
    let mut pairs = left.iter().zip(right).rev();
    let last = pairs.next().map(|(left, right)| comparison(left, asked, right));
    let rest = joined(last, &BinaryOperator::And);
    pairs.fold(rest, |rest, (left, right)| {
        let is_same = comparison(left, &BinaryOperator::Eq, right);
        let is_before = comparison(left, before, right);
        let behind = joined([is_same, Expr::Nested(Box::new(rest))], &BinaryOperator::And);
        joined([is_before, behind], &BinaryOperator::Or)
    })
}

/// Whether a row is one of several.
fn listed(left: &[Expr], list: &[Expr], is_negated: bool) -> Option<Expr> {
    let of_left = size(left)?;
    let mut expressions = 0;
    let mut any = Vec::with_capacity(list.len());
    for right in list {
        let right = row(right).filter(|right| right.len() == left.len())?;
        expressions += of_left.saturating_add(size(right)?);
        if expressions > EXPRESSIONS_MAX {
            return None;
        }
        any.push(equal(left, right));
    }
    let any = joined(any, &BinaryOperator::Or);
    Some(if is_negated { not(any) } else { any })
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(expr))) }
}

fn comparison(left: &Expr, op: &BinaryOperator, right: &Expr) -> Expr {
    let (left, right) = (Box::new(part(left)), Box::new(part(right)));
    Expr::BinaryOp { left, op: op.clone(), right }
}

/// A part of a row, which is read the same again when it is printed.
fn part(expr: &Expr) -> Expr {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) => expr.clone(),
        expr => Expr::Nested(Box::new(expr.clone())),
    }
}

/// Expressions with an operator between each two; true if there is none.
fn joined(parts: impl IntoIterator<Item = Expr>, op: &BinaryOperator) -> Expr {
    let joined = parts.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: op.clone(),
        right: Box::new(right),
    });
    joined.unwrap_or_else(|| Expr::value(Value::Boolean(true)))
}

/// How many expressions there are in all; none where queries or rows are in them, which would be
/// multiplied with what they have in them.
fn size(parts: &[Expr]) -> Option<usize> {
    let mut size = Size(0);
    let is_simple = parts.iter().all(|part| part.visit(&mut size).is_continue());
    is_simple.then_some(size.0)
}

struct Size(usize);

impl Visitor for Size {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.0 += 1;
        match expr {
            Expr::Tuple(_) | Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::dialect::Sql;

    #[test]
    fn rows_become_comparisons_of_their_parts() {
        for (text, expected) in [
            ("(a, b) = (1, 2)", "(a = 1 AND b = 2)"),
            ("NOT (a, b) <> (1, 2)", "NOT (NOT (a = 1 AND b = 2))"),
            ("(a, b) <= (1, 2)", "(a < 1 OR a = 1 AND (b <= 2))"),
            ("(a, b, c) > (1, 2, 3)", "(a > 1 OR a = 1 AND (b > 2 OR b = 2 AND (c > 3)))"),
            ("(a, b) IN ((1, 2), (3, c + 1))", "(a = 1 AND b = 2 OR a = 3 AND b = (c + 1))"),
            ("(a, b) NOT IN ((1, 2))", "(NOT (a = 1 AND b = 2))"),
            ("p AND (a, b) = (1, 2) OR q", "p AND (a = 1 AND b = 2) OR q"),
        ] {
            let dialect = Sql::of(text);
            let mut parser = Parser::new(&dialect).try_with_sql(text).unwrap();
            let mut expr = parser.parse_expr().unwrap();
            rewrite(&mut expr);
            assert_eq!(expr.to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_are_no_like_rows_stays() {
        for text in ["(a, b) = (1, 2, 3)", "(a, (b, c)) = (1, (2, 3))", "(a, b) + (1, 2)"] {
            let dialect = Sql::of(text);
            let mut parser = Parser::new(&dialect).try_with_sql(text).unwrap();
            let mut expr = parser.parse_expr().unwrap();
            rewrite(&mut expr);
            assert_eq!(expr.to_string(), text);
        }
    }
}
