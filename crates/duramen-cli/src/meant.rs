//! What a user names in a database. Of what is not there the error tells what was perhaps meant:
//! it is looked for only here, as a program that looks whether a name is there does not want to
//! know.

use duramen::{
    Collection, Database, DatabaseSnapshot, Document, Error, ErrorKind, Result, Series,
    SeriesFilter, nearest,
};

/// How the engine's errors for a document and for a series end that are not there.
const OF_DOCUMENTS: &str = "\"duramen ls\" lists those there are";
const OF_SERIES: &str = "\"duramen series ls\" lists those there are";

/// A document.
pub(crate) fn document(database: &Database, name: &str) -> Result<Document> {
    database.document(name).or_meant(&database.snapshot(), name)
}

/// A collection.
pub(crate) fn collection(database: &Database, name: &str) -> Result<Collection> {
    database.collection(name).or_meant(&database.snapshot(), name)
}

/// A series.
pub(crate) fn series(database: &Database, name: &str) -> Result<Series> {
    database.series(name).or_meant(&database.snapshot(), name)
}

/// What came of a name.
pub(crate) trait Named {
    /// The same, whose error tells what was perhaps meant.
    fn or_meant(self, snapshot: &DatabaseSnapshot, name: &str) -> Self;
}

impl<T> Named for Result<T> {
    fn or_meant(self, snapshot: &DatabaseSnapshot, name: &str) -> Self {
        self.map_err(|error| told(error, snapshot, name))
    }
}

fn told(error: Error, snapshot: &DatabaseSnapshot, name: &str) -> Error {
    let message = error.message();
    let (known, meant) = if let Some(known) = message.strip_suffix(OF_SERIES) {
        (known, like_series(snapshot, name))
    } else if let Some(known) = message.strip_suffix(OF_DOCUMENTS) {
        (known, like_document(snapshot, name))
    } else {
        return error;
    };
    let Some(meant) = meant else { return error };
    Error::new(error.kind(), format!("{known}did you mean {meant:?}?"))
}

fn like_document(snapshot: &DatabaseSnapshot, name: &str) -> Option<String> {
    nearest(name, snapshot.documents().ok()?)
}

fn like_series(snapshot: &DatabaseSnapshot, name: &str) -> Option<String> {
    let all = snapshot.find_series(&SeriesFilter::default()).ok()?;
    nearest(name, all.into_iter().map(|info| info.name))
}

/// The error for a pattern that no name of a series has.
pub(crate) fn no_series_like(snapshot: &DatabaseSnapshot, glob: &str) -> Error {
    let message = format!("there is no such series as {glob:?}: {OF_SERIES}");
    told(Error::new(ErrorKind::NotFound, message), snapshot, glob)
}

/// The error for points of a series that is not there and not to be made.
pub(crate) fn no_series_for_points(snapshot: &DatabaseSnapshot, name: &str) -> Error {
    let message = match like_series(snapshot, name) {
        Some(meant) => format!("did you mean {meant:?}? With --create it is made"),
        None => {
            "make it with --create, or see \"duramen series ls\" for those there are".to_owned()
        }
    };
    Error::new(ErrorKind::NotFound, format!("there is no series {name:?}: {message}"))
}
