//! The segments that a load writes: named by no manifest until it is attached, and removed if it
//! is not.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::bulk::Subject;
use crate::bulk::gathered::{Gathered, repeated};
use crate::bulk::sink::LongMap;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::segment::{Encoding, FilledSegment, SegmentInfo, SegmentMeta, SegmentWriter};
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, TreeId};

/// The segments of one load.
#[derive(Debug)]
pub(crate) struct Segments {
    engine: Arc<Engine>,
    tree: TreeId,
    subject: Subject,
    /// What was gathered for the next one, and its bytes.
    gathered: (Gathered, usize),
    filled: Vec<FilledSegment>,
}

impl Segments {
    pub(super) fn new(engine: Arc<Engine>, tree: TreeId, subject: Subject) -> Self {
        Self { engine, tree, subject, gathered: <_>::default(), filled: Vec::new() }
    }

    /// Writes what is gathered, as segments of so many bytes each and something; the last is left
    /// to [`end`](Self::end).
    pub(super) fn write_all(&mut self, gathered: Receiver<Gathered>, bytes: usize) -> Result<()> {
        for later in gathered {
            self.gathered.1 += self.gathered.0.add(self.tree, later);
            if self.gathered.1 >= bytes {
                self.end()?;
            }
        }
        Ok(())
    }

    /// Writes the rest as a segment.
    pub(super) fn end(&mut self) -> Result<()> {
        let (gathered, _) = std::mem::take(&mut self.gathered);
        if gathered.is_empty() {
            return Ok(());
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
        gathered.write((self.tree, self.subject), &mut writer)?;
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
            if are_apart(&live, &prefix)? {
                continue;
            }
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

/// Whether the names of each segment are all before those of another one, or all behind them.
fn are_apart(live: &LiveSegments, prefix: &[u8]) -> Result<bool> {
    let mut spans = Vec::new();
    for segment in live.segments() {
        let one = LiveSegments::new(vec![Arc::clone(segment)], 1 << 20);
        let first = one.scan(prefix)?.next().transpose()?;
        let last = one.last_before(prefix, &cell_key::last(prefix))?;
        if let (Some((first, _)), Some((last, _))) = (first, last) {
            spans.push((first, last));
        }
    }
    spans.sort_unstable();
    Ok(spans.array_windows().all(|[(_, last), (first, _)]| last < first))
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
