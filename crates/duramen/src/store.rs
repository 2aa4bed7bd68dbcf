//! The live segments of a database and their one cache of blocks.
//!
//! Invariants:
//! - a [`LiveSegments`] never changes: a reader keeps the segments it began with, whatever is
//!   added or replaced meanwhile, even when their files are removed;
//! - of a key in several segments the newest segment's cell holds; newest is first in the list.

mod scan;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::ErrorKind as Os;
use std::sync::Arc;

use bytes::Bytes;

use crate::io::{Device, zeros};
use crate::manifest::Manifest;
use crate::memory::Memory;
use crate::segment::{self, BlockCache, KeyHash, Segment, SegmentInfo, VisitCell};
use crate::sync::RwLock;
use crate::{Error, ErrorKind, Result};

use scan::Blocks;
pub(crate) use scan::Scan;

/// The segments that are live now.
#[derive(Debug)]
pub(crate) struct Store {
    device: Arc<dyn Device>,
    memory: Arc<Memory>,
    live: RwLock<Arc<LiveSegments>>,
}

/// The segments that were live at one moment.
#[derive(Debug)]
pub(crate) struct LiveSegments {
    /// Newest first.
    segments: Vec<Arc<Segment>>,
    cache: Arc<BlockCache>,
}

impl Store {
    /// Opens the segments of the manifest; what is read of them is kept within the memory.
    pub(crate) fn open(
        device: &Arc<dyn Device>,
        manifest: &Manifest,
        memory: &Arc<Memory>,
    ) -> Result<Self> {
        let segments = open_all(device, &manifest.segments)?;
        let cache = Arc::clone(memory.blocks());
        let live = RwLock::new(Arc::new(LiveSegments { segments, cache }));
        Ok(Self { device: Arc::clone(device), memory: Arc::clone(memory), live })
    }

    pub(crate) fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The memory for what is read of the segments.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The segments that are live now, for a reader to keep.
    pub(crate) fn live(&self) -> Arc<LiveSegments> {
        Arc::clone(&self.live.read())
    }

    /// The newest cell with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.live().get(key)
    }

    /// Opens a finished segment, to be added once the manifest names it.
    pub(crate) fn open_segment(&self, info: &SegmentInfo) -> Result<Arc<Segment>> {
        Segment::open_live(&self.device, info)
    }

    /// Adds a segment as the newest.
    pub(crate) fn add(&self, added: Arc<Segment>) {
        let mut live = self.live.write();
        let segments = [added].into_iter().chain(live.segments.iter().cloned()).collect();
        *live = Arc::new(LiveSegments { segments, cache: Arc::clone(&live.cache) });
    }

    /// Puts a segment in the place of those it was made of, which follow each other.
    pub(crate) fn replace(&self, made_of: &[u64], made: Option<Arc<Segment>>) {
        let mut live = self.live.write();
        let mut segments = live.segments.clone();
        let is_replaced = |segment: &Arc<Segment>| made_of.contains(&segment.info().number);
        let at = segments.iter().position(is_replaced).unwrap_or(segments.len());
        segments.retain(|segment| !is_replaced(segment));
        #[cfg(duramen_teeth)]
        if crate::teeth::bites("replace_in_two_steps") {
            let without = LiveSegments { segments: segments.clone(), cache: live.cache.clone() };
            *live = Arc::new(without);
            drop(live);
            live = self.live.write();
        }
        segments.splice(at..at, made);
        *live = Arc::new(LiveSegments { segments, cache: Arc::clone(&live.cache) });
    }

    /// What the manifest is to say of the live segments, newest first.
    pub(crate) fn infos(&self) -> Vec<SegmentInfo> {
        self.live().segments.iter().map(|segment| *segment.info()).collect()
    }

    /// Reads all of every live segment and tells everything that does not verify, with the file;
    /// `visit` verifies what is in the cells.
    pub(crate) fn check(&self, visit: &mut VisitCell<'_>) -> Vec<(String, Error)> {
        let mut findings = Vec::new();
        for segment in &self.live().segments {
            let file = segment.info().path();
            let found = segment.check(visit).into_iter();
            findings.extend(found.map(|error| (file.clone(), error)));
        }
        findings
    }
}

/// Opens all segments of a database. Where one does not open nothing is read of the others: older
/// cells would be found in the place of its own, and a merge would make that last.
fn open_all(device: &Arc<dyn Device>, infos: &[SegmentInfo]) -> Result<Vec<Arc<Segment>>> {
    let (mut segments, mut failed) = (Vec::with_capacity(infos.len()), Vec::new());
    for info in infos {
        match Segment::open_live(device, info) {
            Err(error) if error.kind() == ErrorKind::Corrupt => failed.push(error),
            opened => segments.push(opened?),
        }
    }
    let others = failed.len().saturating_sub(1);
    let Some(first) = failed.into_iter().next() else { return Ok(segments) };
    Err(first.reworded(|message| {
        let others = match others {
            0 => String::new(),
            1 => "; another segment does not open either".to_owned(),
            others => format!("; {others} other segments do not open either"),
        };
        format!(
            "{message}: without this segment older values would be taken for those that it has, \
             so nothing is read or written{others}"
        )
    }))
}

