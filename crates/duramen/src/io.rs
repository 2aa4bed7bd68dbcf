//! The door to files: every byte the engine reads or writes goes through these traits.
//!
//! A [`Device`] is rooted at a database directory; paths are relative to it, `/`-separated, and
//! the empty path is the root itself. What makes a file makes the directories it is in.
//! Invariants the engine keeps, whatever the device: files that must survive are synced before
//! anything names them; a directory is synced after a create, rename or remove in it.

mod directory;
mod memory;
mod path;
pub(crate) mod zeros;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use directory::DirectoryDevice;
pub(crate) use directory::directories_around;
pub use memory::MemoryDevice;
pub(crate) use path::is_numbered;
pub use path::{check_path, split_path};

/// Where the files of one database live.
pub trait Device: Send + Sync + fmt::Debug {
    /// Makes a directory and its parents; one that exists is fine.
    fn create_dir(&self, path: &str) -> io::Result<()>;
    /// Opens a file as `access` says: `NotFound` if it is missing, `AlreadyExists` if a new one
    /// was asked for and the name is taken.
    fn open(&self, path: &str, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file within the device, replacing what stands at `to`. Open files stay open.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Who has it open can go on using it.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names in a directory, sorted; of a directory that does not exist: `NotFound`.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes creates, renames and removes in a directory durable.
    fn sync_dir(&self, dir: &str) -> io::Result<()>;
    /// Takes the exclusive lock of a file, made if missing, and writes `holder` into it.
    /// `WouldBlock` if another process, or another open of this one, has it.
    fn lock(&self, path: &str, holder: &str) -> io::Result<Box<dyn Lock>>;
    /// What the present or last holder of the lock wrote into the file.
    fn lock_holder(&self, path: &str) -> io::Result<String>;

    /// Takes the lock of a file without changing it; none if there is no such file. `WouldBlock`
    /// as for [`lock`](Self::lock).
    fn hold(&self, path: &str) -> io::Result<Option<Box<dyn Lock>>> {
        match self.lock_holder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            holder => self.lock(path, &holder?).map(Some),
        }
    }

    /// The first `len` bytes of a file that is there, to be written one small piece after the other
    /// at little cost. `UnexpectedEof` if the file is shorter.
    fn map(&self, path: &str, len: u64) -> io::Result<Box<dyn Mapping>> {
        let file = self.open(path, Access::Write)?;
        if file.len()? < len {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Box::new(file))
    }

    /// Removes the directories that this device has made, its root and those around it among them,
    /// as far as nothing is in them, and the file of the lock if it made that one, which has to be
    /// held if it was taken: what was there before, or was put there by others, stays. A device
    /// whose directories are none but names has nothing to remove.
    fn remove_made(&self) {}

    /// About how many bytes there is room for, where that is known: a hint, which no write may rely
    /// on.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Whether what is in the place of the device is still what was there when its lock was taken,
    /// as [`Lock::is_in_place`] says; also if no lock is held. A device of which it may not be
    /// neither makes, renames nor removes anything then.
    fn is_in_place(&self) -> bool {
        true
    }

    /// Has [`is_in_place`](Self::is_in_place) tell as well whether a file is the one that is there
    /// now, and has what it has now, or is not there if it is not: until the lock is given back, or
    /// this device renames, removes or replaces it, which counts from then on.
    fn watch(&self, _path: &str) {}

    /// Which file stands at a path, where that can be told.
    fn file_id(&self, _path: &str) -> io::Result<Option<FileId>> {
        Ok(None)
    }

    /// A number that no other database has, for the id of a new one.
    fn entropy(&self) -> u128 {
        use std::hash::{BuildHasher, RandomState};
        let half = || u128::from(RandomState::new().hash_one(0));
        half() << 64 | half()
    }
}

/// Which file it is of all that a system has. Another one may be the same once nobody has this one
/// open any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileId {
    /// The number of what it is stored on.
    pub device: u64,
    /// Its own number there.
    pub inode: u64,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing.
    Create,
}

/// One open file. Positions are absolute, so any number of threads may share it.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads at most `buf.len()` bytes; fewer at the end of the file (none at all beyond it) or
    /// by a short read.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// The same behind the bytes of a vector. A file that reads into memory which nobody cleared
    /// saves that time.
    fn append_at(&self, bytes: &mut Vec<u8>, len: usize, offset: u64) -> io::Result<usize> {
        let before = bytes.len();
        bytes.resize(before + len, 0);
        let read = self.read_at(&mut bytes[before..], offset);
        bytes.truncate(before + read.as_ref().map_or(0, |read| *read));
        read
    }
    /// Writes at most `buf.len()` bytes, growing the file if need be; a gap before them is zeros.
    /// Fails on a file opened for reading.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the content, and the size if it grew, durable.
    fn sync(&self) -> io::Result<()>;
    /// Cuts or grows the file with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Bytes in the file.
    fn len(&self) -> io::Result<u64>;
    /// Whether the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// Bytes of a file that one owner writes. What was written is the operating system's to keep: it
/// survives a killed process, and a power loss where that system had it on the device by then.
pub trait Mapping: Send + fmt::Debug {
    /// Writes a record to a place.
    fn write(&mut self, record: Mapped, offset: u64) -> io::Result<()>;
}

/// What is written to mapped memory at once: the bytes of two numbers, little-endian. Numbers are
/// in registers; bytes that were just put together one by one would have to be waited for.
pub type Mapped = (u128, u128);

/// How many bytes that are.
pub const MAPPED_BYTES: usize = 32;

/// These bytes.
#[inline]
pub fn mapped_bytes(record: Mapped) -> [u8; MAPPED_BYTES] {
    zerocopy::transmute!([record.0.to_le_bytes(), record.1.to_le_bytes()])
}

/// A device that maps no memory writes to the file.
impl Mapping for Arc<dyn File> {
    fn write(&mut self, record: Mapped, offset: u64) -> io::Result<()> {
        write_all_at(self.as_ref(), &mapped_bytes(record), offset)
    }
}

/// An exclusive lock, released when dropped or when its process dies.
pub trait Lock: Send + Sync + fmt::Debug {
    /// Whether it keeps others out of what is there now: someone may have removed the file that is
    /// locked, or put another directory in the place of its own.
    fn is_in_place(&self) -> bool {
        true
    }
}

/// The error of what is not done because [`Device::is_in_place`] does not hold.
pub(crate) fn displaced() -> io::Error {
    let message = "the folder, or a file of the database in it, was removed or replaced while it \
                   was open: open what is there now";
    io::Error::new(io::ErrorKind::StaleNetworkFileHandle, message)
}

/// Reads exactly `buf.len()` bytes; loops over short reads and interruptions.
pub fn read_exact_at(file: &dyn File, mut buf: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.read_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                offset += read as u64;
                buf = &mut buf[read..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads exactly `len` bytes; loops over short reads and interruptions.
pub fn read_vec_at(file: &dyn File, len: usize, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len);
    read_into_at(file, &mut bytes, len, offset)?;
    Ok(bytes)
}

/// The same in place of what a vector has.
pub(crate) fn read_into_at(
    file: &dyn File,
    bytes: &mut Vec<u8>,
    len: usize,
    offset: u64,
) -> io::Result<()> {
    bytes.clear();
    while bytes.len() < len {
        let read = bytes.len();
        match file.append_at(bytes, len - read, offset + read as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `buf`; loops over short writes and interruptions.
pub fn write_all_at(file: &dyn File, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.write_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                offset += written as u64;
                buf = &buf[written..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
