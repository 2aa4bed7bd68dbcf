//! Queries of a `WITH` that are called as others of a query around them, which they hide.
//!
//! The planner refuses them. So those of a name that is there more than once have names of their
//! own, by which the tables are read that are meant by it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectName, Query, TableAlias, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

/// Gives such queries names of their own. Gives back the names of all queries of a `WITH`, as they
/// are written.
pub(crate) fn rewrite(parsed: &mut (impl Visit + VisitMut)) -> Vec<String> {
    let mut found = Definitions::default();
    let ControlFlow::Continue(()) = Visit::visit(parsed, &mut found);
    let names = found.0.keys().cloned().collect();
    found.0.retain(|_, times| *times > 1);
    if !found.0.is_empty() {
        let ControlFlow::Continue(()) = VisitMut::visit(parsed, &mut Namer(found.0));
    }
    names
}

/// How often each name is given to a query.
#[derive(Default)]
struct Definitions(HashMap<String, usize>);

impl Visitor for Definitions {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            *self.0.entry(cte.alias.name.value.clone()).or_default() += 1;
        }
        ControlFlow::Continue(())
    }
}

/// Renames queries, the inner ones first: what is still called by a name then is not one of them.
struct Namer(HashMap<String, usize>);

impl VisitorMut for Namer {
    type Break = Infallible;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        let Some(with) = &query.with else { return ControlFlow::Continue(()) };
        let names: Vec<String> =
            with.cte_tables.iter().map(|cte| cte.alias.name.value.clone()).collect();
        for (at, name) in names.iter().enumerate() {
            // The same name twice in one list is wrong, which the planner says.
            let is_alone = names.iter().filter(|other| *other == name).count() == 1;
            if let Some(number) = self.0.get_mut(name).filter(|_| is_alone) {
                let renamed = format!("{name} ({number})");
                *number -= 1;
                rename(query, at, &Meant { name, renamed });
            }
        }
        ControlFlow::Continue(())
    }
}

/// Renames a query of a `WITH`, and the tables that it is meant by: in those behind it, in all of
/// them if they are recursive, and in what the `WITH` is of.
fn rename(query: &mut Query, at: usize, meant: &Meant<'_>) {
    let with = query.with.take();
    let mut tables = Tables(meant);
    let ControlFlow::Continue(()) = VisitMut::visit(query, &mut tables);
    query.with = with.map(|mut with| {
        let first = if with.recursive { 0 } else { at + 1 };
        for cte in with.cte_tables.iter_mut().skip(first) {
            let ControlFlow::Continue(()) = VisitMut::visit(&mut cte.query, &mut tables);
        }
        if let Some(Cte { alias, .. }) = with.cte_tables.get_mut(at) {
            alias.name = Ident::with_quote('"', &meant.renamed);
        }
        with
    });
}

/// A name, and what it is replaced by.
struct Meant<'a> {
    name: &'a str,
    renamed: String,
}

/// Reads the tables of a name by another one, under the name that they had.
struct Tables<'a>(&'a Meant<'a>);

impl VisitorMut for Tables<'_> {
    type Break = Infallible;

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        let TableFactor::Table { name, alias, args: None, .. } = table else {
            return ControlFlow::Continue(());
        };
        let Some(ident) = only_part(name).filter(|ident| ident.value == self.0.name) else {
            return ControlFlow::Continue(());
        };
        let name_before = ident.clone();
        alias.get_or_insert_with(|| TableAlias {
            explicit: true,
            name: name_before,
            columns: Vec::new(),
            at: None,
        });
        *name = ObjectName::from(vec![Ident::with_quote('"', &self.0.renamed)]);
        ControlFlow::Continue(())
    }
}

fn only_part(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn names_that_hide_others_are_told_apart() {
        for (text, expected) in [
            ("WITH c AS (SELECT 1) SELECT * FROM c", "WITH c AS (SELECT 1) SELECT * FROM c"),
            (
                "WITH c AS (SELECT 1 AS n), d AS (WITH c AS (SELECT n + 1 AS n FROM c) SELECT \
                 c.n FROM c) SELECT * FROM c, d",
                "WITH \"c (1)\" AS (SELECT 1 AS n), d AS (WITH \"c (2)\" AS (SELECT n + 1 AS n \
                 FROM \"c (1)\" AS c) SELECT c.n FROM \"c (2)\" AS c) SELECT * FROM \"c (1)\" AS \
                 c, d",
            ),
            (
                "WITH RECURSIVE c AS (SELECT 1 UNION ALL SELECT 2 FROM c x) SELECT (WITH c AS \
                 (SELECT 3) SELECT * FROM c) FROM c",
                "WITH RECURSIVE \"c (1)\" AS (SELECT 1 UNION ALL SELECT 2 FROM \"c (1)\" x) \
                 SELECT (WITH \"c (2)\" AS (SELECT 3) SELECT * FROM \"c (2)\" AS c) FROM \"c \
                 (1)\" AS c",
            ),
            (
                "WITH c AS (SELECT 1), c AS (SELECT 2) SELECT * FROM c",
                "WITH c AS (SELECT 1), c AS (SELECT 2) SELECT * FROM c",
            ),
        ] {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            super::rewrite(&mut parsed);
            assert_eq!(parsed[0].to_string(), expected);
        }
    }
}
