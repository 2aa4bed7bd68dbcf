//! The workloads, by id.

mod commits;
mod history;
mod large_history;
mod reads;
mod sizes;
mod space;
mod writers;

use anyhow::Result;

use crate::session::Session;

pub(crate) use commits::History;
pub(crate) use large_history::run_child;

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
    Workload { id: "H", what: "a large history, warm and cold", run: large_history::run },
];
