//! The names of all series in one state of their catalogue, sorted, so that those of a pattern are
//! found without going through the catalogue. They are put together when a pattern first asks for
//! more of them than the catalogue tells quickly.
//!
//! Invariants:
//! - what is kept is of one revision, and never changes;
//! - another revision is made of it by what differs between the two, which costs as much as that;
//! - it is counted by the memory of the database, and goes when that is short.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Range};
use std::sync::{Arc, Weak};

use memchr::memmem;

use crate::error::Result;
use crate::memory::{Evict, Resident};
use crate::node::NodeId;
use crate::order::{self, Edit};
use crate::series::filter::{NamePattern, SeriesFilter};
use crate::series::many::on_all_processors;
use crate::series::tags;
use crate::state::Sequence;
use crate::sync::Mutex;
use crate::tree::Tree;
use crate::tree::group::GroupId;
use crate::tree::schema::SpaceId;

/// Names that came or went before all are put together anew: a look-up after a change copies them.
const CHANGES_MAX: usize = if cfg!(test) { 5 } else { 4_096 };

/// The names that were last asked for.
#[derive(Debug, Default)]
pub(crate) struct LastNames(Mutex<Option<Kept>>);

/// Names that are kept for whoever asks next.
#[derive(Debug)]
struct Kept {
    names: Arc<Names>,
    /// Whether they were asked for since they were last asked to go.
    is_used: bool,
    /// Counts them.
    _resident: Arc<Resident>,
}

/// The names of a revision.
#[derive(Debug)]
pub(crate) struct Names {
    revision: u32,
    /// The map that has them, and the order of its entries.
    entries: Option<(NodeId, Sequence)>,
    sorted: Arc<Sorted>,
    /// Those of `sorted` that went since.
    removed: BTreeSet<Box<str>>,
    /// Those that came since.
    added: BTreeMap<Box<str>, NodeId>,
}

/// Names with their entries, rising.
#[derive(Debug, Default)]
struct Sorted {
    /// All names, one after the other.
    text: String,
    ends: Vec<usize>,
    entries: Vec<NodeId>,
}

/// About what a name takes that came or went.
const CHANGE_BYTES: usize = 96;

/// Names of one beginning that are looked for in the catalogue while nobody asked for others: of
/// more, all are read.
const BEGUN_MAX: usize = if cfg!(test) { 7 } else { 4_096 };

/// Names that one thread goes through sooner than another one has begun.
const PART_NAMES: usize = if cfg!(test) { 3 } else { 1 << 16 };

impl LastNames {
    /// Calls `visit` with the names that a filter lets through as of a revision of their catalogue,
    /// and their entries, rising.
    pub(crate) fn each_like(
        self: &Arc<Self>,
        (tags, revision): (&Tree, u32),
        filter: &SeriesFilter,
        visit: &mut dyn FnMut(&str, NodeId) -> Result<()>,
    ) -> Result<()> {
        let pattern = filter.name_pattern();
        let is_known = self.0.lock().is_some();
        if !is_known
            && let Some(begun) = tags::begun_with(tags, pattern.prefix, revision, BEGUN_MAX)?
        {
            let mut like = begun.iter().filter(|(name, _)| pattern.takes(name));
            return like.try_for_each(|(name, entry)| visit(name, *entry));
        }
        let names = self.at(tags, revision)?;
        names.like(pattern)?.try_for_each(|(name, entry)| visit(name, entry))
    }

    /// The names of the series as of a revision of their catalogue.
    fn at(self: &Arc<Self>, tags: &Tree, revision: u32) -> Result<Arc<Names>> {
        let last = self.0.lock().as_mut().map(|kept| {
            kept.is_used = true;
            Arc::clone(&kept.names)
        });
        let names = match last {
            Some(names) if names.revision == revision => return Ok(names),
            Some(names) => names.at(tags, revision)?,
            None => Names::read(tags, revision)?,
        };
        let names = Arc::new(names);
        self.keep(tags, &names);
        Ok(names)
    }

