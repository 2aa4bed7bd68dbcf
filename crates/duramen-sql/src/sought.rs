//! Which records a query looks for by their keys, or by fields that have an index, so that it reads
//! these and not all.
//!
//! Invariant: what is sought is all that the filters may be true of, and perhaps more: they are
//! evaluated on what is found.

use std::ops::Bound;

use datafusion::arrow::compute::SortOptions;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Like, Operator};
use duramen::{
    Columns, ErrorKind, Filter, FilterValue, Key, KeyKind, Order, RecordPath, Result, ScanOptions,
};

use crate::column_type::{self, ColumnType, TableColumn, TableColumns};
use crate::passing::FIELD;

/// Records for one that may be sought; what is sought stands anywhere, while all of them are read
/// in their order, and by column.
const RECORDS_PER_SOUGHT: usize = 64;

/// However few there are, so many may be sought; and however many, no more.
const SOUGHT_MIN: usize = 64;
const SOUGHT_MAX: usize = 1 << 16;

/// The same of a range of keys, which are read until they are too many.
const RANGE_MAX: usize = 4_096;

/// Some of the rows of a table.
#[derive(Debug)]
pub(crate) struct Sought {
    pub(crate) rows: Columns,
    /// What names them, for people.
    pub(crate) by: &'static str,
}

impl Sought {
    /// The rows of a table that some filters leave, all of which have to be true; none if they do
    /// not say how to find them, or may leave many.
    pub(crate) fn of(
        filters: &[Expr],
        (rows, table): (&Columns, &TableColumns),
    ) -> Result<Option<Self>> {
        let Some(kind) = rows.key_kind() else { return Ok(None) };
        let found = |rows: Option<Columns>, by| Ok(rows.map(|rows| Self { rows, by }));
        let keys = filters.iter().filter_map(|filter| keys_of(filter, kind));
        if let Some(keys) = keys.min_by_key(Vec::len) {
            return found(rows.with_keys(&keys)?, "key");
        }
        let most = most(rows);
        let range = KeyRange::of(filters, rows);
        if !range.is_all()
            && let Some(range) = rows.with_keys_in(&range.keys, most.min(RANGE_MAX))?
        {
            return found(Some(range), "range of keys");
        }
        let fields = filters.iter().filter_map(|filter| FieldFilter::of(filter, (rows, table)));
        let fields = fields.map(|of| of.filter).reduce(Filter::and);
        let Some(fields) = fields else { return Ok(None) };
        match rows.named(&fields, most) {
            // Conditions of SQL may have more levels than filters of the engine.
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(None),
            named => found(named?, "index"),
        }
    }

    /// Whether a filter may say which records are sought.
    pub(crate) fn may_be_of(filter: &Expr, (rows, table): (&Columns, &TableColumns)) -> bool {
        let Some(kind) = rows.key_kind() else { return false };
        keys_of(filter, kind).is_some()
            || !KeyRange::of(std::slice::from_ref(filter), rows).is_all()
            || FieldFilter::of(filter, (rows, table)).is_some()
    }
}

/// Rows of a part of a table, at most.
const PART_ROWS: usize = 4_096;

/// How many rows of a table may be sought.
pub(crate) fn most(rows: &Columns) -> usize {
    let most = rows.parts().saturating_mul(PART_ROWS) / RECORDS_PER_SOUGHT;
    most.clamp(SOUGHT_MIN, SOUGHT_MAX)
}

/// The keys that a filter leaves.
fn keys_of(filter: &Expr, kind: KeyKind) -> Option<Vec<Key>> {
    match filter {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let literal =
                if is_key(left) { right } else { Some(left).filter(|_| is_key(right))? };
            key_of(literal, kind)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            Some([keys_of(left, kind)?, keys_of(right, kind)?].concat())
        }
        Expr::InList(list) if !list.negated && is_key(&list.expr) => {
            let keys = list.list.iter().map(|literal| key_of(literal, kind));
            Some(keys.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}

fn is_key(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(Column { name, .. }) if name == crate::change::KEY)
}

/// The key that a literal is, or an empty list if no record can have it.
fn key_of(literal: &Expr, kind: KeyKind) -> Option<Vec<Key>> {
    let Expr::Literal(value, _) = literal else { return None };
    let key = match (kind, value) {
        (KeyKind::I64, ScalarValue::Int64(Some(number))) => number.to_string(),
        (KeyKind::U64, ScalarValue::UInt64(Some(number))) => number.to_string(),
        (
            KeyKind::Text | KeyKind::Uuid,
            ScalarValue::Utf8View(Some(text)) | ScalarValue::Utf8(Some(text)),
        ) => text.clone(),
        _ => return None,
    };
    Some(kind.parse(&key).into_iter().collect())
}

/// The keys that are left by some filters.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyRange {
    pub(crate) keys: ScanOptions,
    /// How many filters say no more and no less than that a key is in the range.
    pub(crate) conditions: usize,
}

