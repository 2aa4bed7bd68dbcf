//! The indexes of a collection: how they are made, dropped and read.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use super::{Collection, CollectionSnapshot, Filter, Query, RecordPath, no_collection};
use crate::engine::catalogue::facts;
use crate::engine::indexing::Follower;
use crate::engine::options::CommitOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::index::{
    self, Declared, Index, IndexDefinition, IndexOptions, IndexRange, Maker, dropped, no_index,
    was_dropped,
};
use crate::limits::TURN_WAIT_MS;
use crate::tree::history::short;

/// Changes that an index follows at once for whoever reads it.
const FOLLOWED_AT_ONCE: u64 = 256;

/// How many records can be looked at by column in the time in which an index follows one change.
const FOLLOWING_COST: u64 = 8;

/// How far the making of an index has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexProgress {
    /// Records and revisions that were looked at.
    pub done: u64,
    /// All of them. It grows with what is committed meanwhile.
    pub total: u64,
}

/// How large an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexStats {
    /// Entries of the records that there are now.
    pub entries: u64,
    /// Bytes of its cells in segments, those of earlier revisions included.
    pub bytes: u64,
}

/// Is told how far it has come, and may stop it.
type Progress<'p> = dyn FnMut(IndexProgress) -> ControlFlow<()> + 'p;

