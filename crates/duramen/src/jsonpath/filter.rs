//! Filter expressions over one value.

use std::cell::RefCell;

use super::pattern::Pattern;
use super::place::{At, Child, Children, Opened, View};
use super::syntax::{
    Comparable, Logical, Matching, Operator, Origin, Path, PatternSource, Singular, SingularStep,
};
use super::value::{Value, is_equal};
use super::walk::{Trace, Walk};
use crate::error::Result;

/// What a query is evaluated over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) view: View<'a>,
    pub(super) root: &'a At,
    pub(super) memo: &'a Memo,
}

/// The pattern found last: one that is the same for every value is translated once.
#[derive(Debug, Default)]
pub(super) struct Memo(RefCell<Option<Known>>);

/// A pattern by its text and whether it has to cover what it matches.
type Known = (Box<[u8]>, bool, Pattern);

impl Logical {
    /// Whether it is true of a value.
    pub(super) fn holds(&self, context: Context<'_>, current: &At) -> Result<bool> {
        match self {
            Self::Or(parts) => any(parts, |part| part.holds(context, current)),
            Self::And(parts) => Ok(!any(parts, |part| Ok(!part.holds(context, current)?))?),
            Self::Not(inner) => Ok(!inner.holds(context, current)?),
            Self::Exists(path) => {
                let mut walk = path.walk(context, current);
                Ok(walk.next(context, &path.segments)?.is_some())
            }
            Self::Compare(left, operator, right) => {
                let left = left.value(context, current)?;
                operator.compares(context.view, &left, &right.value(context, current)?)
            }
            Self::Matches(matching) => matching.holds(context, current),
        }
    }
}

impl Matching {
    fn holds(&self, context: Context<'_>, current: &At) -> Result<bool> {
        let Value::Text(text) = self.text.value(context, current)? else { return Ok(false) };
        let text = String::from_utf8_lossy(&text);
        let pattern = match &self.pattern {
            PatternSource::Literal(pattern) => return Ok(pattern.matches(&text)),
            PatternSource::Found(found) => found.value(context, current)?,
        };
        let Value::Text(pattern) = pattern else { return Ok(false) };
        let mut memo = context.memo.0.borrow_mut();
        if let Some((last, is_whole, known)) = &*memo
            && *last == pattern
            && *is_whole == self.is_whole
        {
            return Ok(known.matches(&text));
        }
        let new = Pattern::new(&String::from_utf8_lossy(&pattern), self.is_whole)?;
        let (_, _, new) = memo.insert((pattern, self.is_whole, new));
        Ok(new.matches(&text))
    }
}

impl Comparable {
    pub(super) fn value(&self, context: Context<'_>, current: &At) -> Result<Value> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Singular(singular) => match singular.find(context, current)? {
                Some(at) => context.view.value(&at),
                None => Ok(Value::Nothing),
            },
            Self::Length(of) => length(context, &of.value(context, current)?),
            Self::Count(path) => {
                let mut walk = path.walk(context, current);
                let mut count = 0;
                while walk.next(context, &path.segments)?.is_some() {
                    count += 1;
                }
                Ok(Value::Int(count))
            }
            Self::ValueOf(path) => {
                let mut walk = path.walk(context, current);
                let first = walk.next(context, &path.segments)?;
                match (first, walk.next(context, &path.segments)?) {
                    (Some(only), None) => context.view.value(&only.at),
                    _ => Ok(Value::Nothing),
                }
            }
        }
    }
}

impl Path {
    fn walk(&self, context: Context<'_>, current: &At) -> Walk {
        Walk::new(self.origin.of(context, current).clone(), Trace::Off)
    }
}

impl Origin {
    fn of<'a>(self, context: Context<'a>, current: &'a At) -> &'a At {
        match self {
            Self::Root => context.root,
            Self::Current => current,
        }
    }
}

impl Singular {
    fn find(&self, context: Context<'_>, current: &At) -> Result<Option<At>> {
        let mut at = self.origin.of(context, current).clone();
        for step in &self.steps {
            let opened = context.view.open(&at)?;
            let next = match step {
                SingularStep::Name(name) => context.view.member(&opened, name)?,
                SingularStep::Index(index) => {
                    context.view.indexed(&opened, *index)?.map(|found| found.0)
                }
            };
            match next {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }
}

impl Operator {
    fn compares(self, view: View<'_>, left: &Value, right: &Value) -> Result<bool> {
        if let (Some(left), Some(right)) = (left.datum(), right.datum()) {
            return Ok(self.holds(left, right));
        }
        let is_same = match (left, right) {
            (Value::Container(left), Value::Container(right)) => is_same(view, left, right)?,
            _ => false,
        };
        Ok(match self {
            Self::NotEqual => !is_same,
            _ => is_same && self.includes_equal(),
        })
    }
}

fn length(context: Context<'_>, value: &Value) -> Result<Value> {
    let length = match value {
        Value::Text(text) => Some(String::from_utf8_lossy(text).chars().count() as u64),
        Value::Container(at) => context.view.len(&context.view.open(at)?)?,
        _ => None,
    };
    let length = length.and_then(|length| i64::try_from(length).ok());
    Ok(length.map_or(Value::Nothing, Value::Int))
}

/// Children that are still to be compared: in order, or by name.
enum Rest {
    Elements(Children, Children),
    Members(Children, Opened),
}

/// Whether two arrays or objects are the same value. An explicit stack, because they may be as
/// deep as documents.
fn is_same(view: View<'_>, left: &At, right: &At) -> Result<bool> {
    let Some(rest) = rest(view, left, right)? else { return Ok(false) };
    let mut stack = vec![rest];
    while let Some(rest) = stack.last_mut() {
        let pair = match rest {
            Rest::Elements(left, right) => left.next(view)?.zip(right.next(view)?),
            Rest::Members(left, right) => match left.next(view)? {
                None => None,
                Some(child) => match view.member(right, &view.name(&child.at)?)? {
                    None => return Ok(false),
                    Some(at) => Some((child, Child { at, index: None })),
                },
            },
        };
        let Some((left, right)) = pair else {
            stack.pop();
            continue;
        };
        let (left, right) = (view.value(&left.at)?, view.value(&right.at)?);
        if let (Value::Container(left), Value::Container(right)) = (&left, &right) {
            match self::rest(view, left, right)? {
                None => return Ok(false),
                Some(rest) => stack.push(rest),
            }
        } else {
            let scalars = left.datum().zip(right.datum());
            if !scalars.is_some_and(|(left, right)| is_equal(left, right)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// The children of two containers; none if they cannot be the same value.
fn rest(view: View<'_>, left: &At, right: &At) -> Result<Option<Rest>> {
    let (left, right) = (view.open(left)?, view.open(right)?);
    let arrays = view.array_len(&left)?.is_some();
    if arrays != view.array_len(&right)?.is_some() || view.len(&left)? != view.len(&right)? {
        return Ok(None);
    }
    let children = Children::of(&left);
    Ok(Some(if arrays {
        Rest::Elements(children, Children::of(&right))
    } else {
        Rest::Members(children, right)
    }))
}

fn any<T>(parts: &[T], holds: impl Fn(&T) -> Result<bool>) -> Result<bool> {
    for part in parts {
        if holds(part)? {
            return Ok(true);
        }
    }
    Ok(false)
}
