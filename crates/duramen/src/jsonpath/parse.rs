//! Reads a query (RFC 9535): by recursive descent, with bounded depth, type-checked on the way.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::syntax::{Segment, Selector, Slice};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{JSONPATH_BYTES_MAX, JSONPATH_DEPTH_MAX};

mod filter;
mod literal;

/// Integers of a query are within what a double holds exactly (RFC 9535, 2.1).
const INTEGER_MAX: u64 = (1 << 53) - 1;

/// What is wrong with a query, and where.
#[derive(Debug)]
struct Fault {
    /// Bytes that are left at the place.
    rest: usize,
    what: String,
}

type Parsed<T> = Result<T, Fault>;

/// A query that is being read.
struct Parser<'q> {
    rest: &'q str,
    /// Filters and parentheses that are open.
    depth: usize,
}

/// Reads a whole query.
pub(super) fn read(text: &str) -> Result<Box<[Segment]>> {
    if text.len() > JSONPATH_BYTES_MAX {
        let message =
            format!("a JSONPath has {} bytes; at most {JSONPATH_BYTES_MAX} can be", text.len());
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    let mut parser = Parser { rest: text, depth: 0 };
    parser.query().map_err(|fault| {
        let read = text.get(..text.len().saturating_sub(fault.rest)).unwrap_or(text);
        let column = read.chars().count().saturating_add(1);
        let message = format!("{text:?} is not a JSONPath: at character {column}, {}", fault.what);
        Error::new(ErrorKind::Invalid, message)
    })
}

impl<'q> Parser<'q> {
    fn query(&mut self) -> Parsed<Box<[Segment]>> {
        if !self.take("$") {
            return Err(self.expected("'$', with which every query begins"));
        }
        let segments = self.segments()?;
        if !self.rest.is_empty() {
            return Err(self.expected("'.', '[' or the end"));
        }
        Ok(segments)
    }

    fn segments(&mut self) -> Parsed<Box<[Segment]>> {
        let mut segments = Vec::new();
        loop {
            let before = self.rest;
            self.skip_space();
            if self.take("..") {
                segments.push(Segment { is_descendant: true, selectors: self.after_dots()? });
            } else if self.take(".") {
                let only = Box::new([self.shorthand("a name or '*'")?]);
                segments.push(Segment { is_descendant: false, selectors: only });
            } else if self.take("[") {
                let selectors = self.bracketed()?;
                segments.push(Segment { is_descendant: false, selectors });
            } else {
                // Space after the last segment belongs to what follows.
                self.rest = before;
                return Ok(segments.into());
            }
        }
    }

    fn after_dots(&mut self) -> Parsed<Box<[Selector]>> {
        if self.take("[") {
            return self.bracketed();
        }
        Ok(Box::new([self.shorthand("a name, '*' or '['")?]))
    }

    fn shorthand(&mut self, expected: &str) -> Parsed<Selector> {
        if self.take("*") {
            return Ok(Selector::Wildcard);
        }
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        if !self.rest.starts_with(is_first) {
            return Err(self.expected(expected));
        }
        let name = self.take_while(|c| is_first(c) || c.is_ascii_digit());
        Ok(Selector::Name(Arc::from(name)))
    }

    /// The selectors after `[`, and the `]`.
    fn bracketed(&mut self) -> Parsed<Box<[Selector]>> {
        let mut selectors = Vec::new();
        loop {
            self.skip_space();
            selectors.push(self.selector()?);
            self.skip_space();
            if self.take("]") {
                return Ok(selectors.into());
            }
            if !self.take(",") {
                return Err(self.expected("',' or ']'"));
            }
        }
    }

    fn selector(&mut self) -> Parsed<Selector> {
        match self.peek() {
            Some('*') => {
                self.take("*");
                Ok(Selector::Wildcard)
            }
            Some('\'' | '"') => Ok(Selector::Name(self.string()?.into())),
            Some('?') => {
                self.take("?");
                self.skip_space();
                Ok(Selector::Filter(self.logical()?))
            }
            Some('-' | '0'..='9' | ':') => self.index_or_slice(),
            _ => Err(self.expected("a name in quotes, an index, a slice, '*' or '?'")),
        }
    }

    fn index_or_slice(&mut self) -> Parsed<Selector> {
        let start = self.optional_integer()?;
        let before = self.rest;
        self.skip_space();
        if !self.take(":") {
            self.rest = before;
            return start.map(Selector::Index).ok_or_else(|| self.expected("an index"));
        }
        self.skip_space();
        let end = self.optional_integer()?;
        let before = self.rest;
        self.skip_space();
        let mut step = None;
        if self.take(":") {
            let before = self.rest;
            self.skip_space();
            step = self.optional_integer()?;
            if step.is_none() {
                self.rest = before;
            }
        } else {
            self.rest = before;
        }
        Ok(Selector::Slice(Slice { start, end, step: step.unwrap_or(1) }))
    }

    fn optional_integer(&mut self) -> Parsed<Option<i64>> {
        match self.peek() {
            Some('-' | '0'..='9') => self.integer().map(Some),
            _ => Ok(None),
        }
    }

    fn integer(&mut self) -> Parsed<i64> {
        let start = self.rest;
        let is_negative = self.take("-");
        let digits = self.take_while(|c| c.is_ascii_digit());
        let refused = |what: &str| Fault { rest: start.len(), what: what.to_owned() };
        let is_whole = match digits.as_bytes() {
            [] | [b'0', _, ..] => false,
            [b'0'] => !is_negative,
            _ => true,
        };
        if !is_whole {
            return Err(refused("an integer without leading zeros was expected"));
        }
        let magnitude = digits.parse().ok().filter(|magnitude| *magnitude <= INTEGER_MAX);
        let magnitude = magnitude.and_then(|magnitude: u64| i64::try_from(magnitude).ok());
        let Some(magnitude) = magnitude else {
            return Err(refused("an integer is beyond 2^53 - 1"));
        };
        Ok(if is_negative { magnitude.wrapping_neg() } else { magnitude })
    }

    /// Reads what may be inside itself, at most so deep as the stack allows.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= JSONPATH_DEPTH_MAX {
            let what = format!(
                "filters, parentheses and functions are inside each other more than \
                 {JSONPATH_DEPTH_MAX} times"
            );
            return Err(Fault { rest: self.rest.len(), what });
        }
        self.depth = self.depth.saturating_add(1);
        let result = read(self);
        self.depth = self.depth.saturating_sub(1);
        result
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'q str {
        let end = self.rest.find(|c| !holds(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at_checked(end).unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// What was read since `start` was left.
    fn since(&self, start: &'q str) -> &'q str {
        start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or(start)
    }

    fn expected(&self, what: &str) -> Fault {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(c) => format!("{c:?}"),
        };
        Fault { rest: self.rest.len(), what: format!("{what} was expected, not {found}") }
    }
}

#[cfg(test)]
mod tests;
