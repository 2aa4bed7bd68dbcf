//! One client: what it does, and what it saw.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use duramen::{
    Collection, CommitOptions, Durability, Error, ErrorKind, Format, JsonPointer, Key as RecordKey,
    TransactOptions, Transaction,
};

use super::{
    CLIENTS, Care, DOCUMENT, Habits, KEYS, LISTS, Lists, Place, TRANSACTIONS, place, values,
};
use crate::Random;
use crate::expectation::Check;
use crate::histories::{Isolation, Key, Observed, Outcome, Step, Value};
use crate::json::Json;

/// Steps of a transaction at the most, after the first.
const STEPS_MAX: u64 = 5;

/// A client with a thread of its own.
pub(super) struct Client<'a> {
    lists: &'a Lists,
    /// The instants of all clients, and what they append.
    clock: &'a AtomicU64,
    values: &'a AtomicU64,
    random: Random,
    habits: Habits,
}

impl<'a> Client<'a> {
    pub(super) fn new(
        lists: &'a Lists,
        (clock, values): (&'a AtomicU64, &'a AtomicU64),
        random: Random,
        habits: Habits,
    ) -> Self {
        Self { lists, clock, values, random, habits }
    }

    /// Runs its transactions, or what it can of them.
    pub(super) fn run(mut self) -> Check<Vec<Observed>> {
        let mut seen = Vec::new();
        for _ in 0..TRANSACTIONS / CLIENTS {
            match self.transaction()? {
                (transaction, ControlFlow::Continue(())) => seen.push(transaction),
                (transaction, ControlFlow::Break(())) => {
                    seen.push(transaction);
                    break;
                }
            }
        }
        Ok(seen)
    }

    fn transaction(&mut self) -> Check<(Observed, ControlFlow<()>)> {
        let begin = self.clock.fetch_add(1, Ordering::SeqCst);
        let mut steps = Vec::new();
        let done = match self.random.below(9) {
            0 | 1 => self.look(&mut steps),
            2 | 3 => self.save(&mut steps),
            4 if self.habits.isolation == Isolation::Snapshot => self.decide(&mut steps),
            4..=6 => self.change(&mut steps),
            _ => self.transact(&mut steps),
        };
        let (outcome, next) = match done {
            Ok(outcome) => (outcome, ControlFlow::Continue(())),
            Err(Stop::Refused) => (Outcome::Aborted, ControlFlow::Continue(())),
            Err(Stop::Over) if self.habits.is_faulty => (Outcome::Unknown, ControlFlow::Break(())),
            Err(Stop::Over) => return Err("it failed on a device without faults".to_owned()),
            Err(Stop::Wrong(what)) => return Err(what),
        };
        let end = self.clock.fetch_add(1, Ordering::SeqCst);
        Ok((Observed { begin, end, steps, outcome }, next))
    }

    /// Reads some lists of one snapshot, and one as it was.
    fn look(&mut self, steps: &mut Vec<Step>) -> Result<Outcome, Stop> {
        let snapshot = self.lists.db.snapshot();
        for _ in 0..=self.random.below(STEPS_MAX) {
            let key = self.key();
            let document = snapshot.document(place(key).document())?;
            let mut text = Vec::new();
            document.append_json(&place(key).pointer()?, &Format::default(), &mut text)?;
            steps.push(Step::Read(key, values(&String::from_utf8_lossy(&text))?));
        }
        if let Place::Record { collection, key } = place(self.key()) {
            let revision = snapshot.document(collection)?.revision();
            let lists = self.lists.db.collection(collection)?.at(revision)?;
            let mut versions = lists.history(record_key(key))?.collect::<Result<Vec<_>, _>>()?;
            let version = versions.swap_remove(self.random.index(versions.len()));
            let record = version.record.ok_or_else(|| "a list was deleted".to_owned())?;
            steps.push(Step::ReadAt(key, record.version, list_of(&record.json)?));
        }
        Ok(Outcome::Committed)
    }

