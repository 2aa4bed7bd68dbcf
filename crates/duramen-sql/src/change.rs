//! Statements that change the database.
//!
//! Each is one commit, or nothing: what it takes from queries goes into a transaction as it comes,
//! and the first error takes all of it back. Nobody else writes the collection meanwhile.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, StringArray, StringViewArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, SelectItem, Statement, TableFactor, With,
};
use duramen::{
    Collection, CommitOptions, Error, ErrorKind, Key, KeyKind, Result, Revision, Transaction,
};

use crate::allowance::Allowance;
use crate::answer::Answer;
use crate::catalog::{COLLECTIONS, Tables};
use crate::column_type::{ColumnType, TableColumn};
use crate::declared::Definition;
use crate::failure;
use crate::other_case::OtherCase;
use crate::record_json::{Cells, Fit};
use crate::session::Session;
use crate::statement::Places;
use crate::system_time::TableName;
use crate::table::Table;
use returning::Returning;

pub(crate) mod creation;
mod definition;
mod delete;
mod insert;
mod proposed;
mod returning;
mod update;

/// The column of records' keys.
pub(crate) const KEY: &str = "_key";

/// Columns that the engine alone fills.
pub(crate) const OF_ENGINE: [&str; 3] = ["_version", "_revision", "_timestamp"];

/// What the names of tables and columns begin with that are a statement's own.
pub(crate) const OWN: char = '\u{1f}';

/// How often a statement is begun again that another commit came before.
const ATTEMPTS_MAX: u32 = 8;

/// About how many bytes a change of a record takes beside its text.
const CHANGE_BYTES: usize = 64;

/// Bytes of changes after which it is looked at how much memory they take.
const LOOK_BYTES: usize = 1 << 20;

/// The share of memory that changes may take before they are committed, which takes as much again.
const STAGED_SHARE: usize = 2;

/// The collection that a statement changes, and what it knows of its columns.
pub(crate) struct Target {
    pub(crate) collection: Collection,
    /// None if it was dropped, and goes on with what is inserted.
    table: Option<Arc<Table>>,
    /// What is declared of its columns.
    pub(crate) definition: Option<Arc<Definition>>,
    /// Before the statement; 0 if it has none.
    revision: Revision,
}

/// Looks now and then at how much memory the changes of a statement take, and whether it may go on.
pub(crate) struct Staged {
    allowance: Allowance,
    bytes_max: usize,
    /// How many rows were changed.
    pub(crate) rows: usize,
    /// About how many bytes came since it looked.
    unseen_bytes: usize,
    /// About how many bytes the statement keeps beside its changes, such as keys.
    kept_bytes: usize,
    /// The keys of the rows, if the statement tells of them.
    keys: Option<Vec<Key>>,
}

/// The rows that a statement changes.
struct RowsOf<'s> {
    table: &'s ObjectName,
    alias: Option<&'s Ident>,
    returning: Option<&'s [SelectItem]>,
    /// What stands before the statement.
    with: Option<&'s With>,
    /// Finds the collection that the table is.
    find: Find,
}

type Find = fn(&Session, &ObjectName, &Places) -> Result<Target>;

/// What a statement did.
struct Changed {
    rows: usize,
    /// Their keys, if it tells of them.
    keys: Vec<Key>,
    /// The columns that it gave values to, if only NULL.
    columns: Vec<String>,
    /// When the rows that `RETURNING` tells of were there.
    told_at: Told,
}

/// Which state of its rows a statement tells of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Before,
    After,
}

/// Whether a statement changes the database.
pub(crate) fn is_change(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateView(_)
            | Statement::Drop { .. }
    )
}

