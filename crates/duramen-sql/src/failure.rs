//! What errors of queries mean to the caller.

use std::borrow::Cow;
use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError, Span, TableReference};
use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::functions_window::all_default_window_functions;
use datafusion::parquet::errors::ParquetError;
use duramen::{Error, ErrorKind, nearest};

use crate::change::OWN;
use crate::other_case::OtherCase;
use crate::statement::Places;
use crate::system_time::TableName;
use crate::unnest::OUTSIDE;
use crate::words::Role;

mod said;
mod types;

/// What the planner says of a regular expression that is none.
const PATTERN: &str = "Invalid regex";

/// What a function says of one.
const WRONG_PATTERN: &str = "regex parse error";

/// What is said of a number that its type has no room for.
const BEYOND: [&str; 7] = [
    "Overflow happened on",
    "Overflowing on",
    "overflow in avg",
    "overflow on abs",
    "Overflow in AvgAccumulator",
    "to store in a Decimal",
    "Can't cast value",
];

/// What the planner says of a subquery in `VALUES`.
const IN_VALUES: &str = "ScalarSubqueryExpr evaluated before";

/// Characters of a value that an error shows.
const SHOWN_CHARACTERS: usize = 60;

/// Characters of a message of the planner from which on it is cut, as a value in it may be of any
/// length, and those of its begin and end that are left.
const CHARACTERS_MAX: usize = 1_000;
const FIRST_CHARACTERS: usize = 700;
const LAST_CHARACTERS: usize = 200;

/// A value as an error shows it.
pub(crate) fn shown(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => Cow::Owned(format!("{}...", &value[..end])),
        None => Cow::Borrowed(value),
    }
}

/// A message without its middle, if it is long.
pub(crate) fn cut(message: String) -> String {
    let characters = message.chars().count();
    if characters <= CHARACTERS_MAX {
        return message;
    }
    let first = message.chars().take(FIRST_CHARACTERS);
    let last = message.chars().skip(characters - LAST_CHARACTERS);
    first.chain(" ... ".chars()).chain(last).collect()
}

/// An error of the engine on its way through a query.
pub(crate) fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

pub(crate) fn arrow(error: ArrowError) -> Error {
    query(error.into(), &Places::default())
}

pub(crate) fn parquet(error: ParquetError) -> Error {
    query(error.into(), &Places::default())
}

pub(crate) fn output(error: io::Error) -> Error {
    Error::io("cannot write the answer", error)
}

/// What a query failed of, with its place in the text where that is known.
pub(crate) fn query(error: DataFusionError, places: &Places) -> Error {
    of_part(error, places, None)
}

/// The same, where the planner points at a part of the text.
fn of_part(error: DataFusionError, places: &Places, part: Option<Span>) -> Error {
    match error {
        DataFusionError::External(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) if source.to_string().starts_with(WRONG_PATTERN) => {
                of_pattern(DataFusionError::External(source))
            }
            Err(source) => Error::new(ErrorKind::Internal, format!("a query failed: {source}"))
                .with_source(source),
        },
        DataFusionError::Context(what, inner) if what == PATTERN => of_pattern(*inner),
        DataFusionError::Context(_, inner) => of_part(*inner, places, part),
        DataFusionError::Diagnostic(told, inner) => of_part(*inner, places, told.span.or(part)),
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => of_part(first, places, part),
            None => Error::new(ErrorKind::Internal, "a query failed and does not say why"),
        },
        DataFusionError::Shared(shared) => match of_engine(&shared) {
            Some(error) => Error::new(error.kind(), error.message()),
            None => Error::new(kind(&shared), cut(text(&shared, places, part))),
        },
        DataFusionError::ArrowError(inner, _) => of_arrow(*inner, places),
        DataFusionError::IoError(error) => file("a query cannot use its files", error),
        DataFusionError::SchemaError(schema, _) => of_schema(&schema, places, part),
        error => {
            let told = Error::new(kind(&error), cut(text(&error, places, part)));
            let why = error.strip_backtrace();
            let meant = OtherCase::of_ungrouped(&why, places, part);
            let meant = meant.or_else(|| OtherCase::of_field(&why, places, part));
            OtherCase::because(told.with_source(error), meant)
        }
    }
}

