//! What a row group got since the last checkpoint: first states of new slots, and changes.
//!
//! Invariants:
//! - a slot born here has its first state in `births` of each column, whatever came later;
//! - the changes of a slot stand in rising order of revision, one a revision;
//! - text of states lies in the group's heap and never moves.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use crate::error::{Error, ErrorKind, Result};
use crate::json::number::write_integer;
use crate::state::{ApartKind, BlobId, Datum, Extent, OrderId, Sequence, ShapeId};
use crate::tree::record_rows::flat;
use crate::tree::serialize::write_scalar;

mod births;

pub(crate) use births::Births;

/// A state in 16 bytes, with the revision that set it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    payload: u64,
    pub(crate) revision: u32,
    tag: Tag,
    detail: u8,
}

const _: () = assert!(size_of::<Packed>() == 16);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Absent,
    Null,
    False,
    True,
    Int,
    Decimal,
    Float,
    PlainText,
    Text,
    Digits,
    Object,
    ArrayExtent,
    ArrayBlocks,
    MapExtent,
    MapBlocks,
    Opaque,
    Apart,
}

/// The changes of one slot in rising order of revision.
pub(crate) type Run = SmallVec<[Packed; 1]>;

#[derive(Debug, Default)]
enum Changes {
    #[default]
    None,
    One(u16, Run),
    Many(Box<Runs>),
}

/// The runs of several slots.
#[derive(Debug, Default)]
struct Runs {
    places: Places,
    runs: Vec<Run>,
}

/// Where the runs of slots are.
#[derive(Debug)]
enum Places {
    /// By slot: the place of its run from 1, or 0 for none. A look-up costs no hash (benchmark
    /// V2w).
    Table(Vec<u16>),
    /// Of slots far apart: rising, each with the place of its run from 1.
    List(Vec<(u16, u16)>),
}

impl Default for Places {
    fn default() -> Self {
        Self::Table(Vec::new())
    }
}

/// Slots for each run up to which their places are a table: 2 bytes a slot.
const TABLE_SLOTS: usize = 32;

impl Places {
    /// The place of a slot's run from 1; 0 if it has none.
    #[inline]
    fn get(&self, slot: u16) -> u16 {
        match self {
            Self::Table(places) => places.get(usize::from(slot)).copied().unwrap_or(0),
            Self::List(places) => {
                let found = places.binary_search_by_key(&slot, |&(slot, _)| slot);
                found.map_or(0, |at| places[at].1)
            }
        }
    }

    /// Slots up to the last one with a run.
    fn slots(&self) -> usize {
        match self {
            Self::Table(places) => places.len(),
            Self::List(places) => places.last().map_or(0, |&(last, _)| usize::from(last) + 1),
        }
    }

    /// The slots with their places, rising.
    fn iter(&self) -> impl Iterator<Item = (u16, u16)> {
        let (table, list) = match self {
            Self::Table(table) => (table.as_slice(), &[][..]),
            Self::List(list) => (&[][..], list.as_slice()),
        };
        (0..).zip(table.iter().copied()).chain(list.iter().copied())
    }

    /// Sets the place of a slot that has none.
    fn set(&mut self, slot: u16, place: u16) {
        let slots = self.slots().max(usize::from(slot) + 1);
        let is_dense = slots <= TABLE_SLOTS * (usize::from(place) + 7);
        match self {
            Self::Table(table) if is_dense => {
                table.resize(slots, 0);
                table[usize::from(slot)] = place;
            }
            Self::List(list) if !is_dense => {
                let at = list.partition_point(|&(other, _)| other < slot);
                list.insert(at, (slot, place));
            }
            Self::Table(_) => {
                let set = self.iter().filter(|&(_, place)| place > 0).chain([(slot, place)]);
                let mut list: Vec<(u16, u16)> = set.collect();
                list.sort_unstable();
                *self = Self::List(list);
            }
            Self::List(list) => {
                let mut table = vec![0; slots];
                for (slot, place) in list.iter().copied().chain([(slot, place)]) {
                    table[usize::from(slot)] = place;
                }
                *self = Self::Table(table);
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Table(table) => 2 * table.capacity(),
            Self::List(list) => 4 * list.capacity(),
        }
    }
}

impl Runs {
    #[inline]
    fn get(&self, slot: u16) -> Option<&Run> {
        let place = self.places.get(slot).checked_sub(1)?;
        self.runs.get(usize::from(place))
    }

