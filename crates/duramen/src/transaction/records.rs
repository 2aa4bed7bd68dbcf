//! Changes of the records of collections in a transaction.

use std::sync::Arc;

use crate::collection::{Key, KeyKind, no_collection};
use crate::document::Document;
use crate::engine::catalogue::no_document;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, JsonPointer, ParseOptions, Tape};
use crate::patch;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::serialize::Format;
use crate::tree::writer::Writer;

/// # Changing records
///
/// Each change takes the collection's name and a key first and sees what the transaction did
/// before. Records get their versions when the transaction commits: one more each, whatever it did
/// to them.
impl Transaction {
    /// A record as this transaction has made it, as compact JSON; nothing if it is not there.
    pub fn get_record(&mut self, name: &str, key: &Key) -> Result<Option<String>> {
        if let Some(records) = self.read_records(name, Some(key))? {
            return Ok(records.get(key)?.map(|record| record.json));
        }
        let text = self.key_kind(name)?.text_of(key)?;
        let writer = self.writer(name)?;
        let Some(record) = writer.record(&text)? else { return Ok(None) };
        let mut json = Vec::new();
        writer.tree.append_json((record, writer.revision), &Format::default(), &mut json)?;
        Ok(Some(String::from_utf8_lossy(&json).into_owned()))
    }

    /// Adds a record; `Conflict` if there is one with that key.
    pub fn insert_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            if writer.record(text)?.is_some() {
                let message = format!(
                    "there is a record {key} in collection {name:?} already: put or update it, or \
                     choose another key"
                );
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            put(writer, (key, text), json)
        })
    }

    /// Adds a record or saves another value of it.
    pub fn put_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        self.change_record(name, key, |writer, text| put(writer, (key, text), json))
    }

    /// Saves another value of a record that was at a version when the transaction first saw it;
    /// `Conflict` if it was at another or is not there.
    pub fn update_record(
        &mut self,
        name: &str,
        key: &Key,
        expected: u64,
        json: &[u8],
    ) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            let record = writer.record(text)?;
            let version =
                record.map(|record| writer.tree.record_version(record, writer.revision - 1));
            let actual = version.transpose()?;
            if actual == Some(expected) {
                return put(writer, (key, text), json);
            }
            let is = actual.map_or("not there".to_owned(), |actual| format!("at version {actual}"));
            let message = format!(
                "record {key} of collection {name:?} is {is}, expected version {expected}: read it \
                 again, then retry"
            );
            Err(Error::new(ErrorKind::Conflict, message))
        })
    }

    /// Changes a record by a JSON Patch whose pointers begin at the record.
    pub fn patch_record(&mut self, name: &str, key: &Key, json_patch: &[u8]) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            patch::apply(writer, &place(writer, (name, key), text)?, json_patch)
        })
    }

    /// Changes a record by a JSON Merge Patch.
    pub fn merge_patch_record(&mut self, name: &str, key: &Key, json: &[u8]) -> Result<()> {
        self.change_record(name, key, |writer, text| {
            patch::merge::apply(writer, &place(writer, (name, key), text)?, json)
        })
    }

    /// Deletes the records with these keys; how many there were.
    pub fn delete_records(&mut self, name: &str, keys: &[Key]) -> Result<u64> {
        let kind = self.key_kind(name)?;
        let texts = keys.iter().map(|key| kind.text_of(key)).collect::<Result<Vec<_>>>()?;
        self.change_collection(name, |writer| {
            let mut records = Vec::new();
            for text in &texts {
                records.extend(writer.record(text)?);
            }
            records.sort_unstable();
            records.dedup();
            if !records.is_empty() {
                writer.remove_records(&records)?;
            }
            Ok(records.len() as u64)
        })
    }

    /// The type of a collection's keys.
    pub(crate) fn key_kind(&mut self, name: &str) -> Result<KeyKind> {
        let keys = self.writer(name)?.options.as_ref().and_then(|options| options.collection);
        keys.ok_or_else(|| no_collection(name))
    }

    /// A collection by its name and tree.
    pub(crate) fn document_of(&self, name: &str, tree: &Arc<Tree>) -> Document {
        Document::new(Arc::clone(&self.engine), Arc::clone(tree), name)
    }

    fn change_record(
        &mut self,
        name: &str,
        key: &Key,
        change: impl FnOnce(&Writer, &str) -> Result<()>,
    ) -> Result<()> {
        let text = self.key_kind(name)?.text_of(key)?;
        self.change_collection(name, |writer| change(writer, &text))
    }

    pub(crate) fn change_collection<T>(
        &mut self,
        name: &str,
        change: impl FnOnce(&Writer) -> Result<T>,
    ) -> Result<T> {
        let id = self.find(name)?.ok_or_else(|| no_document(name))?;
        self.change(id, change)
    }
}

fn put(writer: &Writer, (key, text): (&Key, &str), json: &[u8]) -> Result<()> {
    let context = |error: Error| error.in_context(format!("record {key}"));
    let tape = Tape::parse(json, ParseOptions::default()).map_err(context)?;
    if !matches!(tape.item(tape.root()), Item::Object { .. }) {
        let message = format!("record {key} is no JSON object: a record has fields");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    writer.put_record(text, &tape, tape.root())
}

/// The place of a record that is there.
fn place(writer: &Writer, (name, key): (&str, &Key), text: &str) -> Result<JsonPointer> {
    if writer.record(text)?.is_some() {
        return Ok(JsonPointer::root().child(text));
    }
    let message = format!("there is no record {key} in collection {name:?}: insert or put it");
    Err(Error::new(ErrorKind::NotFound, message))
}
