//! What columns there are, and what kinds of values each has.

use std::ops::Range;

use super::chunk::Form;
use crate::encoding::Column;
use crate::node::PathId;
use crate::state::Datum;
use crate::tree::scan::Visitor;

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnKinds(u16);

/// A column: the values at one path of a record or element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnField {
    /// The name of the field; empty for rows and elements themselves.
    pub name: String,
    /// The path in the tree.
    pub path: PathId,
    /// The kinds of its values, those missing left out. Some may be of values that are not there
    /// any more.
    pub kinds: ColumnKinds,
    /// The fields of its objects, in the order in which they first came.
    pub fields: Vec<Self>,
    /// The elements of its arrays.
    pub element: Option<Box<Self>>,
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

    /// Adds kinds.
    pub fn insert(&mut self, other: Self) {
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
}

/// Notes kinds, and nothing else, of what it visits.
impl Visitor for ColumnKinds {
    fn state(&mut self, _: u16, state: Datum<'_>) {
        self.insert(Form::of(state).kind());
    }

    fn same(&mut self, _: Range<u16>, state: Datum<'_>) {
        self.state(0, state);
    }

    fn cell(&mut self, cell: &Column) -> bool {
        cell.forms().for_each(|state| self.state(0, state));
        true
    }

    fn integers(&mut self, _: u16, values: &[i64]) {
        if !values.is_empty() {
            self.insert(Self::INT);
        }
    }

    fn coded(&mut self, _: u16, _: &[i64], states: &[Datum<'_>]) {
        for state in states {
            self.state(0, *state);
        }
    }
}
