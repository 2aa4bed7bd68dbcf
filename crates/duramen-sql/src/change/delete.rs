//! `DELETE`: records that go.

use std::fmt::Write as _;

use datafusion::sql::sqlparser::ast::{Delete, FromTable, Ident, ObjectName, TableWithJoins};
use duramen::{Result, Transaction};

use super::{Changed, KEY, Staged, Target, Told, behind, factor, unsupported, update};
use crate::session::Session;
use crate::statement::Places;

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
    // Other tables may find a record several times.
    let once = if delete.using.is_some() { "DISTINCT " } else { "" };
    let mut sql = format!("SELECT {once}{alias}.{KEY} FROM {tables}");
    if let Some(selection) = &delete.selection {
        let _ = write!(sql, " WHERE {selection}");
    }
    let sql = behind(places.with.as_deref(), sql);
    let mut staged = Staged::new(session, places).telling(delete.returning.as_deref());
    for batch in session.read_with(&sql, places, session.tables(places))? {
        let keys = update::keys(&batch?, target, staged.rows as u64)?;
        transaction.delete_records(target.collection.name(), &keys)?;
        keys.into_iter().try_for_each(|key| staged.change(transaction, key, 0))?;
    }
    Ok(staged.done(Vec::new(), Told::Before))
}
