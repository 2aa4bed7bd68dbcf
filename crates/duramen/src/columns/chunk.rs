//! The values of one column at some rows, decoded.

use crate::error::{Error, ErrorKind, Result};
use crate::state::{ApartKind, BlobId, Datum, Sequence};

/// A value in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColumnValue<'a> {
    /// There is none: what would hold it is not there, or has no such field.
    Missing,
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// `mantissa / 10^scale`, exactly.
    Decimal {
        /// At most 18 digits.
        mantissa: i64,
        /// 1 to 18.
        scale: u8,
    },
    /// A number that a float holds to the character.
    Float(f64),
    /// A string.
    Text(&'a str),
    /// Any other number, as it is written.
    Digits(&'a str),
    /// An object whose fields are in columns.
    Object,
    /// An array: [`Columns::elements`](super::Columns::elements) leads to what is in it.
    Array,
    /// An object or array that columns do not hold; its JSON text where that is at hand.
    Json(&'a str),
}

impl ColumnValue<'_> {
    /// A number as the nearest float; none for what is no number.
    pub fn float(self) -> Option<f64> {
        /// Powers of ten that floats hold exactly.
        const EXACT: [f64; 19] = [
            1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
            1e16, 1e17, 1e18,
        ];
        const INTEGER_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
        #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is asked for")]
        match self {
            Self::Int(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            // Both are exact, so that the quotient is the nearest float.
            Self::Decimal { mantissa, scale } if mantissa.unsigned_abs() <= INTEGER_MAX => {
                Some(mantissa as f64 / EXACT.get(usize::from(scale))?)
            }
            Self::Decimal { mantissa, scale } => format!("{mantissa}e-{scale}").parse().ok(),
            Self::Digits(text) => text.parse().ok(),
            _ => None,
        }
    }
}

/// The values of one column at some rows, in their order.
///
/// Each row has a form and a word: a number or truth value by itself, for text where it is. Rows
/// with one text share it.
#[derive(Debug, Clone)]
pub struct ColumnChunk {
    forms: Vec<Form>,
    words: Vec<u64>,
    text: Vec<u8>,
    sequences: Vec<Sequence>,
    is_checked: bool,
    /// Bytes of the cells that its values were in.
    pub(super) read_bytes: usize,
}

/// What the word of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Missing,
    Null,
    Bool,
    Int,
    Decimal(u8),
    Float,
    /// The place of a text.
    Text,
    Digits,
    Json,
    Object,
    /// The index of a sequence.
    Array,
    /// The number of a value stored apart.
    Apart(ApartKind),
}

/// Bits of the length of a text below its place.
const LENGTH_BITS: u32 = 32;

impl ColumnChunk {
    pub(super) fn missing(rows: usize) -> Self {
        Self {
            forms: vec![Form::Missing; rows],
            words: vec![0; rows],
            text: Vec::new(),
            sequences: Vec::new(),
            is_checked: false,
            read_bytes: 0,
        }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.forms.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// The value of a row.
    pub fn get(&self, row: usize) -> ColumnValue<'_> {
        let (Some(form), Some(&word)) = (self.forms.get(row), self.words.get(row)) else {
            return ColumnValue::Missing;
        };
        match *form {
            Form::Missing => ColumnValue::Missing,
            Form::Null => ColumnValue::Null,
            Form::Bool => ColumnValue::Bool(word != 0),
            Form::Int => ColumnValue::Int(word.cast_signed()),
            Form::Decimal(scale) => ColumnValue::Decimal { mantissa: word.cast_signed(), scale },
            Form::Float => ColumnValue::Float(f64::from_bits(word)),
            Form::Text => ColumnValue::Text(self.text_at(word)),
            Form::Digits => ColumnValue::Digits(self.text_at(word)),
            Form::Object => ColumnValue::Object,
            Form::Array => ColumnValue::Array,
            Form::Json => ColumnValue::Json(self.text_at(word)),
            Form::Apart(_) => ColumnValue::Json(""),
        }
    }

    /// The integers of all rows, if each has one.
    pub fn integers(&self) -> Option<impl ExactSizeIterator<Item = i64> + '_> {
        let is_all = self.forms.iter().all(|form| *form == Form::Int);
        is_all.then(|| self.words.iter().map(|word| word.cast_signed()))
    }

    /// All texts, some of which several rows may share.
    pub fn text(&self) -> &str {
        debug_assert!(self.is_checked, "texts are checked when a chunk is read");
        str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Where in [`ColumnChunk::text`] the string or JSON text of a row is, and its length.
    pub fn text_place(&self, row: usize) -> Option<(u32, u32)> {
        let form = self.forms.get(row)?;
        let word = *self.words.get(row)?;
        matches!(form, Form::Text | Form::Digits | Form::Json).then(|| place_of(word))
    }

    fn text_at(&self, word: u64) -> &str {
        let (start, len) = place_of(word);
        let bytes = self.text.get(start as usize..).and_then(|rest| rest.get(..len as usize));
        bytes.and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }

    pub(super) fn form(&self, row: usize) -> Form {
        self.forms.get(row).copied().unwrap_or(Form::Missing)
    }

    /// The order of the elements of an array.
    pub(super) fn sequence(&self, row: usize) -> Option<Sequence> {
        if self.form(row) != Form::Array {
            return None;
        }
        self.sequences.get(usize::try_from(self.words[row]).ok()?).copied()
    }

    pub(super) fn apart(&self, row: usize) -> Option<(BlobId, ApartKind)> {
        match self.form(row) {
            Form::Apart(kind) => Some((BlobId(self.words[row]), kind)),
            _ => None,
        }
    }

    /// Sets the value of a row.
    #[inline]
    pub(super) fn set(&mut self, row: usize, state: Datum<'_>) {
        (self.forms[row], self.words[row]) = self.pack(state);
    }

    /// Sets the value of consecutive rows.
    pub(super) fn fill(&mut self, rows: std::ops::Range<usize>, state: Datum<'_>) {
        let (form, word) = self.pack(state);
        self.forms[rows.clone()].fill(form);
        self.words[rows].fill(word);
    }

    /// Sets the value of some rows.
    pub(super) fn set_all(&mut self, rows: impl Iterator<Item = usize>, state: Datum<'_>) {
        let packed = self.pack(state);
        rows.for_each(|row| (self.forms[row], self.words[row]) = packed);
    }

    pub(super) fn set_integers(&mut self, first: usize, values: &[i64]) {
        let rows = first..first + values.len();
        self.forms[rows.clone()].fill(Form::Int);
        for (word, value) in self.words[rows].iter_mut().zip(values) {
            *word = value.cast_unsigned();
        }
    }

    /// Sets rows by their indexes in a list of states.
    pub(super) fn set_coded(&mut self, first: usize, codes: &[i64], states: &[Datum<'_>]) {
        let packed: Vec<_> = states.iter().map(|state| self.pack(*state)).collect();
        for (row, &code) in (first..).zip(codes) {
            let state = usize::try_from(code).ok().and_then(|code| packed.get(code));
            (self.forms[row], self.words[row]) = state.copied().unwrap_or((Form::Missing, 0));
        }
    }

    pub(super) fn clear(&mut self, row: usize) {
        self.forms[row] = Form::Missing;
    }

    /// Takes rows of another chunk, with all that they need of it.
    pub(super) fn copy(&mut self, first: usize, from: &Self, rows: impl Iterator<Item = usize>) {
        let text = (self.text.len() as u64) << LENGTH_BITS;
        let sequences = self.sequences.len() as u64;
        self.text.extend_from_slice(&from.text);
        self.sequences.extend_from_slice(&from.sequences);
        self.read_bytes += from.read_bytes;
        for (row, of) in (first..).zip(rows) {
            let (form, word) = (from.forms[of], from.words[of]);
            self.forms[row] = form;
            self.words[row] = match form {
                Form::Text | Form::Digits | Form::Json => word + text,
                Form::Array => word + sequences,
                _ => word,
            };
        }
    }

    /// Refuses texts that are not UTF-8 or too long to be addressed.
    pub(super) fn checked(mut self) -> Result<Self> {
        if u32::try_from(self.text.len()).is_err() {
            let message = "the strings of one column of 4,096 rows are over 4 GiB: select the \
                           column of fewer rows";
            return Err(Error::new(ErrorKind::Full, message));
        }
        if str::from_utf8(&self.text).is_err() {
            return Err(Error::new(ErrorKind::Corrupt, "a text in a column is not UTF-8"));
        }
        self.is_checked = true;
        Ok(self)
    }

    fn pack(&mut self, state: Datum<'_>) -> (Form, u64) {
        let word = match state {
            Datum::Absent | Datum::Null | Datum::Object(_) | Datum::Map(_) => 0,
            Datum::Bool(value) => value.into(),
            Datum::Int(value) => value.cast_unsigned(),
            Datum::Decimal { mantissa, .. } => mantissa.cast_unsigned(),
            Datum::Float(value) => value.to_bits(),
            Datum::Text { bytes, .. } | Datum::Digits(bytes) | Datum::Opaque(bytes) => {
                self.keep(bytes)
            }
            Datum::Array(sequence) => {
                self.sequences.push(sequence);
                self.sequences.len() as u64 - 1
            }
            Datum::Apart { blob, .. } => blob.0,
        };
        (Form::of(state), word)
    }

    fn keep(&mut self, bytes: &[u8]) -> u64 {
        let place = self.text.len() as u64;
        self.text.extend_from_slice(bytes);
        place << LENGTH_BITS | bytes.len() as u64
    }
}

fn place_of(word: u64) -> (u32, u32) {
    let part = |word: u64| u32::try_from(word).unwrap_or(u32::MAX);
    (part(word >> LENGTH_BITS), part(word & u64::from(u32::MAX)))
}

impl Form {
    pub(super) fn of(state: Datum<'_>) -> Self {
        match state {
            Datum::Absent => Self::Missing,
            Datum::Null => Self::Null,
            Datum::Bool(_) => Self::Bool,
            Datum::Int(_) => Self::Int,
            Datum::Decimal { scale, .. } => Self::Decimal(scale),
            Datum::Float(_) => Self::Float,
            Datum::Text { .. } => Self::Text,
            Datum::Digits(_) => Self::Digits,
            Datum::Opaque(_) | Datum::Map(_) => Self::Json,
            Datum::Object(_) => Self::Object,
            Datum::Array(_) => Self::Array,
            Datum::Apart { kind, .. } => Self::Apart(kind),
        }
    }
}
