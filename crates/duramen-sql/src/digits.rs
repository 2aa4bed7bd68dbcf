//! Numbers of a statement that have more digits than floats.
//!
//! The planner takes a number that is no integer of 64 bits for a float. Those that an `INSERT` or
//! an `UPDATE` saves as they stand are texts for it instead, which become the numbers that they
//! are, with all of their digits. Elsewhere they stay floats: beside a column of floats a decimal
//! would be compared and united as one of 15 places.

use std::borrow::Cow;

use datafusion::sql::sqlparser::ast::{
    Expr, Parens, Query, SetExpr, UnaryOperator, Value, ValueWithSpan,
};
use serde::de::IgnoredAny;

/// The values of an `INSERT` with the numbers of some columns as texts, and which columns these
/// are: those that have nothing but numbers, and would lose digits of one.
pub(crate) fn in_texts(source: &Query) -> (Cow<'_, Query>, Vec<usize>) {
    let SetExpr::Values(values) = source.body.as_ref() else {
        return (Cow::Borrowed(source), Vec::new());
    };
    let width = values.rows.first().map_or(0, |row| row.len());
    let lossy = |column: &usize| loses_digits(&values.rows, *column);
    let columns: Vec<usize> = (0..width).filter(lossy).collect();
    if columns.is_empty() {
        return (Cow::Borrowed(source), columns);
    }
    let mut source = source.clone();
    if let SetExpr::Values(values) = source.body.as_mut() {
        for row in &mut values.rows {
            for &column in &columns {
                if let Some(value) = row.get_mut(column)
                    && let Some(number) = number(value)
                {
                    *value = text(number);
                }
            }
        }
    }
    (Cow::Owned(source), columns)
}

/// A value of an `UPDATE` as a text, if it is a number that would lose digits.
pub(crate) fn in_text(value: &Expr) -> Option<Expr> {
    number(value).filter(|number| !is_integer(number) && is_rounded(number)).map(text)
}

/// Whether a text is a number of JSON.
pub(crate) fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn loses_digits(rows: &[Parens<Vec<Expr>>], column: usize) -> bool {
    let (mut are_integers, mut is_lossy) = (true, false);
    for row in rows {
        match row.get(column) {
            Some(Expr::Value(ValueWithSpan { value: Value::Null, .. })) => {}
            Some(value) => {
                let Some(number) = number(value) else { return false };
                are_integers = are_integers && is_integer(&number);
                is_lossy = is_lossy || is_rounded(&number);
            }
            None => return false,
        }
    }
    is_lossy && !are_integers
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

fn text(number: String) -> Expr {
    Expr::value(Value::SingleQuotedString(number))
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

    fn texts(values: &str) -> String {
        let sql = format!("VALUES {values}");
        let mut parsed = Parser::parse_sql(&Sql::of(&sql), &sql).unwrap();
        let Some(Statement::Query(query)) = parsed.pop() else { panic!("{sql}") };
        in_texts(&query).0.to_string().split_off("VALUES ".len())
    }

    #[test]
    fn numbers_that_would_lose_digits_are_texts() {
        for (values, expected) in [
            ("(1.50, 12345678901234567.89)", "(1.50, '12345678901234567.89')"),
            ("(-(00.12345678901234567890), 2)", "('-0.12345678901234567890', 2)"),
            ("(18446744073709551616), (NULL), (1)", "('18446744073709551616'), (NULL), ('1')"),
            ("(9007199254740993), (0.5)", "('9007199254740993'), ('0.5')"),
            ("(- -1.234567890123456789e+5)", "('1.234567890123456789e+5')"),
            ("(.1234567890123456789), (5.)", "('0.1234567890123456789'), ('5')"),
        ] {
            assert_eq!(texts(values), expected);
        }
    }

    #[test]
    fn other_values_are_as_they_were() {
        for values in [
            "(0.1, 1.10, 100000000000000000000000, 1e23, 123456789.123456)",
            "(9007199254740993), (1), (-9223372036854775808)",
            "(12345678901234567.89), (1 + 1)",
            "(12345678901234567.89), ('a')",
            "(1e999)",
        ] {
            assert_eq!(texts(values), values);
        }
    }
}
