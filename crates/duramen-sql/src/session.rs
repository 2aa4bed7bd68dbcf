//! Where queries run: threads, memory and time that they may take.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread, available_parallelism};
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::TrackConsumersPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::{DescribeTable, LogicalPlan};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use duramen::{Database, Error, ErrorKind, Result};
use futures::StreamExt;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinHandle};

use crate::allowance::Allowance;
use crate::answer::{Answer, Source};
use crate::catalog::{COLLECTIONS, Catalog, DATABASE, KnownTables, Tables};
use crate::copy::CopyProgress;
use crate::other_case::corrected;
use crate::parameter::Parameter;
use crate::portion::Most;
use crate::room::Room;
use crate::script::SqlText;
use crate::spill::{SessionFiles, SpillFolder};
use crate::statement::{Places, Request};
use crate::table::Wanted;
use crate::{
    arithmetic, array_agg, as_of_join, by_group, casts, constants, depth, failure, fast,
    first_rows, function, growth, guards, in_lists, information, intervals, joined, json_function,
    json_marks, modifiers, moment, nans, projections, read_once, repairs, rounding, sorted,
    standard, statement, subqueries, unnest, version, windows, zeros, zones,
};

/// How often a query that is waited for is asked whether to go on.
const STEP: Duration = Duration::from_millis(10);

/// Batches that are made ahead of who takes them.
const BATCHES_AHEAD: usize = 2;

/// Consumers of memory that are named where there is too little.
const CONSUMERS_NAMED: usize = 3;

/// Bytes of memory for each row of a batch, and the rows of one.
const BATCH_SHARE_BYTES: usize = 64 << 10;
const BATCH_ROWS_MIN: usize = 256;
const BATCH_ROWS_MAX: usize = 8_192;

/// Bytes of memory for each part of a query that runs beside others: less of it would be used up by
/// what each of them keeps for merging.
const PARTITION_BYTES_MIN: usize = 8 << 20;

/// Portions of batches of wide rows that the memory kept for merging has room for, and the bytes of
/// one.
const PORTIONS_MERGED: usize = 2;
const PORTION_BYTES_MIN: usize = 64 << 10;
const PORTION_BYTES_MAX: usize = 1 << 20;

/// The share of memory that each sort keeps for merging its files, and the most of it.
pub(crate) const MERGE_SHARE: usize = 32;
const MERGE_BYTES_MAX: usize = 10 << 20;

/// The share of memory up to which a sort makes one batch of what it has, and the most of it. What
/// is sorted so is cut to batches again, of which each counts the texts of all.
const TOGETHER_SHARE: usize = 256;
const TOGETHER_BYTES_MAX: usize = 1 << 20;

/// What the threads of queries are called; a panic on one of them becomes the error of its query.
pub const THREAD_NAME: &str = "sql";

/// What queries may take.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// Bytes of memory that a query may hold, together with what the database keeps of what it
    /// reads for it, before it uses files; where it cannot it ends with `Full`.
    pub memory_bytes: usize,
    /// Milliseconds that a query may take; then it ends with `TimedOut`.
    pub timeout_ms: Option<u64>,
    /// Where files of queries go that take more memory; the system's folder for such if none.
    pub spill_folder: Option<PathBuf>,
    /// Bytes that these files of a query may have; one that would take more ends with `Full`.
    pub spill_bytes: u64,
    /// A query ends with `Cancelled` when this becomes true.
    pub cancelled: Arc<AtomicBool>,
}

impl Default for SessionOptions {
    /// 256 MiB of memory, 100 GiB of files, and any time.
    fn default() -> Self {
        Self {
            memory_bytes: 256 << 20,
            timeout_ms: None,
            spill_folder: None,
            spill_bytes: 100 << 30,
            cancelled: Arc::default(),
        }
    }
}

