//! The columns that both sides of a join have in common by `USING`.
//!
//! Such a column has the value of the side that there is. `DataFusion` takes that of the left side,
//! which a FULL or RIGHT JOIN may not have (55). So these joins get an `ON`, and the column is what
//! is not NULL of both. Of other joins it is that of the left side, wherever it is named. Which of
//! several tables on the left side has it is found out where tables are known (`natural.rs`): that
//! one stands before the name then.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use duramen::{Error, ErrorKind, Result};

use crate::spelling;

/// What a table is called in the query.
type Table = Vec<Ident>;

/// The columns that joins of a SELECT have in common.
#[derive(Default)]
struct Merged {
    columns: Vec<Column>,
    /// What the tables are called.
    tables: Vec<Option<Table>>,
    /// Whether the joins get an `ON` in the place of `USING`.
    is_by_conditions: bool,
}

struct Column {
    name: String,
    /// What it is.
    expr: Expr,
    /// The tables that have it.
    tables: Vec<Table>,
    /// How many tables there are before those that it is of.
    behind: usize,
}

impl Merged {
    fn column(&self, name: &Ident) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name.value)
    }

    fn get(&self, name: &Ident) -> Option<&Expr> {
        self.column(name).map(|column| &column.expr)
    }

    fn set(&mut self, column: Column) {
        self.columns.retain(|known| known.name != column.name);
        self.columns.push(column);
    }
}

/// Gives joins by `USING` the columns that both sides have, where that is clear from the text.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) -> Result<()> {
    rewrite_by(parsed, Joins { are_known: false })
}

/// Does so with all joins, the tables of whose columns were found out.
pub(crate) fn rewrite_known(parsed: &mut impl VisitMut) -> Result<()> {
    rewrite_by(parsed, Joins { are_known: true })
}

