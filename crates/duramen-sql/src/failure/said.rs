//! What the planner says of a query, in words for people.

use datafusion::common::Span;

use super::types;
use crate::statement::Places;
use crate::words::Role;

/// What it says, with `{}` for parts that differ, and what that means. There `{0}` is the first of
/// these parts, `{@0}` the place of the name that it ends with, `{'0}` that of the text it is, and
/// `{^IN}` that of a keyword which is there once.
const SAID: &[(&str, &str)] = &[
    (
        "Cannot coerce arithmetic expression {} to valid types",
        "there is no {0}: CAST one side to what the other one is",
    ),
    (
        "Cannot get result type for decimal operation {}: Invalid argument error: Output scale of",
        "{0} has more than 38 digits behind the point: CAST one side to fewer, such as \
         DECIMAL(38, 10)",
    ),
    (
        "Divide by zero error",
        "a number is divided by zero: nullif(x, 0) in place of the divisor x makes that NULL",
    ),
    (
        "Invalid window frame: start bound cannot be UNBOUNDED FOLLOWING",
        "a window does not begin at UNBOUNDED FOLLOWING",
    ),
    (
        "Invalid window frame: end bound cannot be UNBOUNDED PRECEDING",
        "a window does not end at UNBOUNDED PRECEDING",
    ),
    (
        "Invalid window frame: start bound (IntervalMonthDayNano",
        "a window that ends before it begins: more months are more there, whatever the days: give \
         both bounds in one unit",
    ),
    (
        "Invalid window frame: start bound ({}) cannot be larger than end bound ({})",
        "a window that begins at {0} does not end before it, at {1}",
    ),
    (
        "Cannot infer common string type for string concat operation {}",
        "there is no {0}: CAST one side to TEXT",
    ),
    (
        "Cannot infer common argument type for comparison operation {}",
        "there is no {0}: CAST one side to what the other one is",
    ),
    (
        "Cannot infer common argument type for logical boolean operation {}",
        "there is no {0}: conditions stand on both sides",
    ),
    (
        "Cannot create filter with non-boolean predicate '{}' returning {}",
        "a condition is true or false, and {0}{@0} is {1}: compare it with a value",
    ),
    (
        "Failed to coerce types {} and {} in BETWEEN expression",
        "BETWEEN{^BETWEEN} compares {0} with {1}: CAST one of them to what the other one is",
    ),
    (
        "Failed to coerce case ({}) and when ({}) to common types in CASE WHEN expression",
        "CASE{^CASE} compares {0} with {1} behind WHEN: CAST one of them to what the other one is",
    ),
    (
        "Failed to coerce then ({}) and else ({}) to common types in CASE WHEN expression",
        "CASE{^CASE} gives values of {0} behind THEN, and {1} behind ELSE: CAST them to one type",
    ),
    (
        "Failed to coerce arguments to satisfy a call to 'cardinality' function: coercion from {} \
         to the signature {}",
        "ANY, ALL and cardinality(..) take a list or what a subquery finds, and not {0}",
    ),
    (
        "Failed to coerce arguments to satisfy a call to 'array_has' function: coercion from {} to",
        "ANY and array_has(..) take a list of such values as are sought in it, and not {0}",
    ),
    ("Binary operator 'AtArrow' is not supported", "@> of what is no list: it takes lists"),
    ("Binary operator 'ArrowAt' is not supported", "<@ of what is no list: it takes lists"),
    ("Unsupported CAST from {} to {}", "a CAST{^CAST} of {0} to {1}"),
    ("Unsupported TRY_CAST from {} to {}", "a TRY_CAST{^TRY_CAST} of {0} to {1}"),
    (
        "Assertion failed: matches!(op, Operator::Eq | Operator::NotEq | Operator::Lt",
        "LIKE, ILIKE and SIMILAR TO take texts: CAST what is none to TEXT",
    ),
    (
        "Cannot run range queries on datatype: {}",
        "RANGE{^RANGE} with a distance takes numbers, dates and times with a date, and not {0}: \
         ROWS counts rows, and GROUPS values that differ",
    ),
    (
        "There isn't a common type to coerce {} and {} in {} expression",
        "{2} takes texts, and not {0} and {1}: CAST what is none to TEXT",
    ),
    (
        "Inconsistent data length across values list: got {} values in row {} but expected {}",
        "a row of VALUES has {0} values, and the first one {2}: give each as many",
    ),
    (
        "{} queries have different number of columns",
        "the queries of {0} have different numbers of columns: give each as many",
    ),
    (
        "Incompatible inputs for Union: Previous inputs were of type {}, but got incompatible \
         type {} on column '{}'",
        "the queries of a UNION have {0} and {1} in the column {2}: CAST one of them",
    ),
    (
        "Too many columns! The subquery should only return one column: {}",
        "a subquery that stands for a value has one column, and not several: {0}",
    ),
    (
        "null_aware anti join only supports single column join key{}",
        "NOT IN of a subquery that looks at the row, and groups, counts or limits what it finds: \
         ask with NOT EXISTS",
    ),
    (
        "Scalar subquery returned more than one row",
        "a subquery that stands for a value has more than one row: add LIMIT 1, take max(..) in \
         it, or ask with IN",
    ),
    (
        "Aggregate functions are not allowed in the WHERE clause{}",
        "WHERE comes before rows are grouped, and takes no aggregates: put the condition behind \
         HAVING; in a subquery that looks at the groups around it, group these in FROM first, as \
         in FROM (SELECT a, sum(b) AS s FROM t GROUP BY a) AS q WHERE a > (SELECT .. c = q.s)",
    ),
    (
        "Aggregate function calls cannot be nested: '{}' is nested inside '{}'",
        "{1} has the aggregate {0} in it: compute that by a subquery behind FROM",
    ),
    (
        "column \"{}\" must appear in the GROUP BY clause",
        "{0}{@0} is neither in GROUP BY nor in an aggregate: add it there, or ask for max({0})",
    ),
    (
        "HAVING clause references: {} must appear in",
        "HAVING {0} is without GROUP BY or an aggregate: put the condition behind WHERE",
    ),
    (
        "Cannot access field at argument 1: type {} is not Struct, Map, or Null",
        "{0} has no fields, so that nothing can stand behind a dot: parts of JSON text are t.a ->> \
         'b'",
    ),
    (
        "Projections require unique expression names but the expression \"{}\" at position {} and",
        "{0} is asked for twice: give one of them another name with AS",
    ),
    (
        "The function of windows {} is called with other values",
        "{0}(..){@0} takes the value that it gives, and nth_value behind it a number of the row",
    ),
    (
        "{} in a call of the function of windows {}",
        "{1}(..){@1} takes all rows of its window, and no {0}: leave it out, or take a part of \
         the rows before, by WHERE",
    ),
    (
        "{} in a call of the function {}",
        "{1}(..){@1} is computed of each row by itself, and takes no {0}: leave it out",
    ),
    ("Invalid qualifier {}", "there is no table {0}{@0} here"),
    ("Substring without for/from is not valid", "substr(..) needs where to begin: substr(x, 1)"),
    (
        "WITH query name \"{}\" specified more than once",
        "WITH has the name {0} twice: give one of them another name",
    ),
    (
        "Order by column out of bounds, specified: {}, max: {}",
        "ORDER BY {0} is the column of this number, and there are {1}",
    ),
    (
        "Cannot find column with position {} in SELECT clause. Valid columns: 1 to {}",
        "GROUP BY {0} is the column of this number, and there are {1}",
    ),
    (
        "For SELECT DISTINCT, ORDER BY expressions {} must appear in select list",
        "ORDER BY {0}{@0} is not among what SELECT DISTINCT asks for: add it there",
    ),
    ("Cannot cast string '{}' to value of {} type", "the text '{0}'{'0} is no {1}"),
    ("Cannot cast value '{}' to value of {} type", "the text '{0}'{'0} is no {1}"),
    ("Error parsing timestamp from '{}': {}", "the text '{0}'{'0} is no TIMESTAMP: {1}"),
    (
        "Invalid input syntax for type interval: \"{}\"",
        "the text '{0}'{'0} is no INTERVAL, such as '3 days'",
    ),
    (
        "Unary operator '{}' requires a boolean expression, got {}",
        "{0} takes true or false, and not {1}",
    ),
    (
        "Unary operator '-' only supports signed numeric, interval and timestamp types",
        "a minus stands before numbers and spans of time only",
    ),
    ("Expected LIMIT to be an integer or null, but got {}", "LIMIT is an integer, and not {0}"),
    ("Unsupported LIMIT expression: {}", "a subquery in LIMIT: give it a number"),
    ("Unsupported OFFSET expression: {}", "a subquery in OFFSET: give it a number"),
    (
        "There is only support Literal types for field at idx: 2 in Window Function",
        "lag and lead with a value of each row where there is none: give one for all rows, or \
         compute it by coalesce",
    ),
    (
        "There is only support Literal types for field at idx: {} in Window Function",
        "functions of windows with a number of each row: give one for all rows",
    ),
    (
        "unnest() can only be applied to array, struct and null",
        "unnest(..) takes lists, which texts, numbers and JSON text are not",
    ),
    (
        "Source table contains {} columns but only {} names given as column alias",
        "there are {1} names for {0} columns: give each one",
    ),
    (
        "table '{}' not found",
        "there is no table {0}: name a collection, a view, or a document and a path in it",
    ),
    ("does not support logical expression Wildcard", "a * that is neither alone nor count(*)"),
    (
        "Physical plan does not support logical expression ScalarSubquery",
        "a subquery here that looks at what is outside of it: join it to that",
    ),
    ("Unsupported SQL type {}", "there is no type {0}{@0}"),
    (
        "Cannot automatically convert {} to {}",
        "a value of {0} does not become one of {1} by itself: CAST it",
    ),
    (
        "Date part '{}' not supported",
        "there is no part '{0}'{@0} of a time: it has a year, month, day, hour and others",
    ),
    (
        "Unsupported date_trunc granularity: '{}'. Supported values are: {}",
        "there is no '{0}'{'0} that a time is cut to: give one of {1}",
    ),
    (
        "Inconsistent data type across values list at row {} column {}. Was {} but found {}",
        "rows of VALUES have {2} and {3} in one column: CAST one of them",
    ),
    (
        "Correlated scalar subquery can only be used in Projection, Filter, Aggregate plan nodes",
        "a subquery in ON of an outer join that looks at a row: compute it by a subquery behind \
         FROM",
    ),
    (
        "Attempting to write an Arrow interval type {} to parquet",
        "a file of Parquet has no intervals: CAST(x AS TEXT), or EXTRACT(EPOCH FROM x)",
    ),
    (
        "Physical plan does not support logical expression WindowFunction{}",
        "a function of windows before rows are there, as in WHERE: put the condition behind \
         QUALIFY, or compute it by a subquery behind FROM",
    ),
    (
        "Physical plan does not support logical expression AggregateFunction{}",
        "an aggregate where rows are not grouped yet, as in GROUP BY: compute it by a subquery",
    ),
];

