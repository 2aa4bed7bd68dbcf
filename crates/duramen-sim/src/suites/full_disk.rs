//! Suite 20: a file system that is really full. Commits are refused, reads go on, and once there is
//! room so do commits: room that comes from elsewhere, or from letting history go. Nothing that was
//! acknowledged, and was not let go, is lost.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};

use duramen::{CommitOptions, Database, Durability, ErrorKind, Options, Retention, Revision};

use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};

const SUITE: Suite = Suite::new("full-disk");
/// Sizes of the file systems, each with `Sync` and with `Interval` commits.
const MEBIBYTES: [u64; 3] = [8, 16, 64];
/// One in so many bytes of the file system is taken up by a file that is removed for the database
/// to work again, or stays.
const BALLAST_PARTS: u64 = 4;
const NAMES: [&str; 2] = ["left", "right"];
/// The larger the file system, the longer the texts, so that all are full after as many commits.
const TEXT_MAX_PER_MEBIBYTE: usize = 500;
/// Stands for a revision in which the document was deleted.
const DELETED: &str = "";
/// Refused commits in a row that show a disk to be full.
const REFUSALS: u64 = 20;
/// Refused commits after which there is no more hope, and the pause after each.
const TRIES_MAX: u64 = 2_000;
const PAUSE_MS: u64 = 5;

/// Fills file systems in memory; needs the right to mount them.
pub(super) fn suite(runs: u64) -> Report {
    if let Err(why) = Mounted::new(1).map(drop) {
        println!("full-disk is SKIPPED: a file system in memory cannot be mounted: {why}");
        return run(SUITE, &[], &|_| Ok(Tally::default()));
    }
    let seeds: Vec<u64> = (0..runs).collect();
    run(SUITE, &seeds, &|seed| super::Replay::FullDisk { seed }.round())
}

/// A file system in memory, until it is dropped.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(mebibytes: u64) -> Check<Self> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let size = format!("size={mebibytes}m");
        let output = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "duramen-full"])
            .arg(folder.path())
            .output()
            .map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(Self(folder));
        }
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A process that is being started may hold the folder for a moment: then it goes with it.
        let unmount =
            Command::new("umount").arg("-l").arg(self.0.path()).stdout(Stdio::null()).status();
        if !unmount.is_ok_and(|status| status.success()) {
            eprintln!("full-disk: {} is still mounted", self.0.path().display());
        }
    }
}

/// How the database is to come by room again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A file that is none of the database's is removed.
    Outside,
    /// Only the newest revision of each document is kept, and what that lets go is compacted.
    Retention,
    /// The same after one of the documents is deleted.
    Deletion,
}

const WAYS: [(Way, &str); 3] =
    [(Way::Outside, "outside"), (Way::Retention, "retention"), (Way::Deletion, "deletion")];

/// Fills one file system.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let (way, way_name) = WAYS[usize::try_from(seed / 6 % 3).unwrap_or(0)];
    let size = MEBIBYTES[usize::try_from(seed / 2 % 3).unwrap_or(0)];
    let durability =
        if seed.is_multiple_of(2) { Durability::Sync } else { Durability::Interval(5) };
    let mounted = Mounted::new(size)?;
    let folder = mounted.0.path();
    let mut ballast = Some(Ballast::new(folder, (size << 20) / BALLAST_PARTS)?);
    let options = Options {
        durability,
        memory_bytes: 2 << 20,
        checkpoint_journal_bytes: 512 << 10,
        ..Options::default()
    };
    let path = folder.join("db");
    let text_max = usize::try_from(size).unwrap_or(1) * TEXT_MAX_PER_MEBIBYTE;
    let mut texts = Texts { by_document: [Vec::new(), Vec::new()], first: [1, 1], text_max };
    let mut random = Random::new(seed);
    let db = said("open", Database::open(&path, options.clone()))?;
    texts.fill(&db, &mut random)?;
    texts.verify(&db).map_err(|what| format!("on the full disk: {what}"))?;
    match way {
        Way::Outside => drop(ballast.take()),
        Way::Retention | Way::Deletion => texts.let_go(&db, way)?,
    }
    texts.verify(&db).map_err(|what| format!("with room again: {what}"))?;
    texts.go_on(&db, &mut random)?;
    texts.verify(&db)?;
    said("close", db.close())?;
    let db = said("reopen", Database::open(&path, options))?;
    texts.verify(&db).map_err(|what| format!("after reopening: {what}"))?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    drop(ballast);
    let kind = if durability == Durability::Sync { "sync" } else { "interval" };
    Ok(Tally { seen: BTreeSet::from([kind, way_name]), ..Tally::default() })
}

