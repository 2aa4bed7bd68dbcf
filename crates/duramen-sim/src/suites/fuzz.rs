//! Suite 10: every decoder, fed with inputs of a corpus that were cut, spliced and turned over.
//!
//! The targets are those of the folder `fuzz`, which drives them by coverage; here a seed draws the
//! inputs, so that no compiler but the usual one is needed and a finding is a number.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use duramen::fuzzing::{TARGETS, corpus};
use duramen::io::Device;
use duramen::{CommitOptions, Database, Filter, IndexDefinition, KeyKind, Micros, Options, Query};

use crate::expectation::Check;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{Profile, Random, SimulatedClock, SimulatedDevice};

/// A round that has so many inputs must end within the time of one that hangs.
const SUITE: Suite = Suite { round_seconds_max: 10.0, ..Suite::new("fuzz") };
const INPUTS_PER_ROUND: usize = 200;
/// Changes made to an input at the most.
const CHANGES_MAX: u64 = 8;
/// A column can take a few bytes for thousands of states, which replaying a record makes of it.
const INPUT_BYTES_MAX: usize = 8 << 10;
/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
/// Bytes and numbers that decoders look at.
const TELLING: [&[u8]; 14] = [
    b"\0",
    b"\xff",
    b"\x7f",
    b"\x80",
    b"\xff\xff\xff\xff",
    b"\0\0\0\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"[",
    b"{\"",
    b"\\u",
    b"e9",
    b"..",
    b"?@",
];

type Inputs = Vec<Vec<u8>>;

/// Inputs to begin with, by target, as [`TARGETS`] has them.
static CORPUS: LazyLock<Vec<Inputs>> = LazyLock::new(|| {
    let found = build().and_then(|device| corpus(&device));
    let found = found.unwrap_or_else(|error| panic!("the corpus: {error}"));
    let of = |name| {
        let inputs = found.iter().filter(|(target, _)| *target == name);
        inputs.map(|(_, input)| input.clone()).collect()
    };
    TARGETS.iter().map(|target| of(target.name)).collect()
});

/// So many rounds of inputs for each target.
pub(super) fn suite(rounds: u64, fresh: u64) -> Report {
    let targets = TARGETS.len() as u64;
    let seeds: Vec<u64> = (0..targets)
        .flat_map(|target| {
            super::seeds(rounds, fresh).into_iter().map(move |seed| seed * targets + target)
        })
        .collect();
    run(SUITE, &seeds, &|seed| super::Replay::Fuzz { seed }.round())
}

/// Inputs for the target that the seed names.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let index = usize::try_from(seed % TARGETS.len() as u64).unwrap_or(0);
    let (target, inputs) = (TARGETS[index], &CORPUS[index]);
    if inputs.is_empty() {
        return Err(format!("there is no corpus for {}", target.name));
    }
    let mut random = Random::new(seed);
    for number in 0..INPUTS_PER_ROUND {
        let input = mutant(inputs, &mut random);
        let result = std::panic::catch_unwind(|| (target.run)(&input));
        if let Err(panic) = result {
            let (name, shown) = (target.name, shown(&input));
            let what = panic.downcast_ref::<String>().map_or("", String::as_str);
            return Err(format!("{name} panics at input {number}: {what}: {shown}"));
        }
    }
    Ok(Tally { seen: BTreeSet::from([target.name]), ..Tally::default() })
}

/// Writes the corpus, a folder for each target and a file for each input, as `cargo fuzz` reads it.
pub(crate) fn write_corpus(folder: &Path) -> bool {
    let write = || -> std::io::Result<()> {
        for (target, inputs) in TARGETS.iter().zip(&*CORPUS) {
            let folder = folder.join(target.name);
            std::fs::create_dir_all(&folder)?;
            for (number, input) in inputs.iter().enumerate() {
                use std::io::Write;
                let path = folder.join(format!("{number:04}"));
                tempfile::NamedTempFile::new_in(&folder)
                    .and_then(|mut file| file.write_all(input).map(|()| file))
                    .and_then(|file| file.persist(path).map_err(|error| error.error))?;
            }
        }
        Ok(())
    };
    write().inspect_err(|error| eprintln!("cannot write the corpus: {error}")).is_ok()
}

