//! Numbers with a point beside decimals, which are exact as SQL has them.
//!
//! The planner takes a number with a point for a float, and all that a decimal is computed of with
//! a float is one: digits are lost. So before types are looked at, what is constant beside a
//! decimal becomes a decimal. Beside floats it stays a float. The rule sees the shortest text that
//! a float has, which is what was written; a number with more digits is a text (`digits.rs`).

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, i256,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::rewriting::is_comparison;

/// The function that makes a float of a number with more digits, whose text it has.
pub(crate) const FLOAT_OF: &str = "arrow_cast";

/// The type that it is told.
pub(crate) const FLOAT: &str = "Float64";

/// Functions whose arguments become of one type, which is that of the result.
const OF_ONE_TYPE: [&str; 6] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

/// Makes what is constant beside decimals exact.
#[derive(Debug)]
struct Rule;

/// The rule.
pub(crate) fn rule() -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Rule)
}

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "exact_numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let is_changed = Cell::new(false);
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = merge_schema(&plan.inputs());
            let names = NamePreserver::new(&plan);
            let plan = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let made = expr.transform_up(|expr| Ok(of(expr, &schema)))?;
                Ok(made.update_data(|expr| name.restore(expr)))
            })?;
            is_changed.set(is_changed.get() || plan.transformed);
            // What reads this one has to know of its types, to find other decimals.
            if is_changed.get() { plan.map_data(LogicalPlan::recompute_schema) } else { Ok(plan) }
        });
        Ok(rewritten?.data)
    }
}

/// A number that a constant expression comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Exact {
    mantissa: i128,
    scale: u8,
    /// Whether it would be a float.
    has_point: bool,
}

/// How many digits decimals have before and behind the point.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Digits {
    before: u8,
    behind: u8,
}

fn of(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Modulo => {
                compute(*op, [left, right], schema)
            }
            op if is_comparison(*op) => {
                align(vec![&mut **left, right], schema) || as_floats([left, right], schema)
            }
            _ => false,
        },
        Expr::Between(between) => {
            align(vec![&mut *between.expr, &mut between.low, &mut between.high], schema)
        }
        Expr::InList(list) => {
            align(std::iter::once(&mut *list.expr).chain(&mut list.list).collect(), schema)
        }
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| &mut **then);
            align(results.chain(case.else_expr.as_deref_mut()).collect(), schema)
        }
        Expr::ScalarFunction(function) if OF_ONE_TYPE.contains(&function.func.name()) => {
            align(function.args.iter_mut().collect(), schema)
        }
        _ => false,
    };
    Transformed::new_transformed(expr, is_changed)
}

/// The type of an expression; that of NULL if it has none, of which others tell.
fn kind_of(expr: &Expr, schema: &DFSchema) -> DataType {
    expr.get_type(schema).unwrap_or(DataType::Null)
}

/// Makes a constant that a decimal is computed with one; the result has room for all digits.
fn compute(operator: Operator, sides: [&mut Box<Expr>; 2], schema: &DFSchema) -> bool {
    let [left, right] = sides;
    let (constant, number, other) = match (Exact::of(left), Exact::of(right)) {
        (Some(number), None) if number.has_point => (left, number, right),
        (None, Some(number)) if number.has_point => (right, number, left),
        _ => return false,
    };
    let Some((digits, is_wide)) = decimal(&kind_of(other, schema)) else { return false };
    let with = number.digits();
    let all = match operator {
        Operator::Multiply => digits.all() + with.all() + 1,
        _ => digits.wider(with).all() + 1,
    };
    if all > u16::from(DECIMAL256_MAX_PRECISION) {
        return false;
    }
    let is_wide = is_wide || all > u16::from(DECIMAL128_MAX_PRECISION);
    let Some(literal) = number.literal(with, is_wide) else { return false };
    **constant = literal;
    cast(other, &digits.kind(is_wide), schema);
    true
}

