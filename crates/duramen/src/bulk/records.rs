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
use crate::node::NodeId;
use crate::state::Datum;
use crate::tree::schema::ROOT;

#[cfg(test)]
mod tests;

impl Database {
    /// Loads records as the first revision of a collection, made if it is missing and `options`
    /// declare the type of its keys. Memory does not grow with their number. All of them become
    /// visible at once, or nothing. `next` puts the JSON of a record into an empty buffer and gives
    /// its key, or nothing after the last one.
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
        self.load((name, Subject::Records), options, |builder, segments| {
            let keys = builder.key_kind().unwrap_or_default();
            let sink = Sink::new(builder, bounds, segments, progress);
            fill(sink, (keys, options.parse), next)
        })
    }
}

fn fill(
    mut sink: Sink<'_>,
    (keys, parse): (KeyKind, ParseOptions),
    next: &mut dyn FnMut(&mut Vec<u8>) -> Result<Option<Key>>,
) -> Result<Loaded> {
    let root = sink.builder.bear(ROOT, 0)?;
    let entries = sink.builder.data.entry_or_add(ROOT);
    let entries = entries.ok_or_else(|| Error::new(ErrorKind::Full, "there is no path left"))?;
    let mut json = Vec::new();
    let mut bytes = 0;
    while let Some(key) = next(&mut json)? {
        let text = keys.text_of(&key)?;
        let name = (text.as_bytes(), escape::is_plain(text.as_bytes()));
        let record = sink.builder.bear_entry(entries, 0, name)?;
        let put = put(&mut sink.builder, record, (&json, parse));
        put.map_err(|error| error.in_context(format!("record {key}")))?;
        bytes += json.len() as u64;
        sink.end_value(bytes)?;
        json.clear();
    }
    let count = sink.builder.next(entries);
    let sequence = sink.builder.sequence(entries, 0)?;
    sink.builder.set(root, Datum::Map(sequence));
    sink.end(bytes, vec![LongMap { path: entries, ordinal: 0, entries: count }])
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
