use super::*;

/// A transaction that is under way from one instant to another.
fn transaction(begin: u64, end: u64, steps: &[Step]) -> Observed {
    Observed { begin, end, steps: steps.to_vec(), outcome: Outcome::Committed }
}

/// Transactions that are all under way at the same time, and then a last look at the lists.
fn together(transactions: &[&[Step]], last: &[Step]) -> Vec<Observed> {
    let mut history: Vec<Observed> =
        transactions.iter().map(|steps| transaction(0, 10, steps)).collect();
    history.push(transaction(20, 30, last));
    history
}

fn append(key: Key, value: Value) -> Step {
    Step::Append(key, value)
}

fn read(key: Key, list: &[Value]) -> Step {
    Step::Read(key, list.to_vec())
}

fn anomalies(history: &[Observed], isolation: Isolation) -> Vec<Anomaly> {
    check(history, isolation).into_iter().map(|finding| finding.anomaly).collect()
}

fn assert_both(history: &[Observed], expected: Anomaly) {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        assert_eq!(anomalies(history, isolation), [expected], "{isolation:?}");
    }
}

#[test]
fn a_history_one_after_the_other_is_fine() {
    let history = [
        transaction(0, 1, &[append(1, 1), read(1, &[1])]),
        transaction(2, 3, &[read(1, &[1]), append(1, 2), append(1, 3), read(1, &[1, 2, 3])]),
        transaction(4, 5, &[read(1, &[1, 2, 3]), read(2, &[])]),
        transaction(
            6,
            7,
            &[
                Step::ReadAt(1, 1, vec![]),
                Step::ReadAt(1, 2, vec![1]),
                Step::ReadAt(1, 3, vec![1, 2, 3]),
            ],
        ),
    ];
    assert_eq!(check(&history, Isolation::Serializable), []);
}

#[test]
fn two_that_overwrite_each_other_are_g0() {
    let history = together(
        &[&[append(1, 1), append(2, 1)], &[append(1, 2), append(2, 2)]],
        &[read(1, &[1, 2]), read(2, &[2, 1])],
    );
    assert_both(&history, Anomaly::G0);
}

#[test]
fn a_read_of_what_was_rolled_back_is_g1a() {
    let mut history = together(&[&[append(1, 1)]], &[read(1, &[1])]);
    history[0].outcome = Outcome::Aborted;
    assert_both(&history, Anomaly::G1a);
    history[0].outcome = Outcome::Unknown;
    assert_eq!(check(&history, Isolation::Serializable), []);
}

#[test]
fn a_read_in_the_middle_of_a_transaction_is_g1b() {
    let history = together(&[&[append(1, 1), append(1, 2)], &[read(1, &[1])]], &[read(1, &[1, 2])]);
    assert_both(&history, Anomaly::G1b);
}

#[test]
fn two_that_read_each_other_are_g1c() {
    let history = together(
        &[&[append(1, 1), read(2, &[2])], &[append(2, 2), read(1, &[1])]],
        &[read(1, &[1]), read(2, &[2])],
    );
    assert_both(&history, Anomaly::G1c);
}

#[test]
fn a_read_of_half_of_what_another_committed_is_g_single() {
    let history = together(
        &[&[append(1, 1), append(2, 1)], &[read(1, &[1]), read(2, &[])]],
        &[read(1, &[1]), read(2, &[1])],
    );
    assert_both(&history, Anomaly::GSingle);
}

#[test]
fn write_skew_is_g2_item_and_allowed_under_snapshot_isolation() {
    let history = together(
        &[&[read(1, &[]), append(2, 1)], &[read(2, &[]), append(1, 1)]],
        &[read(1, &[1]), read(2, &[1])],
    );
    assert_eq!(anomalies(&history, Isolation::Serializable), [Anomaly::G2Item]);
    assert_eq!(anomalies(&history, Isolation::Snapshot), []);
}

#[test]
fn an_append_that_is_overwritten_unseen_is_a_lost_update() {
    let history =
        together(&[&[read(1, &[]), append(1, 1)], &[read(1, &[]), append(1, 2)]], &[read(1, &[2])]);
    assert_both(&history, Anomaly::LostUpdate);
}

#[test]
fn a_stale_snapshot_after_an_acknowledged_commit_is_found() {
    let history = [
        transaction(0, 1, &[append(1, 1)]),
        transaction(2, 3, &[read(1, &[])]),
        transaction(4, 5, &[read(1, &[1])]),
    ];
    assert_both(&history, Anomaly::GSingle);
}

#[test]
fn a_transaction_that_forgets_what_it_did_is_internal() {
    let history = together(&[&[append(1, 1), read(1, &[])]], &[read(1, &[1])]);
    assert_both(&history, Anomaly::Internal);
    let history = together(&[&[append(1, 1)], &[read(1, &[]), read(1, &[1])]], &[read(1, &[1])]);
    assert_both(&history, Anomaly::Internal);
}

