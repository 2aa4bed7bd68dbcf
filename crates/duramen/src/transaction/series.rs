//! Series in a transaction: making, changing, renaming and deleting them, and their points.
//!
//! The turn of the documents' catalogue comes before that of the series', because the two share
//! their names.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Aim, Transaction};
use crate::engine::catalogue::{self, check_name};
use crate::engine::{CATALOGUE, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Feature;
use crate::series::changes::SeriesChanges;
use crate::series::span::TimeSpan;
use crate::series::{
    self, Points, Rollup, SeriesDefinition, SeriesInfo, SeriesRule, series_number, tags,
};
use crate::tree::Tree;
use crate::tree::cell_key::TreeId;
use crate::tree::writer::Writer;

impl Transaction {
    /// Makes a series; `Conflict` if there is a series or a document of that name, `Invalid` if it
    /// cannot be defined so. What is said neither of `keep` nor of `rollups` is told by the
    /// [rule](Transaction::set_series_rule) that wins for its name.
    pub fn create_series(&mut self, name: &str, definition: &SeriesDefinition) -> Result<()> {
        self.create_series_all(&[(name, definition.clone())])
    }

    /// Makes any number of series. The errors of [`Transaction::create_series`]; then none of them
    /// is made.
    pub fn create_series_all<N: AsRef<str>>(
        &mut self,
        series: &[(N, SeriesDefinition)],
    ) -> Result<()> {
        for (name, definition) in series {
            check_name(name.as_ref())?;
            definition.check()?;
        }
        let (names, revision) = {
            let catalogue = self.catalogue()?;
            (Arc::clone(&catalogue.tree), catalogue.revision)
        };
        for (name, _) in series {
            let name = name.as_ref();
            if let Some(found) = catalogue::find(&names, name, revision)?
                && !found.is_free()
            {
                self.wait_published(&names)?;
                return Err(taken("document", name));
            }
        }
        let known = Arc::clone(&self.take(TreeId::SERIES)?.tree);
        let staged = known.data.read().staged_revision();
        for (name, _) in series {
            if tags::has(&known, name.as_ref(), staged)? {
                self.wait_published(&known)?;
                return Err(taken("series", name.as_ref()));
            }
        }
        self.aim = Aim::Adding;
        let made = self.make_series(series);
        self.note(made)
    }

    fn make_series<N: AsRef<str>>(&mut self, series: &[(N, SeriesDefinition)]) -> Result<()> {
        let (engine, now) = (Arc::clone(&self.engine), self.engine.now());
        let writer = self.take(TreeId::SERIES)?;
        let first = writer.take_series_numbers(series.len() as u64)?;
        let rules = tags::rules(&writer.tree, writer.revision)?;
        for (own, (name, definition)) in (first..).zip(series) {
            let name = name.as_ref();
            if tags::has(&writer.tree, name, writer.revision)? {
                return Err(taken("series", name));
            }
            let number = series_number(own).ok_or_else(|| tags::no_series(name))?;
            let (name, mut definition) = (name.to_owned(), definition.clone());
            if !definition.has_tiers()
                && let Some(rule) = SeriesRule::winner(&rules, &name)
            {
                rule.define(&mut definition, &[]);
            }
            definition.number_rollups(None, now);
            ready_for(&engine, &definition)?;
            writer.put_series(&SeriesInfo {
                name,
                definition,
                created: now,
                changed: now,
                number,
            })?;
        }
        Ok(())
    }

    /// Takes over a series of a dump, under the number that it has there.
    pub(crate) fn load_series(&mut self, info: &SeriesInfo) -> Result<()> {
        check_name(&info.name)?;
        info.definition.check()?;
        ready_for(&self.engine, &info.definition)?;
        self.aim = Aim::Loading;
        // Names are one namespace, whose turn comes first.
        self.catalogue()?;
        let writer = self.take(TreeId::SERIES)?;
        // Rows are not in a dump: they are made of the points that are there.
        let mut info = info.clone();
        info.definition.rollups.iter_mut().for_each(Rollup::begin_anew);
        let put = writer.take_series_numbers(0).and_then(|_| writer.put_series(&info));
        self.note(put)
    }

    /// Takes the name away that a series of a dump had before.
    pub(crate) fn unname_loaded_series(&mut self, info: &SeriesInfo) -> Result<()> {
        // Names are one namespace, whose turn comes first.
        self.catalogue()?;
        let removed = self.take(TreeId::SERIES)?.remove_series(info);
        self.note(removed)
    }

    /// Has the numbers of series up to one not be given again.
    pub(crate) fn take_loaded_numbers(&mut self, last: TreeId) -> Result<()> {
        let taken = self.take(TreeId::SERIES)?.take_series_numbers(last.0 - TreeId::SERIES.0);
        self.note(taken.map(drop))
    }

    /// Says something else of a series. Its type stays what it is: another one is `Invalid`.
    pub fn change_series(&mut self, name: &str, definition: &SeriesDefinition) -> Result<()> {
        definition.check()?;
        let before = self.write_series(name)?;
        let (is, wanted) = (before.definition.value_type, definition.value_type);
        if is != wanted {
            let message = format!(
                "series {name:?} has values of type {is}, which stays: make another one for \
                 {wanted}"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let changed = self.engine.now();
        let mut definition = definition.clone();
        let clock = self.engine.view().series.clock(before.number, changed);
        definition.number_rollups(Some((&before.definition, clock)), changed);
        ready_for(&self.engine, &definition)?;
        let info = SeriesInfo { definition, changed, ..before };
        self.aim = Aim::Adding;
        let put = self.take(TreeId::SERIES)?.put_series(&info);
        self.note(put)
    }

    /// Gives a series another name; its points stay with it. `Conflict` if there is a series or a
    /// document of that name.
    pub fn rename_series(&mut self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let (names, revision) = {
            let catalogue = self.catalogue()?;
            (Arc::clone(&catalogue.tree), catalogue.revision)
        };
        if catalogue::find(&names, to, revision)?.is_some_and(|found| !found.is_free()) {
            self.wait_published(&names)?;
            return Err(taken("document", to));
        }
        let before = self.write_series(from)?;
        let writer = self.take(TreeId::SERIES)?;
        if tags::has(&writer.tree, to, writer.revision)? {
            let tree = Arc::clone(&writer.tree);
            self.wait_published(&tree)?;
            if from == to {
                let message = format!("the series {to:?} has that name already: use another one");
                return Err(Error::new(ErrorKind::Conflict, message));
            }
            return Err(taken("series", to));
        }
        self.aim = Aim::Adding;
        let changed = self.engine.now();
        let info = SeriesInfo { name: to.to_owned(), changed, ..before.clone() };
        let writer = self.take(TreeId::SERIES)?;
        let renamed = writer.remove_series(&before).and_then(|()| writer.put_series(&info));
        self.written.rename(&info);
        self.note(renamed)
    }

    /// Deletes a series: it is not there from this commit on, and its name is free. Snapshots of
    /// the database from before still read it, as far as its points are kept.
    pub fn delete_series(&mut self, name: &str) -> Result<()> {
        let before = self.write_series(name)?;
        self.aim.let_go();
        let gone = self.engine.gone_series();
        let writer = self.take(TreeId::SERIES)?;
        let mut removed = writer.remove_series(&before);
        removed = removed.and_then(|()| forget(writer, &gone));
        if before.definition.has_tiers() {
            removed = removed.and_then(|()| writer.put_dropped_series(&before));
        }
        self.written.forget(before.number);
        self.note(removed)
    }

    /// Deletes a series for good, together with all those that had this name last and were deleted
    /// before: nobody reads their points any more, as of no commit, and merges of segments let them
    /// go. How many series that were.
    ///
    /// ```
    /// # use duramen::{CommitOptions, Database, Micros, SeriesDefinition, ValueType};
    /// # let db = Database::memory()?;
    /// let level = db.create_series("tank/level", &SeriesDefinition::new(ValueType::I64))?;
    /// level.append(Micros(1), 10, &CommitOptions::default())?;
    /// let before = db.snapshot();
    /// let mut transaction = db.transaction();
    /// assert_eq!(transaction.purge_series("tank/level")?, 1);
    /// transaction.commit(&CommitOptions::default())?;
    /// assert!(before.series("tank/level")?.range(..)?.read()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no series of this name, and none that was deleted has points yet.
    pub fn purge_series(&mut self, name: &str) -> Result<u64> {
        check_name(name)?;
        self.engine.journal()?;
        let writer = self.take(TreeId::SERIES)?;
        let (tree, revision) = (Arc::clone(&writer.tree), writer.revision);
        let live = tags::find(&tree, name, revision)?;
        let mut purged = Vec::new();
        for (number, last) in tags::last_names(&tree, revision)? {
            if last != name {
                continue;
            }
            let is_live = live.as_ref().is_some_and(|info| info.number == number);
            let known = tags::tiered(&tree, number, revision)?;
            let is_purged = known.is_some_and(|info| info.is_purged());
            if is_live || !is_purged && self.engine.view().has_any_of(number)? {
                purged.push(number);
            }
        }
        if purged.is_empty() {
            self.wait_published(&tree)?;
            return Err(self.no_series(name));
        }
        self.aim.let_go();
        let now = self.engine.now();
        let gone = self.engine.gone_series();
        let writer = self.take(TreeId::SERIES)?;
        let mut done = forget(writer, &gone);
        done = done.and_then(|()| live.map_or(Ok(()), |info| writer.remove_series(&info)));
        for number in &purged {
            done = done.and_then(|()| writer.put_dropped_series(&SeriesInfo::purged(*number, now)));
        }
        self.note(done)?;
        for series in &purged {
            self.written.forget(*series);
        }
        Ok(purged.len() as u64)
    }

    /// Appends points to a series, in any order of their times: where there is a point of that
    /// time, the new one takes its place. `NotFound` if there is no such series, `Invalid` if
    /// they are of another type. Those that are older than the series keeps them are counted in
    /// [`Committed::unkept`](crate::Committed::unkept). If another commit deletes the series, or
    /// gives it another name, before this one is made, that is a `Conflict` then.
    pub fn append_points(&mut self, name: &str, points: &Points) -> Result<()> {
        let (info, revision) = self.find_series(name)?;
        series::check_type(&info, points)?;
        self.aim = Aim::Adding;
        self.points.append(info.number, Cow::Borrowed(points), info.definition.lossy)?;
        self.written.note(info, revision);
        Ok(())
    }

    /// Deletes the points of a span of time; see [`Series::delete`](crate::Series::delete).
    pub fn delete_points(
        &mut self,
        name: &str,
        span: impl std::ops::RangeBounds<crate::Micros>,
    ) -> Result<()> {
        let (info, revision) = self.find_series(name)?;
        if let Some(span) = TimeSpan::of(&span) {
            self.aim = Aim::Adding;
            self.points.delete(info.number, span);
            self.written.note(info, revision);
        }
        Ok(())
    }

    /// What the catalogue says of a series, as this transaction has it.
    pub fn series_info(&mut self, name: &str) -> Result<SeriesInfo> {
        Ok(self.find_series(name)?.0)
    }

    /// The same, and the revision of the catalogue that says it.
    fn find_series(&mut self, name: &str) -> Result<(SeriesInfo, u32)> {
        check_name(name)?;
        self.engine.journal()?;
        self.note_series();
        let (tags, revision) = self.series_tags_now()?;
        let found = tags::find(&tags, name, revision)?.ok_or_else(|| self.no_series(name))?;
        Ok((found, revision))
    }

    /// Has the database ready for a commit that does something to series; whether it changes their
    /// catalogue.
    pub(super) fn prepare_series(&self, points: &SeriesChanges) -> Result<bool> {
        let changes_catalogue = self.writers.contains_key(&TreeId::SERIES);
        if changes_catalogue {
            self.engine.enable(Feature::Series)?;
        }
        if changes_catalogue || !points.is_empty() {
            // Points that were staged before come before this commit.
            self.engine.seal()?;
        }
        Ok(changes_catalogue)
    }

    pub(super) fn series_tags_now(&self) -> Result<(Arc<Tree>, u32)> {
        match self.writers.get(&TreeId::SERIES) {
            Some(writer) => Ok((Arc::clone(&writer.tree), writer.revision)),
            None => self.engine.view().series_tags(self.seen()),
        }
    }

    /// What the catalogue says of a series that is about to be changed there.
    fn write_series(&mut self, name: &str) -> Result<SeriesInfo> {
        check_name(name)?;
        self.engine.journal()?;
        let writer = self.take(TreeId::SERIES)?;
        let (tree, revision) = (Arc::clone(&writer.tree), writer.revision);
        if let Some(info) = tags::find(&tree, name, revision)? {
            return Ok(info);
        }
        self.wait_published(&tree)?;
        Err(self.no_series(name))
    }

    /// Why there is no series of a name: a document may have it.
    fn no_series(&self, name: &str) -> Error {
        let told = self
            .names_now()
            .and_then(|(names, revision)| catalogue::missing_series(&names, name, revision));
        told.unwrap_or_else(|_| tags::no_series(name))
    }

    /// Refuses a name for a document that a series has. The catalogue's turn is taken.
    pub(super) fn check_no_series(&self, name: &str) -> Result<()> {
        assert!(self.writers.contains_key(&CATALOGUE), "the names are in this transaction's turn");
        let tags = self.engine.view().tree(TreeId::SERIES)?;
        // What another commit has staged counts too, though nobody sees it yet.
        let staged = self.writers.get(&TreeId::SERIES).map(|writer| writer.revision);
        let revision = staged.unwrap_or_else(|| tags::newest(&tags));
        if !tags::has(&tags, name, revision)? {
            return Ok(());
        }
        self.wait_published(&tags)?;
        Err(taken("series", name))
    }
}

/// Has the catalogue say nothing of series of which nothing is left.
fn forget(writer: &Writer, gone: &[TreeId]) -> Result<()> {
    gone.iter().try_for_each(|series| writer.forget_dropped_series(*series))
}

/// Has the database say that it has what a definition brings.
pub(super) fn ready_for(engine: &Engine, definition: &SeriesDefinition) -> Result<()> {
    if definition.rollups.iter().any(Rollup::has_short_slices) {
        engine.enable(Feature::ShortSlices)?;
    }
    Ok(())
}

fn taken(what: &str, name: &str) -> Error {
    let message = format!("there is a {what} {name:?} already: use another name");
    Error::new(ErrorKind::Conflict, message)
}
