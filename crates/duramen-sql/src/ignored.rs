//! Finds what the planner would pass over, or take for something else, so that no query is answered
//! that was not asked.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    GroupByWithModifier, JoinConstraint, JoinOperator, LimitClause, LockType, Query, Select,
    Statement, TableFactor, TableWithJoins, Value, Visit, Visitor,
};

/// A clause that is not supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ignored {
    /// A word of it that the text has.
    pub(crate) keyword: &'static str,
    /// What is not supported.
    pub(crate) what: &'static str,
    /// Why, and what to do.
    pub(crate) advice: &'static str,
}

/// The first such clause of a statement.
pub(crate) fn find(statement: &Statement) -> Option<Ignored> {
    statement.visit(&mut Finder).break_value()
}

struct Finder;

fn found(keyword: &'static str, what: &'static str, advice: &'static str) -> ControlFlow<Ignored> {
    ControlFlow::Break(Ignored { keyword, what, advice })
}

impl Visitor for Finder {
    type Break = Ignored;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Ignored> {
        if let Some(lock) = query.locks.first() {
            let (keyword, what) = match lock.lock_type {
                LockType::Update => ("UPDATE", "FOR UPDATE"),
                LockType::Share => ("SHARE", "FOR SHARE"),
            };
            let advice = "readers lock nothing: leave it out, and give an UPDATE the version that \
                          it expects in WHERE";
            return found(keyword, what, advice);
        }
        if let Some(LimitClause::LimitOffset { limit_by, .. }) = &query.limit_clause
            && !limit_by.is_empty()
        {
            return found("LIMIT", "LIMIT BY", "number rows by row_number() OVER and QUALIFY it");
        }
        if query.for_clause.is_some() {
            return found("FOR", "FOR XML, JSON or BROWSE", "ask for the form with --format");
        }
        if query.format_clause.is_some() {
            return found("FORMAT", "FORMAT", "ask for the form with --format");
        }
        if query.settings.is_some() {
            return found("SETTINGS", "SETTINGS", "leave it out: limits are options");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Ignored> {
        if select.top.is_some() {
            return found("TOP", "TOP", "write LIMIT behind the query");
        }
        if select.prewhere.is_some() {
            return found("PREWHERE", "PREWHERE", "write its condition in WHERE");
        }
        let modifiers = match &select.group_by {
            GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => modifiers,
        };
        if let Some(modifier) = modifiers.first() {
            let (keyword, what) = match modifier {
                GroupByWithModifier::Rollup => ("ROLLUP", "WITH ROLLUP behind this list"),
                GroupByWithModifier::Cube => ("CUBE", "WITH CUBE behind this list"),
                GroupByWithModifier::Totals => ("TOTALS", "WITH TOTALS"),
                GroupByWithModifier::GroupingSets(_) => {
                    ("GROUPING", "GROUPING SETS behind a list of columns")
                }
            };
            return found(
                keyword,
                what,
                "write GROUP BY ROLLUP (..), CUBE (..) or GROUPING SETS (..)",
            );
        }
        if select.from.iter().any(is_without_on) {
            return found(
                "JOIN",
                "a JOIN without ON or USING",
                "say by what, or CROSS JOIN for each row with each",
            );
        }
        if !select.connect_by.is_empty() {
            return found("CONNECT", "CONNECT BY", "write it as WITH RECURSIVE");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Ignored> {
        match expr {
            Expr::SimilarTo { pattern, .. } if matches!(**pattern, Expr::Value(_)) => found(
                "SIMILAR",
                "SIMILAR TO a pattern that is cut",
                "close its brackets, and escape something with one character",
            ),
            Expr::SimilarTo { .. } => found(
                "SIMILAR",
                "SIMILAR TO what is computed",
                "give it a pattern as text, or use ~",
            ),
            Expr::Function(function) if is_without_percent(function) => found(
                "to_char",
                "to_char with a format without %, which would be the answer as it stands",
                "write 'YYYY-MM-DD' as '%Y-%m-%d', and 'HH24:MI:SS' as '%H:%M:%S'",
            ),
            Expr::Collate { .. } => found(
                "COLLATE",
                "COLLATE",
                "texts are compared by their bytes: compare or order by lower(..) for letters of \
                 both cases alike",
            ),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Ignored> {
        let sampled = || found("TABLESAMPLE", "TABLESAMPLE", "take a part by a condition or LIMIT");
        match factor {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => sampled(),
            TableFactor::Table { with_hints, .. } if !with_hints.is_empty() => {
                found("WITH", "WITH behind a table", "leave it out: readers lock nothing")
            }
            TableFactor::Table { with_ordinality: true, .. } => {
                found("ORDINALITY", "WITH ORDINALITY", "number rows by row_number() OVER ()")
            }
            TableFactor::Pivot { .. } => found(
                "PIVOT",
                "PIVOT",
                "ask for each column, as in sum(n) FILTER (WHERE a = 1) AS b, by GROUP BY",
            ),
            TableFactor::Unpivot { .. } => {
                found("UNPIVOT", "UNPIVOT", "ask for each column, joined by UNION ALL")
            }
            TableFactor::Table { partitions, .. } if !partitions.is_empty() => {
                found("PARTITION", "PARTITION", "take a part by a condition")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether tables are joined that do not say by what, which would be each row with each.
fn is_without_on(tables: &TableWithJoins) -> bool {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    let within = |table: &TableFactor| match table {
        TableFactor::NestedJoin { table_with_joins, .. } => is_without_on(table_with_joins),
        _ => false,
    };
    let mut joins = tables.joins.iter();
    within(&tables.relation)
        || joins.any(|join| {
            let is_alone = matches!(
                join.join_operator,
                Join(JoinConstraint::None)
                    | Inner(JoinConstraint::None)
                    | Left(JoinConstraint::None)
                    | LeftOuter(JoinConstraint::None)
                    | Right(JoinConstraint::None)
                    | RightOuter(JoinConstraint::None)
                    | FullOuter(JoinConstraint::None)
            );
            is_alone || within(&join.relation)
        })
}

/// The formats of spans of time, which have no %.
const OF_SPANS: [&str; 2] = ["pretty", "iso8601"];

/// Whether a time is to be written in a format of other databases.
fn is_without_percent(function: &Function) -> bool {
    let FunctionArguments::List(list) = &function.args else { return false };
    let is_format = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => {
            matches!(&value.value, Value::SingleQuotedString(text)
                if !text.contains('%') && !OF_SPANS.iter().any(|of| text.eq_ignore_ascii_case(of)))
        }
        _ => false,
    };
    function.name.to_string().eq_ignore_ascii_case("to_char")
        && matches!(list.args.as_slice(), [_, format] if is_format(format))
}
