//! `duramen set`: one value of a document.

use clap::Args;
use duramen::{Error, ErrorKind};
use serde::de::IgnoredAny;

use crate::arguments::{Edit, Place};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen set shop.duramen config /opening/sunday true
  duramen set shop.duramen config /name '\"The corner shop\"'
  duramen set shop.duramen config /tags/- '\"new at the end of a list\"'
  duramen set shop.duramen config /price 9.90 --expect-revision 7";

/// Set one value of a document
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Set {
    #[command(flatten)]
    edit: Edit,
    #[command(flatten)]
    place: Place,
    /// The value as JSON: 9.90, true, '"text"', '{"a":1}'; - is standard input
    #[arg(allow_negative_numbers = true)]
    value: String,
}

impl Set {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let target = self.place.pointer()?;
        let value = match self.value.as_str() {
            "-" => input::read("-".as_ref())?,
            value => value.as_bytes().to_vec(),
        };
        self.edit.run((session, output), |transaction, name| {
            transaction.set(name, &target, &value).map_err(|error| hint(error, &value))
        })
    }
}

/// Most values that are no JSON are text whose quotes the shell has eaten.
fn hint(error: Error, value: &[u8]) -> Error {
    let is_json = serde_json::from_slice::<IgnoredAny>(value).is_ok();
    if error.kind() != ErrorKind::Invalid || is_json {
        return error;
    }
    let quoted = serde_json::Value::from(String::from_utf8_lossy(value)).to_string();
    let quoted = quoted.replace('\'', r"'\''");
    let message = format!("the value is not JSON: {error}; to set it as a string write '{quoted}'");
    Error::new(ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_word_is_shown_with_the_quotes_it_needs() {
        let error = || Error::new(ErrorKind::Invalid, "column 1");
        let expected = "the value is not JSON: column 1; to set it as a string write '\"red\"'";
        assert_eq!(hint(error(), b"red").message(), expected);
        assert!(hint(error(), b"it's").message().ends_with(r#"write '"it'\''s"'"#));
        assert_eq!(hint(error(), b"1").message(), "column 1");
    }
}
