//! Works out the id of a database whose manifest is lost from the checksums of its journal.
//!
//! A group's checksum is affine over the bits of everything that goes into it: turning over one bit
//! of the id turns over the same bits of the checksum, whatever the other bits are. So 32 bits of
//! an id follow from one group as the solution of linear equations, with zeros for the other bits.
//! That is not the id that was given, but one with which every group verifies; a second group shows
//! it.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::sync::Arc;

use super::JournalPosition;
use super::files::{self, Directory, JournalFile};
use super::group::{Commits, HEADER_BYTES, Header, Place};
use super::recovery::{Window, group_bytes};
use super::salvage::SalvagedJournal;
use crate::io::{Access, Device};
use crate::{Error, Result};

/// Groups of a file that are tried, from the first on.
const GROUPS_TRIED: usize = 4;

/// A journal under an id with which it verifies, and that id; none if there is none.
pub(crate) fn find(device: &Arc<dyn Device>) -> Result<Option<(u128, SalvagedJournal)>> {
    let directory = Directory::new(Arc::clone(device), Access::Read);
    for number in directory.numbers().unwrap_or_default() {
        let path = files::path(number);
        let failed = |error| Error::io(format!("cannot read {path}"), error);
        let file = device.open(&path, Access::Read).map_err(failed)?;
        let length = file.len().map_err(failed)?;
        for id in candidates(&JournalFile { number, length, file, id: None })? {
            let journal = SalvagedJournal::read(device, id)?;
            if journal.confirms() {
                return Ok(Some((id, journal)));
            }
        }
    }
    Ok(None)
}

/// Ids with which one of the first groups of a file verifies.
fn candidates(file: &JournalFile) -> Result<Vec<u128>> {
    let mut window = Window::new(file);
    let (mut found, mut offset) = (Vec::new(), 0);
    for _ in 0..GROUPS_TRIED {
        let position = JournalPosition { file: file.number, offset };
        let Some(bytes) = window.bytes(offset, HEADER_BYTES as u64)? else { break };
        let Some(header) = bytes.first_chunk().and_then(|bytes| Header::decode(bytes, position))
        else {
            break;
        };
        let length = group_bytes(0).saturating_add(header.length.into());
        let Some(bytes) = window.bytes(offset, length)? else { break };
        let Some((sealed, commits)) = bytes.split_first_chunk() else { break };
        // A group of which the commits do not fill it is none, whatever the id is.
        if Commits::new(&header, commits).all(|commit| commit.is_some()) {
            found.extend(solve(position, sealed, commits));
        }
        offset = offset.saturating_add(length);
    }
    Ok(found)
}

/// The id below 2^32 with which a group has the checksum that was stored with it.
fn solve(position: JournalPosition, sealed: &[u8; HEADER_BYTES], commits: &[u8]) -> Option<u128> {
    let of = |id: u32| Place { database: id.into(), position }.verify(sealed, commits);
    let constant = of(0);
    let mut wanted = constant.found ^ constant.expected;
    // Each row is the bits that its bits of the id turn over; a row's highest bit is in no other.
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for bit in (0..u32::BITS).filter_map(|bit| 1_u32.checked_shl(bit)) {
        let mut row = (of(bit).expected ^ constant.expected, bit);
        for &(turned, bits) in &rows {
            if row.0 & highest(turned) != 0 {
                row = (row.0 ^ turned, row.1 ^ bits);
            }
        }
        if row.0 != 0 {
            for other in &mut rows {
                if other.0 & highest(row.0) != 0 {
                    *other = (other.0 ^ row.0, other.1 ^ row.1);
                }
            }
            rows.push(row);
        }
    }
    let mut id = 0;
    for (turned, bits) in rows {
        if wanted & highest(turned) != 0 {
            (wanted, id) = (wanted ^ turned, id ^ bits);
        }
    }
    (wanted == 0).then_some(id.into())
}

/// The highest bit of a number that is not 0.
fn highest(number: u32) -> u32 {
    1_u32.checked_shl(number.ilog2()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitSequence, Micros};

    #[test]
    fn an_id_is_found_with_which_every_group_of_the_database_verifies() {
        let place =
            |database, file, offset| Place { database, position: JournalPosition { file, offset } };
        for database in [0, 7, u128::MAX, 0x1234_5678_9abc_def0_0fed_cba9_8765_4321] {
            let header = Header {
                length: 300,
                first: CommitSequence(1),
                count: 1,
                synced_to: JournalPosition { file: 1, offset: 0 },
                timestamp: Micros(5),
            };
            let commits = [9; 300];
            let first = place(database, 1, 0);
            let sealed = first.seal(&header, [&commits, &[]]);
            let id = solve(first.position, &sealed, &commits).unwrap();
            let other = place(database, 8, 4_096);
            let sealed = other.seal(&header, [&commits[..7], &commits[7..]]);
            assert!(place(id, 8, 4_096).verify(&sealed, &commits).agree());
            assert!(!place(id ^ 1, 8, 4_096).verify(&sealed, &commits).agree());
        }
    }
}
