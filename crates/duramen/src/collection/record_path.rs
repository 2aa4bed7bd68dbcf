//! Where values are in a record: names, and the elements of arrays.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ParseOptions, Tape, escape};
use crate::limits::{RECORD_PATH_BYTES_MAX, RECORD_PATH_STEPS_MAX};

/// Names values of a record: `world`, `address.city`, `tags[*]`, `items[*].sku`.
///
/// Names are joined by dots; `[*]` stands for the elements of an array. A name is written as it is
/// if it begins with a letter or `_` and has letters, digits, `_` and `-` only; any other one is
/// written in brackets as a JSON string, `["a.b"]`. At a path with `[*]` there may be any number of
/// values, at one without it one at most.
///
/// ```
/// use duramen::RecordPath;
///
/// let path: RecordPath = r#"items[*]["unit price"].value"#.parse()?;
/// assert_eq!(path.to_string(), r#"items[*]["unit price"].value"#);
/// assert_eq!(r#"["world"]"#.parse::<RecordPath>()?.to_string(), "world");
/// let error = "items[0]".parse::<RecordPath>().unwrap_err();
/// assert!(error.message().contains("at character 6"), "{error}");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPath {
    steps: Vec<RecordStep>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RecordStep {
    /// To the field of an object.
    Field(Box<str>),
    /// To the elements of an array.
    Elements,
}

/// What was expected at a place, given as the rest of the text there.
pub(crate) type Expected<'t> = (&'t str, &'static str);

/// Words of the filter language, which a path begins with only in brackets.
pub(crate) const WORDS: [&str; 12] = [
    "and", "or", "not", "in", "is", "null", "missing", "between", "prefix", "contains", "true",
    "false",
];

impl RecordPath {
    /// Reads a path; `Invalid` with the place and what was expected there if it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let refuse = |(rest, expected): Expected<'_>| {
            let read = text.get(..text.len().saturating_sub(rest.len())).unwrap_or(text);
            let message = format!(
                "{text:?} is no path in a record: at character {at}, expected {expected}; a path \
                 is written such as address.city or items[*].sku",
                at = read.chars().count().saturating_add(1)
            );
            Error::new(ErrorKind::Invalid, message)
        };
        match Self::read(text).map_err(refuse)? {
            (path, "") => Ok(path),
            (_, rest) => Err(refuse((rest, "a step such as .name or [*], or the end"))),
        }
    }

    /// Reads the path that a text begins with, and what follows it.
    pub(crate) fn read(text: &str) -> Result<(Self, &str), Expected<'_>> {
        let (first, mut rest) = match text.strip_prefix("[\"") {
            Some(_) => quoted(text)?,
            None => plain(text)?,
        };
        let mut steps = vec![RecordStep::Field(first)];
        loop {
            let at = rest;
            let step;
            if let Some(after) = rest.strip_prefix("[*]") {
                (step, rest) = (RecordStep::Elements, after);
            } else if rest.starts_with('[') {
                let (name, after) = quoted(rest)?;
                (step, rest) = (RecordStep::Field(name), after);
            } else if let Some(after) = rest.strip_prefix('.') {
                let (name, after) = plain(after)?;
                (step, rest) = (RecordStep::Field(name), after);
            } else {
                return Ok((Self { steps }, rest));
            }
            let bytes = text.len().saturating_sub(rest.len());
            if bytes > RECORD_PATH_BYTES_MAX || steps.len() >= RECORD_PATH_STEPS_MAX {
                return Err((at, "a path of at most 64 steps and 4,096 bytes"));
            }
            steps.push(step);
        }
    }

    /// The path of a field of a field ..., if it is not too long.
    pub(crate) fn of_fields(names: impl Iterator<Item = String>) -> Option<Self> {
        let steps = names.map(|name| RecordStep::Field(name.into())).collect();
        Self::parse(&Self { steps }.to_string()).ok()
    }

    pub(crate) fn steps(&self) -> &[RecordStep] {
        &self.steps
    }

    /// Whether there may be several values at the path.
    pub(crate) fn has_elements(&self) -> bool {
        self.steps.contains(&RecordStep::Elements)
    }

    /// The path of the elements of the array at this one.
    pub(crate) fn elements(mut self) -> Self {
        self.steps.push(RecordStep::Elements);
        self
    }
}

