//! Compares a database with its model: every document, every revision, rows, histories, times.

use duramen::{
    CommitSequence, Database, Document, ErrorKind, JsonPointer, LogEntry, LogQuery, Micros,
    Revision, Tag,
};

use crate::Random;
use crate::expectation::{Check, Expectation};
use crate::json::{Json, pointer};
use crate::model::{self, Listed, Version};
use crate::samples::{Samples, Scale};

/// What may be missing of the commits that the model knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// What no sync made durable.
    Power,
    /// Nothing that was acknowledged.
    Process,
}

/// After a restart: finds how many commits survived, sets the model to them and compares all.
pub(crate) fn adopt(expectation: &mut Expectation, db: &Database, loss: Loss) -> Check {
    let found = said("stats", db.stats())?.sequence.0;
    let acknowledged = expectation.model().sequence();
    let least = match loss {
        Loss::Power => expectation.durable(),
        Loss::Process => acknowledged,
    };
    let most = acknowledged + u64::from(expectation.under_way.is_some());
    if found < least || found > most {
        return Err(format!("commit {found} is the last, expected {least} to {most}"));
    }
    if let Some(pending) = expectation.under_way.take().filter(|_| found > acknowledged) {
        expectation.commit(&pending, None);
    }
    expectation.truncate(found);
    // Whoever reads sees it, so it must not be lost any more.
    expectation.synced();
    compare(expectation, db)
}

