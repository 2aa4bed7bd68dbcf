//! Numbers of a statement that have more digits than floats.
//!
//! The planner takes a number that is no integer of 64 bits for a float. Those that an `INSERT` has
//! as they stand are saved as they stand, whatever the planner makes of them: which row and column
//! they are for is known from the text. Those that an `UPDATE` sets are texts for the planner,
//! which become the numbers that they are. Those that something is computed of or compared with are
//! texts, too, which are exact beside a decimal (`exact.rs`). Elsewhere they stay floats: beside a
//! column of floats a decimal would be united as one of 15 places.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectItem, SetExpr, TableFactor, TableWithJoins, UnaryOperator, Update,
    UpdateTableFromKind, Value, ValueWithSpan, Visit, VisitMut, With, visit_expressions,
    visit_expressions_mut,
};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};
use duramen::{Error, ErrorKind, Result};
use serde::de::IgnoredAny;

use crate::exact;
use crate::failure::shown;
use crate::spelling;

mod origin;

/// The numbers that a query has as they stand where floats would lose digits of them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// Those of `VALUES`, by column and row, both counted from 0.
    of_rows: HashMap<(usize, u64), String>,
    /// Those of a `SELECT`, which all rows have, and what their columns are called.
    of_columns: Vec<(Position, Number, Option<String>)>,
    /// Integers that lose digits if other rows make their column one of floats.
    doubtful: Vec<(Position, Number)>,
    /// Numbers in subqueries and behind `WITH`, which lose digits where they are a column.
    inside: Vec<Number>,
}

/// Where a column is among those of a query, of which a `*` in it may be any number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Position {
    FromFirst(usize),
    FromLast(usize),
}

/// A number as JSON writes it, and where it is.
#[derive(Debug, Clone, PartialEq)]
struct Number {
    json: String,
    at: Location,
}

impl Given {
    /// Those of a query whose rows are saved; `Invalid` for one that cannot be told from the
    /// values of its column in other rows.
    pub(crate) fn of(source: &Query) -> Result<Self> {
        let mut given = Self { inside: inside(source), ..Self::default() };
        let is_in_order =
            source.order_by.is_none() && source.limit_clause.is_none() && source.fetch.is_none();
        match source.body.as_ref() {
            SetExpr::Values(values) => {
                let width = values.rows.first().map_or(0, |row| row.len());
                for column in 0..width {
                    let values = values.rows.iter().filter_map(|row| row.get(column));
                    given.add_values(column, &values.collect::<Vec<_>>(), is_in_order)?;
                }
            }
            SetExpr::Select(select) => {
                for (position, number, name) in numbers(select) {
                    if number.is_lossy() {
                        let position = position.ok_or_else(|| number.refused())?;
                        given.of_columns.push((position, number, name));
                    }
                }
            }
            SetExpr::Query(inner) if is_in_order => {
                return Ok(Self { inside: given.inside, ..Self::of(inner)? });
            }
            body => given.add_united(body)?,
        }
        Ok(given)
    }

