//! The series of a dump: their catalogue as one commit, then what was written to them, with the
//! sequences that the commits had.
//!
//! Invariant: what one commit deleted of a series is written together, behind its points, so that
//! rollups are made again where it hides any.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::DumpedPoints;
use crate::database::Database;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{DUMPED_COMMIT_MAX, LOADED_SERIES_BYTES};
use crate::revision::{CommitSequence, Micros};
use crate::series::commits::CommitTime;
use crate::series::span::TimeSpan;
use crate::series::young::{Delete, Loaded};
use crate::series::{Piece, Points, Sequences, SeriesInfo, check_type, rules};
use crate::transaction::Transaction;
use crate::tree::cell_key::TreeId;

/// Bytes of points from which on they are written.
const WRITTEN_BYTES: usize = if cfg!(test) { 1 << 10 } else { LOADED_SERIES_BYTES };

/// Series on their way into a new database.
#[derive(Debug, Default)]
pub(crate) struct SeriesLoad {
    catalogue: Option<Catalogue>,
    /// The last commit that changed any.
    last: CommitTime,
    /// The series whose points come.
    open: Option<Open>,
    loaded: Loaded,
    /// Whether documents came.
    is_over: bool,
}

/// The series that are defined.
#[derive(Debug)]
struct Catalogue {
    transaction: Transaction,
    last_name: String,
    numbers: FxHashSet<TreeId>,
}

#[derive(Debug)]
struct Open {
    info: SeriesInfo,
    points: Points,
    sequences: Sequences,
    /// Of the last point.
    last: Option<(i64, CommitSequence)>,
    deletes: Vec<Delete>,
}

impl SeriesLoad {
    pub(crate) fn rule(&mut self, database: &Database, text: &str) -> Result<()> {
        if self.is_over || self.last.0.0 > 0 || self.open.is_some() || self.catalogue.is_some() {
            return Err(misplaced("the rules of series"));
        }
        let mut taken = Vec::new();
        for rule in rules::from_json(text.as_bytes()).map_err(|error| invalid(&error))? {
            rule.check()?;
            rules::put(&mut taken, rule)?;
        }
        let catalogue = self.catalogue.insert(Catalogue::new(database));
        catalogue.transaction.load_series_rules(&taken)
    }

    pub(crate) fn define(&mut self, database: &Database, name: &str, record: &str) -> Result<()> {
        if self.is_over || self.last.0.0 > 0 || self.open.is_some() {
            return Err(misplaced("a series"));
        }
        let catalogue = self.catalogue.get_or_insert_with(|| Catalogue::new(database));
        if name <= catalogue.last_name.as_str() {
            let before = &catalogue.last_name;
            return Err(misplaced(&format!("series {name:?} behind {before:?}")));
        }
        let info =
            SeriesInfo::from_json(name, record.as_bytes()).map_err(|error| invalid(&error))?;
        if !catalogue.numbers.insert(info.number) {
            return Err(misplaced(&format!("series {name:?} with the number of another one")));
        }
        name.clone_into(&mut catalogue.last_name);
        catalogue.transaction.load_series(&info)
    }

    pub(crate) fn push_commits(
        &mut self,
        database: &Database,
        commits: &[(CommitSequence, Micros)],
    ) -> Result<()> {
        if self.is_over || self.open.is_some() {
            return Err(misplaced("a commit of series"));
        }
        self.finish_catalogue()?;
        for &commit in commits {
            let is_first = self.last.0.0 == 0;
            let rises = commit.0 > self.last.0 && (is_first || commit.1 > self.last.1);
            let is_far = commit.0.0.max(commit.1.0.unsigned_abs()) > DUMPED_COMMIT_MAX;
            if !rises || is_far {
                return Err(misplaced(&format!("commit {} behind {}", commit.0, self.last.0)));
            }
            self.last = commit;
        }
        self.loaded.add_commits(commits);
        self.write_if_much(database)
    }

    /// Takes it that there was a commit that changed series, whenever that was made.
    pub(crate) fn reach(&mut self, commit: CommitSequence) {
        self.last.0 = self.last.0.max(commit);
    }