    fn get_or_add(&mut self, slot: u16) -> &mut Run {
        let mut place = self.places.get(slot);
        if place == 0 {
            self.runs.push(Run::new());
            place = u16::try_from(self.runs.len()).expect("4,096 slots at most");
            self.places.set(slot, place);
        }
        &mut self.runs[usize::from(place) - 1]
    }

    /// The slots with changes, rising.
    fn iter(&self) -> impl Iterator<Item = (u16, &Run)> {
        let found = self.places.iter().filter_map(|(slot, place)| {
            let run = self.runs.get(usize::from(place.checked_sub(1)?))?;
            Some((slot, run))
        });
        found.filter(|(_, run)| !run.is_empty())
    }

    fn bytes(&self) -> usize {
        let spilled =
            |run: &Run| if run.spilled() { run.capacity() * size_of::<Packed>() } else { 0 };
        let runs = self.runs.capacity() * size_of::<Run>();
        self.places.bytes() + runs + self.runs.iter().map(spilled).sum::<usize>()
    }
}

/// One column of a young row group.
#[derive(Debug, Default)]
pub(crate) struct YoungColumn {
    first: u16,
    births: Births,
    changes: Changes,
}

/// Where the text of young states lies. What comes again soon lies there once: many records have
/// their key as a member too, and few texts in some other one.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    texts: Vec<u8>,
    /// Payloads of short texts that came last, by [`Heap::place`].
    recent: Option<Box<[u64; RECENT_TEXTS]>>,
}

/// Texts that a heap may find again.
const RECENT_TEXTS: usize = 32;

/// Bytes of a text up to which it may be found again.
const RECENT_BYTES_MAX: usize = 32;

/// Bytes of a heap from which on texts are found again: of less there is little to gain.
const RECENT_FROM_BYTES: usize = 4_096;

impl Packed {
    pub(crate) const ABSENT: Self = Self { payload: 0, revision: 0, tag: Tag::Absent, detail: 0 };

    fn new(tag: Tag, payload: u64, revision: u32) -> Self {
        Self { payload, revision, tag, detail: 0 }
    }

    pub(crate) fn is_absent(self) -> bool {
        self.tag == Tag::Absent
    }

    /// Whether the state is absent or null.
    #[inline]
    pub(crate) fn is_nothing(self) -> bool {
        matches!(self.tag, Tag::Absent | Tag::Null)
    }

    /// Whether the state has children as nodes of their own.
    #[inline]
    pub(crate) fn is_container(self) -> bool {
        matches!(
            self.tag,
            Tag::Object | Tag::ArrayExtent | Tag::ArrayBlocks | Tag::MapExtent | Tag::MapBlocks
        )
    }

    /// The shape, if the state is an object.
    #[inline]
    pub(crate) fn shape(self) -> Option<ShapeId> {
        (self.tag == Tag::Object).then_some(ShapeId(low_half(self.payload)))
    }

    /// How long the text is, if the state is a string.
    #[inline]
    pub(crate) fn text_len(self) -> Option<usize> {
        let is_text = matches!(self.tag, Tag::PlainText | Tag::Text);
        is_text.then_some((self.payload >> 32) as usize)
    }

    /// The integer, if the state is one.
    #[inline]
    pub(crate) fn integer(self) -> Option<i64> {
        (self.tag == Tag::Int).then_some(self.payload.cast_signed())
    }
}

