//! `CREATE TABLE`: a collection with its definition, or with the records that a query finds.

use std::collections::HashSet;

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, ColumnDef, ColumnOption, CreateTable, CreateTableOptions, DataType,
    ExactNumberInfo, Expr, IndexColumn, Query, TableConstraint,
};
use duramen::{
    Collection, CommitOptions, Database, DocumentOptions, Error, ErrorKind, IndexDefinition, Key,
    KeyKind, Result, Transaction,
};

use super::definition::path;
use super::insert::{self, Existing};
use super::{KEY, Staged, collection_name, unsupported};
use crate::answer::Answer;
use crate::declared::{DEFINITIONS, DeclaredColumn, Definition};
use crate::record_json::RecordWriter;
use crate::session::Session;
use crate::statement::Places;

/// A table that is to be made.
struct New {
    name: String,
    keys: KeyKind,
    /// Whether it is no error if there is one.
    may_exist: bool,
    /// None if no column is declared.
    definition: Option<Definition>,
    /// Unique ones.
    indexes: Vec<IndexDefinition>,
}

/// What became of a table that was to be made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    New,
    /// It was dropped, and goes on.
    Again,
    /// It was there already, as it may be.
    Already,
}

impl Session {
    pub(super) fn create_table(&self, table: &CreateTable, places: &Places) -> Result<Answer<'_>> {
        let new = New::of(table)?;
        if self.tables(&Places::default()).view(&new.name)?.is_some() {
            let message = format!(
                "there is a view {:?} already: drop it, or give the table another name",
                new.name
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        if let Some(query) = &table.query {
            return self.create_filled(new, query, places);
        }
        let mut transaction = self.db().transaction();
        let made = self.make(&new, &mut transaction)?;
        let (name, keys) = (&new.name, new.keys);
        match made {
            Made::Already => return Self::done(&format!("there is {name:?} already")),
            Made::New | Made::Again => transaction.commit(&CommitOptions::default())?,
        };
        Self::done(&match made {
            Made::Again => format!("the collection {name:?} goes on, empty"),
            _ => format!("made the collection {name:?} with keys of the type {keys}"),
        })
    }

    /// Makes a table of what a query finds, in one commit.
    fn create_filled(&self, mut new: New, query: &Query, places: &Places) -> Result<Answer<'_>> {
        // It is planned before the catalogue is held, which all others wait for who make one.
        let (answer, given) = insert::read(self, (query, places))?;
        let columns = insert::columns_found(&answer);
        insert::check_columns(&columns, &format!("CREATE TABLE ... AS SELECT ... AS {KEY}"))?;
        new.keys = kind_of_keys(&answer)?;
        let mut transaction = self.db().transaction();
        let (name, keys) = (&new.name, new.keys);
        if self.make(&new, &mut transaction)? == Made::Already {
            return Self::done(&format!("there is {name:?} already"));
        }
        let writer = RecordWriter::new(keys, None, &columns).with_numbers(&given);
        let into = (name.as_str(), &mut transaction);
        let mut staged = Staged::new(self, places);
        let found = (Existing::Refused, None);
        insert::fill(answer, &writer, found, into, &mut staged)?;
        transaction.commit(&CommitOptions::default())?;
        let rows = staged.rows;
        let records = if rows == 1 { "1 record".to_owned() } else { format!("{rows} records") };
        Self::done(&format!(
            "made the collection {name:?} with keys of the type {keys}, and {records} in it"
        ))
    }

    /// Makes a collection with its definition, or has a deleted one go on without records.
    fn make(&self, new: &New, transaction: &mut Transaction) -> Result<Made> {
        let New { name, keys, may_exist, definition, indexes } = new;
        let made = if let Some(deleted) = self.dropped(name)? {
            go_on(&deleted, (*keys, indexes), transaction)?;
            Made::Again
        } else {
            match transaction.create_document(name) {
                Err(error) if error.kind() == ErrorKind::Conflict && *may_exist => {
                    return Ok(Made::Already);
                }
                made => made?,
            }
            declare(transaction, (name, *keys), indexes)?;
            Made::New
        };
        define(self.db(), name, definition.as_ref(), transaction)?;
        Ok(made)
    }
}

