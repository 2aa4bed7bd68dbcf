//! `duramen query`: the values that a JSONPath finds.

use std::io::{self, Write};

use clap::Args;
use duramen::{Format, JsonPath, Match, NodeId, Snapshot};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Result;
use crate::arguments::{At, Keys, ReadDocument};
use crate::exit::Success;
use crate::output::{Output, Palette, Record, one_line, shortened};
use crate::session::Session;

const EXAMPLES: &str = "\
Examples:
  duramen query shop.duramen config '$.opening.*'
  duramen query shop.duramen players '$[?@.score > 100].name' --at 2024-05-01
  duramen query shop.duramen players '$..email' --limit 10 --json
  duramen query shop.duramen players '$[?@.name == \"ann\"]' --values | jq .score

A line has the place of a value as a JSON Pointer, which other commands take, and the value, cut
where it is long; --values prints whole values and nothing else. A JSONPath is as RFC 9535 has it;
of a collection it asks the object that `duramen get` prints, in which integer keys are 20 digits.";

/// Print the values that a JSONPath finds
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Query {
    #[command(flatten)]
    document: ReadDocument,
    /// A JSONPath (RFC 9535), such as '$.players[?@.score > 100].name'
    #[arg(value_name = "JSONPATH")]
    path: String,
    #[command(flatten)]
    at: At,
    /// At most this many
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    limit: Option<usize>,
    /// Print the values alone, each a line of JSON
    #[arg(long)]
    values: bool,
}

impl Query {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let path = JsonPath::parse(&self.path)?;
        let document = self.document.open(session)?;
        let (keys, snapshot) = (Keys::of(&document)?, self.at.snapshot(&document)?);
        for found in snapshot.query(&path)?.take(self.limit.unwrap_or(usize::MAX)) {
            let found = found?;
            if self.values {
                snapshot.write_json(&found.pointer(), &Format::default(), output.stream())?;
                output.line("")?;
            } else {
                output.record(&Line::new(&snapshot, &found, keys)?)?;
            }
        }
        Ok(Success::Done)
    }
}

#[derive(Debug, Serialize)]
struct Line {
    pointer: String,
    path: String,
    node: Option<u64>,
    value: Box<RawValue>,
}

impl Line {
    fn new(snapshot: &Snapshot, found: &Match, keys: Keys) -> Result<Self> {
        let pointer = found.pointer();
        let mut text = Vec::new();
        snapshot.append_json(&pointer, &Format::default(), &mut text)?;
        Ok(Self {
            pointer: keys.shown(&pointer).to_string(),
            path: found.normalized_path(),
            node: found.node().map(NodeId::number),
            value: serde_json::from_slice(&text).map_err(io::Error::from)?,
        })
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let heading = palette.heading;
        let pointer = if self.pointer.is_empty() { "''" } else { &self.pointer };
        let value = shortened(self.value.get());
        writeln!(out, "{heading}{}{heading:#}  {value}", one_line(pointer))
    }
}
