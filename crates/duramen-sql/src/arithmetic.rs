//! Arithmetic of integers that ends in an error where its result is no integer of its type.
//!
//! `DataFusion` lets them wrap around. So once types are known, functions of our own take the place
//! of `+`, `-` and `*` of integers, and its `sum` is one that adds up with 128 bits.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;
use datafusion::prelude::SessionContext;
use duramen::{Error, ErrorKind};

use crate::failure::external;

mod sum;

pub(crate) use sum::CheckedSum;

/// Bytes of an expression that an error names it by.
const NAME_BYTES_MAX: usize = 80;

/// Makes arithmetic of a query checked.
pub(crate) fn register(context: &SessionContext) {
    context.register_udaf(CheckedSum::default().into());
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

/// The function of an operation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    signature: Signature,
}

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 4]> = LazyLock::new(|| {
    Operation::ALL.map(|operation| {
        let operands = if operation == Operation::Negate { 1 } else { 2 };
        let signature = Signature::any(operands, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Checked { operation, signature }))
    })
});

impl Operation {
    const ALL: [Self; 4] = [Self::Add, Self::Subtract, Self::Multiply, Self::Negate];

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

    /// The operation of such operands, which are of one type.
    fn call(self, args: Vec<Expr>) -> Expr {
        let function = Arc::clone(&FUNCTIONS[self as usize]);
        Expr::ScalarFunction(ScalarFunction::new_udf(function, args))
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
        plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let expr = expr.transform_up(|expr| Ok(checked(expr, &schema)))?;
                Ok(expr.update_data(|expr| name.restore(expr)))
            })
        })
        .map(|transformed| transformed.data)
    }
}

fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Operation::of(op) {
            // Beside an integer can be what is none, such as a date.
            Some(operation) if is_integer(&right, schema) && is_integer(&left, schema) => {
                Transformed::yes(operation.call(vec![*left, *right]))
            }
            _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        Expr::Negative(of) if is_integer(&of, schema) => {
            Transformed::yes(Operation::Negate.call(vec![*of]))
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

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &'static str {
        match self.operation {
            Operation::Add => "add",
            Operation::Subtract => "subtract",
            Operation::Multiply => "multiply",
            Operation::Negate => "negate",
        }
    }

    /// The name of a column is that of the operator.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let (mut args, mut symbol) = (args, self.operation.symbol());
        // Of a long chain each name is written once.
        let mut ends = Vec::new();
        while let [left, right] = args {
            ends.push(format!(" {symbol} {}", right.schema_name()));
            match left {
                Expr::ScalarFunction(function)
                    if let Some(inner) = function.func.inner().downcast_ref::<Self>() =>
                {
                    (args, symbol) = (&function.args, inner.operation.symbol());
                }
                first => {
                    ends.push(first.schema_name().to_string());
                    args = &[];
                }
            }
        }
        if let [of] = args {
            ends.push(format!("({symbol} {})", of.schema_name()));
        }
        Ok(ends.into_iter().rev().collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [kind, ..] => Ok(kind.clone()),
            [] => internal_err!("arithmetic has one operand or two"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let name = |(field, value): (&FieldRef, &Option<&ScalarValue>)| match value {
            Some(value) => value.to_string(),
            None if field.name().contains(' ') => format!("({})", field.name()),
            None => field.name().clone(),
        };
        let names: Vec<_> = args.arg_fields.iter().zip(args.scalar_arguments).map(name).collect();
        let symbol = self.operation.symbol();
        let mut name = match names.as_slice() {
            [of] => format!("{symbol} {of}"),
            names => names.join(&format!(" {symbol} ")),
        };
        // What is computed last stands at the end.
        if let Some(more) = name.len().checked_sub(NAME_BYTES_MAX).filter(|more| *more > 0) {
            let end = (more..name.len()).find(|at| name.is_char_boundary(*at));
            name = format!("...{}", &name[end.unwrap_or_default()..]);
        }
        let kinds: Vec<_> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(name, self.return_type(&kinds)?, is_nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let computed = match (self.operation, args.args.as_slice()) {
            (Operation::Add, [left, right]) => apply(left, right, numeric::add),
            (Operation::Subtract, [left, right]) => apply(left, right, numeric::sub),
            (Operation::Multiply, [left, right]) => apply(left, right, numeric::mul),
            (Operation::Negate, [of]) => apply(of, of, |of, _| numeric::neg(of.get().0)),
            _ => internal_err!("arithmetic has one operand or two"),
        };
        computed.map_err(|error| match error {
            DataFusionError::ArrowError(inner, _)
                if matches!(*inner, ArrowError::ArithmeticOverflow(_)) =>
            {
                let ArrowError::ArithmeticOverflow(why) = *inner else { unreachable!() };
                let why = why.trim_start_matches("Overflow happened on: ");
                beyond(args.return_field.name(), why, args.return_type())
            }
            error => error,
        })
    }
}

/// The error of a result that its type has no room for.
fn beyond(what: &str, why: &str, kind: &DataType) -> DataFusionError {
    let kind = match kind {
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        kind => kind.to_string().to_uppercase(),
    };
    let message = format!(
        "the query cannot be answered: {what} is beyond {kind} ({why}): cast what it is made of to \
         a type that is wider, DOUBLE or DECIMAL(38, 0)"
    );
    external(Error::new(ErrorKind::Invalid, message))
}
