//! What a plan gives for each of some values that it looks at outside of it.
//!
//! The values are a table, which goes down to what looks at them, and is a part of all that is
//! grouped, counted and joined from there on: T. Neumann and A. Kemper, Unnesting Arbitrary
//! Queries, BTW 2015.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality, Result, not_impl_err};
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, DistinctOn, Expr, ExprFunctionExt, ExprSchemable, FetchType,
    Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder, Operator, SkipType, Sort, SortExpr,
    Union, Window, lit, when,
};

/// What the names of these values begin with, and of the places of rows among those of a value.
const NAME: &str = "__outer_";
const PLACE: &str = "__place_";

/// A plan with the columns in it of the values that its rows are for.
pub(super) type Rows = (LogicalPlan, Vec<Column>);

/// The values that plans look at.
pub(super) struct Outer<'a> {
    /// What has them.
    table: &'a LogicalPlan,
    columns: &'a [Column],
    /// Numbers that no name has yet.
    numbers: &'a AtomicUsize,
}

/// The columns outside of a plan that it looks at.
pub(super) fn looked_at(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns = Vec::new();
    for expr in plan.all_out_ref_exprs() {
        if let Expr::OuterReferenceColumn(_, column) = expr
            && !columns.contains(&column)
        {
            columns.push(column);
        }
    }
    columns
}

pub(super) fn looks_outside(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

fn columns_of(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

fn all(columns: &[Column]) -> impl Iterator<Item = Expr> {
    columns.iter().cloned().map(Expr::Column)
}

/// A plan with the columns that another one has, and those of the values.
fn shown(plan: LogicalPlan, like: Vec<Expr>, of: &[Column]) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan).project(like.into_iter().chain(all(of)))?.build()
}

impl<'a> Outer<'a> {
    pub(super) fn new(
        table: &'a LogicalPlan,
        columns: &'a [Column],
        numbers: &'a AtomicUsize,
    ) -> Self {
        Self { table, columns, numbers }
    }

