//! `UPDATE`: other values of fields of records; all others stay as they are.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use datafusion::arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, TableWithJoins, Update, UpdateTableFromKind, With,
};
use duramen::{CollectionSnapshot, Error, ErrorKind, Key, Result, Transaction};
use serde_json::value::RawValue;

use super::{
    Changed, KEY, Staged, Target, Told, behind, check_filled, factor, key_of, member, proposed,
    unsupported, wrong,
};
use crate::catalog::Tables;
use crate::column_type::ColumnType;
use crate::digits::{self, Given};
use crate::record_json::{Cells, Fit, Kind, kind, string};
use crate::session::Session;
use crate::statement::Places;

/// The members that lead to a field, from the record on.
type Members = Vec<String>;

/// Where an `UPDATE` finds what it sets.
pub(super) struct Source<'s> {
    pub(super) session: &'s Session,
    pub(super) places: &'s Places,
    pub(super) tables: Tables,
    /// The records that an `INSERT` has for keys that are there, if it is one.
    pub(super) proposed: Option<CollectionSnapshot>,
    /// What stands before it.
    pub(super) with: Option<&'s With>,
}

/// A field whose value is set as it is.
enum Copied {
    OfRecord(Members),
    OfProposed(Members),
}

pub(super) fn run(
    session: &Session,
    (update, places): (&Update, &Places),
    target: &Target,
    transaction: &mut Transaction,
) -> Result<Changed> {
    let tables = session.tables(places);
    let mut staged = Staged::new(session, places).telling(update.returning.as_deref());
    let source = Source { session, places, tables, proposed: None, with: places.with.as_deref() };
    stage(update, source, target, transaction, &mut staged)?;
    Ok(staged.done(columns(&update.assignments, table(update, target)?, target), Told::After))
}

/// The columns that are set.
pub(super) fn columns(assignments: &[Assignment], table: &str, target: &Target) -> Vec<String> {
    let fields = assignments.iter().filter_map(|assignment| field(assignment, table, target).ok());
    fields.filter_map(|field| field.into_iter().next()).collect()
}

/// What the table is called in the statement.
fn table<'u>(update: &'u Update, target: &'u Target) -> Result<&'u str> {
    let (_, alias) = factor(&update.table.relation)?;
    Ok(alias.map_or(target.collection.name(), |alias| alias.value.as_str()))
}

/// Stages other values of fields of the records that are found.
pub(super) fn stage(
    update: &Update,
    source: Source<'_>,
    target: &Target,
    transaction: &mut Transaction,
    staged: &mut Staged,
) -> Result<()> {
    let Source { session, places, tables, proposed, with } = source;
    let table = table(update, target)?;
    let fields = update.assignments.iter().map(|assignment| field(assignment, table, target));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    check(&fields)?;
    // A name alone may be that of another table's column, but not of those that are proposed.
    let is_alone = others(update).is_empty() && update.table.joins.is_empty();
    let is_clear = is_alone || proposed.is_some();
    let copied = |assignment| copied(assignment, table, target).filter(|_| is_clear);
    let copied: Vec<Option<Copied>> = update.assignments.iter().map(copied).collect();
    let fits = fields.iter().zip(&update.assignments);
    let fits: Vec<Result<Fit<'_>, String>> =
        fits.map(|(field, assignment)| fit_of(assignment, field, target)).collect();
    let needs = |of: fn(&Copied) -> bool| copied.iter().flatten().any(of);
    let needs_record = needs(|copied| matches!(copied, Copied::OfRecord(_)));
    let needs_proposed = needs(|copied| matches!(copied, Copied::OfProposed(_)));
    let name = target.collection.name();
    // Of those that other tables may find several times.
    let mut seen = (!is_clear).then(HashSet::new);
    let mut number = 0;
    let sql = behind(with, query(update, proposed.as_ref())?);
    let given = Given::of_update(update, with);
    if given.has_inside() {
        given.check_plan(&session.meaning(&sql, places, tables.clone())?)?;
    }
    for batch in session.read_with(&sql, places, tables)? {
        let batch = batch?;
        for (row, key) in keys(&batch, target, number)?.into_iter().enumerate() {
            if let Some(seen) = &mut seen {
                staged.keep(transaction, &key, 1)?;
                if !seen.insert(key.clone()) {
                    return Err(found_again(&key));
                }
            }
            number += 1;
            let record = if needs_record { transaction.get_record(name, &key)? } else { None };
            let other = match &proposed {
                Some(records) if needs_proposed => {
                    records.get(key.clone())?.map(|record| record.json)
                }
                _ => None,
            };
            let written = |copied: &Option<Copied>| match copied.as_ref()? {
                Copied::OfRecord(path) => written(record.as_deref()?, path),
                Copied::OfProposed(path) => written(other.as_deref()?, path),
            };
            let written = copied.iter().map(written).collect();
            let change = Change::of((&fields, &fits), (&batch, row, number), written)?;
            change.stage(name, &key, transaction)?;
            staged.change(transaction, key, change.bytes())?;
        }
    }
    Ok(())
}

