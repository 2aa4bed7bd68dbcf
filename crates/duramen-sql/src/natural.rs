//! `NATURAL JOIN`: by the fields that both sides have, which stand in a `USING` then.
//!
//! The columns of the engine are none of them: each record has a `_revision` of its own, so that a
//! join by all columns would find nothing.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query, Select, SetExpr,
    Statement as Parsed, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut, With,
};
use duramen::{Error, ErrorKind};

use crate::change::{KEY, OF_ENGINE};
use crate::{failure, merged, statement};

/// The columns of versions, which the engine has as well.
const OF_VERSIONS: [&str; 4] = ["_valid_from", "_valid_to", "_valid_from_time", "_valid_to_time"];

/// What is joined: all that stands before, and the table behind.
type Sides = (TableWithJoins, TableWithJoins);

/// Names the columns of each `NATURAL JOIN`, those within other queries first.
pub(crate) async fn rewrite(state: &SessionState, parsed: &mut Parsed) -> Result<()> {
    if Visit::visit(parsed, &mut Asker).is_continue() {
        return Ok(());
    }
    while let ControlFlow::Break((sides, with)) = VisitMut::visit(parsed, &mut Finder::default()) {
        let names = common(state, sides, &with).await?;
        let _ = VisitMut::visit(parsed, &mut Finder { names: Some(names), with: Vec::new() });
    }
    merged::rewrite(parsed).map_err(failure::external)
}

/// The fields that both sides have.
async fn common(state: &SessionState, (left, right): Sides, with: &[With]) -> Result<Vec<Ident>> {
    let (left, right) = (columns(state, left, with).await?, columns(state, right, with).await?);
    let is_field = |name: &&String| {
        let name = name.as_str();
        name != KEY && !OF_ENGINE.contains(&name) && !OF_VERSIONS.contains(&name)
    };
    let both = left.iter().filter(is_field).filter(|name| right.contains(name));
    let names: Vec<_> = both.map(|name| Ident::with_quote('"', name)).collect();
    if names.is_empty() {
        let message = "a NATURAL JOIN of tables that have no field in common: say by what, as in \
                       JOIN .. USING (_key), or CROSS JOIN for each row with each";
        return Err(failure::external(Error::new(ErrorKind::Invalid, message)));
    }
    Ok(names)
}

/// What the columns of tables are called, behind what stands before the queries they are in.
async fn columns(
    state: &SessionState,
    tables: TableWithJoins,
    with: &[With],
) -> Result<Vec<String>> {
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
    Ok(plan.schema().fields().iter().map(|field| field.name().clone()).collect())
}

/// Finds the first `NATURAL JOIN` that has none within, or names its columns.
#[derive(Default)]
struct Finder {
    /// What stands before the queries that it is in.
    with: Vec<With>,
    /// The columns of the one that is found.
    names: Option<Vec<Ident>>,
}

impl Finder {
    fn joined(&mut self, tables: &mut TableWithJoins) -> ControlFlow<(Sides, Vec<With>)> {
        let Some(at) = tables.joins.iter().position(is_natural) else {
            return ControlFlow::Continue(());
        };
        let (before, behind) = tables.joins.split_at_mut(at);
        let [join, ..] = behind else { return ControlFlow::Continue(()) };
        let left = TableWithJoins { relation: tables.relation.clone(), joins: before.to_vec() };
        let right = TableWithJoins { relation: join.relation.clone(), joins: Vec::new() };
        if let Some(names) = self.names.take() {
            name_columns(join, names);
        }
        ControlFlow::Break(((left, right), std::mem::take(&mut self.with)))
    }
}

/// Whether a join is by all that both sides have.
fn is_natural(join: &Join) -> bool {
    use JoinConstraint::Natural;
    use JoinOperator::{FullOuter, Inner, Join as Plain, Left, LeftOuter, Right, RightOuter};
    matches!(
        join.join_operator,
        Plain(Natural)
            | Inner(Natural)
            | Left(Natural)
            | LeftOuter(Natural)
            | Right(Natural)
            | RightOuter(Natural)
            | FullOuter(Natural)
    )
}

/// Says by which columns a natural join is.
fn name_columns(join: &mut Join, names: Vec<Ident>) {
    use JoinOperator::{FullOuter, Inner, Join as Plain, Left, LeftOuter, Right, RightOuter};
    let constraint = match &mut join.join_operator {
        Plain(constraint) | Inner(constraint) | Left(constraint) | LeftOuter(constraint) => {
            constraint
        }
        Right(constraint) | RightOuter(constraint) | FullOuter(constraint) => constraint,
        _ => return,
    };
    *constraint = JoinConstraint::Using(names.into_iter().map(ObjectName::from).collect());
}

/// Asks whether there is one, which is less than to find it.
struct Asker;

impl Visitor for Asker {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => has_natural(table_with_joins),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        select.from.iter().try_for_each(has_natural)
    }
}

fn has_natural(tables: &TableWithJoins) -> ControlFlow<()> {
    let is_there = tables.joins.iter().any(is_natural);
    if is_there { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl VisitorMut for Finder {
    type Break = (Sides, Vec<With>);

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
