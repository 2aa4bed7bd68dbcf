//! Filters: what is true or false of a record.

use std::fmt;
use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use super::elements::ElementTest;
use super::literal::{FilterValue, Literal};
use super::parse;
use super::test::Test;
use crate::collection::path_values;
use crate::collection::record_path::{RecordPath, RecordStep};
use crate::error::{Error, ErrorKind, Result};
use crate::jsonpath::place::{At, View};
use crate::limits::FILTER_DEPTH_MAX;
use crate::state::{ApartKind, Datum, Extent, Sequence};
use crate::tree::conditions::{ColumnTest, Condition, Integers};

/// What is true or false of each record.
///
/// `docs/queries.md` says what each comparison means. In short: a comparison is false where there
/// is no value, or a null; so `not` of it is true there. Values compare with those of their own
/// type only, and numbers by what they are worth: `1`, `1.0` and `1e0` are equal. At a path with
/// `[*]` it is enough if one value is as asked.
///
/// ```
/// use duramen::Filter;
///
/// let filter = Filter::eq("world", "nether").and(Filter::between("score", 3, 9));
/// assert_eq!(filter.to_string(), r#"world = "nether" and score between 3 and 9"#);
/// assert_eq!(filter, filter.to_string().parse()?);
/// let error = "score >> 3".parse::<Filter>().unwrap_err();
/// assert!(error.message().contains("at character 8"), "{error}");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Filter {
    /// Or why it cannot be one.
    expression: Result<Expression, String>,
    /// How deep `and`, `or` and `not` are inside each other.
    depth: usize,
}

/// How two filters become one.
#[derive(Debug, Clone, Copy)]
enum Joint {
    All,
    Any,
}

/// The parts of a filter.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    All(Vec<Self>),
    Any(Vec<Self>),
    Not(Box<Self>),
    Test(RecordPath, Test),
}

impl Filter {
    /// Equal to a value.
    pub fn eq(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::compare(path.as_ref(), &value.into(), Test::Equal)
    }

    /// There, not null, and not equal to a value.
    pub fn ne(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::compare(path.as_ref(), &value.into(), Test::NotEqual)
    }

    /// Less than a value.
    pub fn lt(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::range(path.as_ref(), Bound::Unbounded, Bound::Excluded(value.into()))
    }

    /// Less than a value or equal to it.
    pub fn le(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::range(path.as_ref(), Bound::Unbounded, Bound::Included(value.into()))
    }

    /// Greater than a value.
    pub fn gt(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::range(path.as_ref(), Bound::Excluded(value.into()), Bound::Unbounded)
    }

    /// Greater than a value or equal to it.
    pub fn ge(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        Self::range(path.as_ref(), Bound::Included(value.into()), Bound::Unbounded)
    }

    /// Between two values of one type, both of them included.
    pub fn between(
        path: impl AsRef<str>,
        low: impl Into<FilterValue>,
        high: impl Into<FilterValue>,
    ) -> Self {
        let (low, high) = (Bound::Included(low.into()), Bound::Included(high.into()));
        Self::range(path.as_ref(), low, high)
    }

    /// Equal to one of some values; nothing is if there are none.
    pub fn any_of<V: Into<FilterValue>>(
        path: impl AsRef<str>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let read = |value: V| Literal::read(&value.into());
        let literals = values.into_iter().map(read).collect::<Result<Vec<_>, _>>();
        Self::of(
            path.as_ref(),
            literals.map(|mut list| {
                list.sort_by(|a, b| a.key.cmp(&b.key));
                list.dedup_by(|a, b| a.key == b.key);
                Test::In(list)
            }),
        )
    }

    /// A JSON null.
    pub fn is_null(path: impl AsRef<str>) -> Self {
        Self::of(path.as_ref(), Ok(Test::Null))
    }

    /// No value at all.
    pub fn is_missing(path: impl AsRef<str>) -> Self {
        Self::of(path.as_ref(), Ok(Test::Exists)).not()
    }

    /// A string that begins so.
    pub fn prefix(path: impl AsRef<str>, prefix: impl Into<String>) -> Self {
        Self::of(path.as_ref(), Ok(Test::Prefix(prefix.into().into())))
    }

