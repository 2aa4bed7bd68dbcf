//! `ON CONFLICT DO UPDATE`: what becomes of records whose keys an `INSERT` gives.
//!
//! The records that it has for these keys go into a collection in memory, where they are read as
//! the table reads its own. An `UPDATE` whose `FROM` is that collection does what is asked. Names
//! behind `excluded` get others there, so that those alone are of the record that is there.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, AssignmentTarget, DoUpdate, Expr, Ident, Insert, ObjectNamePart, Query, Select,
    SetExpr, Statement, TableFactor, TableWithJoins, Update, Value, VisitMut, VisitorMut,
};
use duramen::{
    Collection, CommitOptions, Database, Error, ErrorKind, Key, Result, Transaction, nearest,
};

use super::update::{self, Source};
use super::{KEY, OWN, Staged, Target, insert, quoted};
use crate::catalog::COLLECTIONS;
use crate::column_type::{ColumnType, TableColumn, TableColumns};
use crate::session::{self, Session};
use crate::statement::{self, Places, Request};
use crate::table::{Table, TablePlace};
use crate::words::Role;

/// What a statement calls the records that it proposes.
const EXCLUDED: &str = "excluded";

/// What the table of them is called.
const PROPOSED: &str = "\u{1f}excluded";

/// Bytes that a record takes beside its text, which is kept in two places: the journal and states.
const RECORD_BYTES: usize = 64;
const PLACES: usize = 2;

/// An `INSERT` that changes records which are there.
#[derive(Clone, Copy)]
pub(super) struct Upsert<'i> {
    pub(super) insert: &'i Insert,
    pub(super) set: &'i DoUpdate,
    /// The columns that it names.
    pub(super) columns: &'i [Option<String>],
    pub(super) target: &'i Target,
}

/// The records that it has for keys that are there.
pub(super) struct Proposed<'i> {
    upsert: Upsert<'i>,
    collection: Collection,
    transaction: Transaction,
    /// All keys of the statement so far.
    met: HashSet<Key>,
}

impl<'i> Proposed<'i> {
    pub(super) fn new(upsert: Upsert<'i>) -> Result<Self> {
        let db = Database::memory()?;
        let collection = db.create_collection(EXCLUDED, upsert.target.collection.key_kind())?;
        Ok(Self { upsert, collection, transaction: db.transaction(), met: HashSet::new() })
    }

    /// Refuses a key that the statement had before.
    pub(super) fn meet(&mut self, key: &Key) -> Result<()> {
        if self.met.insert(key.clone()) {
            return Ok(());
        }
        let message = format!(
            "the key {key} comes a second time: ON CONFLICT DO UPDATE changes a record once, so \
             give each key in one row"
        );
        Err(Error::new(ErrorKind::Invalid, message))
    }

    /// Takes a record whose key is there; how many bytes it is kept in.
    pub(super) fn take(&mut self, key: &Key, json: &[u8]) -> Result<usize> {
        self.transaction.insert_record(self.collection.name(), key, json)?;
        Ok(PLACES * (json.len() + RECORD_BYTES))
    }

    /// Stages what becomes of the records that are there.
    pub(super) fn update(
        self,
        session: &Session,
        places: &Places,
        transaction: &mut Transaction,
        staged: &mut Staged,
    ) -> Result<()> {
        let target = self.upsert.target;
        // What was dropped has no records.
        let Some(like) = &target.table else { return Ok(()) };
        self.transaction.commit(&CommitOptions::default())?;
        let records = self.collection.head()?;
        let place = TablePlace { document: None, name: PROPOSED.to_owned() };
        let table = Table::like((records.columns()?, place), like)?;
        let update = statement(self.upsert, &table.columns, places)?;
        let tables = session.tables(places).with_own(PROPOSED, Arc::new(table));
        let with = insert::with(self.upsert.insert);
        let source = Source { session, places, tables, proposed: Some(records), with };
        update::stage(&update, source, target, transaction, staged)
    }
}

/// What leads to a value in the record that is proposed, from the names of a column.
pub(super) fn field(names: &[String]) -> Option<Vec<String>> {
    let [table, column, within @ ..] = names else { return None };
    let column = column.strip_prefix(OWN).filter(|column| *column != KEY)?;
    let field = std::iter::once(column.to_owned()).chain(within.iter().cloned());
    (table == PROPOSED).then(|| field.collect())
}

