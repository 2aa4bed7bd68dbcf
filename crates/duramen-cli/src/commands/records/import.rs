//! `duramen records import`: records of a file into a collection.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use duramen::{BulkProgress, Collection, ErrorKind, Key, KeyKind};
use duramen_sql::{FilePlaces, RecordFile};
use serde::Serialize;

use super::{WriteCollection, Writing};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, input, progress};

const EXAMPLES: &str = "\
Examples:
  duramen records import shop.duramen players players.ndjson --key id
  duramen records import shop.duramen orders orders.csv --key number --keys u64
  duramen records import shop.duramen flights flights.parquet --key id
  duramen records export old.duramen players - | duramen records import shop.duramen players -

A line of NDJSON is a record. Of CSV the first line names the fields: a cell that is a JSON number,
true, false or null is one, an empty one is left out, and all others are strings, as is a key unless
it is a number. Of Parquet each row is a record, nested values and all; NULL is left out. The key is
the member that --key names; the member _key, as an export has it, does not become part of the
record, and a member or column $._key becomes its member _key. Columns of Parquet with dates, times
and decimals, which JSON cannot tell, are declared for SQL where the collection is new.

A file of more than a mebibyte is loaded in bulk, as one commit, into a collection that has no
revision yet nor a unique index: many times faster, and all of it or nothing. One in which a key
comes twice is not loaded so.

Otherwise records are committed 10,000 at a time, fewer where these have more than 8 MiB of JSON. A
file is looked through before anything of it is saved: if a line is wrong that is told, and the
collection stays as it is. What comes by a pipe cannot be read twice: there the records of the
commits before the one with the wrong line are in. When an import ends before the file does it says
how many are in, if there are any. To go on import all of the file again: a record that is in
already stays as it is. Of a key that comes twice the last record counts.";

/// Records of one commit.
const BATCH_RECORDS: usize = 10_000;
/// Bytes of JSON from which on a batch is committed too.
const BATCH_BYTES: usize = 8 << 20;

/// The member that exports have the key in.
pub(super) const KEY_MEMBER: &str = "_key";

/// What a column is called that has the members of this name which records have themselves.
pub(super) const OWN_KEY_MEMBER: &str = "$._key";

/// Save the records of a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    #[command(flatten)]
    collection: WriteCollection,
    /// The file; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The member that has the key; of a number a collection of string keys takes the spelling, so
    /// that 1 and 1.0 are two keys
    #[arg(long, value_name = "FIELD", default_value = KEY_MEMBER)]
    key: String,
    /// The type of the keys, if the collection is to be made: string, i64, u64 or uuid
    #[arg(long, value_name = "TYPE")]
    keys: Option<KeyKind>,
    /// How the file is written; by default as its name ends, else ndjson
    #[arg(long)]
    format: Option<Format>,
}

/// How records are written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One JSON object a line
    Ndjson,
    /// Comma-separated values, the names of the fields in the first line
    Csv,
    /// Apache Parquet
    Parquet,
}

impl Format {
    /// The format of a file, given or as its name ends.
    pub(super) fn of(given: Option<Self>, file: &Path) -> Self {
        let ends = |name: &str| file.extension().is_some_and(|end| end.eq_ignore_ascii_case(name));
        given.unwrap_or(match () {
            () if ends("csv") => Self::Csv,
            () if ends("parquet") => Self::Parquet,
            () => Self::Ndjson,
        })
    }
}

/// Records that are committed together.
#[derive(Default)]
struct Batch {
    json: Vec<u8>,
    /// Each with its key, where it ends and the number of its line.
    records: Vec<(Key, usize, u64)>,
}

