//! Suite 9: files with damage of every kind. Opening, reading, checking and repairing them gives
//! what was committed or an error that says so; never a panic, a wrong value, a hang, or memory
//! without bound.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use duramen::io::{Access, Device, MemoryDevice, read_exact_at, write_all_at};
use duramen::{
    CommitOptions, Database, ErrorKind, JsonPointer, Micros, Options, RepairReport, Revision,
};

use crate::expectation::Check;
use crate::oracle::said;
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{ALLOCATOR, Profile, Random, SimulatedClock, SimulatedDevice};

type Files = BTreeMap<String, Vec<u8>>;

const SUITE: Suite = Suite { round_seconds_max: 5.0, ..Suite::new("damaged-files") };
const SECTOR: usize = 512;
const PAGE: usize = 4_096;
/// Bytes at the beginning and the end of a file of which every bit is turned over.
const EDGE_BYTES: usize = 136;
/// Noon of a day in 2026.
const START: Micros = Micros(1_780_000_000_000_000);
/// Commits that no checkpoint has written when the files are damaged.
const TAIL_COMMITS: u64 = 6;
/// One file in so many is repaired as well.
const ROUNDS_PER_REPAIR: u64 = 64;
/// What one round may take of memory beside twice the file.
const ROUND_BYTES_MAX: usize = 64 << 20;
const WORKERS_MAX: usize = 8;

/// The files of a database, what they were some commits earlier, and what was committed.
struct Image {
    files: Files,
    earlier: Files,
    /// The texts of the documents, from the first revision on.
    texts: BTreeMap<&'static str, Vec<String>>,
    /// Every place of which each bit, and each sector at which the file is cut, is tried.
    planned: Vec<(String, Damage)>,
}

/// What happens to a file.
#[derive(Debug, Clone, Copy)]
enum Damage {
    /// A bit of a byte is turned over.
    Bit(usize, u8),
    /// The file ends here.
    Cut(usize),
    /// So many bits anywhere are turned over.
    Bits(usize),
    /// A page is zeros.
    Zeros(usize, usize),
    /// Two pages have changed their places.
    Swapped(usize, usize, usize),
    /// A page is what it was before.
    Stale(usize, usize),
    /// So many bytes of noise follow.
    Grown(usize),
}

static IMAGE: LazyLock<Image> = LazyLock::new(Image::new);

/// Damages so many files.
pub(super) fn suite(count: u64, fresh: u64) -> Report {
    let planned = (IMAGE.planned.len() as u64).min(count);
    // A seed below the number of planned ones is one of them.
    let drawn = super::seeds(count - planned, fresh).into_iter();
    let seeds: Vec<u64> = (0..planned).chain(drawn.map(|seed| planned + seed)).collect();
    // The most is of the whole process: in the second turn of a long run it may be another suite's.
    let (before, earlier) = (ALLOCATOR.allocated(), ALLOCATOR.max_allocated());
    let mut report = run(SUITE, &seeds, &|seed| super::Replay::Damaged { seed }.round());
    let file = IMAGE.files.values().map(Vec::len).max().unwrap_or(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let most = before + workers * (ROUND_BYTES_MAX + 2 * file);
    let found = ALLOCATOR.max_allocated();
    if found > most.max(earlier) {
        report.failures.push(format!("{found} bytes of memory were taken, {most} allowed"));
    }
    report
}

/// One damaged file.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let image = &*IMAGE;
    let mut random = Random::new(seed);
    let planned = usize::try_from(seed).ok().and_then(|index| image.planned.get(index).cloned());
    let (path, damage) = planned.unwrap_or_else(|| image.draw(&mut random));
    let mut bytes = image.files.get(&path).cloned().unwrap_or_default();
    damage.strike(&mut bytes, image.earlier.get(&path), &mut random);
    let name = damage.name();
    let tally = Tally { seen: BTreeSet::from([name]), ..Tally::default() };
    if image.files.get(&path) == Some(&bytes) {
        return Ok(tally);
    }
    let device = image.device(&path, &bytes);
    let is_repaired = seed.is_multiple_of(ROUNDS_PER_REPAIR);
    let read_only = is_repaired || !seed.is_multiple_of(4);
    let tried = image.open(&device, &path, damage, read_only);
    let tried = tried.and_then(|()| if is_repaired { image.repair(&device) } else { Ok(()) });
    tried.map_err(|what| format!("{damage:?} in {path}, read only {read_only}: {what}"))?;
    Ok(tally)
}

