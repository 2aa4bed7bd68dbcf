//! Gathers the states of consecutive slots and encodes them as a column.
//!
//! A slot costs a byte and what it carries: nothing is kept per slot that only a mixture of kinds
//! needs (benchmark A0).

use std::borrow::Cow;

use super::tag::{self, Carried};
use super::{
    HAS_BARE, HAS_COUNTS, HAS_NUMBERS, HAS_SUMMARY, HAS_TEXTS, SUMMARY_SLOTS_MIN, put_head,
    split::Split,
};
use crate::encoding::bits::BITS_MAX;
use crate::encoding::integers::{Integers, Plan};
use crate::encoding::summary::Summary;
use crate::encoding::tags::Tags;
use crate::encoding::texts::Texts;
use crate::state::{ColumnKinds, Datum};

/// The states of consecutive slots.
#[derive(Debug, Default)]
pub(crate) struct ColumnBuilder {
    /// Which state each slot has.
    tags: Vec<u8>,
    /// The numbers that slots carry.
    numbers: Vec<i64>,
    /// Beside each number the count of its extent, once there is an extent.
    counts: Vec<i64>,
    has_counts: bool,
    /// Where the strings that slots carry end in `bytes`.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

/// How much a builder holds.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sizes {
    tags: usize,
    numbers: usize,
    counts: usize,
    ends: usize,
    bytes: usize,
}

/// The tags of a column by what their slots carry.
#[derive(Default)]
struct Sorted<'a> {
    /// Per slot, whether it carries something, and per carrying slot, whether that is bytes;
    /// nothing where all slots are alike in that.
    carrying: Vec<bool>,
    textual: Vec<bool>,
    bare: Cow<'a, [u8]>,
    numbers: Cow<'a, [u8]>,
    texts: Cow<'a, [u8]>,
}

impl ColumnBuilder {
    /// How much there is of each kind of thing.
    pub(crate) fn sizes(&self) -> Sizes {
        Sizes {
            tags: self.tags.len(),
            numbers: self.numbers.len(),
            counts: self.counts.len(),
            ends: self.ends.len(),
            bytes: self.bytes.len(),
        }
    }

    /// An empty one with room for so much.
    #[cold]
    pub(crate) fn with_room(sizes: Sizes) -> Self {
        Self {
            tags: Vec::with_capacity(sizes.tags),
            numbers: Vec::with_capacity(sizes.numbers),
            counts: Vec::with_capacity(sizes.counts),
            has_counts: false,
            ends: Vec::with_capacity(sizes.ends),
            bytes: Vec::with_capacity(sizes.bytes),
        }
    }

    /// How many slots.
    pub(crate) fn len(&self) -> usize {
        self.tags.len()
    }

    /// Bytes that the states take in memory.
    pub(crate) fn bytes(&self) -> usize {
        let words = self.numbers.len().saturating_add(self.counts.len());
        let words = words.saturating_add(self.ends.len()).saturating_mul(size_of::<u64>());
        words.saturating_add(self.tags.len()).saturating_add(self.bytes.len())
    }