/// A name as it is, and the rest.
fn plain(text: &str) -> Result<(Box<str>, &str), Expected<'_>> {
    let end = text.find(|c: char| !is_in_name(c)).unwrap_or(text.len());
    match text.split_at_checked(end) {
        Some((name, rest)) if name.starts_with(begins_name) => Ok((name.into(), rest)),
        _ => Err((text, "a name, or one in brackets such as [\"a.b\"]")),
    }
}

/// A name in brackets, and the rest.
fn quoted(text: &str) -> Result<(Box<str>, &str), Expected<'_>> {
    let expected = (text, "[*] or a name such as [\"a.b\"]");
    let inner = text.strip_prefix('[').ok_or(expected)?;
    let len = quoted_len(inner).ok_or(expected)?;
    let (name, rest) = inner.split_at_checked(len).ok_or(expected)?;
    let tape = Tape::parse(name.as_bytes(), ParseOptions::default());
    let name = tape.ok().and_then(|tape| tape.item(tape.root()).text().map(Box::from));
    Ok((name.ok_or(expected)?, rest.strip_prefix(']').ok_or(expected)?))
}

/// The bytes of the JSON string that a text begins with, quotes included.
pub(crate) fn quoted_len(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inner.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })?;
    end.checked_add(2)
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// As it is read; a path that begins with a word of the filter language has it in brackets.
impl fmt::Display for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            let RecordStep::Field(name) = step else {
                f.write_str("[*]")?;
                continue;
            };
            let is_word = index == 0 && WORDS.iter().any(|word| name.eq_ignore_ascii_case(word));
            if is_word || !name.starts_with(begins_name) || !name.chars().all(is_in_name) {
                write!(f, "[{}]", escape::quoted(name))?;
            } else {
                write!(f, "{}{name}", if index == 0 { "" } else { "." })?;
            }
        }
        Ok(())
    }
}

impl FromStr for RecordPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_they_are_read() {
        let texts = [
            "a",
            "a.b-c._d",
            "a[*]",
            "a[*][*].b",
            r#"["a.b"]["\"]\\"][""]"#,
            r#"["and"].and"#,
            r#"["0"].a0"#,
            "\u{e4}.b",
        ];
        for text in texts {
            assert_eq!(text.parse::<RecordPath>().unwrap().to_string(), text);
        }
        assert_eq!(r#"["a"]["b"]"#.parse::<RecordPath>().unwrap().to_string(), "a.b");
        assert_eq!("and".parse::<RecordPath>().unwrap().to_string(), r#"["and"]"#);
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        let cases = [
            ("", 1),
            (".a", 1),
            ("[*]", 1),
            ("1a", 1),
            ("a.", 3),
            ("a..b", 3),
            ("a[0]", 2),
            ("a[*", 2),
            ("a.[*]", 3),
            ("a b", 2),
            (r#"a["b"#, 2),
            (r#"a["b"x"#, 2),
            (r#"a["\x"]"#, 2),
            ("\u{e4}\u{e4}$", 3),
        ];
        for (text, at) in cases {
            let error = text.parse::<RecordPath>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(&format!("at character {at},")), "{error}");
        }
    }

    #[test]
    fn a_path_without_end_is_refused() {
        let deep = format!("a{}", "[*]".repeat(RECORD_PATH_STEPS_MAX));
        assert!(deep.parse::<RecordPath>().unwrap_err().message().contains("at most 64 steps"));
        let long = format!("a.{}", "b".repeat(RECORD_PATH_BYTES_MAX));
        assert!(long.parse::<RecordPath>().unwrap_err().message().contains("4,096 bytes"));
    }
}
