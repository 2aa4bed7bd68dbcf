//! Reads the lines of NDJSON as the records of a collection. A field of each has its key.

use crate::bulk::builder::Builder;
use crate::bulk::guess::Token;
use crate::bulk::records::Records;
use crate::bulk::run::Between;
use crate::bulk::sink::{Loaded, Sink};
use crate::collection::{Key, KeyKind};
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, NextValue, ParseOptions, Tape, TextStream};
use crate::node::PathId;
use crate::tree::compare::name_of;
use crate::tree::missing::shorten;

/// Where a record has its key, and how it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyField<'n> {
    name: &'n str,
    keys: KeyKind,
    /// Its path, once a record had it.
    path: Option<PathId>,
}

/// The reading of one text.
pub(super) struct RecordLines<'a, 'r> {
    pub(super) stream: TextStream<'r>,
    pub(super) sink: Sink<'a>,
    pub(super) key: KeyField<'a>,
    pub(super) parse: ParseOptions,
}

impl RecordLines<'_, '_> {
    /// Reads the text to its end.
    pub(super) fn run(mut self) -> Result<Loaded> {
        let records = Records::begin(&mut self.sink.builder)?;
        while self.stream.skip_space()?.is_some() {
            if !self.run_on(records)? {
                let bytes = self.record(records)?;
                if self.sink.builder.guesses.may_span_lines() {
                    self.stream.check_line(bytes)?;
                }
                self.stream.consume(bytes);
                self.sink.end_value(self.stream.consumed())?;
            }
            self.stream.end_line()?;
        }
        records.end(self.sink, self.stream.consumed(), Vec::new())
    }

    /// Adds the records that come next if they are likely to be alike: whether there were any.
    fn run_on(&mut self, records: Records) -> Result<bool> {
        let Some(key) = self.key.path else { return Ok(false) };
        let form = (Between::Lines, Some((key, self.key.keys)));
        self.sink.put_run(&mut self.stream, (records.entries, 0), form)
    }

    /// Adds the record that comes next: its bytes.
    fn record(&mut self, records: Records) -> Result<usize> {
        if self.stream.text().starts_with(b"[") {
            return Err(is_array().in_context(format!("line {}", self.stream.line())));
        }
        loop {
            if let Some(bytes) = self.guessed(records)? {
                return Ok(bytes);
            }
            let wrong = match self.stream.next_value((self.parse, 1)) {
                Ok(NextValue::Whole(tape, bytes)) => match self.key.of_tape(&tape) {
                    Ok(key) => {
                        let name = self.key.keys.name_of(&key)?;
                        let record = records.bear(&mut self.sink.builder, &name)?;
                        self.sink.builder.put(record, &tape, tape.root())?;
                        let room = tape.into_room();
                        self.stream.reuse(room);
                        return Ok(bytes);
                    }
                    Err(error) => error,
                },
                Ok(NextValue::Cut(_)) => {
                    self.stream.check_length()?;
                    self.stream.read_on()?;
                    continue;
                }
                Err(error) => {
                    return Err(self.stream.fault_in_line((self.parse, 1)).unwrap_or(error));
                }
            };
            return Err(wrong.in_context(format!("line {}", self.stream.line())));
        }
    }

    /// The same if its shape is guessed and its key is of a usual form.
    fn guessed(&mut self, records: Records) -> Result<Option<usize>> {
        let (text, builder) = (self.stream.text(), &mut self.sink.builder);
        let Some(bytes) = builder.guess(records.entries, text) else { return Ok(None) };
        let Some(key) = self.key.of_guess(builder, (records.entries, text)) else {
            return Ok(None);
        };
        let Ok(name) = self.key.keys.name_of(&key) else { return Ok(None) };
        let record = records.bear(builder, &name)?;
        builder.put_tokens(record, text)?;
        Ok(Some(bytes))
    }
}

/// The error for what most who give an array have, which may go on for many lines.
fn is_array() -> Error {
    let message = "it is no JSON object, but an array: each record has a line of its own, and \
                   `jq -c '.[]'` writes those of an array so";
    Error::new(ErrorKind::Invalid, message)
}

impl<'n> KeyField<'n> {
    pub(super) fn new(name: &'n str, keys: KeyKind) -> Self {
        Self { name, keys, path: None }
    }

    /// The key of the record that was guessed; none if it is to be parsed.
    fn of_guess(&mut self, builder: &Builder, (of, text): (PathId, &[u8])) -> Option<Key> {
        let find = || builder.data.schema.field(of, self.name.as_bytes());
        let path = self.path.or_else(find)?;
        self.path = Some(path);
        match (self.keys, builder.guessed_field(path)?) {
            (KeyKind::I64 | KeyKind::U64, Token::Int(key)) => Some(Key::I64(key)),
            (_, Token::Text { at, len } | Token::Number { at, len }) => {
                let written = text.get(at as usize..)?.get(..len as usize)?;
                self.keys.parse(std::str::from_utf8(written).ok()?).ok()
            }
            _ => None,
        }
    }

    /// The same of a record that was parsed.
    fn of_tape(&self, tape: &Tape<'_>) -> Result<Key> {
        if !matches!(tape.item(tape.root()), Item::Object { .. }) {
            let message = "it is no JSON object: a record has fields";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        // Of members with the same name the record keeps the last.
        let fields = tape.fields(tape.root());
        let found = fields.filter(|&(name, _)| name_of(name).0 == self.name.as_bytes()).last();
        let Some((_, at)) = found else {
            let message = format!("the member {:?} is missing, which is to be the key", self.name);
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let key = match tape.item(at) {
            Item::Text { bytes, .. } | Item::Number(bytes) => {
                self.keys.parse(&String::from_utf8_lossy(bytes))
            }
            _ => {
                let mut written = Vec::new();
                tape.write(at, &mut written);
                let shown = shorten(&written);
                let message = format!("{shown} is no key, which is a string or a number");
                Err(Error::new(ErrorKind::Invalid, message))
            }
        };
        key.map_err(|error| error.in_context(format!("member {:?}", self.name)))
    }
}
