//! Suite 13: clients on threads of their own append to lists in collections and in a document, read
//! them, and look at their past, while checkpoints and compactions go on, and in some histories
//! until the device fails.
//!
//! Invariant: what all of them saw is what they would have seen one after the other, or, where some
//! decide by a snapshot, what snapshot isolation allows.

mod client;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use duramen::{CommitOptions, Database, JsonPointer, Key as RecordKey, KeyKind, Options};

use crate::expectation::Check;
use crate::histories::{Finding, Isolation, Key, Observed, Outcome, Step, Value, check};
use crate::json::Json;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{FaultKind, FaultPlan, Operation, Profile, Random, SimulatedDevice};
use client::Client;

const CLIENTS: u64 = 16;
/// In all, in each history.
const TRANSACTIONS: u64 = 500;
/// Lists of each place.
const LISTS: Key = 3;
const COLLECTIONS: [&str; 2] = ["lists/one", "lists/two"];
const DOCUMENT: &str = "lists/plain";
/// So that every place has lists.
const KEYS: Key = LISTS * 3;
/// Operations of the device until one fails.
const FAULT_HORIZON: u64 = 120;
const EMPTY: &str = r#"{"list":[]}"#;
const EMPTY_DOCUMENT: &str = r#"{"6":[],"7":[],"8":[]}"#;

/// So many histories.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    run(Suite::new("clients"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Clients { seed }.round()
    })
}

/// How much the clients are careful with what they read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// They save what they made of a record only if it is at the version they read.
    Versions,
    /// They save it over whatever is there.
    None,
}

/// Of so many seeds one is also played by clients that are not careful, and must be found out.
const CARELESS_EVERY: u64 = 16;

/// Times that these play at most: on a busy machine they may not get in each other's way.
const CARELESS_PLAYS_MAX: u32 = 5;

/// What the clients of a history do.
#[derive(Debug, Clone, Copy)]
struct Habits {
    care: Care,
    /// Under snapshot isolation some decide by a snapshot what they save.
    isolation: Isolation,
    /// What is acknowledged must then be durable.
    is_faulty: bool,
}

/// Whether a history of clients that are not careful is told from others.
fn is_found_out(seed: u64) -> Check<bool> {
    for _ in 0..CARELESS_PLAYS_MAX {
        if !play(seed, Care::None)?.0.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The history of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    if seed.is_multiple_of(CARELESS_EVERY) && !is_found_out(seed)? {
        return Err("saving over what others saved was not found out".to_owned());
    }
    let (findings, tally) = play(seed, Care::Versions)?;
    match findings.first() {
        Some(finding) => Err(format!("{} anomalies; {finding}", findings.len())),
        None => Ok(tally),
    }
}

/// What is wrong with the history of a seed.
fn play(seed: u64, care: Care) -> Check<(Vec<Finding>, Tally)> {
    let mut random = Random::new(seed ^ 0xc11e);
    let device = SimulatedDevice::new(random.bits(), Profile::KIND);
    let options = Options {
        checkpoint_journal_bytes: random.choose(&[4 << 10, 32 << 10, 1 << 20]),
        memory_bytes: 1 << 20,
        ..Options::default()
    };
    let open = || said("open", Database::open_device(Arc::new(device.clone()), options.clone()));
    let lists = Lists::create(open()?)?;
    let isolation = random.choose(&[Isolation::Snapshot, Isolation::Serializable]);
    let is_faulty = random.one_in(4) && care == Care::Versions;
    if is_faulty {
        let kind = FaultKind::Fail(random.choose(&[Operation::Sync, Operation::Write]));
        device.fail(FaultPlan::new(kind, 1 + random.below(FAULT_HORIZON)));
    }
    let habits = Habits { care, isolation, is_faulty };
    let (clock, values) = (AtomicU64::new(0), AtomicU64::new(0));
    let clients: Vec<Client<'_>> = (0..CLIENTS)
        .map(|_| Client::new(&lists, (&clock, &values), random.fork(), habits))
        .collect();
    let observed = std::thread::scope(|scope| {
        let threads: Vec<_> =
            clients.into_iter().map(|client| scope.spawn(|| client.run())).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a client panicked".to_owned())));
        ended.collect::<Check<Vec<Vec<Observed>>>>()
    })?;
    let mut history: Vec<Observed> = observed.into_iter().flatten().collect();
    let compactions = lists.db.counters().compactions;
    drop(lists);
    device.repair();
    let lists = Lists { db: open()? };
    history.push(lists.last_look(&clock)?);
    let report = said("check", lists.db.check())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("check found {}: {}", finding.place, finding.message));
    }
    let outcomes = history.iter().map(|seen| seen.outcome.name()).collect();
    Ok((check(&history, isolation), Tally { seen: outcomes, compactions, ..Tally::default() }))
}

/// Where the lists are.
struct Lists {
    db: Database,
}

impl Lists {
    fn create(db: Database) -> Check<Self> {
        let options = CommitOptions::default();
        for (number, name) in (0..).zip(COLLECTIONS) {
            let lists = said("collection", db.create_collection(name, KeyKind::U64))?;
            let keys = number * LISTS..(number + 1) * LISTS;
            let records = keys.map(|key| (RecordKey::U64(key.into()), EMPTY));
            said("put", lists.put_many(records, &options))?;
        }
        let plain = said("document", db.create_document(DOCUMENT))?;
        said("put", plain.put(EMPTY_DOCUMENT, &options))?;
        Ok(Self { db })
    }

    /// A read of everything, after everybody else.
    fn last_look(&self, clock: &AtomicU64) -> Check<Observed> {
        let begin = clock.fetch_add(1, Ordering::SeqCst);
        let snapshot = self.db.snapshot();
        let mut steps = Vec::new();
        for key in 0..KEYS {
            let document = said("document", snapshot.document(place(key).document()))?;
            let mut text = Vec::new();
            let pointer = place(key).pointer()?;
            said("read", document.append_json(&pointer, &duramen::Format::default(), &mut text))?;
            steps.push(Step::Read(key, values(&String::from_utf8_lossy(&text))?));
        }
        let end = clock.fetch_add(1, Ordering::SeqCst);
        Ok(Observed { begin, end, steps, outcome: Outcome::Committed })
    }
}

/// Where a list is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Record { collection: &'static str, key: Key },
    Field { key: Key },
}

fn place(key: Key) -> Place {
    let group = usize::try_from(key / LISTS).unwrap_or(usize::MAX);
    match COLLECTIONS.get(group) {
        Some(collection) => Place::Record { collection, key },
        None => Place::Field { key },
    }
}

impl Place {
    fn document(self) -> &'static str {
        match self {
            Self::Record { collection, .. } => collection,
            Self::Field { .. } => DOCUMENT,
        }
    }

    /// The list in its document.
    fn pointer(self) -> Check<JsonPointer> {
        let pointer = match self {
            Self::Record { key, .. } => format!("/{key:020}/list"),
            Self::Field { key } => format!("/{key}"),
        };
        said("pointer", JsonPointer::parse(&pointer))
    }
}

/// A list as JSON.
fn values(text: &str) -> Check<Vec<Value>> {
    let Json::Array(values) = Json::parse(text) else { return Err(format!("{text} is no list")) };
    let number = |value: &Json| value.to_string().parse();
    values.iter().map(number).collect::<Result<_, _>>().map_err(|_| format!("{text} is no list"))
}
