//! The series of a dump: their catalogue as it was first, then the commits that changed it and what
//! was written to them, with the sequences that the commits had.
//!
//! Invariant: what one commit deleted of a series is written together, behind its points, so that
//! rollups are made again where it hides any.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::DumpedPoints;
use crate::database::Database;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{DUMPED_COMMIT_MAX, LOADED_SERIES_BYTES};
use crate::revision::{CommitSequence, Micros};
use crate::series::commits::CommitTime;
use crate::series::past::{self, Past};
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
    /// Names that series have by now.
    names: FxHashSet<String>,
    /// What later commits changed.
    changes: BTreeMap<CommitSequence, CatalogueChange>,
}

/// What one commit changed of the catalogue.
#[derive(Debug, Default)]
struct CatalogueChange {
    time: Micros,
    /// What series were, unless they were made in it, and what they are.
    series: Vec<(Option<SeriesInfo>, SeriesInfo)>,
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
        let past = past::from_json(&info, record.as_bytes()).map_err(|error| invalid(&error))?;
        let Some(past) = past else {
            return Err(misplaced(&format!("what series {name:?} is told to have been")));
        };
        catalogue.define(info, past)
    }

    pub(crate) fn push_commits(
        &mut self,
        database: &Database,
        commits: &[(CommitSequence, Micros)],
    ) -> Result<()> {
        if self.is_over || self.open.is_some() {
            return Err(misplaced("a commit of series"));
        }
        self.finish_catalogue(database)?;
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
        self.finish_catalogue(database)?;
        self.put_open();
        self.write(database)
    }

    fn finish_catalogue(&mut self, database: &Database) -> Result<()> {
        let Some(Catalogue { mut transaction, numbers, mut names, changes, .. }) =
            self.catalogue.take()
        else {
            return Ok(());
        };
        let greatest = numbers.iter().max().copied().unwrap_or(TreeId::SERIES);
        transaction.take_loaded_numbers(greatest)?;
        // What is first is before all that changed it, also for who looks it up by a time.
        let first = changes.values().next().map(|change| Micros(change.time.0.saturating_sub(1)));
        transaction.commit(&at_time(database, first))?;
        for (sequence, change) in changes {
            change.load(database, sequence, &mut names)?;
        }
        Ok(())
    }

    /// The series of a name, which is the last one or a later one.
    fn open(&mut self, database: &Database, name: &str) -> Result<&mut Open> {
        if self.is_over {
            return Err(misplaced("something of a series"));
        }
        self.finish_catalogue(database)?;
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
        Self {
            transaction: database.transaction(),
            last_name: String::new(),
            numbers: FxHashSet::default(),
            names: FxHashSet::default(),
            changes: BTreeMap::new(),
        }
    }

    /// Takes a series as it was first, and notes what it became.
    fn define(&mut self, info: SeriesInfo, Past { since, states }: Past) -> Result<()> {
        let untils: Vec<CommitTime> = states.iter().map(|(_, until)| *until).collect();
        let mut states = states.into_iter().map(|(info, _)| info).chain([info]);
        let Some(mut before) = states.next() else { return Ok(()) };
        match since {
            Some(since) => self.note(since, (None, before.clone()))?,
            None if !self.names.insert(before.name.clone()) => return Err(twice(&before.name)),
            None => self.transaction.load_series(&before)?,
        }
        for (until, info) in untils.into_iter().zip(states) {
            self.note(until, (Some(before), info.clone()))?;
            before = info;
        }
        Ok(())
    }

    fn note(
        &mut self,
        (sequence, time): CommitTime,
        series: (Option<SeriesInfo>, SeriesInfo),
    ) -> Result<()> {
        // The catalogue as it was first is a commit as well.
        if !(2..=DUMPED_COMMIT_MAX).contains(&sequence.0) {
            return Err(misplaced(&format!("a change of a series in commit {sequence}")));
        }
        let change = self.changes.entry(sequence).or_default();
        change.time = time;
        change.series.push(series);
        Ok(())
    }
}

impl CatalogueChange {
    /// Takes it over as the commit that it was.
    fn load(
        self,
        database: &Database,
        sequence: CommitSequence,
        names: &mut FxHashSet<String>,
    ) -> Result<()> {
        let engine = &database.engine;
        if sequence > engine.published().next() {
            let before = CommitSequence(sequence.0 - 1);
            engine.load_series(Loaded::default(), (before, Micros(0)))?;
        }
        let mut transaction = database.transaction();
        let renamed = |(before, now): &&(Option<SeriesInfo>, SeriesInfo)| {
            before.as_ref().is_none_or(|before| before.name != now.name)
        };
        for (before, _) in self.series.iter().filter(renamed) {
            let Some(before) = before else { continue };
            names.remove(&before.name);
            transaction.unname_loaded_series(before)?;
        }
        for (_, now) in self.series.iter().filter(renamed) {
            if !names.insert(now.name.clone()) {
                return Err(twice(&now.name));
            }
        }
        for (_, now) in &self.series {
            transaction.load_series(now)?;
        }
        transaction.commit(&at_time(database, Some(self.time))).map(drop)
    }
}

/// A commit of a time, unless that is still to come by the clock here.
fn at_time(database: &Database, time: Option<Micros>) -> CommitOptions {
    let timestamp = time.filter(|time| *time <= database.engine.now());
    CommitOptions { timestamp, ..CommitOptions::default() }
}

fn twice(name: &str) -> Error {
    misplaced(&format!("a second series of the name {name:?} at one time"))
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
