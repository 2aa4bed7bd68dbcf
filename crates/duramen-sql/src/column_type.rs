//! The Arrow type of a column, by the kinds of values that it has.
//!
//! One kind has its own type, integers and other numbers together are floats, objects are structs
//! and arrays lists. Whatever else comes together is JSON text.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use duramen::{ColumnField, ColumnKinds, Columns, KeyKind, PathId};

use crate::declared::DeclaredColumn;
use crate::table::Wanted;
use crate::zones;

const NUMBERS: ColumnKinds = ColumnKinds::INT.or(ColumnKinds::FLOAT).or(ColumnKinds::DIGITS);

/// The metadata of a field that says what its values mean, as Arrow has it.
const EXTENSION_TYPE_NAME_KEY: &str = "ARROW:extension:name";

/// What Arrow calls text that is JSON (a canonical extension type).
const JSON_TEXT: &str = "arrow.json";

/// Whether a column has JSON text.
pub(crate) fn is_json(field: &Field) -> bool {
    field.extension_type_name() == Some(JSON_TEXT)
}

/// The field of a column that has it.
pub(crate) fn json_text(field: Field) -> Field {
    field.with_metadata([(EXTENSION_TYPE_NAME_KEY.to_owned(), JSON_TEXT.to_owned())].into())
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

impl Column {
    /// A field of the objects that it has.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        let ColumnType::Struct(fields) = &self.kind else { return None };
        fields.iter().find(|field| field.field.name() == name)
    }
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
    Declared(Declared),
}

/// A column whose values are of another type than what is declared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Declared {
    pub(crate) column: Arc<DeclaredColumn>,
    /// What records have; none if no record has it.
    pub(crate) found: Option<Column>,
    /// It may be called otherwise than it is declared.
    field: Arc<Field>,
}

/// The columns of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableColumns {
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) schema: SchemaRef,
}

/// The type of times.
pub(crate) fn timestamp() -> DataType {
    zones::micros(true)
}

impl TableColumns {
    /// Of records or their versions, with what the engine says of each, or of elements. Those that
    /// are declared come before others.
    pub(crate) fn new<'d>(
        root: &ColumnField,
        rows: &Columns,
        declared: impl Iterator<Item = &'d Arc<DeclaredColumn>>,
    ) -> Self {
        Self::of(root, (rows.key_kind(), rows.are_versions()), declared)
    }

    /// The same of rows that are records if they have keys, and may be versions.
    pub(crate) fn of<'d>(
        root: &ColumnField,
        (keys, are_versions): (Option<KeyKind>, bool),
        declared: impl Iterator<Item = &'d Arc<DeclaredColumn>>,
    ) -> Self {
        let mut columns = Vec::new();
        if let Some(keys) = keys {
            let known = [TableColumn::Version, TableColumn::Revision, TableColumn::Timestamp];
            columns.push(TableColumn::Key(keys));
            columns.extend(known);
        }
        if are_versions {
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
        let mut others: Vec<&ColumnField> = root.fields.iter().collect();
        for column in declared {
            let at = others.iter().position(|field| field.name == column.name);
            columns.push(TableColumn::declared(column, at.map(|at| others.remove(at))));
        }
        columns.extend(others.into_iter().map(|field| TableColumn::Value(Column::of(field))));
        let mut names = HashSet::new();
        for column in &mut columns {
            while !names.insert(column.field().name().clone()) {
                column.qualify();
            }
        }
        let fields: Fields = columns.iter().map(TableColumn::field).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)) }
    }

    /// What the values of a field are read as, if there is a column of them.
    pub(crate) fn kind(&self, name: &str) -> Option<&ColumnType> {
        self.columns.iter().find_map(|column| match column {
            TableColumn::Value(column) if column.field.name() == name => Some(&column.kind),
            _ => None,
        })
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
            Self::Declared(column) => Arc::clone(&column.field),
        }
    }

    /// A declared column: as it was found where that is what is declared, so that all that is known
    /// of columns holds of it.
    fn declared(column: &Arc<DeclaredColumn>, found: Option<&ColumnField>) -> Self {
        let field = Arc::clone(&column.field);
        let declared =
            |found| Self::Declared(Declared { column: Arc::clone(column), found, field });
        let Some(found) = found else { return declared(None) };
        match ColumnType::as_declared(found, &column.field) {
            Ok(kind) => {
                let field = Arc::clone(&column.field);
                Self::Value(Column { path: found.path, kind, field })
            }
            Err(kind) => declared(Some(Column { kind, ..Column::of(found) })),
        }
    }

    /// Whether a query may need it; what the engine says of rows is always there.
    pub(crate) fn is_wanted(&self, wanted: &Wanted) -> bool {
        match self {
            Self::Value(column) => wanted.has(column.field.name()),
            Self::Declared(column) => wanted.has(column.field.name()),
            _ => true,
        }
    }

    /// Gives a field another name than that of a column before it.
    fn qualify(&mut self) {
        let field = match self {
            Self::Value(column) => &mut column.field,
            Self::Declared(column) => &mut column.field,
            _ => return,
        };
        let name = format!("$.{}", field.name());
        *field = Arc::new(field.as_ref().clone().with_name(name));
    }
}

impl Column {
    fn of(found: &ColumnField) -> Self {
        let kind = ColumnType::of(found);
        let mut field = Field::new(&found.name, kind.data_type(), true);
        if matches!(kind, ColumnType::Json) {
            field = json_text(field);
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

    /// What a column is read as that has the declared type so, else what it is made of.
    fn as_declared(found: &ColumnField, declared: &Field) -> Result<Self, Self> {
        let kinds = found.kinds.without(ColumnKinds::NULL);
        let (kind, to) = (Self::of(found), declared.data_type());
        Ok(match to {
            _ if is_json(declared) => Self::Json,
            DataType::Boolean if kinds.is_within(ColumnKinds::BOOL) => Self::Bool,
            DataType::Int64 if kinds.is_within(ColumnKinds::INT) => Self::Int,
            DataType::Float64 if kinds.is_within(NUMBERS) => Self::Float,
            DataType::Utf8View if kinds.is_within(ColumnKinds::TEXT) => Self::Text,
            DataType::List(_) if kind.data_type() == *to => kind,
            _ => return Err(kind.source(to)),
        })
    }

    /// What values are read as that are made values of a type. Of numbers with a fraction no digit
    /// is lost as JSON text.
    fn source(self, to: &DataType) -> Self {
        match self {
            Self::Int if to.is_numeric() => Self::Int,
            Self::Float if *to == DataType::Float32 => Self::Float,
            Self::Text if !to.is_nested() => Self::Text,
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
