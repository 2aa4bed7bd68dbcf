//! The groups of what a regular expression finds.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use regex::Regex;

use super::{given, is_one};

/// The groups that `regexp_match` finds in each text, with NULL for those that it passes over:
/// the function leaves them out.
pub(super) fn matched(
    args: ScalarFunctionArgs,
    find: impl FnOnce(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    let (rows, is_one) = (args.number_rows, is_one(&args.args));
    let texts = args.args.iter().map(|texts| cast(&texts.to_array(rows)?, &DataType::Utf8View));
    let texts: Vec<ArrayRef> = texts.collect::<std::result::Result<_, _>>()?;
    let found = find(args)?;
    let [text, pattern, flags @ ..] = texts.as_slice() else { return Ok(found) };
    let lists = found.to_array(rows)?;
    let DataType::List(_) = lists.data_type() else { return Ok(found) };
    let (text, pattern) = (text.as_string_view(), pattern.as_string_view());
    let mut patterns = Patterns::default();
    let mut made = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        if lists.is_null(row) || pattern.is_null(row) {
            made.append(false);
            continue;
        }
        let flags = flags.first().map(AsArray::as_string_view);
        let flags = flags.filter(|flags| flags.is_valid(row)).map(|flags| flags.value(row));
        let regex = patterns.get(pattern.value(row), flags)?;
        let Some(groups) = regex.captures(text.value(row)) else {
            made.append(false);
            continue;
        };
        // Without groups it is all that is found.
        let first = usize::from(groups.len() > 1);
        for group in groups.iter().skip(first) {
            made.values().append_option(group.map(|group| group.as_str()));
        }
        made.append(true);
    }
    if !patterns.have_groups {
        return Ok(found);
    }
    given(&cast(&made.finish(), lists.data_type())?, is_one)
}

/// The regular expressions of a call.
#[derive(Default)]
struct Patterns {
    known: HashMap<String, Arc<Regex>>,
    have_groups: bool,
}

impl Patterns {
    fn get(&mut self, pattern: &str, flags: Option<&str>) -> Result<Arc<Regex>> {
        let pattern = match flags {
            Some(flags) => format!("(?{flags}){pattern}"),
            None => pattern.to_owned(),
        };
        if let Some(known) = self.known.get(&pattern) {
            return Ok(Arc::clone(known));
        }
        let regex = Regex::new(&pattern);
        let regex = regex.map_err(|error| exec_datafusion_err!("regex parse error: {error}"))?;
        let regex = Arc::new(regex);
        self.have_groups |= regex.captures_len() > 1;
        self.known.insert(pattern, Arc::clone(&regex));
        Ok(regex)
    }
}
