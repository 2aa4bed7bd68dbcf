//! Filters of SQL as tests of columns.
//!
//! A row is taken where a filter is true, neither false nor unknown. What is opposite is pushed
//! down to comparisons, which have opposites that are unknown where they are, so that only true
//! has to be told from the rest.

use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use duramen::{Comparison, RangeOfInt, RowFilter, ValueKind, ValueTest};

use super::lowering::{Lowering, Sign, text};

/// The columns that there are, and which of the table they are.
type Place<'p> = (&'p DFSchema, &'p [Option<usize>]);

impl Lowering {
    /// None for what the engine does not know.
    pub(super) fn filter(
        &mut self,
        expr: &Expr,
        sign: Sign,
        place: Place<'_>,
    ) -> Option<RowFilter> {
        match expr {
            Expr::Not(inner) => self.filter(inner, sign.other(), place),
            Expr::Alias(alias) => self.filter(&alias.expr, sign, place),
            Expr::BinaryExpr(binary) => self.binary(binary, sign, place),
            Expr::IsNull(of) => self.presence(of, sign, place),
            Expr::IsNotNull(of) => self.presence(of, sign.other(), place),
            Expr::Between(between) => self.between(between, sign, place),
            Expr::InList(list) => self.among(list, sign, place),
            Expr::Literal(ScalarValue::Boolean(value), _) => {
                Some(match value.map(|value| value == (sign == Sign::Plain)) {
                    Some(true) => RowFilter::All(Vec::new()),
                    // What is unknown is not true.
                    Some(false) | None => never(),
                })
            }
            expr => {
                let (column, kind) = self.column(expr, place)?;
                let test = ValueTest::Bool(sign == Sign::Plain);
                (kind == ValueKind::Bool).then_some(RowFilter::Column(column, test))
            }
        }
    }

    fn presence(&mut self, of: &Expr, sign: Sign, place: Place<'_>) -> Option<RowFilter> {
        let (column, _) = self.column(of, place)?;
        let test = match sign {
            Sign::Plain => ValueTest::IsMissing,
            Sign::Opposite => ValueTest::IsThere,
        };
        Some(RowFilter::Column(column, test))
    }

    fn binary(&mut self, binary: &BinaryExpr, sign: Sign, place: Place<'_>) -> Option<RowFilter> {
        let BinaryExpr { left, op, right } = binary;
        if let Operator::And | Operator::Or = op {
            let parts = vec![self.filter(left, sign, place)?, self.filter(right, sign, place)?];
            let is_all = (*op == Operator::And) == (sign == Sign::Plain);
            return Some(if is_all { RowFilter::All(parts) } else { RowFilter::Any(parts) });
        }
        let (of, op, literal) = match (left.as_ref(), right.as_ref()) {
            (of, Expr::Literal(literal, _)) => (of, *op, literal),
            (Expr::Literal(literal, _), of) => (of, op.swap()?, literal),
            _ => return None,
        };
        let (column, kind) = self.column(of, place)?;
        let op = if sign == Sign::Plain { op } else { op.negate()? };
        compare((column, kind), comparison(op)?, literal)
    }

    fn between(&mut self, between: &Between, sign: Sign, place: Place<'_>) -> Option<RowFilter> {
        let (Expr::Literal(low, _), Expr::Literal(high, _)) =
            (between.low.as_ref(), between.high.as_ref())
        else {
            return None;
        };
        let column = self.column(&between.expr, place)?;
        let is_inside = between.negated != (sign == Sign::Plain);
        if is_inside {
            let low = compare(column, Comparison::GreaterOrEqual, low)?;
            return Some(RowFilter::All(vec![
                low,
                compare(column, Comparison::LessOrEqual, high)?,
            ]));
        }
        let low = compare(column, Comparison::Less, low)?;
        Some(RowFilter::Any(vec![low, compare(column, Comparison::Greater, high)?]))
    }

    fn among(&mut self, list: &InList, sign: Sign, place: Place<'_>) -> Option<RowFilter> {
        let (column, kind) = self.column(&list.expr, place)?;
        let is_inside = list.negated != (sign == Sign::Plain);
        let test = match kind {
            ValueKind::Int => {
                let range = |expr: &Expr| {
                    let Expr::Literal(ScalarValue::Int64(value), _) = expr else { return None };
                    value.map(|value| RangeOfInt { low: value, high: value })
                };
                ValueTest::Int {
                    ranges: list.list.iter().map(range).collect::<Option<_>>()?,
                    is_inside,
                }
            }
            ValueKind::Text => {
                let texts = list.list.iter().map(|expr| text(expr).map(Into::into));
                ValueTest::TextIn { texts: texts.collect::<Option<_>>()?, is_inside }
            }
            ValueKind::Bool | ValueKind::Float => return None,
        };
        Some(RowFilter::Column(column, test))
    }
}

impl Sign {
    fn other(self) -> Self {
        match self {
            Self::Plain => Self::Opposite,
            Self::Opposite => Self::Plain,
        }
    }
}

/// Holds for no row.
fn never() -> RowFilter {
    RowFilter::Any(Vec::new())
}

fn compare(
    (column, kind): (usize, ValueKind),
    comparison: Comparison,
    literal: &ScalarValue,
) -> Option<RowFilter> {
    let test = match (kind, literal) {
        (_, literal) if literal.is_null() => return Some(never()),
        (ValueKind::Int, ScalarValue::Int64(Some(value))) => integers(comparison, *value),
        (ValueKind::Float, ScalarValue::Float64(Some(value))) => {
            ValueTest::Float(comparison, value.to_bits())
        }
        (
            ValueKind::Text,
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
        ) => ValueTest::Text(comparison, text.as_str().into()),
        (ValueKind::Bool, ScalarValue::Boolean(Some(value))) => match comparison {
            Comparison::Equal => ValueTest::Bool(*value),
            Comparison::NotEqual => ValueTest::Bool(!*value),
            _ => return None,
        },
        _ => return None,
    };
    Some(RowFilter::Column(column, test))
}

/// The integers that compare so to one.
pub(super) fn integers(comparison: Comparison, value: i64) -> ValueTest {
    let range = |low: i64, high: i64| vec![RangeOfInt { low, high }];
    let ranges = match comparison {
        Comparison::Equal | Comparison::NotEqual => range(value, value),
        Comparison::Less => value.checked_sub(1).map_or(Vec::new(), |high| range(i64::MIN, high)),
        Comparison::LessOrEqual => range(i64::MIN, value),
        Comparison::Greater => value.checked_add(1).map_or(Vec::new(), |low| range(low, i64::MAX)),
        Comparison::GreaterOrEqual => range(value, i64::MAX),
    };
    ValueTest::Int { ranges, is_inside: comparison != Comparison::NotEqual }
}

fn comparison(op: Operator) -> Option<Comparison> {
    Some(match op {
        Operator::Eq => Comparison::Equal,
        Operator::NotEq => Comparison::NotEqual,
        Operator::Lt => Comparison::Less,
        Operator::LtEq => Comparison::LessOrEqual,
        Operator::Gt => Comparison::Greater,
        Operator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
