//! A device that loses power, fails, lies and forgets, as its seed and its plans say.
//!
//! It keeps what the process sees apart from what is durable, with the changes between the two in
//! order. A kill keeps the first; a power loss keeps the second and any of the changes.

mod content;
mod directory;
mod disk;
mod fault;
mod loss;
mod pages;
mod profile;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use duramen::io::{Access, Device, File, Lock};
use parking_lot::Mutex;

use self::directory::Inode;
use self::disk::{Disk, Target};
pub use self::fault::{FaultKind, FaultPlan, Operation, PowerOff};
pub use self::loss::PowerLoss;
pub use self::profile::Profile;
use crate::Random;

/// A simulated disk. A clone is the same disk; [`kill`](Self::kill),
/// [`power_loss`](Self::power_loss) and [`images`](Self::images) make new ones and leave this one
/// as it is.
///
/// ```
/// use duramen::io::{Access, Device};
/// use duramen_sim::{PowerLoss, Profile, Random, SimulatedDevice};
/// let device = SimulatedDevice::new(1, Profile::CRUEL);
/// let file = device.open("notes", Access::Create)?;
/// file.write_at(b"oak", 0)?;
/// file.sync()?;
/// device.sync_dir("")?;
/// file.write_at(b"elm", 0)?;
///
/// let restarted = device.power_loss(PowerLoss::Clean, &mut Random::new(1));
/// let mut word = [0; 3];
/// restarted.open("notes", Access::Read)?.read_at(&mut word, 0)?;
/// assert_eq!(&word, b"oak");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SimulatedDevice {
    disk: Arc<Mutex<Disk>>,
}

/// Short, because every open file shows its device and a disk is long.
impl fmt::Debug for SimulatedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedDevice").finish_non_exhaustive()
    }
}

impl SimulatedDevice {
    /// An empty disk. The seed fixes everything that is left to chance on it.
    pub fn new(seed: u64, profile: Profile) -> Self {
        Self::powered_on(Disk::new(profile, Random::new(seed)))
    }

    fn powered_on(disk: Disk) -> Self {
        Self { disk: Arc::new(Mutex::new(disk)) }
    }

    /// What kind of disk it is.
    pub fn profile(&self) -> Profile {
        self.disk.lock().profile
    }

    /// The disk as the next process finds it when this one is killed: all that was written is
    /// there, what was not synced can still be lost, and no lock is held.
    pub fn kill(&self) -> Self {
        let disk = self.disk.lock();
        let random = disk.random.clone().fork();
        Self::powered_on(disk.killed(random))
    }

    /// The disk after a power loss; what is left to chance is drawn from `random`.
    pub fn power_loss(&self, loss: PowerLoss, random: &mut Random) -> Self {
        Self::powered_on(self.disk.lock().after(loss, random))
    }

    /// The number of changes that a power loss would drop or keep one by one.
    pub fn pending_operations(&self) -> usize {
        self.disk.lock().pending().len()
    }

    /// The disk after every power loss that drops some of the pending changes and keeps the others
    /// whole and in order; if those are more than `max`, `max` of them, drawn from the seed, the
    /// first without any of the changes and the second with all of them.
    pub fn images(&self, max: usize) -> impl Iterator<Item = Self> + use<> {
        let mut disk = self.disk.lock().clone();
        let mut random = disk.random.fork();
        let pending = disk.pending();
        let all = u32::try_from(pending.len()).ok().and_then(|n| 1_usize.checked_shl(n));
        let is_exhaustive = all.is_some_and(|all| all <= max);
        let count = if is_exhaustive { all.unwrap_or(max) } else { max };
        (0..count).map(move |mask| {
            let mut keeps = |at: usize| match mask {
                _ if is_exhaustive => mask >> at & 1 == 1,
                0 | 1 => mask == 1,
                _ => random.one_in(2),
            };
            let dropped = (0..pending.len()).filter(|at| !keeps(*at)).map(|at| pending[at]);
            let dropped = dropped.collect();
            Self::powered_on(disk.without(dropped, &mut random))
        })
    }

    /// Loses power at the change of this number, counted as [`changes`](Self::changes) does: it
    /// has no effect, and everything from then on fails with [`PowerOff`].
    pub fn crash_at(&self, change: u64) {
        self.disk.lock().crash_at = Some(change);
    }

