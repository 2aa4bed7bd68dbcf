//! Names for columns of a SELECT that are fields of structs, or casts of columns.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, Query, Select, SelectItem, SetExpr, Subscript, TableFactor, Value,
    Visit, VisitMut, VisitorMut, visit_expressions,
};

use crate::unnest::{TableNames, add_names, parts_named};

/// Calls `q.geometry.type` and `geometry['type']` by the last name, `type`, as others do; the
/// planner has `q.geometry[type]` for both; and `CAST(q.mag AS TEXT)` by that of the column, `mag`.
/// What the planner has stays where another column is called so already,
/// or may be, because of a `*`, and where the clauses behind `FROM` have a column of that name,
/// which stays the one that is meant.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Namer { queries: 0 });
}

struct Namer {
    /// In how many queries within expressions it is, of whose columns nobody sees the names.
    queries: usize,
}

fn has_query(expr: &Expr) -> bool {
    matches!(expr, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. })
}

impl VisitorMut for Namer {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.queries += usize::from(has_query(expr));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Infallible> {
        self.queries -= usize::from(has_query(expr));
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let mut meant = HashSet::new();
        add_meant(&query.order_by, &mut meant);
        let is_ordered = query.order_by.is_some();
        if let SetExpr::Select(select) = query.body.as_mut()
            && self.queries == 0
            && !(is_ordered && select.distinct.is_some())
        {
            name_fields(select, meant);
        }
        ControlFlow::Continue(())
    }
}

/// Adds the names that expressions begin with.
fn add_meant(part: &impl Visit, meant: &mut HashSet<String>) {
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions(part, |expr| {
        let first = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.first(),
            _ => None,
        };
        meant.extend(first.map(|name| name.value.clone()));
        ControlFlow::Continue(())
    });
}

fn name_fields(select: &mut Select, mut taken: HashSet<String>) {
    let mut tables = Vec::new();
    for joined in &select.from {
        add_names(joined, &mut tables);
    }
    tables.retain(|name| !is_of_elements(select, name));
    add_meant(&select.group_by, &mut taken);
    add_meant(&select.having, &mut taken);
    add_meant(&select.qualify, &mut taken);
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => _ = taken.insert(name.value.clone()),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
                let is_column = field(&tables, names).is_none();
                taken.extend(names.last().filter(|_| is_column).map(|name| name.value.clone()));
            }
            SelectItem::UnnamedExpr(_) => {}
            SelectItem::ExprWithAlias { alias, .. } => _ = taken.insert(alias.value.clone()),
            _ => return,
        }
    }
    for item in &mut select.projection {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let name = match &*expr {
            Expr::CompoundIdentifier(names) => field(&tables, names),
            Expr::CompoundFieldAccess { access_chain, .. } => {
                access_chain.last().and_then(accessed)
            }
            Expr::Cast { expr, .. } => match &**expr {
                Expr::Identifier(name) => Some(name.value.clone()),
                Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
                _ => None,
            },
            _ => None,
        };
        if let Some(name) = name.filter(|name| taken.insert(name.clone())) {
            let alias = Ident::with_quote('"', name);
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}

/// Whether a name is that of elements that are unnested: what stands behind it is a field of them.
fn is_of_elements(select: &Select, name: &[String]) -> bool {
    let joins = select.from.iter().flat_map(|from| &from.joins).map(|join| &join.relation);
    let mut factors = select.from.iter().map(|from| &from.relation).chain(joins);
    factors.any(|factor| match factor {
        TableFactor::UNNEST { alias: Some(alias), .. } => name == [alias.name.value.clone()],
        _ => false,
    })
}

/// The last name behind that of a column.
fn field(tables: &[TableNames], names: &[Ident]) -> Option<String> {
    let of_table = tables.iter().filter_map(|table| parts_named(table, names)).max().unwrap_or(0);
    let last = names.last().filter(|_| names.len() > of_table + 1)?;
    Some(last.value.clone())
}

fn accessed(access: &AccessExpr) -> Option<String> {
    match access {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.value.clone()),
        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(value) }) => {
            match &value.value {
                Value::SingleQuotedString(name) => Some(name.clone()),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn fields_are_called_by_their_last_name_where_nothing_else_is_meant_by_it() {
        let cases = [
            ("SELECT q.g.type FROM q", r#"SELECT q.g.type AS "type" FROM q"#),
            ("SELECT g.type, q.mag FROM q", r#"SELECT g.type AS "type", q.mag FROM q"#),
            ("SELECT q.g['type'] FROM q", r#"SELECT q.g['type'] AS "type" FROM q"#),
            (
                r#"SELECT d."$[*]".n, "$[*]".n.m FROM d."$[*]""#,
                r#"SELECT d."$[*]".n, "$[*]".n.m AS "m" FROM d."$[*]""#,
            ),
            ("SELECT CAST(q.mag AS TEXT) FROM q", r#"SELECT CAST(q.mag AS TEXT) AS "mag" FROM q"#),
            ("SELECT mag, CAST(mag AS TEXT) FROM q", "SELECT mag, CAST(mag AS TEXT) FROM q"),
            ("SELECT g.type, type FROM q", "SELECT g.type, type FROM q"),
            ("SELECT g.type, h.type FROM q", r#"SELECT g.type AS "type", h.type FROM q"#),
            ("SELECT *, g.type FROM q", "SELECT *, g.type FROM q"),
            ("SELECT g.type FROM q ORDER BY type", "SELECT g.type FROM q ORDER BY type"),
            (
                "SELECT g.type, count(*) FROM q GROUP BY g.type",
                r#"SELECT g.type AS "type", count(*) FROM q GROUP BY g.type"#,
            ),
            ("SELECT g.g FROM q GROUP BY g.g", "SELECT g.g FROM q GROUP BY g.g"),
            (
                "SELECT type FROM (SELECT g.type FROM q)",
                r#"SELECT type FROM (SELECT g.type AS "type" FROM q)"#,
            ),
            (
                "SELECT a FROM q WHERE a IN (SELECT g.type FROM q)",
                "SELECT a FROM q WHERE a IN (SELECT g.type FROM q)",
            ),
            (
                "SELECT i.sku, i FROM q, UNNEST(q.items) AS i",
                r#"SELECT i.sku AS "sku", i FROM q, UNNEST(q.items) AS i"#,
            ),
        ];
        for (text, expected) in cases {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            super::rewrite(&mut parsed);
            assert_eq!(parsed[0].to_string(), expected);
        }
    }
}
