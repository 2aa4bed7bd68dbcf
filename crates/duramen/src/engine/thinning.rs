//! Commits of points that are thinned beside those that are there.
//!
//! Invariant: who appends to a series that thins its points is alone from before what is there is
//! looked at until its own points are there. Of two at once the later commit would else pass over
//! those of the earlier one, which break the lines that it promises.

use crate::Durability;
use crate::engine::Engine;
use crate::engine::record::Prepared;
use crate::engine::room::is_full;
use crate::error::Result;
use crate::journal::Ticket;
use crate::series::changes::SeriesChanges;

impl Engine {
    /// Queues a commit with what stays of points once they are thinned, if their series asks for
    /// that. `prepare` makes it without them.
    pub(crate) fn queue_points<'w>(
        &self,
        changes: &'w SeriesChanges,
        prepare: impl Fn() -> Prepared<'w>,
        durability: Durability,
    ) -> Result<Ticket> {
        if !changes.are_thinned() {
            return self.queue(&prepare().with_series(changes), durability);
        }
        // Before the turn: a checkpoint waits for who seals, and who seals for the turn.
        self.wait_for_room()?;
        match self.append_thinned(changes, &prepare, durability) {
            (true, Err(refused)) => self.checkpoint_for(refused)?,
            (_, queued) => return queued,
        }
        self.append_thinned(changes, &prepare, durability).1
    }

    /// Queues it, if the journal has room; whether a checkpoint might give the room that it has
    /// not.
    fn append_thinned<'w>(
        &self,
        changes: &SeriesChanges,
        prepare: &impl Fn() -> Prepared<'w>,
        durability: Durability,
    ) -> (bool, Result<Ticket>) {
        let _turn = self.staging.thinning_turn();
        let changes = changes.clone().thinned(&self.view());
        let prepared = prepare().with_series(&changes);
        let queued = self.append(&prepared, durability);
        (is_full(&queued) && prepared.fits(), queued)
    }
}