/// The error of the engine that another one comes of.
fn of_engine(error: &DataFusionError) -> Option<&Error> {
    let first: &(dyn std::error::Error + 'static) = error;
    let mut causes = std::iter::successors(Some(first), |cause| cause.source());
    causes.find_map(|cause| cause.downcast_ref())
}

fn of_pattern(error: DataFusionError) -> Error {
    let text = error.to_string();
    // What stands before it shows the expression that was made of the pattern.
    let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    let message = cut(format!("a pattern of the query is no regular expression: {why}"));
    Error::new(ErrorKind::Invalid, message).with_source(error)
}

/// An error of the engine, which may tell how a command asks for an earlier revision, with how SQL
/// does.
pub(crate) fn of_moment(error: Error) -> Error {
    const OF_COMMAND: &str = "(--at ";
    if !error.message().contains(OF_COMMAND) {
        return error;
    }
    let message = error.message().replace(OF_COMMAND, "(FOR SYSTEM_TIME AS OF ");
    Error::new(error.kind(), message).with_source(error)
}

/// What a file of a query failed of.
pub(crate) fn file(what: &str, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::io(what, error),
    }
}

fn of_arrow(error: ArrowError, places: &Places) -> Error {
    match error {
        ArrowError::ExternalError(source) => match source.downcast::<DataFusionError>() {
            Ok(error) => query(*error, places),
            Err(source) => query(DataFusionError::External(source), places),
        },
        ArrowError::IoError(what, error) => file(&what, error),
        error => {
            let why = error.to_string();
            let message = beyond(&why).unwrap_or_else(|| unanswered(&why, places, None));
            Error::new(ErrorKind::Invalid, cut(message)).with_source(error)
        }
    }
}

fn of_schema(error: &SchemaError, places: &Places, part: Option<Span>) -> Error {
    let message = match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let (part, named) = (field.spans().first().or(part), (&**field, &**valid_fields));
            let error = Error::new(ErrorKind::Invalid, no_column(named, places, part));
            return OtherCase::because(error, OtherCase::of_column(named, places, part));
        }
        // Columns of a list, of which one has its name without a table.
        SchemaError::AmbiguousReference { field } if field.relation.is_some() => {
            let name = field.name();
            format!(
                "there are two columns {name:?} here: give one of them another name with AS, or \
                 leave one out with * EXCLUDE ({name})"
            )
        }
        SchemaError::AmbiguousReference { field } => {
            let part = field.spans().first().or(part);
            let (name, at) = (field.name(), places.of_column(field.name(), part));
            format!("the column {name:?}{at} is in several tables: say in which, as in t.{name}")
        }
        SchemaError::DuplicateQualifiedField { qualifier, .. } => {
            let TableName { name, .. } = TableName::of(qualifier.table());
            format!(
                "there are two tables {name:?} here: give one of them another name, as in {name} \
                 AS other"
            )
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            format!("there are two columns {name:?} here: give one of them another name with AS")
        }
    };
    Error::new(ErrorKind::Invalid, message)
}

