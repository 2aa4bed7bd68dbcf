//! `LATERAL (VALUES (t.a), (t.b))`, which looks at the row beside: the planner takes no columns of
//! that in `VALUES`, so each of its rows becomes a `SELECT` (55).

use std::convert::Infallible;
use std::mem::take;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Parens, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, Values,
    VisitMut, VisitorMut,
};

use crate::statement;

/// Has each such `VALUES` be a `UNION ALL` of its rows.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Lateral);
}

struct Lateral;

impl VisitorMut for Lateral {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if let TableFactor::Derived { lateral: true, subquery, .. } = table
            && let SetExpr::Values(Values { rows, .. }) = subquery.body.as_mut()
            && let Some(united) = united(take(rows))
        {
            *subquery.body = united;
        }
        ControlFlow::Continue(())
    }
}

fn united(rows: Vec<Parens<Vec<Expr>>>) -> Option<SetExpr> {
    let each = rows.into_iter().map(|row| selected(row.content));
    let each: Vec<SetExpr> = each.collect::<Option<_>>()?;
    each.into_iter().reduce(|left, right| SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(left),
        right: Box::new(right),
    })
}

/// A row as a `SELECT`, with the names that `VALUES` has.
fn selected(row: Vec<Expr>) -> Option<SetExpr> {
    let mut body = *statement::query("SELECT 1").ok()?.body;
    let SetExpr::Select(select) = &mut body else { return None };
    let items = (1..).zip(row).map(|(number, expr): (usize, _)| {
        let alias = Ident::with_quote('"', format!("column{number}"));
        SelectItem::ExprWithAlias { expr, alias }
    });
    select.projection = items.collect();
    Some(body)
}
