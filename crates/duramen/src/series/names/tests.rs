use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;

use crate::memory::Evict;
use crate::node::NodeId;
use crate::series::tags;
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;
use crate::{CommitOptions, Database, DatabaseSnapshot, SeriesDefinition, SeriesFilter, ValueType};

#[derive(Debug, Clone)]
enum Step {
    Create(Vec<u8>),
    Delete(u8),
    Rename(u8, u8),
    Checkpoint,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => prop::collection::vec(0_u8..40, 1..8).prop_map(Step::Create),
        3 => (0_u8..40).prop_map(Step::Delete),
        3 => (0_u8..40, 0_u8..40).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::Checkpoint),
    ]
}

fn name(number: u8) -> String {
    format!("site/{}/tag/{number}", number % 3)
}

fn play(db: &Database, names: &mut BTreeSet<u8>, step: &Step) {
    let mut transaction = db.transaction();
    match step {
        Step::Create(numbers) => {
            for number in numbers.iter().filter(|number| !names.contains(*number)) {
                let new = [(name(*number), SeriesDefinition::new(ValueType::I64))];
                let _ = transaction.create_series_all(&new);
            }
            names.extend(numbers);
        }
        Step::Delete(number) if names.remove(number) => {
            transaction.delete_series(&name(*number)).unwrap();
        }
        Step::Rename(from, to) if !names.contains(to) && names.remove(from) => {
            transaction.rename_series(&name(*from), &name(*to)).unwrap();
            names.insert(*to);
        }
        Step::Checkpoint => db.checkpoint().unwrap(),
        _ => {}
    }
    transaction.commit(&CommitOptions::default()).unwrap();
}

fn check(snapshot: &DatabaseSnapshot, names: &BTreeSet<u8>) {
    let (tags, head) = snapshot.engine.view().series_tags(snapshot.sequence).unwrap();
    for prefix in ["site/1/tag/1", "site/", "site/2/tag/7", "t"] {
        let all: BTreeSet<String> = names.iter().map(|number| name(*number)).collect();
        let expected: Vec<&String> = all.iter().filter(|name| name.starts_with(prefix)).collect();
        let begun = tags::begun_with(&tags, prefix, head, 40).unwrap().unwrap();
        assert_eq!(begun.iter().map(|(name, _)| name).collect::<Vec<_>>(), expected);
        let fewer = tags::begun_with(&tags, prefix, head, expected.len().saturating_sub(1));
        assert!(expected.is_empty() || fewer.unwrap().is_none());
    }
    // Those of a few names come first, while the others are not known.
    for glob in
        ["site/1/tag/1*", "nowhere/*", "site/1/**", "site/?/tag/1*", "**", "**e/1**", "**1s**"]
    {
        let filter = SeriesFilter::glob(glob);
        let all: BTreeSet<String> = names.iter().map(|number| name(*number)).collect();
        let expected: Vec<&String> =
            all.iter().filter(|name| filter.name_pattern().takes(name)).collect();
        let found = snapshot.find_series(&filter).unwrap();
        assert_eq!(found.iter().map(|info| &info.name).collect::<Vec<_>>(), expected);
    }
}

/// Names were once kept beside the budget.
#[test]
fn names_are_counted_and_go_when_nobody_asked_for_them_since() {
    let db = Database::memory().unwrap();
    let mut names = BTreeSet::new();
    play(&db, &mut names, &Step::Create((0..20).collect()));
    let snapshot = db.snapshot();
    check(&snapshot, &names);
    let last = Arc::clone(&snapshot.engine.view().series.names);
    let bytes = last.0.lock().as_ref().unwrap().names.bytes();
    assert!(bytes > 20 * "site/1/tag/1".len(), "{bytes}");
    let nowhere = GroupId { space: SpaceId(0), group: 0 };
    assert!(!last.evict(nowhere), "they were just asked for");
    assert!(last.evict(nowhere));
    assert!(last.0.lock().is_none());
    check(&snapshot, &names);
}

/// What two names have together where they meet is in none of them.
#[test]
fn a_text_is_found_in_names_and_not_across_them() {
    let node = NodeId::default();
    let names = ["ab", "aba", "b", "ba", "bab", "cab"];
    let sorted: super::Sorted = names.iter().map(|name| (*name, node)).collect();
    for part in ["a", "ab", "ba", "bab", "aa", "bb", "c", "", "cabx"] {
        for places in [0..names.len(), 1..4, 2..2, 5..6] {
            let expected: Vec<_> = places.clone().filter(|at| names[*at].contains(part)).collect();
            assert_eq!(sorted.with(places, part).collect::<Vec<_>>(), expected, "{part}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn names_are_found_as_of_any_commit_whatever_came_and_went(
        steps in prop::collection::vec((step(), any::<bool>()), 1..24),
    ) {
        let db = Database::memory().unwrap();
        let (mut names, mut states) = (BTreeSet::new(), Vec::new());
        for (step, is_looked_at) in &steps {
            play(&db, &mut names, step);
            if *is_looked_at {
                check(&db.snapshot(), &names);
            }
            states.push((db.snapshot(), names.clone()));
        }
        for (snapshot, names) in states.iter().rev().step_by(3) {
            check(snapshot, names);
        }
    }
}
