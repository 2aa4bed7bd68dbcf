//! Reads a filter: by recursive descent, with bounded depth.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Bound;

use super::filter::{Expression, Filter, range};
use super::literal::{FilterValue, Literal};
use super::test::Test;
use crate::collection::record_path::{RecordPath, WORDS, quoted_len};
use crate::error::{Error, ErrorKind, Result};
use crate::json::number_end;
use crate::limits::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};

/// Characters of a filter that an error shows.
const SHOWN_CHARS_MAX: usize = 200;

/// What is wrong with a filter, and where.
#[derive(Debug)]
struct Fault {
    /// Bytes that are left at the place.
    rest: usize,
    what: String,
}

type Parsed<T> = Result<T, Fault>;

/// A filter that is being read.
struct Parser<'t> {
    rest: &'t str,
    /// `not` and parentheses that are open.
    depth: usize,
}

/// Reads a whole filter.
pub(super) fn read(text: &str) -> Result<Filter> {
    if text.len() > FILTER_BYTES_MAX {
        let message =
            format!("a filter has {} bytes; at most {FILTER_BYTES_MAX} can be", text.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    if text.trim().is_empty() {
        let message = "the filter is empty: write what has to be true of a record, such as score > \
                       3, or give none for all records";
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut parser = Parser { rest: text, depth: 0 };
    let filter = parser.whole().map(Filter::read).map_err(|fault| {
        let read = text.get(..text.len().saturating_sub(fault.rest)).unwrap_or(text);
        let at = read.chars().count().saturating_add(1);
        let message = format!("{:?} is no filter: at character {at}, {}", shown(text), fault.what);
        Error::new(ErrorKind::Invalid, message)
    })?;
    filter.expression()?;
    Ok(filter)
}

/// The text of a filter, cut if it is long.
fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

impl<'t> Parser<'t> {
    fn whole(&mut self) -> Parsed<Expression> {
        let expression = self.any()?;
        if self.rest.is_empty() { Ok(expression) } else { Err(self.expected("and, or or the end")) }
    }

    fn any(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.all()?];
        while self.word("or") {
            parts.push(self.all()?);
        }
        Ok(joined(parts, Expression::Any))
    }

    fn all(&mut self) -> Parsed<Expression> {
        let mut parts = vec![self.one()?];
        while self.word("and") {
            parts.push(self.one()?);
        }
        Ok(joined(parts, Expression::All))
    }

    fn one(&mut self) -> Parsed<Expression> {
        self.skip_space();
        let before = self.rest;
        let is_not = self.word("not");
        if !is_not && !self.take("(") {
            return self.comparison();
        }
        self.depth = self.depth.saturating_add(1);
        // A level has one of each at most where a filter prints itself.
        if self.depth > FILTER_DEPTH_MAX * 2 {
            self.rest = before;
            return Err(self.fault("parentheses and not are too deep inside each other"));
        }
        let inner = if is_not {
            match self.one()? {
                Expression::Not(inner) => *inner,
                inner => Expression::Not(Box::new(inner)),
            }
        } else {
            let inner = self.any()?;
            self.skip_space();
            if !self.take(")") {
                return Err(self.expected("and, or or ')'"));
            }
            inner
        };
        self.depth = self.depth.saturating_sub(1);
        Ok(inner)
    }

    fn comparison(&mut self) -> Parsed<Expression> {
        let path = self.path()?;
        if self.word("is") {
            let is_not = self.word("not");
            let found = match (self.word("null"), is_not) {
                (true, _) => Expression::Test(path, Test::Null),
                (false, _) if self.word("missing") => {
                    Expression::Not(Box::new(Expression::Test(path, Test::Exists)))
                }
                _ => return Err(self.expected("null or missing")),
            };
            return Ok(if is_not { opposite(found) } else { found });
        }
        let is_not = self.word("not");
        let found = if self.word("between") {
            self.between(path)?
        } else if self.word("in") {
            Expression::Test(path, self.list()?)
        } else if self.word("prefix") {
            Expression::Test(path, self.prefix()?)
        } else if self.word("contains") {
            Expression::Test(path.elements(), Test::Equal(self.literal()?))
        } else if is_not {
            return Err(self.expected("between, in, prefix or contains"));
        } else {
            Expression::Test(path, self.order()?)
        };
        Ok(if is_not { opposite(found) } else { found })
    }

    fn path(&mut self) -> Parsed<RecordPath> {
        self.skip_space();
        if let Some(word) = WORDS.iter().find(|word| self.next_word().eq_ignore_ascii_case(word)) {
            let what = format!(
                "expected a path, found the word {word}: a field of that name is [\"{word}\"]"
            );
            return Err(self.fault(what));
        }
        let (path, rest) = RecordPath::read(self.rest).map_err(|(rest, expected)| Fault {
            rest: rest.len(),
            what: format!("expected {expected}"),
        })?;
        self.rest = rest;
        Ok(path)
    }

    /// `=`, `!=`, `<`, `<=`, `>`, `>=` and a value.
    fn order(&mut self) -> Parsed<Test> {
        self.skip_space();
        let operators = ["!=", "<=", ">=", "=", "<", ">"];
        let Some(operator) = operators.into_iter().find(|operator| self.take(operator)) else {
            return Err(self.expected("=, !=, <, <=, >, >=, between, in, is, prefix or contains"));
        };
        if matches!(operator, "=" | "!=") {
            let make = if operator == "=" { Test::Equal } else { Test::NotEqual };
            return self.literal().map(make);
        }
        let (at, value) = self.value()?;
        let (low, high) = match operator {
            "<" => (Bound::Unbounded, Bound::Excluded(value)),
            "<=" => (Bound::Unbounded, Bound::Included(value)),
            ">" => (Bound::Excluded(value), Bound::Unbounded),
            _ => (Bound::Included(value), Bound::Unbounded),
        };
        range(low, high).map_err(|what| Fault { rest: at, what })
    }

    fn between(&mut self, path: RecordPath) -> Parsed<Expression> {
        let (at, low) = self.value()?;
        if !self.word("and") {
            return Err(self.expected("and, with the other end"));
        }
        let (_, high) = self.value()?;
        let test = range(Bound::Included(low), Bound::Included(high))
            .map_err(|what| Fault { rest: at, what })?;
        Ok(Expression::Test(path, test))
    }

    /// Values in parentheses.
    fn list(&mut self) -> Parsed<Test> {
        self.skip_space();
        if !self.take("(") {
            return Err(self.expected("'(' and values"));
        }
        let mut list = Vec::new();
        self.skip_space();
        while !self.take(")") {
            if !list.is_empty() && !self.take(",") {
                return Err(self.expected("',' or ')'"));
            }
            list.push(self.literal()?);
            self.skip_space();
        }
        list.sort_by(|a: &Literal, b| a.key.cmp(&b.key));
        list.dedup_by(|a, b| a.key == b.key);
        Ok(Test::In(list))
    }

    fn prefix(&mut self) -> Parsed<Test> {
        self.skip_space();
        let before = self.rest.len();
        match self.literal()?.datum() {
            Some(crate::state::Datum::Text { bytes, .. }) => {
                Ok(Test::Prefix(String::from_utf8_lossy(bytes).into()))
            }
            _ => Err(Fault { rest: before, what: "expected a string".to_owned() }),
        }
    }

    fn literal(&mut self) -> Parsed<Literal> {
        let (rest, value) = self.value()?;
        Literal::read(&value).map_err(|what| Fault { rest, what })
    }

    /// A JSON value, and the bytes that were left before it.
    fn value(&mut self) -> Parsed<(usize, FilterValue)> {
        self.skip_space();
        let at = self.rest.len();
        let len = value_len(self.rest).filter(|len| *len > 0);
        let Some((text, rest)) = len.and_then(|len| self.rest.split_at_checked(len)) else {
            return Err(self.expected("a JSON value: a string stands in double quotes"));
        };
        self.rest = rest;
        Ok((at, FilterValue::json(text)))
    }

    /// Takes a word, whatever case it is written in.
    fn word(&mut self, word: &str) -> bool {
        self.skip_space();
        let is_next = self.next_word().eq_ignore_ascii_case(word);
        if is_next {
            self.rest = self.rest.get(word.len()..).unwrap_or("");
        }
        is_next
    }

    fn next_word(&self) -> &'t str {
        let ends = |c: char| !c.is_alphanumeric() && c != '_' && c != '-';
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        self.rest.get(..end).unwrap_or("")
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn fault(&self, what: impl Into<String>) -> Fault {
        Fault { rest: self.rest.len(), what: what.into() }
    }

    fn expected(&mut self, what: &str) -> Fault {
        self.skip_space();
        let found = match self.rest.chars().next() {
            None => "the end".to_owned(),
            Some(c) => format!("{c:?}"),
        };
        self.fault(format!("expected {what}, found {found}"))
    }
}

fn joined(mut parts: Vec<Expression>, join: impl Fn(Vec<Expression>) -> Expression) -> Expression {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            parts.extend(last);
            join(parts)
        }
    }
}

