//! What was deleted of a series, in cells: one for each commit that deleted anything.

use bytes::Bytes;

use crate::error::{Error, ErrorKind, Result};
use crate::revision::CommitSequence;
use crate::series::span::TimeSpan;
use crate::series::young::Delete;
use crate::store::LiveSegments;
use crate::tree::cell_key::{self, CellKey, TreeId};
use crate::wire::{Reader, put_varint};

/// The cells of what was deleted, in the order of the commits, with their keys.
pub(crate) fn cells(series: TreeId, deletes: &[Delete]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let of_commit = |deletes: &[Delete]| {
        let sequence = deletes.first().map_or(CommitSequence(0), |delete| delete.sequence);
        let mut cell = Vec::new();
        put_varint(&mut cell, deletes.len() as u64);
        for delete in deletes {
            delete.span.encode(&mut cell);
        }
        (cell_key::deletes(series, sequence), cell)
    };
    deletes.chunk_by(|a, b| a.sequence == b.sequence).map(of_commit).collect()
}

/// The spans of a cell.
pub(crate) fn decode(cell: &Bytes) -> Result<Vec<TimeSpan>> {
    let mut reader = Reader::new(cell);
    let count = reader.count()?;
    let spans = (0..count).map(|_| TimeSpan::decode(&mut reader)).collect::<Result<_>>()?;
    reader.end()?;
    Ok(spans)
}

/// What was deleted of a series: what is young, and what segments say, each once.
pub(crate) fn all(young: Vec<Delete>, live: &LiveSegments, series: TreeId) -> Result<Vec<Delete>> {
    let mut all = young;
    let young = all.len();
    for found in live.scan(&cell_key::all_deletes(series))? {
        let (key, cell) = found?;
        let Some((_, CellKey::Deletes { sequence })) = cell_key::parse(&key) else {
            let message = format!("no cell has the key {key:02x?}");
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        // A checkpoint may have been written since what is young was looked at.
        if all.iter().take(young).all(|one| one.sequence != sequence) {
            let spans = decode(&cell.load()?)?;
            all.extend(spans.into_iter().map(|span| Delete { sequence, span }));
        }
    }
    Ok(all)
}
