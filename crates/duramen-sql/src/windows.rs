//! Aggregates over windows that leave rows behind.
//!
//! `DataFusion` subtracts what leaves a window from what it has (55): of floats digits are lost so,
//! as 1e17 + 3 - 1e17 is no 3, and an infinity never leaves; and where a function cannot subtract
//! there is no answer. These are computed anew of the rows of each window, as `PostgreSQL` does.
//!
//! `lag` and `lead` by NULL rows are NULL, which it takes for one row. Those that ignore NULLs see
//! all rows of a partition at once: row by row, those that are NULL further on are not counted.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err, not_impl_err};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::function::{
    AccumulatorArgs, ExpressionArgs, PartitionEvaluatorArgs, StateFieldsArgs, WindowUDFFieldArgs,
};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Cast, Expr, ExprSchemable, LogicalPlan,
    PartitionEvaluator, ReversedUDAF, ReversedUDWF, Signature, WindowFunctionDefinition, WindowUDF,
    WindowUDFImpl, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::prelude::SessionContext;

use crate::portion::compact;
use crate::rewriting::each_expression;

pub(crate) mod peers;
mod tally;

use tally::Bound;

/// Functions that lose no digits of floats.
const EXACT: [&str; 8] =
    ["array_agg", "count", "first_value", "last_value", "max", "median", "min", "nth_value"];

/// Functions that give a value of another row.
const SHIFTS: [&str; 2] = ["lag", "lead"];

/// Rows of which the state is kept, so that of long windows not each row is looked at again.
const BLOCK_ROWS: usize = 256;

/// The share of the memory of a query that lists of windows may take in each partition.
const SHARE: usize = 4;

/// What they may take however little memory there is.
const BYTES_MAX_LEAST: usize = 64 << 10;

/// Makes it known to a query that may hold so much memory.
pub(crate) fn register(context: &SessionContext, memory_bytes: usize) {
    let config = context.copied_config();
    let partitions = config.target_partitions().max(1);
    let bytes = (memory_bytes / SHARE / partitions).max(BYTES_MAX_LEAST);
    context.add_analyzer_rule(Arc::new(Rule { most: Bound::new(bytes, config.batch_size()) }));
}

#[derive(Debug)]
struct Rule {
    most: Bound,
}

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "windows_that_leave_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, schema| {
            expr.transform_up(|expr| match expr {
                Expr::WindowFunction(mut window) => {
                    let is_changed = set_right(&mut window, schema, self.most)?;
                    let window = Expr::WindowFunction(window);
                    Ok(Transformed::new_transformed(window, is_changed))
                }
                expr => Ok(Transformed::no(expr)),
            })
        })
    }
}

/// Sets a function right; whether it has to be.
fn set_right(window: &mut WindowFunction, schema: &DFSchema, most: Bound) -> Result<bool> {
    match &window.fun {
        WindowFunctionDefinition::AggregateUDF(of) => {
            let frame = &window.params.window_frame;
            let bound = Bound::of(of.name(), frame, most);
            if frame.is_ever_expanding() && bound.is_none() {
                return Ok(false);
            }
            let anew = AggregateUDF::new_from_impl(Anew { of: of.as_ref().clone(), bound });
            window.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(anew));
            Ok(true)
        }
        WindowFunctionDefinition::WindowUDF(of) if SHIFTS.contains(&of.name()) => {
            let name = of.name().to_owned();
            let is_whole = window.params.null_treatment == Some(NullTreatment::IgnoreNulls);
            if is_whole {
                let whole = WindowUDF::new_from_impl(Whole(of.as_ref().clone()));
                window.fun = WindowFunctionDefinition::WindowUDF(Arc::new(whole));
            }
            Ok(shifted(&name, &mut window.params.args, schema)? || is_whole)
        }
        WindowFunctionDefinition::WindowUDF(_) => Ok(false),
    }
}

