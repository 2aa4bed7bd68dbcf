//! Random documents and queries, and what they find by the plainest reading of RFC 9535: over a
//! whole JSON value, every intermediate list of nodes in full.

use std::cmp::Ordering;
use std::fmt::Write as _;

/// A JSON value; members in order, numbers by their text.
#[derive(Debug, Clone)]
pub(super) enum Json {
    Word(&'static str),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

#[derive(Debug)]
pub(super) struct Query {
    is_root: bool,
    segments: Vec<(bool, Vec<Selector>)>,
}

#[derive(Debug)]
enum Selector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice([Option<i64>; 3]),
    Filter(Logical),
}

#[derive(Debug)]
enum Logical {
    Or(Vec<Logical>),
    And(Vec<Logical>),
    Not(Box<Logical>),
    Exists(Query),
    Compare(Comparable, &'static str, Comparable),
}

#[derive(Debug)]
enum Comparable {
    Literal(Json),
    Query(Query),
    Length(Box<Comparable>),
    Count(Query),
    ValueOf(Query),
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e'\u{e9}\n"];
const NUMBERS: [&str; 12] =
    ["0", "1", "2", "3", "-1", "1.0", "2.5", "1e0", "-0", "40", "1E1", "123456789012345678901"];
const TEXTS: [&str; 5] = ["", "a", "b", "\u{e9}", "a\\\"b"];
const OPERATORS: [&str; 6] = ["==", "!=", "<", "<=", ">", ">="];

/// How deep filters of a query are at most.
const FILTER_DEPTH: usize = 2;

/// Choices that one seed makes the same each time (the generator of Knuth's MMIX).
pub(super) struct Chooser(pub(super) u64);

impl Chooser {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A list of records and other things, long enough to be read by column.
    pub(super) fn document(&mut self) -> Json {
        let mut rows = Vec::new();
        for _ in 0..34 + self.below(30) {
            rows.push(match self.below(12) {
                0 => self.value(2),
                _ => self.record(),
            });
        }
        match self.below(3) {
            0 => Json::Array(rows),
            1 => Json::Object(vec![
                ("a".to_owned(), Json::Array(rows)),
                ("b".to_owned(), self.value(3)),
                ("c".to_owned(), self.scalar()),
            ]),
            _ => {
                let entries = (0..).zip(rows).map(|(key, row)| (format!("k{key}"), row));
                Json::Object(vec![("a".to_owned(), Json::Object(entries.collect()))])
            }
        }
    }

    fn record(&mut self) -> Json {
        let mut fields = Vec::new();
        for name in &NAMES[..4] {
            match self.below(8) {
                0 => {}
                1 => fields.push(((*name).to_owned(), self.value(1))),
                _ => fields.push(((*name).to_owned(), self.scalar())),
            }
        }
        Json::Object(fields)
    }

    fn value(&mut self, depth: usize) -> Json {
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0..=2 => self.scalar(),
            3 | 4 => {
                let names = NAMES.iter().filter(|_| self.below(2) == 0).collect::<Vec<_>>();
                let member = |name: &&str| ((*name).to_owned(), self.value(depth - 1));
                Json::Object(names.into_iter().map(member).collect())
            }
            _ => Json::Array((0..self.below(4)).map(|_| self.value(depth - 1)).collect()),
        }
    }

    fn scalar(&mut self) -> Json {
        match self.below(60) {
            0..7 => Json::Word(self.of(&["null", "true", "false"])),
            7..14 => Json::Text(self.of(&TEXTS).to_owned()),
            // Stands apart from its column.
            14 => Json::Text("long ".repeat(900 + self.below(2))),
            _ => Json::Number(self.of(&NUMBERS).to_owned()),
        }
    }

    pub(super) fn query(&mut self) -> Query {
        let segments = 0..=self.below(3);
        Query {
            is_root: true,
            segments: segments.map(|_| self.segment(FILTER_DEPTH + 1)).collect(),
        }
    }