impl Session {
    /// Does what a statement says, and answers with its rows, or how many they are.
    pub(crate) fn change(
        &self,
        statement: &Statement,
        (text, places): (&str, &Places),
    ) -> Result<Answer<'_>> {
        let with = places.with.as_deref();
        match statement {
            Statement::Insert(insert) => {
                let returning = insert.returning.as_deref();
                let table = insert::table(insert)?;
                let alias = insert::alias(insert);
                let (with, find) = (insert::with(insert), Self::target_to_fill as Find);
                let rows = RowsOf { table, alias, returning, with, find };
                self.change_rows(&rows, places, &|target, transaction| {
                    insert::run(self, (insert, places), target, transaction)
                })
            }
            Statement::Update(update) => {
                let returning = update.returning.as_deref();
                let (table, alias) = factor(&update.table.relation)?;
                check_with(with, table)?;
                let rows = RowsOf { table, alias, returning, with, find: Self::target };
                self.change_rows(&rows, places, &|target, transaction| {
                    update::run(self, (update, places), target, transaction)
                })
            }
            Statement::Delete(delete) => {
                let returning = delete.returning.as_deref();
                let (table, alias) = delete::table(delete)?;
                check_with(with, table)?;
                let rows = RowsOf { table, alias, returning, with, find: Self::target };
                self.change_rows(&rows, places, &|target, transaction| {
                    delete::run(self, (delete, places), target, transaction)
                })
            }
            Statement::CreateTable(table) => self.create_table(table, places),
            Statement::CreateIndex(index) => self.create_index(index, places),
            Statement::CreateView(view) => self.create_view(view, (text, places)),
            Statement::Drop { .. } => self.drop_names(statement, places),
            _ => Err(unsupported("this statement: it is neither a query nor a change of records")),
        }
    }

    /// Runs a change of records until no other commit comes first.
    fn change_rows(
        &self,
        rows: &RowsOf<'_>,
        places: &Places,
        run: &dyn Fn(&Target, &mut Transaction) -> Result<Changed>,
    ) -> Result<Answer<'_>> {
        let mut attempt = 1;
        loop {
            let target = (rows.find)(self, rows.table, places)?;
            let name = target.collection.name();
            let mut transaction = self.db().transaction();
            let begun = transaction.expect(name, target.revision);
            match begun {
                Err(error) if error.kind() == ErrorKind::Conflict && attempt < ATTEMPTS_MAX => {
                    attempt += 1;
                    continue;
                }
                begun => begun?,
            }
            let changed = run(&target, &mut transaction)?;
            let of = (&target, &changed);
            let returning = rows
                .returning
                .map(|items| Returning::plan((self, places), (rows, items), of, &mut transaction));
            let returning = returning.transpose()?;
            places.allowance.check()?;
            let committed = transaction.commit(&CommitOptions::default())?;
            let revision = committed.revisions.first().map(|(_, revision)| *revision);
            return match returning {
                Some(returning) => returning.answer(revision),
                None => Self::counted(changed.rows, revision),
            };
        }
    }

    /// The collection that a name means, which is there.
    pub(crate) fn target(&self, name: &ObjectName, places: &Places) -> Result<Target> {
        let (name, tables) = self.target_name(name, places)?;
        if self.dropped(&name)?.is_some() {
            let message = format!(
                "the table {name:?} was dropped: CREATE TABLE or INSERT INTO goes on with it"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let table = tables.collection(&name)?;
        let collection = self.db().collection(&name)?;
        let revision = collection.head()?.revision();
        let definition = table.definition.clone();
        Ok(Target { collection, table: Some(table), definition, revision })
    }

    /// The collection that a name means, which goes on with what is put into it if it was dropped.
    pub(crate) fn target_to_fill(&self, name: &ObjectName, places: &Places) -> Result<Target> {
        match self.dropped(&self.target_name(name, places)?.0)? {
            Some(collection) => {
                let revision = collection.document().head_revision()?;
                let definition = Definition::of(&self.db().snapshot(), collection.name())?;
                Ok(Target { collection, table: None, definition, revision })
            }
            None => self.target(name, places),
        }
    }

    fn target_name(&self, name: &ObjectName, places: &Places) -> Result<(String, Tables)> {
        let name = collection_name(name)?;
        if TableName::of(&name).period.is_some() {
            return Err(unsupported("a change of the past: leave FOR SYSTEM_TIME out"));
        }
        let tables = self.tables(places);
        if tables.view(&name)?.is_some() {
            let what = format!("a change of the view {name:?}: change what it reads");
            return Err(unsupported(&what));
        }
        Ok((name, tables))
    }

    /// The collection of a name, if it was dropped.
    fn dropped(&self, name: &str) -> Result<Option<Collection>> {
        let Ok(collection) = self.db().collection(name) else { return Ok(None) };
        Ok(collection.document().is_deleted()?.then_some(collection))
    }

    /// The answer of a statement that has no rows to count.
    pub(crate) fn done<'s>(what: &str) -> Result<Answer<'s>> {
        let schema = Schema::new(vec![Field::new("done", DataType::Utf8, false)]);
        let column: ArrayRef = Arc::new(StringArray::from(vec![what]));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column]);
        Ok(Self::ready(batch.map_err(failure::arrow)?))
    }

    /// The answer of a statement without `RETURNING`.
    pub(crate) fn counted<'s>(rows: usize, revision: Option<Revision>) -> Result<Answer<'s>> {
        let column = |name: &str, is_nullable| Field::new(name, DataType::Int64, is_nullable);
        let schema = Schema::new(vec![column("rows", false), column("revision", true)]);
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![rows])),
            Arc::new(Int64Array::from(vec![revision.map(|revision| revision.0.cast_signed())])),
        ];
        let batch = RecordBatch::try_new(Arc::new(schema), columns).map_err(failure::arrow)?;
        Ok(Self::ready(batch))
    }
}

