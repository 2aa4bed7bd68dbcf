//! Holds the entries of an index against the records.

use std::ops::Bound;
use std::sync::Arc;

use crate::error::Result;
use crate::index::keys::{distinct, keys};
use crate::index::{Index, IndexRange};
use crate::tree::Tree;

/// Entries read at once.
const PAGE: usize = 1_024;

/// Findings of one index and revision that are told; more of them say no more.
const FINDINGS_MAX: usize = 8;

/// What is wrong with the entries of an index at a revision, if anything is: each is held against
/// its record, and as many have to be there as the records have keys.
pub(crate) fn check(
    (tree, index): (&Arc<Tree>, &Arc<Index>),
    revision: u32,
) -> Result<Vec<String>> {
    index.follow(tree, revision, &mut || Ok(()))?;
    let of = (Arc::clone(tree), Arc::clone(index));
    let mut range = IndexRange::new(of, revision, (Bound::Unbounded, Bound::Unbounded), false);
    let mut findings = Vec::new();
    let mut entries = 0;
    loop {
        let page = range.next(PAGE)?;
        if page.is_empty() {
            break;
        }
        for (key, ordinal) in page.iter() {
            let of_record = keys(tree, &index.paths, (ordinal, revision))?;
            if of_record.iter().any(|own| own.bytes == key) {
                entries += 1;
            } else {
                findings.push(told("there is an entry too many", key, ordinal));
            }
        }
    }
    let mut missing = 0_u64;
    for ordinal in 0..tree.records_ever() {
        missing += distinct(keys(tree, &index.paths, (ordinal, revision))?).len() as u64;
    }
    if missing != entries {
        add_missing((tree, index), revision, &mut findings)?;
    }
    findings.truncate(FINDINGS_MAX);
    Ok(findings)
}

/// Looks up each key of each record.
fn add_missing(
    (tree, index): (&Arc<Tree>, &Arc<Index>),
    revision: u32,
    findings: &mut Vec<String>,
) -> Result<()> {
    for ordinal in 0..tree.records_ever() {
        for key in distinct(keys(tree, &index.paths, (ordinal, revision))?) {
            let bound = || Bound::Included(key.bytes.clone());
            let of = (Arc::clone(tree), Arc::clone(index));
            let mut range = IndexRange::new(of, revision, (bound(), bound()), false);
            let mut is_there = false;
            loop {
                let page = range.next(PAGE)?;
                is_there |= page.iter().any(|(_, found)| found == ordinal);
                if page.is_empty() || is_there {
                    break;
                }
            }
            if !is_there {
                findings.push(told("there is no entry", &key.bytes, ordinal));
            }
        }
        if findings.len() >= FINDINGS_MAX {
            break;
        }
    }
    Ok(())
}

fn told(what: &str, key: &[u8], ordinal: u64) -> String {
    format!("{what} of record {ordinal} with the key {key:02x?}")
}
