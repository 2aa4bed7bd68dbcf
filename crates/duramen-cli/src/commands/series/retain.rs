//! `duramen series retain`: for how long points are kept, and which rollups beside them.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use duramen::{Error, ErrorKind, Rollup, SeriesInfo, SeriesRule};
use serde::Serialize;

use super::Which;
use crate::Result;
use crate::arguments::WriteDatabase;
use crate::arguments::edit::Note;
use crate::commands::retain::{format_span, parse_span};
use crate::exit::Success;
use crate::notice::notice;
use crate::output::{Output, Palette, Record, one_line};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen series retain plant.duramen 'boiler/**'   # what is kept
  duramen series retain plant.duramen 'boiler/**' --raw 30d --rollup 1m:52w --rollup 1h
  duramen series retain plant.duramen boiler/7/temp --raw all --rollup none
  duramen series retain plant.duramen --list          # the rules
  duramen series retain plant.duramen 'boiler/**' --remove
  duramen compact plant.duramen

A SPAN is a number with s, m, h, d or w after it. Points are seen for so long after their time;
their space comes back when segments are merged, which `duramen compact` does on demand, but not
before every rollup has them.

A rollup keeps what the points of each window come to: count, sum, least, greatest, first, last and
deviation, for its own SPAN or for ever. `series aggregate` reads it where windows are made of its
windows. It is made as points are written, late ones too; points that were there before are caught
up with at the next checkpoints.

