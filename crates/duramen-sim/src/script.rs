//! Random transactions, drawn from the model before the database sees them.

use std::collections::BTreeSet;

use duramen::Durability;

use crate::Random;
use crate::expectation::{Facts, Model, Staged};
use crate::specimen::{Json, Step};

/// One change of a transaction.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Create(String),
    Put(String, String),
    Set(String, Vec<Step>, String),
    Remove(String, Vec<Step>),
    /// Read your own write: what must be there.
    Get(String, Vec<Step>, String),
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Commit,
    Rollback,
    /// It expects a revision that is not the head: `Conflict`.
    Conflict,
}

/// A transaction: what to do, and what that makes.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    pub(crate) staged: Staged,
    pub(crate) durability: Durability,
    pub(crate) ending: Ending,
}

const NAMES: [&str; 6] = ["a", "b", "c", "players/1", "logs", "z"];

impl Plan {
    /// Any transaction over up to three documents, with large values if `heavy`.
    pub(crate) fn draw(model: &Model, random: &mut Random, heavy: bool) -> Self {
        let documents = 1 + random.index(3);
        let names: Vec<&str> = (0..documents).map(|_| random.choose(&NAMES)).collect();
        let count = random.choose(&[1, 1, 1, 2, 4, 20]);
        let mut plan = Self {
            changes: Vec::new(),
            staged: Staged::default(),
            durability: random.choose(&[
                Durability::Sync,
                Durability::Sync,
                Durability::Interval(5),
                Durability::Interval(10_000),
            ]),
            ending: match random.below(24) {
                0 => Ending::Rollback,
                1 => Ending::Conflict,
                _ => Ending::Commit,
            },
        };
        for _ in 0..count {
            let name = random.choose(&names);
            plan.change(model, name, random, heavy);
        }
        plan.staged.facts = plan.facts(model, random);
        plan
    }

    fn change(&mut self, model: &Model, name: &str, random: &mut Random, heavy: bool) {
        let staged = self.staged.values.get(name);
        let exists = staged.is_some() || model.documents.contains_key(name);
        let head = || model.documents.get(name).and_then(|document| document.head()).cloned();
        let value = match staged {
            Some(value) => value.clone(),
            None => head(),
        };
        if !exists && random.one_in(3) {
            self.changes.push(Change::Create(name.to_owned()));
            self.staged.values.insert(name.to_owned(), None);
            return;
        }
        let Some(mut value) = value else {
            let fresh = Json::document(random);
            return self.put(name, fresh);
        };
        match random.below(10) {
            0 => return self.put(name, Json::document(random)),
            1..=3 => {
                for _ in 0..=random.below(4) {
                    edit(&mut value, random);
                }
                return self.put(name, value);
            }
            4 | 5 => {
                let path = value.place(random);
                if !path.is_empty() {
                    value.remove(&path);
                    self.changes.push(Change::Remove(name.to_owned(), path));
                }
            }
            6 => {
                let path = value.place(random);
                let text = value.at(&path).map(Json::to_string).unwrap_or_default();
                self.changes.push(Change::Get(name.to_owned(), path, text));
            }
            _ => {
                let path = value.place_to_set(random);
                let new = if heavy && random.one_in(3) {
                    let bytes = random.choose(&[5_000, 20_000, 60_000]);
                    Json::text_of(random, bytes)
                } else {
                    Json::random(random, 2)
                };
                self.changes.push(Change::Set(name.to_owned(), path.clone(), new.to_string()));
                value.set(&path, new);
            }
        }
        self.staged.values.insert(name.to_owned(), Some(value));
    }

    fn put(&mut self, name: &str, value: Json) {
        self.changes.push(Change::Put(name.to_owned(), value.to_string()));
        if value.is_map() {
            self.staged.maps.insert(name.to_owned());
        }
        self.staged.values.insert(name.to_owned(), Some(value));
    }

    fn facts(&self, model: &Model, random: &mut Random) -> Facts {
        let revisions = model.documents.values().flat_map(|document| &document.revisions);
        let now = revisions.filter_map(|revision| revision.committed).max();
        let last = self.staged.values.keys().filter_map(|name| {
            let revision = model.documents.get(name)?.revisions.last()?;
            revision.facts.timestamp.or(revision.committed)
        });
        // Old history can only be given a time between the last revision and now.
        let given = last.max().map_or(1, |last| last + 1);
        let is_past = now.is_some_and(|now| given <= now);
        Facts {
            author: (!random.one_in(3)).then(|| random.choose(&["ann", "bob", "eve"]).to_owned()),
            message: random.one_in(3).then(|| format!("change {}", random.below(1_000))),
            timestamp: (is_past && random.one_in(6)).then_some(given),
        }
    }

    /// What kinds of things it does, for the record.
    pub(crate) fn kinds(&self, seen: &mut BTreeSet<&'static str>) {
        for change in &self.changes {
            seen.insert(match change {
                Change::Create(_) => "create",
                Change::Put(..) => "put",
                Change::Set(..) => "set",
                Change::Remove(..) => "remove",
                Change::Get(..) => "get",
            });
        }
        seen.insert(match self.durability {
            Durability::Sync => "sync commit",
            Durability::Interval(_) => "interval commit",
        });
        seen.insert(match self.ending {
            Ending::Commit if self.staged.values.len() > 1 => "commit of several documents",
            Ending::Commit => "commit",
            Ending::Rollback => "rollback",
            Ending::Conflict => "conflict",
        });
        if self.staged.facts.timestamp.is_some() {
            seen.insert("given timestamp");
        }
    }
}

fn edit(value: &mut Json, random: &mut Random) {
    let path = value.place(random);
    if random.one_in(3) && !path.is_empty() {
        value.remove(&path);
    } else {
        let path = value.place_to_set(random);
        value.set(&path, Json::random(random, 2));
    }
}
