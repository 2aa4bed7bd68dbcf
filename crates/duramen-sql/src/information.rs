//! `information_schema`: what `DataFusion` tells of tables, columns, views and functions, and our
//! functions that stand where tables stand, of which it knows the names only. Types of columns have
//! the names of SQL.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::catalog::information_schema::InformationSchemaProvider;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::datasource::{MemTable, ViewTable, provider_as_source};
use datafusion::logical_expr::{
    ColumnarValue, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, ident, lit,
};

use crate::catalog::{COLLECTIONS, Catalog, DATABASE, Tables};
use crate::change::OWN;
use crate::failure::external;
use crate::function::rows::{self, Row};
use crate::function::{self, Described};
use crate::type_names;

/// The name of the schema.
pub(crate) const INFORMATION: &str = "information_schema";

/// The tables of one query, and all functions, as tables.
#[derive(Debug)]
pub(crate) struct Information {
    provider: InformationSchemaProvider,
    catalog: Arc<Catalog>,
}

/// The types of columns, by their schemas, tables and names.
type Types = BTreeMap<[String; 3], String>;

impl Information {
    pub(crate) fn new(tables: &Arc<Tables>) -> Self {
        let catalogs = MemoryCatalogProviderList::new();
        let catalog = Arc::new(Catalog(Arc::new(tables.for_listing())));
        catalogs.register_catalog(DATABASE.to_owned(), Arc::clone(&catalog) as Arc<_>);
        let others = function::of_others().map(|function| (function.name().to_owned(), function));
        let provider = InformationSchemaProvider::new(Arc::new(catalogs));
        let provider = provider.with_table_functions(others.collect::<HashMap<_, _>>());
        Self { provider, catalog }
    }
}

#[async_trait]
impl SchemaProvider for Information {
    fn table_names(&self) -> Vec<String> {
        self.provider.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let rows: fn(&Described) -> Vec<Row> = match name.to_ascii_lowercase().as_str() {
            "routines" => |function| vec![routine(function)],
            "parameters" => parameters,
            "views" => return self.views(name).await,
            "columns" => return self.columns(name).await,
            _ => return self.provider.table(name).await,
        };
        let Some(others) = self.provider.table(name).await? else { return Ok(None) };
        let ours = rows::table(others.schema(), Vec::new(), move || {
            Ok(Box::new(function::described().flat_map(move |function| rows(&function)).map(Ok)))
        });
        let ours = provider_as_source(Arc::new(ours.map_err(external)?));
        let ours = LogicalPlanBuilder::scan(name, ours, None)?.build()?;
        // Some functions stand for what nobody calls by a name.
        let is_named = ident("specific_name").not_like(lit(format!("{OWN}%")));
        let others = LogicalPlanBuilder::scan(name, provider_as_source(others), None)?;
        let all = others.filter(is_named)?.union(ours)?;
        Ok(Some(Arc::new(ViewTable::new(all.build()?, None))))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.provider.table_exist(name)
    }
}

impl Information {
    /// The types of all columns there are.
    async fn types(&self) -> Result<Types> {
        let mut types = Types::new();
        for schema in self.catalog.schema_names().into_iter().filter(|name| name != INFORMATION) {
            let Some(tables) = self.catalog.schema(&schema) else { continue };
            for name in tables.table_names() {
                let Some(table) = tables.table(&name).await? else { continue };
                for field in table.schema().fields() {
                    let column = [schema.clone(), name.clone(), field.name().clone()];
                    types.insert(column, type_names::of_field(field));
                }
            }
        }
        Ok(types)
    }

    /// `DataFusion` tells of all tables here, and of those that are no view without a definition.
    async fn views(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(tables) = self.provider.table(name).await? else { return Ok(None) };
        let tables = LogicalPlanBuilder::scan(name, provider_as_source(tables), None)?;
        let views = tables.filter(ident("definition").is_not_null())?.build()?;
        Ok(Some(Arc::new(ViewTable::new(views, None))))
    }

    /// `DataFusion` counts columns from 0, and the standard from 1; and it has types of Arrow.
    async fn columns(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(columns) = self.provider.table(name).await? else { return Ok(None) };
        let schema = columns.schema();
        let type_name = ScalarUDF::new_from_impl(TypeName::of(self.types().await?));
        let told = schema.fields().iter().map(|field| match field.name().as_str() {
            POSITION => (ident(POSITION) + lit(1_u64)).alias(POSITION),
            TYPE => type_name.call(OF_TYPE.map(ident).to_vec()).alias(TYPE),
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

/// The type of a column, and what tells which one it is.
const TYPE: &str = "data_type";
const OF_TYPE: [&str; 4] = ["table_schema", "table_name", "column_name", TYPE];

/// The type of a column of the database; that of another one is as it was.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeName {
    types: Arc<Types>,
    signature: Signature,
}

impl TypeName {
    fn of(types: Types) -> Self {
        let signature = Signature::any(OF_TYPE.len(), Volatility::Immutable);
        Self { types: Arc::new(types), signature }
    }
}

impl ScalarUDFImpl for TypeName {
    fn name(&self) -> &'static str {
        "type_name"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter().map(|arg| {
            Ok(cast(&arg.to_array(args.number_rows)?, &DataType::Utf8)?.as_string::<i32>().clone())
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let [schemas, tables, names, types] = columns.as_slice() else {
            return internal_err!("a type of {} columns", columns.len());
        };
        let found = (0..args.number_rows).map(|row| {
            let column = [schemas, tables, names].map(|of| of.value(row).to_owned());
            self.types.get(&column).map_or(types.value(row), String::as_str)
        });
        Ok(ColumnarValue::Array(Arc::new(found.map(Some).collect::<StringArray>())))
    }
}

/// What `DESCRIBE` answers.
pub(crate) fn described(of: &Schema, shown: SchemaRef) -> Result<LogicalPlan> {
    let fields = of.fields().iter();
    let rows = fields.map(|field| {
        let is_nullable = if field.is_nullable() { "YES" } else { "NO" };
        [field.name().clone(), type_names::of_field(field), is_nullable.to_owned()]
    });
    let rows: Vec<[String; 3]> = rows.collect();
    let columns = (0..3).map(|column| {
        let texts = rows.iter().map(|row| Some(row[column].as_str()));
        Arc::new(texts.collect::<StringArray>()) as ArrayRef
    });
    let batch = RecordBatch::try_new(Arc::clone(&shown), columns.collect())?;
    let table = provider_as_source(Arc::new(MemTable::try_new(shown, vec![vec![batch]])?));
    LogicalPlanBuilder::scan("described", table, None)?.build()
}

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
