//! Records of any number as the first revision of a collection.

use std::ops::ControlFlow;

use crate::bulk::builder::Builder;
use crate::bulk::sink::{Loaded, LongMap, Sink};
use crate::bulk::{BulkOptions, BulkProgress, Subject};
use crate::collection::{Key, KeyKind};
use crate::database::Database;
use crate::document::Commit;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, ParseOptions, Tape, escape};
use crate::key_text::{KeyName, text_of_integer};
use crate::node::{NodeId, PathId};
use crate::state::Datum;
use crate::tree::data::node;
use crate::tree::records::version_field;
use crate::tree::schema::ROOT;

#[cfg(test)]
mod tests;

impl Database {
    /// Loads records as the first revision of a collection, made if it is missing and `options`
    /// declare the type of its keys. Memory does not grow with their number. All of them become
    /// visible at once, or nothing. `next` puts the JSON of a record into an empty buffer and gives
    /// its key, or nothing after the last one.
    ///
    /// Records that stand in lines of NDJSON are loaded faster with [`Database::bulk_load`].
    ///
    /// It is many times faster than putting them, but only for a collection without revisions:
    /// `Conflict` if there are some, or if two records have one key. `Unsupported` if the
    /// collection has a unique index; `Invalid` for what is no record or no key; `progress` is told
    /// about every mebibyte of JSON, and can stop the load, which is `Cancelled` then.
    ///
    /// ```
    /// use duramen::{BulkOptions, Database, DocumentOptions, Key, KeyKind};
    /// use std::ops::ControlFlow;
    ///
    /// let db = Database::memory()?;
    /// let declared =
    ///     DocumentOptions { collection: Some(KeyKind::I64), ..DocumentOptions::default() };
    /// let options = BulkOptions { declared, ..BulkOptions::default() };
    /// let mut numbers = 0..1_000_i64;
    /// let mut next = |json: &mut Vec<u8>| {
    ///     Ok(numbers.next().map(|number| {
    ///         json.extend_from_slice(format!("{{\"half\":{}}}", number / 2).as_bytes());
    ///         Key::from(number)
    ///     }))
    /// };
    /// let mut go_on = |_| ControlFlow::Continue(());
    /// db.bulk_load_records("numbers", &mut next, &options, &mut go_on)?;
    /// let numbers = db.collection("numbers")?;
    /// assert_eq!(numbers.count()?, 1_000);
    /// assert_eq!(numbers.get(999)?.unwrap().json, r#"{"half":499}"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn bulk_load_records(
        &self,
        name: &str,
        next: &mut dyn FnMut(&mut Vec<u8>) -> Result<Option<Key>>,
        options: &BulkOptions,
        progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
    ) -> Result<(Commit, BulkProgress)> {
        let bounds = self.bounds(options);
        self.load((name, Subject::Records), options, |builder, writer| {
            let keys = builder.key_kind().unwrap_or_default();
            let sink = Sink::new(builder, bounds, writer, progress);
            fill(sink, (keys, options.parse), next)
        })
    }
}

/// The records of a collection that is being loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records {
    root: NodeId,
    pub(super) entries: PathId,
}

impl Records {
    /// The root of a collection, and the path of its records.
    pub(super) fn begin(builder: &mut Builder) -> Result<Self> {
        let root = builder.bear(ROOT, 0)?;
        let entries = builder.data.entry_or_add(ROOT);
        let entries =
            entries.ok_or_else(|| Error::new(ErrorKind::Full, "there is no path left"))?;
        Ok(Self { root, entries })
    }

    /// A new record under a name.
    pub(super) fn bear(self, builder: &mut Builder, name: &KeyName<'_>) -> Result<NodeId> {
        let text;
        let name = match name {
            KeyName::Text(text) => {
                let bytes = text.as_bytes();
                Datum::Text { bytes, plain: escape::is_plain(bytes) }
            }
            KeyName::Integer(key) => {
                if let Ok(key) = i64::try_from(*key) {
                    Datum::Int(key)
                } else {
                    text = text_of_integer(*key);
                    Datum::Text { bytes: &text, plain: true }
                }
            }
            KeyName::Uuid(text) => Datum::Text { bytes: text, plain: true },
        };
        builder.bear_entry(self.entries, 0, name)
    }

    /// Ends the load of them, when so many bytes were read; `maps` are those in them that were gone
    /// into.
    pub(super) fn end(self, mut sink: Sink<'_>, bytes: u64, maps: Vec<LongMap>) -> Result<Loaded> {
        self.place(&mut sink.builder)?;
        self.end_departed(sink, bytes, maps)
    }

    /// Makes those that were born the value of the collection.
    pub(super) fn place(self, builder: &mut Builder) -> Result<()> {
        let sequence = builder.sequence(self.entries, 0)?;
        builder.set(self.root, Datum::Map(sequence));
        Ok(())
    }

    /// Gives a key an ordinal, as one of a record that is gone and had so many versions.
    pub(super) fn depart(
        self,
        builder: &mut Builder,
        name: &KeyName<'_>,
        versions: u64,
    ) -> Result<()> {
        let record = self.bear(builder, name)?;
        if versions > 1 {
            let field = version_field(&mut builder.data, self.entries)?;
            let state = Datum::Int(versions.cast_signed());
            builder.set(node(field, record.ordinal().0), state);
        }
        Ok(())
    }

    /// The same as [`end`](Self::end) once the value is in place and what departed behind it.
    pub(super) fn end_departed(
        self,
        sink: Sink<'_>,
        bytes: u64,
        mut maps: Vec<LongMap>,
    ) -> Result<Loaded> {
        let count = sink.builder.next(self.entries);
        maps.push(LongMap { path: self.entries, ordinal: 0, entries: count });
        sink.end(bytes, maps)
    }
}

fn fill(
    mut sink: Sink<'_>,
    (keys, parse): (KeyKind, ParseOptions),
    next: &mut dyn FnMut(&mut Vec<u8>) -> Result<Option<Key>>,
) -> Result<Loaded> {
    let records = Records::begin(&mut sink.builder)?;
    let mut json = Vec::new();
    let mut bytes = 0;
    while let Some(key) = next(&mut json)? {
        let record = records.bear(&mut sink.builder, &keys.name_of(&key)?)?;
        let put = put(&mut sink.builder, record, (&json, parse));
        put.map_err(|error| error.in_context(format!("record {key}")))?;
        bytes += json.len() as u64;
        sink.end_value(bytes)?;
        json.clear();
    }
    records.end(sink, bytes, Vec::new())
}

/// Makes a node the record that a text is.
fn put(builder: &mut Builder, record: NodeId, (text, parse): (&[u8], ParseOptions)) -> Result<()> {
    let text = text.trim_ascii();
    // What is behind a value is found by the parser.
    if text.first() == Some(&b'{') && builder.put_guessed_whole(record, text)? {
        return Ok(());
    }
    let tape = Tape::parse(text, parse)?;
    if !matches!(tape.item(tape.root()), Item::Object { .. }) {
        return Err(Error::new(ErrorKind::Invalid, "it is no JSON object: a record has fields"));
    }
    builder.put(record, &tape, tape.root())
}
