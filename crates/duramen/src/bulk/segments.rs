//! The segments that a load writes: named by no manifest until it is attached, and removed if it
//! is not.
//!
//! Many names that come in the order of their keys are not gathered: they go to a segment of their
//! own as they come, so that little is left to write when all is read (benchmark A0).

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::bulk::Subject;
use crate::bulk::gathered::{Batch, Gathered};
use crate::bulk::names::repeated;
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
    /// One of names that is being written.
    names: Option<SegmentWriter>,
    filled: Vec<FilledSegment>,
}

/// Of the bytes that are gathered for a segment, names from one in so many on have one of their
/// own, which holds at most one in so many.
const NAMES_SHARE: usize = 8;
const NAMES_HELD_SHARE: usize = 4;

impl Segments {
    pub(super) fn new(engine: Arc<Engine>, tree: TreeId, subject: Subject) -> Self {
        Self { engine, tree, subject, gathered: <_>::default(), names: None, filled: Vec::new() }
    }

    /// Writes what is gathered, as segments of so many bytes each and something; the last is left
    /// to [`end`](Self::end).
    pub(super) fn write_all(&mut self, batches: Receiver<Batch>, bytes: usize) -> Result<()> {
        for later in batches {
            self.gathered.1 += self.gathered.0.add(self.tree, later);
            self.write_names(bytes)?;
            if self.gathered.1 >= bytes {
                self.end()?;
            }
        }
        self.end_names()
    }

    /// Writes the names that are gathered, if they come in order, and are many for a segment of
    /// so many bytes, or follow others that were.
    fn write_names(&mut self, bytes: usize) -> Result<()> {
        let (gathered, gathered_bytes) = &mut self.gathered;
        let held = gathered.names.held_bytes();
        if held == 0 || (self.names.is_none() && held < bytes / NAMES_SHARE) {
            return Ok(());
        }
        let Some(first) = gathered.names.first_in_order(self.tree) else { return self.end_names() };
        if self.names.as_ref().is_some_and(|writer| !writer.is_before(&first)) {
            return self.end_names();
        }
        *gathered_bytes -= held;
        let names = std::mem::take(&mut gathered.names);
        let mut writer = match self.names.take() {
            Some(writer) => writer,
            None => self.new_segment()?,
        };
        names.write((self.tree, self.subject), &mut writer)?;
        let is_long = writer.held_bytes() >= bytes / NAMES_HELD_SHARE;
        self.names = Some(writer);
        if is_long { self.end_names() } else { Ok(()) }
    }

    fn end_names(&mut self) -> Result<()> {
        if let Some(writer) = self.names.take() {
            self.filled.push(writer.fill()?);
        }
        Ok(())
    }

    fn new_segment(&self) -> Result<SegmentWriter> {
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
        SegmentWriter::create(&self.engine.device, number, meta)
    }

    /// Writes the rest as a segment.
    pub(super) fn end(&mut self) -> Result<()> {
        let (gathered, _) = std::mem::take(&mut self.gathered);
        if gathered.is_empty() {
            return Ok(());
        }
        let mut writer = self.new_segment()?;
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

    /// Completes the segments: they hold the commit `sequence`. They are durable once they are
    /// [synced](Self::sync), and their directory.
    pub(crate) fn seal(&mut self, sequence: CommitSequence) -> Result<Vec<SegmentInfo>> {
        self.filled.iter_mut().map(|segment| segment.seal(sequence)).collect()
    }

    /// Makes what the segments have durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.filled.iter().try_for_each(FilledSegment::sync)
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