    /// Those in what an `UPDATE` takes its values from: behind `WITH`, in `FROM`, and in the
    /// queries within what it sets. What it sets to a number it has as a text.
    pub(crate) fn of_update(update: &Update, with: Option<&With>) -> Self {
        let from = update.from.iter().flat_map(|from| match from {
            UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from) => from,
        });
        let values = update.assignments.iter().map(|assignment| &assignment.value);
        let mut inside = with.map(lossy).unwrap_or_default();
        from.chain([&update.table]).for_each(|from| inside.extend(lossy(from)));
        values.filter(|value| number(value).is_none()).for_each(|of| inside.extend(lossy(of)));
        Self { inside, ..Self::default() }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_rows.is_empty() && self.of_columns.is_empty()
    }

    /// Refuses integers that became floats, and numbers whose column another one came before, as
    /// those of a struct do that is unnested.
    pub(crate) fn check(&self, schema: &Schema) -> Result<()> {
        let width = schema.fields().len();
        let field = |position: &Position| schema.fields().get(position.of(width)?);
        let doubtful = self.doubtful.iter().filter(|(position, _)| {
            field(position).is_none_or(|field| field.data_type().is_floating())
        });
        let is_found = |position: &Position, name: Option<&str>| {
            field(position).is_some_and(|field| match name {
                Some(name) => field.name() == name,
                None => field.name().contains("Float64("),
            })
        };
        let lost = self.of_columns.iter().filter(|(at, _, name)| !is_found(at, name.as_deref()));
        let numbers = doubtful.map(|(_, number)| number).chain(lost.map(|(_, number, _)| number));
        numbers.take(1).try_for_each(|number| Err(number.refused()))
    }

    /// Whether the plan of the query has to tell of its columns.
    pub(crate) fn has_inside(&self) -> bool {
        !self.inside.is_empty()
    }

    /// Refuses numbers that came from inside of the query into a column.
    pub(crate) fn check_plan(&self, plan: &LogicalPlan) -> Result<()> {
        let width = plan.schema().fields().len();
        let is_given = |column: &usize| {
            self.of_columns.iter().any(|(at, ..)| at.of(width) == Some(*column))
                || self.of_rows.keys().any(|(of, _)| of == column)
        };
        for column in (0..width).filter(|column| !is_given(column)) {
            for float in origin::floats(plan, column) {
                let is_float = |number: &&Number| {
                    let of = number.json.parse::<f64>().map(f64::abs);
                    of.is_ok_and(|of| of.to_bits() == float.abs().to_bits())
                };
                if let Some(number) = self.inside.iter().find(is_float) {
                    return Err(number.refused());
                }
            }
        }
        Ok(())
    }

    /// The number for a column, of so many, and a row.
    pub(crate) fn number(&self, (column, width): (usize, usize), row: u64) -> Option<&str> {
        let of_columns = self.of_columns.iter();
        let mut of_columns = of_columns.filter(|(at, ..)| at.of(width) == Some(column));
        let found = of_columns.next().map(|(_, number, _)| &number.json);
        found.or_else(|| self.of_rows.get(&(column, row))).map(String::as_str)
    }

    /// Adds the numbers of a column of `VALUES`, if one of them would lose digits.
    fn add_values(&mut self, column: usize, values: &[&Expr], is_in_order: bool) -> Result<()> {
        let numbers: Vec<Option<Number>> = values.iter().map(|value| Number::of(value)).collect();
        let has_others = values.iter().zip(&numbers).any(|(value, number)| match number {
            Some(number) => !is_integer(&number.json),
            None => !is_null(value),
        });
        let rounded = numbers.iter().flatten().find(|number| number.is_rounded());
        match rounded.filter(|_| has_others) {
            Some(rounded) if !is_in_order => Err(rounded.refused()),
            Some(_) => {
                let numbers = (0..).zip(numbers).filter_map(|(row, number)| Some((row, number?)));
                self.of_rows.extend(numbers.map(|(row, number)| ((column, row), number.json)));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Looks through queries that are united, whose rows come in any order.
    fn add_united(&mut self, body: &SetExpr) -> Result<()> {
        let found: Vec<(Option<Position>, Number)> = match body {
            SetExpr::SetOperation { left, right, .. } => {
                self.add_united(left)?;
                return self.add_united(right);
            }
            SetExpr::Query(inner) => return self.add_united(&inner.body),
            SetExpr::Select(select) => {
                numbers(select).map(|(position, number, _)| (position, number)).collect()
            }
            SetExpr::Values(values) => {
                let values = values.rows.iter().flat_map(|row| row.iter().enumerate());
                let number =
                    |(at, value)| Some((Some(Position::FromFirst(at)), Number::of(value)?));
                values.filter_map(number).collect()
            }
            _ => return Ok(()),
        };
        for (position, number) in found.into_iter().filter(|(_, number)| number.is_rounded()) {
            match position {
                Some(position) if is_integer(&number.json) => {
                    self.doubtful.push((position, number));
                }
                _ => return Err(number.refused()),
            }
        }
        Ok(())
    }
}

impl Position {
    /// The index among so many columns.
    fn of(self, width: usize) -> Option<usize> {
        match self {
            Self::FromFirst(index) => Some(index),
            Self::FromLast(index) => width.checked_sub(index + 1),
        }
    }
}

/// The numbers that lose digits in a query that has others in it.
fn inside(source: &Query) -> Vec<Number> {
    let is_flat = |select: &Select| {
        let is_named = |table: &TableFactor| matches!(table, TableFactor::Table { .. });
        let joined = |from: &TableWithJoins| from.joins.iter().all(|join| is_named(&join.relation));
        select.from.iter().all(|from| is_named(&from.relation) && joined(from))
    };
    let is_flat = source.with.is_none()
        && match source.body.as_ref() {
            SetExpr::Values(_) => true,
            SetExpr::Select(select) => is_flat(select),
            _ => false,
        };
    if is_flat { Vec::new() } else { lossy(source) }
}

/// The numbers that lose digits in a part of a statement.
fn lossy(part: &impl Visit) -> Vec<Number> {
    let mut numbers = Vec::new();
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions(part, |expr| {
        numbers.extend(Number::of(expr).filter(Number::is_lossy));
        ControlFlow::Continue(())
    });
    numbers
}

/// The columns of a `SELECT` that are numbers as they stand, and what they are called. Where one is
/// between two `*` is not known.
fn numbers(
    select: &Select,
) -> impl Iterator<Item = (Option<Position>, Number, Option<String>)> + '_ {
    let items = &select.projection;
    let is_one = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let before = items.iter().take_while(|item| is_one(item)).count();
    let behind = items.iter().rev().take_while(|item| is_one(item)).count();
    items.iter().enumerate().filter_map(move |(index, item)| {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value.clone())),
            _ => return None,
        };
        let from_last = items.len() - 1 - index;
        let position = match index {
            index if index < before => Some(Position::FromFirst(index)),
            _ if from_last < behind => Some(Position::FromLast(from_last)),
            _ => None,
        };
        Some((position, Number::of(expr)?, name))
    })
}

