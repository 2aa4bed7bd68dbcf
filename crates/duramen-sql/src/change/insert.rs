//! `INSERT`: records that were not there.

use datafusion::sql::sqlparser::ast::{
    ConflictTarget, Insert, ObjectName, OnConflictAction, OnInsert, Query, SetExpr,
    SqliteOnConflict, TableObject,
};
use duramen::{Error, ErrorKind, Result, Transaction};

use super::{Changed, KEY, OF_ENGINE, Staged, Target, Told, check_filled, unsupported};
use crate::record_json::RecordWriter;
use crate::session::Session;
use crate::statement::Places;

/// What becomes of a record that has the key of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Refused,
    Kept,
    Replaced,
}

pub(super) fn table(insert: &Insert) -> Result<&ObjectName> {
    match &insert.table {
        TableObject::TableName(name) => Ok(name),
        _ => Err(unsupported("INSERT into what is no collection")),
    }
}

pub(super) fn run(
    session: &Session,
    (insert, places): (&Insert, &Places),
    target: &Target,
    transaction: &mut Transaction,
) -> Result<Changed> {
    let existing = existing(insert)?;
    let Some(source) = &insert.source else {
        return Err(unsupported("INSERT without VALUES or a query"));
    };
    let answer = session.read_with(&source.to_string(), places, session.tables(places))?;
    let schema = answer.schema();
    let found: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns = columns(insert, source, &found)?;
    let writer = RecordWriter::new(target, &columns);
    let (name, mut keys, mut row) = (target.collection.name(), Vec::new(), 0);
    let mut staged = Staged::new(session);
    for batch in answer {
        let batch = batch?;
        let mut records = writer.records(&batch)?;
        for index in 0..batch.num_rows() {
            row += 1;
            let (key, json) = records.record(index, row)?;
            let in_row = |error: Error| error.in_context(format!("row {row}"));
            match existing {
                Existing::Refused => {
                    transaction.insert_record(name, &key, &json).map_err(in_row)?;
                }
                Existing::Replaced => transaction.put_record(name, &key, &json).map_err(in_row)?,
                Existing::Kept => {
                    if transaction.get_record(name, &key)?.is_some() {
                        continue;
                    }
                    transaction.insert_record(name, &key, &json).map_err(in_row)?;
                }
            }
            staged.add(transaction, 1, json.len())?;
            staged.keep(transaction, &key, 1)?;
            keys.push(key);
        }
    }
    Ok(Changed { keys, told_at: Told::After })
}

fn existing(insert: &Insert) -> Result<Existing> {
    if insert.replace_into || insert.or == Some(SqliteOnConflict::Replace) {
        return Ok(Existing::Replaced);
    }
    match (&insert.on, insert.or) {
        (None, None) => Ok(Existing::Refused),
        (None, Some(SqliteOnConflict::Ignore)) => Ok(Existing::Kept),
        (Some(OnInsert::OnConflict(on)), None) if on.action == OnConflictAction::DoNothing => {
            let is_key = match &on.conflict_target {
                None => true,
                Some(ConflictTarget::Columns(names)) => {
                    matches!(names.as_slice(), [name] if name.value == KEY)
                }
                Some(ConflictTarget::OnConstraint(_)) => false,
            };
            if is_key {
                return Ok(Existing::Kept);
            }
            Err(unsupported("ON CONFLICT of anything but the key: ON CONFLICT (_key) DO NOTHING"))
        }
        _ => Err(unsupported(
            "this clause for keys that are there: ON CONFLICT DO NOTHING keeps their records, \
             INSERT OR REPLACE saves the new ones",
        )),
    }
}

/// The columns that values are for, in the order of the query; those that are left out have no
/// name.
fn columns(insert: &Insert, source: &Query, found: &[&str]) -> Result<Vec<Option<String>>> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    let columns: Vec<Option<String>> = if insert.columns.is_empty() {
        if matches!(*source.body, SetExpr::Values(_)) {
            return invalid(format!(
                "name the columns of the values, {KEY} among them: INSERT INTO {} ({KEY}, ...) \
                 VALUES (...)",
                insert.table
            ));
        }
        let is_ours = |name: &&str| OF_ENGINE.contains(name);
        found.iter().map(|name| (!is_ours(name)).then(|| (*name).to_owned())).collect()
    } else {
        let names = insert.columns.iter().map(|name| name.0.last());
        let names = names.map(|part| part.and_then(|part| part.as_ident()));
        names.map(|ident| ident.map(|ident| ident.value.clone())).collect()
    };
    if columns.len() != found.len() {
        return invalid(format!(
            "{} columns are named, and there are {} values for each: give one for each column",
            columns.len(),
            found.len()
        ));
    }
    for (index, name) in columns.iter().enumerate() {
        let Some(name) = name else { continue };
        check_filled(name)?;
        if columns[..index].contains(&Some(name.clone())) {
            return invalid(format!("the column {name:?} is named twice"));
        }
    }
    if !columns.iter().flatten().any(|name| name == KEY) {
        return invalid(format!(
            "no column {KEY} is given: it has the keys of the records, which nobody makes up; \
             INSERT INTO {} ({KEY}, ...)",
            insert.table
        ));
    }
    Ok(columns)
}
