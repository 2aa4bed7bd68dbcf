//! What errors of queries mean to the caller.

use std::io;

use datafusion::arrow::error::ArrowError;
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::parquet::errors::ParquetError;
use duramen::{Error, ErrorKind};

use crate::statement::Places;

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
    match error {
        DataFusionError::External(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => Error::new(ErrorKind::Internal, format!("a query failed: {source}"))
                .with_source(source),
        },
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => {
            query(*inner, places)
        }
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => query(first, places),
            None => Error::new(ErrorKind::Internal, "a query failed and does not say why"),
        },
        DataFusionError::Shared(shared) => Error::new(kind(&shared), text(&shared)),
        DataFusionError::ArrowError(inner, _) => of_arrow(*inner, places),
        DataFusionError::IoError(error) => file("a query cannot use its files", error),
        DataFusionError::SchemaError(schema, _) => of_schema(&schema, places),
        error => Error::new(kind(&error), text(&error)).with_source(error),
    }
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
        error => Error::new(ErrorKind::Invalid, format!("the query cannot be answered: {error}"))
            .with_source(error),
    }
}

fn of_schema(error: &SchemaError, places: &Places) -> Error {
    let SchemaError::FieldNotFound { field, valid_fields } = error else {
        return Error::new(ErrorKind::Invalid, format!("the query is ambiguous: {error}"));
    };
    let name = field.name();
    let valid = valid_fields.iter().map(|field| field.name().to_owned());
    let at = places.of(name);
    let message = if let Some(nearest) = nearest(name, valid.clone()) {
        format!("there is no column {name:?}{at}: did you mean {nearest:?}?")
    } else {
        let names = valid.take(10).collect::<Vec<_>>().join(", ");
        format!("there is no column {name:?}{at}; there are: {names}")
    };
    Error::new(ErrorKind::Invalid, message)
}

fn kind(error: &DataFusionError) -> ErrorKind {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => ErrorKind::Full,
        DataFusionError::NotImplemented(_) => ErrorKind::Unsupported,
        DataFusionError::Internal(_) => ErrorKind::Internal,
        _ => ErrorKind::Invalid,
    }
}

fn text(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(why) => format!(
            "the query takes more memory than it may: give it more (--memory, memory_bytes), or \
             select less; {why}"
        ),
        DataFusionError::SQL(why, _) => format!("this is no SQL: {why}"),
        DataFusionError::NotImplemented(what) => format!("this SQL is not supported: {what}"),
        error => format!("the query cannot be answered: {}", error.strip_backtrace()),
    }
}

/// The name among others that is most like one.
pub(crate) fn nearest(name: &str, others: impl Iterator<Item = String>) -> Option<String> {
    const LIKENESS_MIN: f64 = 0.7;
    let like = |other: String| {
        let likeness = strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
        (likeness, other)
    };
    let best = others.map(like).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(likeness, _)| *likeness >= LIKENESS_MIN).map(|(_, other)| other)
}