    fn segment(&mut self, depth: usize) -> (bool, Vec<Selector>) {
        let selectors = if self.below(4) == 0 { 2 } else { 1 };
        (self.below(6) == 0, (0..selectors).map(|_| self.selector(depth)).collect())
    }

    fn selector(&mut self, depth: usize) -> Selector {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => Selector::Name(self.of(&NAMES).to_owned()),
            1 => Selector::Wildcard,
            2 => Selector::Index(self.integer()),
            3 => Selector::Slice([self.bound(), self.bound(), self.bound()]),
            _ => Selector::Filter(self.logical(depth - 1)),
        }
    }

    fn bound(&mut self) -> Option<i64> {
        (self.below(2) == 0).then(|| self.integer())
    }

    fn integer(&mut self) -> i64 {
        i64::try_from(self.below(9)).unwrap() - 4
    }

    fn logical(&mut self, depth: usize) -> Logical {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => Logical::Exists(self.inner(depth)),
            4 => Logical::Or((0..2).map(|_| self.logical(depth - 1)).collect()),
            5 | 6 => Logical::And((0..2).map(|_| self.logical(depth - 1)).collect()),
            7 => Logical::Not(Box::new(self.logical(depth - 1))),
            _ => {
                let operator = self.of(&OPERATORS);
                Logical::Compare(self.comparable(depth), operator, self.comparable(depth))
            }
        }
    }

    fn inner(&mut self, depth: usize) -> Query {
        let segments = (0..self.below(3)).map(|_| self.segment(depth)).collect();
        // Deeper inside each other, queries over all of a document would take the plain reading
        // minutes.
        Query { is_root: self.below(5) == 0 && depth >= FILTER_DEPTH, segments }
    }

    fn comparable(&mut self, depth: usize) -> Comparable {
        match self.below(10) {
            0..=2 => Comparable::Literal(match self.below(4) {
                0 => Json::Word(self.of(&["null", "true", "false"])),
                1 => Json::Text(self.of(&TEXTS).to_owned()),
                _ => Json::Number(self.of(&NUMBERS).to_owned()),
            }),
            3 => Comparable::Length(Box::new(self.comparable(depth))),
            4 => Comparable::Count(self.inner(depth)),
            5 => Comparable::ValueOf(self.inner(depth)),
            _ => {
                let step = |chooser: &mut Self| match chooser.below(6) {
                    0 => Selector::Index(chooser.integer()),
                    _ => Selector::Name(chooser.of(&NAMES).to_owned()),
                };
                let steps = self.below(3);
                let segments = (0..steps).map(|_| (false, vec![step(self)])).collect();
                Comparable::Query(Query { is_root: self.below(8) == 0, segments })
            }
        }
    }
}

/// A value and its normalized path.
type Node<'j> = (&'j Json, String);

impl Query {
    /// The normalized paths of what the query finds.
    pub(super) fn find(&self, root: &Json) -> Vec<String> {
        let found = self.nodes(root, root);
        found.into_iter().map(|(_, path)| path).collect()
    }

    fn nodes<'j>(&self, root: &'j Json, current: &'j Json) -> Vec<Node<'j>> {
        let start = if self.is_root { root } else { current };
        let mut nodes = vec![(start, "$".to_owned())];
        for (is_descendant, selectors) in &self.segments {
            let mut next = Vec::new();
            for node in nodes {
                let from = if *is_descendant { node.descendants() } else { vec![node] };
                for node in from {
                    for selector in selectors {
                        selector.select(root, &node, &mut next);
                    }
                }
            }
            nodes = next;
        }
        nodes
    }
}

trait Inside<'j> {
    fn children(&self) -> Vec<Node<'j>>;
    fn descendants(self) -> Vec<Node<'j>>;
}

