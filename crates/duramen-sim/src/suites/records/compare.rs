//! Compares the collections with the model.

use duramen::{Collection, Database, ErrorKind, Filter, Query, Record, Revision, ScanOptions};

use super::change::key;
use super::model::{Event, Model, Place, State, count, of};
use super::{COLLECTIONS, KEYS};
use crate::Random;
use crate::expectation::Check;
use crate::json::Json;
use crate::oracle::said;

/// Revisions that are compared whole, beside the newest.
const REVISIONS: u64 = 3;
/// Scores, and codes, from 0 on that are looked for.
const SCORES: i64 = 3;
/// Records whose histories are.
const HISTORIES: u64 = 3;

/// How many of the model's commits are there.
pub(super) fn commits(db: &Database, model: &Model) -> Check<usize> {
    let mut revisions = [0; COLLECTIONS.len()];
    for (found, (name, _)) in revisions.iter_mut().zip(COLLECTIONS) {
        let head = said("head", collection(db, name)?.head())?;
        *found = usize::try_from(head.revision().0).unwrap_or(usize::MAX);
    }
    model
        .commits_with(revisions)
        .ok_or_else(|| format!("no commit has the revisions {revisions:?}"))
}

/// The newest state, some older ones that are kept, and the histories of some records; the first
/// revision of each collection.
pub(super) fn everything(
    db: &Database,
    model: &Model,
    random: &mut Random,
) -> Check<[u64; COLLECTIONS.len()]> {
    let mut firsts = [1; COLLECTIONS.len()];
    for (number, (name, _)) in COLLECTIONS.into_iter().enumerate() {
        let collection = collection(db, name)?;
        let states = model.revisions(number);
        let newest = states.len() as u64;
        let first_revision = || said("first revision", collection.document().first_revision());
        let begin = first_revision()?.0;
        refused(&collection, begin).map_err(|what| format!("{name}: {what}"))?;
        let older = (0..REVISIONS).map(|_| 1 + random.below(newest.max(1)));
        let kept = |revision: &u64| (begin.max(1)..=newest).contains(revision);
        for revision in older.chain([newest, begin]).filter(kept) {
            let state = states[usize::try_from(revision - 1).expect("an index")];
            let compared = records(&collection, number, (revision, state))
                .and_then(|()| lookups(&collection, number, (revision, state)));
            // A merge that was due may have dropped meanwhile what a retention let go.
            if revision >= first_revision()?.0 {
                compared.map_err(|what| format!("{name} at revision {revision}: {what}"))?;
            }
        }
        let first = first_revision()?.0;
        firsts[number] = first;
        for _ in 0..HISTORIES {
            history(&collection, ((number, random.below(KEYS)), first), model)?;
        }
    }
    Ok(firsts)
}

/// What was dropped is refused.
fn refused(collection: &Collection, first: u64) -> Check {
    for dropped in [1, first - 1].into_iter().filter(|&dropped| (1..first).contains(&dropped)) {
        let count = collection.at(Revision(dropped)).and_then(|at| at.count());
        if !matches!(&count, Err(error) if error.kind() == ErrorKind::NotFound) {
            return Err(format!("revision {dropped}, which was dropped, gives {count:?}"));
        }
    }
    Ok(())
}

fn collection(db: &Database, name: &str) -> Check<Collection> {
    said("collection", db.collection(name))
}

/// All records of a revision, by scans and by key.
fn records(collection: &Collection, number: usize, (revision, state): (u64, &State)) -> Check {
    let at = said("at", collection.at(Revision(revision)))?;
    let mut expected: Vec<(Place, u64, &Json)> = of(state, number)
        .filter_map(|(place, held)| Some((*place, held.versions, held.value.as_ref()?)))
        .collect();
    if said("count", at.count())? != count(state, number) {
        return Err(format!("the count is not {}", count(state, number)));
    }
    let keys: Vec<_> = (0..KEYS).map(|at| key((number, at))).collect();
    let mut wanted = expected.iter().peekable();
    for (found, at) in said("get", at.get_many(&keys))?.iter().zip(0..KEYS) {
        let wanted = wanted.next_if(|(place, ..)| *place == (number, at));
        match (found, wanted) {
            (None, None) => {}
            (Some(found), Some(wanted)) => same(found, wanted)?,
            _ => return Err(format!("record {at} is {found:?}, expected {wanted:?}")),
        }
    }
    for reverse in [false, true] {
        let options = ScanOptions { reverse, ..ScanOptions::default() };
        let found = said("scan", said("scan", at.scan(&options))?.collect::<Result<Vec<_>, _>>())?;
        if found.len() != expected.len() {
            return Err(format!("a scan found {} of {}", found.len(), expected.len()));
        }
        for (found, wanted) in found.iter().zip(&expected) {
            same(found, wanted)?;
        }
        expected.reverse();
    }
    Ok(())
}

/// What filters find that indexes answer.
fn lookups(collection: &Collection, number: usize, (revision, state): (u64, &State)) -> Check {
    let at = said("at", collection.at(Revision(revision)))?;
    let filters = (0..SCORES).map(|score| (Filter::eq("score", score), "score", score.to_string()));
    let codes = (0..SCORES).map(|code| (Filter::eq("code", code), "code", code.to_string()));
    let tag = (Filter::contains("tags", "top"), "tags", "\"top\"".to_owned());
    for (filter, field, wanted) in filters.chain(codes).chain([tag]) {
        let holds = |json: &Json| match json.child(field) {
            Some(Json::Array(items)) => items.iter().any(|item| item.to_string() == wanted),
            Some(value) => value.to_string() == wanted,
            None => false,
        };
        let expected: Vec<_> = of(state, number)
            .filter(|(_, held)| held.value.as_ref().is_some_and(holds))
            .map(|(place, _)| key(*place))
            .collect();
        let found = said("query", at.query(&Query::new().filter(filter)))?;
        let found = found.map(|record| record.map(|record| record.key));
        let mut found = said("query", found.collect::<Result<Vec<_>, _>>())?;
        found.sort_unstable();
        if found != expected {
            return Err(format!("{field} {wanted} found {found:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

fn same(found: &Record, wanted: &(Place, u64, &Json)) -> Check {
    let (place, version, json) = wanted;
    let is_same = found.key == key(*place)
        && found.version == *version
        && Json::parse(&found.json).sorted() == json.sorted();
    if is_same { Ok(()) } else { Err(format!("found {found:?}, expected {wanted:?}")) }
}

fn history(collection: &Collection, (place, first): (Place, u64), model: &Model) -> Check {
    let expected = model.events(place, first);
    let found = match collection.history(key(place)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        found => said("history", said("history", found)?.collect::<Result<Vec<_>, _>>())?,
    };
    let is_same = |(found, wanted): (&duramen::RecordVersion, &Event<'_>)| {
        let is_saved = match (&found.record, wanted.saved) {
            (Some(record), Some((version, json))) => same(record, &(place, version, json)).is_ok(),
            (found, wanted) => found.is_none() && wanted.is_none(),
        };
        let is_purged = found.is_purged == wanted.is_purged;
        is_saved && is_purged && found.revision.0 == wanted.revision
    };
    if found.len() == expected.len() && found.iter().zip(&expected).all(is_same) {
        return Ok(());
    }
    Err(format!("the history of {place:?} is {found:?}, expected {expected:?}"))
}
