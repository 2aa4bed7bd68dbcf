//! Compares what is made of the database outside of it, backups and repairs, with the model, and
//! looks in the files of all of them, and in what a feed tells, for what was purged.

use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device, MemoryDevice, read_exact_at};
use duramen::{
    BackupFolder, BackupOptions, CommitOptions, CommitSequence, Database, ErrorKind, Options,
    RestorePoint, WatchFrom, WatchOptions,
};

use super::change::key;
use super::compare;
use super::model::Model;
use super::{COLLECTIONS, KEYS};
use crate::Random;
use crate::expectation::Check;
use crate::oracle::said;
use crate::suites::machine::Machine;

/// Earlier commits that are restored.
const EARLIER: usize = 3;

/// Compares them; what came to happen.
pub(super) fn compare(
    db: &Database,
    model: &Model,
    machine: &mut Machine,
) -> Check<Vec<&'static str>> {
    let mut seen = Vec::new();
    if model.has_secrets() {
        seen.push("secret");
    }
    let options =
        Options { background: false, clock: Arc::new(machine.clock.clone()), ..Options::default() };
    said("checkpoint", db.checkpoint())?;
    has_no_secret(&machine.device, model, "the database")?;
    feed(db, model)?;
    dump(db, model)?;
    let shelf: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    let folder = BackupFolder::on_device(Arc::clone(&shelf));
    let backup = BackupOptions { incremental: true, verify: false };
    said("backup", db.backup(&folder, backup, &mut |_, _| ControlFlow::Continue(())))?;
    has_no_secret(shelf.as_ref(), model, "a backup")?;
    let mut outside = Outside { folder, options, model, random: &mut machine.random };
    outside.restored(RestorePoint::Newest)?;
    for _ in 0..EARLIER {
        let commit = CommitSequence(1 + outside.random.below(db.snapshot().sequence().0));
        if outside.restored(RestorePoint::Commit(commit))? {
            seen.push("earlier");
        }
    }
    outside.repaired(&machine.device)?;
    Ok(seen)
}

/// Where backups are, and what should be in them.
struct Outside<'a> {
    folder: BackupFolder,
    options: Options,
    model: &'a Model,
    random: &'a mut Random,
}

impl Outside<'_> {
    /// Compares what is restored; whether it can be.
    fn restored(&mut self, point: RestorePoint) -> Check<bool> {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let go_on = &mut |_, _| ControlFlow::Continue(());
        match Database::restore_device(&self.folder, &device, point, go_on) {
            // A retention may have dropped what was there then, or nothing was.
            Err(error) if error.kind() == ErrorKind::NotFound && point != RestorePoint::Newest => {
                return Ok(false);
            }
            restored => said("restore", restored)?,
        };
        self.same(&device).map_err(|what| format!("restored to {point:?}: {what}"))?;
        Ok(true)
    }

    fn repaired(&mut self, old: &crate::SimulatedDevice) -> Check {
        let (old, new) = (Arc::new(old.kill()), Arc::new(MemoryDevice::new()));
        let device: Arc<dyn Device> = new;
        let go_on = &mut |_| ControlFlow::Continue(());
        let pair = (old as Arc<dyn Device>, Arc::clone(&device));
        let report = said("repair", Database::repair_device(pair, &self.options, go_on))?;
        if !report.is_complete() {
            return Err(format!("a repair of what lacks nothing lost {:?}", report.lost));
        }
        has_no_secret(device.as_ref(), self.model, "a repair")
    }

    /// Compares a database with as many commits as it has, goes on with it, and compares it again.
    fn same(&mut self, device: &Arc<dyn Device>) -> Check {
        let db = said("open", Database::open_device(Arc::clone(device), self.options.clone()))?;
        // One of a commit before the collections were made.
        if said("collections", db.collections())?.len() < COLLECTIONS.len() {
            return Ok(());
        }
        let mut model = self.model.clone();
        model.truncate(compare::commits(&db, &model)?);
        compare::everything(&db, &model, self.random)?;
        has_no_secret(device.as_ref(), &model, "it")?;
        for (number, (name, _)) in COLLECTIONS.into_iter().enumerate() {
            let collection = said("collection", db.collection(name))?;
            for place in (0..KEYS).map(|at| (number, at)) {
                let held = model.newest().get(&place);
                let is_there = held.is_some_and(|held| held.value.is_some());
                let (how, json) = (CommitOptions::default(), r#"{"restored":true}"#);
                let saved = if is_there || self.random.one_in(2) {
                    collection.put(key(place), json, &how)
                } else {
                    collection.insert(key(place), json, &how)
                };
                let found = said("save", saved)?.version;
                let expected = held.map_or(0, |held| held.versions) + 1;
                if found != expected {
                    return Err(format!("{place:?} is saved as {found}, expected {expected}"));
                }
            }
        }
        said("compact", db.compact(&mut |_, _| ControlFlow::Continue(())))?;
        let report = said("check", db.check())?;
        report.findings.first().map_or(Ok(()), |finding| {
            Err(format!("check found {}: {}", finding.place, finding.message))
        })
    }
}

/// What a feed from the beginning on tells has nothing that was purged.
fn feed(db: &Database, model: &Model) -> Check {
    let watch = WatchOptions { from: WatchFrom::Beginning, ..WatchOptions::default() };
    let mut feed = said("watch", db.watch(&watch))?;
    while let Some(batch) = said("feed", feed.try_next())? {
        for event in batch {
            let event = said("event", event)?;
            for text in [&event.old, &event.new, &event.patch].into_iter().flatten() {
                if let Some(secret) = model.secret_in(text.as_bytes()) {
                    return Err(format!("a feed tells {secret}, which was purged: {event:?}"));
                }
            }
        }
    }
    Ok(())
}

/// The same of a dump.
fn dump(db: &Database, model: &Model) -> Check {
    for item in &mut said("dump", db.snapshot().dump())? {
        let item = format!("{:?}", said("dump", item)?);
        if let Some(secret) = model.secret_in(item.as_bytes()) {
            return Err(format!("a dump tells {secret}, which was purged: {item}"));
        }
    }
    Ok(())
}

/// No file has anything of what was purged.
fn has_no_secret(device: &dyn Device, model: &Model, what: &str) -> Check {
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let Ok(names) = device.list(&folder) else { continue };
        for name in names {
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let Ok(file) = device.open(&path, Access::Read) else {
                folders.push(path);
                continue;
            };
            let len = file.len().map_err(|error| format!("{path}: {error}"))?;
            let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
            read_exact_at(file.as_ref(), &mut bytes, 0).map_err(|e| format!("{path}: {e}"))?;
            if let Some(secret) = model.secret_in(&bytes) {
                return Err(format!("{secret}, which was purged, is in {path} of {what}"));
            }
        }
    }
    Ok(())
}