impl<'j> Inside<'j> for Node<'j> {
    fn children(&self) -> Vec<Node<'j>> {
        let (value, path) = self;
        match value {
            Json::Array(items) => {
                items.iter().enumerate().map(|(i, item)| (item, format!("{path}[{i}]"))).collect()
            }
            Json::Object(members) => members
                .iter()
                .map(|(name, member)| {
                    let name = name.replace('\'', "\\'").replace('\n', "\\n");
                    (member, format!("{path}['{name}']"))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    fn descendants(self) -> Vec<Node<'j>> {
        let below = self.children().into_iter().flat_map(Inside::descendants);
        let below = below.collect::<Vec<_>>();
        [vec![self], below].concat()
    }
}

impl Selector {
    fn select<'j>(&self, root: &'j Json, node: &Node<'j>, out: &mut Vec<Node<'j>>) {
        let children = node.children();
        match self {
            Self::Name(name) => {
                if let Json::Object(members) = node.0
                    && let Some(at) = members.iter().position(|(other, _)| other == name)
                {
                    out.push(children[at].clone());
                }
            }
            Self::Wildcard => out.extend(children),
            Self::Filter(filter) => {
                out.extend(children.into_iter().filter(|(child, _)| filter.holds(root, child)));
            }
            Self::Index(_) | Self::Slice(_) if !matches!(node.0, Json::Array(_)) => {}
            Self::Index(index) => {
                let len = i64::try_from(children.len()).unwrap();
                let index = if *index < 0 { len + index } else { *index };
                let child = usize::try_from(index).ok().and_then(|index| children.get(index));
                out.extend(child.cloned());
            }
            Self::Slice(slice) => {
                let indexes = indexes(*slice, i64::try_from(children.len()).unwrap());
                out.extend(indexes.into_iter().map(|index| children[index].clone()));
            }
        }
    }
}

/// As Python slices.
fn indexes([start, end, step]: [Option<i64>; 3], len: i64) -> Vec<usize> {
    let step = step.unwrap_or(1);
    let from_end = |index: i64| if index < 0 { len + index } else { index };
    let is_past = |index: i64| match step.cmp(&0) {
        Ordering::Greater => index >= end.map_or(len, from_end),
        Ordering::Less => index <= end.map_or(-1, |end| from_end(end).max(-1)),
        Ordering::Equal => true,
    };
    let mut index = match (start.map(from_end), step > 0) {
        (None, true) => 0,
        (None, false) => len - 1,
        (Some(start), true) => start.max(0),
        (Some(start), false) => start.min(len - 1),
    };
    let mut indexes = Vec::new();
    while (0..len).contains(&index) && !is_past(index) {
        indexes.push(usize::try_from(index).unwrap());
        index += step;
    }
    indexes
}

impl Logical {
    fn holds(&self, root: &Json, current: &Json) -> bool {
        match self {
            Self::Or(parts) => parts.iter().any(|part| part.holds(root, current)),
            Self::And(parts) => parts.iter().all(|part| part.holds(root, current)),
            Self::Not(inner) => !inner.holds(root, current),
            Self::Exists(query) => !query.nodes(root, current).is_empty(),
            Self::Compare(left, operator, right) => {
                let (left, right) = (left.value(root, current), right.value(root, current));
                let is_equal = match (&left, &right) {
                    (Some(left), Some(right)) => left.equals(right),
                    (None, None) => true,
                    _ => false,
                };
                let order = left.zip(right).and_then(|(left, right)| left.order(&right));
                match *operator {
                    "==" => is_equal,
                    "!=" => !is_equal,
                    "<" => order == Some(Ordering::Less),
                    ">" => order == Some(Ordering::Greater),
                    "<=" => is_equal || order == Some(Ordering::Less),
                    _ => is_equal || order == Some(Ordering::Greater),
                }
            }
        }
    }
}

impl Comparable {
    fn value(&self, root: &Json, current: &Json) -> Option<Json> {
        match self {
            Self::Literal(value) => Some(value.clone()),
            Self::Query(query) | Self::ValueOf(query) => match &*query.nodes(root, current) {
                [(only, _)] => Some((*only).clone()),
                _ => None,
            },
            Self::Length(of) => Some(Json::Number(match of.value(root, current)? {
                Json::Text(text) => text.chars().count().to_string(),
                Json::Array(items) => items.len().to_string(),
                Json::Object(members) => members.len().to_string(),
                _ => return None,
            })),
            Self::Count(query) => Some(Json::Number(query.nodes(root, current).len().to_string())),
        }
    }
}

