//! Which revisions of a tree are kept, once its retention let compaction drop some.
//!
//! Invariants:
//! - a revision that is not kept gives an error, never the value of another one;
//! - what is kept is raised in memory before anything is dropped, and on disk in the segment that
//!   has not what was dropped.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use crate::error::{Error, ErrorKind, Result};
use crate::revision::Revision;
use crate::wire::{Reader, put_varint};

/// The revisions from one on, and some before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// 0 if nothing was ever dropped.
    first: u32,
    /// Rising, all below `first`.
    pinned: Box<[u32]>,
}

impl Kept {
    /// The revisions from `first` on, and those of `pinned` that are before it.
    pub(crate) fn new(first: u32, mut pinned: Vec<u32>) -> Self {
        if first <= 1 {
            return Self::default();
        }
        pinned.retain(|&revision| revision > 0 && revision < first);
        pinned.sort_unstable();
        pinned.dedup();
        Self { first, pinned: pinned.into() }
    }

    /// Whether nothing was dropped.
    #[inline]
    pub(crate) fn is_all(&self) -> bool {
        self.first == 0
    }

    /// The revision that the history begins with.
    #[inline]
    pub(crate) fn first(&self) -> u32 {
        self.first.max(1)
    }

    /// The oldest that is kept.
    pub(crate) fn oldest(&self) -> u32 {
        self.pinned.first().copied().unwrap_or(self.first)
    }

    /// The revisions before the first that are kept beside it, rising.
    pub(crate) fn pinned(&self) -> &[u32] {
        &self.pinned
    }

    #[inline]
    pub(crate) fn has(&self, revision: u32) -> bool {
        revision >= self.first || self.pinned.binary_search(&revision).is_ok()
    }

    /// Whether all that is kept is kept by another one too.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.first() >= other.first() && self.pinned.iter().all(|&revision| other.has(revision))
    }

    /// How many of the revisions up to one are kept: its number where only these are counted.
    pub(crate) fn count_up_to(&self, revision: u64) -> u64 {
        let earlier = self.pinned.partition_point(|&pinned| u64::from(pinned) <= revision) as u64;
        let from = u64::from(self.first());
        earlier.saturating_add(revision.saturating_add(1).saturating_sub(from))
    }

    /// The kept revision of a number, from 1 on.
    pub(crate) fn numbered(&self, number: u64) -> u64 {
        let index = number.saturating_sub(1);
        let pinned = usize::try_from(index).ok().and_then(|index| self.pinned.get(index));
        let later = index.saturating_sub(self.pinned.len() as u64);
        pinned.map_or(later.saturating_add(self.first().into()), |&pinned| pinned.into())
    }

    /// The newest kept revision up to one; 0 if there is none.
    pub(crate) fn at_or_before(&self, revision: u64) -> u64 {
        if revision >= u64::from(self.first) {
            return revision;
        }
        let end = self.pinned.partition_point(|&pinned| u64::from(pinned) <= revision);
        let earlier = end.checked_sub(1).and_then(|index| self.pinned.get(index));
        earlier.copied().map_or(0, u64::from)
    }

    /// The first of the revisions up to which the changes of a revision count as one, from
    /// `revision` on; none if all of those changes are kept.
    pub(crate) fn boundary(&self, revision: u32) -> Option<u32> {
        if revision > self.first {
            return None;
        }
        let later = self.pinned.partition_point(|&pinned| pinned < revision);
        Some(self.pinned.get(later).copied().unwrap_or(self.first))
    }

    /// The revision that is told of a change to who reads at another one: the first kept one that
    /// has it, or that the history begins with.
    pub(crate) fn told(&self, revision: u32, at: u32) -> u32 {
        if at >= self.first {
            return revision.max(self.first);
        }
        self.boundary(revision).unwrap_or(revision)
    }

    /// Refuses a revision that was dropped.
    #[inline]
    pub(crate) fn check(&self, revision: u32) -> Result<()> {
        if self.has(revision) { Ok(()) } else { Err(self.dropped(revision.into())) }
    }

    /// The error for a revision that was dropped.
    #[cold]
    pub(crate) fn dropped(&self, revision: u64) -> Error {
        let message = format!(
            "there is no revision {revision} any more: the history begins at revision {}, earlier \
             ones were dropped by the document's retention, for snapshots of them too; read a \
             later one, and tag those that are to stay",
            Revision(self.first().into())
        );
        Error::new(ErrorKind::NotFound, message)
    }

    /// Refuses a period that begins before the history does: what of it a tag keeps says nothing of
    /// what came after.
    pub(crate) fn check_period(&self, first: u32) -> Result<()> {
        if first >= self.first {
            return Ok(());
        }
        self.check(first)?;
        let message = format!(
            "a tag alone keeps revision {first}, and what came after it was dropped: choose a \
             period that begins with the history, at revision {}, or later",
            self.first()
        );
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// The cell that says so.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut cell = Vec::new();
        put_varint(&mut cell, self.first.into());
        put_varint(&mut cell, self.pinned.len() as u64);
        for &revision in &self.pinned {
            put_varint(&mut cell, revision.into());
        }
        cell
    }

    /// What a cell says.
    pub(crate) fn decode(cell: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(cell);
        let (first, count) = (reader.varint_u32()?, reader.count()?);
        let pinned = (0..count).map(|_| reader.varint_u32()).collect::<Result<Vec<_>>>()?;
        reader.end()?;
        let is_rising = pinned.is_sorted_by(|a, b| a < b);
        let is_before = pinned.last().is_none_or(|&last| last < first);
        if first < 2 || !is_rising || !is_before || pinned.first() == Some(&0) {
            return Err(corrupt());
        }
        Ok(Self { first, pinned: pinned.into() })
    }
}

