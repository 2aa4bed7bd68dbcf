//! The state of a simulated device: files, names, counters and planned faults.
//!
//! Invariants:
//! - every inode that a name stands for exists; one that lost its names stays for its open files;
//! - nothing but the seed, the plans and the operations decides what happens.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use duramen::io::{check_path, split_path};

use super::content::Content;
use super::directory::{Directory, Entry, Inode};
use super::fault::{FaultKind, Faults, Moment, Operation, PowerOff, Strike};
use super::pages::{PAGE_BYTES, place};
use super::profile::Profile;
use crate::Random;
use crate::random::mix;

pub(super) const ROOT: Inode = Inode(0);

/// Far more than a test needs, and few enough pages to count.
const FILE_BYTES_MAX: u64 = 16 << 30;

#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub(super) profile: Profile,
    pub(super) random: Random,
    pub(super) files: BTreeMap<Inode, Content>,
    pub(super) directories: BTreeMap<Inode, Directory>,
    pub(super) locked: BTreeSet<Inode>,
    pub(super) next_inode: u64,
    /// The place of the next change in the order of all.
    pub(super) next_order: u64,
    pub(super) meter: Meter,
    pub(super) faults: Faults,
    pub(super) keeps_versions: bool,
    pub(super) lies_one_in: Option<u64>,
    /// Bytes that fit.
    pub(super) capacity: Option<u64>,
    pub(super) lag: Lag,
    /// The change at which the power goes.
    pub(super) crash_at: Option<u64>,
    pub(super) is_off: bool,
}

/// What was done with the device since it was powered on.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    pub(super) changes: u64,
    pub(super) counts: [u64; Operation::COUNT],
    pub(super) trace: u64,
}

/// Room of removed files that is not back yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lag {
    /// How many refusals after the first of these removals all of it comes back.
    pub(super) refusals: u32,
    left: u32,
    bytes: u64,
}

impl Lag {
    fn removed(&mut self, bytes: u64) {
        if self.bytes == 0 {
            self.left = self.refusals;
        }
        if self.left > 0 {
            self.bytes += bytes;
        }
    }

    fn refused(&mut self) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.bytes = 0;
        }
    }
}

/// An open file, as the disk sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) inode: Inode,
    pub(super) path: &'a str,
}

impl Disk {
    pub(super) fn new(profile: Profile, random: Random) -> Self {
        Self {
            profile,
            random,
            files: BTreeMap::new(),
            directories: BTreeMap::from([(ROOT, Directory::default())]),
            locked: BTreeSet::new(),
            next_inode: 1,
            next_order: 0,
            meter: Meter::default(),
            faults: Faults::default(),
            keeps_versions: false,
            lies_one_in: None,
            capacity: None,
            lag: Lag::default(),
            crash_at: None,
            is_off: false,
        }
    }

    /// Counts an operation and finds out what happens to it. A fault that the operation takes no
    /// part in is the error; one that it has to carry out is returned.
    fn begin(
        &mut self,
        operation: Operation,
        path: &str,
        detail: [u64; 2],
    ) -> io::Result<Option<Strike>> {
        let is_due = self.crash_at.is_some_and(|at| self.meter.changes >= at);
        self.is_off |= is_due && operation.is_change();
        if self.is_off {
            return Err(PowerOff.into());
        }
        self.meter.count(operation, path, detail);
        let strike = self.faults.strike(Moment::Before(operation), path);
        match strike.map(|strike| strike.kind) {
            Some(FaultKind::Interrupt(_)) => Err(io::ErrorKind::Interrupted.into()),
            Some(FaultKind::Fail(failing)) if !failing.leaves_a_trace() => Err(device_error()),
            _ => Ok(strike),
        }
    }

    fn directory(&mut self, inode: Inode) -> &mut Directory {
        self.directories.get_mut(&inode).expect("a name stands for it")
    }

    fn content(&mut self, inode: Inode) -> &mut Content {
        self.files.get_mut(&inode).expect("a name or an open file stands for it")
    }

    fn find(&self, path: &str) -> io::Result<Entry> {
        check_path(path)?;
        let mut found = Entry::Directory(ROOT);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Entry::Directory(inode) = found else {
                return Err(io::ErrorKind::NotADirectory.into());
            };
            found = *self.directories[&inode].live.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(found)
    }