fn found_again(key: &Key) -> Error {
    let message = format!(
        "record {key} is found several times, so that it is not clear which value it is to have: \
         have FROM and WHERE find it once"
    );
    Error::new(ErrorKind::Invalid, message)
}

/// The query for the key and the new values of each record that is found.
fn query(update: &Update, proposed: Option<&CollectionSnapshot>) -> Result<String> {
    if !update.order_by.is_empty() || update.limit.is_some() || update.or.is_some() {
        return Err(unsupported("UPDATE with OR, ORDER BY or LIMIT: name the keys in WHERE"));
    }
    let (name, alias) = factor(&update.table.relation)?;
    let alias = alias.map_or_else(|| name.to_string(), ToString::to_string);
    let mut sql = format!("SELECT {alias}.{KEY} AS \"key\"");
    for (index, assignment) in update.assignments.iter().enumerate() {
        let value = digits::in_text(&assignment.value);
        let value = value.as_ref().unwrap_or(&assignment.value);
        let _ = write!(sql, ", ({value}) AS \"{index}\"");
    }
    let mut tables: Vec<_> = std::iter::once(&update.table).chain(others(update)).collect();
    // A join keeps the first one in memory, and all records that are there may be many.
    if proposed.is_some() {
        tables.reverse();
    }
    let tables = tables.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let _ = write!(sql, " FROM {tables}");
    if let Some(selection) = &update.selection {
        let _ = write!(sql, " WHERE {selection}");
    }
    Ok(sql)
}

fn others(update: &Update) -> &[TableWithJoins] {
    match &update.from {
        Some(UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from)) => from,
        None => &[],
    }
}

/// The field that is set; the name of the table may stand before it.
fn field(assignment: &Assignment, table: &str, target: &Target) -> Result<Members> {
    let AssignmentTarget::ColumnName(name) = &assignment.target else {
        return Err(unsupported("several columns at once: set one after the other"));
    };
    let names: Option<Vec<&Ident>> = name.0.iter().map(|part| part.as_ident()).collect();
    let names = names.ok_or_else(|| unsupported("a computed column: name the one to set"))?;
    members(&names, table, target)
}

/// What names lead to within a record, of which the first is that of a column as it is there.
pub(super) fn members(names: &[&Ident], table: &str, target: &Target) -> Result<Members> {
    let all: Vec<String> = names.iter().map(|name| name.value.clone()).collect();
    let within = in_record(&all, table, target);
    let may_be_table = (names.len() > 1 && within.len() == names.len()).then_some(table);
    if let Some(first) = names.get(names.len() - within.len()) {
        target.check_case(first, may_be_table)?;
    }
    Ok(within.to_vec())
}

/// What leads to a field within a record: the name of the table may stand before it.
pub(super) fn in_record<'n>(names: &'n [String], table: &str, target: &Target) -> &'n [String] {
    match names.split_first() {
        Some((first, rest)) if first == table && !rest.is_empty() && !target.has_column(first) => {
            rest
        }
        _ => names,
    }
}

/// The field whose value is set, if it is nothing but that. A table has some values otherwise than
/// they are written, such as decimals, which are copied as they are.
fn copied(assignment: &Assignment, table: &str, target: &Target) -> Option<Copied> {
    let names: Vec<String> = match &assignment.value {
        Expr::Identifier(name) => vec![name.value.clone()],
        Expr::CompoundIdentifier(names) => names.iter().map(|name| name.value.clone()).collect(),
        _ => return None,
    };
    if let Some(field) = proposed::field(&names) {
        return Some(Copied::OfProposed(field));
    }
    let field = in_record(&names, table, target);
    target.column_type(&field[0]).is_some().then(|| Copied::OfRecord(field.to_vec()))
}

/// The value of a field of a record as it is written.
fn written(record: &str, path: &[String]) -> Option<String> {
    let mut value = record;
    for name in path {
        let mut members: HashMap<String, &RawValue> = serde_json::from_str(value).ok()?;
        value = members.remove(member(name))?.get();
    }
    Some(value.to_owned())
}

fn check(fields: &[Members]) -> Result<()> {
    let invalid = |message: String| Err(Error::new(ErrorKind::Invalid, message));
    for (index, field) in fields.iter().enumerate() {
        let first = field.first().map_or("", String::as_str);
        check_filled(first)?;
        if first == KEY {
            return invalid(format!(
                "a record keeps its {KEY}: insert one with the other key and delete this one"
            ));
        }
        let is_twice = |other: &Members| other.starts_with(field) || field.starts_with(other);
        if fields[..index].iter().any(is_twice) {
            return invalid(format!("the column {:?} is set twice", field.join(".")));
        }
    }
    Ok(())
}

