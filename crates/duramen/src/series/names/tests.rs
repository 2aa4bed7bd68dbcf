use std::collections::BTreeSet;
use std::ops::ControlFlow;

use proptest::prelude::*;

use crate::series::tags;
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

#[test]
fn names_of_several_row_groups_are_found_young_and_stored() {
    let name = |number: usize| format!("{}/tag-{number}", number % 1_000);
    let db = Database::memory().unwrap();
    let definition = SeriesDefinition::new(ValueType::I64);
    let all: Vec<_> = (0..9_000).map(|number| (name(number), definition.clone())).collect();
    db.create_series_all(&all).unwrap();
    let whole = db.snapshot();
    let mut transaction = db.transaction();
    for number in (0..9_000).filter(|number| number % 5 == 0) {
        transaction.delete_series(&name(number)).unwrap();
    }
    transaction.commit(&CommitOptions::default()).unwrap();
    let left = db.snapshot();
    for stage in ["young", "stored", "compressed"] {
        match stage {
            "stored" => db.checkpoint().unwrap(),
            "compressed" => db.compact(&mut |_, _| ControlFlow::Continue(())).unwrap(),
            _ => {}
        }
        for glob in ["*/tag-77*", "**5*", "**4095", "**4096", "1*/**1"] {
            let filter = SeriesFilter::glob(glob);
            for (snapshot, step) in [(&whole, usize::MAX), (&left, 5)] {
                let there = (0..9_000).filter(|number| step > 9_000 || number % step != 0);
                let expected: BTreeSet<String> =
                    there.map(name).filter(|name| filter.name_pattern().takes(name)).collect();
                let found = snapshot.find_series(&filter).unwrap();
                assert!(found.iter().map(|info| &info.name).eq(&expected), "{glob}, {stage}");
            }
        }
    }
}

/// What is read together, of places far apart and in another order than that of the names, is what
/// is read one by one.
#[test]
fn series_that_are_read_together_are_those_that_are_read_one_by_one() {
    let db = Database::memory().unwrap();
    let definition = |number: usize| {
        let mut definition = SeriesDefinition::new(ValueType::ALL[number % ValueType::ALL.len()]);
        if number.is_multiple_of(3) {
            definition.labels = [("site".to_owned(), format!("\"{}", number % 2))].into();
        }
        if number.is_multiple_of(4) {
            definition.unit = "\u{b0}C".to_owned();
            definition.display = Some((-0.5, 1e9));
        }
        definition
    };
    let name = |number: usize| format!("{}/tag-{number}", (number * 7) % 1_000);
    let all: Vec<_> = (0..9_000).map(|number| (name(number), definition(number))).collect();
    for some in all.chunks(4_000) {
        db.create_series_all(some).unwrap();
    }
    let before = db.snapshot();
    for number in (0..9_000).step_by(701) {
        let other = SeriesDefinition { unit: "K".to_owned(), ..definition(number) };
        let mut transaction = db.transaction();
        transaction.change_series(&name(number), &other).unwrap();
        transaction.commit(&CommitOptions::default()).unwrap();
    }
    let north = [("site".to_owned(), "\"1".to_owned())].into();
    let filters = [
        SeriesFilter::glob("**7*"),
        SeriesFilter { value_type: Some(ValueType::Bool), ..SeriesFilter::glob("**1*") },
        SeriesFilter { labels: north, ..SeriesFilter::default() },
    ];
    for is_stored in [false, true] {
        if is_stored {
            db.checkpoint().unwrap();
        }
        for snapshot in [&before, &db.snapshot()] {
            let (tags, head) = snapshot.engine.view().series_tags(snapshot.sequence).unwrap();
            for filter in &filters {
                let names = super::like((&tags, head), filter.name_pattern()).unwrap();
                let one_by_one = names
                    .iter()
                    .map(|(name, entry)| tags::read(&tags, (name, *entry), head).unwrap());
                let expected: Vec<_> =
                    one_by_one.filter(|info| filter.takes(&info.definition)).collect();
                assert!(expected.len() > 100);
                assert_eq!(super::read((&tags, head), &names, filter).unwrap(), expected);
            }
        }
    }
}