    /// An array with an element that is equal to a value: the same as `path[*] = value`.
    pub fn contains(path: impl AsRef<str>, value: impl Into<FilterValue>) -> Self {
        let test = Literal::read(&value.into()).map(Test::Equal);
        let expression = RecordPath::parse(path.as_ref())
            .map_err(|error| error.message().to_owned())
            .and_then(|path| Ok(Expression::Test(path.elements(), test?)));
        Self { expression, depth: 0 }
    }

    /// Both.
    pub fn and(self, other: impl Into<Self>) -> Self {
        self.join(other.into(), Joint::All)
    }

    /// One of them, or both.
    pub fn or(self, other: impl Into<Self>) -> Self {
        self.join(other.into(), Joint::Any)
    }

    /// The opposite.
    #[expect(clippy::should_implement_trait, reason = "it is called like `and` and `or`")]
    pub fn not(self) -> Self {
        match self.expression {
            Ok(Expression::Not(inner)) => Self { expression: Ok(*inner), depth: self.depth - 1 },
            Ok(inner) => Self::of_depth(Expression::Not(Box::new(inner)), self.depth + 1),
            Err(why) => Self { expression: Err(why), depth: 0 },
        }
    }

    fn join(self, other: Self, joint: Joint) -> Self {
        let (mut all, mut depth) = (Vec::new(), 1);
        for side in [self, other] {
            match (joint, side.expression) {
                (_, Err(why)) => return Self { expression: Err(why), depth: 0 },
                (Joint::All, Ok(Expression::All(mut parts)))
                | (Joint::Any, Ok(Expression::Any(mut parts))) => {
                    all.append(&mut parts);
                    depth = depth.max(side.depth);
                }
                (_, Ok(other)) => {
                    all.push(other);
                    depth = depth.max(side.depth + 1);
                }
            }
        }
        let joined = match joint {
            Joint::All => Expression::All(all),
            Joint::Any => Expression::Any(all),
        };
        Self::of_depth(joined, depth)
    }

    fn of_depth(expression: Expression, depth: usize) -> Self {
        if depth <= FILTER_DEPTH_MAX {
            return Self { expression: Ok(expression), depth };
        }
        Self { expression: Err(too_deep()), depth: 0 }
    }

    fn compare(path: &str, value: &FilterValue, test: impl Fn(Literal) -> Test) -> Self {
        Self::of(path, Literal::read(value).map(test))
    }

    fn range(path: &str, low: Bound<FilterValue>, high: Bound<FilterValue>) -> Self {
        Self::of(path, range(low, high))
    }

    fn of(path: &str, test: Result<Test, String>) -> Self {
        let expression = RecordPath::parse(path)
            .map_err(|error| error.message().to_owned())
            .and_then(|path| Ok(Expression::Test(path, test?)));
        Self { expression, depth: 0 }
    }

    /// A filter that was read.
    pub(super) fn read(expression: Expression) -> Self {
        let depth = expression.depth();
        Self::of_depth(expression, depth)
    }

    /// The filter itself; `Invalid` if it was made of what can be none.
    pub(super) fn expression(&self) -> Result<&Expression> {
        self.expression.as_ref().map_err(|why| {
            Error::new(ErrorKind::Invalid, format!("this cannot be a filter: {why}"))
        })
    }
}

fn too_deep() -> String {
    format!("it has more than {FILTER_DEPTH_MAX} levels of and, or and not inside each other")
}

/// The test of a range; what is wrong with it if its ends are of different types.
pub(super) fn range(low: Bound<FilterValue>, high: Bound<FilterValue>) -> Result<Test, String> {
    let read = |bound: Bound<FilterValue>| -> Result<Bound<Literal>, String> {
        let literal = match bound {
            Bound::Unbounded => return Ok(Bound::Unbounded),
            Bound::Included(ref value) | Bound::Excluded(ref value) => Literal::read(value)?,
        };
        if literal.datum().is_none() {
            return Err(format!("{literal} is in no order: arrays and objects are equal or not"));
        }
        Ok(bound.map(|_| literal))
    };
    let (low, high) = (read(low)?, read(high)?);
    if let (Bound::Included(low), Bound::Included(high)) = (&low, &high)
        && low.class() != high.class()
    {
        return Err(format!("{low} and {high} are of different types: nothing is between them"));
    }
    Ok(Test::Range(low, high))
}

