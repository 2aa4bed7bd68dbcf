//! Columns of parts as they were found, for the queries after the first: where their cells lie and
//! what their heads say, so that nothing has to be looked up again. It is what was read, never an
//! answer.
//!
//! Invariants:
//! - rows at one revision do not change; after something was erased, nothing serves that was cached
//!   before;
//! - every byte kept is counted by a [`Resident`], and all of it can be dropped like what is
//!   decoded of segments.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::floats::Floats;
use super::mask::Mask;
use super::value::{Value, ValueKind};
use super::view::{Body, Section, States, Told, View};
use super::{AggregateColumn, AggregatePlan};
use crate::encoding::{Column, Summary, ValuesCell};
use crate::memory::{Evict, Memory, Resident};
use crate::sync::Mutex;
use crate::tree::conditions::Bits;
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;

/// What is known of the columns of rows at one revision.
#[derive(Debug)]
pub(in crate::columns) struct ViewCache {
    memory: Arc<Memory>,
    known: Mutex<Known>,
    /// Whether it was used since it was last asked to go.
    used: AtomicBool,
}

#[derive(Debug, Default)]
struct Known {
    /// How often something had been erased by then.
    erasures: u64,
    columns: FxHashMap<AggregateColumn, Arc<CachedColumn>>,
    rows: Option<Arc<ByPart<Mask>>>,
    resident: Option<Arc<Resident>>,
}

/// What is known of each part.
#[derive(Debug)]
pub(super) struct ByPart<T> {
    parts: Box<[OnceLock<T>]>,
    /// Counts it.
    resident: Arc<Resident>,
    bytes_max: usize,
}

/// What is known of a column.
#[derive(Debug)]
struct CachedColumn {
    views: Arc<ByPart<CachedView>>,
    dictionary: Arc<Dictionary>,
}

/// What is known of the columns of a plan.
#[derive(Debug)]
pub(super) struct CachedViews {
    rows: Arc<ByPart<Mask>>,
    columns: SmallVec<[Arc<CachedColumn>; 4]>,
}

/// Strings of a column by numbers that are the same in all parts, so that who has seen one knows it
/// again without a look at it.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    terms: Mutex<FxHashMap<Box<[u8]>, u32>>,
}

/// A string by its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term<'a> {
    pub(super) dictionary: &'a Arc<Dictionary>,
    pub(super) term: u32,
}

/// The states of a section, as far as they are strings of a dictionary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms<'a> {
    dictionary: &'a Arc<Dictionary>,
    /// By state; those beyond the last one have none.
    terms: &'a [u32],
}

/// Strings of a dictionary at most.
const TERMS_MAX: usize = 4_096;

/// Bytes of a string of a dictionary, about, beside its own.
const TERM_BYTES: usize = 48;

/// A view of its own.
#[derive(Debug)]
pub(super) struct CachedView {
    sections: SmallVec<[CachedSection; 1]>,
    patches: Box<[(u16, CachedValue)]>,
    patched: Mask,
    there: Mask,
    bytes: usize,
    changes_bytes: usize,
}

#[derive(Debug)]
struct CachedSection {
    first: u16,
    len: u16,
    body: CachedBody,
    summary: Option<Summary>,
}

#[derive(Debug)]
enum CachedBody {
    Same(CachedValue),
    Integers(ValuesCell),
    Decimals(ValuesCell, u8),
    Floats(Arc<Floats>),
    Coded(ValuesCell, CachedStates),
    Either(Bytes, [CachedValue; 2]),
    Slots(Box<Column>),
}

/// The distinct values of a section.
#[derive(Debug)]
pub(super) struct CachedStates {
    values: Box<[CachedValue]>,
    dictionary: Arc<Dictionary>,
    /// By value; none if there were too many.
    terms: Box<[u32]>,
}

/// A value of its own.
#[derive(Debug)]
enum CachedValue {
    Missing,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Box<[u8]>),
}

impl ViewCache {
    pub(in crate::columns) fn new(memory: &Arc<Memory>) -> Arc<Self> {
        let memory = Arc::clone(memory);
        Arc::new(Self { memory, known: Mutex::default(), used: AtomicBool::new(false) })
    }