impl Number {
    /// The number that an expression is.
    fn of(expr: &Expr) -> Option<Self> {
        Some(Self { json: number(expr)?, at: place(expr)? })
    }

    fn is_rounded(&self) -> bool {
        is_rounded(&self.json)
    }

    /// Whether the planner takes it for a float that has other digits.
    fn is_lossy(&self) -> bool {
        !is_integer(&self.json) && self.is_rounded()
    }

    /// Why it is not saved.
    fn refused(&self) -> Error {
        let (number, at) = (shown(&self.json), self.at);
        let message = format!(
            "the number {number} (line {}, column {}) would be saved without all of its digits \
             here: write CAST('{number}' AS DECIMAL(38, 10)) with as many digits as it has, or \
             insert it by VALUES and nothing else",
            at.line, at.column
        );
        Error::new(ErrorKind::Invalid, message)
    }
}

/// Has `0x1F` read as the number that it is: the parser takes it for bytes, which `X'1F'` are.
pub(crate) fn in_decimal(tokens: &mut [TokenWithSpan]) -> Result<()> {
    for TokenWithSpan { token, span } in tokens {
        let Token::HexStringLiteral(digits) = token else { continue };
        // Bytes have quotes behind their letter.
        if span.end.column - span.start.column > digits.len() as u64 + 2 {
            continue;
        }
        let Ok(number) = u64::from_str_radix(digits, 16) else {
            let message = format!(
                "the number 0x{} (line {}, column {}) is none of 64 bits",
                shown(digits),
                span.start.line,
                span.start.column
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        *token = Token::Number(number.to_string(), false);
    }
    Ok(())
}

/// Refuses numbers that are beyond floats, which would be infinite, and what is behind a number as
/// if it were a part of it, which would be the name of a column.
pub(crate) fn check(tokens: &[TokenWithSpan]) -> Result<()> {
    for (token, next) in tokens.iter().zip(tokens.iter().skip(1)) {
        if let (Token::Number(number, _), Token::Word(word)) = (&token.token, &next.token)
            && let Some(advice) = within_number(number, &word.value)
            && word.quote_style.is_none()
            && token.span.end == next.span.start
        {
            let at = token.span.start;
            let message = format!(
                "{number}{word} (line {}, column {}) is no number: {advice}",
                at.line, at.column
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    for token in tokens {
        if let Token::Number(number, _) = &token.token
            && number.parse::<f64>().is_ok_and(f64::is_infinite)
        {
            let (number, at) = (shown(number), token.span.start);
            let message = format!(
                "the number {number} (line {}, column {}) is beyond DOUBLE, which reaches to \
                 about 1.8e308",
                at.line, at.column
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(())
}

/// What to do about a word that stands behind a number as if it were a part of it.
fn within_number(number: &str, word: &str) -> Option<&'static str> {
    let mut letters = word.chars();
    match letters.next()? {
        '_' => Some("write it without _"),
        'x' | 'X' | 'b' | 'B' | 'o' | 'O'
            if number == "0" && letters.next().is_some_and(|next| next.is_ascii_digit()) =>
        {
            Some("those of the base 16 are written as 0x1F")
        }
        _ => None,
    }
}

/// Has the planner see the texts of numbers that lose digits where something is computed of them
/// or compared with them.
pub(crate) fn keep(query: &mut impl VisitMut) {
    let ControlFlow::<Infallible>::Continue(()) = visit_expressions_mut(query, |expr| {
        match expr {
            Expr::BinaryOp { left, right, .. } => {
                for of in [left, right] {
                    keep_in(of);
                }
            }
            Expr::Between { expr, low, high, .. } => {
                for of in [expr, low, high] {
                    keep_in(of);
                }
            }
            Expr::InList { list, .. } => list.iter_mut().for_each(keep_in),
            _ => {}
        }
        ControlFlow::Continue(())
    });
}

fn keep_in(expr: &mut Expr) {
    let is_kept =
        |number: &String| !number.contains(['e', 'E']) && !is_integer(number) && is_rounded(number);
    let Some(number) = number(expr).filter(is_kept) else { return };
    let text = |text: &str| Expr::value(Value::SingleQuotedString(text.to_owned()));
    *expr = spelling::call(exact::FLOAT_OF, vec![text(&number), text(exact::FLOAT)]);
}

/// A value of an `UPDATE` as a text, if it is a number that would lose digits.
pub(crate) fn in_text(value: &Expr) -> Option<Expr> {
    let text = |number| Expr::value(Value::SingleQuotedString(number));
    number(value).filter(|number| !is_integer(number) && is_rounded(number)).map(text)
}

/// Whether a text is a number of JSON.
pub(crate) fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(ValueWithSpan { value: Value::Null, .. }))
}

/// Where the number in an expression that is one stands.
fn place(expr: &Expr) -> Option<Location> {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => place(inner),
        Expr::Value(value) => Some(value.span.start),
        _ => None,
    }
}

/// The number that an expression is, as JSON writes it.
fn number(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) | Expr::UnaryOp { op: UnaryOperator::Plus, expr: inner } => {
            number(inner)
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
            let number = number(expr)?;
            let positive = number.strip_prefix('-').map(str::to_owned);
            Some(positive.unwrap_or_else(|| format!("-{number}")))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
            let end = number.find(['e', 'E']).unwrap_or(number.len());
            let (mantissa, exponent) = number.split_at(end);
            let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            let whole = Some(whole.trim_start_matches('0')).filter(|whole| !whole.is_empty());
            let (whole, point) = (whole.unwrap_or("0"), if fraction.is_empty() { "" } else { "." });
            Some(format!("{whole}{point}{fraction}{exponent}")).filter(|json| is_number(json))
        }
        _ => None,
    }
}

/// Whether the planner takes a number for an integer.
fn is_integer(number: &str) -> bool {
    number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

/// Whether the float that is nearest to a number has other digits.
fn is_rounded(number: &str) -> bool {
    let float = number.parse::<f64>().ok().filter(|float| float.is_finite());
    float.is_some_and(|float| digits(&format!("{float:e}")) != digits(number))
}

/// The digits of a number from the first to the last that is not zero.
fn digits(number: &str) -> String {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    digits.trim_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::dialect::Sql;

    fn given(sql: &str) -> Result<Given> {
        let mut parsed = Parser::parse_sql(&Sql::of(sql), sql).unwrap();
        let Some(Statement::Query(query)) = parsed.pop() else { panic!("{sql}") };
        Given::of(&query)
    }

    /// The numbers by row and column, of as many as three of each.
    fn numbers(sql: &str) -> Vec<String> {
        let given = given(sql).unwrap();
        let places = (0..3).flat_map(|row| (0..3).map(move |column| (row, column)));
        let number = |(row, column)| {
            given.number((column, 3), row).map(|number| format!("{row} {column} {number}"))
        };
        places.filter_map(number).collect()
    }

    #[test]
    fn numbers_that_would_lose_digits_are_given() {
        for (sql, expected) in [
            ("VALUES (1.50, 12345678901234567.89)", vec!["0 1 12345678901234567.89"]),
            ("VALUES (-(00.12345678901234567890), 2)", vec!["0 0 -0.12345678901234567890"]),
            (
                "VALUES (18446744073709551616), (NULL), (1)",
                vec!["0 0 18446744073709551616", "2 0 1"],
            ),
            ("VALUES (9007199254740993), (0.5)", vec!["0 0 9007199254740993", "1 0 0.5"]),
            ("VALUES (- -1.234567890123456789e+5)", vec!["0 0 1.234567890123456789e+5"]),
            ("VALUES (.1234567890123456789), (5.)", vec!["0 0 0.1234567890123456789", "1 0 5"]),
            // Beside what is computed, too.
            ("VALUES (12345678901234567.89), (1 + 1)", vec!["0 0 12345678901234567.89"]),
            ("VALUES (9007199254740993), (0.5 + 1)", vec!["0 0 9007199254740993"]),
            ("VALUES ('a'), (12345678901234567.89)", vec!["1 0 12345678901234567.89"]),
            ("(VALUES (1e-400))", vec!["0 0 1e-400"]),
            (
                "SELECT a, 12345678901234567.89, b FROM t",
                vec![
                    "0 1 12345678901234567.89",
                    "1 1 12345678901234567.89",
                    "2 1 12345678901234567.89",
                ],
            ),
            (
                "SELECT *, 0.12345678901234567890 AS x FROM t ORDER BY 1 LIMIT 1",
                vec![
                    "0 2 0.12345678901234567890",
                    "1 2 0.12345678901234567890",
                    "2 2 0.12345678901234567890",
                ],
            ),
        ] {
            assert_eq!(numbers(sql), expected, "{sql}");
        }
    }

    #[test]
    fn other_values_are_as_they_were() {
        for sql in [
            "VALUES (0.1, 1.10, 100000000000000000000000, 1e23, 123456789.123456)",
            "VALUES (9007199254740993), (1), (-9223372036854775808)",
            "VALUES (9007199254740993), (NULL)",
            "SELECT 9007199254740993, 0.5, 12345678901234567.89 + 1",
            "SELECT 0.5 UNION ALL SELECT 12345678901234567.89 + a FROM t",
        ] {
            assert!(given(sql).unwrap().is_empty(), "{sql}");
        }
    }

    #[test]
    fn numbers_whose_rows_are_not_known_are_refused() {
        for sql in [
            "VALUES (12345678901234567.89), (1) ORDER BY 1",
            "VALUES (12345678901234567.89), (1) LIMIT 1",
            "(VALUES (12345678901234567.89), (1)) LIMIT 1",
            "SELECT 12345678901234567.89 UNION ALL SELECT 0.5",
            "SELECT 1 UNION ALL (SELECT 2 UNION SELECT 12345678901234567.89)",
            "VALUES (1) UNION ALL VALUES (12345678901234567.89)",
            "SELECT a.*, 12345678901234567.89, b.* FROM a, b",
        ] {
            let error = given(sql).unwrap_err().to_string();
            assert!(error.contains("the number 12345678901234567.89 (line 1, column "), "{error}");
        }
    }
}
