//! Conditions on the fields of elements or entries, by column: a row group at a time, each column
//! gives a bit for each slot, and the bits are combined.
//!
//! Invariants:
//! - only fields by their names are in columns; where a column cannot tell (a field in an object
//!   that outgrew its shape, a subtree stored whole, a value stored apart) the slot is unsure, and
//!   has to be looked at by itself;
//! - a verdict is about the slots asked for, whether there is an element or entry or not.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use crate::limits::ROW_GROUP_SLOTS;
use crate::node::PathId;
use crate::state::{ApartKind, Datum, Sequence, ShapeId};
use crate::tree::data::TreeData;
use crate::tree::group::{Fault, GroupId};
use crate::tree::scan::{Births, ColumnScan, Visitor};
use crate::tree::schema::index_u32;
use crate::tree::young::Packed;

/// Slots of a row group.
const SLOTS: usize = 4_096;

const _: () = assert!(SLOTS as u64 == ROW_GROUP_SLOTS);

/// A bit for each slot of a row group.
///
/// What goes through all of them is not inlined: it is long, and the code of a query that is asked
/// for the first time has to be read from memory (benchmark B).
#[derive(Debug, Clone)]
pub(crate) struct Bits(pub(crate) [u64; SLOTS / 64]);

/// A filter as tests of columns.
#[derive(Debug)]
pub(crate) enum Condition<T> {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    /// The same for every slot.
    Always(bool),
    /// The value that names lead to from the element or entry.
    Column(Vec<Arc<str>>, T),
    /// What is [told](GroupScan::told) under a number; another condition, if it is not.
    Told(usize, Box<Self>),
}

/// What is asked of the values of a column.
pub(crate) trait ColumnTest {
    /// Whether it holds where there is no value.
    fn holds_for_missing(&self) -> bool;

    /// Whether it holds for a state that is there; none if the state does not tell.
    fn verdict(&self, state: Datum<'_>) -> Option<bool>;

    /// For which integers it holds, if that is so simple.
    fn integers(&self) -> Option<Integers> {
        None
    }

    /// For which string alone of all strings it holds, if that is so simple.
    fn text(&self) -> Option<&[u8]> {
        None
    }

    /// Whether it asks only if there is a value.
    fn is_of_presence(&self) -> bool {
        false
    }
}

/// The integers between two, or all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Integers {
    pub(crate) range: RangeInclusive<i64>,
    pub(crate) are_inside: bool,
}

/// What is known of the slots of a row group.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Where the condition holds, unless it is unsure.
    pub(crate) holds: Bits,
    /// The columns cannot tell.
    pub(crate) is_unsure: Bits,
}

/// The arrays that names lead to from the elements or entries in some slots.
#[derive(Debug)]
pub(crate) struct Arrays {
    /// The path of their elements, if any array there ever had one.
    pub(crate) elements: Option<PathId>,
    /// The slots of those that have elements, rising, and these.
    pub(crate) sequences: Vec<(u16, Sequence)>,
    /// The columns cannot tell whether there is one.
    pub(crate) is_unsure: Bits,
}

/// The slots of a row group that are looked at.
pub(crate) struct GroupScan<'a> {
    data: &'a TreeData,
    /// The path of the elements or entries.
    path: PathId,
    id: GroupId,
    slots: Range<u16>,
    revision: u32,
    /// What is known of them from elsewhere, by numbers.
    told: &'a [Verdict],
    /// What has been read of paths on the way to a field.
    levels: Vec<(PathId, Levels)>,
    /// Columns whose states were tested.
    tested: usize,
    /// Columns whose least and greatest values sufficed.
    ruled_out: usize,
    /// Bytes of the cells that objects on the way to fields were read from.
    pub(crate) read_bytes: usize,
}

impl Integers {
    #[inline]
    fn accept(&self, value: i64) -> bool {
        self.range.contains(&value) == self.are_inside
    }
}

