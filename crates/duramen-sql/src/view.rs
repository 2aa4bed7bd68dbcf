//! Views: queries that have a name.
//!
//! They are records of a collection, so that they have a past, are backed up and dumped like all
//! else, and can be looked at as a table.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result as DataFusionResult;
use datafusion::datasource::ViewTable;
use datafusion::logical_expr::LogicalPlanBuilder;
use datafusion::sql::sqlparser::ast::{CreateView, ObjectName};
use duramen::{CommitOptions, DatabaseSnapshot, Error, ErrorKind, Key, KeyKind, Result};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::catalog::Tables;
use crate::change::{collection_name, quoted, unsupported};
use crate::session::{self, Session};
use crate::statement::{self, Places, Request};
use crate::{failure, modifiers};

/// The collection of views: the name is the key, `query` the text.
pub(crate) const VIEWS: &str = "duramen/views";

/// The member of a view's record that has its query.
const QUERY: &str = "query";

/// The query of a view, if there is one of that name.
pub(crate) fn query(snapshot: &DatabaseSnapshot, name: &str) -> Result<Option<String>> {
    let views = match snapshot.collection(VIEWS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        views => views?,
    };
    let Some(record) = views.get(name)? else { return Ok(None) };
    let value: Option<Value> = serde_json::from_str(&record.json).ok();
    let query = value.as_ref().and_then(|value| value.get(QUERY)).and_then(Value::as_str);
    let query = query.ok_or_else(|| {
        let message = format!(
            "the record {name:?} of {VIEWS:?} is no view: its member {QUERY:?} has to be a text"
        );
        Error::new(ErrorKind::Invalid, message)
    })?;
    Ok(Some(query.to_owned()))
}

/// The names of all views.
pub(crate) fn names(snapshot: &DatabaseSnapshot) -> Result<Vec<String>> {
    let views = match snapshot.collection(VIEWS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        views => views?,
    };
    views
        .scan(&duramen::ScanOptions::default())?
        .map(|record| Ok(record?.key.to_string()))
        .collect()
}

/// A view as a table, made of tables as of the same commit.
pub(crate) async fn table(
    tables: &Tables,
    (name, query): (&str, String),
) -> Result<Arc<dyn TableProvider>> {
    let tables = tables.within_view(name)?;
    let in_view = |error: Error| error.in_context(format!("view {name:?}"));
    let (request, places) = statement::parse(&query, &[]).map_err(in_view)?;
    let tables = tables.deeper_by(places.operators).map_err(in_view)?;
    let Request::Read(statement) = request else {
        let message = format!("view {name:?}: it is no query");
        return Err(Error::new(ErrorKind::Invalid, message));
    };
    let context = session::planning_context(Arc::new(tables));
    let plan = modifiers::plan(&context.state(), statement).await;
    let plan = plan.map_err(|error| in_view(failure::query(error, &Places::default())))?;
    Ok(Arc::new(ViewTable::new(plan, Some(query))))
}

/// A view of which no more than its query is known.
pub(crate) fn without_columns(query: String) -> DataFusionResult<Arc<dyn TableProvider>> {
    let plan = LogicalPlanBuilder::empty(false).build()?;
    Ok(Arc::new(ViewTable::new(plan, Some(query))))
}

impl Session {
    /// Keeps a query; `text` is the whole statement.
    pub(crate) fn create_view(
        &self,
        view: &CreateView,
        (text, places): (&str, &Places),
    ) -> Result<Answer<'_>> {
        let name = collection_name(&view.name)?;
        if view.materialized || view.temporary || view.to.is_some() {
            return Err(unsupported("views that are MATERIALIZED or TEMPORARY"));
        }
        let mut query = statement::view_query(text)?;
        if !view.columns.is_empty() {
            let columns = view.columns.iter().map(|column| quoted(&column.name.value));
            let columns = columns.collect::<Vec<_>>().join(", ");
            query = format!("SELECT * FROM (\n{query}\n) AS {}({columns})", quoted(&name));
        }
        if self.db().documents()?.contains(&name) {
            let message = format!("there is a document or collection {name:?} already");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let is_there = query_of(self, &name)?.is_some();
        if is_there && !view.or_replace {
            let message = format!("there is a view {name:?} already");
            if view.if_not_exists {
                return Self::done(&message);
            }
            let message = format!("{message}: CREATE OR REPLACE VIEW");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        // It is planned as a part of itself, so that it cannot be made of itself.
        let tables = self.tables(places).within_view(&name)?;
        let checked = format!("SELECT * FROM (\n{query}\n) AS checked LIMIT 0");
        for batch in self.read_with(&checked, places, tables)? {
            batch?;
        }
        if self.db().collection(VIEWS).is_err() {
            self.db().create_collection(VIEWS, KeyKind::Text)?;
        }
        let mut transaction = self.db().transaction();
        let record = json!({ QUERY: query }).to_string();
        transaction.put_record(VIEWS, &Key::from(name.as_str()), record.as_bytes())?;
        transaction.commit(&CommitOptions::default())?;
        Self::done(&format!("made the view {name:?}"))
    }

    pub(crate) fn drop_view(&self, name: &ObjectName) -> Result<String> {
        let (sql, name) = (name, collection_name(name)?);
        if query_of(self, &name)?.is_none() {
            if self.db().collections()?.contains(&name) {
                let message = format!("{sql} is a table and no view: DROP TABLE {sql}");
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            let message = format!("there is no view {name:?}: {VIEWS:?} has those there are");
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        self.db().collection(VIEWS)?.delete(name.as_str(), &CommitOptions::default())?;
        Ok(format!("dropped the view {name:?}"))
    }
}

fn query_of(session: &Session, name: &str) -> Result<Option<String>> {
    query(&session.db().snapshot(), name)
}
