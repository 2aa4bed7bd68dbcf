//! Columns that both sides of a join have, where tables are known.
//!
//! `NATURAL JOIN` is by the fields that both sides have, which stand in a `USING` then. The columns
//! of the engine are none of them: each record has a `_revision` of its own, so that a join by all
//! columns would find nothing. In a `USING` behind several tables, the one that has a column stands
//! before its name then, where that matters.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DFSchema, DFSchemaRef, Result, TableReference};
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, ObjectName, ObjectNamePart, Query, Select, SelectItem,
    SetExpr, Statement as Parsed, TableFactor, TableWithJoins, Visit, VisitMut, Visitor,
    VisitorMut, With,
};
use duramen::{Error, ErrorKind};

use crate::change::{KEY, OF_ENGINE};
use crate::merged::Left;
use crate::{failure, merged, statement};

/// The columns of versions, which the engine has as well.
const OF_VERSIONS: [&str; 4] = ["_valid_from", "_valid_to", "_valid_from_time", "_valid_to_time"];

/// A join whose columns are to be found out.
struct Asked {
    /// All that stands before it.
    left: TableWithJoins,
    /// The table behind, if it is a `NATURAL JOIN`.
    right: Option<TableWithJoins>,
    /// The columns of a `USING` whose table is to be found out.
    columns: Vec<Ident>,
    /// What stands before the queries that it is in.
    with: Vec<With>,
}

/// Names the columns of each `NATURAL JOIN`, those within other queries first, and the tables of
/// those of a `USING` that are named elsewhere, too.
pub(crate) async fn rewrite(state: &SessionState, parsed: &mut Parsed) -> Result<()> {
    if Visit::visit(parsed, &mut Asker).is_continue() {
        return Ok(());
    }
    let mut uses = Uses::default();
    let ControlFlow::Continue(()) = Visit::visit(parsed, &mut uses);
    let mut finder = Finder { matter: uses.matter(), ..Finder::default() };
    while let ControlFlow::Break(asked) = VisitMut::visit(parsed, &mut finder) {
        finder.names = Some(names(state, asked).await?);
        let _ = VisitMut::visit(parsed, &mut finder);
        finder.with.clear();
    }
    merged::rewrite_known(parsed).map_err(failure::external)
}

/// The columns that a join is by.
async fn names(state: &SessionState, asked: Asked) -> Result<Vec<ObjectName>> {
    let left = columns(state, asked.left, &asked.with).await?;
    let Some(right) = asked.right else {
        return asked.columns.iter().map(|name| of_table(&left, name)).collect();
    };
    let right = columns(state, right, &asked.with).await?;
    let is_field = |name: &&String| {
        let name = name.as_str();
        name != KEY && !OF_ENGINE.contains(&name) && !OF_VERSIONS.contains(&name)
    };
    let is_of_right = |name: &&String| right.fields().iter().any(|of| of.name() == *name);
    let left = left.fields().iter().map(|field| field.name());
    let both = left.filter(is_field).filter(is_of_right);
    let names: Vec<_> = both.map(|name| Ident::with_quote('"', name).into()).collect();
    if names.is_empty() {
        let message = "a NATURAL JOIN of tables that have no field in common: say by what, as in \
                       JOIN .. USING (_key), or CROSS JOIN for each row with each";
        return Err(failure::external(Error::new(ErrorKind::Invalid, message)));
    }
    Ok(names)
}

/// A column behind the only table that has it.
fn of_table(columns: &DFSchema, name: &Ident) -> Result<ObjectName> {
    let mut tables = columns.iter().filter(|(_, field)| *field.name() == name.value);
    let table = match (tables.next(), tables.next()) {
        (Some((Some(table), _)), None) => table,
        (found, _) => {
            let (name, how_many) = (&name.value, if found.is_none() { "none" } else { "several" });
            let message = format!(
                "JOIN .. USING ({name}): the column \"{name}\" is in {how_many} of the tables \
                 before it: say by what to join, as in ON a.{name} = b.{name}"
            );
            return Err(failure::external(Error::new(ErrorKind::Invalid, message)));
        }
    };
    let parts = match table {
        TableReference::Bare { table } => vec![table],
        TableReference::Partial { schema, table } | TableReference::Full { schema, table, .. } => {
            vec![schema, table]
        }
    };
    let parts = parts.into_iter().map(|part| Ident::with_quote('"', part.as_ref()));
    let parts = parts.chain([name.clone()]).map(ObjectNamePart::Identifier);
    Ok(ObjectName(parts.collect()))
}

