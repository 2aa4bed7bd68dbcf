//! The names of all series in one state of their catalogue, sorted, so that those of a pattern are
//! found without going through the catalogue.
//!
//! Invariant: what is kept is of one revision, and never changes; another revision is gone through
//! once, by whoever asks first.

use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::Result;
use crate::node::NodeId;
use crate::series::filter::SeriesFilter;
use crate::series::tags;
use crate::tree::Tree;

/// The names that were last asked for.
#[derive(Debug, Default)]
pub(crate) struct LastNames(Mutex<Option<Arc<Names>>>);

/// The names of a revision.
#[derive(Debug)]
pub(crate) struct Names {
    revision: u32,
    /// All names, one after the other, rising.
    text: String,
    ends: Vec<usize>,
    entries: Vec<NodeId>,
}

impl LastNames {
    /// The names of the series as of a revision of their catalogue.
    pub(crate) fn at(&self, tags: &Tree, revision: u32) -> Result<Arc<Names>> {
        let last = self.0.lock().clone();
        if let Some(names) = last.filter(|names| names.revision == revision) {
            return Ok(names);
        }
        let names = Arc::new(Names::read(tags, revision)?);
        let mut last = self.0.lock();
        if last.as_ref().is_none_or(|last| last.revision < revision) {
            *last = Some(Arc::clone(&names));
        }
        Ok(names)
    }
}

impl Names {
    fn read(tags: &Tree, revision: u32) -> Result<Self> {
        let mut all: Vec<(Box<str>, NodeId)> = Vec::new();
        tags::each(tags, revision, &mut |name, entry| {
            all.push((name.into(), entry));
            Ok(())
        })?;
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let bytes = all.iter().map(|(name, _)| name.len()).sum();
        let (mut text, mut ends) = (String::with_capacity(bytes), Vec::with_capacity(all.len()));
        for (name, _) in &all {
            text.push_str(name);
            ends.push(text.len());
        }
        let entries = all.into_iter().map(|(_, entry)| entry).collect();
        Ok(Self { revision, text, ends, entries })
    }

    /// The names that a filter lets through, with their entries, rising.
    pub(crate) fn like<'n>(
        &'n self,
        filter: &'n SeriesFilter,
    ) -> impl Iterator<Item = (&'n str, NodeId)> {
        let begun = self.begun_with(filter.literal_prefix());
        let named = begun.map(|at| (self.name(at), self.entries[at]));
        named.filter(|(name, _)| filter.takes_name(name))
    }

    fn name(&self, at: usize) -> &str {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[at]]
    }

    /// The places of the names that begin with a text.
    fn begun_with(&self, prefix: &str) -> Range<usize> {
        let first = self.first_where(|name| name >= prefix);
        first..self.first_where(|name| name >= prefix && !name.starts_with(prefix)).max(first)
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
