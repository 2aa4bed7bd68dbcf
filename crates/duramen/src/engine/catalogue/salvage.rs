//! The names in a catalogue of which some cells may be lost.

use crate::engine::catalogue::{Name, entries, read_name};
use crate::error::Result;
use crate::tree::Tree;
use crate::tree::data::node;
use crate::tree::salvage::readable;
use crate::tree::schema::ROOT;

/// How many entries a catalogue ever got, as far as what is left of it says.
pub(crate) fn entries_made(catalogue: &Tree) -> u64 {
    let data = catalogue.data.read();
    let made = data.schema.path(ROOT).entry.and_then(|entry| {
        let space = data.address(node(entry, 0)).space;
        data.spaces.get(space.0 as usize)
    });
    made.map_or(0, |space| space.next)
}

/// What every name that can be read stands for in a state of the catalogue, free ones too.
pub(crate) fn names(catalogue: &Tree, revision: u32) -> Result<Vec<(String, Name)>> {
    let mut names = Vec::new();
    if revision == 0 {
        return Ok(names);
    }
    // Entries are never removed, so those that are left are the first ones at least.
    let entries = readable(entries(catalogue, node(ROOT, 0), revision))?.unwrap_or_default();
    for (name, entry) in entries {
        let found = readable(catalogue.read(|data| read_name(data, entry, revision)))?;
        names.extend(found.map(|found| (name, found)));
    }
    Ok(names)
}
