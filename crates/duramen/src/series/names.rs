//! Finds the series whose names are of a pattern, as of a state of their catalogue.
//!
//! Few that begin with one text are read from the index of the catalogue's entries, which is in
//! their order. Of others the longest text of the pattern is looked for in the keys of the entries
//! as they stand in their cells, those of a row group at once, and nothing is kept of the names.

use std::ops::Range;

use memchr::memmem::Finder;

use crate::error::Result;
use crate::limits::ROW_GROUP_SLOTS;
use crate::node::{NodeId, PathId};
use crate::series::definition::SeriesInfo;
use crate::series::filter::{NamePattern, SeriesFilter};
use crate::series::many::on_all_processors;
use crate::series::tags;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::group::{GroupId, SLOTS, locate};
use crate::tree::stored_records::RecordBatch;

/// Names of one beginning that are looked for in the index: of more, all are gone through.
const BEGUN_MAX: usize = if cfg!(test) { 7 } else { 4_096 };

/// Row groups that one thread goes through sooner than another one has begun.
const GROUPS_TOGETHER: usize = if cfg!(test) { 1 } else { 8 };

/// Entries that one thread reads together.
const ENTRIES_TOGETHER: usize = if cfg!(test) { 3 } else { 128 };

/// A name with its entry.
pub(crate) type Named = (String, NodeId);

/// The series that there are of one row group, by the slots of their entries, rising.
#[derive(Debug)]
struct Part {
    path: PathId,
    id: GroupId,
    slots: Vec<Range<u16>>,
}

/// The names of a pattern as of a revision of the catalogue, with their entries, rising.
pub(crate) fn like((tags, revision): (&Tree, u32), pattern: NamePattern<'_>) -> Result<Vec<Named>> {
    if let Some(mut begun) = tags::begun_with(tags, pattern.prefix, revision, BEGUN_MAX)? {
        begun.retain(|(name, _)| pattern.takes(name));
        return Ok(begun);
    }
    let parts = parts(tags, revision)?;
    let together: Vec<&[Part]> = parts.chunks(GROUPS_TOGETHER).collect();
    let text = Finder::new(pattern.text());
    let found = on_all_processors(&together, |parts| {
        let (mut found, mut room) = (Vec::new(), Vec::new());
        if let [first, ..] = parts {
            tags.load_directories(first.id.space, parts.iter().map(|part| part.id.group))?;
        }
        for part in *parts {
            found.append(&mut part.like(tags, (&text, &mut room), pattern)?);
        }
        Ok(found)
    })?;
    let mut found: Vec<Named> = found.into_iter().flatten().collect();
    // Most often they were made in an order that rises for long stretches.
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found.dedup_by_key(|(_, entry)| *entry);
    Ok(found)
}

/// What the catalogue says of the series of some names, which are there as of the revision, as far
/// as a filter lets them through, in the order of the names. They are read by their columns, in the
/// order in which they lie there.
pub(crate) fn read(
    (tags, revision): (&Tree, u32),
    names: &[Named],
    filter: &SeriesFilter,
) -> Result<Vec<SeriesInfo>> {
    let mut places: Vec<usize> = (0..names.len()).collect();
    places.sort_unstable_by_key(|place| names[*place].1.ordinal());
    let together: Vec<&[usize]> = places.chunks(ENTRIES_TOGETHER).collect();
    let read = on_all_processors(&together, |places| {
        let path = names[places[0]].1.path();
        let ordinals = places.iter().map(|place| names[*place].1.ordinal().0).collect();
        let (mut batch, mut left) = (RecordBatch::of_entries(path, ordinals), places.len());
        let mut taken = Vec::new();
        while let Some((at, record)) = batch.next((tags, revision))? {
            let place = places[at];
            let info = SeriesInfo::from_json(&names[place].0, record.json.as_bytes())?;
            left -= 1;
            if filter.takes(&info.definition) {
                taken.push((place, info));
            }
        }
        if left > 0 {
            return Err(tags::wrong(&format!("{left} names without what they stand for")));
        }
        Ok(taken)
    })?;
    let mut read: Vec<(usize, SeriesInfo)> = read.into_iter().flatten().collect();
    read.sort_unstable_by_key(|(place, _)| *place);
    Ok(read.into_iter().map(|(_, info)| info).collect())
}

/// The series that there are in a state of the catalogue, by row groups.
fn parts(tags: &Tree, revision: u32) -> Result<Vec<Part>> {
    let Some((path, ordinals)) = tags::living(tags, revision)? else { return Ok(Vec::new()) };
    let space = tags.data.read().schema.path(path).space;
    let mut parts: Vec<Part> = Vec::new();
    for Range { mut start, end } in ordinals {
        while start < end {
            let (group, first) = locate(start);
            let id = GroupId { space, group: u32::try_from(group).expect("40-bit ordinals") };
            let left = u16::try_from(end - start).unwrap_or(SLOTS).min(SLOTS - first);
            let slots = first..first + left;
            match parts.last_mut() {
                Some(last) if last.id == id => last.slots.push(slots),
                _ => parts.push(Part { path, id, slots: vec![slots] }),
            }
            start += u64::from(left);
        }
    }
    Ok(parts)
}

impl Part {
    /// Those whose names are of a pattern, which have its text.
    fn like(
        &self,
        tags: &Tree,
        search: (&Finder<'_>, &mut Vec<u8>),
        pattern: NamePattern<'_>,
    ) -> Result<Vec<Named>> {
        let first = u64::from(self.id.group) * ROW_GROUP_SLOTS;
        let mut found = Vec::new();
        tags.keys_with(self.id, search, &mut |slot, name| {
            let name = String::from_utf8_lossy(name);
            if pattern.takes(&name) && self.has(slot) {
                let entry = node(self.path, first + u64::from(slot));
                found.push((name.into_owned(), entry));
            }
        })?;
        Ok(found)
    }

    fn has(&self, slot: u16) -> bool {
        let before = self.slots.partition_point(|slots| slots.end <= slot);
        self.slots.get(before).is_some_and(|slots| slots.contains(&slot))
    }
}

#[cfg(test)]
mod tests;
