//! What depends on what, and the cycles that isolation rules out.
//!
//! A node is a transaction in one of two guises, or an instant. Snapshot isolation allows a cycle
//! only if two of its steps in succession go from a reader to who overwrote what it read; so from
//! the second guise, which such a step leads to, no other such step leaves.

use std::collections::VecDeque;

use super::lists::{Lists, reads};
use super::{Anomaly, Finding, Isolation, Observed, Outcome};

/// Why one transaction comes before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// The other overwrote what it wrote.
    Overwritten,
    /// The other read what it wrote.
    Read,
    /// The other overwrote what it read.
    Outdated,
    /// It was over before the other began.
    Earlier,
}

/// Transactions and instants with what leads from each to others.
pub(super) struct Graph {
    transactions: usize,
    edges: Vec<Vec<(usize, Cause)>>,
}

impl Graph {
    pub(super) fn new(history: &[Observed], lists: &Lists) -> Self {
        let mut graph =
            Self { transactions: history.len(), edges: vec![Vec::new(); history.len()] };
        graph.add_versions(history, lists);
        graph.add_instants(history);
        graph
    }

    fn add(&mut self, from: usize, to: usize, cause: Cause) {
        if from != to {
            self.edges[from].push((to, cause));
        }
    }

    fn add_versions(&mut self, history: &[Observed], lists: &Lists) {
        let mut makers = std::collections::HashMap::new();
        for key in lists.keys() {
            let versions: Vec<(usize, usize)> = lists.makers(key).collect();
            for pair in versions.windows(2) {
                self.add(pair[0].0, pair[1].0, Cause::Overwritten);
            }
            makers.insert(key, versions);
        }
        for (reader, transaction) in history.iter().enumerate() {
            for (key, len) in reads(transaction) {
                let Some(versions) = makers.get(&key) else { continue };
                let next = versions.partition_point(|&(_, end)| end <= len);
                if let Some(&(writer, _)) = next.checked_sub(1).and_then(|at| versions.get(at)) {
                    self.add(writer, reader, Cause::Read);
                }
                if let Some(&(writer, _)) = versions.get(next) {
                    self.add(reader, writer, Cause::Outdated);
                }
            }
        }
    }

    /// Each end of a transaction is an instant that leads to the next one and to those that begin
    /// before that.
    fn add_instants(&mut self, history: &[Observed]) {
        let is_there = |at: &usize| history[*at].outcome == Outcome::Committed;
        let mut ends: Vec<usize> = (0..history.len()).filter(is_there).collect();
        let mut begins = ends.clone();
        ends.sort_unstable_by_key(|&at| history[at].end);
        begins.sort_unstable_by_key(|&at| history[at].begin);
        let mut begins = begins.into_iter().peekable();
        let mut before: Option<usize> = None;
        for ended in ends {
            while let Some(begun) = begins.next_if(|&at| history[at].begin <= history[ended].end) {
                if let Some(instant) = before {
                    self.add(instant, begun, Cause::Earlier);
                }
            }
            let instant = self.edges.len();
            self.edges.push(Vec::new());
            self.add(ended, instant, Cause::Earlier);
            if let Some(before) = before.replace(instant) {
                self.add(before, instant, Cause::Earlier);
            }
        }
        for begun in begins {
            if let Some(instant) = before {
                self.add(instant, begun, Cause::Earlier);
            }
        }
    }

    /// A cycle that the isolation rules out, a short one.
    pub(super) fn cycle(&self, isolation: Isolation) -> Option<Finding> {
        let walk = Walk { graph: self, isolation };
        let start = walk.in_cycle()?;
        let cycle = walk.shortest(start)?;
        let count = |cause| cycle.iter().filter(|&&(_, of)| of == cause).count();
        let anomaly = match (count(Cause::Outdated), count(Cause::Read)) {
            (0, 0) => Anomaly::G0,
            (0, _) => Anomaly::G1c,
            (1, _) => Anomaly::GSingle,
            _ => Anomaly::G2Item,
        };
        let transactions: Vec<usize> =
            cycle.iter().map(|&(at, _)| at).filter(|&at| at < self.transactions).collect();
        Some(Finding::new(anomaly, &transactions, format!("{cycle:?}")))
    }
}

/// The graph as an isolation sees it: nodes in their first guise have even numbers.
struct Walk<'a> {
    graph: &'a Graph,
    isolation: Isolation,
}

impl Walk<'_> {
    fn nodes(&self) -> usize {
        2 * self.graph.edges.len()
    }

    fn steps(&self, node: usize) -> impl Iterator<Item = (usize, Cause)> {
        let (at, has_outdated) = (node / 2, node % 2 == 1);
        self.graph.edges[at].iter().filter_map(move |&(to, cause)| {
            match (self.isolation, cause == Cause::Outdated) {
                (Isolation::Snapshot, true) if has_outdated => None,
                (Isolation::Snapshot, true) => Some((2 * to + 1, cause)),
                _ => Some((2 * to, cause)),
            }
        })
    }

    /// A node that is in a cycle. What is left when all that no step leads to is taken away (Kahn,
    /// 1962) has something before it that is left too, so a walk back ends in a cycle.
    fn in_cycle(&self) -> Option<usize> {
        let nodes = self.nodes();
        let mut into = vec![0_usize; nodes];
        for node in 0..nodes {
            self.steps(node).for_each(|(to, _)| into[to] += 1);
        }
        let mut free: Vec<usize> = (0..nodes).filter(|&node| into[node] == 0).collect();
        let mut is_free = vec![false; nodes];
        while let Some(node) = free.pop() {
            is_free[node] = true;
            for (to, _) in self.steps(node) {
                into[to] -= 1;
                if into[to] == 0 {
                    free.push(to);
                }
            }
        }
        let mut at = (0..nodes).find(|&node| !is_free[node])?;
        let mut before = vec![None; nodes];
        for node in (0..nodes).filter(|&node| !is_free[node]) {
            for (to, _) in self.steps(node) {
                before[to] = Some(node);
            }
        }
        for _ in 0..nodes {
            at = before[at]?;
        }
        Some(at)
    }

    /// The fewest steps from a node back to it; each with where it begins.
    fn shortest(&self, start: usize) -> Option<Vec<(usize, Cause)>> {
        let mut from: Vec<Option<(usize, Cause)>> = vec![None; self.nodes()];
        let mut ahead = VecDeque::from([start]);
        while let Some(node) = ahead.pop_front() {
            for (to, cause) in self.steps(node) {
                if from[to].is_none() {
                    from[to] = Some((node, cause));
                    ahead.push_back(to);
                }
            }
        }
        let mut cycle = Vec::new();
        let mut at = start;
        while let Some((before, cause)) = from[at] {
            cycle.push((before / 2, cause));
            at = before;
            if at == start {
                cycle.reverse();
                return Some(cycle);
            }
        }
        None
    }
}
