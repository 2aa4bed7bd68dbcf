//! Which texts are JSON, as it is written, and which are only texts.
//!
//! A column of mixed values is text that is marked as JSON (`column_type.rs`). The planner drops
//! the mark where such a text goes through a function, and in a UNION gives it to texts beside it
//! that are none. Rules keep it with what is only passed on, and make JSON of plain text that comes
//! together with it: in a UNION, and where columns are compared.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{AggregateFunction, Between, InSubquery, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder,
    ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Union, Volatility,
    when,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

use crate::column_type::{is_json, json_text};
use crate::rewriting::is_comparison;

/// Functions that give one of their arguments.
pub(crate) const PASS_ON: [&str; 6] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

/// Functions that give a part of a value.
const PARTS: [&str; 2] = ["array_element", "get_field"];

/// Aggregates that give one of the values.
const PICK: [&str; 6] = ["any_value", "first_value", "last_value", "max", "min", "nth_value"];

static MARKED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(JsonOf::udf(false)));
static QUOTED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(JsonOf::udf(true)));

pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Rule));
}

/// The rule for unions, which comes before types are looked at: that marks all inputs alike.
pub(crate) fn unions() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Unions)
}

#[derive(Debug)]
struct Unions;

impl AnalyzerRule for Unions {
    fn name(&self) -> &'static str {
        "json_in_unions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|plan| match plan {
            LogicalPlan::Union(union) => of_union(union),
            plan => Ok(Transformed::no(plan)),
        })
        .map(|transformed| transformed.data)
    }
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "marks_of_json"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if !reads_json(&plan)? {
            return Ok(plan);
        }
        let mut is_changed = false;
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let plan = match plan {
                LogicalPlan::Join(join) => compared_columns(join),
                LogicalPlan::Aggregate(_) | LogicalPlan::Unnest(_) => picked(plan)?,
                plan => Transformed::no(plan),
            };
            let was_changed = plan.transformed;
            let plan = expressions(plan.data)?;
            is_changed |= was_changed || plan.transformed;
            // What reads this one is told of the marks.
            if is_changed { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
        });
        Ok(rewritten?.data)
    }
}

/// Whether a plan has to do with JSON at all.
fn reads_json(plan: &LogicalPlan) -> Result<bool> {
    let mut is_there = false;
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            is_there |= scan.projected_schema.fields().iter().any(|field| has_json(field));
        }
        plan.apply_expressions(|expr| {
            is_there |= expr.exists(|expr| Ok(is_json_function(expr)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if is_there { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_there)
}

fn is_json_function(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(function) if function.func.name().starts_with("json_"))
}

/// Whether a column has JSON, at whatever depth.
fn has_json(field: &Field) -> bool {
    is_json(field)
        || match field.data_type() {
            DataType::List(item) => has_json(item),
            DataType::Struct(members) => members.iter().any(|member| has_json(member)),
            _ => false,
        }
}

/// The expressions of a plan: columns that are compared, and marks of what is passed on.
fn expressions(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = match &plan {
        LogicalPlan::TableScan(scan) => scan.projected_schema.as_ref().clone(),
        plan => merge_schema(&plan.inputs()),
    };
    let names = NamePreserver::new(&plan);
    let names_columns = matches!(plan, LogicalPlan::Projection(_));
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let compared = expr.transform_up(|expr| compared(expr, &schema))?;
        let marked = compared.transform_data(|expr| {
            let is_lost =
                names_columns && is_passed_on(&expr, &schema) && !is_marked(&expr, &schema);
            Ok(if is_lost {
                Transformed::yes(marked(expr.unalias()))
            } else {
                Transformed::no(expr)
            })
        })?;
        Ok(marked.update_data(|expr| name.restore(expr)))
    })
}

/// Whether an expression gives JSON as it is told.
fn is_marked(expr: &Expr, schema: &DFSchema) -> bool {
    expr.to_field(schema).is_ok_and(|(_, field)| is_json(&field))
}

