//! `RETURNING`: what a statement tells of the rows that it changed, by a query of its own.
//!
//! It is planned before anything is committed, over what the transaction has made: one that asks
//! for what there is not leaves nothing changed. What only values can tell is seen once they are
//! committed, and read.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::sql::sqlparser::ast::{Expr, Query, SelectItem, Visit, Visitor};
use duramen::{ColumnField, Result, Revision, Transaction};

use super::{Changed, KEY, RowsOf, Target, Told, behind, key_table, quoted, unsupported};
use crate::answer::{self, Answer};
use crate::column_type::TableColumns;
use crate::session::Session;
use crate::statement::Places;
use crate::table::{Table, TablePlace, Wanted};

/// Where the keys of changed records are found.
const CHANGED_KEYS: &str = "\u{1f}changed";

/// What the table is called whose rows are told of.
const RETURNED: &str = "\u{1f}returned";

/// What a statement tells, and of what.
pub(super) struct Returning<'s, 't> {
    session: &'s Session,
    places: &'t Places,
    target: &'t Target,
    changed: &'t Changed,
    sql: String,
    /// What its columns will have when the transaction is committed.
    root: ColumnField,
}

impl<'s, 't> Returning<'s, 't> {
    /// Plans what is to be told once a transaction is committed.
    pub(super) fn plan(
        (session, places): (&'s Session, &'t Places),
        (rows, items): (&RowsOf<'_>, &[SelectItem]),
        (target, changed): (&'t Target, &'t Changed),
        transaction: &mut Transaction,
    ) -> Result<Self> {
        let name = target.collection.name();
        let alias = rows.alias.map_or_else(|| quoted(name), ToString::to_string);
        check_rows(items)?;
        let items = items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let root = transaction.record_fields(name)?;
        let mut returning = Self { session, places, target, changed, sql: String::new(), root };
        let made: Arc<dyn TableProvider> = Arc::new(EmptyTable::new(returning.made().schema));
        let told: Arc<dyn TableProvider> = match (&target.table, changed.told_at) {
            (Some(table), Told::Before) => Arc::new(EmptyTable::new(table.schema())),
            _ => Arc::clone(&made),
        };
        let sql = format!(
            "SELECT {items} FROM {} AS {alias} WHERE {alias}.{KEY} IN (SELECT {KEY} FROM {})",
            returning.with_empty(&told.schema()),
            quoted(CHANGED_KEYS)
        );
        returning.sql = behind(rows.with, sql);
        let keys = key_table(target.collection.key_kind(), &[])?;
        let tables = session.tables(places).with_own(name, made);
        let tables = tables.with_own(RETURNED, told).with_own(CHANGED_KEYS, keys);
        session.plan_with(&returning.sql, places, tables)?;
        Ok(returning)
    }

    /// What stands behind `FROM`: the table with such columns, and those that the statement or the
    /// table has as well, which are NULL in all records.
    fn with_empty(&self, schema: &Schema) -> String {
        let known = self.target.table.iter().map(|table| table.schema());
        let known = known.flat_map(|known| names(&known));
        let mut empty: Vec<String> = self.changed.columns.iter().cloned().chain(known).collect();
        empty.retain(|name| schema.column_with_name(name).is_none());
        let mut seen = HashSet::new();
        empty.retain(|name| seen.insert(name.clone()));
        if empty.is_empty() {
            return quoted(RETURNED);
        }
        let empty = empty.iter().map(|name| format!("NULL AS {}", quoted(name)));
        let empty = empty.collect::<Vec<_>>().join(", ");
        format!("(SELECT *, {empty} FROM {})", quoted(RETURNED))
    }

    /// The columns that the transaction has made.
    fn made(&self) -> TableColumns {
        let Target { collection, definition, .. } = self.target;
        let declared = Wanted::All.declared(definition.as_ref());
        TableColumns::of(&self.root, (Some(collection.key_kind()), false), declared)
    }

    /// Tells what was changed, in a revision if it made one.
    pub(super) fn answer(self, revision: Option<Revision>) -> Result<Answer<'s>> {
        let Self { session, places, target, changed, .. } = self;
        let told = (|| {
            let keys = key_table(target.collection.key_kind(), &changed.keys)?;
            let tables = session.tables(places).with_own(RETURNED, self.table(revision)?);
            session.read_with(&self.sql, places, tables.with_own(CHANGED_KEYS, keys))
        })();
        let mut told = told.map_err(|error| answer::saved(revision, error))?;
        told.saved = revision;
        Ok(told)
    }

    /// The table that has the rows that are told of.
    fn table(&self, revision: Option<Revision>) -> Result<Arc<dyn TableProvider>> {
        let Target { collection, table, definition, .. } = self.target;
        let revision = revision.filter(|_| self.changed.told_at == Told::After);
        Ok(match (revision, table) {
            (Some(revision), _) => {
                let rows = collection.at(revision)?.columns()?;
                let place = TablePlace { document: None, name: collection.name().to_owned() };
                let columns = (self.root.clone(), self.made());
                Arc::new(Table::of((rows, definition.clone()), place, columns))
            }
            (None, Some(table)) => Arc::clone(table) as Arc<dyn TableProvider>,
            // It was dropped, and nothing came into it.
            (None, None) => Arc::new(EmptyTable::new(self.made().schema)),
        })
    }
}

fn names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// Refuses aggregates, which do not tell of one row; those of queries in it do.
fn check_rows(items: &[SelectItem]) -> Result<()> {
    let mut outer = Outer { functions: Vec::new(), queries: 0 };
    for item in items {
        let ControlFlow::<Infallible>::Continue(()) = item.visit(&mut outer);
    }
    if outer.functions.is_empty() {
        return Ok(());
    }
    for function in all_default_aggregate_functions() {
        let names = function.aliases().iter().map(String::as_str).chain([function.name()]);
        for name in names {
            if outer.functions.iter().any(|called| called.eq_ignore_ascii_case(name)) {
                return Err(unsupported(&format!(
                    "the aggregate {name} in RETURNING, which tells of each record that was \
                     changed: ask for it by a SELECT, in brackets here or after it"
                )));
            }
        }
    }
    Ok(())
}

/// The functions of an expression that no query in it has, nor a window.
struct Outer {
    functions: Vec<String>,
    /// How many queries it is in.
    queries: usize,
}

impl Visitor for Outer {
    type Break = Infallible;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Infallible> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Infallible> {
        if let Expr::Function(function) = expr
            && self.queries == 0
            && function.over.is_none()
        {
            self.functions.push(function.name.to_string());
        }
        ControlFlow::Continue(())
    }
}
