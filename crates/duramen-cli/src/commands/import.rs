//! `duramen import`: many files, or the lines of one, as revisions of a document.

mod history;
mod loader;
mod source;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use duramen::{
    BulkOptions, CommitOptions, Database, Durability, JsonPointer, ParseOptions,
    Result as EngineResult,
};
use serde::Serialize;

use self::loader::{Clock, Loader};
use self::source::{Item, Source};
use crate::arguments::{WriteDatabase, edit};
use crate::exit::{Failure, Success};
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::session::Session;
use crate::{Result, bulk, input, progress};

const EXAMPLES: &str = "\
Examples:
  duramen import shop.duramen config backup/config-*.json --timestamps-from-mtime
  duramen import shop.duramen players --ndjson players.ndjson --timestamp-field /updated
  zcat players.ndjson.gz | duramen import shop.duramen players --ndjson -
  duramen import shop.duramen players --ndjson players.ndjson --skip 5000
  duramen import shop.duramen events --ndjson events.ndjson --as-array
  duramen import shop.duramen config --history config.ndjson

What is equal to the revision before it makes no revision and is counted. The times of --timestamps-
from-mtime and --timestamp-field have to rise; one in the same second as the revision before, but
not after it, counts as a microsecond after it. Ctrl-C stops behind a whole revision, makes sure
that all until there is on the device, and tells the --skip to go on with.

--history takes over what `export --history` wrote: the same revisions with the same timestamps,
authors and messages. Revisions that are there already have to be the first ones of the history, so
that the same command goes on where an earlier one stopped.

--as-array loads a file of any length, larger than memory too, if the document has no revision yet;
Ctrl-C leaves nothing of it then. A missing database or document is created.";

/// How long the device may lag behind, and how many revisions at most.
const SYNC_INTERVAL_MS: u32 = 1000;
const REVISIONS_PER_SYNC: u64 = 1000;

/// Load many revisions of a document, each from a file or from a line of one file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Import {
    #[command(flatten)]
    database: WriteDatabase,
    /// The document's name
    #[arg(value_name = "DOC")]
    document: String,
    /// Files with JSON text, each a revision, in this order
    #[arg(value_name = "FILE", required_unless_present_any = ["ndjson", "history"],
        conflicts_with_all = ["ndjson", "history"], value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// A file with a JSON text on each line, each a revision; - is standard input
    #[arg(long, value_name = "FILE")]
    ndjson: Option<PathBuf>,
    /// All lines are the elements of one array, and one revision
    // What is in the way of --ndjson would waive that it is required.
    #[arg(long, requires = "ndjson", conflicts_with_all = ["files", "skip", "timestamp_field",
        "history", "timestamps_from_mtime"])]
    as_array: bool,
    /// A history that `export --history` wrote; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ndjson", "skip", "timestamp_field",
        "timestamps_from_mtime", "message", "author", "strict"])]
    history: Option<PathBuf>,
    /// Pass over this many files or lines, which an earlier import has loaded
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    #[arg(allow_negative_numbers = true)]
    skip: u64,
    /// Each revision was made when its file was last changed
    #[arg(long, conflicts_with_all = ["ndjson", "timestamp_field"])]
    timestamps_from_mtime: bool,
    /// Each revision was made when the value at this JSON Pointer says: RFC 3339 text or a number
    #[arg(long, value_name = "POINTER")]
    timestamp_field: Option<String>,
    /// What such a number counts since 1970, UTC
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = Unit::Us)]
    timestamp_unit: Unit,
    /// What changed and why, for all of them
    #[arg(long)]
    message: Option<String>,
    /// Who made the changes
    #[arg(long)]
    author: Option<String>,
    /// Refuse what RFC 8259 leaves open, such as a name that occurs twice in an object
    #[arg(long)]
    strict: bool,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Unit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

/// How much was loaded, of which there may be more.
fn safe(done: u64, unit: &str) -> String {
    match done {
        1 => format!("the first of the {unit} is safe"),
        _ => format!("the first {done} {unit} are safe"),
    }
}

/// How loading ended before its end.
enum Ended {
    AtTheEnd,
    ByInterruption,
}

impl Import {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch();
        if let Some(path) = &self.history {
            input::check_there(path)?;
            let database = self.database.open_or_create(session)?;
            let durability = Some(Durability::Interval(SYNC_INTERVAL_MS));
            let import = database.import_history(&self.document, durability)?;
            let target = (&database, self.document.as_str());
            return history::run(target, import, path, (&interruption, output));
        }
        if let Some(path) = self.ndjson.as_deref().filter(|_| self.as_array)
            && let Some(done) = self.load_array(path, (session, output))?
        {
            return Ok(done);
        }
        let mut source = self.source()?;
        let clock = self.clock()?;
        let mut first = None;
        // Who writes to a pipe may wait for the database.
        let is_pipe = self.ndjson.as_deref().is_some_and(|path| input::bytes(path).is_none());
        if self.database.is_missing() && !is_pipe {
            first = self.first(&mut source)?;
            if interruption.is_asked() {
                let message = "interrupted: nothing was imported".to_owned();
                return Err(Failure::Interrupted(message));
            }
            self.rehearse(first.as_ref(), clock.clone())?;
        }
        let database = self.database.open_or_create(session)?;
        let mut loader = self.loader(&database, clock)?;

