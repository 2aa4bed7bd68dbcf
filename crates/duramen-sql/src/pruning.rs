//! Which parts of a table a filter surely finds nothing in, by least and greatest integers.

use std::ops::RangeInclusive;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use duramen::{Columns, PathId, Result};

use crate::column_type::{ColumnType, TableColumn, TableColumns};

/// What holds of a column where a filter holds: its value is in one of these ranges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bounds {
    pub(crate) path: PathId,
    ranges: Vec<RangeInclusive<i64>>,
}

impl Bounds {
    /// What a filter says of one column; none if it is not that simple.
    pub(crate) fn of(filter: &Expr, table: &TableColumns) -> Option<Self> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (column, op, number) = match (integer(left), integer(right)) {
                    (None, Some(number)) => (left, *op, number),
                    (Some(number), None) => (right, op.swap()?, number),
                    _ => return None,
                };
                Some(Self { path: path(column, table)?, ranges: vec![range(op, number)?] })
            }
            Expr::Between(between) if !between.negated => {
                let range = integer(&between.low)?..=integer(&between.high)?;
                Some(Self { path: path(&between.expr, table)?, ranges: vec![range] })
            }
            Expr::InList(list) if !list.negated => {
                let numbers = list.list.iter().map(integer).collect::<Option<Vec<_>>>()?;
                let ranges = numbers.into_iter().map(|number| number..=number).collect();
                Some(Self { path: path(&list.expr, table)?, ranges })
            }
            _ => None,
        }
    }

    /// Whether nothing in a part is within.
    pub(crate) fn rule_out(&self, columns: &Columns, part: usize) -> Result<bool> {
        for range in &self.ranges {
            if !columns.is_ruled_out(part, self.path, range)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The path of a column of integers.
fn path(column: &Expr, table: &TableColumns) -> Option<PathId> {
    let Expr::Column(column) = column else { return None };
    let index = table.schema.index_of(column.name()).ok()?;
    match table.columns.get(index)? {
        TableColumn::Value(column) if matches!(column.kind, ColumnType::Int) => Some(column.path),
        _ => None,
    }
}

fn integer(literal: &Expr) -> Option<i64> {
    match literal {
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        _ => None,
    }
}

fn range(op: Operator, number: i64) -> Option<RangeInclusive<i64>> {
    match op {
        Operator::Eq => Some(number..=number),
        Operator::Lt => Some(i64::MIN..=number.checked_sub(1)?),
        Operator::LtEq => Some(i64::MIN..=number),
        Operator::Gt => Some(number.checked_add(1)?..=i64::MAX),
        Operator::GtEq => Some(number..=i64::MAX),
        _ => None,
    }
}
