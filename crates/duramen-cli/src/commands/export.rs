//! `duramen export`: one revision, or all of them, for other programs and other databases.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use duramen::{Document, Format, JsonPointer};

use crate::arguments::{At, ReadDocument};
use crate::exit::Success;
use crate::output::Output;
use crate::session::Session;
use crate::{Result, history_line, outfile, progress};

const EXAMPLES: &str = "\
Examples:
  duramen export shop.duramen config > config.json
  duramen export shop.duramen config --at 2024-05-01 --out config.json
  duramen export shop.duramen config --history --out config.ndjson
  duramen export shop.duramen config --history | duramen import new.duramen config --history -

With --history each line is a revision, oldest first: revision, timestamp, committed, author,
message, hash as in `duramen log`, and one of
  value    the whole value
  patch    a JSON Patch (RFC 6902) to the revision before, which leaves open where members stand;
           order lists those that go elsewhere then, one after the other: {\"path\": \"/a/x\",
           \"before\": \"y\"}, without before to be the last
  deleted  true
  value_follows  true: the next line is the value, as in a first revision of over 16 MiB
and of records whose versions do not follow from the revisions that are left, because what was
changed was purged or revisions were dropped by retention,
  counted   keys of those that got their next version though nothing of them differs
  versions  the versions that others have, {KEY: VERSION}
  departed  in the first revision, the versions that those had of which none of the revisions that
            are left has anything, {KEY: VERSION}: one that comes back goes on counting
  departed_follow  their SHA-256: they are a line of their own, as of over 1 MiB, behind the value
            if that follows too
If the document has options or tags, or something of it was purged, a line before them tells that:
{\"options\": {\"ids\": {PATH: FIELD}, \"maps\": [PATH]}, \"tags\": [{name, revision, hash,
timestamp, author, message}], \"purges\": [{place, timestamp, author, message}]}.
`import --history` makes the same revisions with the same timestamps, and refuses one that has not
its hash. Revisions count from 1 there, also where older ones are not kept any more.";

/// Write one revision of a document as JSON, or its whole history as NDJSON
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Export {
    #[command(flatten)]
    document: ReadDocument,
    #[command(flatten)]
    at: At,
    /// All revisions up to the newest, one a line
    #[arg(long, conflicts_with = "at")]
    history: bool,
    /// Write to this file, which is replaced once all is written
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
}

impl Export {
    pub(crate) fn run(&self, session: &Session, output: &mut Output) -> Result<Success> {
        let document = self.document.open(session)?;
        match self.out.as_deref().filter(|path| path.as_os_str() != "-") {
            None => self.write(&document, output.stream())?,
            Some(path) => outfile::replace(path, |out| self.write(&document, out))?,
        }
        Ok(Success::Done)
    }

    fn write(&self, document: &Document, out: &mut dyn Write) -> Result<()> {
        if self.history {
            return write_history(document, out);
        }
        let snapshot = self.at.snapshot(document)?;
        snapshot.write_json(&JsonPointer::root(), &Format::default(), out)?;
        Ok(out.write_all(b"\n")?)
    }
}

fn write_history(document: &Document, out: &mut dyn Write) -> Result<()> {
    let mut history = document.export()?;
    history_line::write_facts(&history.facts()?, out)?;
    let bar = progress::bar("exporting", Some(history.remaining()));
    while let Some(revision) = history.next().transpose()? {
        history_line::write(&revision, out)?;
        if revision.long_texts() > 0 {
            history.write_long(&revision, out)?;
            out.write_all(b"\n")?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