impl Import {
    pub(super) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        if Format::of(self.format, &self.file) == Format::Parquet && self.file == Path::new("-") {
            let message = "parquet is read from its end: give a file, not a pipe".to_owned();
            return Err(Failure::Usage(message));
        }
        if self.collection.database.is_missing() {
            // What is wrong with the file as a whole is told before a database is made.
            input::check_there(&self.file)?;
            if input::bytes(&self.file).is_some() {
                self.source()?;
            }
        }
        // Before anything is made that Ctrl-C is to leave nothing of.
        let interruption = Interruption::watch();
        let mut writing = self.collection.open_or_create(session, self.keys)?;
        if writing.is_new && Format::of(self.format, &self.file) == Format::Parquet {
            writing.types = self.source()?.types(&writing.database, writing.name)?;
        }
        let loaded = self.load(&mut writing, &interruption)?;
        let imported = match loaded {
            Some(loaded) => loaded,
            None => self.put(&mut writing, &interruption)?,
        };
        let collection = writing.database.collection(writing.name)?;
        let (count, revision) = (collection.count()?, collection.head()?.revision().0);
        output.record(&Imported { collection: writing.name, read: imported, count, revision })?;
        Ok(Success::Done)
    }

    fn source(&self) -> duramen::Result<RecordFile> {
        let (file, key) = (self.file.as_path(), self.key.as_str());
        let records = match Format::of(self.format, file) {
            Format::Ndjson => Ok(RecordFile::ndjson(input::lines(file)?, key)),
            Format::Csv => RecordFile::csv(input::lines(file)?, key),
            Format::Parquet => RecordFile::parquet(input::open(file)?, key),
        };
        records.map_err(|error| error.in_context(input::name(file)))
    }

    /// Loads all records in bulk: how many; none if they have to be put.
    fn load(&self, writing: &mut Writing<'_>, interruption: &Interruption) -> Result<Option<u64>> {
        let load = writing.bulk_load();
        let is_long = match input::bytes(&self.file) {
            Some(bytes) => load.suits(&writing.database, bytes)?,
            None => false,
        };
        if !is_long {
            return Ok(None);
        }
        let file = self.source()?;
        let bar = progress::bar("importing", None);
        let mut tell = |progress: BulkProgress| {
            bar.set_position(progress.values);
            if interruption.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let loaded = load.run(&writing.database, file, &mut tell);
        bar.finish_and_clear();
        match loaded {
            Ok((_, progress)) => {
                writing.declare()?;
                writing.made();
                Ok(Some(progress.values))
            }
            Err(error) => match error.kind() {
                ErrorKind::Conflict | ErrorKind::Unsupported => Ok(None),
                ErrorKind::Cancelled => {
                    Err(Failure::Interrupted("interrupted: no record was imported".to_owned()))
                }
                _ => Err(error.in_context(input::name(&self.file)).into()),
            },
        }
    }

    /// Puts all records in batches, and counts them.
    fn put(&self, writing: &mut Writing<'_>, interruption: &Interruption) -> Result<u64> {
        if input::bytes(&self.file).is_some() {
            self.check(writing.keys, interruption)?;
        }
        let mut imported = 0;
        let result = self.put_batches(writing, interruption, &mut imported);
        if result.is_err() && imported > 0 {
            notice!(
                "{imported} records are in; to go on import all of it again: these stay as they are"
            );
        }
        result.map(|()| imported)
    }

    /// Reads all of the file, so that nothing is saved of one in which a line is wrong.
    fn check(&self, keys: KeyKind, interruption: &Interruption) -> Result<()> {
        let (mut source, name) = (self.source()?, input::name(&self.file));
        let bar = progress::bar("checking", None);
        let mut json = Vec::new();
        loop {
            let next = source.next(keys, &mut json).map_err(|error| error.in_context(&name))?;
            let Some((key, line)) = next else { break };
            Collection::check_record(&key, &json)
                .map_err(|error| source.places().in_line(line, &error).in_context(&name))?;
            json.clear();
            bar.inc(1);
            if interruption.is_asked() {
                let message = "interrupted: no record was imported".to_owned();
                return Err(Failure::Interrupted(message));
            }
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Saves all records, batch by batch, and counts those that are in.
    fn put_batches(
        &self,
        writing: &mut Writing<'_>,
        interruption: &Interruption,
        imported: &mut u64,
    ) -> Result<()> {
        let (mut source, name) = (self.source()?, input::name(&self.file));
        let bar = progress::bar("importing", None);
        let mut batch = Batch::default();
        loop {
            let next = source.next(writing.keys, &mut batch.json);
            // Ctrl-C also ends the program at the other end of a pipe: what came last may be cut.
            let is_stopped = interruption.is_asked();
            let next = if is_stopped { Ok(None) } else { next };
            let next = next.map_err(|error| error.in_context(&name))?;
            let is_end = next.is_none();
            batch.records.extend(next.map(|(key, line)| (key, batch.json.len(), line)));
            let is_full = batch.records.len() >= BATCH_RECORDS || batch.json.len() >= BATCH_BYTES;
            if is_full || is_end {
                *imported += save(writing, &batch, (source.places(), &name))?;
                batch = Batch::default();
                bar.set_position(*imported);
                if is_stopped {
                    return Err(Failure::Interrupted("interrupted".to_owned()));
                }
            }
            if is_end {
                bar.finish_and_clear();
                return Ok(());
            }
        }
    }
}

fn save(
    writing: &mut Writing<'_>,
    batch: &Batch,
    (places, file): (FilePlaces, &str),
) -> Result<u64> {
    let (name, count) = (writing.name, batch.records.len() as u64);
    writing.commit(|transaction| {
        let mut start = 0;
        for (key, end, line) in &batch.records {
            let json = &batch.json[start..*end];
            start = *end;
            transaction
                .put_record(name, key, json)
                .map_err(|error| places.in_line(*line, &error).in_context(file))?;
        }
        Ok(())
    })?;
    Ok(count)
}

#[derive(Debug, Serialize)]
struct Imported<'a> {
    collection: &'a str,
    #[serde(rename = "imported")]
    read: u64,
    count: u64,
    revision: u64,
}

impl Record for Imported<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { collection, read, count, revision } = self;
        let color = palette.revision;
        writeln!(
            out,
            "{collection}: records read: {read}, there now: {count}; revision \
             {color}{revision}{color:#}"
        )
    }
}