    pub(super) fn name(&self, of: &str) -> String {
        format!("{of}{}", self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// Each of the values once, by names that begin so.
    pub(super) fn values(&self, name: &str) -> Result<Rows> {
        let names: Vec<_> = self.columns.iter().map(|_| self.name(name)).collect();
        let columns = all(self.columns).zip(&names).map(|(column, name)| column.alias(name));
        let plan = LogicalPlanBuilder::from(self.table.clone()).project(columns)?.distinct()?;
        Ok((plan.build()?, names.into_iter().map(Column::from_name).collect()))
    }

    /// An expression that looks at the values in some columns, by the name that it had.
    fn resolved(&self, expr: Expr, of: &[Column], names: &NamePreserver) -> Result<Expr> {
        let name = names.save(&expr);
        let resolved = expr.transform_up(|expr| match &expr {
            Expr::OuterReferenceColumn(_, column) => {
                let at = self.columns.iter().position(|known| known == column);
                Ok(match at.and_then(|at| of.get(at)) {
                    Some(value) => Transformed::yes(Expr::Column(value.clone())),
                    None => Transformed::no(expr),
                })
            }
            _ => Ok(Transformed::no(expr)),
        })?;
        Ok(if resolved.transformed { name.restore(resolved.data) } else { resolved.data })
    }

    fn each(&self, exprs: Vec<Expr>, of: &[Column]) -> Result<Vec<Expr>> {
        let names = NamePreserver::new_for_projection();
        exprs.into_iter().map(|expr| self.resolved(expr, of, &names)).collect()
    }

    /// The rows that a plan gives for each of the values.
    pub(super) fn rows(&self, plan: &LogicalPlan) -> Result<Rows> {
        if !looks_outside(plan) {
            let (values, of) = self.values(NAME)?;
            return Ok((LogicalPlanBuilder::from(plan.clone()).cross_join(values)?.build()?, of));
        }
        match plan {
            LogicalPlan::Subquery(subquery) => self.rows(&subquery.subquery),
            LogicalPlan::Filter(filter) => {
                let (input, of) = self.rows(&filter.input)?;
                let names = NamePreserver::new(plan);
                let condition = self.resolved(filter.predicate.clone(), &of, &names)?;
                let filter = Filter::try_new(condition, Arc::new(input))?;
                Ok((LogicalPlan::Filter(filter), of))
            }
            LogicalPlan::Projection(list) => {
                let (input, of) = self.rows(&list.input)?;
                let columns = self.each(list.expr.clone(), &of)?;
                Ok((shown(input, columns, &of)?, of))
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let (input, of) = self.rows(&alias.input)?;
                let named = |(column, name): (Expr, Column)| {
                    column.alias_qualified(name.relation, name.name)
                };
                let columns = columns_of(&alias.input).into_iter().zip(plan.schema().columns());
                Ok((shown(input, columns.map(named).collect(), &of)?, of))
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregated(aggregate),
            LogicalPlan::Window(window) => self.windows(window),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.rows(&sort.input),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let (input, of) = self.rows(input)?;
                Ok((LogicalPlanBuilder::from(input).distinct()?.build()?, of))
            }
            LogicalPlan::Distinct(Distinct::On(distinct)) => self.first_of_each(distinct),
            LogicalPlan::Limit(limit) => self.limited(limit),
            LogicalPlan::Unnest(unnest) => {
                let (input, of) = self.rows(&unnest.input)?;
                Ok((plan.with_new_exprs(plan.expressions(), vec![input])?, of))
            }
            LogicalPlan::Union(union) => self.united(union),
            LogicalPlan::Join(join) => self.joined(join),
            _ => not_impl_err!(
                "a subquery that looks at the row outside from within this: join it to that row"
            ),
        }
    }

    fn aggregated(&self, aggregate: &Aggregate) -> Result<Rows> {
        let (input, of) = self.rows(&aggregate.input)?;
        let is_of_all = aggregate.group_expr.is_empty();
        let grouped = self.each(aggregate.group_expr.clone(), &of)?;
        if grouped.iter().any(|expr| matches!(expr, Expr::GroupingSet(_))) {
            return not_impl_err!(
                "GROUPING SETS in a subquery that looks at the row outside: group by columns"
            );
        }
        let grouped = grouped.into_iter().chain(all(&of)).collect();
        let values = self.each(aggregate.aggr_expr.clone(), &of)?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), grouped, values)?);
        if !is_of_all {
            return Ok((plan, of));
        }
        // There is a row also for values for which nothing is found.
        let (values, every) = self.values(NAME)?;
        let keys = (every.clone(), of);
        let plan = LogicalPlanBuilder::from(values)
            .join_detailed(plan, JoinType::Left, keys, None, NullEquality::NullEqualsNull)?
            .build()?;
        let columns = aggregate.schema.columns().into_iter().zip(&aggregate.aggr_expr);
        let columns = columns.map(|(column, of)| of_none(column, of, &plan));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok((shown(plan, columns, &every)?, every))
    }

    fn windows(&self, window: &Window) -> Result<Rows> {
        let (input, of) = self.rows(&window.input)?;
        let within = |expr: Expr| {
            let names = NamePreserver::new_for_projection();
            let name = names.save(&expr);
            let within = expr.transform_up(|expr| match expr {
                Expr::WindowFunction(mut window) => {
                    let WindowFunctionParams { partition_by, .. } = &mut window.params;
                    partition_by.extend(all(&of));
                    Ok(Transformed::yes(Expr::WindowFunction(window)))
                }
                expr => Ok(Transformed::no(expr)),
            })?;
            Ok(name.restore(within.data))
        };
        let windows = self.each(window.window_expr.clone(), &of)?.into_iter().map(within);
        let windows = windows.collect::<Result<Vec<_>>>()?;
        Ok((LogicalPlan::Window(Window::try_new(windows, Arc::new(input))?), of))
    }

    fn first_of_each(&self, distinct: &DistinctOn) -> Result<Rows> {
        let (input, of) = self.rows(&distinct.input)?;
        let on = all(&of).chain(self.each(distinct.on_expr.clone(), &of)?).collect();
        let columns = self.each(distinct.select_expr.clone(), &of)?;
        let columns = columns.into_iter().chain(all(&of)).collect();
        let order = distinct.sort_expr.clone().map(|order| {
            all(&of).map(|value| value.sort(true, false)).chain(order).collect::<Vec<_>>()
        });
        let distinct = DistinctOn::try_new(on, columns, order, Arc::new(input))?;
        Ok((LogicalPlan::Distinct(Distinct::On(distinct)), of))
    }

    /// The first rows of each value, by the places that they have among its own.
    fn limited(&self, limit: &Limit) -> Result<Rows> {
        let (SkipType::Literal(skipped), FetchType::Literal(most)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return not_impl_err!("LIMIT of what is not known before: give it a number");
        };
        // What a list of columns is sorted by may be below it.
        if let LogicalPlan::Projection(list) = limit.input.as_ref() {
            let below = Limit { input: Arc::clone(&list.input), ..limit.clone() };
            let (input, of) = self.limited(&below)?;
            let columns = self.each(list.expr.clone(), &of)?;
            return Ok((shown(input, columns, &of)?, of));
        }
        let (below, order) = match limit.input.as_ref() {
            LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (input, expr.clone()),
            _ => (&limit.input, Vec::new()),
        };
        let (input, of) = self.rows(below)?;
        let names = NamePreserver::new_for_projection();
        let order = order.into_iter().map(|by| {
            let expr = self.resolved(by.expr, &of, &names)?.unalias();
            Ok(SortExpr { expr, ..by })
        });
        let order = order.collect::<Result<Vec<_>>>()?;
        let place = self.name(PLACE);
        let places = row_number().partition_by(all(&of).collect()).order_by(order).build()?;
        let counted = LogicalPlanBuilder::from(input).window(vec![places.alias(&place)])?;
        let place = || Expr::Column(Column::from_name(&place));
        let (first, last) =
            (number(skipped), most.map(|most| number(skipped.saturating_add(most))));
        let mut within = place().gt(lit(first));
        if let Some(last) = last {
            within = within.and(place().lt_eq(lit(last)));
        }
        Ok((shown(counted.filter(within)?.build()?, columns_of(below), &of)?, of))
    }

    fn united(&self, union: &Union) -> Result<Rows> {
        let mut rows = Vec::new();
        let mut first = None;
        for input in &union.inputs {
            let (plan, of) = self.rows(input)?;
            let plan = shown(plan, columns_of(input), &of)?;
            first.get_or_insert(of);
            rows.push(Arc::new(plan));
        }
        let of = first.unwrap_or_default();
        let plan = LogicalPlan::Union(Union::try_new_with_loose_types(rows)?);
        let named =
            |(column, name): (Expr, Column)| column.alias_qualified(name.relation, name.name);
        let columns = columns_of(&plan).into_iter().zip(union.schema.columns());
        Ok((shown(plan, columns.map(named).collect(), &of)?, of))
    }

    fn joined(&self, join: &Join) -> Result<Rows> {
        use JoinType::{Full, Inner, Right, RightAnti, RightMark, RightSemi};
        let in_condition = {
            let sides = join.on.iter().flat_map(|(left, right)| [left, right]);
            sides.chain(&join.filter).any(Expr::contains_outer)
        };
        let (of_left, of_right) = (looks_outside(&join.left), looks_outside(&join.right));
        let keeps_right = matches!(join.join_type, Right | RightSemi | RightAnti | RightMark);
        // The side whose rows stay without another one has to know for what they are.
        let (of_left, of_right) = match join.join_type {
            Full => (true, true),
            Inner => (of_left || (in_condition && !of_right), of_right),
            _ if keeps_right => (of_left, true),
            _ => (true, of_right),
        };
        let side = |plan: &LogicalPlan, is_of_values: bool| {
            if is_of_values { self.rows(plan) } else { Ok((plan.clone(), Vec::new())) }
        };
        let (left, left_of) = side(&join.left, of_left)?;
        let (right, right_of) = side(&join.right, of_right)?;
        let of = if left_of.is_empty() || keeps_right { &right_of } else { &left_of };
        let names = NamePreserver::new(&LogicalPlan::Join(join.clone()));
        let mut on = Vec::new();
        for (left, right) in &join.on {
            let left = self.resolved(left.clone(), of, &names)?;
            let right = self.resolved(right.clone(), of, &names)?;
            on.push(match join.null_equality {
                NullEquality::NullEqualsNull => is_same(left, right),
                NullEquality::NullEqualsNothing => left.eq(right),
            });
        }
        if let Some(filter) = &join.filter {
            on.push(self.resolved(filter.clone(), of, &names)?);
        }
        for (left, right) in left_of.iter().zip(&right_of) {
            let (left, right) = (Expr::Column(left.clone()), Expr::Column(right.clone()));
            on.push(is_same(left, right));
        }
        let plan = LogicalPlanBuilder::from(left).join_on(right, join.join_type, on)?.build()?;
        let like = join.schema.columns().into_iter().map(Expr::Column).collect();
        if join.join_type != Full {
            return Ok((shown(plan, like, of)?, of.clone()));
        }
        let of = left_of.iter().zip(right_of).map(|(left, right)| {
            let either = coalesce(vec![Expr::Column(left.clone()), Expr::Column(right)]);
            (either, self.name(NAME))
        });
        let of: Vec<_> = of.collect();
        let both = like.into_iter().chain(of.iter().map(|(both, name)| both.clone().alias(name)));
        let plan = LogicalPlanBuilder::from(plan).project(both.collect::<Vec<_>>())?.build()?;
        Ok((plan, of.into_iter().map(|(_, name)| Column::from_name(name)).collect()))
    }
}

/// Whether two values are the same, NULL too.
fn is_same(left: Expr, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::IsNotDistinctFrom, Box::new(right)))
}

/// A number of rows as one that is computed with.
fn number(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

/// The column of an aggregate, which is what that is of no rows where there are none.
fn of_none(column: Column, aggregate: &Expr, plan: &LogicalPlan) -> Result<Expr> {
    let value = Expr::Column(column.clone());
    let inner = aggregate.clone().unalias_nested().data;
    let Expr::AggregateFunction(AggregateFunction { func, .. }) = inner else { return Ok(value) };
    let default = func.default_value(&value.get_type(plan.schema())?)?;
    if default.is_null() {
        return Ok(value);
    }
    let value = when(value.clone().is_null(), lit(default)).otherwise(value)?;
    Ok(value.alias_qualified(column.relation, column.name))
}