impl Collection {
    /// Makes an index, while the collection is read and written. It has the entries of all
    /// revisions that are kept. `Conflict` if there is one of that name, or if it is unique and two
    /// records have the same values; `Invalid` if no index can be so.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, ErrorKind, IndexDefinition, KeyKind};
    ///
    /// let db = Database::memory()?;
    /// let players = db.create_collection("players", KeyKind::Text)?;
    /// players.create_index(&IndexDefinition::new("by-mail", &["mail"])?.unique())?;
    /// let how = CommitOptions::default();
    /// players.put("ann", r#"{"mail":"a@example.org"}"#, &how)?;
    /// let same = players.put("bob", r#"{"mail":"a@example.org"}"#, &how).unwrap_err();
    /// assert_eq!(same.kind(), ErrorKind::Conflict);
    /// assert_eq!(players.indexes()?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn create_index(&self, definition: &IndexDefinition) -> Result<()> {
        self.create_index_with(definition, &mut |_| ControlFlow::Continue(()))
    }

    /// The same; `progress` is told how far it has come, and may stop it: that is `Cancelled`, and
    /// there is no index then, unless another one is making it too.
    pub fn create_index_with(
        &self,
        definition: &IndexDefinition,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        definition.check()?;
        let (_, tree) = self.document.parts();
        let (declared, maker) = self.change_indexes(|indexes| {
            let declared = indexes.begin(definition)?;
            let maker = Maker::new(tree, declared.id);
            Ok((declared, maker))
        })?;
        let made = self.make_index((&definition.name, &declared), progress);
        let made = made.map_err(|error| {
            if was_dropped(&error) { dropped_while_made(&definition.name) } else { error }
        });
        if made.is_ok() || self.is_made_by_another(&definition.name, &declared, maker) {
            return Ok(());
        }
        made
    }

    /// Whether somebody else came to the end with an index that could not be made. If not, and
    /// nobody else is making it, it is not there any more.
    fn is_made_by_another(&self, name: &str, declared: &Declared, maker: Maker) -> bool {
        let ended = self.change_indexes(|indexes| {
            let is_made = indexes.get(name).is_some_and(|index| index.id == declared.id);
            let is_ours = indexes.iter().any(|(_, index)| index.id == declared.id);
            let is_given_up = !is_made && maker.is_alone();
            if is_given_up && is_ours {
                indexes.remove(name);
            }
            drop(maker);
            Ok((is_made, is_given_up))
        });
        // If this fails too, what is left is read by nobody, and gone on with or dropped later.
        let (is_made, is_given_up) = ended.unwrap_or_default();
        if is_given_up {
            self.document.tree().indexes.forget(declared.id);
        }
        is_made
    }

    /// The first path of an index that may be a slip: there are records, but none has a value there
    /// now. [`create_index`](Self::create_index) takes it, since records may come to have one.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, IndexDefinition, KeyKind};
    ///
    /// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
    /// let by_score = IndexDefinition::new("by-score", &["scrore"])?;
    /// assert_eq!(players.path_without_values(&by_score)?, None, "there are no records yet");
    /// players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
    /// let found = players.path_without_values(&by_score)?;
    /// assert_eq!(found.map(|path| path.to_string()).as_deref(), Some("scrore"));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn path_without_values<'d>(
        &self,
        definition: &'d IndexDefinition,
    ) -> Result<Option<&'d RecordPath>> {
        definition.check()?;
        if self.count()? == 0 {
            return Ok(None);
        }
        for path in &definition.paths {
            let has_values = Filter::is_missing(path.to_string()).not();
            let mut found = self.query(&Query::new().filter(has_values).limit(1))?;
            if found.next().transpose()?.is_none() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Drops an index, also one that is [unfinished](Self::unfinished_indexes): whoever is making
    /// it then ends with `NotFound`. `NotFound` if there is none of that name. Its cells go when
    /// segments are merged.
    pub fn drop_index(&self, name: &str) -> Result<()> {
        let dropped =
            self.change_indexes(|indexes| indexes.remove(name).ok_or_else(|| no_index(name)))?;
        self.document.tree().indexes.forget(dropped.id);
        Ok(())
    }

    /// The indexes, sorted by name; those that are being made left out.
    pub fn indexes(&self) -> Result<Vec<IndexDefinition>> {
        Ok(self.document.declared()?.indexes.definitions().collect())
    }

    /// The indexes that are being made, sorted by name, with those whose making was interrupted:
    /// by a crash, or as a write failed. No query reads them. [`create_index`](Self::create_index)
    /// with the same definition goes on with one, with another it replaces it, and
    /// [`drop_index`](Self::drop_index) drops it.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use duramen::{Database, IndexDefinition, KeyKind};
    ///
    /// let players = Database::memory()?.create_collection("players", KeyKind::Text)?;
    /// let by_mail = IndexDefinition::new("by-mail", &["mail"])?.unique();
    /// players.create_index_with(&by_mail, &mut |_| {
    ///     assert_eq!(players.unfinished_indexes().unwrap(), [by_mail.clone()]);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(players.unfinished_indexes()?.is_empty());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn unfinished_indexes(&self) -> Result<Vec<IndexDefinition>> {
        Ok(self.document.declared()?.indexes.unfinished().collect())
    }

    /// How large an index is; `NotFound` if there is none of that name.
    pub fn index_stats(&self, name: &str) -> Result<IndexStats> {
        let (_, tree) = self.document.parts();
        let options = self.document.declared()?;
        let declared = options.indexes.get(name).ok_or_else(|| no_index(name))?;
        let index = tree.indexes.get(tree, declared)?;
        let head = short(self.document.head_revision()?);
        self.follow(&index, head, &mut |_| ControlFlow::Continue(()))?;
        Ok(IndexStats { entries: index.followed(tree).alive, bytes: index.bytes(tree)? })
    }

    /// Refuses values that two records have now where an index is unique: a `Conflict` that names
    /// them.
    pub(crate) fn check_unique(&self) -> Result<()> {
        let (_, tree) = self.document.parts();
        let head = short(self.document.head_revision()?);
        let options = self.document.declared()?;
        let unique = options.indexes.ready().filter(|(_, declared)| declared.is_unique);
        for (name, declared) in unique.filter(|_| head > 0) {
            let index = tree.indexes.get(tree, declared)?;
            self.follow(&index, head, &mut |_| ControlFlow::Continue(()))?;
            index::check_all((tree, &index), (name, self.keys), head, &mut || Ok(()))?;
        }
        Ok(())
    }

    fn make_index(
        &self,
        (name, declared): (&str, &Declared),
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let (engine, tree) = self.document.parts();
        let index = tree.indexes.get(tree, declared)?;
        // Most of it, before anybody has to wait.
        self.follow(&index, short(self.document.head_revision()?), progress)?;
        let mut enforcing = None;
        if declared.is_unique {
            let head = {
                let _turn = tree.turn(TURN_WAIT_MS).ok_or_else(busy)?;
                // Whoever commits from here on compares with what was committed before.
                enforcing = Some(index.enforce());
                short(tree.newest())
            };
            engine.journal()?.wait_published(tree.newest_sequence()?)?;
            self.follow(&index, head, progress)?;
            if head > 0 {
                index::check_all((tree, &index), (name, self.keys), head, &mut || Ok(()))?;
            }
        }
        let is_there = self.change_indexes(|indexes| Ok(indexes.finish(name, declared.id)))?;
        if let Some(enforcing) = enforcing.filter(|_| is_there) {
            enforcing.stay();
        }
        // So that it need not be made again by the next process. Where there is no room, it is.
        let _ = engine.checkpoint();
        if is_there { Ok(()) } else { Err(dropped_while_made(name)) }
    }

    /// Has an index follow the records, with as much in memory as there may be.
    fn follow(&self, index: &Arc<Index>, until: u32, progress: &mut Progress<'_>) -> Result<()> {
        let (engine, tree) = self.document.parts();
        index.follow(tree, until, &mut || {
            engine.make_room()?;
            let followed = index.followed(tree);
            let done = followed.records + u64::from(followed.revision);
            let total = tree.records_ever() + u64::from(until);
            if progress(IndexProgress { done, total: total.max(done) }).is_continue() {
                return Ok(());
            }
            let message = "making the index was stopped: there is none, as before";
            Err(Error::new(ErrorKind::Cancelled, message))
        })
    }

    /// Changes what the catalogue says of the indexes.
    pub(crate) fn change_indexes<T>(
        &self,
        change: impl FnOnce(&mut IndexOptions) -> Result<T>,
    ) -> Result<T> {
        let (mut transaction, id) = self.document.options_transaction()?;
        let writer = transaction.catalogue()?;
        let declared = facts::options(&writer.tree, id, writer.revision)?;
        let mut declared = declared.ok_or_else(|| no_collection(self.name()))?;
        let result = change(&mut declared.indexes)?;
        transaction.declare_all(id, &declared)?;
        transaction.commit(&CommitOptions::default())?;
        Ok(result)
    }
}

