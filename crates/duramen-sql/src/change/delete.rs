//! `DELETE`: records that go.

use std::fmt::Write as _;

use datafusion::sql::sqlparser::ast::{Delete, FromTable, Ident, ObjectName, TableWithJoins};
use duramen::{Result, Transaction};

use super::{Changed, KEY, Staged, Target, Told, behind, factor, key_of, unsupported};
use crate::record_json::Cells;
use crate::session::Session;
use crate::statement::Places;

/// Keys of records that are deleted together.
const KEYS_AT_ONCE: usize = 4_096;

fn from(delete: &Delete) -> &[TableWithJoins] {
    match &delete.from {
        FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from) => from,
    }
}

pub(super) fn table(delete: &Delete) -> Result<(&ObjectName, Option<&Ident>)> {
    match from(delete) {
        [table] if table.joins.is_empty() && delete.tables.is_empty() => factor(&table.relation),
        _ => Err(unsupported("DELETE from several tables: USING names those to look into")),
    }
}

pub(super) fn run(
    session: &Session,
    (delete, places): (&Delete, &Places),
    target: &Target,
    transaction: &mut Transaction,
) -> Result<Changed> {
    if !delete.order_by.is_empty() || delete.limit.is_some() {
        return Err(unsupported("DELETE with ORDER BY or LIMIT: name the keys in WHERE"));
    }
    let (name, alias) = table(delete)?;
    let alias = alias.map_or_else(|| name.to_string(), ToString::to_string);
    let tables = from(delete).iter().chain(delete.using.iter().flatten());
    let tables = tables.map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let mut sql = format!("SELECT DISTINCT {alias}.{KEY} FROM {tables}");
    if let Some(selection) = &delete.selection {
        let _ = write!(sql, " WHERE {selection}");
    }
    let (kind, mut keys) = (target.collection.key_kind(), Vec::new());
    let mut staged = Staged::new(session, places);
    for batch in
        session.read_with(&behind(places.with.as_deref(), sql), places, session.tables(places))?
    {
        let batch = batch?;
        let cells = Cells::new(batch.column(0), &batch.schema_ref().fields()[0])?;
        for row in 0..batch.num_rows() {
            let key = key_of(kind, &cells, row, row as u64 + 1)?;
            staged.keep(transaction, &key, 1)?;
            staged.rows += 1;
            keys.push(key);
        }
    }
    staged.rows = 0;
    for some in keys.chunks(KEYS_AT_ONCE) {
        transaction.delete_records(target.collection.name(), some)?;
        staged.add(transaction, some.len(), 0)?;
    }
    Ok(Changed { keys, columns: Vec::new(), told_at: Told::Before })
}
