//! When a value was so: conditions on one value, and the spells of revisions in which they held.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::json::{Item, ParseOptions, Tape, TapeIndex};
use crate::node::NodeId;
use crate::revision::Revision;
use crate::snapshot::Snapshot;
use crate::target::Target;
use crate::tree::changes::{ChangeSearch, Scope};
use crate::tree::difference::ChangeKind;
use crate::tree::history::{Trail, Value, ValueRun, short};
use crate::tree::{Tree, compare};

/// A condition on one value: `exists`, `missing`, or `==`, `!=`, `<`, `<=`, `>`, `>=` and a JSON
/// value.
///
/// Numbers compare by value, whatever their form, strings by their UTF-8 bytes, and `false` before
/// `true`. Values of different kinds are unequal, and none is less than the other; nor are arrays
/// and objects, which are equal if their elements are, and their members whatever the order. What
/// is not there satisfies `missing` only.
///
/// ```
/// use duramen::{Condition, Value};
///
/// let more: Condition = "> 5".parse()?;
/// assert!(more.holds(Some(&Value::Integer(6))));
/// assert!(!more.holds(Some(&Value::String("6".into()))));
/// assert!(!more.holds(None));
/// assert!("!= [1]".parse::<Condition>()?.holds(Some(&Value::Json("[2]".into()))));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Condition(Test);

