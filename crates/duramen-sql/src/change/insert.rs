//! `INSERT`: records that were not there.

use datafusion::sql::sqlparser::ast::{
    ConflictTarget, DoUpdate, Ident, Insert, ObjectName, OnConflictAction, OnInsert, Query,
    SetExpr, SqliteOnConflict, TableObject, With,
};
use duramen::{Error, ErrorKind, Key, Result, Transaction};

use super::proposed::{Proposed, Upsert};
use super::{
    Changed, KEY, OF_ENGINE, Staged, Target, Told, check_filled, quoted, unsupported, update,
};
use crate::answer::Answer;
use crate::digits::Given;
use crate::record_json::RecordWriter;
use crate::session::Session;
use crate::statement::Places;

/// What becomes of a record that has the key of another.
#[derive(Debug, Clone, Copy)]
pub(super) enum Existing<'i> {
    Refused,
    Kept,
    Replaced,
    Updated(&'i DoUpdate),
}

pub(super) fn table(insert: &Insert) -> Result<&ObjectName> {
    match &insert.table {
        TableObject::TableName(name) => Ok(name),
        _ => Err(unsupported("INSERT into what is no collection")),
    }
}

/// What the table is called in the statement, if that is not its name.
pub(super) fn alias(insert: &Insert) -> Option<&Ident> {
    insert.table_alias.as_ref().map(|named| &named.alias)
}

/// What stands before the statement.
pub(super) fn with(insert: &Insert) -> Option<&With> {
    insert.source.as_ref()?.with.as_ref()
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
    let (answer, given) = read(session, (source, places))?;
    let columns = columns((insert, target), source, &answer)?;
    let writer = RecordWriter::new(target.collection.key_kind(), Some(target), &columns);
    let writer = writer.with_numbers(&given);
    let mut staged = Staged::new(session, places).telling(insert.returning.as_deref());
    let mut proposed = match existing {
        Existing::Updated(set) => {
            Some(Proposed::new(Upsert { insert, set, columns: &columns, target })?)
        }
        _ => None,
    };
    let into = (target.collection.name(), &mut *transaction);
    fill(answer, &writer, (existing, proposed.as_mut()), into, &mut staged)?;
    if let Some(proposed) = proposed {
        let updated = proposed.update(session, places, transaction, &mut staged);
        updated.map_err(|error| error.in_context("ON CONFLICT DO UPDATE"))?;
    }
    let mut columns: Vec<String> = columns.into_iter().flatten().collect();
    if let Existing::Updated(set) = existing {
        let table = alias(insert).map_or(target.collection.name(), |alias| alias.value.as_str());
        columns.extend(update::columns(&set.assignments, table, target));
    }
    Ok(staged.done(columns, Told::After))
}

/// Asks for the rows that are to be inserted, with the numbers that have more digits than those.
pub(super) fn read<'s>(
    session: &'s Session,
    (source, places): (&Query, &Places),
) -> Result<(Answer<'s>, Given)> {
    let (given, sql) = (Given::of(source)?, source.to_string());
    if given.has_inside() {
        given.check_plan(&session.meaning(&sql, places, session.tables(places))?)?;
    }
    let answer = session.read_with(&sql, places, session.tables(places))?;
    given.check(&answer.schema())?;
    Ok((answer, given))
}

/// Inserts the rows of a query into a collection. Those whose keys are there may be proposed for an
/// update.
pub(super) fn fill(
    answer: Answer<'_>,
    writer: &RecordWriter<'_>,
    (existing, mut proposed): (Existing<'_>, Option<&mut Proposed<'_>>),
    (name, transaction): (&str, &mut Transaction),
    staged: &mut Staged,
) -> Result<()> {
    let mut row = 0;
    for batch in answer {
        let batch = batch?;
        let mut records = writer.records(&batch)?;
        for index in 0..batch.num_rows() {
            row += 1;
            let (key, json) = records.record(index, row)?;
            let in_row = |error: Error| error.in_context(format!("row {row}"));
            if let Some(proposed) = &mut proposed {
                proposed.meet(&key).map_err(in_row)?;
                staged.keep(transaction, &key, 1)?;
            }
            if !existing.stage(name, (&key, &json), transaction).map_err(in_row)? {
                if let Some(proposed) = &mut proposed {
                    staged.keep_bytes(transaction, proposed.take(&key, &json)?)?;
                }
                continue;
            }
            staged.change(transaction, key, json.len())?;
        }
    }
    Ok(())
}

