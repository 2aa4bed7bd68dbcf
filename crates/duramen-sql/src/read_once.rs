//! Inputs of joins that are read one time.
//!
//! A join by other conditions than equality keeps its left input in memory. Where that is too much
//! it would run the input again and write it to a file, but inputs that are repartitioned panic
//! when they are run again, and outer joins over several partitions then find rows that are not
//! there. So the second time ends the query, as too little memory does anywhere else.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    replace_children_if_necessary,
};

/// Has such joins read their left inputs once.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let once = |plan: Arc<dyn ExecutionPlan>| {
            let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() else {
                return Ok(Transformed::no(plan));
            };
            let left = Arc::new(ReadOnce::new(Arc::clone(join.left())));
            let inputs: Vec<Arc<dyn ExecutionPlan>> = vec![left, Arc::clone(join.right())];
            replace_children_if_necessary(plan, inputs).map(Transformed::yes)
        };
        plan.transform_up(once).data()
    }

    fn name(&self) -> &'static str {
        "read_once"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// An input that runs one time for each partition.
#[derive(Debug)]
struct ReadOnce {
    input: Arc<dyn ExecutionPlan>,
    were_read: Vec<AtomicBool>,
}

impl ReadOnce {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let partitions = input.output_partitioning().partition_count();
        Self { input, were_read: (0..partitions).map(|_| AtomicBool::new(false)).collect() }
    }
}

impl ExecutionPlan for ReadOnce {
    fn name(&self) -> &'static str {
        "ReadOnce"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(inputs)
            .map_err(|_| datafusion::common::internal_datafusion_err!("ReadOnce has one input"))?;
        Ok(Arc::new(Self::new(input)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let was_read = self.were_read.get(partition);
        if was_read.is_some_and(|was_read| was_read.swap(true, Ordering::Relaxed)) {
            return Err(resources_datafusion_err!(
                "the smaller side of a join without an equality does not fit"
            ));
        }
        self.input.execute(partition, context)
    }
}

impl DisplayAs for ReadOnce {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadOnce")
    }
}

#[cfg(test)]
mod tests {
    use duramen::{CommitOptions, Database, ErrorKind, KeyKind};

    use crate::{Session, SessionOptions};

    const RECORDS: u64 = 200;

    /// A join of joins that took too much memory once panicked.
    #[test]
    fn joins_without_equality_answer_or_are_full() {
        let db = Database::memory().unwrap();
        db.create_collection("r", KeyKind::U64).unwrap();
        let mut transaction = db.transaction();
        for key in 1..=RECORDS {
            let json = format!(r#"{{"n":{key}}}"#);
            transaction.put_record("r", &key.into(), json.as_bytes()).unwrap();
        }
        transaction.commit(&CommitOptions::default()).unwrap();
        let options = SessionOptions { memory_bytes: 2 << 20, ..SessionOptions::default() };
        let session = Session::new(db, options);
        let outcome = |sql: &str| {
            let rows = session.query(sql).map_err(|error| error.kind())?;
            let rows = rows.map(|batch| Ok(batch?.num_rows()));
            rows.sum::<duramen::Result<usize>>().map_err(|error| error.kind())
        };
        let two = "SELECT 1 FROM r a, r b WHERE a.n + b.n = 5";
        assert_eq!(outcome(two).unwrap(), 4);
        let outer = "SELECT 1 FROM r a LEFT JOIN r b ON a.n + b.n < 3";
        assert_eq!(outcome(outer).unwrap(), 200);
        // The smaller side is kept, and the other one is not.
        let three = "SELECT 1 FROM r a, r b, r c WHERE a.n + b.n + c.n = 4";
        assert_eq!(outcome(three).unwrap(), 3);
        let cube = "(SELECT a.n + b.n + c.n AS n FROM r a, r b, r c)";
        let large = format!("SELECT 1 FROM {cube} x JOIN {cube} y ON x.n + y.n < 9");
        assert_eq!(outcome(&large), Err(ErrorKind::Full));
    }
}
