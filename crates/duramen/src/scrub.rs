//! Reads everything that is stored, slowly, to find damage while a backup without it is left.
//!
//! Where [`check`](crate::Database::check) decodes every cell, this verifies the checksums that all
//! of it has, as fast as it is allowed to, and can be stopped and gone on with. Nothing is written:
//! the place to go on at is the caller's to keep.
//!
//! Segments are read in the order of their numbers. One that is replaced meanwhile, by compaction
//! or a purge, was read and verified by that; the one in its place has a higher number.

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::check::Finding;
use crate::database::Database;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SCRUB_BYTES_PER_SECOND;
use crate::segment::Segment;
use crate::tree::cell_key::TreeId;

/// Bytes that are read between two rests.
const BURST_BYTES: u64 = 1 << 20;

/// How a database is scrubbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScrubOptions {
    /// Bytes read a second at most; none for as fast as possible.
    pub bytes_per_second: Option<u64>,
    /// Where to begin: where an earlier scrub ended.
    pub from: ScrubPosition,
}

/// A place between two blocks. It is written as `SEGMENT:BLOCK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ScrubPosition {
    /// The number of the segment.
    pub segment: u64,
    /// How many of its blocks are before the place.
    pub block: u64,
}

/// How far a scrub is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScrubProgress {
    /// Where it is.
    pub position: ScrubPosition,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes to be read in all, as far as that is known.
    pub total: u64,
}

/// What a scrub read and found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScrubReport {
    /// Blocks of cells that were read.
    pub blocks: u64,
    /// Bytes of those blocks.
    pub bytes: u64,
    /// Everything that does not verify; empty if all is well.
    pub findings: Vec<Finding>,
    /// Where to go on, if it was stopped.
    pub stopped_at: Option<ScrubPosition>,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        let bytes_per_second = Some(SCRUB_BYTES_PER_SECOND);
        Self { bytes_per_second, from: ScrubPosition::default() }
    }
}

impl fmt::Display for ScrubPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.block)
    }
}

impl FromStr for ScrubPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts = text.split_once(':').map(|(segment, block)| (segment.parse(), block.parse()));
        let Some((Ok(segment), Ok(block))) = parts else {
            let message = format!("{text:?} is no place to go on at: it looks like 12:340");
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        Ok(Self { segment, block })
    }
}

impl Database {
    /// Reads the manifest, every block of every segment and the journal from the device, past all
    /// caches, and verifies their checksums. Others go on reading and writing meanwhile.
    ///
    /// `progress` is called behind each block and may stop it; then the report says where to go on.
    ///
    /// # Errors
    /// `NotFound` if no segment ever had the number of the one to begin with, or a higher one.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use duramen::{CommitOptions, Database, ScrubOptions};
    ///
    /// let db = Database::memory()?;
    /// db.create_document("config")?.put("[1,2]", &CommitOptions::default())?;
    /// db.checkpoint()?;
    /// let report = db.scrub(&ScrubOptions::default(), &mut |_| ControlFlow::Continue(()))?;
    /// assert!(report.blocks == 1 && report.findings.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn scrub(
        &self,
        options: &ScrubOptions,
        progress: &mut dyn FnMut(ScrubProgress) -> ControlFlow<()>,
    ) -> Result<ScrubReport> {
        check_place(options.from, self.engine.last_segment())?;
        let mut scrub = Scrub {
            engine: &self.engine,
            bytes_per_second: options.bytes_per_second,
            unrested: 0,
            progress,
            report: ScrubReport::default(),
        };
        let ControlFlow::Continue(()) = scrub.segments(options.from) else {
            return Ok(scrub.report);
        };
        scrub.journal()?;
        Ok(scrub.report)
    }
}

/// Refuses a place behind all segments that there ever were. One whose segment was merged into
/// another since is before that one.
fn check_place(from: ScrubPosition, last: u64) -> Result<()> {
    if from.segment <= last {
        return Ok(());
    }
    let are = match last {
        0 => "there is none yet".to_owned(),
        _ => format!("the last one that was made is {last}"),
    };
    let message = format!(
        "there never was a segment {}: {are}; go on where a scrub was stopped, or begin anew",
        from.segment
    );
    Err(Error::new(ErrorKind::NotFound, message))
}

/// A scrub on its way.
struct Scrub<'s> {
    engine: &'s Engine,
    bytes_per_second: Option<u64>,
    /// Bytes read since the last rest.
    unrested: u64,
    progress: &'s mut dyn FnMut(ScrubProgress) -> ControlFlow<()>,
    report: ScrubReport,
}