impl CollectionSnapshot {
    /// The indexes that this revision can be read by, sorted by name.
    pub fn indexes(&self) -> Result<Vec<IndexDefinition>> {
        with_indexes(|| {
            let options = self.document.declared()?;
            let usable = self.usable(&options.indexes)?;
            Ok(usable.into_iter().map(|(name, declared)| declared.definition(name)).collect())
        })
    }

    /// The same of the indexes that are declared; [`was_dropped`] says of the error if one of them
    /// is not any more.
    pub(super) fn usable<'o>(
        &self,
        indexes: &'o IndexOptions,
    ) -> Result<Vec<(&'o str, &'o Declared)>> {
        let Some(snapshot) = &self.snapshot else { return Ok(Vec::new()) };
        let (tree, revision) = snapshot.place();
        let mut usable = Vec::new();
        for (name, declared) in indexes.ready() {
            // Of revisions that are kept for their tags it may have no entries.
            if tree.indexes.get(tree, declared)?.first(tree) <= revision {
                usable.push((name, declared));
            }
        }
        Ok(usable)
    }

    /// Who can have an index follow beside the caller, if it has so much to follow before this
    /// revision can be read by it that looking at all records costs less; nobody can where the
    /// database was opened for reading. `NotFound` as for its range.
    pub(crate) fn left_behind(&self, name: &str) -> Result<Option<Follower>> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        let (engine, tree) = self.document.parts();
        let options = self.document.declared()?;
        let declared = options.indexes.get(name).ok_or_else(dropped)?;
        let index = tree.indexes.get(tree, declared)?;
        let is_far = |most| index.is_far_behind(tree, short(snapshot.revision), most);
        let is_far = is_far(FOLLOWED_AT_ONCE)?
            && is_far(FOLLOWED_AT_ONCE.max(self.count()? / FOLLOWING_COST))?;
        Ok(engine.follower(&index).filter(|_| is_far))
    }

    /// The keys of an index between two bounds, with the ordinals of their records. `NotFound` if
    /// it was dropped: [`was_dropped`] says so of the error. Once it is there it gives all of them,
    /// also if the index is dropped before they are read.
    pub(crate) fn index_range(
        &self,
        name: &str,
        (low, high): (Bound<Vec<u8>>, Bound<Vec<u8>>),
        is_reverse: bool,
    ) -> Result<Option<IndexRange>> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        let options = self.document.declared()?;
        let declared = options.indexes.get(name).ok_or_else(dropped)?;
        let (engine, tree) = self.document.parts();
        let index = tree.indexes.get(tree, declared)?;
        let revision = short(snapshot.revision);
        index.follow(tree, revision, &mut || {
            // What cannot be written stays in memory: reads go on.
            engine.work_if_due();
            Ok(())
        })?;
        let of = (Arc::clone(tree), index);
        IndexRange::new(of, revision, (low, high), is_reverse).pinned().map(Some)
    }
}

#[cold]
fn dropped_while_made(name: &str) -> Error {
    let message = format!("the index {name:?} was dropped while it was made: there is none");
    Error::new(ErrorKind::NotFound, message)
}

/// Does what is planned with the indexes there are; again, where one of them is dropped meanwhile.
pub(super) fn with_indexes<T>(mut planned: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match planned() {
            Err(error) if was_dropped(&error) => {}
            done => return done,
        }
    }
}

fn busy() -> Error {
    let message = "another transaction is writing the collection: end it, then retry";
    Error::new(ErrorKind::Busy, message)
}

#[cfg(test)]
mod tests;
