//! `information_schema`: what `DataFusion` tells of tables, columns, views and functions, and our
//! functions that stand where tables stand, of which it knows the names only.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlanBuilder, ident, lit};

use crate::catalog::{COLLECTIONS, Catalog, DATABASE, Tables};
use crate::failure::external;
use crate::function::rows::{self, Row};
use crate::function::{self, Described};

/// The name of the schema.
pub(crate) const INFORMATION: &str = "information_schema";

/// The tables of one query, and all functions, as tables.
#[derive(Debug)]
pub(crate) struct Information(InformationSchemaProvider);

impl Information {
    pub(crate) fn new(tables: &Arc<Tables>) -> Self {
        let catalogs = MemoryCatalogProviderList::new();
        let catalog = Catalog(Arc::new(tables.for_listing()));
        catalogs.register_catalog(DATABASE.to_owned(), Arc::new(catalog));
        let others = function::of_others().map(|function| (function.name().to_owned(), function));
        let provider = InformationSchemaProvider::new(Arc::new(catalogs));
        Self(provider.with_table_functions(others.collect::<HashMap<_, _>>()))
    }
}

#[async_trait]
impl SchemaProvider for Information {
    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let rows: fn(&Described) -> Vec<Row> = match name.to_ascii_lowercase().as_str() {
            "routines" => |function| vec![routine(function)],
            "parameters" => parameters,
            "views" => return self.views(name).await,
            "columns" => return self.columns(name).await,
            _ => return self.0.table(name).await,
        };
        let Some(others) = self.0.table(name).await? else { return Ok(None) };
        let ours = rows::table(others.schema(), Vec::new(), move || {
            Ok(Box::new(function::described().flat_map(move |function| rows(&function)).map(Ok)))
        });
        let ours = provider_as_source(Arc::new(ours.map_err(external)?));
        let ours = LogicalPlanBuilder::scan(name, ours, None)?.build()?;
        let all = LogicalPlanBuilder::scan(name, provider_as_source(others), None)?.union(ours)?;
        Ok(Some(Arc::new(ViewTable::new(all.build()?, None))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

impl Information {
    /// `DataFusion` tells of all tables here, and of those that are no view without a definition.
    async fn views(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(tables) = self.0.table(name).await? else { return Ok(None) };
        let tables = LogicalPlanBuilder::scan(name, provider_as_source(tables), None)?;
        let views = tables.filter(ident("definition").is_not_null())?.build()?;
        Ok(Some(Arc::new(ViewTable::new(views, None))))
    }

    /// `DataFusion` counts columns from 0, and the standard from 1.
    async fn columns(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = self.0.table(name).await? else { return Ok(None) };
        let schema = columns.schema();
        let told = schema.fields().iter().map(|field| match field.name().as_str() {
            POSITION => (ident(POSITION) + lit(1_u64)).alias(POSITION),
            name => ident(name),
        });
        let told = told.collect::<Vec<_>>();
        let columns = LogicalPlanBuilder::scan(name, provider_as_source(columns), None)?;
        let columns = columns.project(told)?.build()?;
        Ok(Some(Arc::new(ViewTable::new(columns, None))))
    }
}

/// The place of a column in its table.
const POSITION: &str = "ordinal_position";

fn text(value: &str) -> ScalarValue {
    ScalarValue::from(value)
}

/// A function as a row of `routines`.
fn routine(function: &Described) -> Row {
    let named = [DATABASE, COLLECTIONS, function.name].map(text);
    let mut row: Row = [named.clone(), named].concat();
    row.extend([text("FUNCTION"), ScalarValue::from(false), text("TABLE"), text("TABLE")]);
    row.extend([function.description, function.usage].map(text));
    row
}

/// The arguments of a function as rows of `parameters`.
fn parameters(function: &Described) -> Vec<Row> {
    let row = |(name, position): (&&str, u64)| {
        let mut row: Row = [DATABASE, COLLECTIONS, function.name].map(text).into();
        let (name, is_variadic) = match name.strip_suffix("...") {
            Some(name) => (name, true),
            None => (*name, false),
        };
        row.extend([ScalarValue::from(position), text("IN"), text(name), text("String")]);
        row.extend([ScalarValue::Utf8(None), is_variadic.into(), ScalarValue::from(0_u8)]);
        row
    };
    function.parameters.iter().zip(1..).map(row).collect()
}
