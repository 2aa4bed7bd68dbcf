//! What the device charges for a sync at this moment.
//!
//! 4 KiB of a file that was filled with zeros are overwritten and synced: no database that
//! acknowledges durable commits one by one can do with less. Machines share their disks, so a
//! figure that waits for the device is published as a ratio to this, taken beside it.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::files;
use crate::sampling::Latencies;
use crate::stopwatch::Stopwatch;

const BLOCK_BYTES: usize = 4096;
const BLOCKS: u64 = 256;

/// An open file of zeros on the device that the stores use.
#[derive(Debug)]
pub(crate) struct Probe {
    file: File,
    next: u64,
    latencies: Latencies,
}

impl Probe {
    /// Makes the file in a folder and syncs it.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let path = folder.join("probe");
        let file = files::create(&path).with_context(|| format!("create {}", path.display()))?;
        for block in 0..BLOCKS {
            file.write_all_at(&[0; BLOCK_BYTES], block * BLOCK_BYTES as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, next: 0, latencies: Latencies::new() })
    }

    /// The mean time of so many overwrites, each synced, in microseconds.
    pub(crate) fn mean_us(&mut self, syncs: u32) -> Result<f64> {
        let block = [0xA5; BLOCK_BYTES];
        let watch = Stopwatch::start();
        for _ in 0..syncs {
            let one = Stopwatch::start();
            self.file.write_all_at(&block, self.next * BLOCK_BYTES as u64)?;
            self.file.sync_data()?;
            self.latencies.record(one.elapsed());
            self.next = (self.next + 1) % BLOCKS;
        }
        Ok(watch.micros() / f64::from(syncs.max(1)))
    }

    /// The times of single syncs since the last call.
    pub(crate) fn take_latencies(&mut self) -> Latencies {
        std::mem::replace(&mut self.latencies, Latencies::new())
    }
}