impl Damage {
    fn name(self) -> &'static str {
        match self {
            Self::Bit(..) => "bit",
            Self::Cut(_) => "cut",
            Self::Bits(_) => "bits",
            Self::Zeros(..) => "zeros",
            Self::Swapped(..) => "swapped",
            Self::Stale(..) => "stale",
            Self::Grown(_) => "grown",
        }
    }

    fn strike(self, bytes: &mut Vec<u8>, earlier: Option<&Vec<u8>>, random: &mut Random) {
        let len = bytes.len();
        let page = |at: usize, size: usize| at.min(len)..(at + size).min(len);
        match self {
            Self::Bit(at, bit) => bytes[at] ^= 1 << bit,
            Self::Cut(at) => bytes.truncate(at),
            Self::Bits(count) => {
                for _ in 0..count {
                    bytes[random.index(len)] ^= 1 << random.below(8);
                }
            }
            Self::Zeros(at, size) => bytes[page(at, size)].fill(0),
            Self::Swapped(first, second, size) => {
                let (first, second) = (first.min(second), first.max(second));
                let size = size.min(second - first).min(len - second);
                let (head, tail) = bytes.split_at_mut(second);
                head[first..first + size].swap_with_slice(&mut tail[..size]);
            }
            Self::Stale(at, size) => {
                let Some(earlier) = earlier else { return bytes[page(at, size)].fill(0) };
                let range = page(at, size);
                let range = range.start..range.end.min(earlier.len()).max(range.start);
                let stale = earlier.get(range.clone()).unwrap_or_default();
                bytes[range.start..range.start + stale.len()].copy_from_slice(stale);
            }
            Self::Grown(count) => {
                bytes.resize(len + count, 0);
                random.fill(&mut bytes[len..]);
            }
        }
    }
}

impl Image {
    fn new() -> Self {
        let built = Self::build();
        built.unwrap_or_else(|error| panic!("the database to damage: {error}"))
    }

    fn build() -> duramen::Result<Self> {
        // Always the same bytes, so that a seed names the same damage in every run.
        let device = SimulatedDevice::new(9, Profile::KIND);
        let clock = Arc::new(SimulatedClock::new(START));
        let options = Options { background: false, clock, ..Options::default() };
        let db = Database::open_device(Arc::new(device.clone()), options)?;
        let mut texts: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
        let documents =
            [("list", db.create_document("list")?), ("tree", db.create_document("tree")?)];
        let mut earlier = Files::new();
        for step in 0..3 * TAIL_COMMITS {
            for (name, document) in &documents {
                let text = if *name == "list" { list(step) } else { tree(step) };
                let author = Some(format!("author {}", step % 3));
                document.put(&text, &CommitOptions { author, ..CommitOptions::default() })?;
                texts.entry(name).or_default().push(text);
            }
            if step % TAIL_COMMITS == TAIL_COMMITS - 1 && step / TAIL_COMMITS < 2 {
                earlier = files(&device)?;
                db.checkpoint()?;
            }
        }
        let files = files(&device)?;
        let mut image = Self { files, earlier, texts, planned: Vec::new() };
        image.plan();
        Ok(image)
    }

