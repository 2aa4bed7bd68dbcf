//! Strings and numbers of a query.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use super::{Fault, Parsed, Parser};
use crate::json::number;
use crate::jsonpath::value::Value;

impl Parser<'_> {
    /// A string in single or double quotes.
    pub(super) fn string(&mut self) -> Parsed<String> {
        let quote = self.next();
        let mut text = String::new();
        loop {
            let plain = self.take_while(|c| Some(c) != quote && c != '\\' && c >= ' ');
            text.push_str(plain);
            match self.peek() {
                Some('\\') => {
                    self.take("\\");
                    text.push(self.escaped(quote)?);
                }
                c if c == quote => {
                    self.next();
                    return Ok(text);
                }
                None => return Err(self.expected("the closing quote")),
                Some(_) => return Err(self.expected("an escape for a control character")),
            }
        }
    }

    fn escaped(&mut self, quote: Option<char>) -> Parsed<char> {
        let refused = self.expected("one of the escapes of JSON");
        Ok(match self.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(c @ ('/' | '\\')) => c,
            Some('u') => return self.unicode(),
            Some(c) if Some(c) == quote => c,
            _ => return Err(refused),
        })
    }

    fn unicode(&mut self) -> Parsed<char> {
        let refused = self.expected("four hexadecimal digits of a character");
        let high = self.hexadecimal()?;
        let code = match high {
            0xd800..=0xdbff => {
                if !self.take("\\u") {
                    return Err(self.expected("the second half of a surrogate pair"));
                }
                let low = self.hexadecimal()?;
                let (top, bottom) = (high.wrapping_sub(0xd800), low.wrapping_sub(0xdc00));
                if bottom >= 0x400 {
                    return Err(refused);
                }
                0x1_0000_u32.wrapping_add(top << 10 | bottom)
            }
            code => code,
        };
        char::from_u32(code).ok_or(refused)
    }

    fn hexadecimal(&mut self) -> Parsed<u32> {
        let refused = self.expected("four hexadecimal digits");
        let digits = self.rest.get(..4).filter(|four| four.chars().all(|c| c.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.rest = self.rest.get(4..).unwrap_or_default();
        code.ok_or(refused)
    }

    /// A number as JSON writes it, and `-0`.
    pub(super) fn number(&mut self) -> Parsed<Value> {
        let start = self.rest;
        let refused = |what: &str| Fault { rest: start.len(), what: what.to_owned() };
        self.take("-");
        let whole = self.take_while(|c| c.is_ascii_digit());
        if whole.is_empty() || whole.len() > 1 && whole.starts_with('0') {
            return Err(refused("a number as JSON writes it was expected"));
        }
        if self.take(".") && self.take_while(|c| c.is_ascii_digit()).is_empty() {
            return Err(self.expected("a digit after the point"));
        }
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                return Err(self.expected("a digit of the exponent"));
            }
        }
        Ok(Value::of(number::classify(self.since(start).as_bytes())))
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }
}
