//! The state of a node at a revision, as columns, order blocks and the journal hold it.

mod kinds;

pub use kinds::ColumnKinds;
pub(crate) use kinds::SpaceKinds;

/// The number of a shape: an interned, ordered list of the child paths of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ShapeId(pub(crate) u32);

/// The number of an order block of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OrderId(pub(crate) u64);

/// The number of a value stored apart from its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlobId(pub(crate) u64);

/// Consecutive ordinals, or, with a count of 0, one field of an object that outgrew its shape
/// (then `first` is the field's path).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Extent {
    /// The first ordinal: 40 bits.
    pub(crate) first: u64,
    /// How many: 24 bits.
    pub(crate) count: u32,
}

/// The elements of an array, or the entries of a map, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sequence {
    /// One extent of consecutive ordinals; empty if its count is 0.
    Extent(Extent),
    /// The root of a tree of order blocks.
    Blocks(OrderId),
}

/// What the bytes of a value stored apart are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ApartKind {
    /// A string that can be printed between quotes as it is.
    PlainText,
    /// A string that needs escapes.
    Text,
    /// The text of a number.
    Digits,
    /// The JSON text of a subtree.
    Opaque,
}

/// Digits of the fraction of a decimal, at least one: as many as its mantissa has at most.
pub(crate) const DECIMAL_SCALE_MAX: u8 = 18;

/// The state of one node.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Datum<'a> {
    /// Not there.
    Absent,
    Null,
    Bool(bool),
    Int(i64),
    /// `mantissa / 10^scale`, exact to the character: at most 18 digits, scale at least 1.
    Decimal {
        mantissa: i64,
        scale: u8,
    },
    /// Only where the shortest rendering equals the text.
    Float(f64),
    /// A string; `plain` if no character of it needs an escape in JSON.
    Text {
        bytes: &'a [u8],
        plain: bool,
    },
    /// Any other number: its own text.
    Digits(&'a [u8]),
    Object(ShapeId),
    Array(Sequence),
    Map(Sequence),
    /// The JSON text of a subtree stored whole.
    Opaque(&'a [u8]),
    /// A value over [`crate::limits::INLINE_BYTES_MAX`].
    Apart {
        blob: BlobId,
        kind: ApartKind,
    },
}

/// Equal if the same state to the bit: floats compare by their bits.
impl PartialEq for Datum<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (*self, *other) {
            (Self::Absent, Self::Absent) | (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (
                Self::Decimal { mantissa: a, scale: sa },
                Self::Decimal { mantissa: b, scale: sb },
            ) => a == b && sa == sb,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text { bytes: a, .. }, Self::Text { bytes: b, .. })
            | (Self::Digits(a), Self::Digits(b))
            | (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::Array(a), Self::Array(b)) | (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Apart { blob: a, .. }, Self::Apart { blob: b, .. }) => a == b,
            _ => false,
        }
    }
}

impl ApartKind {
    /// The state of such bytes that are not stored apart.
    pub(crate) fn inline(self, bytes: &[u8]) -> Datum<'_> {
        match self {
            Self::PlainText => Datum::Text { bytes, plain: true },
            Self::Text => Datum::Text { bytes, plain: false },
            Self::Digits => Datum::Digits(bytes),
            Self::Opaque => Datum::Opaque(bytes),
        }
    }

    /// The number that stands for the kind in the journal.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::PlainText => 0,
            Self::Text => 1,
            Self::Digits => 2,
            Self::Opaque => 3,
        }
    }

    /// The kind with this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::PlainText,
            1 => Self::Text,
            2 => Self::Digits,
            3 => Self::Opaque,
            _ => return None,
        })
    }
}

impl Extent {
    const FIRST_BITS: u32 = 40;

    /// The extent in one number: the first ordinal in the low 40 bits, the count above.
    pub(crate) fn packed(self) -> u64 {
        self.first | u64::from(self.count) << Self::FIRST_BITS
    }

    /// The extent that [`Extent::packed`] gave.
    pub(crate) fn from_packed(packed: u64) -> Self {
        let first = packed & ((1 << Self::FIRST_BITS) - 1);
        let count = u32::try_from(packed >> Self::FIRST_BITS).unwrap_or(u32::MAX);
        Self { first, count }
    }
}

impl Datum<'_> {
    /// Whether there is no value.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// Whether a state that is not equal to this one may stand for the same value: one with the
    /// same items in other blocks, or with the same bytes apart.
    pub(crate) fn may_be_equal_in_another_form(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Map(_) | Self::Apart { .. })
    }

    /// Whether the state names order blocks or a value stored apart.
    pub(crate) fn names_others(&self) -> bool {
        matches!(
            self,
            Self::Array(Sequence::Blocks(_)) | Self::Map(Sequence::Blocks(_)) | Self::Apart { .. }
        )
    }

    /// Whether the value has children as nodes of their own.
    pub(crate) fn is_container(&self) -> bool {
        matches!(self, Self::Object(_) | Self::Array(_) | Self::Map(_))
    }
}
