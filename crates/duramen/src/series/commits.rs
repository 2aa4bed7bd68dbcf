//! When the commits were made that changed series: no tree has a row of them.

use bytes::Bytes;

use crate::engine::View;
use crate::error::{Error, ErrorKind, Result};
use crate::revision::{CommitSequence, Micros};
use crate::store::Scan;
use crate::tree::cell_key::{self, CellKey};
use crate::wire::{Reader, put_varint};

/// Commits that stand in one cell.
const CELL_COMMITS_MAX: usize = 16_384;

/// A commit and its timestamp.
pub(crate) type CommitTime = (CommitSequence, Micros);

/// The cells of commits that rise, each with its first commit.
pub(crate) fn cells(commits: &[CommitTime]) -> Vec<(CommitSequence, Vec<u8>)> {
    let of_some = |commits: &[CommitTime]| {
        let first = commits.first().copied().unwrap_or_default();
        let mut cell = first.1.0.to_le_bytes().to_vec();
        let mut before = first;
        put_varint(&mut cell, commits.len().saturating_sub(1) as u64);
        for &(sequence, time) in commits.iter().skip(1) {
            put_varint(&mut cell, sequence.0 - before.0.0);
            put_varint(&mut cell, time.0.abs_diff(before.1.0));
            before = (sequence, time);
        }
        (first.0, cell)
    };
    commits.chunks(CELL_COMMITS_MAX).map(of_some).collect()
}

/// The commits of a cell whose key names the first.
pub(crate) fn decode(first: CommitSequence, cell: &Bytes) -> Result<Vec<CommitTime>> {
    let mut reader = Reader::new(cell);
    let mut last = (first, Micros(reader.i64()?));
    let mut commits = vec![last];
    for _ in 0..reader.count()? {
        let sequence = last.0.0.checked_add(reader.varint()?);
        let time = last.1.0.checked_add_unsigned(reader.varint()?);
        let (Some(sequence), Some(time)) = (sequence, time) else {
            return Err(reader.corrupt("a commit that is too late"));
        };
        last = (CommitSequence(sequence), Micros(time));
        commits.push(last);
    }
    reader.end()?;
    Ok(commits)
}

/// The commits that changed series, rising, some at a time.
#[derive(Debug)]
pub(crate) struct Commits {
    cells: Scan,
    /// Those that no cell has.
    young: Vec<CommitTime>,
    last: CommitSequence,
}

impl Commits {
    /// All of them.
    pub(crate) fn of(view: &View) -> Result<Self> {
        // What is young comes first: a checkpoint drops it only when segments have it.
        let young = view.series.commits();
        let cells = view.store.live().scan(&cell_key::all_commits())?;
        Ok(Self { cells, young, last: CommitSequence(0) })
    }

    /// Some more of them; none if there are no more.
    pub(crate) fn next(&mut self) -> Result<Vec<CommitTime>> {
        let Some(found) = self.cells.next() else {
            let last = self.last;
            let young = std::mem::take(&mut self.young);
            return Ok(young.into_iter().filter(|commit| commit.0 > last).collect());
        };
        let (key, cell) = found?;
        let Some((_, CellKey::Commits { first })) = cell_key::parse(&key) else {
            return Err(no_commits(&key));
        };
        let commits = decode(first, &cell.load()?)?;
        self.last = commits.last().map_or(self.last, |last| last.0);
        Ok(commits)
    }
}

fn no_commits(key: &[u8]) -> Error {
    let message = format!("no commits of series have the key {key:02x?}");
    Error::new(ErrorKind::Corrupt, message)
}

/// The last commit that changed series and was made by a time; 0 if there was none by then.
pub(crate) fn last_by(view: &View, time: Micros) -> Result<CommitSequence> {
    // What is young comes first: a checkpoint drops it only when segments have it.
    if let Some(young) = view.series.last_commit_by(time) {
        return Ok(young);
    }
    let live = view.store.live();
    // The cells whose first commits are still to be looked at.
    let (mut low, mut high) = (0, u64::MAX);
    let mut found = None;
    while low < high {
        let middle = low.midpoint(high);
        let key = cell_key::commits(CommitSequence(middle));
        let Some((key, cell)) = live.last_before(&cell_key::all_commits(), &key)? else {
            low = middle + 1;
            continue;
        };
        let Some((_, CellKey::Commits { first })) = cell_key::parse(&key) else {
            return Err(no_commits(&key));
        };
        if Reader::new(&cell).i64()? <= time.0 {
            found = Some((first, cell));
            low = middle + 1;
        } else {
            high = first.0;
        }
    }
    let Some((first, cell)) = found else { return Ok(CommitSequence(0)) };
    let mut by = decode(first, &cell)?;
    by.retain(|commit| commit.1 <= time);
    Ok(by.last().map_or(CommitSequence(0), |last| last.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_come_back_as_they_were() {
        let commit = |number: i64| {
            (CommitSequence(number.unsigned_abs() * 3 + 7), Micros(number * number - 5))
        };
        let commits: Vec<CommitTime> = (0..40_000).map(commit).collect();
        let cells = cells(&commits);
        assert_eq!(cells.len(), 3);
        let mut read = Vec::new();
        for (first, cell) in cells {
            read.extend(decode(first, &cell.into()).unwrap());
        }
        assert_eq!(read, commits);
    }
}