fn no_column((field, valid): (&Column, &[Column]), places: &Places, part: Option<Span>) -> String {
    let name = field.name();
    let at = places.of_column(name, part);
    if let Some(of) = field.relation.as_ref().and_then(|of| unknown(of, valid)) {
        // Columns of queries around this one are not told.
        let is_outside = field.relation.as_ref().is_some_and(|of| of.schema() == Some(OUTSIDE));
        if is_outside || places.has_table(of) {
            return format!(
                "there is no column {name:?}{at} in {of:?}, or that is a table which is not seen \
                 here"
            );
        }
        return no_origin((of, valid), places, part);
    }
    let same = valid.iter().filter(|known| known.name() == name);
    let mut others = same.filter_map(|known| Some(known.relation.as_ref()?.table().to_owned()));
    if let Some(of) = &field.relation
        && let Some(other) = others.next()
    {
        let of = of.table();
        return format!("there is no column {name:?}{at} in {of:?}, only in {other:?}");
    }
    let mut names = Vec::new();
    for known in valid.iter().map(Column::name).filter(|name| !name.starts_with(OWN)) {
        if !names.contains(&known) {
            names.push(known);
        }
    }
    let here = nearest(name, names.iter().map(|&name| name.to_owned()));
    // An order is told of what is selected only, and may be by other columns.
    if let Some(nearest) = here.or_else(|| nearest(name, places.columns_read())) {
        return format!("there is no column {name:?}{at}: did you mean {nearest:?}?");
    }
    names.truncate(10);
    if names.is_empty() {
        return format!("there is no column {name:?}{at}, nor any other one here");
    }
    let names = names.join(", ");
    if places.is_quoted(name) {
        return format!(
            "there is no column {name:?}{at}; a text has single quotes, '{name}', and columns \
             there are: {names}"
        );
    }
    format!("there is no column {name:?}{at}; there are: {names}")
}

/// The part of what stands before a dot that is no table of the query.
pub(crate) fn unknown<'r>(relation: &'r TableReference, valid: &[Column]) -> Option<&'r str> {
    let is_table = |name: &str| {
        let mut tables = valid.iter().filter_map(|field| field.relation.as_ref());
        tables.any(|table| table.table() == name)
    };
    if is_table(relation.table()) {
        return None;
    }
    let parts = [relation.catalog(), relation.schema(), Some(relation.table())];
    parts.into_iter().flatten().find(|part| *part != OUTSIDE && !is_table(part))
}

/// What stands before a dot is neither a table of the query nor a column with fields.
fn no_origin((of, valid): (&str, &[Column]), places: &Places, part: Option<Span>) -> String {
    let tables = valid.iter().filter_map(|field| field.relation.as_ref());
    let tables = tables.map(|table| table.table().to_owned());
    let others = tables.chain(valid.iter().map(|field| field.name().to_owned()));
    let others = others.filter(|name| !name.starts_with(OWN) && name != of);
    let advice = match nearest(of, others) {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => "name one that is behind FROM, or a column".to_owned(),
    };
    format!("there is no table or column {of:?}{} here: {advice}", places.of_column(of, part))
}

fn kind(error: &DataFusionError) -> ErrorKind {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Full,
        DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
        DataFusionError::Internal(why) if why.contains(IN_VALUES) => ErrorKind::Unsupported,
        DataFusionError::Internal(why) if !said::is_known(why) => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}

fn text(error: &DataFusionError, places: &Places, part: Option<Span>) -> String {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(why) => format!(
            "the query takes more memory than it may: give it more (--memory, memory_bytes), or \
             select less; {why}"
        ),
        DataFusionError::SQL(why, _) => format!("this is no SQL: {why}"),
        DataFusionError::NotImplemented(what) => {
            format!("this SQL is not supported: {}", supported(what, places))
        }
        DataFusionError::Plan(why) => planned(why, places, part),
        DataFusionError::Internal(why) if why.contains(IN_VALUES) => {
            "this SQL is not supported: a subquery in VALUES: write SELECT in place of VALUES"
                .into()
        }
        // Of some mistakes the planner takes the blame.
        DataFusionError::Internal(why) if said::is_known(why) => unanswered(why, places, part),
        DataFusionError::Internal(why) => {
            format!("a query failed as it should not, report it: {}", without_report(why))
        }
        error => {
            let why = error.strip_backtrace();
            beyond(&why).unwrap_or_else(|| unanswered(&why, places, part))
        }
    }
}

fn unanswered(why: &str, places: &Places, part: Option<Span>) -> String {
    let told = said::told(without_report(why), places, part);
    let words: Vec<&str> = told.split_whitespace().collect();
    format!("the query cannot be answered: {}", words.join(" "))
}

