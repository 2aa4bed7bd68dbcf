//! `duramen diff`: what changed between two revisions.

mod stat;

use clap::Args;
use duramen::{DiffOptions, Error, ErrorKind, Target};

use crate::Result;
use crate::arguments::moment::revision;
use crate::arguments::{Keys, ReadDocument};
use crate::change::ChangeLine;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen diff shop.duramen config 7 8
  duramen diff shop.duramen config 2024-01-01 2024-07-01
  duramen diff shop.duramen config v1.0 head
  duramen diff shop.duramen config 7 8 --patch > changes.json
  duramen diff shop.duramen config 1 8 --stat
  duramen diff shop.duramen config 7 8 --path /opening --depth 1
  duramen diff shop.duramen config 7 8 --exit-code && echo 'the same'

A change in a collection is told under the key of its record. In a patch of one, keys that are
integers have the texts that `duramen get` prints and `duramen patch` takes.";

/// What a patch of a deletion would be: RFC 6902 removes no whole document.
const REMOVES_ALL: &str = r#"[{"op":"remove","path":""}]"#;

/// Show what changed from one revision, time or tag to another
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    #[command(flatten)]
    document: ReadDocument,
    /// From this revision, time or tag
    #[arg(value_name = "A")]
    from: String,
    /// To this revision, time or tag
    #[arg(value_name = "B")]
    to: String,
    /// Only what changed at or below this JSON Pointer or id, looked for at A, then at B
    #[arg(long, value_name = "POINTER")]
    path: Option<String>,
    /// Tell changes down to this many levels; below that the whole value there is replaced
    #[arg(long, value_name = "LEVELS", allow_negative_numbers = true)]
    depth: Option<usize>,
    /// Count the changes, in all and by the members they are in
    #[arg(long, conflicts_with = "patch")]
    stat: bool,
    /// Print a JSON Patch (RFC 6902) that turns A into B
    #[arg(long)]
    patch: bool,
    /// Exit with 1 if there is a difference
    #[arg(long)]
    exit_code: bool,
}

impl Diff {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let start = self.path.as_deref().map(Target::parse).transpose()?;
        let document = self.document.open(session)?;
        let keys = Keys::of(&document)?;
        let (from, to) = (revision(&document, &self.from)?, revision(&document, &self.to)?);
        let start = start.map(|start| keys.stored(&start));
        let options = DiffOptions { start, depth: self.depth };
        let diff = keys.told(document.diff_with(from, to, &options))?;
        if self.patch {
            let patch = diff.to_json_patch();
            if patch == REMOVES_ALL {
                let message = format!(
                    "{} is deleted at {}, which no JSON Patch can say: \"duramen delete\" does it",
                    document.name(),
                    self.to
                );
                return Err(Error::new(ErrorKind::Invalid, message).into());
            }
            output.line(patch)?;
        } else if self.stat {
            stat::print(&diff, keys, output)?;
        } else {
            for change in &diff.changes {
                output.record(&ChangeLine::new(keys, change)?)?;
            }
        }
        let found = self.exit_code && !diff.changes.is_empty();
        Ok(if found { Success::Found } else { Success::Done })
    }
}
