//! Sorts byte strings in bounded memory: what does not fit goes to files in sorted runs, which are
//! merged at the end.
//!
//! Invariants:
//! - at most the budget is in memory, and a piece of each run while they are merged;
//! - a file of runs is removed as soon as it is made, so that nothing of it stays behind.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Access, Device, File};
use crate::segment;

/// Fewer strings than these are not thrown away, however few are wanted.
const KEPT_MIN: usize = 1_024;

/// Bytes of a run that are read or written at once.
const PIECE_BYTES: usize = 64 << 10;

/// Strings that are to be sorted.
#[derive(Debug)]
pub(super) struct Sorter {
    device: Arc<dyn Device>,
    budget: usize,
    /// Only so many of the least are wanted.
    wanted: usize,
    /// The greatest of those, once there are so many.
    last: Option<Box<[u8]>>,
    bytes: Vec<u8>,
    /// Where the strings lie in the bytes.
    spans: Vec<(usize, usize)>,
    runs: Vec<Run>,
}

/// Sorted strings in a file.
#[derive(Debug)]
struct Run {
    file: Arc<dyn File>,
    len: u64,
    read: u64,
    piece: Vec<u8>,
    at: usize,
}

/// Strings in their order.
#[derive(Debug)]
pub(super) struct Sorted {
    bytes: Vec<u8>,
    spans: std::vec::IntoIter<(usize, usize)>,
    runs: Vec<Run>,
    /// The next string of each run, and of those in memory, which have the number behind the runs.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    left: usize,
}

impl Sorter {
    pub(super) fn new(device: &Arc<dyn Device>, budget: usize, wanted: Option<u64>) -> Self {
        let wanted =
            wanted.map_or(usize::MAX, |wanted| usize::try_from(wanted).unwrap_or(usize::MAX));
        Self {
            device: Arc::clone(device),
            budget,
            wanted,
            last: None,
            bytes: Vec::new(),
            spans: Vec::new(),
            runs: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, string: &[u8]) -> Result<()> {
        if self.wanted == 0 || self.last.as_ref().is_some_and(|last| string >= &**last) {
            return Ok(());
        }
        self.spans.push((self.bytes.len(), string.len()));
        self.bytes.extend_from_slice(string);
        let is_full = self.bytes_held() > self.budget;
        if is_full || self.spans.len() > self.wanted.saturating_mul(2).max(KEPT_MIN) {
            self.shrink()?;
        }
        Ok(())
    }

    fn bytes_held(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<(usize, usize)>()
    }

    /// Throws away what is not wanted; if much is left, it goes to a file.
    fn shrink(&mut self) -> Result<()> {
        self.sort();
        if self.spans.len() >= self.wanted {
            self.spans.truncate(self.wanted);
            let mut bytes = Vec::new();
            for (start, len) in &mut self.spans {
                let from = std::mem::replace(start, bytes.len());
                bytes.extend_from_slice(&self.bytes[from..from + *len]);
            }
            self.bytes = bytes;
            self.last = self.spans.last().map(|&(start, len)| self.bytes[start..][..len].into());
        }
        if self.bytes_held() > self.budget / 2 { self.spill() } else { Ok(()) }
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.spans.sort_unstable_by_key(|&(start, len)| &bytes[start..start + len]);
    }

    /// Writes what is in memory, which is sorted, to a file.
    fn spill(&mut self) -> Result<()> {
        let file = temporary(&*self.device)?;
        let (mut piece, mut len) = (Vec::with_capacity(PIECE_BYTES), 0);
        for (start, string) in self.spans.drain(..) {
            let header = u32::try_from(string).unwrap_or(u32::MAX).to_le_bytes();
            piece.extend_from_slice(&header);
            piece.extend_from_slice(&self.bytes[start..start + string]);
            if piece.len() >= PIECE_BYTES {
                write(&*file, &mut piece, &mut len)?;
            }
        }
        write(&*file, &mut piece, &mut len)?;
        self.bytes.clear();
        self.runs.push(Run { file, len, read: 0, piece, at: 0 });
        Ok(())
    }

    /// The strings that are wanted, in their order.
    pub(super) fn finish(mut self) -> Result<Sorted> {
        self.sort();
        let mut sorted = Sorted {
            bytes: self.bytes,
            spans: self.spans.into_iter(),
            runs: self.runs,
            heads: BinaryHeap::new(),
            left: self.wanted,
        };
        for source in 0..=sorted.runs.len() {
            sorted.advance(source)?;
        }
        Ok(sorted)
    }
}

impl Sorted {
    /// The next string.
    pub(super) fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(Reverse((string, source))) = self.heads.pop() else { return Ok(None) };
        self.advance(source)?;
        self.left -= 1;
        Ok(Some(string))
    }

