//! One change between two revisions, as `diff` and `show` print it.

use std::io::{self, Write};

use duramen::{Change, ChangeKind};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Result;
use crate::arguments::Keys;
use crate::output::{Palette, Record, one_line, shortened};

/// A change as a line.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeLine<'a> {
    kind: &'static str,
    pointer: String,
    node: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<&'a RawValue>,
}

impl<'a> ChangeLine<'a> {
    pub(crate) fn new(keys: Keys, change: &'a Change) -> Result<Self> {
        let kind = match change.kind {
            ChangeKind::Added => "added",
            ChangeKind::Removed => "removed",
            ChangeKind::Replaced => "replaced",
            ChangeKind::Reordered => "reordered",
        };
        Ok(Self {
            kind,
            pointer: keys.shown(&change.pointer).to_string(),
            node: change.node.number(),
            before: raw(change.before.as_deref())?,
            after: raw(change.after.as_deref())?,
        })
    }
}

fn raw(json: Option<&str>) -> Result<Option<&RawValue>> {
    Ok(json.map(serde_json::from_str).transpose().map_err(io::Error::from)?)
}

impl Record for ChangeLine<'_> {
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
