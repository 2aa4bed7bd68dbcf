//! What stands in the place of what a regular expression finds.

use std::iter::Peekable;
use std::str::Chars;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, LargeStringArray, StringArray, StringViewArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

/// A group that no expression has, so that it is nothing: between a backslash and a digit behind it
/// that are no group, which would be taken for one.
const NOTHING: &str = "${4294967295}";

/// Replacements in the words of the function, where a dollar has a group.
pub(super) fn replacement(texts: &ColumnarValue) -> Result<ColumnarValue> {
    if let ColumnarValue::Scalar(ScalarValue::Utf8(Some(text))) = texts {
        return Ok(ColumnarValue::Scalar(ScalarValue::Utf8(Some(translated(text)))));
    }
    let of = |text: Option<&str>| text.map(translated);
    let made = |array: &ArrayRef| -> ArrayRef {
        match array.data_type() {
            DataType::Utf8 => {
                Arc::new(array.as_string::<i32>().iter().map(of).collect::<StringArray>())
            }
            DataType::LargeUtf8 => {
                Arc::new(array.as_string::<i64>().iter().map(of).collect::<LargeStringArray>())
            }
            DataType::Utf8View => {
                Arc::new(array.as_string_view().iter().map(of).collect::<StringViewArray>())
            }
            _ => Arc::clone(array),
        }
    };
    match texts {
        ColumnarValue::Array(array) => Ok(ColumnarValue::Array(made(array))),
        ColumnarValue::Scalar(text) => {
            let text = ScalarValue::try_from_array(&made(&text.to_array()?), 0)?;
            Ok(ColumnarValue::Scalar(text))
        }
    }
}

fn translated(text: &str) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '$' => translated.push_str("$$"),
            '\\' => escaped(&mut characters, &mut translated),
            other => translated.push(other),
        }
    }
    translated
}

/// What a backslash and the character behind it are: `\1` to `\9` are groups, `\&` is all that was
/// found, `\\` is a backslash, and so is one before anything else.
fn escaped(behind: &mut Peekable<Chars<'_>>, translated: &mut String) {
    match behind.peek().copied() {
        Some(group @ '1'..='9') => {
            behind.next();
            translated.extend(["${", &group.to_string(), "}"]);
            return;
        }
        Some('&') => {
            behind.next();
            translated.push_str("${0}");
            return;
        }
        Some('\\') => _ = behind.next(),
        _ => {}
    }
    translated.push('\\');
    if behind.peek().is_some_and(char::is_ascii_digit) {
        translated.push_str(NOTHING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_backslashes_are_special() {
        for (text, expected) in [
            ("a$1 $$", "a$$1 $$$$"),
            (r"\1\20", "${1}${2}0"),
            (r"<\&>", "<${0}>"),
            (r"\\n\x\", r"\n\x\"),
            (r"\\1", &format!(r"\{NOTHING}1")),
            (r"\0", &format!(r"\{NOTHING}0")),
            (r"\\\\", r"\\"),
        ] {
            assert_eq!(translated(text), expected, "{text}");
        }
    }
}
