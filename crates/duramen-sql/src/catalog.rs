//! The tables that a query finds by name: collections, and the arrays of documents.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::TableType;
use duramen::{
    Columns, CommitSequence, Database, DatabaseSnapshot, Document, Error, ErrorKind, LabelPath,
    Moment,
};

use crate::failure::{external, nearest};
use crate::statement::Places;
use crate::system_time::TableName;
use crate::table::Table;

/// The schema that collections are in.
pub(crate) const COLLECTIONS: &str = "public";

/// What tables were found to have, as long as there is no newer commit.
#[derive(Debug, Default)]
pub(crate) struct KnownTables(Mutex<(CommitSequence, HashMap<String, Arc<Table>>)>);

/// The tables of one query: those that are not asked for as of some moment are as of one commit.
#[derive(Debug)]
pub(crate) struct Tables {
    db: Database,
    snapshot: DatabaseSnapshot,
    known: Arc<KnownTables>,
    places: Places,
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
        Self { db, snapshot, known, places }
    }

    fn collection(&self, text: &str) -> duramen::Result<Arc<Table>> {
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
                let names = self.db.documents().unwrap_or_default();
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
        self.0.db.collections().unwrap_or_default()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(Some(self.0.collection(name).map_err(external)?))
    }

    async fn table_type(&self, _: &str) -> Result<Option<TableType>> {
        Ok(Some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.db.collection(TableName::of(name).name).is_ok()
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
