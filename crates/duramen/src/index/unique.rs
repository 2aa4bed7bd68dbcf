//! Refuses to give two records the same values where an index is unique.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::collection::{KeyKind, RecordPath, path_values};
use crate::error::{Error, ErrorKind, Result};
use crate::index::keys::{Key, keys};
use crate::index::{Declared, Index, IndexOptions, IndexRange, was_dropped};
use crate::jsonpath::place::{At, View};
use crate::limits::INDEX_VALUE_BYTES_MAX;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::records::ChangedRecords;
use crate::tree::schema::ROOT;
use crate::tree::writer::Writer;

/// Entries of one key read at once.
const PAGE: usize = 64;

/// A record at a revision.
type Place = (u64, u32);

impl Writer {
    /// Refuses values that a staged record has in common with another one where an index is
    /// unique. What was committed is looked up in the index, what is staged compared among itself.
    pub(crate) fn check_unique(
        &self,
        kind: KeyKind,
        indexes: &IndexOptions,
        changed: &ChangedRecords,
    ) -> Result<()> {
        for (name, declared) in indexes.iter().filter(|(_, declared)| declared.is_unique) {
            match self.check_unique_in((name, declared), kind, changed) {
                // Nothing has to be unique for an index that was dropped meanwhile.
                Err(error) if was_dropped(&error) => {}
                checked => checked?,
            }
        }
        Ok(())
    }

    fn check_unique_in(
        &self,
        (name, declared): (&str, &Declared),
        kind: KeyKind,
        changed: &ChangedRecords,
    ) -> Result<()> {
        let index = self.tree.indexes.get(&self.tree, declared)?;
        if declared.is_building && !index.is_enforced() {
            return Ok(());
        }
        index.follow(&self.tree, self.revision - 1, &mut || Ok(()))?;
        let mut owners: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for ordinal in changed.old.iter().copied().chain(changed.born.clone()) {
            for key in keys(&self.tree, &declared.paths, (ordinal, self.revision))? {
                if key.has_null {
                    continue;
                }
                let before = owners.insert(key.whole().to_vec(), ordinal);
                let other = match before.filter(|&before| before != ordinal) {
                    Some(other) => Some((other, self.revision)),
                    None => self.owner_before(&index, &key, &changed.old)?,
                };
                if let Some(other) = other {
                    let places = [other, (ordinal, self.revision)];
                    let of = (&*self.tree, kind);
                    return Err(collision(of, (name, &declared.paths), &key, places));
                }
            }
        }
        Ok(())
    }

    /// A record that has a key as of the last commit, and that nothing staged changes.
    fn owner_before(
        &self,
        index: &Arc<Index>,
        key: &Key,
        changed: &BTreeSet<u64>,
    ) -> Result<Option<Place>> {
        let before = self.revision - 1;
        if before == 0 {
            return Ok(None);
        }
        let bound = || Bound::Included(key.bytes.clone());
        let of = (Arc::clone(&self.tree), Arc::clone(index));
        let mut range = IndexRange::new(of, before, (bound(), bound()), false);
        loop {
            let page = range.next(PAGE)?;
            if page.is_empty() {
                return Ok(None);
            }
            for (found, ordinal) in page.iter() {
                let place = (ordinal, before);
                if *found == *key.bytes
                    && !changed.contains(&ordinal)
                    && has_whole(&self.tree, &index.paths, key, place)?
                {
                    return Ok(Some(place));
                }
            }
        }
    }
}

/// Refuses values that two records have in common at a revision.
pub(crate) fn check_all(
    (tree, index): (&Arc<Tree>, &Arc<Index>),
    (name, kind): (&str, KeyKind),
    revision: u32,
    pause: &mut dyn FnMut() -> Result<()>,
) -> Result<()> {
    let of = (Arc::clone(tree), Arc::clone(index));
    let mut range = IndexRange::new(of, revision, (Bound::Unbounded, Bound::Unbounded), false);
    // The records that have the last key: all of them if it may be cut, else one says enough.
    let mut same: (Box<[u8]>, Vec<u64>) = Default::default();
    loop {
        let page = range.next(PAGE)?;
        if page.is_empty() {
            return Ok(());
        }
        for (found, ordinal) in page.iter() {
            if *found != *same.0 {
                same = (found.into(), vec![ordinal]);
                continue;
            }
            let place = (ordinal, revision);
            if let Some((key, other)) = shared(tree, &index.paths, place, &same)? {
                let places = [(other, revision), place];
                return Err(collision((tree, kind), (name, &index.paths), &key, places));
            }
            if same.0.len() >= INDEX_VALUE_BYTES_MAX {
                same.1.push(ordinal);
            }
        }
        pause()?;
    }
}

/// The key that a record has in common with another one, of those that have one that is the same as
/// it is cut.
fn shared(
    tree: &Tree,
    paths: &[RecordPath],
    place: Place,
    (cut, others): &(Box<[u8]>, Vec<u64>),
) -> Result<Option<(Key, u64)>> {
    let mut own = keys(tree, paths, place)?;
    own.retain(|key| *key.bytes == **cut && !key.has_null);
    for key in own {
        for &other in others {
            if has_whole(tree, paths, &key, (other, place.1))? {
                return Ok(Some((key, other)));
            }
        }
    }
    Ok(None)
}

/// Whether a record has a key that is as it is where both are cut too.
fn has_whole(tree: &Tree, paths: &[RecordPath], key: &Key, place: Place) -> Result<bool> {
    if key.whole.is_none() {
        return Ok(true);
    }
    Ok(keys(tree, paths, place)?.iter().any(|other| other.whole() == key.whole()))
}

#[cold]
fn collision(
    (tree, kind): (&Tree, KeyKind),
    (name, paths): (&str, &[RecordPath]),
    key: &Key,
    places: [Place; 2],
) -> Error {
    let record = |(ordinal, _): Place| {
        let path = tree.data.read().schema.path(ROOT).entry;
        let name = path.map(|path| tree.name_of(node(path, ordinal)));
        kind.shown(&name.and_then(Result::ok).flatten().unwrap_or_default())
    };
    let value = shown(tree, paths, key, places[1]).unwrap_or_else(|_| "the same value".to_owned());
    let message = format!(
        "the index {name:?} is unique, and the records {} and {} would both have {value}: \
         change one of them",
        record(places[0]),
        record(places[1]),
    );
    Error::new(ErrorKind::Conflict, message)
}

/// The values of a record that make a key, as JSON.
fn shown(tree: &Tree, paths: &[RecordPath], key: &Key, place: Place) -> Result<String> {
    let Some(path) = tree.data.read().schema.path(ROOT).entry else { return Ok(String::new()) };
    let view = View { tree, revision: place.1 };
    let mut values = Vec::new();
    let mut rest = key.whole();
    for at in paths {
        for value in path_values::values(view, &At::Node(node(path, place.0)), at)? {
            let (mut bytes, mut text) = (Vec::new(), Vec::new());
            path_values::append_key(view, &value, &mut bytes)?;
            if let Some(after) = rest.strip_prefix(bytes.as_slice()) {
                rest = after;
                view.append_json(&value, &mut text)?;
                let text: String = String::from_utf8_lossy(&text).chars().take(100).collect();
                values.push(format!("{at} = {text}"));
                break;
            }
        }
    }
    Ok(values.join(", "))
}