/// The `UPDATE` that does what is asked, from a table with such columns.
fn statement(upsert: Upsert<'_>, proposed: &TableColumns, places: &Places) -> Result<Update> {
    let mut set = upsert.set.clone();
    check_targets(&set, upsert.target)?;
    let mut excluded = Excluded { upsert, proposed, places, others: Vec::new() };
    if let ControlFlow::Break(error) = set.visit(&mut excluded) {
        return Err(error);
    }
    let columns = proposed.columns.iter().filter_map(|column| match column {
        TableColumn::Key(_) | TableColumn::Value(_) | TableColumn::Declared(_) => {
            let field = column.field();
            Some(format!("{} AS {}", quoted(field.name()), quoted(&own(field.name()))))
        }
        _ => None,
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let assignments = set.assignments.iter().map(ToString::to_string);
    let assignments = assignments.collect::<Vec<_>>().join(", ");
    let (name, from, key) = (&upsert.insert.table, quoted(PROPOSED), quoted(&own(KEY)));
    let (table, named) = match insert::alias(upsert.insert) {
        Some(alias) => (alias.to_string(), format!("{} AS {alias}", in_schema(upsert))),
        None if is_shadowed(upsert) => {
            (name.to_string(), format!("{} AS {name}", in_schema(upsert)))
        }
        None => (name.to_string(), name.to_string()),
    };
    let selection = set.selection.map_or_else(String::new, |asked| format!(" AND ({asked})"));
    let sql = format!(
        "UPDATE {named} SET {assignments} FROM (SELECT {columns} FROM {from}) AS {from} \
         WHERE {table}.{KEY} = {from}.{key}{selection}"
    );
    match statement::parse(&sql, &[])?.0 {
        Request::Change(statement) => match *statement {
            Statement::Update(update) => Ok(update),
            _ => Err(session::defect()),
        },
        Request::Read(_) | Request::Copy(_) => Err(session::defect()),
    }
}

/// The table by a name that nothing behind `WITH` has.
fn in_schema(upsert: Upsert<'_>) -> String {
    format!("{COLLECTIONS}.{}", quoted(upsert.target.collection.name()))
}

/// Whether something behind `WITH` is called as the table.
fn is_shadowed(upsert: Upsert<'_>) -> bool {
    let name = upsert.target.collection.name();
    let mut others = insert::with(upsert.insert).into_iter().flat_map(|with| &with.cte_tables);
    others.any(|other| other.alias.name.value == name)
}

/// Refuses to set what is behind `excluded`, unless the table or a column is called so.
fn check_targets(set: &DoUpdate, target: &Target) -> Result<()> {
    if target.collection.name() == EXCLUDED || target.has_column(EXCLUDED) {
        return Ok(());
    }
    for assignment in &set.assignments {
        if let AssignmentTarget::ColumnName(name) = &assignment.target
            && let [first, _, ..] = name.0.as_slice()
            && first.as_ident().is_some_and(is_excluded)
        {
            let message = format!(
                "SET {name}: {EXCLUDED} has what was to be inserted: name a column of the table"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(())
}

/// What a column of the table is called in the `UPDATE`.
fn own(column: &str) -> String {
    format!("{OWN}{column}")
}

/// Finds in expressions what is behind `excluded`; what no record has that is proposed is NULL.
struct Excluded<'a> {
    upsert: Upsert<'a>,
    proposed: &'a TableColumns,
    places: &'a Places,
    /// Tables of the subqueries around an expression that are called so.
    others: Vec<String>,
}

impl VisitorMut for Excluded<'_> {
    type Break = Error;

    // By what the rows of a SELECT are ordered is of the query that it is in.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let SetExpr::Select(select) = query.body.as_ref() {
            self.others.extend(called_excluded(select));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let SetExpr::Select(select) = query.body.as_ref() {
            self.leave(select);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.others.extend(called_excluded(select));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.leave(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        let mut names = names(expr);
        let is_there = match names.as_mut_slice() {
            [table, column, within @ ..]
                if is_excluded(table) && !self.others.contains(&table.value) =>
            {
                let within: Vec<&str> = within.iter().map(|name| name.value.as_str()).collect();
                let is_there = match self.find(&column.value, &within) {
                    Ok(is_there) => is_there,
                    Err(error) => return ControlFlow::Break(error),
                };
                **table = Ident::with_quote('"', PROPOSED);
                **column = Ident::with_quote('"', own(&column.value));
                is_there
            }
            _ => true,
        };
        if !is_there {
            *expr = Expr::value(Value::Null);
        }
        ControlFlow::Continue(())
    }
}

impl Excluded<'_> {
    fn leave(&mut self, select: &Select) {
        let others = called_excluded(select).len();
        self.others.truncate(self.others.len().saturating_sub(others));
    }

    /// Whether a record that is proposed may have a field; `Invalid` if none can.
    fn find(&self, column: &str, within: &[&str]) -> Result<bool> {
        if column == KEY || has(self.proposed, column, within) {
            return Ok(true);
        }
        let Upsert { columns, target, .. } = self.upsert;
        let known = target.table.as_ref().map(|table| &table.columns);
        let mut given = columns.iter().flatten();
        let is_given = given.any(|given| given == column) && !has(self.proposed, column, &[]);
        if is_given || known.is_some_and(|known| has(known, column, within)) {
            return Ok(false);
        }
        let fields = known.iter().flat_map(|known| known.schema.fields().iter());
        let known = fields.map(|field| field.name().clone());
        let known = known.chain(columns.iter().flatten().cloned());
        let advice = match nearest(column, known.filter(|known| known != column)) {
            Some(nearest) if within.is_empty() => format!("did you mean {nearest:?}?"),
            _ => "it has the columns of the INSERT and of the table".to_owned(),
        };
        let name = std::iter::once(&column).chain(within).copied().collect::<Vec<_>>().join(".");
        let at = self.places.of(within.last().unwrap_or(&column), Role::Name);
        let message = format!("{EXCLUDED} has no column {name:?}{at}: {advice}");
        Err(Error::new(ErrorKind::Invalid, message))
    }
}

/// The names that an expression begins with.
fn names(expr: &mut Expr) -> Vec<&mut Ident> {
    match expr {
        Expr::CompoundIdentifier(names) => names.iter_mut().collect(),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let Expr::Identifier(first) = &mut **root else { return Vec::new() };
            let behind = access_chain.iter_mut().map_while(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(name),
                _ => None,
            });
            std::iter::once(first).chain(behind).collect()
        }
        _ => Vec::new(),
    }
}

fn is_excluded(table: &Ident) -> bool {
    match table.quote_style {
        None => table.value.eq_ignore_ascii_case(EXCLUDED),
        Some(_) => table.value == EXCLUDED,
    }
}

/// The names of the tables behind the FROM of a SELECT that are called so.
fn called_excluded(select: &Select) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<&TableWithJoins> = select.from.iter().collect();
    while let Some(TableWithJoins { relation, joins }) = left.pop() {
        for table in std::iter::once(relation).chain(joins.iter().map(|join| &join.relation)) {
            let (alias, name) = match table {
                TableFactor::Table { name, alias, .. } => (alias.as_ref(), name.0.last()),
                TableFactor::NestedJoin { table_with_joins, alias } => {
                    left.push(table_with_joins);
                    (alias.as_ref(), None)
                }
                TableFactor::Derived { alias, .. }
                | TableFactor::TableFunction { alias, .. }
                | TableFactor::Function { alias, .. }
                | TableFactor::UNNEST { alias, .. } => (alias.as_ref(), None),
                _ => (None, None),
            };
            let alias = alias.map(|alias| &alias.name);
            let name = alias.or_else(|| name.and_then(ObjectNamePart::as_ident));
            found.extend(name.filter(|name| is_excluded(name)).map(|name| name.value.clone()));
        }
    }
    found
}

/// Whether a table has such a field. What leads into other values than objects is left to the
/// planner.
fn has(columns: &TableColumns, column: &str, within: &[&str]) -> bool {
    let is_declared = |found: &TableColumn| {
        matches!(found, TableColumn::Declared(_)) && found.field().name() == column
    };
    let Some(mut kind) = columns.kind(column) else {
        return columns.columns.iter().any(is_declared);
    };
    for name in within {
        let ColumnType::Struct(fields) = kind else { return true };
        match fields.iter().find(|field| field.field.name() == name) {
            Some(field) => kind = &field.kind,
            None => return false,
        }
    }
    true
}
