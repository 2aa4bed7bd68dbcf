//! The syntax tree of a query: what RFC 9535 calls well-formed and well-typed, and nothing else.

use std::sync::Arc;

use super::pattern::Pattern;
use super::value::Value;

/// One step of a query: `[...]` or, below the nodes reached so far at any depth, `..[...]`.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) is_descendant: bool,
    pub(super) selectors: Box<[Selector]>,
}

/// What is chosen among the children of a node.
#[derive(Debug)]
pub(super) enum Selector {
    Name(Arc<str>),
    Wildcard,
    /// Counted from the end if negative.
    Index(i64),
    Slice(Slice),
    Filter(Logical),
}

/// `start:end:step`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) step: i64,
}

/// What a query in a filter starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// `$`
    Root,
    /// `@`
    Current,
}

/// A query in a filter.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) origin: Origin,
    pub(super) segments: Box<[Segment]>,
}

/// A query that finds one value at most.
#[derive(Debug)]
pub(super) struct Singular {
    pub(super) origin: Origin,
    pub(super) steps: Box<[SingularStep]>,
}

#[derive(Debug)]
pub(super) enum SingularStep {
    Name(Arc<str>),
    Index(i64),
}

/// What is true or false of a child.
#[derive(Debug)]
pub(super) enum Logical {
    Or(Box<[Self]>),
    And(Box<[Self]>),
    Not(Box<Self>),
    /// Whether a query finds anything.
    Exists(Path),
    Compare(Comparable, Operator, Comparable),
    Matches(Box<Matching>),
}

/// `match` and `search`.
#[derive(Debug)]
pub(super) struct Matching {
    pub(super) text: Comparable,
    pub(super) pattern: PatternSource,
    /// `match`: the pattern has to cover the text.
    pub(super) is_whole: bool,
}

#[derive(Debug)]
pub(super) enum PatternSource {
    /// Translated once, when the query was read.
    Literal(Arc<Pattern>),
    Found(Comparable),
}

/// One value, or nothing.
#[derive(Debug)]
pub(super) enum Comparable {
    Literal(Value),
    Singular(Singular),
    /// How long a string, array or object is.
    Length(Box<Self>),
    /// How many nodes a query finds.
    Count(Path),
    /// The value of the only node that a query finds.
    ValueOf(Path),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Path {
    /// The same query as one that finds one value at most, if its form says so.
    pub(super) fn into_singular(self) -> Result<Singular, Self> {
        let is_singular = self.segments.iter().all(|segment| {
            let only = matches!(&*segment.selectors, [Selector::Name(_) | Selector::Index(_)]);
            only && !segment.is_descendant
        });
        if !is_singular {
            return Err(self);
        }
        let selectors = self.segments.into_iter().flat_map(|segment| segment.selectors);
        let steps = selectors.filter_map(|selector| match selector {
            Selector::Name(name) => Some(SingularStep::Name(name)),
            Selector::Index(index) => Some(SingularStep::Index(index)),
            _ => None,
        });
        Ok(Singular { origin: self.origin, steps: steps.collect() })
    }
}

impl Operator {
    /// The operator that says the same with its sides exchanged.
    pub(super) fn exchanged(self) -> Self {
        match self {
            Self::Equal => Self::Equal,
            Self::NotEqual => Self::NotEqual,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }
}
