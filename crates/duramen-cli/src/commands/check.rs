//! `duramen check`: whether all that is stored verifies.

use std::io::{self, Write};

use clap::Args;
use duramen::{ErrorKind, Finding};
use serde::Serialize;

use crate::arguments::ReadDatabase;
use crate::exit::{Failure, Success};
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;
use crate::{Result, progress};

const EXAMPLES: &str = "\
Examples:
  duramen check shop.duramen
  duramen check shop.duramen --json || echo 'damaged'

Reads everything and changes nothing; exits with 1 if it finds damage.";

/// Verify the structure and every checksum of a database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Check {
    #[command(flatten)]
    database: ReadDatabase,
}

impl Check {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let spinner = progress::spinner("checking");
        let checked = self.check(session);
        spinner.finish_and_clear();
        let findings = checked?;
        for finding in &findings {
            output.record(finding)?;
        }
        let count = findings.len();
        if !output.style.json {
            let folder = self.database.folder().display();
            match count {
                0 => output.line(format_args!("{folder}: no damage found"))?,
                1 => output.line(format_args!("{folder}: 1 place is damaged"))?,
                _ => output.line(format_args!("{folder}: {count} places are damaged"))?,
            }
        }
        Ok(if count == 0 { Success::Done } else { Success::Found })
    }

    /// What is damaged. A database too damaged to open is a finding too.
    fn check(&self, session: &Session) -> Result<Vec<Line>> {
        let checked = self.database.open(session).and_then(|database| Ok(database.check()?));
        match checked {
            Ok(report) => Ok(report.findings.into_iter().map(Line::from).collect()),
            Err(Failure::Engine(error)) if error.kind() == ErrorKind::Corrupt => {
                let message = error.message().to_owned();
                Ok(vec![Line { place: self.database.folder().display().to_string(), message }])
            }
            Err(failure) => Err(failure),
        }
    }
}

#[derive(Debug, Serialize)]
struct Line {
    place: String,
    message: String,
}

impl From<Finding> for Line {
    fn from(finding: Finding) -> Self {
        Self { place: finding.place, message: finding.message }
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let color = palette.removed;
        writeln!(out, "{color}{}{color:#}: {}", one_line(&self.place), one_line(&self.message))
    }
}