fn existing(insert: &Insert) -> Result<Existing<'_>> {
    let is_replaced = insert.replace_into || insert.or == Some(SqliteOnConflict::Replace);
    match (&insert.on, insert.or) {
        (None, _) if is_replaced => Ok(Existing::Replaced),
        (None, None) => Ok(Existing::Refused),
        (None, Some(SqliteOnConflict::Ignore)) => Ok(Existing::Kept),
        (Some(OnInsert::OnConflict(on)), None) if !is_replaced => {
            let is_key = match &on.conflict_target {
                None => true,
                Some(ConflictTarget::Columns(names)) => {
                    matches!(names.as_slice(), [name] if name.value == KEY)
                }
                Some(ConflictTarget::OnConstraint(_)) => false,
            };
            match &on.action {
                _ if !is_key => Err(unsupported(
                    "ON CONFLICT of anything but the key: write ON CONFLICT (_key), other columns \
                     have unique indexes, whose values stay refused",
                )),
                OnConflictAction::DoNothing => Ok(Existing::Kept),
                OnConflictAction::DoUpdate(set) => Ok(Existing::Updated(set)),
            }
        }
        _ => Err(unsupported(
            "this clause for keys that are there: ON CONFLICT DO UPDATE SET changes their \
             records, ON CONFLICT DO NOTHING keeps them, INSERT OR REPLACE saves the new ones",
        )),
    }
}

impl Existing<'_> {
    /// Stages a record, unless the one that is there stays; whether it does.
    fn stage(
        self,
        name: &str,
        (key, json): (&Key, &[u8]),
        transaction: &mut Transaction,
    ) -> Result<bool> {
        match self {
            Self::Kept | Self::Updated(_) if transaction.get_record(name, key)?.is_some() => {
                return Ok(false);
            }
            Self::Replaced => transaction.put_record(name, key, json)?,
            Self::Refused | Self::Kept | Self::Updated(_) => {
                transaction.insert_record(name, key, json)?;
            }
        }
        Ok(true)
    }
}

/// The columns that values are for, in the order of the query; those that are left out have no
/// name.
fn columns(
    (insert, target): (&Insert, &Target),
    source: &Query,
    answer: &Answer<'_>,
) -> Result<Vec<Option<String>>> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    let columns: Vec<Option<String>> = if insert.columns.is_empty() {
        if matches!(*source.body, SetExpr::Values(_)) {
            return columns_declared((insert, target), answer);
        }
        columns_found(answer)
    } else {
        insert.columns.iter().map(|name| column(name, (insert, target))).collect::<Result<_>>()?
    };
    let found = answer.schema().fields().len();
    if columns.len() != found {
        return invalid(format!(
            "{} columns are named, and there are {found} values for each: give one for each column",
            columns.len(),
        ));
    }
    check_columns(&columns, &format!("INSERT INTO {} ({KEY}, ...)", insert.table))?;
    Ok(columns)
}

/// The column that is named; the name of the table may stand before it.
fn column(name: &ObjectName, (insert, target): (&Insert, &Target)) -> Result<Option<String>> {
    let parts: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
    let Some(names) = parts else { return Ok(None) };
    let table = alias(insert).map_or(target.collection.name(), |alias| alias.value.as_str());
    match update::members(&names, table, target)?.as_slice() {
        [column] => Ok(Some(column.clone())),
        [object, ..] => Err(unsupported(&format!(
            "INSERT into a field of an object, {name}: give all of {object:?}, as in \
             named_struct('a', 1), or set the field by UPDATE",
        ))),
        [] => Ok(None),
    }
}

/// The columns that values are for which nothing is said of: those of the table, as declared.
fn columns_declared(
    (insert, target): (&Insert, &Target),
    answer: &Answer<'_>,
) -> Result<Vec<Option<String>>> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    let definition = target.definition.as_ref();
    let list = |names: &[String]| {
        let shown = |name: &String| if name == KEY { name.clone() } else { quoted(name) };
        names.iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let Some(names) = definition.and_then(|definition| definition.names()) else {
        let declared = definition.map_or_else(
            || "...".to_owned(),
            |all| list(&all.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>()),
        );
        return invalid(format!(
            "name the columns of the values, {KEY} among them: INSERT INTO {} ({KEY}, {declared}) \
             VALUES (...)",
            insert.table
        ));
    };
    let found = answer.schema().fields().len();
    if names.len() != found {
        return invalid(format!(
            "there are {found} values for each record, and {} columns are declared: give one for \
             each, NULL for none, or name those that you give: INSERT INTO {} ({}) VALUES (...)",
            names.len(),
            insert.table,
            list(&names)
        ));
    }
    Ok(names.into_iter().map(Some).collect())
}

/// The columns of a query but those that the engine fills, which have no name.
pub(super) fn columns_found(answer: &Answer<'_>) -> Vec<Option<String>> {
    let schema = answer.schema();
    let names = schema.fields().iter().map(|field| field.name());
    names.map(|name| (!OF_ENGINE.contains(&name.as_str())).then(|| name.clone())).collect()
}

/// Refuses columns that no records can be made of; `advice` shows how to give the key.
pub(super) fn check_columns(columns: &[Option<String>], advice: &str) -> Result<()> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
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
             {advice}"
        ));
    }
    Ok(())
}
