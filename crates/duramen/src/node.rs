//! What identifies a JSON value inside a tree.

use std::fmt;

use crate::limits::ORDINALS_MAX;

/// The number of a label path of a tree, such as `$.data[*].age`. At most 24 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PathId(pub u32);

/// The number of an array element or map entry, in order of creation. At most 40 bits.
///
/// A field has the ordinal of the element or entry it is in; the root has 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ordinal(pub u64);

/// One JSON value of a tree: a path and an ordinal. Never reused, stable for ever.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(u64);

/// A node that was made of another one: the top node of a subtree where it is now, and the one it
/// was before. A rename, or a move to another path, makes new nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Move {
    pub(crate) to: NodeId,
    pub(crate) from: NodeId,
}

/// What kind of JSON value a node holds at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number
    Number,
    /// A string
    String,
    /// An array
    Array,
    /// An object, whether its fields are stored as columns or as map entries
    Object,
}

impl NodeId {
    const ORDINAL_BITS: u32 = 40;

    /// Joins a path and an ordinal.
    ///
    /// # Panics
    /// If either is over its limit; both are handed out by the engine, which checks.
    pub fn new(path: PathId, ordinal: Ordinal) -> Self {
        assert!(path.0 < 1 << 24 && ordinal.0 < ORDINALS_MAX, "node {path:?} {ordinal:?}");
        Self(u64::from(path.0) << Self::ORDINAL_BITS | ordinal.0)
    }

    /// The node with this number, as [`NodeId::number`] gives it.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number that identifies the node in output and on disk.
    pub fn number(self) -> u64 {
        self.0
    }

    /// The label path of the node.
    pub fn path(self) -> PathId {
        PathId(u32::try_from(self.0 >> Self::ORDINAL_BITS).unwrap_or(u32::MAX))
    }

    /// The ordinal of the element or entry the node is in.
    pub fn ordinal(self) -> Ordinal {
        Ordinal(self.0 & (ORDINALS_MAX - 1))
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}:{}", self.path().0, self.ordinal().0)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl NodeKind {
    /// The name used in output: `null`, `boolean`, `number`, `string`, `array`, `object`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}
