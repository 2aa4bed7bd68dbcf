//! The revisions of a document, newest first.

use std::str::FromStr;
use std::sync::Arc;

use jiff::civil::{DateTime, Time, date};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use jiff::{SignedDuration, Zoned};

use crate::content_hash::ContentHash;
use crate::error::{Error, ErrorKind, Result};
use crate::node::NodeId;
use crate::revision::{CommitSequence, Micros, Revision};
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::tree::Tree;
use crate::tree::changes::{ChangeSearch, Scope};
use crate::tree::data::node;
use crate::tree::history::short;
use crate::tree::records::version_path;
use crate::tree::schema::ROOT;

/// Which revisions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQuery {
    /// At most so many.
    pub limit: Option<usize>,
    /// Only revisions before this one: where the next page goes on.
    pub before: Option<Revision>,
    /// Only from here on.
    pub from: Option<Moment>,
    /// Only up to here.
    pub to: Option<Moment>,
    /// Only those of this author.
    pub author: Option<String>,
    /// Whether entries have the hash of the document: each costs a read of it.
    pub hash: bool,
    /// Only those that changed this value or anything below it. A pointer names what is there at
    /// the newest revision up to `to`; an id names a value that any revision has. A tagged revision
    /// from before the history begins, and the one that it begins with, are listed if the value is
    /// not as in the one kept before; the oldest one if it is there.
    pub path: Option<Target>,
}

/// A point in a document's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A revision.
    Revision(Revision),
    /// A time.
    Time(Micros),
}

