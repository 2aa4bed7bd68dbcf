//! `duramen put`: a file as the newest revision of a document.

use std::path::PathBuf;

use clap::Args;
use duramen::{BulkOptions, DocumentOptions, Error, ErrorKind, ParseOptions, Transaction};

use super::options::Declarations;
use crate::arguments::Edit;
use crate::exit::Success;
use crate::input::Text;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, input};

const EXAMPLES: &str = "\
Examples:
  duramen put shop.duramen config config.json
  duramen put shop.duramen config config.json --author ann --message 'open on Sundays'
  duramen put shop.duramen config old.json --timestamp 2023-11-05T09:00:00Z
  duramen put shop.duramen items items.json --id '$=sku' --map '$[*].prices'
  curl -s https://example.org/config | duramen put shop.duramen config -

Only what differs from the newest revision is stored; nothing different makes no revision.
A missing database or document is created. The first revision may be of any length, larger than
memory too; Ctrl-C while it is loaded leaves nothing of it.";

/// Store a JSON file as the newest revision of a document
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Put {
    #[command(flatten)]
    edit: Edit,
    /// The file with the JSON text, or - for standard input
    file: PathBuf,
    /// Refuse what RFC 8259 leaves open, such as a name that occurs twice in an object
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    declarations: Declarations,
}

impl Put {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let text = input::text(&self.file)?;
        let parse = ParseOptions { strict: self.strict };
        let mut declared = DocumentOptions::default();
        self.declarations.add_to(&mut declared)?;
        if let Text::Short(json) = &text {
            self.edit.rehearse(|to, name| self.put((to, name), json, &declared))?;
        }
        let editing = self.edit.begin_or_create(session)?;
        if !declared.is_empty() && !editing.is_new() {
            let message = "--id and --map are for a new document: \"duramen options\" changes what \
                           is declared of one that is there";
            return Err(Error::new(ErrorKind::Conflict, message).into());
        }
        let json = match text {
            Text::Long(text) if editing.is_first() => {
                let how = BulkOptions { parse, declared, ..BulkOptions::default() };
                return editing.load(output, text, how);
            }
            Text::Long(text) => text.read()?,
            Text::Short(json) => json,
        };
        editing.finish(output, |to, name| self.put((to, name), &json, &declared))
    }

    /// In one transaction, so that refused text leaves no empty document behind.
    fn put(
        &self,
        (transaction, name): (&mut Transaction, &str),
        json: &[u8],
        declared: &DocumentOptions,
    ) -> duramen::Result<()> {
        if !declared.is_empty() {
            transaction.create_document(name)?;
            transaction.declare(name, declared)?;
        }
        let put = transaction.put_with(name, json, ParseOptions { strict: self.strict });
        put.map_err(|error| input::advised(error, json).in_context(input::name(&self.file)))
    }
}
