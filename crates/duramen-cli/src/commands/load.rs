//! `duramen load`: a new database from a dump.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueHint};
use duramen::io::DirectoryDevice;
use duramen::{DumpItem, DumpLoad, Error, ErrorKind, ExportedFacts, ExportedRevision, Options};

use crate::dump_line::{self, DumpLine, Summary};
use crate::exit::{Failure, Success};
use crate::input::LongLine;
use crate::interruption::Interruption;
use crate::output::Output;
use crate::{Result, bulk, input, progress};

const EXAMPLES: &str = "\
Examples:
  duramen load copy.duramen shop.ndjson
  duramen dump shop.duramen | duramen load copy.duramen -

The new database has the same documents with the same revisions and timestamps, the same series
with the same points as of the same commits, and the same SHA-256. It is made once all of the dump
has been read and verifies: before that, and after Ctrl-C or an error, there is none. Where old
revisions of a document are not kept any more, those that are left count from 1.";

/// Make a new database from a dump
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Load {
    /// The folder of the new database, empty or missing
    #[arg(value_name = "DB", value_hint = ValueHint::DirPath)]
    database: PathBuf,
    /// What `dump` wrote; - is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl Load {
    pub(crate) fn run(&self, output: &mut Output) -> Result<Success> {
        let interruption = Interruption::watch();
        let mut lines = Lines::open(&self.file)?;
        let device = Arc::new(DirectoryDevice::new(&self.database));
        let load = DumpLoad::into_new(device, Options::default());
        let mut load = load.map_err(|error| error.in_context(self.database.display()))?;
        let summary = lines.load(&mut load, &interruption).map_err(|failure| match failure {
            // Else it would be told as that of the dump.
            Failure::Engine(error) if error.kind() == ErrorKind::Full => {
                error.in_context(self.database.display()).into()
            }
            failure => failure,
        })?;
        // From here on it is there whole, or not at all; what was asked until then still counts.
        if interruption.is_asked() {
            return Err(interrupted());
        }
        let loaded = load.finish(Some(summary.hash()?));
        let loaded = loaded.map_err(|error| error.in_context(input::name(&self.file)))?;
        output.record(&Summary::of(&loaded))?;
        Ok(Success::Done)
    }
}

/// The lines of a dump.
struct Lines<'a> {
    path: &'a Path,
    content: Box<dyn BufRead>,
    number: u64,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Result<Self> {
        Ok(Self { path, content: input::lines(path)?, number: 0, line: Vec::new() })
    }

    /// Reads the next line; whether there is one.
    fn read(&mut self) -> duramen::Result<bool> {
        self.line.clear();
        self.number += 1;
        let length = self.content.read_until(b'\n', &mut self.line);
        Ok(length.map_err(|error| input::failure(self.path, error))? > 0)
    }

    /// The next line; none at the end.
    fn next(&mut self) -> duramen::Result<Option<DumpLine>> {
        if !self.read()? {
            return Ok(None);
        }
        // What has no end in its first line need not be a dump.
        let is_cut = self.number > 1 && !self.line.ends_with(b"\n");
        let line = dump_line::parse(&self.line).map_err(|error| match error.kind() {
            ErrorKind::Invalid if is_cut => self.cut("it ends within this line"),
            _ => self.in_context(error),
        })?;
        Ok(Some(line))
    }

    fn in_context(&self, error: Error) -> Error {
        error.in_context(format_args!("{}, line {}", input::name(self.path), self.number))
    }

    fn invalid(&self, message: &str) -> Failure {
        self.in_context(Error::new(ErrorKind::Invalid, message)).into()
    }

    fn cut(&self, message: &str) -> Error {
        self.in_context(Error::new(ErrorKind::Corrupt, format!("the dump was cut: {message}")))
    }

    /// Loads all of them up to the last one, which is given back.
    fn load(&mut self, load: &mut DumpLoad, interruption: &Interruption) -> Result<Summary> {
        if !matches!(self.next()?, Some(DumpLine::Head)) {
            return Err(self.invalid("a dump begins with the line {\"dump\":1}"));
        }
        let bar = progress::bar("loading", None);
        // A document waits for the next line, which may be its options and tags.
        let mut document = None;
        loop {
            let line = self.next()?;
            // Ctrl-C also ends the program at the other end of a pipe: what came last may be cut.
            if interruption.is_asked() {
                return Err(interrupted());
            }
            let Some(line) = line else {
                return Err(self.cut("the last line, with the SHA-256, is missing").into());
            };
            if let Some(name) = document.take() {
                let facts = match &line {
                    DumpLine::Facts(facts) => facts.clone(),
                    _ => ExportedFacts::default(),
                };
                self.push(load, DumpItem::Document { name, facts })?;
            } else if matches!(line, DumpLine::Facts(_)) {
                return Err(self.invalid("options, tags and purges stand right behind a document"));
            }
            match line {
                DumpLine::Facts(_) => {}
                DumpLine::Head => return Err(self.invalid("another dump begins")),
                DumpLine::Document(name) => document = Some(name),
                DumpLine::Revision(revision) if revision.long_texts() > 0 => {
                    self.push_long(load, *revision, interruption)?;
                }
                DumpLine::Revision(revision) => self.push(load, DumpItem::Revision(*revision))?,
                DumpLine::Series(item) => self.push(load, item)?,
                DumpLine::Summary(summary) => {
                    bar.finish_and_clear();
                    return self.end(summary);
                }
            }
            bar.inc(1);
        }
    }

    fn push(&self, load: &mut DumpLoad, item: DumpItem) -> Result<()> {
        Ok(load.push(item).map_err(|error| self.in_context(error))?)
    }

    /// Loads a revision of which something is the next line, or the next two.
    fn push_long(
        &mut self,
        load: &mut DumpLoad,
        revision: ExportedRevision,
        interruption: &Interruption,
    ) -> Result<()> {
        let count = revision.long_texts();
        self.number += count as u64;
        let bar = progress::text("loading", None);
        let mut tell = bulk::tell(&bar, interruption);
        let mut lines = LongLine::new(&mut *self.content, count, interruption);
        let pushed = load.push_long(revision, &mut lines, &mut tell);
        bar.finish_and_clear();
        // What comes through a pipe is cut by Ctrl-C as well.
        pushed.map_err(|error| {
            if interruption.is_asked() { interrupted() } else { self.in_context(error).into() }
        })
    }

    fn end(&mut self, summary: Summary) -> Result<Summary> {
        if self.read()? {
            return Err(self.invalid("something stands behind the end of the dump"));
        }
        Ok(summary)
    }
}

fn interrupted() -> Failure {
    Failure::Interrupted("interrupted: there is no new database".to_owned())
}
