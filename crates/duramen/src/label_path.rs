//! A label path: the field names from the root of a document to the values of one kind.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{ParseOptions, Tape, escape};
use crate::tree::schema::{Label, ROOT, Schema};

/// Names all values of one kind in a document, such as `$.data[*].age`: field names as they are,
/// `[*]` for the elements of an array, `{*}` for the members of an object that is a map. A name
/// that a dot cannot introduce is written as a JSON string, `$["a.b"]`.
///
/// ```
/// use duramen::LabelPath;
///
/// let path: LabelPath = r#"$.teams{*}["players"][*]"#.parse()?;
/// assert_eq!(path.to_string(), "$.teams{*}.players[*]");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Field(Box<str>),
    Element,
    Member,
}

/// What ends a name after a dot.
const ENDS: &[char] = &['.', '[', ']', '{', '}', '"'];

impl LabelPath {
    /// The path of a tree's values.
    pub(crate) fn of(schema: &Schema, path: crate::PathId) -> Self {
        let (mut steps, mut at) = (Vec::new(), path);
        while at != ROOT {
            steps.push(match schema.label(at) {
                Label::Field(name) => Step::Field(String::from_utf8_lossy(name).into()),
                Label::Element => Step::Element,
                Label::Entry | Label::Root => Step::Member,
            });
            at = schema.path(at).parent;
        }
        steps.reverse();
        Self { steps }
    }

    /// The path of a tree that it names; none if the tree never had such values.
    pub(crate) fn find(&self, schema: &Schema) -> Option<crate::PathId> {
        self.steps.iter().try_fold(ROOT, |at, step| match step {
            Step::Field(name) => schema.field(at, name.as_bytes()),
            Step::Element => schema.path(at).element,
            Step::Member => schema.path(at).entry,
        })
    }

    /// Whether it names the values of a tree's path. Members of a map are entries, or fields if
    /// they were there before the object became one.
    pub(crate) fn is_at(&self, schema: &Schema, path: crate::PathId) -> bool {
        let mut at = path;
        for step in self.steps.iter().rev() {
            let is_step = match (step, schema.label(at)) {
                (Step::Field(name), Label::Field(other)) => name.as_bytes() == other,
                (Step::Element, Label::Element)
                | (Step::Member, Label::Entry | Label::Field(_)) => true,
                _ => false,
            };
            if !is_step {
                return false;
            }
            at = schema.path(at).parent;
        }
        at == ROOT
    }
}

/// The first step of a text, and the rest; what was expected if there is none.
fn step(text: &str) -> Result<(Step, &str), &'static str> {
    if let Some(rest) = text.strip_prefix("[*]") {
        return Ok((Step::Element, rest));
    }
    if let Some(rest) = text.strip_prefix("{*}") {
        return Ok((Step::Member, rest));
    }
    if let Some(rest) = text.strip_prefix("[\"") {
        let end = end_of_string(rest).ok_or("a JSON string and ]")?;
        let (quoted, rest) = (&text[1..end + 3], &rest[end + 1..]);
        let tape = Tape::parse(quoted.as_bytes(), ParseOptions::default());
        let name = tape.ok().and_then(|tape| tape.item(tape.root()).text().map(Box::from));
        let name = name.ok_or("a JSON string")?;
        return Ok((Step::Field(name), rest.strip_prefix(']').ok_or("]")?));
    }
    let name = text.strip_prefix('.').ok_or("a step: .name, [\"name\"], [*] or {*}")?;
    let end = name.find(ENDS).unwrap_or(name.len());
    match name.split_at(end) {
        ("", _) => Err("a name"),
        (name, rest) => Ok((Step::Field(name.into()), rest)),
    }
}

/// Where the closing quote of a JSON string is.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

impl FromStr for LabelPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = |at: usize, expected: &str| {
            let message = format!(
                "{text:?} is no label path: expected {expected} at byte {at}; a path is written \
                 such as $.data[*].age"
            );
            Error::new(ErrorKind::Invalid, message)
        };
        let mut rest = text.strip_prefix('$').ok_or_else(|| refuse(0, "$"))?;
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (next, after) =
                step(rest).map_err(|expected| refuse(text.len() - rest.len(), expected))?;
            steps.push(next);
            rest = after;
        }
        Ok(Self { steps })
    }
}

impl fmt::Display for LabelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for step in &self.steps {
            match step {
                Step::Element => f.write_str("[*]")?,
                Step::Member => f.write_str("{*}")?,
                Step::Field(name) if name.is_empty() || name.contains(ENDS) => {
                    write!(f, "[{}]", escape::quoted(name))?;
                }
                Step::Field(name) => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_print_as_they_are_read() {
        let texts =
            ["$", "$.a", "$[*]", "${*}", "$.a b[*].\u{e4}{*}", r#"$["a.b"][""]["\"]\\"].c"#];
        for text in texts {
            assert_eq!(text.parse::<LabelPath>().unwrap().to_string(), text);
        }
        assert_eq!(r#"$["a"]"#.parse::<LabelPath>().unwrap().to_string(), "$.a");
    }

    #[test]
    fn what_is_no_path_is_refused_with_its_place() {
        let cases = [
            ("", 0),
            ("a", 0),
            ("$a", 1),
            ("$.", 1),
            ("$..a", 1),
            ("$.a[0]", 3),
            ("$[*", 1),
            (r#"$["a"#, 1),
            (r#"$["a"}"#, 1),
            ("$.a]", 3),
            ("$.a.{*}", 3),
            (r#"$["\x"]"#, 1),
        ];
        for (text, at) in cases {
            let error = text.parse::<LabelPath>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().contains(&format!("at byte {at};")), "{error}");
        }
    }
}
