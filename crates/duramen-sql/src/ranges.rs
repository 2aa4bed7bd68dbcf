//! `generate_series(..)` and `range(..)` where tables stand.
//!
//! The planner takes these for tables of what is known before: one that looks at rows before it, or
//! numbers its own, is a list that is unnested.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, ObjectName, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, visit_expressions,
};

use crate::spelling;

const FUNCTIONS: [&str; 2] = ["generate_series", "range"];

/// Spells those among joined tables. One with a name has the column of that name.
pub(crate) fn spell(tables: &mut TableWithJoins) {
    let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(joined) {
        match table {
            TableFactor::NestedJoin { table_with_joins, .. } => spell(table_with_joins),
            TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
                let unnested = unnested(name, &args.args, (alias, *with_ordinality));
                if let Some(unnested) = unnested {
                    *table = unnested;
                }
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                if let Some(unnested) = unnested(name, args, (alias, *with_ordinality)) {
                    *table = unnested;
                }
            }
            _ => {}
        }
    }
}

/// A call that the planner does not take for a table, as one of `UNNEST`. Others get the name of
/// their column.
fn unnested(
    name: &ObjectName,
    args: &[FunctionArg],
    (alias, with_ordinality): (&mut Option<TableAlias>, bool),
) -> Option<TableFactor> {
    let [part] = name.0.as_slice() else { return None };
    let function = part.as_ident().filter(|part| FUNCTIONS.contains(&part.value.as_str()))?;
    let value = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    let args = args.iter().map(value).collect::<Option<Vec<_>>>()?;
    if !with_ordinality && !args.iter().any(looks_at_rows) {
        if let Some(alias) = alias.as_mut().filter(|alias| alias.columns.is_empty()) {
            alias.columns.push(TableAliasColumnDef::from_name(alias.name.value.clone()));
        }
        return None;
    }
    Some(TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs: vec![spelling::call(function.clone(), args)],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    })
}

/// Whether an expression has columns in it: a name in a call is one of a function.
fn looks_at_rows(expr: &Expr) -> bool {
    let found = visit_expressions(expr, |expr| match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}