impl Verdict {
    /// It holds nowhere.
    pub(crate) fn none() -> Self {
        Self { holds: Bits::none(), is_unsure: Bits::none() }
    }

    /// Where the condition holds or may.
    pub(crate) fn candidates(&self) -> Bits {
        self.holds.or(&self.is_unsure)
    }

    fn sure(&self) -> Bits {
        self.holds.without(&self.is_unsure)
    }
}

impl<T: ColumnTest> Condition<T> {
    /// Whether least and greatest values may tell that it holds nowhere.
    fn may_be_ruled_out(&self) -> bool {
        let Self::Column(_, test) = self else { return false };
        test.integers().is_some_and(|wanted| wanted.are_inside)
    }
}

impl<'a> GroupScan<'a> {
    /// Slots of the row group of a number, of the elements or entries that have a path.
    pub(crate) fn new(
        data: &'a TreeData,
        path: PathId,
        group: u64,
        slots: Range<u16>,
        revision: u32,
    ) -> Self {
        let space = data.schema.path(path).space;
        let group = index_u32(usize::try_from(group).unwrap_or(usize::MAX));
        let (id, levels) = (GroupId { space, group }, Vec::new());
        let (told, tested, ruled_out, read_bytes) = (&[][..], 0, 0, 0);
        Self { data, path, id, slots, revision, told, levels, tested, ruled_out, read_bytes }
    }

    /// The same, with what is known from elsewhere.
    pub(crate) fn told(self, told: &'a [Verdict]) -> Self {
        Self { told, ..self }
    }

    /// Whether the least and greatest values of columns told all there is to tell.
    pub(crate) fn is_ruled_out(&self) -> bool {
        self.tested == 0 && self.ruled_out > 0
    }

    /// The slots whose element or entry has a value other than null.
    pub(crate) fn live(&mut self) -> Result<Bits, Fault> {
        let slots = self.slots.clone();
        let levels = self.levels(self.path)?;
        if let Some(code) = levels.only(&slots) {
            return Ok(if code == Levels::NOTHING { Bits::none() } else { Bits::of(&slots) });
        }
        let mut live = Bits::none();
        live.fill(0, levels.codes.iter().map(|code| *code != Levels::NOTHING));
        Ok(live.and(&Bits::of(&slots)))
    }

    /// The slots in whose element or entry objects lead to a path of its fields.
    pub(crate) fn presence(&mut self, path: PathId) -> Result<Bits, Fault> {
        let mut fields = Vec::new();
        let mut at = path;
        while at != self.path {
            fields.push(at);
            at = self.data.schema.path(at).parent;
        }
        let mut there = Bits::of(&self.slots);
        for field in fields.into_iter().rev() {
            there = there.and(&self.holders(at, Some(field))?.0);
            at = field;
        }
        Ok(there)
    }

    pub(crate) fn judge<T: ColumnTest>(
        &mut self,
        condition: &Condition<T>,
    ) -> Result<Verdict, Fault> {
        let all = Bits::of(&self.slots);
        Ok(match condition {
            Condition::Always(holds) => {
                let holds = if *holds { all } else { Bits::none() };
                Verdict { holds, is_unsure: Bits::none() }
            }
            Condition::Not(inner) => {
                let Verdict { holds, is_unsure } = self.judge(inner)?;
                Verdict { holds: all.without(&holds), is_unsure }
            }
            Condition::All(parts) => {
                let (mut candidates, mut is_unsure) = (all, Bits::none());
                // Where least and greatest values suffice, nothing else is read.
                let (first, rest): (Vec<_>, Vec<_>) =
                    parts.iter().partition(|part| part.may_be_ruled_out());
                for part in first.into_iter().chain(rest) {
                    let one = self.judge(part)?;
                    candidates = candidates.and(&one.candidates());
                    is_unsure = is_unsure.or(&one.is_unsure).and(&candidates);
                    if candidates.is_none() {
                        break;
                    }
                }
                Verdict { holds: candidates, is_unsure }
            }
            Condition::Any(parts) => {
                let (mut candidates, mut sure) = (Bits::none(), Bits::none());
                for part in parts {
                    let one = self.judge(part)?;
                    candidates = candidates.or(&one.candidates());
                    sure = sure.or(&one.sure());
                }
                Verdict { is_unsure: candidates.without(&sure), holds: sure }
            }
            Condition::Column(names, test) => self.judge_column(names, test)?,
            Condition::Told(number, otherwise) => match self.told.get(*number) {
                Some(told) => told.clone(),
                None => self.judge(otherwise)?,
            },
        })
    }