/// Makes constants beside decimals of a type that all of them have, whether there are any.
fn align(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let numbers: Vec<Option<Exact>> = exprs.iter().map(|expr| Exact::of(expr)).collect();
    if !numbers.iter().flatten().any(|number| number.has_point) {
        return false;
    }
    let (mut common, mut is_wide) = (None::<Digits>, false);
    let mut add = |digits: Digits| {
        common = Some(common.map_or(digits, |common| common.wider(digits)));
    };
    let mut is_decimal = vec![false; exprs.len()];
    for ((expr, number), is_decimal) in exprs.iter().zip(&numbers).zip(&mut is_decimal) {
        if number.is_some() {
            continue;
        }
        match kind_of(expr, schema) {
            kind if kind.is_floating() => return false,
            kind => {
                let Some((digits, wide)) = decimal(&kind) else { continue };
                add(digits);
                (*is_decimal, is_wide) = (true, is_wide || wide);
            }
        }
    }
    if !is_decimal.contains(&true) {
        return false;
    }
    numbers.iter().flatten().for_each(|number| add(number.digits()));
    let Some(common) = common.filter(|all| all.all() <= u16::from(DECIMAL256_MAX_PRECISION)) else {
        return false;
    };
    let is_wide = is_wide || common.all() > u16::from(DECIMAL128_MAX_PRECISION);
    let literals = numbers.iter().map(|number| number.and_then(|of| of.literal(common, is_wide)));
    let literals: Vec<Option<Expr>> = literals.collect();
    if literals.iter().zip(&numbers).any(|(literal, number)| literal.is_none() && number.is_some())
    {
        return false;
    }
    for ((expr, literal), is_decimal) in exprs.into_iter().zip(literals).zip(is_decimal) {
        match literal {
            Some(literal) => *expr = literal,
            None if is_decimal => cast(expr, &common.kind(is_wide), schema),
            None => {}
        }
    }
    true
}

/// A decimal is compared with a float as one: as decimals both would have 15 places.
fn as_floats(sides: [&mut Box<Expr>; 2], schema: &DFSchema) -> bool {
    let kinds = [kind_of(sides[0], schema), kind_of(sides[1], schema)];
    let has_both = kinds.iter().any(DataType::is_floating) && kinds.iter().any(is_decimal);
    if has_both {
        for side in sides {
            cast(side, &DataType::Float64, schema);
        }
    }
    has_both
}

fn is_decimal(kind: &DataType) -> bool {
    decimal(kind).is_some()
}

/// How many digits a decimal has, and whether it is one of 256 bits.
fn decimal(kind: &DataType) -> Option<(Digits, bool)> {
    let (precision, scale, is_wide) = match *kind {
        DataType::Decimal128(precision, scale) => (precision, scale, false),
        DataType::Decimal256(precision, scale) => (precision, scale, true),
        _ => return None,
    };
    let behind = u8::try_from(scale).ok()?;
    Some((Digits { before: precision.checked_sub(behind)?, behind }, is_wide))
}

fn cast(expr: &mut Expr, kind: &DataType, schema: &DFSchema) {
    if kind_of(expr, schema) != *kind {
        let inner = std::mem::take(expr);
        *expr = Expr::Cast(Cast::new(Box::new(inner), kind.clone()));
    }
}

impl Digits {
    fn all(self) -> u16 {
        u16::from(self.before) + u16::from(self.behind)
    }

    fn wider(self, other: Self) -> Self {
        Self { before: self.before.max(other.before), behind: self.behind.max(other.behind) }
    }

    /// The type of decimals that have so many; no more than there can be.
    fn kind(self, is_wide: bool) -> DataType {
        let precision = u8::try_from(self.all()).unwrap_or(DECIMAL256_MAX_PRECISION).max(1);
        let scale = self.behind.cast_signed();
        if is_wide {
            DataType::Decimal256(precision, scale)
        } else {
            DataType::Decimal128(precision, scale)
        }
    }
}