fn rewrite_by(parsed: &mut impl VisitMut, mut joins: Joins) -> Result<()> {
    match parsed.visit(&mut joins) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Joins {
    /// Whether columns are found out.
    are_known: bool,
}

impl VisitorMut for Joins {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return ControlFlow::Continue(());
        };
        let merged = match self.merged_by(&mut select.from.clone()) {
            Ok(merged) if merged.columns.is_empty() => return ControlFlow::Continue(()),
            Ok(merged) => merged,
            Err(error) => return ControlFlow::Break(error),
        };
        let Some(order) = &mut query.order_by else { return ControlFlow::Continue(()) };
        let OrderByKind::Expressions(exprs) = &mut order.kind else {
            return ControlFlow::Continue(());
        };
        let is_given = |name: &Ident| select.projection.iter().any(|item| gives(item, name));
        for expr in exprs {
            let is_output = matches!(&expr.expr, Expr::Identifier(name) if is_given(name));
            if !is_output {
                replace(&mut expr.expr, &merged);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let named = match self.merged_by(&mut select.from) {
            Ok(merged) if merged.columns.is_empty() => Ok(()),
            Ok(merged) => name_columns(select, &merged),
            Err(error) => Err(error),
        };
        named.map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

/// Whether a column of a list is called so.
fn gives(item: &SelectItem, name: &Ident) -> bool {
    match item {
        SelectItem::UnnamedExpr(Expr::Identifier(given)) => given.value == name.value,
        SelectItem::ExprWithAlias { alias, .. } => alias.value == name.value,
        _ => false,
    }
}

impl Joins {
    /// Gives joins an `ON` where that is needed; what they have in common, if that is clear.
    fn merged_by(&self, tables: &mut [TableWithJoins]) -> Result<Merged> {
        let mut merged = Merged::default();
        if !self.are_known {
            if tables.iter().any(|of| any_join(of, &mut |_, join| names_tables(join))) {
                return Err(unclear("USING has names of columns"));
            }
            if tables.iter().any(|of| any_join(of, &mut is_unclear)) {
                return Ok(merged);
            }
        }
        let mut is_by_condition = |_: Left<'_>, join: &Join| {
            names_tables(join) || (is_outer(join) && using(join).next().is_some())
        };
        merged.is_by_conditions = tables.iter().any(|of| any_join(of, &mut is_by_condition));
        for of in tables {
            let mut names = merged_in(of, &mut merged)?;
            merged.tables.append(&mut names);
        }
        Ok(merged)
    }
}

/// What the tables that are joined are called.
fn merged_in(of: &mut TableWithJoins, merged: &mut Merged) -> Result<Vec<Option<Table>>> {
    let mut left = merged_within(&mut of.relation, merged)?;
    for join in &mut of.joins {
        let mut right = merged_within(&mut join.relation, merged)?;
        merge(join, (&left, &right), merged)?;
        left.append(&mut right);
    }
    Ok(left)
}

fn merged_within(table: &mut TableFactor, merged: &mut Merged) -> Result<Vec<Option<Table>>> {
    match table {
        TableFactor::NestedJoin { table_with_joins, alias: None } => {
            merged_in(table_with_joins, merged)
        }
        table => Ok(vec![alias(table)]),
    }
}

/// What stands before a join.
pub(crate) type Left<'t> = (&'t TableFactor, &'t [Join]);

/// Whether something is so of one of the joins.
pub(crate) fn any_join(
    of: &TableWithJoins,
    is_so: &mut impl FnMut(Left<'_>, &Join) -> bool,
) -> bool {
    any_before((&of.relation, &of.joins), is_so)
}

fn any_before(
    (relation, joins): Left<'_>,
    is_so: &mut impl FnMut(Left<'_>, &Join) -> bool,
) -> bool {
    let tables = std::iter::once(relation).chain(joins.iter().map(|join| &join.relation));
    for table in tables {
        if let TableFactor::NestedJoin { table_with_joins, alias: None } = table
            && any_join(table_with_joins, is_so)
        {
            return true;
        }
    }
    joins.iter().enumerate().any(|(at, join)| is_so((relation, &joins[..at]), join))
}

/// Whether it is found out only where tables are known by what a join is.
pub(crate) fn is_unclear(left: Left<'_>, join: &Join) -> bool {
    is_natural(join) || unclear_columns(left, join).next().is_some()
}

/// Whether a join is by all that both sides have.
pub(crate) fn is_natural(join: &Join) -> bool {
    matches!(constraint(&join.join_operator), Some(JoinConstraint::Natural))
}

/// Whether a join may not have its left side.
pub(crate) fn is_outer(join: &Join) -> bool {
    use JoinOperator::{FullOuter, Right, RightOuter};
    matches!(join.join_operator, FullOuter(_) | Right(_) | RightOuter(_))
}

/// The columns of a `USING`.
pub(crate) fn using(join: &Join) -> impl Iterator<Item = &ObjectName> {
    let names = match constraint(&join.join_operator) {
        Some(JoinConstraint::Using(names)) => names.as_slice(),
        _ => &[],
    };
    names.iter()
}

/// Whether tables stand before the columns of a `USING`.
fn names_tables(join: &Join) -> bool {
    using(join).any(|name| name.0.len() > 1)
}

/// The columns of a `USING` whose table is to be found out, as there are several on the left side,
/// and no join before this one has them in common.
pub(crate) fn unclear_columns<'j>(
    left: Left<'j>,
    join: &'j Join,
) -> impl Iterator<Item = &'j Ident> {
    let is_nested = matches!(left.0, TableFactor::NestedJoin { alias: None, .. });
    let are_several = is_nested || !left.1.is_empty();
    let is_known = move |name: &Ident| {
        let mut is_so = |_: Left<'_>, join: &Join| {
            let mut names = using(join).filter_map(|name| name.0.last()?.as_ident());
            names.any(|of| of.value == name.value)
        };
        any_before(left, &mut is_so)
    };
    let alone = using(join).filter(move |name| are_several && name.0.len() == 1);
    alone.filter_map(|name| name.0.last()?.as_ident()).filter(move |name| !is_known(name))
}

/// By what a join is, if it may be by columns that both sides have.
fn constraint(of: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::{FullOuter, Inner, Join as Plain, Left, LeftOuter, Right, RightOuter};
    match of {
        Plain(by) | Inner(by) | Left(by) | LeftOuter(by) | Right(by) | RightOuter(by)
        | FullOuter(by) => Some(by),
        _ => None,
    }
}

pub(crate) fn constraint_mut(of: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator::{FullOuter, Inner, Join as Plain, Left, LeftOuter, Right, RightOuter};
    match of {
        Plain(by) | Inner(by) | Left(by) | LeftOuter(by) | Right(by) | RightOuter(by)
        | FullOuter(by) => Some(by),
        _ => None,
    }
}

fn merge(
    join: &mut Join,
    (left, right): (&[Option<Table>], &[Option<Table>]),
    merged: &mut Merged,
) -> Result<()> {
    let is_outer = is_outer(join);
    let Some(constraint) = constraint_mut(&mut join.join_operator) else { return Ok(()) };
    let JoinConstraint::Using(names) = constraint else { return Ok(()) };
    let columns = names.iter().map(column_of).collect::<Option<Vec<_>>>();
    let columns = columns.ok_or_else(|| unclear("USING has names of columns"))?;
    if !merged.is_by_conditions {
        // It is that of the left side, which the planner does not know in conditions.
        if let [Some(table)] = left {
            for (_, name) in columns {
                let expr = named(table, &name);
                let (name, tables) = (name.value, Vec::new());
                merged.set(Column { name, expr, tables, behind: left.len() });
            }
        }
        return Ok(());
    }
    let [Some(right)] = right else { return Err(unclear("give each table a name, AS ..")) };
    let mut on: Option<Expr> = None;
    for (owner, name) in columns {
        let (of_left, mut tables) = match (merged.column(&name), owner, left) {
            (Some(known), None, _) => (known.expr.clone(), known.tables.clone()),
            (_, Some(table), _) => (named(&table, &name), vec![table]),
            (_, None, [Some(table)]) => (named(table, &name), vec![table.clone()]),
            _ => return Err(unclear("give each table a name, AS ..")),
        };
        let of_right = named(right, &name);
        let expr = if is_outer {
            spelling::call("coalesce", vec![of_left.clone(), of_right.clone()])
        } else {
            of_left.clone()
        };
        let equal = binary(of_left, BinaryOperator::Eq, of_right);
        on = Some(match on {
            Some(before) => binary(before, BinaryOperator::And, equal),
            None => equal,
        });
        tables.push(right.clone());
        merged.set(Column { name: name.value, expr, tables, behind: left.len() });
    }
    if let Some(on) = on {
        *constraint = JoinConstraint::On(on);
    }
    Ok(())
}

fn unclear(why: &str) -> Error {
    let message = format!("a JOIN of columns that both sides have: {why}");
    Error::new(ErrorKind::Invalid, message)
}

/// A column of a table.
fn named(table: &Table, name: &Ident) -> Expr {
    Expr::CompoundIdentifier(table.iter().chain([name]).cloned().collect())
}

/// What a table is called in the query.
fn alias(table: &TableFactor) -> Option<Table> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::UNNEST { alias: Some(alias), .. }
        | TableFactor::NestedJoin { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. } => Some(vec![alias.name.clone()]),
        TableFactor::Table { name, args: None, .. } => parts(name),
        _ => None,
    }
}