impl Staged {
    /// Of a statement that begins.
    pub(crate) fn new(session: &Session, places: &Places) -> Self {
        let bytes_max = session.options.memory_bytes / STAGED_SHARE;
        let allowance = places.allowance.clone();
        Self { allowance, bytes_max, rows: 0, unseen_bytes: 0, kept_bytes: 0, keys: None }
    }

    /// Keeps the keys of what is changed where there is something to be told of it.
    fn telling(self, returning: Option<&[SelectItem]>) -> Self {
        Self { keys: returning.map(|_| Vec::new()), ..self }
    }

    /// A row was changed, by a text of so many bytes; `Full` and so on as [`Staged::add`].
    pub(crate) fn change(
        &mut self,
        transaction: &Transaction,
        key: Key,
        bytes: usize,
    ) -> Result<()> {
        if self.keys.is_some() {
            self.keep(transaction, &key, 1)?;
        }
        if let Some(keys) = &mut self.keys {
            keys.push(key);
        }
        self.add(transaction, 1, bytes)
    }

    /// What the statement did, with the columns that it gave values to.
    fn done(self, columns: Vec<String>, told_at: Told) -> Changed {
        Changed { rows: self.rows, keys: self.keys.unwrap_or_default(), columns, told_at }
    }

    /// Some more rows were changed, by texts of so many bytes; `Full` once all of them take more
    /// memory than they may, and `Cancelled` or `TimedOut` once the statement is to end.
    pub(crate) fn add(
        &mut self,
        transaction: &Transaction,
        rows: usize,
        bytes: usize,
    ) -> Result<()> {
        self.rows += rows;
        self.look(transaction, rows * CHANGE_BYTES + bytes)
    }

    /// The statement keeps a key in so many places; `Full` as above.
    pub(crate) fn keep(
        &mut self,
        transaction: &Transaction,
        key: &Key,
        places: usize,
    ) -> Result<()> {
        let text = if let Key::Text(text) = key { text.len() } else { 0 };
        self.keep_bytes(transaction, places * (size_of::<Key>() + text))
    }

