//! A record as a line of output.

use std::io::{self, Write};

use duramen::Record as Stored;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Result;
use crate::output::{Palette, Record, one_line};

/// A record with its key and version.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    key: String,
    version: u64,
    record: Box<RawValue>,
}

impl Line {
    pub(super) fn new(record: Stored) -> Result<Self> {
        let json = RawValue::from_string(record.json).map_err(io::Error::from)?;
        Ok(Self { key: record.key.to_string(), version: record.version, record: json })
    }
}

impl Record for Line {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Palette { revision: r, heading: h, .. } = palette;
        let Self { key, version, record } = self;
        writeln!(out, "{h}{}{h:#}  {r}{version}{r:#}  {record}", one_line(key))
    }
}
