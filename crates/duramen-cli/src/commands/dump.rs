//! `duramen dump`: all of a database as text.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use duramen::{Dump as Contents, DumpItem};
use indicatif::ProgressBar;

use crate::arguments::ReadDatabase;
use crate::dump_line::{self, Summary};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, outfile, progress};

const EXAMPLES: &str = "\
Examples:
  duramen dump shop.duramen --out shop.ndjson
  duramen dump shop.duramen | zstd > shop.ndjson.zst
  duramen dump shop.duramen --hash
  duramen dump shop.duramen | duramen load copy.duramen -

The dump is of the last commit, beside processes that go on writing. The first line names the form.
Then each document has a line with its name, one with its options, tags and purges if it has any,
and one for each revision as `export --history` writes them, counted from 1 also where older ones
are not kept any more. The last line counts them and has the
SHA-256 of what they say. Databases have the same SHA-256 exactly if their documents have the same
names, options, tags and purges, and the same revisions with the same timestamps, authors, messages,
values and versions of records; how they are stored, when they were committed and what is in one
commit makes no difference.

Series stand before the documents: the rules of what is kept, what each of them is, the commits that
changed any (number and time), then each one's points with their commits, and the spans that commits
deleted. So what was written over or deleted is there too, and is read `--at` its commit after a
`load`. Times are
microseconds since 1970; a float that JSON has no number for is its bits. Not there are series that
were dropped, points that their series does not keep any more, and the rows of rollups. Those are
made again from the points; where the points have gone, only a backup has them.";

/// Write all documents and series with all their history as NDJSON
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dump {
    #[command(flatten)]
    database: ReadDatabase,
    /// Write to this file, which is replaced once all is written
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    /// Only the last line: the counts and the SHA-256
    #[arg(long, conflicts_with = "out")]
    hash: bool,
}

impl Dump {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let contents = self.database.open(session)?.snapshot().dump()?;
        if self.hash {
            let summary = summarize(contents)?;
            output.record(&summary)?;
            return Ok(Success::Done);
        }
        match self.out.as_deref().filter(|path| path.as_os_str() != "-") {
            None => {
                let summary = write(contents, output.stream())?;
                summary.write(output.stream())?;
            }
            Some(path) => {
                outfile::replace(path, |out| write(contents, out)?.write(out))?;
            }
        }
        Ok(Success::Done)
    }
}

/// What the last line says.
fn summarize(mut contents: Contents) -> Result<Summary> {
    let bar = progress_of(&contents);
    while let Some(item) = contents.next().transpose()? {
        if matches!(item, DumpItem::Document { .. }) {
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    Ok(Summary::of(&contents.summary()))
}

fn progress_of(contents: &Contents) -> ProgressBar {
    progress::bar("dumping", Some(u64::try_from(contents.remaining()).unwrap_or(u64::MAX)))
}

/// Writes all lines but the last.
fn write(mut contents: Contents, out: &mut dyn Write) -> Result<Summary> {
    dump_line::write_head(&contents, out)?;
    let bar = progress_of(&contents);
    while let Some(item) = contents.next().transpose()? {
        dump_line::write(&item, out)?;
        match item {
            DumpItem::Document { .. } => bar.inc(1),
            DumpItem::Revision(revision) if revision.long_texts() > 0 => {
                contents.write_long(&revision, out)?;
                out.write_all(b"\n")?;
            }
            _ => {}
        }
    }
    bar.finish_and_clear();
    Ok(Summary::of(&contents.summary()))
}