    /// The statement keeps so many bytes of something else; `Full` as above.
    pub(crate) fn keep_bytes(&mut self, transaction: &Transaction, bytes: usize) -> Result<()> {
        self.kept_bytes += bytes;
        self.look(transaction, bytes)
    }

    fn look(&mut self, transaction: &Transaction, bytes: usize) -> Result<()> {
        self.allowance.check()?;
        self.unseen_bytes += bytes;
        if self.unseen_bytes < LOOK_BYTES {
            return Ok(());
        }
        self.unseen_bytes = 0;
        if transaction.staged_bytes() + self.kept_bytes <= self.bytes_max {
            return Ok(());
        }
        let message = format!(
            "the statement takes more memory than it may: {} rows of it have {} MiB before they \
             are committed; give it more (--memory, memory_bytes), or change fewer at a time, as \
             \"duramen records import\" does with files",
            self.rows,
            self.bytes_max >> 20
        );
        Err(Error::new(ErrorKind::Full, message))
    }
}

impl Target {
    /// What the values of a column are, if it is known.
    pub(crate) fn column_type(&self, name: &str) -> Option<&ColumnType> {
        self.table.as_ref()?.columns.kind(name)
    }

    /// Whether there is such a column, or one is declared.
    pub(crate) fn has_column(&self, name: &str) -> bool {
        let declared = self.definition.as_ref().and_then(|definition| definition.column(name));
        declared.is_some() || self.column_type(name).is_some()
    }

    /// Refuses a column that would be one more beside another one in another case, unless it has
    /// quotes. The name of the table may be what is meant.
    pub(crate) fn check_case(&self, name: &Ident, table: Option<&str>) -> Result<()> {
        if self.has_column(&name.value) {
            return Ok(());
        }
        let known = self.table.iter().flat_map(|table| table.columns.schema.fields());
        let known = known.map(|field| field.name().as_str()).chain(table);
        let declared = self.definition.iter().flat_map(|definition| &definition.columns);
        let declared = declared.map(|column| column.name.as_str());
        let Some(meant) = OtherCase::of_target(name, known.chain(declared)) else { return Ok(()) };
        let name = &name.value;
        let message = format!("there is no column {name:?}, but {meant}: a new one has quotes");
        Err(Error::new(ErrorKind::Invalid, message).with_source(meant))
    }

    /// What the values of a column have to become.
    pub(crate) fn fit(&self, name: &str) -> Fit<'_> {
        let declared = self.definition.as_ref().and_then(|definition| definition.column(name));
        declared.map_or_else(|| Fit::new(self.column_type(name)), Fit::declared)
    }
}

/// The key of a row, which people know by a number.
pub(crate) fn key_of(keys: KeyKind, cells: &Cells<'_>, row: usize, number: u64) -> Result<Key> {
    let text =
        cells.text(row)?.ok_or_else(|| wrong(number, KEY, "it is NULL: each record has a key"))?;
    parsed_key(keys, &text, number)
}

/// The key that a text is.
pub(crate) fn parsed_key(keys: KeyKind, text: &str, number: u64) -> Result<Key> {
    keys.parse(text).map_err(|error| wrong(number, KEY, error.message()))
}

/// The member of a record that a column stands for.
pub(crate) fn member(column: &str) -> &str {
    match column.strip_prefix("$.") {
        Some(name) if name == KEY || OF_ENGINE.contains(&name) => name,
        _ => column,
    }
}

/// Refuses a column that nobody but the engine fills.
pub(crate) fn check_filled(column: &str) -> Result<()> {
    if !OF_ENGINE.contains(&column) {
        return Ok(());
    }
    let message = format!(
        "the column {column:?} is the engine's: leave it out; a field of this name is called \
         \"$.{column}\""
    );
    Err(Error::new(ErrorKind::Invalid, message))
}

/// What is wrong with a value, and where it is.
pub(crate) fn wrong(row: u64, column: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("row {row}, column {column:?}: {why}"))
}

