//! Objects of one shape that follow each other, read straight into their columns.
//!
//! Records of one kind are spelled alike, each name behind the same bytes, so that after a few of
//! one shape all that has to be told of the next one are its values. One that turns out to be
//! different is taken back, and read as any other value (benchmark A0).
//!
//! Invariants:
//! - what a run puts is what [guesses](super::guess) would, and it ends in front of all else;
//! - a run without any object leaves no trace;
//! - what a run reads has no line break but between its objects.

use crate::bulk::builder::Builder;
use crate::bulk::columns::Lent;
use crate::bulk::guess::Token;
use crate::collection::KeyKind;
use crate::encoding::ColumnBuilder;
use crate::json::{escape, number, number_end};
use crate::limits::{INLINE_BYTES_MAX, RECORD_KEY_BYTES_MAX};
use crate::node::PathId;
use crate::state::{Datum, ShapeId};
use crate::tree::schema::Schema;

#[cfg(test)]
mod tests;

/// Objects of one shape after which more are likely, and how many are asked for at most once that
/// was wrong.
const REPEATS_MIN: u32 = 2;
const REPEATS_MAX: u32 = 1 << 10;
/// Objects from which on a run was worth it.
const WORTH_OBJECTS: usize = 8;

/// The shape that came last, and what is known of how it is spelled.
#[derive(Debug)]
pub(super) struct Runs {
    /// Where it came, if all of its fields are scalars, and how many times.
    last: Option<(PathId, ShapeId)>,
    repeats: u32,
    /// How many times it has to have come.
    asked: u32,
    /// Of which shape the fields are, and whether they are spelled with spaces.
    spelled: Option<(ShapeId, bool)>,
    fields: Vec<Field>,
}

impl Default for Runs {
    fn default() -> Self {
        Self { last: None, repeats: 0, asked: REPEATS_MIN, spelled: None, fields: Vec::new() }
    }
}

/// What a run is to be.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunForm {
    pub(super) between: Between,
    /// The field that is the key of each object, if these are the records of a collection.
    pub(super) key: Option<(PathId, KeyKind)>,
    /// Bytes after which it ends.
    pub(super) bytes: u64,
}

/// What is between the objects of a run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Between {
    Lines,
    Commas,
}

/// What was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub(super) objects: usize,
    /// Up to the end of the last one.
    pub(super) bytes: usize,
}

/// A field of the shape.
#[derive(Debug)]
struct Field {
    path: PathId,
    column: u32,
    /// What comes before its value, behind the one before.
    spelled: Vec<u8>,
    /// The first bytes of that, and which bits of a long word they are.
    word: u128,
    mask: u128,
    lent: Lent,
}

/// A run that is being read.
struct Reading<'f> {
    fields: &'f mut [Field],
    /// Which field is the key.
    key: Option<(usize, KeyKind)>,
    between: Between,
    objects_max: usize,
    bytes_max: u64,
}

impl Builder {
    /// Puts objects at the begin of a text, elements or entries of `parent`, if more of the shape
    /// that came last are likely; none if nothing was put.
    pub(super) fn put_run(
        &mut self,
        (path, parent): (PathId, u64),
        text: &[u8],
        form: RunForm,
    ) -> Option<Ran> {
        let Self { data, columns, runs, .. } = self;
        let (schema, space) = (&*data.schema, data.schema.path(path).space);
        let objects_max = columns.room(space);
        let shape = runs.likely(path).filter(|_| objects_max > 0)?;
        runs.spell(schema, shape, text)?;
        let fields = &mut runs.fields;
        let of_key = |(key, keys)| Some((fields.iter().position(|field| field.path == key)?, keys));
        let key = match form.key {
            Some(key) => Some(of_key(key)?),
            None => None,
        };
        for field in &mut *fields {
            field.lent = columns.lend(space, field.column);
        }
        let (between, bytes_max) = (form.between, form.bytes);
        let ran = Reading { fields, key, between, objects_max, bytes_max }.read(text);
        if let Some((key, _)) = key {
            columns.name_run(space, &fields[key].lent, ran.objects);
        }
        for field in &mut *fields {
            columns.give_back((space, field.column), std::mem::take(&mut field.lent));
        }
        columns.bear_run((space, parent), (shape, ran.objects));
        runs.learn(ran.objects);
        (ran.objects > 0).then_some(ran)
    }
}