/// Whether an expression gives what some columns have, all of which are JSON.
fn is_passed_on(expr: &Expr, schema: &DFSchema) -> bool {
    let is_null = |expr: &Expr| match expr {
        Expr::Literal(value, _) => value.is_null(),
        Expr::Cast(cast) => matches!(*cast.expr, Expr::Literal(ref value, _) if value.is_null()),
        _ => false,
    };
    let are_all = |exprs: &mut dyn Iterator<Item = &Expr>| {
        let exprs: Vec<&Expr> = exprs.filter(|expr| !is_null(expr)).collect();
        !exprs.is_empty() && exprs.into_iter().all(|expr| is_passed_on(expr, schema))
    };
    match expr {
        Expr::Alias(alias) => is_passed_on(&alias.expr, schema),
        Expr::Case(case) => {
            let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
            are_all(&mut results.chain(case.else_expr.as_deref()))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => match func.name() {
            "nullif" => args.first().is_some_and(|value| is_passed_on(value, schema)),
            name if PASS_ON.contains(&name) => are_all(&mut args.iter()),
            "array_element" => args.first().is_some_and(|list| is_list_of_json(list, schema)),
            _ => is_marked(expr, schema),
        },
        expr => is_marked(expr, schema),
    }
}

fn is_list_of_json(list: &Expr, schema: &DFSchema) -> bool {
    let is_json_list =
        |field: &Field| matches!(field.data_type(), DataType::List(of) if is_json(of));
    list.to_field(schema).is_ok_and(|(_, field)| is_json_list(&field))
}

/// JSON text of what is JSON as it is written, or a number or truth.
pub(crate) fn marked(expr: Expr) -> Expr {
    MARKED.call(vec![expr])
}

/// JSON of a column of another type: of numbers, and of true and false, it is their text.
fn json_of(column: Column, of: &DataType) -> Expr {
    let is_written_alike = of.is_numeric() || matches!(of, DataType::Boolean | DataType::Null);
    let json = if is_written_alike { &MARKED } else { &QUOTED };
    named(column, |column| json.call(vec![column]))
}

/// A comparison of a column of JSON with one of text, and what gives one or the other.
fn compared(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            with_one_meaning(left, schema, right, schema)
        }
        Expr::Between(Between { expr, low, high, .. }) => {
            all_with_one_meaning(vec![expr, low, high], schema)
        }
        Expr::Case(case) => {
            let (mut compared, mut given) = (Vec::new(), Vec::new());
            let of = case.expr.as_deref_mut();
            let is_of_values = of.is_some();
            compared.extend(of);
            for (when, then) in &mut case.when_then_expr {
                compared.extend(is_of_values.then_some(&mut **when));
                given.push(&mut **then);
            }
            given.extend(case.else_expr.as_deref_mut());
            all_with_one_meaning(compared, schema) | all_with_one_meaning(given, schema)
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if PASS_ON.contains(&func.name()) => {
            let text = args.first().filter(|_| func.name() == "nullif").cloned();
            let text = text.filter(|text| kind(text, schema) == Some(false));
            let is_changed = all_with_one_meaning(args.iter_mut().collect(), schema);
            if let (Some(text), true, [json, other]) = (text, is_changed, args.as_mut_slice()) {
                // What it gives is text, and not the JSON that is compared.
                let is_same = std::mem::take(json).eq(std::mem::take(other));
                let none = Expr::Literal(ScalarValue::try_from(&text.get_type(schema)?)?, None);
                expr = when(is_same, none).otherwise(text)?;
            }
            is_changed
        }
        Expr::InSubquery(_) => {
            let Expr::InSubquery(of) = expr else { return internal_err!("no subquery") };
            return sought(of, schema);
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, is_changed))
}

/// Makes JSON of the texts of columns among others of JSON; whether it does.
fn all_with_one_meaning(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let kinds: Vec<Option<bool>> = exprs.iter().map(|expr| kind(expr, schema)).collect();
    let is_changed = kinds.contains(&Some(true)) && kinds.contains(&Some(false));
    for (expr, _) in exprs.into_iter().zip(kinds).filter(|(_, kind)| *kind == Some(false)) {
        if is_changed {
            *expr = QUOTED.call(vec![std::mem::take(expr)]);
        }
    }
    is_changed
}

/// Makes JSON of the text of a column beside one of JSON; whether it does.
fn with_one_meaning(
    left: &mut Expr,
    of_left: &DFSchema,
    right: &mut Expr,
    of_right: &DFSchema,
) -> bool {
    let Some((left_is_json, right_is_json)) = kind(left, of_left).zip(kind(right, of_right)) else {
        return false;
    };
    let text = match (left_is_json, right_is_json) {
        (true, false) => right,
        (false, true) => left,
        _ => return false,
    };
    *text = QUOTED.call(vec![std::mem::take(text)]);
    true
}

/// Whether a column of text, or a part of one, is JSON; nothing of what is no such.
fn kind(expr: &Expr, schema: &DFSchema) -> Option<bool> {
    let is_part = match expr {
        Expr::Column(_) | Expr::OuterReferenceColumn(..) => true,
        Expr::ScalarFunction(function) => PARTS.contains(&function.func.name()),
        _ => false,
    };
    let (_, field) = expr.to_field(schema).ok().filter(|_| is_part)?;
    field.data_type().is_string().then(|| is_passed_on(expr, schema))
}

/// What is sought in a subquery, and what that gives.
fn sought(mut of: InSubquery, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let plan = Arc::clone(&of.subquery.subquery);
    let mut found = Expr::Column(Column::from(plan.schema().qualified_field(0)));
    let before = found.clone();
    let is_changed = with_one_meaning(&mut of.expr, schema, &mut found, plan.schema());
    if found != before {
        let name = plan.schema().field(0).name();
        let rows = LogicalPlanBuilder::from(plan.as_ref().clone());
        let plan = rows.project(vec![found.alias(name)])?.build()?;
        of.subquery = of.subquery.with_plan(Arc::new(plan));
    }
    Ok(Transformed::new_transformed(Expr::InSubquery(of), is_changed))
}

