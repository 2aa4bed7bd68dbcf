//! Nodes that a transaction comes back to at its end.

use crate::node::NodeId;

/// More than twice as many as are told apart, so that noting stays cheap.
const MORE: usize = 64;

/// Nodes noted again and again: they take no more room than a few times each.
#[derive(Debug, Default)]
pub(crate) struct NotedNodes {
    nodes: Vec<NodeId>,
    /// Those that were told apart when that was done last.
    distinct: usize,
}

impl NotedNodes {
    pub(crate) fn note(&mut self, node: NodeId) {
        if self.nodes.len() >= 2 * self.distinct + MORE {
            self.tell_apart();
        }
        self.nodes.push(node);
    }

    /// All of them, rising and once each.
    pub(crate) fn all(&mut self) -> &[NodeId] {
        self.tell_apart();
        &self.nodes
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn tell_apart(&mut self) {
        self.nodes.sort_unstable();
        self.nodes.dedup();
        self.distinct = self.nodes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Ordinal, PathId};

    #[test]
    fn what_is_noted_again_and_again_takes_little_room() {
        let mut noted = NotedNodes::default();
        for number in 0..10_000 {
            noted.note(NodeId::new(PathId(1), Ordinal(number * 7 % 10)));
            assert!(noted.nodes.len() <= 2 * 10 + MORE);
        }
        let expected: Vec<_> = (0..10).map(|n| NodeId::new(PathId(1), Ordinal(n))).collect();
        assert_eq!(noted.all(), expected);
    }
}
