//! When points that are staged become commits.
//!
//! Invariants:
//! - who seals waits for the device with no lock that a point needs: points go to the other bank;
//! - a checkpoint begins while nothing is on its way from the stripes into the journal, and stamps
//!   what is staged: so a generation with a stamp before the checkpoint is sealed, and any other
//!   one is if the journal after the checkpoint says so;
//! - a point is acknowledged if a killed process leaves it, and durable after its interval, or once
//!   a flush that began after it has ended.

use crate::Durability;
use crate::engine::Engine;
use crate::engine::record::{Facts, Prepared};
use crate::engine::room::is_full;
use crate::error::Result;
use crate::io::Device;
use crate::manifest::Feature;
use crate::revision::{CommitSequence, Micros};
use crate::series::changes::SeriesChanges;
use crate::series::commits::CommitTime;
use crate::series::young::Loaded;
use crate::staging::{self, Binding, Columns, Staged, StagedPoint, Stripe, Taken};
use crate::tree::cell_key::TreeId;

impl Engine {
    /// Stages a point, which becomes part of a commit within an interval.
    pub(crate) fn stage(
        &self,
        binding: &Binding,
        point: &StagedPoint,
        interval_ms: u32,
    ) -> Result<()> {
        self.journal()?.check_open()?;
        if !self.staging.stage_another(binding, point, interval_ms) {
            return self.stage_first(binding, point, interval_ms);
        }
        if !self.has_worker() {
            self.seal_if_due();
        }
        Ok(())
    }

    /// The same where that takes more than to write the point.
    #[cold]
    fn stage_first(&self, binding: &Binding, point: &StagedPoint, interval_ms: u32) -> Result<()> {
        let make = |_| self.make_stripe();
        loop {
            match self.staging.stage(binding, point, interval_ms, &make)? {
                // Whoever seals it now is waited for.
                Staged::Waits => self.seal()?,
                staged => {
                    self.see_to(staged);
                    return Ok(());
                }
            }
        }
    }

    /// Does what is to be done now that a point is staged.
    fn see_to(&self, staged: Staged) {
        match staged {
            Staged::Due(interval_ms) => {
                let interval = i64::from(interval_ms) * 1_000;
                let due = self.clock().now().0.saturating_add(interval);
                if self.staging.set_due(Micros(due)) {
                    self.sealing.wake();
                }
            }
            Staged::Full => self.sealing.wake_full(),
            Staged::Done | Staged::Waits | Staged::Elsewhere => {}
        }
        if !self.has_worker() {
            self.seal_if_due();
        }
    }

    fn make_stripe(&self) -> Result<Stripe> {
        self.enable(Feature::Staging)?;
        let journal_bytes = self.journal_bytes_max();
        staging::make(self.device.as_ref(), (self.id, journal_bytes), &self.memory)
    }

    /// Seals what is due, where no thread does so.
    fn seal_if_due(&self) {
        if self.staging.due().is_some_and(|due| due <= self.clock().now()) {
            // The point is safe; what fails here is tried again with a later one.
            let _ = self.seal_durably();
        }
    }

    /// Makes all points that were staged so far commits, and these durable.
    pub(crate) fn seal_durably(&self) -> Result<()> {
        self.seal()?;
        self.journal()?.flush()
    }

    /// Makes the points of a series that were staged so far part of a commit, if there are any.
    pub(crate) fn seal_of(&self, series: TreeId) -> Result<()> {
        match self.staging.binding(series) {
            Some(binding) if self.staging.has_staged_of(&binding) => self.seal(),
            _ => Ok(()),
        }
    }

    /// Makes all points that were staged so far commits, which readers see.
    pub(crate) fn seal(&self) -> Result<()> {
        if !self.staging.has_staged() {
            if self.staging.settle_due(self.clock().now()) {
                self.sealing.wake();
            }
            return Ok(());
        }
        self.wait_for_room()?;
        let mut sealed = self.seal_once();
        if is_full(&sealed) {
            self.checkpoint_with_room(&self.checkpoint_turn())?;
            sealed = self.seal_once();
        }
        self.work_if_due();
        self.memory.settle();
        sealed
    }