/// What to do about a number that its type has no room for, if that is what a query failed of.
fn beyond(why: &str) -> Option<String> {
    if !BEYOND.iter().any(|known| why.contains(known)) {
        return None;
    }
    let why = said::plain(why.rsplit("Overflow happened on: ").next().unwrap_or(why));
    Some(format!(
        "the query cannot be answered: a number is beyond what its type has room for ({why}): cast \
         what it is computed of or compared with to a wider type, such as CAST(x AS DOUBLE)"
    ))
}

/// What is not supported, without what the parser or planner made of it.
fn supported(what: &str, places: &Places) -> String {
    if what.contains("OuterReferenceColumn") {
        return "a subquery or LATERAL that looks at tables outside of it from so deep inside: join \
                it to them, as in FROM t, unnest(t.items) AS i"
            .to_owned();
    }
    if what.contains("logical expression Exists") {
        return "EXISTS outside of a condition: count what there is, as in (SELECT count(*) > 0 \
                FROM t WHERE ..)"
            .to_owned();
    }
    if what.contains("logical expression InSubquery") {
        return "IN (SELECT ..) in this place: put it behind WHERE, or ask with EXISTS or a join"
            .to_owned();
    }
    if let Some(told) = said::known(what, places, None) {
        return said::plain(&told);
    }
    let inner = ["Ident {", "Ident(", "Span("].iter().filter_map(|inner| what.find(inner)).min();
    let Some(inner) = inner else { return what.to_owned() };
    let end = what[..inner].find(['(', '{']).unwrap_or(inner);
    what[..end].trim_end().to_owned()
}

/// What the planner says of a query, for people.
fn planned(why: &str, places: &Places, part: Option<Span>) -> String {
    if let Some((name, rest)) = quoted_in(why, "Invalid function '", "'") {
        let like = quoted_in(rest, "Did you mean '", "'").map(|found| found.0);
        return no_function(name, like, &places.of(name, Role::Function));
    }
    if let Some(name) = missing_field(why) {
        return format!("there is no field {name:?}{} in that column", places.of(name, Role::Name));
    }
    unanswered(why, places, part)
}

/// The field that the planner does not find in an object.
pub(crate) fn missing_field(why: &str) -> Option<&str> {
    quoted_in(why, "Field ", " not found in struct").map(|(name, _)| name)
}

/// Functions of other databases, and what stands for them here.
const ELSEWHERE: [(&str, &str); 44] = [
    ("charindex", "strpos(x, 'a') tells where it is"),
    ("count_if", "count(*) FILTER (WHERE ..) counts some"),
    ("countif", "count(*) FILTER (WHERE ..) counts some"),
    ("dateadd", "add an INTERVAL to it"),
    ("date_add", "add an INTERVAL to it"),
    ("date_diff", "subtract one date from the other"),
    ("date_sub", "subtract an INTERVAL from it"),
    ("datediff", "subtract one date from the other"),
    ("day", "EXTRACT(DAY FROM x) tells it"),
    ("dayname", "to_char(x, '%A') writes it"),
    ("epoch", "EXTRACT(EPOCH FROM x) tells it"),
    ("format", "join texts by ||"),
    ("group_concat", "string_agg(x, ',') joins texts"),
    ("hour", "EXTRACT(HOUR FROM x) tells it"),
    ("if", "CASE WHEN .. THEN .. ELSE .. END decides"),
    ("iif", "CASE WHEN .. THEN .. ELSE .. END decides"),
    ("isinf", "compare with CAST('Infinity' AS DOUBLE), or ask NOT isfinite(x)"),
    ("isnull", "x IS NULL tells it"),
    ("json_extract", "json_get(x, 'a') gives a part, json_as_text(x, 'a') as text"),
    ("json_extract_string", "json_as_text(x, 'a') gives a part as text"),
    ("json_value", "json_as_text(x, 'a') gives a part as text"),
    ("lcase", "lower(x) writes it so"),
    ("len", "length(x) is that of a text, array_length(x) that of a list"),
    ("list", "array_agg(x) makes a list of rows"),
    ("list_aggregate", "list_sum, list_min, list_max and others are functions"),
    ("listagg", "string_agg(x, ',') joins texts"),
    ("minute", "EXTRACT(MINUTE FROM x) tells it"),
    ("month", "EXTRACT(MONTH FROM x) tells it"),
    ("monthname", "to_char(x, '%B') writes it"),
    ("pg_typeof", "DESCRIBE SELECT .. tells the types of columns"),
    ("printf", "join texts by ||"),
    ("regexp_extract", "regexp_match(x, pattern) gives a list with what is found"),
    ("regexp_matches", "regexp_like(x, pattern) tells whether it is found"),
    ("second", "EXTRACT(SECOND FROM x) tells it"),
    ("str_split", "string_to_array(x, ',') splits a text"),
    ("strftime", "to_char(x, '%Y-%m-%d') writes a time"),
    ("string_split", "string_to_array(x, ',') splits a text"),
    ("strptime", "to_timestamp(x, '%Y-%m-%d') reads a time"),
    ("struct_extract", "x['name'] is a field"),
    ("struct_pack", "{'name': x} is an object"),
    ("time_bucket", "date_bin(INTERVAL '1 hour', x) cuts a time"),
    ("typeof", "DESCRIBE SELECT .. tells the types of columns"),
    ("ucase", "upper(x) writes it so"),
    ("year", "EXTRACT(YEAR FROM x) tells it"),
];