impl Runs {
    /// Takes note of the value that came last at a path.
    #[inline]
    pub(super) fn note(&mut self, schema: &Schema, path: PathId, tokens: &[Token]) {
        let flat = match tokens {
            [Token::Object(shape), fields @ ..] if !fields.is_empty() => {
                (schema.shape(*shape).len() == fields.len()).then_some((path, *shape))
            }
            _ => None,
        };
        if flat.is_none() || flat != self.last {
            (self.last, self.repeats) = (flat, 0);
        }
        self.repeats = self.repeats.saturating_add(1);
    }

    /// The shape that is likely to come again at a path.
    fn likely(&self, path: PathId) -> Option<ShapeId> {
        let (last, shape) = self.last?;
        (last == path && self.repeats >= self.asked).then_some(shape)
    }

    /// Takes note of how many objects a run had.
    fn learn(&mut self, objects: usize) {
        if objects == 0 {
            (self.repeats, self.asked) = (0, (self.asked * 2).min(REPEATS_MAX));
        } else if objects >= WORTH_OBJECTS {
            self.asked = REPEATS_MIN;
        }
    }

    /// Finds out how a shape is spelled in a text that begins with an object of it.
    fn spell(&mut self, schema: &Schema, shape: ShapeId, text: &[u8]) -> Option<()> {
        let fields = schema.shape(shape);
        let first = text.get(1..)?.strip_prefix(schema.rendered(fields.first()?));
        let Some(first) = first else {
            self.learn(0);
            return None;
        };
        let is_spaced = first.first() == Some(&b' ');
        if self.spelled == Some((shape, is_spaced)) {
            return Some(());
        }
        self.spelled = Some((shape, is_spaced));
        self.fields.clear();
        let (space, comma): (&[u8], &[u8]) = if is_spaced { (b" ", b", ") } else { (b"", b",") };
        let mut before: &[u8] = b"{";
        for field in fields {
            let spelled = [before, schema.rendered(field), space].concat();
            self.fields.push(Field::new(field.path, field.column, spelled));
            before = comma;
        }
        Some(())
    }
}

impl Reading<'_> {
    fn read(&mut self, text: &[u8]) -> Ran {
        let mut ran = Ran { objects: 0, bytes: 0 };
        let mut rest = text;
        while ran.objects < self.objects_max && (ran.bytes as u64) < self.bytes_max {
            let Some(tail) = self.object(rest) else { break };
            ran = Ran { objects: ran.objects + 1, bytes: text.len() - tail.len() };
            let Some(next) = self.between.strip(tail) else { break };
            rest = next;
        }
        ran
    }

    /// Puts one object: what is behind it. Another one leaves no trace.
    #[inline]
    fn object<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        let mut rest = text;
        for (index, field) in self.fields.iter_mut().enumerate() {
            let Some(tail) = field.put(rest) else {
                self.take_back(index);
                return None;
            };
            rest = tail;
        }
        match rest {
            [b'}', tail @ ..] if self.has_key() => Some(tail),
            _ => {
                self.take_back(self.fields.len());
                None
            }
        }
    }

    /// Whether the key of the object that was put is one of a usual form.
    #[inline]
    fn has_key(&self) -> bool {
        let Some((key, keys)) = self.key else { return true };
        match (keys, self.fields[key].lent.states.last_key()) {
            (KeyKind::I64, Some(Datum::Int(_))) => true,
            (KeyKind::U64, Some(Datum::Int(key))) => key >= 0,
            (KeyKind::Text, Some(Datum::Text { bytes, .. })) => {
                (1..=RECORD_KEY_BYTES_MAX).contains(&bytes.len())
            }
            _ => false,
        }
    }

    #[cold]
    fn take_back(&mut self, fields: usize) {
        for field in &mut self.fields[..fields] {
            field.lent.states.pop();
        }
    }
}

impl Between {
    /// What is behind it, if a text begins with it.
    #[inline]
    fn strip(self, text: &[u8]) -> Option<&[u8]> {
        match (self, text) {
            (Self::Lines, [b'\n', tail @ ..] | [b'\r', b'\n', tail @ ..])
            | (Self::Commas, [b',', b' ' | b'\n', tail @ ..] | [b',', tail @ ..]) => Some(tail),
            _ => None,
        }
    }
}