        let ended = self.load(&mut loader, (first, &mut source), &interruption);
        // Whatever the end, what was loaded is made safe before anything is said about it.
        let flushed = database.flush();
        let (done, unit) = (source.position(), source.unit());
        let safe = format!("{}; go on with --skip {done}", safe(done, unit));
        match (ended, flushed) {
            (Ok(Ended::AtTheEnd), Ok(())) => {}
            (Ok(Ended::ByInterruption), Ok(())) => {
                return Err(Failure::Interrupted(format!("interrupted: {safe}")));
            }
            (Err(error), Ok(())) => {
                if loader.loaded > 0 {
                    notice!("{safe}");
                }
                return Err(error.into());
            }
            (_, Err(error)) => return Err(error.into()),
        }
        if loader.created_document() {
            notice!("created the document {}", self.document);
        }
        output.record(&Summary {
            document: &self.document,
            unit,
            read: source.elements().unwrap_or(loader.loaded),
            revisions: loader.revisions,
            unchanged: loader.loaded - loader.revisions,
            revision: loader.head.0,
        })?;
        Ok(Success::Done)
    }

    fn loader<'a>(&'a self, database: &'a Database, clock: Clock) -> EngineResult<Loader<'a>> {
        let parse = ParseOptions { strict: self.strict };
        Loader::new(database, &self.document, clock, parse)
    }

    fn commit(&self) -> CommitOptions {
        CommitOptions {
            author: self.author.clone(),
            message: self.message.clone(),
            durability: Some(Durability::Interval(SYNC_INTERVAL_MS)),
            ..CommitOptions::default()
        }
    }

    /// The first text that is to be loaded.
    fn first(&self, source: &mut Source) -> EngineResult<Option<Item>> {
        source.skip(self.skip)?;
        loop {
            match source.next()? {
                Some(item) if item.is_blank() => source.count(),
                found => return Ok(found),
            }
        }
    }

    /// Loads the first text into a database in memory, unless it is long: one that cannot be loaded
    /// is to leave none.
    fn rehearse(&self, first: Option<&Item>, clock: Clock) -> EngineResult<()> {
        let is_short = |item: &&Item| item.json.len() as u64 <= input::SHORT_BYTES_MAX;
        let Some(first) = first.filter(is_short) else { return Ok(()) };
        let database = Database::memory()?;
        let mut loader = self.loader(&database, clock)?;
        first.give(|first| loader.load(first, self.commit()))
    }

    /// Loads one after the other until the source ends or the user stops it.
    fn load(
        &self,
        loader: &mut Loader,
        (mut first, source): (Option<Item>, &mut Source),
        interruption: &Interruption,
    ) -> EngineResult<Ended> {
        source.skip(self.skip)?;
        let bar = progress::bar("importing", source.total());
        bar.set_position(source.position());
        let ended = loop {
            let item = first.take().map_or_else(|| source.next(), |first| Ok(Some(first)));
            // Ctrl-C also ends the program at the other end of a pipe: what came last may be cut.
            if interruption.is_asked() {
                break Ended::ByInterruption;
            }
            let Some(item) = item? else { break Ended::AtTheEnd };
            item.give(|item| loader.load(item, self.commit()))?;
            source.count();
            bar.set_position(source.position());
            if source.position().is_multiple_of(REVISIONS_PER_SYNC) {
                loader.flush()?;
            }
        };
        bar.finish_and_clear();
        Ok(ended)
    }

    /// Loads the lines of a file as one array, unless the document has a revision already.
    fn load_array(
        &self,
        path: &Path,
        (session, output): (&Session, &mut Output),
    ) -> Result<Option<Success>> {
        // What is wrong with the file is told before a database is made.
        let text = input::long_text(path)?;
        let database = self.database.open_or_create(session)?;
        let head = edit::head(&database, &self.document)?;
        if head.is_some_and(|head| head.0 > 0) {
            return Ok(None);
        }
        let options = BulkOptions {
            parse: ParseOptions { strict: self.strict },
            lines: true,
            commit: CommitOptions {
                author: self.author.clone(),
                message: self.message.clone(),
                ..CommitOptions::default()
            },
            ..BulkOptions::default()
        };
        let (commit, progress) = bulk::load((&database, &self.document), text, &options)?;
        drop(database);
        if head.is_none() {
            notice!("created the document {}", self.document);
        }
        output.record(&Summary {
            document: &self.document,
            unit: "lines",
            read: progress.values,
            revisions: 1,
            unchanged: 0,
            revision: commit.revision.0,
        })?;
        Ok(Some(Success::Done))
    }

    fn source(&self) -> Result<Source> {
        Ok(match &self.ndjson {
            None => Source::of_files(&self.files),
            Some(path) if self.as_array => Source::of_array(path),
            Some(path) => Source::of_lines(path)?,
        })
    }

    fn clock(&self) -> Result<Clock> {
        Ok(match &self.timestamp_field {
            Some(pointer) => Clock::Field(JsonPointer::parse(pointer)?, self.timestamp_unit),
            None if self.timestamps_from_mtime => Clock::FileTime,
            None => Clock::Now,
        })
    }
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    document: &'a str,
    #[serde(skip)]
    unit: &'static str,
    read: u64,
    revisions: u64,
    unchanged: u64,
    revision: u64,
}

impl Record for Summary<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { document, unit, read, revisions, unchanged, revision } = self;
        let color = palette.revision;
        writeln!(
            out,
            "{document}: {unit} read: {read}, revisions made: {revisions}, unchanged: {unchanged}; \
             now at revision {color}{revision}{color:#}"
        )
    }
}