impl Scrub<'_> {
    /// Reads the segments that are live now, and are still when it comes to them.
    fn segments(&mut self, from: ScrubPosition) -> ControlFlow<()> {
        let live = self.engine.view().store.live();
        let last = live.segments().iter().map(|segment| segment.info().number).max();
        let mut position = from;
        while let Some(segment) = self.next_segment(position.segment, last) {
            let number = segment.info().number;
            if number != position.segment {
                position = ScrubPosition { segment: number, block: 0 };
            }
            if position.block == 0 {
                for error in segment.scrub_guide() {
                    self.find(&segment, None, &error);
                }
            }
            loop {
                let block = usize::try_from(position.block).unwrap_or(usize::MAX);
                match segment.scrub_block(block) {
                    Ok(None) => break,
                    Ok(Some(bytes)) => self.read(bytes),
                    // An index that cannot be read was found above, and leads nowhere.
                    Err(_) if segment.blocks().is_err() => break,
                    Err(error) => self.find(&segment, Some(block), &error),
                }
                position.block += 1;
                if self.tell(position).is_break() {
                    self.report.stopped_at = Some(position);
                    return ControlFlow::Break(());
                }
            }
            position = ScrubPosition { segment: number + 1, block: 0 };
        }
        ControlFlow::Continue(())
    }

    /// The live segment with the least number from `number` to `last`.
    fn next_segment(&self, number: u64, last: Option<u64>) -> Option<Arc<Segment>> {
        let live = self.engine.view().store.live();
        let is_due = |segment: &&Arc<Segment>| {
            let found = segment.info().number;
            found >= number && Some(found) <= last
        };
        live.segments().iter().filter(is_due).min_by_key(|segment| segment.info().number).cloned()
    }

    /// Notes a block that was read, and rests if that was enough.
    fn read(&mut self, bytes: u64) {
        self.report.blocks += 1;
        self.report.bytes += bytes;
        self.unrested += bytes;
        let Some(rate) = self.bytes_per_second.filter(|_| self.unrested >= BURST_BYTES) else {
            return;
        };
        let micros = u128::from(self.unrested) * 1_000_000 / u128::from(rate.max(1));
        std::thread::sleep(Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)));
        self.unrested = 0;
    }

    fn tell(&mut self, position: ScrubPosition) -> ControlFlow<()> {
        let (bytes, total) = (self.report.bytes, self.engine.segment_bytes());
        (self.progress)(ScrubProgress { position, bytes, total: total.max(bytes) })
    }

    fn find(&mut self, segment: &Segment, block: Option<usize>, error: &Error) {
        // What a purge replaced was overwritten, and is no damage.
        if error.kind() == ErrorKind::Busy {
            return;
        }
        let (low, high) = match block {
            Some(block) => segment.keys_of_block(block),
            None => return self.add(&segment.info().path(), error, ""),
        };
        let tree = |key: &[u8]| key.first_chunk().map(|tree| u64::from_be_bytes(*tree));
        let affected = self.affected(tree(&low).unwrap_or(0), high.as_deref().and_then(tree));
        self.add(&segment.info().path(), error, &affected);
    }

    fn add(&mut self, place: &str, error: &Error, affected: &str) {
        let message = format!("{error}{affected}");
        self.report.findings.push(Finding { place: place.to_owned(), message });
    }

    /// The documents whose trees have numbers from `low` to `high`.
    fn affected(&self, low: u64, high: Option<u64>) -> String {
        let names = self.engine.view().names(self.engine.published()).unwrap_or_default();
        let is_affected = |tree: TreeId| tree.0 >= low && high.is_none_or(|high| tree.0 <= high);
        let names: Vec<String> = names
            .iter()
            .filter(|(_, found)| is_affected(found.tree))
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        match names.len() {
            0 => "; it has no cells of documents".to_owned(),
            count if count > SHOWN_MAX => {
                let shown = names[..SHOWN_MAX].join(", ");
                format!("; cells of the documents {shown} and {} more", count - SHOWN_MAX)
            }
            _ => format!("; cells of {}", names.join(", ")),
        }
    }

    /// Reads the journal's groups since the last checkpoint.
    fn journal(&mut self) -> Result<()> {
        match self.engine.verify_journal() {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                self.add("journal", &error, "");
                Ok(())
            }
            verified => verified,
        }
    }
}

/// Documents that a finding names.
const SHOWN_MAX: usize = 8;
