//! Records as a file has them, one after the other.

use std::fmt;
use std::io::{BufRead, Read};

use duramen::{Error, Key, KeyKind, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Format, KEY_MEMBER, invalid};

/// Bytes of a line of NDJSON that is read: as much as a value may have.
const LINE_BYTES_MAX: u64 = 256 << 20;

/// A file of records.
pub(super) struct Source<'k> {
    lines: Lines,
    /// The member that has the key.
    key: &'k str,
}

enum Lines {
    Ndjson { reader: Box<dyn BufRead>, line: u64 },
    Csv { reader: Box<csv::Reader<Box<dyn BufRead>>>, names: Vec<String> },
}

/// The members of a JSON object in order, their values as they are written.
struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'k> Source<'k> {
    pub(super) fn new(reader: Box<dyn BufRead>, format: Format, key: &'k str) -> Result<Self> {
        let lines = match format {
            Format::Ndjson => Lines::Ndjson { reader, line: 0 },
            Format::Csv => {
                let mut reader = Box::new(csv::Reader::from_reader(reader));
                let header = reader.headers().map_err(|error| invalid(1, error))?;
                let names: Vec<String> = header.iter().map(str::to_owned).collect();
                if !names.iter().any(|name| name == key) {
                    let message = format!(
                        "no field is called {key:?}: --key names the one that has the key, of {}",
                        names.join(", ")
                    );
                    return Err(invalid(1, message));
                }
                Lines::Csv { reader, names }
            }
        };
        Ok(Self { lines, key })
    }

    /// The next record with its key and the number of its line.
    pub(super) fn next(&mut self, keys: KeyKind) -> Result<Option<(Key, Vec<u8>, u64)>> {
        match &mut self.lines {
            Lines::Ndjson { reader, line } => {
                let Some(text) = next_line(reader.as_mut(), line)? else { return Ok(None) };
                let (key, json) = parts(&text, (self.key, *line), keys)?;
                Ok(Some((key, json, *line)))
            }
            Lines::Csv { reader, names } => {
                let mut row = csv::StringRecord::new();
                let line = reader.position().line();
                if !reader.read_record(&mut row).map_err(|error| invalid(line, error))? {
                    return Ok(None);
                }
                let line = row.position().map_or(line, csv::Position::line);
                let text = json_of_row(names, &row);
                let (key, json) = parts(text.as_bytes(), (self.key, line), keys)?;
                Ok(Some((key, json, line)))
            }
        }
    }
}

/// The next line that is not blank.
fn next_line(reader: &mut dyn BufRead, line: &mut u64) -> Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = reader.take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut text);
        let read = read.map_err(|error| Error::io("cannot read the records", error))?;
        if read == 0 {
            return Ok(None);
        }
        *line += 1;
        if read as u64 > LINE_BYTES_MAX {
            return Err(invalid(*line, "it has more bytes than a record may have (256 MiB)"));
        }
        if !text.trim_ascii().is_empty() {
            return Ok(Some(text));
        }
    }
}

/// The key of a record, and its text without the member that exports add.
fn parts(text: &[u8], (name, line): (&str, u64), keys: KeyKind) -> Result<(Key, Vec<u8>)> {
    let Members(members) = serde_json::from_slice(text)
        .map_err(|error| invalid(line, format_args!("it is no JSON object: {error}")))?;
    let key = members.iter().find(|(found, _)| found == name).ok_or_else(|| {
        let message = format!("the member {name:?} is missing, which is to be the key (--key)");
        invalid(line, message)
    })?;
    let written = key.1.get();
    let read = match serde_json::from_str::<String>(written) {
        Ok(text) => keys.parse(&text),
        Err(_) => keys.parse(written),
    };
    let key = read.map_err(|error| invalid(line, error.message()))?;
    if name != KEY_MEMBER {
        return Ok((key, text.to_vec()));
    }
    let mut json = vec![b'{'];
    for (found, value) in members.iter().filter(|(found, _)| found != name) {
        if json.len() > 1 {
            json.push(b',');
        }
        json.extend_from_slice(serde_json::Value::from(found.as_str()).to_string().as_bytes());
        json.push(b':');
        json.extend_from_slice(value.get().as_bytes());
    }
    json.push(b'}');
    Ok((key, json))
}

fn json_of_row(names: &[String], row: &csv::StringRecord) -> String {
    let cells = names.iter().zip(row.iter()).filter(|(_, cell)| !cell.is_empty());
    let members: Vec<String> = cells
        .map(|(name, cell)| {
            let value = match serde_json::from_str::<&RawValue>(cell) {
                Ok(_) if !cell.starts_with(['"', '{', '[']) && cell.trim() == cell => {
                    cell.to_owned()
                }
                _ => serde_json::Value::from(cell).to_string(),
            };
            format!("{}:{value}", serde_json::Value::from(name.as_str()))
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'t> Visitor<'t> for InOrder {
            type Value = Members<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record, which is an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}