    /// Loses power now.
    pub fn power_off(&self) {
        self.disk.lock().is_off = true;
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.disk.lock().is_off
    }

    /// Plans a fault. Of several that are due at once the one planned first strikes.
    pub fn fail(&self, plan: FaultPlan) {
        let mut disk = self.disk.lock();
        disk.keeps_versions |= plan.kind == FaultKind::StalePage;
        disk.faults.arm(plan);
    }

    /// Forgets every planned fault, the lies about syncs and the capacity. Damage done stays.
    pub fn repair(&self) {
        let mut disk = self.disk.lock();
        disk.faults.clear();
        disk.lies_one_in = None;
        disk.capacity = None;
    }

    /// From now on one sync in `n`, of a file or a directory, reports success and does nothing.
    pub fn lie_about_syncs(&self, one_in: u64) {
        self.disk.lock().lies_one_in = Some(one_in);
    }

    /// Lets the files have this many bytes in all; more growth fails until some are freed.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk.lock().capacity = Some(bytes);
    }

    /// The room of a file that is removed comes back only when so much growth has been refused, as
    /// where a process that is being started has it open, or the file system is slow to free it.
    pub fn lag_behind_removals(&self, refusals: u32) {
        self.disk.lock().lag.refusals = refusals;
    }

    /// How many operations there were that change the device or what survives on it.
    pub fn changes(&self) -> u64 {
        self.disk.lock().meter.changes
    }

    /// How often an operation was called.
    pub fn count(&self, operation: Operation) -> u64 {
        self.disk.lock().meter.counts[operation as usize]
    }

    /// A hash of every operation so far with its path, place and bytes: two runs that did the same
    /// have the same.
    pub fn trace(&self) -> u64 {
        self.disk.lock().meter.trace
    }

    fn handle(&self, inode: Inode, path: &str, access: Access) -> Arc<dyn File> {
        let is_writable = access != Access::Read;
        let told = AtomicU64::new(self.disk.lock().failed_syncs(inode));
        Arc::new(SimulatedFile {
            device: self.clone(),
            inode,
            path: path.into(),
            is_writable,
            told,
        })
    }
}

impl Device for SimulatedDevice {
    fn create_dir(&self, path: &str) -> io::Result<()> {
        self.disk.lock().create_dir(path)
    }

    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>> {
        let inode = match access {
            Access::Read | Access::Write => self.disk.lock().open(path)?,
            Access::Create => self.disk.lock().create(path)?,
        };
        Ok(self.handle(inode, path, access))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.lock().rename(from, to)
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.lock().remove(path)
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.lock().list(dir)
    }

    fn sync_dir(&self, dir: &str) -> io::Result<()> {
        self.disk.lock().sync_dir(dir)
    }

    fn free_bytes(&self) -> Option<u64> {
        self.disk.lock().free_bytes()
    }

    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>> {
        let inode = self.disk.lock().lock(path, holder)?;
        Ok(Box::new(SimulatedLock { device: self.clone(), inode }))
    }

    fn lock_holder(&self, path: &str) -> io::Result<String> {
        self.disk.lock().text(path)
    }

    fn entropy(&self) -> u128 {
        let mut disk = self.disk.lock();
        u128::from(disk.random.bits()) << 64 | u128::from(disk.random.bits())
    }
}

#[derive(Debug)]
struct SimulatedFile {
    device: SimulatedDevice,
    inode: Inode,
    path: Box<str>,
    is_writable: bool,
    /// Failed syncs of the file that whoever has it open this way was told of.
    told: AtomicU64,
}

impl SimulatedFile {
    fn target(&self) -> Target<'_> {
        Target { inode: self.inode, path: &self.path }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.is_writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.device.disk.lock().read(self.target(), buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        self.check_writable()?;
        self.device.disk.lock().write(self.target(), buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.device.disk.lock().sync(self.target(), &self.told)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        self.device.disk.lock().set_len(self.target(), len)
    }

    fn len(&self) -> io::Result<u64> {
        self.device.disk.lock().len(self.inode)
    }
}

#[derive(Debug)]
struct SimulatedLock {
    device: SimulatedDevice,
    inode: Inode,
}

impl Lock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        self.device.disk.lock().locked.remove(&self.inode);
    }
}
