//! The workloads, by id.

mod amplification;
mod analytics;
mod backends;
mod budget;
mod commits;
mod flatness;
mod hashes;
mod history;
mod ingest;
#[cfg(target_arch = "x86_64")]
mod kernels;
mod keys;
mod large_history;
mod queries;
mod reads;
mod records;
mod releases;
mod series;
mod sizes;
mod space;
mod startup;
mod tags;
mod trees;
mod windows;
mod writers;

use std::process::Command;

use anyhow::{Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::session::Session;

pub(crate) use analytics::Analytics;
pub(crate) use commits::History;

/// One workload.
pub(crate) struct Workload {
    /// What selects it, and stands in its figures.
    pub(crate) id: &'static str,
    /// What it does, in a line.
    pub(crate) what: &'static str,
    /// Runs it and adds its figures.
    pub(crate) run: fn(&mut Session) -> Result<()>,
}

/// All of them, in the order they run in.
pub(crate) const WORKLOADS: &[Workload] = &[
    Workload { id: "V1", what: "insert, then commits one by one", run: commits::run },
    Workload { id: "V2", what: "whole document at random revisions", run: reads::at_revisions },
    Workload { id: "V2t", what: "whole document at random instants", run: reads::at_instants },
    Workload { id: "V2f", what: "whole document at one revision", run: reads::at_one_revision },
    Workload { id: "V3", what: "timestamps and entries of the history", run: history::log },
    Workload { id: "V4", what: "one field over all revisions", run: history::values },
    Workload { id: "V6", what: "difference of two revisions", run: history::diffs },
    Workload { id: "V5", what: "bytes on disk per version", run: space::run },
    Workload { id: "V1g", what: "commits of several writers", run: writers::run },
    Workload { id: "V2w", what: "V2 after changes everywhere", run: reads::after_wide_changes },
    Workload { id: "V7", what: "commits, reads and space by size", run: sizes::run },
    Workload { id: "V7f", what: "one-field commits, flat in size", run: flatness::run },
    Workload { id: "X1", what: "content hash of a document", run: hashes::run },
    Workload { id: "S1", what: "fresh processes, empty database", run: startup::processes },
    Workload { id: "S2", what: "memory of a large put", run: startup::large_put },
    Workload { id: "V7p", what: "whole documents, put and read", run: ingest::whole_documents },
    Workload { id: "A0", what: "records loaded from a file", run: ingest::records },
    Workload { id: "A1", what: "SQL: count where two", run: |session| analytics::run(session, 0) },
    Workload { id: "A2", what: "SQL: count by one", run: |session| analytics::run(session, 1) },
    Workload { id: "A3", what: "SQL: sum", run: |session| analytics::run(session, 2) },
    Workload { id: "A4", what: "SQL: mean", run: |session| analytics::run(session, 3) },
    Workload {
        id: "A5",
        what: "SQL: least and greatest",
        run: |session| analytics::run(session, 4),
    },
    Workload { id: "A6", what: "SQL: count by two", run: |session| analytics::run(session, 5) },
    Workload {
        id: "A7",
        what: "SQL: count by one where",
        run: |session| analytics::run(session, 6),
    },
    Workload { id: "A8", what: "SQL: count distinct", run: |session| analytics::run(session, 7) },
    Workload {
        id: "A9",
        what: "SQL: count where three",
        run: |session| analytics::run(session, 8),
    },
    #[cfg(target_arch = "x86_64")]
    Workload { id: "KN", what: "kernels beside loops made by hand", run: kernels::run },
    Workload { id: "J1", what: "JSONPath filters over an array", run: queries::filters },
    Workload { id: "B", what: "players, every operation", run: backends::run },
    Workload { id: "K", what: "gets in a large collection", run: keys::run },
    Workload { id: "RR", what: "random records of a large array", run: records::run },
    Workload { id: "MT", what: "many small documents", run: trees::run },
    Workload { id: "MEM", what: "memory of work on much more data", run: budget::run },
    Workload { id: "MIME", what: "releases of a registry, kept", run: releases::registry },
    Workload { id: "REL", what: "releases of a large document", run: releases::large },
    Workload { id: "W", what: "bytes written over a life", run: amplification::run },
    Workload { id: "T1", what: "points appended one by one", run: series::appends },
    Workload { id: "T2", what: "points appended in batches", run: series::batches },
    Workload { id: "T3", what: "points of a series, read", run: series::ranges },
    Workload { id: "T4", what: "means of windows, from blocks and rollups", run: windows::means },
    Workload { id: "T5", what: "bytes that a point takes", run: windows::curves },
    Workload { id: "T6", what: "points written, with queries between", run: windows::mixed },
    Workload { id: "TM", what: "many series, a point for each", run: tags::run },
    Workload { id: "H", what: "a large history, warm and cold", run: large_history::run },
];

/// What this program does in a fresh process of its own, for its parent.
#[derive(Debug, Serialize, Deserialize)]
enum Child {
    History(large_history::Task),
    Put(startup::Put),
    Trees(trees::Opening),
    Tags(tags::Visit),
    Budget(budget::Work),
    Load(ingest::Load),
    Keys(keys::Reading),
    Players(backends::Alone),
}

impl Child {
    /// Starts this program again for it; returns what it prints.
    fn in_a_fresh_process<T: DeserializeOwned>(&self) -> Result<T> {
        let mut child = Command::new(std::env::current_exe()?);
        let done = child.arg("--child").arg(serde_json::to_string(self)?).output()?;
        let complaint = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "the child for {self:?} failed: {}", complaint.trim());
        Ok(serde_json::from_slice(&done.stdout)?)
    }
}

/// Does in this process what a parent asked for.
pub(crate) fn run_child(task: &str) -> Result<()> {
    match serde_json::from_str(task)? {
        Child::History(task) => task.run(),
        Child::Put(put) => put.run(),
        Child::Trees(opening) => opening.run(),
        Child::Tags(visit) => visit.run(),
        Child::Budget(work) => work.run(),
        Child::Load(load) => load.run(),
        Child::Keys(reading) => reading.run(),
        Child::Players(alone) => alone.run(),
    }
}
