//! `FROM t, unnest(t.items) AS i`: the elements of arrays of each row beside the row.
//!
//! The planner makes a join of it with a query that looks at the row, which it cannot take apart
//! where arrays are unnested. So what that query does is done to the rows themselves.

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, JoinType, NullHandling, Result, ScalarValue, TableReference,
};
use datafusion::logical_expr::{
    Expr, Filter, Join, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, Unnest,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr as Parsed, FunctionArg, FunctionArgExpr, Ident, Join as ParsedJoin,
    JoinConstraint, JoinOperator, Query, Select, Subscript, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Value, VisitMut, VisitorMut,
};

use crate::statement;

/// The function.
const UNNEST: &str = "unnest";

/// Stands before the columns of a row while its arrays are unnested, so that nothing in the query
/// for these is called alike.
const OF_ROW: &str = "\u{1f}row";

/// Stands before the name of a table outside of a query, so that no column in it is taken for that:
/// the planner has the nearer one be meant, of which all else would be a field.
pub(crate) const OUTSIDE: &str = "\u{1f}outside";

pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Rule));
}

/// Spells `LATERAL unnest(..)` as the planner knows it, numbers elements, and names the column of
/// elements as the table that it is.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Speller::default());
}

/// Spells each `SELECT`, those inside of others behind them.
#[derive(Default)]
struct Speller {
    /// What the tables of each are called that is gone through.
    tables: Vec<Names>,
    /// Those that a query behind `FROM` stands beside, and does not see.
    beside: Vec<Option<Names>>,
}

/// What the tables of a `SELECT` are called, and which of these names are of elements of arrays,
/// that have no name of their own.
#[derive(Default)]
struct Names {
    tables: Vec<TableNames>,
    elements: Vec<String>,
}

/// What a table is called: by its alias, or by all parts of its name.
pub(crate) type TableNames = Vec<String>;

