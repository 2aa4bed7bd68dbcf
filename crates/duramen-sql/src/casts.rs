//! A column and casts of it in one query.
//!
//! The planner calls `CAST(a AS TEXT)` as it calls `a`, so that it takes `sum(a)` and
//! `sum(CAST(a AS DOUBLE))` for one column. Where a query has both, casts stand in a function that
//! has a name of its own, and is gone as soon as the query is planned.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr as Planned, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, Value, VisitMut, VisitorMut, visit_expressions, visit_expressions_mut,
};

use crate::rewriting::each_expression;
use crate::{rounding, spelling};

/// What nobody calls it.
const NAMED: &str = "\u{1f}cast";

pub(crate) fn register(context: &SessionContext) {
    let signature = Signature::any(2, Volatility::Immutable);
    context.register_udf(ScalarUDF::from(NamedCast { signature }));
}

/// The rule that takes the functions out, before others look for casts, also those that round what
/// has no fraction.
pub(crate) fn rule() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Rule)
}

/// Names casts of columns that are there without it, or in casts to other types.
pub(crate) fn rewrite(parsed: &mut impl VisitMut) {
    let ControlFlow::Continue(()) = parsed.visit(&mut Namer { queries: 0 });
}

struct Namer {
    /// In how many queries it is; those within others are gone through with these.
    queries: usize,
}

impl VisitorMut for Namer {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        if self.queries == 1 {
            name_casts(query);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }
}

fn name_casts(query: &mut Query) {
    let mut uses: HashMap<String, Uses> = HashMap::new();
    let mut has_casts = false;
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions(query, |expr| {
        if let Some(column) = column(expr) {
            uses.entry(column).or_default().all += 1;
        }
        if let Some((column, of)) = cast(expr) {
            has_casts = true;
            let uses = uses.entry(column).or_default();
            uses.casts += 1;
            uses.types.push(of);
        }
        ControlFlow::Continue(())
    });
    if !has_casts {
        return;
    }
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions_mut(query, |expr| {
        if let Some((column, of)) = cast(expr)
            && uses.get(&column).is_some_and(Uses::are_several)
        {
            let cast = std::mem::replace(expr, Expr::value(Value::Null));
            *expr = named(cast, of);
        }
        ControlFlow::Continue(())
    });
}

/// How a column is used.
#[derive(Default)]
struct Uses {
    all: usize,
    casts: usize,
    types: Vec<String>,
}

impl Uses {
    /// Whether it is there in more than one type.
    fn are_several(&self) -> bool {
        self.all > self.casts || self.types.windows(2).any(|pair| pair[0] != pair[1])
    }
}

/// The last part of the name of a column.
fn column(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.clone()),
        _ => None,
    }
}

/// The column that is cast, and to what.
fn cast(expr: &Expr) -> Option<(String, String)> {
    match expr {
        Expr::Cast { expr, data_type, .. } => Some((column(expr)?, data_type.to_string())),
        _ => None,
    }
}

/// A cast in the function, which says the type once more.
fn named(cast: Expr, of: String) -> Expr {
    let of = Expr::value(Value::SingleQuotedString(of));
    spelling::call(Ident::with_quote('"', NAMED), vec![Expr::Nested(Box::new(cast)), of])
}

/// Takes the functions out.
#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "named_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| expr.transform_up(|expr| Ok(known(expr, schema))))
    }
}

fn known(mut expr: Planned, schema: &DFSchema) -> Transformed<Planned> {
    if rounding::known(&mut expr, schema) {
        return Transformed::yes(expr);
    }
    match expr {
        Planned::ScalarFunction(ScalarFunction { func, mut args })
            if func.name() == NAMED && !args.is_empty() =>
        {
            Transformed::yes(args.swap_remove(0))
        }
        expr => Transformed::no(expr),
    }
}

/// Gives what it is given.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedCast {
    signature: Signature,
}

impl ScalarUDFImpl for NamedCast {
    fn name(&self) -> &'static str {
        NAMED
    }

    fn schema_name(&self, args: &[Planned]) -> Result<String> {
        let [cast, Planned::Literal(of, _)] = args else {
            return internal_err!("a cast without a type");
        };
        let of = ScalarValue::try_as_str(of).flatten().unwrap_or_default();
        Ok(format!("CAST({} AS {of})", cast.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, of: &[DataType]) -> Result<DataType> {
        let [of, ..] = of else { return internal_err!("a cast of nothing") };
        Ok(of.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut args = args.args.into_iter();
        args.next().map_or_else(|| internal_err!("a cast of nothing"), Ok)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    #[test]
    fn casts_are_named_where_the_column_is_there_in_another_type() {
        for (text, named) in [
            ("SELECT CAST(a AS TEXT), b FROM t", 0),
            ("SELECT CAST(a AS TEXT) FROM t GROUP BY CAST(a AS TEXT)", 0),
            ("SELECT a, t.a::TEXT FROM t", 1),
            ("SELECT CAST(a AS TEXT), CAST(a AS INT) FROM t", 2),
            ("SELECT sum(a), sum(CAST(a AS DOUBLE)) FROM t", 1),
            ("SELECT CAST(a AS DOUBLE) FROM t ORDER BY a", 1),
            ("SELECT CAST(1 AS DOUBLE), a FROM t", 0),
        ] {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, text).unwrap();
            super::rewrite(&mut parsed);
            let made = parsed[0].to_string();
            assert_eq!(made.matches(super::NAMED).count(), named, "{made}");
        }
    }
}