    /// Takes the next string of a run, or of those in memory, among the heads.
    fn advance(&mut self, source: usize) -> Result<()> {
        let next = match self.runs.get_mut(source) {
            Some(run) => run.next()?,
            None => self.spans.next().map(|(start, len)| self.bytes[start..start + len].to_vec()),
        };
        self.heads.extend(next.map(|string| Reverse((string, source))));
        Ok(())
    }
}

impl Run {
    fn next(&mut self) -> Result<Option<Vec<u8>>> {
        let Some(header) = self.take(size_of::<u32>())? else { return Ok(None) };
        let len = header.first_chunk().map_or(0, |header| u32::from_le_bytes(*header));
        let string = self.take(len as usize)?;
        string.map(Some).ok_or_else(|| failed(std::io::ErrorKind::UnexpectedEof.into()))
    }

    /// The next bytes; none at the end.
    fn take(&mut self, len: usize) -> Result<Option<Vec<u8>>> {
        while self.piece.len() - self.at < len {
            if self.read >= self.len {
                return Ok(None);
            }
            self.piece.drain(..self.at);
            self.at = 0;
            let start = self.piece.len();
            self.piece.resize(start + PIECE_BYTES, 0);
            let read = self.file.read_at(&mut self.piece[start..], self.read).map_err(failed)?;
            self.piece.truncate(start + read);
            if read == 0 {
                return Err(failed(std::io::ErrorKind::UnexpectedEof.into()));
            }
            self.read += read as u64;
        }
        let taken = self.piece[self.at..self.at + len].to_vec();
        self.at += len;
        Ok(Some(taken))
    }
}

/// A file that has no name any more. One that dies in between leaves it among the segments, where
/// the next open removes what it does not know.
fn temporary(device: &dyn Device) -> Result<Arc<dyn File>> {
    let name = format!("{}/query-{:032x}.tmp", segment::DIRECTORY, device.entropy());
    device.create_dir(segment::DIRECTORY).map_err(failed)?;
    let file = device.open(&name, Access::Create).map_err(failed)?;
    match device.remove(&name) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(file),
    }
}

fn write(file: &dyn File, piece: &mut Vec<u8>, len: &mut u64) -> Result<()> {
    let mut rest = piece.as_slice();
    while !rest.is_empty() {
        let written = file.write_at(rest, *len).map_err(failed)?;
        if written == 0 {
            return Err(failed(std::io::ErrorKind::WriteZero.into()));
        }
        rest = &rest[written..];
        *len += written as u64;
    }
    piece.clear();
    Ok(())
}

fn failed(error: std::io::Error) -> Error {
    let what = "a query sorts more than memory is for, and cannot use a temporary file in the \
                database's folder: give it a limit, or room there";
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::new(ErrorKind::Io, what).with_source(error),
        _ => Error::io(what, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::MemoryDevice;

    fn sorted(budget: usize, wanted: Option<u64>, strings: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        let device: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let mut sorter = Sorter::new(&device, budget, wanted);
        for string in strings {
            sorter.push(string).unwrap();
        }
        let runs = sorter.runs.len();
        let mut merged = sorter.finish().unwrap();
        assert_eq!(device.list(segment::DIRECTORY).unwrap_or_default(), Vec::<String>::new());
        let mut found = Vec::new();
        while let Some(string) = merged.next().unwrap() {
            found.push(string);
        }
        (found, runs)
    }

    fn strings(count: u64) -> Vec<Vec<u8>> {
        let spread = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let string = |at: u64| vec![spread(at).to_be_bytes()[0]; usize::try_from(at % 37).unwrap()];
        (0..count).map(string).collect()
    }

    #[test]
    fn runs_are_merged_to_one_order() {
        let all = strings(20_000);
        let mut expected = all.clone();
        expected.sort();
        for (budget, has_runs) in [(1 << 30, false), (100_000, true), (5_000, true)] {
            let (found, runs) = sorted(budget, None, &all);
            assert!(found == expected && has_runs == (runs > 0), "{budget}");
        }
    }

    #[test]
    fn only_the_least_are_kept() {
        let all = strings(20_000);
        let mut expected = all.clone();
        expected.sort();
        for wanted in [0, 1, 100, 3_000, 30_000_usize] {
            let (found, _) = sorted(50_000, Some(wanted as u64), &all);
            assert_eq!(found, expected[..wanted.min(all.len())], "{wanted}");
        }
        let (_, runs) = sorted(100_000, Some(100), &all);
        assert_eq!(runs, 0, "a hundred strings fit in memory");
    }
}
