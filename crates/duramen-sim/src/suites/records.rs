//! Collections under power losses, killed processes and failing devices: random changes of records,
//! several in a commit, are compared with a naive model that keeps the whole state of each commit.
//!
//! Invariants:
//! - a commit is there whole or not at all, and none before one that is there is missing;
//! - what was acknowledged is there, or, after a power loss, what was durable;
//! - each record at each revision that is kept, its version, its history, the order of keys and
//!   what indexes find are the model's;
//! - copies made of dumps and exported histories count versions on as the model does;
//! - backups, restored to any commit, are what the model says, and what was purged is in no file of
//!   them or of a repair, nor told by a feed or a dump;
//! - a revision is dropped only if some retention let it go, and then refused.

mod change;
mod compare;
mod copies;
mod model;
mod outside;
mod purge;

use std::collections::BTreeSet;

use duramen::{
    CommitOptions, Database, Durability, Error, ErrorKind, IndexDefinition, KeyKind, Outcome,
    Retention, Revision,
};

use super::machine::{Machine, Stop};
use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use change::{Change, NOTE};
use model::{Model, Purged, shares_code};

/// The collections, with the type of their keys.
const COLLECTIONS: [(&str, KeyKind); 2] = [("players", KeyKind::Text), ("days", KeyKind::I64)];
/// The indexes of each, with their paths.
const INDEXES: [(&str, &str); 3] =
    [("by-score", "score"), ("by-tag", "tags[*]"), ("by-note", NOTE)];
/// The one that refuses values that another record has.
const UNIQUE: (&str, &str) = ("by-code", "code");
/// Keys of each.
const KEYS: u64 = 24;
const LIVES: u64 = 3;
const STEPS: u64 = 90;
/// Changes of a commit.
const CHANGES_MAX: u64 = 5;
const DURABILITIES: [Durability; 3] =
    [Durability::Sync, Durability::Interval(5), Durability::Interval(10_000)];

/// What the rounds have to come to: a revision that was dropped is among it.
const EVENTS: [&str; 12] = [
    "close",
    "commit",
    "departed",
    "dropped",
    "earlier",
    "kill",
    "look",
    "purge",
    "purge later",
    "retention",
    "revert",
    "secret",
];

/// So many rounds.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    let report = run(Suite::new("records"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Records { seed }.round()
    });
    report.require(&EVENTS)
}

/// Two collections, and what should be in them.
struct Store {
    machine: Machine,
    model: Model,
    /// The commit that a power loss cannot take, and the one that was acknowledged.
    durable: usize,
    acknowledged: usize,
    /// What was purged without an answer, by the commit of this number, if that is there.
    purging: Option<(Purged, usize)>,
    /// Of each collection the retentions that it may have, and the latest revision that its history
    /// may begin with for them.
    retentions: [Vec<Retention>; COLLECTIONS.len()],
    first_max: [u64; COLLECTIONS.len()],
}

/// The round of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let machine = Machine::new(seed ^ 0x7ec0);
    let mut store = Store {
        machine,
        model: Model::default(),
        durable: 0,
        acknowledged: 0,
        purging: None,
        retentions: Default::default(),
        first_max: [1; COLLECTIONS.len()],
    };
    for _ in 0..LIVES {
        let db = store.open()?;
        store.machine.plan_fault();
        store.live(&db)?;
        if store.machine.end(db) {
            store.durable = store.acknowledged;
        }
    }
    let db = store.open()?;
    let report = said("check", db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    if copies::compare(&db, &store.model, &store.machine.clock)? {
        store.machine.seen.insert("departed");
    }
    let found = outside::compare(&db, &store.model, &mut store.machine)?;
    store.machine.seen.extend(found);
    let trace = store.machine.device.trace();
    let Machine { compactions, seen, .. } = store.machine;
    Ok(Tally { losses: LIVES, compactions, seen, trace, ..Tally::default() })
}

impl Store {
    /// Opens the store, and compares what is there.
    fn open(&mut self) -> Check<Database> {
        let db = self.machine.open()?;
        if said("collections", db.collections())?.is_empty() {
            self.create(&db)?;
        }
        let found = compare::commits(&db, &self.model)?;
        let least = if self.machine.was_killed { self.acknowledged } else { self.durable };
        if found < least {
            return Err(format!("{found} commits are there, at least {least} should be"));
        }
        self.model.truncate(found);
        // One that was committed goes on when the database is opened.
        if let Some((purged, commit)) = self.purging.take().filter(|(_, commit)| *commit <= found) {
            self.model.purge(purged, commit - 1);
            self.machine.seen.insert("purge later");
        }
        (self.durable, self.acknowledged) = (found, found);
        self.compare(&db)?;
        Ok(db)
    }

