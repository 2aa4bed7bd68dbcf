//! First states of consecutive slots in one column.
//!
//! They come one by one, and are *wide* then. Once all slots of a row group are born and committed
//! there will be no others, and they are put *narrow*: of each what it has more than the least of
//! all, in as many bytes as the column needs for that. A column of a large collection takes a
//! third to a sixteenth of the memory so (benchmark B).

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::{Packed, Tag, low_half};

/// First states, and those not set yet between them, which are absent.
#[derive(Debug)]
pub(crate) enum Births {
    Wide(SmallVec<[Packed; 1]>),
    Narrow(Box<Narrow>),
}

/// First states as what each has more than the least.
#[derive(Debug)]
pub(crate) struct Narrow {
    /// The payload, the revision and the kind of one behind the other, little-endian; behind all
    /// some bytes of nothing, so that whole words can be read.
    rows: Box<[u8]>,
    len: usize,
    payload: Part,
    revision: Part,
    kind: Part,
}

/// A part of each row.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The least of all, in the order of signed numbers.
    least: u64,
    /// Of what there is more in any of them.
    mask: u64,
    /// How many bytes that takes.
    bytes: usize,
}

const WORD_BYTES: usize = size_of::<u64>();

/// Tags by their numbers.
const TAGS: [Tag; 17] = [
    Tag::Absent,
    Tag::Null,
    Tag::False,
    Tag::True,
    Tag::Int,
    Tag::Decimal,
    Tag::Float,
    Tag::PlainText,
    Tag::Text,
    Tag::Digits,
    Tag::Object,
    Tag::ArrayExtent,
    Tag::ArrayBlocks,
    Tag::MapExtent,
    Tag::MapBlocks,
    Tag::Opaque,
    Tag::Apart,
];

impl Default for Births {
    fn default() -> Self {
        Self::Wide(SmallVec::new())
    }
}

impl Births {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Wide(states) => states.len(),
            Self::Narrow(narrow) => narrow.len,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<Packed> {
        match self {
            Self::Wide(states) => states.get(index).copied(),
            Self::Narrow(narrow) => narrow.get(index),
        }
    }

    /// Appends some of them, by their indexes, as far as they are of a revision or before it;
    /// others are absent.
    pub(crate) fn pick(
        &self,
        indexes: impl Iterator<Item = usize>,
        revision: u32,
        out: &mut Vec<Packed>,
    ) {
        let seen = |birth: Option<Packed>| match birth {
            Some(birth) if birth.revision <= revision => birth,
            _ => Packed::ABSENT,
        };
        // What they are is asked once, not of each (benchmark B).
        match self {
            Self::Wide(states) => {
                let states = states.as_slice();
                out.extend(indexes.map(|index| seen(states.get(index).copied())));
            }
            Self::Narrow(narrow) => out.extend(indexes.map(|index| seen(narrow.get(index)))),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Cow<'_, [Packed]> {
        match self {
            Self::Wide(states) => Cow::Borrowed(states),
            Self::Narrow(narrow) => Cow::Owned(narrow.iter().collect()),
        }
    }

    /// All of them, to be set or added to.
    pub(super) fn wide_mut(&mut self) -> &mut SmallVec<[Packed; 1]> {
        if let Self::Narrow(narrow) = self {
            *self = Self::Wide(narrow.iter().collect());
        }
        match self {
            Self::Wide(states) => states,
            Self::Narrow(_) => unreachable!("made wide above"),
        }
    }

    /// Puts them narrow, if that takes less.
    pub(super) fn narrow(&mut self) {
        if let Self::Wide(states) = self
            && let Some(narrow) = Narrow::of(states)
        {
            *self = Self::Narrow(Box::new(narrow));
        }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Wide(states) => states.capacity() * size_of::<Packed>(),
            Self::Narrow(narrow) => size_of::<Narrow>() + narrow.rows.len(),
        }
    }
}

impl Narrow {
    /// None if it would take as much.
    fn of(states: &[Packed]) -> Option<Self> {
        let payload = Part::of(states.iter().map(|state| state.payload));
        let revision = Part::of(states.iter().map(|state| u64::from(state.revision)));
        let kind = Part::of(states.iter().map(kind_of));
        let row_bytes = payload.bytes + revision.bytes + kind.bytes;
        let bytes = states.len() * row_bytes + 2 * WORD_BYTES;
        if bytes + size_of::<Self>() >= size_of_val(states) {
            return None;
        }
        let mut rows = Vec::with_capacity(bytes);
        for state in states {
            payload.put(state.payload, &mut rows);
            revision.put(state.revision.into(), &mut rows);
            kind.put(kind_of(state), &mut rows);
        }
        rows.resize(bytes, 0);
        Some(Self { rows: rows.into(), len: states.len(), payload, revision, kind })
    }

    #[inline]
    fn get(&self, index: usize) -> Option<Packed> {
        if index >= self.len {
            return None;
        }
        let Self { payload, revision, kind, .. } = self;
        let row: &[u8; 2 * WORD_BYTES] = self
            .rows
            .get(index * (payload.bytes + revision.bytes + kind.bytes)..)?
            .first_chunk()?;
        let more = u64::from_le_bytes(*row.first_chunk()?);
        // These two take six bytes at most.
        let rest = u64::from_le_bytes(*row.get(payload.bytes..)?.first_chunk()?);
        let [tag, detail, ..] = kind.value(rest >> (8 * revision.bytes)).to_le_bytes();
        Some(Packed {
            payload: payload.value(more),
            revision: low_half(revision.value(rest)),
            tag: *TAGS.get(usize::from(tag))?,
            detail,
        })
    }

