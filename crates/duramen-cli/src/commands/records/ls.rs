//! `duramen records ls`: the records of a collection in the order of their keys.

use std::ops::Bound;

use clap::Args;
use duramen::ScanOptions;

use super::CollectionAt;
use super::line::Line;
use crate::Result;
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen records ls shop.duramen players
  duramen records ls shop.duramen players --prefix team/red/ --limit 20
  duramen records ls shop.duramen orders --from 1000 --to 1999 --reverse
  duramen records ls shop.duramen players --at v1.0 --json

A line is a key, the record's version and the record. Keys come in their order: text by its bytes.";

/// List the records of a collection in the order of their keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Ls {
    #[command(flatten)]
    collection: CollectionAt,
    /// Only keys from this one on
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    from: Option<String>,
    /// Only keys up to this one
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    to: Option<String>,
    /// Only keys that begin so
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// The last key first
    #[arg(long)]
    reverse: bool,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<u64>,
}

impl Ls {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let records = self.collection.open(session)?;
        let bound = |text: &Option<String>| -> duramen::Result<_> {
            Ok(match text {
                Some(text) => Bound::Included(records.key_kind().parse(text)?),
                None => Bound::Unbounded,
            })
        };
        let options = ScanOptions {
            from: bound(&self.from)?,
            to: bound(&self.to)?,
            prefix: self.prefix.clone(),
            reverse: self.reverse,
            limit: self.limit,
        };
        for record in records.scan(&options)? {
            output.record(&Line::new(record?)?)?;
        }
        Ok(Success::Done)
    }
}
