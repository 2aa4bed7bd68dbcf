//! What the commands that write say they did.

use std::io::{self, Write};

use duramen::{Micros, Revision};
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
}

impl<'a> Written<'a> {
    /// A new revision with its revision timestamp.
    pub(crate) fn changed(document: &'a str, revision: Revision, timestamp: Micros) -> Self {
        let timestamp = Some(moment::format(timestamp));
        Self { document, revision: revision.0, changed: true, timestamp }
    }

    /// A commit that changed nothing.
    pub(crate) fn unchanged(document: &'a str, revision: Revision) -> Self {
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