/// Answers queries about one database, one or several at a time.
///
/// It has threads of its own, so that it waits where asynchronous code must not: use it from
/// threads that may block.
pub struct Session {
    pub(crate) db: Database,
    pub(crate) options: SessionOptions,
    pub(crate) known: Arc<KnownTables>,
    pub(crate) prepared: fast::Prepared,
    pub(crate) tell: Option<Box<Tell>>,
    files: Arc<SessionFiles>,
    runtime: Option<Runtime>,
}

/// Takes how far a copy is.
pub(crate) type Tell = dyn Fn(CopyProgress) + Send + Sync;

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Session {
    /// A session on a database; nothing is read or started before the first query.
    pub fn new(db: Database, options: SessionOptions) -> Self {
        let runtime = start().ok();
        let known = KnownTables::new(runtime.as_ref().map(|runtime| runtime.handle().clone()));
        let folder = options.spill_folder.clone().unwrap_or_else(std::env::temp_dir);
        let (files, prepared) = (Arc::new(SessionFiles::new(folder)), fast::Prepared::default());
        Self { db, options, known, prepared, tell: None, files, runtime }
    }

    /// The same session, which tells how far it is with a `COPY ... FROM`, about every mebibyte or
    /// thousand records, on the thread that asks.
    #[must_use]
    pub fn telling(mut self, tell: impl Fn(CopyProgress) + Send + Sync + 'static) -> Self {
        self.tell = Some(Box::new(tell));
        self
    }

    /// Answers a query. What it has to say comes as it is asked for.
    ///
    /// What changes the database is done when this returns, in one commit, or not at all; the
    /// answer has the rows that `RETURNING` asks for, else one row: how many rows were changed, and
    /// the collection's revision with them, NULL if there was nothing to change.
    ///
    /// # Errors
    /// `Invalid` for what is no query, with the place; `NotFound` for a table, revision or time
    /// that there is not; `Conflict` for records that are there already; `Full`, `TimedOut` and
    /// `Cancelled` as the options say.
    pub fn query(&self, sql: &str) -> Result<Answer<'_>> {
        self.query_with(sql, &[])
    }

    /// Answers a query whose placeholders stand for values. Its plan is kept by its text where that
    /// is worth it, for any values, so that it need not be prepared.
    ///
    /// # Errors
    /// As [`query`](Self::query), and `Invalid` if it takes other values than it is given.
    pub fn query_with<'t>(
        &self,
        sql: impl Into<SqlText<'t>>,
        values: &[Parameter],
    ) -> Result<Answer<'_>> {
        let sql = sql.into();
        let allowance = Allowance::begin(&self.options);
        if let Some(answer) = self.answer_prepared((sql.text, values), &allowance)? {
            return Ok(answer);
        }
        depth::with_stack(sql.text, || self.answer_spelled((sql, values), &allowance))
    }

    /// Answers a query, with the names that are meant where there is another case of them only.
    fn answer_spelled(
        &self,
        (sql, values): (SqlText<'_>, &[Parameter]),
        allowance: &Allowance,
    ) -> Result<Answer<'_>> {
        let mut answer = self.answer_planned((sql, values), allowance.clone());
        let mut tried = vec![sql.text.to_owned()];
        while let Err(error) = &answer {
            let last = tried.last().map_or(sql.text, String::as_str);
            let meant = corrected(error, SqlText { text: last, ..sql });
            let Some(meant) = meant.filter(|meant| !tried.contains(meant)) else { break };
            let spelled = SqlText { text: &meant, ..sql };
            let kept = self.answer_prepared((&meant, values), allowance)?;
            let planned = || self.answer_planned((spelled, values), allowance.clone());
            answer = kept.map_or_else(planned, Ok);
            tried.push(meant);
        }
        answer
    }

    fn answer_planned(
        &self,
        (sql, values): (SqlText<'_>, &[Parameter]),
        allowance: Allowance,
    ) -> Result<Answer<'_>> {
        let (request, places) = statement::parse(sql, values)?;
        let places = places.with_allowance(allowance);
        match request {
            Request::Read(statement) => {
                let tables = self.tables(&places);
                if *tables.wanted() == Wanted::All {
                    return self.read(statement, &places, tables);
                }
                let all = tables.clone().with_columns(Wanted::All);
                let answer = self.read(statement.clone(), &places, tables);
                match answer {
                    // What is wrong is told with all columns that there are.
                    Err(error) if error.kind() == ErrorKind::Invalid => {
                        self.read(statement, &places, all)
                    }
                    answer => answer,
                }
            }
            Request::Copy(copy) => self.copy(&copy, &places),
            Request::Change(statement) => self.change(&statement, (sql.text, &places)),
        }
    }

    /// Answers a query that a statement has in it. Errors have the places of the statement.
    pub(crate) fn read_with(
        &self,
        sql: &str,
        places: &Places,
        tables: Tables,
    ) -> Result<Answer<'_>> {
        match statement::parse(sql, &[])?.0 {
            Request::Read(statement) => self.read(statement, &places.of_statement(), tables),
            Request::Change(_) | Request::Copy(_) => Err(defect()),
        }
    }

    /// Plans a query that a statement has in it, and does not answer it.
    pub(crate) fn plan_with(&self, sql: &str, places: &Places, tables: Tables) -> Result<()> {
        let plan =
            |context: SessionContext, statement| async move { plan(&context, statement).await };
        self.planned((sql, places), tables, plan).map(drop)
    }

    /// What a query that a statement has in it means, as it is written.
    pub(crate) fn meaning(
        &self,
        sql: &str,
        places: &Places,
        tables: Tables,
    ) -> Result<LogicalPlan> {
        let plan = |context: SessionContext, statement| async move {
            modifiers::plan(&context.state(), statement).await
        };
        self.planned((sql, places), tables, plan)
    }

    fn planned<P: Send + 'static, F>(
        &self,
        (sql, places): (&str, &Places),
        tables: Tables,
        plan: impl FnOnce(SessionContext, Statement) -> F,
    ) -> Result<P>
    where
        F: Future<Output = datafusion::error::Result<P>> + Send + 'static,
    {
        let Request::Read(statement) = statement::parse(sql, &[])?.0 else { return Err(defect()) };
        let allowance = tables.allowance.clone();
        let planned = plan(self.context(Arc::new(tables))?, statement);
        let places = places.of_statement();
        let run = async move { planned.await.map_err(|error| failure::query(error, &places)) };
        let mut task = self.runtime()?.spawn(run);
        let planned = wait(&allowance, pin!(&mut task));
        match planned {
            Ok(planned) => planned.map_err(panicked)?,
            Err(error) => {
                allowance.end();
                task.abort();
                Err(error)
            }
        }
    }

    /// Rows that are there already, as an answer.
    pub(crate) fn ready<'s>(batch: RecordBatch) -> Answer<'s> {
        let (schema, source) = (batch.schema(), Source::Ready(Some(batch)));
        let allowance = Allowance::default();
        Answer {
            session: PhantomData,
            schema,
            source,
            allowance,
            is_over: false,
            rows: 0,
            saved: None,
        }
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// The tables as of the last commit, for a query or a part of one.
    pub(crate) fn tables(&self, places: &Places) -> Tables {
        Tables::new(&self.db, &self.known, places.clone())
    }

    fn read(&self, statement: Statement, places: &Places, tables: Tables) -> Result<Answer<'_>> {
        let allowance = tables.allowance.clone();
        let context = self.context(Arc::new(tables))?;
        let places = places.clone();
        let (schema_to, schema) = oneshot::channel();
        let (batches_to, batches) = mpsc::channel(BATCHES_AHEAD);
        let run = async move {
            let stream =
                async { execute_stream(plan(&context, statement).await?, context.task_ctx()) };
            let mut stream = match stream.await {
                Ok(stream) => stream,
                Err(error) => {
                    let _ = schema_to.send(Err(failure::query(error, &places)));
                    return;
                }
            };
            // Nobody waits for it any more if it cannot be sent.
            let _ = schema_to.send(Ok(stream.schema()));
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(|error| failure::query(error, &places));
                let is_last = batch.is_err();
                if batches_to.send(batch).await.is_err() || is_last {
                    return;
                }
            }
        };
        let mut task = self.runtime()?.spawn(run);
        let found = match wait(&allowance, pin!(schema)) {
            Ok(Ok(found)) => found,
            Ok(Err(_)) => Err(ended(&allowance, &mut task).err().unwrap_or_else(defect)),
            Err(error) => {
                allowance.end();
                Err(error)
            }
        };
        match found {
            Ok(schema) => {
                let source = Source::Query { batches, task };
                Ok(Answer {
                    session: PhantomData,
                    schema,
                    source,
                    allowance,
                    is_over: false,
                    rows: 0,
                    saved: None,
                })
            }
            Err(error) => {
                task.abort();
                Err(error)
            }
        }
    }

    /// How many plans of queries are kept for when they are asked again, with other literals too.
    pub fn plans_kept(&self) -> usize {
        self.prepared.len()
    }

    pub(crate) fn runtime(&self) -> Result<&Runtime> {
        self.runtime.as_ref().ok_or_else(|| {
            let message = "the threads of queries cannot be started: is there a limit on them?";
            Error::new(ErrorKind::Full, message)
        })
    }

    pub(crate) fn context(&self, tables: Arc<Tables>) -> Result<SessionContext> {
        let config = config(self.options.memory_bytes);
        Ok(context_in((config, self.environment()?, self.options.memory_bytes), tables))
    }

    fn environment(&self) -> Result<Arc<RuntimeEnv>> {
        let bytes = self.options.memory_bytes;
        let pool = Room::new(bytes, self.db.share_memory(bytes));
        let named = CONSUMERS_NAMED.try_into().unwrap_or(std::num::NonZeroUsize::MIN);
        let builder = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(TrackConsumersPool::new(pool, named)));
        let files = SpillFolder::new(Arc::clone(&self.files), self.options.spill_bytes);
        let files = DiskManagerBuilder::default().with_temp_file_factory(Arc::new(files));
        let made = builder.with_disk_manager_builder(files).build_arc();
        made.map_err(|error| failure::query(error, &Places::default()))
    }
}

