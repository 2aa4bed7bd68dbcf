//! A collection, or an array of a document, as a table.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use duramen::{ColumnField, Columns};
use tokio::runtime::Handle;

use crate::change::OWN;
use crate::column_type::TableColumns;
use crate::declared::{DeclaredColumn, Definition};
use crate::failure;
use crate::pruning::Bounds;
use crate::scan::TableScan;
use crate::session;
use crate::sought::Sought;
use crate::system_time::TableName;

/// Parts from which on they are shared among threads: to wake one takes as long as a few parts.
pub(crate) const SHARED_PARTS_MIN: usize = 16;

/// Parts that are read ahead together.
const PARTS_AHEAD: usize = 16;

/// Rows at a revision, by column: those columns that queries wanted so far.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Columns,
    pub(crate) columns: TableColumns,
    pub(crate) place: TablePlace,
    /// What is declared of its columns.
    pub(crate) definition: Option<Arc<Definition>>,
    /// What was found of the columns.
    root: ColumnField,
    /// Of which columns something was found.
    wanted: Wanted,
}

/// The columns of tables that a query may need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Wanted {
    #[default]
    All,
    /// Those whose names are among some words.
    Named(Arc<HashSet<String>>),
}

/// Where a table is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TablePlace {
    /// The document that has the array, if it is one.
    pub(crate) document: Option<String>,
    /// The name of the collection or the path of the array, with what it is as of.
    pub(crate) name: String,
}

impl Wanted {
    /// Whether a field is wanted, or a column that has its name with something before it.
    pub(crate) fn has(&self, field: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(words) => words.iter().any(|word| word.ends_with(field)),
        }
    }

    /// The declared columns that are wanted.
    pub(crate) fn declared<'d>(
        &self,
        definition: Option<&'d Arc<Definition>>,
    ) -> impl Iterator<Item = &'d Arc<DeclaredColumn>> {
        let columns = definition.into_iter().flat_map(|definition| &definition.columns);
        columns.filter(|column| self.has(&column.name))
    }

    /// Whether all others are among them.
    fn covers(&self, others: &Self) -> bool {
        match (self, others) {
            (Self::All, _) => true,
            (Self::Named(_), Self::All) => false,
            (Self::Named(words), Self::Named(others)) => others.is_subset(words),
        }
    }

    fn or(&self, others: &Self) -> Self {
        match (self, others) {
            (Self::Named(words), Self::Named(others)) => {
                Self::Named(Arc::new(words.as_ref() | others.as_ref()))
            }
            _ => Self::All,
        }
    }
}

impl Table {
    /// Looks through the columns that are wanted for what they have.
    pub(crate) fn new(
        (rows, definition): (Columns, Option<Arc<Definition>>),
        place: TablePlace,
        wanted: &Wanted,
        threads: Option<&Handle>,
    ) -> duramen::Result<Self> {
        let is_wanted = |name: &str| wanted.has(name);
        let threads = threads.filter(|_| rows.is_to_be_read(&is_wanted));
        let ahead = threads.map(|threads| ReadAhead::start(&rows, wanted, threads));
        let root = rows.root_of(&is_wanted)?;
        drop(ahead);
        let columns = TableColumns::new(&root, &rows, wanted.declared(definition.as_ref()));
        Ok(Self { rows, columns, place, definition, root, wanted: wanted.clone() })
    }

    /// Rows of which it is known what their columns have.
    pub(crate) fn of(
        (rows, definition): (Columns, Option<Arc<Definition>>),
        place: TablePlace,
        (root, columns): (ColumnField, TableColumns),
    ) -> Self {
        Self { rows, columns, place, definition, root, wanted: Wanted::All }
    }

    /// Records for another table, whose columns, and definition, have what is read of them.
    pub(crate) fn like(
        (rows, place): (Columns, TablePlace),
        other: &Self,
    ) -> duramen::Result<Self> {
        let mut root = rows.root_of(&|_| true)?;
        widen(&mut root, &other.root);
        let (wanted, definition) = (Wanted::All, other.definition.clone());
        let columns = TableColumns::new(&root, &rows, wanted.declared(definition.as_ref()));
        Ok(Self { rows, columns, place, definition, root, wanted })
    }

