//! Who set what is there now, when and why.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::cursor::{Cursor, Descendants};
use crate::error::Result;
use crate::json::JsonPointer;
use crate::node::{Move, NodeId, NodeKind};
use crate::revision::{Micros, Revision};
use crate::snapshot::{Node, Snapshot};
use crate::target::Target;
use crate::tree::Tree;
use crate::tree::history::short;
use crate::tree::moved::{self, MovedFrom};

/// How far down blame looks at each value by itself, and whether past moves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlameOptions {
    /// So many levels below the target. An array or object at that level answers for all that is
    /// in it; 0 says who was the last to change anything in the target.
    pub depth: Option<usize>,
    /// Whether a revision that only moved or renamed a value, or something it is in, passes the
    /// blame on to the one that set it where it was before.
    ///
    /// What is in a moved value is found by the same names and indexes. An array passes it on if it
    /// had as many elements there, an object if it had the same names in the same order.
    pub follow: bool,
}

/// The revision that set one value as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlameEntry {
    /// Where the value is.
    pub pointer: JsonPointer,
    /// Its id.
    pub node: NodeId,
    /// Its kind.
    pub kind: NodeKind,
    /// Whether this answers for everything in the value too, because what is in it has no entries
    /// of its own.
    pub is_whole: bool,
    /// The revision that set it: of an array or object the one that last gave it another child,
    /// took one or changed their order; of a whole one the newest that set anything in it.
    pub revision: Revision,
    /// Whether it was set in a revision that was dropped since, by the retention of the document:
    /// then who did it and why is not known, and the time is that of the first revision there is.
    pub is_older: bool,
    /// Where the value was before, if the revision that set it here moved or renamed it. What is
    /// in it came along, and is not told.
    pub moved_from: Option<MovedFrom>,
    /// The revision's timestamp.
    pub timestamp: Micros,
    /// Who made the revision.
    pub author: Option<Arc<str>>,
    /// Why.
    pub message: Option<Arc<str>>,
}

/// The blame of a value and of those in it, in document order.
#[derive(Debug)]
pub struct Blame {
    tree: Arc<Tree>,
    /// As of which it is.
    at: u32,
    start: Option<Cursor>,
    rest: Descendants,
    deepest: Option<usize>,
    follow: bool,
    origins: FxHashMap<Revision, Origin>,
}

/// What is told of a revision.
#[derive(Debug, Clone)]
struct Origin {
    timestamp: Micros,
    author: Option<Arc<str>>,
    message: Option<Arc<str>>,
    moves: Arc<[Move]>,
    is_older: bool,
}

/// Revisions kept at hand while a subtree is walked.
const ORIGINS_MAX: usize = 4_096;

impl Snapshot {
    /// Who set what a target names, and what is in it, as they are at this revision.
    ///
    /// It streams in document order. What came back unchanged, because something above it was
    /// removed and set again, keeps the revision that set it first.
    ///
    /// ```
    /// use duramen::{BlameOptions, CommitOptions, Database, JsonPointer};
    ///
    /// let by = |name: &str| CommitOptions { author: Some(name.into()), ..Default::default() };
    /// let doc = Database::memory()?.create_document("d")?;
    /// doc.put(r#"{"a":1,"b":1}"#, &by("ann"))?;
    /// doc.put(r#"{"a":1,"b":2}"#, &by("bob"))?;
    /// let root = JsonPointer::root().into();
    /// let mut lines = Vec::new();
    /// for entry in doc.head()?.blame(&root, &BlameOptions::default())? {
    ///     let entry = entry?;
    ///     lines.push(format!("{:?} {}", entry.pointer.to_string(), entry.author.unwrap()));
    /// }
    /// assert_eq!(lines, [r#""" ann"#, r#""/a" ann"#, r#""/b" bob"#]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn blame(&self, target: &Target, options: &BlameOptions) -> Result<Blame> {
        let start = self.cursor(target)?;
        let deepest = options.depth.map(|depth| start.depth().saturating_add(depth));
        Ok(Blame {
            tree: Arc::clone(&self.tree),
            at: short(self.revision),
            rest: start.descendants(options.depth),
            start: Some(start),
            deepest,
            follow: options.follow,
            origins: FxHashMap::default(),
        })
    }
}

impl Blame {
    fn entry(&mut self, cursor: &Cursor) -> Result<BlameEntry> {
        let details = cursor.details()?;
        let is_whole =
            self.deepest == Some(cursor.depth()) && details.children.is_some_and(|n| n > 0);
        let moved_from = self.moved_from(&details)?;
        let mut revision = self.set_in(&details)?;
        if is_whole {
            for inner in cursor.descendants(None) {
                revision = revision.max(self.set_in(&inner?.details()?)?);
            }
        }
        let Origin { timestamp, author, message, is_older, .. } = self.origin(revision)?;
        Ok(BlameEntry {
            pointer: cursor.pointer()?,
            node: details.id,
            kind: details.kind,
            is_whole,
            revision,
            is_older,
            moved_from,
            timestamp,
            author,
            message,
        })
    }

    /// The revision to blame for the value alone.
    fn set_in(&mut self, value: &Node) -> Result<Revision> {
        if !self.follow {
            return Ok(value.changed);
        }
        let tree = Arc::clone(&self.tree);
        let moves_of = |revision| Ok(self.origin(revision)?.moves);
        tree.set_before_moves((value.id, value.changed), moves_of)
    }

    fn moved_from(&mut self, value: &Node) -> Result<Option<MovedFrom>> {
        let moves = self.origin(value.changed)?.moves;
        if moved::source(value.id, &moves).is_none() {
            return Ok(None);
        }
        self.tree.moved_from(value.id, value.changed, &moves)
    }

    fn origin(&mut self, revision: Revision) -> Result<Origin> {
        if let Some(origin) = self.origins.get(&revision) {
            return Ok(origin.clone());
        }
        if self.origins.len() == ORIGINS_MAX {
            self.origins.clear();
        }
        let is_older = self.tree.check_kept(revision).is_err();
        let known = if is_older {
            Revision(self.tree.kept().told(short(revision), self.at).into())
        } else {
            revision
        };
        let row = self.tree.row(known)?;
        let told = |text: Option<Box<str>>| text.filter(|_| !is_older).map(Into::into);
        let origin = Origin {
            is_older,
            timestamp: row.timestamp,
            author: told(row.author),
            message: told(row.message),
            moves: self.tree.moves(revision)?.into(),
        };
        self.origins.insert(revision, origin.clone());
        Ok(origin)
    }
}

impl Iterator for Blame {
    type Item = Result<BlameEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = match self.start.take() {
            Some(start) => start,
            None => match self.rest.next()? {
                Ok(cursor) => cursor,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(self.entry(&cursor))
    }
}
