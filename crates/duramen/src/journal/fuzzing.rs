//! Groups of the journal as fuzzing makes them up: as if their checksum held.

use super::JournalPosition;
use super::group::{Commits, HEADER_BYTES, Header, Place};

const PLACE: Place = Place { database: 7, position: JournalPosition { file: 3, offset: 4_096 } };

/// A group: a header, its length put right, and commits.
pub(crate) fn group(data: &[u8]) {
    let Some((header, commits)) = data.split_first_chunk::<HEADER_BYTES>() else { return };
    let mut bytes = *header;
    let length = u32::try_from(commits.len()).unwrap_or(u32::MAX);
    bytes[4..8].copy_from_slice(&length.to_le_bytes());
    let Some(header) = Header::decode(&bytes, PLACE.position) else { return };
    let sealed = PLACE.seal(&header, [commits, &[]]);
    assert!(PLACE.verify(&sealed, commits).agree());
    assert_eq!(Header::decode(&sealed, PLACE.position), Some(header), "it reads as it is written");
    let mut bytes = 0;
    for commit in Commits::new(&header, commits).flatten() {
        bytes += commit.body.len();
    }
    assert!(bytes <= commits.len(), "commits lie behind each other");
}

/// The first group of a journal file, as [`group`] takes it.
pub(crate) fn first_group(file: &[u8]) -> Option<Vec<u8>> {
    let header = Header::decode(file.first_chunk()?, JournalPosition { file: 1, offset: 0 })?;
    file.get(..HEADER_BYTES + header.length as usize).map(<[u8]>::to_vec)
}