impl KeyRange {
    pub(crate) fn of(filters: &[Expr], rows: &Columns) -> Self {
        let mut range = Self::default();
        // UUIDs are compared as texts, of which not each is one.
        let kind = rows.key_kind().filter(|kind| *kind != KeyKind::Uuid);
        let Some(kind) = kind else { return range };
        for filter in filters {
            let is_exact = range.narrow(filter, kind).is_some();
            range.conditions += usize::from(is_exact);
        }
        range
    }

    fn is_all(&self) -> bool {
        self.keys == ScanOptions::default()
    }

    /// Takes what a filter says of keys; none if that is nothing, or not all that it says.
    fn narrow(&mut self, filter: &Expr, kind: KeyKind) -> Option<()> {
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (op, literal) = match (is_key(left), is_key(right)) {
                    (true, _) => (*op, right),
                    (_, true) => (op.swap()?, left),
                    _ => return None,
                };
                let key = key_of(literal, kind)?.pop()?;
                match op {
                    Operator::Gt => self.begin(Bound::Excluded(key)),
                    Operator::GtEq => self.begin(Bound::Included(key)),
                    Operator::Lt => self.end(Bound::Excluded(key)),
                    Operator::LtEq => self.end(Bound::Included(key)),
                    _ => return None,
                }
            }
            Expr::Between(between) if !between.negated && is_key(&between.expr) => {
                let low = key_of(&between.low, kind)?.pop()?;
                let high = key_of(&between.high, kind)?.pop()?;
                self.begin(Bound::Included(low));
                self.end(Bound::Included(high));
            }
            Expr::Like(like) if kind == KeyKind::Text && is_key(&like.expr) => {
                let (beginning, rest) = beginning(like)?;
                if self.keys.prefix.is_some() {
                    return None;
                }
                self.keys.prefix = Some(beginning.to_owned());
                if rest != "%" {
                    return None;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// It begins there, unless it begins later.
    fn begin(&mut self, at: Bound<Key>) {
        let is_later = match (&at, &self.keys.from) {
            (Bound::Included(key), Bound::Included(from) | Bound::Excluded(from)) => key > from,
            (Bound::Excluded(key), Bound::Included(from) | Bound::Excluded(from)) => key >= from,
            _ => true,
        };
        if is_later {
            self.keys.from = at;
        }
    }

    /// It ends there, unless it ends before.
    fn end(&mut self, at: Bound<Key>) {
        let is_before = match (&at, &self.keys.to) {
            (Bound::Included(key), Bound::Included(to) | Bound::Excluded(to)) => key < to,
            (Bound::Excluded(key), Bound::Included(to) | Bound::Excluded(to)) => key <= to,
            _ => true,
        };
        if is_before {
            self.keys.to = at;
        }
    }
}

/// What all texts that a pattern fits begin with, and the rest of the pattern.
fn beginning(like: &Like) -> Option<(&str, &str)> {
    let Expr::Literal(ScalarValue::Utf8View(Some(pattern)) | ScalarValue::Utf8(Some(pattern)), _) =
        &*like.pattern
    else {
        return None;
    };
    if like.negated || like.case_insensitive || like.escape_char.is_some() {
        return None;
    }
    let end = pattern.find(['%', '_', '\\']).unwrap_or(pattern.len());
    pattern.split_at_checked(end).filter(|(beginning, _)| !beginning.is_empty())
}

/// Those of some filters that queries of records have too, and neither more nor less of.
pub(crate) fn exact(filters: &[Expr], of: (&Columns, &TableColumns)) -> Vec<Filter> {
    let exact = |filter| FieldFilter::of(filter, of).filter(|of| of.is_exact);
    filters.iter().filter_map(exact).map(|of| of.filter).collect()
}

/// An order by a column, as queries of records have it; none if they order its values otherwise.
pub(crate) fn order(
    column: &column_type::Column,
    by: SortOptions,
    rows: &Columns,
) -> Option<Order> {
    let path = match column.kind {
        ColumnType::Bool | ColumnType::Int | ColumnType::Float | ColumnType::Text => {
            rows.record_path(column.path)?.to_string()
        }
        ColumnType::Json | ColumnType::Struct(_) | ColumnType::List(_) => return None,
    };
    let order = if by.descending { Order::desc(path) } else { Order::asc(path) };
    Some(if by.nulls_first { order.nulls_first() } else { order.nulls_last() })
}

/// What a filter says of fields, as queries of records have it: true wherever the filter is.
struct FieldFilter {
    filter: Filter,
    /// Whether it is true nowhere else.
    is_exact: bool,
}

impl FieldFilter {
    fn of(filter: &Expr, of: (&Columns, &TableColumns)) -> Option<Self> {
        let all = |filter, is_exact| Some(Self { filter, is_exact });
        match filter {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
                let (left, right) = (Self::of(left, of)?, Self::of(right, of)?);
                all(left.filter.or(right.filter), left.is_exact && right.is_exact)
            }
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => {
                match (Self::of(left, of), Self::of(right, of)) {
                    (Some(left), Some(right)) => {
                        all(left.filter.and(right.filter), left.is_exact && right.is_exact)
                    }
                    (one, other) => all(one.or(other)?.filter, false),
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                let (field, op, literal) = match Field::of(left, of) {
                    Some(field) => (field, *op, right),
                    None => (Field::of(right, of)?, op.swap()?, left),
                };
                all(field.compared(op, literal)?, field.is_exact())
            }
            Expr::Between(between) if !between.negated => {
                let field = Field::of(&between.expr, of)?;
                let low = field.compared(Operator::GtEq, &between.low)?;
                let high = field.compared(Operator::LtEq, &between.high)?;
                all(low.and(high), field.is_exact())
            }
            Expr::InList(list) if !list.negated => {
                let field = Field::of(&list.expr, of)?;
                let path = field.path.to_string();
                let bounds = list.list.iter().map(|literal| field.bounds(literal));
                let bounds = bounds.collect::<Option<Vec<_>>>()?.into_iter();
                if field.is_exact() {
                    return all(Filter::any_of(path, bounds.map(|(value, _)| value)), true);
                }
                let near = bounds.map(|(low, high)| Filter::between(&path, low, high));
                all(near.reduce(Filter::or)?, false)
            }
            Expr::Like(like) => {
                let field = Field::of(&like.expr, of)?;
                let is_text = matches!(field.kind, ColumnType::Text);
                let (beginning, rest) = beginning(like).filter(|_| is_text)?;
                all(Filter::prefix(field.path.to_string(), beginning), rest == "%")
            }
            Expr::Column(_) => all(Field::of(filter, of)?.is(true)?, true),
            Expr::Not(inner) => all(Field::of(inner, of)?.is(false)?, true),
            _ => None,
        }
    }
}

/// A field of records.
struct Field<'t> {
    path: RecordPath,
    kind: &'t ColumnType,
}

impl<'t> Field<'t> {
    /// The field that an expression is, perhaps one of an object.
    fn of(expr: &Expr, (rows, table): (&Columns, &'t TableColumns)) -> Option<Self> {
        let column = column(expr, table)?;
        Some(Self { path: rows.record_path(column.path)?, kind: &column.kind })
    }

    /// Whether what is equal in SQL is so in the engine. Of numbers with a fraction the nearest
    /// floats are compared.
    fn is_exact(&self) -> bool {
        !matches!(self.kind, ColumnType::Float)
    }

    /// Whether it has a truth value; none if it has other values.
    fn is(&self, value: bool) -> Option<Filter> {
        let is_truth = matches!(self.kind, ColumnType::Bool);
        is_truth.then(|| Filter::eq(self.path.to_string(), value))
    }

    /// Between which values all are that are equal to a literal.
    fn bounds(&self, literal: &Expr) -> Option<(FilterValue, FilterValue)> {
        let Expr::Literal(value, _) = literal else { return None };
        match (self.kind, value) {
            (ColumnType::Int, ScalarValue::Int64(Some(number))) => {
                Some(((*number).into(), (*number).into()))
            }
            (
                ColumnType::Text,
                ScalarValue::Utf8View(Some(text)) | ScalarValue::Utf8(Some(text)),
            ) => Some((text.as_str().into(), text.as_str().into())),
            (ColumnType::Float, ScalarValue::Float64(Some(number))) => {
                let ends = [number.next_down(), number.next_up()];
                let is_finite = ends.iter().all(|end| end.is_finite());
                let [low, high] = ends.map(|end| FilterValue::json(format!("{end:?}")));
                is_finite.then_some((low, high))
            }
            _ => None,
        }
    }

    /// The comparison with a literal.
    fn compared(&self, op: Operator, literal: &Expr) -> Option<Filter> {
        let (low, high) = self.bounds(literal)?;
        let path = self.path.to_string();
        Some(match op {
            Operator::Eq if self.is_exact() => Filter::eq(path, low),
            Operator::Eq => Filter::between(path, low, high),
            Operator::Lt if self.is_exact() => Filter::lt(path, high),
            Operator::Lt | Operator::LtEq => Filter::le(path, high),
            Operator::Gt if self.is_exact() => Filter::gt(path, low),
            Operator::Gt | Operator::GtEq => Filter::ge(path, low),
            _ => return None,
        })
    }
}

/// The column of an expression that is one, or a field of one.
fn column<'t>(expr: &Expr, table: &'t TableColumns) -> Option<&'t column_type::Column> {
    match expr {
        Expr::Column(column) => {
            let index = table.schema.index_of(column.name()).ok()?;
            match table.columns.get(index)? {
                TableColumn::Value(column) => Some(column),
                _ => None,
            }
        }
        Expr::ScalarFunction(function) if function.name() == FIELD => {
            let (object, names) = function.args.split_first()?;
            names.iter().try_fold(column(object, table)?, |column, name| {
                let Expr::Literal(name, _) = name else { return None };
                column.member(name.try_as_str().flatten()?)
            })
        }
        _ => None,
    }
}
