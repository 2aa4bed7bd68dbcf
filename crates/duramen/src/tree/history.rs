//! How one node moved: its values as runs of revisions, newest first.
//!
//! A scalar's history follows its own changes. That of an array or object follows every change
//! below it. Where an ancestor was removed the node was not there: a gap between runs.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use crate::error::Result;
use crate::json::number;
use crate::node::NodeId;
use crate::revision::Revision;
use crate::state::{ApartKind, BlobId, Datum};
use crate::tree::Tree;
use crate::tree::data::TreeData;
use crate::tree::group::Fault;
use crate::tree::locate::parent_of;
use crate::tree::schema::index_u32;
use crate::tree::serialize::{Format, write_scalar};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer of 64 bits.
    Integer(i64),
    /// Any other number, as it was written.
    Number(Box<str>),
    /// A string.
    String(Box<str>),
    /// An array or object, as compact JSON text.
    Json(Box<str>),
}

/// Consecutive revisions in which a node had one value.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueRun {
    /// The revision that set the value, or the one that the history begins with if the value is
    /// older than that.
    pub first: Revision,
    /// The last revision that had it.
    pub last: Revision,
    /// The value.
    pub value: Value,
}

/// The history of one node, read page by page from the newest run to the oldest.
#[derive(Debug)]
pub(crate) struct Trail {
    node: NodeId,
    /// Revisions after this one have been read.
    until: u32,
    /// Spans in which an ancestor was not there, rising and apart from each other.
    gaps: Vec<(u32, u32)>,
    /// For arrays and objects: the revisions that changed something below, rising.
    below: Option<Vec<u32>>,
}

/// Room made at once for a page of runs.
const RESERVED_RUNS: usize = 1_024;

/// A value as the pages under construction hold it.
enum Found {
    Value(Value),
    Apart(BlobId, ApartKind),
    Container,
}

impl Value {
    /// Appends the value as compact JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => write_scalar(Datum::Bool(*value), out),
            Self::Integer(value) => write_scalar(Datum::Int(*value), out),
            Self::Number(text) | Self::Json(text) => out.extend_from_slice(text.as_bytes()),
            Self::String(text) => {
                write_scalar(Datum::Text { bytes: text.as_bytes(), plain: false }, out);
            }
        }
    }
}

impl Value {
    /// Compares numbers by value, whatever their form and without rounding, strings by their
    /// bytes in UTF-8, and `false` before `true`. None for values of different kinds, and for
    /// arrays and objects.
    ///
    /// ```
    /// use std::cmp::Ordering;
    /// use duramen::Value;
    ///
    /// let (one, more) = (Value::Number("1.0".into()), Value::Number("1E400".into()));
    /// assert_eq!(Value::Integer(1).compare(&one), Some(Ordering::Equal));
    /// assert_eq!(Value::Integer(i64::MAX).compare(&more), Some(Ordering::Less));
    /// assert_eq!(Value::Integer(1).compare(&Value::String("1".into())), None);
    /// ```
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Null, Self::Null) => Some(Ordering::Equal),
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            _ => number::compare(self.number()?, other.number()?),
        }
    }

    /// The number, if it is one.
    fn number(&self) -> Option<Datum<'_>> {
        match self {
            Self::Integer(value) => Some(Datum::Int(*value)),
            Self::Number(text) => Some(number::classify(text.as_bytes())),
            _ => None,
        }
    }
}