    fn create(&self, db: &Database) -> Check {
        if self.acknowledged > 0 {
            return Err("the collections are gone".to_owned());
        }
        for (name, keys) in COLLECTIONS {
            let collection = said("collection", db.create_collection(name, keys))?;
            for (index, path) in INDEXES {
                let definition = said("index", IndexDefinition::new(index, &[path]))?;
                said("index", collection.create_index(&definition))?;
            }
            let definition = said("index", IndexDefinition::new(UNIQUE.0, &[UNIQUE.1]))?;
            said("index", collection.create_index(&definition.unique()))?;
        }
        said("flush", db.flush())
    }

    /// Changes and chores until they are done or something is final.
    fn live(&mut self, db: &Database) -> Check {
        for _ in 0..STEPS {
            self.machine.clock.forward(1_000);
            let done = match self.machine.random.below(20) {
                0 => self.settle(db.checkpoint()),
                1 => self.settle(db.flush()),
                2 if self.machine.random.one_in(4) => {
                    self.settle(db.compact(&mut |_, _| std::ops::ControlFlow::Continue(())))
                }
                3 => self.look(db),
                4 if self.machine.random.one_in(3) => self.retain(db),
                5 if self.machine.random.one_in(4) => self.purge(db),
                6 if self.machine.random.one_in(3) => self.revert(db),
                _ => self.commit(db),
            };
            match done {
                Ok(()) | Err(Stop::Again) => {}
                Err(Stop::Over) => break,
                Err(Stop::Wrong(what)) => return Err(what),
            }
        }
        Ok(())
    }

