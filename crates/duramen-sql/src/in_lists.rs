//! Lists of `IN` that the optimizer would put together as if nothing were NULL.
//!
//! It takes lists that one value is looked for in for sets (`DataFusion` 55): of `x IN (1, 2) AND
//! x IN (3)` it makes false, which is unknown where `x` is NULL, and NULL in a list is an element
//! like others to it, as is an expression. So lists are of constants here, none of them NULL, and
//! those of one value are put together before it does that.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::utils::split_binary_owned;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::prelude::SessionContext;

use crate::rewriting::each_expression;

pub(crate) fn register(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(Rule));
}

#[derive(Debug)]
struct Rule;

impl AnalyzerRule for Rule {
    fn name(&self) -> &'static str {
        "lists_of_constants"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        each_expression(plan, |expr, _| settled(expr))
    }
}

/// An expression in which lists mean what they do also where they are put together.
fn settled(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. })
            if has_lists_of_one(&expr, op) =>
        {
            let parts = split_binary_owned(expr, op).into_iter();
            let parts = parts.map(|part| Ok(settled(part)?.data)).collect::<Result<Vec<_>>>()?;
            Ok(Transformed::new(joined(parts, op), true, TreeNodeRecursion::Jump))
        }
        Expr::InList(list) => Ok(of_constants(list)),
        Expr::Not(inner) => Ok(match *inner {
            Expr::InList(list) => {
                Transformed::yes(of_constants(InList { negated: !list.negated, ..list }).data)
            }
            inner => Transformed::no(Expr::Not(Box::new(inner))),
        }),
        expr => Ok(Transformed::no(expr)),
    })
}

/// A list of constants, and beside it what else is compared: `x IN (1, y, NULL)` is `x IN (1) OR
/// x = y OR NULL`.
fn of_constants(list: InList) -> Transformed<Expr> {
    let InList { expr, list, negated } = list;
    let (constants, others): (Vec<_>, Vec<_>) = list.into_iter().map(constant).partition(is_known);
    if others.is_empty() {
        return Transformed::no(Expr::InList(InList { expr, list: constants, negated }));
    }
    let others = others.into_iter().map(|other| match other {
        Expr::Literal(..) => unknown(),
        other if negated => expr.as_ref().clone().not_eq(other),
        other => expr.as_ref().clone().eq(other),
    });
    let others: Vec<Expr> = others.collect();
    let of_constants = Expr::InList(InList { expr, list: constants, negated });
    let is_empty = matches!(&of_constants, Expr::InList(list) if list.list.is_empty());
    let parts = (!is_empty).then_some(of_constants).into_iter().chain(others).collect();
    Transformed::yes(balanced(parts, if negated { Operator::And } else { Operator::Or }))
}

/// A constant that is cast, as the constant that it comes to.
fn constant(element: Expr) -> Expr {
    let Expr::Cast(Cast { expr, field }) = &element else { return element };
    match &**expr {
        Expr::Literal(value, _) => value.cast_to(field.data_type()).map_or(element, lit),
        _ => element,
    }
}

fn is_known(element: &Expr) -> bool {
    matches!(element, Expr::Literal(value, _) if !value.is_null())
}

fn unknown() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// The lists of one value among the parts of a condition: what it may be, and may not.
struct Lists {
    expr: Box<Expr>,
    within: Option<Vec<Expr>>,
    without: Option<Vec<Expr>>,
}

/// The parts of a condition with one list for each value.
fn joined(parts: Vec<Expr>, op: Operator) -> Expr {
    let mut all: Vec<Lists> = Vec::new();
    let mut others = Vec::with_capacity(parts.len());
    for part in parts {
        let InList { expr, list, negated } = match part {
            Expr::InList(list) if list.list.iter().all(is_known) => list,
            other => {
                others.push(other);
                continue;
            }
        };
        let found = all.iter().position(|lists| lists.expr == expr);
        let at = found.unwrap_or_else(|| {
            all.push(Lists { expr, within: None, without: None });
            all.len() - 1
        });
        let lists = &mut all[at];
        let (side, is_sum) = if negated {
            (&mut lists.without, op == Operator::And)
        } else {
            (&mut lists.within, op == Operator::Or)
        };
        *side = Some(match side.take() {
            None => list,
            Some(before) if is_sum => sum(before, list),
            Some(before) => common(before, &list, true),
        });
    }
    balanced(all.into_iter().map(|lists| lists.joined(op)).chain(others).collect(), op)
}

/// The parts of a condition, of which there may be more than operators may be below each other.
pub(crate) fn balanced(mut parts: Vec<Expr>, op: Operator) -> Expr {
    while parts.len() > 1 {
        let mut pairs = Vec::with_capacity(parts.len().div_ceil(2));
        let mut left = parts.into_iter();
        while let Some(one) = left.next() {
            pairs.push(match left.next() {
                Some(other) => binary_expr(one, op, other),
                None => one,
            });
        }
        parts = pairs;
    }
    parts.pop().unwrap_or_else(|| lit(op == Operator::And))
}

/// Whether one value is looked for in several lists by the parts of a condition.
fn has_lists_of_one(condition: &Expr, op: Operator) -> bool {
    let (mut left, mut known) = (vec![condition], HashSet::new());
    while let Some(part) = left.pop() {
        let list = match part {
            Expr::BinaryExpr(part) if part.op == op => {
                left.extend([&*part.left, &*part.right]);
                continue;
            }
            Expr::InList(list) => list,
            Expr::Not(inner) => match &**inner {
                Expr::InList(list) => list,
                _ => continue,
            },
            _ => continue,
        };
        if !known.insert(&list.expr) {
            return true;
        }
    }
    false
}

impl Lists {
    fn joined(self, op: Operator) -> Expr {
        let Self { expr, within, without } = self;
        let (list, negated) = match (within, without) {
            (Some(within), Some(without)) if op == Operator::And => {
                (common(within, &without, false), false)
            }
            (Some(within), Some(without)) => (common(without, &within, false), true),
            (Some(within), None) => (within, false),
            (None, without) => (without.unwrap_or_default(), true),
        };
        if list.is_empty() {
            // In no list, unless nobody knows.
            return if negated {
                expr.is_not_null().or(unknown())
            } else {
                expr.is_null().and(unknown())
            };
        }
        Expr::InList(InList { expr, list, negated })
    }
}

fn sum(mut one: Vec<Expr>, other: Vec<Expr>) -> Vec<Expr> {
    let known: HashSet<Expr> = one.iter().cloned().collect();
    one.extend(other.into_iter().filter(|element| !known.contains(element)));
    one
}

/// The elements of a list that are in another one, or are not.
fn common(mut one: Vec<Expr>, other: &[Expr], are_in: bool) -> Vec<Expr> {
    let other: HashSet<&Expr> = other.iter().collect();
    one.retain(|element| other.contains(element) == are_in);
    one
}