impl VisitorMut for Speller {
    type Break = Infallible;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Infallible> {
        let mut names = Names::default();
        select.from.iter().for_each(|tables| names.add(tables));
        self.tables.push(names);
        let mut is_named = false;
        for tables in &mut select.from {
            self.spell_joined(tables, &mut is_named);
        }
        beside_joined(&mut select.from);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<Infallible> {
        self.tables.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if matches!(table, TableFactor::Derived { lateral: false, .. }) {
            let beside = self.tables.pop();
            self.beside.push(beside);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<Infallible> {
        if matches!(table, TableFactor::Derived { lateral: false, .. }) {
            self.tables.extend(self.beside.pop().flatten());
        }
        ControlFlow::Continue(())
    }

    /// Columns of tables outside of a query, and fields of these.
    fn pre_visit_expr(&mut self, expr: &mut Parsed) -> ControlFlow<Infallible> {
        let Some((own, outer)) = self.tables.split_last() else {
            return ControlFlow::Continue(());
        };
        if let Parsed::CompoundIdentifier(parts) = &mut *expr
            && own.columns(parts).is_none()
            && let Some(names) = outer.iter().rev().find(|names| names.columns(parts).is_some())
        {
            let mut columns = names.columns(parts).unwrap_or(0);
            if names.are_of_table(parts) {
                parts.insert(0, Ident::with_quote('"', OUTSIDE));
                columns += 1;
            }
            if let Some(field) = field(parts, columns) {
                *expr = field;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Names {
    fn add(&mut self, tables: &TableWithJoins) {
        add_names(tables, &mut self.tables);
        let joined = tables.joins.iter().map(|join| &join.relation);
        for table in std::iter::once(&tables.relation).chain(joined) {
            if let TableFactor::UNNEST { alias: Some(alias), .. } = table
                && alias.columns.is_empty()
            {
                self.elements.push(alias.name.value.clone());
            }
        }
    }

    /// In how many parts of a name behind the first one a column of a table here is found: none
    /// where the first is that of elements, of which all others are fields.
    fn columns(&self, parts: &[Ident]) -> Option<usize> {
        let first = parts.first()?;
        if self.elements.contains(&first.value) {
            return Some(0);
        }
        self.tables.iter().filter_map(|name| parts_named(name, parts)).max()
    }

    /// Whether a name begins with all of that of a table here.
    fn are_of_table(&self, parts: &[Ident]) -> bool {
        let is_first = |name: &String| parts.first().is_some_and(|part| part.value == *name);
        !self.elements.iter().any(is_first)
            && self.tables.iter().any(|table| matches!(table.as_slice(), [name] if is_first(name)))
    }
}

impl Speller {
    fn spell_joined(&self, tables: &mut TableWithJoins, is_named: &mut bool) {
        let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
        for table in std::iter::once(&mut tables.relation).chain(joined) {
            match table {
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    self.spell_joined(table_with_joins, is_named);
                }
                table => {
                    if let Some(unnest) = lateral(table) {
                        *table = unnest;
                    }
                    if let TableFactor::UNNEST { array_exprs, .. } = table {
                        let mut fields = Fields { tables: &self.tables, queries: 0 };
                        let ControlFlow::Continue(()) = array_exprs.visit(&mut fields);
                    }
                    spell(table, is_named);
                }
            }
        }
    }
}

/// Adds what tables are called.
pub(crate) fn add_names(tables: &TableWithJoins, names: &mut Vec<TableNames>) {
    let joined = tables.joins.iter().map(|join| &join.relation);
    for table in std::iter::once(&tables.relation).chain(joined) {
        let alias = match table {
            TableFactor::Table { name, alias: None, .. } => {
                let parts = name.0.iter().filter_map(|part| part.as_ident());
                names.push(parts.map(|part| part.value.clone()).collect());
                continue;
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                add_names(table_with_joins, names);
                alias
            }
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::TableFunction { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias,
            _ => continue,
        };
        names.extend(alias.iter().map(|alias| vec![alias.name.value.clone()]));
    }
}

/// Spells names of fields as [`field`] does, which the planner takes of a row that it looks at from
/// elsewhere.
struct Fields<'a> {
    tables: &'a [Names],
    /// In how many queries it is, which have tables of their own.
    queries: usize,
}

impl VisitorMut for Fields<'_> {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Parsed) -> ControlFlow<Infallible> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        if let Parsed::CompoundIdentifier(parts) = &*expr
            && let Some(field) = field(parts, columns(self.tables, parts).unwrap_or(0))
        {
            *expr = field;
        }
        ControlFlow::Continue(())
    }
}

/// In how many parts of a name behind the first one a column is found of the table that it is
/// meant of, the innermost of those that are called so.
fn columns(tables: &[Names], parts: &[Ident]) -> Option<usize> {
    tables.iter().rev().find_map(|names| names.columns(parts))
}

/// `t.a.items` as `t.a['items']`, if there is anything behind a column.
fn field(parts: &[Ident], columns: usize) -> Option<Parsed> {
    let (first, rest) = parts.split_first().filter(|(_, rest)| rest.len() > columns)?;
    let chain = rest.iter().enumerate().map(|(at, name)| {
        if at < columns {
            return AccessExpr::Dot(Parsed::Identifier(name.clone()));
        }
        let index = Parsed::value(Value::SingleQuotedString(name.value.clone()));
        AccessExpr::Subscript(Subscript::Index { index })
    });
    let access_chain = chain.collect();
    let root = Box::new(Parsed::Identifier(first.clone()));
    Some(Parsed::CompoundFieldAccess { root, access_chain })
}

/// How many parts of a name are that of a table: all of it, or its last parts.
pub(crate) fn parts_named(table: &[String], parts: &[Ident]) -> Option<usize> {
    let last = (0..table.len()).map(|from| &table[from..]);
    let is_named = |last: &&[String]| {
        parts.len() > last.len() && last.iter().zip(parts).all(|(of, part)| *of == part.value)
    };
    last.filter(is_named).map(<[String]>::len).max()
}

/// `t, unnest(t.a) AS i JOIN u ON ..` as `t CROSS JOIN unnest(t.a) AS i JOIN u ON ..`, which is the
/// same and has what looks at a row beside the rows.
fn beside_joined(from: &mut Vec<TableWithJoins>) {
    let is_same = |join: &ParsedJoin| match &join.join_operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on) => matches!(on, JoinConstraint::On(_)),
        JoinOperator::CrossJoin(_) => true,
        _ => false,
    };
    let mut beside: Vec<TableWithJoins> = Vec::with_capacity(from.len());
    for tables in from.drain(..) {
        let is_unnest = matches!(tables.relation, TableFactor::UNNEST { .. });
        match beside.last_mut() {
            Some(last)
                if is_unnest && !tables.joins.is_empty() && tables.joins.iter().all(is_same) =>
            {
                let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
                let relation = tables.relation;
                last.joins.push(ParsedJoin { relation, global: false, join_operator });
                last.joins.extend(tables.joins);
            }
            _ => beside.push(tables),
        }
    }
    *from = beside;
}

/// Where no name is given, the first one has that of the function.
fn spell(table: &mut TableFactor, is_named: &mut bool) {
    let TableFactor::UNNEST {
        alias,
        array_exprs,
        with_offset,
        with_offset_alias: offset,
        with_ordinality,
    } = table
    else {
        return;
    };
    let [array] = array_exprs.as_slice() else { return };
    let array = array.to_string();
    let mut columns = Vec::new();
    let numbered = if *with_ordinality {
        columns.push(Ident::new("ordinality"));
        Some(1)
    } else if *with_offset {
        columns.push(offset.clone().unwrap_or_else(|| Ident::new("offset")));
        Some(0)
    } else {
        None
    };
    if let Some(numbers) = numbered.and_then(|from| numbers(&array, from)) {
        array_exprs.push(numbers);
        (*with_offset, *offset, *with_ordinality) = (false, None, false);
    }
    if alias.is_none() && !std::mem::replace(is_named, true) {
        let name = Ident::new(UNNEST);
        *alias = Some(TableAlias { explicit: true, name, columns: Vec::new(), at: None });
    }
    if let Some(alias) = alias {
        columns.insert(0, alias.name.clone());
        // A column that is left without a name has the one it had.
        let missing = columns.into_iter().skip(alias.columns.len());
        alias.columns.extend(missing.map(|name| TableAliasColumnDef { name, data_type: None }));
    }
}

/// `LATERAL unnest(..)` as `unnest(..)`, which looks at what stands before it by itself.
fn lateral(table: &mut TableFactor) -> Option<TableFactor> {
    let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = table else {
        return None;
    };
    let is_unnest = match name.0.as_slice() {
        [name] => name.as_ident().is_some_and(|name| name.value.eq_ignore_ascii_case(UNNEST)),
        _ => false,
    };
    let expr = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let array_exprs = args.iter().map(expr).collect::<Option<Vec<_>>>().filter(|_| is_unnest)?;
    Some(TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    })
}

/// The numbers of the elements of an array, from a first one on.
fn numbers(array: &str, from: u8) -> Option<Parsed> {
    let len = format!("coalesce(CAST(array_length({array}) AS BIGINT), 0)");
    statement::expression(&format!("range({from}, {len} + {from})")).ok()
}

/// Unnests the arrays of rows where a join with what is unnested of them was planned.
#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "unnest_of_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match &plan {
            LogicalPlan::Join(join) => Ok(match unnested(join)? {
                Some(unnested) => Transformed::yes(unnested),
                None => Transformed::no(plan),
            }),
            _ => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }
}

