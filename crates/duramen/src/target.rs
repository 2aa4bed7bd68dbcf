//! One value of a document, named by its place or by its id.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind, Result};
use crate::json::JsonPointer;
use crate::node::NodeId;

/// What an operation is about: a JSON Pointer names the value at a place, a [`NodeId`] the same
/// value wherever it is now.
///
/// ```
/// use duramen::{JsonPointer, Target};
///
/// assert_eq!("/a/0".parse::<Target>()?, Target::Pointer(JsonPointer::parse("/a/0")?));
/// assert_eq!("#12".parse::<Target>()?.to_string(), "#12");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The value at a place.
    Pointer(JsonPointer),
    /// The value with an id.
    Node(NodeId),
}

impl Target {
    /// Reads `#` and a number as an id, anything else as a JSON Pointer.
    pub fn parse(text: &str) -> Result<Self> {
        let Some(number) = text.strip_prefix('#') else {
            return JsonPointer::parse(text).map(Self::Pointer);
        };
        number.parse().map(NodeId::from_number).map(Self::Node).map_err(|_| {
            let message = format!(
                "{text:?} is not the id of a value: write # and its number, as `get --metadata` \
                 prints it"
            );
            Error::new(ErrorKind::Invalid, message)
        })
    }
}

impl FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer(pointer) => pointer.fmt(f),
            Self::Node(node) => node.fmt(f),
        }
    }
}

impl From<JsonPointer> for Target {
    fn from(pointer: JsonPointer) -> Self {
        Self::Pointer(pointer)
    }
}

impl From<&JsonPointer> for Target {
    fn from(pointer: &JsonPointer) -> Self {
        Self::Pointer(pointer.clone())
    }
}

impl From<&Self> for Target {
    fn from(target: &Self) -> Self {
        target.clone()
    }
}

impl From<&NodeId> for Target {
    fn from(node: &NodeId) -> Self {
        Self::Node(*node)
    }
}

impl From<NodeId> for Target {
    fn from(node: NodeId) -> Self {
        Self::Node(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_neither_a_pointer_nor_an_id_is_refused() {
        for text in ["a", "#", "#x", "#-1", "#99999999999999999999", "/~2"] {
            assert_eq!(Target::parse(text).unwrap_err().kind(), ErrorKind::Invalid, "{text}");
        }
    }
}