impl Expression {
    fn depth(&self) -> usize {
        match self {
            Self::Test(..) => 0,
            Self::Not(inner) => inner.depth() + 1,
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().map(Self::depth).max().unwrap_or(0) + 1
            }
        }
    }

    /// Whether it is true of a record.
    pub(super) fn holds(&self, view: View<'_>, record: &At) -> Result<bool> {
        match self {
            Self::Not(inner) => Ok(!inner.holds(view, record)?),
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(view, record)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(view, record)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Test(path, test) => {
                for at in path_values::values(view, record, path)? {
                    if test.holds(view, &at)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The filter as tests of columns. Elements of arrays are not in the records' columns: where
    /// there is an array it has to be told of them, else the records are looked at.
    pub(super) fn condition(&self, elements: &mut Vec<ElementTest>) -> Condition<FieldTest> {
        let mut each = |parts: &[Self]| {
            parts.iter().map(|part| part.condition(&mut *elements)).collect::<Vec<_>>()
        };
        match self {
            Self::All(parts) => Condition::All(each(parts)),
            Self::Any(parts) => Condition::Any(each(parts)),
            Self::Not(inner) => Condition::Not(Box::new(inner.condition(elements))),
            Self::Test(path, test) => {
                let mut parts = path.steps().split(|step| *step == RecordStep::Elements);
                let array = parts.next().map(names).unwrap_or_default();
                let inner = parts.next().map(names);
                let unsure = || Condition::Column(array.clone(), FieldTest::OfElements);
                match (inner, parts.next()) {
                    (None, _) => Condition::Column(array, FieldTest::Of(test.clone())),
                    (Some(inner), None) => {
                        let unsure = Box::new(unsure());
                        elements.push(ElementTest::new(array, inner, test));
                        Condition::Told(elements.len() - 1, unsure)
                    }
                    // Of elements in elements nobody tells.
                    (Some(_), Some(_)) => unsure(),
                }
            }
        }
    }
}

/// The names of fields, one inside the other.
fn names(steps: &[RecordStep]) -> Vec<Arc<str>> {
    let name = |step: &RecordStep| match step {
        RecordStep::Field(name) => Some(Arc::from(&**name)),
        RecordStep::Elements => None,
    };
    steps.iter().filter_map(name).collect()
}

/// What is asked of a column.
#[derive(Debug)]
pub(super) enum FieldTest {
    Of(Test),
    /// Something about the elements of the array there.
    OfElements,
}

impl ColumnTest for FieldTest {
    fn holds_for_missing(&self) -> bool {
        false
    }

    fn verdict(&self, state: Datum<'_>) -> Option<bool> {
        match (self, state) {
            (Self::Of(test), state) => test.verdict(state),
            (Self::OfElements, Datum::Array(Sequence::Extent(Extent { count: 0, .. }))) => {
                Some(false)
            }
            (
                Self::OfElements,
                Datum::Array(_) | Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. },
            ) => None,
            (Self::OfElements, _) => Some(false),
        }
    }

    fn integers(&self) -> Option<Integers> {
        match self {
            Self::Of(test) => test.integers(),
            Self::OfElements => None,
        }
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Of(test) => test.text(),
            Self::OfElements => None,
        }
    }

    fn is_of_presence(&self) -> bool {
        matches!(self, Self::Of(test) if test.is_of_presence())
    }
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse::read(text)
    }
}

/// As it is read.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.expression {
            Ok(expression) => expression.fmt(f),
            Err(why) => write!(f, "no filter: {why}"),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, word) = match self {
            Self::Test(path, test) => return write!(f, "{path} {test}"),
            Self::Not(inner) => {
                return match &**inner {
                    Self::Test(path, Test::Exists) => write!(f, "{path} is missing"),
                    inner => write!(f, "not ({inner})"),
                };
            }
            Self::All(parts) => (parts, "and"),
            Self::Any(parts) => (parts, "or"),
        };
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                write!(f, " {word} ")?;
            }
            match part {
                Self::All(_) | Self::Any(_) => write!(f, "({part})")?,
                Self::Not(_) | Self::Test(..) => part.fmt(f)?,
            }
        }
        Ok(())
    }
}

/// Equal if they are written alike.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for Filter {}
