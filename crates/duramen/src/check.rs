//! Verifies a database: every checksum and every cell of its segments, and its documents.

use crate::engine::{CATALOGUE, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::revision::{CommitSequence, Micros, Revision};
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::schema::ROOT;
use crate::tree::serialize::Format;
use crate::tree::verify::Verifier;

/// Something that does not verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: a file, or a document and revision.
    pub place: String,
    /// What was expected and what was found.
    pub message: String,
}

/// What a check looked at and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckReport {
    /// Segments whose every block was read.
    pub segments: u64,
    /// Cells of those segments that were decoded.
    pub cells: u64,
    /// Documents whose rows and values were read.
    pub documents: u64,
    /// Series whose points were all read, as of the last commit.
    pub series: u64,
    /// Revisions whose rows were read.
    pub revisions: u64,
    /// Indexes that were held against the records.
    pub indexes: u64,
    /// Content hashes that checkpoints and tags had kept, and that were made again.
    pub hashes: u64,
    /// Everything that does not verify; empty if all is well.
    pub findings: Vec<Finding>,
}

mod facts;
mod hashes;
mod indexes;
mod series;
mod text;

use text::ParsedText;

/// Revisions of each document that are read whole: the first, the last, and some between.
const WHOLE_READS: u64 = 16;

/// How often a check begins anew when a purge overwrites what it reads, before it gives up.
const TRIES: usize = 3;

pub(crate) fn check(engine: &Engine) -> Result<CheckReport> {
    // Who reads beside the process that purges has to refresh, and is told so.
    let tries = if engine.journal().is_ok() { TRIES } else { 1 };
    for _ in 1..tries {
        match check_once(engine) {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            checked => return checked,
        }
    }
    check_once(engine)
}

fn check_once(engine: &Engine) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let (view, published) = (engine.view(), engine.published());
    report.segments = view.store.infos().len() as u64;
    let open = |id| view.tree(id);
    let mut verifier = Verifier::new(&open);
    for (file, error) in view.store.check(&mut |key, cell| verifier.verify(key, cell)) {
        // What a purge replaced is no damage.
        if error.kind() == ErrorKind::Busy {
            return Err(error);
        }
        report.add(&file, &error);
    }
    report.cells = verifier.cells();
    let catalogue = report.found("catalogue", view.tree(CATALOGUE))?;
    if let Some(tree) = catalogue {
        report.check_tree("catalogue", &tree, published);
    }
    report.check_series((&view, published), engine.now())?;
    let names = report.found("catalogue", view.names(published))?.unwrap_or_default();
    report.check_names(&names);
    for (name, found) in names {
        let place = format!("document {name:?}");
        let Some(tree) = report.found(&place, view.tree(found.tree))? else { continue };
        if found.is_free() {
            report.check_free(&name, tree.head_at(published)?);
        } else {
            report.documents += 1;
            report.check_tree(&place, &tree, published);
            let checked = report.check_facts(&place, (&view, published), (&tree, found));
            report.found(&place, checked)?;
            let checked = report.check_indexes(&place, (&view, published), &tree);
            report.found(&place, checked)?;
        }
    }
    Ok(report)
}

impl CheckReport {
    /// Whether all is well.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// What there is at a place; damage there is a finding, any other error ends the check.
    fn found<T>(&mut self, place: &str, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.add(place, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn add(&mut self, place: &str, error: &Error) {
        let message = error.to_string();
        // An error may name its place itself.
        let rest = message.strip_prefix(place).filter(|rest| rest.starts_with([':', ',']));
        let rest = rest.map(|rest| rest.trim_start_matches([':', ',', ' ']));
        let message = rest.unwrap_or(&message).to_owned();
        self.findings.push(Finding { place: place.to_owned(), message });
    }

    fn check_tree(&mut self, place: &str, tree: &Tree, published: CommitSequence) {
        let checked = tree.head_at(published).and_then(|head| {
            self.check_rows(place, tree, head)?;
            let step = (head.0 / WHOLE_READS).max(1);
            let kept = tree.data.read().kept.clone();
            let first = u64::from(kept.first());
            let between = (first..=head.0).step_by(usize::try_from(step).unwrap_or(usize::MAX));
            let pinned = kept.pinned().iter().map(|&revision| revision.into());
            let whole = pinned.chain(between).chain([head.0]);
            for revision in whole.filter(|&revision| revision > 0) {
                if let Err(error) = check_value(tree, Revision(revision))
                    && tree.check_kept(Revision(revision)).is_ok()
                {
                    self.add(&format!("{place}, revision {revision}"), &error);
                }
            }
            self.check_hashes(place, tree)
        });
        if let Err(error) = checked {
            self.add(place, &error);
        }
    }

    /// Rows are there for every revision, and times and sequences rise.
    fn check_rows(&mut self, place: &str, tree: &Tree, head: Revision) -> Result<()> {
        let mut before = (Micros(i64::MIN), Micros(i64::MIN), CommitSequence(0));
        let kept = tree.data.read().kept.clone();
        let pinned = kept.pinned().iter().map(|&revision| u64::from(revision));
        for revision in pinned.chain(u64::from(kept.first())..=head.0).map(Revision) {
            let row = match tree.row(revision) {
                // A compaction may drop it meanwhile.
                Err(_) if tree.check_kept(revision).is_err() => continue,
                row => row?,
            };
            self.revisions += 1;
            let now = (row.timestamp, row.committed, row.sequence);
            if now.0 <= before.0 || now.1 <= before.1 || now.2 <= before.2 {
                self.findings.push(Finding {
                    place: format!("{place}, revision {revision}"),
                    message: format!("expected times and sequence above {before:?}, found {now:?}"),
                });
            }
            before = now;
        }
        Ok(())
    }
}

/// The value of a revision prints, and what it prints is JSON.
fn check_value(tree: &Tree, revision: Revision) -> Result<()> {
    if tree.deleted_in(short(revision))?.is_some() {
        return Ok(());
    }
    loop {
        let (erasures, mut text) = (tree.erasures(), ParsedText::default());
        let place = (node(ROOT, 0), short(revision));
        let printed = tree.write_json(place, &Format::default(), &mut text);
        // What began before something was purged may have parts of it.
        if tree.erasures() == erasures {
            // What is wrong with the text ends its printing.
            return text.end(printed);
        }
    }
}
