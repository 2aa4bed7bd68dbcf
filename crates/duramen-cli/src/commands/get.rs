//! `duramen get`: a document, or a part of it, as it is or was.

use clap::Args;
use duramen::{Format, JsonPointer, Snapshot};

use crate::Result;
use crate::arguments::place::Named;
use crate::arguments::{At, Keys, ReadDocument};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen get shop.duramen config
  duramen get shop.duramen config /opening/sunday
  duramen get shop.duramen config '$.opening[*][0]'
  duramen get shop.duramen config --at 7
  duramen get shop.duramen config --at 2024-05-01T12:00:00+02:00 | jq .opening
  duramen get shop.duramen config --max-level 1 --metadata

Prints compact JSON, and indents it on a terminal.";

/// Print a document as it is, or as it was at a revision or time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Get {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    at: At,
    /// Only the value at this JSON Pointer, such as /players/3/name, or with this id, such as #12,
    /// or the values that a JSONPath finds, one a line
    #[arg(value_name = "POINTER")]
    place: Option<String>,
    /// The same as POINTER
    #[arg(long, value_name = "POINTER", conflicts_with = "place")]
    path: Option<String>,
    /// Go this many levels deep
    #[arg(long, value_name = "LEVELS")]
    max_level: Option<usize>,
    /// Print this many children of each array and object
    #[arg(long, value_name = "COUNT")]
    max_children: Option<u64>,
    /// Tell about each value: its node, its kind, its revisions
    #[arg(long)]
    metadata: bool,
    /// Indent
    #[arg(long)]
    pretty: bool,
}

impl Get {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let place = self.place.as_ref().or(self.path.as_ref());
        let named = Named::parse(place.map_or("", String::as_str))?;
        let document = self.document.open(session)?;
        let (keys, snapshot) = (Keys::of(&document)?, self.at.snapshot(&document)?);
        match named {
            Named::One(target) => {
                let pointer = snapshot.resolve(&keys.stored(&target))?;
                self.print((&snapshot, keys), &pointer, output)?;
            }
            Named::All(path) => {
                for found in snapshot.query(&path)? {
                    self.print((&snapshot, keys), &found?.pointer(), output)?;
                }
            }
        }
        Ok(Success::Done)
    }

    fn print(
        &self,
        (at, keys): (&Snapshot, Keys),
        pointer: &JsonPointer,
        output: &mut Output,
    ) -> Result<()> {
        let format = Format {
            pretty: self.pretty || output.style.terminal && !output.style.json,
            max_level: self.max_level,
            max_children: self.max_children,
            metadata: self.metadata,
        };
        keys.told(at.write_json(pointer, &format, output.stream()))?;
        output.line("")?;
        Ok(())
    }
}