#[test]
fn reads_that_no_order_has_both_of_are_told() {
    let history =
        together(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[2])]], &[read(1, &[1, 2])]);
    assert!(anomalies(&history, Isolation::Snapshot).contains(&Anomaly::Order));
}

#[test]
fn a_past_that_changed_is_told() {
    let past = |list: &[Value]| Step::ReadAt(1, 2, list.to_vec());
    let history =
        |list| together(&[&[append(1, 1)], &[append(1, 2)]], &[read(1, &[1, 2]), past(list)]);
    assert_both(&history(&[1, 2]), Anomaly::Past);
    assert_eq!(check(&history(&[1]), Isolation::Serializable), []);
}

/// Databases of three isolation levels, played by one thread whose transactions interleave.
mod simulated {
    use std::collections::BTreeMap;

    use super::*;
    use crate::Random;

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Level {
        /// Everybody writes and reads in place.
        ReadUncommitted,
        /// Reads see the newest commit of each list.
        ReadCommitted,
        /// Reads see one snapshot; who writes what changed since is rolled back.
        Snapshot,
        /// So is who read what changed since.
        Serializable,
    }

    type State = BTreeMap<Key, Vec<Value>>;

    struct Open {
        observed: Observed,
        snapshot: State,
        own: Vec<(Key, Value)>,
    }

    fn history(level: Level, seed: u64) -> Vec<Observed> {
        let mut random = Random::new(seed);
        let (mut state, mut next, mut clock) = (State::new(), 0, 0);
        let mut history = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        for _ in 0..1_200 {
            clock += 1;
            if open.len() < 4 {
                let observed = transaction(clock, 0, &[]);
                open.push(Open { observed, snapshot: state.clone(), own: Vec::new() });
            }
            let at = random.index(open.len());
            if random.one_in(4) {
                let done = open.swap_remove(at);
                history.push(end(level, done, &mut state, clock));
                continue;
            }
            let key = Key::try_from(random.below(3)).unwrap();
            let transaction = &mut open[at];
            if random.one_in(2) {
                next += 1;
                transaction.observed.steps.push(append(key, next));
                transaction.own.push((key, next));
                if level == Level::ReadUncommitted {
                    state.entry(key).or_default().push(next);
                }
                continue;
            }
            let source = match level {
                Level::ReadUncommitted | Level::ReadCommitted => &state,
                Level::Snapshot | Level::Serializable => &transaction.snapshot,
            };
            let mut list = source.get(&key).cloned().unwrap_or_default();
            if level != Level::ReadUncommitted {
                let own = transaction.own.iter().filter(|(of, _)| *of == key);
                list.extend(own.map(|(_, value)| value));
            }
            transaction.observed.steps.push(Step::Read(key, list));
        }
        let reads = state.iter().map(|(key, list)| Step::Read(*key, list.clone())).collect();
        let outcome = Outcome::Committed;
        history.push(Observed { begin: clock + 1, end: clock + 2, steps: reads, outcome });
        // What never ended has appended nothing, but where all is in place.
        history.extend(open.into_iter().map(|open| Observed {
            end: clock + 1,
            outcome: Outcome::Aborted,
            ..open.observed
        }));
        history
    }

    fn end(level: Level, done: Open, state: &mut State, clock: u64) -> Observed {
        let Open { observed, snapshot, own } = done;
        let mut observed = Observed { end: clock, ..observed };
        let has_changed = |key: &Key| state.get(key) != snapshot.get(key);
        let is_refused = match level {
            Level::ReadUncommitted | Level::ReadCommitted => false,
            Level::Snapshot => own.iter().any(|(key, _)| has_changed(key)),
            Level::Serializable => observed.steps.iter().any(|step| match step {
                Step::Append(key, _) | Step::Read(key, _) | Step::ReadAt(key, ..) => {
                    has_changed(key)
                }
            }),
        };
        if is_refused {
            observed.outcome = Outcome::Aborted;
        } else if level != Level::ReadUncommitted {
            for (key, value) in own {
                state.entry(key).or_default().push(value);
            }
        }
        observed
    }

    fn failures(level: Level, isolation: Isolation) -> usize {
        (0..40).filter(|&seed| !check(&history(level, seed), isolation).is_empty()).count()
    }

    #[test]
    fn each_level_passes_what_it_promises_and_fails_what_it_does_not() {
        assert_eq!(failures(Level::Serializable, Isolation::Serializable), 0);
        assert_eq!(failures(Level::Snapshot, Isolation::Snapshot), 0);
        assert_eq!(failures(Level::Snapshot, Isolation::Serializable), 40);
        assert_eq!(failures(Level::ReadCommitted, Isolation::Snapshot), 40);
        assert_eq!(failures(Level::ReadUncommitted, Isolation::Snapshot), 40);
    }
}