impl Heap {
    /// Packs a state set by `revision`; its text is copied into the heap.
    pub(crate) fn pack(&mut self, datum: Datum<'_>, revision: u32) -> Result<Packed> {
        let new = |tag, payload| Packed::new(tag, payload, revision);
        Ok(match datum {
            Datum::Absent => new(Tag::Absent, 0),
            Datum::Null => new(Tag::Null, 0),
            Datum::Bool(false) => new(Tag::False, 0),
            Datum::Bool(true) => new(Tag::True, 0),
            Datum::Int(value) => new(Tag::Int, value.cast_unsigned()),
            Datum::Decimal { mantissa, scale } => {
                Packed { detail: scale, ..new(Tag::Decimal, mantissa.cast_unsigned()) }
            }
            Datum::Float(value) => new(Tag::Float, value.to_bits()),
            Datum::Text { bytes, plain: true } => new(Tag::PlainText, self.push(bytes)?),
            Datum::Text { bytes, plain: false } => new(Tag::Text, self.push(bytes)?),
            Datum::Digits(bytes) => new(Tag::Digits, self.push(bytes)?),
            Datum::Opaque(bytes) => new(Tag::Opaque, self.push(bytes)?),
            Datum::Object(shape) => new(Tag::Object, u64::from(shape.0)),
            Datum::Array(Sequence::Extent(extent)) => new(Tag::ArrayExtent, extent.packed()),
            Datum::Array(Sequence::Blocks(root)) => new(Tag::ArrayBlocks, root.0),
            Datum::Map(Sequence::Extent(extent)) => new(Tag::MapExtent, extent.packed()),
            Datum::Map(Sequence::Blocks(root)) => new(Tag::MapBlocks, root.0),
            Datum::Apart { blob, kind } => {
                Packed { detail: kind.number(), ..new(Tag::Apart, blob.0) }
            }
        })
    }

    /// Prints a packed state without taking it apart first, which costs most of the time that
    /// printing a small value takes (benchmark V2). False if it has children, stands apart or
    /// is nothing.
    #[inline]
    pub(crate) fn print(&self, packed: Packed, out: &mut Vec<u8>) -> bool {
        match packed.tag {
            Tag::PlainText => {
                let text = self.slice(packed.payload);
                out.reserve(text.len() + 2);
                out.push(b'"');
                out.extend_from_slice(text);
                out.push(b'"');
            }
            Tag::Int => write_integer(packed.payload.cast_signed(), out),
            Tag::True => out.extend_from_slice(b"true"),
            Tag::False => out.extend_from_slice(b"false"),
            Tag::Absent
            | Tag::Object
            | Tag::ArrayExtent
            | Tag::ArrayBlocks
            | Tag::MapExtent
            | Tag::MapBlocks
            | Tag::Apart => return false,
            _ => write_scalar(self.unpack(packed), out),
        }
        true
    }

    /// Writes a packed state where there is room, if it is a plain text, a number in a column, a
    /// truth value or null, and gives its length.
    #[expect(clippy::inline_always, reason = "else a scan makes a call a state (benchmark B)")]
    #[inline(always)]
    pub(crate) fn write_flat(&self, packed: Packed, room: &mut [u8]) -> Option<usize> {
        match packed.tag {
            Tag::PlainText => self.write_text(packed.payload, room),
            Tag::Int => flat::write_integer(packed.payload.cast_signed(), room),
            Tag::True => flat::write_bool(true, room),
            Tag::False => flat::write_bool(false, room),
            Tag::Decimal => flat::write_decimal(packed.payload.cast_signed(), packed.detail, room),
            Tag::Float => flat::write_float(f64::from_bits(packed.payload), room),
            Tag::Null => flat::write_bytes(b"null", room),
            _ => None,
        }
    }

    #[inline]
    fn write_text(&self, payload: u64, room: &mut [u8]) -> Option<usize> {
        let (start, len) = (low_half(payload) as usize, (payload >> 32) as usize);
        let block = self.texts.get(start..).and_then(<[u8]>::first_chunk);
        match block.filter(|_| len <= flat::TEXT_BYTES) {
            Some(block) => flat::write_block(block, len, room),
            None => flat::write_text(self.slice(payload), room),
        }
    }