/// Columns in which a join compares both sides.
fn compared_columns(mut join: Join) -> Transformed<LogicalPlan> {
    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
    let mut is_changed = false;
    for (of_left, of_right) in &mut join.on {
        is_changed |= with_one_meaning(of_left, &left, of_right, &right);
    }
    Transformed::new_transformed(LogicalPlan::Join(join), is_changed)
}

/// The values that an aggregate picks and the elements of lists, by a list of columns above.
fn picked(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let is_lost: Vec<bool> = match &plan {
        LogicalPlan::Aggregate(aggregate) => {
            let input = aggregate.input.schema();
            let groups = plan.schema().fields().len().saturating_sub(aggregate.aggr_expr.len());
            let picks = aggregate.aggr_expr.iter().map(|expr| is_picked(expr, input));
            std::iter::repeat_n(false, groups).chain(picks).collect()
        }
        LogicalPlan::Unnest(unnest) => {
            let input = unnest.input.schema();
            let is_json_list = |index: usize| {
                let of = input.field(index).data_type();
                matches!(of, DataType::List(item) if is_json(item))
            };
            let of = unnest.dependency_indices.iter().zip(unnest.schema.fields());
            of.map(|(&index, field)| field.data_type().is_string() && is_json_list(index)).collect()
        }
        _ => Vec::new(),
    };
    if !is_lost.contains(&true) {
        return Ok(Transformed::no(plan));
    }
    let columns = plan.schema().columns().into_iter().zip(is_lost);
    let columns: Vec<Expr> = columns
        .map(|(column, is_lost)| if is_lost { named(column, marked) } else { Expr::Column(column) })
        .collect();
    Ok(Transformed::yes(LogicalPlanBuilder::from(plan).project(columns)?.build()?))
}

/// Whether an aggregate gives one of the values of JSON.
fn is_picked(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Alias(alias) => is_picked(&alias.expr, schema),
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let value = params.args.first();
            PICK.contains(&func.name())
                && value.is_some_and(|value| is_passed_on(value, schema))
                && !is_marked(expr, schema)
        }
        _ => false,
    }
}

/// What is made of a column, by its name.
fn named(column: Column, of: impl Fn(Expr) -> Expr) -> Expr {
    let (relation, name) = (column.relation.clone(), column.name.clone());
    of(Expr::Column(column)).alias_qualified(relation, name)
}

/// Inputs whose texts are JSON where those of another one are.
fn of_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut wanted = vec![false; union.schema.fields().len()];
    for input in &union.inputs {
        for (wanted, field) in wanted.iter_mut().zip(input.schema().fields()) {
            *wanted |= is_json(field);
        }
    }
    let mut is_changed = false;
    let inputs = union.inputs.iter().map(|input| {
        let fields = input.schema().fields().iter().zip(&wanted);
        let is_lost = |(field, wanted): (&FieldRef, &bool)| {
            *wanted && !is_json(field) && !field.data_type().is_nested()
        };
        let is_lost: Vec<bool> = fields.map(is_lost).collect();
        if !is_lost.contains(&true) {
            return Ok(Arc::clone(input));
        }
        is_changed = true;
        let columns = input.schema().columns().into_iter().zip(input.schema().fields());
        let columns: Vec<Expr> =
            columns
                .zip(is_lost)
                .map(|((column, field), is_lost)| {
                    if is_lost { json_of(column, field.data_type()) } else { Expr::Column(column) }
                })
                .collect();
        let plan = LogicalPlanBuilder::from(input.as_ref().clone()).project(columns)?.build()?;
        Ok(Arc::new(plan))
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let plan = LogicalPlan::Union(Union { inputs, schema: union.schema });
    Ok(Transformed::new_transformed(plan, is_changed))
}

/// Text as JSON: as it is, or as a JSON string.
#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonOf {
    is_quoted: bool,
    signature: Signature,
}

impl JsonOf {
    fn udf(is_quoted: bool) -> ScalarUDF {
        let signature = Signature::any(1, Volatility::Immutable);
        ScalarUDF::new_from_impl(Self { is_quoted, signature })
    }
}

impl ScalarUDFImpl for JsonOf {
    fn name(&self) -> &'static str {
        if self.is_quoted { "json_string" } else { "json" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        internal_err!("the type of JSON text is that of its field")
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(json_text(Field::new(self.name(), DataType::Utf8View, is_nullable))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = cast(&args.args[0].to_array(args.number_rows)?, &DataType::Utf8View)?;
        if !self.is_quoted {
            return Ok(ColumnarValue::Array(texts));
        }
        let strings = texts.as_string_view().iter();
        let json = strings.map(|text| text.map(|text| serde_json::Value::from(text).to_string()));
        Ok(ColumnarValue::Array(Arc::new(json.collect::<StringViewArray>())))
    }
}