impl std::fmt::Display for Value {
    /// The value as compact JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::new();
        self.write_json(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl Tree {
    /// The history of a node up to a revision.
    pub(crate) fn trail(&self, node: NodeId, until: u32) -> Result<Trail> {
        let gaps = self.gaps(node, until)?;
        let ever_container = self.read(|data| {
            let mut found = false;
            data.versions(node, until, &mut |_, state| {
                found |= state.is_container();
                if found || !is_gap_or_container(&state) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            Ok(found)
        })?;
        let below = if ever_container { self.gather(node, until, u64::MAX)? } else { None };
        Ok(Trail { node, until, gaps, below })
    }

    /// Appends at most `limit` older runs; fewer only at the end of the history.
    pub(crate) fn next_runs(
        &self,
        trail: &mut Trail,
        limit: usize,
        runs: &mut Vec<ValueRun>,
    ) -> Result<()> {
        let wanted = runs.len() + limit;
        let begin = self.data.read().kept.first();
        while runs.len() < wanted && trail.until >= begin {
            let (before, was_container) = (trail.until, trail.below.is_some());
            match &trail.below {
                Some(_) => self.next_container_run(trail, runs)?,
                None => self.next_scalar_runs(trail, wanted - runs.len(), runs)?,
            }
            // Finding out that the node was a container is progress too.
            if trail.until == before && trail.below.is_some() == was_container {
                trail.until = 0;
            }
        }
        Ok(())
    }

    /// Reads a page of a scalar's runs under one lock.
    fn next_scalar_runs(
        &self,
        trail: &mut Trail,
        limit: usize,
        runs: &mut Vec<ValueRun>,
    ) -> Result<()> {
        let start = runs.len();
        let mut pending: Vec<(usize, BlobId, ApartKind)> = Vec::new();
        let mut turned_container = false;
        let (node, gaps, from) = (trail.node, &trail.gaps, trail.until);
        runs.reserve(limit.min(RESERVED_RUNS));
        let mut until = from;
        loop {
            let guard = self.data.read();
            if gaps.is_empty() && guard.kept.is_all() {
                until = push_integers(&guard, (node, until), start + limit, runs);
                if runs.len() >= start + limit || until == 0 {
                    break;
                }
            }
            let outcome = guard.versions(node, until, &mut |set, state| {
                match found(state) {
                    Some(Found::Container) => {
                        turned_container = true;
                        return ControlFlow::Break(());
                    }
                    Some(Found::Value(value)) => push_runs(runs, (set, until), value, gaps),
                    Some(Found::Apart(blob, kind)) => {
                        let first = runs.len();
                        push_runs(runs, (set, until), Value::Null, gaps);
                        pending.extend((first..runs.len()).map(|run| (run, blob, kind)));
                    }
                    None => {}
                }
                until = set - 1;
                if runs.len() >= start + limit || until == 0 {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            drop(guard);
            match outcome {
                Ok(()) => break,
                Err(Fault::Error(error)) => return Err(error),
                Err(Fault::Load(load)) => self.load(*load)?,
            }
        }
        for (run, blob, kind) in pending {
            runs[run].value = apart_value(&self.blobs.get(blob)?, kind);
        }
        trail.until = until;
        if turned_container {
            trail.below = self.gather(node, until, u64::MAX)?;
        }
        Ok(())
    }

    /// Reads the next run of a node that is, or once was, an array or object.
    fn next_container_run(&self, trail: &mut Trail, runs: &mut Vec<ValueRun>) -> Result<()> {
        let below = trail.below.as_deref().unwrap_or_default();
        let last = trail.until;
        let text = self.json_at(trail.node, last)?;
        let mut first = last;
        loop {
            let earlier = below.partition_point(|&change| change <= first);
            let Some(&change) = below[..earlier].last() else {
                trail.until = 0;
                return Ok(());
            };
            first = change;
            // Before its first change the node was not there, whatever its column says.
            if earlier == 1 || self.json_at(trail.node, first - 1)? != text {
                break;
            }
            first -= 1;
        }
        if let Some(value) = text {
            push_runs(runs, (first, last), value, &trail.gaps);
        }
        trail.until = first - 1;
        Ok(())
    }

    /// The value of a node at a revision, ancestors not asked.
    pub(crate) fn json_at(&self, node: NodeId, revision: u32) -> Result<Option<Value>> {
        let found = self.read(|data| Ok(found(data.state(node, revision)?)))?;
        Ok(match found {
            None => None,
            Some(Found::Value(value)) => Some(value),
            Some(Found::Apart(blob, kind)) => Some(apart_value(&self.blobs.get(blob)?, kind)),
            Some(Found::Container) => {
                let mut text = Vec::new();
                self.append_json((node, revision), &Format::default(), &mut text)?;
                Some(Value::Json(to_text(&text)))
            }
        })
    }

    /// The spans up to `until` in which some ancestor of a node was not there. One that is there
    /// holds what is not marked as removed: see [`Writer::erase_children`].
    ///
    /// [`Writer::erase_children`]: crate::tree::writer::Writer::erase_children
    pub(crate) fn gaps(&self, node: NodeId, until: u32) -> Result<Vec<(u32, u32)>> {
        self.absences(self.read(|data| parent_of(data, node))?, until)
    }

    /// The spans up to `until` in which a node, or some ancestor of it, was marked as removed.
    pub(crate) fn absences(&self, mut at: Option<NodeId>, until: u32) -> Result<Vec<(u32, u32)>> {
        let mut gaps = Vec::new();
        while let Some(node) = at {
            let found = self.read(|data| {
                let (mut found, mut end) = (Vec::new(), until);
                data.versions(node, until, &mut |set, state| {
                    if state.is_absent() {
                        found.push((set, end));
                    }
                    end = set - 1;
                    ControlFlow::Continue(())
                })?;
                Ok(found)
            })?;
            gaps.extend(found);
            at = self.read(|data| parent_of(data, node))?;
        }
        gaps.sort_unstable();
        let mut apart: Vec<(u32, u32)> = Vec::with_capacity(gaps.len());
        for (from, to) in gaps {
            match apart.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => apart.push((from, to)),
            }
        }
        Ok(apart)
    }
}

fn is_gap_or_container(state: &Datum<'_>) -> bool {
    state.is_absent() || state.is_container()
}

fn found(state: Datum<'_>) -> Option<Found> {
    Some(match state {
        Datum::Absent => return None,
        Datum::Null => Found::Value(Value::Null),
        Datum::Bool(value) => Found::Value(Value::Bool(value)),
        Datum::Int(value) => Found::Value(Value::Integer(value)),
        Datum::Decimal { .. } | Datum::Float(_) | Datum::Digits(_) => {
            let mut text = Vec::new();
            write_scalar(state, &mut text);
            Found::Value(Value::Number(to_text(&text)))
        }
        Datum::Text { bytes, .. } => Found::Value(Value::String(to_text(bytes))),
        Datum::Opaque(bytes) => Found::Value(Value::Json(to_text(bytes))),
        Datum::Apart { blob, kind } => Found::Apart(blob, kind),
        Datum::Object(_) | Datum::Array(_) | Datum::Map(_) => Found::Container,
    })
}

fn apart_value(bytes: &[u8], kind: ApartKind) -> Value {
    match kind {
        ApartKind::PlainText | ApartKind::Text => Value::String(to_text(bytes)),
        ApartKind::Digits => Value::Number(to_text(bytes)),
        ApartKind::Opaque => Value::Json(to_text(bytes)),
    }
}

fn to_text(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).into()
}

/// Adds the newest changes of a node while they are young integers: the commonest history by far
/// takes the short way (benchmark V4). Returns where to go on.
fn push_integers(
    data: &TreeData,
    (node, mut until): (NodeId, u32),
    wanted: usize,
    runs: &mut Vec<ValueRun>,
) -> u32 {
    let Ok(changes) = data.young_run(node) else { return until };
    let newer = changes.partition_point(|change| change.revision <= until);
    let newest = changes[..newer].iter().rev().take(wanted.saturating_sub(runs.len()));
    let integers = newest.clone().take_while(|change| change.integer().is_some()).count();
    // Their number is known, so that they are written in place without asking for room each time.
    runs.extend(newest.take(integers).map(|change| {
        let last = std::mem::replace(&mut until, change.revision - 1);
        value_run(change.revision, last, Value::Integer(change.integer().unwrap_or_default()))
    }));
    until
}

#[inline]
fn value_run(first: u32, last: u32, value: Value) -> ValueRun {
    ValueRun { first: Revision(u64::from(first)), last: Revision(u64::from(last)), value }
}

/// Adds the span of a value less the gaps, newest first.
fn push_runs(
    runs: &mut Vec<ValueRun>,
    (first, last): (u32, u32),
    value: Value,
    gaps: &[(u32, u32)],
) {
    if gaps.is_empty() {
        runs.push(value_run(first, last, value));
        return;
    }
    let mut end = last;
    for &(from, to) in gaps.iter().rev() {
        if from > end || to < first {
            continue;
        }
        if to < end {
            runs.push(value_run(to + 1, end, value.clone()));
        }
        if from <= first {
            return;
        }
        end = from - 1;
    }
    runs.push(value_run(first, end, value));
}

/// The number of a revision inside a tree, which `REVISIONS_MAX` keeps below 2^32.
pub(crate) fn short(revision: Revision) -> u32 {
    index_u32(usize::try_from(revision.0).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_compare_by_what_they_are_and_not_by_how_they_are_written() {
        let number = |text: &str| Value::Number(text.into());
        let text = |text: &str| Value::String(text.into());
        let rising = [number("-1e400"), Value::Integer(-2), number("-0.5"), number("0.3")];
        for (a, b) in rising.iter().zip(&rising[1..]) {
            assert_eq!(a.compare(b), Some(Ordering::Less), "{a} {b}");
            assert_eq!(b.compare(a), Some(Ordering::Greater), "{b} {a}");
        }
        assert_eq!(Value::Integer(0).compare(&number("-0.0")), Some(Ordering::Equal));
        assert_eq!(number("1E2").compare(&number("100.0")), Some(Ordering::Equal));
        assert_eq!(text("z").compare(&text("\u{e4}")), Some(Ordering::Less));
        assert_eq!(Value::Bool(false).compare(&Value::Bool(true)), Some(Ordering::Less));
        assert_eq!(Value::Null.compare(&Value::Null), Some(Ordering::Equal));
    }

    #[test]
    fn values_of_different_kinds_and_containers_do_not_compare() {
        let array = Value::Json("[]".into());
        assert_eq!(array.compare(&array), None);
        let kinds =
            [Value::Null, Value::Bool(true), Value::Integer(1), Value::String("1".into()), array];
        for (at, a) in kinds.iter().enumerate() {
            for b in &kinds[at + 1..] {
                assert_eq!((a.compare(b), b.compare(a)), (None, None), "{a} {b}");
            }
        }
    }
}