/// What is wrong with a value of a record.
pub(crate) fn wrong_column(column: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, format!("column {column:?}: {why}"))
}

pub(crate) fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this SQL is not supported: {what}"))
}

/// A table that is named, not computed.
fn factor(table: &TableFactor) -> Result<(&ObjectName, Option<&Ident>)> {
    match table {
        TableFactor::Table { name, alias, args: None, .. } => {
            Ok((name, alias.as_ref().map(|alias| &alias.name)))
        }
        _ => Err(unsupported("changes of what is no collection")),
    }
}

/// The collection that a name with or without its schema means.
pub(crate) fn collection_name(name: &ObjectName) -> Result<String> {
    let parts: Vec<&str> = name
        .0
        .iter()
        .map(|part| part.as_ident().map_or("", |ident| ident.value.as_str()))
        .collect();
    match parts[..] {
        [name] | [COLLECTIONS, name] | [_, COLLECTIONS, name] => Ok(name.to_owned()),
        _ => Err(unsupported(
            "a change of the arrays of documents: \"duramen splice\", \"duramen set\" and \
             \"duramen put\" change documents",
        )),
    }
}

/// A query behind the `WITH` of its statement, if that has one.
fn behind(with: Option<&With>, query: String) -> String {
    match with {
        Some(with) => format!("{with} {query}"),
        None => query,
    }
}

/// Refuses a `WITH` that hides the table that is changed.
fn check_with(with: Option<&With>, table: &ObjectName) -> Result<()> {
    let name = collection_name(table)?;
    let mut hiding = with.into_iter().flat_map(|with| &with.cte_tables);
    if hiding.all(|cte| cte.alias.name.value != name) {
        return Ok(());
    }
    let message = format!("WITH has a query {name:?}, as the table is called: call it otherwise");
    Err(Error::new(ErrorKind::Invalid, message))
}

pub(crate) fn quoted(name: &str) -> String {
    Ident::with_quote('"', name).to_string()
}

/// Keys as a table.
fn key_table(kind: KeyKind, keys: &[Key]) -> Result<Arc<dyn TableProvider>> {
    let field = TableColumn::Key(kind).field();
    let array: ArrayRef = match kind {
        KeyKind::Text | KeyKind::Uuid => {
            Arc::new(StringViewArray::from_iter_values(keys.iter().map(ToString::to_string)))
        }
        KeyKind::I64 => Arc::new(keys.iter().map(integer).collect::<Int64Array>()),
        KeyKind::U64 => {
            let numbers = keys.iter().map(|key| integer(key).map(i64::cast_unsigned));
            Arc::new(numbers.collect::<UInt64Array>())
        }
    };
    debug_assert_eq!(array.data_type(), field.data_type());
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array]).map_err(failure::arrow)?;
    let table = MemTable::try_new(schema, vec![vec![batch]]);
    Ok(Arc::new(table.map_err(|error| failure::query(error, &Places::default()))?))
}

fn integer(key: &Key) -> Option<i64> {
    match key {
        Key::I64(key) => Some(*key),
        Key::U64(key) => Some(key.cast_signed()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use duramen::Database;

    use super::*;
    use crate::session::SessionOptions;

    /// Keys once were kept without being counted.
    #[test]
    fn keys_that_are_kept_are_counted() {
        let db = Database::memory().unwrap();
        let options = SessionOptions { memory_bytes: 8 << 20, ..SessionOptions::default() };
        let session = Session::new(db.clone(), options);
        let (transaction, mut staged) =
            (db.transaction(), Staged::new(&session, &Places::default()));
        let key = Key::from("k".repeat(1_000).as_str());
        let kept = (0..9_000).map_while(|_| staged.keep(&transaction, &key, 1).ok()).count();
        assert!((3_000..5_000).contains(&kept), "{kept} keys");
        let error = staged.keep(&transaction, &key, 2_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Full);
    }
}
