//! Looks into the books of the bank: balances and counts at every commit there was.

use std::collections::BTreeMap;

use duramen::{Database, DatabaseSnapshot, LogQuery};

use super::{ACCOUNTS, COUNTERS, SUM, WRITERS};
use crate::expectation::Check;
use crate::json::Json;
use crate::oracle::said;

/// What is in all accounts.
pub(super) fn total(snapshot: &DatabaseSnapshot) -> Check<i64> {
    let read = |account| {
        let document = said("account", snapshot.document(account))?;
        sum(&said("account", document.to_json())?)
    };
    ACCOUNTS.into_iter().map(read).sum()
}

/// Transfers by writer.
pub(super) fn counters(snapshot: &DatabaseSnapshot) -> Check<[u64; WRITERS]> {
    let document = said("transfers", snapshot.document(COUNTERS))?;
    counts(&said("transfers", document.to_json())?)
}

/// The sum is the same at every commit, and each commit counts one transfer.
pub(super) fn audit(db: &Database) -> Check {
    let mut balances: BTreeMap<u64, BTreeMap<&str, i64>> = BTreeMap::new();
    for account in ACCOUNTS {
        for (sequence, text) in versions(db, account)? {
            balances.entry(sequence).or_default().insert(account, sum(&text)?);
        }
    }
    let mut now: BTreeMap<&str, i64> = BTreeMap::new();
    for (sequence, changed) in balances {
        now.extend(changed);
        let found: i64 = now.values().sum();
        if found != SUM {
            return Err(format!("commit {sequence} has {found} in all: {now:?}"));
        }
    }
    for (transfers, (sequence, text)) in (0..).zip(versions(db, COUNTERS)?) {
        let counts = counts(&text)?;
        if counts.iter().sum::<u64>() != transfers {
            return Err(format!("commit {sequence} counts {counts:?}, not {transfers} in all"));
        }
    }
    Ok(())
}

/// The commits that changed a document, and what they made of it, oldest first.
fn versions(db: &Database, name: &str) -> Check<Vec<(u64, String)>> {
    let document = said("document", db.document(name))?;
    let log = said("log", document.log(&LogQuery::default()))?;
    let mut versions = Vec::new();
    for entry in log {
        let entry = said("log", entry)?;
        let text = said("at", document.at(entry.revision).and_then(|at| at.to_json()))?;
        versions.push((entry.sequence.0, text));
    }
    versions.reverse();
    Ok(versions)
}

fn sum(text: &str) -> Check<i64> {
    match Json::parse(text) {
        Json::Object(fields) => fields.iter().map(|(_, value)| number(value)).sum(),
        other => Err(format!("{other} is no account")),
    }
}

fn counts(text: &str) -> Check<[u64; WRITERS]> {
    let Json::Array(counts) = Json::parse(text) else { return Err(format!("counts: {text}")) };
    let counts: Vec<u64> =
        counts.iter().map(|count| number(count).map(i64::unsigned_abs)).collect::<Check<_>>()?;
    counts.try_into().map_err(|counts| format!("counts: {counts:?}"))
}

fn number(value: &Json) -> Check<i64> {
    value.to_string().parse().map_err(|_| format!("{value} is no number"))
}
