//! The records of a file, loaded in bulk: lines of NDJSON as they are, others through a thread that
//! makes JSON of them.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

use duramen::{BulkOptions, BulkProgress, Commit, Database, ErrorKind, Key, KeyKind, Result};

use crate::record_file::RecordFile;

/// Bytes of a file from which on a load is worth it: it writes segments of its own.
const FILE_BYTES_MIN: u64 = 1 << 20;
/// Bytes of records that are handed over together.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that are read ahead.
const CHUNKS_AHEAD: usize = 4;

/// A bulk load of the records of a file as the first revision of a collection.
///
/// ```
/// use duramen::{BulkOptions, Database, DocumentOptions, KeyKind};
/// use duramen_sql::{RecordFile, RecordLoad};
/// use std::ops::ControlFlow;
///
/// let db = Database::memory()?;
/// let declared =
///     DocumentOptions { collection: Some(KeyKind::I64), ..DocumentOptions::default() };
/// let load = RecordLoad {
///     name: "players",
///     keys: KeyKind::I64,
///     options: BulkOptions { declared, ..BulkOptions::default() },
/// };
/// let text = "{\"id\":1,\"name\":\"ann\"}\n{\"id\":2,\"name\":\"ben\"}\n";
/// let file = RecordFile::ndjson(Box::new(text.as_bytes()), "id");
/// load.run(&db, file, &mut |_| ControlFlow::Continue(()))?;
/// assert_eq!(db.collection("players")?.count()?, 2);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecordLoad<'n> {
    /// The name of the collection.
    pub name: &'n str,
    /// The type of its keys.
    pub keys: KeyKind,
    /// How it is loaded; the type of the keys is declared if it is to be made.
    pub options: BulkOptions,
}

/// Records that were read together.
#[derive(Debug, Default)]
struct Chunk {
    json: Vec<u8>,
    /// Each with its key, where it ends and the number of its line.
    records: Vec<(Key, usize, u64)>,
}

/// What a thread has read.
struct Read {
    chunks: Receiver<Result<Chunk>>,
    json: Vec<u8>,
    records: std::vec::IntoIter<(Key, usize, u64)>,
    at: usize,
}

impl RecordLoad<'_> {
    /// Whether a file of so many bytes is worth a load, and the collection, if it is there, can be
    /// loaded: it has no revision.
    pub fn suits(&self, db: &Database, file_bytes: u64) -> Result<bool> {
        if file_bytes < FILE_BYTES_MIN {
            return Ok(false);
        }
        match db.collection(self.name) {
            // One that is deleted has revisions.
            Ok(collection) => match collection.head() {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
                head => Ok(head?.revision().0 == 0),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Loads the records of a file, all of them or none.
    ///
    /// # Errors
    /// As [`Database::bulk_load_records`] and [`RecordFile::next`]. After `Conflict` and
    /// `Unsupported` the records can still be put.
    pub fn run(
        &self,
        db: &Database,
        file: RecordFile,
        progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
    ) -> Result<(Commit, BulkProgress)> {
        match file.into_lines() {
            Ok((mut lines, key)) => {
                RecordFile::check_first(&mut *lines)?;
                let options = BulkOptions { lines: true, key: Some(key), ..self.options.clone() };
                db.bulk_load(self.name, &mut lines, &options, progress)
            }
            Err(file) => self.run_by_record(db, file, progress),
        }
    }

    /// The same with a thread that makes the JSON of the records.
    fn run_by_record(
        &self,
        db: &Database,
        file: RecordFile,
        progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>,
    ) -> Result<(Commit, BulkProgress)> {
        let places = file.places();
        thread::scope(|scope| {
            let (chunks_to, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
            scope.spawn(move || {
                if let Err(error) = self.read(file, &chunks_to) {
                    // Nobody waits for it any more if it cannot be sent.
                    let _ = chunks_to.send(Err(error));
                }
            });
            let mut read =
                Read { chunks, json: Vec::new(), records: Vec::new().into_iter(), at: 0 };
            // Of the record that is being loaded.
            let line = Cell::new(None);
            let mut next = |json: &mut Vec<u8>| {
                line.set(None);
                let Some((key, number)) = read.next(json)? else { return Ok(None) };
                line.set(Some(number));
                Ok(Some(key))
            };
            let loaded = db.bulk_load_records(self.name, &mut next, &self.options, progress);
            // What was wrong to read says its line.
            loaded.map_err(|error| match line.get() {
                Some(line) if error.kind() == ErrorKind::Invalid => places.in_line(line, &error),
                _ => error,
            })
        })
    }

    fn read(&self, mut file: RecordFile, chunks_to: &SyncSender<Result<Chunk>>) -> Result<()> {
        let mut is_end = false;
        while !is_end {
            let mut chunk = Chunk::default();
            chunk.json.reserve(CHUNK_BYTES);
            while chunk.json.len() < CHUNK_BYTES && !is_end {
                match file.next(self.keys, &mut chunk.json)? {
                    Some((key, line)) => chunk.records.push((key, chunk.json.len(), line)),
                    None => is_end = true,
                }
            }
            if chunks_to.send(Ok(chunk)).is_err() {
                break;
            }
        }
        Ok(())
    }
}

impl Read {
    /// Appends the JSON of the next record: its key and line.
    fn next(&mut self, json: &mut Vec<u8>) -> Result<Option<(Key, u64)>> {
        loop {
            if let Some((key, end, line)) = self.records.next() {
                json.extend_from_slice(&self.json[self.at..end]);
                self.at = end;
                return Ok(Some((key, line)));
            }
            let Ok(chunk) = self.chunks.recv() else { return Ok(None) };
            let Chunk { json, records } = chunk?;
            (self.json, self.records, self.at) = (json, records.into_iter(), 0);
        }
    }
}
