//! The columns that both sides of an outer join have in common by `USING`.
//!
//! Such a column has the value of the side that there is. `DataFusion` takes that of the left side,
//! which a FULL or RIGHT JOIN may not have (55). So these joins get an `ON`, and the column is what
//! is not NULL of both. Of other joins it is that of the left side, wherever it is named.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, OrderByKind, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableFactor, TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use duramen::{Error, ErrorKind, Result};

use crate::spelling;

/// The columns that joins of a SELECT have in common.
#[derive(Default)]
struct Merged {
    columns: Vec<Column>,
    /// What the tables are called.
    tables: Vec<Option<Ident>>,
}

struct Column {
    name: String,
    /// What it is.
    expr: Expr,
    /// The tables that have it.
    tables: Vec<Ident>,
    /// Whether it may be of either side, so that the join has an `ON` in the place of `USING`.
    is_of_both: bool,
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

    fn of_both(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| column.is_of_both)
    }
}

/// Gives outer joins by `USING` the columns that both sides have.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) -> Result<()> {
    match parsed.visit(&mut Joins) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Joins;

impl VisitorMut for Joins {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_mut() else {
            return ControlFlow::Continue(());
        };
        let merged = match merged_by(&mut select.from.clone()) {
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
        match merged_by(&mut select.from) {
            Ok(merged) if merged.columns.is_empty() => ControlFlow::Continue(()),
            Ok(merged) => {
                name_columns(select, &merged);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
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

/// Gives joins an `ON` where that is needed; what they have in common.
fn merged_by(tables: &mut [TableWithJoins]) -> Result<Merged> {
    let mut merged = Merged::default();
    for TableWithJoins { relation, joins } in tables {
        let mut left = vec![alias(relation)];
        for join in joins {
            merge(join, &left, &mut merged)?;
            left.push(alias(&join.relation));
        }
        merged.tables.append(&mut left);
    }
    Ok(merged)
}

fn merge(join: &mut Join, left: &[Option<Ident>], merged: &mut Merged) -> Result<()> {
    use JoinOperator::{FullOuter, Inner, Join as Plain, Left, LeftOuter, Right, RightOuter};
    let right = alias(&join.relation);
    let is_right = matches!(join.join_operator, FullOuter(_) | Right(_) | RightOuter(_));
    let constraint = match &mut join.join_operator {
        Plain(constraint) | Inner(constraint) | Left(constraint) | LeftOuter(constraint) => {
            constraint
        }
        Right(constraint) | RightOuter(constraint) | FullOuter(constraint) => constraint,
        _ => return Ok(()),
    };
    let names = match constraint {
        JoinConstraint::Using(names) => names,
        JoinConstraint::Natural if merged.of_both().next().is_some() => {
            return Err(unclear("NATURAL behind it: name its columns, USING (..)"));
        }
        _ => return Ok(()),
    };
    let columns = names.iter().map(column_of).collect::<Option<Vec<_>>>();
    let columns = columns.ok_or_else(|| unclear("USING has names of columns"))?;
    let is_of_both = |name: &Ident| merged.of_both().any(|column| column.name == name.value);
    if !is_right && !columns.iter().any(is_of_both) {
        // It is that of the left side, which the planner does not know in conditions.
        if let [Some(table)] = left {
            for name in columns {
                let expr = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
                let tables = Vec::new();
                merged.set(Column { name: name.value, expr, tables, is_of_both: false });
            }
        }
        return Ok(());
    }
    let right = right.ok_or_else(|| unclear("give each table a name, AS .."))?;
    let mut on: Option<Expr> = None;
    for name in columns {
        let of = |table: &Ident| Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
        let (of_left, mut tables) = match (merged.column(&name), left) {
            (Some(both), _) if both.is_of_both => (both.expr.clone(), both.tables.clone()),
            (_, [Some(table)]) => (of(table), vec![table.clone()]),
            (_, [None]) => return Err(unclear("give each table a name, AS ..")),
            _ => return Err(unclear("there are several tables before it: join them ON")),
        };
        let of_right = of(&right);
        let expr = if is_right {
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
        merged.set(Column { name: name.value, expr, tables, is_of_both: true });
    }
    if let Some(on) = on {
        *constraint = JoinConstraint::On(on);
    }
    Ok(())
}

fn unclear(why: &str) -> Error {
    let message = format!("a FULL or RIGHT JOIN of columns that both sides have: {why}");
    Error::new(ErrorKind::Invalid, message)
}

/// What a table is called in the query.
fn alias(table: &TableFactor) -> Option<Ident> {
    match table {
        TableFactor::Table { alias: Some(alias), .. }
        | TableFactor::Derived { alias: Some(alias), .. }
        | TableFactor::Function { alias: Some(alias), .. }
        | TableFactor::TableFunction { alias: Some(alias), .. } => Some(alias.name.clone()),
        TableFactor::Table { name, args: None, .. } => column_of(name),
        _ => None,
    }
}

/// A name of one part.
fn column_of(name: &ObjectName) -> Option<Ident> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name.clone()),
        _ => None,
    }
}

/// Names the columns that are in common by what they are, in all of a SELECT.
fn name_columns(select: &mut Select, merged: &Merged) {
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
                if options.opt_exclude.is_none() && merged.of_both().next().is_some() =>
            {
                all_columns(merged, &options, &mut projection);
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
}

/// All columns: first those in common, then what else each table has.
fn all_columns(merged: &Merged, options: &WildcardAdditionalOptions, to: &mut Vec<SelectItem>) {
    let quoted = |name: &str| Ident::with_quote('"', name);
    to.extend(merged.of_both().map(|Column { name, expr, .. }| SelectItem::ExprWithAlias {
        expr: expr.clone(),
        alias: quoted(name),
    }));
    for table in merged.tables.iter().flatten() {
        let own = merged.of_both().filter(|column| column.tables.contains(table));
        let names: Vec<ObjectName> = own.map(|column| quoted(&column.name).into()).collect();
        let opt_exclude = (!names.is_empty()).then_some(ExcludeSelectItem::Multiple(names));
        let options = WildcardAdditionalOptions { opt_exclude, ..options.clone() };
        let table = SelectItemQualifiedWildcardKind::ObjectName(table.clone().into());
        to.push(SelectItem::QualifiedWildcard(table, options));
    }
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
