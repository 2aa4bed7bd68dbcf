//! Suite 7: a process that commits on the real disk is killed, and what it was told is there.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use duramen::{CommitOptions, Database, Durability, Options, Revision};

use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::stopwatch::wait;

/// Kills of one database, one after the other.
const KILLS: u64 = 10;
const NAMES: [&str; 2] = ["left", "right"];

/// Kills child processes, half of them with `Interval` commits.
pub(super) fn suite(kills: u64, fresh: u64) -> Report {
    run(Suite::new("kills"), &super::seeds(kills / KILLS, fresh), &round)
}

fn round(seed: u64) -> Check<Tally> {
    let mut random = Random::new(seed);
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("db");
    let mut tally = Tally::default();
    for _ in 0..KILLS {
        let durability = random.choose(&["sync", "interval"]);
        let acknowledged = killed(&path, durability, 10 + random.below(60))?;
        verify(&path, acknowledged).map_err(|what| format!("seed {seed}: {what}"))?;
        tally.losses += 1;
        tally.seen.insert(durability);
    }
    Ok(tally)
}

/// Starts a child, kills it after some time: the last revision it said was committed.
fn killed(path: &Path, durability: &str, millis: u64) -> Check<u64> {
    let failed = |error: std::io::Error| format!("the child: {error}");
    let program = std::env::current_exe().map_err(failed)?;
    let mut child = Command::new(program)
        .args([Path::new("child"), path, Path::new(durability)])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    wait(millis);
    child.kill().map_err(failed)?;
    let status = child.wait().map_err(failed)?;
    if status.code().is_some() {
        return Err(format!("the child ended by itself: {status}"));
    }
    let mut said = String::new();
    let mut pipe = child.stdout.take().ok_or("the child has no output")?;
    pipe.read_to_string(&mut said).map_err(failed)?;
    // A line that is cut was never said.
    let whole = said.rsplit_once('\n').map_or("", |(whole, _)| whole);
    Ok(whole.lines().last().and_then(|line| line.parse().ok()).unwrap_or(0))
}

/// Everything acknowledged is there, at most one more, in both documents alike.
fn verify(path: &Path, acknowledged: u64) -> Check {
    if acknowledged == 0 && !path.join("MANIFEST").exists() {
        return Ok(());
    }
    let db = said("open", Database::open(path, Options::default()))?;
    let mut heads = Vec::new();
    for name in NAMES {
        let Ok(document) = db.document(name) else {
            heads.push(0);
            continue;
        };
        let head = said("head", document.head_revision())?;
        heads.push(head.0);
        for revision in 1..=head.0 {
            let text = said("at", document.at(Revision(revision)).and_then(|at| at.to_json()))?;
            if text != value(name, revision) {
                return Err(format!("revision {revision} of {name} is {text}"));
            }
        }
    }
    if heads[0] != heads[1] {
        return Err(format!("a commit of two documents is half there: {heads:?}"));
    }
    if heads[0] < acknowledged {
        return Err(format!("revision {acknowledged} was acknowledged, {} is the last", heads[0]));
    }
    let report = said("check", db.check())?;
    match report.findings.first() {
        Some(finding) => Err(format!("check found {}: {}", finding.place, finding.message)),
        None => said("close", db.close()),
    }
}

/// The value of a document in a revision.
fn value(name: &str, revision: u64) -> String {
    let mut text = format!(r#"{{"name":"{name}","revision":{revision},"list":["#);
    for element in 0..revision % 7 {
        let comma = if element > 0 { "," } else { "" };
        let _ =
            write!(text, r#"{comma}{{"n":{},"odd":{}}}"#, revision + element, revision % 2 == 1);
    }
    text.push_str("]}");
    text
}

/// Commits to both documents at once and says so, until it is killed.
pub(crate) fn child(folder: &str, durability: &str) -> bool {
    let durability = match durability {
        "sync" => Durability::Sync,
        _ => Durability::Interval(20),
    };
    let options = Options {
        durability,
        checkpoint_journal_bytes: 32 << 10,
        memory_bytes: 128 << 10,
        // A process that is being started holds its parent's locks until it runs.
        wait_ms: 5_000,
        ..Options::default()
    };
    let committed = Database::open(folder, options).and_then(|db| {
        let head = db.document(NAMES[0]).and_then(|document| document.head_revision());
        let mut revision = head.map_or(0, |head| head.0);
        loop {
            revision += 1;
            let mut transaction = db.transaction();
            for name in NAMES {
                transaction.put(name, value(name, revision).as_bytes())?;
            }
            transaction.commit(&CommitOptions::default())?;
            let line = format!("{revision}\n");
            // The parent may have gone: then there is nobody left to tell.
            if std::io::stdout().write_all(line.as_bytes()).is_err() {
                return Ok(());
            }
        }
    });
    if let Err(error) = &committed {
        eprintln!("the child failed: {error}");
    }
    committed.is_ok()
}
