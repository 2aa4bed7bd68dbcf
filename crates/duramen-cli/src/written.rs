//! What the commands that write say they did.

use std::io::{self, Write};

use duramen::{Micros, Outcome, Revision};
use serde::Serialize;

use crate::moment;
use crate::output::{Palette, Record};

/// The outcome of a commit to one document.
#[derive(Debug, Serialize)]
pub(crate) struct Written<'a> {
    document: &'a str,
    revision: u64,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// How many values a query found, if one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    places: Option<u64>,
}

impl<'a> Written<'a> {
    /// A new revision with its revision timestamp.
    pub(crate) fn changed(document: &'a str, revision: Revision, timestamp: Micros) -> Self {
        let timestamp = Some(moment::format(timestamp));
        Self {
            document,
            revision: revision.0,
            changed: true,
            timestamp,
            deleted: false,
            places: None,
        }
    }

    /// The revision that deletes the document.
    pub(crate) fn deleted(document: &'a str, outcome: &Outcome, given: Option<Micros>) -> Self {
        let deleted = match outcome {
            Outcome::Committed(commit) => {
                Self::changed(document, commit.revision, given.unwrap_or(commit.timestamp))
            }
            Outcome::Unchanged(revision) => Self::unchanged(document, *revision),
        };
        Self { deleted: true, ..deleted }
    }

    /// The same, and how many values a query found.
    pub(crate) fn with_places(self, places: Option<u64>) -> Self {
        Self { places, ..self }
    }

    /// A commit that changed nothing.
    pub(crate) fn unchanged(document: &'a str, revision: Revision) -> Self {
        Self {
            document,
            revision: revision.0,
            changed: false,
            timestamp: None,
            deleted: false,
            places: None,
        }
    }
}

impl Record for Written<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { document, revision, .. } = self;
        let color = palette.revision;
        if self.deleted {
            write!(out, "{document}: deleted in revision {color}{revision}{color:#}")?;
        } else if self.changed {
            write!(out, "{document}: revision {color}{revision}{color:#}")?;
        } else {
            write!(out, "{document}: unchanged, still revision {color}{revision}{color:#}")?;
        }
        match self.places {
            None => writeln!(out),
            Some(1) => writeln!(out, ", 1 place"),
            Some(places) => writeln!(out, ", {places} places"),
        }
    }
}
