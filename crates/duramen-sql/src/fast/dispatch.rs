//! The short way from the text of a query that was asked before to its answer.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use duramen::{AggregatePlan, Aggregates, Columns, Error, ErrorKind, Result};
use tokio::time::Instant;

use super::literals::Shape;
use super::output;
use super::prepared::{Known, PreparedPlan, Took};
use super::run::Run;
use crate::allowance::Allowance;
use crate::answer::{Answer, Source};
use crate::depth;
use crate::failure;
use crate::parameter::Parameter;
use crate::session::{Session, defect, plan, threads};
use crate::statement::{self, Places, Request};
use crate::table::SHARED_PARTS_MIN;

/// How long a thread takes parts alone: to wake others takes about as long.
const ALONE: Duration = Duration::from_micros(50);

/// How long the parts that are left have to take one thread for others to be woken.
const WORTH_SHARING: Duration = Duration::from_micros(100);

/// If a query took this long the last time, others are woken at once.
const LONG: Duration = Duration::from_micros(300);

/// How often it looks whether others have ended before it sleeps.
const SPINS: usize = 1_000;

impl Session {
    /// The answer by a plan that is known; none if the query has to be planned.
    pub(crate) fn answer_prepared(
        &self,
        (sql, values): (&str, &[Parameter]),
        allowance: &Allowance,
    ) -> Result<Option<Answer<'_>>> {
        let Some(shape) = Shape::of(sql, values) else { return Ok(None) };
        let prepared = match self.prepared.get(&shape.text) {
            Some(Known::Fast(prepared)) => prepared,
            Some(Known::Asked) => {
                match depth::with_stack(sql, || self.prepare(&shape, allowance))? {
                    Some(prepared) => prepared,
                    None => return Ok(None),
                }
            }
            Some(Known::Plain) | None => return Ok(None),
        };
        let places = Places::default().with_allowance(allowance.clone());
        let tables = self.tables(&places).with_columns(prepared.wanted.clone());
        let table = match tables.find(&prepared.place) {
            Ok(table) => table,
            Err(error) if is_ended(&error) => return Err(error),
            // What is wrong with a table is told with its place in the text.
            Err(_) => return Ok(None),
        };
        if !prepared.is_of(&table.columns) {
            self.prepared.set(&shape.text, Known::Asked);
            return Ok(None);
        }
        let template = &prepared.template;
        let Some(bound) = template.bind(&shape.literals) else { return Ok(None) };
        let allowance = tables.allowance.clone();
        let found = self.aggregate(table.rows.clone(), (bound, &prepared.took), &allowance)?;
        let batch = output::batch(&found, &template.outputs, &template.schema);
        let batch = batch.map_err(|error| failure::query(error, &Places::default()))?;
        let Some(batch) = batch else { return Ok(None) };
        Ok(Some(Answer {
            session: PhantomData,
            schema: Arc::clone(&template.schema),
            source: Source::Ready(Some(batch)),
            allowance,
            is_over: false,
            rows: 0,
            saved: None,
        }))
    }

    /// Plans a query with literals that stand in for others, and keeps what comes of it.
    fn prepare(&self, shape: &Shape, allowance: &Allowance) -> Result<Option<Arc<PreparedPlan>>> {
        let planned =
            statement::parse(&shape.with_stand_ins(), &[]).and_then(|(request, places)| {
                let places = places.with_allowance(allowance.clone());
                let tables = Arc::new(self.tables(&places));
                let statement = match request {
                    // What a view is made of may be another query the next time.
                    Request::Read(statement) if !tables.has_view(&places)? => statement,
                    _ => return Err(Error::new(ErrorKind::Unsupported, "no plan is kept of this")),
                };
                let context = self.context(tables)?;
                // On a thread of queries, so that a panic ends nothing else.
                let runtime = self.runtime()?;
                let planned = runtime.spawn(async move { plan(&context, statement).await });
                let planned = runtime.block_on(planned).map_err(|_| defect())?;
                let planned = planned.map_err(|error| failure::query(error, &places))?;
                Ok((planned, places))
            });
        // A plan that was not waited for may be made the next time.
        let planned = match planned {
            Err(error) if is_ended(&error) => return Err(error),
            planned => planned.ok(),
        };
        let prepared = planned
            .and_then(|(plan, places)| PreparedPlan::of(&plan, (shape.literals.len(), &places)));
        let prepared = prepared.map(Arc::new);
        let known = prepared.clone().map_or(Known::Plain, Known::Fast);
        self.prepared.set(&shape.text, known);
        Ok(prepared)
    }

    fn aggregate(
        &self,
        rows: Columns,
        (plan, took): (AggregatePlan, &Took),
        allowance: &Allowance,
    ) -> Result<Aggregates> {
        let run = Arc::new(Run::new(rows, plan));
        let (runtime, begun) = (self.runtime()?, Instant::now());
        let is_long = took.get() >= LONG;
        let mut tasks = Vec::new();
        let own = run.work(|| {
            let is_shared = !tasks.is_empty() || run.left() < SHARED_PARTS_MIN;
            if !is_shared && (is_long || is_worth_sharing(&run, begun.elapsed())) {
                tasks.extend((1..threads()).map(|_| {
                    let run = Arc::clone(&run);
                    runtime.spawn_blocking(move || run.work(|| Ok(())))
                }));
            }
            allowance.check()
        });
        if own.is_err() {
            run.end();
        }
        let mut all = own?;
        for task in tasks {
            // One that has not begun yet has no parts.
            task.abort();
            // Others are about to end too: to sleep and be woken takes longer than that.
            for _ in 0..SPINS {
                if task.is_finished() {
                    break;
                }
                std::hint::spin_loop();
            }
            match runtime.block_on(task) {
                Ok(found) => all.merge(found?),
                Err(ended) if ended.is_cancelled() => {}
                Err(_) => {
                    let message = "a thread of a query ended without an answer: report it";
                    return Err(Error::new(ErrorKind::Internal, message));
                }
            }
        }
        took.set(begun.elapsed());
        Ok(all)
    }
}

