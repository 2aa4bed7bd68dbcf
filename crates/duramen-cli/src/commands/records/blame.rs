//! `duramen records blame`: who set what is in a record.

use clap::Args;
use duramen::{BlameOptions, JsonPointer};

use super::CollectionAt;
use crate::Result;
use crate::arguments::Keys;
use crate::commands::blame::{Line, text_of};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records blame shop.duramen players ann
  duramen records blame shop.duramen players ann --depth 1
  duramen records blame shop.duramen players ann --at 2024-05-01 --json

A line is the collection's revision that set a value, its time and author, where the value is in the
record, and the value.";

/// Tell for each value in a record who set it, when and why
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Blame {
    #[command(flatten)]
    collection: CollectionAt,
    /// The record's key
    #[arg(value_name = "KEY", allow_negative_numbers = true)]
    key: String,
    /// List values down to this many levels below the record
    #[arg(long, value_name = "LEVELS", allow_negative_numbers = true)]
    depth: Option<usize>,
}

impl Blame {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let (records, snapshot) = self.collection.snapshots(session)?;
        let key = records.key_kind().parse(&self.key)?;
        let options = BlameOptions { depth: self.depth, follow: false };
        let keys = Keys::from(records.key_kind());
        let mut record = None;
        for entry in records.blame(key, &options)? {
            let entry = entry?;
            let mut place = match &record {
                Some(record) => JsonPointer::clone(record),
                // The record comes first: to look for the place of each value takes long.
                None => record.insert(snapshot.pointer(entry.node)?).clone(),
            };
            entry.pointer.tokens().for_each(|token| place.push(token));
            let value = text_of(&entry, &place, &snapshot)?;
            // Its place begins at the record.
            let pointer = entry.pointer.clone();
            output.record(&Line::new(entry, (pointer, value), keys))?;
        }
        Ok(Success::Done)
    }
}