impl LiveSegments {
    /// These segments, newest first, with a cache of their own.
    pub(crate) fn new(segments: Vec<Arc<Segment>>, cache_bytes: u64) -> Self {
        Self { segments, cache: Arc::new(BlockCache::new(cache_bytes)) }
    }

    /// The segments, newest first.
    pub(crate) fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// Some of the segments, newest first, with a cache of their own of so many bytes.
    pub(crate) fn part(&self, part: std::ops::Range<usize>, cache_bytes: u64) -> Self {
        let segments = self.segments.get(part).unwrap_or_default().to_vec();
        Self { segments, cache: Arc::new(BlockCache::new(cache_bytes)) }
    }

    /// The cache of their blocks.
    pub(crate) fn cache(&self) -> &Arc<BlockCache> {
        &self.cache
    }

    /// The newest cell with this key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        let hash = KeyHash::of(key);
        for segment in &self.segments {
            if segment.may_have_key(key, hash)?
                && let Some(cell) = segment.get(&self.cache, key)?
            {
                return Ok(Some(cell));
            }
        }
        Ok(None)
    }

    /// The cell with the greatest key at or before `key` that begins with `prefix`, as `key` does.
    pub(crate) fn last_before(&self, prefix: &[u8], key: &[u8]) -> Result<Option<(Bytes, Bytes)>> {
        assert!(key.starts_with(prefix), "{key:02x?} does not begin with {prefix:02x?}");
        let tree = KeyHash::of_tree(prefix);
        let mut last = None;
        for segment in &self.segments {
            if !segment.may_have_prefix(prefix, tree)? {
                continue;
            }
            let Some(at) = segment.at_or_before(&self.cache, key)? else { continue };
            let Some((found, cell)) = segment.cell_at(&self.cache, at)? else { continue };
            // Of equal keys the one found first is the newest.
            let above = last.as_ref().is_none_or(|(best, _)| found > *best);
            if above && found.starts_with(prefix) {
                last = Some((found, cell));
            }
        }
        last.map(|(found, cell)| Ok((found, cell.load()?))).transpose()
    }

    /// All cells whose keys begin with `prefix`, in key order.
    pub(crate) fn scan(&self, prefix: &[u8]) -> Result<Scan> {
        Scan::new(self, (prefix, prefix), Blocks::Stay)
    }

    /// The same to go on from there, from [prefix to prefix](Scan::turn_to) of those that begin
    /// with `all`, for who keeps the cells: their blocks do not stay in the cache.
    pub(crate) fn scan_in_turn(&self, all: &[u8], prefix: &[u8]) -> Result<Scan> {
        Scan::new(self, (all, prefix), Blocks::Pass)
    }
}

/// Makes the directory of the segments, durably; a new database does so before its manifest.
pub(crate) fn create_directory(device: &dyn Device) -> Result<()> {
    let failed = |error| Error::io(format!("cannot make {}", segment::DIRECTORY), error);
    device.create_dir(segment::DIRECTORY).map_err(failed)?;
    device.sync_dir("").map_err(failed)
}

/// Removes the segment files that the manifest does not name: what an unfinished checkpoint,
/// bulk load or compaction left, but for the files that are kept, and those of others. The journal
/// must have been replayed, as it may name more. While a purge is under way they are overwritten
/// first.
pub(crate) fn remove_unnamed(
    device: &dyn Device,
    manifest: &Manifest,
    kept: &[String],
) -> Result<()> {
    let named: BTreeSet<_> =
        manifest.segments.iter().map(|info| segment::file_name(info.number)).collect();
    let files = match device.list(segment::DIRECTORY) {
        Err(error) if error.kind() == Os::NotFound => return Ok(()),
        listed => listed.map_err(|error| Error::io("cannot list segments", error))?,
    };
    let is_left = |file: &String| {
        segment::is_of_engine(file) && !named.contains(file) && !kept.contains(file)
    };
    let unnamed: Vec<_> = files.into_iter().filter(is_left).collect();
    for file in &unnamed {
        let path = format!("{}/{file}", segment::DIRECTORY);
        if manifest.purging {
            let erased = zeros::overwrite(device, &path);
            erased.map_err(|error| Error::io(format!("cannot overwrite {path}"), error))?;
        }
        let removed = device.remove(&path);
        removed.map_err(|error| Error::io(format!("cannot remove {path}"), error))?;
    }
    if unnamed.is_empty() {
        return Ok(());
    }
    let synced = device.sync_dir(segment::DIRECTORY);
    synced.map_err(|error| Error::io(format!("cannot sync {}", segment::DIRECTORY), error))
}