    /// The state that [`Heap::pack`] of this heap packed.
    #[inline]
    pub(crate) fn unpack(&self, packed: Packed) -> Datum<'_> {
        let payload = packed.payload;
        match packed.tag {
            Tag::Absent => Datum::Absent,
            Tag::Null => Datum::Null,
            Tag::False => Datum::Bool(false),
            Tag::True => Datum::Bool(true),
            Tag::Int => Datum::Int(payload.cast_signed()),
            Tag::Decimal => {
                Datum::Decimal { mantissa: payload.cast_signed(), scale: packed.detail }
            }
            Tag::Float => Datum::Float(f64::from_bits(payload)),
            Tag::PlainText => Datum::Text { bytes: self.slice(payload), plain: true },
            Tag::Text => Datum::Text { bytes: self.slice(payload), plain: false },
            Tag::Digits => Datum::Digits(self.slice(payload)),
            Tag::Opaque => Datum::Opaque(self.slice(payload)),
            Tag::Object => Datum::Object(ShapeId(low_half(payload))),
            Tag::ArrayExtent => Datum::Array(Sequence::Extent(Extent::from_packed(payload))),
            Tag::ArrayBlocks => Datum::Array(Sequence::Blocks(OrderId(payload))),
            Tag::MapExtent => Datum::Map(Sequence::Extent(Extent::from_packed(payload))),
            Tag::MapBlocks => Datum::Map(Sequence::Blocks(OrderId(payload))),
            Tag::Apart => Datum::Apart {
                blob: BlobId(payload),
                kind: ApartKind::from_number(packed.detail).unwrap_or(ApartKind::Opaque),
            },
        }
    }

    /// The text of a packed state, if it is a string.
    #[inline]
    pub(crate) fn text(&self, packed: Packed) -> Option<&[u8]> {
        let is_text = matches!(packed.tag, Tag::PlainText | Tag::Text);
        is_text.then(|| self.slice(packed.payload))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.texts.capacity() + self.recent.as_deref().map_or(0, size_of_val)
    }

    /// Makes room for so many bytes.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.texts.reserve(bytes);
    }

    /// Gives back the room for more.
    pub(crate) fn shrink(&mut self) {
        self.texts.shrink_to_fit();
        self.recent = None;
    }

    /// Adds a text, unless it is found; its payload.
    fn push(&mut self, bytes: &[u8]) -> Result<u64> {
        let len = bytes.len() as u64;
        if self.texts.ends_with(bytes) {
            return Ok((self.texts.len() as u64 - len) | len << 32);
        }
        if self.texts.len() < RECENT_FROM_BYTES || bytes.len() > RECENT_BYTES_MAX {
            return self.append(bytes);
        }
        let place = Self::place(bytes);
        if let Some(recent) = &self.recent
            && self.slice(recent[place]) == bytes
        {
            return Ok(recent[place]);
        }
        let payload = self.append(bytes)?;
        self.recent.get_or_insert_default()[place] = payload;
        Ok(payload)
    }

    /// Where a text that is not empty is found again.
    #[inline]
    fn place(bytes: &[u8]) -> usize {
        let ends = [bytes[0], bytes[bytes.len() - 1]].map(usize::from);
        (bytes.len() + 3 * ends[0] + 5 * ends[1]) % RECENT_TEXTS
    }

    fn append(&mut self, bytes: &[u8]) -> Result<u64> {
        let start = self.texts.len();
        if start + bytes.len() > u32::MAX as usize {
            return Err(Error::new(
                ErrorKind::Full,
                "a row group has 4 GiB of text since the last checkpoint: checkpoint, then retry",
            ));
        }
        self.texts.extend_from_slice(bytes);
        Ok(start as u64 | (bytes.len() as u64) << 32)
    }

    #[inline]
    fn slice(&self, payload: u64) -> &[u8] {
        &self.texts[low_half(payload) as usize..][..(payload >> 32) as usize]
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
pub(crate) fn low_half(number: u64) -> u32 {
    number as u32
}

/// The newest of some changes at or before a revision.
///
/// Values that change with every commit, or every so many, are common: where the change in the
/// middle stands as if that were so, the place is reckoned, not searched (benchmark V2w).
#[inline]
fn newest(run: &[Packed], revision: u32) -> Option<Packed> {
    let (first, last) = (run.first()?, run.last()?);
    if last.revision <= revision {
        return Some(*last);
    }
    let past = u64::from(revision.checked_sub(first.revision)?);
    let (steps, span) = (run.len() - 1, u64::from(last.revision - first.revision));
    let middle = u64::from(run[steps / 2].revision - first.revision);
    if middle * steps as u64 == span * (steps / 2) as u64
        && let Ok(guess) = usize::try_from(past * steps as u64 / span)
        && let Some([found, next, ..]) = run.get(guess..)
        && found.revision <= revision
        && revision < next.revision
    {
        return Some(*found);
    }
    let newer = run.partition_point(|change| change.revision <= revision);
    run.get(newer.checked_sub(1)?).copied()
}

impl YoungColumn {
    /// The newest state of a slot at or before `revision`; none if only the disk can know.
    #[inline]
    pub(crate) fn at(&self, slot: u16, revision: u32) -> Option<Packed> {
        if !matches!(self.changes, Changes::None)
            && let Some(found) = self.changed_at(slot, revision)
        {
            return Some(found);
        }
        let birth = self.birth(slot)?;
        Some(if birth.revision <= revision { birth } else { Packed::ABSENT })
    }

    /// The newest change of a slot at or before `revision`: apart, so that what was never changed
    /// is read in a few instructions (benchmark B).
    #[inline(never)]
    fn changed_at(&self, slot: u16, revision: u32) -> Option<Packed> {
        newest(self.run(slot)?, revision)
    }

    /// The first states, and the slot of the first of them, if nothing changed since: then these
    /// are all that is known here.
    #[inline]
    pub(crate) fn unchanged(&self) -> Option<(u16, &Births)> {
        matches!(self.changes, Changes::None).then_some((self.first, &self.births))
    }

    /// The state a slot was born with, if it was born since the last checkpoint.
    #[inline]
    pub(crate) fn birth(&self, slot: u16) -> Option<Packed> {
        self.births.get(usize::from(slot.checked_sub(self.first)?))
    }

    /// The changes of a slot.
    #[inline]
    pub(crate) fn run(&self, slot: u16) -> Option<&Run> {
        match &self.changes {
            Changes::None => None,
            Changes::One(only, run) => (*only == slot).then_some(run),
            Changes::Many(runs) => runs.get(slot),
        }
    }

    pub(crate) fn run_mut(&mut self, slot: u16) -> &mut Run {
        if let Changes::One(only, run) = &mut self.changes
            && *only != slot
        {
            let mut runs = Box::<Runs>::default();
            *runs.get_or_add(*only) = std::mem::take(run);
            self.changes = Changes::Many(runs);
        }
        if let Changes::None = self.changes {
            self.changes = Changes::One(slot, Run::new());
        }
        match &mut self.changes {
            Changes::One(_, run) => run,
            Changes::Many(runs) => runs.get_or_add(slot),
            Changes::None => unreachable!("made above"),
        }
    }

    /// Takes back the change that `revision` made to a slot, if it made one.
    pub(crate) fn pop_change(&mut self, slot: u16, revision: u32) {
        let run = self.run_mut(slot);
        if run.last().is_some_and(|last| last.revision == revision) {
            run.pop();
        }
        if run.is_empty() && matches!(self.changes, Changes::One(..)) {
            self.changes = Changes::None;
        }
    }

    /// Sets the first state of a slot; slots between the last born and this one are absent.
    pub(crate) fn set_birth(&mut self, slot: u16, state: Packed) {
        // Most are born one after the other (benchmark B).
        if let Births::Wide(births) = &mut self.births
            && births.len() == usize::from(slot.wrapping_sub(self.first))
            && !births.is_empty()
        {
            return births.push(state);
        }
        self.births_mut(slot..slot + 1)[0] = state;
    }

    /// The first states of some slots, to be set; those not set yet are absent.
    pub(crate) fn births_mut(&mut self, slots: Range<u16>) -> &mut [Packed] {
        let births = self.births.wide_mut();
        if births.is_empty() {
            self.first = slots.start;
        }
        if slots.start < self.first {
            let before = usize::from(self.first - slots.start);
            births.insert_many(0, std::iter::repeat_n(Packed::ABSENT, before));
            self.first = slots.start;
        }
        let at = |slot: u16| usize::from(slot - self.first);
        let range = at(slots.start)..at(slots.end);
        if range.end == births.len() + 1 {
            // Where only one is missing, that is made room for in a fraction of the time.
            births.push(Packed::ABSENT);
        } else if range.end > births.len() {
            births.resize(range.end, Packed::ABSENT);
        }
        &mut births[range]
    }

    /// Takes back the births of `slot` and all after it.
    pub(crate) fn truncate_births(&mut self, slot: u16) {
        let kept = usize::from(slot.saturating_sub(self.first));
        if kept < self.births.len() {
            self.births.wide_mut().truncate(kept);
        }
    }

    /// There will be no more births.
    pub(crate) fn end_births(&mut self) {
        self.births.narrow();
    }

    /// The first slot born here and the states from there on.
    pub(crate) fn births(&self) -> (u16, Cow<'_, [Packed]>) {
        (self.first, self.births.all())
    }

    /// The same as they are in memory.
    pub(crate) fn births_at_hand(&self) -> (u16, &Births) {
        (self.first, &self.births)
    }

    /// The slots with changes, rising, and their changes.
    pub(crate) fn changed(&self) -> Vec<(u16, &Run)> {
        match &self.changes {
            Changes::None => Vec::new(),
            Changes::One(slot, run) => vec![(*slot, run)],
            Changes::Many(runs) => runs.iter().collect(),
        }
    }

    /// Approximate bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        let changes = match &self.changes {
            Changes::None => 0,
            Changes::One(_, run) => run.capacity() * size_of::<Packed>(),
            Changes::Many(runs) => runs.bytes(),
        };
        size_of::<Self>() + self.births.bytes() + changes
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_changed = match &self.changes {
            Changes::None => false,
            Changes::One(..) => true,
            Changes::Many(runs) => runs.iter().next().is_some(),
        };
        self.births.is_empty() && !is_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_come_again_lie_once_and_are_what_they_were() {
        let mut heap = Heap::default();
        let long = "a text that is longer than those that are found again";
        let keys: Vec<String> = (0..2_000).map(|at| format!("key of record {at}")).collect();
        let mut texts = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let place = ["world", "world_nether", "world_end", ""][at % 4];
            texts.extend([key.as_str(), key, place, long]);
        }
        let pack = |text: &&str| {
            heap.pack(Datum::Text { bytes: text.as_bytes(), plain: true }, 1).unwrap()
        };
        let packed: Vec<Packed> = texts.iter().map(pack).collect();
        for (text, state) in texts.iter().zip(packed) {
            assert_eq!(heap.text(state), Some(text.as_bytes()));
        }
        let once: usize = keys.iter().map(String::len).sum::<usize>() + 2_000 * long.len();
        assert!((once..once + 5_000).contains(&heap.texts.len()), "{} of {once}", heap.texts.len());
    }

    #[test]
    fn newest_change_is_found_in_regular_and_irregular_runs() {
        let runs: [&[u32]; 9] = [
            &[],
            &[5],
            &[5, 9],
            &[5, 6, 7, 8, 9, 10],
            &[2, 9, 16, 23, 30],
            // Regular up to the middle only, on both sides of it but not within, and nowhere.
            &[2, 4, 6, 8, 10, 11, 12, 14],
            &[1, 2, 11, 12, 21],
            &[1, 9, 10, 18, 19],
            &[1, 2, 3, 5, 8, 13, 40],
        ];
        for revisions in runs {
            let run: Vec<Packed> =
                revisions.iter().map(|&revision| Packed::new(Tag::Null, 0, revision)).collect();
            for revision in (0..50).chain([u32::MAX]) {
                let expected = revisions.iter().rfind(|&&set| set <= revision).copied();
                let found = newest(&run, revision).map(|found| found.revision);
                assert_eq!(found, expected, "{revisions:?} at {revision}");
            }
        }
        let ends = [1, u32::MAX / 2, u32::MAX - 1].map(|at| Packed::new(Tag::Null, 0, at));
        let found = newest(&ends, u32::MAX - 2).map(|found| found.revision);
        assert_eq!(found, Some(u32::MAX / 2));
    }
}
