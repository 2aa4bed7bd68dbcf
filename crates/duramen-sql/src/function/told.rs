//! What the engine tells of the past of a document or collection.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::TableProvider;
use datafusion::common::ScalarValue;
use datafusion::prelude::col;
use duramen::{
    ChangeKind, Diff, Document, Error, ErrorKind, KeyKind, LogEntry, LogQuery, Moment, Result,
    Revision, ValueRun,
};

use super::rows::{self, Row, Rows, integer, text, time};
use crate::catalog::Tree;
use crate::column_type::timestamp;
use crate::moment;

/// The revisions, newest first.
pub(super) fn revisions(tree: Tree) -> Result<Arc<dyn TableProvider>> {
    let schema = rows::schema([
        ("revision", DataType::Int64),
        ("timestamp", timestamp()),
        ("committed", timestamp()),
        ("sequence", DataType::Int64),
        ("author", DataType::Utf8View),
        ("message", DataType::Utf8View),
        ("changes", DataType::Int64),
        ("deleted", DataType::Boolean),
    ]);
    let order = vec![col("revision").sort(false, true)];
    let table = rows::table(schema, order, move || {
        let before = Some(Revision(tree.head.0 + 1));
        let log = tree.document.log(&LogQuery { before, ..LogQuery::default() })?;
        let row = |entry: LogEntry| -> Row {
            vec![
                integer(entry.revision.0),
                time(entry.timestamp),
                time(entry.committed),
                integer(entry.sequence.0),
                text(entry.author),
                text(entry.message),
                integer(entry.changes),
                ScalarValue::Boolean(Some(entry.deleted)),
            ]
        };
        Ok(Box::new(log.map(move |entry| entry.map(row))))
    })?;
    Ok(Arc::new(table))
}

/// The values of a place, newest first.
pub(super) fn history(
    tree: Tree,
    path: &str,
    as_of: Option<&str>,
) -> Result<Arc<dyn TableProvider>> {
    let keys = keys(&tree.document)?;
    let target = keys.stored_target(&path.parse()?);
    let snapshot = match as_of {
        Some(text) => moment::snapshot(&tree.document, text)?,
        None => tree.last()?,
    };
    let pointer = snapshot.resolve(&target)?;
    // A place that is not there is an error before anything is read.
    snapshot.history(&pointer).map_err(|error| keys.shown_error(error))?;
    let schema = rows::schema([
        ("revision", DataType::Int64),
        ("last_revision", DataType::Int64),
        ("timestamp", timestamp()),
        ("author", DataType::Utf8View),
        ("message", DataType::Utf8View),
        ("value", DataType::Utf8View),
    ]);
    let schema = rows::with_json(&schema, &["value"]);
    let order = vec![col("revision").sort(false, true)];
    let table = rows::table(schema, order, move || {
        let (document, head) = (tree.document.clone(), tree.head);
        let runs = snapshot.history(&pointer)?;
        let runs = runs.filter(move |run| run.as_ref().map_or(true, |run| run.first <= head));
        Ok(Box::new(runs.map(move |run| run_row(&document, head, &run?))))
    })?;
    Ok(Arc::new(table))
}

fn run_row(document: &Document, head: Revision, run: &ValueRun) -> Result<Row> {
    let entry = entry(document, run.first)?;
    Ok(vec![
        integer(run.first.0),
        integer(run.last.min(head).0),
        time(entry.timestamp),
        text(entry.author),
        text(entry.message),
        text(Some(run.value.to_string())),
    ])
}

/// What differs between two moments.
pub(super) fn diff(tree: Tree, before: &str, after: &str) -> Result<Arc<dyn TableProvider>> {
    let before = revision(&tree.document, before)?;
    let after = revision(&tree.document, after)?;
    let keys = keys(&tree.document)?;
    let schema = rows::schema([
        ("operation", DataType::Utf8View),
        ("path", DataType::Utf8View),
        ("old", DataType::Utf8View),
        ("new", DataType::Utf8View),
    ]);
    let schema = rows::with_json(&schema, &["old", "new"]);
    let table = rows::table(schema, Vec::new(), move || {
        let found = tree.document.diff(before, after)?;
        Ok(Box::new(change_rows(found, keys).map(Ok)))
    })?;
    Ok(Arc::new(table))
}

/// What each revision after a moment changed, oldest first.
pub(super) fn changes(tree: Tree, from: &str) -> Result<Arc<dyn TableProvider>> {
    let from = revision(&tree.document, from)?;
    let keys = keys(&tree.document)?;
    let schema = rows::schema([
        ("revision", DataType::Int64),
        ("timestamp", timestamp()),
        ("author", DataType::Utf8View),
        ("message", DataType::Utf8View),
        ("operation", DataType::Utf8View),
        ("path", DataType::Utf8View),
        ("old", DataType::Utf8View),
        ("new", DataType::Utf8View),
    ]);
    let schema = rows::with_json(&schema, &["old", "new"]);
    let order = vec![col("revision").sort(true, true)];
    let table = rows::table(schema, order, move || {
        let document = tree.document.clone();
        let revisions = from.0 + 1..=tree.head.0;
        Ok(Box::new(revisions.flat_map(move |revision| {
            let told = revision_rows((&document, keys), Revision(revision));
            told.unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        })))
    })?;
    Ok(Arc::new(table))
}

fn revision_rows((document, keys): (&Document, KeyKind), revision: Revision) -> Result<Rows> {
    let entry = entry(document, revision)?;
    let found = document.diff(Revision(revision.0 - 1), revision)?;
    let known =
        vec![integer(revision.0), time(entry.timestamp), text(entry.author), text(entry.message)];
    Ok(Box::new(change_rows(found, keys).map(move |row| Ok([known.clone(), row].concat()))))
}

/// How places in a document are shown and taken: in a collection under the keys of its records.
fn keys(document: &Document) -> Result<KeyKind> {
    Ok(document.options()?.collection.unwrap_or_default())
}

fn change_rows(found: Diff, keys: KeyKind) -> impl Iterator<Item = Row> + Send {
    found.changes.into_iter().map(move |change| {
        let operation = match change.kind {
            ChangeKind::Added => "add",
            ChangeKind::Removed => "remove",
            ChangeKind::Replaced => "replace",
            ChangeKind::Reordered => "reorder",
        };
        let path = keys.shown_pointer(&change.pointer).to_string();
        let operation = operation.to_owned();
        vec![text(Some(operation)), text(Some(path)), text(change.before), text(change.after)]
    })
}

/// The revision that a moment means.
fn revision(document: &Document, text: &str) -> Result<Revision> {
    match moment::of(document, text)? {
        Moment::Time(time) => Ok(document.at_time(time)?.revision()),
        Moment::Revision(revision) => {
            // Refuses what is not there, before anything is read.
            entry(document, revision)?;
            Ok(revision)
        }
    }
}

/// What is known of a revision.
fn entry(document: &Document, revision: Revision) -> Result<LogEntry> {
    let at = Some(Moment::Revision(revision));
    let query = LogQuery { limit: Some(1), from: at, to: at, ..LogQuery::default() };
    document.log(&query)?.next().unwrap_or_else(|| {
        let (name, head) = (document.name(), document.head_revision()?);
        let first = document.first_revision()?;
        let message = format!(
            "document {name:?} has no revision {revision}: it has revisions {first} to {head}"
        );
        Err(Error::new(ErrorKind::NotFound, message))
    })
}