/// What a join comes to, if it is with what is unnested of each of its left rows.
pub(crate) fn unnested(join: &Join) -> Result<Option<LogicalPlan>> {
    let looks_left = match &*join.right {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => &**input,
        right => right,
    };
    let is_true =
        |filter: &Expr| matches!(filter, Expr::Literal(ScalarValue::Boolean(Some(true)), _));
    let is_all = join.on.is_empty() && join.filter.as_ref().is_none_or(is_true);
    let keeps_rows = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left if is_all && only_unnests(&join.right) => true,
        _ => return Ok(None),
    };
    if !matches!(looks_left, LogicalPlan::Subquery(_)) {
        return Ok(None);
    }
    let rows = Rows::new(&join.left, keeps_rows)?;
    let Some(beside) = rows.with(&join.right)? else { return Ok(None) };
    let beside = Rows::named(beside, join.left.schema())?;
    let equal = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let mut builder = LogicalPlanBuilder::from(beside);
    for condition in equal.chain(join.filter.clone()) {
        builder = builder.filter(condition)?;
    }
    builder.build().map(Some)
}

/// Whether a query unnests arrays once and does nothing else, so that where there is no element the
/// row can be kept by the same.
fn only_unnests(plan: &LogicalPlan) -> bool {
    let is_plain = |expr: &Expr| matches!(expr.clone().unalias_nested().data, Expr::Column(_));
    match plan {
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => only_unnests(input),
        LogicalPlan::Subquery(subquery) => only_unnests(&subquery.subquery),
        LogicalPlan::Projection(Projection { expr, input, .. }) => {
            expr.iter().all(is_plain) && only_unnests(input)
        }
        LogicalPlan::Unnest(unnest) => {
            let is_once = unnest.list_type_columns.iter().all(|(_, list)| list.depth == 1);
            let of = match &*unnest.input {
                LogicalPlan::Projection(Projection { input, .. }) => input,
                _ => &unnest.input,
            };
            is_once
                && unnest.struct_type_columns.is_empty()
                && matches!(**of, LogicalPlan::EmptyRelation(_))
        }
        _ => false,
    }
}