/// What is shifted by no number of rows is NULL, of the type that it has.
fn shifted(name: &str, args: &mut Vec<Expr>, schema: &DFSchema) -> Result<bool> {
    let [value, rows, ..] = args.as_slice() else { return Ok(false) };
    if rows.any_column_refs() {
        return not_impl_err!("{name} by as many rows as a column has: give it a number");
    }
    let mut rows = rows;
    while let Expr::Cast(Cast { expr, .. }) = rows {
        rows = expr;
    }
    if !matches!(rows, Expr::Literal(rows, _) if rows.is_null()) {
        return Ok(false);
    }
    let kind = value.get_type(schema)?;
    *args = vec![Expr::Literal(ScalarValue::try_from(&kind)?, None), lit(1_i64)];
    Ok(true)
}

/// The same function of windows, which sees all rows of a partition at once.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Whole(WindowUDF);

impl WindowUDFImpl for Whole {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn expressions(&self, args: ExpressionArgs<'_>) -> Vec<Arc<dyn PhysicalExpr>> {
        self.0.expressions(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs<'_>,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(WholePartition(self.0.partition_evaluator_factory(args)?)))
    }

    fn field(&self, args: WindowUDFFieldArgs<'_>) -> Result<FieldRef> {
        self.0.field(args)
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(kinds)
    }

    fn reverse_expr(&self) -> ReversedUDWF {
        match self.0.reverse_expr() {
            ReversedUDWF::Reversed(of) => {
                let whole = WindowUDF::new_from_impl(Self(of.as_ref().clone()));
                ReversedUDWF::Reversed(Arc::new(whole))
            }
            other => other,
        }
    }
}

#[derive(Debug)]
struct WholePartition(Box<dyn PartitionEvaluator>);

impl PartitionEvaluator for WholePartition {
    fn evaluate_all(&mut self, values: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.0.evaluate_all(values, rows)
    }

    fn supports_bounded_execution(&self) -> bool {
        false
    }
}

/// The same function, which is computed anew for a window unless it can leave rows behind.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Anew {
    of: AggregateUDF,
    bound: Option<Bound>,
}

impl AggregateUDFImpl for Anew {
    fn name(&self) -> &str {
        self.of.name()
    }

    fn signature(&self) -> &Signature {
        self.of.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.of.return_type(kinds)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.of.return_field(fields)
    }

    fn is_nullable(&self) -> bool {
        self.of.is_nullable()
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        self.of.coerce_types(kinds)
    }

