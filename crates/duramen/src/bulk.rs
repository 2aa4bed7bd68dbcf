//! Bulk load: a JSON text of any length as the first revision of a document, or any number of
//! records as that of a collection.
//!
//! What is given is read once, from front to end. One thread makes columns of it, and another one
//! encodes these and writes segments. They belong to nothing until one replacement of the manifest
//! attaches them, so a load that fails, is stopped or dies leaves nothing. Other commits go on
//! meanwhile.

mod builder;
mod columns;
mod gathered;
mod guess;
mod lines;
mod loader;
mod names;
mod records;
mod run;
mod segments;
mod sink;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use crate::database::Database;
use crate::document::Commit;
use crate::engine::attach::Attachment;
use crate::engine::options::CommitOptions;
use crate::engine::record::Facts;
use crate::error::{Error, ErrorKind, Result};
use crate::json::{ParseOptions, TextStream};
use crate::options::DocumentOptions;
use crate::revision::Revision;
use crate::transaction::{Transaction, check_text};
use crate::tree::schema::SpaceId;

use builder::Builder;
use gathered::Batch;
use lines::{KeyField, RecordLines};
use loader::Loader;
pub(crate) use segments::Segments;
use sink::{Bounds, Loaded, Sink};

/// Is told how far a load is, and says whether it goes on.
pub(crate) type Progress<'p> = dyn FnMut(BulkProgress) -> ControlFlow<()> + 'p;

/// How many times what is read may be ahead of what is written: a mebibyte of text each.
const GATHERED_AHEAD: usize = 2;

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The value of a document.
    Value,
    /// The elements of the array that the value of a document is.
    Lines,
    /// The records of a collection.
    Records,
    /// The keys that a deleted collection had records of.
    Departed,
}

/// What records of a collection that is loaded had before.
#[derive(Debug, Default)]
pub(crate) struct RecordVersions {
    /// Versions of those in the value, as far as they are later ones than the first.
    pub(crate) by_name: BTreeMap<String, u64>,
    /// All of these records have to be there.
    pub(crate) are_there: bool,
    pub(crate) departed: Departed,
}

/// The records that are gone, and how many versions each had.
#[derive(Debug, Default)]
pub(crate) enum Departed {
    #[default]
    Nothing,
    ByName(BTreeMap<String, u64>),
    /// They stand behind the value, in an object.
    Behind,
    /// They are all that there is, in an object: the collection is deleted.
    Alone,
}

/// How a text is loaded.
///
/// ```
/// use duramen::{BulkOptions, ParseOptions};
///
/// let parse = ParseOptions { strict: true };
/// let options = BulkOptions { parse, lines: true, ..BulkOptions::default() };
/// assert!(options.declared.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct BulkOptions {
    /// How the JSON is read.
    pub parse: ParseOptions,
    /// The text has a value on each line (NDJSON), and they are the elements of one array. Blank
    /// lines are passed over.
    pub lines: bool,
    /// The lines are the records of a collection, and the member of this name has the key of each;
    /// it stays a member.
    pub key: Option<String>,
    /// What is declared of the document, if the load makes it.
    pub declared: DocumentOptions,
    /// What the commit says of itself. It is durable at once, whatever is asked for here.
    pub commit: CommitOptions,
    /// How many bytes of each kind are held at a time, for tests.
    #[doc(hidden)]
    pub held_bytes: Option<usize>,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BulkProgress {
    /// Bytes of text read.
    pub bytes: u64,
    /// Values read: the elements of the arrays, and the members of the objects, that are too long
    /// to be held in memory. A text that is not is one value.
    pub values: u64,
}

