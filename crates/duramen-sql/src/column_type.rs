//! The Arrow type of a column, by the kinds of values that it has.
//!
//! One kind has its own type, integers and other numbers together are floats, objects are structs
//! and arrays lists. Whatever else comes together is JSON text.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use duramen::{ColumnField, ColumnKinds, Columns, KeyKind, PathId};

use crate::table::Wanted;

const NUMBERS: ColumnKinds = ColumnKinds::INT.or(ColumnKinds::FLOAT).or(ColumnKinds::DIGITS);

/// The metadata of a field that says what its values mean, as Arrow has it.
const EXTENSION_TYPE_NAME_KEY: &str = "ARROW:extension:name";

/// What Arrow calls text that is JSON (a canonical extension type).
const JSON_TEXT: &str = "arrow.json";

/// Whether a column has JSON text.
pub(crate) fn is_json(field: &Field) -> bool {
    field.extension_type_name() == Some(JSON_TEXT)
}

/// What the values of a column are read as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnType {
    Bool,
    Int,
    Float,
    Text,
    Json,
    Struct(Vec<Column>),
    List(Box<Column>),
}

/// A column of a table, or within one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) path: PathId,
    pub(crate) kind: ColumnType,
    pub(crate) field: Arc<Field>,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TableColumn {
    Key(KeyKind),
    Version,
    Revision,
    Timestamp,
    ValidFrom,
    ValidTo,
    ValidFromTime,
    ValidToTime,
    Value(Column),
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableColumns {
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) schema: SchemaRef,
}

/// The type of times.
pub(crate) fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

impl TableColumns {
    /// Of records or their versions, with what the engine says of each, or of elements.
    pub(crate) fn new(root: &ColumnField, rows: &Columns) -> Self {
        let mut columns = Vec::new();
        if let Some(keys) = rows.key_kind() {
            let known = [TableColumn::Version, TableColumn::Revision, TableColumn::Timestamp];
            columns.push(TableColumn::Key(keys));
            columns.extend(known);
        }
        if rows.are_versions() {
            columns.extend([TableColumn::ValidFrom, TableColumn::ValidTo]);
            columns.extend([TableColumn::ValidFromTime, TableColumn::ValidToTime]);
        }
        let is_object = |kinds: ColumnKinds| kinds.is_within(ColumnKinds::OBJECT);
        let others = root.kinds.without(ColumnKinds::NULL);
        if !is_object(others) {
            let mut whole = root.clone();
            "_value".clone_into(&mut whole.name);
            columns.push(TableColumn::Value(Column::of(&whole)));
        }
        columns.extend(root.fields.iter().map(|field| TableColumn::Value(Column::of(field))));
        let mut names = HashSet::new();
        for column in &mut columns {
            while !names.insert(column.field().name().clone()) {
                column.qualify();
            }
        }
        let fields: Fields = columns.iter().map(TableColumn::field).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)) }
    }
}

impl TableColumn {
    pub(crate) fn field(&self) -> Arc<Field> {
        let field = |name: &str, of: DataType| Arc::new(Field::new(name, of, false));
        let end = |name: &str, of: DataType| Arc::new(Field::new(name, of, true));
        match self {
            Self::Key(KeyKind::Text | KeyKind::Uuid) => field("_key", DataType::Utf8View),
            Self::Key(KeyKind::I64) => field("_key", DataType::Int64),
            Self::Key(KeyKind::U64) => field("_key", DataType::UInt64),
            Self::Version => field("_version", DataType::Int64),
            Self::Revision => field("_revision", DataType::Int64),
            Self::Timestamp => field("_timestamp", timestamp()),
            Self::ValidFrom => field("_valid_from", DataType::Int64),
            Self::ValidTo => end("_valid_to", DataType::Int64),
            Self::ValidFromTime => field("_valid_from_time", timestamp()),
            Self::ValidToTime => end("_valid_to_time", timestamp()),
            Self::Value(column) => Arc::clone(&column.field),
        }
    }

    /// Whether a query may need it; what the engine says of rows is always there.
    pub(crate) fn is_wanted(&self, wanted: &Wanted) -> bool {
        match self {
            Self::Value(column) => wanted.has(column.field.name()),
            _ => true,
        }
    }

    /// Gives a field another name than that of a column before it.
    fn qualify(&mut self) {
        if let Self::Value(column) = self {
            let name = format!("$.{}", column.field.name());
            column.field = Arc::new(column.field.as_ref().clone().with_name(name));
        }
    }
}

impl Column {
    fn of(found: &ColumnField) -> Self {
        let kind = ColumnType::of(found);
        let mut field = Field::new(&found.name, kind.data_type(), true);
        if matches!(kind, ColumnType::Json) {
            let known = (EXTENSION_TYPE_NAME_KEY.to_owned(), JSON_TEXT.to_owned());
            field = field.with_metadata([known].into());
        }
        Self { path: found.path, kind, field: Arc::new(field) }
    }
}

impl ColumnType {
    fn of(field: &ColumnField) -> Self {
        let kinds = field.kinds.without(ColumnKinds::NULL);
        let is = |of: ColumnKinds| !kinds.is_empty() && kinds.is_within(of);
        match &field.element {
            _ if is(ColumnKinds::BOOL) => Self::Bool,
            _ if is(ColumnKinds::INT) => Self::Int,
            _ if is(NUMBERS) => Self::Float,
            _ if is(ColumnKinds::TEXT) => Self::Text,
            _ if is(ColumnKinds::OBJECT) && !field.fields.is_empty() => {
                Self::Struct(field.fields.iter().map(Column::of).collect())
            }
            Some(element) if is(ColumnKinds::ARRAY) => {
                let mut element = (**element).clone();
                "item".clone_into(&mut element.name);
                Self::List(Box::new(Column::of(&element)))
            }
            _ => Self::Json,
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Text | Self::Json => DataType::Utf8View,
            Self::Struct(columns) => {
                DataType::Struct(columns.iter().map(|column| Arc::clone(&column.field)).collect())
            }
            Self::List(element) => DataType::List(Arc::clone(&element.field)),
        }
    }
}