    /// The arrays that names lead to.
    pub(crate) fn arrays(&mut self, names: &[Arc<str>]) -> Result<Arrays, Fault> {
        let Led { path, is_there, is_unsure } = self.follow(names)?;
        let elements = self.data.schema.path(path).element;
        let mut arrays = Arrays { elements, sequences: Vec::new(), is_unsure };
        if is_there.is_none() {
            return Ok(arrays);
        }
        let mut found = FoundArrays { sequences: vec![None; SLOTS], is_unsure: Bits::none() };
        self.data.scan(&self.column(path), &mut found)?;
        arrays.is_unsure = arrays.is_unsure.or(&found.is_unsure.and(&is_there));
        let sequences = is_there.slots().map(|slot| (slot, found.sequences[usize::from(slot)]));
        let sequences = sequences.filter_map(|(slot, sequence)| Some((slot, sequence?)));
        arrays.sequences = sequences.collect();
        Ok(arrays)
    }

    /// Where names lead.
    fn follow(&mut self, names: &[Arc<str>]) -> Result<Led, Fault> {
        let mut led =
            Led { path: self.path, is_there: Bits::of(&self.slots), is_unsure: Bits::none() };
        for name in names {
            let field = self.data.schema.field(led.path, name.as_bytes());
            let (has_field, is_unknown) = self.holders(led.path, field)?;
            led.is_unsure = led.is_unsure.or(&is_unknown.and(&led.is_there));
            led.is_there = led.is_there.and(&has_field);
            match field {
                Some(field) if !led.is_there.is_none() => led.path = field,
                _ => break,
            }
        }
        Ok(led)
    }

    fn judge_column<T: ColumnTest>(
        &mut self,
        names: &[Arc<str>],
        test: &T,
    ) -> Result<Verdict, Fault> {
        let Led { path, is_there, is_unsure } = self.follow(names)?;
        let absent = Bits::of(&self.slots).without(&is_there);
        let mut judge = Judge::of(test);
        if test.is_of_presence() {
            judge.holds = is_there.clone();
        } else if !is_there.is_none() {
            let column = self.column(path);
            let wanted = judge.integers.as_ref().filter(|wanted| wanted.are_inside);
            let is_ruled_out = match wanted {
                Some(wanted) => self.data.is_ruled_out(&column, &wanted.range)?,
                None => false,
            };
            if is_ruled_out {
                self.ruled_out += 1;
            } else {
                self.tested += 1;
                self.data.scan(&column, &mut judge)?;
            }
        }
        let mut holds = judge.holds.and(&is_there);
        if test.holds_for_missing() {
            holds = holds.or(&absent);
        }
        Ok(Verdict { holds, is_unsure: is_unsure.or(&judge.is_unsure.and(&is_there)) })
    }

