//! What the commands that write say they did.

use std::io::{self, Write};

use duramen::{CommitOptions, Micros, Outcome, Revision};
use serde::Serialize;

use crate::moment;
use crate::output::{Palette, Record};

/// The outcome of a commit to one document.
#[derive(Debug, Serialize)]
pub(super) struct Written<'a> {
    document: &'a str,
    revision: u64,
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
}

impl<'a> Written<'a> {
    /// The outcome of a commit with `options`.
    pub(super) fn new(document: &'a str, outcome: &Outcome, options: &CommitOptions) -> Self {
        match outcome {
            Outcome::Committed(commit) => {
                let timestamp = options.timestamp.unwrap_or(commit.timestamp);
                Self::changed(document, commit.revision, timestamp)
            }
            Outcome::Unchanged(revision) => Self::unchanged(document, *revision),
        }
    }

    /// A new revision with its revision timestamp.
    pub(super) fn changed(document: &'a str, revision: Revision, timestamp: Micros) -> Self {
        let timestamp = Some(moment::format(timestamp));
        Self { document, revision: revision.0, changed: true, timestamp }
    }

    /// A commit that changed nothing.
    pub(super) fn unchanged(document: &'a str, revision: Revision) -> Self {
        Self { document, revision: revision.0, changed: false, timestamp: None }
    }
}

impl Record for Written<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { document, revision, .. } = self;
        let color = palette.revision;
        if self.changed {
            writeln!(out, "{document}: revision {color}{revision}{color:#}")
        } else {
            writeln!(out, "{document}: unchanged, still revision {color}{revision}{color:#}")
        }
    }
}
