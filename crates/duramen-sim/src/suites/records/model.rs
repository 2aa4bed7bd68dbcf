//! The whole state of all collections at each commit.

use std::collections::{BTreeMap, BTreeSet};

use super::COLLECTIONS;
use super::change::{NOTE, NOTE_BYTES};
use crate::json::Json;

/// A record's place: the number of its collection, and of its key.
pub(super) type Place = (usize, u64);

/// What is known of a key that was ever used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// Versions up to now.
    pub(super) versions: u64,
    /// None once it is deleted, and where it was purged.
    pub(super) value: Option<Json>,
    /// Whether it was there, and was purged since.
    pub(super) is_purged: bool,
}

impl Held {
    /// The version that it has, if it is there.
    fn there(&self) -> Option<u64> {
        (self.value.is_some() || self.is_purged).then_some(self.versions)
    }
}

/// All records at one commit.
pub(super) type State = BTreeMap<Place, Held>;

/// Every commit.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// The first is before the first commit.
    states: Vec<State>,
    /// Texts that were purged and are nowhere else.
    secrets: BTreeSet<String>,
}

/// What happened to a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Event<'a> {
    pub(super) revision: u64,
    /// None if it was deleted.
    pub(super) saved: Option<(u64, &'a Json)>,
    /// Whether what was saved was purged since.
    pub(super) is_purged: bool,
}

/// What a purge erases: a record, or one of its fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Purged {
    pub(super) place: Place,
    pub(super) field: Option<&'static str>,
}

impl Default for Model {
    fn default() -> Self {
        Self { states: vec![State::new()], secrets: BTreeSet::new() }
    }
}

impl Model {
    pub(super) fn newest(&self) -> &State {
        self.states.last().expect("there is a first state")
    }

    pub(super) fn commits(&self) -> usize {
        self.states.len() - 1
    }

    pub(super) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// What was purged of bytes that may have it.
    pub(super) fn secret_in<'b>(&self, bytes: &'b [u8]) -> Option<&'b str> {
        let notes = bytes.windows(NOTE.len()).enumerate();
        let notes = notes.filter(|(_, window)| *window == NOTE.as_bytes());
        let texts = notes.filter_map(|(at, _)| bytes.get(at..at + NOTE_BYTES));
        let mut texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
        texts.find(|text| self.secrets.contains(*text))
    }

    /// Forgets the commits after the first so many.
    pub(super) fn truncate(&mut self, commits: usize) {
        self.states.truncate(commits + 1);
    }

    /// Adds a commit, if anything differs: each record that does gets its next version.
    pub(super) fn push(&mut self, mut state: State) -> bool {
        let before = self.newest();
        let mut differs = false;
        for (place, held) in &mut state {
            let old = before.get(place);
            if old.and_then(|old| old.value.as_ref()) != held.value.as_ref() {
                held.versions += u64::from(held.value.is_some());
                differs = true;
            }
        }
        // A record that came and went in one commit was never there.
        state.retain(|place, held| before.contains_key(place) || held.value.is_some());
        if differs {
            self.states.push(state);
        }
        differs
    }

    /// Erases a value from the states of the first so many commits.
    pub(super) fn purge(&mut self, purged: Purged, commits: usize) {
        for state in &mut self.states[..=commits] {
            let Some(held) = state.get_mut(&purged.place) else { continue };
            if let Some(Json::Text(note)) = held.value.as_ref().and_then(|value| value.child(NOTE))
                && purged.field.is_none_or(|field| field == NOTE)
            {
                self.secrets.insert(note.clone());
            }
            match (purged.field, &mut held.value) {
                (None, value) => held.is_purged |= value.take().is_some(),
                (Some(field), Some(Json::Object(fields))) => {
                    let found = fields.iter_mut().filter(|(name, _)| name == field);
                    found.for_each(|(_, value)| *value = Json::Null);
                }
                (Some(_), _) => {}
            }
        }
    }

    /// The newest state with a collection as it was at a revision, without what was purged of it.
    pub(super) fn reverted(&self, (collection, revision): (usize, u64)) -> State {
        let states = self.revisions(collection);
        let then = states[usize::try_from(revision - 1).expect("an index")];
        let mut state = self.newest().clone();
        for (place, held) in state.range_mut((collection, 0)..(collection + 1, 0)) {
            held.value = then.get(place).and_then(|then| then.value.clone());
            held.is_purged = false;
        }
        state
    }

    /// The states that a collection's revisions have, from 1 on.
    pub(super) fn revisions(&self, collection: usize) -> Vec<&State> {
        let changed = |pair: &&[State]| {
            let records = |state| of(state, collection).collect::<Vec<_>>();
            records(&pair[0]) != records(&pair[1])
        };
        self.states.windows(2).filter(changed).map(|pair| &pair[1]).collect()
    }

    /// What happened to a record, newest first, in a history that begins with a revision: what was
    /// there then begins with it.
    pub(super) fn events(&self, place: Place, first: u64) -> Vec<Event<'_>> {
        let mut events = Vec::new();
        let mut before = None;
        let revisions = (1..).zip(self.revisions(place.0));
        for (revision, state) in revisions.skip_while(|&(revision, _)| revision < first) {
            let Some(held) = state.get(&place) else { continue };
            if held.there() != before {
                before = held.there();
                let saved = held.value.as_ref().map(|json| (held.versions, json));
                events.push(Event { revision, saved, is_purged: held.is_purged });
            }
        }
        events.reverse();
        events
    }

    /// How many commits there are with so many revisions of each collection.
    pub(super) fn commits_with(&self, revisions: [usize; COLLECTIONS.len()]) -> Option<usize> {
        (0..self.states.len()).rev().find(|&commits| {
            (0..COLLECTIONS.len()).all(|collection| {
                let so_far = &self.states[..=commits];
                let count = so_far
                    .windows(2)
                    .filter(|pair| !of(&pair[0], collection).eq(of(&pair[1], collection)))
                    .count();
                count == revisions[collection]
            })
        })
    }
}

/// Whether two records of a collection have the same code, which its index refuses.
pub(super) fn shares_code(state: &State) -> bool {
    (0..COLLECTIONS.len()).any(|collection| {
        let mut seen = BTreeSet::new();
        let values = of(state, collection).filter_map(|(_, held)| held.value.as_ref());
        let mut codes = values.filter_map(|value| value.child("code"));
        codes.any(|code| !seen.insert(code.to_string()))
    })
}

/// How many records a collection has, those counted that were purged since.
pub(super) fn count(state: &State, collection: usize) -> u64 {
    of(state, collection).filter(|(_, held)| held.there().is_some()).count() as u64
}

/// The records of one collection.
pub(super) fn of(state: &State, collection: usize) -> impl Iterator<Item = (&Place, &Held)> {
    state.range((collection, 0)..(collection + 1, 0))
}