/// The keys in the first column, behind so many.
pub(super) fn keys(batch: &RecordBatch, target: &Target, before: u64) -> Result<Vec<Key>> {
    let cells = Cells::new(batch.column(0), &batch.schema_ref().fields()[0])?;
    let kind = target.collection.key_kind();
    let key = |row| key_of(kind, &cells, row, before + row as u64 + 1);
    (0..batch.num_rows()).map(key).collect()
}

/// What becomes of one record. Merge patches make the objects on the way to a field, remove what is
/// NULL, and set all values but objects, which they would mix with what is there.
#[derive(Default)]
struct Change {
    merged: Vec<Merged>,
    patched: Vec<String>,
}

/// A merge patch.
struct Merged {
    patch: String,
    /// The object that it removes a field of, which it is not to make for that.
    object: Option<Members>,
}

impl Change {
    fn of(
        (fields, fits): (&[Members], &[Result<Fit<'_>, String>]),
        (batch, row, number): (&RecordBatch, usize, u64),
        written: Vec<Option<String>>,
    ) -> Result<Self> {
        let mut change = Self::default();
        let values = batch.columns().iter().zip(batch.schema_ref().fields()).skip(1);
        let fields = fields.iter().zip(fits);
        for (((field, fit), (array, of)), written) in fields.zip(values).zip(written) {
            let mut cells = Cells::new(array, of)?;
            let json =
                fit.clone().and_then(|fit| fit.kept(as_written(cells.json(fit, row)?, written)));
            match json.map_err(|why| wrong(number, &field.join("."), why))? {
                Some(json) if json.starts_with('{') || json == "null" => {
                    let pointer: String = field.iter().map(|name| step(member(name))).collect();
                    let path = string(&pointer);
                    let added = format!("{{\"op\":\"add\",\"path\":{path},\"value\":{json}}}");
                    change.patched.push(added);
                }
                json => {
                    let object = field.split_last().map(|(_, object)| object.to_vec());
                    let object = object.filter(|object| json.is_none() && !object.is_empty());
                    let json = json.unwrap_or_else(|| "null".to_owned());
                    let patch = field
                        .iter()
                        .rev()
                        .fold(json, |inner, name| format!("{{{}:{inner}}}", string(member(name))));
                    change.merged.push(Merged { patch, object });
                }
            }
        }
        Ok(change)
    }

    /// Bytes of its texts.
    fn bytes(&self) -> usize {
        let merged = self.merged.iter().map(|merged| &merged.patch);
        merged.chain(&self.patched).map(String::len).sum()
    }

    fn stage(&self, name: &str, key: &Key, transaction: &mut Transaction) -> Result<()> {
        for Merged { patch, object } in &self.merged {
            if let Some(object) = object {
                let record = transaction.get_record(name, key)?;
                let object = record.and_then(|record| written(&record, object));
                if !object.is_some_and(|object| object.starts_with('{')) {
                    continue;
                }
            }
            transaction.merge_patch_record(name, key, patch.as_bytes())?;
        }
        if !self.patched.is_empty() {
            let patch = format!("[{}]", self.patched.join(","));
            transaction.patch_record(name, key, patch.as_bytes())?;
        }
        Ok(())
    }
}

/// What the values that are set have to become, or why the field can have none.
fn fit_of<'t>(
    assignment: &Assignment,
    field: &[String],
    target: &'t Target,
) -> Result<Fit<'t>, String> {
    let is_text = digits::in_text(&assignment.value).is_some();
    fit(field, target).map(|fit| if is_text { fit.of_numbers() } else { fit })
}

/// What the values of a field have to become, or why it can have none.
fn fit<'t>(field: &[String], target: &'t Target) -> Result<Fit<'t>, String> {
    let Some((first, names)) = field.split_first() else { return Ok(Fit::new(None)) };
    if names.is_empty() {
        return Ok(target.fit(first));
    }
    let declared = target.definition.as_ref().and_then(|definition| definition.column(first));
    if let Some(declared) = declared {
        return declared.within();
    }
    let mut kind = target.column_type(first);
    for name in names {
        Fit::new(kind).check(Kind::Object)?;
        kind = match kind {
            Some(ColumnType::Struct(members)) => {
                members.iter().find(|member| member.field.name() == name).map(|member| &member.kind)
            }
            _ => None,
        };
    }
    Ok(Fit::new(kind))
}

/// A value as it is written where it is copied, unless it became one of another kind.
fn as_written(json: Option<String>, written: Option<String>) -> Option<String> {
    let is_same = |written: &String| kind(json.as_deref().unwrap_or("null")) == kind(written);
    written.filter(is_same).or(json)
}

/// A step of a JSON Pointer.
fn step(name: &str) -> String {
    format!("/{}", name.replace('~', "~0").replace('/', "~1"))
}