    fn find_dir(&self, path: &str) -> io::Result<Inode> {
        match self.find(path)? {
            Entry::Directory(inode) => Ok(inode),
            Entry::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn find_file(&self, path: &str) -> io::Result<Inode> {
        split_path(path)?;
        match self.find(path)? {
            Entry::File(inode) => Ok(inode),
            Entry::Directory(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn new_inode(&mut self) -> Inode {
        self.next_inode += 1;
        Inode(self.next_inode - 1)
    }

    fn link(&mut self, dir: Inode, name: &str, entry: Entry) -> u64 {
        let directory = self.directories.get_mut(&dir).expect("a name stands for it");
        directory.link(name, entry, &mut self.next_order)
    }

    fn unlink(&mut self, dir: Inode, name: &str, moved_by: Option<u64>) {
        let directory = self.directories.get_mut(&dir).expect("a name stands for it");
        directory.unlink(name, moved_by, &mut self.next_order);
    }

    fn make_dirs(&mut self, path: &str) -> io::Result<Inode> {
        match self.find_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found_or_refused => return found_or_refused,
        }
        let (parent, name) = split_path(path)?;
        let parent = self.make_dirs(parent)?;
        let inode = self.new_inode();
        self.directories.insert(inode, Directory::default());
        self.link(parent, name, Entry::Directory(inode));
        Ok(inode)
    }

    fn make_file(&mut self, path: &str) -> io::Result<Inode> {
        let (dir, name) = split_path(path)?;
        let dir = self.make_dirs(dir)?;
        if self.directories[&dir].live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let inode = self.new_inode();
        self.files.insert(inode, Content::default());
        self.link(dir, name, Entry::File(inode));
        Ok(inode)
    }

    pub(super) fn create_dir(&mut self, path: &str) -> io::Result<()> {
        self.begin(Operation::CreateDir, path, [0; 2])?;
        self.make_dirs(path)?;
        Ok(())
    }

    pub(super) fn create(&mut self, path: &str) -> io::Result<Inode> {
        self.begin(Operation::Create, path, [0; 2])?;
        self.make_file(path)
    }

    pub(super) fn open(&mut self, path: &str) -> io::Result<Inode> {
        self.begin(Operation::Open, path, [0; 2])?;
        self.find_file(path)
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let detail = [u64::from(crc32c::crc32c(to.as_bytes())), 0];
        self.begin(Operation::Rename, from, detail)?;
        let inode = self.find_file(from)?;
        let ((from_dir, from_name), (to_dir, to_name)) = (split_path(from)?, split_path(to)?);
        let (from_dir, to_dir) = (self.find_dir(from_dir)?, self.find_dir(to_dir)?);
        match self.directories[&to_dir].live.get(to_name) {
            Some(Entry::Directory(_)) => return Err(io::ErrorKind::IsADirectory.into()),
            // POSIX: names of the same file, which both names are after some power losses, stay.
            Some(Entry::File(other)) if *other == inode => return Ok(()),
            _ => {}
        }
        let order = self.link(to_dir, to_name, Entry::File(inode));
        self.unlink(from_dir, from_name, Some(order));
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> io::Result<()> {
        self.begin(Operation::Remove, path, [0; 2])?;
        let inode = self.find_file(path)?;
        let (dir, name) = split_path(path)?;
        let dir = self.find_dir(dir)?;
        let bytes = self.content(inode).live.len();
        self.lag.removed(bytes);
        self.unlink(dir, name, None);
        Ok(())
    }

    pub(super) fn list(&mut self, dir: &str) -> io::Result<Vec<String>> {
        self.begin(Operation::List, dir, [0; 2])?;
        let dir = self.find_dir(dir)?;
        Ok(self.directories[&dir].live.keys().cloned().collect())
    }

    pub(super) fn sync_dir(&mut self, dir: &str) -> io::Result<()> {
        let strike = self.begin(Operation::SyncDir, dir, [0; 2])?;
        let inode = self.find_dir(dir)?;
        if strike.is_some() {
            let losses = self.random.bits();
            let is_dropped = |order: u64| mix(losses ^ order).is_multiple_of(2);
            self.directory(inode).sync(is_dropped);
            return Err(device_error());
        }
        if !self.lies() {
            self.directory(inode).sync(|_| false);
        }
        Ok(())
    }

    pub(super) fn lock(&mut self, path: &str, holder: &str) -> io::Result<Inode> {
        self.begin(Operation::Lock, path, [0; 2])?;
        let inode = match self.find_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_file(path)?,
            found_or_refused => found_or_refused?,
        };
        if !self.locked.insert(inode) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let content = self.files.get_mut(&inode).expect("it was found or made");
        content.set_len(0, &mut self.next_order);
        content.write(holder.as_bytes(), 0, &mut self.next_order);
        Ok(inode)
    }

    pub(super) fn read(
        &mut self,
        target: Target<'_>,
        buf: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let strike = self.begin(Operation::Read, target.path, [offset, buf.len() as u64])?;
        let Some(strike) = strike else {
            return Ok(self.content(target.inode).live.read(buf, offset));
        };
        let mut wanted = buf.len();
        if matches!(strike.kind, FaultKind::ShortRead) {
            wanted = self.part_of(wanted);
        }
        let buf = &mut buf[..wanted];
        let read = self.content(target.inode).live.read(buf, offset);
        self.damage(target.inode, &mut buf[..read], offset, strike);
        Ok(read)
    }

    /// Carries out what a fault does to bytes that were read.
    fn damage(&mut self, inode: Inode, read: &mut [u8], offset: u64, strike: Strike) {
        if read.is_empty() {
            return;
        }
        let at = self.random.index(read.len());
        let mask = 1 << self.random.below(8);
        let content = self.files.get_mut(&inode).expect("it was read");
        match strike.kind {
            FaultKind::FlipBit => {
                read[at] ^= mask;
                if strike.sticky {
                    content.flip(offset + at as u64, mask);
                }
            }
            FaultKind::StalePage => {
                let (index, _) = place(offset + at as u64);
                overlay(read, offset, index, &content.stale_page(index));
                if strike.sticky {
                    content.restore_stale_page(index);
                }
            }
            _ => {}
        }
    }

    pub(super) fn write(
        &mut self,
        target: Target<'_>,
        buf: &[u8],
        offset: u64,
    ) -> io::Result<usize> {
        let print = u64::from(crc32c::crc32c(buf)) << 32 | buf.len() as u64;
        let strike = self.begin(Operation::Write, target.path, [offset, print])?;
        if buf.is_empty() {
            return Ok(0);
        }
        match strike.map(|strike| strike.kind) {
            Some(FaultKind::ShortWrite) => {
                let part = &buf[..self.part_of(buf.len())];
                self.put(target, part, offset)
            }
            Some(FaultKind::MisdirectedWrite) => {
                if let Some(elsewhere) = self.elsewhere(target.inode, offset) {
                    self.put(target, buf, elsewhere)?;
                }
                Ok(buf.len())
            }
            Some(_) => {
                let part = &buf[..self.random.index(buf.len())];
                if !part.is_empty() {
                    self.put(target, part, offset)?;
                }
                Err(device_error())
            }
            None => self.put(target, buf, offset),
        }
    }

    fn put(&mut self, target: Target<'_>, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        self.admit(target, end)?;
        let content = self.files.get_mut(&target.inode).expect("it is open");
        if self.keeps_versions {
            content.keep_versions(bytes.len(), offset);
        }
        content.write(bytes, offset, &mut self.next_order);
        Ok(bytes.len())
    }

    /// The same place on another page of the file; nowhere if it has only one.
    fn elsewhere(&mut self, inode: Inode, offset: u64) -> Option<u64> {
        let page_bytes = PAGE_BYTES as u64;
        let pages = self.content(inode).live.len().div_ceil(page_bytes);
        let (own, start) = (offset / page_bytes, offset % page_bytes);
        let other = self.random.below(pages.max(2) - 1);
        let other = if other < own { other } else { other + 1 };
        (other < pages).then_some(other * page_bytes + start)
    }

    /// Some bytes of `len`, but not all unless there is only one.
    fn part_of(&mut self, len: usize) -> usize {
        if len > 1 { 1 + self.random.index(len - 1) } else { len }
    }

    /// Lets a file have `len` bytes, or says that the disk is full.
    fn admit(&mut self, target: Target<'_>, len: u64) -> io::Result<()> {
        if len > FILE_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let more = len.saturating_sub(self.content(target.inode).live.len());
        if more == 0 {
            return Ok(());
        }
        let strike = self.faults.strike(Moment::Growth, target.path);
        if strike.is_some_and(|strike| strike.sticky) {
            self.capacity = Some(self.used());
        }
        let is_full = self.capacity.is_some_and(|capacity| self.used() + more > capacity);
        if strike.is_some() || is_full {
            self.lag.refused();
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// What is left of the capacity, if there is one.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.used()))
    }

    /// Bytes of all files that have a name, and of those that lost it a moment ago.
    fn used(&self) -> u64 {
        let entries = self.directories.values().flat_map(|directory| directory.live.values());
        let files: BTreeSet<Inode> = entries
            .filter_map(|entry| match entry {
                Entry::File(inode) => Some(*inode),
                Entry::Directory(_) => None,
            })
            .collect();
        let named: u64 = files.iter().map(|inode| self.files[inode].live.len()).sum();
        named + self.lag.bytes
    }

    /// Makes the content of a file durable. Who has it open is told once of each sync that failed,
    /// his own or another one's, as by Linux: `told` counts them.
    pub(super) fn sync(&mut self, target: Target<'_>, told: &AtomicU64) -> io::Result<()> {
        if self.begin(Operation::Sync, target.path, [0; 2])?.is_some() {
            // The kernel may have written any part before it marked the rest as clean.
            let mut losses = self.random.fork();
            let wrote_some = losses.one_in(2);
            self.content(target.inode).sync(|| wrote_some && losses.one_in(2));
            self.content(target.inode).failed_syncs += 1;
        } else if !self.lies() {
            self.content(target.inode).sync(|| true);
        }
        let failed = self.failed_syncs(target.inode);
        if told.swap(failed, Ordering::Relaxed) == failed { Ok(()) } else { Err(device_error()) }
    }

    /// How many syncs of a file failed.
    pub(super) fn failed_syncs(&self, inode: Inode) -> u64 {
        self.files.get(&inode).map_or(0, |content| content.failed_syncs)
    }

    fn lies(&mut self) -> bool {
        self.lies_one_in.is_some_and(|n| self.random.one_in(n))
    }

    pub(super) fn set_len(&mut self, target: Target<'_>, len: u64) -> io::Result<()> {
        self.begin(Operation::SetLen, target.path, [len, 0])?;
        self.admit(target, len)?;
        let content = self.files.get_mut(&target.inode).expect("it is open");
        content.set_len(len, &mut self.next_order);
        Ok(())
    }

    pub(super) fn len(&self, inode: Inode) -> io::Result<u64> {
        if self.is_off { Err(PowerOff.into()) } else { Ok(self.files[&inode].live.len()) }
    }

    /// The whole content of a file, without a fault.
    pub(super) fn text(&mut self, path: &str) -> io::Result<String> {
        let inode = self.open(path)?;
        let live = &self.files[&inode].live;
        let mut bytes = vec![0; usize::try_from(live.len()).unwrap_or_default()];
        live.read(&mut bytes, 0);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A disk with these files and names, and otherwise as it comes from a power-on.
    pub(super) fn rebooted(&self, random: Random) -> Self {
        Self {
            next_inode: self.next_inode,
            next_order: self.next_order,
            capacity: self.capacity,
            ..Self::new(self.profile, random)
        }
    }

    /// Every file and directory that a name leads to, or may after a power loss.
    pub(super) fn reachable(&self) -> BTreeSet<Inode> {
        let mut reached = BTreeSet::from([ROOT]);
        let mut unvisited = vec![ROOT];
        while let Some(directory) = unvisited.pop() {
            for entry in self.directories[&directory].possible() {
                match entry {
                    Entry::Directory(inode) if reached.insert(inode) => unvisited.push(inode),
                    Entry::File(inode) | Entry::Directory(inode) => {
                        reached.insert(inode);
                    }
                }
            }
        }
        reached
    }
}

impl Meter {
    fn count(&mut self, operation: Operation, path: &str, detail: [u64; 2]) {
        self.counts[operation as usize] += 1;
        self.changes += u64::from(operation.is_change());
        let path = u64::from(crc32c::crc32c(path.as_bytes()));
        for value in [operation as u64, path, detail[0], detail[1]] {
            self.trace = mix(self.trace ^ value).wrapping_add(value);
        }
    }
}

impl Operation {
    /// Whether the operation has an effect of its own when it fails.
    fn leaves_a_trace(self) -> bool {
        matches!(self, Self::Write | Self::Sync | Self::SyncDir)
    }
}

fn device_error() -> io::Error {
    io::Error::other("simulated input/output error")
}

/// Replaces what was read of one page by another version of it.
fn overlay(read: &mut [u8], offset: u64, index: usize, page: &[u8; PAGE_BYTES]) {
    for (at, byte) in read.iter_mut().enumerate() {
        let (page_index, start) = place(offset + at as u64);
        if page_index == index {
            *byte = page[start];
        }
    }
}
