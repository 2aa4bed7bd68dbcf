//! Attaches a document that was loaded into segments: the commit that makes it its first revision.
//!
//! Invariants:
//! - the manifest that names the segments is what commits: the journal has no record of it, and
//!   goes on with the commit after it;
//! - no other commit gets a sequence between that of this one and that manifest.

use std::sync::Arc;

use crate::bulk::Segments;
use crate::engine::record::{Facts, Prepared};
use crate::engine::{Engine, View};
use crate::error::Result;
use crate::journal::JournalPoint;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::segment::{Encoding, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::series::rollup::Rolling;
use crate::series::young as series;
use crate::tree::Tree;
use crate::tree::data::TreeData;
use crate::tree::persist::{self, CellSink, Frozen, LoadedCells};
use crate::tree::writer::Writer;

/// A document that is in segments, and what goes with it.
#[derive(Debug)]
pub(crate) struct Attachment<'a> {
    /// Its tree, whose turn is taken and which has no revision.
    pub(crate) tree: Arc<Tree>,
    /// The schema and the high waters; no states.
    pub(crate) data: TreeData,
    /// How many order blocks and values stored apart there are.
    pub(crate) counts: (u64, u64),
    pub(crate) segments: &'a mut Segments,
    pub(crate) facts: Facts,
    /// The catalogue, if it says something new.
    pub(crate) catalogue: Option<&'a Writer>,
}

/// What is put on the device under the commit's sequence.
struct Put {
    /// All segments, those of the load among them.
    infos: Vec<SegmentInfo>,
    /// The trees that were young, with the numbers of their schemas.
    trees: Vec<(Arc<Tree>, Frozen, u128)>,
    series: series::Frozen,
    loaded: LoadedCells,
}

impl Engine {
    /// Commits a loaded document: its sequence and timestamp. It is durable then, and published.
    pub(crate) fn attach(&self, mut loaded: Attachment<'_>) -> Result<(CommitSequence, Micros)> {
        let journal = self.journal()?;
        let turn = self.checkpoint_turn();
        // Before commits have to wait, so that what is left to write then is little.
        if self.has_much_young() {
            self.checkpoint_with_room(&turn)?;
        }
        let no_seals = self.staging.seal_turn();
        let _no_commits = self.gate.write();
        journal.flush()?;
        journal.unmark()?;
        let tail = journal.tail();
        let timestamp = self.clock().now().max(Micros(tail.timestamp.0.saturating_add(1)));
        let end = JournalPoint { sequence: tail.sequence.next(), timestamp, ..tail };
        stage(&self.view(), &mut loaded, &end);
        let young_bytes = self.memory.young();
        let mut is_final = loaded.catalogue.is_some();
        let mut written = Vec::new();
        let put = self.put(&mut loaded, &end, &mut written).inspect_err(|_| {
            for info in &written {
                self.remove_unnamed(info.number);
            }
        });
        let put = put.and_then(|put| {
            is_final = true;
            // Only now: if this commit comes to nothing, another one gets its number.
            self.staging.stamp(&no_seals, end.sequence)?;
            loaded.segments.keep();
            self.name_segments(&put, end)?;
            Ok(put)
        });
        let put = put.inspect_err(|error| {
            // The catalogue may hold a commit that is none, and the manifest be either of two.
            if is_final {
                journal.poison(error);
            }
        })?;
        for (tree, frozen, schema) in &put.trees {
            tree.checkpointed(frozen, *schema)?;
        }
        self.memory.remove_young(young_bytes);
        let LoadedCells { frozen, schema, .. } = &put.loaded;
        loaded.tree.attach_loaded(Arc::clone(&loaded.data.schema), frozen, *schema);
        let catalogue = loaded.catalogue.map(Writer::change);
        let changed = catalogue.into_iter().chain([(loaded.tree.id(), Revision(1))]);
        self.view().recent.lock().push(end.sequence, changed);
        journal.pass(end.sequence, end.timestamp);
        journal.checkpointed(end.position)?;
        if self.has_worker() {
            // A load brings several segments.
            self.signal.wake();
        }
        Ok((end.sequence, end.timestamp))
    }

    /// Writes what is young, and the facts of the loaded document, as segments that are told to
    /// `written`, and completes those of the load.
    fn put(
        &self,
        loaded: &mut Attachment<'_>,
        end: &JournalPoint,
        written: &mut Vec<SegmentInfo>,
    ) -> Result<Put> {
        // Their names are durable with those of the segments that are written after them.
        let sealed = loaded.segments.seal(end.sequence)?;
        loaded.segments.sync()?;
        let frozen = |tree: Arc<Tree>| tree.freeze().map(|frozen| (tree, frozen));
        let young: Vec<_> = self.view().open_trees().into_iter().filter_map(frozen).collect();
        let series = self.view().series.freeze();
        let mut trees = Vec::with_capacity(young.len());
        if !young.is_empty() || !series.is_empty() {
            let mut out = CellSink::new(self.new_segment(end)?);
            for (tree, frozen) in young {
                let schema = tree.write_frozen(&frozen, None, &mut out)?;
                trees.push((tree, frozen, schema));
            }
            let mut rolling = Rolling::new(self.view(), end.sequence, self.now())?;
            out.put_series(&series, &mut rolling)?;
            written.push(out.finish()?);
        }
        let facts = persist::loaded_cells(&loaded.data, loaded.tree.id(), loaded.counts);
        let mut segment = self.new_segment(end)?;
        for (key, cell) in &facts.cells {
            segment.push(key, cell)?;
        }
        written.push(segment.finish()?);
        let infos = written.iter().copied().chain(sealed).collect();
        Ok(Put { infos, trees, series, loaded: facts })
    }

    fn new_segment(&self, end: &JournalPoint) -> Result<SegmentWriter> {
        let (number, epoch) = self.next_segment();
        let meta = SegmentMeta {
            database_id: self.id,
            epoch,
            level: 0,
            encoding: Encoding::Warm,
            first_sequence: self.manifest.lock().checkpoint.sequence.next(),
            last_sequence: end.sequence,
        };
        SegmentWriter::create(&self.device, number, meta)
    }

    /// Makes segments the newest, and the commit the last one whose cells are in segments.
    fn name_segments(&self, put: &Put, end: JournalPoint) -> Result<()> {
        let view = self.view();
        let opened = put.infos.iter().map(|info| view.store.open_segment(info));
        let opened = opened.collect::<Result<Vec<_>>>()?;
        let mut manifest = self.manifest.lock();
        let mut next = manifest.clone();
        next.segments.splice(0..0, put.infos.iter().copied());
        next.checkpoint = end;
        next.store(self.device.as_ref())?;
        *manifest = next;
        view.series.checkpointed(&put.series, || {
            opened.into_iter().rev().for_each(|segment| view.store.add(segment));
        });
        Ok(())
    }
}

/// Makes what is loaded, and what the catalogue says of it, the commit at `end`.
fn stage(view: &View, loaded: &mut Attachment<'_>, end: &JournalPoint) {
    let facts = &loaded.facts;
    let row = facts.row((loaded.tree.id(), Revision(1)), end.sequence, end.timestamp);
    loaded.data.commit_staged(&row);
    if let Some(catalogue) = loaded.catalogue {
        let prepared = Prepared::new(vec![catalogue], facts.clone());
        prepared.stage(view, end.sequence, end.timestamp);
    }
}
