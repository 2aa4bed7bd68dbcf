//! The groups of what a regular expression finds.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use regex::Regex;

use super::{given, is_one};

/// The groups that `regexp_match` finds in each text, with NULL for those that it passes over:
/// the function leaves them out. Where no pattern has groups it is as good.
pub(super) fn matched(
    args: ScalarFunctionArgs,
    find: impl FnOnce(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let (rows, is_one) = (args.number_rows, is_one(&args.args));
    let kind = args.return_type().clone();
    let text = |text: &ColumnarValue| Ok(cast(&text.to_array(rows)?, &DataType::Utf8View)?);
    let Some((first, patterns)) = args.args.split_first() else { return find(args) };
    let patterns = patterns.iter().map(text).collect::<Result<Vec<_>>>()?;
    let patterns = Patterns::with_groups(&patterns).filter(|_| matches!(kind, DataType::List(_)));
    let Some(patterns) = patterns else { return find(args) };
    let found = patterns.groups(text(first)?.as_string_view());
    given(&cast(&found, &kind)?, is_one)
}

/// The regular expressions of a call.
#[derive(Default)]
struct Patterns {
    known: Vec<Regex>,
    /// Which of them that of a row is; none where it is NULL.
    of_rows: Vec<Option<usize>>,
}

impl Patterns {
    /// Those of patterns, and perhaps flags, of which one has groups; none if none has, or if one
    /// of them is no regular expression.
    fn with_groups(args: &[ArrayRef]) -> Option<Self> {
        let (patterns, flags) = args.split_first()?;
        let (patterns, flags) = (patterns.as_string_view(), flags.first());
        let flags = flags.map(AsArray::as_string_view);
        let mut made = Self::default();
        let mut places = HashMap::new();
        for (row, pattern) in patterns.iter().enumerate() {
            let Some(pattern) = pattern else {
                made.of_rows.push(None);
                continue;
            };
            let flags = flags.filter(|flags| flags.is_valid(row)).map(|flags| flags.value(row));
            let known = places.get(&(pattern, flags)).copied();
            let place = known.unwrap_or(made.known.len());
            if known.is_none() {
                made.known.push(regex(pattern, flags)?);
                places.insert((pattern, flags), place);
            }
            made.of_rows.push(Some(place));
        }
        made.known.iter().any(|regex| regex.captures_len() > 1).then_some(made)
    }

    /// What is found in each text; without groups that is all of it.
    fn groups(&self, texts: &StringViewArray) -> ArrayRef {
        let mut made = ListBuilder::new(StringViewBuilder::new());
        for (text, regex) in texts.iter().zip(&self.of_rows) {
            let regex = regex.and_then(|place| self.known.get(place));
            let groups = text.zip(regex).and_then(|(text, regex)| regex.captures(text));
            let is_found = groups.is_some();
            if let Some(groups) = groups {
                let first = usize::from(groups.len() > 1);
                for group in groups.iter().skip(first) {
                    made.values().append_option(group.map(|group| group.as_str()));
                }
            }
            made.append(is_found);
        }
        Arc::new(made.finish())
    }
}

fn regex(pattern: &str, flags: Option<&str>) -> Option<Regex> {
    match flags {
        Some(flags) => Regex::new(&format!("(?{flags}){pattern}")).ok(),
        None => Regex::new(pattern).ok(),
    }
}
