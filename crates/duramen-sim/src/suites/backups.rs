//! Suite 19: backups taken while transactions go on, restored and compared by the hash of all that
//! the database says. Every 10th round loses power in a backup or a restore, every 10th finds the
//! backups damaged.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use duramen::io::{Access, Device};
use duramen::{
    Backup, BackupFolder, BackupOptions, CommitSequence, ContentHash, Database, Error, ErrorKind,
    Options, RestorePoint,
};

use crate::expectation::{Check, Expectation};
use crate::life::Life;
use crate::oracle::{self, said};
use crate::report::Report;
use crate::rounds::{Suite, Tally, run};
use crate::{PowerLoss, Profile, Random, SimulatedDevice};

const EVERY: u64 = 10;
/// Changes of a device among which a crash strikes: about as many as a backup or a restore makes.
const CRASH_HORIZON: u64 = 60;

pub(super) fn suite(count: u64, fresh: u64) -> Report {
    run(Suite::new("backups"), &super::seeds(count, fresh), &|seed| {
        super::Replay::Backup { seed }.round()
    })
}

/// A database and its backups.
struct Shelf {
    life: Life,
    random: Random,
    /// Where the backups are.
    device: SimulatedDevice,
    /// What the database said at commits that cannot be lost any more, and at later ones.
    said: BTreeMap<u64, ContentHash>,
    /// The last commit that is in a backup.
    safe: u64,
    /// What the database should hold at that, if its documents may drop revisions: a hash that it
    /// said before tells of more then.
    retained: Option<Expectation>,
}

/// In so many rounds one has documents that drop revisions. Its last backup is restored as it is.
const RETAINED_ONE_IN: u64 = 3;

/// The round of a seed.
pub(super) fn round(seed: u64) -> Check<Tally> {
    let mut random = Random::new(seed ^ 0xbac_4b5);
    let device = SimulatedDevice::new(random.bits(), Profile::random(&mut random));
    let mut life = Life::new(seed, None);
    // After a crash or damage the newest backup may be another one than the last that was made.
    let has_last = !matches!(seed % EVERY, 1 | 2);
    let retained =
        (has_last && seed.is_multiple_of(RETAINED_ONE_IN)).then(|| life.expectation.clone());
    if retained.is_none() {
        life = life.keeping_all();
    }
    let mut shelf = Shelf { life, random, device, said: BTreeMap::new(), safe: 0, retained };
    let mut open = shelf.life.open()?;
    for _ in 0..2 + shelf.random.below(3) {
        let Some(db) = open.take() else { return Err("the power went without a crash".into()) };
        shelf.live(&db)?;
        shelf.back_up(&db)?;
        if seed % EVERY == 1 {
            shelf.crash_in_backup(&db)?;
        }
        shelf.life.device.power_off();
        drop(db);
        shelf.life.restart();
        // What came after the backup may be lost, and then other commits get the numbers.
        let safe = shelf.safe;
        shelf.said.retain(|commit, _| *commit <= safe);
        open = Some(shelf.life.recover()?);
    }
    drop(open);
    shelf.restore_some()?;
    match seed % EVERY {
        1 => shelf.crash_in_restore()?,
        2 => shelf.damage()?,
        _ => {}
    }
    let trace = shelf.life.trace();
    let Life { compactions, seen, coverage, .. } = shelf.life;
    Ok(Tally { losses: 1, compactions, seen, coverage, trace })
}

impl Shelf {
    fn folder(&self) -> BackupFolder {
        BackupFolder::on_device(Arc::new(self.device.clone()))
    }

    fn live(&mut self, db: &Database) -> Check {
        for _ in 0..3 + self.random.below(12) {
            self.life.advance(db)?;
            if self.random.one_in(4) {
                self.note(db)?;
            }
            if self.random.one_in(8) {
                said("checkpoint", db.checkpoint())?;
            }
            if self.random.one_in(16) {
                self.life.compact_now(db)?;
            }
        }
        Ok(())
    }

    /// Notes what the database says now.
    fn note(&mut self, db: &Database) -> Check<u64> {
        let snapshot = db.snapshot();
        let commit = snapshot.sequence().0;
        self.said.insert(commit, said("hash", snapshot.hash())?);
        Ok(commit)
    }

    /// Makes a backup; between two of its steps there may be transactions.
    fn back_up(&mut self, db: &Database) -> Check {
        let now = self.note(db)?;
        let expected = self.retained.is_some().then(|| self.life.expectation.clone());
        match self.try_backup(db)? {
            Ok(backup) if backup.commit.0 == now => {}
            other => return Err(format!("backup at commit {now}: {other:?}")),
        }
        self.safe = now;
        self.retained = expected;
        Ok(())
    }

    fn try_backup(&mut self, db: &Database) -> Check<Result<Backup, Error>> {
        let folder = self.folder();
        let options =
            BackupOptions { incremental: !self.random.one_in(3), verify: self.random.one_in(3) };
        let mut wrong = Ok(());
        let made = db.backup(&folder, options, &mut |_, _| {
            if wrong.is_ok() && self.random.one_in(2) {
                wrong = self.life.advance(db);
            }
            ControlFlow::Continue(())
        });
        wrong?;
        Ok(made.map(|report| report.backup))
    }

