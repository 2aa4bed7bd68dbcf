//! Compares a database with its model: every document, every revision, rows, histories, times.

use duramen::{CommitSequence, Database, Document, LogEntry, LogQuery, Micros, Revision};

use crate::Random;
use crate::expectation::{self, Check, Model};
use crate::specimen::{Json, Step, pointer};

/// What may be missing of the commits that the model knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// What no sync made durable.
    Power,
    /// Nothing that was acknowledged.
    Process,
}

/// After a restart: finds how many commits survived, sets the model to them and compares all.
pub(crate) fn adopt(model: &mut Model, db: &Database, loss: Loss) -> Check {
    let found = said("stats", db.stats())?.sequence.0;
    let least = match loss {
        Loss::Power => model.durable,
        Loss::Process => model.acknowledged,
    };
    let most = model.acknowledged + u64::from(model.under_way.is_some());
    if found < least || found > most {
        return Err(format!("commit {found} is the last, expected {least} to {most}"));
    }
    let under_way = model.under_way.take();
    if let Some(staged) = under_way.filter(|_| found > model.acknowledged) {
        let before = model.clone();
        let is_changed = |name: &str| {
            let heads = before.documents.get(name).map_or(0, |document| document.revisions.len());
            let head = db.document(name).and_then(|document| document.head_revision());
            head.is_ok_and(|head| head.0 > heads as u64)
        };
        for (name, value) in &staged.values {
            if before.differs(name, value.as_ref()) && !is_changed(name) {
                return Err(format!("commit {found} is there without its change of {name:?}"));
            }
        }
        model.apply(staged, None, &is_changed);
    }
    model.truncate(found);
    // Whoever reads sees it, so it must not be lost any more.
    model.synced();
    compare(model, db)
}

/// Compares everything that can be read with the model.
pub(crate) fn compare(model: &mut Model, db: &Database) -> Check {
    let sequence = said("stats", db.stats())?.sequence.0;
    equal("the last commit", &sequence, &model.acknowledged)?;
    let names = said("documents", db.documents())?;
    equal("documents", &names, &model.documents.keys().cloned().collect::<Vec<_>>())?;
    for (name, document) in &mut model.documents {
        let found = said("document", db.document(name))?;
        compare_document(document, &found).map_err(|what| format!("document {name:?}: {what}"))?;
    }
    Ok(())
}

/// Compares, and lets the database check itself.
pub(crate) fn examine(model: &mut Model, db: &Database, random: &mut Random) -> Check {
    compare(model, db)?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    for (name, document) in &model.documents {
        if random.one_in(2) {
            let found = said("document", db.document(name))?;
            let compared = compare_history(document, &found, random);
            compared.map_err(|what| format!("document {name:?}: {what}"))?;
        }
    }
    Ok(())
}

fn compare_document(model: &mut expectation::Document, found: &Document) -> Check {
    let head = said("head", found.head_revision())?;
    equal("revisions", &head.0, &(model.revisions.len() as u64))?;
    let log = said("log", found.log(&LogQuery::default()))?;
    let entries: Vec<LogEntry> = said("log", log.collect())?;
    equal("entries of the log", &entries.len(), &model.revisions.len())?;
    for (entry, revision) in entries.iter().rev().zip(&mut model.revisions) {
        compare_entry(revision, entry)
            .map_err(|what| format!("revision {}: {what}", entry.revision))?;
    }
    let timestamps = said("timestamps", found.timestamps())?;
    let expected: Vec<Micros> = entries.iter().rev().map(|entry| entry.timestamp).collect();
    equal("timestamps", &timestamps, &expected)?;
    for (number, revision) in (1..).map(Revision).zip(&model.revisions) {
        let text = said("at", found.at(number).and_then(|snapshot| snapshot.to_json()))?;
        equal(&format!("revision {number}"), text.as_str(), &revision.text)?;
    }
    Ok(())
}

fn compare_entry(model: &mut expectation::Revision, entry: &LogEntry) -> Check {
    let committed = *model.committed.get_or_insert(entry.committed.0);
    equal("commit timestamp", &entry.committed.0, &committed)?;
    let timestamp = model.facts.timestamp.map_or(committed, |given| given.min(committed));
    equal("timestamp", &entry.timestamp.0, &timestamp)?;
    equal("sequence", &entry.sequence, &CommitSequence(model.sequence))?;
    equal("author", &entry.author, &model.facts.author)?;
    equal("message", &entry.message, &model.facts.message)
}

/// Follows one value that only fields lead to through all revisions, and finds one by its time.
fn compare_history(model: &expectation::Document, found: &Document, random: &mut Random) -> Check {
    let Some(head) = model.head() else { return Ok(()) };
    let revision = random.index(model.revisions.len());
    let time = said("timestamps", found.timestamps())?[revision];
    let by_time = said("at_time", found.at_time(time))?.revision();
    equal("revision at its time", &by_time.0, &(revision as u64 + 1))?;

    let path = head.place(random);
    // An element may move, and a field is another node once its object is a map.
    if model.has_map || !path.iter().all(|step| matches!(step, Step::Field(_))) {
        return Ok(());
    }
    let at = pointer(&path);
    let history = said("history", found.head().and_then(|head| head.history(&at)))?;
    let mut values: Vec<Option<String>> = vec![None; model.revisions.len()];
    for run in history {
        let run = said("history", run)?;
        for revision in run.first.0..=run.last.0 {
            let index = usize::try_from(revision).unwrap_or(usize::MAX).wrapping_sub(1);
            let value = values.get_mut(index).ok_or("a run beyond the last revision")?;
            if value.replace(run.value.to_string()).is_some() {
                return Err(format!("two runs of {at} cover revision {revision}"));
            }
        }
    }
    for (index, revision) in model.revisions.iter().enumerate() {
        let expected = revision.json.at(&path).map(Json::to_string);
        equal(&format!("history of {at} at revision {}", index + 1), &values[index], &expected)?;
    }
    Ok(())
}

/// The result, or what failed as text.
pub(crate) fn said<T>(what: &str, result: duramen::Result<T>) -> Check<T> {
    result.map_err(|error| format!("{what} failed with {}: {error}", error.kind().name()))
}

fn equal<T: PartialEq + std::fmt::Debug + ?Sized>(what: &str, found: &T, expected: &T) -> Check {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, expected {expected:?}"))
}
