//! Points that no checkpoint has written, by series.
//!
//! Invariants:
//! - a *generation* takes what is committed until a checkpoint begins and the next one follows; so
//!   beginning a checkpoint costs the same however many series there are;
//! - a generation goes at the moment in which the segment with its points comes: a reader who takes
//!   the generations before the segments misses nothing, and what he sees twice has one sequence;
//!   who takes both at one moment sees nothing twice;
//! - what is in a piece does not change any more: readers share it, and copy no more than a tail;
//! - the *clock* of a series stands at the oldest commit of which anything is young, if there is
//!   one: what was written while its points were kept finds them until it is in segments, and in
//!   the rows that are made of it.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::sync::Mutex;
use rustc_hash::FxHashMap;

use crate::limits::{SERIES_PIECE_POINTS_MIN, SERIES_TAIL_POINTS_MAX};
use crate::revision::{CommitSequence, Micros};
use crate::series::changes::{SeriesChange, SeriesChanges};
use crate::series::commits::CommitTime;
use crate::series::piece::{LonePoint, Piece, Tail};
use crate::series::rollup::Behind;
use crate::series::span::TimeSpan;
use crate::tree::cell_key::TreeId;

/// The young points of all series.
#[derive(Debug)]
pub(crate) struct YoungSeries {
    /// Oldest first; the last one takes what is committed.
    generations: Mutex<Vec<Arc<Generation>>>,
    /// Approximate bytes of all that was ever staged.
    staged_bytes: AtomicUsize,
    /// The last generation of each stripe that replayed commits seal.
    seals: Mutex<FxHashMap<u64, u64>>,
    /// The series whose rollups have something to catch up.
    pub(crate) behind: Mutex<Behind>,
}

/// What was committed between two checkpoints.
#[derive(Debug, Default)]
pub(crate) struct Generation {
    series: Mutex<FxHashMap<TreeId, Staged>>,
    /// The commits that changed any of them.
    commits: Mutex<Vec<CommitTime>>,
}

/// What is young of one series.
#[derive(Debug, Clone, Default)]
pub(crate) struct Young {
    /// In the order of their commits.
    pub(crate) pieces: Vec<Arc<Piece>>,
    pub(crate) deletes: Vec<Delete>,
    /// When the oldest commit was made that did any of it.
    since: Option<Micros>,
}

/// What a generation has of one series. A million series that get a point each are a million of
/// these, so one point takes no more than it needs.
#[derive(Debug)]
enum Staged {
    One(LonePoint),
    More(Box<Gathering>),
}

/// What comes in of one series.
#[derive(Debug, Default)]
struct Gathering {
    young: Young,
    /// The oldest commit that did any of it.
    oldest: Option<CommitSequence>,
    /// What came in last.
    tail: Option<Tail>,
}

/// What commits did that were made elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Those that changed any series, rising, and when they were made.
    pub(crate) commits: Vec<CommitTime>,
    pub(crate) series: FxHashMap<TreeId, Young>,
    /// Approximate bytes in memory.
    pub(crate) bytes: usize,
}

impl Loaded {
    /// Takes commits that follow those before.
    pub(crate) fn add_commits(&mut self, commits: &[CommitTime]) {
        self.commits.extend_from_slice(commits);
        self.bytes += size_of_val(commits);
    }

    /// Takes points of a series.
    pub(crate) fn add_piece(&mut self, series: TreeId, piece: Piece) {
        self.bytes += piece.bytes();
        self.series.entry(series).or_default().pieces.push(Arc::new(piece));
    }

    /// Takes what was deleted of a series.
    pub(crate) fn add_deletes(&mut self, series: TreeId, deletes: Vec<Delete>) {
        self.bytes += size_of_val(deletes.as_slice());
        self.series.entry(series).or_default().deletes.extend(deletes);
    }
}

/// A commit deleted the points of a span that were there before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delete {
    pub(crate) sequence: CommitSequence,
    pub(crate) span: TimeSpan,
}

impl Default for YoungSeries {
    fn default() -> Self {
        let generations = Mutex::new(vec![Arc::default()]);
        Self {
            generations,
            staged_bytes: AtomicUsize::new(0),
            seals: Mutex::default(),
            behind: Mutex::default(),
        }
    }
}

impl YoungSeries {
    /// Takes what a commit did, in the order of the commits.
    pub(crate) fn stage(&self, changes: &SeriesChanges, commit: CommitTime) {
        self.staged_bytes.fetch_add(changes.young_bytes(), Ordering::Relaxed);
        let generations = self.generations.lock();
        let Some(current) = generations.last() else { return };
        current.commits.lock().push(commit);
        let mut all = current.series.lock();
        for (series, change) in changes.iter() {
            match all.entry(series) {
                Entry::Vacant(new) => drop(new.insert(Staged::new(change, commit.0))),
                Entry::Occupied(mut old) => old.get_mut().more().stage(change, commit.0),
            }
        }
    }

