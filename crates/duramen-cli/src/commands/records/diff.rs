//! `duramen records diff`: what changed in a record between two revisions.

use clap::Args;

use super::ReadCollection;
use crate::Result;
use crate::arguments::Keys;
use crate::arguments::moment::revision;
use crate::change::ChangeLine;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records diff shop.duramen players ann 7 8
  duramen records diff shop.duramen players ann 2024-01-01 head
  duramen records diff shop.duramen players ann 7 8 --patch

A and B are revisions of the collection, as `duramen records history` lists them.";

/// Show what changed in a record from one revision, time or tag to another
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    #[command(flatten)]
    collection: ReadCollection,
    /// The record's key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: String,
    /// From this revision, time or tag
    #[arg(value_name = "A")]
    from: String,
    /// To this revision, time or tag
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
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let collection = self.collection.open(session)?;
        let document = collection.document();
        let (from, to) = (revision(document, &self.from)?, revision(document, &self.to)?);
        let diff = collection.diff(collection.key_kind().parse(&self.key)?, from, to)?;
        if self.patch {
            output.line(diff.to_json_patch())?;
        } else {
            // Their places begin at the record.
            for change in &diff.changes {
                output.record(&ChangeLine::new(Keys::default(), change)?)?;
            }
        }
        let found = self.exit_code && !diff.changes.is_empty();
        Ok(if found { Success::Found } else { Success::Done })
    }
}
