//! Change feeds: what commits did to documents and records, in the order of the commits.
//!
//! Invariants:
//! - a feed delivers published commits only, in their order, each once;
//! - it keeps no more than its place: what changed is read again from the rows and states of the
//!   trees, in memory or in segments, so a slow reader costs the engine nothing and loses nothing;
//! - what it cannot know any more, because retention dropped it, is an error and never a gap.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::collection::{Key, KeyKind};
use crate::database::Database;
use crate::engine::Engine;
use crate::engine::recent::TreeChange;
use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::revision::{CommitSequence, Micros};
use crate::tree::cell_key::TreeId;
use crate::tree::rows::Row;

mod batch;
mod event;
mod find;
mod position;
mod records;
mod token;

pub use batch::Batch;
pub use event::{Event, Operation};
pub use token::ResumeToken;

use self::position::{CommitPlace, Position};

/// What to watch, and from where on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Only these documents and collections, which have to be there; all if there are none, those
    /// that are made later too. A feed stays with a document that gets another name.
    pub documents: Vec<String>,
    /// Only records with these keys. Documents that are no collections have none.
    pub keys: KeyFilter,
    /// Only this value: in each record of a collection, or in a document. Events then tell what
    /// happened to it.
    pub path: Option<JsonPointer>,
    /// Whether events have the values of documents before and after. Those of records they always
    /// have.
    pub values: bool,
    /// Where to begin.
    pub from: WatchFrom,
}

/// Which records a feed tells of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyFilter {
    /// All of them.
    #[default]
    All,
    /// The one with this key, in collections with keys of its type.
    Key(Key),
    /// Those whose keys begin so, in collections with text keys.
    Prefix(String),
}

/// Where a feed begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WatchFrom {
    /// With the next commit.
    #[default]
    Now,
    /// With the first commit. A document that dropped old revisions is new in the first that it
    /// kept, of which the events [say so](Event::is_first_kept).
    Beginning,
    /// Where a feed goes on that was read up to there, also in the middle of a commit.
    Token(ResumeToken),
    /// After a commit of this database, whichever has this number now.
    After(CommitSequence),
    /// With the first commit at this time or after it. Of a document that dropped old revisions
    /// that may be the first that it kept, in which it is new, as at the beginning. The time may be
    /// still to come.
    Time(Micros),
}

/// What the commits of a database do to its documents, read when the reader wants it.
///
/// A feed is a place in the history and nothing else: many may be read at once, at any pace, and
/// one that was closed goes on from [`Feed::token`], or the [token of an event](Event::token), when
/// the database is opened again. Renaming, tags, options and purges are no events.
///
/// ```
/// use std::time::Duration;
/// use duramen::{CommitOptions, Database, KeyKind, Operation, WatchFrom, WatchOptions};
///
/// let db = Database::memory()?;
/// let players = db.create_collection("players", KeyKind::Text)?;
/// let mut feed = db.watch(&WatchOptions::default())?;
/// players.put("ann", r#"{"score":3}"#, &CommitOptions::default())?;
///
/// let batch = feed.next(Duration::from_secs(1))?.expect("a commit");
/// let events = batch.collect::<duramen::Result<Vec<_>>>()?;
/// assert_eq!(events[0].operation, Operation::Insert);
/// assert_eq!(events[0].new.as_deref(), Some(r#"{"score":3}"#));
/// assert!(feed.try_next()?.is_none());
/// let from = WatchFrom::Token(events[0].token);
/// let mut later = db.watch(&WatchOptions { from, ..WatchOptions::default() })?;
/// assert!(later.try_next()?.is_none());
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug)]
pub struct Feed {
    engine: Arc<Engine>,
    filter: Arc<Filter>,
    /// What is before this was delivered, or is nothing that is watched.
    position: Position,
    /// What was done after that, up to `known`.
    pending: VecDeque<TreeChange>,
    known: Position,
}

/// What a feed tells of.
#[derive(Debug)]
struct Filter {
    /// None for all.
    trees: Option<Vec<TreeId>>,
    keys: KeyFilter,
    path: Option<JsonPointer>,
    values: bool,
    /// Of what was dropped of the history up to this commit nothing is expected.
    begins: CommitSequence,
    /// What was committed before this is passed over: it may have been to come when the feed began.
    since: Option<Micros>,
}

impl Database {
    /// A feed of what commits do to documents and records.
    ///
    /// Events are of published commits. What a commit of [`Durability`](crate::Durability)
    /// `Interval` did may be delivered before it is on the device, and is lost with the power then.
    /// A database opened for reading is [refreshed](Database::refresh) by its feeds.
    ///
    /// # Errors
    /// `NotFound` if a document that is named is not there, or the feed is to go on after a commit
    /// that the database does not have, or not any more. `Invalid` for a prefix of keys where one
    /// collection is named and its keys are no strings.
    pub fn watch(&self, options: &WatchOptions) -> Result<Feed> {
        let engine = Arc::clone(&self.engine);
        let published = engine.published();
        let named = |name: &String| engine.document(name).map(|tree| tree.id());
        // In the order in which they were made, and each once.
        let trees = options.documents.iter().map(named).collect::<Result<BTreeSet<_>>>()?;
        let trees: Vec<_> = trees.into_iter().collect();
        if let (KeyFilter::Prefix(_), [name]) = (&options.keys, options.documents.as_slice()) {
            self.check_prefixes(name)?;
        }
        let trees = (!trees.is_empty()).then_some(trees);
        let WatchOptions { keys, path, values, .. } = options.clone();
        let (begins, since) = (CommitSequence(0), None);
        let mut filter = Filter { trees, keys, path, values, begins, since };
        let position = match options.from {
            WatchFrom::Now => Position::after(published),
            WatchFrom::Beginning => {
                filter.begins = published;
                Position::after(CommitSequence(0))
            }
            WatchFrom::Token(token) => filter.go_on(&engine, token.resolve(&engine)?)?,
            WatchFrom::After(sequence) if sequence > published => {
                return Err(not_there(sequence, published));
            }
            WatchFrom::After(sequence) => Position::after(sequence),
            WatchFrom::Time(time) => {
                (filter.begins, filter.since) = (published, Some(time));
                Position::after(find::before_time(&engine, &filter, time, published)?)
            }
        };
        let (filter, pending) = (Arc::new(filter), VecDeque::new());
        Ok(Feed { engine, filter, position, pending, known: position })
    }

