//! Patterns of `match` and `search`: I-Regexp (RFC 9485), run by the `regex` crate.
//!
//! The pattern is read by the RFC's grammar and written anew for `regex`, so that nothing of that
//! crate's wider syntax is let in. As in the other mappings of the RFC, `^` and `$` outside of
//! brackets are anchors.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::{JSONPATH_DEPTH_MAX, JSONPATH_PATTERN_BYTES_MAX};

/// A pattern ready to be run; one that is no I-Regexp matches nothing (RFC 9535, 2.4.6).
#[derive(Debug)]
pub(super) struct Pattern(Option<Regex>);

/// A pattern that is being written anew.
struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    depth: usize,
}

impl Pattern {
    /// Reads a pattern; `is_whole` if it has to cover the text that it matches. `Invalid` if it
    /// would take too much memory.
    pub(super) fn new(pattern: &str, is_whole: bool) -> Result<Self> {
        let mut translation =
            Translation { rest: pattern.chars().peekable(), out: String::new(), depth: 0 };
        let is_read = translation.alternatives().is_some() && translation.rest.peek().is_none();
        if !is_read {
            return Ok(Self(None));
        }
        let mut translated = translation.out;
        if is_whole {
            translated = format!(r"\A(?:{translated})\z");
        }
        let built = RegexBuilder::new(&translated).size_limit(JSONPATH_PATTERN_BYTES_MAX).build();
        match built {
            Ok(regex) => Ok(Self(Some(regex))),
            Err(regex::Error::CompiledTooBig(_)) => {
                let message = format!(
                    "the pattern {pattern:?} takes more than {JSONPATH_PATTERN_BYTES_MAX} bytes: \
                     use smaller repetitions"
                );
                Err(Error::new(ErrorKind::Invalid, message))
            }
            // A range from high to low, or a category that Unicode does not have.
            Err(_) => Ok(Self(None)),
        }
    }

