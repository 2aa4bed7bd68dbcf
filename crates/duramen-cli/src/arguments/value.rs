//! What: a value on the command line.

use clap::Args;
use duramen::{Error, ErrorKind};
use serde::de::IgnoredAny;

use crate::{Result, input};

/// A value as JSON.
#[derive(Debug, Args)]
pub(crate) struct ValueText {
    /// The value as JSON: 9.90, true, '"text"', '{"a":1}'; - is standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
}

impl ValueText {
    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        read(&self.value)
    }
}

/// The bytes of a value, which may stand on standard input.
pub(crate) fn read(text: &str) -> Result<Vec<u8>> {
    Ok(match text {
        "-" => input::read(text.as_ref())?,
        _ => text.as_bytes().to_vec(),
    })
}

/// How many characters of a value a message shows.
const SHOWN_MAX: usize = 60;

/// Most values that are no JSON are text whose quotes the shell has eaten.
pub(crate) fn hint(error: Error, value: &[u8]) -> Error {
    let is_json = serde_json::from_slice::<IgnoredAny>(value).is_ok();
    if error.kind() != ErrorKind::Invalid || is_json {
        return error;
    }
    let mut shown = String::from_utf8_lossy(value).into_owned();
    let end = shown.char_indices().nth(SHOWN_MAX).map(|(end, _)| end);
    if let Some(end) = end {
        shown.truncate(end);
        shown.push_str(" ...");
    }
    let quoted = serde_json::Value::from(shown).to_string().replace('\'', r"'\''");
    let message =
        format!("the value is not JSON: {error}; to give it as a string write '{quoted}'");
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_shown_with_the_quotes_it_needs() {
        let error = || Error::new(ErrorKind::Invalid, "column 1");
        let expected = "the value is not JSON: column 1; to give it as a string write '\"red\"'";
        assert_eq!(hint(error(), b"red").message(), expected);
        assert!(hint(error(), b"it's").message().ends_with(r#"write '"it'\''s"'"#));
        assert_eq!(hint(error(), b"1").message(), "column 1");
    }

    /// All of it once was shown.
    #[test]
    fn a_long_value_is_shown_by_its_beginning() {
        let (error, value) = (Error::new(ErrorKind::Invalid, "column 1"), "\u{e9}".repeat(61));
        let error = hint(error, value.as_bytes());
        let expected = format!("write '\"{} ...\"'", "\u{e9}".repeat(60));
        assert!(error.message().ends_with(&expected), "{error}");
    }
}
