//! `duramen init`: an empty database.

use clap::Args;

use crate::Result;
use crate::arguments::WriteDatabase;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen init shop.duramen

`put` and `import` create a missing database by themselves.";

/// Create an empty database
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Init {
    #[command(flatten)]
    database: WriteDatabase,
}

impl Init {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let database = self.database.open_with(session, true)?;
        let (folder, created) = (self.database.folder(), database.was_created());
        if output.style.json {
            output.line(serde_json::json!({ "database": folder, "created": created }))?;
        } else if created {
            output.line(format_args!("created the database {folder}"))?;
        } else {
            output.line(format_args!("{folder} is a database already"))?;
        }
        Ok(Success::Done)
    }
}
