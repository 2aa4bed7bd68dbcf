//! A collection, or an array of a document, as a table.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use duramen::Columns;

use crate::column_type::TableColumns;
use crate::failure;
use crate::pruning::Bounds;
use crate::scan::TableScan;

/// Rows at a revision, by column.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) rows: Columns,
    pub(crate) columns: TableColumns,
    pub(crate) place: TablePlace,
}

/// Where a table is found again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TablePlace {
    /// The document that has the array, if it is one.
    pub(crate) document: Option<String>,
    /// The name of the collection or the path of the array, with what it is as of.
    pub(crate) name: String,
}

impl Table {
    /// Looks through the columns for what they have.
    pub(crate) fn new(rows: Columns, place: TablePlace) -> duramen::Result<Self> {
        let columns = TableColumns::new(&rows.root()?, &rows);
        Ok(Self { rows, columns, place })
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
        let push = |filter: &&Expr| match Bounds::of(filter, &self.columns) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
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
        let bounds: Vec<_> =
            filters.iter().filter_map(|filter| Bounds::of(filter, &self.columns)).collect();
        let mut parts = Vec::new();
        for part in 0..self.rows.parts() {
            let mut is_out = false;
            for bounds in &bounds {
                is_out = is_out || bounds.rule_out(&self.rows, part).map_err(failure::external)?;
            }
            if !is_out {
                parts.push(part);
            }
        }
        let all = || (0..self.columns.columns.len()).collect();
        let wanted = projection.cloned().unwrap_or_else(all);
        let columns = wanted.iter().map(|&index| self.columns.columns[index].clone()).collect();
        let schema = Arc::new(self.columns.schema.project(&wanted)?);
        let scan = TableScan::new((self.rows.clone(), columns), schema, parts, limit);
        Ok(Arc::new(scan.over(state.config().target_partitions())))
    }
}
