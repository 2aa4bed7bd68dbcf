//! Arithmetic of integers that ends in an error where its result is no integer of its type, and of
//! decimals that is rounded.
//!
//! `DataFusion` lets them wrap around. So once types are known, functions of our own take the place
//! of `+`, `-` and `*` of integers, and its `sum` is one that adds up with twice as many bits.

use std::fmt::Write as _;
use std::sync::Arc;

use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DataFusionError, Result, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_expr_common::datum::apply;
use datafusion::prelude::SessionContext;
use duramen::{Error, ErrorKind};

use crate::failure::external;
use crate::rewriting::each_expression;
use crate::windows::peers;
use crate::{bags, casts, exact, json_marks, json_numbers};

mod average;
mod quotient;
mod sum;

pub(crate) use average::Average;
pub(crate) use sum::CheckedSum;

/// Operators from which on a chain of them is one function.
const CHAIN_OPERATORS_MIN: usize = 32;

const NO_OPERAND: &str = "arithmetic has an operand";

/// About how many bytes of an expression an error names it by.
const NAME_BYTES_MAX: usize = 80;

/// Makes arithmetic of a query checked.
pub(crate) fn register(context: &SessionContext) {
    context.register_udaf(CheckedSum::default().into());
    context.register_udaf(Average::default().into());
    context.add_analyzer_rule(Arc::new(Rule));
}

/// What integers are computed of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Negate,
}

/// The function of operations, each of what was computed before it and the next operand.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operations: Vec<Operation>,
    signature: Signature,
}

impl Operation {
    fn of(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Plus => Some(Self::Add),
            Operator::Minus => Some(Self::Subtract),
            Operator::Multiply => Some(Self::Multiply),
            _ => None,
        }
    }

    fn symbol(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract | Self::Negate => '-',
            Self::Multiply => '*',
        }
    }
}

/// Operations of operands, which are of one type.
fn call(operations: Vec<Operation>, args: Vec<Expr>) -> Expr {
    let signature = Signature::any(args.len(), Volatility::Immutable);
    let function = Arc::new(ScalarUDF::from(Checked { operations, signature }));
    Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
}

/// The rules of `DataFusion` and those that come before them.
pub(crate) fn with_rule() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    let own = [
        bags::rule(),
        casts::rule(),
        json_numbers::rule(),
        Arc::new(ChainRule) as Arc<_>,
        exact::rule(),
        json_marks::unions(),
        peers::rule(),
    ];
    rules.splice(0..0, own);
    rules
}

/// Makes one function of each long chain of operators, before types are looked at: that looks at
/// all that is below each operator.
#[derive(Debug)]
struct ChainRule;

impl AnalyzerRule for ChainRule {
    fn name(&self) -> &'static str {
        "arithmetic_chains"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| expr.transform_down(|expr| Ok(chained(expr, schema))))
    }
}

/// The operators of a chain, the last one first, and its first operand.
fn chain(mut expr: &Expr) -> (Vec<Operation>, &Expr) {
    let mut operations = Vec::new();
    while let Expr::BinaryExpr(BinaryExpr { left, op, .. }) = expr
        && let Some(operation) = Operation::of(*op)
    {
        // What binds more or less is no chain.
        let is_product = |of: &Operation| *of == Operation::Multiply;
        if operations.last().is_some_and(|last| is_product(last) != is_product(&operation)) {
            break;
        }
        operations.push(operation);
        expr = left;
    }
    (operations, expr)
}

fn chained(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let (mut operations, first) = chain(&expr);
    if operations.len() < CHAIN_OPERATORS_MIN {
        return Transformed::no(expr);
    }
    let is_known = |kind: &DataType| matches!(kind, DataType::Int64 | DataType::Float64);
    let mut kinds = Vec::with_capacity(operations.len() + 1);
    let mut of = &expr;
    while let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = of
        && kinds.len() < operations.len()
    {
        kinds.push(right.get_type(schema));
        of = left;
    }
    kinds.push(first.get_type(schema));
    let kinds: Vec<DataType> = kinds.into_iter().flatten().filter(is_known).collect();
    if kinds.len() <= operations.len() {
        // Its parts are no longer chains of what is known.
        return Transformed::new(expr, false, TreeNodeRecursion::Jump);
    }
    let mut operands = Vec::with_capacity(kinds.len());
    let mut rest = expr;
    while let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = rest {
        operands.push(*right);
        rest = *left;
        if operands.len() == operations.len() {
            break;
        }
    }
    operands.push(rest);
    operations.reverse();
    Transformed::yes(of_kinds(operations, operands.into_iter().rev(), kinds.into_iter().rev()))
}

/// A chain of integers becomes one of floats with the first of these, as by operators.
fn of_kinds(
    operations: Vec<Operation>,
    operands: impl Iterator<Item = Expr>,
    kinds: impl Iterator<Item = DataType>,
) -> Expr {
    let float = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), DataType::Float64));
    let mut operations = operations.into_iter();
    let (mut is_float, mut so_far, mut args) = (false, Vec::new(), Vec::new());
    for (operand, kind) in operands.zip(kinds) {
        let is_integer = kind == DataType::Int64;
        if !args.is_empty() {
            if !is_float && !is_integer {
                args = vec![float(joined(&mut so_far, &mut args))];
            }
            so_far.extend(operations.next());
        }
        is_float = is_float || !is_integer;
        args.push(if is_float && is_integer { float(operand) } else { operand });
    }
    joined(&mut so_far, &mut args)
}

fn joined(operations: &mut Vec<Operation>, args: &mut Vec<Expr>) -> Expr {
    match args.len() {
        1 => args.remove(0),
        _ => call(std::mem::take(operations), std::mem::take(args)),
    }
}