impl Field {
    fn new(path: PathId, column: u32, spelled: Vec<u8>) -> Self {
        let mut bytes = [0; size_of::<u128>()];
        let len = spelled.len().min(bytes.len());
        bytes[..len].copy_from_slice(&spelled[..len]);
        let mut mask = [0; size_of::<u128>()];
        mask[..len].fill(u8::MAX);
        let (word, mask) = (u128::from_le_bytes(bytes), u128::from_le_bytes(mask));
        Self { path, column, spelled, word, mask, lent: Lent::default() }
    }

    /// Puts the value behind the name that a text begins with: what is behind it.
    #[inline]
    fn put<'t>(&mut self, text: &'t [u8]) -> Option<&'t [u8]> {
        let value = self.strip(text)?;
        put_value(&mut self.lent.states, value)
    }

    /// What is behind the name. At the end of the text there is none.
    #[inline]
    fn strip<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        let first = text.first_chunk()?;
        if (u128::from_le_bytes(*first) ^ self.word) & self.mask != 0 {
            return None;
        }
        if let Some(more) = self.spelled.get(size_of::<u128>()..)
            && !text.get(size_of::<u128>()..)?.starts_with(more)
        {
            return None;
        }
        text.get(self.spelled.len()..)
    }
}

/// Adds the scalar that a text begins with to a column: what is behind it.
#[inline]
fn put_value<'t>(states: &mut ColumnBuilder, text: &'t [u8]) -> Option<&'t [u8]> {
    match text {
        [b'"', tail @ ..] => put_text(states, tail),
        [b'0'..=b'9', ..] => put_number(states, (false, text), text),
        [b'-', tail @ ..] => put_number(states, (true, tail), text),
        [b't', b'r', b'u', b'e', tail @ ..] => {
            states.push(Datum::Bool(true));
            Some(tail)
        }
        [b'f', b'a', b'l', b's', b'e', tail @ ..] => {
            states.push(Datum::Bool(false));
            Some(tail)
        }
        [b'n', b'u', b'l', b'l', tail @ ..] => {
            states.push(Datum::Null);
            Some(tail)
        }
        _ => None,
    }
}

/// The same of a string behind its first quote.
#[inline]
fn put_text<'t>(states: &mut ColumnBuilder, text: &'t [u8]) -> Option<&'t [u8]> {
    let first = *text.first_chunk()?;
    if let Some(len) = escape::plain_prefix_of_word(u64::from_le_bytes(first)) {
        let tail = text.get(len..)?.strip_prefix(b"\"")?;
        states.push_short(first, len);
        return Some(tail);
    }
    put_long_text(states, text)
}

fn put_long_text<'t>(states: &mut ColumnBuilder, text: &'t [u8]) -> Option<&'t [u8]> {
    let len = escape::plain_prefix(text.get(..=INLINE_BYTES_MAX).unwrap_or(text));
    let (bytes, tail) = text.split_at_checked(len)?;
    let tail = tail.strip_prefix(b"\"")?;
    states.push(Datum::Text { bytes, plain: true });
    Some(tail)
}

/// The same of a number, behind its sign and as a whole.
#[inline]
fn put_number<'t>(
    states: &mut ColumnBuilder,
    (is_negative, unsigned): (bool, &'t [u8]),
    text: &'t [u8],
) -> Option<&'t [u8]> {
    if let Some((value, digits)) = number::leading_digits(unsigned)
        && let Some(tail) = unsigned.get(digits..)
        && !matches!(tail, [b'.' | b'e' | b'E', ..] | [])
        && (digits == 1 || unsigned.first() != Some(&b'0'))
        && !(is_negative && value == 0)
    {
        states.push(Datum::Int(if is_negative { -value } else { value }));
        return Some(tail);
    }
    put_other_number(states, text)
}

fn put_other_number<'t>(states: &mut ColumnBuilder, text: &'t [u8]) -> Option<&'t [u8]> {
    let tail = number_end(text).ok().filter(|tail| !tail.is_empty())?;
    let len = text.len() - tail.len();
    if len > INLINE_BYTES_MAX {
        return None;
    }
    states.push(number::classify(text.get(..len)?));
    Some(tail)
}
