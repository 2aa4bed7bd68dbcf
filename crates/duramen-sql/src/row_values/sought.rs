//! `(a, b) IN (SELECT x, y ..)`, where there is a row whose parts are equal.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, Query, SetExpr, TableFactor};

use super::{comparison, joined, not, row, size};
use crate::statement;

/// The parts of a condition, where unknown is as good as false.
pub(super) fn in_condition(condition: &mut Expr) {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            in_condition(left);
            in_condition(right);
        }
        Expr::Nested(inner) => in_condition(inner),
        Expr::InSubquery { expr, subquery, negated: false } => {
            let exists = row(expr).and_then(|left| exists(left, subquery, std::convert::identity));
            if let Some(exists) = exists {
                *condition = exists;
            }
        }
        _ => {}
    }
}

/// Whether the row is there, unknown if it may be.
pub(super) fn anywhere(left: &[Expr], query: &Query, is_negated: bool) -> Option<Expr> {
    let is = exists(left, query, std::convert::identity)?;
    let may_be =
        exists(left, query, |equal| Expr::IsNull(Box::new(Expr::Nested(Box::new(equal)))))?;
    let mut case = statement::expression("CASE WHEN 1 THEN true WHEN 2 THEN NULL ELSE false END");
    let Ok(Expr::Case { conditions, .. }) = &mut case else { return None };
    let [first, second] = conditions.as_mut_slice() else { return None };
    (first.condition, second.condition) = (is, may_be);
    let case = case.ok()?;
    Some(if is_negated { not(case) } else { case })
}

/// Whether the query has a row of which a condition holds, made of whether its parts are equal.
fn exists(left: &[Expr], query: &Query, condition: impl Fn(Expr) -> Expr) -> Option<Expr> {
    size(left)?;
    let names: Vec<String> = (0..left.len()).map(|at| format!("\"{at}\"")).collect();
    let text = format!("EXISTS (SELECT 1 FROM (SELECT 1) AS \"row\" ({}))", names.join(", "));
    let mut exists = statement::expression(&text).ok()?;
    let Expr::Exists { subquery, .. } = &mut exists else { return None };
    let SetExpr::Select(select) = subquery.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else {
        return None;
    };
    **subquery = query.clone();
    let equal = left.iter().enumerate().map(|(at, part)| {
        let found = Expr::Identifier(Ident::with_quote('"', at.to_string()));
        comparison(&found, &BinaryOperator::Eq, part)
    });
    select.selection = Some(condition(joined(equal, &BinaryOperator::And)));
    Some(exists)
}