What is said of a GLOB is a rule: it holds for the series that there are and for those made later.
Where several rules are for a series, the one with the most characters wins that stand for
themselves: boiler/7/temp before boiler/**, and that before **. It says all of it; of --raw and
--rollup, what is not given is as the rule says that was for this GLOB, or won for it. A rule that
is removed leaves its series to the one that wins then, with the rollups beside it that tell of
points that are gone, or as they are if there is none. With --label or --type no rule is made: what
is said holds for the series there are.";

/// Show or set for how long points are kept, and which rollups
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Retain {
    #[command(flatten)]
    database: WriteDatabase,
    #[command(flatten)]
    which: Which,
    /// Keep points for so long, or all of them
    #[arg(long, value_name = "SPAN|all")]
    raw: Option<String>,
    /// Keep a rollup with windows of a width, for so long if that is said, or none; may be given
    /// several times, and takes the place of all there were
    #[arg(long = "rollup", value_name = "WIDTH[:SPAN]|none")]
    rollups: Vec<String>,
    /// Show the rules
    #[arg(long, conflicts_with_all = ["raw", "rollups", "remove", "globs", "labels", "value_type"])]
    list: bool,
    /// Remove the rule of each GLOB
    #[arg(long, requires = "globs",
        conflicts_with_all = ["raw", "rollups", "labels", "value_type"])]
    remove: bool,
    #[command(flatten)]
    note: Note,
}

impl Retain {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        if self.list {
            for rule in self.database.read(session)?.series_rules()? {
                output.record(&RuleLine { glob: &rule.glob, kept: Kept::of_rule(&rule) })?;
            }
        } else if self.remove {
            self.remove_rules(session, output)?;
        } else if self.raw.is_none() && self.rollups.is_empty() {
            for info in self.which.find(&self.database.read(session)?.snapshot())? {
                output.record(&Line::new(&info))?;
            }
        } else if self.which.is_everything() {
            let message = "say which series this is for: '**' means all of them";
            return Err(Error::new(ErrorKind::Invalid, message).into());
        } else if self.which.labels.is_empty() && self.which.value_type.is_none() {
            self.set_rules(session, output)?;
        } else {
            self.set_series(session, output)?;
        }
        Ok(Success::Done)
    }

    /// Sets a rule for each pattern.
    fn set_rules(&self, session: &Session, output: &mut Output) -> Result<()> {
        let database = self.database.open(session)?;
        let known = database.series_rules()?;
        let mut transaction = database.transaction();
        let mut set = Vec::new();
        for glob in &self.which.globs {
            // What is not said stays as it was, so that no rollup goes because nobody named it.
            let before = known.iter().find(|rule| rule.glob == *glob);
            let before = before.or_else(|| SeriesRule::winner(&known, glob)).cloned();
            let before = before.unwrap_or_else(|| SeriesRule::new(glob));
            let mut rule = SeriesRule { glob: glob.clone(), ..before };
            self.define(&mut rule.keep, &mut rule.rollups)?;
            let changed = transaction.set_series_rule(&rule)?;
            set.push((rule, changed));
        }
        transaction.commit(&self.note.options())?;
        for (rule, changed) in &set {
            let kept = Kept::of_rule(rule);
            output.record(&SetLine { glob: &rule.glob, kept, changed: *changed })?;
        }
        Ok(())
    }

    fn remove_rules(&self, session: &Session, output: &mut Output) -> Result<()> {
        let database = self.database.open(session)?;
        let mut transaction = database.transaction();
        let mut removed = Vec::new();
        for glob in &self.which.globs {
            removed.push((glob, transaction.remove_series_rule(glob)?));
        }
        transaction.commit(&self.note.options())?;
        removed
            .iter()
            .try_for_each(|(glob, changed)| output.record(&Removed { glob, changed: *changed }))?;
        Ok(())
    }

    /// Says it of the series there are.
    fn set_series(&self, session: &Session, output: &mut Output) -> Result<()> {
        let database = self.database.open(session)?;
        let mut found = self.which.find(&database.snapshot())?;
        let mut transaction = database.transaction();
        for SeriesInfo { name, definition, .. } in &mut found {
            self.define(&mut definition.keep, &mut definition.rollups)?;
            transaction.change_series(name, definition)?;
        }
        transaction.commit(&self.note.options())?;
        found.iter().try_for_each(|info| output.record(&Line::new(info)))?;
        Ok(())
    }

    /// Puts what is said in the place of what was.
    fn define(&self, keep: &mut Option<Duration>, rollups: &mut Vec<Rollup>) -> Result<()> {
        *keep = match self.raw.as_deref() {
            None => *keep,
            Some("all") => None,
            Some(span) => Some(parse_span(span)?),
        };
        match self.rollups.as_slice() {
            [] => {}
            [none] if none == "none" => rollups.clear(),
            all => *rollups = all.iter().map(|text| parse_rollup(text)).collect::<Result<_>>()?,
        }
        for rollup in rollups.iter() {
            if let (Some(kept), Some(points)) = (rollup.keep, *keep)
                && kept < points
            {
                notice!(
                    "windows of {} are kept for {}, and points for {}: they are gone first",
                    format_span(rollup.width),
                    format_span(kept),
                    format_span(points)
                );
            }
        }
        Ok(())
    }
}

fn parse_rollup(text: &str) -> Result<Rollup> {
    if text == "none" {
        let message = "--rollup none goes with no other --rollup".to_owned();
        return Err(Error::new(ErrorKind::Invalid, message).into());
    }
    let (width, span) = match text.split_once(':') {
        Some((width, span)) => (width, Some(span)),
        None => (text, None),
    };
    let rollup = Rollup::new(parse_span(width)?);
    let Some(span) = span else { return Ok(rollup) };
    let keep = parse_span(span)?;
    if keep < rollup.width {
        let message = format!(
            "windows of {width} that are kept for {span} are gone before they are over: keep them \
             for {width} at least"
        );
        return Err(Error::new(ErrorKind::Invalid, message).into());
    }
    Ok(rollup.keeping(keep))
}

/// What is kept.
#[derive(Debug, Serialize)]
struct Kept {
    /// For how long points are kept, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<u128>,
    rollups: Vec<RollupLine>,
    #[serde(skip)]
    text: String,
}

#[derive(Debug, Serialize)]
struct RollupLine {
    /// In microseconds.
    width: u128,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<u128>,
}

impl Kept {
    fn of_rule(rule: &SeriesRule) -> Self {
        Self::new(rule.keep, &rule.rollups)
    }

    fn new(keep: Option<Duration>, rollups: &[Rollup]) -> Self {
        let line = |rollup: &Rollup| RollupLine {
            width: rollup.width.as_micros(),
            keep: rollup.keep.map(|keep| keep.as_micros()),
        };
        let points = match keep {
            Some(keep) => format!("points for {}", format_span(keep)),
            None => "all points".to_owned(),
        };
        let said = |rollup: &Rollup| {
            let width = format_span(rollup.width);
            match rollup.keep {
                Some(keep) => format!(", windows of {width} for {}", format_span(keep)),
                None => format!(", windows of {width} for ever"),
            }
        };
        let text: String = rollups.iter().map(said).collect();
        Self {
            raw: keep.map(|keep| keep.as_micros()),
            rollups: rollups.iter().map(line).collect(),
            text: format!("{points}{text}"),
        }
    }
}

/// What a series keeps.
#[derive(Debug, Serialize)]
struct Line<'a> {
    name: &'a str,
    #[serde(flatten)]
    kept: Kept,
}

impl<'a> Line<'a> {
    fn new(info: &'a SeriesInfo) -> Self {
        let kept = Kept::new(info.definition.keep, &info.definition.rollups);
        Self { name: &info.name, kept }
    }
}

impl Record for Line<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  keeps {}", one_line(self.name), self.kept.text)
    }
}

/// A rule.
#[derive(Debug, Serialize)]
struct RuleLine<'a> {
    glob: &'a str,
    #[serde(flatten)]
    kept: Kept,
}

impl Record for RuleLine<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}  keeps {}", one_line(self.glob), self.kept.text)
    }
}

/// A rule that was set.
#[derive(Debug, Serialize)]
struct SetLine<'a> {
    glob: &'a str,
    #[serde(flatten)]
    kept: Kept,
    /// Series that keep something else now.
    changed: u64,
}

impl Record for SetLine<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let (glob, text) = (one_line(self.glob), &self.kept.text);
        writeln!(out, "{glob}  keeps {text}; series changed: {}", self.changed)
    }
}

/// A rule that is no more.
#[derive(Debug, Serialize)]
struct Removed<'a> {
    glob: &'a str,
    /// Series that another rule has now.
    changed: u64,
}

impl Record for Removed<'_> {
    fn print(&self, _palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "{}  is no rule any more; series changed: {}",
            one_line(self.glob),
            self.changed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollup_has_a_width_and_may_have_a_span() {
        let hour = Duration::from_hours(1);
        assert_eq!(parse_rollup("1h").unwrap(), Rollup::new(hour));
        assert_eq!(parse_rollup("60m:2d").unwrap(), Rollup::new(hour).keeping(48 * hour));
        for text in ["", "1", "1h:", ":1h", "none", "1h:2d:3d", "1m:30s"] {
            parse_rollup(text).unwrap_err();
        }
    }
}
