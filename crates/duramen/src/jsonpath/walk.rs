//! Walks over a tree in the order of RFC 9535, one result at a time.
//!
//! Invariants:
//! - the walk is a stack of values whose children are being chosen from: its memory follows the
//!   depth and the length of the query, not the number of values;
//! - no lock is held between two results, nor while anything is loaded.

use std::sync::Arc;

use super::columns::Scan;
use super::filter::Context;
use super::place::{At, Child, Children, Opened};
use super::syntax::{Segment, Selector, Slice};
use crate::error::Result;

/// The way from the root to a value; nothing for the root.
#[derive(Debug, Clone, Default)]
pub(super) struct Trail(Option<Arc<Link>>);

#[derive(Debug)]
struct Link {
    parent: Trail,
    step: Step,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Name(Arc<str>),
    Index(u64),
}

/// A value that a query finds.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) at: At,
    pub(super) parent: Trail,
    pub(super) step: Option<Step>,
}

/// Whether results say where they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trace {
    On,
    Off,
}

/// A walk that can be put aside between two results.
#[derive(Debug)]
pub(super) struct Walk {
    trace: Trace,
    start: Option<At>,
    stack: Vec<Frame>,
}

/// A value whose children are being chosen from.
#[derive(Debug)]
struct Frame {
    segment: usize,
    opened: Opened,
    trail: Trail,
    selector: usize,
    progress: Progress,
}

/// How far a selector has come.
#[derive(Debug)]
enum Progress {
    Begin,
    All(Children),
    Filter(Children),
    Scan(Box<Scan>),
    Slice { next: i64, end: i64 },
    Descend(Children),
}

/// What a frame does next.
enum Advance {
    /// A child that a selector chose, with its name where that is known.
    Chosen(Child, Option<Arc<str>>),
    /// A child below which a descendant segment goes on.
    Below(Child),
    Done,
}

impl Walk {
    pub(super) fn new(start: At, trace: Trace) -> Self {
        Self { trace, start: Some(start), stack: Vec::new() }
    }

    /// The next result. After an error the walk is at its end.
    pub(super) fn next(
        &mut self,
        context: Context<'_>,
        segments: &[Segment],
    ) -> Result<Option<Found>> {
        let found = self.advance(context, segments);
        if found.is_err() {
            self.stack.clear();
        }
        found
    }

    /// The next result that is known already: most results of a large scan (benchmark J1).
    #[inline]
    pub(super) fn next_sure(&mut self, segments: &[Segment]) -> Option<Found> {
        let frame = self.stack.last_mut()?;
        let Progress::Scan(scan) = &mut frame.progress else { return None };
        if frame.segment + 1 != segments.len() {
            return None;
        }
        let (at, index) = scan.next_sure()?;
        Some(Found { at, parent: frame.trail.clone(), step: Some(Step::Index(index)) })
    }

    fn advance(&mut self, context: Context<'_>, segments: &[Segment]) -> Result<Option<Found>> {
        if let Some(start) = self.start.take() {
            let found = Found { at: start, parent: Trail::default(), step: None };
            if segments.is_empty() {
                return Ok(Some(found));
            }
            let opened = context.view.open(&found.at)?;
            self.push(0, opened, Trail::default());
        }
        while let Some(frame) = self.stack.last_mut() {
            let Some(segment) = segments.get(frame.segment) else { return Ok(None) };
            let (child, name, next) = match frame.advance(context, segment)? {
                Advance::Chosen(child, name) => (child, name, frame.segment + 1),
                Advance::Below(child) => (child, None, frame.segment),
                Advance::Done => {
                    self.stack.pop();
                    continue;
                }
            };
            let parent = frame.trail.clone();
            if next == segments.len() {
                let step = self.step(context, &child, name)?;
                return Ok(Some(Found { at: child.at, parent, step }));
            }
            let opened = context.view.open(&child.at)?;
            if !matches!(opened, Opened::Leaf) {
                let step = self.step(context, &child, name)?;
                self.push(next, opened, Found { at: child.at, parent, step }.trail());
            }
        }
        Ok(None)
    }

    fn step(
        &self,
        context: Context<'_>,
        child: &Child,
        name: Option<Arc<str>>,
    ) -> Result<Option<Step>> {
        Ok(match (self.trace, child.index, name) {
            (Trace::Off, ..) => None,
            (Trace::On, Some(index), _) => Some(Step::Index(index)),
            (Trace::On, None, Some(name)) => Some(Step::Name(name)),
            (Trace::On, None, None) => Some(Step::Name(context.view.name(&child.at)?)),
        })
    }