fn corrupt() -> Error {
    Error::new(ErrorKind::Corrupt, "the cell that says where a history begins cannot be")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_revisions_are_those_before_the_first_that_are_not_pinned() {
        let kept = Kept::new(10, vec![7, 3, 12, 3, 0]);
        assert_eq!(kept.pinned(), [3, 7]);
        let has: Vec<u32> = (0..14).filter(|&revision| kept.has(revision)).collect();
        assert_eq!(has, [3, 7, 10, 11, 12, 13]);
        let before: Vec<u64> = (0..12).map(|revision| kept.at_or_before(revision)).collect();
        assert_eq!(before, [0, 0, 0, 3, 3, 3, 3, 7, 7, 7, 10, 11]);
        let counts: Vec<u64> = (0..12).map(|revision| kept.count_up_to(revision)).collect();
        assert_eq!(counts, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 4]);
        let numbered: Vec<u64> = (1..6).map(|number| kept.numbered(number)).collect();
        assert_eq!(numbered, [3, 7, 10, 11, 12]);
        assert_eq!([1, 3, 4, 7].map(|revision| kept.told(revision, 7)), [3, 3, 7, 7]);
        assert_eq!([1, 7, 8, 10, 11].map(|revision| kept.told(revision, 12)), [10, 10, 10, 10, 11]);
        let all = Kept::default();
        assert_eq!((all.count_up_to(0), all.count_up_to(5), all.numbered(5)), (0, 5, 5));
        let boundaries: Vec<_> = (1..12).map(|revision| kept.boundary(revision)).collect();
        let [third, seventh, tenth] = [Some(3), Some(7), Some(10)];
        assert_eq!(boundaries.get(..3).unwrap(), [third; 3]);
        assert_eq!(boundaries.get(3..7).unwrap(), [seventh; 4]);
        assert_eq!(boundaries.get(7..).unwrap(), [tenth, tenth, tenth, None]);
        assert_eq!(kept.check(4).unwrap_err().kind(), ErrorKind::NotFound);
        let within = |first, pinned| Kept::new(first, pinned).is_within(&kept);
        assert!(within(10, vec![3]) && within(30, vec![3, 11]) && !within(30, vec![4]));
        assert!(!within(9, vec![]) && !Kept::default().is_within(&kept));
        assert!(kept.is_within(&kept) && kept.is_within(&Kept::default()));
        assert!(Kept::new(1, vec![]).is_all());
        assert!(kept.check_period(10).is_ok() && all.check_period(1).is_ok());
        assert!(kept.check_period(7).unwrap_err().message().contains("a tag alone keeps"));
        assert!(kept.check_period(8).unwrap_err().message().contains("any more"));
    }

    #[test]
    fn a_cell_is_read_as_it_was_written_and_damage_is_an_error() {
        for kept in [Kept::new(2, vec![1]), Kept::new(900, vec![]), Kept::new(900, vec![4, 300])] {
            let cell = kept.encode();
            assert_eq!(Kept::decode(&cell).unwrap(), kept);
            for end in 0..cell.len() {
                assert!(Kept::decode(cell.get(..end).unwrap()).is_err());
            }
            assert!(Kept::decode(&[&cell[..], &[0]].concat()).is_err());
        }
        for cell in [&[1, 0][..], &[9, 1, 9], &[9, 2, 3, 3], &[9, 200], &[255; 12]] {
            assert_eq!(Kept::decode(cell).unwrap_err().kind(), ErrorKind::Corrupt, "{cell:?}");
        }
    }
}
