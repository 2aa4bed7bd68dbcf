//! Columns of tables whose types are declared.
//!
//! A definition is a record of a collection, as a view is one: it has a past, and is backed up and
//! dumped like all else. What SQL writes becomes what is declared; what others wrote is read as it.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::DFSchema;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::Expr;
use duramen::{DatabaseSnapshot, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::change::{unsupported, wrong_column};
use crate::column_type::{is_json, json_text};
use crate::record_file::Members;
use crate::record_json::{Kind, kind, string};

mod array;
mod value;

/// The collection of definitions: the name of the table is the key.
pub(crate) const DEFINITIONS: &str = "duramen/tables";

/// What a column that is declared `NOT NULL` is told for one.
pub(crate) const NOT_NULL: &str = "it is NULL, and the column is declared NOT NULL";

/// Plans types, and nothing else.
static TYPES: LazyLock<SessionState> = LazyLock::new(|| SessionStateBuilder::new().build());

/// The declared columns of a table, in their order.
#[derive(Debug, Default)]
pub(crate) struct Definition {
    pub(crate) columns: Vec<Arc<DeclaredColumn>>,
}

/// A column with a declared type.
#[derive(Debug, PartialEq)]
pub(crate) struct DeclaredColumn {
    pub(crate) name: String,
    /// The type as SQL has it.
    sql: String,
    /// Whether it is `NOT NULL`.
    pub(crate) is_required: bool,
    pub(crate) field: Arc<Field>,
}

/// A definition as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored {
    columns: Vec<StoredColumn>,
}

#[derive(Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(rename = "type")]
    sql: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    not_null: bool,
}

impl Definition {
    /// That of a table, if it has one.
    pub(crate) fn of(snapshot: &DatabaseSnapshot, table: &str) -> Result<Option<Arc<Self>>> {
        let definitions = match snapshot.collection(DEFINITIONS) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            definitions => definitions?,
        };
        let Some(record) = definitions.get(table)? else { return Ok(None) };
        let definition = Self::read(&record.json).map_err(|why| {
            let message = format!(
                "the record {table:?} of {DEFINITIONS:?} declares no columns: {why}: put one that \
                 does, or delete it"
            );
            Error::new(ErrorKind::Invalid, message)
        })?;
        Ok(Some(Arc::new(definition)))
    }

    fn read(json: &str) -> Result<Self, String> {
        let stored: Stored = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let column = |stored: StoredColumn| -> Result<_, String> {
            let StoredColumn { name, sql, not_null } = stored;
            let column =
                DeclaredColumn::new(name, sql).map_err(|error| error.message().to_owned())?;
            Ok(Arc::new(DeclaredColumn { is_required: not_null, ..column }))
        };
        Ok(Self { columns: stored.columns.into_iter().map(column).collect::<Result<_, _>>()? })
    }

    /// The record that it is.
    pub(crate) fn to_json(&self) -> Result<String> {
        let column = |column: &Arc<DeclaredColumn>| StoredColumn {
            name: column.name.clone(),
            sql: column.sql.clone(),
            not_null: column.is_required,
        };
        let stored = Stored { columns: self.columns.iter().map(column).collect() };
        serde_json::to_string(&stored).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("a definition made no JSON: {error}"))
        })
    }

    pub(crate) fn column(&self, name: &str) -> Option<&DeclaredColumn> {
        self.columns.iter().find(|column| column.name == name).map(Arc::as_ref)
    }

    /// The first column that is `NOT NULL` and not among some.
    pub(crate) fn missing(&self, is_given: impl Fn(&str) -> bool) -> Option<&str> {
        let required = self.columns.iter().filter(|column| column.is_required);
        required.map(|column| column.name.as_str()).find(|name| !is_given(name))
    }

    /// A record as the table keeps it. Where all values come as text, that of a column of JSON is
    /// JSON.
    pub(crate) fn record(&self, json: &[u8], is_text: bool) -> Result<Vec<u8>> {
        let Members(members) = serde_json::from_slice(json).map_err(|error| {
            Error::new(ErrorKind::Invalid, format!("it is no JSON object: {error}"))
        })?;
        let mut kept: Vec<(&str, String)> = Vec::with_capacity(members.len());
        for (name, value) in &members {
            let json = value.get().to_owned();
            let value = match self.column(name) {
                Some(column) => {
                    let json = if is_text { column.json_in(json) } else { Ok(json) };
                    let kept = json.and_then(|json| column.kept(Some(json)));
                    kept.map_err(|why| wrong_column(name, why))?
                }
                None => Some(json),
            };
            kept.extend(value.map(|value| (name.as_str(), value)));
        }
        let is_given = |name: &str| kept.iter().any(|(given, _)| *given == name);
        if let Some(missing) = self.missing(is_given) {
            return Err(wrong_column(missing, NOT_NULL));
        }
        let members: Vec<String> =
            kept.iter().map(|(name, value)| format!("{}:{value}", string(name))).collect();
        Ok(format!("{{{}}}", members.join(",")).into_bytes())
    }
}

impl DeclaredColumn {
    /// One that may be NULL; `Unsupported` if there is no such type for columns.
    pub(crate) fn new(name: String, sql: String) -> Result<Self> {
        let is_json = ["JSON", "JSONB"].iter().any(|json| sql.eq_ignore_ascii_case(json));
        let field = if is_json {
            json_text(Field::new(&name, DataType::Utf8View, true))
        } else {
            Field::new(&name, data_type(&sql)?, true)
        };
        Ok(Self { name, sql, is_required: false, field: Arc::new(field) })
    }

    /// The JSON in a text, if that is what the column has.
    fn json_in(&self, json: String) -> Result<String, String> {
        if !is_json(&self.field) || kind(&json) != Kind::Text {
            return Ok(json);
        }
        let text: String = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        let found = serde_json::from_str::<&RawValue>(&text).map(|found| found.get().to_owned());
        found.map_err(|_| self.refused(json))
    }

    /// Why a value does not fit.
    fn refused(&self, value: impl std::fmt::Display) -> String {
        format!("{value} does not fit: the column is declared {}", self.sql)
    }
}

/// What values of a type of SQL are read as.
fn data_type(sql: &str) -> Result<DataType> {
    let planned = TYPES.create_logical_expr(&format!("CAST(NULL AS {sql})"), &DFSchema::empty());
    match planned {
        Ok(Expr::Cast(cast)) if is_kept(cast.field.data_type()) => {
            Ok(cast.field.data_type().clone())
        }
        _ => Err(unsupported(&format!(
            "columns of the type {sql}: use TEXT, BOOLEAN, BIGINT or another integer, DOUBLE, \
             DECIMAL(10, 2), DATE, TIME, TIMESTAMP, an array of one such as TEXT[], or JSON"
        ))),
    }
}

/// Whether values of a type can be records' values and come back.
fn is_kept(of: &DataType) -> bool {
    match of {
        DataType::Boolean
        | DataType::Utf8View
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(..) => true,
        DataType::List(item) => is_kept(item.data_type()),
        other => other.is_numeric(),
    }
}