/// Waits for what a query makes, unless it is to end.
pub(crate) fn wait<T>(
    allowance: &Allowance,
    mut what: Pin<&mut dyn Future<Output = T>>,
) -> Result<T> {
    // Not by a timer of the runtime, which stands still while all its threads compute.
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        allowance.check()?;
        if let Poll::Ready(made) = what.as_mut().poll(&mut context) {
            return Ok(made);
        }
        thread::park_timeout(STEP);
    }
}

/// Whether a query that has no more to say came to its end: one that panics says no more either.
pub(crate) fn ended(allowance: &Allowance, task: &mut JoinHandle<()>) -> Result<()> {
    wait(allowance, pin!(task))?.map_err(panicked)
}

fn panicked(error: JoinError) -> Error {
    let message = format!("a query ended without an answer: report it ({error})");
    Error::new(ErrorKind::Internal, message).with_source(error)
}

/// Where queries are planned that are a part of others.
pub(crate) fn planning_context(tables: Arc<Tables>) -> SessionContext {
    let memory_bytes = SessionOptions::default().memory_bytes;
    context_in((config(memory_bytes), Arc::new(RuntimeEnv::default()), memory_bytes), tables)
}

/// How queries are planned that may hold so much memory.
fn config(memory_bytes: usize) -> SessionConfig {
    // Merges hold a batch of each file they read, so that where memory is short batches are, too.
    let batch_rows = (memory_bytes / BATCH_SHARE_BYTES).clamp(BATCH_ROWS_MIN, BATCH_ROWS_MAX);
    let for_merges = (memory_bytes / MERGE_SHARE).min(MERGE_BYTES_MAX);
    let together = (memory_bytes / TOGETHER_SHARE).min(TOGETHER_BYTES_MAX);
    let mut config = SessionConfig::new()
        .with_batch_size(batch_rows)
        .with_sort_spill_reservation_bytes(for_merges)
        .with_sort_in_place_threshold_bytes(together)
        .with_default_catalog_and_schema(DATABASE, COLLECTIONS)
        .with_create_default_catalog_and_schema(false)
        .with_target_partitions(threads().min((memory_bytes / PARTITION_BYTES_MIN).max(1)))
        // A file for each batch that is spilled on its way to another partition: of files that two
        // partitions go on writing, who reads can wait for the wrong one for ever
        // (apache/datafusion#24883).
        .set_usize("datafusion.execution.max_spill_file_size_bytes", 1);
    // Names of collections and fields are found as they are written.
    config.options_mut().sql_parser.enable_ident_normalization = false;
    // What may be NULL is guessed in another way before and after conditions are simplified.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    // Times that have a zone have this one.
    config.options_mut().execution.time_zone = Some(zones::UTC.to_owned());
    // Errors tell where columns stand.
    config.options_mut().sql_parser.collect_spans = true;
    config
}