    /// Whether all columns that are wanted were looked through.
    pub(crate) fn has(&self, wanted: &Wanted) -> bool {
        self.wanted.covers(wanted)
    }

    /// The same table, of which further columns were looked through.
    pub(crate) fn with(&self, wanted: &Wanted) -> duramen::Result<Self> {
        let is_new = |name: &str| wanted.has(name) && !self.wanted.has(name);
        let mut root = self.rows.root_of(&is_new)?;
        root.fields.extend(self.root.fields.iter().cloned());
        // The order in which they first came.
        root.fields.sort_by_key(|field| field.path);
        let (wanted, definition) = (self.wanted.or(wanted), self.definition.clone());
        let columns = TableColumns::new(&root, &self.rows, wanted.declared(definition.as_ref()));
        let (rows, place) = (self.rows.clone(), self.place.clone());
        Ok(Self { rows, columns, place, definition, root, wanted })
    }

    /// The parts of the rows that some filters leave, by the bounds of their columns.
    fn parts_within(&self, filters: &[Expr]) -> duramen::Result<Vec<usize>> {
        let bounds = |filter| Bounds::of(filter, &self.columns);
        let bounds: Vec<_> = filters.iter().filter_map(bounds).collect();
        let mut parts = Vec::new();
        for part in 0..self.rows.parts() {
            let mut is_out = false;
            for bounds in &bounds {
                is_out = is_out || bounds.rule_out(&self.rows, part)?;
            }
            if !is_out {
                parts.push(part);
            }
        }
        Ok(parts)
    }
}

/// Adds the kinds of values that another field has, and so within both.
fn widen(field: &mut ColumnField, other: &ColumnField) {
    field.kinds.insert(other.kinds);
    for field in &mut field.fields {
        if let Some(other) = other.fields.iter().find(|other| other.name == field.name) {
            widen(field, other);
        }
    }
    if let (Some(element), Some(other)) = (&mut field.element, &other.element) {
        widen(element, other);
    }
}

/// Other threads that read what is about to be looked through, from its last part on, as long as
/// this lives.
struct ReadAhead(Arc<AtomicUsize>);

impl ReadAhead {
    fn start(rows: &Columns, wanted: &Wanted, threads: &Handle) -> Self {
        // Parts that nobody has taken.
        let left = Arc::new(AtomicUsize::new(rows.parts()));
        let others = if rows.parts() < SHARED_PARTS_MIN { 0 } else { session::threads() - 1 };
        for _ in 0..others {
            let (rows, wanted, left) = (rows.clone(), wanted.clone(), Arc::clone(&left));
            threads.spawn_blocking(move || {
                let take = |left: usize| (left > 0).then(|| left.saturating_sub(PARTS_AHEAD));
                while let Ok(left) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
                    let parts = left.saturating_sub(PARTS_AHEAD)..left;
                    // What is wrong is found again by who waits.
                    if rows.load(parts, &|name| wanted.has(name)).is_err() {
                        return;
                    }
                }
            });
        }
        Self(left)
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

#[async_trait]
impl TableProvider for Table {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.columns.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let of = (&self.rows, &self.columns);
        let push = |filter: &&Expr| match Bounds::of(filter, &self.columns) {
            None if !Sought::may_be_of(filter, of) => TableProviderFilterPushDown::Unsupported,
            _ => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(push).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let sought = Sought::of(filters, (&self.rows, &self.columns));
        let sought = sought.map_err(failure::external)?;
        let parts = match &sought {
            Some(sought) => (0..sought.rows.parts()).collect(),
            None => self.parts_within(filters).map_err(failure::external)?,
        };
        let all = || (0..self.columns.columns.len()).collect();
        let wanted = projection.cloned().unwrap_or_else(all);
        let columns = wanted.iter().map(|&index| self.columns.columns[index].clone()).collect();
        let schema = Arc::new(self.columns.schema.project(&wanted)?);
        let name = TableName::of(self.place.name.trim_start_matches(OWN)).name;
        let rows = self.rows.clone();
        let mut scan = TableScan::new((rows, columns, name), schema, parts, limit);
        match sought {
            Some(sought) => scan = scan.of_sought(sought),
            None => scan = scan.filtered(filters),
        }
        Ok(Arc::new(scan.over(state.config().target_partitions())))
    }
}