    /// The power of the backups' disk goes in the middle of one: the ones before stay, and the next
    /// one can be made.
    fn crash_in_backup(&mut self, db: &Database) -> Check {
        let now = self.note(db)?;
        let crash = self.device.changes() + 1 + self.random.below(CRASH_HORIZON);
        self.device.crash_at(crash);
        let made = self.try_backup(db)?;
        self.device.power_off();
        let loss = PowerLoss::random(&mut self.random);
        self.device = self.device.power_loss(loss, &mut self.random);
        let backups = said("list of backups", Backup::list(&self.folder()))?;
        let last = backups.last().map_or(0, |backup| backup.commit.0);
        if last < self.safe || (made.is_ok() && last != now) {
            return Err(format!("the newest backup is of {last} after {made:?} at {now}"));
        }
        self.check(RestorePoint::Newest)?;
        self.back_up(db)?;
        self.check(RestorePoint::Newest)
    }

    fn restore_some(&mut self) -> Check {
        self.check(RestorePoint::Newest)?;
        if self.retained.is_some() {
            return Ok(());
        }
        let commits: Vec<u64> = self.said.keys().copied().filter(|commit| *commit > 0).collect();
        for _ in 0..commits.len().min(3) {
            let commit = self.random.choose(&commits);
            self.check(RestorePoint::Commit(CommitSequence(commit)))?;
        }
        Ok(())
    }

    fn check(&mut self, point: RestorePoint) -> Check {
        self.restored(point).and_then(|restored| said("restore", restored))
    }

    /// Restores, and compares what the database says with what it said then. An error is not
    /// wrong yet.
    fn restored(&mut self, point: RestorePoint) -> Check<Result<(), Error>> {
        let target: Arc<dyn Device> = Arc::new(self.new_disk());
        let restored = Database::restore_device(&self.folder(), &target, point, &mut |_, _| {
            ControlFlow::Continue(())
        });
        match restored {
            Ok(restored) => self.compare(target, restored.commit.0, point).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    fn compare(&self, target: Arc<dyn Device>, commit: u64, point: RestorePoint) -> Check {
        let options = Options { create: false, ..self.life.options() };
        let db = said("open of what was restored", Database::open_device(target, options))?;
        let report = said("check of what was restored", db.check())?;
        if let Some(mut expected) = self.retained.clone() {
            return oracle::compare(&mut expected, &db)
                .map_err(|what| format!("restored {point:?}: {what}; check: {report:?}"));
        }
        let found = (commit, said("hash of what was restored", db.snapshot().hash())?);
        let expected = self.said.get(&commit).map(|hash| (db.snapshot().sequence().0, *hash));
        if expected == Some(found) && report.is_clean() {
            return Ok(());
        }
        let findings = report.findings;
        Err(format!("restored {point:?}: {found:?}, expected {expected:?}; check: {findings:?}"))
    }

    /// The power goes in the middle of a restore: there is all of the database or none.
    fn crash_in_restore(&mut self) -> Check {
        let disk = self.new_disk();
        disk.crash_at(1 + self.random.below(CRASH_HORIZON));
        let target: Arc<dyn Device> = Arc::new(disk.clone());
        let (commit, _) = self.said.last_key_value().ok_or("no commit")?;
        let point = RestorePoint::Commit(CommitSequence(self.safe.min(*commit)));
        let restored = Database::restore_device(&self.folder(), &target, point, &mut |_, _| {
            ControlFlow::Continue(())
        });
        disk.power_off();
        drop(target);
        let loss = PowerLoss::random(&mut self.random);
        let target: Arc<dyn Device> = Arc::new(disk.power_loss(loss, &mut self.random));
        let options = Options { create: false, ..self.life.options() };
        match Database::open_device(Arc::clone(&target), options) {
            // Segments without a manifest may be of a database that lost it.
            Err(error)
                if restored.is_err()
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt) =>
            {
                Ok(())
            }
            Err(error) => Err(format!("open after {restored:?} and a power loss: {error}")),
            Ok(db) => {
                let commit = db.snapshot().sequence().0;
                drop(db);
                self.compare(target, commit, point)
            }
        }
    }

    /// Something happens to one object: what is restored is right, or is refused.
    fn damage(&mut self) -> Check {
        let mut files = Vec::new();
        for folder in ["backups", "segments"] {
            // Of a database without commits there are no segments.
            let names = self.device.list(folder).unwrap_or_default();
            files.extend(names.into_iter().map(|name| format!("{folder}/{name}")));
        }
        let file =
            files[usize::try_from(self.random.below(files.len() as u64)).unwrap_or(0)].clone();
        let what = self.harm(&file).map_err(|error| error.to_string())?;
        for point in [RestorePoint::Newest, RestorePoint::Commit(CommitSequence(self.safe))] {
            let restored = self.restored(point).map_err(|wrong| format!("{what}: {wrong}"))?;
            match restored.map_err(|error| error.kind()) {
                Ok(()) | Err(ErrorKind::Corrupt | ErrorKind::NotFound) => {}
                other => return Err(format!("{what}: restore gave {other:?}")),
            }
        }
        Ok(())
    }

    fn harm(&mut self, path: &str) -> std::io::Result<String> {
        let file = self.device.open(path, Access::Write)?;
        let at = self.random.below(file.len()?.max(1));
        match self.random.below(4) {
            0 => self.device.remove(path)?,
            1 => file.set_len(at)?,
            _ => {
                let mut byte = [0];
                file.read_at(&mut byte, at)?;
                file.write_at(&[byte[0] ^ 1 << self.random.below(8)], at)?;
            }
        }
        Ok(format!("{path} was harmed at {at}"))
    }

    fn new_disk(&mut self) -> SimulatedDevice {
        let profile = Profile::random(&mut self.random);
        SimulatedDevice::new(self.random.bits(), profile)
    }
}
