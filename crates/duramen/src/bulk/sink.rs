//! Where what is read goes: the document under construction, and from it to whoever writes it.

use std::sync::mpsc::{SyncSender, TrySendError};

use crate::bulk::builder::Builder;
use crate::bulk::gathered::Batch;
use crate::bulk::run::{Between, RunForm};
use crate::bulk::{BulkProgress, Progress};
use crate::collection::KeyKind;
use crate::error::{Error, ErrorKind, Result};
use crate::json::TextStream;
use crate::node::PathId;

/// Bytes of text from which on a container is gone into.
const WHOLE_BYTES_MAX: usize = 4 << 20;
/// Bytes of text after which progress is told and memory looked at.
const STEP_BYTES: usize = 1 << 20;
/// Bytes of the row groups being filled from which on they are encoded as far as they are.
const FILLING_BYTES_MAX: usize = 16 << 20;
/// Bytes of cells gathered for a segment, at least and at most; between them an eighth of the
/// database's memory.
const SEGMENT_BYTES_MIN: usize = 1 << 20;
const SEGMENT_BYTES_MAX: usize = 32 << 20;

/// How much is held at a time, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) whole: usize,
    step: usize,
    filling: usize,
    pub(super) segment: usize,
}

impl Bounds {
    /// What suits a database with so much memory.
    pub(super) fn of(memory_bytes: usize) -> Self {
        Self {
            whole: WHOLE_BYTES_MAX,
            step: STEP_BYTES,
            filling: FILLING_BYTES_MAX,
            segment: (memory_bytes / 8).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
        }
    }

    /// The same for everything.
    pub(super) fn all(bytes: usize) -> Self {
        Self { whole: bytes, step: bytes, filling: bytes, segment: bytes }
    }
}

/// A document under construction, and where it goes to be written.
pub(super) struct Sink<'a> {
    pub(super) builder: Builder,
    pub(super) bounds: Bounds,
    writer: SyncSender<Batch>,
    progress: &'a mut Progress<'a>,
    values: u64,
    /// Bytes that were read when progress was told last.
    told: u64,
}

/// A map that was gone into, so that nothing has seen all of its names.
#[derive(Debug, Clone, Copy)]
pub(super) struct LongMap {
    pub(super) path: PathId,
    pub(super) ordinal: u64,
    pub(super) entries: u64,
}

/// What was read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) builder: Builder,
    pub(super) maps: Vec<LongMap>,
    pub(super) progress: BulkProgress,
}

impl<'a> Sink<'a> {
    pub(super) fn new(
        builder: Builder,
        bounds: Bounds,
        writer: SyncSender<Batch>,
        progress: &'a mut Progress<'a>,
    ) -> Self {
        Self { builder, bounds, writer, progress, values: 0, told: 0 }
    }

    /// Reads objects that come next, elements or entries of a parent, if they are likely to be
    /// alike: whether any were read.
    pub(super) fn put_run(
        &mut self,
        stream: &mut TextStream<'_>,
        at: (PathId, u64),
        (between, key): (Between, Option<(PathId, KeyKind)>),
    ) -> Result<bool> {
        let step = self.told + self.bounds.step as u64;
        let bytes = step.saturating_sub(stream.consumed()).max(1);
        let form = RunForm { between, key, bytes };
        let Some(ran) = self.builder.put_run(at, stream.text(), form) else { return Ok(false) };
        stream.consume(ran.bytes);
        self.end_values(ran.objects, stream.consumed())?;
        Ok(true)
    }

    /// Counts a value that was read; so many bytes were up to its end.
    pub(super) fn end_value(&mut self, bytes: u64) -> Result<()> {
        self.end_values(1, bytes)
    }

    fn end_values(&mut self, values: usize, bytes: u64) -> Result<()> {
        self.values += values as u64;
        if bytes - self.told >= self.bounds.step as u64 {
            self.tell(bytes)?;
        }
        Ok(())
    }

    /// Ends it: so many bytes were read.
    pub(super) fn end(mut self, bytes: u64, maps: Vec<LongMap>) -> Result<Loaded> {
        self.tell(bytes)?;
        self.builder.columns.gather_groups(&self.builder.data.schema);
        self.hand_over()?;
        let Self { builder, values, .. } = self;
        Ok(Loaded { builder, maps, progress: BulkProgress { bytes, values } })
    }

    /// Tells progress, and hands over what has gathered.
    fn tell(&mut self, bytes: u64) -> Result<()> {
        self.told = bytes;
        if (self.progress)(BulkProgress { bytes, values: self.values }).is_break() {
            let message = "the load was stopped: nothing of it was kept";
            return Err(Error::new(ErrorKind::Cancelled, message));
        }
        let Builder { columns, data, .. } = &mut self.builder;
        if columns.filling_bytes() >= self.bounds.filling {
            columns.gather_groups(&data.schema);
        }
        self.hand_over()
    }

    fn hand_over(&mut self) -> Result<()> {
        let gathered = self.builder.columns.take_gathered();
        if gathered.is_empty() {
            return Ok(());
        }
        // Whoever would have to wait does some of what the other one is late with (benchmark A0).
        let sent = match self.writer.try_send(gathered) {
            Err(TrySendError::Full(mut gathered)) => {
                gathered.encode();
                self.writer.send(gathered).is_ok()
            }
            sent => sent.is_ok(),
        };
        // It ends early if it cannot write, which is told in place of this.
        let gone = || Error::new(ErrorKind::Internal, "nobody writes what is read");
        sent.then_some(()).ok_or_else(gone)
    }
}