    /// What is known of the columns of a plan, and where more of them is put.
    pub(super) fn of(
        self: &Arc<Self>,
        plan: &AggregatePlan,
        parts: usize,
        erasures: u64,
    ) -> CachedViews {
        self.used.store(true, Ordering::Relaxed);
        let mut known = self.known.lock();
        if known.erasures != erasures {
            *known = Known { erasures, ..Known::default() };
        }
        let Known { columns, rows, resident, .. } = &mut *known;
        let resident = resident.get_or_insert_with(|| {
            let owner: Weak<Self> = Arc::downgrade(self);
            let nowhere = GroupId { space: SpaceId(0), group: 0 };
            let resident = Resident::new(&self.memory, owner, nowhere);
            resident.settle_in();
            resident
        });
        let bytes_max = self.memory.views_max();
        let rows = rows.get_or_insert_with(|| ByPart::new(parts, resident, bytes_max));
        let column = |column: &AggregateColumn| {
            let column = columns.entry(*column);
            Arc::clone(column.or_insert_with(|| {
                let views = ByPart::new(parts, resident, bytes_max);
                Arc::new(CachedColumn { views, dictionary: Arc::default() })
            }))
        };
        CachedViews { rows: Arc::clone(rows), columns: plan.columns.iter().map(column).collect() }
    }
}

impl Evict for ViewCache {
    fn evict(&self, _: GroupId) -> bool {
        let is_used = self.used.swap(false, Ordering::Relaxed);
        if !is_used {
            *self.known.lock() = Known::default();
        }
        !is_used
    }
}

impl<T> ByPart<T> {
    /// Nothing is known yet; of more parts than there is memory for nothing will be.
    fn new(parts: usize, resident: &Arc<Resident>, bytes_max: usize) -> Arc<Self> {
        let bytes = parts * size_of::<OnceLock<T>>();
        let fits = resident.bytes() + bytes <= bytes_max;
        let parts = if fits { parts } else { 0 };
        resident.add(parts * size_of::<OnceLock<T>>());
        let parts = std::iter::repeat_with(OnceLock::new).take(parts).collect();
        Arc::new(Self { parts, resident: Arc::clone(resident), bytes_max })
    }

    fn get(&self, part: usize) -> Option<&T> {
        self.parts.get(part)?.get()
    }

    /// Keeps what takes so many bytes beside its own, if there is room for it.
    fn keep(&self, part: usize, bytes: usize, value: impl FnOnce() -> Option<T>) {
        let Some(part) = self.parts.get(part) else { return };
        if part.get().is_none()
            && self.resident.bytes() + bytes <= self.bytes_max
            && let Some(value) = value()
            && part.set(value).is_ok()
        {
            self.resident.add(bytes);
        }
    }
}

impl CachedViews {
    /// The rows of a part, and the columns of a plan at them, if all of that is known.
    pub(super) fn part(
        &self,
        part: usize,
        (plan, slots): (&AggregatePlan, &Range<u16>),
    ) -> Option<(&Mask, SmallVec<[View<'_>; 2]>)> {
        let rows = self.rows.get(part)?;
        let mut views = SmallVec::new();
        for (cached, column) in self.columns.iter().zip(&plan.columns) {
            views.push(cached.views.get(part)?.view(column.kind, slots));
        }
        Some((rows, views))
    }

    /// Keeps what was found of a part.
    pub(super) fn keep(&self, part: usize, rows: &Mask, views: &[View<'_>]) {
        self.rows.keep(part, rows.bytes(), || Some(rows.clone()));
        for (cached, view) in self.columns.iter().zip(views) {
            let bytes = view.bytes + view.own_bytes();
            cached.views.keep(part, bytes, || CachedView::of(view, cached));
        }
    }
}

impl CachedView {
    /// None if it is not made of cells.
    fn of(view: &View<'_>, column: &CachedColumn) -> Option<Self> {
        let section = |section| CachedSection::of(section, column);
        let sections = view.sections.iter().map(section).collect::<Option<_>>()?;
        let patches = view.patches.iter().map(|(slot, value)| (*slot, CachedValue::of(*value)));
        Some(Self {
            sections,
            patches: patches.collect(),
            patched: view.patched.clone(),
            there: view.there.clone(),
            bytes: view.bytes,
            changes_bytes: view.changes_bytes,
        })
    }

    fn view(&self, kind: ValueKind, slots: &Range<u16>) -> View<'_> {
        let patches = self.patches.iter().map(|(slot, value)| (*slot, value.value()));
        View {
            kind,
            slots: slots.clone(),
            sections: self.sections.iter().map(CachedSection::section).collect(),
            patches: patches.collect(),
            patched: self.patched.clone(),
            there: self.there.clone(),
            read: false.into(),
            bytes: self.bytes,
            changes_bytes: self.changes_bytes,
        }
    }
}

impl CachedSection {
    fn of(section: &Section<'_>, of: &CachedColumn) -> Option<Self> {
        let Told::Cell(column) = section.told else { return None };
        let body = match &section.body {
            Body::Same(value) => CachedBody::Same(CachedValue::of(*value)),
            Body::Integers(values) => CachedBody::Integers(column.values_cell(values)),
            Body::Decimals(values, scale) => {
                CachedBody::Decimals(column.values_cell(values), *scale)
            }
            Body::Floats(floats) => CachedBody::Floats(Arc::clone(floats)),
            Body::Coded(codes, states) => {
                CachedBody::Coded(column.values_cell(codes), CachedStates::of(states, of))
            }
            Body::Either(bits, states) => {
                CachedBody::Either(column.part(bits), states.map(CachedValue::of))
            }
            Body::Slots(column) => CachedBody::Slots(Box::new((*column).clone())),
            Body::Decoded(_) => return None,
        };
        Some(Self { first: section.first, len: section.len, body, summary: section.summary() })
    }