impl Json {
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Word(a), Self::Word(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Number(_), Self::Number(_)) => self.order(other) == Some(Ordering::Equal),
            (Self::Array(a), Self::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Self::Object(a), Self::Object(b)) => {
                let has = |name: &str, value: &Self| {
                    b.iter().any(|(other, found)| other == name && value.equals(found))
                };
                a.len() == b.len() && a.iter().all(|(name, value)| has(name, value))
            }
            _ => false,
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => Some(a.chars().cmp(b.chars())),
            // No two of the numbers are closer to each other than doubles can tell.
            (Self::Number(a), Self::Number(b)) => {
                a.parse::<f64>().unwrap().partial_cmp(&b.parse().unwrap())
            }
            _ => None,
        }
    }

    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Word(word) => out.push_str(word),
            Self::Number(text) => out.push_str(text),
            Self::Text(text) => write!(out, "{}", serde_json::json!(text)).unwrap(),
            Self::Array(items) => {
                joined(items, out, ('[', ']'), Json::write);
            }
            Self::Object(members) => joined(members, out, ('{', '}'), |(name, value), out| {
                write!(out, "{}:", serde_json::json!(name)).unwrap();
                value.write(out);
            }),
        }
    }
}

fn joined<T>(
    parts: &[T],
    out: &mut String,
    (open, close): (char, char),
    write: impl Fn(&T, &mut String),
) {
    out.push(open);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write(part, out);
    }
    out.push(close);
}

impl Query {
    /// The query as JSONPath.
    pub(super) fn write(&self, out: &mut String) {
        out.push(if self.is_root { '$' } else { '@' });
        for (is_descendant, selectors) in &self.segments {
            out.push_str(if *is_descendant { ".." } else { "" });
            joined(selectors, out, ('[', ']'), Selector::write);
        }
    }
}

impl Selector {
    fn write(&self, out: &mut String) {
        match self {
            Self::Name(name) => Json::Text(name.clone()).write(out),
            Self::Wildcard => out.push('*'),
            Self::Index(index) => write!(out, "{index}").unwrap(),
            Self::Slice(bounds) => {
                let [start, end, step] =
                    bounds.map(|bound| bound.map_or(String::new(), |bound| bound.to_string()));
                write!(out, "{start}:{end}:{step}").unwrap();
            }
            Self::Filter(filter) => {
                out.push_str("? ");
                filter.write(out);
            }
        }
    }
}

impl Logical {
    fn write(&self, out: &mut String) {
        match self {
            Self::Or(parts) | Self::And(parts) => {
                let operator = if matches!(self, Self::Or(_)) { " || " } else { "&&" };
                for (index, part) in parts.iter().enumerate() {
                    out.push_str(if index > 0 { operator } else { "" });
                    out.push('(');
                    part.write(out);
                    out.push(')');
                }
            }
            Self::Not(inner) => {
                out.push_str("!(");
                inner.write(out);
                out.push(')');
            }
            Self::Exists(query) => query.write(out),
            Self::Compare(left, operator, right) => {
                left.write(out);
                out.push_str(operator);
                right.write(out);
            }
        }
    }
}

impl Comparable {
    fn write(&self, out: &mut String) {
        match self {
            Self::Literal(value) => value.write(out),
            Self::Query(query) => query.write(out),
            Self::Length(of) => call("length", out, |out| of.write(out)),
            Self::Count(query) => call("count", out, |out| query.write(out)),
            Self::ValueOf(query) => call("value", out, |out| query.write(out)),
        }
    }
}

fn call(name: &str, out: &mut String, argument: impl FnOnce(&mut String)) {
    write!(out, "{name}(").unwrap();
    argument(out);
    out.push(')');
}
