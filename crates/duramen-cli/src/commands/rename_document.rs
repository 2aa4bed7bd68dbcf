//! `duramen rename-document`: another name for a document.

use clap::Args;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::exit::Success;
use crate::meant::Named as _;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen rename-document shop.duramen config settings

Its revisions, tags and options stay with it. `duramen rename` renames a field.";

/// Give a document another name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RenameDocument {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// The new name
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    note: Note,
}

impl RenameDocument {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open(session)?;
        let (old, new) = (&self.document, &self.name);
        let renamed = database.rename_document(old, new, &self.note.options());
        renamed.or_meant(&database.snapshot(), old)?;
        if output.style.json {
            output.line(serde_json::json!({ "document": new, "renamed_from": old }))?;
        } else {
            output.line(format_args!("{old} is {new} now"))?;
        }
        Ok(Success::Done)
    }
}
