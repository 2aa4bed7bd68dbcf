//! Reads all of a segment and tells everything that does not verify.

use bytes::Bytes;

use super::MAGIC;
use super::block::CellBlock;
use super::filter::{Filter, KeyHash};
use super::index::IndexEntry;
use super::reader::{Guide, Segment, read_footer};
use crate::damage::corrupt;
use crate::{Error, ErrorKind, Result, io};

/// Verifies the cell with a key, or stops the check, which is `Cancelled`.
pub(crate) type VisitCell<'v> = dyn FnMut(&[u8], Bytes) -> Result<()> + 'v;

impl Segment {
    /// Reads every byte from the device, past everything held in memory: checksums, key order,
    /// fences, filter membership and counts; `visit` verifies what is in the cells. Empty if all
    /// verify; `Busy` alone if a purge overwrote it, which is no damage.
    pub(crate) fn check(&self, visit: &mut VisitCell<'_>) -> Vec<Error> {
        let mut findings = Vec::new();
        findings.extend(self.check_magic().err());
        findings.extend(self.check_length().err());
        findings.extend(read_footer(self.file(), self.origin().path, self.info()).err());
        match self.read_guide() {
            Ok(guide) => self.check_cells(&guide, visit, &mut findings),
            Err(error) => findings.push(error),
        }
        self.unless_overwritten(findings)
    }

    pub(super) fn check_magic(&self) -> Result<()> {
        let path = self.origin().path;
        let mut magic = [0; MAGIC.len()];
        io::read_exact_at(self.file(), &mut magic, 0)
            .map_err(|error| Error::io(format!("cannot read {path}"), error))?;
        if magic != MAGIC {
            let (expected, found) = (format!("{MAGIC:02x?}"), format!("{magic:02x?}"));
            return Err(corrupt(path, 0, "magic", expected, found));
        }
        Ok(())
    }

    /// Refuses bytes behind the footer.
    pub(super) fn check_length(&self) -> Result<()> {
        let (path, expected) = (self.origin().path, self.info().file_bytes());
        let found = self.file().len();
        match found.map_err(|error| Error::io(format!("cannot get the size of {path}"), error))? {
            found if found == expected => Ok(()),
            found => Err(corrupt(path, expected, "bytes of the file", expected, found)),
        }
    }

    fn check_cells(&self, guide: &Guide, visit: &mut VisitCell<'_>, findings: &mut Vec<Error>) {
        let mut last_key = Vec::new();
        for number in 0..guide.index.len() {
            let Some((entry, fence)) = guide.index.get(number) else { break };
            if last_key.as_slice() >= &fence[..] {
                findings.push(self.finding(&entry, "fence", &last_key, &fence));
            }
            match self.read_cells(&entry) {
                Ok(cells) => {
                    self.check_fence(&entry, &fence, &cells, findings);
                    self.check_keys(&entry, &cells, &guide.filter, findings);
                    for slot in 0..cells.len() {
                        let visited = visit(&cells.key(slot), cells.cell(slot));
                        let is_stopped = is_cancelled(&visited);
                        findings.extend(visited.err());
                        if is_stopped {
                            return;
                        }
                    }
                    last_key = cells.key(cells.len() - 1).to_vec();
                }
                Err(error) => findings.push(error),
            }
        }
        // A damaged last block was reported above, and leaves nothing to compare.
        if findings.is_empty() && last_key != guide.index.last_key() {
            let offset = self.footer().index.offset.get();
            let (expected, found) =
                (format!("{last_key:02x?}"), format!("{:02x?}", guide.index.last_key()));
            findings.push(corrupt(self.origin().path, offset, "last key", expected, found));
        }
    }

    fn check_fence(
        &self,
        entry: &IndexEntry,
        fence: &[u8],
        cells: &CellBlock,
        findings: &mut Vec<Error>,
    ) {
        let first = cells.key(0);
        if &first[..] < fence || (entry.is_single() && first != fence) {
            findings.push(self.finding(entry, "first key of the block", fence, &first));
        }
    }

    fn check_keys(
        &self,
        entry: &IndexEntry,
        cells: &CellBlock,
        filter: &Filter,
        findings: &mut Vec<Error>,
    ) {
        for slot in 0..cells.len() {
            let key = cells.key(slot);
            if slot > 0 && cells.key(slot - 1) >= key {
                findings.push(self.finding(entry, "key order", &cells.key(slot - 1), &key));
            }
            let tree = KeyHash::of_tree(&key);
            if !filter.may_have(KeyHash::of(&key))
                || tree.is_some_and(|tree| !filter.may_have(tree))
            {
                findings.push(self.finding(entry, "key in the filter", &key, b"none"));
            }
        }
    }

    fn finding(&self, entry: &IndexEntry, what: &str, expected: &[u8], found: &[u8]) -> Error {
        let (expected, found) = (format!("{expected:02x?}"), format!("{found:02x?}"));
        corrupt(self.origin().path, entry.block.offset.get(), what, expected, found)
    }
}

fn is_cancelled(visited: &Result<()>) -> bool {
    visited.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled)
}
