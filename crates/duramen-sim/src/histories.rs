//! Checks histories of concurrent transactions that append to lists and read them.
//!
//! Lists tell the order of their versions, so what depends on what is known, not guessed. The
//! method is that of Elle (Kingsbury and Alvaro, VLDB 2020), the names of anomalies are those of
//! Adya (1999). As every version of a list stays readable here, a read at a version must also be
//! the list as it was then. Time and memory are linear in the history.

mod dependencies;
mod lists;
#[cfg(test)]
mod tests;

use std::fmt;

use dependencies::Graph;
use lists::Lists;

/// A list.
pub(crate) type Key = u32;

/// What a transaction appends; no two append the same to a list.
pub(crate) type Value = u64;

/// A transaction as its client saw it.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    /// When it began and ended, as numbers of one clock of all clients.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) outcome: Outcome,
}

/// What a transaction did, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Append(Key, Value),
    Read(Key, Vec<Value>),
    /// The list as of a version: 1 is the empty one, each transaction that appends makes one.
    ReadAt(Key, u64, Vec<Value>),
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Committed,
    Aborted,
    /// Nobody knows: what it appended may be there.
    Unknown,
}

impl Outcome {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// What the database promises, with what is over when another begins being seen by that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Isolation {
    Snapshot,
    Serializable,
}

/// How a history breaks a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Anomaly {
    /// A cycle of overwriting.
    G0,
    /// A read of what was aborted.
    G1a,
    /// A read of what a transaction had not finished.
    G1b,
    /// A cycle of overwriting and reading.
    G1c,
    /// A cycle with one read of what was overwritten.
    GSingle,
    /// A cycle with several.
    G2Item,
    /// What was committed is not there any more.
    LostUpdate,
    /// A transaction does not read what it read or appended before.
    Internal,
    /// Two reads of a list that no order of versions has both of.
    Order,
    /// A read at a version gives another list than there was.
    Past,
}

/// An anomaly, with the transactions that show it, by their numbers in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) anomaly: Anomaly,
    pub(crate) transactions: Vec<usize>,
    pub(crate) what: String,
}

impl Finding {
    fn new(anomaly: Anomaly, transactions: &[usize], what: impl Into<String>) -> Self {
        Self { anomaly, transactions: transactions.to_vec(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of transactions {:?}: {}", self.anomaly, self.transactions, self.what)
    }
}

/// What is wrong with a history; nothing if it keeps the promise. The last reads of all lists must
/// be in it, or what was lost at the end is not missed.
pub(crate) fn check(history: &[Observed], isolation: Isolation) -> Vec<Finding> {
    let (lists, mut findings) = Lists::new(history);
    lists.compare_reads(history, &mut findings);
    // Of versions whose order is not known no dependencies are.
    if findings.is_empty() {
        findings.extend(Graph::new(history, &lists).cycle(isolation));
    }
    findings
}