/// What a batch has at most that is not cut, as a query may hold so much memory.
pub(crate) fn portion_most(context: &TaskContext) -> Most {
    let config = context.session_config();
    let for_merges = config.options().execution.sort_spill_reservation_bytes;
    let bytes = (for_merges / PORTIONS_MERGED).clamp(PORTION_BYTES_MIN, PORTION_BYTES_MAX);
    Most { bytes, rows: config.batch_size() }
}

fn context_in(
    (config, environment, memory_bytes): (SessionConfig, Arc<RuntimeEnv>, usize),
    tables: Arc<Tables>,
) -> SessionContext {
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(environment)
        .with_default_features()
        .with_expr_planners(json_function::with_operators())
        .with_type_planner(Arc::new(zones::Types))
        .with_analyzer_rules(arithmetic::with_rule())
        .with_optimizer_rules(fast::with_rule())
        .with_query_planner(Arc::new(as_of_join::Planner))
        .with_physical_optimizer_rules(physical_rules())
        .with_physical_optimizer_rule(Arc::new(joined::Rule))
        .with_physical_optimizer_rule(Arc::new(read_once::Rule))
        .with_physical_optimizer_rule(Arc::new(growth::Rule))
        .with_physical_optimizer_rule(Arc::new(by_group::Rule))
        .with_physical_optimizer_rule(Arc::new(sorted::Rule))
        .build();
    let context = SessionContext::new_with_state(state);
    as_of_join::register(&context);
    arithmetic::register(&context);
    array_agg::register(&context);
    casts::register(&context);
    repairs::register(&context);
    growth::register(&context, memory_bytes);
    moment::register(&context);
    rounding::register(&context);
    standard::register(&context);
    subqueries::register(&context);
    zones::register(&context);
    intervals::register(&context);
    windows::register(&context, memory_bytes);
    zeros::register(&context);
    nans::register(&context);
    in_lists::register(&context);
    guards::register(&context);
    unnest::register(&context);
    json_function::register(&context);
    json_marks::register(&context);
    version::register(&context);
    function::register(&context, &tables);
    context.register_catalog(DATABASE, Arc::new(Catalog(tables)));
    context
}