fn parts(name: &ObjectName) -> Option<Vec<Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

/// A column of a `USING`, and the table on the left side that has it, if that is there.
fn column_of(name: &ObjectName) -> Option<(Option<Table>, Ident)> {
    let mut table = parts(name)?;
    let column = table.pop()?;
    Some((Some(table).filter(|table| !table.is_empty()), column))
}

/// Names the columns that are in common by what they are, in all of a SELECT.
fn name_columns(select: &mut Select, merged: &Merged) -> Result<()> {
    let mut projection = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::UnnamedExpr(Expr::Identifier(alias)) => {
                projection.push(match merged.get(&alias).cloned() {
                    Some(expr) => SelectItem::ExprWithAlias { expr, alias },
                    None => SelectItem::UnnamedExpr(Expr::Identifier(alias)),
                });
            }
            SelectItem::Wildcard(options)
                if options.opt_exclude.is_none() && merged.is_by_conditions =>
            {
                all_columns(merged, &options, &mut projection)?;
            }
            item => projection.push(item),
        }
    }
    select.projection = projection;
    replace(&mut select.projection, merged);
    replace(&mut select.selection, merged);
    replace(&mut select.group_by, merged);
    replace(&mut select.having, merged);
    replace(&mut select.qualify, merged);
    replace(&mut select.named_window, merged);
    Ok(())
}

/// All columns: first those in common, of the last join before others, then what else each table
/// has.
fn all_columns(
    merged: &Merged,
    options: &WildcardAdditionalOptions,
    to: &mut Vec<SelectItem>,
) -> Result<()> {
    let quoted = |name: &str| Ident::with_quote('"', name);
    let mut columns: Vec<&Column> = merged.columns.iter().collect();
    columns.sort_by_key(|column| Reverse(column.behind));
    to.extend(columns.iter().map(|Column { name, expr, .. }| SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias: quoted(name),
    }));
    for table in &merged.tables {
        let Some(table) = table else { return Err(unclear("give each table a name, AS ..")) };
        let own = columns.iter().filter(|column| column.tables.iter().any(|of| is_same(of, table)));
        let names: Vec<ObjectName> = own.map(|column| quoted(&column.name).into()).collect();
        let opt_exclude = (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
        let options = WildcardAdditionalOptions { opt_exclude, ..options.clone() };
        let name = ObjectName(table.iter().cloned().map(ObjectNamePart::Identifier).collect());
        let table = SelectItemQualifiedWildcardKind::ObjectName(name);
        to.push(SelectItem::QualifiedWildcard(table, options));
    }
    Ok(())
}

/// Whether two names are of one table, however they are quoted.
fn is_same(one: &Table, other: &Table) -> bool {
    let parts = |table: &Table| table.iter().map(|part| part.value.clone()).collect::<Vec<_>>();
    parts(one) == parts(other)
}

/// Puts what columns in common are in their places, but for those of subqueries, whose names may
/// be of their own tables.
fn replace(part: &mut impl VisitMut, merged: &Merged) {
    let ControlFlow::Continue(()) = part.visit(&mut Names { merged, subqueries: 0 });
}

struct Names<'m> {
    merged: &'m Merged,
    /// In how many of them it is.
    subqueries: usize,
}

impl VisitorMut for Names<'_> {
    type Break = std::convert::Infallible;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Identifier(name) = expr
            && self.subqueries == 0
            && let Some(both) = self.merged.get(name)
        {
            *expr = both.clone();
        }
        ControlFlow::Continue(())
    }
}

fn binary(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op, right: Box::new(right) }
}