    /// Refuses a collection of which no key has a prefix.
    fn check_prefixes(&self, name: &str) -> Result<()> {
        let keys = self.document(name)?.options()?.collection;
        keys.map_or(Ok(()), KeyKind::check_prefixes)
    }
}

impl Filter {
    /// Whether what was before a row, the first of its tree, was to be passed over if it had not
    /// been dropped.
    fn expects_nothing_before(&self, first: &Row) -> bool {
        first.sequence <= self.begins || self.is_early(first)
    }

    /// Whether a row is of a commit before the time that the feed begins at.
    fn is_early(&self, row: &Row) -> bool {
        self.since.is_some_and(|since| row.committed < since)
    }

    /// The position to go on at behind that of a token.
    fn go_on(&mut self, engine: &Engine, token: ResumeToken) -> Result<Position> {
        self.begins = token.begins();
        let position = token.position();
        let Some(place) = position.place else { return Ok(position) };
        // Behind the one record that is watched there is nothing: what was before is not needed.
        let is_only = self.is_only(engine, place)?;
        let record = place.record.filter(|_| !is_only);
        Ok(Position { place: Some(CommitPlace { record, ..place }), ..position })
    }

    /// Whether a place is behind the only record that is watched of its tree.
    fn is_only(&self, engine: &Engine, place: CommitPlace) -> Result<bool> {
        let (KeyFilter::Key(key), Some(trees)) = (&self.keys, &self.trees) else {
            return Ok(false);
        };
        if place.record.is_none() || !trees.contains(&place.tree) {
            return Ok(false);
        }
        let tree = engine.view().tree(place.tree)?;
        // No collection has a key under the text that those of another type have for it.
        let kinds = [KeyKind::Text, KeyKind::I64, KeyKind::U64, KeyKind::Uuid];
        for text in kinds.iter().filter_map(|kind| kind.text_of(key).ok()) {
            let record = tree.record_ever(text.as_bytes())?;
            if record.is_some_and(|record| Some(record.ordinal().0) == place.record) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn not_there(wanted: CommitSequence, last: CommitSequence) -> Error {
    let message = format!(
        "there is no commit {wanted} to go on after, the last one is {last}: it may be of another \
         database, or have been lost with the power before it was durable; read the documents \
         again and watch from now on"
    );
    Error::new(ErrorKind::NotFound, message)
}

impl Feed {
    /// The next commit that did something that is watched, waited for at most so long; none if
    /// there was none.
    ///
    /// # Errors
    /// `NotFound` if what the next commit did was dropped by the retention of a document; it tells
    /// from where on it is there. `Poisoned` if a write failed, so that there will be no more
    /// commits until the database is opened again. The feed stays where it was.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Batch>> {
        let clock = Arc::clone(self.engine.clock());
        let begin = clock.now();
        loop {
            if let Some(batch) = self.try_next()? {
                return Ok(Some(batch));
            }
            let waited = clock.now().0.saturating_sub(begin.0);
            let waited = Duration::from_micros(u64::try_from(waited).unwrap_or_default());
            if !self.engine.wait_after(self.position.sequence, timeout.saturating_sub(waited))? {
                return Ok(None);
            }
        }
    }

    /// The next commit that did something that is watched, if there is one now. A database opened
    /// for reading is not refreshed by this.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn try_next(&mut self) -> Result<Option<Batch>> {
        loop {
            let Some(sequence) = self.pending.front().map(|change| change.sequence) else {
                self.position = self.known;
                if !self.look()? {
                    return Ok(None);
                }
                continue;
            };
            let commit = self.pending.iter().take_while(|change| change.sequence == sequence);
            let changes: Vec<TreeChange> = commit.copied().collect();
            let count = changes.len();
            let filter = Arc::clone(&self.filter);
            let batch = Batch::new(&self.engine, filter, self.position, (sequence, changes))?;
            self.pending.drain(..count);
            self.position = Position::after(sequence);
            if batch.is_some() {
                return Ok(batch);
            }
        }
    }

    /// Looks up what the next published commits did; whether there were any.
    fn look(&mut self) -> Result<bool> {
        let published = self.engine.published();
        if self.position.whole() >= published {
            return Ok(false);
        }
        let (changes, known) = find::changes(&self.engine, &self.filter, self.position, published)?;
        (self.pending, self.known) = (changes.into(), Position::after(known));
        Ok(true)
    }

    /// The commit that the feed has come to: what it did was delivered, as was what is watched of
    /// all before it.
    pub fn position(&self) -> CommitSequence {
        self.position.whole()
    }

    /// Where another feed goes on after what this one has delivered: behind the whole of the last
    /// commit, of which the [token of an event](Event::token) is a part. It does not say that a
    /// [time](WatchFrom::Time) is still to come.
    pub fn token(&self) -> ResumeToken {
        ResumeToken::new(&self.engine, self.position, self.filter.begins)
    }
}

#[cfg(test)]
mod tests;
