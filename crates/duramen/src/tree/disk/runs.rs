//! The run pieces of one column of a row group, as far as reads have asked for them.
//!
//! Pieces are looked up by key when they are needed, some together for who reads many slots, and
//! never listed, so that the first read of a row group costs the same whatever its history. What
//! is between two known pieces may be unknown, so each says up to where no other one begins.
//!
//! A read goes back from piece to piece until one has the slot or is complete: over those written
//! since the slot last changed, which is none where the slot is the only one that changes.

use smallvec::{SmallVec, smallvec};

use crate::encoding::RunPiece;

/// The known run pieces of one column.
///
/// Invariant: spans rise and do not overlap; the first begins at 0 and has no piece.
#[derive(Debug)]
pub(crate) struct KnownRuns {
    /// One where a column has no pieces.
    spans: SmallVec<[Span; 1]>,
    /// The last revision that the disk has.
    newest: u32,
}

/// The revisions up to `until` from that on with which a piece begins: no other piece does there.
#[derive(Debug)]
struct Span {
    first: u32,
    until: u32,
    /// None before the oldest piece.
    piece: Option<Box<RunPiece>>,
}

/// Which run piece of a column is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The last that begins at or before a revision.
    AtOrBefore(u32),
    /// The first that begins after a revision.
    After(u32),
}

/// What a look-up found.
pub(crate) type FoundRun = (Wanted, Option<RunPiece>);

impl KnownRuns {
    /// Knows nothing but that no piece begins before `oldest`; none that there is no piece.
    pub(crate) fn new(oldest: Option<u32>, newest: u32) -> Self {
        let until = oldest.map_or(newest, |oldest| oldest.saturating_sub(1));
        Self { spans: smallvec![Span { first: 0, until, piece: None }], newest }
    }

    fn index(&self, revision: u32) -> usize {
        self.spans.partition_point(|span| span.first <= revision).saturating_sub(1)
    }

    /// The revision up to which the pieces are known that begin before one of which they are not.
    pub(crate) fn known_before(&self, revision: u32) -> u32 {
        self.spans[self.index(revision)].until
    }

    /// The pieces that begin at or before a revision, newest first.
    #[inline]
    pub(crate) fn back_from(&self, revision: u32) -> Back<'_> {
        Back { runs: self, revision: revision.min(self.newest) }
    }

    /// The pieces that were looked up.
    pub(crate) fn known(&self) -> impl Iterator<Item = &RunPiece> {
        self.spans.iter().filter_map(|span| span.piece.as_deref())
    }

    /// All pieces, oldest first.
    pub(crate) fn pieces(&self) -> Forth<'_> {
        Forth { runs: self, index: 0 }
    }

    /// Takes what look-ups found.
    pub(crate) fn add_all(&mut self, found: Vec<FoundRun>) {
        for found in found {
            self.add(found);
        }
    }

    fn add(&mut self, (wanted, found): FoundRun) {
        let first = found.as_ref().map(RunPiece::first_revision);
        match wanted {
            Wanted::AtOrBefore(revision) => {
                let first = first.unwrap_or(0);
                self.insert(first, found);
                let index = self.index(first);
                self.spans[index].until = self.spans[index].until.max(revision.min(self.newest));
            }
            Wanted::After(revision) => {
                if let Some(first) = first {
                    self.insert(first, found);
                }
                let before = self.index(revision);
                self.spans[before].until = first.map_or(self.newest, |first| first - 1);
            }
        }
    }

    fn insert(&mut self, first: u32, piece: Option<RunPiece>) {
        let (Some(piece), Err(at)) =
            (piece, self.spans.binary_search_by_key(&first, |span| span.first))
        else {
            return;
        };
        let until = piece.last_revision().min(self.newest);
        self.spans.insert(at, Span { first, until, piece: Some(Box::new(piece)) });
    }
}

/// Goes from piece to piece, back in time. Fails with a revision if the last piece that begins at
/// or before that is not known.
pub(crate) struct Back<'a> {
    runs: &'a KnownRuns,
    /// The next piece begins at or before it.
    revision: u32,
}

impl<'a> Iterator for Back<'a> {
    type Item = Result<&'a RunPiece, u32>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let span = &self.runs.spans[self.runs.index(self.revision)];
        if self.revision > span.until {
            return Some(Err(self.revision));
        }
        let piece = span.piece.as_deref()?;
        self.revision = span.first - 1;
        Some(Ok(piece))
    }
}

