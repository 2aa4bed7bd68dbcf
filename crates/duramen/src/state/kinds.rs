//! Sets of the kinds of values that a column has.

use super::{ApartKind, Datum};

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnKinds(u16);

/// The kinds of all states that the value columns of a space have had, and perhaps of some that
/// came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SpaceKinds(Vec<ColumnKinds>);

impl SpaceKinds {
    /// Those of a column.
    pub(crate) fn get(&self, column: u32) -> ColumnKinds {
        self.0.get(column as usize).copied().unwrap_or_default()
    }

    /// Adds to those of a column.
    #[inline]
    pub(crate) fn add(&mut self, column: u32, kinds: ColumnKinds) {
        let column = column as usize;
        if column >= self.0.len() {
            self.0.resize(column + 1, ColumnKinds::default());
        }
        if let Some(known) = self.0.get_mut(column) {
            known.insert(kinds);
        }
    }

    /// Leaves those of the first columns.
    pub(crate) fn truncate(&mut self, columns: usize) {
        self.0.truncate(columns);
    }

    /// By column.
    pub(crate) fn all(&self) -> &[ColumnKinds] {
        &self.0
    }
}

impl FromIterator<ColumnKinds> for SpaceKinds {
    fn from_iter<I: IntoIterator<Item = ColumnKinds>>(kinds: I) -> Self {
        Self(kinds.into_iter().collect())
    }
}

impl ColumnKinds {
    /// `null`
    pub const NULL: Self = Self(1);
    /// `true` and `false`
    pub const BOOL: Self = Self(1 << 1);
    /// Integers of 64 bits.
    pub const INT: Self = Self(1 << 2);
    /// Numbers with a fraction.
    pub const FLOAT: Self = Self(1 << 3);
    /// Numbers of other forms: beyond 64 bits, with an exponent, or of more than 18 digits.
    pub const DIGITS: Self = Self(1 << 4);
    /// Strings.
    pub const TEXT: Self = Self(1 << 5);
    /// Objects whose fields are in columns.
    pub const OBJECT: Self = Self(1 << 6);
    /// Arrays.
    pub const ARRAY: Self = Self(1 << 7);
    /// Objects and arrays that columns do not hold.
    pub const JSON: Self = Self(1 << 8);

    /// All of them.
    const ALL: Self = Self((1 << 9) - 1);

    /// Adds kinds.
    #[inline]
    pub const fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Both together.
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those that are not among others.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of them are among others.
    pub const fn is_within(self, other: Self) -> bool {
        self.without(other).is_empty()
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether there is at most one beside `null`: what a column has had is then what it has.
    pub(crate) const fn is_settled(self) -> bool {
        self.without(Self::NULL).0.count_ones() <= 1
    }

    /// The set as a number, which [`from_bits`](Self::from_bits) takes.
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// The set of a number; none if it has other bits.
    pub(crate) fn from_bits(bits: u16) -> Option<Self> {
        Some(Self(bits)).filter(|kinds| kinds.is_within(Self::ALL))
    }

    /// The kind of a state; none of one that is not there.
    #[inline]
    pub(crate) const fn of(state: &Datum<'_>) -> Self {
        match state {
            Datum::Absent => Self(0),
            Datum::Null => Self::NULL,
            Datum::Bool(_) => Self::BOOL,
            Datum::Int(_) => Self::INT,
            Datum::Decimal { .. } | Datum::Float(_) => Self::FLOAT,
            Datum::Digits(_) | Datum::Apart { kind: ApartKind::Digits, .. } => Self::DIGITS,
            Datum::Text { .. }
            | Datum::Apart { kind: ApartKind::Text | ApartKind::PlainText, .. } => Self::TEXT,
            Datum::Object(_) => Self::OBJECT,
            Datum::Array(_) => Self::ARRAY,
            Datum::Opaque(_) | Datum::Map(_) | Datum::Apart { kind: ApartKind::Opaque, .. } => {
                Self::JSON
            }
        }
    }
}