    fn seal_once(&self) -> Result<()> {
        let _turn = self.staging.seal_turn();
        self.staging.clear_due();
        for stripe in self.staging.stripes() {
            let taken = stripe.take();
            if taken.banks.is_empty() {
                continue;
            }
            #[cfg(duramen_teeth)]
            if crate::teeth::bites("reuse_bank_early") {
                stripe.sealed(taken.clone());
            }
            match self.seal_stripe(stripe, &taken) {
                Ok(()) => stripe.sealed(taken),
                Err(error) => {
                    stripe.give_back(taken);
                    self.staging.set_due(self.clock().now());
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn seal_stripe(&self, stripe: &Stripe, taken: &Taken) -> Result<()> {
        let mut changes = SeriesChanges::default();
        taken.banks.iter().try_for_each(|(_, columns)| columns.add_to(&mut changes))?;
        let changes = changes.settled()?;
        let ticket = {
            let _turn = changes.are_thinned().then(|| self.staging.thinning_turn());
            let changes = changes.thinned(&self.view());
            let prepared = Prepared::new(Vec::new(), Facts::default());
            let seal = (stripe.id, taken.generation);
            let prepared = prepared.with_series(&changes).with_seal(seal);
            self.append(&prepared, Durability::Interval(taken.interval_ms))?
        };
        self.journal()?.wait(ticket)
    }

    /// Commits what an earlier process staged. As with a bulk load, the manifest that names the
    /// segment is what commits: until then the files have the points, and from then on stamps that
    /// are before the checkpoint. The journal could not say it before what was found in it is
    /// durable elsewhere.
    pub(super) fn commit_recovered(&self, points: &[StagedPoint]) -> Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        let journal = self.journal()?;
        let mut changes = SeriesChanges::default();
        Columns::of(points)?.add_to(&mut changes)?;
        let changes = changes.settled()?;
        journal.unmark()?;
        let tail = journal.tail();
        let (sequence, after) = (tail.sequence.next(), tail.timestamp.0.saturating_add(1));
        let timestamp = self.clock().now().max(Micros(after));
        let view = self.view();
        view.series.stage(&changes, (sequence, timestamp));
        view.recent.lock().push(sequence, []);
        self.memory.add_young(changes.young_bytes());
        journal.pass(sequence, timestamp);
        let written = self.with_reserve(&mut || self.write_checkpoint());
        // An end mark would tell of a commit that is nowhere.
        written.inspect_err(|error| journal.poison(error))
    }

    /// Takes over what commits up to `until` did to series elsewhere, durably. Nobody may write
    /// meanwhile: there are points of commits that are over.
    pub(crate) fn load_series(&self, loaded: Loaded, until: CommitTime) -> Result<()> {
        let journal = self.journal()?;
        {
            let turn = self.checkpoint_turn();
            journal.flush()?;
            journal.unmark()?;
            let tail = journal.tail();
            // A later one each time, so that of the rows of a window the last ones hold.
            let sequence = until.0.max(tail.sequence.next());
            let after = until.1.max(Micros(tail.timestamp.0.saturating_add(1)));
            let bytes = loaded.bytes;
            let view = self.view();
            view.series.load(loaded);
            view.recent.lock().push(sequence, []);
            self.memory.add_young(bytes);
            journal.pass(sequence, self.clock().now().max(after));
            let written = self.checkpoint_in_turn(&turn);
            written.inspect_err(|error| journal.poison(error))?;
        }
        self.compact_due()
    }

    /// Ends the staging in order: everything sealed, and no files left.
    pub(super) fn end_staging(&self) -> Result<()> {
        if self.staging.stripes().next().is_none() || self.staging.has_staged() {
            return Ok(());
        }
        staging::remove_all(self.device.as_ref())
    }
}

/// Finds what an earlier process staged and did not seal, as stamps before the checkpoint and seals
/// in the journal after it tell: the points of each series in the order in which they came.
pub(super) fn recover(
    device: &dyn Device,
    (database, checkpoint): (u128, CommitSequence),
    last_seal: &dyn Fn(u64) -> u64,
) -> Result<Vec<StagedPoint>> {
    let mut points = Vec::new();
    for stripe in staging::read(device, database)? {
        let sealed = last_seal(stripe.stripe);
        for found in stripe.generations {
            if found.generation > sealed && found.after >= checkpoint {
                // A series has points that are not sealed in one stripe only.
                points.extend(found.points);
            }
        }
    }
    Ok(points)
}
