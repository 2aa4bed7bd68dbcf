//! Subqueries that stand for a value and look at the row outside.
//!
//! They are joined by what they are equal in, and must aggregate for that. What `ORDER BY ..
//! LIMIT 1` gives is the first value in that order; of others the first value is kept, with how
//! many there are, and the row that looks at several of them is an error.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, exec_err, internal_err};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    ColumnarValue, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SkipType, SortExpr, Subquery,
    Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::gives_one_row;
use crate::column_type::{is_json, json_text};
use crate::rewriting::each_expression;

/// The members of what is found: the first value, and how many there are.
const VALUE: &str = "value";
const COUNT: &str = "count";

static ONLY_VALUE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| only_value(false));
static ONLY_JSON: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| only_value(true));

fn only_value(is_json: bool) -> Arc<ScalarUDF> {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(OnlyValue { is_json, signature }))
}

#[derive(Debug)]
pub(super) struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "one_value_of_subqueries"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, _| {
            expr.transform_up(|expr| match expr {
                Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
                    aggregated(subquery)
                }
                expr => Ok(Transformed::no(expr)),
            })
        })
    }
}

fn aggregated(subquery: Subquery) -> Result<Transformed<Expr>> {
    if subquery.subquery.schema().fields().len() != 1 {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    match subquery.subquery.as_ref() {
        // Where nothing is found its row says so, which a first one of none would not.
        LogicalPlan::Limit(limit) if is_of_one(limit) && gives_one_row(&limit.input) => {
            let plan = subquery.with_plan(Arc::clone(&limit.input));
            Ok(Transformed::yes(Expr::ScalarSubquery(plan)))
        }
        LogicalPlan::Limit(limit) if is_of_one(limit) => {
            let (of, value, order) = first(&limit.input);
            let plan = of_groups(of, first_value(value, order), &subquery)?;
            Ok(Transformed::yes(Expr::ScalarSubquery(plan)))
        }
        plan if gives_one_row_at_most(plan) => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
        plan => {
            let (of, value, _) = first(plan);
            let first = first_value(value, Vec::new());
            let both = named_struct(vec![lit(VALUE), first, lit(COUNT), count(lit(1_i64))]);
            let plan = of_groups(of, both, &subquery)?;
            let is_json = is_json(subquery.subquery.schema().field(0));
            let only = if is_json { &ONLY_JSON } else { &ONLY_VALUE };
            Ok(Transformed::yes(only.call(vec![Expr::ScalarSubquery(plan)])))
        }
    }
}

fn is_of_one(limit: &Limit) -> bool {
    let is_first = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    is_first && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1))))
}

/// Whether a plan gives one row at most, which the planner joins as it is.
fn gives_one_row_at_most(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => gives_one_row_at_most(&filter.input),
        LogicalPlan::Projection(projection) => gives_one_row_at_most(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => gives_one_row_at_most(&alias.input),
        LogicalPlan::Sort(sort) => gives_one_row_at_most(&sort.input),
        plan => gives_one_row(plan),
    }
}

/// What a plan sorts, the value of its one column by that, and the order.
fn first(plan: &LogicalPlan) -> (&LogicalPlan, Expr, Vec<SortExpr>) {
    let column = |plan: &LogicalPlan| Expr::Column(Column::from(plan.schema().qualified_field(0)));
    match plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
            (&sort.input, column(&sort.input), sort.expr.clone())
        }
        LogicalPlan::Projection(projection) => match projection.input.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => {
                (&sort.input, projection.expr[0].clone().unalias(), sort.expr.clone())
            }
            _ => (plan, column(plan), Vec::new()),
        },
        _ => (plan, column(plan), Vec::new()),
    }
}

/// A subquery that gives an aggregate of a plan, by the name that its column had.
fn of_groups(plan: &LogicalPlan, value: Expr, subquery: &Subquery) -> Result<Subquery> {
    let (_, field) = subquery.subquery.schema().qualified_field(0);
    let aggregates = match &value {
        Expr::ScalarFunction(function) => {
            [&function.args[1], &function.args[3]].map(Clone::clone).to_vec()
        }
        value => vec![value.clone()],
    };
    let named = value.alias(field.name());
    let plan = LogicalPlanBuilder::from(plan.clone())
        .aggregate(Vec::<Expr>::new(), aggregates)?
        .project(vec![named])?
        .build()?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// The value of what was found, if it is one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyValue {
    /// A member of what was found is not marked as JSON.
    is_json: bool,
    signature: Signature,
}

impl ScalarUDFImpl for OnlyValue {
    fn name(&self) -> &'static str {
        "only_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let field = Field::new(self.name(), self.return_type(&types)?, true);
        Ok(Arc::new(if self.is_json { json_text(field) } else { field }))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [DataType::Struct(fields)] if fields.len() == 2 => Ok(fields[0].data_type().clone()),
            _ => internal_err!("only_value of {types:?}"),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let found = args.args[0].to_array(args.number_rows)?;
        let found = found.as_struct();
        let counts = found.column(1).as_primitive::<Int64Type>();
        let is_one =
            |row: usize| found.is_null(row) || counts.is_null(row) || counts.value(row) < 2;
        if !(0..found.len()).all(is_one) {
            return exec_err!("Scalar subquery returned more than one row");
        }
        let value = nullif(found.column(0), &is_null(found)?)?;
        Ok(ColumnarValue::Array(value))
    }
}