    /// Keeps names for whoever asks next, unless those of a later revision are.
    fn keep(self: &Arc<Self>, tags: &Tree, names: &Arc<Names>) {
        let memory = tags.cells.memory();
        let mut last = self.0.lock();
        if last.as_ref().is_some_and(|last| last.names.revision >= names.revision) {
            return;
        }
        let owner: Weak<Self> = Arc::downgrade(self);
        let nowhere = GroupId { space: SpaceId(0), group: 0 };
        let resident = Resident::new(memory, owner, nowhere);
        resident.add(names.bytes());
        resident.settle_in();
        *last = Some(Kept { names: Arc::clone(names), is_used: true, _resident: resident });
        drop(last);
        memory.settle();
    }
}

impl Evict for LastNames {
    fn evict(&self, _: GroupId) -> bool {
        let mut last = self.0.lock();
        let is_used = last.as_mut().is_some_and(|kept| std::mem::take(&mut kept.is_used));
        if !is_used {
            *last = None;
        }
        !is_used
    }
}

impl Names {
    fn read(tags: &Tree, revision: u32) -> Result<Self> {
        let mut all = Sorted::default();
        tags::each(tags, revision, &mut |name, entry| {
            all.push(name, entry);
            Ok(())
        })?;
        Ok(Self::of(revision, tags::entries(tags, revision)?, all.sorted()))
    }

    fn of(revision: u32, entries: Option<(NodeId, Sequence)>, sorted: Sorted) -> Self {
        let (removed, added) = (BTreeSet::new(), BTreeMap::new());
        Self { revision, entries, sorted: Arc::new(sorted), removed, added }
    }

    /// The approximate memory that they take.
    fn bytes(&self) -> usize {
        let changes = self.removed.len() + self.added.len();
        self.sorted.bytes() + CHANGE_BYTES * changes
    }

    /// The names of another revision, made of these.
    fn at(&self, tags: &Tree, revision: u32) -> Result<Self> {
        let entries = tags::entries(tags, revision)?;
        let (Some((map, before)), Some((_, after))) = (self.entries, entries) else {
            return Self::read(tags, revision);
        };
        let (gone, come) = places(&order::difference(&&tags.orders, before, after)?);
        let (sorted, removed) = (Arc::clone(&self.sorted), self.removed.clone());
        let mut names = Self { revision, entries, sorted, removed, added: self.added.clone() };
        // What went goes first: what comes may have the name of it.
        for places in gone {
            tags::each_of((tags, map), before, places, &mut |name, _| {
                if names.added.remove(name).is_none() {
                    names.removed.insert(name.into());
                }
                Ok(())
            })?;
        }
        for places in come {
            tags::each_of((tags, map), after, places, &mut |name, entry| {
                names.added.insert(name.into(), entry);
                Ok(())
            })?;
        }
        if names.added.len() + names.removed.len() > CHANGES_MAX {
            let sorted = names.all().collect();
            names = Self::of(revision, entries, sorted);
        }
        Ok(names)
    }

    /// The names of a pattern, with their entries, rising.
    pub(crate) fn like<'n>(
        &'n self,
        pattern: NamePattern<'n>,
    ) -> Result<impl Iterator<Item = (&'n str, NodeId)>> {
        let sorted = self.sorted.like(pattern)?.into_iter();
        let from = (Bound::Included(pattern.prefix), Bound::Unbounded);
        let added = self.added.range::<str, _>(from).map(|(name, entry)| (name.as_ref(), *entry));
        let added = added.take_while(move |(name, _)| name.starts_with(pattern.prefix));
        Ok(self.merged(sorted, added.filter(move |(name, _)| pattern.takes(name))))
    }

    /// All names, rising.
    fn all(&self) -> impl Iterator<Item = (&str, NodeId)> {
        let added = self.added.iter().map(|(name, entry)| (name.as_ref(), *entry));
        self.merged(0..self.sorted.ends.len(), added)
    }

    /// Names of some places that were not removed, and some that were added, rising.
    fn merged<'n>(
        &'n self,
        sorted: impl Iterator<Item = usize>,
        added: impl Iterator<Item = (&'n str, NodeId)>,
    ) -> impl Iterator<Item = (&'n str, NodeId)> {
        let sorted = sorted.map(|at| self.sorted.get(at));
        let mut sorted = sorted.filter(|(name, _)| !self.removed.contains(*name)).peekable();
        let mut added = added.peekable();
        std::iter::from_fn(move || match (sorted.peek(), added.peek()) {
            (Some((old, _)), Some((new, _))) if new < old => added.next(),
            (Some(_), _) => sorted.next(),
            (None, _) => added.next(),
        })
    }
}