    fn section(&self) -> Section<'_> {
        let body = match &self.body {
            CachedBody::Same(value) => Body::Same(value.value()),
            CachedBody::Integers(values) => Body::Integers(values.values()),
            CachedBody::Decimals(values, scale) => Body::Decimals(values.values(), *scale),
            CachedBody::Floats(floats) => Body::Floats(Arc::clone(floats)),
            CachedBody::Coded(codes, states) => Body::Coded(codes.values(), States::Cached(states)),
            CachedBody::Either(bits, [a, b]) => Body::Either(bits, [a.value(), b.value()]),
            CachedBody::Slots(column) => Body::Slots(column),
        };
        let told = self.summary.as_ref().map_or(Told::Nothing, Told::Summary);
        Section { first: self.first, len: self.len, body, told }
    }
}

impl Dictionary {
    /// The numbers of some values, if all are strings and there are not too many, and the bytes
    /// that were added for them.
    fn terms<'a>(&self, values: impl Iterator<Item = Value<'a>>) -> (Box<[u32]>, usize) {
        let (mut terms, mut bytes) = (self.terms.lock(), 0);
        let mut term = |value: Value<'a>| {
            let Value::Text(text) = value else { return None };
            if let Some(term) = terms.get(text) {
                return Some(*term);
            }
            let term = u32::try_from(terms.len()).ok().filter(|_| terms.len() < TERMS_MAX)?;
            terms.insert(text.into(), term);
            bytes += text.len() + TERM_BYTES;
            Some(term)
        };
        let found = values.map(&mut term).collect::<Option<_>>();
        (found.unwrap_or_default(), bytes)
    }
}

impl<'a> Terms<'a> {
    /// The number of a state.
    #[inline]
    pub(super) fn get(self, state: usize) -> Option<Term<'a>> {
        Some(Term { dictionary: self.dictionary, term: *self.terms.get(state)? })
    }
}

impl CachedStates {
    fn of(states: &States<'_>, column: &CachedColumn) -> Self {
        let (terms, bytes) = column.dictionary.terms(states.iter());
        column.views.resident.add(bytes);
        let dictionary = Arc::clone(&column.dictionary);
        Self { values: states.iter().map(CachedValue::of).collect(), dictionary, terms }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn get(&self, state: usize) -> Option<Value<'_>> {
        self.values.get(state).map(CachedValue::value)
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        Terms { dictionary: &self.dictionary, terms: &self.terms }
    }
}

impl CachedValue {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Missing => Self::Missing,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) => Self::Float(value),
            Value::Text(bytes) => Self::Text(bytes.into()),
        }
    }

    #[inline]
    fn value(&self) -> Value<'_> {
        match self {
            Self::Missing => Value::Missing,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Text(bytes) => Value::Text(bytes),
        }
    }
}

impl View<'_> {
    /// About how many bytes it takes beside those of its cells.
    fn own_bytes(&self) -> usize {
        let states = self.sections.iter().map(|section| match &section.body {
            Body::Coded(_, states) => {
                let texts: usize = states.iter().map(Value::text_bytes).sum();
                texts + states.len() * (size_of::<CachedValue>() + size_of::<u32>())
            }
            Body::Either(_, states) => states.iter().map(|state| state.text_bytes()).sum(),
            Body::Same(value) => value.text_bytes(),
            Body::Floats(floats) => size_of_val(&*floats.values) + floats.valid.bytes(),
            Body::Slots(_) => size_of::<Column>(),
            _ => 0,
        });
        let further = self.sections.len().saturating_sub(1) * size_of::<CachedSection>();
        let of_patches = self.patches.iter().map(|(_, value)| value.text_bytes());
        let patches = self.patches.len() * size_of::<(u16, CachedValue)>();
        let patches = patches + of_patches.sum::<usize>();
        let masks = self.patched.bytes() + self.there.bytes();
        states.sum::<usize>() + further + patches + masks
    }
}

impl Mask {
    fn bytes(&self) -> usize {
        match self {
            Self::None | Self::All => 0,
            Self::Some(_) => size_of::<Bits>(),
        }
    }
}