/// What stands before what it says, as often as errors are in others.
const BEFORE: [&str; 8] = [
    "Error during planning: ",
    "Execution error: ",
    "Arrow error: ",
    "Cast error: ",
    "Parser error: ",
    "Compute error: ",
    "Invalid argument error: ",
    "Schema error: ",
];

/// What it calls values that functions take.
const VALUES: [(&str, &str); 10] = [
    ("NullAry()", ""),
    ("UInt64/UInt32/UInt16/UInt8/Int64/Int32/Int16/Int8", "an integer"),
    ("Integer", "an integer"),
    ("Comparable(2)", "a value, another one"),
    ("Comparable(1)", "a value"),
    (": Any", ""),
    ("Numeric(1)", "a number"),
    ("Null", "NULL"),
    ("String", "TEXT"),
    ("Decimal", "DECIMAL"),
];

/// What it says without what stands before, with types as SQL calls them.
pub(super) fn plain(said: &str) -> String {
    types::named(without_before(said))
}

fn without_before(said: &str) -> &str {
    let mut said = said.trim();
    while let Some(rest) = BEFORE.iter().find_map(|before| said.strip_prefix(before)) {
        said = rest;
    }
    said
}

/// What it says, in words for people.
pub(super) fn told(said: &str, places: &Places, part: Option<Span>) -> String {
    let said = without_before(said);
    if let Some(told) = no_match(said, places) {
        return types::named(&told);
    }
    let told = known(said, places, part).unwrap_or_else(|| said.to_owned());
    types::named(&told)
}