    /// The slots whose value at a path is an object with a field, and those where a column cannot
    /// tell.
    fn holders(&mut self, path: PathId, field: Option<PathId>) -> Result<(Bits, Bits), Fault> {
        let (data, slots) = (self.data, self.slots.clone());
        let levels = self.levels(path)?;
        let (mut has, mut is_unknown) = (Bits::none(), Bits::none());
        let has_code = |code| {
            let holds = Levels::shape(code).zip(field);
            holds.is_some_and(|(shape, field)| has_field(data, shape, field))
        };
        if let Some(code) = levels.only(&slots).filter(|code| *code != Levels::UNKNOWN) {
            return Ok((if has_code(code) { Bits::of(&slots) } else { has }, is_unknown));
        }
        let mut last = (Levels::NOTHING, false);
        for slot in slots {
            let code = levels.codes[usize::from(slot)];
            if code != last.0 {
                last = (code, has_code(code));
            }
            has.assign(slot, last.1);
            if code == Levels::UNKNOWN {
                is_unknown.assign(slot, true);
            }
        }
        Ok((has, is_unknown))
    }

    fn levels(&mut self, path: PathId) -> Result<&Levels, Fault> {
        let known = self.levels.iter().position(|(known, _)| *known == path);
        let index = known.unwrap_or(self.levels.len());
        if known.is_none() {
            let codes = vec![Levels::NOTHING; usize::from(self.slots.end)];
            let mut levels = Levels { codes, read_bytes: 0 };
            self.data.scan(&self.column(path), &mut levels)?;
            self.read_bytes += levels.read_bytes;
            self.levels.push((path, levels));
        }
        Ok(&self.levels[index].1)
    }

    fn column(&self, path: PathId) -> ColumnScan {
        ColumnScan {
            group: self.id,
            column: self.data.schema.path(path).column,
            slots: self.slots.clone(),
            revision: self.revision,
        }
    }
}

/// Where names lead from the elements or entries.
struct Led {
    path: PathId,
    /// The slots in which there is something.
    is_there: Bits,
    /// The columns cannot tell.
    is_unsure: Bits,
}

/// The elements of the arrays in a column.
struct FoundArrays {
    sequences: Vec<Option<Sequence>>,
    /// What is stored whole.
    is_unsure: Bits,
}

impl Visitor for FoundArrays {
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        self.sequences[usize::from(slot)] = match state {
            Datum::Array(sequence) if sequence != Sequence::EMPTY => Some(sequence),
            _ => None,
        };
        let is_whole = |state| {
            matches!(state, Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. })
        };
        self.is_unsure.assign(slot, is_whole(state));
    }
}

/// Whether an object of a shape has a field.
pub(crate) fn has_field(data: &TreeData, shape: ShapeId, path: PathId) -> bool {
    data.schema.shape(shape).iter().any(|field| field.path == path)
}

/// For each slot up to the last one asked for the shape of the object there, above two codes that
/// mean no object.
struct Levels {
    codes: Vec<u32>,
    read_bytes: usize,
}

impl Levels {
    const NOTHING: u32 = 0;
    /// An object whose fields are not all in columns.
    const UNKNOWN: u32 = 1;

    fn code(state: Datum<'_>) -> u32 {
        match state {
            Datum::Object(shape) => shape.0 + 2,
            Datum::Map(_) | Datum::Opaque(_) | Datum::Apart { kind: ApartKind::Opaque, .. } => {
                Self::UNKNOWN
            }
            _ => Self::NOTHING,
        }
    }

    fn shape(code: u32) -> Option<ShapeId> {
        code.checked_sub(2).map(ShapeId)
    }

    /// What is the same for all of some slots.
    fn only(&self, slots: &Range<u16>) -> Option<u32> {
        let codes = self.codes.get(usize::from(slots.start)..usize::from(slots.end))?;
        let first = *codes.first()?;
        (codes.iter().fold(0, |all, code| all | code ^ first) == 0).then_some(first)
    }
}

impl Visitor for Levels {
    fn reads(&mut self, bytes: usize) {
        self.read_bytes += bytes;
    }

