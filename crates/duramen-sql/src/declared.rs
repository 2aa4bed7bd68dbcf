//! Columns of tables whose types are declared.
//!
//! A definition is a record of a collection, as a view is one: it has a past, and is backed up and
//! dumped like all else. What SQL writes becomes what is declared; what others wrote is read as it.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field};
use datafusion::common::DFSchema;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::Expr;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo};
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use duramen::{DatabaseSnapshot, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::change::{KEY, check_filled, member, unsupported, wrong_column};
use crate::column_type::{is_json, json_text};
use crate::dialect::Sql;
use crate::failure::shown;
use crate::record_file::Members;
use crate::record_json::{Kind, kind, string};
use crate::zones;

mod array;
mod value;

/// The collection of definitions: the name of the table is the key.
pub(crate) const DEFINITIONS: &str = "duramen/tables";

/// What a column that is declared `NOT NULL` is told for one.
pub(crate) const NOT_NULL: &str = "it is NULL, and the column is declared NOT NULL";

/// Bytes of the text of a type: one that is longer is of arrays too deep inside each other to be
/// gone through.
const TYPE_BYTES_MAX: usize = 128;

/// Plans types, and nothing else.
static TYPES: LazyLock<SessionState> =
    LazyLock::new(|| SessionStateBuilder::new().with_type_planner(Arc::new(zones::Types)).build());

/// The declared columns of a table, in their order.
#[derive(Debug, Default)]
pub(crate) struct Definition {
    pub(crate) columns: Vec<Arc<DeclaredColumn>>,
    /// How many columns were declared before that of the keys, if it was.
    pub(crate) before_key: Option<usize>,
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
#[serde(deny_unknown_fields)]
struct Stored {
    columns: Vec<StoredColumn>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before_key: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
        let mut definition = Self { before_key: stored.before_key, ..Self::default() };
        if stored.before_key.is_some_and(|before| before > stored.columns.len()) {
            return Err("there are fewer columns than before_key says".to_owned());
        }
        for StoredColumn { name, sql, not_null } in stored.columns {
            let added = DeclaredColumn::new(name.clone(), sql).and_then(|column| {
                definition.add(DeclaredColumn { is_required: not_null, ..column })
            });
            added.map_err(|error| format!("column {name:?}: {}", error.message()))?;
        }
        Ok(definition)
    }

    /// Adds a column behind those that there are; `Invalid` for one that cannot be declared.
    pub(crate) fn add(&mut self, column: DeclaredColumn) -> Result<()> {
        let name = &column.name;
        check_filled(name)?;
        let message = match name.as_str() {
            KEY => format!("the column {KEY} has the keys of the records: leave it out"),
            name if member(name) != name => {
                format!("columns such as {name:?} come with the records: leave it out")
            }
            name if self.column(name).is_some() => {
                format!("the column {name:?} is declared twice")
            }
            _ => {
                self.columns.push(column.into());
                return Ok(());
            }
        };
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// The record that it is.
    pub(crate) fn to_json(&self) -> Result<String> {
        let column = |column: &Arc<DeclaredColumn>| StoredColumn {
            name: column.name.clone(),
            sql: column.sql.clone(),
            not_null: column.is_required,
        };
        let columns = self.columns.iter().map(column).collect();
        let stored = Stored { columns, before_key: self.before_key };
        serde_json::to_string(&stored).map_err(|error| {
            Error::new(ErrorKind::Internal, format!("a definition made no JSON: {error}"))
        })
    }

    /// The names of all columns as they were declared, that of the keys among them; none if that
    /// was not declared, or nobody kept where it was.
    pub(crate) fn names(&self) -> Option<Vec<String>> {
        let mut names: Vec<String> = self.columns.iter().map(|of| of.name.clone()).collect();
        names.insert(self.before_key?, KEY.to_owned());
        Some(names)
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

    /// As it is declared.
    pub(crate) fn shown(&self) -> String {
        format!("{} {}", self.name, self.sql)
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
        let value = value.to_string();
        format!("{} does not fit: the column is declared {}", shown(&value), self.sql)
    }
}

/// What values of a type of SQL are read as.
fn data_type(sql: &str) -> Result<DataType> {
    if is_type(sql)
        && let Ok(Expr::Cast(cast)) =
            TYPES.create_logical_expr(&format!("CAST(NULL AS {sql})"), &DFSchema::empty())
        && is_kept(cast.field.data_type())
    {
        return Ok(cast.field.data_type().clone());
    }
    let shown: String = sql.chars().take(TYPE_BYTES_MAX).collect();
    Err(unsupported(&format!(
        "columns of the type {shown}: use TEXT, BOOLEAN, BIGINT or another integer, DOUBLE, \
         DECIMAL(10, 2), DATE, TIME, TIMESTAMP, an array of one such as TEXT[], or JSON"
    )))
}

/// Whether a text is a type and nothing else.
fn is_type(sql: &str) -> bool {
    let dialect = Sql::of(sql);
    let parser = (sql.len() <= TYPE_BYTES_MAX).then(|| Parser::new(&dialect).try_with_sql(sql));
    let Some(Ok(mut parser)) = parser else { return false };
    parser.parse_data_type().is_ok_and(|of| is_in_range(&of))
        && parser.peek_token_ref().token == Token::EOF
}

/// Whether a type has no more digits than there are: the planner would take it for another one.
fn is_in_range(of: &SqlType) -> bool {
    let digits_max = u64::from(DECIMAL256_MAX_PRECISION);
    match of {
        SqlType::Decimal(digits) | SqlType::Numeric(digits) | SqlType::Dec(digits) => match *digits
        {
            ExactNumberInfo::None => true,
            ExactNumberInfo::Precision(all) => all <= digits_max,
            ExactNumberInfo::PrecisionAndScale(all, scale) => {
                all <= digits_max && scale.unsigned_abs() <= all
            }
        },
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(of)
            | ArrayElemTypeDef::SquareBracket(of, _)
            | ArrayElemTypeDef::Parenthesis(of),
        ) => is_in_range(of),
        _ => true,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> String {
        Definition::read(json).map(|_| json.to_owned()).unwrap_err()
    }

    #[test]
    fn definitions_that_are_none_are_refused() {
        for (json, why) in [
            ("", "EOF"),
            ("5", "invalid type"),
            ("{}", "missing field `columns`"),
            (r#"{"columns":{}}"#, "invalid type: map"),
            (r#"{"columns":[null]}"#, "invalid type: null"),
            (r#"{"columns":[{"type":"TEXT"}]}"#, "missing field `name`"),
            (r#"{"columns":[{"name":5,"type":"TEXT"}]}"#, "invalid type"),
            (r#"{"columns":[{"name":"a"}]}"#, "missing field `type`"),
            (r#"{"columns":[{"name":"a","type":"TEXT","not_null":1}]}"#, "expected a boolean"),
            (r#"{"columns":[{"name":"a","type":"TEXT","notnull":true}]}"#, "field `notnull`"),
            (r#"{"columns":[],"keys":"TEXT"}"#, "unknown field `keys`"),
            (r#"{"columns":[],"before_key":1}"#, "there are fewer columns"),
            (r#"{"columns":[],"before_key":-1}"#, "invalid value"),
        ] {
            assert!(refused(json).contains(why), "{json}: {}", refused(json));
        }
        let deep = format!("{{\"columns\":{}", "[".repeat(100_000));
        assert!(refused(&deep).contains("invalid type: sequence"), "{}", refused(&deep));
    }

    #[test]
    fn columns_that_cannot_be_declared_are_refused() {
        let deep = format!("TEXT{}", "[]".repeat(100_000));
        for (name, sql, why) in [
            ("a", "", "column \"a\": this SQL is not supported: columns of the type"),
            ("a", "TEXT)", "columns of the type TEXT)"),
            ("a", "TEXT) --", "columns of the type TEXT) --"),
            ("a", "DECIMAL(266, 2)", "columns of the type DECIMAL(266, 2)"),
            ("a", "DECIMAL(10, 250)[]", "columns of the type DECIMAL(10, 250)[]"),
            ("a", "TEXT'", "columns of the type TEXT'"),
            ("a", &deep, "columns of the type TEXT[][]"),
            ("b", "TEXT", "column \"b\": the column \"b\" is declared twice"),
            ("_key", "TEXT", "the column _key has the keys of the records"),
            ("_version", "BIGINT", "the column \"_version\" is the engine's"),
            ("$._key", "TEXT", "columns such as \"$._key\" come with the records"),
        ] {
            let columns = [("b", "DECIMAL(76, 2)[]"), (name, sql)];
            let columns =
                columns.map(|(name, sql)| format!(r#"{{"name":"{name}","type":"{sql}"}}"#));
            let json = format!(r#"{{"columns":[{}]}}"#, columns.join(","));
            assert!(refused(&json).contains(why), "{name}: {}", refused(&json));
        }
    }
}