/// A column of a row while its arrays are unnested.
fn hidden(index: usize) -> Expr {
    Expr::Column(Column::new(Some(TableReference::bare(OF_ROW)), index.to_string()))
}

/// The rows of which something is unnested.
struct Rows<'p> {
    /// They themselves, their columns under other names.
    plan: LogicalPlan,
    columns: &'p DFSchema,
    /// Whether a row without elements stays.
    is_kept: bool,
}

impl<'p> Rows<'p> {
    fn new(left: &'p LogicalPlan, is_kept: bool) -> Result<Self> {
        let columns = left.schema();
        let renamed = columns.iter().enumerate().map(|(index, of)| {
            let row = TableReference::bare(OF_ROW);
            Expr::Column(Column::from(of)).alias_qualified(Some(row), index.to_string())
        });
        let plan = LogicalPlanBuilder::from(left.clone()).project(renamed)?.build()?;
        Ok(Self { plan, columns, is_kept })
    }

    /// The columns of the rows, and beside them those of a query that looks at a row; none if it
    /// does what cannot be done to all rows at once.
    fn with(&self, query: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let input = match query {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => {
                return Ok(Some(self.plan.clone()));
            }
            LogicalPlan::Subquery(subquery) => return self.with(&subquery.subquery),
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::Filter(Filter { input, .. })
            | LogicalPlan::Unnest(Unnest { input, .. }) => input,
            _ => return Ok(None),
        };
        let Some(input) = self.with(input)? else { return Ok(None) };
        let builder = LogicalPlanBuilder::from(input);
        let made = match query {
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let columns = input.schema().iter().map(|of| {
                    let name = of.1.name().clone();
                    Expr::Column(Column::from(of)).alias_qualified(Some(alias.clone()), name)
                });
                builder.project(self.all_hidden().chain(columns))?
            }
            LogicalPlan::Projection(Projection { expr, .. }) => {
                let found = expr.iter().map(|expr| self.of_rows(expr)).collect::<Option<Vec<_>>>();
                let Some(found) = found else { return Ok(None) };
                builder.project(self.all_hidden().chain(found))?
            }
            LogicalPlan::Filter(Filter { predicate, .. }) => {
                let Some(predicate) = self.of_rows(predicate) else { return Ok(None) };
                builder.filter(predicate)?
            }
            LogicalPlan::Unnest(Unnest { exec_columns, options, .. }) => {
                let mut options = options.clone();
                if self.is_kept {
                    options.null_handling = NullHandling::PreserveAndExpandEmpty;
                }
                builder.unnest_columns_with_options(exec_columns.clone(), options)?
            }
            _ => return Ok(None),
        };
        made.build().map(Some)
    }

    fn all_hidden(&self) -> impl Iterator<Item = Expr> {
        (0..self.columns.fields().len()).map(hidden)
    }

    /// An expression of a row and of what is unnested of it; none if it has queries in it, or looks
    /// elsewhere.
    fn of_rows(&self, expr: &Expr) -> Option<Expr> {
        let mut is_known = true;
        let found = expr.clone().transform_down(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => {
                if let Some(index) = self.columns.maybe_index_of_column(column) {
                    return Ok(Transformed::yes(hidden(index)));
                }
                is_known = false;
                Ok(Transformed::no(expr))
            }
            Expr::ScalarSubquery(_)
            | Expr::Exists(_)
            | Expr::InSubquery(_)
            | Expr::SetComparison(_) => {
                is_known = false;
                Ok(Transformed::no(expr))
            }
            _ => Ok(Transformed::no(expr)),
        });
        found.ok().map(|found| found.data).filter(|_| is_known)
    }

    /// The same with the names that the columns of the rows have.
    fn named(plan: LogicalPlan, left: &DFSchema) -> Result<LogicalPlan> {
        let schema = Arc::clone(plan.schema());
        let rows = left.iter().enumerate().map(|(index, (qualifier, field))| {
            hidden(index).alias_qualified(qualifier.cloned(), field.name())
        });
        let others =
            schema.iter().skip(left.fields().len()).map(|of| Expr::Column(Column::from(of)));
        LogicalPlanBuilder::from(plan).project(rows.chain(others))?.build()
    }
}
