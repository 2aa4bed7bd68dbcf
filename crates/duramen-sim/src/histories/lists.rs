//! The versions of each list, and who made them.

use std::collections::HashMap;

use super::{Anomaly, Finding, Key, Observed, Outcome, Step, Value};

/// What is known of all lists.
pub(super) struct Lists {
    /// The longest list that anybody read, by key: all others must be beginnings of it.
    longest: HashMap<Key, Vec<Value>>,
    /// Who appended a value.
    writers: HashMap<(Key, Value), usize>,
}

/// A read of a transaction, without what the transaction itself had appended.
struct Outside<'a> {
    key: Key,
    list: &'a [Value],
}

impl Lists {
    /// Finds the order of versions; what has none is told.
    pub(super) fn new(history: &[Observed]) -> (Self, Vec<Finding>) {
        let mut findings = Vec::new();
        let mut writers = HashMap::new();
        let mut longest: HashMap<Key, Vec<Value>> = HashMap::new();
        for (at, transaction) in history.iter().enumerate() {
            for step in &transaction.steps {
                if let Step::Append(key, value) = step {
                    writers.insert((*key, *value), at);
                }
            }
            for read in outside_reads(at, transaction, &mut findings) {
                let known = longest.entry(read.key).or_default();
                let common = known.len().min(read.list.len());
                if known[..common] != read.list[..common] {
                    let what = format!("list {}: {known:?} and {:?}", read.key, read.list);
                    findings.push(Finding::new(Anomaly::Order, &[at], what));
                } else if read.list.len() > known.len() {
                    *known = read.list.to_vec();
                }
            }
        }
        (Self { longest, writers }, findings)
    }

    /// Looks at each read by itself: of what was aborted, unfinished, lost, or long ago.
    pub(super) fn compare_reads(&self, history: &[Observed], findings: &mut Vec<Finding>) {
        for (at, transaction) in history.iter().enumerate() {
            for read in outside_reads(at, transaction, &mut Vec::new()) {
                findings.extend(self.judge(history, at, &read));
            }
            for step in &transaction.steps {
                if let Step::ReadAt(key, version, list) = step
                    && self.version(*key, *version) != Some(list.as_slice())
                {
                    let what = format!("list {key} at version {version} is {list:?}");
                    findings.push(Finding::new(Anomaly::Past, &[at], what));
                }
                if let Step::Append(key, value) = step
                    && transaction.outcome == Outcome::Committed
                    && !self.longest.get(key).is_some_and(|list| list.contains(value))
                {
                    let what = format!("{value} is not in list {key}");
                    findings.push(Finding::new(Anomaly::LostUpdate, &[at], what));
                }
            }
        }
    }

    fn judge(&self, history: &[Observed], at: usize, read: &Outside<'_>) -> Option<Finding> {
        let Outside { key, list } = *read;
        let writer = |value: &Value| self.writers.get(&(key, *value)).copied();
        for value in list {
            let aborted = match writer(value) {
                None => return Some(unwritten(at, key, *value)),
                Some(writer) => history[writer].outcome == Outcome::Aborted,
            };
            if aborted {
                let what = format!("list {key} has {value}, which was rolled back");
                return Some(Finding::new(Anomaly::G1a, &[at, writer(value)?], what));
            }
        }
        let last = writer(list.last()?)?;
        let appended = |step: &&Step| matches!(step, Step::Append(of, _) if *of == key);
        let newest = history[last].steps.iter().rfind(appended);
        if last != at && newest != Some(&Step::Append(key, *list.last()?)) {
            let what = format!("list {key} ends in the middle of what a transaction appended");
            return Some(Finding::new(Anomaly::G1b, &[at, last], what));
        }
        None
    }

    /// A list as of a version, if it got so far.
    fn version(&self, key: Key, version: u64) -> Option<&[Value]> {
        let list = self.longest.get(&key).map_or(&[][..], Vec::as_slice);
        let ends = self.makers(key).map(|(_, end)| end);
        let end =
            std::iter::once(0).chain(ends).nth(usize::try_from(version.checked_sub(1)?).ok()?);
        list.get(..end?)
    }

    /// The transactions that made the versions of a list after the empty one, with its length then.
    pub(super) fn makers(&self, key: Key) -> impl Iterator<Item = (usize, usize)> {
        let list = self.longest.get(&key).map_or(&[][..], Vec::as_slice);
        let writer = move |value: &Value| self.writers.get(&(key, *value)).copied();
        let mut at = 0;
        list.chunk_by(move |one, other| writer(one) == writer(other)).filter_map(move |chunk| {
            at += chunk.len();
            Some((writer(chunk.first()?)?, at))
        })
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.longest.keys().copied()
    }
}

fn unwritten(at: usize, key: Key, value: Value) -> Finding {
    Finding::new(Anomaly::G1a, &[at], format!("list {key} has {value}, which nobody appended"))
}

/// What each committed transaction read that others wrote, by key with the length of the list.
pub(super) fn reads(transaction: &Observed) -> Vec<(Key, usize)> {
    let reads = outside_reads(0, transaction, &mut Vec::new());
    reads.iter().map(|read| (read.key, read.list.len())).collect()
}

/// The reads of a committed transaction without what it appended itself; reads that do not agree
/// with those before them are told.
fn outside_reads<'a>(
    at: usize,
    transaction: &'a Observed,
    findings: &mut Vec<Finding>,
) -> Vec<Outside<'a>> {
    if transaction.outcome != Outcome::Committed {
        return Vec::new();
    }
    let mut outside: Vec<Outside<'a>> = Vec::new();
    let mut own: HashMap<Key, Vec<Value>> = HashMap::new();
    for step in &transaction.steps {
        match step {
            Step::Append(key, value) => own.entry(*key).or_default().push(*value),
            Step::ReadAt(..) => {}
            Step::Read(key, list) => {
                let own = own.get(key).map_or(&[][..], Vec::as_slice);
                let before = outside.iter().find(|read| read.key == *key).map(|read| read.list);
                match list.strip_suffix(own) {
                    Some(rest) if before.is_none_or(|before| before == rest) => {
                        outside.push(Outside { key: *key, list: rest });
                    }
                    _ => {
                        let what = format!("list {key} was {before:?} and {own:?}, is {list:?}");
                        findings.push(Finding::new(Anomaly::Internal, &[at], what));
                    }
                }
            }
        }
    }
    outside
}