/// The columns of tables, behind what stands before the queries they are in.
async fn columns(
    state: &SessionState,
    tables: TableWithJoins,
    with: &[With],
) -> Result<DFSchemaRef> {
    let mut query = statement::query("SELECT * FROM t")?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.from = vec![tables];
    }
    for with in with {
        query.with = Some(match query.with.take() {
            None => with.clone(),
            Some(mut outer) => {
                let is_hidden = |name: &Ident| {
                    with.cte_tables.iter().any(|inner| inner.alias.name.value == name.value)
                };
                outer.cte_tables.retain(|of| !is_hidden(&of.alias.name));
                outer.cte_tables.extend(with.cte_tables.iter().cloned());
                With { recursive: outer.recursive || with.recursive, ..outer }
            }
        });
    }
    let statement = Statement::Statement(Box::new(Parsed::Query(Box::new(query))));
    let plan = state.statement_to_plan(statement).await?;
    Ok(Arc::clone(plan.schema()))
}

/// What is named, and what joins are by.
#[derive(Default)]
struct Uses {
    /// How often each column is named without a table, but for lists of columns.
    names: HashMap<String, isize>,
    /// The columns whose table is to be found out.
    unclear: Vec<String>,
    /// Whether there is a join whose columns are made of those of its sides.
    has_made: bool,
}

impl Uses {
    /// Whether it matters which table has a column.
    fn matter(&self) -> bool {
        let is_used = |name: &String| self.names.get(name).is_some_and(|times| *times > 0);
        self.has_made || self.unclear.iter().any(is_used)
    }

    fn add(&mut self, expr: &Expr, times: isize) {
        if let Expr::Identifier(name) = expr {
            *self.names.entry(name.value.clone()).or_default() += times;
        }
    }
}

impl Visitor for Uses {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        self.add(expr, 1);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Infallible> {
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expr) = item {
                self.add(expr, -1);
            }
        }
        let mut add = |left: Left<'_>, join: &Join| {
            let names = merged::unclear_columns(left, join).map(|name| name.value.clone());
            self.unclear.extend(names);
            let is_made = merged::is_outer(join) && merged::using(join).next().is_some();
            self.has_made |= is_made || merged::is_natural(join);
            false
        };
        select.from.iter().for_each(|of| _ = merged::any_join(of, &mut add));
        ControlFlow::Continue(())
    }
}

/// Finds the first join that is to be asked about and has none within, or names its columns.
#[derive(Default)]
struct Finder {
    /// What stands before the queries that it is in.
    with: Vec<With>,
    /// The columns of the one that is found.
    names: Option<Vec<ObjectName>>,
    /// Whether the tables of columns are to be found out.
    matter: bool,
}

impl Finder {
    fn joined(&mut self, tables: &mut TableWithJoins) -> ControlFlow<Asked> {
        let TableWithJoins { relation, joins } = tables;
        for at in 0..joins.len() {
            let (before, behind) = joins.split_at_mut(at);
            let [join, ..] = behind else { continue };
            let (mut right, mut columns) = (None, Vec::new());
            if merged::is_natural(join) {
                let relation = join.relation.clone();
                right = Some(TableWithJoins { relation, joins: Vec::new() });
            } else {
                let unclear = merged::unclear_columns((relation, before), join);
                columns.extend(unclear.filter(|_| self.matter).cloned());
            }
            if right.is_none() && columns.is_empty() {
                continue;
            }
            if let Some(names) = self.names.take() {
                name_columns(join, names);
            }
            let left = TableWithJoins { relation: relation.clone(), joins: before.to_vec() };
            let with = std::mem::take(&mut self.with);
            return ControlFlow::Break(Asked { left, right, columns, with });
        }
        ControlFlow::Continue(())
    }
}

/// Says by which columns a join is.
fn name_columns(join: &mut Join, names: Vec<ObjectName>) {
    match merged::constraint_mut(&mut join.join_operator) {
        Some(JoinConstraint::Using(unclear)) => {
            for name in names {
                let is_same =
                    |of: &&mut ObjectName| of.0.len() == 1 && of.0.last() == name.0.last();
                if let Some(of) = unclear.iter_mut().find(is_same) {
                    *of = name;
                }
            }
        }
        Some(constraint) => *constraint = JoinConstraint::Using(names),
        None => {}
    }
}

/// Asks whether there is one, which is less than to find it.
struct Asker;

impl Visitor for Asker {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => has_unclear(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        select.from.iter().try_for_each(has_unclear)
    }
}

fn has_unclear(tables: &TableWithJoins) -> ControlFlow<()> {
    let is_there = merged::any_join(tables, &mut merged::is_unclear);
    if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl VisitorMut for Finder {
    type Break = Asked;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        self.with.extend(query.with.clone());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if query.with.is_some() {
            self.with.pop();
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Self::Break> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => self.joined(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        select.from.iter_mut().try_for_each(|tables| self.joined(tables))
    }
}
