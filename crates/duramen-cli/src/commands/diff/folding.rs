//! Changes as people understand them.
//!
//! A JSON Patch can only add a member behind all others of its object, so the engine's changes
//! remove and add again what follows a member that came into the middle. Here each such pair is
//! one replacement, or nothing where only the place among the members is another.

use std::collections::{HashMap, HashSet};

use duramen::{Change, ChangeKind, JsonPointer, NodeId};

/// One difference between two revisions.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Difference<'a> {
    Added {
        at: &'a Change,
        after: &'a str,
    },
    Removed {
        at: &'a Change,
        before: &'a str,
    },
    Replaced {
        at: &'a Change,
        before: &'a str,
        after: &'a str,
    },
    /// The members of the object here stand in another order, and are the same.
    Reordered {
        object: JsonPointer,
    },
}

/// The differences that `changes` amount to.
pub(super) fn fold(changes: &[Change]) -> Vec<Difference<'_>> {
    let added: HashMap<(NodeId, &JsonPointer), &Change> = changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Added)
        .map(|change| ((change.node, &change.pointer), change))
        .collect();
    let removed: HashSet<(NodeId, &JsonPointer)> = changes
        .iter()
        .filter(|change| change.kind == ChangeKind::Removed)
        .map(|change| (change.node, &change.pointer))
        .collect();

    let mut differences = Vec::new();
    let (mut moved_in, mut edited) = (Vec::new(), HashSet::new());
    for change in changes {
        let place = (change.node, &change.pointer);
        let (before, after) = (text(change.before.as_ref()), text(change.after.as_ref()));
        let difference = match change.kind {
            ChangeKind::Replaced => Difference::Replaced { at: change, before, after },
            ChangeKind::Added if removed.contains(&place) => continue,
            ChangeKind::Added => Difference::Added { at: change, after },
            ChangeKind::Removed => {
                match added.get(&place).map(|again| text(again.after.as_ref())) {
                    None => Difference::Removed { at: change, before },
                    Some(after) if after == before => {
                        moved_in.extend(change.pointer.parent());
                        continue;
                    }
                    Some(after) => Difference::Replaced { at: change, before, after },
                }
            }
        };
        if change.kind != ChangeKind::Replaced {
            edited.extend(change.pointer.parent());
        }
        differences.push(difference);
    }
    moved_in.dedup();
    let reordered = moved_in.into_iter().filter(|object| !edited.contains(object));
    differences.extend(reordered.map(|object| Difference::Reordered { object }));
    differences
}

fn text(json: Option<&String>) -> &str {
    json.map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: ChangeKind, pointer: &str, json: &str) -> Change {
        let node = NodeId::from_number(pointer.len() as u64);
        let pointer = JsonPointer::parse(pointer).unwrap();
        let (before, after) = match kind {
            ChangeKind::Added => (None, Some(json.to_owned())),
            _ => (Some(json.to_owned()), None),
        };
        Change { kind, pointer, node, before, after }
    }

    #[test]
    fn member_added_in_the_middle_is_one_difference() {
        let changes = [
            change(ChangeKind::Removed, "/last", "1"),
            change(ChangeKind::Added, "/middle", "2"),
            change(ChangeKind::Added, "/last", "1"),
        ];
        assert_eq!(fold(&changes), [Difference::Added { at: &changes[1], after: "2" }]);
    }

    #[test]
    fn member_that_moved_and_differs_is_replaced() {
        let changes =
            [change(ChangeKind::Removed, "/a", "1"), change(ChangeKind::Added, "/a", "2")];
        let replaced = Difference::Replaced { at: &changes[0], before: "1", after: "2" };
        assert_eq!(fold(&changes), [replaced]);
    }

    #[test]
    fn members_in_another_order_are_told_once() {
        let changes = [
            change(ChangeKind::Removed, "/o/a", "1"),
            change(ChangeKind::Removed, "/o/bc", "2"),
            change(ChangeKind::Added, "/o/bc", "2"),
            change(ChangeKind::Added, "/o/a", "1"),
        ];
        let object = JsonPointer::parse("/o").unwrap();
        assert_eq!(fold(&changes), [Difference::Reordered { object }]);
    }

    #[test]
    fn other_value_at_the_same_place_is_removed_and_added() {
        let mut changes =
            [change(ChangeKind::Removed, "/a", "1"), change(ChangeKind::Added, "/a", "1")];
        changes[1].node = NodeId::from_number(99);
        assert_eq!(fold(&changes).len(), 2);
    }
}
