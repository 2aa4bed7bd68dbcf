//! One change of a record.

use duramen::{ErrorKind, Key, Transaction};

use super::model::{Held, Place, State};
use super::{COLLECTIONS, KEYS};
use crate::Random;
use crate::json::Json;
use crate::samples::{Samples, Scale};

const NAMES: [&str; 6] = ["ann", "bob", "cy", "di", "\u{e9}va", ""];
const TAGS: [&str; 4] = ["new", "top", "old", "x"];

/// The field of texts that are nowhere else: they begin with its name and have so many bytes.
pub(super) const NOTE: &str = "note";
pub(super) const NOTE_BYTES: usize = 20;

/// Codes, of which no two records of a collection have the same.
const CODES: u64 = 60;

/// What is done to one record.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) place: Place,
    action: Action,
}

#[derive(Debug)]
enum Action {
    Insert(Json),
    Put(Json),
    Update(u64, Json),
    Merge(Json),
    Delete,
}

impl Change {
    /// Draws one; it may be one that is refused.
    pub(super) fn draw(random: &mut Random, state: &State) -> Self {
        let place = (random.index(COLLECTIONS.len()), random.below(KEYS));
        let held = state.get(&place);
        let value = record(random);
        let action = match random.below(8) {
            0 => Action::Insert(value),
            1 | 2 => Action::Put(value),
            3 => {
                let version = held.map_or(0, |held| held.versions);
                Action::Update(if random.one_in(4) { version + 1 } else { version }, value)
            }
            4 | 5 => Action::Merge(part(random)),
            6 => Action::Delete,
            // It saves what is there.
            _ => Action::Put(held.and_then(|held| held.value.clone()).unwrap_or(value)),
        };
        Self { place, action }
    }

    /// What it should do; the state is that of the transaction.
    pub(super) fn apply(&self, state: &mut State) -> Result<(), ErrorKind> {
        let held = state.get(&self.place);
        let value = held.and_then(|held| held.value.clone());
        let versions = held.map_or(0, |held| held.versions);
        let next = match (&self.action, value) {
            (Action::Insert(next), None) | (Action::Put(next), _) => Some(next.clone()),
            (Action::Update(expected, next), Some(_)) if *expected == versions => {
                Some(next.clone())
            }
            (Action::Insert(_), Some(_)) | (Action::Update(..), _) => {
                return Err(ErrorKind::Conflict);
            }
            (Action::Merge(_), None) => return Err(ErrorKind::NotFound),
            (Action::Merge(patch), Some(mut value)) => {
                value.merge(patch);
                Some(value)
            }
            (Action::Delete, _) => None,
        };
        if next.is_some() || held.is_some() {
            state.insert(self.place, Held { versions, value: next, is_purged: false });
        }
        Ok(())
    }

    /// Does it.
    pub(super) fn call(&self, transaction: &mut Transaction) -> duramen::Result<()> {
        let (name, key) = (COLLECTIONS[self.place.0].0, key(self.place));
        let text = |json: &Json| json.to_string().into_bytes();
        match &self.action {
            Action::Insert(json) => transaction.insert_record(name, &key, &text(json)),
            Action::Put(json) => transaction.put_record(name, &key, &text(json)),
            Action::Update(version, json) => {
                transaction.update_record(name, &key, *version, &text(json))
            }
            Action::Merge(patch) => transaction.merge_patch_record(name, &key, &text(patch)),
            Action::Delete => transaction.delete_records(name, &[key]).map(drop),
        }
    }
}

/// The key of a place: keys are in the order of their numbers.
pub(super) fn key((collection, number): Place) -> Key {
    match collection {
        0 => Key::Text(format!("{}/{number:02}", if number < KEYS / 2 { "a" } else { "b" })),
        _ => Key::I64(number.cast_signed() - KEYS.cast_signed() / 2),
    }
}

/// A record with some of the fields, and at times with what no other has.
fn record(random: &mut Random) -> Json {
    let Json::Object(mut fields) = part(random) else { unreachable!("a part is an object") };
    if random.one_in(8) {
        fields.push(("more".to_owned(), Samples::new(random, Scale::SMALL).small()));
    }
    fields.retain(|(_, value)| *value != Json::Null);
    Json::Object(fields)
}

/// Some fields, of which null removes one in a merge.
fn part(random: &mut Random) -> Json {
    let mut fields = Vec::new();
    let mut field = |name: &str, value: Json| fields.push((name.to_owned(), value));
    if random.one_in(2) {
        field("name", Json::Text(random.choose(&NAMES).to_owned()));
    }
    match random.below(6) {
        0 => field("score", Json::Null),
        1 => field("score", Json::Number(format!("{}.5", random.below(8)))),
        _ => field("score", Json::Number(random.below(8).to_string())),
    }
    if random.one_in(3) {
        let tags = (0..random.below(3)).map(|_| Json::Text(random.choose(&TAGS).to_owned()));
        field("tags", Json::Array(tags.collect()));
    }
    if random.one_in(4) {
        field("code", Json::Number(random.below(CODES).to_string()));
    }
    if random.one_in(2) {
        field(NOTE, Json::Text(format!("{NOTE}{:016x}", random.bits())));
    }
    if random.one_in(3) {
        let city = Json::Text(random.choose(&NAMES).to_owned());
        field("at", Json::Object(vec![("city".to_owned(), city)]));
    }
    Json::Object(fields)
}