    /// A commit of some changes.
    fn commit(&mut self, db: &Database) -> Result<(), Stop> {
        let mut state = self.model.newest().clone();
        let mut transaction = db.transaction();
        let mut places = BTreeSet::new();
        for _ in 0..=self.machine.random.below(CHANGES_MAX) {
            let change = Change::draw(&mut self.machine.random, &state);
            // Versions count commits, so each record is changed once.
            if !places.insert(change.place) {
                continue;
            }
            let expected = change.apply(&mut state);
            let found = change.call(&mut transaction);
            match (&found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(kind)) if error.kind() == kind => {}
                (Err(error), _) if self.machine.is_faulty || self.machine.device.is_off() => {
                    return Err(self.machine.stop(error));
                }
                _ => {
                    let what = format!("{change:?} gave {found:?}, expected {expected:?}");
                    return Err(Stop::Wrong(what));
                }
            }
        }
        if self.machine.random.one_in(12) {
            transaction.rollback();
            return Ok(());
        }
        let durability = self.machine.random.choose(&DURABILITIES);
        let options = CommitOptions { durability: Some(durability), ..CommitOptions::default() };
        let is_refused = shares_code(&state);
        let is_change = !is_refused && self.model.push(state);
        self.let_go();
        match transaction.commit(&options) {
            Err(error) if is_refused && error.kind() == ErrorKind::Conflict => {
                self.machine.seen.insert("refused");
                Ok(())
            }
            Ok(_) if is_refused => Err(Stop::Wrong("two records share a code".to_owned())),
            Ok(committed) if (committed.sequence.0 > 0) == is_change => {
                self.acknowledged = self.model.commits();
                // One that changes nothing promises as much, of the collections it names.
                let names_all = (0..COLLECTIONS.len())
                    .all(|number| places.iter().any(|place| place.0 == number));
                if durability == Durability::Sync && (is_change || names_all) {
                    self.durable = self.acknowledged;
                }
                self.machine.seen.insert("commit");
                Ok(())
            }
            Ok(_) if is_change => Err(Stop::Wrong("a change made no commit".to_owned())),
            Ok(_) => Err(Stop::Wrong("nothing changed, and there is a commit".to_owned())),
            Err(error) => Err(self.uncommitted(&error)),
        }
    }

    /// What it means that a commit has no answer.
    fn uncommitted(&mut self, error: &Error) -> Stop {
        let stop = self.machine.stop(error);
        // It shows after a restart whether it is there.
        if matches!(stop, Stop::Again) {
            self.model.truncate(self.acknowledged);
        }
        // Nothing is committed after one that could not be written, though changes that build on
        // it can be staged.
        if error.kind() == ErrorKind::Io { Stop::Over } else { stop }
    }

    /// Makes a collection what it was at a revision; what was purged stays away.
    fn revert(&mut self, db: &Database) -> Result<(), Stop> {
        let number = self.machine.random.index(COLLECTIONS.len());
        let collection = db.collection(COLLECTIONS[number].0);
        let document = collection.map_err(|error| self.machine.stop(&error))?.document().clone();
        let first = document.first_revision().map_err(|error| self.machine.stop(&error))?.0;
        let newest = self.model.revisions(number).len() as u64;
        if newest < first {
            return Ok(());
        }
        let revision = first + self.machine.random.below(newest + 1 - first);
        let is_change = self.model.push(self.model.reverted((number, revision)));
        self.let_go();
        match document.revert_to(Revision(revision), &CommitOptions::default()) {
            Ok(Outcome::Committed(_)) if is_change => {
                self.acknowledged = self.model.commits();
                self.durable = self.acknowledged;
                self.machine.seen.insert("revert");
                Ok(())
            }
            Ok(Outcome::Unchanged(_)) if !is_change => Ok(()),
            Ok(outcome) => Err(Stop::Wrong(format!("a return to {revision} came to {outcome:?}"))),
            Err(error) => Err(self.uncommitted(&error)),
        }
    }

    /// Reads while the database is open.
    fn look(&mut self, db: &Database) -> Result<(), Stop> {
        self.machine.seen.insert("look");
        let found = self.compare(db);
        self.machine.unread(found)
    }

    fn compare(&mut self, db: &Database) -> Check {
        let firsts = compare::everything(db, &self.model, &mut self.machine.random)?;
        for (first, latest) in firsts.into_iter().zip(self.first_max) {
            if first > latest {
                return Err(format!("a history begins at {first}, expected {latest} at most"));
            }
            if first > 1 {
                self.machine.seen.insert("dropped");
            }
        }
        Ok(())
    }

    /// Says how much of the history of a collection is kept.
    fn retain(&mut self, db: &Database) -> Result<(), Stop> {
        let number = self.machine.random.index(COLLECTIONS.len());
        let keep = match self.machine.random.below(4) {
            0 => Retention::All,
            1 => Retention::Head,
            _ => Retention::Last(1 + self.machine.random.below(20)),
        };
        // Whether it is there after a failure is not known, and a crash may take it back.
        self.retentions[number].push(keep);
        self.let_go();
        let collection = db.collection(COLLECTIONS[number].0);
        let retained = collection
            .and_then(|found| found.document().retain(keep, &CommitOptions::default()).map(drop));
        retained.map_err(|error| self.machine.stop(&error))?;
        self.machine.seen.insert("retention");
        Ok(())
    }

    /// Purges a record of the first collection, or one of its fields.
    fn purge(&mut self, db: &Database) -> Result<(), Stop> {
        let mut state = self.model.newest().clone();
        let Some(purged) = purge::draw(&mut self.machine.random, &mut state) else {
            return Ok(());
        };
        if !self.model.push(state) {
            return Err(Stop::Wrong(format!("{purged:?} changes nothing")));
        }
        self.let_go();
        let commits = self.model.commits();
        match purge::call(purged, db) {
            Ok(()) => {
                self.model.purge(purged, commits - 1);
                (self.durable, self.acknowledged) = (commits, commits);
                self.machine.seen.insert("purge");
                Ok(())
            }
            Err(error) => {
                self.purging = Some((purged, commits));
                // Until it is done nobody writes the collection, so the life is over anyway.
                Err(match self.machine.stop(&error) {
                    Stop::Again => Stop::Over,
                    stop => stop,
                })
            }
        }
    }

    /// Notes what the retentions let go with the commits that there may be.
    fn let_go(&mut self) {
        let retentions = self.first_max.iter_mut().zip(&self.retentions);
        for (number, (first, keeps)) in retentions.enumerate() {
            let head = self.model.revisions(number).len() as u64;
            let begin = |keep: &Retention| match keep {
                Retention::Head => head,
                Retention::Last(count) => (head + 1).saturating_sub(*count),
                Retention::All | Retention::For(_) => 1,
            };
            *first = keeps.iter().map(begin).max().unwrap_or(1).max(*first);
        }
    }

    /// After this everything acknowledged is durable.
    fn settle(&mut self, result: duramen::Result<()>) -> Result<(), Stop> {
        result.map_err(|error| self.machine.stop(&error))?;
        self.durable = self.acknowledged;
        Ok(())
    }
}
