//! Erasing what was purged: from the journal, and from segments that are written anew without it.
//!
//! Invariants:
//! - while the manifest says that a purge is under way, whatever file is given up is overwritten
//!   first, by a later open too;
//! - from the commit that says what is purged until that is erased nobody writes the document;
//! - the manifest says so before that commit, and until another one has said that all is done: so
//!   an interrupted purge is found and goes on.

use std::io::ErrorKind as Os;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::catalogue::old_hashes::OldHashes;
use crate::engine::catalogue::purges::{self, PurgeFacts};
use crate::engine::compaction::Compaction;
use crate::engine::{CATALOGUE, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::io::zeros;
use crate::limits::{LOCK_RETRY_MS, PURGE_READERS_WAIT_MS};
use crate::manifest::Manifest;
use crate::node::NodeId;
use crate::segment::{self, Segment};
use crate::tree::Tree;
use crate::tree::erase::{Erasure, Erasures};

/// Is told the bytes read and those to read, and may stop it.
pub(crate) type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// When a purge that is not done goes on.
pub(crate) const GOES_ON: &str =
    "with the next purge or `duramen compact`, or when the database is opened for writing";

/// What the purge under way has to come back to. Locked for as long as it takes.
#[derive(Debug, Default)]
pub(crate) struct Purges {
    /// The trees that are closed to writers, so that they stay in memory.
    trees: Vec<Arc<Tree>>,
}

/// A purge that was committed and is not done.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) tree: Arc<Tree>,
    /// Its key in the catalogue.
    pub(crate) number: String,
    pub(crate) node: NodeId,
}

impl Purges {
    /// Closes a tree to writers until the purges are done.
    pub(crate) fn close(&mut self, tree: &Arc<Tree>) {
        tree.set_purging(true);
        if self.trees.iter().all(|closed| closed.id() != tree.id()) {
            self.trees.push(Arc::clone(tree));
        }
    }

    /// Opens all trees to writers again.
    pub(crate) fn open(&mut self) {
        self.trees.drain(..).for_each(|tree| tree.set_purging(false));
    }
}

impl Engine {
    /// Whether a purge is under way, or was interrupted.
    pub(crate) fn is_purging(&self) -> bool {
        self.manifest.lock().purging
    }

    /// Says durably that a purge is under way, or that none is.
    pub(crate) fn set_purging(&self, purging: bool) -> Result<()> {
        let journal = self.journal()?;
        let mut manifest = self.manifest.lock();
        if manifest.purging == purging {
            return Ok(());
        }
        let set_erasing = |erases| {
            journal.set_erasing(erases);
            self.erases.store(erases, Ordering::Relaxed);
        };
        if purging {
            set_erasing(true);
        }
        let next = Manifest { purging, ..manifest.clone() };
        next.store(self.device.as_ref())?;
        *manifest = next;
        set_erasing(purging);
        Ok(())
    }

    /// The purges that are committed and not done.
    pub(crate) fn pending_purges(&self) -> Result<Vec<Pending>> {
        let (view, published) = (self.view(), self.published());
        let (catalogue, head) = view.catalogue(published)?;
        let mut pending = Vec::new();
        for (_, name) in view.names(published)? {
            let told = purges::purges(&catalogue, name.tree, head)?;
            for PurgeFacts { number, node, is_pending, .. } in told {
                if let Some(node) = node.filter(|_| is_pending) {
                    pending.push(Pending { tree: view.tree(name.tree)?, number, node });
                }
            }
        }
        Ok(pending)
    }

    /// Erases what is purged from all files.
    pub(crate) fn erase(
        &self,
        purges: &Purges,
        pending: &[Pending],
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.renew_journal()?;
        self.write_anew(purges, pending, progress)?;
        self.overwrite_given_up()
    }

    /// Puts all commits into segments; no file of the journal has what it had before.
    fn renew_journal(&self) -> Result<()> {
        let journal = self.journal()?;
        let turn = self.checkpoint_turn();
        let begin = {
            let _no_commits = self.gate.write();
            journal.flush()?;
            journal.renew()?
        };
        self.checkpoint_in_turn(&turn)?;
        {
            let mut manifest = self.manifest.lock();
            // Without a commit since the last checkpoint there was none to write.
            if manifest.checkpoint.sequence == begin.sequence {
                let next = Manifest { checkpoint: begin, ..manifest.clone() };
                next.store(self.device.as_ref())?;
                *manifest = next;
            }
        }
        journal.checkpointed(begin.position)
    }

    /// Writes all segments anew, without what is erased.
    fn write_anew(
        &self,
        purges: &Purges,
        pending: &[Pending],
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let mut under_way = self.compaction.lock();
        if let Some(other) = under_way.take() {
            other.erase()?;
        }
        let Some(mut compaction) = Compaction::erasing(self, self.erasures(pending)?)? else {
            return Ok(());
        };
        loop {
            if progress(compaction.read_bytes, compaction.total_bytes).is_break() {
                let message = format!("the purge was stopped: it goes on {GOES_ON}");
                return Err(Error::new(ErrorKind::Cancelled, message));
            }
            if compaction.step()? {
                break;
            }
        }
        // Whatever fails from here on, those that nothing names any more are known.
        self.give_up(self.view().store.live().segments());
        let mut erased = vec![self.view().tree(CATALOGUE)?];
        erased.extend(purges.trees.iter().cloned());
        self.replace(compaction, &erased).map(drop)
    }

    /// What is erased: the values, and what hashes of the documents' tags tell of them.
    fn erasures(&self, pending: &[Pending]) -> Result<Erasures> {
        let (catalogue, head) = self.view().catalogue(self.published())?;
        let mut erasures = Erasures::new();
        for Pending { tree, node, .. } in pending {
            let erasure = Erasure::of(tree, *node)?;
            erasures.push((tree.id(), Box::new(erasure)));
            if let Some(hashes) = OldHashes::of(&catalogue, tree.id(), head)? {
                erasures.push((CATALOGUE, Box::new(hashes)));
            }
        }
        Ok(erasures)
    }

    /// Remembers segments that are about to be replaced, or will never be named.
    pub(super) fn give_up(&self, segments: &[Arc<Segment>]) {
        let mut given_up = self.given_up.lock();
        for segment in segments {
            if !given_up.iter().any(|old| old.info() == segment.info()) {
                given_up.push(Arc::clone(segment));
            }
        }
    }

    /// Overwrites and removes those segments that were given up and nothing names. Who still reads
    /// them is waited for, but not for ever.
    pub(super) fn overwrite_given_up(&self) -> Result<()> {
        let mut old = self.given_up.lock();
        let live = self.view().store.infos();
        old.retain(|segment| !live.contains(segment.info()));
        let mut left_ms = PURGE_READERS_WAIT_MS;
        while let Some(segment) = old.last() {
            while Arc::strong_count(segment) > 1 && left_ms > 0 {
                std::thread::sleep(Duration::from_millis(LOCK_RETRY_MS));
                left_ms = left_ms.saturating_sub(LOCK_RETRY_MS);
            }
            let path = segment.info().path();
            let failed = |error| Error::io(format!("cannot overwrite {path}"), error);
            zeros::overwrite(self.device.as_ref(), &path).map_err(failed)?;
            match self.device.remove(&path) {
                Err(error) if error.kind() != Os::NotFound => return Err(failed(error)),
                _ => {}
            }
            old.pop();
        }
        let synced = self.device.sync_dir(segment::DIRECTORY);
        synced.map_err(|error| Error::io(format!("cannot sync {}", segment::DIRECTORY), error))
    }
}
