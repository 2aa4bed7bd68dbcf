//! `RETURNING`: what a statement tells of the rows that it changed, by a query of its own.
//!
//! It is planned before anything is committed, over what the transaction has made: one that asks
//! for what there is not leaves nothing changed. What only values can tell is seen once they are
//! committed, and read.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::empty::EmptyTable;
use datafusion::sql::sqlparser::ast::SelectItem;
use duramen::{ColumnField, Result, Revision, Transaction};

use super::{Changed, KEY, RowsOf, Target, Told, behind, key_table, quoted};
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
        let items = items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "SELECT {items} FROM {} AS {alias} WHERE {alias}.{KEY} IN (SELECT {KEY} FROM {})",
            quoted(RETURNED),
            quoted(CHANGED_KEYS)
        );
        let sql = behind(rows.with, sql);
        let root = transaction.record_fields(name)?;
        let returning = Self { session, places, target, changed, sql, root };
        let made: Arc<dyn TableProvider> = Arc::new(EmptyTable::new(returning.made().schema));
        let told: Arc<dyn TableProvider> = match (&target.table, changed.told_at) {
            (Some(table), Told::Before) => Arc::new(EmptyTable::new(table.schema())),
            _ => Arc::clone(&made),
        };
        let keys = key_table(target.collection.key_kind(), &[])?;
        let tables = session.tables(places).with_own(name, made);
        let tables = tables.with_own(RETURNED, told).with_own(CHANGED_KEYS, keys);
        session.plan_with(&returning.sql, places, tables)?;
        Ok(returning)
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