/// An input of the corpus with some changes.
fn mutant(inputs: &Inputs, random: &mut Random) -> Vec<u8> {
    let mut input = inputs[random.index(inputs.len())].clone();
    for _ in 0..=random.below(CHANGES_MAX) {
        change(&mut input, inputs, random);
    }
    input.truncate(INPUT_BYTES_MAX);
    input
}

fn change(input: &mut Vec<u8>, inputs: &Inputs, random: &mut Random) {
    let len = input.len();
    if len == 0 {
        input.extend_from_slice(random.choose(&TELLING));
        return;
    }
    let at = random.index(len);
    let end = (at + 1 + random.index(16)).min(len);
    match random.below(9) {
        0 | 1 => input[at] ^= 1 << random.below(8),
        2 => random.fill(&mut input[at..end]),
        3 => drop(input.drain(at..end)),
        4 => {
            let part = input[at..end].to_vec();
            input.splice(at..at, part);
        }
        5 => {
            let part = random.choose(&TELLING);
            let end = (at + part.len()).min(len);
            input.splice(at..end, part.iter().copied());
        }
        6 => {
            let part = random.choose(&TELLING);
            input.splice(at..at, part.iter().copied());
        }
        7 => {
            let other = &inputs[random.index(inputs.len())];
            let from = random.index(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        _ => input.truncate(at),
    }
}

fn shown(input: &[u8]) -> String {
    const SHOWN_MAX: usize = 200;
    let mut text = String::new();
    for byte in input.iter().take(SHOWN_MAX) {
        let _ = write!(text, "{byte:02x}");
    }
    if input.len() > SHOWN_MAX {
        let _ = write!(text, "... ({} bytes)", input.len());
    }
    text
}

/// A database with something of everything, always the same.
fn build() -> duramen::Result<Arc<dyn Device>> {
    let device: Arc<dyn Device> = Arc::new(SimulatedDevice::new(10, Profile::KIND));
    let clock = Arc::new(SimulatedClock::new(START));
    let options = Options { background: false, clock, ..Options::default() };
    let db = Database::open_device(Arc::clone(&device), options)?;
    let who =
        |author: &str| CommitOptions { author: Some(author.into()), ..CommitOptions::default() };
    let records = db.create_collection("records", KeyKind::U64)?;
    records.create_index(&IndexDefinition::new("by-name", &["name", "tags[*]"])?)?;
    let record =
        |key: u64| format!(r#"{{"name":"n{}","tags":[{},"x"],"n":{key}}}"#, key % 3, key % 5);
    records.put_many((0..400).map(|key| (key, record(key))), &who("ann"))?;
    let document = db.create_document("document")?;
    for step in 0..24_u32 {
        document.put(value(step), &who(if step % 2 == 0 { "ann" } else { "ben" }))?;
        if step == 8 {
            records.put_many((0..40).map(|key| (key, record(key + 1))), &who("ben"))?;
            records.query(&Query::new().filter(Filter::eq("name", "n1")))?.next().transpose()?;
            document.tag("v8", None, &who("ann"))?;
            db.checkpoint()?;
        }
        if step == 16 {
            db.checkpoint()?;
        }
    }
    document.rename_field(&duramen::Target::parse("/map")?, "renamed", &who("ann"))?;
    db.create_document("other")?.put("[1,2,3]", &who("ann"))?;
    db.rename_document("other", "another", &who("ben"))?;
    db.delete_document("another", &who("ben"))?;
    db.flush()?;
    Ok(device)
}

/// A value with every kind of state, an order that changes, a map, and a long text.
fn value(step: u32) -> String {
    let mut list = String::new();
    for item in (0..60).filter(|item| !(item * 7 + step).is_multiple_of(5)) {
        let comma = if list.is_empty() { "" } else { "," };
        let _ = write!(list, r#"{comma}{{"id":{item},"n":{},"s":"v{}"}}"#, item * step, item % 3);
    }
    let mut map = String::new();
    for key in 0..258 {
        let comma = if key > 0 { "," } else { "" };
        let _ = write!(map, r#"{comma}"key {key}":{}"#, (key + step) % 7);
    }
    let long = "long text ".repeat(420 + usize::try_from(step % 2).unwrap_or(0));
    format!(
        r#"{{"half":{step}.50,"big":1E4{step},"wide":2.5e{},"on":{},"none":null,"step":-{step},
           "quote":"\"{step}\"","long":"{long}","list":[{list}],"map":{{{map}}}}}"#,
        step + 20,
        step.is_multiple_of(2),
    )
}