/// The rules of `DataFusion` without those that push filters down once more: behind joins they find
/// columns by name, and so take one of the other side (55). No table takes their filters.
fn physical_rules() -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
    let mut rules = PhysicalOptimizer::new().rules;
    rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
    for rule in rules.iter_mut().filter(|rule| rule.name() == projections::REPLACED) {
        *rule = Arc::new(projections::Rule);
    }
    rules.insert(0, Arc::new(constants::Rule));
    rules.insert(0, Arc::new(first_rows::Rule));
    rules
}

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Ends queries that nobody waits for.
impl Drop for Session {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // Of a query that was given up, something may run for as long as the process does.
        self.files.remove();
    }
}

/// The plan of a query that only reads.
pub(crate) async fn plan(
    context: &SessionContext,
    statement: Statement,
) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
    let plan = match modifiers::plan(&context.state(), statement).await? {
        LogicalPlan::DescribeTable(DescribeTable { schema, output_schema }) => {
            information::described(&schema, Arc::clone(output_schema.inner()))?
        }
        plan => plan,
    };
    SQLOptions::new()
        .with_allow_ddl(false)
        .with_allow_dml(false)
        .with_allow_statements(false)
        .verify_plan(&plan)?;
    context.state().create_physical_plan(&plan).await
}

fn start() -> std::io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(threads())
        .thread_name(THREAD_NAME)
        .thread_stack_size(depth::STACK_BYTES)
        .enable_time()
        .build()
}