/// A file that takes up room until it is dropped.
struct Ballast(Option<tempfile::NamedTempFile>);

impl Ballast {
    fn new(folder: &Path, bytes: u64) -> Check<Self> {
        use std::io::Write;
        let mut file =
            tempfile::NamedTempFile::new_in(folder).map_err(|error| error.to_string())?;
        for _ in 0..bytes >> 10 {
            file.write_all(&[0; 1 << 10]).map_err(|error| error.to_string())?;
        }
        Ok(Self(Some(file)))
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // Its file goes with it.
        drop(self.0.take());
    }
}

/// What was acknowledged.
struct Texts {
    by_document: [Vec<String>; 2],
    /// The first revision of each document that is kept.
    first: [u64; 2],
    /// Characters of a text at the most.
    text_max: usize,
}

impl Texts {
    fn revisions(&self) -> u64 {
        self.by_document.iter().map(|texts| texts.len() as u64).sum()
    }

    /// Commits until the disk is full; between two commits that are refused others may pass.
    fn fill(&mut self, db: &Database, random: &mut Random) -> Check {
        let mut refused = 0;
        while refused < REFUSALS {
            refused = if self.commit(db, random)? { 0 } else { refused + 1 };
        }
        Ok(())
    }

    /// Commits until so many passed: then there is room again.
    fn go_on(&mut self, db: &Database, random: &mut Random) -> Check {
        let (before, mut tries) = (self.revisions(), 0);
        while self.revisions() < before + REFUSALS {
            // What works in the background takes room until it is done, or finds too little.
            if !self.commit(db, random)? {
                tries += 1;
                crate::stopwatch::wait(PAUSE_MS);
            }
            if tries == TRIES_MAX {
                return Err("commits are refused although there is room again".to_owned());
            }
        }
        Ok(())
    }

    /// Deletes a document or not, keeps the newest revision of each, and compacts.
    fn let_go(&mut self, db: &Database, way: Way) -> Check {
        let options = CommitOptions::default();
        for (at, name) in NAMES.iter().enumerate() {
            let document = said("document", db.document(name))?;
            if way == Way::Deletion && at == 0 {
                said("delete", db.delete_document(name, &options))?;
                self.by_document[at].push(DELETED.to_owned());
            }
            said("retain", document.retain(Retention::Head, &options))?;
            self.first[at] = self.by_document[at].len() as u64;
        }
        said("compact", db.compact(&mut |_, _| ControlFlow::Continue(())))
    }

    /// Whether a commit passed; one that the disk has no room for is refused as `Full`.
    fn commit(&mut self, db: &Database, random: &mut Random) -> Check<bool> {
        let at = random.index(NAMES.len());
        let mut noise = vec![0; 1 + random.index(self.text_max)];
        random.fill(&mut noise);
        let text: String = noise.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
        let json =
            format!("{{\"revision\":{},\"text\":\"{text}\"}}", self.by_document[at].len() + 1);
        let mut transaction = db.transaction();
        let committed = transaction
            .put(NAMES[at], json.as_bytes())
            .and_then(|()| transaction.commit(&CommitOptions::default()));
        match committed {
            Ok(_) => {
                self.by_document[at].push(json);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::Full => Ok(false),
            Err(error) => said("commit", Err(error)),
        }
    }

    fn verify(&self, db: &Database) -> Check {
        for ((name, texts), &first) in NAMES.iter().zip(&self.by_document).zip(&self.first) {
            let document = said("document", db.document(name))?;
            let head = said("head", document.head_revision())?;
            if head.0 != texts.len() as u64 {
                return Err(format!("{name} has {head} revisions, {} were told", texts.len()));
            }
            for (revision, text) in (1..).map(Revision).zip(texts) {
                if revision.0 < first || text == DELETED {
                    if document.at(revision).is_ok() {
                        return Err(format!("revision {revision} of {name} is still there"));
                    }
                    continue;
                }
                let json = said("at", document.at(revision).and_then(|at| at.to_json()))?;
                if json != *text {
                    return Err(format!("revision {revision} of {name} is another value"));
                }
            }
        }
        Ok(())
    }
}
