//! Rows of a table that a join looks up, as its other side has few.
//!
//! A hash join reads the whole of its left input, where the planner puts the smaller one, before it
//! takes anything of its right one. What it has read by then says which rows of a table are sought
//! there, if these are found by their keys or by an index.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    Column, JoinType, NullEquality, Result, ScalarValue, internal_datafusion_err,
};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::functions::core;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    replace_children_if_necessary,
};
use duramen::Columns;
use futures::{StreamExt, stream};

use crate::column_type::TableColumns;
use crate::constants::AnyRows;
use crate::failure;
use crate::passing::Place;
use crate::scan::TableScan;
use crate::sought::Sought;

/// Has scans on the right side of joins look up what the left side has.
#[derive(Debug)]
pub(crate) struct Rule;

impl PhysicalOptimizerRule for Rule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_down(|plan| {
            // In each of its turns the left side has other rows.
            if plan.downcast_ref::<RecursiveQueryExec>().is_some() {
                return Ok(Transformed::new(plan, false, TreeNodeRecursion::Jump));
            }
            match plan.downcast_ref().map(look_up).transpose()?.flatten() {
                Some(sides) => replace_children_if_necessary(plan, sides).map(Transformed::yes),
                None => Ok(Transformed::no(plan)),
            }
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "joined"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The sides of a join whose right one looks up what the left one has, if it can.
fn look_up(join: &HashJoinExec) -> Result<Option<Vec<Arc<dyn ExecutionPlan>>>> {
    // Of the others, rows of the right side come out that match nothing.
    let is_for_matches = match join.join_type() {
        JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::RightSemi => true,
        JoinType::LeftAnti | JoinType::LeftMark => !join.null_aware,
        _ => false,
    };
    // NULL is sought by nothing.
    if !is_for_matches || join.null_equality() == NullEquality::NullEqualsNull {
        return Ok(None);
    }
    let left = join.left();
    let partitions = left.output_partitioning().partition_count();
    for (value, of_right) in join.on() {
        let Some(place) = Place::of(of_right) else { continue };
        if let Some((right, gathered)) = seeking(join.right(), place, partitions)? {
            let (input, value) = (Arc::clone(left), Arc::clone(value));
            return Ok(Some(vec![Arc::new(Gather { input, value, gathered }), right]));
        }
    }
    Ok(None)
}

/// A plan, and what its scan seeks by.
type Seeking = (Arc<dyn ExecutionPlan>, Arc<Gathered>);

/// The same plan, whose scan seeks what is gathered of so many partitions, by what is here at a
/// place; none if it cannot, or there is more between than what passes rows on.
fn seeking(
    plan: &Arc<dyn ExecutionPlan>,
    place: Place,
    partitions: usize,
) -> Result<Option<Seeking>> {
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        let Some(most) = scan.most_joined(&place)? else { return Ok(None) };
        let gathered = Arc::new(Gathered::new(partitions, most));
        let scan = scan.of_joined(Joined::new(place, Arc::clone(&gathered)));
        return Ok(Some((Arc::new(scan), gathered)));
    }
    if plan.fetch().is_some() {
        return Ok(None);
    }
    let is_passing = plan.downcast_ref::<RepartitionExec>().is_some()
        || plan.downcast_ref::<AnyRows>().is_some()
        || plan.downcast_ref::<CooperativeExec>().is_some()
        || plan.downcast_ref::<CoalescePartitionsExec>().is_some();
    let place = if is_passing { Some(place) } else { place.below(&**plan) };
    let children = plan.children();
    let (Some(place), [input]) = (place, &children[..]) else { return Ok(None) };
    let Some((input, gathered)) = seeking(input, place, partitions)? else { return Ok(None) };
    let plan = replace_children_if_necessary(Arc::clone(plan), vec![input])?;
    Ok(Some((plan, gathered)))
}

/// The values that the left side of a join has.
#[derive(Debug)]
struct Gathered(Mutex<Gathering>);

#[derive(Debug)]
enum Gathering {
    Few {
        arrays: Vec<ArrayRef>,
        /// How many rows there may still be.
        left: usize,
        /// Partitions that have not come to their ends.
        running: usize,
    },
    Many,
}

impl Gathered {
    fn new(partitions: usize, most: usize) -> Self {
        Self(Mutex::new(Gathering::Few { arrays: Vec::new(), left: most, running: partitions }))
    }

    fn now(&self) -> MutexGuard<'_, Gathering> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the values of some rows, unless there are too many.
    fn add(&self, batch: &RecordBatch, value: &dyn PhysicalExpr) -> Result<()> {
        let mut now = self.now();
        if let Gathering::Few { arrays, left, .. } = &mut *now {
            match left.checked_sub(batch.num_rows()) {
                Some(rest) => {
                    *left = rest;
                    arrays.push(value.evaluate(batch)?.into_array(batch.num_rows())?);
                }
                None => *now = Gathering::Many,
            }
        }
        Ok(())
    }

    /// A partition came to its end.
    fn end(&self) {
        if let Gathering::Few { running, .. } = &mut *self.now() {
            *running = running.saturating_sub(1);
        }
    }

    /// Each of the values; none if they are too many, or others may come.
    fn values(&self) -> Result<Option<HashSet<ScalarValue>>> {
        let now = self.now();
        let Gathering::Few { arrays, running: 0, .. } = &*now else { return Ok(None) };
        let mut values = HashSet::new();
        for array in arrays {
            for row in (0..array.len()).filter(|row| array.is_valid(*row)) {
                values.insert(ScalarValue::try_from_array(array, row)?);
            }
        }
        Ok(Some(values))
    }
}

/// What a scan seeks by, and what it found once it is asked.
#[derive(Debug)]
pub(crate) struct Joined {
    /// What the scan has there is sought.
    place: Place,
    gathered: Arc<Gathered>,
    /// All partitions of the scan read the same rows.
    found: Mutex<Found>,
}

/// Which rows a scan reads.
#[derive(Debug, Default)]
enum Found {
    /// It was not asked for any.
    #[default]
    Unknown,
    All,
    Few(Sought),
}

impl Joined {
    fn new(place: Place, gathered: Arc<Gathered>) -> Self {
        Self { place, gathered, found: Mutex::default() }
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of a table that are joined; none if all have to be read.
    pub(crate) fn rows(&self, (rows, table): (&Columns, &TableColumns)) -> Result<Option<Columns>> {
        let mut found = self.found();
        if let Found::Unknown = *found {
            let values = self.gathered.values()?;
            let few = values.map(|values| self.sought(values, (rows, table))).transpose()?;
            *found = few.flatten().map_or(Found::All, Found::Few);
        }
        Ok(match &*found {
            Found::Few(sought) => Some(sought.rows.clone()),
            Found::Unknown | Found::All => None,
        })
    }

    fn sought(
        &self,
        values: HashSet<ScalarValue>,
        (rows, table): (&Columns, &TableColumns),
    ) -> Result<Option<Sought>> {
        let column = Column::from_name(table.schema.field(self.place.column).name());
        let names = self.place.fields.iter().map(|name| lit(name.as_str()));
        let mut of: Vec<_> = [column.into()].into_iter().chain(names).collect();
        let of = if of.len() > 1 { core::get_field().call(of) } else { of.swap_remove(0) };
        let literals = values.into_iter().map(|value| Expr::Literal(value, None)).collect();
        let filter = Expr::InList(InList::new(Box::new(of), literals, false));
        Sought::of(&[filter], (rows, table)).map_err(failure::external)
    }
}

/// What a plan says of it: by what rows were sought, once it is known.
impl fmt::Display for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.found() {
            Found::Unknown => write!(f, "sought if few are joined"),
            Found::All => write!(f, "not sought as many are joined"),
            Found::Few(sought) => write!(f, "sought by {} as few are joined", sought.by),
        }
    }
}

/// Gathers the values of the left side of a join, and passes on its rows.
#[derive(Debug)]
struct Gather {
    input: Arc<dyn ExecutionPlan>,
    value: Arc<dyn PhysicalExpr>,
    gathered: Arc<Gathered>,
}

impl ExecutionPlan for Gather {
    fn name(&self) -> &'static str {
        "Gather"
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
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        visit(&self.value)
    }

    fn with_new_children(
        self: Arc<Self>,
        inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(inputs)
            .map_err(|_| internal_datafusion_err!("Gather has one input"))?;
        let (value, gathered) = (Arc::clone(&self.value), Arc::clone(&self.gathered));
        Ok(Arc::new(Self { input, value, gathered }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut input = self.input.execute(partition, context)?;
        let (value, gathered) = (Arc::clone(&self.value), Arc::clone(&self.gathered));
        let batches = stream::poll_fn(move |context| {
            let next = input.poll_next_unpin(context);
            match &next {
                Poll::Ready(Some(Ok(batch))) => {
                    if let Err(error) = gathered.add(batch, &*value) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Poll::Ready(None) => gathered.end(),
                _ => {}
            }
            next
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }
}

impl DisplayAs for Gather {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather: {}", self.value)
    }
}