    fn default_value(&self, kind: &DataType) -> Result<ScalarValue> {
        self.of.default_value(kind)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.of.state_fields(args)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.of.supports_null_handling_clause()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.of.reverse_udf() {
            ReversedUDAF::Reversed(of) => {
                let anew = AggregateUDF::new_from_impl(Self {
                    of: of.as_ref().clone(),
                    bound: self.bound,
                });
                ReversedUDAF::Reversed(Arc::new(anew))
            }
            other => other,
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(self.tallied(self.of.accumulator(args)?))
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let made = Made::of(self.of.clone(), &args);
        let is_float = |field: &FieldRef| field.data_type().is_floating();
        if EXACT.contains(&self.name()) || !args.expr_fields.iter().any(is_float) {
            let sliding = self.of.create_sliding_accumulator(args)?;
            if sliding.supports_retract_batch() {
                return Ok(self.tallied(sliding));
            }
        }
        Ok(self.tallied(Box::new(Window { made, blocks: VecDeque::new() })))
    }
}

impl Anew {
    fn tallied(&self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        match self.bound {
            Some(bound) => bound.tally(inner),
            None => inner,
        }
    }
}

/// What makes accumulators.
#[derive(Debug)]
struct Made {
    of: AggregateUDF,
    return_field: FieldRef,
    schema: Schema,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl Made {
    fn of(of: AggregateUDF, args: &AccumulatorArgs<'_>) -> Self {
        Self {
            of,
            return_field: Arc::clone(&args.return_field),
            schema: args.schema.clone(),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.of.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        })
    }
}

/// The rows of a window, in blocks.
#[derive(Debug)]
struct Window {
    made: Made,
    blocks: VecDeque<Block>,
}

#[derive(Debug)]
struct Block {
    /// The arguments of the function.
    columns: Vec<ArrayRef>,
    /// What it comes to, once that was asked for and while no row is added or lost.
    state: Option<Vec<ArrayRef>>,
}

impl Block {
    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.len())
    }

    fn add(&mut self, values: &[ArrayRef]) -> Result<()> {
        for (column, more) in self.columns.iter_mut().zip(values) {
            // Rows that are lost leave their texts behind, and each that comes brings its own.
            *column = compact(&concat(&[column.as_ref(), more.as_ref()])?)?;
        }
        self.state = None;
        Ok(())
    }

    fn lose(&mut self, rows: usize) {
        let left = self.rows() - rows;
        for column in &mut self.columns {
            *column = column.slice(rows, left);
        }
        self.state = None;
    }

    /// Puts its rows to those of an accumulator.
    fn give(&mut self, made: &Made, to: &mut dyn Accumulator) -> Result<()> {
        if self.rows() < BLOCK_ROWS || !made.order_bys.is_empty() {
            return to.update_batch(&self.columns);
        }
        if self.state.is_none() {
            let mut own = made.accumulator()?;
            own.update_batch(&self.columns)?;
            let state = own.state()?;
            self.state = Some(state.iter().map(ScalarValue::to_array).collect::<Result<_>>()?);
        }
        to.merge_batch(self.state.as_deref().unwrap_or_default())
    }
}

impl Accumulator for Window {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match self.blocks.back_mut() {
            Some(last) if last.rows() < BLOCK_ROWS => last.add(values),
            _ => {
                self.blocks.push_back(Block { columns: values.to_vec(), state: None });
                Ok(())
            }
        }
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut gone = values.first().map_or(0, |column| column.len());
        while let Some(first) = self.blocks.front_mut().filter(|_| gone > 0) {
            let rows = first.rows();
            if rows > gone {
                first.lose(gone);
                return Ok(());
            }
            gone -= rows;
            self.blocks.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut all = self.made.accumulator()?;
        for block in &mut self.blocks {
            block.give(&self.made, all.as_mut())?;
        }
        all.evaluate()
    }

    fn size(&self) -> usize {
        let columns = self.blocks.iter().flat_map(|block| &block.columns);
        columns.map(|column| column.get_array_memory_size()).sum()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("windows are computed in one part")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("windows are computed in one part")
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::StringViewArray;
    use datafusion::arrow::datatypes::Field;
    use datafusion::functions_aggregate::string_agg::string_agg_udaf;

    use super::*;

    /// The texts of all rows that were in a window once stayed, and were copied with each row.
    #[test]
    fn windows_keep_the_texts_of_their_rows_only() {
        let field = |name| Arc::new(Field::new(name, DataType::Utf8View, true));
        let made = Made {
            of: string_agg_udaf().as_ref().clone(),
            return_field: field("all"),
            schema: Schema::empty(),
            ignore_nulls: false,
            order_bys: Vec::new(),
            is_reversed: false,
            name: "all".into(),
            is_distinct: false,
            exprs: Vec::new(),
            expr_fields: vec![field("text"), field("between")],
        };
        let mut window = Window { made, blocks: VecDeque::new() };
        let row = |n: usize| -> Vec<ArrayRef> {
            vec![Arc::new(StringViewArray::from_iter_values([format!("{n:0200}")]))]
        };
        for n in 0..2_000 {
            window.update_batch(&row(n)).unwrap();
            if n >= 5 {
                window.retract_batch(&row(n - 5)).unwrap();
            }
        }
        assert_eq!(window.blocks.iter().map(Block::rows).sum::<usize>(), 5);
        assert!(window.size() < 100_000, "{} bytes", window.size());
    }
}