impl<'n> FromIterator<(&'n str, NodeId)> for Sorted {
    fn from_iter<I: IntoIterator<Item = (&'n str, NodeId)>>(all: I) -> Self {
        let mut sorted = Self::default();
        all.into_iter().for_each(|(name, entry)| sorted.push(name, entry));
        sorted
    }
}

impl Sorted {
    /// Adds a name behind all others.
    fn push(&mut self, name: &str, entry: NodeId) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
        self.entries.push(entry);
    }

    /// The same names where they came in any order. They come in that in which they were made,
    /// which rises for long stretches.
    fn sorted(self) -> Self {
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        order.sort_by(|one, other| self.name(*one).cmp(self.name(*other)));
        let mut sorted: Self = order.into_iter().map(|at| self.get(at)).collect();
        // They stay, as many as there are.
        sorted.text.shrink_to_fit();
        sorted.ends.shrink_to_fit();
        sorted.entries.shrink_to_fit();
        sorted
    }

    /// The memory that they take.
    fn bytes(&self) -> usize {
        self.text.capacity() + size_of::<usize>() * (self.ends.capacity() + self.entries.capacity())
    }

    fn get(&self, at: usize) -> (&str, NodeId) {
        (self.name(at), self.entries[at])
    }

    fn name(&self, at: usize) -> &str {
        &self.text[self.begin(at)..self.ends[at]]
    }

    /// Where a name begins in the text.
    fn begin(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The places of the names that begin with a text.
    fn begun_with(&self, prefix: &str) -> Range<usize> {
        let first = self.first_where(|name| name >= prefix);
        first..self.first_where(|name| name >= prefix && !name.starts_with(prefix)).max(first)
    }

    /// The places of the names of a pattern, rising.
    fn like(&self, pattern: NamePattern<'_>) -> Result<Vec<usize>> {
        let Range { start, end } = self.begun_with(pattern.prefix);
        let part = |start: usize| start..end.min(start + PART_NAMES);
        let parts: Vec<_> = (start..end).step_by(PART_NAMES).map(part).collect();
        let found = on_all_processors(&parts, |part| {
            let like = self.with(part.clone(), pattern.part);
            Ok(like.filter(|at| pattern.takes(self.name(*at))).collect::<Vec<_>>())
        })?;
        Ok(found.concat())
    }

    /// Those of some names that have a text, which is looked for in all of them at once.
    fn with<'n>(&'n self, places: Range<usize>, part: &'n str) -> impl Iterator<Item = usize> {
        let finder = memmem::Finder::new(part);
        let mut at = places.start;
        std::iter::from_fn(move || {
            while at < places.end {
                let (begin, end) = (self.begin(at), self.ends[places.end - 1]);
                let found = begin + finder.find(&self.text.as_bytes()[begin..end])?;
                at = self.place_of(found, at);
                let is_inside = found + part.len() <= self.ends[at];
                at += 1;
                if is_inside {
                    return Some(at - 1);
                }
            }
            None
        })
    }

    /// The place of the name that has a byte of the text; no name before `at` has it, and most
    /// often one soon behind it.
    fn place_of(&self, byte: usize, at: usize) -> usize {
        let is_before = |end: &usize| *end <= byte;
        let mut reach = 1;
        while self.ends.get(at + reach).is_some_and(is_before) {
            reach *= 2;
        }
        let near = &self.ends[at..self.ends.len().min(at + reach + 1)];
        at + near.partition_point(is_before)
    }

    /// The first name from which on all are so.
    fn first_where(&self, is_so: impl Fn(&str) -> bool) -> usize {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            if is_so(self.name(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// The places in the old order of what went, and those in the new one of what came.
fn places(edits: &[Edit]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (0, 0);
    for edit in edits {
        match *edit {
            Edit::Keep(items) => (old, new) = (old + items, new + items),
            Edit::Remove(items) => {
                gone.push(old..old + items);
                old += items;
            }
            Edit::Insert(items) => {
                come.push(new..new + items);
                new += items;
            }
        }
    }
    (gone, come)
}

#[cfg(test)]
mod tests;