    /// Reads a record and saves what it made of it.
    fn save(&mut self, steps: &mut Vec<Step>) -> Result<Outcome, Stop> {
        let key = Key::try_from(self.random.below((2 * LISTS).into())).unwrap_or_default();
        let Place::Record { collection, .. } = place(key) else { return Ok(Outcome::Aborted) };
        let lists: Collection = self.lists.db.collection(collection)?;
        let record = lists.get(record_key(key))?.ok_or_else(|| "a list is gone".to_owned())?;
        let mut list = list_of(&record.json)?;
        steps.push(Step::Read(key, list.clone()));
        let value = self.value();
        list.push(value);
        steps.push(Step::Append(key, value));
        let json = format!(r#"{{"list":{list:?}}}"#);
        let options = self.options();
        match self.habits.care {
            Care::Versions => lists.update(record_key(key), record.version, json, &options)?,
            Care::None => lists.put(record_key(key), json, &options)?,
        };
        Ok(Outcome::Committed)
    }

    /// Reads some records of a snapshot, and saves one of them if it is as it was then.
    fn decide(&mut self, steps: &mut Vec<Step>) -> Result<Outcome, Stop> {
        let snapshot = self.lists.db.snapshot();
        let mut records = Vec::new();
        for _ in 0..=self.random.below(STEPS_MAX) {
            if let Place::Record { collection, key } = place(self.key()) {
                let revision = snapshot.document(collection)?.revision();
                let lists = self.lists.db.collection(collection)?.at(revision)?;
                let record = lists.get(record_key(key))?.ok_or_else(|| "it is gone".to_owned())?;
                steps.push(Step::Read(key, list_of(&record.json)?));
                records.push((collection, key, record));
            }
        }
        if records.is_empty() {
            return Ok(Outcome::Committed);
        }
        let (collection, key, record) = records.swap_remove(self.random.index(records.len()));
        let value = self.value();
        steps.push(Step::Append(key, value));
        let mut list = list_of(&record.json)?;
        list.push(value);
        let json = format!(r#"{{"list":{list:?}}}"#);
        let lists = self.lists.db.collection(collection)?;
        lists.update(record_key(key), record.version, json, &self.options())?;
        Ok(Outcome::Committed)
    }

    /// Reads and appends in one transaction.
    fn change(&mut self, steps: &mut Vec<Step>) -> Result<Outcome, Stop> {
        let mut transaction = self.lists.db.transaction();
        for _ in 0..=self.random.below(STEPS_MAX) {
            let key = self.key();
            if self.random.one_in(2) {
                let text = read(&mut transaction, key)?;
                steps.push(Step::Read(key, list_in(key, &text)?));
            } else {
                let value = self.value();
                append(&mut transaction, key, value)?;
                steps.push(Step::Append(key, value));
            }
        }
        if self.random.one_in(8) {
            transaction.rollback();
            return Ok(Outcome::Aborted);
        }
        transaction.commit(&self.options())?;
        Ok(Outcome::Committed)
    }

    /// Reads and appends in a transaction on a snapshot, as often as it takes.
    fn transact(&mut self, steps: &mut Vec<Step>) -> Result<Outcome, Stop> {
        let plan: Vec<(Key, Option<Value>)> = (0..=self.random.below(STEPS_MAX))
            .map(|_| (self.key(), self.random.one_in(2).then(|| self.value())))
            .collect();
        let commit = self.options();
        let serializable = self.habits.isolation == Isolation::Serializable;
        let options = TransactOptions { commit, serializable, ..TransactOptions::default() };
        let done = self.lists.db.transact(&options, |transaction| {
            let mut texts = Vec::new();
            for &(key, value) in &plan {
                match value {
                    Some(value) => append(transaction, key, value)?,
                    None => texts.push(read(transaction, key)?),
                }
            }
            Ok(texts)
        });
        let is_done = done.is_ok();
        let mut texts = done.as_ref().map_or(&[][..], |(texts, _)| texts).iter();
        for (key, value) in plan {
            match value {
                Some(value) => steps.push(Step::Append(key, value)),
                None if is_done => {
                    let text = texts.next().ok_or_else(|| "a read is missing".to_owned())?;
                    steps.push(Step::Read(key, list_in(key, text)?));
                }
                None => {}
            }
        }
        done.map_or_else(|error| Err(error.into()), |_| Ok(Outcome::Committed))
    }

    fn key(&mut self) -> Key {
        Key::try_from(self.random.below(KEYS.into())).unwrap_or_default()
    }

    fn value(&self) -> Value {
        1 + self.values.fetch_add(1, Ordering::SeqCst)
    }

    fn options(&mut self) -> CommitOptions {
        let relaxed = !self.habits.is_faulty && self.random.one_in(2);
        let durability = if relaxed { Durability::Interval(5) } else { Durability::Sync };
        CommitOptions { durability: Some(durability), ..CommitOptions::default() }
    }
}

/// Why a transaction came to nothing.
enum Stop {
    /// Somebody else was first.
    Refused,
    /// The device failed: nobody knows of this one, and nothing goes on.
    Over,
    Wrong(String),
}

impl From<String> for Stop {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::Conflict | ErrorKind::Busy => Self::Refused,
            ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::Unknown => Self::Over,
            kind => Self::Wrong(format!("failed with {}: {error}", kind.name())),
        }
    }
}

/// The record with a list, or the list.
fn read(transaction: &mut Transaction, key: Key) -> duramen::Result<String> {
    match place(key) {
        Place::Record { collection, key } => {
            Ok(transaction.get_record(collection, &record_key(key))?.unwrap_or_default())
        }
        Place::Field { .. } => transaction.get(DOCUMENT, &JsonPointer::parse(&format!("/{key}"))?),
    }
}

/// The list in what was read.
fn list_in(key: Key, text: &str) -> Check<Vec<Value>> {
    match place(key) {
        Place::Record { .. } => list_of(text),
        Place::Field { .. } => values(text),
    }
}

fn append(transaction: &mut Transaction, key: Key, value: Value) -> duramen::Result<()> {
    match place(key) {
        Place::Record { collection, key } => {
            let patch = format!(r#"[{{"op":"add","path":"/list/-","value":{value}}}]"#);
            transaction.patch_record(collection, &record_key(key), patch.as_bytes())?;
        }
        Place::Field { .. } => {
            let list = JsonPointer::parse(&format!("/{key}"))?;
            transaction.append(DOCUMENT, &list, value.to_string().as_bytes())?;
        }
    }
    Ok(())
}

fn record_key(key: Key) -> RecordKey {
    RecordKey::U64(key.into())
}

/// The list in a record.
fn list_of(json: &str) -> Check<Vec<Value>> {
    let fields = match Json::parse(json) {
        Json::Object(fields) => fields,
        other => return Err(format!("{other} is no record")),
    };
    let list = fields.iter().find(|(name, _)| *name == "list");
    let (_, list) = list.ok_or_else(|| format!("{json} has no list"))?;
    values(&list.to_string())
}