/// How many threads run at once; to ask the system takes longer than a short query.
pub(crate) fn threads() -> usize {
    static COUNT: OnceLock<usize> = OnceLock::new();
    *COUNT.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

pub(crate) fn defect() -> Error {
    Error::new(ErrorKind::Internal, "a query ended without an answer: report it")
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::Ordering;

    use duramen::CommitOptions;

    use super::*;

    /// A query that panicked once ended as one that finds nothing.
    #[test]
    fn panicking_query_is_no_empty_answer() {
        let session = Session::new(Database::memory().unwrap(), SessionOptions::default());
        let (batches_to, batches) = mpsc::channel(BATCHES_AHEAD);
        let task = session.runtime().unwrap().spawn(async move {
            let _batches_to = batches_to;
            panic!("as tests want it");
        });
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::empty());
        let source = Source::Query { batches, task };
        let (session, allowance) = (PhantomData, Allowance::default());
        let mut answer =
            Answer { session, schema, source, allowance, is_over: false, rows: 0, saved: None };
        let error = answer.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("as tests want it"), "{error}");
        assert!(answer.next().is_none());
    }

    /// A query whose threads all computed once kept whoever waited from looking at the clock.
    #[test]
    fn waiting_ends_while_all_threads_compute() {
        let options = SessionOptions { timeout_ms: Some(10), ..SessionOptions::default() };
        let session = Session::new(Database::memory().unwrap(), options);
        let is_over = Arc::new(AtomicBool::new(false));
        for _ in 0..2 * threads() {
            let is_over = Arc::clone(&is_over);
            session.runtime().unwrap().spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        let waited = wait(&Allowance::begin(&session.options), pin!(pending::<()>()));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
    }

    /// A query that was asked before is planned by who asks, which looked for all versions once.
    #[test]
    fn versions_that_nobody_waits_for_are_not_looked_for() {
        let db = Database::memory().unwrap();
        let items = db.create_document("items").unwrap();
        for n in 0..9 {
            items.put(format!("[{{\"n\":{n}}}]"), &CommitOptions::default()).unwrap();
        }
        let options = SessionOptions::default();
        options.cancelled.store(true, Ordering::Relaxed);
        let session = Session::new(db, options);
        let sql = "SELECT count(*) FROM items.\"$[*]\" FOR SYSTEM_TIME ALL WHERE n > 3";
        for _ in 0..3 {
            assert_eq!(session.query(sql).unwrap_err().kind(), ErrorKind::Cancelled);
            assert_eq!(session.known.len(), 0);
        }
        session.options.cancelled.store(false, Ordering::Relaxed);
        let rows: usize = session.query(sql).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!((rows, session.known.len()), (1, 1));
    }
}
