//! JSONPath (RFC 9535): queries over a document at a revision.
//!
//! A query is read into a syntax tree once (`parse`) and evaluated over the nodes of the tree as
//! they are stored (`walk`, `place`), never over a JSON value built for it. Filters over the
//! elements of one array go by column (`columns`).

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::tree::history::short;

use filter::{Context, Memo};
use place::{At, View};
use syntax::Segment;
use walk::{Found, Step, Trace, Walk};

mod columns;
mod filter;
mod parse;
mod pattern;
pub(crate) mod place;
mod syntax;
pub(crate) mod value;
mod walk;

/// A query for any number of values of a document: JSONPath as RFC 9535 has it, in full.
///
/// ```
/// use duramen::JsonPath;
///
/// let path: JsonPath = "$.players[?@.score > 3].name".parse()?;
/// assert_eq!(path.to_string(), "$.players[?@.score > 3].name");
/// let error = JsonPath::parse("$.players[?@.score >> 3]").unwrap_err();
/// assert!(error.message().contains("at character 21"), "{error}");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonPath {
    text: Arc<str>,
    segments: Arc<[Segment]>,
}

/// What a query finds, in the order of RFC 9535, one at a time: see [`Snapshot::query`].
#[derive(Debug)]
pub struct Matches {
    tree: Arc<Tree>,
    revision: u32,
    segments: Arc<[Segment]>,
    /// Nothing if there is no value at the revision.
    search: Option<Search>,
}

/// A walk and what it starts from.
#[derive(Debug)]
struct Search {
    root: At,
    memo: Memo,
    walk: Walk,
}

/// One value that a query found.
#[derive(Debug, Clone)]
pub struct Match(Found);

impl JsonPath {
    /// Reads a query; [`Invalid`](crate::ErrorKind::Invalid) with the place and what was expected
    /// there if it is not a well-formed and well-typed JSONPath.
    pub fn parse(text: &str) -> Result<Self> {
        let segments = parse::read(text)?;
        Ok(Self { text: Arc::from(text), segments: Arc::from(segments) })
    }
}

impl Snapshot {
    /// Finds the values that a query is for.
    ///
    /// Results come as they are found, in the order of RFC 9535: elements of arrays and members of
    /// objects in their order in the document. A query that names a value twice finds it twice.
    /// Memory follows the depth of the document, not the number of results, and nothing is locked
    /// between two of them. A filter over the elements of one array that compares their fields
    /// with constants reads the columns of these fields and nothing else.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPath, Revision};
    ///
    /// let doc = Database::memory()?.create_document("players")?;
    /// let players = r#"[{"name":"ann","score":1},{"name":"bob","score":5}]"#;
    /// doc.put(players, &CommitOptions::default())?;
    /// let good = JsonPath::parse("$[?@.score > 3].name")?;
    /// for found in doc.at(Revision(1))?.query(&good)? {
    ///     let found = found?;
    ///     assert_eq!(found.pointer().to_string(), "/1/name");
    ///     assert_eq!(found.normalized_path(), "$[1]['name']");
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn query(&self, path: &JsonPath) -> Result<Matches> {
        Matches::new(Arc::clone(&self.tree), short(self.revision), path)
    }
}

impl Transaction {
    /// The places of the values that a query finds in a document as this transaction has made it.
    ///
    /// A value that the query names twice is there twice.
    ///
    /// ```
    /// use duramen::{Database, JsonPath};
    ///
    /// let db = Database::memory()?;
    /// let mut change = db.transaction();
    /// change.put("list", b"[1,5,9]")?;
    /// let found = change.query("list", &JsonPath::parse("$[?@ > 3]")?)?;
    /// assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/1", "/2"]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn query(&mut self, name: &str, path: &JsonPath) -> Result<Vec<JsonPointer>> {
        let writer = self.writer(name)?;
        pointers(&writer.tree, writer.revision, path)
    }
}

/// The places that a query finds at a revision, the staged one included; a place that is found
/// twice comes twice.
pub(crate) fn pointers(
    tree: &Arc<Tree>,
    revision: u32,
    path: &JsonPath,
) -> Result<Vec<JsonPointer>> {
    let matches = Matches::new(Arc::clone(tree), revision, path)?;
    matches.map(|found| found.map(|found| found.pointer())).collect()
}

/// The place of the one value that a query finds at a revision, the staged one included.
pub(crate) fn only_pointer(
    tree: &Arc<Tree>,
    revision: u32,
    path: &JsonPath,
) -> Result<JsonPointer> {
    let mut places = Matches::new(Arc::clone(tree), revision, path)?
        .map(|found| found.map(|found| found.pointer()));
    let Some(only) = places.next().transpose()? else {
        let message = format!("{path} finds nothing: `duramen query` tells what a path finds");
        return Err(Error::new(ErrorKind::NotFound, message));
    };
    for place in places {
        let place = place?;
        if place != only {
            let message = format!(
                "{path} finds several values, such as \"{only}\" and \"{place}\": name one"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(only)
}

impl Matches {
    fn new(tree: Arc<Tree>, revision: u32, path: &JsonPath) -> Result<Self> {
        let view = View { tree: &tree, revision };
        let mut search = None;
        if let Some(root) = view.root()? {
            let walk = Walk::new(root.clone(), Trace::On);
            search = Some(Search { root: view.entered(&root)?, memo: Memo::default(), walk });
        }
        Ok(Self { tree, revision, segments: Arc::clone(&path.segments), search })
    }
}

impl Iterator for Matches {
    type Item = Result<Match>;

    fn next(&mut self) -> Option<Self::Item> {
        let Search { root, memo, walk } = self.search.as_mut()?;
        if let Some(found) = walk.next_sure(&self.segments) {
            return Some(Ok(Match(found)));
        }
        let view = View { tree: &self.tree, revision: self.revision };
        let found = walk.next(Context { view, root, memo }, &self.segments);
        Some(found.transpose()?.map(Match))
    }
}

impl Match {
    /// The id of the value; none if it is inside a subtree stored whole.
    pub fn node(&self) -> Option<NodeId> {
        match self.0.at {
            At::Node(node) => Some(node),
            At::Inside(..) => None,
        }
    }

    /// The place of the value.
    pub fn pointer(&self) -> JsonPointer {
        let mut pointer = JsonPointer::root();
        for step in self.0.steps() {
            match step {
                Step::Name(name) => pointer.push(&**name),
                Step::Index(index) => pointer.push(index.to_string()),
            }
        }
        pointer
    }

    /// The place of the value as a normalized path (RFC 9535, 2.7), such as `$['a'][0]`.
    pub fn normalized_path(&self) -> String {
        let mut path = "$".to_owned();
        for step in self.0.steps() {
            match step {
                Step::Name(name) => {
                    path.push_str("['");
                    name.chars().for_each(|c| push_normalized(c, &mut path));
                    path.push_str("']");
                }
                Step::Index(index) => path.push_str(&["[", &index.to_string(), "]"].concat()),
            }
        }
        path
    }
}

fn push_normalized(c: char, path: &mut String) {
    match c {
        '\u{8}' => path.push_str("\\b"),
        '\t' => path.push_str("\\t"),
        '\n' => path.push_str("\\n"),
        '\u{c}' => path.push_str("\\f"),
        '\r' => path.push_str("\\r"),
        '\'' => path.push_str("\\'"),
        '\\' => path.push_str("\\\\"),
        '\0'..' ' => {
            // Writing into text cannot fail.
            let _ = write!(path, "\\u{:04x}", u32::from(c));
        }
        c => path.push(c),
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for JsonPath {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for JsonPath {}

impl FromStr for JsonPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}
