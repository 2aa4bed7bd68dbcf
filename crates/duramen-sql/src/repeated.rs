//! Names for columns of a SELECT that are asked for twice.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SetExpr, Value, VisitMut, VisitorMut, visit_expressions_mut,
};

/// Gives columns that are called as what they are of, where there was the same one before, its name
/// and a number: `SELECT score, score` has `score` and `score_1`. The planner, which refuses the
/// same name twice, does not look at casts, and takes a name without a table for the same as one
/// with any. A name that is given stays. A subquery is called as what it selects.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Repeated);
}

struct Repeated;

impl VisitorMut for Repeated {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        if select.projection.len() < 2 {
            return ControlFlow::Continue(());
        }
        let given = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            _ => None,
        });
        let mut bare: HashSet<String> = given.collect();
        let (mut seen, mut of_tables) = (HashSet::new(), HashSet::new());
        let mut names = bare.clone();
        let mut repeated = Vec::new();
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(Expr::Subquery(_)) => repeated.push(item),
                SelectItem::UnnamedExpr(expr) => {
                    let (of, name) = (without_casts(expr), name_of(expr));
                    let is_taken = match &of {
                        Expr::Identifier(_) => bare.contains(&name) || of_tables.contains(&name),
                        Expr::CompoundIdentifier(_) => bare.contains(&name),
                        _ => false,
                    };
                    let planned = of.to_string();
                    if is_taken || !seen.insert(planned.clone()) {
                        repeated.push(item);
                        continue;
                    }
                    match of {
                        Expr::Identifier(_) => _ = bare.insert(name.clone()),
                        Expr::CompoundIdentifier(_) => _ = of_tables.insert(name.clone()),
                        _ => {}
                    }
                    names.extend([name, planned]);
                }
                _ => {}
            }
        }
        for item in repeated {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let name = name_of(expr);
            let numbered = (1..).map(|number: u32| format!("{name}_{number}"));
            let mut candidates = std::iter::once(name.clone()).chain(numbered);
            let free = candidates.find(|name| names.insert(name.clone())).unwrap_or(name);
            let alias = Ident::with_quote('"', free);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::Continue(())
    }
}

/// What a column is called: the last part of its name, or else its text.
fn name_of(expr: &Expr) -> String {
    match without_casts(expr) {
        Expr::Identifier(name) => name.value,
        Expr::CompoundIdentifier(mut names) => {
            names.pop().map(|name| name.value).unwrap_or_default()
        }
        Expr::Subquery(query) => match query.body.as_ref() {
            SetExpr::Select(select) => match select.projection.first() {
                Some(SelectItem::UnnamedExpr(expr)) => name_of(expr),
                Some(SelectItem::ExprWithAlias { alias, .. }) => alias.value.clone(),
                _ => query.to_string(),
            },
            _ => query.to_string(),
        },
        other => other.to_string(),
    }
}

fn without_casts(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions_mut(&mut expr, |expr| {
        while let Expr::Cast { expr: inner, .. } = expr {
            *expr = std::mem::replace(&mut **inner, Expr::value(Value::Null));
        }
        ControlFlow::Continue(())
    });
    expr
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn only_columns_that_repeat_get_other_names() {
        let cases = [
            ("SELECT a, b, a", r#"SELECT a, b, a AS "a_1""#),
            ("SELECT t.a, u.a::INT, t.a::INT", r#"SELECT t.a, u.a::INT, t.a::INT AS "a_1""#),
            ("SELECT a, a AS a_1, a", r#"SELECT a, a AS a_1, a AS "a_2""#),
            ("SELECT a, a, a_1", r#"SELECT a, a AS "a_2", a_1"#),
            ("SELECT t.a, a, u.a", r#"SELECT t.a, a AS "a_1", u.a"#),
            ("SELECT a, t.a, u.b", r#"SELECT a, t.a AS "a_1", u.b"#),
            ("SELECT t.a, a, b AS a", r#"SELECT t.a AS "a_1", a AS "a_2", b AS a"#),
            (
                "SELECT (SELECT x, x), *, a AS b",
                r#"SELECT (SELECT x, x AS "x_1") AS "x", *, a AS b"#,
            ),
            (
                "SELECT t.a, (SELECT u.a), (SELECT 1 AS a_1)",
                r#"SELECT t.a, (SELECT u.a) AS "a_1", (SELECT 1 AS a_1) AS "a_1_1""#,
            ),
        ];
        for (text, expected) in cases {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            super::rewrite(&mut parsed);
            assert_eq!(parsed[0].to_string(), expected);
        }
    }
}