#[derive(Debug, Clone, PartialEq)]
enum Test {
    Exists,
    Missing,
    Compare(Operator, Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// The operators; those that begin with another one stand before it.
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

impl Condition {
    /// Reads a condition; `Invalid` if it is none.
    pub fn parse(text: &str) -> Result<Self> {
        let trimmed = text.trim();
        match trimmed {
            "exists" => return Ok(Self(Test::Exists)),
            "missing" => return Ok(Self(Test::Missing)),
            _ => {}
        }
        let operator = OPERATORS.iter().find_map(|&(sign, operator)| {
            trimmed.strip_prefix(sign).map(|rest| (sign, operator, rest.trim()))
        });
        let Some((sign, operator, literal)) = operator else {
            let message = format!(
                "{text:?} is not a condition: write ==, !=, <, <=, > or >= and a JSON value, as in \
                 `> 5` or `== \"x\"`, or `exists`, or `missing`"
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        };
        let value = read_literal(literal).map_err(|error| {
            let message = format!(
                "{literal:?} after {sign} in the condition {text:?} is not a JSON value: write a \
                 string between quotes, as in `{sign} \"x\"`"
            );
            Error::new(ErrorKind::Invalid, message).with_source(error)
        })?;
        let has_order = !matches!(value, Value::Null | Value::Json(_));
        if !has_order && !matches!(operator, Operator::Equal | Operator::Unequal) {
            let message = format!(
                "the condition {text:?} never holds: null, arrays and objects are only compared \
                 with == and !="
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(Self(Test::Compare(operator, value)))
    }

    /// Whether a value satisfies it; none if there is no value.
    pub fn holds(&self, value: Option<&Value>) -> bool {
        let (operator, wanted, value) = match (&self.0, value) {
            (Test::Exists, value) => return value.is_some(),
            (Test::Missing, value) => return value.is_none(),
            (Test::Compare(..), None) => return false,
            (Test::Compare(operator, wanted), Some(value)) => (operator, wanted, value),
        };
        let order = value.compare(wanted);
        match operator {
            Operator::Equal => is_equal(value, wanted),
            Operator::Unequal => !is_equal(value, wanted),
            Operator::Less => order == Some(Ordering::Less),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::AtMost => order.is_some_and(Ordering::is_le),
            Operator::AtLeast => order.is_some_and(Ordering::is_ge),
        }
    }
}

impl FromStr for Condition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Test::Exists => f.write_str("exists"),
            Test::Missing => f.write_str("missing"),
            Test::Compare(operator, value) => {
                let sign = OPERATORS.iter().find(|(_, other)| other == operator);
                write!(f, "{} {value}", sign.map_or("", |(sign, _)| sign))
            }
        }
    }
}

fn read_literal(text: &str) -> Result<Value> {
    let tape = Tape::parse(text.as_bytes(), ParseOptions::default())?;
    Ok(value_at(&tape, tape.root()))
}

/// The value at a place of a tape.
fn value_at(tape: &Tape<'_>, at: TapeIndex) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into();
    match tape.item(at) {
        Item::Null => Value::Null,
        Item::Bool(value) => Value::Bool(value),
        Item::Number(number) => Value::Number(text(number)),
        Item::Text { bytes, .. } => Value::String(text(bytes)),
        Item::Array { .. } | Item::Object { .. } => {
            let mut json = Vec::new();
            tape.write(at, &mut json);
            Value::Json(text(&json))
        }
    }
}

fn is_equal(a: &Value, b: &Value) -> bool {
    let (Value::Json(a), Value::Json(b)) = (a, b) else {
        return a.compare(b) == Some(Ordering::Equal);
    };
    let parse = |text| Tape::parse(text, ParseOptions::default());
    match (parse(a.as_bytes()), parse(b.as_bytes())) {
        (Ok(a), Ok(b)) => is_equal_at((&a, a.root()), (&b, b.root())),
        _ => a == b,
    }
}

/// Whether two values are equal, as RFC 9535 (2.3.5.2.2) has it.
fn is_equal_at((a, at): (&Tape<'_>, TapeIndex), (b, other): (&Tape<'_>, TapeIndex)) -> bool {
    match (a.item(at), b.item(other)) {
        (Item::Array { len }, Item::Array { len: other_len }) => {
            let mut pairs = a.elements(at).zip(b.elements(other));
            len == other_len && pairs.all(|(x, y)| is_equal_at((a, x), (b, y)))
        }
        (Item::Object { len }, Item::Object { len: other_len }) => {
            let name = |item| compare::name_of(item).0;
            let members: rustc_hash::FxHashMap<_, _> =
                b.fields(other).map(|(key, value)| (name(key), value)).collect();
            len == other_len
                && a.fields(at).all(|(key, x)| {
                    members.get(name(key)).is_some_and(|&y| is_equal_at((a, x), (b, y)))
                })
        }
        (Item::Array { .. } | Item::Object { .. }, _)
        | (_, Item::Array { .. } | Item::Object { .. }) => false,
        _ => value_at(a, at).compare(&value_at(b, other)) == Some(Ordering::Equal),
    }
}

/// Consecutive revisions in which a condition held, as many as there are in one go.
#[derive(Debug, Clone, PartialEq)]
pub struct Spell {
    /// The first of them.
    pub first: Revision,
    /// The last of them.
    pub last: Revision,
    /// The value at the first; none if it was missing.
    pub value: Option<Value>,
}

/// The spells in which a condition held, newest first.
#[derive(Debug)]
pub struct When {
    tree: Arc<Tree>,
    node: NodeId,
    condition: Condition,
    source: Source,
    /// Revisions after this one have been looked at.
    until: u32,
    open: Option<Spell>,
    ready: VecDeque<Spell>,
}

/// Where the states of the value come from.
#[derive(Debug)]
enum Source {
    /// Its values.
    Runs(Trail, std::vec::IntoIter<ValueRun>),
    /// Only whether it was there.
    Presence(ChangeSearch),
    Exhausted,
}

/// Runs read at a time.
const PAGE_RUNS: usize = 256;

impl Snapshot {
    /// The spells of revisions, up to the newest, in which what a target names satisfied a
    /// condition: "when was `/a/b` greater than 5".
    ///
    /// A pointer is resolved at this snapshot's revision; from there on the value is followed, not
    /// the place. It streams, and costs what the value's history costs; `exists` and `missing` do
    /// not even read the values.
    ///
    /// ```
    /// use duramen::{CommitOptions, Database, JsonPointer};
    ///
    /// let doc = Database::memory()?.create_document("d")?;
    /// for text in ["4", "6", "7", "null", "8"] {
    ///     doc.put(text, &CommitOptions::default())?;
    /// }
    /// let mut found = Vec::new();
    /// for spell in doc.head()?.when(&JsonPointer::root().into(), &"> 5".parse()?)? {
    ///     let spell = spell?;
    ///     found.push((spell.first.0, spell.last.0));
    /// }
    /// assert_eq!(found, [(5, 5), (2, 3)]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn when(&self, target: &Target, condition: &Condition) -> Result<When> {
        let node = self.find_ever(target)?;
        let head = short(self.head);
        let source = match condition.0 {
            Test::Exists | Test::Missing => {
                Source::Presence(self.tree.change_search(node, Scope::Node, head)?)
            }
            Test::Compare(..) => Source::Runs(self.tree.trail(node, head)?, Vec::new().into_iter()),
        };
        Ok(When {
            tree: Arc::clone(&self.tree),
            node,
            condition: condition.clone(),
            source,
            until: head,
            open: None,
            ready: VecDeque::new(),
        })
    }
}

impl When {
    /// Looks at older revisions until there is a spell to give, or no revision is left.
    fn advance(&mut self) -> Result<()> {
        while self.ready.is_empty() {
            match &mut self.source {
                Source::Exhausted => return Ok(()),
                Source::Runs(trail, page) => {
                    if page.len() == 0 {
                        let mut runs = Vec::new();
                        self.tree.next_runs(trail, PAGE_RUNS, &mut runs)?;
                        *page = runs.into_iter();
                    }
                    let Some(run) = page.next() else {
                        self.finish();
                        continue;
                    };
                    self.take((short(run.last) + 1, self.until), None);
                    let holds = self.condition.holds(Some(&run.value));
                    self.take((short(run.first), short(run.last)), Some((holds, run.value)));
                }
                Source::Presence(search) => {
                    let Some(change) = self.tree.change_before(search, self.until)? else {
                        self.finish();
                        continue;
                    };
                    let is_there = change.kind != ChangeKind::Removed;
                    let holds = is_there == (self.condition.0 == Test::Exists);
                    let state = is_there.then_some((holds, Value::Null));
                    self.take((short(change.revision), self.until), state);
                }
            }
        }
        Ok(())
    }

    /// Looks at what is left: revisions without the value.
    fn finish(&mut self) {
        let first = short(Revision(self.tree.first_revision()));
        self.take((first, self.until), None);
        self.source = Source::Exhausted;
        self.ready.extend(self.open.take());
    }

    /// Takes revisions in which the value was in one state: whether that satisfies the condition,
    /// and the value; none if it was missing.
    fn take(&mut self, (first, last): (u32, u32), state: Option<(bool, Value)>) {
        if first > last {
            return;
        }
        self.until = first - 1;
        let (holds, value) = match state {
            Some((holds, value)) => (holds, Some(value)),
            None => (self.condition.holds(None), None),
        };
        if !holds {
            self.ready.extend(self.open.take());
            return;
        }
        let (first, last) = (Revision(u64::from(first)), Revision(u64::from(last)));
        let open = self.open.get_or_insert(Spell { first, last, value: None });
        (open.first, open.value) = (first, value);
    }
}

impl Iterator for When {
    type Item = Result<Spell>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.advance() {
            self.source = Source::Exhausted;
            return Some(Err(error));
        }
        let mut spell = self.ready.pop_front()?;
        if self.condition.0 == Test::Exists {
            match self.tree.json_at(self.node, short(spell.first)) {
                Ok(value) => spell.value = value,
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(spell))
    }
}
