//! `duramen delete`: a document that is there no more.

use clap::Args;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::CommitArguments;
use crate::exit::Success;
use crate::meant::Named as _;
use crate::output::Output;
use crate::session::Session;
use crate::written::Written;

const EXAMPLES: &str = "\
Examples:
  duramen delete shop.duramen config
  duramen delete shop.duramen config --message 'replaced by settings' --expect-revision 7

That is a revision too: those before it stay readable, `duramen ls --deleted` lists the document,
and `put` makes it live again and goes on counting. `duramen retain DB DOC --head` lets go of the
revisions before, and `duramen compact` gives their space back.";

/// Delete a document; its past stays readable
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Delete {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    #[command(flatten)]
    commit: CommitArguments,
}

impl Delete {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let options = self.commit.options()?;
        let database = self.database.open(session)?;
        let outcome = database.delete_document(&self.document, &options);
        let outcome = outcome.or_meant(&database.snapshot(), &self.document)?;
        output.record(&Written::deleted(&self.document, &outcome, options.timestamp))?;
        Ok(Success::Done)
    }
}