/// Whether it is known what is meant by something that it says.
pub(super) fn is_known(said: &str) -> bool {
    SAID.iter().any(|(pattern, _)| parts(said, pattern).is_some())
}

/// What is meant by something that it says, if that is known.
pub(super) fn known(said: &str, places: &Places, part: Option<Span>) -> Option<String> {
    let known = SAID.iter().find_map(|(pattern, means)| Some((parts(said, pattern)?, *means)));
    known.map(|(parts, means)| fill(means, &parts, (places, part)))
}

/// A function that takes other values.
fn no_match(said: &str, places: &Places) -> Option<String> {
    let said = &said[said.find("No function matches")?..];
    let found = parts(said, "argument types '{}'.{}")?;
    let [call, rest] = found.as_slice() else { return None };
    let name = call.split('(').next().unwrap_or(call);
    let rest = rest.split_once("Candidate functions:").map_or("", |(_, them)| them);
    let mut candidates = Vec::new();
    for line in rest.lines() {
        let named = |said: String, (of, name): &(&str, &str)| said.replace(of, name);
        let candidate = types::named(&VALUES.iter().fold(line.trim().to_owned(), named));
        let is_clear = !candidate.is_empty()
            && !candidate.contains("UserDefined")
            // Spans of time of another kind.
            && types::named(call) != candidate;
        if is_clear && !candidates.contains(&candidate) {
            candidates.push(candidate);
        }
    }
    let advice = if candidates.is_empty() {
        "it takes other values".to_owned()
    } else {
        let of_numbers = candidates.iter().any(|candidate| candidate.contains("DOUBLE"));
        let is_of_text = of_numbers && types::named(call).contains("(TEXT");
        let json = if is_of_text { "; a number of JSON text is json_get_float(x)" } else { "" };
        format!("it takes {}{json}", candidates.join(", "))
    };
    Some(format!("there is no {call}{}: {advice}", places.of(name, Role::Function)))
}

