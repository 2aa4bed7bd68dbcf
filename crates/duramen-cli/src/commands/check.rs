//! `duramen check`: whether all that is stored verifies.

use clap::Args;
use duramen::Finding;

use super::scrub::Line;
use crate::arguments::ReadDatabase;
use crate::exit::Success;
use crate::output::Output;
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
            output.record(&Line::from(finding))?;
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

    /// What is damaged.
    fn check(&self, session: &Session) -> Result<Vec<Finding>> {
        let checked = self.database.open(session).and_then(|database| Ok(database.check()?));
        checked.map(|report| report.findings).or_else(|failure| self.database.damage(failure))
    }
}