/// Goes from piece to piece, forth in time.
pub(crate) struct Forth<'a> {
    runs: &'a KnownRuns,
    /// Of the span before the next piece.
    index: usize,
}

impl<'a> Iterator for Forth<'a> {
    type Item = Result<&'a RunPiece, Wanted>;

    fn next(&mut self) -> Option<Self::Item> {
        let spans = &self.runs.spans;
        let until = spans[self.index].until;
        if until >= self.runs.newest {
            return None;
        }
        let next = spans.get(self.index + 1).filter(|next| next.first == until + 1);
        let Some(next) = next else { return Some(Err(Wanted::After(until))) };
        self.index += 1;
        next.piece.as_deref().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::encode_run;
    use crate::state::Datum;

    const NEWEST: u32 = 50;
    /// The first and the last revision of each piece.
    const PIECES: [(u32, u32); 4] = [(3, 5), (6, 6), (20, 31), (40, 44)];

    fn piece((first, last): (u32, u32)) -> RunPiece {
        let mut cell = Vec::new();
        let changes = [(0, first, Datum::Int(1)), (0, last, Datum::Int(2))];
        encode_run(&changes[..if first == last { 1 } else { 2 }], &mut cell);
        RunPiece::parse(cell.into()).unwrap()
    }

    fn look_up(wanted: Wanted) -> Option<RunPiece> {
        let mut pieces = PIECES.iter();
        let found = match wanted {
            Wanted::AtOrBefore(revision) => pieces.rfind(|(first, _)| *first <= revision),
            Wanted::After(revision) => pieces.find(|(first, _)| *first > revision),
        };
        found.copied().map(piece)
    }

    /// The pieces of a walk and how many were looked up for it.
    fn walk(
        runs: &mut KnownRuns,
        walk: impl Fn(&KnownRuns) -> Result<Vec<u32>, Wanted>,
    ) -> (Vec<u32>, usize) {
        for looked_up in 0..10 {
            match walk(runs) {
                Ok(firsts) => return (firsts, looked_up),
                Err(wanted) => runs.add((wanted, look_up(wanted))),
            }
        }
        panic!("looked up again and again");
    }

    fn back(runs: &mut KnownRuns, from: u32) -> (Vec<u32>, usize) {
        walk(runs, |runs| {
            let pieces = runs.back_from(from).map(|piece| piece.map(RunPiece::first_revision));
            pieces.map(|first| first.map_err(Wanted::AtOrBefore)).collect()
        })
    }

    fn forth(runs: &mut KnownRuns) -> (Vec<u32>, usize) {
        walk(runs, |runs| runs.pieces().map(|piece| piece.map(RunPiece::first_revision)).collect())
    }

    #[test]
    fn a_piece_is_looked_up_once_and_those_it_leads_past_never() {
        let mut runs = KnownRuns::new(Some(3), NEWEST);
        let first = |runs: &KnownRuns, from: u32| runs.back_from(from).next().map(|p| p.map(drop));
        assert_eq!(first(&runs, 60), Some(Err(50)));
        let newest = Wanted::AtOrBefore(50);
        runs.add((newest, look_up(newest)));
        for revision in 40..=60 {
            assert_eq!(first(&runs, revision), Some(Ok(())));
        }
        assert_eq!(first(&runs, 25), Some(Err(25)));
        assert_eq!(back(&mut runs, 60), (vec![40, 20, 6, 3], 3));
        assert_eq!(back(&mut runs, 39), (vec![20, 6, 3], 0));
    }

    #[test]
    fn walks_meet_every_piece_from_wherever_reads_began() {
        for (a, b) in (0..60).flat_map(|a| (0..60).map(move |b| (a, b))) {
            let mut runs = KnownRuns::new(Some(3), NEWEST);
            for from in [a, b] {
                let expected: Vec<u32> = PIECES
                    .iter()
                    .rev()
                    .map(|piece| piece.0)
                    .filter(|first| *first <= from)
                    .collect();
                assert_eq!(back(&mut runs, from).0, expected, "{a} {b}");
            }
            assert_eq!(forth(&mut runs).0, [3, 6, 20, 40], "{a} {b}");
            assert_eq!((back(&mut runs, 60).1, forth(&mut runs).1), (0, 0));
        }
    }

    #[test]
    fn a_column_without_runs_looks_nothing_up() {
        let mut runs = KnownRuns::new(None, NEWEST);
        assert_eq!(back(&mut runs, 60), (vec![], 0));
        assert_eq!(forth(&mut runs), (vec![], 0));
    }
}