/// Puts the functions in the place of operators.
#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| expr.transform_up(|expr| Ok(checked(expr, schema))))
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })
            if is_decimal(&left, schema) && is_decimal(&right, schema) =>
        {
            Transformed::yes(quotient::call(*left, *right))
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Operation::of(op) {
            // Beside an integer can be what is none, such as a date.
            Some(operation) if is_integer(&right, schema) && is_integer(&left, schema) => {
                Transformed::yes(call(vec![operation], vec![*left, *right]))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Negative(of) if is_integer(&of, schema) => {
            Transformed::yes(call(vec![Operation::Negate], vec![*of]))
        }
        expr => Transformed::no(expr),
    }
}

fn is_integer(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        // It is known of what is such an operation, without a look at all that is in it.
        Expr::ScalarFunction(function) if function.func.inner().is::<Checked>() => true,
        expr => expr.get_type(schema).is_ok_and(|kind| kind.is_integer()),
    }
}

fn is_decimal(expr: &Expr, schema: &DFSchema) -> bool {
    use DataType::{Decimal128, Decimal256};
    matches!(expr.get_type(schema), Ok(Decimal128(_, 0..) | Decimal256(_, 0..)))
}

/// What an operand of an operation is called, for people.
fn operand(args: &ScalarFunctionArgs, at: usize) -> String {
    match (args.args.get(at), args.arg_fields.get(at)) {
        (Some(ColumnarValue::Scalar(value)), _) => value.to_string(),
        (_, Some(field)) => field.name().clone(),
        _ => String::new(),
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.operations.as_slice() {
            [Operation::Add] => "add",
            [Operation::Subtract] => "subtract",
            [Operation::Multiply] => "multiply",
            [Operation::Negate] => "negate",
            _ => "arithmetic",
        }
    }

    /// The name of a column is that of the operators.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        if let [of] = args {
            return Ok(format!("(- {})", of.schema_name()));
        }
        let mut name = String::new();
        for (index, arg) in args.iter().enumerate() {
            if let Some(operation) = index.checked_sub(1).and_then(|at| self.operations.get(at)) {
                let _ = write!(name, " {} ", operation.symbol());
            }
            let _ = write!(name, "{}", arg.schema_name());
        }
        Ok(name)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        let [kind, ..] = kinds else { return internal_err!("{NO_OPERAND}") };
        Ok(kind.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let name = |at: usize| match (args.scalar_arguments.get(at), args.arg_fields.get(at)) {
            (Some(Some(value)), _) => value.to_string(),
            (_, Some(field)) => field.name().clone(),
            _ => String::new(),
        };
        let name = self.text(self.operations.len(), name);
        let [first, ..] = args.arg_fields else { return internal_err!("{NO_OPERAND}") };
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(name, first.data_type().clone(), is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut operands = args.args.iter();
        let Some(mut computed) = operands.next().cloned() else {
            return internal_err!("{NO_OPERAND}");
        };
        for (index, operation) in self.operations.iter().enumerate() {
            let next = operands.next().unwrap_or(&computed);
            let result = match operation {
                Operation::Add => apply(&computed, next, numeric::add),
                Operation::Subtract => apply(&computed, next, numeric::sub),
                Operation::Multiply => apply(&computed, next, numeric::mul),
                Operation::Negate => apply(&computed, next, |of, _| numeric::neg(of.get().0)),
            };
            computed = result.map_err(|error| self.failed(error, index + 1, &args))?;
        }
        Ok(computed)
    }
}

impl Checked {
    /// The last so many operations, for people; what is computed last stands at the end.
    fn text(&self, operations: usize, operand: impl Fn(usize) -> String) -> String {
        let named = |at: usize| match operand(at) {
            name if name.contains(' ') => format!("({name})"),
            name => name,
        };
        if self.operations == [Operation::Negate] {
            return format!("- {}", named(0));
        }
        let mut text = String::new();
        for at in (0..=operations).rev() {
            if text.len() > NAME_BYTES_MAX {
                return format!("...{text}");
            }
            let before = at.checked_sub(1).and_then(|before| self.operations.get(before));
            let symbol = before.map_or_else(String::new, |of| format!(" {} ", of.symbol()));
            text = format!("{symbol}{}{text}", named(at));
        }
        text
    }

    /// What an operation failed of, the last one of so many.
    fn failed(
        &self,
        error: DataFusionError,
        operations: usize,
        args: &ScalarFunctionArgs,
    ) -> DataFusionError {
        let DataFusionError::ArrowError(inner, _) = &error else { return error };
        let ArrowError::ArithmeticOverflow(why) = inner.as_ref() else { return error };
        let why = why.trim_start_matches("Overflow happened on: ");
        beyond(&self.text(operations, |at| operand(args, at)), why, args.return_type())
    }
}

/// The error of a result that its type has no room for.
pub(crate) fn beyond(what: &str, why: &str, kind: &DataType) -> DataFusionError {
    let wider = match kind {
        DataType::Decimal128(_, scale) => {
            format!("DOUBLE or DECIMAL({}, {scale})", sum::SUMMED_DIGITS_MAX)
        }
        DataType::Int64 | DataType::UInt64 => {
            format!("DOUBLE or DECIMAL({DECIMAL128_MAX_PRECISION}, 0)")
        }
        _ => format!("BIGINT, DOUBLE or DECIMAL({DECIMAL128_MAX_PRECISION}, 0)"),
    };
    let kind = match kind {
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        kind => kind.to_string().to_uppercase(),
    };
    let message = format!(
        "the query cannot be answered: {what} is beyond {kind} ({why}): cast what it is made of to \
         a type that is wider, {wider}"
    );
    external(Error::new(ErrorKind::Invalid, message))
}
