//! The tables that a query finds by name: collections, and the arrays of documents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::TableType;
use duramen::{
    Columns, CommitSequence, Database, DatabaseSnapshot, Document, Error, ErrorKind, LabelPath,
    Moment,
};

use crate::change::CHANGED_KEYS;
use crate::failure::{external, nearest};
use crate::statement::Places;
use crate::system_time::TableName;
use crate::table::Table;
use crate::view;

/// The schema that collections are in.
pub(crate) const COLLECTIONS: &str = "public";

/// What tables were found to have, as long as there is no newer commit.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(Mutex<(CommitSequence, HashMap<String, Arc<Table>>)>);

/// The tables of one query: those that are not asked for as of some moment are as of one commit.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    db: Database,
    snapshot: DatabaseSnapshot,
    known: Arc<KnownTables>,
    places: Places,
    /// Keys of the records that a statement changed.
    keys: Option<RecordBatch>,
    /// The views that are being made tables of, each within the one before.
    views: Vec<String>,
}

/// The database: its collections, and for each document a schema with its arrays.
#[derive(Debug)]
pub(crate) struct Catalog(pub(crate) Arc<Tables>);

#[derive(Debug)]
struct Collections(Arc<Tables>);

#[derive(Debug)]
struct Arrays(Arc<Tables>, String);

impl KnownTables {
    fn table(
        &self,
        sequence: CommitSequence,
        name: String,
        make: impl FnOnce() -> duramen::Result<Columns>,
    ) -> duramen::Result<Arc<Table>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut known = lock();
            if known.0 != sequence {
                *known = (sequence, HashMap::new());
            }
            if let Some(table) = known.1.get(&name) {
                return Ok(Arc::clone(table));
            }
        }
        let table = Arc::new(Table::new(make()?)?);
        let mut known = lock();
        if known.0 == sequence {
            known.1.insert(name, Arc::clone(&table));
        }
        Ok(table)
    }
}

impl Tables {
    pub(crate) fn new(db: &Database, known: &Arc<KnownTables>, places: Places) -> Self {
        let (db, snapshot, known) = (db.clone(), db.snapshot(), Arc::clone(known));
        Self { db, snapshot, known, places, keys: None, views: Vec::new() }
    }

    /// The same tables and one of the keys of records that were changed.
    pub(crate) fn with_keys(self, keys: RecordBatch) -> Self {
        Self { keys: Some(keys), ..self }
    }