    /// Some of them, as many as there is room for.
    pub(crate) fn unpack<'r>(&self, range: Range<usize>, room: &'r mut [Packed]) -> &'r [Packed] {
        let mut count = 0;
        for (to, state) in room.iter_mut().zip(range.map_while(|index| self.get(index))) {
            *to = state;
            count += 1;
        }
        &room[..count]
    }

    fn iter(&self) -> impl Iterator<Item = Packed> {
        (0..self.len).map_while(|index| self.get(index))
    }
}

fn kind_of(state: &Packed) -> u64 {
    u64::from(u16::from_le_bytes([state.tag as u8, state.detail]))
}

impl Part {
    fn of(values: impl Iterator<Item = u64> + Clone) -> Self {
        let least = values.clone().map(u64::cast_signed).min().unwrap_or(0).cast_unsigned();
        let most = values.map(|value| value.wrapping_sub(least)).fold(0, std::ops::BitOr::bitor);
        let bytes = WORD_BYTES - most.leading_zeros() as usize / 8;
        let mask = if bytes == WORD_BYTES { u64::MAX } else { (1 << (8 * bytes)) - 1 };
        Self { least, mask, bytes }
    }

    fn put(&self, value: u64, rows: &mut Vec<u8>) {
        let more = value.wrapping_sub(self.least).to_le_bytes();
        rows.extend_from_slice(&more[..self.bytes]);
    }

    /// The value of which there are these bytes, and others behind them.
    #[inline]
    fn value(&self, more: u64) -> u64 {
        self.least.wrapping_add(more & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(count: u64, state: impl Fn(u64) -> Packed) -> SmallVec<[Packed; 1]> {
        (0..count).map(state).collect()
    }

    fn facts(state: Packed) -> (u64, u32, Tag, u8) {
        (state.payload, state.revision, state.tag, state.detail)
    }

    #[test]
    fn narrow_states_are_what_they_were_wide() {
        let int = |value: i64, revision| Packed::new(Tag::Int, value.cast_unsigned(), revision);
        let odd = |at: u64| if at.is_multiple_of(2) { Tag::True } else { Tag::False };
        let all = [
            states(4_096, |_| int(7, 3)),
            states(300, |at| int(at.cast_signed() - 150, u32::MAX)),
            states(300, |at| int(i64::MIN + 1_000 * at.cast_signed(), 1 << 20 | low_half(at))),
            states(300, |at| Packed::new(odd(at), 0, 9)),
            states(300, |at| if at % 7 == 3 { Packed::ABSENT } else { int(1 << 40, 70_000) }),
            states(300, |at| Packed::new(Tag::PlainText, (at * 11) | ((at % 5) << 32), 5)),
            states(300, |at| Packed { detail: at.to_le_bytes()[0], ..int(-5, 1) }),
            TAGS.iter().cycle().take(300).map(|&tag| Packed::new(tag, 1, 2)).collect(),
        ];
        for states in all {
            let mut births = Births::Wide(states.clone());
            births.narrow();
            assert!(matches!(births, Births::Narrow(_)), "{:?}", states.first());
            assert!(births.bytes() < size_of_val(states.as_slice()));
            assert_eq!(births.len(), states.len());
            assert!(births.get(states.len()).is_none());
            let expected: Vec<_> = states.iter().copied().map(facts).collect();
            let each = (0..states.len()).map(|index| facts(births.get(index).unwrap()));
            assert_eq!(each.collect::<Vec<_>>(), expected);
            assert_eq!(births.all().iter().copied().map(facts).collect::<Vec<_>>(), expected);
            let revision = states[states.len() / 2].revision;
            let indexes = [0, 299, 7, 7, states.len()];
            let mut picked = Vec::new();
            births.pick(indexes.into_iter(), revision, &mut picked);
            let seen = |index: usize| match states.get(index) {
                Some(state) if state.revision <= revision => *state,
                _ => Packed::ABSENT,
            };
            let seen: Vec<_> = indexes.map(seen).map(facts).into();
            assert_eq!(picked.into_iter().map(facts).collect::<Vec<_>>(), seen);
            births.wide_mut().push(Packed::ABSENT);
            assert_eq!(births.len(), states.len() + 1);
            let before = births.get(states.len() - 1).map(facts);
            assert_eq!(before, expected.last().copied());
        }
    }

    #[test]
    fn few_states_and_those_that_have_little_in_common_stay_wide() {
        let apart = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let all = [
            states(0, |_| Packed::ABSENT),
            states(3, |at| Packed::new(Tag::Int, at, 1)),
            states(4_096, |at| Packed {
                detail: apart(at).to_le_bytes()[7],
                ..Packed::new(
                    TAGS[usize::try_from(at).unwrap() % 17],
                    apart(at),
                    low_half(apart(at)),
                )
            }),
        ];
        for states in all {
            let len = states.len();
            let mut births = Births::Wide(states);
            births.narrow();
            // Each of the last takes 14 of 16 bytes.
            assert_eq!(matches!(births, Births::Wide(_)), len < 10, "{len}");
        }
    }
}
