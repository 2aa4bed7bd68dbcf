//! Plans of queries that were asked before: neither parsed nor planned again.
//!
//! What is kept is a plan, never an answer, and it serves as long as the columns that it names are
//! what they were. A query has one from the second time on that it is asked with any literals.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::physical_expr::expressions::Column as ColumnExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;

use super::lowering::FastPlan;
use super::operator::FastAggregateExec;
use super::template::Template;
use crate::column_type::{TableColumn, TableColumns};
use crate::statement::Places;
use crate::table::{TablePlace, Wanted};

/// Plans that a session keeps.
const PLANS_MAX: usize = 1_024;

/// What is known of queries by their texts without literals.
#[derive(Debug, Default)]
pub(crate) struct Prepared(Mutex<HashMap<String, Known>>);

/// What is known of a query.
#[derive(Debug, Clone)]
pub(super) enum Known {
    /// It was asked once.
    Asked,
    /// It takes the plans of all queries.
    Plain,
    Fast(Arc<PreparedPlan>),
}

/// The plan of a query.
#[derive(Debug)]
pub(super) struct PreparedPlan {
    pub(super) template: Template,
    pub(super) place: TablePlace,
    /// Those that the query may need.
    pub(super) wanted: Wanted,
    pub(super) took: Took,
    columns: Vec<TableColumn>,
}

/// How long a query took the last time.
#[derive(Debug, Default)]
pub(super) struct Took(AtomicU64);

impl Took {
    pub(super) fn get(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    pub(super) fn set(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.store(micros, Ordering::Relaxed);
    }
}

impl Prepared {
    /// What is known of a query; a query that is not known is from now on.
    pub(super) fn get(&self, text: &str) -> Option<Known> {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = plans.get(text) {
            return Some(known.clone());
        }
        if plans.len() >= PLANS_MAX {
            plans.clear();
        }
        plans.insert(text.to_owned(), Known::Asked);
        None
    }

    /// How many plans are kept.
    pub(crate) fn len(&self) -> usize {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.values().filter(|known| matches!(known, Known::Fast(_))).count()
    }

    pub(super) fn set(&self, text: &str, known: Known) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.insert(text.to_owned(), known);
    }
}

/// The columns that are wanted. Whatever else there is changes nothing.
fn wanted_of<'c>(
    columns: &'c TableColumns,
    wanted: &Wanted,
) -> impl Iterator<Item = &'c TableColumn> {
    columns.columns.iter().filter(|column| column.is_wanted(wanted))
}

impl PreparedPlan {
    /// Of the plan of a query with so many literals that stand in for others; none if it takes more
    /// than the engine, or if the plan would not hold for other literals.
    pub(super) fn of(
        plan: &Arc<dyn ExecutionPlan>,
        (literals, places): (usize, &Places),
    ) -> Option<Self> {
        let (fast, chosen) = if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
            let index = |expr: &ColumnExpr| expr.index();
            let columns = projection.expr().iter().map(|expr| expr.expr.downcast_ref().map(index));
            (
                projection.input().downcast_ref::<FastAggregateExec>()?,
                columns.collect::<Option<_>>()?,
            )
        } else {
            let fast = plan.downcast_ref::<FastAggregateExec>()?;
            (fast, (0..fast.plan().outputs.len()).collect::<Vec<_>>())
        };
        let FastPlan { plan: of, outputs, table, .. } = fast.plan();
        let outputs = chosen.into_iter().map(|index| outputs.get(index).copied());
        let outputs = outputs.collect::<Option<_>>()?;
        let template = Template { plan: of.clone(), outputs, schema: plan.schema() };
        let wanted = places.wanted.clone();
        let (place, columns) = table.clone();
        let columns = wanted_of(&columns, &wanted).cloned().collect();
        let took = Took::default();
        template.has_all(literals).then_some(Self { template, place, wanted, took, columns })
    }

    /// Whether it is one of a table with these columns.
    pub(super) fn is_of(&self, columns: &TableColumns) -> bool {
        wanted_of(columns, &self.wanted).eq(&self.columns)
    }
}