/// Has a deleted collection go on without records, with these unique indexes in place of its own.
fn go_on(
    deleted: &Collection,
    (keys, indexes): (KeyKind, &[IndexDefinition]),
    transaction: &mut Transaction,
) -> Result<()> {
    let (name, found) = (deleted.name(), deleted.key_kind());
    if found != keys {
        let message = format!(
            "the deleted collection {name:?} has keys of the type {found}: create the table with \
             these, or rename the collection to free the name"
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let revision = deleted.document().head_revision()?;
    let known = deleted.indexes()?;
    // It has no records, so there is nothing that they could refuse.
    let is_known = |index: &IndexDefinition| {
        let is_same = |other: &IndexDefinition| other.is_unique && other.paths == index.paths;
        known.iter().any(is_same)
    };
    let mut names: HashSet<String> = known.iter().map(|index| index.name.clone()).collect();
    for index in indexes.iter().filter(|index| !is_known(index)) {
        let name = free_name(&index.name, |name| names.contains(name));
        names.insert(name.clone());
        deleted.create_index(&IndexDefinition { name, ..index.clone() })?;
    }
    // What was declared of the values before is not, of these: once they are there.
    let is_declared = |index: &IndexDefinition| indexes.iter().any(|new| new.paths == index.paths);
    for index in known.iter().filter(|index| index.is_unique && !is_declared(index)) {
        transaction.drop_index(name, &index.name)?;
    }
    // Somebody else may have gone on with it meanwhile.
    transaction.expect(name, revision)?;
    transaction.put(name, b"{}")
}

/// A name for an index that none has: another one has it with a number.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{name}_{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_default()
}

/// Says that a document that is being made is a collection.
fn declare(
    transaction: &mut Transaction,
    (name, keys): (&str, KeyKind),
    indexes: &[IndexDefinition],
) -> Result<()> {
    let (collection, indexes) = (Some(keys), indexes.iter().cloned().collect());
    let declared = DocumentOptions { collection, indexes, ..DocumentOptions::default() };
    transaction.declare(name, &declared)
}

/// Keeps the definition of a table in place of any that it has.
pub(crate) fn define(
    db: &Database,
    name: &str,
    definition: Option<&Definition>,
    transaction: &mut Transaction,
) -> Result<()> {
    let key = Key::from(name);
    if let Some(definition) = definition {
        match transaction.create_document(DEFINITIONS) {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            made => {
                made?;
                declare(transaction, (DEFINITIONS, KeyKind::Text), &[])?;
            }
        }
        return transaction.put_record(DEFINITIONS, &key, definition.to_json()?.as_bytes());
    }
    let known = match db.snapshot().collection(DEFINITIONS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        definitions => definitions?.get(name)?,
    };
    if known.is_some() {
        transaction.delete_records(DEFINITIONS, &[key])?;
    }
    Ok(())
}

/// Whether a table can be made without a database that has something; refuses one that cannot be
/// made in any.
pub(crate) fn check(table: &CreateTable) -> Result<bool> {
    let new = New::of(table)?;
    Database::memory()?.create_collection(&new.name, new.keys)?;
    Ok(table.query.is_none())
}

impl New {
    fn of(table: &CreateTable) -> Result<Self> {
        check_clauses(table)?;
        let name = collection_name(&table.name)?;
        let mut new = Self {
            name,
            keys: KeyKind::Text,
            may_exist: table.if_not_exists,
            definition: None,
            indexes: Vec::new(),
        };
        let mut definition = Definition::default();
        for column in &table.columns {
            if column.name.value == KEY {
                new.keys = key_kind(&column.data_type)?;
                definition.before_key = Some(definition.columns.len());
            }
            let is_required = new.take_options(column)?;
            if column.name.value != KEY {
                check_places(column)?;
                let (name, sql) = (column.name.value.clone(), column.data_type.to_string());
                let mut column = DeclaredColumn::new(name, sql)?;
                column.is_required = is_required;
                definition.add(column)?;
            }
        }
        for constraint in &table.constraints {
            new.take_constraint(constraint)?;
        }
        new.definition = (!definition.columns.is_empty()).then_some(definition);
        Ok(new)
    }

    /// Takes in what is said of a column: whether it is `NOT NULL`.
    fn take_options(&mut self, column: &ColumnDef) -> Result<bool> {
        let (name, mut is_required) = (&column.name.value, false);
        for option in &column.options {
            let (what, advice) = match &option.option {
                ColumnOption::Null => continue,
                ColumnOption::NotNull => {
                    is_required = true;
                    continue;
                }
                ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_) if name == KEY => continue,
                ColumnOption::Unique(_) => {
                    self.add_unique(&[&Expr::Identifier(column.name.clone())])?;
                    continue;
                }
                ColumnOption::PrimaryKey(_) => {
                    ("PRIMARY KEY", "the key of a record is its column _key: declare that one")
                }
                ColumnOption::Default(_) => ("DEFAULT", "give the value with each record"),
                ColumnOption::Check(_) => ("CHECK", "look at values before they are inserted"),
                ColumnOption::ForeignKey(_) => {
                    ("REFERENCES", "ANTI JOIN finds records without a counterpart")
                }
                ColumnOption::Generated { .. } | ColumnOption::Identity(_) => {
                    ("a column that is computed", "a view computes it")
                }
                _ => ("this clause", "leave it out"),
            };
            return Err(unsupported(&format!("{what} of the column {name:?}: {advice}")));
        }
        Ok(is_required)
    }

    fn take_constraint(&mut self, constraint: &TableConstraint) -> Result<()> {
        let columns = |columns: &[IndexColumn]| -> Vec<Expr> {
            columns.iter().map(|column| column.column.expr.clone()).collect()
        };
        match constraint {
            TableConstraint::PrimaryKey(key) => match columns(&key.columns).as_slice() {
                [Expr::Identifier(name)] if name.value == KEY => Ok(()),
                _ => Err(unsupported(
                    "a PRIMARY KEY of anything but _key, which has the keys of records: UNIQUE \
                     tells other columns apart",
                )),
            },
            TableConstraint::Unique(unique) => {
                let columns = columns(&unique.columns);
                self.add_unique(&columns.iter().collect::<Vec<_>>())
            }
            TableConstraint::ForeignKey(_) => Err(unsupported(
                "FOREIGN KEY: leave it out; ANTI JOIN finds records without a counterpart",
            )),
            TableConstraint::Check(_) => {
                Err(unsupported("CHECK: leave it out, and look at values before they are inserted"))
            }
            _ => Err(unsupported("this clause of CREATE TABLE: CREATE INDEX makes an index")),
        }
    }

    /// An index as `CREATE UNIQUE INDEX` makes it.
    fn add_unique(&mut self, columns: &[&Expr]) -> Result<()> {
        let paths = columns.iter().map(|column| path(column)).collect::<Result<Vec<_>>>()?;
        let name = paths.join("_");
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut index = IndexDefinition::new(&name, &paths)?.unique();
        if self.indexes.iter().any(|other| other.paths == index.paths) {
            return Ok(());
        }
        // The columns a and b have the name of a column a_b.
        let is_taken = |name: &str| self.indexes.iter().any(|other| other.name == name);
        index.name = free_name(&name, is_taken);
        self.indexes.push(index);
        Ok(())
    }
}

