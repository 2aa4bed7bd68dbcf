//! `duramen untag`: a name of a revision taken away.

use clap::Args;

use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, meant};

const EXAMPLES: &str = "\
Examples:
  duramen untag shop.duramen config v1.0

The revision stays.";

/// Remove a tag
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Untag {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// The tag
    #[arg(value_name = "TAG")]
    name: String,
    #[command(flatten)]
    note: Note,
}

impl Untag {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let document = meant::document(&self.database.open(session)?, &self.document)?;
        document.untag(&self.name, &self.note.options())?;
        let (name, tag) = (&self.document, &self.name);
        if output.style.json {
            output.line(serde_json::json!({ "document": name, "tag": tag, "removed": true }))?;
        } else {
            output.line(format_args!("{name}: {tag} is removed"))?;
        }
        Ok(Success::Done)
    }
}
