//! `duramen patch`: a JSON Patch or Merge Patch.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::arguments::Edit;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen patch shop.duramen config changes.json
  echo '{\"price\":10.90,\"tags\":null}' | duramen patch shop.duramen config - --merge
  duramen diff shop.duramen config 7 8 --patch | duramen patch shop.duramen other -

All of it is applied, or nothing; a `test` that finds another value is a conflict: exit code 11. In
a collection keys that are integers have the texts that `duramen get` prints: 20 digits.";

/// Apply a JSON Patch (RFC 6902) or a JSON Merge Patch (RFC 7396)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Patch {
    #[command(flatten)]
    edit: Edit,
    /// The file with the patch, or - for standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// It is a merge patch: members that are null go, objects are merged, all else is set
    #[arg(long)]
    merge: bool,
}

impl Patch {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let patch = input::read(&self.file)?;
        self.edit.run((session, output), |transaction, name| {
            let patched = if self.merge {
                transaction.merge_patch(name, &patch)
            } else {
                transaction.patch(name, &patch)
            };
            patched.map_err(|error| error.in_context(input::name(&self.file)))
        })
    }
}