/// Refuses what would be passed over.
fn check_clauses(table: &CreateTable) -> Result<()> {
    if table.query.is_some() && !(table.columns.is_empty() && table.constraints.is_empty()) {
        return Err(unsupported(
            "CREATE TABLE with columns and a query: CREATE TABLE, then INSERT INTO .. SELECT",
        ));
    }
    let is_other = table.or_replace
        || table.temporary
        || table.external
        || table.like.is_some()
        || table.clone.is_some()
        || table.table_options != CreateTableOptions::None;
    if is_other {
        return Err(unsupported(
            "this CREATE TABLE: give the name, and its columns or AS and a query",
        ));
    }
    Ok(())
}

/// Refuses decimals with a scale below zero, which casts and arithmetic know little of.
fn check_places(column: &ColumnDef) -> Result<()> {
    let mut of = &column.data_type;
    while let DataType::Array(
        ArrayElemTypeDef::AngleBracket(item)
        | ArrayElemTypeDef::SquareBracket(item, _)
        | ArrayElemTypeDef::Parenthesis(item),
    ) = of
    {
        of = item;
    }
    let (DataType::Decimal(digits) | DataType::Numeric(digits) | DataType::Dec(digits)) = of else {
        return Ok(());
    };
    let ExactNumberInfo::PrecisionAndScale(all, scale) = *digits else { return Ok(()) };
    if scale >= 0 {
        return Ok(());
    }
    let what = format!(
        "{of} of the column {:?}, which has fewer than no places behind the point: declare \
         DECIMAL({}, 0), and round(x, {scale}) what is saved",
        column.name.value,
        all.saturating_add(scale.unsigned_abs())
    );
    Err(unsupported(&what))
}

/// The type of the keys that a column is declared with.
fn key_kind(declared: &DataType) -> Result<KeyKind> {
    match declared {
        DataType::Text | DataType::String(_) | DataType::Varchar(_) => Ok(KeyKind::Text),
        DataType::BigInt(_) | DataType::Int8(_) | DataType::Int64 | DataType::Integer(_) => {
            Ok(KeyKind::I64)
        }
        DataType::BigIntUnsigned(_) | DataType::UBigInt | DataType::UInt64 => Ok(KeyKind::U64),
        DataType::Uuid => Ok(KeyKind::Uuid),
        other => {
            let message =
                format!("keys of the type {other}: use TEXT, BIGINT, BIGINT UNSIGNED or UUID");
            Err(unsupported(&message))
        }
    }
}

/// The type of the keys that a query finds.
fn kind_of_keys(answer: &Answer<'_>) -> Result<KeyKind> {
    let schema = answer.schema();
    let of = schema.field_with_name(KEY).map_or(&ArrowType::Null, |field| field.data_type());
    match of {
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => Ok(KeyKind::Text),
        of if of.is_signed_integer() => Ok(KeyKind::I64),
        of if of.is_unsigned_integer() => Ok(KeyKind::U64),
        of => {
            let what =
                format!("keys of the type {of}: CAST {KEY} AS TEXT, BIGINT or BIGINT UNSIGNED");
            Err(unsupported(&what))
        }
    }
}
