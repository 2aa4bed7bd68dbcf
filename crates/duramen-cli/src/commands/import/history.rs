//! The revisions of an exported history, taken over as they are.

use std::io::{self, BufRead, Write};
use std::path::Path;

use duramen::{Database, ErrorKind, ExportedRevision, HistoryImport, Result as EngineResult};
use serde::Serialize;

use super::safe;
use crate::exit::{Failure, Success};
use crate::history_line::HistoryLine;
use crate::input::LongLine;
use crate::interruption::Interruption;
use crate::notice::notice;
use crate::output::{Output, Palette, Record};
use crate::{Result, bulk, history_line, input, progress};

/// Reads the history in `path` into the document that `import` is about.
pub(super) fn run(
    (database, document): (&Database, &str),
    mut import: HistoryImport,
    path: &Path,
    (interruption, output): (&Interruption, &mut Output),
) -> Result<Success> {
    let mut counts = Counts::default();
    let loaded = load(&mut import, path, &mut counts, interruption);
    // Whatever the end, what was loaded is made safe before anything is said about it.
    database.flush()?;
    if let Err(error) = &loaded
        && counts.made > 0
    {
        notice!("{}", stay(document, counts.read, error.kind()));
    }
    if !loaded? {
        let safe = safe(counts.read, "revisions");
        let message = format!("interrupted: {safe}; the same command goes on");
        return Err(Failure::Interrupted(message));
    }
    let lacks_departed = import.lacks_departed();
    let finished = import.finish();
    if finished.is_err() && counts.made > 0 {
        notice!(
            "all revisions of the history are in and stay in {document}; once what is wrong beside \
             them is put right, the same command goes on"
        );
    }
    let revision = finished?.0;
    database.flush()?;
    if lacks_departed {
        notice!(
            "{document} has all revisions of the history, but does not know all records that were \
             deleted before them, which would count their versions from 1 again: import the \
             history into a new document to have them go on"
        );
    }
    let Counts { read, made } = counts;
    output.record(&Summary { document, read, revisions: made, present: read - made, revision })?;
    Ok(Success::Done)
}

/// What stays of a history that was not taken over to its end, and how to go on.
fn stay(document: &str, read: u64, why: ErrorKind) -> String {
    let stay = match read {
        1 => format!("revision 1 of the history is in and stays in {document}"),
        _ => format!("revisions 1 to {read} of the history are in and stay in {document}"),
    };
    match why {
        ErrorKind::Invalid | ErrorKind::Corrupt => {
            format!("{stay}; with a history that is right from there on the same command goes on")
        }
        _ => format!("{stay}; the same command goes on"),
    }
}

#[derive(Default)]
struct Counts {
    read: u64,
    made: u64,
}

/// Takes one revision after the other; false if the user stopped it.
fn load(
    import: &mut HistoryImport,
    path: &Path,
    counts: &mut Counts,
    interruption: &Interruption,
) -> EngineResult<bool> {
    let mut lines = input::lines(path)?;
    let bar = progress::bar("importing", None);
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        number += 1;
        line.clear();
        let length = lines.read_until(b'\n', &mut line);
        let length = length.map_err(|error| input::failure(path, error))?;
        if interruption.is_asked() {
            return Ok(false);
        }
        if length == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let taken = history_line::parse(&line).and_then(|line| match line {
            HistoryLine::Facts(facts) => import.set_facts(facts).map(|()| None),
            HistoryLine::Revision(revision) if revision.long_texts() > 0 => {
                number += revision.long_texts() as u64;
                push_long(import, &revision, &mut *lines, interruption).map(Some)
            }
            HistoryLine::Revision(revision) => import.push(&revision).map(Some),
        });
        // What comes through a pipe is cut by Ctrl-C as well.
        if taken.is_err() && interruption.is_asked() {
            return Ok(false);
        }
        let context = format_args!("{}, line {number}", input::name(path));
        if let Some(is_new) = taken.map_err(|error| error.in_context(context))? {
            counts.made += u64::from(is_new);
            counts.read += 1;
        }
        bar.set_position(counts.read);
    }
    bar.finish_and_clear();
    Ok(true)
}

/// Takes a revision of which something is the next line, or the next two.
fn push_long(
    import: &mut HistoryImport,
    revision: &ExportedRevision,
    lines: &mut dyn BufRead,
    interruption: &Interruption,
) -> EngineResult<bool> {
    let bar = progress::text("importing", None);
    let mut tell = bulk::tell(&bar, interruption);
    let mut line = LongLine::new(lines, revision.long_texts(), interruption);
    let made = import.push_long(revision, &mut line, &mut tell);
    bar.finish_and_clear();
    let made = made?;
    line.end().map_err(|error| duramen::Error::io("cannot read the history", error))?;
    Ok(made)
}

#[derive(Debug, Serialize)]
struct Summary<'a> {
    document: &'a str,
    read: u64,
    revisions: u64,
    present: u64,
    revision: u64,
}

impl Record for Summary<'_> {
    fn print(&self, palette: &Palette, out: &mut dyn Write) -> io::Result<()> {
        let Self { document, read, revisions, present, revision } = self;
        let color = palette.revision;
        writeln!(
            out,
            "{document}: revisions read: {read}, made: {revisions}, there before: {present}; now \
             at revision {color}{revision}{color:#}"
        )
    }
}