fn no_function(name: &str, like: Option<&str>, at: &str) -> String {
    let mut of_windows = all_default_window_functions().into_iter();
    if of_windows.any(|function| function.name() == name) {
        return format!("{name}{at} is a function of windows: write OVER (...) behind it");
    }
    let elsewhere = ELSEWHERE.iter().find(|(of, _)| name.eq_ignore_ascii_case(of));
    if let Some((_, advice)) = elsewhere {
        return format!("there is no function {name:?}{at}: {advice}");
    }
    let others = all_default_aggregate_functions().into_iter().map(|of| of.name().to_owned());
    let others = others.chain(all_default_functions().into_iter().map(|of| of.name().to_owned()));
    let advice = match nearest(name, others.chain(like.map(str::to_owned))) {
        Some(like) => format!("did you mean {like:?}?"),
        None => "SHOW FUNCTIONS lists those there are".to_owned(),
    };
    format!("there is no function {name:?}{at}: {advice}")
}

/// What stands in a text between two others, and what stands behind.
fn quoted_in<'t>(text: &'t str, before: &str, behind: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(before).and_then(|(_, rest)| rest.split_once(behind))
}

/// The same without what asks to report it elsewhere.
fn without_report(why: &str) -> &str {
    const REPORT: &str = "This issue was likely caused by a bug";
    const END: &str = "/issues.";
    let Some((before, report)) = why.split_once(REPORT) else { return why };
    match report.split_once(END) {
        Some((_, behind)) if !behind.trim().is_empty() => behind.trim(),
        _ => before.trim(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_messages_are_cut_between_characters() {
        let long = "\u{e9}".repeat(2_000);
        assert_eq!(shown(&long), format!("{}...", "\u{e9}".repeat(60)));
        assert_eq!(shown("short"), "short");
        assert_eq!(cut(format!("{long}!")).chars().count(), 905);
        assert!(cut(format!("{long}!")).ends_with('!'));
    }

    /// It once was `Invalid`, and told as an external error.
    #[test]
    fn an_error_of_the_engine_that_partitions_share_is_told_as_it_is() {
        let damage = external(Error::new(ErrorKind::Corrupt, "block 7 is damaged"));
        let nested = ArrowError::ExternalError(Box::new(damage)).into();
        let shared = DataFusionError::Shared(std::sync::Arc::new(nested));
        let told = query(shared, &Places::default());
        assert_eq!((told.kind(), told.message()), (ErrorKind::Corrupt, "block 7 is damaged"));
    }
}
