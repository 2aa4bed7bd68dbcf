//! `duramen diff`: what changed between two revisions.

use clap::Args;

use crate::Result;
use crate::arguments::ReadDocument;
use crate::arguments::moment::revision;
use crate::change::ChangeLine;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen diff shop.duramen config 7 8
  duramen diff shop.duramen config 2024-01-01 2024-07-01
  duramen diff shop.duramen config 7 8 --patch > changes.json
  duramen diff shop.duramen config 7 8 --exit-code && echo 'the same'";

/// Show what changed from one revision or time to another
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    #[command(flatten)]
    document: ReadDocument,
    /// From this revision or time
    #[arg(value_name = "A")]
    from: String,
    /// To this revision or time
    #[arg(value_name = "B")]
    to: String,
    /// Print a JSON Patch (RFC 6902) that turns A into B
    #[arg(long)]
    patch: bool,
    /// Exit with 1 if there is a difference
    #[arg(long)]
    exit_code: bool,
}

impl Diff {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let document = self.document.open(session)?;
        let (from, to) = (revision(&document, &self.from)?, revision(&document, &self.to)?);
        let diff = document.diff(from, to)?;
        if self.patch {
            output.line(diff.to_json_patch())?;
        } else {
            for change in &diff.changes {
                output.record(&ChangeLine::try_from(change)?)?;
            }
        }
        let found = self.exit_code && !diff.changes.is_empty();
        Ok(if found { Success::Found } else { Success::Done })
    }
}