    /// Every bit of the edges of every file, and a cut at each sector that has data.
    fn plan(&mut self) {
        for (path, bytes) in &self.files {
            let written = written(bytes);
            let end = written.saturating_sub(EDGE_BYTES).max(EDGE_BYTES);
            let edges = (0..EDGE_BYTES.min(written)).chain(end..written);
            for at in edges {
                let bits = (0..8).map(|bit| (path.clone(), Damage::Bit(at, bit)));
                self.planned.extend(bits);
            }
            let cuts = (0..=written).step_by(SECTOR).map(|at| (path.clone(), Damage::Cut(at)));
            self.planned.extend(cuts);
        }
    }

    /// A file, most often by how much it has, and what happens to it.
    fn draw(&self, random: &mut Random) -> (String, Damage) {
        let paths: Vec<&String> = self.files.keys().collect();
        let path = random.choose(&paths);
        let len = self.files[path].len();
        let reach = if random.one_in(16) { len } else { written(&self.files[path]) };
        let size = if random.one_in(2) { SECTOR } else { PAGE };
        let at = random.index(reach);
        let page = at / size * size;
        let damage = match random.below(10) {
            0..=2 => Damage::Bit(at, u8::try_from(random.below(8)).unwrap_or(0)),
            3 => Damage::Bits(random.index(4) + 1),
            4 | 5 => Damage::Zeros(page, size),
            6 => Damage::Swapped(page, random.index(reach) / size * size, size),
            7 => Damage::Stale(page, size),
            8 => Damage::Cut(at),
            _ => Damage::Grown(random.index(2 * PAGE) + 1),
        };
        (path.clone(), damage)
    }

    fn device(&self, damaged: &str, with: &[u8]) -> MemoryDevice {
        let device = MemoryDevice::new();
        for (path, bytes) in &self.files {
            let bytes = if path == damaged { with } else { bytes };
            let file = device.open(path, Access::Create);
            let written = file.and_then(|file| write_all_at(file.as_ref(), bytes, 0));
            written.unwrap_or_else(|error| panic!("a file in memory: {error}"));
        }
        device
    }

    /// Opens, reads and checks.
    fn open(&self, device: &MemoryDevice, path: &str, damage: Damage, read_only: bool) -> Check {
        let db = match open(device, read_only) {
            Ok(db) => db,
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(()),
            Err(error) => return said("open", Err(error)),
        };
        let missing = self.read(&db)?;
        let is_clean = said("check", db.check())?.is_clean();
        if path.starts_with("journal/") {
            let is_small = matches!(damage, Damage::Bit(..) | Damage::Grown(_));
            // A commit of each document may have been in the group that looks like a torn one.
            let most = if is_small { 1 } else { TAIL_COMMITS * 2 };
            if missing > most || !is_clean {
                return Err(format!("{missing} commits are missing, clean: {is_clean}"));
            }
        } else if is_clean || missing > 0 {
            return Err(format!("not noticed; {missing} commits are missing"));
        }
        Ok(())
    }

