//! How a query is answered, and what that reads.

use std::fmt;

use super::{Found, Query};
use crate::collection::{Collection, CollectionSnapshot};
use crate::error::Result;

/// What a query read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueryCounts {
    /// Row groups of which columns were read.
    pub row_groups: u64,
    /// Row groups of which the least and greatest values of columns told that no record is found.
    pub ruled_out: u64,
    /// Records that were judged by their columns.
    pub scanned: u64,
    /// Records that were looked at one by one, because their columns could not tell.
    pub records: u64,
    /// Entries of indexes that were read.
    pub entries: u64,
    /// Records that were sorted.
    pub sorted: u64,
    /// Records that were found.
    pub found: u64,
}

/// How a query is answered: a line for each step, and what they read.
///
/// ```
/// use duramen::{CommitOptions, Database, Filter, KeyKind, Order, Query};
///
/// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
/// players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
/// let query = Query::new().filter(Filter::gt("score", 2)).order_by(Order::asc("score"));
/// let explained = players.explain(&query)?;
/// assert_eq!(explained.counts.scanned, 1);
/// assert!(explained.to_string().starts_with("scan the columns of 1 row group"));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The steps, in the order in which they are done.
    pub steps: Vec<String>,
    /// What they read.
    pub counts: QueryCounts,
}

impl CollectionSnapshot {
    /// Runs a query to its end and tells how it was answered, and what was read for that.
    pub fn explain(&self, query: &Query) -> Result<Explanation> {
        query.projection()?;
        let mut found = Found::new(self, query)?;
        while found.next()?.is_some() {}
        let counts = found.counts;
        let mut steps: Vec<String> = found.left_out.iter().map(|index| left_out(index)).collect();
        if let Some(given_up) = found.given_up() {
            let QueryCounts { entries, records, .. } = given_up;
            let rest = QueryCounts { entries: 0, records: counts.records - records, ..counts };
            steps.push(format!(
                "give up {}, after {entries} entries: the filter finds few of {records} records",
                found.way
            ));
            steps.extend(by_filter(query, "", &rest));
        } else {
            steps.extend(by_filter(query, &found.way, &counts));
        }
        if counts.sorted > 0 {
            let by: Vec<_> = query.order.iter().map(ToString::to_string).collect();
            let (sorted, by) = (counts.sorted, by.join(", "));
            steps.push(format!("sort {sorted} record{} by {by}", plural(sorted)));
        }
        steps.push(format!("found {} record{}", counts.found, plural(counts.found)));
        Ok(Explanation { steps, counts })
    }
}

impl Collection {
    /// How a query is answered now: see [`CollectionSnapshot::explain`].
    pub fn explain(&self, query: &Query) -> Result<Explanation> {
        self.head()?.explain(query)
    }
}

/// How the records are found of which the filter is true.
fn by_filter(query: &Query, way: &str, counts: &QueryCounts) -> Vec<String> {
    let QueryCounts { row_groups, ruled_out, scanned, records, entries, .. } = *counts;
    let mut steps = Vec::new();
    let by = if entries == 1 { "entry" } else { "entries" };
    let filter = query.filter.as_ref().map_or(String::new(), |filter| format!(": {filter}"));
    if !way.is_empty() {
        steps.push(format!("read {entries} {by} of {way}"));
        if records > 0 {
            steps.push(format!("look at {records} record{}{filter}", plural(records)));
        }
        return steps;
    }
    if entries > 0 {
        steps.push(format!("give up indexes after {entries} {by}: they name too many records"));
    }
    steps.push(format!(
        "scan the columns of {row_groups} row group{} with {scanned} record{}{filter}",
        plural(row_groups),
        plural(scanned)
    ));
    if ruled_out > 0 {
        let s = plural(ruled_out);
        steps.push(format!("leave out {ruled_out} row group{s} by least and greatest values"));
    }
    if records > 0 {
        let s = plural(records);
        steps.push(format!("look at {records} record{s} of which the columns cannot tell"));
    }
    steps
}

/// An index that is behind.
fn left_out(index: &str) -> String {
    format!("leave out index {index}: it has more changes to follow than a scan costs")
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// A line for each step.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.steps.join("\n"))
    }
}
