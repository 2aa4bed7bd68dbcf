//! Subqueries that stand for a value and look at the row outside.
//!
//! They are joined by what they are equal in, and must aggregate for that. What `ORDER BY ..
//! LIMIT 1` gives is the first value in that order; of others the first value is kept, with how
//! many there are, and the row that looks at several of them is an error.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::{is_null, nullif};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result, exec_err, internal_err};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::{
    Aggregate, ColumnarValue, Expr, FetchType, Limit, LogicalPlan, LogicalPlanBuilder,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, SkipType, SortExpr, Subquery,
    Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::rewriting::each_expression;

/// The members of what is found: the first value, and how many there are.
const VALUE: &str = "value";
const COUNT: &str = "count";

static ONLY_VALUE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(OnlyValue(Signature::any(1, Volatility::Immutable))))
});

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
        LogicalPlan::Limit(limit) if is_of_one(limit) => {
            let (of, value, order) = first(&limit.input);
            let plan = of_groups(of, first_value(value, order), &subquery)?;
            Ok(Transformed::yes(Expr::ScalarSubquery(plan)))
        }
        plan if gives_one_row(plan) => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
        LogicalPlan::Limit(_) => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
        plan => {
            let (of, value, _) = first(plan);
            let first = first_value(value, Vec::new());
            let both = named_struct(vec![lit(VALUE), first, lit(COUNT), count(lit(1_i64))]);
            let plan = of_groups(of, both, &subquery)?;
            Ok(Transformed::yes(ONLY_VALUE.call(vec![Expr::ScalarSubquery(plan)])))
        }
    }
}

fn is_of_one(limit: &Limit) -> bool {
    let is_first = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    is_first && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1))))
}

/// Whether a plan aggregates all of its rows to one, which the planner joins as it is.
fn gives_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(Aggregate { group_expr, .. }) => group_expr.is_empty(),
        LogicalPlan::Projection(projection) => gives_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => gives_one_row(&alias.input),
        LogicalPlan::Filter(filter) => gives_one_row(&filter.input),
        LogicalPlan::Sort(sort) => gives_one_row(&sort.input),
        _ => false,
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
struct OnlyValue(Signature);

impl ScalarUDFImpl for OnlyValue {
    fn name(&self) -> &'static str {
        "only_value"
    }

    fn signature(&self) -> &Signature {
        &self.0
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
