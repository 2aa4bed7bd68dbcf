//! The types of the columns of a file that JSON has no values of, as SQL declares them.

use std::fmt;

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use duramen::{Database, ErrorKind, Result, Transaction};

use crate::change::creation::define;
use crate::declared::{DEFINITIONS, DeclaredColumn, Definition};
use crate::type_names;

/// What the names of the collections of the engine itself begin with.
const ENGINE_PREFIX: &str = "duramen/";

/// The columns of a file of Parquet whose types its records cannot tell: dates, times and decimals,
/// and arrays of these.
#[derive(Debug)]
pub struct FileTypes(Definition);

/// As they are declared: `day DATE, price DECIMAL(10, 2)`.
impl fmt::Display for FileTypes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.columns.iter().map(|column| column.shown());
        f.write_str(&columns.collect::<Vec<_>>().join(", "))
    }
}

impl FileTypes {
    /// Those for a table that is to be made of the file; none if there are none, or something is
    /// declared of the table already.
    pub(super) fn of(schema: &Schema, db: &Database, table: &str) -> Result<Option<Self>> {
        let mut definition = Definition::default();
        for field in schema.fields() {
            let Some(sql) = declared(field) else { continue };
            let name = field.name().clone();
            // Columns of the engine, and types that cannot be declared, come as they are found.
            let _ = DeclaredColumn::new(name, sql).and_then(|column| definition.add(column));
        }
        let is_declared = match db.collection(DEFINITIONS) {
            Ok(definitions) => definitions.get(table)?.is_some(),
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        let is_free = !is_declared && !table.starts_with(ENGINE_PREFIX);
        Ok((is_free && !definition.columns.is_empty()).then_some(Self(definition)))
    }

    /// Declares them for the table, with what else a transaction does.
    pub fn declare(&self, db: &Database, table: &str, transaction: &mut Transaction) -> Result<()> {
        define(db, table, Some(&self.0), transaction)
    }
}

/// The type of a column as it has to be declared; none if its values tell it.
fn declared(field: &Field) -> Option<String> {
    match field.data_type() {
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Some("TIMESTAMP(9)".to_owned()),
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => {
            Some("TIMESTAMP(9) WITH TIME ZONE".to_owned())
        }
        DataType::List(item) | DataType::LargeList(item) => Some(format!("{}[]", declared(item)?)),
        DataType::Dictionary(_, values) => {
            declared(&Field::new(field.name(), values.as_ref().clone(), true))
        }
        other if other.is_temporal() || other.is_decimal() => Some(type_names::of_field(field)),
        _ => None,
    }
}