    /// Whether the text matches.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

impl Translation<'_> {
    fn alternatives(&mut self) -> Option<()> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > JSONPATH_DEPTH_MAX {
            return None;
        }
        loop {
            while !matches!(self.rest.peek(), None | Some('|' | ')')) {
                self.atom()?;
                self.quantifier()?;
            }
            if !self.copy('|') {
                self.depth = self.depth.saturating_sub(1);
                return Some(());
            }
        }
    }

    fn atom(&mut self) -> Option<()> {
        match self.rest.next()? {
            '(' => {
                self.out.push_str("(?:");
                self.alternatives()?;
                self.copy(')').then_some(())
            }
            '.' => {
                self.out.push_str(r"[^\n\r]");
                Some(())
            }
            '[' => self.class(),
            '\\' => self.escape(),
            anchor @ ('^' | '$') => {
                self.out.push(anchor);
                Some(())
            }
            '*' | '+' | '?' | '{' | '}' | ']' => None,
            c => {
                self.literal(c);
                Some(())
            }
        }
    }

    fn quantifier(&mut self) -> Option<()> {
        if self.copy('*') || self.copy('+') || self.copy('?') || !self.copy('{') {
            return Some(());
        }
        self.digits()?;
        if self.copy(',') && self.rest.peek() != Some(&'}') {
            self.digits()?;
        }
        self.copy('}').then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let before = self.out.len();
        while let Some(digit) = self.rest.next_if(char::is_ascii_digit) {
            self.out.push(digit);
        }
        (self.out.len() > before).then_some(())
    }

    /// What follows a backslash, in brackets or not.
    fn escape(&mut self) -> Option<()> {
        match self.rest.next()? {
            kind @ ('p' | 'P') => self.category(kind),
            c @ ('n' | 'r' | 't') => {
                self.out.extend(['\\', c]);
                Some(())
            }
            c @ ('('..='+' | '-' | '.' | '?' | '['..='^' | '{'..='}') => {
                self.literal(c);
                Some(())
            }
            _ => None,
        }
    }

    fn category(&mut self, kind: char) -> Option<()> {
        if self.rest.next()? != '{' {
            return None;
        }
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                '}' => break,
                c if c.is_ascii_alphabetic() && name.len() < 2 => name.push(c),
                _ => return None,
            }
        }
        let mut letters = name.chars();
        let minor = match letters.next()? {
            'L' => "lmotu",
            'M' => "cen",
            'N' => "dlo",
            'P' => "cdefios",
            'Z' => "lps",
            'S' => "ckmo",
            'C' => "cfno",
            _ => return None,
        };
        if letters.next().is_some_and(|letter| !minor.contains(letter)) {
            return None;
        }
        self.out.extend(['\\', kind, '{']);
        self.out.push_str(&name);
        self.out.push('}');
        Some(())
    }

    /// A class behind its bracket.
    fn class(&mut self) -> Option<()> {
        self.out.push('[');
        self.copy('^');
        let mut is_empty = true;
        if self.rest.next_if_eq(&'-').is_some() {
            self.literal('-');
            is_empty = false;
        }
        loop {
            match self.rest.next()? {
                ']' if !is_empty => {
                    self.out.push(']');
                    return Some(());
                }
                '-' => {
                    // Only at the end.
                    self.literal('-');
                    self.out.push(']');
                    return (self.rest.next()? == ']').then_some(());
                }
                '\\' if matches!(self.rest.peek(), Some('p' | 'P')) => self.escape()?,
                first => self.range(first)?,
            }
            is_empty = false;
        }
    }

    /// One character of a class, or a range that begins with it.
    fn range(&mut self, first: char) -> Option<()> {
        self.class_character(first)?;
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('-') && ahead.next().is_some_and(|after| after != ']') {
            self.rest.next();
            self.out.push('-');
            let last = self.rest.next()?;
            if last == '\\' && matches!(self.rest.peek(), Some('p' | 'P')) {
                return None;
            }
            return self.class_character(last);
        }
        Some(())
    }

    fn class_character(&mut self, c: char) -> Option<()> {
        match c {
            '\\' => self.escape(),
            '[' | ']' | '-' => None,
            c => {
                self.literal(c);
                Some(())
            }
        }
    }

    fn literal(&mut self, c: char) {
        let mut buffer = [0; 4];
        self.out.push_str(&regex::escape(c.encode_utf8(&mut buffer)));
    }

    fn copy(&mut self, c: char) -> bool {
        let is_next = self.rest.next_if_eq(&c).is_some();
        if is_next {
            self.out.push(c);
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::new(pattern, true).unwrap().matches(text)
    }

    #[test]
    fn patterns_of_the_rfc_match_what_it_says() {
        let cases = [
            ("a.c", "abc", true),
            ("a.c", "a\nc", false),
            ("a.c", "a\u{2028}c", true),
            ("(ab|c)*d", "abcabd", true),
            ("[^a-c]{2,3}", "xyz", true),
            ("[-a]+", "a-a", true),
            ("[a-]+", "a-a", true),
            ("[a&&b]+", "a&b", true),
            ("x{2}", "xxx", false),
            ("x{2,}", "xxx", true),
            ("\\p{Lu}\\P{Lu}", "\u{c9}e", true),
            ("[\\p{Nd}_]+", "\u{661}_", true),
            ("\\.\\*\\t", ".*\t", true),
            ("^a$|b", "b", true),
            ("", "", true),
            ("a|", "", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn what_is_no_i_regexp_matches_nothing() {
        let wrong = [
            "(",
            ")",
            "a)",
            "[",
            "[]",
            "[]a]",
            "[a",
            "*",
            "a**",
            "a{",
            "a{,2}",
            "a{2,1}",
            "\\d",
            "\\w",
            "\\",
            "\\p",
            "\\p{",
            "\\p{Xx}",
            "\\p{Greek}",
            "(?i)a",
            "(?:a)",
            "[a-\\p{L}]",
            "[b-a]",
            "[[a]]",
            "a??",
            "\\b",
            "]",
            "}",
        ];
        for pattern in wrong {
            for text in ["", "a", "aa", "d", "(", pattern] {
                assert!(!matches(pattern, text), "{pattern} {text:?}");
            }
        }
        assert!(!matches(&"(".repeat(100_000), "a"));
    }
}
