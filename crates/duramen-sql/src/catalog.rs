//! The tables that a query finds by name: collections, and the arrays of documents.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::TableType;
use duramen::{
    CollectionSnapshot, Columns, CommitSequence, Database, DatabaseSnapshot, Document, Error,
    ErrorKind, LabelPath, Moment, Revision, SeriesFilter, Snapshot, nearest,
};
use tokio::runtime::Handle;

use crate::allowance::Allowance;
use crate::declared::Definition;
use crate::depth;
use crate::failure::{self, external};
use crate::function;
use crate::function::points::PointsTable;
use crate::information::{INFORMATION, Information};
use crate::moment;
use crate::other_case::OtherCase;
use crate::statement::Places;
use crate::system_time::{Period, TableName};
use crate::table::{Table, TablePlace, Wanted};
use crate::view;
use crate::words::Role;

/// What the database is called in names of several parts.
pub(crate) const DATABASE: &str = "duramen";

/// The schema that collections are in.
pub(crate) const COLLECTIONS: &str = "public";

/// What tables were found to have, as long as there is no newer commit.
#[derive(Debug)]
pub(crate) struct KnownTables {
    found: Mutex<(CommitSequence, HashMap<TablePlace, Arc<Table>>)>,
    /// Those of queries.
    threads: Option<Handle>,
}

/// The tables of one query: those that are not asked for as of some moment are as of one commit.
#[derive(Debug, Clone)]
pub(crate) struct Tables {
    db: Database,
    snapshot: DatabaseSnapshot,
    known: Arc<KnownTables>,
    pub(crate) places: Places,
    pub(crate) allowance: Allowance,
    /// Tables of the statement's own, such as the keys of the records that it changed.
    own: Vec<(String, Arc<dyn TableProvider>)>,
    /// The columns that the query may need.
    wanted: Wanted,
    /// The views that are being made tables of, each within the one before.
    views: Vec<String>,
    /// How many operators stand inside each other in the query and the views that it is made of.
    operators: usize,
    /// Whether all tables are looked at, and not those that a query names.
    is_listing: bool,
}

/// A document or collection with its past up to a revision.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) document: Document,
    pub(crate) head: Revision,
}

impl Tree {
    /// What it was last; what was deleted is as it was before that.
    pub(crate) fn last(&self) -> duramen::Result<Snapshot> {
        self.document.at(self.head).or_else(|error| match self.head.0 {
            2.. if error.kind() == ErrorKind::NotFound => {
                self.document.at(Revision(self.head.0 - 1)).map_err(|_| error)
            }
            _ => Err(error),
        })
    }
}

/// The database: its collections, and for each document a schema with its arrays.
#[derive(Debug)]
pub(crate) struct Catalog(pub(crate) Arc<Tables>);

#[derive(Debug)]
struct Collections(Arc<Tables>);

#[derive(Debug)]
struct Arrays(Arc<Tables>, String);

impl KnownTables {
    /// None yet, to be looked through by these threads.
    pub(crate) fn new(threads: Option<Handle>) -> Arc<Self> {
        Arc::new(Self { found: Mutex::default(), threads })
    }

    /// How many tables are known.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).1.len()
    }

    fn table(
        &self,
        sequence: CommitSequence,
        (place, wanted): (TablePlace, &Wanted),
        make: impl FnOnce() -> duramen::Result<(Columns, Option<Arc<Definition>>)>,
    ) -> duramen::Result<Arc<Table>> {
        let lock = || self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let found = {
            let mut known = lock();
            if known.0 != sequence {
                *known = (sequence, HashMap::new());
            }
            known.1.get(&place).cloned()
        };
        let table = match found {
            Some(table) if table.has(wanted) => return Ok(table),
            Some(table) => table.with(wanted)?,
            None => Table::new(make()?, place.clone(), wanted, self.threads.as_ref())?,
        };
        let table = Arc::new(table);
        let mut known = lock();
        if known.0 == sequence {
            // What is known of versions may be much: that of one table is kept.
            if table.rows.are_versions() {
                known.1.retain(|_, other| !other.rows.are_versions());
            }
            known.1.insert(place, Arc::clone(&table));
        }
        Ok(table)
    }
}