impl Exact {
    /// What an expression comes to, if it is constant and has no digit too many.
    fn of(expr: &Expr) -> Option<Self> {
        let whole = |mantissa: i128| Some(Self { mantissa, scale: 0, has_point: false });
        match expr {
            Expr::Literal(ScalarValue::Int64(Some(value)), _) => whole((*value).into()),
            Expr::Literal(ScalarValue::UInt64(Some(value)), _) => whole((*value).into()),
            Expr::Literal(ScalarValue::Float64(Some(value)), _) => Self::parse(&value.to_string()),
            Expr::Negative(of) => {
                let of = Self::of(of)?;
                Some(Self { mantissa: of.mantissa.checked_neg()?, ..of })
            }
            Expr::ScalarFunction(function) if function.func.name() == FLOAT_OF => {
                let text = |arg: &Expr| match arg {
                    Expr::Literal(value, _) => value.try_as_str().flatten().map(str::to_owned),
                    _ => None,
                };
                let [number, kind] = function.args.as_slice() else { return None };
                (text(kind)? == FLOAT).then(|| Self::parse(&text(number)?))?
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
                Operator::Plus | Operator::Minus | Operator::Multiply => {
                    Self::of(left)?.with(*op, Self::of(right)?)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The number that a text without an exponent is.
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let mantissa = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { mantissa, scale: fraction.len().try_into().ok()?, has_point: true })
    }

    fn with(self, operator: Operator, other: Self) -> Option<Self> {
        let has_point = self.has_point || other.has_point;
        if operator == Operator::Multiply {
            let mantissa = self.mantissa.checked_mul(other.mantissa)?;
            let scale = self.scale.checked_add(other.scale)?;
            return Some(Self { mantissa, scale, has_point });
        }
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.at(scale)?, other.at(scale)?);
        let mantissa = match operator {
            Operator::Plus => left.checked_add(right)?,
            _ => left.checked_sub(right)?,
        };
        Some(Self { mantissa, scale, has_point })
    }

    /// The mantissa at a scale that is no less.
    fn at(self, scale: u8) -> Option<i128> {
        let factor = 10_i128.checked_pow(scale.checked_sub(self.scale)?.into())?;
        self.mantissa.checked_mul(factor)
    }

    fn digits(self) -> Digits {
        let all = self.mantissa.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
        let all = u8::try_from(all).unwrap_or(u8::MAX);
        Digits { before: all.saturating_sub(self.scale), behind: self.scale }
    }

    /// The decimal of so many digits that it is.
    fn literal(self, digits: Digits, is_wide: bool) -> Option<Expr> {
        let factor = i256::from(10).checked_pow(digits.behind.checked_sub(self.scale)?.into())?;
        let mantissa = i256::from_i128(self.mantissa).checked_mul(factor)?;
        let value = match digits.kind(is_wide) {
            DataType::Decimal128(precision, scale) => {
                ScalarValue::Decimal128(Some(mantissa.to_i128()?), precision, scale)
            }
            DataType::Decimal256(precision, scale) => {
                ScalarValue::Decimal256(Some(mantissa), precision, scale)
            }
            _ => return None,
        };
        Some(Expr::Literal(value, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(mantissa: i128, scale: u8) -> Exact {
        Exact { mantissa, scale, has_point: true }
    }

    #[test]
    fn numbers_are_what_is_written() {
        assert_eq!(Exact::parse("-0.010"), Some(exact(-10, 3)));
        assert_eq!(Exact::parse(&1e30.to_string()), Some(exact(10_i128.pow(30), 0)));
        assert_eq!(Exact::parse(&1e300.to_string()), None);
        assert_eq!(Exact::parse(&f64::NAN.to_string()), None);
        assert_eq!(exact(19, 2).with(Operator::Plus, exact(1, 0)), Some(exact(119, 2)));
        assert_eq!(exact(i128::MAX, 2).with(Operator::Plus, exact(1, 0)), None);
        assert_eq!(exact(1, 3).digits(), Digits { before: 0, behind: 3 });
    }
}