    pub(crate) fn push_points(&mut self, database: &Database, given: &DumpedPoints) -> Result<()> {
        let last_commit = self.last.0;
        let open = self.open(database, &given.series)?;
        if !open.deletes.is_empty() {
            return Err(misplaced("a point behind what was deleted of its series"));
        }
        check_type(&open.info, &given.points)?;
        let (len, commits) = (given.points.len(), given.commits.len());
        if len != commits {
            let message = format!("{len} points have {commits} commits: each has one");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for (&time, &commit) in given.points.times().iter().zip(&given.commits) {
            check_commit(commit, last_commit)?;
            if open.last.is_some_and(|last| (time, commit) <= last) {
                return Err(misplaced(&format!("a point at {time} of commit {commit}")));
            }
            open.last = Some((time, commit));
        }
        let before = open.points.len();
        open.sequences.append(before, &Sequences::Each(given.commits.clone()), 0..len);
        open.points.append(&given.points, 0..len);
        if open.points.bytes() >= WRITTEN_BYTES {
            self.put_points();
            self.write(database)?;
        }
        Ok(())
    }

    pub(crate) fn push_deletes(
        &mut self,
        database: &Database,
        series: &str,
        spans: &[(CommitSequence, Micros, Micros)],
    ) -> Result<()> {
        let last_commit = self.last.0;
        let open = self.open(database, series)?;
        for &(sequence, first, last) in spans {
            check_commit(sequence, last_commit)?;
            let before = open.deletes.last().map_or(CommitSequence(0), |last| last.sequence);
            if sequence < before || first > last {
                return Err(misplaced(&format!("a span that commit {sequence} deleted")));
            }
            let span = TimeSpan { first: first.0, last: last.0 };
            open.deletes.push(Delete { sequence, span });
        }
        Ok(())
    }

    /// Documents come, or the end.
    pub(crate) fn finish(&mut self, database: &Database) -> Result<()> {
        if self.is_over {
            return Ok(());
        }
        self.is_over = true;
        self.finish_catalogue()?;
        self.put_open();
        self.write(database)
    }

    fn finish_catalogue(&mut self) -> Result<()> {
        let Some(Catalogue { mut transaction, numbers, .. }) = self.catalogue.take() else {
            return Ok(());
        };
        let greatest = numbers.iter().max().copied().unwrap_or(TreeId::SERIES);
        transaction.take_loaded_numbers(greatest)?;
        transaction.commit(&CommitOptions::default()).map(drop)
    }

    /// The series of a name, which is the last one or a later one.
    fn open(&mut self, database: &Database, name: &str) -> Result<&mut Open> {
        if self.is_over {
            return Err(misplaced("something of a series"));
        }
        self.finish_catalogue()?;
        let before = self.open.as_ref().map(|open| open.info.name.as_str());
        if before.is_some_and(|before| before > name) {
            return Err(misplaced(&format!("something of series {name:?}")));
        }
        if before != Some(name) {
            self.put_open();
            self.write_if_much(database)?;
            let engine = &database.engine;
            let info = engine
                .view()
                .series_info(name, engine.published())
                .map_err(|error| invalid(&error))?;
            let points = Points::new(info.definition.value_type);
            let sequences = Sequences::All(CommitSequence(0));
            self.open = Some(Open { info, points, sequences, last: None, deletes: Vec::new() });
        }
        self.open.as_mut().ok_or_else(|| misplaced("something of no series"))
    }

    /// Takes the points that came of the open series.
    fn put_points(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| !open.points.is_empty()) else { return };
        let empty = Points::new(open.points.value_type());
        let points = std::mem::replace(&mut open.points, empty);
        let none = Sequences::All(CommitSequence(0));
        let sequences = std::mem::replace(&mut open.sequences, none);
        self.loaded.add_piece(open.info.number, Piece::new(Arc::new(points), sequences));
    }

    fn put_open(&mut self) {
        self.put_points();
        let Some(open) = self.open.take() else { return };
        if !open.deletes.is_empty() {
            self.loaded.add_deletes(open.info.number, open.deletes);
        }
    }

    fn write_if_much(&mut self, database: &Database) -> Result<()> {
        if self.loaded.bytes < WRITTEN_BYTES { Ok(()) } else { self.write(database) }
    }

    fn write(&mut self, database: &Database) -> Result<()> {
        let loaded = std::mem::take(&mut self.loaded);
        if loaded.bytes == 0 {
            return Ok(());
        }
        database.engine.load_series(loaded, self.last)
    }
}

impl Catalogue {
    fn new(database: &Database) -> Self {
        let (last_name, numbers) = (String::new(), FxHashSet::default());
        Self { transaction: database.transaction(), last_name, numbers }
    }
}

/// Refuses a commit that is none of those that changed series.
fn check_commit(commit: CommitSequence, last: CommitSequence) -> Result<()> {
    if commit.0 > 0 && commit <= last {
        return Ok(());
    }
    let message = format!("commit {commit} is none of those that changed series");
    Err(Error::new(ErrorKind::Invalid, message))
}

fn misplaced(what: &str) -> Error {
    let message = format!(
        "{what} cannot stand here: a dump says the rules of series, all series, the commits that \
         changed them, what these wrote, and then documents, each in order"
    );
    Error::new(ErrorKind::Invalid, message)
}

/// What is wrong is the dump, and not a database.
fn invalid(error: &Error) -> Error {
    Error::new(ErrorKind::Invalid, error.to_string())
}