impl Tables {
    pub(crate) fn new(db: &Database, known: &Arc<KnownTables>, places: Places) -> Self {
        Self {
            db: db.clone(),
            snapshot: db.snapshot(),
            known: Arc::clone(known),
            wanted: places.wanted.clone(),
            operators: places.operators,
            allowance: places.allowance.of_part(),
            places,
            own: Vec::new(),
            views: Vec::new(),
            is_listing: false,
        }
    }

    /// The same tables to tell of all there are.
    pub(crate) fn for_listing(&self) -> Self {
        Self { is_listing: true, ..self.clone() }
    }

    /// The same tables with those columns only that are wanted.
    pub(crate) fn with_columns(self, wanted: Wanted) -> Self {
        Self { wanted, ..self }
    }

    /// The columns that the query may need.
    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The same tables and one of the statement's own.
    pub(crate) fn with_own(mut self, name: &str, table: Arc<dyn TableProvider>) -> Self {
        self.own.push((name.to_owned(), table));
        self
    }

    fn own(&self, name: &str) -> Option<&Arc<dyn TableProvider>> {
        self.own.iter().find(|(own, _)| own == name).map(|(_, table)| table)
    }

    /// The same tables for the query of a view.
    pub(crate) fn within_view(&self, name: &str) -> duramen::Result<Self> {
        if self.views.iter().any(|known| known == name) {
            let message = format!("the view {name:?} is made of itself: replace or drop it");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        if self.views.len() >= depth::VIEWS_MAX {
            let message = format!(
                "the view {name:?} is inside of {} others: make it of tables",
                depth::VIEWS_MAX
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Its query has words of its own.
        let mut within = self.clone().with_columns(Wanted::All);
        within.views.push(name.to_owned());
        Ok(within)
    }

    /// The same tables for a query with so many more operators inside each other.
    pub(crate) fn deeper_by(mut self, operators: usize) -> duramen::Result<Self> {
        self.operators += operators;
        if self.operators > depth::OPERATORS_MAX {
            let message = format!(
                "it and what it is used in have more than {} operators and keywords inside each \
                 other: store what it finds in a table",
                depth::OPERATORS_MAX
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(self)
    }

    /// Whether an error is of what a table is defined by, while all tables are listed.
    fn is_wrong(&self, error: &Error) -> bool {
        self.is_listing && error.kind() == ErrorKind::Invalid
    }

    /// The query of a view; none for other tables.
    pub(crate) fn view(&self, text: &str) -> duramen::Result<Option<String>> {
        let TableName { name, period } = TableName::of(text);
        let Some(query) = view::query(&self.snapshot, name)? else { return Ok(None) };
        if let Ok(collection) = self.db.collection(name) {
            let is_deleted = collection.document().is_deleted()?;
            if self.is_listing || (is_deleted && period.is_some()) {
                return Ok(None);
            }
            if !is_deleted {
                let message = format!(
                    "{name:?}{} is both a collection and a view: DROP VIEW lets it be the \
                     collection, and \"duramen rename-document\" gives the collection another name",
                    self.places.of(name, Role::Table)
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
        }
        if period.is_some() {
            let message = format!(
                "{name:?} is a view, which has no past of its own: FOR SYSTEM_TIME belongs to the \
                 tables in it"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(Some(query))
    }

    /// Whether a word of a query is the name of a view.
    pub(crate) fn has_view(&self, places: &Places) -> duramen::Result<bool> {
        for word in places.words() {
            if self.view(word)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The table in a place.
    pub(crate) fn find(&self, place: &TablePlace) -> duramen::Result<Arc<Table>> {
        match &place.document {
            Some(document) => self.array(document, &place.name),
            None => self.collection(&place.name),
        }
    }

    pub(crate) fn collection(&self, text: &str) -> duramen::Result<Arc<Table>> {
        let TableName { name, period } = TableName::of(text);
        let make = || {
            let collection = self.db.collection(name).map_err(|error| self.missing(name, error))?;
            let columns = match period {
                Some(Period::AsOf(_)) | None => self.records(text)?.columns()?,
                Some(period) => {
                    let head = self.snapshot.head_revision(name)?;
                    let revisions = moment::revisions(collection.document(), period, head)?;
                    self.snapshot.version_columns(name, &revisions)?
                }
            };
            // That of now: of the past too it says what the columns are to be.
            Ok((columns, Definition::of(&self.snapshot, name)?))
        };
        let place = TablePlace { document: None, name: text.to_owned() };
        self.known(place, make)
    }

    /// The table in a place, which is made if it is not known.
    fn known(
        &self,
        place: TablePlace,
        make: impl FnOnce() -> duramen::Result<(Columns, Option<Arc<Definition>>)>,
    ) -> duramen::Result<Arc<Table>> {
        let table = self.known.table(self.snapshot.sequence(), (place, &self.wanted), make)?;
        self.places.reads(&table);
        Ok(table)
    }

    /// The records of a collection, as of the moment that is in its name, if there is one.
    pub(crate) fn records(&self, text: &str) -> duramen::Result<CollectionSnapshot> {
        let TableName { name, period } = TableName::of(text);
        let Some(Period::AsOf(text)) = period else {
            return self.snapshot.collection(name).map_err(failure::of_moment);
        };
        let collection = self.db.collection(name).map_err(|error| self.missing(name, error))?;
        let records = match moment::of(collection.document(), text)? {
            Moment::Revision(revision) => collection.at(revision),
            Moment::Time(time) => collection.at_time(time),
        };
        records.map_err(failure::of_moment)
    }

    /// The array of a document at a path, as of the moment that is in its name, if there is one.
    pub(crate) fn array(&self, document: &str, text: &str) -> duramen::Result<Arc<Table>> {
        let TableName { name: path, period } = TableName::of(text);
        let make = || {
            let label: LabelPath = path.parse()?;
            let found = self.db.document(document);
            let found = found.map_err(|error| self.missing(document, error))?;
            let snapshot = match period {
                Some(Period::AsOf(text)) => moment::snapshot(&found, text)?,
                Some(period) => {
                    let head = self.snapshot.head_revision(document)?;
                    let revisions = moment::revisions(&found, period, head)?;
                    let mut ended = Ok(());
                    let mut go_on = || {
                        ended = self.allowance.check();
                        if ended.is_ok() {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        }
                    };
                    let asked = (&label, revisions);
                    let found = self.snapshot.element_version_columns(document, asked, &mut go_on);
                    return ended.and(found);
                }
                None => self.snapshot.document(document).map_err(failure::of_moment)?,
            };
            snapshot.columns(&label)
        };
        let place = TablePlace { document: Some(document.to_owned()), name: text.to_owned() };
        self.known(place, || Ok((make()?, None)))
    }

    /// A document or collection with its past.
    pub(crate) fn tree(&self, name: &str) -> duramen::Result<Tree> {
        let document = self.db.document(name).map_err(|error| self.missing(name, error))?;
        // What was deleted has a past nevertheless.
        let head = self.snapshot.head_revision(name)?;
        Ok(Tree { document, head })
    }

    /// The points of the series that a filter takes.
    pub(crate) fn series(
        &self,
        filter: &SeriesFilter,
        as_of: Option<&str>,
    ) -> duramen::Result<PointsTable> {
        let snapshot = match as_of.map(moment::of_series).transpose()? {
            None => {
                // Points that are staged become a commit when they are asked for.
                for info in self.snapshot.find_series(filter)? {
                    self.db.series(&info.name)?.snapshot();
                }
                self.db.snapshot()
            }
            Some(Moment::Time(time)) => self.db.series_at_time(time)?,
            Some(Moment::Revision(commit)) => {
                let last = self.snapshot.sequence();
                if commit.0 > last.0 {
                    let message =
                        format!("there is no commit c{}: there are c1 to c{last}", commit.0);
                    return Err(Error::new(ErrorKind::NotFound, message));
                }
                self.db.snapshot_at(CommitSequence(commit.0))
            }
        };
        let found = snapshot.find_series(filter)?;
        let glob = filter.glob.as_deref().unwrap_or_default();
        if found.is_empty() && !glob.contains(['*', '?']) {
            return Err(self.missing_series(glob, &snapshot));
        }
        Ok(PointsTable::new(snapshot, found))
    }

    /// Says which series is likely meant.
    fn missing_series(&self, name: &str, snapshot: &DatabaseSnapshot) -> Error {
        if let Ok(series) = snapshot.series(name) {
            let labels = &series.info().definition.labels;
            let labels: Vec<String> = labels.iter().map(|(n, v)| format!("{n}={v}")).collect();
            let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
            let message = format!("series {name:?} has not these labels, but {labels}");
            return Error::new(ErrorKind::NotFound, message);
        }
        let all = snapshot.find_series(&SeriesFilter::default()).unwrap_or_default();
        let advice = match nearest(name, all.into_iter().map(|info| info.name)) {
            Some(nearest) => format!("did you mean {nearest:?}?"),
            None => "give a name or a pattern such as 'boiler/*'".to_owned(),
        };
        let at = self.places.of_text(name);
        Error::new(ErrorKind::NotFound, format!("there is no series {name:?}{at}: {advice}"))
    }

    /// Says which table is likely meant.
    fn missing(&self, name: &str, error: Error) -> Error {
        let at = self.places.of(name, Role::Table);
        match error.kind() {
            ErrorKind::NotFound => {
                let mut names = self.db.documents().unwrap_or_default();
                names.extend(view::names(&self.snapshot).unwrap_or_default());
                let functions = function::names().map(str::to_owned);
                let advice = match nearest(name, names.iter().cloned().chain(functions)) {
                    Some(nearest) => format!("did you mean {nearest:?}?"),
                    None if names.is_empty() => "the database has none yet".to_owned(),
                    None => {
                        let some = names.iter().take(10).map(String::as_str);
                        format!("there are: {}", some.collect::<Vec<_>>().join(", "))
                    }
                };
                let message = format!("there is no table {name:?}{at}: {advice}");
                let error = Error::new(ErrorKind::NotFound, message);
                let names = names.iter().map(String::as_str);
                OtherCase::because(error, OtherCase::of_table(name, names, &self.places))
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

/// A table of which no more than its name is known.
fn without_columns() -> Arc<dyn TableProvider> {
    Arc::new(EmptyTable::new(Arc::new(Schema::empty())))
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
            INFORMATION => Arc::new(Information::new(&self.0)),
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
        if let Some(table) = self.0.own(name) {
            return Ok(Some(Arc::clone(table)));
        }
        let query = match self.0.view(name) {
            // A record that is no view hides no other table.
            Err(error) if self.0.is_wrong(&error) => return Ok(Some(without_columns())),
            query => query.map_err(external)?,
        };
        if let Some(query) = query {
            let table = view::table(&self.0, (name, query.clone())).await;
            // What a view reads may be gone since, which hides no other table.
            return match table {
                Err(_) if self.0.is_listing => Ok(Some(view::without_columns(query)?)),
                table => Ok(Some(table.map_err(external)?)),
            };
        }
        // The names of functions are asked for as well.
        if !self.table_exist(name) && (function::is_known(name) || function::is_of_others(name)) {
            return Ok(None);
        }
        match self.0.collection(name) {
            // Nor does a record that declares no columns.
            Err(error) if self.0.is_wrong(&error) => Ok(Some(without_columns())),
            table => Ok(Some(table.map_err(external)?)),
        }
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let is_view = match self.0.view(name) {
            Err(error) if self.0.is_wrong(&error) => true,
            query => query.map_err(external)?.is_some(),
        };
        Ok(Some(if is_view { TableType::View } else { TableType::Base }))
    }

    fn table_exist(&self, name: &str) -> bool {
        let is_view = || self.0.view(name).is_ok_and(|query| query.is_some());
        let is_collection = || self.0.db.collection(TableName::of(name).name).is_ok();
        self.0.own(name).is_some() || is_collection() || is_view()
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
