//! How much differs, in all and by member.

use std::io::{self, Write};

use duramen::{Diff, DiffCounts};
use indicatif::HumanCount;
use serde::Serialize;

use crate::Result;
use crate::arguments::Keys;
use crate::output::{Output, Palette, Record, one_line};

/// Prints a line for each member that has changes, and one for all of them.
pub(super) fn print(diff: &Diff, keys: Keys, output: &mut Output) -> Result<()> {
    let stat = diff.stat();
    for (name, counts) in &stat.members {
        let mut pointer = diff.start.clone();
        pointer.push(name.as_str());
        let pointer = keys.shown(&pointer).to_string();
        output.record(&Line::new(Some(pointer), *counts))?;
    }
    output.record(&Line::new(None, stat.total))
}

#[derive(Debug, Serialize)]
struct Line {
    /// None for all changes together.
    pointer: Option<String>,
    added: u64,
    removed: u64,
    replaced: u64,
    reordered: u64,
}

impl Line {
    fn new(pointer: Option<String>, counts: DiffCounts) -> Self {
        let DiffCounts { added, removed, replaced, reordered } = counts;
        Self { pointer, added, removed, replaced, reordered }
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { added: a, removed: d, replaced: r, .. } = palette;
        let count = |count: u64| HumanCount(count).to_string();
        write!(
            out,
            "{a}{:>8} +{a:#} {d}{:>8} -{d:#} {r}{:>8} ~{r:#}",
            count(self.added),
            count(self.removed),
            count(self.replaced + self.reordered)
        )?;
        match &self.pointer {
            Some(pointer) => writeln!(out, "  {}", one_line(pointer)),
            None => writeln!(out, "  in all"),
        }
    }
}
