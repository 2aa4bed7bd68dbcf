//! Names for columns that have none: they are called as they are written, so that a query around
//! theirs can name them.
//!
//! The planner calls them as it reads them, `sum(t.a) + Int64(1)`.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, Select, SelectItem, Subscript, Value, VisitMut, VisitorMut,
};

/// Gives each column of a SELECT that has no name its text, with a number where another one is
/// called so.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Namer);
}

struct Namer;

impl VisitorMut for Namer {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut taken: HashSet<String> = select.projection.iter().filter_map(name).collect();
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if has_name(expr) {
                continue;
            }
            let text = expr.to_string();
            let numbered = (1..).map(|number: u32| format!("{text}_{number}"));
            let mut names = std::iter::once(text.clone()).chain(numbered);
            let free = names.find(|name| taken.insert(name.clone())).unwrap_or(text);
            let alias = Ident::with_quote('"', free);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
        ControlFlow::Continue(())
    }
}

/// What a column is called that has a name.
fn name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
            names.last().map(|name| name.value.clone())
        }
        _ => None,
    }
}

/// Whether a column is called by the last name in it, or as a subquery that it is.
fn has_name(expr: &Expr) -> bool {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_) => true,
        Expr::CompoundFieldAccess { access_chain, .. } => access_chain.last().is_some_and(is_name),
        Expr::Cast { expr, .. } | Expr::Nested(expr) => has_name(expr),
        _ => false,
    }
}

/// Whether what stands behind a value is the name of a field in it.
fn is_name(access: &AccessExpr) -> bool {
    match access {
        AccessExpr::Dot(_) => true,
        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(index) }) => {
            matches!(index.value, Value::SingleQuotedString(_))
        }
        AccessExpr::Subscript(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    /// They once were called as the planner reads them, within other queries and beside a `*`.
    #[test]
    fn columns_without_names_are_called_as_they_are_written() {
        for (text, expected) in [
            ("SELECT 1, sum(t.a)", r#"SELECT 1 AS "1", sum(t.a) AS "sum(t.a)""#),
            ("SELECT a + 1, t.b", r#"SELECT a + 1 AS "a + 1", t.b"#),
            ("SELECT -a AS x, -a", r#"SELECT -a AS x, -a AS "-a""#),
            ("SELECT 1 AS \"1\", 1", r#"SELECT 1 AS "1", 1 AS "1_1""#),
            ("SELECT *, 1", r#"SELECT *, 1 AS "1""#),
            ("SELECT CAST(a AS INT), (b)", "SELECT CAST(a AS INT), (b)"),
            ("SELECT l[1], o['a'], o.a.b", r#"SELECT l[1] AS "l[1]", o['a'], o.a.b"#),
            (
                "SELECT * FROM (SELECT trim(a), trim(a) FROM t)",
                "SELECT * FROM (SELECT TRIM(a) AS \"TRIM(a)\", TRIM(a) AS \"TRIM(a)_1\" FROM t)",
            ),
            (
                "WITH c AS (SELECT a || \"b\") SELECT (SELECT max(x) FROM c)",
                "WITH c AS (SELECT a || \"b\" AS \"a || \"\"b\"\"\") \
                 SELECT (SELECT max(x) AS \"max(x)\" FROM c)",
            ),
        ] {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            super::rewrite(&mut parsed);
            assert_eq!(parsed[0].to_string(), expected, "{text}");
        }
    }
}