/// Whether others are to be woken, after a thread took parts alone for some time.
fn is_worth_sharing(run: &Run, alone: Duration) -> bool {
    let parts = |parts: usize| u32::try_from(parts).unwrap_or(u32::MAX);
    let (left, taken) = (parts(run.left()), parts(run.taken()));
    alone >= ALONE && alone.saturating_mul(left) >= WORTH_SHARING.saturating_mul(taken)
}

/// Whether nobody waits for a query any more.
fn is_ended(error: &Error) -> bool {
    [ErrorKind::Cancelled, ErrorKind::TimedOut].contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use duramen::{CommitOptions, Database};

    use super::*;
    use crate::session::SessionOptions;

    /// A query that was asked before once had its time twice: for its plan, and to be planned anew.
    #[test]
    fn query_without_time_for_its_plan_is_not_planned_anew() {
        let db = Database::memory().unwrap();
        let items = db.create_document("items").unwrap();
        for n in 0..9 {
            items.put(format!("[{{\"n\":{n}}}]"), &CommitOptions::default()).unwrap();
        }
        let session = Session::new(db, SessionOptions::default());
        let sql = "SELECT count(*) FROM items.\"$[*]\" FOR SYSTEM_TIME ALL WHERE n > 3";
        let answer = |timeout_ms| {
            let options = SessionOptions { timeout_ms, ..SessionOptions::default() };
            session.answer_prepared((sql, &[]), &Allowance::begin(&options))
        };
        assert!(answer(None).unwrap().is_none());
        for _ in 0..2 {
            assert_eq!(answer(Some(0)).unwrap_err().kind(), ErrorKind::TimedOut);
        }
        assert!(answer(None).is_ok());
    }
}