/// Digits alone are a revision. A time is in RFC 3339 form; it is UTC if it names no zone, and
/// 00:00 if it is a date alone. A zone in brackets (RFC 9557) says the offset, or has to agree with
/// it. A leap second, 23:59:60 UTC at the end of a month, is the second behind it, which has no
/// other name in such a count. Years are those from -9999 to 9999; a time in the last or the first
/// day of these that a zone in brackets says is refused.
///
/// ```
/// use duramen::{Micros, Moment, Revision};
///
/// assert_eq!("7".parse::<Moment>()?, Moment::Revision(Revision(7)));
/// assert_eq!("1970-01-02".parse::<Moment>()?, Moment::Time(Micros(86_400_000_000)));
/// assert_eq!("2015us".parse::<Moment>()?, Moment::Time(Micros(2_015)));
/// assert_eq!("-7 us".parse::<Moment>()?, Moment::Time(Micros(-7)));
/// # Ok::<(), duramen::Error>(())
/// ```
impl FromStr for Moment {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // As times beyond all calendars are printed, or without the blank.
        let count = text.strip_suffix("us").map(|count| count.strip_suffix(' ').unwrap_or(count));
        if let Some(Ok(count)) = count.map(str::parse) {
            return Ok(Self::Time(Micros(count)));
        }
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Revision(Revision(text.parse().unwrap_or(u64::MAX))));
        }
        let time = micros_of(text).map(|micros| Self::Time(Micros(micros)));
        time.ok_or_else(|| {
            let message = format!(
                "{text:?} is neither a revision, such as 7, nor a time, such as 2024-05-01 or \
                 2024-05-01T12:30:00Z"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

/// The local time from which times are counted.
const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

/// The time that a text names, in whole microseconds, rounded down: also before 1970, where cutting
/// digits off would round up.
fn micros_of(text: &str) -> Option<i64> {
    let nanos = if text.contains('[') {
        // A local time alone would pass over the zone that is named in brackets.
        text.parse().ok().map(|zoned: Zoned| zoned.timestamp().as_nanosecond())?
    } else {
        // Timestamps end some hours before years do, so that each has a local time in every zone.
        let pieces = Pieces::parse(text).ok()?;
        let local = pieces.date().to_datetime(pieces.time().unwrap_or(Time::midnight()));
        let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC).duration_since(Offset::UTC);
        local.duration_since(EPOCH).as_nanos() - offset.as_nanos()
    };
    let micros = i64::try_from(nanos.div_euclid(1_000)).ok()?;
    match is_leap_second(text) {
        true if is_last_of_month(micros) => Some(micros + 1_000_000),
        true => None,
        false => Some(micros),
    }
}

/// Whether a time is in the last second of a month, UTC: no leap second is behind any other.
fn is_last_of_month(micros: i64) -> bool {
    let local = EPOCH.checked_add(SignedDuration::from_secs(micros.div_euclid(1_000_000)));
    local.is_ok_and(|local| local == local.last_of_month().date().at(23, 59, 59, 0))
}

/// Whether the time that a text names has a second 60, which is read as 59: there it would take the
/// place of another time.
fn is_leap_second(text: &str) -> bool {
    let time = text.split_once(['T', 't', ' ']).map(|(_, time)| time);
    let digits = |time: &str| time.bytes().filter(|byte| *byte != b':').skip(4).take(2).eq(*b"60");
    time.is_some_and(digits)
}

/// One revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// The revision.
    pub revision: Revision,
    /// The revision timestamp.
    pub timestamp: Micros,
    /// The commit timestamp: when it was committed here.
    pub committed: Micros,
    /// The commit's number over all documents.
    pub sequence: CommitSequence,
    /// Who made it.
    pub author: Option<String>,
    /// Why.
    pub message: Option<String>,
    /// How many nodes of earlier revisions it changed; new elements are not counted, nor the
    /// versions of records.
    pub changes: u64,
    /// Whether the document was deleted in it.
    pub deleted: bool,
    /// The hash of the document, if the query asks for it and it was not deleted.
    pub hash: Option<ContentHash>,
}

/// The revisions that a query lists, newest first.
#[derive(Debug)]
pub struct Log {
    tree: Arc<Tree>,
    /// The next revision to look at; 0 at the end.
    next: u64,
    first: u64,
    left: usize,
    author: Option<String>,
    hash: bool,
    /// The changes of the value that is asked for.
    search: Option<ChangeSearch>,
}

impl Log {
    pub(crate) fn new(tree: Arc<Tree>, query: &LogQuery, head: Revision) -> Result<Self> {
        let first = match query.from {
            None => 1,
            Some(Moment::Revision(revision)) => revision.0.max(1),
            // The first revision at or after the time.
            Some(Moment::Time(time)) => first_after(&tree, time.0.saturating_sub(1), head)?,
        };
        let mut last = match query.to {
            None => head.0,
            Some(Moment::Revision(revision)) => revision.0.min(head.0),
            Some(Moment::Time(time)) => first_after(&tree, time.0, head)? - 1,
        };
        last = tree.data.read().kept.at_or_before(last);
        let mut search = None;
        if let Some(path) = &query.path
            && last > 0
        {
            let revision = Revision(last);
            let node = Snapshot { tree: Arc::clone(&tree), revision, head }.find_ever(path)?;
            search = Some(tree.change_search(node, Scope::Subtree, short(Revision(last)))?);
        }
        if let Some(before) = query.before {
            last = last.min(before.0.saturating_sub(1));
        }
        let left = query.limit.unwrap_or(usize::MAX);
        let (author, hash) = (query.author.clone(), query.hash);
        Ok(Self { tree, next: last, first, left, author, hash, search })
    }

    /// The next revision to look at; none at the end.
    fn step(&mut self) -> Result<Option<Revision>> {
        // Of those before the history begins the log has the tagged ones.
        self.next = self.tree.data.read().kept.at_or_before(self.next);
        if self.left == 0 || self.next < self.first || self.next == 0 {
            return Ok(None);
        }
        if let Some(search) = &mut self.search {
            let until = short(Revision(self.next));
            let change = self.tree.kept_change_before(search, until)?;
            self.next = change.map_or(0, |revision| revision.0);
            if self.next < self.first || self.next == 0 {
                return Ok(None);
            }
        }
        let revision = Revision(self.next);
        self.next -= 1;
        Ok(Some(revision))
    }

    fn entry(&self, revision: Revision) -> Result<Option<LogEntry>> {
        let row = self.tree.row(revision)?;
        if self.author.is_some() && row.author.as_deref() != self.author.as_deref() {
            return Ok(None);
        }
        let changed = self.tree.changed(revision)?;
        // Deleting changes the root, which is the first of the nodes that a revision lists, but for
        // the revision that makes it.
        let deleted = (revision.0 == 1 || changed.first() == Some(&node(ROOT, 0)))
            && self.tree.deleted_in(short(revision))?.is_some();
        let hash = (self.hash && !deleted).then(|| self.tree.content_hash(short(revision)));
        Ok(Some(LogEntry {
            revision,
            timestamp: row.timestamp,
            committed: row.committed,
            sequence: row.sequence,
            author: row.author.map(Into::into),
            message: row.message.map(Into::into),
            changes: self.count(&changed),
            deleted,
            hash: hash.transpose()?,
        }))
    }

    /// How many of the nodes that a revision lists have a place in the document: what counts the
    /// versions of a collection's records has none.
    fn count(&self, changed: &[NodeId]) -> u64 {
        let version = version_path(&self.tree.data.read().schema);
        changed.iter().filter(|node| Some(node.path()) != version).count() as u64
    }
}

/// The first revision up to `head` after a time, of those that are kept; the one after `head` if
/// none is.
fn first_after(tree: &Tree, time: i64, head: Revision) -> Result<u64> {
    let after = tree.first_after(Micros(time), head)?.0;
    let kept = tree.data.read().kept.clone();
    if after > u64::from(kept.first()) {
        return Ok(after);
    }
    // All of the history is after it, and so may be tagged revisions before that.
    let pinned = kept.pinned();
    let (mut low, mut high) = (0, pinned.len());
    while low < high {
        let middle = low.midpoint(high);
        let is_after = tree.row(Revision(pinned[middle].into()))?.timestamp.0 > time;
        (low, high) = if is_after { (low, middle) } else { (middle + 1, high) };
    }
    Ok(pinned.get(low).map_or(after, |&revision| revision.into()))
}

impl Iterator for Log {
    type Item = Result<LogEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.step() {
                Ok(None) => return None,
                Ok(Some(revision)) => self.entry(revision),
                Err(error) => Err(error),
            };
            match entry {
                Ok(None) => {}
                Ok(Some(entry)) => {
                    self.left -= 1;
                    return Some(Ok(entry));
                }
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
