//! Records that are read together: the tree's lock is taken once for many of them, and where their
//! ordinals follow each other their states are gathered by column.

use std::cell::RefCell;

use crate::error::{Error, ErrorKind, Result};
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::Tree;
use crate::tree::data::{TreeData, node};
use crate::tree::group::Fault;
use crate::tree::records::version;
use crate::tree::schema::ROOT;
use crate::tree::serialize::{Format, ItemPrinter, Serializer, Stop};

/// Ordinals that are as near as this to each other are worth gathering.
const NEAR: u64 = 4;

/// A record that is there at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    /// The text of its key, if it was asked for.
    pub(crate) key: String,
    pub(crate) version: u64,
    /// The record as compact JSON.
    pub(crate) json: String,
}

/// What came of looking at one of them.
enum Seen {
    /// There is none, or it was purged.
    Nothing,
    Whole(StoredRecord),
    /// Its text takes more than the columns have.
    Part(StoredRecord),
}

/// Reads one record after the other under the lock.
struct Reader<'a> {
    data: &'a TreeData,
    printer: ItemPrinter<'a>,
    path: PathId,
    revision: u32,
    has_keys: bool,
}

impl Tree {
    /// The records with these ordinals at a revision, in this order; nothing where there is none,
    /// or where it was purged.
    pub(crate) fn stored_records(
        &self,
        ordinals: &[u64],
        revision: u32,
        has_keys: bool,
    ) -> Result<Vec<Option<StoredRecord>>> {
        let seen = RefCell::new(Vec::with_capacity(ordinals.len()));
        let path = self.read(|data| {
            data.kept.check(revision).map_err(Fault::Error)?;
            let Some(path) = data.schema.path(ROOT).entry else { return Ok(None) };
            let printer = ItemPrinter::new(data, revision);
            let mut reader = Reader { data, printer, path, revision, has_keys };
            // What was read before something had to be loaded stays.
            let begun = seen.borrow().len();
            for (at, &ordinal) in ordinals.iter().enumerate().skip(begun) {
                let is_near = |other: Option<&u64>| {
                    other.is_some_and(|other| other.abs_diff(ordinal) <= NEAR)
                };
                let is_near = is_near(ordinals.get(at + 1))
                    || is_near(at.checked_sub(1).and_then(|before| ordinals.get(before)));
                let next = reader.record(ordinal, is_near)?;
                seen.borrow_mut().push(next);
            }
            Ok(Some(path))
        })?;
        let Some(path) = path else { return Ok(vec![None; ordinals.len()]) };
        let finish = |(seen, &ordinal): (Seen, &u64)| match seen {
            Seen::Nothing => Ok(None),
            Seen::Whole(record) => Ok(Some(record)),
            Seen::Part(record) => {
                let mut json = Vec::new();
                let format = Format::default();
                self.append_json((node(path, ordinal), revision), &format, &mut json)?;
                Ok(Some(StoredRecord { json: utf8(json)?, ..record }))
            }
        };
        seen.into_inner().into_iter().zip(ordinals).map(finish).collect()
    }
}

impl Reader<'_> {
    fn record(&mut self, ordinal: u64, is_near: bool) -> Result<Seen, Fault> {
        let Self { data, path, revision, .. } = *self;
        let record = node(path, ordinal);
        let space = data.schema.path(path).space;
        let is_born = data.born(space, ordinal)?.is_some_and(|born| born <= revision);
        if !is_born || matches!(data.state(record, revision)?, Datum::Absent | Datum::Null) {
            return Ok(Seen::Nothing);
        }
        let mut key = String::new();
        if self.has_keys
            && let Datum::Text { bytes, .. } = data.key(space, ordinal)?
        {
            key = String::from_utf8_lossy(bytes).into_owned();
        }
        let version = version(data, record, revision)?;
        let mut json = Vec::with_capacity(128);
        let is_whole = if is_near {
            self.printer.print_value(path, ordinal, &mut json)?
        } else {
            let format = Format::default();
            let mut serializer = Serializer::new(record, &format);
            matches!(serializer.run(data, revision, &mut json, usize::MAX)?, Stop::Done)
        };
        if !is_whole {
            return Ok(Seen::Part(StoredRecord { key, version, json: String::new() }));
        }
        let json = utf8(json).map_err(Fault::Error)?;
        Ok(Seen::Whole(StoredRecord { key, version, json }))
    }
}

fn utf8(json: Vec<u8>) -> Result<String> {
    String::from_utf8(json).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "a record's text is not UTF-8").with_source(error)
    })
}