    /// Takes what other commits did than the last one, each point with the sequence of its own.
    pub(crate) fn load(&self, loaded: Loaded) {
        let generations = self.generations.lock();
        let Some(current) = generations.last() else { return };
        current.commits.lock().extend(loaded.commits);
        let mut all = current.series.lock();
        for (series, mut young) in loaded.series {
            let taken = all.entry(series).or_insert_with(|| Staged::More(Box::default())).more();
            taken.oldest = taken.oldest.into_iter().chain(young.oldest()).min();
            taken.seal();
            taken.young.append(&mut young);
        }
    }

    /// A replayed commit has what a stripe staged up to a generation.
    pub(crate) fn note_seal(&self, stripe: u64, generation: u64) {
        let mut seals = self.seals.lock();
        let last = seals.entry(stripe).or_default();
        *last = generation.max(*last);
    }

    /// The last generation of a stripe that was replayed; 0 if none was.
    pub(crate) fn last_seal(&self, stripe: u64) -> u64 {
        self.seals.lock().get(&stripe).copied().unwrap_or_default()
    }

    /// What is young of a series, as pieces.
    pub(crate) fn of(&self, series: TreeId) -> Young {
        let generations = self.generations.lock().clone();
        gather(&generations, series)
    }

    /// The same, and what `take` gives at that moment: no segment comes or has come in between.
    pub(crate) fn of_with<T>(&self, series: TreeId, take: impl FnOnce() -> T) -> (Young, T) {
        let (generations, taken) = {
            let generations = self.generations.lock();
            (generations.clone(), take())
        };
        (gather(&generations, series), taken)
    }

    /// The time as of which it is told what is kept of a series: the present, or that of the oldest
    /// commit of which anything is young.
    pub(crate) fn clock(&self, series: TreeId, now: Micros) -> Micros {
        let generations = self.generations.lock().clone();
        generations.iter().filter_map(|generation| generation.since(series)).fold(now, Micros::min)
    }

    /// The last commit that is young and was made by a time, if there is one.
    pub(crate) fn last_commit_by(&self, time: Micros) -> Option<CommitSequence> {
        let generations = self.generations.lock();
        generations.iter().rev().find_map(|generation| {
            let commits = generation.commits.lock();
            let later = commits.partition_point(|commit| commit.1 <= time);
            later.checked_sub(1).and_then(|at| commits.get(at)).map(|last| last.0)
        })
    }

    /// The commits whose changes are young, rising.
    pub(crate) fn commits(&self) -> Vec<CommitTime> {
        let generations = self.generations.lock().clone();
        Frozen { generations }.commits()
    }

    /// The series of which anything is young, in the order of their numbers.
    pub(crate) fn series(&self) -> Vec<TreeId> {
        let generations = self.generations.lock().clone();
        Frozen { generations }.series()
    }

    /// Approximate bytes of what replaying the journal has staged.
    pub(crate) fn bytes(&self) -> usize {
        self.staged_bytes.load(Ordering::Relaxed)
    }

    /// All that was committed so far, for a checkpoint; what comes goes to another generation. No
    /// commit may happen meanwhile.
    pub(crate) fn freeze(&self) -> Frozen {
        let mut generations = self.generations.lock();
        let has_any = |current: &Arc<Generation>| {
            !current.commits.lock().is_empty() || !current.series.lock().is_empty()
        };
        if generations.last().is_some_and(has_any) {
            generations.push(Arc::default());
        }
        let frozen = generations.len().saturating_sub(1);
        Frozen { generations: generations.iter().take(frozen).cloned().collect() }
    }

    /// Drops what a checkpoint wrote at the moment in which `add` lets it be read from disk.
    pub(crate) fn checkpointed(&self, frozen: &Frozen, add: impl FnOnce()) {
        let is_written = |young: &Arc<Generation>| {
            frozen.generations.iter().any(|written| Arc::ptr_eq(written, young))
        };
        let mut generations = self.generations.lock();
        add();
        generations.retain(|young| !is_written(young));
    }
}

/// What a checkpoint is to write.
#[derive(Debug, Default)]
pub(crate) struct Frozen {
    generations: Vec<Arc<Generation>>,
}

impl Frozen {
    pub(crate) fn is_empty(&self) -> bool {
        self.generations.is_empty()
    }