fn opposite(expression: Expression) -> Expression {
    match expression {
        Expression::Not(inner) => *inner,
        other => Expression::Not(Box::new(other)),
    }
}

/// Bytes of the JSON value that a text begins with, as far as one can tell without reading it.
fn value_len(text: &str) -> Option<usize> {
    match text.bytes().next()? {
        b'"' => quoted_len(text),
        b'-' | b'0'..=b'9' => {
            let rest = number_end(text.as_bytes()).ok()?;
            text.len().checked_sub(rest.len())
        }
        b'[' | b'{' => container_len(text),
        _ => Some(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())),
    }
}

/// The same of an array or object: up to the bracket that closes the first one.
fn container_len(text: &str) -> Option<usize> {
    let (mut at, mut open) = (0_usize, 0_usize);
    loop {
        let rest = text.get(at..)?;
        let byte = rest.bytes().next()?;
        let len = if byte == b'"' { quoted_len(rest)? } else { rest.chars().next()?.len_utf8() };
        at = at.checked_add(len)?;
        match byte {
            b'[' | b'{' => open = open.checked_add(1)?,
            b']' | b'}' => open = open.checked_sub(1)?,
            _ => {}
        }
        if open == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of it stood in the error, however long it was.
    #[test]
    fn a_long_filter_that_is_wrong_is_cut_in_the_error() {
        let long = format!("a = \"{}\" b", "\u{e4}".repeat(40_000));
        let error = read(&long).unwrap_err();
        assert!(error.message().contains("...\" is no filter: at character 40008,"), "{error}");
        assert!(error.message().len() < 1_000, "{error}");
        assert!(read("a >> 1").unwrap_err().message().starts_with("\"a >> 1\" is no filter"));
    }
}
