//! The segments that a load writes: named by no manifest until it is attached, and removed if it
//! is not.

use std::sync::Arc;

use crate::bulk::Subject;
use crate::bulk::sink::LongMap;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::segment::{Encoding, FilledSegment, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, TreeId};
use crate::tree::persist::Cells;

/// The segments of one load.
#[derive(Debug)]
pub(crate) struct Segments {
    engine: Arc<Engine>,
    tree: TreeId,
    subject: Subject,
    filled: Vec<FilledSegment>,
}

impl Segments {
    pub(super) fn new(engine: Arc<Engine>, tree: TreeId, subject: Subject) -> Self {
        Self { engine, tree, subject, filled: Vec::new() }
    }

    /// Writes cells as one segment.
    pub(super) fn write(&mut self, mut cells: Cells) -> Result<()> {
        if cells.is_empty() {
            return Ok(());
        }
        cells.sort_unstable();
        // Only names of entries can come twice.
        if let Some([(key, _), _]) = cells.array_windows().find(|[(a, _), (b, _)]| a == b) {
            return Err(repeated(self.subject, key));
        }
        let (number, epoch) = self.engine.next_segment();
        let meta = SegmentMeta {
            database_id: self.engine.id,
            epoch,
            level: 0,
            encoding: Encoding::Warm,
            // Known when it is attached.
            first_sequence: CommitSequence(0),
            last_sequence: CommitSequence(0),
        };
        let mut writer = SegmentWriter::create(&self.engine.device, number, meta)?;
        for (key, cell) in &cells {
            writer.push(key, cell)?;
        }
        self.filled.push(writer.fill()?);
        Ok(())
    }

    /// Refuses maps that have a name twice. Names of one segment were compared as it was written.
    pub(super) fn check_names(&mut self, maps: &[LongMap]) -> Result<()> {
        if maps.is_empty() || self.filled.len() < 2 {
            return Ok(());
        }
        let infos = self.seal(CommitSequence(0))?;
        let store = &self.engine.view().store;
        let segments = infos.iter().map(|info| store.open_segment(info));
        let live = LiveSegments::new(segments.collect::<Result<_>>()?, 1 << 20);
        for map in maps {
            let prefix = cell_key::entry(self.tree, map.path, map.ordinal, b"");
            let mut entries = 0;
            for found in live.scan(&prefix)? {
                found?;
                entries += 1;
            }
            if entries != map.entries {
                return Err(find_repeated(self.subject, &live, &prefix)?);
            }
        }
        Ok(())
    }

    /// Completes the segments: they hold the commit `sequence`.
    pub(crate) fn seal(&mut self, sequence: CommitSequence) -> Result<Vec<SegmentInfo>> {
        self.filled.iter_mut().map(|segment| segment.seal(sequence)).collect()
    }

    /// Keeps the files, whatever comes: a manifest may name them.
    pub(crate) fn keep(&mut self) {
        self.filled.drain(..).for_each(FilledSegment::keep);
    }
}

/// Which name it is that several segments have.
fn find_repeated(subject: Subject, live: &LiveSegments, prefix: &[u8]) -> Result<Error> {
    let segments = live.segments();
    for (index, segment) in segments.iter().enumerate().skip(1) {
        let newer = LiveSegments::new(segments[..index].to_vec(), 1 << 20);
        let older = LiveSegments::new(vec![Arc::clone(segment)], 1 << 20);
        for found in older.scan(prefix)? {
            let (key, _) = found?;
            if newer.get(&key)?.is_some() {
                return Ok(repeated(subject, &key));
            }
        }
    }
    Ok(Error::new(ErrorKind::Internal, "fewer names were written than entries"))
}

fn repeated(subject: Subject, key: &[u8]) -> Error {
    let name = String::from_utf8_lossy(cell_key::entry_name(key)).into_owned();
    match subject {
        Subject::Value => {
            let message = format!(
                "JSON is invalid: an object too long to be held in memory has the name {name:?} \
                 twice"
            );
            Error::new(ErrorKind::Invalid, message)
        }
        Subject::Records => {
            let message = format!(
                "two records have the key {name}: put them in batches, where the last one counts"
            );
            Error::new(ErrorKind::Conflict, message)
        }
    }
}