    /// The series of which anything is to be written, in the order of their numbers.
    pub(crate) fn series(&self) -> Vec<TreeId> {
        let mut all = Vec::new();
        for generation in &self.generations {
            all.extend(generation.series.lock().keys().copied());
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What is to be written of a series.
    pub(crate) fn of(&self, series: TreeId) -> Young {
        gather(&self.generations, series)
    }

    /// The commits that did it, rising.
    pub(crate) fn commits(&self) -> Vec<CommitTime> {
        let mut all = Vec::new();
        for generation in &self.generations {
            all.extend_from_slice(&generation.commits.lock());
        }
        all
    }
}

/// What some generations have of a series, as pieces.
fn gather(generations: &[Arc<Generation>], series: TreeId) -> Young {
    let mut all = Young::default();
    for generation in generations {
        let found = generation.series.lock().get(&series).map(Staged::young);
        if let Some(mut young) = found {
            all.append(&mut young);
            all.since = all.since.into_iter().chain(generation.since(series)).min();
        }
    }
    all
}

impl Generation {
    /// When the oldest commit was made that did anything to a series.
    fn since(&self, series: TreeId) -> Option<Micros> {
        let oldest = self.series.lock().get(&series).and_then(Staged::oldest)?;
        let commits = self.commits.lock();
        let at = commits.partition_point(|commit| commit.0 < oldest);
        commits.get(at).map(|commit| commit.1)
    }
}

impl Young {
    /// The time as of which it is told what is kept: see [`YoungSeries::clock`].
    pub(crate) fn clock(&self, now: Micros) -> Micros {
        self.since.map_or(now, |since| since.min(now))
    }

    /// The oldest commit that did any of it.
    fn oldest(&self) -> Option<CommitSequence> {
        let pieces = self.pieces.iter().map(|piece| piece.sequences.range().0);
        pieces.chain(self.deletes.iter().map(|delete| delete.sequence)).min()
    }

    fn append(&mut self, other: &mut Self) {
        self.pieces.append(&mut other.pieces);
        self.deletes.append(&mut other.deletes);
    }
}

impl Staged {
    fn new(change: &SeriesChange, sequence: CommitSequence) -> Self {
        if let Some(lone) = change.lone_point(sequence) {
            return Self::One(lone);
        }
        let mut gathering = Box::<Gathering>::default();
        gathering.stage(change, sequence);
        Self::More(gathering)
    }

    /// The same with room for more.
    fn more(&mut self) -> &mut Gathering {
        if let Self::One(lone) = self {
            let (oldest, tail) = (Some(lone.sequence), Some(lone.tail()));
            *self = Self::More(Box::new(Gathering { young: Young::default(), oldest, tail }));
        }
        match self {
            Self::More(gathering) => gathering,
            Self::One(_) => unreachable!("one point has become more"),
        }
    }

    /// The oldest commit that did any of it.
    fn oldest(&self) -> Option<CommitSequence> {
        match self {
            Self::One(lone) => Some(lone.sequence),
            Self::More(gathering) => gathering.oldest,
        }
    }

    fn young(&self) -> Young {
        match self {
            Self::One(lone) => {
                let pieces = vec![Arc::new(lone.tail().into_piece())];
                Young { pieces, ..Young::default() }
            }
            Self::More(gathering) => {
                let mut young = gathering.young.clone();
                young.pieces.extend(gathering.tail.clone().map(|tail| Arc::new(tail.into_piece())));
                young
            }
        }
    }
}

impl Gathering {
    fn stage(&mut self, change: &SeriesChange, sequence: CommitSequence) {
        self.oldest.get_or_insert(sequence);
        let deletes = change.deletes.iter().map(|&span| Delete { sequence, span });
        self.young.deletes.extend(deletes);
        let Some(points) = &change.points else { return };
        if points.len() >= SERIES_PIECE_POINTS_MIN {
            self.seal();
            self.young.pieces.push(Arc::new(Piece::of_commit(
                Arc::clone(points),
                change.line,
                sequence,
            )));
            return;
        }
        if self.tail.as_ref().is_some_and(|tail| !tail.takes(points)) {
            self.seal();
        }
        match &mut self.tail {
            Some(tail) => tail.push(points, sequence),
            None => self.tail = Some(Tail::new(points, sequence)),
        }
        if self.tail.as_ref().is_some_and(|tail| tail.len() >= SERIES_TAIL_POINTS_MAX) {
            self.seal();
        }
    }

    /// What came in last becomes a piece.
    fn seal(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.young.pieces.push(Arc::new(tail.into_piece()));
        }
    }
}