    #[inline]
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        self.codes[usize::from(slot)] = Self::code(state);
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        self.codes[usize::from(slots.start)..usize::from(slots.end)].fill(Self::code(state));
    }

    fn born(&mut self, first: u16, births: &Births<'_>) {
        // The first of none may be behind all that are asked for.
        let codes = self.codes.get_mut(usize::from(first)..).unwrap_or_default();
        for (code, &birth) in codes.iter_mut().zip(births.states) {
            *code = match birth.shape().filter(|_| birth.revision <= births.revision) {
                Some(shape) => shape.0 + 2,
                None => Self::code(births.state(birth)),
            };
        }
    }
}

/// Tests the states of a column.
struct Judge<'t, T> {
    test: &'t T,
    integers: Option<Integers>,
    holds: Bits,
    is_unsure: Bits,
}

impl<'t, T: ColumnTest> Judge<'t, T> {
    fn of(test: &'t T) -> Self {
        Self { test, integers: test.integers(), holds: Bits::none(), is_unsure: Bits::none() }
    }

    #[inline]
    fn verdict(&self, state: Datum<'_>) -> Option<bool> {
        match (state, &self.integers) {
            (Datum::Int(value), Some(integers)) => Some(integers.accept(value)),
            (state, _) => self.test.verdict(state),
        }
    }
}

impl<T: ColumnTest> Visitor for Judge<'_, T> {
    #[inline]
    fn state(&mut self, slot: u16, state: Datum<'_>) {
        let verdict = self.verdict(state);
        self.holds.assign(slot, verdict == Some(true));
        self.is_unsure.assign(slot, verdict.is_none());
    }

    fn same(&mut self, slots: Range<u16>, state: Datum<'_>) {
        let verdict = self.verdict(state);
        let range = Bits::of(&slots);
        let assigned = |bits: &Bits, is_set: bool| {
            if is_set { bits.or(&range) } else { bits.without(&range) }
        };
        self.holds = assigned(&self.holds, verdict == Some(true));
        self.is_unsure = assigned(&self.is_unsure, verdict.is_none());
    }

    fn integers(&mut self, first: u16, values: &[i64]) {
        let Some(integers) = &self.integers else {
            for (slot, &value) in (first..).zip(values) {
                self.state(slot, Datum::Int(value));
            }
            return;
        };
        self.holds.fill(first, values.iter().map(|value| integers.accept(*value)));
    }

    fn born(&mut self, first: u16, births: &Births<'_>) {
        let of = (first, births);
        let others = match (self.test.text(), &self.integers) {
            (Some(wanted), _) => fill_known(&mut self.holds, of, |birth| {
                // Most others are longer or shorter: they are not looked at.
                let len = birth.text_len()?;
                Some(len == wanted.len() && births.text(birth) == Some(wanted))
            }),
            (None, Some(integers)) => fill_known(&mut self.holds, of, |birth| {
                birth.integer().map(|value| integers.accept(value))
            }),
            (None, None) => (0..births.states.len()).collect(),
        };
        for index in others {
            if let Some(slot) = u16::try_from(index).ok().and_then(|index| first.checked_add(index))
            {
                self.state(slot, births.state(births.states[index]));
            }
        }
    }

    fn coded(&mut self, first: u16, codes: &[i64], states: &[Datum<'_>]) {
        let verdicts = states.iter().map(|state| self.verdict(*state)).collect::<Vec<_>>();
        let verdict = |code: &i64| usize::try_from(*code).ok().and_then(|code| verdicts[code]);
        self.holds.fill(first, codes.iter().map(|code| verdict(code) == Some(true)));
        if verdicts.contains(&None) {
            self.is_unsure.fill(first, codes.iter().map(|code| verdict(code).is_none()));
        }
    }
}

