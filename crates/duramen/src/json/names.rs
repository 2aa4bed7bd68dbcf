//! Names that come twice in one object.
//!
//! As in JavaScript, the last value wins and stands where the name first stood. Whether an object
//! repeats a name at all is decided fast, and only then are its fields settled exactly. No
//! choice of names makes either step quadratic in the number of fields.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{BuildHasher, BuildHasherDefault};

use rustc_hash::FxHasher;
use smallvec::SmallVec;

use super::tape::{Kind, Node, Tape};

/// Objects of up to as many fields compare each name with each other.
const PAIRWISE_FIELDS_MAX: usize = 8;

/// Spreads over 64 buckets: the odd number next to 2 to the 32nd by the golden ratio.
const MULTIPLIER: u32 = 0x9e37_79b1;

/// Finds repeated names, object after object.
#[derive(Debug, Default)]
pub(super) struct NameCheck {
    hashes: Vec<u64>,
}

/// The fields of an object that repeats a name.
#[derive(Debug)]
pub(super) struct Repeats {
    /// Places of each name and of its last value, in the order in which names first came.
    kept: Vec<(usize, usize)>,
    /// The place of the first name that came before.
    pub(super) second: usize,
}

impl NameCheck {
    /// The repeated names of the object at `object`, if there are any.
    pub(super) fn repeats(&mut self, tape: &Tape<'_>, object: usize) -> Option<Repeats> {
        let few = tape.node(object).first() <= PAIRWISE_FIELDS_MAX;
        let suspect =
            if few { pair_is_equal(tape, object) } else { self.hashes_meet(tape, object) };
        if suspect { exact(tape, object) } else { None }
    }

    fn hashes_meet(&mut self, tape: &Tape<'_>, object: usize) -> bool {
        let hasher = BuildHasherDefault::<FxHasher>::default();
        self.hashes.clear();
        self.hashes.extend(names(tape, object).map(|(_, name)| hasher.hash_one(tape.bytes(name))));
        self.hashes.sort_unstable();
        self.hashes.windows(2).any(|pair| pair.first() == pair.last())
    }
}

/// Names of an object by length and ends: most are told apart so, one by one, while they are read
/// (benchmark B).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Buckets(u64);

impl Buckets {
    /// Adds a name; whether one of its bucket was there.
    #[inline]
    pub(super) fn meet(&mut self, name: &[u8]) -> bool {
        let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
        let end = |byte: Option<&u8>| byte.copied().unwrap_or(0);
        let parts = u32::from_le_bytes([len, end(name.first()), end(name.last()), 0]);
        let bucket = parts.wrapping_mul(MULTIPLIER).wrapping_shr(26);
        let bit = 1_u64.wrapping_shl(bucket);
        let met = self.0 & bit != 0;
        self.0 |= bit;
        met
    }
}

fn pair_is_equal(tape: &Tape<'_>, object: usize) -> bool {
    let mut earlier: SmallVec<[Node; PAIRWISE_FIELDS_MAX]> = SmallVec::new();
    names(tape, object).any(|(_, name)| {
        let equal = |other: &Node| {
            other.second() == name.second() && tape.bytes(*other) == tape.bytes(name)
        };
        let met = earlier.iter().any(equal);
        earlier.push(name);
        met
    })
}

fn exact(tape: &Tape<'_>, object: usize) -> Option<Repeats> {
    let mut first_places = BTreeMap::new();
    let mut kept: Vec<(usize, usize)> = Vec::new();
    let mut second = None;
    for (at, name) in names(tape, object) {
        let value = at.saturating_add(1);
        match first_places.entry(tape.bytes(name)) {
            Entry::Vacant(entry) => {
                entry.insert(kept.len());
                kept.push((at, value));
            }
            Entry::Occupied(entry) => {
                second = second.or(Some(at));
                if let Some(field) = kept.get_mut(*entry.get()) {
                    field.1 = value;
                }
            }
        }
    }
    second.map(|second| Repeats { kept, second })
}

/// Lets the last values win: leaves only the kept fields of the object at `object`, which is the
/// last value of the tape.
pub(super) fn keep_last(tape: &mut Tape<'_>, object: usize, repeats: &Repeats) {
    let mut nodes = Vec::new();
    for (name, value) in &repeats.kept {
        nodes.push(tape.node(*name));
        let tail = tape.nodes().get(*value..).unwrap_or_default();
        nodes.extend_from_slice(tail.get(..tape.node(*value).span()).unwrap_or_default());
    }
    let header = Node::new(Kind::Object, repeats.kept.len(), nodes.len().saturating_add(1));
    let all = tape.nodes_mut();
    all.truncate(object);
    all.push(header);
    all.append(&mut nodes);
}

/// The names of an object with their places.
fn names(tape: &Tape<'_>, object: usize) -> impl Iterator<Item = (usize, Node)> {
    let mut next = object.saturating_add(1);
    (0..tape.node(object).first()).map(move |_| {
        let at = next;
        let value = at.saturating_add(1);
        next = value.saturating_add(tape.node(value).span());
        (at, tape.node(at))
    })
}
