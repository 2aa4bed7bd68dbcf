//! `duramen diff`: what changed between two revisions.

use std::io::{self, Write};

use clap::Args;
use duramen::{Change, ChangeKind, Document, Moment, Revision};
use serde::Serialize;
use serde_json::value::RawValue;

use super::get::at_time;
use crate::arguments::ReadDocument;
use crate::exit::{Failure, Success};
use crate::output::{Output, Palette, Record, one_line, shortened};
use crate::{Result, moment};

const EXAMPLES: &str = "\
Examples:
  duramen diff shop.duramen config 7 8
  duramen diff shop.duramen config 2024-01-01 2024-07-01
  duramen diff shop.duramen config 7 8 --patch > changes.json
  duramen diff shop.duramen config 7 8 --exit-code && echo 'the same'";

/// Show what changed from one revision or time to another
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Diff {
    #[command(flatten)]
    document: ReadDocument,
    /// From this revision or time
    #[arg(value_name = "A")]
    from: String,
    /// To this revision or time
    #[arg(value_name = "B")]
    to: String,
    /// Print a JSON Patch (RFC 6902) that turns A into B
    #[arg(long)]
    patch: bool,
    /// Exit with 1 if there is a difference
    #[arg(long)]
    exit_code: bool,
}

impl Diff {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let (from, to) = (moment::parse(&self.from)?, moment::parse(&self.to)?);
        let document = self.document.open()?;
        let diff = document.diff(revision(&document, from)?, revision(&document, to)?)?;
        if self.patch {
            output.line(diff.to_json_patch())?;
        } else {
            for change in &diff.changes {
                output.record(&Line::try_from(change)?)?;
            }
        }
        let found = self.exit_code && !diff.changes.is_empty();
        Ok(if found { Success::Found } else { Success::Done })
    }
}

fn revision(document: &Document, moment: Moment) -> Result<Revision> {
    Ok(match moment {
        Moment::Revision(revision) => revision,
        Moment::Time(time) => at_time(document, time)?.revision(),
    })
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    kind: &'static str,
    pointer: String,
    node: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a RawValue>,
}

impl<'a> TryFrom<&'a Change> for Line<'a> {
    type Error = Failure;

    fn try_from(change: &'a Change) -> Result<Self> {
        let kind = match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Replaced => "replaced",
            ChangeKind::Reordered => "reordered",
        };
        Ok(Self {
            kind,
            pointer: change.pointer.to_string(),
            node: change.node.number(),
            before: raw(change.before.as_deref())?,
            after: raw(change.after.as_deref())?,
        })
    }
}

fn raw(json: Option<&str>) -> Result<Option<&RawValue>> {
    Ok(json.map(serde_json::from_str).transpose().map_err(io::Error::from)?)
}

impl Record for Line<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { removed, added, replaced, .. } = palette;
        let pointer = if self.pointer.is_empty() { "''" } else { &self.pointer };
        let pointer = one_line(pointer);
        let short = |value: &RawValue| shortened(value.get()).into_owned();
        match (self.before, self.after) {
            (None, None) => {
                writeln!(out, "{replaced}~ {pointer}{replaced:#}  members in another order")
            }
            (None, Some(after)) => {
                writeln!(out, "{added}+ {pointer}{added:#}  {}", short(after))
            }
            (Some(before), None) => {
                writeln!(out, "{removed}- {pointer}{removed:#}  {}", short(before))
            }
            (Some(before), Some(after)) => writeln!(
                out,
                "{replaced}~ {pointer}{replaced:#}  {removed}{}{removed:#} -> {added}{}{added:#}",
                short(before),
                short(after),
            ),
        }
    }
}