    /// Adds a slot.
    #[expect(
        clippy::inline_always,
        reason = "most callers know the kind of the state, which leaves little of this"
    )]
    #[inline(always)]
    pub(crate) fn push(&mut self, datum: Datum<'_>) {
        let (tag, carried) = tag::tag_of(datum);
        self.tags.push(tag);
        match carried {
            Carried::Nothing => {}
            Carried::Number(value) => {
                self.numbers.push(value);
                if self.has_counts {
                    self.counts.push(0);
                }
            }
            Carried::Extent(first, count) => {
                if !self.has_counts {
                    self.has_counts = true;
                    self.counts.resize(self.numbers.len(), 0);
                }
                self.numbers.push(first);
                self.counts.push(count);
            }
            Carried::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len());
            }
        }
    }

    /// Adds a slot with a string that needs no escapes, the first `len` bytes of these eight.
    #[inline]
    pub(crate) fn push_short(&mut self, bytes: [u8; 8], len: usize) {
        let end = self.bytes.len().saturating_add(len);
        self.tags.push(tag::PLAIN_TEXT);
        // As many bytes each time take no call to be copied (benchmark A0).
        self.bytes.extend_from_slice(&bytes);
        self.bytes.truncate(end);
        self.ends.push(end);
    }

    /// The kinds of its states.
    pub(crate) fn kinds(&self) -> ColumnKinds {
        let (mut kinds, mut last) = (ColumnKinds::default(), None);
        for &tag in &self.tags {
            // Most are as the one before.
            if last.replace(tag) != Some(tag) {
                kinds.insert(tag::form(tag).map_or_else(<_>::default, |of| ColumnKinds::of(&of)));
            }
        }
        kinds
    }

    /// Takes the last slot back.
    pub(crate) fn pop(&mut self) {
        let Some(tag) = self.tags.pop() else { return };
        if tag::is_textual(tag) {
            self.ends.pop();
            self.bytes.truncate(self.ends.last().copied().unwrap_or_default());
        } else if tag::is_carrying(tag) {
            self.numbers.pop();
            self.counts.truncate(self.numbers.len());
        }
    }

    /// The state of the last slot, if it is one that keys have: an integer, or a string that needs
    /// no escapes.
    #[inline]
    pub(crate) fn last_key(&self) -> Option<Datum<'_>> {
        match *self.tags.last()? {
            tag::INT => Some(Datum::Int(*self.numbers.last()?)),
            tag::PLAIN_TEXT => Some(Datum::Text {
                bytes: self.text(self.ends.len().checked_sub(1)?)?,
                plain: true,
            }),
            _ => None,
        }
    }

    /// Adds the last slots of another column, of which all are [keys](Self::last_key).
    pub(crate) fn extend_from(&mut self, other: &Self, slots: usize) {
        let tags = last(&other.tags, slots);
        let texts = tags.iter().filter(|tag| tag::is_textual(**tag)).count();
        let numbers = last(&other.numbers, slots.saturating_sub(texts));
        self.tags.extend_from_slice(tags);
        self.numbers.extend_from_slice(numbers);
        if self.has_counts {
            self.counts.resize(self.numbers.len(), 0);
        }
        let all = other.ends.len();
        for text in (all.saturating_sub(texts)..all).filter_map(|index| other.text(index)) {
            self.bytes.extend_from_slice(text);
            self.ends.push(self.bytes.len());
        }
    }

    /// A string by its place among those that slots carry.
    fn text(&self, index: usize) -> Option<&[u8]> {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before));
        self.bytes.get(start.copied().unwrap_or_default()..*self.ends.get(index)?)
    }

    /// Adds slots until there are `len`, all absent.
    pub(crate) fn pad(&mut self, len: usize) {
        self.repeat(Datum::Absent, len.saturating_sub(self.len()));
    }

    /// Adds so many slots of one state.
    pub(crate) fn repeat(&mut self, datum: Datum<'_>, slots: usize) {
        match tag::tag_of(datum) {
            (tag, Carried::Nothing) => self.tags.extend(std::iter::repeat_n(tag, slots)),
            (tag, Carried::Number(value)) if !self.has_counts => {
                self.tags.extend(std::iter::repeat_n(tag, slots));
                self.numbers.extend(std::iter::repeat_n(value, slots));
            }
            _ => (0..slots).for_each(|_| self.push(datum)),
        }
    }

    /// The encoding.
    ///
    /// # Panics
    /// If there are more than 65,535 slots.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut cell = Vec::new();
        self.encode(&mut cell);
        cell
    }

    /// Appends the encoding.
    ///
    /// # Panics
    /// If there are more than 65,535 slots.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let len = self.len();
        assert!(len <= BITS_MAX, "a column of {len} slots");
        let sorted = self.sorted();
        let plan = Plan::best(&self.numbers);
        let summary = self.summary(&sorted, &plan);
        self.write_head(summary.is_some(), out);
        if let Some(summary) = summary {
            summary.write(out);
        }
        Split::encode(&sorted.carrying, out);
        Split::encode(&sorted.textual, out);
        if self.has_bare() {
            Tags::encode(&sorted.bare, out);
        }
        if !self.numbers.is_empty() {
            Tags::encode(&sorted.numbers, out);
            plan.write(&self.numbers, out);
            if self.has_counts {
                Integers::encode(&self.counts, out);
            }
        }
        if !self.ends.is_empty() {
            Tags::encode(&sorted.texts, out);
            Texts::encode(&self.texts(), out);
        }
    }

    fn has_bare(&self) -> bool {
        self.numbers.len().saturating_add(self.ends.len()) < self.len()
    }

    fn sorted(&self) -> Sorted<'_> {
        let mut sorted = Sorted::default();
        let all = Cow::Borrowed(self.tags.as_slice());
        match (self.has_bare(), self.numbers.is_empty(), self.ends.is_empty()) {
            (_, true, true) => sorted.bare = all,
            (false, false, true) => sorted.numbers = all,
            (false, true, false) => sorted.texts = all,
            _ => self.sort(&mut sorted),
        }
        sorted
    }

    fn sort(&self, sorted: &mut Sorted<'_>) {
        for &tag in &self.tags {
            let (is_carrying, is_textual) = (tag::is_carrying(tag), tag::is_textual(tag));
            sorted.carrying.push(is_carrying);
            if is_carrying {
                sorted.textual.push(is_textual);
            }
            match (is_carrying, is_textual) {
                (false, _) => sorted.bare.to_mut().push(tag),
                (true, false) => sorted.numbers.to_mut().push(tag),
                (true, true) => sorted.texts.to_mut().push(tag),
            }
        }
    }

    /// The strings of all slots, if these are all that they have, and need no escapes.
    pub(in crate::encoding) fn plain_texts(&self) -> Option<Vec<&[u8]>> {
        self.tags.iter().all(|&tag| tag == tag::PLAIN_TEXT).then(|| self.texts())
    }

    /// The numbers that slots carry.
    pub(crate) fn numbers(&self) -> &[i64] {
        &self.numbers
    }

    /// The same where all slots carry one.
    pub(crate) fn all_numbers(&self) -> Option<&[i64]> {
        (self.numbers.len() == self.len()).then_some(self.numbers())
    }

    /// The same states, but for a text in place of each number.
    pub(in crate::encoding) fn with_texts<T: AsRef<[u8]>>(&self, text: impl Fn(i64) -> T) -> Self {
        let (mut numbers, mut texts) = (self.numbers.iter(), self.texts().into_iter());
        let mut all = Self::default();
        for &tag in &self.tags {
            if tag::is_textual(tag) {
                let bytes = texts.next().unwrap_or_default();
                all.push(Datum::Text { bytes, plain: tag == tag::PLAIN_TEXT });
            } else if let Some(number) = numbers.next() {
                all.push(Datum::Text { bytes: text(*number).as_ref(), plain: true });
            }
        }
        all
    }

    /// The strings that slots carry.
    pub(crate) fn texts(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let span = |(start, end): (usize, &usize)| self.bytes.get(start..*end).unwrap_or_default();
        starts.zip(&self.ends).map(span).collect()
    }

    /// The summary, if the column stores one: where reading it off the values takes a pass.
    fn summary(&self, sorted: &Sorted<'_>, plan: &Plan) -> Option<Summary> {
        if self.len() < SUMMARY_SLOTS_MIN {
            return None;
        }
        let is_derived = self.numbers.len() == self.len()
            && plan.is_line()
            && sorted.numbers.iter().all(|tag| Some(tag) == sorted.numbers.first())
            && sorted.numbers.first().is_some_and(|tag| tag::scale(*tag).is_some());
        if is_derived {
            return None;
        }
        let tags = sorted.numbers.iter().chain(sorted.texts.iter());
        let others = tags.filter(|tag| tag::is_other_number(**tag)).count();
        if sorted.numbers.iter().all(|tag| *tag == tag::INT) {
            return Summary::of_integers(&self.numbers, others);
        }
        let pairs = sorted.numbers.iter().zip(&self.numbers);
        let exact = pairs.filter_map(|(tag, value)| Some((*value, tag::scale(*tag)?)));
        Summary::of_numbers(exact, others)
    }

    fn write_head(&self, has_summary: bool, out: &mut Vec<u8>) {
        let flag = |has: bool, flag: u8| if has { flag } else { 0 };
        let parts = flag(self.has_bare(), HAS_BARE)
            | flag(!self.numbers.is_empty(), HAS_NUMBERS)
            | flag(!self.ends.is_empty(), HAS_TEXTS)
            | flag(self.has_counts, HAS_COUNTS)
            | flag(has_summary, HAS_SUMMARY);
        put_head(parts, self.len(), out);
    }
}

fn last<T>(all: &[T], count: usize) -> &[T] {
    all.get(all.len().saturating_sub(count)..).unwrap_or_default()
}
