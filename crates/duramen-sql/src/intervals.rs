//! Intervals in order: by the time they stand for, of which a day has 24 hours and a month 30 days,
//! as in `PostgreSQL`.
//!
//! They are compared by their months first, then by days, then by what is left (`DataFusion` 55),
//! so that 36 hours would be less than a day. Wherever intervals are compared, a number is.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNanoType, IntervalUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, AggregateFunctionParams, Between, InList, Sort, WindowFunction,
};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

use crate::rewriting::{each_expression, is_comparison};

mod added;
mod factor;

pub(crate) use added::{AddedIntervals, IntervalsTo};
pub(crate) use factor::Factor;

const NANOS_OF_DAY: i128 = 86_400_000_000_000;
const DAYS_OF_MONTH: i128 = 30;
/// More digits than the longest interval has.
const SPAN: DataType = DataType::Decimal128(38, 0);
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

pub(crate) fn register(context: &SessionContext) {
    let signature = Signature::any(1, Volatility::Immutable);
    let span = Arc::new(ScalarUDF::from(Span { signature }));
    context.add_analyzer_rule(Arc::new(Rule { span }));
}

/// Compares the spans of intervals.
#[derive(Debug)]
struct Rule {
    span: Arc<ScalarUDF>,
}

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "spans_of_intervals"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let sorted = plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Sort(mut sort) = plan else { return Ok(Transformed::no(plan)) };
            sort.expr = self.sorted(sort.expr, sort.input.schema());
            Ok(Transformed::yes(LogicalPlan::Sort(sort)))
        });
        each_expression(sorted?.data, |expr, schema| {
            expr.transform_up(|expr| Ok(self.spanned(expr, schema)))
        })
    }
}

impl Rule {
    /// The span of an interval.
    fn of(&self, interval: Expr) -> Expr {
        self.span.call(vec![interval])
    }

    /// An expression that compares spans, if it compares intervals.
    fn spanned(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let is = |expr: &Expr| is_interval(expr, schema);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_comparison(op) && (is(&left) || is(&right)) =>
            {
                let (left, right) = (Box::new(self.of(*left)), Box::new(self.of(*right)));
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::Between(Between { expr, negated, low, high }) if is(&expr) => {
                let [expr, low, high] = [expr, low, high].map(|expr| Box::new(self.of(*expr)));
                Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
            }
            Expr::InList(InList { expr, list, negated }) if is(&expr) => {
                let list = list.into_iter().map(|element| self.of(element)).collect();
                let expr = Box::new(self.of(*expr));
                Transformed::yes(Expr::InList(InList { expr, list, negated }))
            }
            Expr::WindowFunction(mut function)
                if function.params.order_by.iter().any(|sort| is(&sort.expr)) =>
            {
                let WindowFunction { params, .. } = function.as_mut();
                params.order_by = self.sorted(std::mem::take(&mut params.order_by), schema);
                Transformed::yes(Expr::WindowFunction(function))
            }
            Expr::AggregateFunction(function) => self.aggregated(function, schema),
            expr => Transformed::no(expr),
        }
    }

    /// The least of intervals as the first of them by their spans, the greatest as the last.
    fn aggregated(&self, function: AggregateFunction, schema: &DFSchema) -> Transformed<Expr> {
        let AggregateFunction { func, mut params } = function;
        let asc = match func.name() {
            "min" => true,
            "max" => false,
            _ => {
                let is_sorted = params.order_by.iter().any(|by| is_interval(&by.expr, schema));
                if is_sorted {
                    params.order_by = self.sorted(params.order_by, schema);
                }
                let function = Expr::AggregateFunction(AggregateFunction { func, params });
                return Transformed::new_transformed(function, is_sorted);
            }
        };
        match params.args.as_slice() {
            [interval] if is_interval(interval, schema) => {
                let order_by =
                    vec![Sort { expr: self.of(interval.clone()), asc, nulls_first: false }];
                let AggregateFunctionParams { args, filter, null_treatment, .. } = params;
                let params = AggregateFunctionParams {
                    args,
                    distinct: false,
                    filter,
                    order_by,
                    null_treatment,
                };
                let func = first_value_udaf();
                Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params }))
            }
            _ => Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })),
        }
    }

    fn sorted(&self, by: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
        let sorted = by.into_iter().map(|sort| {
            if !is_interval(&sort.expr, schema) {
                return sort;
            }
            Sort { expr: self.of(sort.expr), ..sort }
        });
        sorted.collect()
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

/// The nanoseconds that an interval stands for.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Span {
    signature: Signature,
}

impl ScalarUDFImpl for Span {
    fn name(&self) -> &'static str {
        "interval_span"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(SPAN)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [intervals] = take_function_args(self.name(), args.args)?;
        let is_one = matches!(intervals, ColumnarValue::Scalar(_));
        let intervals = cast(&intervals.into_array(args.number_rows)?, &INTERVAL)?;
        let spans: Decimal128Array =
            intervals.as_primitive::<IntervalMonthDayNanoType>().unary(|interval| {
                let days = i128::from(interval.months) * DAYS_OF_MONTH + i128::from(interval.days);
                days * NANOS_OF_DAY + i128::from(interval.nanoseconds)
            });
        let spans: ArrayRef = Arc::new(spans.with_data_type(SPAN));
        if is_one && !spans.is_empty() {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&spans, 0)?));
        }
        Ok(ColumnarValue::Array(spans))
    }
}
