//! `generate_series` and `range` in place of a table, of times: those of `DataFusion` take and give
//! nanoseconds only.

use std::sync::Arc;

use datafusion::catalog::{TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast, col};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;

use super::micros;

const FUNCTIONS: [&str; 2] = ["generate_series", "range"];
/// The column of the values.
const VALUE: &str = "value";

pub(super) fn register(context: &SessionContext) {
    for name in FUNCTIONS {
        if let Ok(function) = context.table_function(name) {
            let inner = Arc::clone(function.function());
            context.register_udtf(name, Arc::new(Counting { inner }));
        }
    }
}

#[derive(Debug)]
struct Counting {
    inner: Arc<dyn TableFunctionImpl>,
}

impl TableFunctionImpl for Counting {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> Result<Arc<dyn TableProvider>> {
        let times = args.exprs().iter().map(in_nanos);
        let exprs: Vec<Expr> = times.collect::<Result<_>>()?;
        let zone = args.exprs().iter().find_map(zone);
        let table = self.inner.call_with_args(TableFunctionArgs::new(&exprs, args.session()))?;
        let Some(has_zone) = zone else { return Ok(table) };
        let value = cast(col(VALUE), micros(has_zone)).alias(VALUE);
        let plan = LogicalPlanBuilder::scan(VALUE, provider_as_source(table), None)?;
        Ok(Arc::new(ViewTable::new(plan.project([value])?.build()?, None)))
    }
}

/// Whether an argument that is a time of microseconds has a zone; none if it is none.
fn zone(argument: &Expr) -> Option<bool> {
    match argument {
        Expr::Literal(ScalarValue::TimestampMicrosecond(_, zone), _) => Some(zone.is_some()),
        _ => None,
    }
}

/// An argument with nanoseconds, if it is a time of microseconds.
fn in_nanos(argument: &Expr) -> Result<Expr> {
    let Expr::Literal(ScalarValue::TimestampMicrosecond(time, zone), metadata) = argument else {
        return Ok(argument.clone());
    };
    let beyond = || plan_datafusion_err!("series of times are those of the years 1678 to 2261");
    let nanos = time.map(|time| time.checked_mul(1_000).ok_or_else(beyond)).transpose()?;
    let time = ScalarValue::TimestampNanosecond(nanos, zone.clone());
    Ok(Expr::Literal(time, metadata.clone()))
}