    /// The same tables for the query of a view.
    pub(crate) fn within_view(&self, name: &str) -> duramen::Result<Self> {
        if self.views.iter().any(|known| known == name) {
            let message = format!("the view {name:?} is made of itself: replace or drop it");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let mut within = self.clone();
        within.views.push(name.to_owned());
        Ok(within)
    }

    /// The query of a view; none for other tables.
    pub(crate) fn view(&self, text: &str) -> duramen::Result<Option<String>> {
        let TableName { name, as_of } = TableName::of(text);
        if self.db.collection(name).is_ok() {
            return Ok(None);
        }
        let query = view::query(&self.snapshot, name)?;
        if query.is_some() && as_of.is_some() {
            let message = format!(
                "{name:?} is a view, which has no past of its own: FOR SYSTEM_TIME belongs to the \
                 tables in it"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(query)
    }

    pub(crate) fn collection(&self, text: &str) -> duramen::Result<Arc<Table>> {
        let TableName { name, as_of } = TableName::of(text);
        let make = || {
            let collection = self.db.collection(name).map_err(|error| self.missing(name, error))?;
            let of_moment = |moment| match moment {
                Moment::Revision(revision) => collection.at(revision),
                Moment::Time(time) => collection.at_time(time),
            };
            match as_of {
                Some(text) => of_moment(moment(collection.document(), text)?)?.columns(),
                None => self.snapshot.collection(name)?.columns(),
            }
        };
        self.known.table(self.snapshot.sequence(), format!("{COLLECTIONS}.{text}"), make)
    }

    fn array(&self, document: &str, text: &str) -> duramen::Result<Arc<Table>> {
        let TableName { name: path, as_of } = TableName::of(text);
        let make = || {
            let label: LabelPath = path.parse()?;
            let found = self.db.document(document);
            let found = found.map_err(|error| self.missing(document, error))?;
            let snapshot = match as_of.map(|text| moment(&found, text)).transpose()? {
                Some(Moment::Revision(revision)) => found.at(revision)?,
                Some(Moment::Time(time)) => found.at_time(time)?,
                None => self.snapshot.document(document)?,
            };
            snapshot.columns(&label)
        };
        self.known.table(self.snapshot.sequence(), format!("{document}.{text}"), make)
    }

    /// Says which table is likely meant.
    fn missing(&self, name: &str, error: Error) -> Error {
        let at = self.places.of(name);
        match error.kind() {
            ErrorKind::NotFound => {
                let mut names = self.db.documents().unwrap_or_default();
                names.extend(view::names(&self.snapshot).unwrap_or_default());
                let advice = match nearest(name, names.iter().cloned()) {
                    Some(nearest) => format!("did you mean {nearest:?}?"),
                    None if names.is_empty() => "the database has none yet".to_owned(),
                    None => {
                        let some = names.iter().take(10).map(String::as_str);
                        format!("there are: {}", some.collect::<Vec<_>>().join(", "))
                    }
                };
                let message = format!("there is no table {name:?}{at}: {advice}");
                Error::new(ErrorKind::NotFound, message)
            }
            ErrorKind::Invalid => {
                let message = format!(
                    "{name:?}{at} is a document and no collection: name one of its arrays, such \
                     as {name:?}.\"$.data[*]\""
                );
                Error::new(ErrorKind::Invalid, message)
            }
            _ => error,
        }
    }
}

/// The moment that a text means; a tag is the revision it names.
fn moment(document: &Document, text: &str) -> duramen::Result<Moment> {
    match text.parse() {
        Ok(moment) => Ok(moment),
        Err(_) => document.tagged(text).map(Moment::Revision).map_err(|error| {
            if error.kind() != ErrorKind::NotFound {
                return error;
            }
            let message = format!(
                "{text:?} is neither a revision, such as 7, nor a time, such as 2024-05-01, nor a \
                 tag of {:?}",
                document.name()
            );
            Error::new(ErrorKind::NotFound, message)
        }),
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = vec![COLLECTIONS.to_owned()];
        let documents = self.0.snapshot.documents().unwrap_or_default();
        let collections = self.0.db.collections().unwrap_or_default();
        names.extend(documents.into_iter().filter(|name| !collections.contains(name)));
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        Some(match name {
            COLLECTIONS => Arc::new(Collections(Arc::clone(&self.0))),
            document => Arc::new(Arrays(Arc::clone(&self.0), document.to_owned())),
        })
    }
}

#[async_trait]
impl SchemaProvider for Collections {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.0.db.collections().unwrap_or_default();
        names.extend(view::names(&self.0.snapshot).unwrap_or_default());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(keys) = self.0.keys.as_ref().filter(|_| name == CHANGED_KEYS) {
            let table = MemTable::try_new(keys.schema(), vec![vec![keys.clone()]])?;
            return Ok(Some(Arc::new(table)));
        }
        if let Some(query) = self.0.view(name).map_err(external)? {
            return Ok(Some(view::table(&self.0, (name, query)).await.map_err(external)?));
        }
        Ok(Some(self.0.collection(name).map_err(external)?))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let is_view = self.0.view(name).map_err(external)?.is_some();
        Ok(Some(if is_view { TableType::View } else { TableType::Base }))
    }

    fn table_exist(&self, name: &str) -> bool {
        let is_view = || self.0.view(name).is_ok_and(|query| query.is_some());
        let is_collection = || self.0.db.collection(TableName::of(name).name).is_ok();
        name == CHANGED_KEYS || is_collection() || is_view()
    }
}

#[async_trait]
impl SchemaProvider for Arrays {
    fn table_names(&self) -> Vec<String> {
        let found = self.0.snapshot.document(&self.1).map(|found| found.arrays());
        found.unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(Some(self.0.array(&self.1, name).map_err(external)?))
    }

    async fn table_type(&self, _: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.table_names().iter().any(|known| known == TableName::of(name).name)
    }
}