/// The parts of a text where a pattern has `{}`, if it has the pattern in it; the last one goes to
/// the end of the line.
fn parts<'s>(said: &'s str, pattern: &str) -> Option<Vec<&'s str>> {
    let mut pieces = pattern.split("{}");
    let first = pieces.next()?;
    let mut rest = &said[said.find(first)? + first.len()..];
    let mut found = Vec::new();
    for piece in pieces {
        let end = if piece.is_empty() { rest.len() } else { rest.find(piece)? };
        found.push(&rest[..end]);
        rest = &rest[end + piece.len()..];
    }
    Some(found)
}

fn fill(means: &str, parts: &[&str], (places, part): (&Places, Option<Span>)) -> String {
    let mut told = means.to_owned();
    for (index, found) in parts.iter().enumerate() {
        let name = found.rsplit('.').next().unwrap_or(found).trim_matches('"');
        told = told.replace(&format!("{{@{index}}}"), &places.of_spoken(name, part));
        told = told.replace(&format!("{{'{index}}}"), &places.of_text(found));
        told = told.replace(&format!("{{{index}}}"), found);
    }
    let Some((before, rest)) = told.split_once("{^") else { return told };
    let Some((keyword, behind)) = rest.split_once('}') else { return told };
    format!("{before}{}{behind}", places.of_only_keyword(keyword))
}
