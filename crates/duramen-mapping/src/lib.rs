//! Bytes of a file that are written as memory: a write costs a copy and no call of the system, and
//! is the operating system's to keep from then on, so that a killed process loses nothing of it.
//!
//! Invariants:
//! - nobody outside gets a reference to the memory: bytes are copied in and out, within bounds;
//! - what is mapped had its place in the file when it was mapped. A file that another process cuts
//!   meanwhile, or a device that cannot keep what it gave room for, ends the process at the next
//!   write beyond its end (`SIGBUS`); nothing is read or written elsewhere.

use std::fs::File;
use std::io;

use memmap2::{MmapOptions, MmapRaw};

/// The beginning of a file, mapped for reading and writing.
///
/// ```
/// use duramen_mapping::Mapping;
///
/// let file = tempfile::tempfile()?;
/// file.set_len(4_096)?;
/// let mut mapping = Mapping::new(&file, 4_096)?;
/// mapping.write(b"oak", 10);
/// let mut word = [0; 3];
/// mapping.read(&mut word, 10);
/// assert_eq!(&word, b"oak");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Mapping {
    memory: MmapRaw,
}

impl Mapping {
    /// Maps the first `len` bytes of a file that was opened for reading and writing.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter, `InvalidInput` if `len` is 0, and what the operating
    /// system says.
    pub fn new(file: &File, len: usize) -> io::Result<Self> {
        if len == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if file.metadata()?.len() < len as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let memory = MmapOptions::new().len(len).map_raw(file)?;
        Ok(Self { memory })
    }

    /// Bytes that are mapped.
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Never: nothing is not mapped.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies bytes to a place.
    ///
    /// # Panics
    /// If they do not fit.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], offset: usize) {
        self.check(bytes.len(), offset);
        #[expect(unsafe_code, reason = "memory that is a file has no owner in the language")]
        // SAFETY: `check` found the bytes from `offset` on to be within the mapping, which lives as
        // long as `self`. `bytes` is elsewhere, because no reference into the mapping is ever made,
        // and `&mut self` keeps other threads from this mapping meanwhile.
        unsafe {
            let place = self.memory.as_mut_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, bytes.len());
        }
    }

    /// Copies bytes from a place.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn read(&self, bytes: &mut [u8], offset: usize) {
        self.check(bytes.len(), offset);
        #[expect(unsafe_code, reason = "memory that is a file has no owner in the language")]
        // SAFETY: `check` found the bytes from `offset` on to be within the mapping, which lives as
        // long as `self` and is all initialized. `bytes` is elsewhere, as in `write`, and a writer
        // would need `&mut self`.
        unsafe {
            let place = self.memory.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(place, bytes.as_mut_ptr(), bytes.len());
        }
    }

    #[inline]
    fn check(&self, len: usize, offset: usize) {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.memory.len());
        assert!(fits, "{len} bytes from {offset} on are beyond the {} mapped", self.memory.len());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn mapped(len: usize) -> (File, Mapping) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(len as u64).unwrap();
        let mapping = Mapping::new(&file, len).unwrap();
        (file, mapping)
    }

    #[test]
    fn what_is_written_is_in_the_file() {
        let (mut file, mut mapping) = mapped(5_000);
        mapping.write(b"oak", 4_997);
        mapping.write(b"elm", 0);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 5_000);
        assert!(bytes.starts_with(b"elm\0") && bytes.ends_with(b"\0oak"));
        drop(mapping);
    }

    #[test]
    fn nothing_is_mapped_beyond_the_end_of_the_file() {
        let (file, _mapping) = mapped(10);
        assert_eq!(Mapping::new(&file, 11).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(Mapping::new(&file, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    #[should_panic(expected = "beyond the 10 mapped")]
    fn a_write_beyond_the_end_panics() {
        mapped(10).1.write(b"oak", 8);
    }

    #[test]
    #[should_panic(expected = "beyond the 10 mapped")]
    fn a_read_far_beyond_the_end_panics() {
        mapped(10).1.read(&mut [0], usize::MAX);
    }
}
