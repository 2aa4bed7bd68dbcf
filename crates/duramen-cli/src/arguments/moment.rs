//! When: a moment of a document's history.

use clap::Args;
use duramen::{Document, Error, ErrorKind, Micros, Moment, Revision, Snapshot};

use crate::{Result, moment};

/// The document as it is, or as it was.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// As of this revision, time or tag; a date alone is 00:00 UTC of that day
    #[arg(long, value_name = "REVISION|TIME|TAG", allow_negative_numbers = true)]
    at: Option<String>,
}

impl At {
    pub(crate) fn snapshot(&self, document: &Document) -> Result<Snapshot> {
        match &self.at {
            None => Ok(document.head()?),
            Some(text) => snapshot(document, text),
        }
    }
}

/// The document at a moment of its history.
pub(crate) fn snapshot(document: &Document, text: &str) -> Result<Snapshot> {
    Ok(match point(document, text)? {
        Moment::Revision(revision) => document.at(revision)?,
        Moment::Time(time) => at_time(document, time)?,
    })
}

/// The revision at a moment of the document's history, there or not.
pub(crate) fn revision(document: &Document, text: &str) -> Result<Revision> {
    Ok(match point(document, text)? {
        Moment::Revision(revision) => revision,
        Moment::Time(time) => at_time(document, time)?.revision(),
    })
}

/// The revision or time that a text means; a tag is the revision it names, `head` the newest.
pub(crate) fn point(document: &Document, text: &str) -> Result<Moment> {
    if let Some(moment) = moment::parse(text) {
        return Ok(moment);
    }
    if text == "head" {
        return Ok(Moment::Revision(document.head_revision()?));
    }
    let tagged = document.tagged(text).map(Moment::Revision);
    Ok(tagged.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let name = document.name();
            let message = format!(
                "{text:?} is neither a revision, such as 7, nor a time, such as 2024-05-01 or \
                 2024-05-01T12:30:00Z, nor a tag of document {name:?}: \"duramen tag\" lists those"
            );
            Error::new(ErrorKind::NotFound, message)
        }
        _ => error,
    })?)
}

/// The document at a time; that history begins later is told in the form that people write.
fn at_time(document: &Document, time: Micros) -> Result<Snapshot> {
    let first = || document.at(document.first_revision().ok()?).ok()?.timestamp().ok();
    document.at_time(time).map_err(|error| match (error.kind(), first()) {
        (ErrorKind::NotFound, Some(first)) if time < first => {
            let name = document.name();
            let (time, first) = (moment::format(time), moment::format(first));
            let message = match document.first_revision() {
                Ok(Revision(2..)) => format!(
                    "the history of document {name:?} begins at {first}: what there was at {time} \
                     was dropped"
                ),
                _ => format!("document {name:?} was not there at {time}: it begins at {first}"),
            };
            Error::new(ErrorKind::NotFound, message).into()
        }
        _ => error.into(),
    })
}