impl Database {
    /// Loads a JSON text of any length as the first revision of a document, made if it is missing.
    /// Memory does not grow with the text. All of it becomes visible at once, or nothing. The value
    /// of a collection is an object of records, under the texts of their keys.
    ///
    /// `progress` is told about every mebibyte, and can stop the load, which is `Cancelled` then.
    ///
    /// `Conflict` if the document has a revision, or gets one meanwhile, or a unique index, or
    /// other options by which its values are taken in, or if two lines have one key; `Unsupported`
    /// if the collection has a unique index; `Invalid`, with line and column, if the text is not
    /// JSON, or repeats a name in an object that is too long to be held in memory, and with the
    /// line if a record has no key or is no object.
    ///
    /// ```
    /// use duramen::{BulkOptions, Database, Revision};
    /// use std::ops::ControlFlow;
    ///
    /// let db = Database::memory()?;
    /// let options = BulkOptions { lines: true, ..BulkOptions::default() };
    /// let text = "{\"id\":1}\n{\"id\":2}\n";
    /// let mut go_on = |_| ControlFlow::Continue(());
    /// let loaded = db.bulk_load("items", &mut text.as_bytes(), &options, &mut go_on);
    /// let (commit, progress) = loaded?;
    /// assert_eq!((commit.revision, progress.values), (Revision(1), 2));
    /// assert_eq!(db.document("items")?.head()?.to_json()?, r#"[{"id":1},{"id":2}]"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// The same lines as a collection:
    ///
    /// ```
    /// # use duramen::{BulkOptions, Database, DocumentOptions, KeyKind};
    /// # use std::ops::ControlFlow;
    /// # let db = Database::memory()?;
    /// # let text = "{\"id\":1}\n{\"id\":2}\n";
    /// # let mut go_on = |_| ControlFlow::Continue(());
    /// let collection = Some(KeyKind::I64);
    /// let declared = DocumentOptions { collection, ..DocumentOptions::default() };
    /// let key = Some("id".to_owned());
    /// let options = BulkOptions { lines: true, key, declared, ..BulkOptions::default() };
    /// db.bulk_load("items", &mut text.as_bytes(), &options, &mut go_on)?;
    /// assert_eq!(db.collection("items")?.get(2)?.unwrap().json, r#"{"id":2}"#);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn bulk_load(
        &self,
        name: &str,
        text: &mut dyn Read,
        options: &BulkOptions,
        progress: &mut Progress<'_>,
    ) -> Result<(Commit, BulkProgress)> {
        self.bulk_load_versions((name, &RecordVersions::default()), text, options, progress)
    }

    /// The same; records of a collection have the versions that are given.
    pub(crate) fn bulk_load_versions(
        &self,
        (name, versions): (&str, &RecordVersions),
        text: &mut dyn Read,
        options: &BulkOptions,
        progress: &mut Progress<'_>,
    ) -> Result<(Commit, BulkProgress)> {
        let bounds = self.bounds(options);
        let stream = TextStream::new(text, bounds.whole)?;
        let subject = match options.key {
            Some(_) if !options.lines => {
                let message = "records are read from lines: a key is only for a text of lines";
                return Err(Error::new(ErrorKind::Invalid, message));
            }
            Some(_) => Subject::Records,
            None if options.lines => Subject::Lines,
            None if matches!(versions.departed, Departed::Alone) => Subject::Departed,
            None => Subject::Value,
        };
        self.load((name, subject), options, |builder, writer| {
            let keys = builder.key_kind().unwrap_or_default();
            let sink = Sink::new(builder, bounds, writer, progress);
            match &options.key {
                Some(name) => {
                    let key = KeyField::new(name, keys);
                    RecordLines { stream, sink, key, parse: options.parse }.run()
                }
                None => Loader::new(stream, sink, (options, versions)).run(),
            }
        })
    }

    fn bounds(&self, options: &BulkOptions) -> Bounds {
        let usual = Bounds::of(self.engine.options.memory_bytes);
        options.held_bytes.map_or(usual, Bounds::all)
    }

    /// Loads what `read` puts into a builder and hands over to be written.
    fn load(
        &self,
        (name, subject): (&str, Subject),
        options: &BulkOptions,
        read: impl FnOnce(Builder, SyncSender<Batch>) -> Result<Loaded>,
    ) -> Result<(Commit, BulkProgress)> {
        let commit = &options.commit;
        check_text("author", commit.author.as_deref())?;
        check_text("message", commit.message.as_deref())?;
        options.declared.check()?;
        let mut reserving = Transaction::new(Arc::clone(&self.engine));
        let reserved = reserving.reserve_document((name, subject), options)?;
        if reserving.commit(&CommitOptions::default())?.sequence.0 > 0 {
            self.engine.keeps_name();
        }

        let mut segments = Segments::new(Arc::clone(&self.engine), reserved.tree, subject);
        let builder = Builder::new(reserved.tree, reserved.options.clone());
        let segment_bytes = self.bounds(options).segment;
        let loaded = thread::scope(|scope| {
            let (writer, gathered) = mpsc::sync_channel(GATHERED_AHEAD);
            let writing = scope.spawn(|| segments.write_all(gathered, segment_bytes));
            let loaded = read(builder, writer);
            let written = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
            written.and(loaded)
        })?;
        segments.end()?;
        let (mut data, columns) = (loaded.builder.data, loaded.builder.columns);
        segments.check_names(&loaded.maps)?;
        for (index, space) in (0..).zip(&mut data.spaces) {
            space.next = columns.next(SpaceId(index));
            space.kinds = columns.kinds(SpaceId(index));
        }

        let mut attaching = Transaction::new(Arc::clone(&self.engine));
        let tree = attaching.claim_document((name, subject), &reserved, options)?;
        let (sequence, timestamp) = self.engine.attach(Attachment {
            tree: Arc::clone(&tree),
            data,
            counts: columns.counts(),
            segments: &mut segments,
            facts: Facts::of(commit),
            catalogue: attaching.catalogue_writer(),
        })?;
        attaching.finish();
        self.engine.share_schema(&tree);
        let commit = Commit { revision: Revision(1), sequence, timestamp };
        Ok((commit, loaded.progress))
    }
}