    fn push(&mut self, segment: usize, opened: Opened, trail: Trail) {
        self.stack.push(Frame { segment, opened, trail, selector: 0, progress: Progress::Begin });
    }
}

impl Frame {
    fn advance(&mut self, context: Context<'_>, segment: &Segment) -> Result<Advance> {
        while let Some(selector) = segment.selectors.get(self.selector) {
            if let Some(advance) = self.choose(context, selector)? {
                return Ok(advance);
            }
            self.selector += 1;
            self.progress = Progress::Begin;
        }
        if !segment.is_descendant {
            return Ok(Advance::Done);
        }
        if !matches!(self.progress, Progress::Descend(_)) {
            self.progress = Progress::Descend(Children::of(&self.opened));
        }
        let Progress::Descend(children) = &mut self.progress else { return Ok(Advance::Done) };
        Ok(children.next(context.view)?.map_or(Advance::Done, Advance::Below))
    }

    /// The next child that the selector chooses.
    fn choose(&mut self, context: Context<'_>, selector: &Selector) -> Result<Option<Advance>> {
        let view = context.view;
        if let Progress::Begin = self.progress {
            match selector {
                Selector::Name(name) => {
                    self.progress = Progress::All(Children::None);
                    let member = view.member(&self.opened, name)?;
                    return Ok(member.map(|at| {
                        Advance::Chosen(Child { at, index: None }, Some(Arc::clone(name)))
                    }));
                }
                Selector::Index(index) => {
                    self.progress = Progress::All(Children::None);
                    let element = view.indexed(&self.opened, *index)?;
                    return Ok(element.map(chosen));
                }
                Selector::Wildcard => self.progress = Progress::All(Children::of(&self.opened)),
                Selector::Slice(slice) => {
                    let len = view.array_len(&self.opened)?.unwrap_or(0);
                    let (next, end) = slice.bounds(i64::try_from(len).unwrap_or(i64::MAX));
                    self.progress = Progress::Slice { next, end };
                }
                Selector::Filter(logical) => {
                    self.progress = match Scan::of(context, &self.opened, logical)? {
                        Some(scan) => Progress::Scan(Box::new(scan)),
                        None => Progress::Filter(Children::of(&self.opened)),
                    };
                }
            }
        }
        match (&mut self.progress, selector) {
            (Progress::All(children), _) => {
                Ok(children.next(view)?.map(|child| Advance::Chosen(child, None)))
            }
            (Progress::Filter(children), Selector::Filter(logical)) => {
                while let Some(child) = children.next(view)? {
                    if logical.holds(context, &view.entered(&child.at)?)? {
                        return Ok(Some(Advance::Chosen(child, None)));
                    }
                }
                Ok(None)
            }
            (Progress::Scan(scan), Selector::Filter(logical)) => {
                Ok(scan.next(context, logical)?.map(|child| Advance::Chosen(child, None)))
            }
            (Progress::Slice { next, end }, Selector::Slice(slice)) => {
                let is_past = if slice.step > 0 { *next >= *end } else { *next <= *end };
                if is_past || slice.step == 0 {
                    return Ok(None);
                }
                let element = view.indexed(&self.opened, *next)?;
                *next = next.saturating_add(slice.step);
                Ok(element.map(chosen))
            }
            _ => Ok(None),
        }
    }
}

fn chosen((at, index): (At, u64)) -> Advance {
    Advance::Chosen(Child { at, index: Some(index) }, None)
}

impl Slice {
    /// The first index and the one that is not reached (RFC 9535, 2.3.4.2.2).
    fn bounds(self, len: i64) -> (i64, i64) {
        let from_begin = |index: i64| if index >= 0 { index } else { len + index };
        if self.step >= 0 {
            let start = from_begin(self.start.unwrap_or(0)).clamp(0, len);
            (start, from_begin(self.end.unwrap_or(len)).clamp(0, len))
        } else {
            let start = self.start.map_or(len - 1, from_begin).clamp(-1, len - 1);
            (start, self.end.map_or(-1, from_begin).clamp(-1, len - 1))
        }
    }
}

impl Found {
    /// The way from the root to it.
    pub(super) fn trail(self) -> Trail {
        match self.step {
            Some(step) => Trail(Some(Arc::new(Link { parent: self.parent, step }))),
            None => self.parent,
        }
    }

    /// The steps from the root to it.
    pub(super) fn steps(&self) -> Vec<&Step> {
        let mut steps: Vec<&Step> = self.step.iter().collect();
        let mut trail = &self.parent;
        while let Some(link) = &trail.0 {
            steps.push(&link.step);
            trail = &link.parent;
        }
        steps.reverse();
        steps
    }
}