/// Fills in for which first states a test holds, as far as `verdict` tells; the indexes of those
/// of which it does not.
#[inline]
fn fill_known(
    holds: &mut Bits,
    (first, births): (u16, &Births<'_>),
    verdict: impl Fn(Packed) -> Option<bool>,
) -> Vec<usize> {
    let mut others = Vec::new();
    let verdicts = births.states.iter().enumerate().map(|(index, &birth)| {
        let known = verdict(birth).filter(|_| birth.revision <= births.revision);
        if known.is_none() {
            others.push(index);
        }
        known == Some(true)
    });
    holds.fill(first, verdicts);
    others
}

impl Bits {
    #[inline]
    pub(crate) fn none() -> Self {
        Self([0; SLOTS / 64])
    }

    /// The bits of consecutive slots.
    #[inline(never)]
    pub(crate) fn of(slots: &Range<u16>) -> Self {
        let mut bits = Self::none();
        if slots.is_empty() {
            return bits;
        }
        let (first, last) = (usize::from(slots.start) / 64, usize::from(slots.end - 1) / 64);
        if let Some(words) = bits.0.get_mut(first..=last) {
            words.fill(u64::MAX);
            words[0] &= u64::MAX << (slots.start % 64);
            words[last - first] &= u64::MAX >> (63 - (slots.end - 1) % 64);
        }
        bits
    }

    #[inline]
    pub(crate) fn has(&self, slot: u16) -> bool {
        self.0[usize::from(slot) / 64] >> (slot % 64) & 1 != 0
    }

    #[inline]
    pub(crate) fn assign(&mut self, slot: u16, is_set: bool) {
        let word = &mut self.0[usize::from(slot) / 64];
        let bit = slot % 64;
        *word = *word & !(1 << bit) | u64::from(is_set) << bit;
    }

    /// Assigns consecutive slots.
    fn fill(&mut self, first: u16, bits: impl Iterator<Item = bool>) {
        let mut at = usize::from(first);
        let mut word = self.0.get(at / 64).copied().unwrap_or(0);
        for is_set in bits {
            word = word & !(1 << (at % 64)) | u64::from(is_set) << (at % 64);
            at += 1;
            if at.is_multiple_of(64) {
                self.0[at / 64 - 1] = word;
                word = self.0.get(at / 64).copied().unwrap_or(0);
            }
        }
        if let Some(last) = self.0.get_mut(at / 64) {
            *last = word;
        }
    }

    /// How many are set.
    #[inline(never)]
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    #[inline(never)]
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    #[inline(never)]
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline(never)]
    pub(crate) fn without(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    #[inline(never)]
    pub(crate) fn is_none(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// With every bit so many slots further on.
    #[inline]
    pub(crate) fn later(&self, slots: u16) -> Self {
        let (words, bits) = (usize::from(slots / 64), slots % 64);
        if slots == 0 {
            return self.clone();
        }
        let word = |at: Option<usize>| at.and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        Self(std::array::from_fn(|at| {
            let (own, before) = (at.checked_sub(words), at.checked_sub(words + 1));
            let carried = if bits == 0 { 0 } else { word(before) >> (64 - bits) };
            word(own) << bits | carried
        }))
    }

    /// With every bit so many slots before; those that would be before the first are left out.
    #[inline]
    pub(crate) fn earlier(&self, slots: u16) -> Self {
        let (words, bits) = (usize::from(slots / 64), slots % 64);
        if slots == 0 {
            return self.clone();
        }
        let word = |at: usize| self.0.get(at).copied().unwrap_or(0);
        Self(std::array::from_fn(|at| {
            let carried = if bits == 0 { 0 } else { word(at + words + 1) << (64 - bits) };
            word(at + words) >> bits | carried
        }))
    }

    /// The slots that are set, rising.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u16> + '_ {
        (0..).step_by(64).zip(&self.0).flat_map(|(first, word)| {
            let rest = |word: &u64| Some(word & word.wrapping_sub(1)).filter(|word| *word != 0);
            let words = std::iter::successors(Some(*word).filter(|word| *word != 0), rest);
            words.map(move |word| first + u16::try_from(word.trailing_zeros()).unwrap_or(0))
        })
    }
}