/// Compares everything that can be read with the model.
pub(crate) fn compare(expectation: &mut Expectation, db: &Database) -> Check {
    let sequence = said("stats", db.stats())?.sequence.0;
    equal("the last commit", &sequence, &expectation.model().sequence())?;
    let names = said("documents", db.documents())?;
    let all = expectation.model().documents().clone();
    let those = |is_deleted: bool| {
        let some = all.iter().filter(move |(_, document)| document.is_deleted() == is_deleted);
        some.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    equal("documents", &names, &those(false))?;
    let deleted = said("deleted documents", db.deleted_documents())?;
    let deleted: Vec<String> = deleted.into_iter().map(|deleted| deleted.name).collect();
    equal("deleted documents", &deleted, &those(true))?;
    for (name, document) in all {
        let found = said("document", db.document(&name))?;
        compare_document(expectation, &document, &found)
            .and_then(|()| compare_facts(expectation, &document, &found))
            .map_err(|what| format!("document {name:?}: {what}"))?;
    }
    Ok(())
}

/// Compares, and lets the database check itself.
pub(crate) fn examine(expectation: &mut Expectation, db: &Database, random: &mut Random) -> Check {
    compare(expectation, db)?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    for (name, document) in expectation.model().documents() {
        if random.one_in(2) {
            let found = said("document", db.document(name))?;
            let compared = compare_history(document, &found, random);
            compared.map_err(|what| format!("document {name:?}: {what}"))?;
        }
    }
    Ok(())
}

fn compare_document(
    expectation: &mut Expectation,
    expected: &model::Document,
    found: &Document,
) -> Check {
    let versions = &expected.versions;
    let head = said("head", found.head_revision())?;
    equal("revisions", &head.0, &(versions.len() as u64))?;
    let log = said("log", found.log(&LogQuery::default()))?;
    let entries: Vec<LogEntry> = said("log", log.collect())?;
    let listed = listed_in(&entries, found)?;
    expected.kept.check(&listed)?;
    for entry in &entries {
        let version = expected.version(entry.revision).ok_or("a revision too many")?;
        compare_entry(expectation, version, entry)
            .map_err(|what| format!("revision {}: {what}", entry.revision))?;
    }
    let timestamps = said("timestamps", found.timestamps())?;
    let is_whole = |entry: &&LogEntry| entry.revision >= listed.first;
    let expected: Vec<Micros> =
        entries.iter().rev().filter(is_whole).map(|entry| entry.timestamp).collect();
    equal("timestamps", &timestamps, &expected)?;
    for (number, version) in (1..).map(Revision).zip(versions) {
        let read = found.at(number).and_then(|snapshot| snapshot.to_json());
        if version.json.is_none() || !listed.revisions.contains(&number.0) {
            let kind = read.map_err(|error| error.kind());
            equal(
                &format!("revision {number}, deleted or dropped"),
                &kind,
                &Err(ErrorKind::NotFound),
            )?;
            continue;
        }
        let text = said("at", read)?;
        equal(&format!("revision {number}"), &text, &version.text)?;
    }
    Ok(())
}

/// After a compaction of everything: what the documents' retention lets go is gone, and no more.
pub(crate) fn compacted(expectation: &mut Expectation, db: &Database) -> Check {
    let names: Vec<String> = expectation.model().documents().keys().cloned().collect();
    for name in names {
        let found = said("document", db.document(&name))?;
        let log = said("log", found.log(&LogQuery::default()))?;
        let entries: Vec<LogEntry> = said("log", log.collect())?;
        let listed = listed_in(&entries, &found)?;
        let compacted = expectation.model_mut().compacted(&name, &listed);
        compacted.map_err(|what| format!("document {name:?}: {what}"))?;
    }
    Ok(())
}

fn listed_in(entries: &[LogEntry], found: &Document) -> Check<Listed> {
    let first = said("first revision", found.first_revision())?;
    Ok(Listed { first, revisions: entries.iter().map(|entry| entry.revision.0).collect() })
}

/// Compares what is declared and the tags, and reads as of each.
fn compare_facts(
    expectation: &mut Expectation,
    expected: &model::Document,
    found: &Document,
) -> Check {
    let model::Facts { tags, options } = &expected.facts;
    equal("options", &said("options", found.options())?, options)?;
    let all = said("tags", found.tags())?;
    equal("tags", &all.len(), &tags.len())?;
    for (tag, (name, expected_tag)) in all.into_iter().zip(tags) {
        let model::Tag { revision, hash, sequence, author, message } = expected_tag.clone();
        let (timestamp, _) = expectation.times_of(sequence, tag.timestamp);
        let told = Tag { name: name.clone(), revision, hash, timestamp, author, message };
        equal("a tag", &tag, &told)?;
        let tagged = said("at a tag", found.at_tag(name).and_then(|at| at.to_json()))?;
        let text = expected.version(revision).map(|version| &version.text);
        equal(&format!("the value at the tag {name:?}"), &Some(&tagged), &text)?;
    }
    Ok(())
}

fn compare_entry(expectation: &mut Expectation, version: &Version, entry: &LogEntry) -> Check {
    let (committed, timestamp) = expectation.times_of(version.sequence, entry.committed);
    equal("commit timestamp", &entry.committed, &committed)?;
    equal("timestamp", &entry.timestamp, &timestamp)?;
    equal("sequence", &entry.sequence, &CommitSequence(version.sequence))?;
    equal("author", &entry.author, &version.author)?;
    equal("message", &entry.message, &version.message)
}

/// Follows one value that only fields lead to through all revisions, and finds one by its time.
fn compare_history(model: &model::Document, found: &Document, random: &mut Random) -> Check {
    let versions = &model.versions;
    let Some(head) = versions.last() else { return Ok(()) };
    let skipped = usize::try_from(said("first revision", found.first_revision())?.0 - 1);
    let skipped = skipped.map_err(|_| "more revisions than there can be")?;
    let at = random.index(versions.len() - skipped);
    let (revision, time) = (skipped + at, said("timestamps", found.timestamps())?[at]);
    let by_time = found.at_time(time).map(|snapshot| snapshot.revision().0);
    let by_time = by_time.map_err(|error| error.kind());
    let is_there = versions[revision].json.is_some();
    let expected = if is_there { Ok(revision as u64 + 1) } else { Err(ErrorKind::NotFound) };
    equal("revision at its time", &by_time, &expected)?;

    let Some(value) = &head.json else { return Ok(()) };
    let path = Samples::new(random, Scale::SMALL).path(value);
    // An element may move.
    if value.at_names(&path).is_none() {
        return Ok(());
    }
    let at = pointer(&path);
    let place = said("pointer", JsonPointer::parse(&at))?;
    let history = said("history", found.head().and_then(|head| head.history(&place)))?;
    let mut values: Vec<Option<String>> = vec![None; versions.len()];
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
    let certain = model.presence(&path, versions.len() - 1);
    for (index, version) in versions.iter().enumerate() {
        if index < skipped {
            equal("a value before the first revision", &values[index], &None)?;
            continue;
        }
        if model.has_map && values[index].is_none() && !certain.contains(&index) {
            continue;
        }
        let expected = version.at_names(&path).map(Json::to_string);
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