    /// Reads every revision; how many are missing at the end.
    fn read(&self, db: &Database) -> Check<u64> {
        let mut missing = 0;
        for (name, texts) in &self.texts {
            let Some(document) = readable("document", db.document(name))? else { continue };
            let Some(head) = readable("head", document.head_revision())? else { continue };
            let there = usize::try_from(head.0).unwrap_or(usize::MAX);
            let Some(expected) = texts.get(..there) else {
                return Err(format!("{name} has {head} revisions"));
            };
            missing += (texts.len() - there) as u64;
            for (revision, text) in (1..).map(Revision).zip(expected) {
                let json = document.at(revision).and_then(|at| at.to_json());
                if readable("at", json)?.is_some_and(|json| json != *text) {
                    return Err(format!("revision {revision} of {name} is another value"));
                }
            }
            let pointer = said("pointer", JsonPointer::parse("/0"))?;
            if let Some(runs) =
                readable("head", document.head().and_then(|at| at.history(&pointer)))?
            {
                for run in runs {
                    if readable("history", run)?.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(missing)
    }

    /// Repairs it: the new database verifies, and what it has and does not tell as lost is right.
    fn repair(&self, device: &MemoryDevice) -> Check {
        let new = MemoryDevice::new();
        let (from, to): (Arc<dyn Device>, Arc<dyn Device>) =
            (Arc::new(device.clone()), Arc::new(new.clone()));
        let options = Options { background: false, ..Options::default() };
        let repaired =
            Database::repair_device((from, to), &options, &mut |_| ControlFlow::Continue(()));
        let Some(report) = readable("repair", repaired)? else { return Ok(()) };
        let db = said("open the repaired", open(&new, true))?;
        if !said("check the repaired", db.check())?.is_clean() {
            return Err("the repaired database has findings".to_owned());
        }
        for name in said("documents", db.documents())? {
            self.verify_repaired(&db, &name, &report)?;
        }
        Ok(())
    }

    fn verify_repaired(&self, db: &Database, name: &str, report: &RepairReport) -> Check {
        let lost = || report.lost.iter().filter(|lost| lost.document.as_deref() == Some(name));
        let Some(texts) = self.texts.get(name) else {
            return match lost().next() {
                Some(_) => Ok(()),
                None => Err(format!("the repaired database has a document {name:?}")),
            };
        };
        let document = said("document", db.document(name))?;
        let head = said("head", document.head_revision())?;
        for (revision, text) in (1..=head.0).map(Revision).zip(texts) {
            let json = said("at", document.at(revision).and_then(|at| at.to_json()))?;
            let is_told = lost()
                .any(|lost| lost.path.is_some() && lost.first <= revision && revision <= lost.last);
            if json != *text && !is_told {
                return Err(format!("revision {revision} of {name} is not told to be wrong"));
            }
        }
        if head.0 > texts.len() as u64 {
            return Err(format!("{name} has {head} revisions after repair"));
        }
        Ok(())
    }
}

/// What was read; none if it is damaged.
fn readable<T>(what: &str, result: duramen::Result<T>) -> Check<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
        // Of a document that has lost all its revisions nothing is there.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => said(what, Err(error)),
    }
}

fn open(device: &MemoryDevice, read_only: bool) -> duramen::Result<Database> {
    let options = Options { background: false, read_only, ..Options::default() };
    Database::open_device(Arc::new(device.clone()), options)
}

fn files(device: &dyn Device) -> duramen::Result<Files> {
    let mut paths = vec!["MANIFEST".to_owned()];
    let failed = |error| duramen::Error::io("a file in memory", error);
    for folder in ["journal", "segments"] {
        let names = device.list(folder).unwrap_or_default();
        paths.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
    }
    let mut files = Files::new();
    for path in paths {
        let file = device.open(&path, Access::Read).map_err(failed)?;
        let mut bytes = vec![0; usize::try_from(file.len().map_err(failed)?).unwrap_or(0)];
        read_exact_at(file.as_ref(), &mut bytes, 0).map_err(failed)?;
        files.insert(path, bytes);
    }
    Ok(files)
}

/// Bytes up to the last one that is not zero.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1)
}

/// An array of objects with a value in each that changes.
fn list(step: u64) -> String {
    let item = |item: u64| {
        let n = if (item + step).is_multiple_of(4) { step } else { item };
        format!(r#"{{"id":{item},"n":{n},"s":"v{}"}}"#, (item + step) % 3)
    };
    let items: Vec<_> = (step % 3..8 + step % 5).map(item).collect();
    format!("[{}]", items.join(","))
}

/// An object with a value of every kind.
fn tree(step: u64) -> String {
    let long = "long \\\"text\\\" ".repeat(40 + usize::try_from(step % 2).unwrap_or(0) * 400);
    let on = step.is_multiple_of(2);
    let numbers = format!(r#""step":{step},"half":{step}.5,"wide":2.5e{step}"#);
    format!(r#"{{{numbers},"on":{on},"none":null,"long":"{long}"}}"#)
}
